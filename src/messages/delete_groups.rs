//! DeleteGroups (42)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        groups_names: Vec<Str>  [0..],
    }

    Response {
        throttle_time_ms: i32               [0..],
        results: Vec<DeletableGroupResult>  [0..],
    }
    DeletableGroupResult {
        group_id: Str               [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [3..],
    }
}
