//! DescribeAcls (29)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        resource_type_filter: i8           [0..],
        resource_name_filter: Option<Str>  [0..] = Some(Str::new()),
        pattern_type_filter: i8            [1..] = 3,
        principal_filter: Option<Str>      [0..] = Some(Str::new()),
        host_filter: Option<Str>           [0..] = Some(Str::new()),
        operation: i8                      [0..],
        permission_type: i8                [0..],
    }

    Response {
        throttle_time_ms: i32                 [0..],
        error_code: ErrorCode                 [0..],
        error_message: Option<Str>            [0..] = Some(Str::new()),
        resources: Vec<DescribeAclsResource>  [0..],
    }
    DescribeAclsResource {
        resource_type: i8          [0..],
        resource_name: Str         [0..],
        pattern_type: i8           [1..] = 3,
        acls: Vec<AclDescription>  [0..],
    }
    AclDescription {
        principal: Str       [0..],
        host: Str            [0..],
        operation: i8        [0..],
        permission_type: i8  [0..],
    }
}
