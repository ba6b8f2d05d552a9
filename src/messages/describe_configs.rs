//! DescribeConfigs (32)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        resources: Vec<DescribeConfigsResource>  [0..],
        include_synonyms: bool                   [1..],
        include_documentation: bool              [3..],
    }
    DescribeConfigsResource {
        resource_type: i8                     [0..],
        resource_name: Str                    [0..],
        configuration_keys: Option<Vec<Str>>  [0..] = Some(Vec::new()),
    }

    Response {
        throttle_time_ms: i32                [0..],
        results: Vec<DescribeConfigsResult>  [0..],
    }
    DescribeConfigsResult {
        error_code: ErrorCode                        [0..],
        error_message: Option<Str>                   [0..] = Some(Str::new()),
        resource_type: i8                            [0..],
        resource_name: Str                           [0..],
        configs: Vec<DescribeConfigsResourceResult>  [0..],
    }
    DescribeConfigsResourceResult {
        name: Str                              [0..],
        value: Option<Str>                     [0..] = Some(Str::new()),
        read_only: bool                        [0..],
        is_default: bool                       [0..=0],
        config_source: i8                      [1..] = -1,
        is_sensitive: bool                     [0..],
        synonyms: Vec<DescribeConfigsSynonym>  [1..],
        config_type: i8                        [3..],
        documentation: Option<Str>             [3..] = Some(Str::new()),
    }
    DescribeConfigsSynonym {
        name: Str           [1..],
        value: Option<Str>  [1..] = Some(Str::new()),
        source: i8          [1..],
    }
}
