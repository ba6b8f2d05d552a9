//! OffsetCommit: a member, or somebody without a group, says how far it has read.
//!
//! Version notes: version 1 says when the offset was committed, and versions 2 to 4 how long it is
//! to be kept; the others leave both to the broker. Kafka 4 has dropped 0 and 1; they mean what
//! they meant in 3.9, but that version 0 is not kept in ZooKeeper.

use super::Offsets;
use crate::coordinator::groups::At;
use crate::coordinator::records::{NO_EXPIRY, Record};
use crate::coordinator::shard::{Client, Response, Shard};
use crate::coordinator::{Millis, Now, Outcome, Ticket};
use crate::messages::offset_commit::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic, Request, Response as Answer,
};
use crate::messages::records::offset_commit::{Key, Value};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;

/// In a request, the broker decides.
const DEFAULT_RETENTION_MS: i64 = -1;
const DEFAULT_TIMESTAMP: i64 = -1;

impl Offsets {
    /// Takes offsets, if the group lets the member commit now.
    pub(in super::super) fn commit(
        &self,
        groups: At<'_>,
        ticket: Ticket,
        client: &Client,
        request: Request,
    ) -> Outcome<Shard> {
        let heard = match groups.may_commit(client.version, &request) {
            Ok(heard) => heard,
            Err(error) => return answer(ticket, request, |_| error),
        };
        let max = groups.config.offset_metadata_max_bytes;
        let records = records(groups.now, &request, max);
        let outcome = answer(ticket, request, |partition| check(partition, max));
        Outcome { records, effects: heard.into_iter().map(Into::into).collect(), ..outcome }
    }
}

/// What a partition's offset is refused for, though the group would take it.
fn check(partition: &OffsetCommitRequestPartition, max: usize) -> ErrorCode {
    let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
    // Kafka counts what Java calls characters.
    match metadata.encode_utf16().count() > max {
        true => ErrorCode::OffsetMetadataTooLarge,
        false => ErrorCode::None,
    }
}

fn records(now: Now, request: &Request, max: usize) -> Vec<Record> {
    let expire_timestamp = match request.retention_time_ms {
        DEFAULT_RETENTION_MS => NO_EXPIRY,
        retention_ms => now.wall.saturating_add(retention_ms),
    };
    let count = request.topics.iter().map(|topic| topic.partitions.len()).sum();
    let mut records = Vec::with_capacity(count);
    for topic in &request.topics {
        let taken = topic.partitions.iter().filter(|p| check(p, max) == ErrorCode::None);
        records.extend(taken.map(|partition| Record::OffsetCommit {
            key: Key {
                group: request.group_id.clone(),
                topic: topic.name.clone(),
                partition: partition.partition_index,
            },
            value: Some(value(now, topic, partition, expire_timestamp)),
        }));
    }
    records
}

fn value(
    now: Now,
    topic: &OffsetCommitRequestTopic,
    partition: &OffsetCommitRequestPartition,
    expire_timestamp: Millis,
) -> Value {
    // Such a record is of version 1, which has neither: a replay would not know them.
    let (leader_epoch, topic_id) = match expire_timestamp {
        NO_EXPIRY => (partition.committed_leader_epoch, topic.topic_id),
        _ => (-1, Uuid::ZERO),
    };
    Value {
        offset: partition.committed_offset,
        leader_epoch,
        metadata: partition.committed_metadata.clone().unwrap_or_default(),
        commit_timestamp: match partition.commit_timestamp {
            DEFAULT_TIMESTAMP => now.wall,
            timestamp => timestamp,
        },
        expire_timestamp,
        topic_id,
    }
}

