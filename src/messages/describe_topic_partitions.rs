//! DescribeTopicPartitions (75)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<TopicRequest>      [0..],
        response_partition_limit: i32  [0..] = 2000,
        cursor: Option<Cursor>         [0..],
    }
    TopicRequest {
        name: Str  [0..],
    }
    Cursor {
        topic_name: Str       [0..],
        partition_index: i32  [0..],
    }

    Response {
        throttle_time_ms: i32                              [0..],
        topics: Vec<DescribeTopicPartitionsResponseTopic>  [0..],
        next_cursor: Option<ResponseCursor>                [0..],
    }
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode                                      [0..],
        name: Option<Str>                                          [0..] = Some(Str::new()),
        topic_id: Uuid                                             [0..],
        is_internal: bool                                          [0..],
        partitions: Vec<DescribeTopicPartitionsResponsePartition>  [0..],
        topic_authorized_operations: i32                           [0..] = i32::MIN,
    }
    DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode                       [0..],
        partition_index: i32                        [0..],
        leader_id: i32                              [0..],
        leader_epoch: i32                           [0..] = -1,
        replica_nodes: Vec<i32>                     [0..],
        isr_nodes: Vec<i32>                         [0..],
        eligible_leader_replicas: Option<Vec<i32>>  [0..],
        last_known_elr: Option<Vec<i32>>            [0..],
        offline_replicas: Vec<i32>                  [0..],
    }
    ResponseCursor {
        topic_name: Str       [0..],
        partition_index: i32  [0..],
    }
}
