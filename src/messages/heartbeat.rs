//! Heartbeat (12)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                   [0..],
        generation_id: i32              [0..],
        member_id: Str                  [0..],
        group_instance_id: Option<Str>  [3..],
    }

    Response {
        throttle_time_ms: i32  [1..],
        error_code: ErrorCode  [0..],
    }
}