fn answer(
    ticket: Ticket,
    request: Request,
    result: impl Fn(&OffsetCommitRequestPartition) -> ErrorCode,
) -> Outcome<Shard> {
    let topics = request.topics.into_iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: result(partition),
            })
            .collect(),
    });
    let response = Answer { topics: topics.collect(), ..Default::default() };
    Outcome::answer(ticket, Response::OffsetCommit(response))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::coordinator::Machine;
    use crate::protocol::wire::Str;
    use ErrorCode::{
        FencedInstanceId, GroupIdNotFound, IllegalGeneration, None as Taken,
        OffsetMetadataTooLarge, UnknownMemberId,
    };
    use bytes::Bytes;

    fn by(generation: i32, member: &'static str, instance: Option<&'static str>) -> Request {
        Request {
            generation_id_or_member_epoch: generation,
            member_id: member.into(),
            group_instance_id: instance.map(Into::into),
            ..commit()
        }
    }

    #[test]
    fn a_member_of_a_group_that_is_not_there_hears_so_as_its_version_allows() {
        let mut shard = shard();
        for (version, error) in [(8, IllegalGeneration), (9, GroupIdNotFound)] {
            let (records, errors) = take_version(&mut shard, version, NOW, by(10, "m", None));
            assert_eq!((records, errors), (vec![], vec![error]));
        }
        assert!(shard.groups.get("foo").is_none());
    }

    #[test]
    fn who_is_no_member_makes_a_simple_group() {
        for (member, instance) in [("", None), ("m", None), ("m", Some("i"))] {
            let mut shard = shard();
            let (records, errors) = take(&mut shard, NOW, by(-1, member, instance));
            assert_eq!((records.len(), errors), (1, vec![Taken]));
            let group = shard.groups.get("foo").unwrap();
            assert_eq!((group.is_empty(), group.protocol_type()), (true, None));
            assert_eq!(fetch(&mut shard, "bar", &[0]), [100]);
        }
    }

    /// Kafka's order of checks: the instance, the member, the generation.
    #[test]
    fn a_group_with_members_takes_commits_of_its_members_in_its_generation() {
        let cases = [
            (3, "m", None, Taken),
            (3, "s", Some("i"), Taken),
            (3, "x", None, UnknownMemberId),
            (10, "x", None, UnknownMemberId),
            (2, "m", None, IllegalGeneration),
            (10, "m", None, IllegalGeneration),
            (-1, "m", None, IllegalGeneration),
            (3, "m", Some("unknown"), UnknownMemberId),
            (3, "m", Some("i"), FencedInstanceId),
            (2, "x", Some("i"), FencedInstanceId),
            (-1, "", Some("i"), FencedInstanceId),
            (-1, "", None, UnknownMemberId),
        ];
        for (generation, member, instance, error) in cases {
            let mut shard = with([stable("consumer")]);
            let (records, errors) = take(&mut shard, NOW, by(generation, member, instance));
            let who = (generation, member, instance);
            assert_eq!(
                (records.len(), errors),
                (usize::from(error == Taken), vec![error]),
                "{who:?}"
            );
        }
    }

    #[test]
    fn a_group_whose_members_have_gone_takes_commits_without_a_generation() {
        let cases = [
            (-1, "", Taken),
            (-1, "m", Taken),
            (3, "m", UnknownMemberId),
            (3, "", UnknownMemberId),
        ];
        for (generation, member, error) in cases {
            let mut shard = with([empty(NOW.wall)]);
            let (_, errors) = take(&mut shard, NOW, by(generation, member, None));
            assert_eq!(errors, [error], "{generation} {member:?}");
        }
    }

    #[test]
    fn a_commit_begins_the_members_session_anew() {
        let mut shard = with([stable("consumer")]);
        let later = Now { monotonic: NOW.monotonic + 4_000, ..NOW };
        for now in [NOW, later] {
            take(&mut shard, now, by(3, "m", None));
            assert_eq!(shard.deadline(), Some(now.monotonic + Millis::from(SESSION_MS)));
        }
        // A commit that is refused is no sign of life.
        let latest = Now { monotonic: later.monotonic + 4_000, ..NOW };
        take(&mut shard, latest, by(2, "m", None));
        assert_eq!(shard.deadline(), Some(later.monotonic + Millis::from(SESSION_MS)));
    }

    #[test]
    fn metadata_has_a_limit_in_utf_16_units() {
        let texts = ["e".repeat(4096), "é".repeat(4096), "😀".repeat(2048)];
        let longer = texts.clone().map(|text| text + "e");
        for (texts, error) in [(texts, Taken), (longer, OffsetMetadataTooLarge)] {
            for text in texts {
                let partition =
                    |partition_index, committed_metadata| OffsetCommitRequestPartition {
                        partition_index,
                        committed_offset: 100,
                        committed_metadata,
                        ..Default::default()
                    };
                let partitions =
                    vec![partition(0, Some(text.into())), partition(1, None), partition(2, None)];
                let mut shard = shard();
                let (records, errors) = take(&mut shard, NOW, commit_of("bar", BAR, partitions));
                // The others are taken all the same.
                assert_eq!(errors, [error, Taken, Taken]);
                assert_eq!(records.len(), if error == Taken { 3 } else { 2 });
            }
        }
    }

    #[test]
    fn what_was_said_is_kept() {
        let partition = OffsetCommitRequestPartition {
            partition_index: 4,
            committed_offset: 100,
            commit_timestamp: -1,
            committed_leader_epoch: 9,
            committed_metadata: Some("note".into()),
        };
        let without = OffsetCommitRequestPartition {
            commit_timestamp: 77,
            committed_leader_epoch: -1,
            committed_metadata: None,
            ..partition.clone()
        };
        let mut shard = shard();
        take(&mut shard, NOW, commit_of("bar", BAR, vec![partition]));
        let expected = Value {
            offset: 100,
            leader_epoch: 9,
            metadata: "note".into(),
            commit_timestamp: NOW.wall,
            expire_timestamp: NO_EXPIRY,
            topic_id: BAR,
        };
        assert_eq!(shard.offsets.get("foo", "bar", 4), Some(&expected));

        // Version 1 says when.
        take_version(&mut shard, 1, NOW, commit_of("bar", BAR, vec![without]));
        let expected =
            Value { leader_epoch: -1, metadata: "".into(), commit_timestamp: 77, ..expected };
        assert_eq!(shard.offsets.get("foo", "bar", 4), Some(&expected));
    }

    #[test]
    fn of_one_partition_the_last_offset_counts() {
        let partitions = [100, 50].map(|committed_offset| OffsetCommitRequestPartition {
            committed_offset,
            ..Default::default()
        });
        let mut shard = shard();
        let (_, errors) = take(&mut shard, NOW, commit_of("bar", BAR, partitions.to_vec()));
        assert_eq!(errors, [Taken, Taken]);
        assert_eq!(fetch(&mut shard, "bar", &[0]), [50]);
    }

    #[test]
    fn a_retention_of_its_own_becomes_a_time_of_expiry() {
        let with_retention = |retention_time_ms| Request { retention_time_ms, ..commit() };
        for (retention_ms, expiry) in
            [(1234, NOW.wall + 1234), (0, NOW.wall), (i64::MAX, i64::MAX), (-1, NO_EXPIRY)]
        {
            let mut shard = shard();
            take_version(&mut shard, 4, NOW, with_retention(retention_ms));
            let value = shard.offsets.get("foo", "bar", 0).unwrap();
            assert_eq!((value.offset, value.expire_timestamp), (100, expiry));
        }
    }

    #[test]
    fn a_replay_gives_what_was_applied() {
        let mut shard = shard();
        let mut written = Vec::new();
        for retention_time_ms in [-1, 1234] {
            let mut request = Request { retention_time_ms, ..commit() };
            request.topics[0].partitions[0].committed_leader_epoch = 9;
            written.extend(take(&mut shard, NOW, request).0);
            let read = written.iter().map(|record| {
                let (key, value) = record.encode();
                Record::decode(Some(&key), value.as_ref()).unwrap()
            });
            assert_eq!(with(read).offsets, shard.offsets);
        }
    }

    #[test]
    fn what_is_kept_does_not_hold_on_to_the_request() {
        let frame = Bytes::from_static(b"foobarnote");
        let text = |range| Str::try_from(frame.slice(range)).unwrap();
        let mut request = commit();
        request.group_id = text(0..3);
        request.topics[0].name = text(3..6);
        request.topics[0].partitions[0].committed_metadata = Some(text(6..10));
        let mut shard = shard();
        take(&mut shard, NOW, request);

        let (topic, _, value) = shard.offsets.of("foo").next().unwrap();
        let group = shard.groups.get("foo").unwrap().id();
        for (kept, is) in [(topic, "bar"), (&value.metadata, "note"), (group, "foo")] {
            assert_eq!(kept, is);
            assert!(!frame.as_ptr_range().contains(&kept.as_ptr()), "{is}");
        }
    }
}
