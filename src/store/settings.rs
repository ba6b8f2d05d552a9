//! The broker's properties as they are now: those that it was started with, and what was set since.

use super::Storage;
use super::topics::{ALL_BROKERS, BrokerConfigs};
use crate::config::Config;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Settings {
    storage: Arc<dyn Storage>,
    started_with: Arc<Config>,
    now: Mutex<Now>,
}

struct Now {
    set: Arc<BrokerConfigs>,
    config: Arc<Config>,
}

impl Settings {
    pub fn new(config: Arc<Config>, storage: Arc<dyn Storage>) -> Self {
        let now = Now { set: Arc::default(), config: config.clone() };
        Self { storage, started_with: config, now: Mutex::new(now) }
    }

    /// Cheap: asked in every request. The same value is the same `Arc`.
    pub fn now(&self) -> Arc<Config> {
        let set = self.storage.broker_configs();
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&now.set, &set) && now.set != set {
            now.config = self.with(&set);
        }
        now.set = set;
        now.config.clone()
    }

    fn with(&self, set: &BrokerConfigs) -> Arc<Config> {
        let none = BTreeMap::new();
        let of = |broker: &str| set.get(broker).unwrap_or(&none);
        let own = self.started_with.node_id.to_string();
        match self.started_with.with_dynamic(of(ALL_BROKERS), of(&own)) {
            Ok(config) => Arc::new(config),
            // It was checked when it was set, by a version that knew it.
            Err(error) => {
                tracing::error!(%error, "what was set of this broker since it started is left out");
                self.started_with.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::Memory;

    #[tokio::test]
    async fn what_is_set_counts_at_once_and_for_its_broker() {
        let storage: Arc<dyn Storage> = Arc::new(Memory::default());
        let config = Config::from_text("node.id=7\nmessage.max.bytes=1000").unwrap();
        let settings = Settings::new(Arc::new(config), storage.clone());
        let set = async |broker: &str, value: Option<&str>| {
            let changes = [("message.max.bytes".to_string(), value.map(Into::into))].into();
            storage.alter_broker_configs(broker.into(), changes).await.unwrap();
            settings.now().message_max_bytes
        };
        assert_eq!(set("", Some("2000")).await, 2000);
        assert_eq!(set("8", Some("5000")).await, 2000);
        assert_eq!(set("7", Some("3000")).await, 3000);
        assert!(Arc::ptr_eq(&settings.now(), &settings.now()));
        assert_eq!(set("7", None).await, 2000);
        assert_eq!(set("", None).await, 1000);
        let unknown = [("no.such".to_string(), Some("1".to_string()))].into();
        storage.alter_broker_configs(String::new(), unknown).await.unwrap();
        assert_eq!(settings.now().message_max_bytes, 1000);
    }
}
