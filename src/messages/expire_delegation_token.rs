//! ExpireDelegationToken (40)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        hmac: Bytes                 [0..],
        expiry_time_period_ms: i64  [0..],
    }

    Response {
        error_code: ErrorCode     [0..],
        expiry_timestamp_ms: i64  [0..],
        throttle_time_ms: i32     [0..],
    }
}
