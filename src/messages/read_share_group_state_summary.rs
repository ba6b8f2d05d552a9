//! ReadShareGroupStateSummary (87)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                      [0..],
        topics: Vec<ReadStateSummaryData>  [0..],
    }
    ReadStateSummaryData {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition: i32     [0..],
        leader_epoch: i32  [0..],
    }

    Response {
        results: Vec<ReadStateSummaryResult>  [0..],
    }
    ReadStateSummaryResult {
        topic_id: Uuid                    [0..],
        partitions: Vec<PartitionResult>  [0..],
    }
    PartitionResult {
        partition: i32                [0..],
        error_code: ErrorCode         [0..],
        error_message: Option<Str>    [0..],
        state_epoch: i32              [0..],
        leader_epoch: i32             [0..],
        start_offset: i64             [0..],
        delivery_complete_count: i32  [1..] = -1,
    }
}
