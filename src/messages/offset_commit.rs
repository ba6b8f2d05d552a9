//! OffsetCommit (8)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                          [0..],
        generation_id_or_member_epoch: i32     [1..] = -1,
        member_id: Str                         [1..],
        group_instance_id: Option<Str>         [7..],
        retention_time_ms: i64                 [2..=4] = -1,
        topics: Vec<OffsetCommitRequestTopic>  [0..],
    }
    OffsetCommitRequestTopic {
        name: Str                                      [0..=9],
        topic_id: Uuid                                 [10..],
        partitions: Vec<OffsetCommitRequestPartition>  [0..],
    }
    OffsetCommitRequestPartition {
        partition_index: i32             [0..],
        committed_offset: i64            [0..],
        commit_timestamp: i64            [1..=1] = -1,
        committed_leader_epoch: i32      [6..] = -1,
        committed_metadata: Option<Str>  [0..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32                   [3..],
        topics: Vec<OffsetCommitResponseTopic>  [0..],
    }
    OffsetCommitResponseTopic {
        name: Str                                       [0..=9],
        topic_id: Uuid                                  [10..],
        partitions: Vec<OffsetCommitResponsePartition>  [0..],
    }
    OffsetCommitResponsePartition {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
