//! SaslHandshake (17)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        mechanism: Str  [0..],
    }

    Response {
        error_code: ErrorCode  [0..],
        mechanisms: Vec<Str>   [0..],
    }
}
