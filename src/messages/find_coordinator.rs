//! FindCoordinator (10)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        key: Str                    [0..=3],
        key_type: i8                [1..],
        coordinator_keys: Vec<Str>  [4..],
    }

    Response {
        throttle_time_ms: i32           [1..],
        error_code: ErrorCode           [0..=3],
        error_message: Option<Str>      [1..=3] = Some(Str::new()),
        node_id: i32                    [0..=3],
        host: Str                       [0..=3],
        port: i32                       [0..=3],
        coordinators: Vec<Coordinator>  [4..],
    }
    Coordinator {
        key: Str                    [4..],
        node_id: i32                [4..],
        host: Str                   [4..],
        port: i32                   [4..],
        error_code: ErrorCode       [4..],
        error_message: Option<Str>  [4..] = Some(Str::new()),
    }
}
