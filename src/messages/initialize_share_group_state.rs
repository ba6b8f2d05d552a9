//! InitializeShareGroupState (83)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                     [0..],
        topics: Vec<InitializeStateData>  [0..],
    }
    InitializeStateData {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition: i32     [0..],
        state_epoch: i32   [0..],
        start_offset: i64  [0..],
    }

    Response {
        results: Vec<InitializeStateResult>  [0..],
    }
    InitializeStateResult {
        topic_id: Uuid                    [0..],
        partitions: Vec<PartitionResult>  [0..],
    }
    PartitionResult {
        partition: i32              [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
