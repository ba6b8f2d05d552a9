//! GetTelemetrySubscriptions (71)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        client_instance_id: Uuid  [0..],
    }

    Response {
        throttle_time_ms: i32                [0..],
        error_code: ErrorCode                [0..],
        client_instance_id: Uuid             [0..],
        subscription_id: i32                 [0..],
        accepted_compression_types: Vec<i8>  [0..],
        push_interval_ms: i32                [0..],
        telemetry_max_bytes: i32             [0..],
        delta_temporality: bool              [0..],
        requested_metrics: Vec<Str>          [0..],
    }
}
