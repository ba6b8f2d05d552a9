//! ConsumerGroupCurrentMemberAssignment (8), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 8;

message! {
    Key {
        group_id: Str   [0..],
        member_id: Str  [0..],
    }

    Value {
        member_epoch: i32                                    [0..],
        previous_member_epoch: i32                           [0..],
        state: i8                                            [0..],
        assigned_partitions: Vec<TopicPartitions>            [0..],
        partitions_pending_revocation: Vec<TopicPartitions>  [0..],
    }
    TopicPartitions {
        topic_id: Uuid                       [0..],
        partitions: Vec<i32>                 [0..],
        assignment_epochs: Option<Vec<i32>>  [0.., tag 0] = Some(Vec::new()),
    }
}
