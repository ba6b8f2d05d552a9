//! What ends an offset before it is old: OffsetDelete, the end of its group, the end of its topic.

use super::{Offsets, Topics};
use crate::coordinator::groups::Group;
use crate::coordinator::records::Record;
use crate::coordinator::shard::DeletedTopic;
use crate::messages::offset_delete::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic, Request, Response,
};
use crate::messages::records::offset_commit::Key;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use std::collections::BTreeSet;

impl Offsets {
    /// Deletes some offsets of a group, but not those of topics it is subscribed to. That there is
    /// none is no error.
    pub(in super::super) fn delete(
        &self,
        group: &Group,
        request: Request,
        records: &mut Vec<Record>,
    ) -> Response {
        let mut response = Response::default();
        for topic in request.topics {
            let is_subscribed = group.is_subscribed_to(&topic.name);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in topic.partitions {
                let partition_index = partition.partition_index;
                let error_code = match is_subscribed {
                    true => ErrorCode::GroupSubscribedToTopic,
                    false => ErrorCode::None,
                };
                partitions.push(OffsetDeleteResponsePartition { partition_index, error_code });
                if !is_subscribed && self.get(group.id(), &topic.name, partition_index).is_some() {
                    records.push(tombstone(group.id(), &topic.name, partition_index));
                }
            }
            response.topics.push(OffsetDeleteResponseTopic { name: topic.name, partitions });
        }
        response
    }

    /// Deletes all offsets of a group.
    pub(in super::super) fn delete_all(&self, group: &Str, records: &mut Vec<Record>) {
        records.extend(self.of(group).map(|(topic, index, _)| tombstone(group, topic, index)));
    }

    /// Deletes the offsets of topics that are no more, one after the other. One with another id is
    /// of a new topic that has the name of an old one.
    pub(in super::super) fn of_deleted(
        &self,
        deleted: &BTreeSet<DeletedTopic>,
    ) -> impl Iterator<Item = Record> {
        let of_topic = |group, topics: &Topics, deleted: &DeletedTopic| {
            let values = topics.get(&deleted.name).into_iter().flatten();
            let gone = values.filter(|(_, value)| value.topic_id == deleted.id);
            gone.map(|(index, _)| tombstone(group, &deleted.name, *index)).collect::<Vec<_>>()
        };
        self.by_group.iter().flat_map(move |(group, topics)| {
            deleted.iter().flat_map(move |deleted| of_topic(group, topics, deleted))
        })
    }
}

