//! AlterUserScramCredentials (51)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        deletions: Vec<ScramCredentialDeletion>    [0..],
        upsertions: Vec<ScramCredentialUpsertion>  [0..],
    }
    ScramCredentialDeletion {
        name: Str      [0..],
        mechanism: i8  [0..],
    }
    ScramCredentialUpsertion {
        name: Str               [0..],
        mechanism: i8           [0..],
        iterations: i32         [0..],
        salt: Bytes             [0..],
        salted_password: Bytes  [0..],
    }

    Response {
        throttle_time_ms: i32                          [0..],
        results: Vec<AlterUserScramCredentialsResult>  [0..],
    }
    AlterUserScramCredentialsResult {
        user: Str                   [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
