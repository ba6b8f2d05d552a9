//! UnregisterBroker (64)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32  [0..],
    }

    Response {
        throttle_time_ms: i32       [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
