//! DescribeShareGroupOffsets (90)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup>  [0..],
    }
    DescribeShareGroupOffsetsRequestGroup {
        group_id: Str                                               [0..],
        topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>  [0..] = Some(Vec::new()),
    }
    DescribeShareGroupOffsetsRequestTopic {
        topic_name: Str       [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                                [0..],
        groups: Vec<DescribeShareGroupOffsetsResponseGroup>  [0..],
    }
    DescribeShareGroupOffsetsResponseGroup {
        group_id: Str                                        [0..],
        topics: Vec<DescribeShareGroupOffsetsResponseTopic>  [0..],
        error_code: ErrorCode                                [0..],
        error_message: Option<Str>                           [0..],
    }
    DescribeShareGroupOffsetsResponseTopic {
        topic_name: Str                                              [0..],
        topic_id: Uuid                                               [0..],
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition>  [0..],
    }
    DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32        [0..],
        start_offset: i64           [0..],
        leader_epoch: i32           [0..],
        lag: i64                    [1..] = -1,
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
