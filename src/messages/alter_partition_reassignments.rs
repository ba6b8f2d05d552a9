//! AlterPartitionReassignments (45)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        timeout_ms: i32                        [0..] = 60000,
        allow_replication_factor_change: bool  [1..] = true,
        topics: Vec<ReassignableTopic>         [0..],
    }
    ReassignableTopic {
        name: Str                               [0..],
        partitions: Vec<ReassignablePartition>  [0..],
    }
    ReassignablePartition {
        partition_index: i32        [0..],
        replicas: Option<Vec<i32>>  [0..],
    }

    Response {
        throttle_time_ms: i32                      [0..],
        allow_replication_factor_change: bool      [1..] = true,
        error_code: ErrorCode                      [0..],
        error_message: Option<Str>                 [0..] = Some(Str::new()),
        responses: Vec<ReassignableTopicResponse>  [0..],
    }
    ReassignableTopicResponse {
        name: Str                                       [0..],
        partitions: Vec<ReassignablePartitionResponse>  [0..],
    }
    ReassignablePartitionResponse {
        partition_index: i32        [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
