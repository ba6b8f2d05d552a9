//! IncrementalAlterConfigs (44)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        resources: Vec<AlterConfigsResource>  [0..],
        validate_only: bool                   [0..],
    }
    AlterConfigsResource {
        resource_type: i8              [0..],
        resource_name: Str             [0..],
        configs: Vec<AlterableConfig>  [0..],
    }
    AlterableConfig {
        name: Str             [0..],
        config_operation: i8  [0..],
        value: Option<Str>    [0..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32                         [0..],
        responses: Vec<AlterConfigsResourceResponse>  [0..],
    }
    AlterConfigsResourceResponse {
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
        resource_type: i8           [0..],
        resource_name: Str          [0..],
    }
}
