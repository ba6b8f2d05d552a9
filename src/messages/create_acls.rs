//! CreateAcls (30)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        creations: Vec<AclCreation>  [0..],
    }
    AclCreation {
        resource_type: i8          [0..],
        resource_name: Str         [0..],
        resource_pattern_type: i8  [1..] = 3,
        principal: Str             [0..],
        host: Str                  [0..],
        operation: i8              [0..],
        permission_type: i8        [0..],
    }

    Response {
        throttle_time_ms: i32            [0..],
        results: Vec<AclCreationResult>  [0..],
    }
    AclCreationResult {
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
