//! ListOffsets (2)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        replica_id: i32                [0..],
        isolation_level: i8            [2..],
        topics: Vec<ListOffsetsTopic>  [0..],
        timeout_ms: i32                [10..],
    }
    ListOffsetsTopic {
        name: Str                              [0..],
        partitions: Vec<ListOffsetsPartition>  [0..],
    }
    ListOffsetsPartition {
        partition_index: i32       [0..],
        current_leader_epoch: i32  [4..] = -1,
        timestamp: i64             [0..],
        max_num_offsets: i32       [0..=0] = 1,
    }

    Response {
        throttle_time_ms: i32                  [2..],
        topics: Vec<ListOffsetsTopicResponse>  [0..],
    }
    ListOffsetsTopicResponse {
        name: Str                                      [0..],
        partitions: Vec<ListOffsetsPartitionResponse>  [0..],
    }
    ListOffsetsPartitionResponse {
        partition_index: i32         [0..],
        error_code: ErrorCode        [0..],
        old_style_offsets: Vec<i64>  [0..=0],
        timestamp: i64               [1..] = -1,
        offset: i64                  [1..] = -1,
        leader_epoch: i32            [4..] = -1,
    }
}
