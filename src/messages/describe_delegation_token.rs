//! DescribeDelegationToken (41)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        owners: Option<Vec<DescribeDelegationTokenOwner>>  [0..] = Some(Vec::new()),
    }
    DescribeDelegationTokenOwner {
        principal_type: Str  [0..],
        principal_name: Str  [0..],
    }

    Response {
        error_code: ErrorCode                  [0..],
        tokens: Vec<DescribedDelegationToken>  [0..],
        throttle_time_ms: i32                  [0..],
    }
    DescribedDelegationToken {
        principal_type: Str                             [0..],
        principal_name: Str                             [0..],
        token_requester_principal_type: Str             [3..],
        token_requester_principal_name: Str             [3..],
        issue_timestamp: i64                            [0..],
        expiry_timestamp: i64                           [0..],
        max_timestamp: i64                              [0..],
        token_id: Str                                   [0..],
        hmac: Bytes                                     [0..],
        renewers: Vec<DescribedDelegationTokenRenewer>  [0..],
    }
    DescribedDelegationTokenRenewer {
        principal_type: Str  [0..],
        principal_name: Str  [0..],
    }
}
