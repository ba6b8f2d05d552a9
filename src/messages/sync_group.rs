//! SyncGroup (14)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                                 [0..],
        generation_id: i32                            [0..],
        member_id: Str                                [0..],
        group_instance_id: Option<Str>                [3..],
        protocol_type: Option<Str>                    [5..],
        protocol_name: Option<Str>                    [5..],
        assignments: Vec<SyncGroupRequestAssignment>  [0..],
    }
    SyncGroupRequestAssignment {
        member_id: Str     [0..],
        assignment: Bytes  [0..],
    }

    Response {
        throttle_time_ms: i32       [1..],
        error_code: ErrorCode       [0..],
        protocol_type: Option<Str>  [5..],
        protocol_name: Option<Str>  [5..],
        assignment: Bytes           [0..],
    }
}
