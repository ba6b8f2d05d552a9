//! CreatePartitions (37)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<CreatePartitionsTopic>  [0..],
        timeout_ms: i32                     [0..],
        validate_only: bool                 [0..],
    }
    CreatePartitionsTopic {
        name: Str                                             [0..],
        count: i32                                            [0..],
        assignments: Option<Vec<CreatePartitionsAssignment>>  [0..] = Some(Vec::new()),
    }
    CreatePartitionsAssignment {
        broker_ids: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                      [0..],
        results: Vec<CreatePartitionsTopicResult>  [0..],
    }
    CreatePartitionsTopicResult {
        name: Str                   [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
