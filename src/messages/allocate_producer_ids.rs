//! AllocateProducerIds (67)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32     [0..],
        broker_epoch: i64  [0..] = -1,
    }

    Response {
        throttle_time_ms: i32   [0..],
        error_code: ErrorCode   [0..],
        producer_id_start: i64  [0..],
        producer_id_len: i32    [0..],
    }
}
