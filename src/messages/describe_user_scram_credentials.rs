//! DescribeUserScramCredentials (50)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        users: Option<Vec<UserName>>  [0..] = Some(Vec::new()),
    }
    UserName {
        name: Str  [0..],
    }

    Response {
        throttle_time_ms: i32                             [0..],
        error_code: ErrorCode                             [0..],
        error_message: Option<Str>                        [0..] = Some(Str::new()),
        results: Vec<DescribeUserScramCredentialsResult>  [0..],
    }
    DescribeUserScramCredentialsResult {
        user: Str                              [0..],
        error_code: ErrorCode                  [0..],
        error_message: Option<Str>             [0..] = Some(Str::new()),
        credential_infos: Vec<CredentialInfo>  [0..],
    }
    CredentialInfo {
        mechanism: i8    [0..],
        iterations: i32  [0..],
    }
}
