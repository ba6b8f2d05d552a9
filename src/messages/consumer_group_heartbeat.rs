//! ConsumerGroupHeartbeat (68)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                                   [0..],
        member_id: Str                                  [0..],
        member_epoch: i32                               [0..],
        instance_id: Option<Str>                        [0..],
        rack_id: Option<Str>                            [0..],
        rebalance_timeout_ms: i32                       [0..] = -1,
        subscribed_topic_names: Option<Vec<Str>>        [0..],
        subscribed_topic_regex: Option<Str>             [1..],
        server_assignor: Option<Str>                    [0..],
        topic_partitions: Option<Vec<TopicPartitions>>  [0..],
    }
    TopicPartitions {
        topic_id: Uuid        [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32           [0..],
        error_code: ErrorCode           [0..],
        error_message: Option<Str>      [0..],
        member_id: Option<Str>          [0..],
        member_epoch: i32               [0..],
        heartbeat_interval_ms: i32      [0..],
        assignment: Option<Assignment>  [0..],
    }
    Assignment {
        topic_partitions: Vec<ResponseTopicPartitions>  [0..],
    }
    ResponseTopicPartitions {
        topic_id: Uuid        [0..],
        partitions: Vec<i32>  [0..],
    }
}
