//! SaslAuthenticate (36)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        auth_bytes: Bytes  [0..],
    }

    Response {
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
        auth_bytes: Bytes           [0..],
        session_lifetime_ms: i64    [1..],
    }
}