pub(super) fn tombstone(group: &Str, topic: &Str, partition: i32) -> Record {
    let key = Key { group: group.clone(), topic: topic.clone(), partition };
    Record::OffsetCommit { key, value: None }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::coordinator::shard::{self, Shard};
    use crate::coordinator::{Machine, groups};
    use crate::messages::offset_commit::OffsetCommitRequestPartition;
    use crate::messages::offset_delete::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
    use crate::protocol::wire::Uuid;
    use ErrorCode::{GroupIdNotFound, GroupSubscribedToTopic, NonEmptyGroup, None as Deleted};

    /// Deletes partition 0, and gives the group's and the partition's error.
    fn delete(shard: &mut Shard, topic: &'static str) -> (Vec<Record>, ErrorCode, Vec<ErrorCode>) {
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
        let topics = vec![OffsetDeleteRequestTopic { name: topic.into(), partitions }];
        let request = Request { group_id: "foo".into(), topics };
        let (records, response) = ask(shard, NOW, shard::Request::OffsetDelete(request));
        let shard::Response::OffsetDelete(response) = response else { panic!("{response:?}") };
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        let errors = partitions.map(|partition| partition.error_code).collect();
        (records, response.error_code, errors)
    }

    /// The group, with offset 0 of partition 0 of both topics.
    fn with_offsets(group: impl IntoIterator<Item = Record>) -> Shard {
        let mut shard = shard();
        for topic in ["bar", "other"] {
            take(&mut shard, NOW, commit_of(topic, BAR, vec![Default::default()]));
        }
        group.into_iter().for_each(|record| shard.apply(record));
        shard
    }

    #[test]
    fn what_consumers_read_is_not_deleted() {
        let mut shard = with_offsets([stable("consumer")]);
        assert_eq!(delete(&mut shard, "bar"), (vec![], Deleted, vec![GroupSubscribedToTopic]));
        let gone = tombstone(&"foo".into(), &"other".into(), 0);
        assert_eq!(delete(&mut shard, "other"), (vec![gone], Deleted, vec![Deleted]));
        // There is none any more: that is no error.
        assert_eq!(delete(&mut shard, "other"), (vec![], Deleted, vec![Deleted]));
        assert_eq!(fetch(&mut shard, "bar", &[0]), [0]);
        assert_eq!(fetch(&mut shard, "other", &[0]), [-1]);
    }

    #[test]
    fn nothing_is_deleted_while_nobody_knows_what_members_read() {
        let mut shard = with_offsets([stable("connect")]);
        assert_eq!(delete(&mut shard, "other"), (vec![], NonEmptyGroup, vec![]));
    }

    #[test]
    fn a_group_without_members_lets_all_go() {
        for group in [None, Some(empty(NOW.wall))] {
            let mut shard = with_offsets(group);
            for topic in ["bar", "other"] {
                let (records, error, partitions) = delete(&mut shard, topic);
                assert_eq!((records.len(), error, partitions), (1, Deleted, vec![Deleted]));
            }
        }
        assert_eq!(delete(&mut shard(), "bar"), (vec![], GroupIdNotFound, vec![]));
    }

    #[test]
    fn a_group_is_deleted_with_all_its_offsets() {
        let mut shard = with_offsets([empty(NOW.wall)]);
        let (records, _) = ask(&mut shard, NOW, shard::Request::DeleteGroup("foo".into()));
        let [foo, bar, other] = ["foo", "bar", "other"].map(Str::from);
        let gone = [tombstone(&foo, &bar, 0), tombstone(&foo, &other, 0), groups::tombstone(&foo)];
        assert_eq!(records, gone);
        assert_eq!((shard.offsets, shard.groups.get("foo")), (Offsets::default(), None));
    }

    #[test]
    fn offsets_go_with_their_topic_but_not_with_another_of_its_name() {
        let mut shard = shard();
        let partition = |partition_index| OffsetCommitRequestPartition {
            partition_index,
            ..Default::default()
        };
        take(&mut shard, NOW, commit_of("bar", BAR, vec![partition(0), partition(1)]));
        take(&mut shard, NOW, commit_of("bar", Uuid([8; 16]), vec![partition(2)]));
        take(&mut shard, NOW, commit_of("bar", Uuid::ZERO, vec![partition(3)]));
        take(&mut shard, NOW, commit_of("other", BAR, vec![partition(0)]));
        let deleted = |id| DeletedTopic { name: "bar".into(), id };
        let request = shard::Request::TopicsDeleted(vec![deleted(BAR), deleted(Uuid::ZERO)]);
        let (records, _) = ask(&mut shard, NOW, request);
        let gone = [3, 0, 1].map(|index| tombstone(&"foo".into(), &"bar".into(), index));
        assert_eq!(records, gone);
        assert_eq!(fetch(&mut shard, "bar", &[0, 1, 2, 3]), [-1, -1, 0, -1]);
        assert_eq!(fetch(&mut shard, "other", &[0]), [0]);
        let left: Vec<_> = shard.offsets.topics().map(|(name, id)| (&**name, id)).collect();
        assert_eq!(left, [("bar", Uuid([8; 16])), ("other", BAR)]);
        assert_eq!(shard.deadline(), None, "it is done");
    }

    #[test]
    fn many_offsets_of_a_deleted_topic_go_a_piece_at_a_time() {
        let mut shard = shard();
        let partition = |partition_index| OffsetCommitRequestPartition {
            partition_index,
            ..Default::default()
        };
        take(&mut shard, NOW, commit_of("bar", BAR, (0..1_700).map(partition).collect()));
        take(&mut shard, NOW, commit_of("other", BAR, (0..800).map(partition).collect()));
        let deleted = |name: &'static str| {
            shard::Request::TopicsDeleted(vec![DeletedTopic { name: name.into(), id: BAR }])
        };
        assert_eq!(ask(&mut shard, NOW, deleted("bar")).0.len(), 1_000);
        // What was begun is not forgotten for what comes.
        assert_eq!(ask(&mut shard, NOW, deleted("other")).0.len(), 1_000);
        assert_eq!(shard.deadline(), Some(NOW.monotonic));
        let outcome = shard.expire(NOW);
        assert_eq!(outcome.records.len(), 500);
        outcome.records.into_iter().for_each(|record| shard.apply(record));
        outcome.effects.into_iter().for_each(|effect| shard.note(effect));
        assert_eq!((shard.deadline(), shard.offsets), (None, Offsets::default()));
    }
}
