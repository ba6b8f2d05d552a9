//! The topics of a cluster, as one immutable view that requests share.

use super::PartitionId;
use crate::protocol::wire::Uuid;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    pub id: Uuid,
    pub name: String,
    pub partitions: i32,
    /// Only what was set; what is not here has the broker's default.
    pub configs: BTreeMap<String, String>,
}

impl Topic {
    /// One of the topic's partitions, if it has that many.
    pub fn partition(&self, index: i32) -> Option<PartitionId> {
        let exists = (0..self.partitions).contains(&index);
        exists.then_some(PartitionId { topic: self.id, partition: index })
    }
}

/// All topics, by name and by id.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    by_name: BTreeMap<String, Arc<Topic>>,
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
