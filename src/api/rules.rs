//! What topics ask of batches, by their configs and the broker's.

use crate::config::definition::list;
use crate::config::server::Config;
use crate::config::topic::{Configs, integer, text};
use crate::protocol::wire::Uuid;
use crate::record::codec::Codec;
use crate::record::compress::Compression;
use crate::record::validate::Rules;
use crate::store::topics::Topic;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The rules of topics, kept: to look their configs up takes longer than all the rest for a small
/// batch.
#[derive(Default)]
pub(super) struct RulesOfTopics(RwLock<HashMap<Uuid, Known>>);

struct Known {
    topic: Arc<Topic>,
    broker: Arc<Config>,
    rules: Rules,
}

/// How many topics are kept. The rules of those beyond are looked up.
const TOPICS_KEPT: usize = 100_000;

impl RulesOfTopics {
    pub(super) fn of(&self, topic: &Arc<Topic>, broker: &Arc<Config>) -> Rules {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&topic.id)
            && Arc::ptr_eq(&known.topic, topic)
            && Arc::ptr_eq(&known.broker, broker)
        {
            return known.rules;
        }
        drop(known);
        let rules = rules(&topic.configs, broker);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TOPICS_KEPT {
            let new = Known { topic: topic.clone(), broker: broker.clone(), rules };
            known.insert(topic.id, new);
        }
        rules
    }

    pub(super) fn forget(&self, topic: Uuid) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&topic);
    }
}

/// What a topic with these configs asks of a batch.
fn rules(configs: &Configs, broker: &Config) -> Rules {
    let integer = |name| integer(name, configs, broker);
    let text = |name| text(name, configs, broker);
    let default = Rules::default();
    let decompressed = integer("max.decompressed.message.bytes").unsigned_abs();
    Rules {
        max_message_bytes: integer("max.message.bytes").unsigned_abs() as usize,
        max_decompressed_bytes: decompressed.min(default.max_decompressed_bytes),
        is_compacted: list(&text("cleanup.policy")).any(|policy| policy == "compact"),
        is_append_time: text("message.timestamp.type") == "LogAppendTime",
        compression: match &*text("compression.type") {
            "uncompressed" => Some(Compression::NONE),
            "gzip" => at_level(Codec::Gzip, integer("compression.gzip.level")),
            "snappy" => Some(Codec::Snappy.into()),
            "lz4" => at_level(Codec::Lz4, integer("compression.lz4.level")),
            "zstd" => at_level(Codec::Zstd, integer("compression.zstd.level")),
            _ => None,
        },
        timestamp_before_max_ms: integer("message.timestamp.before.max.ms"),
        timestamp_after_max_ms: integer("message.timestamp.after.max.ms"),
    }
}

fn at_level(codec: Codec, level: i64) -> Option<Compression> {
    let compression = i32::try_from(level).ok().and_then(|level| Compression::new(codec, level));
    Some(compression.unwrap_or_else(|| unreachable!("{codec:?} has level {level}: it was checked")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_change_with_the_topic_and_with_the_broker() {
        let known = RulesOfTopics::default();
        let broker = |text: &str| Arc::new(Config::from_text(text).unwrap());
        let (small, large) = (broker("message.max.bytes=10"), broker("message.max.bytes=1000"));
        let topic = Topic { id: Uuid([1; 16]), ..Topic::default() };
        let configs = Configs::from([("max.message.bytes".to_string(), "50".to_string())]);
        let own = Arc::new(Topic { configs, ..topic.clone() });
        let topic = Arc::new(topic);
        for _ in 0..2 {
            assert_eq!(known.of(&topic, &small).max_message_bytes, 10);
            assert_eq!(known.of(&topic, &large).max_message_bytes, 1000);
            assert_eq!(known.of(&own, &large).max_message_bytes, 50);
        }
    }
}
