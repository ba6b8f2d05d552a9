//! ListConfigResources (74)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        resource_types: Vec<i8>  [1..],
    }

    Response {
        throttle_time_ms: i32                  [0..],
        error_code: ErrorCode                  [0..],
        config_resources: Vec<ConfigResource>  [0..],
    }
    ConfigResource {
        resource_name: Str  [0..],
        resource_type: i8   [1..] = 16,
    }
}
