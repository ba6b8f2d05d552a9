//! DescribeLogDirs (35)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Option<Vec<DescribableLogDirTopic>>  [0..] = Some(Vec::new()),
    }
    DescribableLogDirTopic {
        topic: Str            [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                [0..],
        error_code: ErrorCode                [3..],
        results: Vec<DescribeLogDirsResult>  [0..],
    }
    DescribeLogDirsResult {
        error_code: ErrorCode              [0..],
        log_dir: Str                       [0..],
        topics: Vec<DescribeLogDirsTopic>  [0..],
        total_bytes: i64                   [4..] = -1,
        usable_bytes: i64                  [4..] = -1,
        is_cordoned: bool                  [5..],
    }
    DescribeLogDirsTopic {
        name: Str                                  [0..],
        partitions: Vec<DescribeLogDirsPartition>  [0..],
    }
    DescribeLogDirsPartition {
        partition_index: i32  [0..],
        partition_size: i64   [0..],
        offset_lag: i64       [0..],
        is_future_key: bool   [0..],
    }
}
