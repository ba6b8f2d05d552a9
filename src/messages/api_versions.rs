//! ApiVersions (18)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        client_software_name: Str     [3..],
        client_software_version: Str  [3..],
        cluster_id: Option<Str>       [5..],
        node_id: i32                  [5..] = -1,
    }

    Response {
        error_code: ErrorCode                         [0..],
        api_keys: Vec<ApiVersion>                     [0..],
        throttle_time_ms: i32                         [1..],
        supported_features: Vec<SupportedFeatureKey>  [3.., tag 0],
        finalized_features_epoch: i64                 [3.., tag 1] = -1,
        finalized_features: Vec<FinalizedFeatureKey>  [3.., tag 2],
        zk_migration_ready: bool                      [3.., tag 3],
    }
    ApiVersion {
        api_key: i16      [0..],
        min_version: i16  [0..],
        max_version: i16  [0..],
    }
    SupportedFeatureKey {
        name: Str         [3..],
        min_version: i16  [3..],
        max_version: i16  [3..],
    }
    FinalizedFeatureKey {
        name: Str               [3..],
        max_version_level: i16  [3..],
        min_version_level: i16  [3..],
    }
}
