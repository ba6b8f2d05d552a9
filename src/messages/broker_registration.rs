//! BrokerRegistration (62)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32                [0..],
        cluster_id: Str               [0..],
        incarnation_id: Uuid          [0..],
        listeners: Vec<Listener>      [0..],
        features: Vec<Feature>        [0..],
        rack: Option<Str>             [0..] = Some(Str::new()),
        is_migrating_zk_broker: bool  [1..],
        log_dirs: Vec<Uuid>           [2..],
        previous_broker_epoch: i64    [3..] = -1,
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
        throttle_time_ms: i32  [0..],
        error_code: ErrorCode  [0..],
        broker_epoch: i64      [0..] = -1,
    }
}
