//! BrokerHeartbeat (63)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32                        [0..],
        broker_epoch: i64                     [0..] = -1,
        current_metadata_offset: i64          [0..],
        want_fence: bool                      [0..],
        want_shut_down: bool                  [0..],
        offline_log_dirs: Vec<Uuid>           [1.., tag 0],
        cordoned_log_dirs: Option<Vec<Uuid>>  [2.., tag 1],
    }

    Response {
        throttle_time_ms: i32   [0..],
        error_code: ErrorCode   [0..],
        is_caught_up: bool      [0..],
        is_fenced: bool         [0..] = true,
        should_shut_down: bool  [0..],
    }
}
