//! CreateDelegationToken (38)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        owner_principal_type: Option<Str>  [3..] = Some(Str::new()),
        owner_principal_name: Option<Str>  [3..] = Some(Str::new()),
        renewers: Vec<CreatableRenewers>   [0..],
        max_lifetime_ms: i64               [0..],
    }
    CreatableRenewers {
        principal_type: Str  [0..],
        principal_name: Str  [0..],
    }

    Response {
        error_code: ErrorCode                [0..],
        principal_type: Str                  [0..],
        principal_name: Str                  [0..],
        token_requester_principal_type: Str  [3..],
        token_requester_principal_name: Str  [3..],
        issue_timestamp_ms: i64              [0..],
        expiry_timestamp_ms: i64             [0..],
        max_timestamp_ms: i64                [0..],
        token_id: Str                        [0..],
        hmac: Bytes                          [0..],
        throttle_time_ms: i32                [0..],
    }
}
