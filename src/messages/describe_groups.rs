//! DescribeGroups (15)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        groups: Vec<Str>                     [0..],
        include_authorized_operations: bool  [3..],
    }

    Response {
        throttle_time_ms: i32        [1..],
        groups: Vec<DescribedGroup>  [0..],
    }
    DescribedGroup {
        error_code: ErrorCode               [0..],
        error_message: Option<Str>          [6..],
        group_id: Str                       [0..],
        group_state: Str                    [0..],
        protocol_type: Str                  [0..],
        protocol_data: Str                  [0..],
        members: Vec<DescribedGroupMember>  [0..],
        authorized_operations: i32          [3..] = i32::MIN,
    }
    DescribedGroupMember {
        member_id: Str                  [0..],
        group_instance_id: Option<Str>  [4..],
        client_id: Str                  [0..],
        client_host: Str                [0..],
        member_metadata: Bytes          [0..],
        member_assignment: Bytes        [0..],
    }
}
