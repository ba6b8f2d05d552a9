//! ConsumerGroupPartitionMetadata (4), a record of `__consumer_offsets`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 4;

message! {
    Key {
        group_id: Str  [0..],
    }

    Value {
        topics: Vec<TopicMetadata>  [0..],
    }
    TopicMetadata {
        topic_id: Uuid                              [0..],
        topic_name: Str                             [0..],
        num_partitions: i32                         [0..],
        partition_metadata: Vec<PartitionMetadata>  [0..],
    }
    PartitionMetadata {
        partition: i32   [0..],
        racks: Vec<Str>  [0..],
    }
}
