//! UpdateFeatures (57)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        timeout_ms: i32                         [0..] = 60000,
        feature_updates: Vec<FeatureUpdateKey>  [0..],
        validate_only: bool                     [1..],
    }
    FeatureUpdateKey {
        feature: Str            [0..],
        max_version_level: i16  [0..],
        allow_downgrade: bool   [0..=0],
        upgrade_type: i8        [1..] = 1,
    }

    Response {
        throttle_time_ms: i32                 [0..],
        error_code: ErrorCode                 [0..],
        error_message: Option<Str>            [0..] = Some(Str::new()),
        results: Vec<UpdatableFeatureResult>  [0..=1],
    }
    UpdatableFeatureResult {
        feature: Str                [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
