//! ConsumerGroupTargetAssignmentMetadata (6), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 6;

message! {
    Key {
        group_id: Str  [0..],
    }

    Value {
        assignment_epoch: i32      [0..],
        assignment_timestamp: i64  [0.., tag 0],
    }
}
