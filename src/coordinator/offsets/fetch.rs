//! OffsetFetch: what a group has committed.
//!
//! Whether the group exists does not matter: what was not committed is -1, and no error.

use super::{Offsets, Topics};
use crate::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use crate::messages::records::offset_commit::Value;
use crate::protocol::wire::{Str, Uuid};
use std::collections::BTreeMap;

const NO_OFFSET: i64 = -1;

impl Offsets {
    /// No topics are all. Those have no ids in the answer, as their offsets may have different ones.
    ///
    /// No offset is pending as long as there are no transactions, so all are stable (KIP-447).
    pub(in super::super) fn fetch(
        &self,
        request: OffsetFetchRequestGroup,
    ) -> OffsetFetchResponseGroup {
        let group = self.by_group.get(&request.group_id);
        let topics = match request.topics {
            Some(topics) => topics.into_iter().map(|topic| some(group, topic)).collect(),
            None => group.into_iter().flatten().map(all).collect(),
        };
        OffsetFetchResponseGroup { group_id: request.group_id, topics, ..Default::default() }
    }
}

fn some(group: Option<&Topics>, topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics {
    let OffsetFetchRequestTopics { name, topic_id, partition_indexes } = topic;
    let values = group.and_then(|topics| topics.get(&name));
    let value = |index| values?.get(&index).filter(|value| is_same(value.topic_id, topic_id));
    let partitions = partition_indexes.into_iter().map(|index| partition(index, value(index)));
    OffsetFetchResponseTopics { partitions: partitions.collect(), name, topic_id }
}

/// A topic may have been deleted, and created anew under its name; it starts without offsets. Old
/// clients and old records don't tell ids.
fn is_same(committed: Uuid, asked: Uuid) -> bool {
    committed == asked || committed == Uuid::ZERO || asked == Uuid::ZERO
}

fn all((name, values): (&Str, &BTreeMap<i32, Value>)) -> OffsetFetchResponseTopics {
    let partitions = values.iter().map(|(index, value)| partition(*index, Some(value)));
    OffsetFetchResponseTopics {
        name: name.clone(),
        topic_id: Uuid::ZERO,
        partitions: partitions.collect(),
    }
}

fn partition(partition_index: i32, value: Option<&Value>) -> OffsetFetchResponsePartitions {
    let none = OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: NO_OFFSET,
        ..Default::default()
    };
    let Some(value) = value else { return none };
    OffsetFetchResponsePartitions {
        committed_offset: value.offset,
        committed_leader_epoch: value.leader_epoch,
        metadata: Some(value.metadata.clone()),
        ..none
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::coordinator::shard::{Request, Response, Shard};
    use crate::messages::offset_commit::OffsetCommitRequestPartition;

    fn ask_for(
        shard: &mut Shard,
        topics: Option<Vec<OffsetFetchRequestTopics>>,
    ) -> OffsetFetchResponseGroup {
        let request =
            OffsetFetchRequestGroup { group_id: "foo".into(), topics, ..Default::default() };
        let (records, response) = ask(shard, NOW, Request::OffsetFetch(request));
        assert_eq!(records, []);
        let Response::OffsetFetch(response) = response else { panic!("{response:?}") };
        response
    }

    fn bar(topic_id: Uuid, partition_indexes: Vec<i32>) -> Option<Vec<OffsetFetchRequestTopics>> {
        Some(vec![OffsetFetchRequestTopics { name: "bar".into(), topic_id, partition_indexes }])
    }

    fn none(partition_index: i32) -> OffsetFetchResponsePartitions {
        OffsetFetchResponsePartitions {
            partition_index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some("".into()),
            error_code: Default::default(),
        }
    }

    /// Offset 100 of partition 0 with all it can have.
    fn committed() -> (Shard, OffsetFetchResponsePartitions) {
        let partition = OffsetCommitRequestPartition {
            committed_offset: 100,
            committed_leader_epoch: 9,
            committed_metadata: Some("note".into()),
            ..Default::default()
        };
        let mut shard = shard();
        take(&mut shard, NOW, commit_of("bar", BAR, vec![partition]));
        let answer = OffsetFetchResponsePartitions {
            committed_offset: 100,
            committed_leader_epoch: 9,
            metadata: Some("note".into()),
            ..none(0)
        };
        (shard, answer)
    }

    #[test]
    fn a_group_that_is_not_there_has_committed_nothing() {
        let mut shard = shard();
        let response = ask_for(&mut shard, bar(BAR, vec![0, 5]));
        assert_eq!((&*response.group_id, response.error_code as i16), ("foo", 0));
        assert_eq!(response.topics[0].partitions, [none(0), none(5)]);
        assert_eq!(ask_for(&mut shard, None).topics, []);
    }

    #[test]
    fn a_partition_has_its_offset_or_none() {
        let (mut shard, answer) = committed();
        let response = ask_for(&mut shard, bar(BAR, vec![0, 1]));
        assert_eq!(response.topics[0].partitions, [answer, none(1)]);
        let other = OffsetFetchRequestTopics {
            name: "other".into(),
            partition_indexes: vec![0],
            ..Default::default()
        };
        assert_eq!(ask_for(&mut shard, Some(vec![other])).topics[0].partitions, [none(0)]);
    }

    #[test]
    fn an_offset_of_a_topic_with_the_same_name_is_not_this_ones() {
        let (mut shard, answer) = committed();
        let mut ask_by_id = |id| ask_for(&mut shard, bar(id, vec![0])).topics.remove(0);
        assert_eq!(ask_by_id(Uuid([8; 16])).partitions, [none(0)]);
        // By name, as old clients do.
        assert_eq!(ask_by_id(Uuid::ZERO).partitions, vec![answer.clone()]);
        assert_eq!(
            (ask_by_id(BAR).topic_id, ask_by_id(BAR).partitions),
            (BAR, vec![answer.clone()])
        );

        // Committed before topics had ids.
        take(&mut shard, NOW, commit_of("bar", Uuid::ZERO, vec![Default::default()]));
        let response = ask_for(&mut shard, bar(Uuid([8; 16]), vec![0]));
        assert_eq!(response.topics[0].partitions[0].committed_offset, 0);
    }

    #[test]
    fn no_topics_are_all_topics() {
        let (mut shard, answer) = committed();
        for topic in ["zoo", "apple"] {
            let partition = |partition_index| OffsetCommitRequestPartition {
                partition_index,
                ..Default::default()
            };
            take(&mut shard, NOW, commit_of(topic, BAR, vec![partition(3), partition(2)]));
        }
        let topics = ask_for(&mut shard, None).topics;
        let indexes = |topic: &OffsetFetchResponseTopics| {
            topic.partitions.iter().map(|partition| partition.partition_index).collect()
        };
        let all: Vec<(&str, Vec<i32>)> = topics.iter().map(|t| (&*t.name, indexes(t))).collect();
        assert_eq!(all, [("apple", vec![2, 3]), ("bar", vec![0]), ("zoo", vec![2, 3])]);
        assert_eq!((topics[1].topic_id, &topics[1].partitions[0]), (Uuid::ZERO, &answer));
        assert_eq!(ask_for(&mut shard, Some(vec![])).topics, [], "an empty list is none");
    }
}
