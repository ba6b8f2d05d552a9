//! The topics of a run: they grow, end, and come back under their name with another id.

use kelp::coordinator::shard::DeletedTopic;
use kelp::protocol::wire::{Str, Uuid};
use std::collections::BTreeMap;

pub(crate) type Partition = (Str, i32);

#[derive(Default)]
pub(crate) struct Topics {
    by_name: BTreeMap<Str, Topic>,
    created: u8,
}

struct Topic {
    id: Uuid,
    partitions: i32,
}

impl Topics {
    pub(crate) fn create(&mut self, name: &Str, partitions: i32) {
        self.created += 1;
        let id = Uuid([self.created; 16]);
        self.by_name.entry(name.clone()).or_insert(Topic { id, partitions });
    }

    pub(crate) fn grow(&mut self, name: &Str) -> bool {
        self.by_name.get_mut(name).map(|topic| topic.partitions += 1).is_some()
    }

    pub(crate) fn delete(&mut self, name: &Str) -> Option<DeletedTopic> {
        let Topic { id, .. } = self.by_name.remove(name)?;
        Some(DeletedTopic { name: name.clone(), id })
    }

    pub(crate) fn id(&self, name: &Str) -> Option<Uuid> {
        self.by_name.get(name).map(|topic| topic.id)
    }

    pub(crate) fn has(&self, (name, index): &Partition) -> bool {
        self.by_name.get(name).is_some_and(|topic| *index < topic.partitions)
    }

    pub(crate) fn partitions(&self) -> impl Iterator<Item = Partition> + '_ {
        let of = |(name, topic): (&Str, &Topic)| {
            (0..topic.partitions)
                .map({
                    let name = name.clone();
                    move |index| (name.clone(), index)
                })
                .collect::<Vec<_>>()
        };
        self.by_name.iter().flat_map(of)
    }
}
