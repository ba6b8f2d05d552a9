//! The topics of a cluster, as one immutable view that requests share.

use super::{PartitionId, StoreError};
use crate::protocol::wire::{Str, Uuid};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    pub id: Uuid,
    pub name: Str,
    pub partitions: i32,
    /// Only what was set; what is not here has the broker's default.
    pub configs: BTreeMap<String, String>,
}

/// What is changed of a topic; the rest stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicChange {
    /// How many there are then: more than before.
    pub partitions: Option<i32>,
    pub configs: ConfigChanges,
}

/// New values of configs, by name; `None` is what is no longer set.
pub type ConfigChanges = BTreeMap<String, Option<String>>;

/// What was set of brokers while they ran: by the broker's id, or by no name for all of them.
pub type BrokerConfigs = BTreeMap<String, BTreeMap<String, String>>;

/// The name under which [`BrokerConfigs`] has what counts for all brokers.
pub const ALL_BROKERS: &str = "";

pub fn change_configs(configs: &mut BTreeMap<String, String>, changes: ConfigChanges) {
    for (name, value) in changes {
        match value {
            Some(value) => configs.insert(name, value),
            None => configs.remove(&name),
        };
    }
}

/// Changes what is set of one broker, or of all.
pub fn change_broker_configs(all: &mut BrokerConfigs, broker: String, changes: ConfigChanges) {
    let configs = all.entry(broker.clone()).or_default();
    change_configs(configs, changes);
    if configs.is_empty() {
        all.remove(&broker);
    }
}

impl Topic {
    /// The topic after a change, unless that would not give it more partitions.
    pub fn changed(&self, change: TopicChange) -> Result<Self, StoreError> {
        if change.partitions.is_some_and(|count| count <= self.partitions) {
            return Err(StoreError::NotMorePartitions);
        }
        let mut topic = self.clone();
        topic.partitions = change.partitions.unwrap_or(topic.partitions);
        change_configs(&mut topic.configs, change.configs);
        Ok(topic)
    }

    /// One of the topic's partitions, if it has that many.
    pub fn partition(&self, index: i32) -> Option<PartitionId> {
        let exists = (0..self.partitions).contains(&index);
        exists.then_some(PartitionId { topic: self.id, partition: index })
    }
}

/// All topics, by name and by id.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    by_name: BTreeMap<Str, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
}

impl Topics {
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    pub fn by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a topic, or replaces the one of the same name.
    pub fn insert(&mut self, topic: Topic) {
        let topic = Arc::new(topic);
        if let Some(old) = self.by_name.insert(topic.name.clone(), topic.clone()) {
            self.by_id.remove(&old.id);
        }
        self.by_id.insert(topic.id, topic);
    }

    pub fn remove(&mut self, id: Uuid) -> Option<Arc<Topic>> {
        let topic = self.by_id.remove(&id)?;
        self.by_name.remove(&topic.name)
    }
}
