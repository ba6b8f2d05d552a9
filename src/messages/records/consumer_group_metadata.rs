//! ConsumerGroupMetadata (3), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 3;

message! {
    Key {
        group_id: Str  [0..],
    }

    Value {
        epoch: i32          [0..],
        metadata_hash: i64  [0.., tag 0],
    }
}
