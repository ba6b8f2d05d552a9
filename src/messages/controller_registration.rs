//! ControllerRegistration (70)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        controller_id: i32        [0..],
        incarnation_id: Uuid      [0..],
        zk_migration_ready: bool  [0..],
        listeners: Vec<Listener>  [0..],
        features: Vec<Feature>    [0..],
    }
    Listener {
        name: Str               [0..],
        host: Str               [0..],
        port: u16               [0..],
        security_protocol: i16  [0..],
    }
    Feature {
        name: Str                   [0..],
        min_supported_version: i16  [0..],
        max_supported_version: i16  [0..],
    }

    Response {
        throttle_time_ms: i32       [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
