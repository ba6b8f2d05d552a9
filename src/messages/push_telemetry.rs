//! PushTelemetry (72)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        client_instance_id: Uuid  [0..],
        subscription_id: i32      [0..],
        terminating: bool         [0..],
        compression_type: i8      [0..],
        metrics: Bytes            [0..],
    }

    Response {
        throttle_time_ms: i32  [0..],
        error_code: ErrorCode  [0..],
    }
}
