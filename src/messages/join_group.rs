//! JoinGroup (11)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                             [0..],
        session_timeout_ms: i32                   [0..],
        rebalance_timeout_ms: i32                 [1..] = -1,
        member_id: Str                            [0..],
        group_instance_id: Option<Str>            [5..],
        protocol_type: Str                        [0..],
        protocols: Vec<JoinGroupRequestProtocol>  [0..],
        reason: Option<Str>                       [8..],
    }
    JoinGroupRequestProtocol {
        name: Str        [0..],
        metadata: Bytes  [0..],
    }

    Response {
        throttle_time_ms: i32                  [2..],
        error_code: ErrorCode                  [0..],
        generation_id: i32                     [0..] = -1,
        protocol_type: Option<Str>             [7..],
        protocol_name: Option<Str>             [0.., null 7..] = Some(Str::new()),
        leader: Str                            [0..],
        skip_assignment: bool                  [9..],
        member_id: Str                         [0..],
        members: Vec<JoinGroupResponseMember>  [0..],
    }
    JoinGroupResponseMember {
        member_id: Str                  [0..],
        group_instance_id: Option<Str>  [5..],
        metadata: Bytes                 [0..],
    }
}
