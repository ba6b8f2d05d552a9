//! What tools and consumers without a group ask.

use crate::client::asker;
use crate::topics::Topics;
use kelp::coordinator::shard::Request;
use kelp::messages::{leave_group, list_groups, offset_commit, offset_delete};
use kelp::protocol::wire::Str;
use rand::RngExt;
use rand::rngs::SmallRng;

/// Something that may be about a group, a topic and an offset.
pub(crate) fn request(
    rng: &mut SmallRng,
    topics: &Topics,
    group: Str,
    topic: Str,
    offset: i64,
) -> Request {
    match rng.random_range(0..6) {
        0 => Request::OffsetCommit(asker(4), commit(rng, topics, group, topic, offset)),
        1 => Request::OffsetCommit(asker(4), commit(rng, topics, "simple".into(), topic, offset)),
        2 => Request::OffsetDelete(delete(group, topic)),
        3 => Request::DeleteGroup(group),
        4 => Request::ListGroups(list_groups::Request::default()),
        _ => Request::LeaveGroup(asker(5), remove_instance(group)),
    }
}

fn commit(
    rng: &mut SmallRng,
    topics: &Topics,
    group_id: Str,
    name: Str,
    committed_offset: i64,
) -> offset_commit::Request {
    let partition =
        offset_commit::OffsetCommitRequestPartition { committed_offset, ..Default::default() };
    let topic = offset_commit::OffsetCommitRequestTopic {
        topic_id: topics.id(&name).unwrap_or_default(),
        name,
        partitions: vec![partition],
    };
    offset_commit::Request {
        group_id,
        topics: vec![topic],
        // Old clients say how long it is to be kept.
        retention_time_ms: if rng.random() { -1 } else { 20_000 },
        ..Default::default()
    }
}

fn delete(group_id: Str, name: Str) -> offset_delete::Request {
    let partitions = vec![offset_delete::OffsetDeleteRequestPartition { partition_index: 0 }];
    let topics = vec![offset_delete::OffsetDeleteRequestTopic { name, partitions }];
    offset_delete::Request { group_id, topics }
}

fn remove_instance(group_id: Str) -> leave_group::Request {
    let member =
        leave_group::MemberIdentity { group_instance_id: Some("i0".into()), ..Default::default() };
    leave_group::Request { group_id, members: vec![member], ..Default::default() }
}
