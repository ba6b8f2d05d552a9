//! LegacyOffsetCommit (0), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 0;

message! {
    Key {
        group: Str      [0..],
        topic: Str      [0..],
        partition: i32  [0..],
    }

    Value {
        offset: i64            [0..],
        metadata: Str          [0..],
        commit_timestamp: i64  [0..],
    }
}
