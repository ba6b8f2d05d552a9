//! ConsumerGroupRegularExpression (16), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 16;

message! {
    Key {
        group_id: Str            [0..],
        regular_expression: Str  [0..],
    }

    Value {
        topics: Vec<Str>  [0..],
        version: i64      [0..],
        timestamp: i64    [0..],
    }
}
