//! AlterShareGroupOffsets (91)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                                    [0..],
        topics: Vec<AlterShareGroupOffsetsRequestTopic>  [0..],
    }
    AlterShareGroupOffsetsRequestTopic {
        topic_name: Str                                          [0..],
        partitions: Vec<AlterShareGroupOffsetsRequestPartition>  [0..],
    }
    AlterShareGroupOffsetsRequestPartition {
        partition_index: i32  [0..],
        start_offset: i64     [0..],
    }

    Response {
        throttle_time_ms: i32                                [0..],
        error_code: ErrorCode                                [0..],
        error_message: Option<Str>                           [0..],
        responses: Vec<AlterShareGroupOffsetsResponseTopic>  [0..],
    }
    AlterShareGroupOffsetsResponseTopic {
        topic_name: Str                                           [0..],
        topic_id: Uuid                                            [0..],
        partitions: Vec<AlterShareGroupOffsetsResponsePartition>  [0..],
    }
    AlterShareGroupOffsetsResponsePartition {
        partition_index: i32        [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
