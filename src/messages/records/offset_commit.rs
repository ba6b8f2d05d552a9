//! OffsetCommit (1), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 1;

message! {
    Key {
        group: Str      [0..],
        topic: Str      [0..],
        partition: i32  [0..],
    }

    Value {
        offset: i64            [0..],
        leader_epoch: i32      [3..] = -1,
        metadata: Str          [0..],
        commit_timestamp: i64  [0..],
        expire_timestamp: i64  [1..=1] = -1,
        topic_id: Uuid         [4.., tag 0],
    }
}
