//! ListGroups (16)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        states_filter: Vec<Str>  [4..],
        types_filter: Vec<Str>   [5..],
    }

    Response {
        throttle_time_ms: i32     [1..],
        error_code: ErrorCode     [0..],
        groups: Vec<ListedGroup>  [0..],
    }
    ListedGroup {
        group_id: Str       [0..],
        protocol_type: Str  [0..],
        group_state: Str    [4..],
        group_type: Str     [5..],
    }
}
