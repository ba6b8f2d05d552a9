//! AddRaftVoter (80)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        cluster_id: Option<Str>   [0..] = Some(Str::new()),
        timeout_ms: i32           [0..],
        voter_id: i32             [0..],
        voter_directory_id: Uuid  [0..],
        listeners: Vec<Listener>  [0..],
        ack_when_committed: bool  [1..] = true,
    }
    Listener {
        name: Str  [0..],
        host: Str  [0..],
        port: u16  [0..],
    }

    Response {
        throttle_time_ms: i32       [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
