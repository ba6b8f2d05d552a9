//! OffsetDelete (47)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                          [0..],
        topics: Vec<OffsetDeleteRequestTopic>  [0..],
    }
    OffsetDeleteRequestTopic {
        name: Str                                      [0..],
        partitions: Vec<OffsetDeleteRequestPartition>  [0..],
    }
    OffsetDeleteRequestPartition {
        partition_index: i32  [0..],
    }

    Response {
        error_code: ErrorCode                   [0..],
        throttle_time_ms: i32                   [0..],
        topics: Vec<OffsetDeleteResponseTopic>  [0..],
    }
    OffsetDeleteResponseTopic {
        name: Str                                       [0..],
        partitions: Vec<OffsetDeleteResponsePartition>  [0..],
    }
    OffsetDeleteResponsePartition {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
