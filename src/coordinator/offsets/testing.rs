//! A shard with groups, for the tests of this room.

use crate::coordinator::records::Record;
use crate::coordinator::shard::{Client, Config, Effect, Request, Response, Shard};
use crate::coordinator::{Machine, Millis, Now, Ticket};
use crate::messages::offset_commit;
use crate::messages::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use crate::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use crate::messages::records::group_metadata::{Key, MemberMetadata, Value};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;
use bytes::Bytes;

pub(super) const NOW: Now = Now { monotonic: 5_000, wall: 1_000_000 };
pub(super) const RETENTION_MS: Millis = 60_000;
pub(super) const SESSION_MS: i32 = 10_000;
pub(super) const BAR: Uuid = Uuid([7; 16]);

/// The version that says that a member wants to read the topic `bar`.
const SUBSCRIPTION: &[u8] = &[0, 0, 0, 0, 0, 1, 0, 3, b'b', b'a', b'r', 0xff, 0xff, 0xff, 0xff];

/// What a broker has without settings, but for a retention that is short.
pub(super) fn shard() -> Shard {
    Shard::new(Config {
        initial_rebalance_delay_ms: 3_000,
        session_timeout_ms: 6_000..=1_800_000,
        max_size: 1_000,
        new_member_join_timeout_ms: 300_000,
        offset_metadata_max_bytes: 4096,
        offsets_retention_ms: RETENTION_MS,
        offsets_retention_check_interval_ms: 600_000,
    })
}

/// The record of group `foo` in generation 3, with a dynamic member `m` and a static one `s` of
/// instance `i`, both of which read `bar` if they are consumers.
pub(super) fn stable(protocol_type: &'static str) -> Record {
    let member = |id: &'static str, instance: Option<&'static str>| MemberMetadata {
        member_id: id.into(),
        group_instance_id: instance.map(Into::into),
        session_timeout: SESSION_MS,
        rebalance_timeout: SESSION_MS,
        subscription: Bytes::from_static(SUBSCRIPTION),
        ..Default::default()
    };
    group(Value {
        protocol_type: protocol_type.into(),
        generation: 3,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        current_state_timestamp: NOW.wall,
        members: vec![member("m", None), member("s", Some("i"))],
    })
}

/// The record of group `foo` of consumers that have gone.
pub(super) fn empty(since: Millis) -> Record {
    group(Value {
        protocol_type: "consumer".into(),
        generation: 3,
        protocol: None,
        leader: None,
        current_state_timestamp: since,
        members: Vec::new(),
    })
}

pub(super) fn group(value: Value) -> Record {
    Record::GroupMetadata { key: Key { group: "foo".into() }, value: Some(value) }
}

pub(super) fn with(records: impl IntoIterator<Item = Record>) -> Shard {
    let mut shard = shard();
    records.into_iter().for_each(|record| shard.apply(record));
    shard
}

/// Asks, and does what was decided.
pub(super) fn ask(shard: &mut Shard, now: Now, request: Request) -> (Vec<Record>, Response) {
    let outcome = shard.handle(now, Ticket(1), request);
    outcome.records.iter().for_each(|record| shard.apply(record.clone()));
    outcome.effects.into_iter().for_each(|effect| shard.note(effect));
    let [(Ticket(1), response)] = <[_; 1]>::try_from(outcome.answers).unwrap() else {
        panic!("another was answered")
    };
    (outcome.records, response)
}

/// What nobody in particular commits to `foo`: offset 100 of `bar` 0.
pub(super) fn commit() -> offset_commit::Request {
    let partition = OffsetCommitRequestPartition { committed_offset: 100, ..Default::default() };
    commit_of("bar", BAR, vec![partition])
}

pub(super) fn commit_of(
    topic: &'static str,
    topic_id: Uuid,
    partitions: Vec<OffsetCommitRequestPartition>,
) -> offset_commit::Request {
    let name = topic.into();
    offset_commit::Request {
        group_id: "foo".into(),
        topics: vec![OffsetCommitRequestTopic { name, topic_id, partitions }],
        ..Default::default()
    }
}

/// Commits as the newest clients do, and gives the records and the error of each partition.
pub(super) fn take(
    shard: &mut Shard,
    now: Now,
    request: offset_commit::Request,
) -> (Vec<Record>, Vec<ErrorCode>) {
    take_version(shard, 10, now, request)
}

pub(super) fn take_version(
    shard: &mut Shard,
    version: i16,
    now: Now,
    request: offset_commit::Request,
) -> (Vec<Record>, Vec<ErrorCode>) {
    let client = Client { version, ..Client::default() };
    let (records, response) = ask(shard, now, Request::OffsetCommit(client, request));
    let Response::OffsetCommit(response) = response else { panic!("{response:?}") };
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    (records, partitions.map(|partition| partition.error_code).collect())
}

/// The offset of each partition of `foo` that is asked for; -1 is none.
pub(super) fn fetch(shard: &mut Shard, topic: &'static str, indexes: &[i32]) -> Vec<i64> {
    let topic = OffsetFetchRequestTopics {
        name: topic.into(),
        partition_indexes: indexes.to_vec(),
        ..Default::default()
    };
    let group_id = "foo".into();
    let request =
        OffsetFetchRequestGroup { group_id, topics: Some(vec![topic]), ..Default::default() };
    let (_, response) = ask(shard, NOW, Request::OffsetFetch(request));
    let Response::OffsetFetch(response) = response else { panic!("{response:?}") };
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| partition.committed_offset).collect()
}

/// Looks for what is old, and deletes it.
pub(super) fn clean_up(shard: &mut Shard, wall: Millis) -> Vec<Record> {
    let now = Now { wall, ..NOW };
    shard.note(Effect::CleanUp { at: now.monotonic, after: None });
    let outcome = shard.expire(now);
    outcome.records.iter().for_each(|record| shard.apply(record.clone()));
    outcome.effects.into_iter().for_each(|effect| shard.note(effect));
    outcome.records
}
