//! AlterPartition (56)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32          [0..],
        broker_epoch: i64       [0..] = -1,
        topics: Vec<TopicData>  [0..],
    }
    TopicData {
        topic_name: Str                 [0..=1],
        topic_id: Uuid                  [2..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32                   [0..],
        leader_epoch: i32                      [0..],
        new_isr: Vec<i32>                      [0..=2],
        new_isr_with_epochs: Vec<BrokerState>  [3..],
        leader_recovery_state: i8              [1..],
        partition_epoch: i32                   [0..],
    }
    BrokerState {
        broker_id: i32     [3..],
        broker_epoch: i64  [3..] = -1,
    }

    Response {
        throttle_time_ms: i32           [0..],
        error_code: ErrorCode           [0..],
        topics: Vec<ResponseTopicData>  [0..],
    }
    ResponseTopicData {
        topic_name: Str                         [0..=1],
        topic_id: Uuid                          [2..],
        partitions: Vec<ResponsePartitionData>  [0..],
    }
    ResponsePartitionData {
        partition_index: i32       [0..],
        error_code: ErrorCode      [0..],
        leader_id: i32             [0..],
        leader_epoch: i32          [0..],
        isr: Vec<i32>              [0..],
        leader_recovery_state: i8  [1..],
        partition_epoch: i32       [0..],
    }
}
