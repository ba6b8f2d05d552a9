//! What consumers tell each other through JoinGroup and SyncGroup

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Subscription {
        topics: Vec<Str>                       [0..],
        user_data: Option<Bytes>               [0..],
        owned_partitions: Vec<TopicPartition>  [1..],
        generation_id: i32                     [2..] = -1,
        rack_id: Option<Str>                   [3..],
    }
    TopicPartition {
        topic: Str            [0..],
        partitions: Vec<i32>  [0..],
    }

    Assignment {
        assigned_partitions: Vec<TopicPartition>  [0..],
        user_data: Option<Bytes>                  [0..],
    }
}
