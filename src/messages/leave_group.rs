//! LeaveGroup (13)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                 [0..],
        member_id: Str                [0..=2],
        members: Vec<MemberIdentity>  [3..],
    }
    MemberIdentity {
        member_id: Str                  [3..],
        group_instance_id: Option<Str>  [3..],
        reason: Option<Str>             [5..],
    }

    Response {
        throttle_time_ms: i32         [1..],
        error_code: ErrorCode         [0..],
        members: Vec<MemberResponse>  [3..],
    }
    MemberResponse {
        member_id: Str                  [3..],
        group_instance_id: Option<Str>  [3..] = Some(Str::new()),
        error_code: ErrorCode           [3..],
    }
}
