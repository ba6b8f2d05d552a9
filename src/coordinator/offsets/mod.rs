//! Committed offsets: how far each group has read each partition.
//!
//! ```text
//!             OffsetCommit               OffsetDelete, DeleteGroups, age, a deleted topic
//!   (none) ─────────────────▶ committed ─────────────────────────────────────────────────▶ (none)
//!                              ▲     │
//!                              └─────┘ OffsetCommit
//! ```
//!
//! They stand apart from the members: a consumer that chooses its partitions itself commits to a
//! group without any.
//!
//! - `commit`: OffsetCommit
//! - `fetch`: OffsetFetch
//! - `delete`: OffsetDelete, and the end of a group or topic
//! - `expire`: the end of what is old
//! - [`partition`]: which partition of `__consumer_offsets` a group is in

mod commit;
mod delete;
mod expire;
mod fetch;
pub mod partition;
#[cfg(test)]
mod testing;

use super::own;
use super::shard::DeletedTopic;
use crate::messages::records::offset_commit::{Key, Value};
use crate::protocol::wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// The offsets of a shard's groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offsets {
    by_group: BTreeMap<Str, Topics>,
}

type Topics = BTreeMap<Str, BTreeMap<i32, Value>>;

impl Offsets {
    /// What a group committed for a partition last.
    pub fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&Value> {
        self.by_group.get(group)?.get(topic)?.get(&partition)
    }

    /// All offsets of a group, in the order of topics and partitions.
    pub fn of<'a>(&'a self, group: &str) -> impl Iterator<Item = (&'a Str, i32, &'a Value)> {
        let topics = self.by_group.get(group).into_iter().flatten();
        topics.flat_map(|(topic, partitions)| {
            partitions.iter().map(move |(index, value)| (topic, *index, value))
        })
    }

    /// All offsets, by group, topic and partition.
    pub fn iter(&self) -> impl Iterator<Item = (&Str, &Str, i32, &Value)> {
        self.by_group.iter().flat_map(|(group, topics)| {
            topics.iter().flat_map(move |(topic, partitions)| {
                partitions.iter().map(move |(index, value)| (group, topic, *index, value))
            })
        })
    }

    /// The topics that have offsets, some of them often, by name and by the id under which they
    /// were committed.
    pub fn topics(&self) -> impl Iterator<Item = (&Str, Uuid)> {
        let topics = self.by_group.values().flatten();
        topics.flat_map(|(name, values)| values.values().map(move |value| (name, value.topic_id)))
    }

    /// Those of them that are no more. An offset that was committed without an id is of the topic
    /// that has the name now.
    pub fn deleted_topics(
        &self,
        exists: impl Fn(&Str) -> bool,
        has_id: impl Fn(Uuid) -> bool,
    ) -> BTreeSet<DeletedTopic> {
        let is_gone = |(name, id): &(&Str, Uuid)| match *id {
            Uuid::ZERO => !exists(name),
            id => !has_id(id),
        };
        let gone = self.topics().filter(is_gone);
        gone.map(|(name, id)| DeletedTopic { name: name.clone(), id }).collect()
    }

    /// No value is a tombstone.
    pub(super) fn apply(&mut self, key: Key, value: Option<Value>) {
        match value {
            Some(value) => self.put(&key, value),
            None => self.remove(&key),
        }
    }

    fn put(&mut self, key: &Key, value: Value) {
        let metadata = own(&value.metadata);
        let topics = entry(&mut self.by_group, &key.group);
        entry(topics, &key.topic).insert(key.partition, Value { metadata, ..value });
    }

    fn remove(&mut self, key: &Key) {
        let Some(topics) = self.by_group.get_mut(&key.group) else { return };
        let Some(partitions) = topics.get_mut(&key.topic) else { return };
        partitions.remove(&key.partition);
        if partitions.is_empty() {
            topics.remove(&key.topic);
        }
        if topics.is_empty() {
            self.by_group.remove(&key.group);
        }
    }
}

fn entry<'a, T: Default>(map: &'a mut BTreeMap<Str, T>, name: &Str) -> &'a mut T {
    let kept = map.get_key_value(name).map(|(kept, _)| kept.clone());
    map.entry(kept.unwrap_or_else(|| own(name))).or_default()
}
