//! TxnOffsetCommit (28)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        transactional_id: Str                     [0..],
        group_id: Str                             [0..],
        producer_id: i64                          [0..],
        producer_epoch: i16                       [0..],
        generation_id_or_member_epoch: i32        [3..] = -1,
        member_id: Str                            [3..],
        group_instance_id: Option<Str>            [3..],
        topics: Vec<TxnOffsetCommitRequestTopic>  [0..],
    }
    TxnOffsetCommitRequestTopic {
        name: Str                                         [0..=5],
        topic_id: Uuid                                    [6..],
        partitions: Vec<TxnOffsetCommitRequestPartition>  [0..],
    }
    TxnOffsetCommitRequestPartition {
        partition_index: i32             [0..],
        committed_offset: i64            [0..],
        committed_leader_epoch: i32      [2..] = -1,
        committed_metadata: Option<Str>  [0..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32                      [0..],
        topics: Vec<TxnOffsetCommitResponseTopic>  [0..],
    }
    TxnOffsetCommitResponseTopic {
        name: Str                                          [0..=5],
        topic_id: Uuid                                     [6..],
        partitions: Vec<TxnOffsetCommitResponsePartition>  [0..],
    }
    TxnOffsetCommitResponsePartition {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
