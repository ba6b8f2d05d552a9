//! DeleteShareGroupState (86)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                 [0..],
        topics: Vec<DeleteStateData>  [0..],
    }
    DeleteStateData {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition: i32  [0..],
    }

    Response {
        results: Vec<DeleteStateResult>  [0..],
    }
    DeleteStateResult {
        topic_id: Uuid                    [0..],
        partitions: Vec<PartitionResult>  [0..],
    }
    PartitionResult {
        partition: i32              [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
