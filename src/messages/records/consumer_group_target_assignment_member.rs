//! ConsumerGroupTargetAssignmentMember (7), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 7;

message! {
    Key {
        group_id: Str   [0..],
        member_id: Str  [0..],
    }

    Value {
        topic_partitions: Vec<TopicPartition>  [0..],
    }
    TopicPartition {
        topic_id: Uuid        [0..],
        partitions: Vec<i32>  [0..],
    }
}
