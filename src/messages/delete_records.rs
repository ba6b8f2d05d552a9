//! DeleteRecords (21)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<DeleteRecordsTopic>  [0..],
        timeout_ms: i32                  [0..],
    }
    DeleteRecordsTopic {
        name: Str                                [0..],
        partitions: Vec<DeleteRecordsPartition>  [0..],
    }
    DeleteRecordsPartition {
        partition_index: i32  [0..],
        offset: i64           [0..],
    }

    Response {
        throttle_time_ms: i32                  [0..],
        topics: Vec<DeleteRecordsTopicResult>  [0..],
    }
    DeleteRecordsTopicResult {
        name: Str                                      [0..],
        partitions: Vec<DeleteRecordsPartitionResult>  [0..],
    }
    DeleteRecordsPartitionResult {
        partition_index: i32   [0..],
        low_watermark: i64     [0..],
        error_code: ErrorCode  [0..],
    }
}
