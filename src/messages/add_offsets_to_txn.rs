//! AddOffsetsToTxn (25)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        transactional_id: Str  [0..],
        producer_id: i64       [0..],
        producer_epoch: i16    [0..],
        group_id: Str          [0..],
    }

    Response {
        throttle_time_ms: i32  [0..],
        error_code: ErrorCode  [0..],
    }
}
