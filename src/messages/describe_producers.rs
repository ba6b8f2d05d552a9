//! DescribeProducers (61)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<TopicRequest>  [0..],
    }
    TopicRequest {
        name: Str                    [0..],
        partition_indexes: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32       [0..],
        topics: Vec<TopicResponse>  [0..],
    }
    TopicResponse {
        name: Str                           [0..],
        partitions: Vec<PartitionResponse>  [0..],
    }
    PartitionResponse {
        partition_index: i32                  [0..],
        error_code: ErrorCode                 [0..],
        error_message: Option<Str>            [0..],
        active_producers: Vec<ProducerState>  [0..],
    }
    ProducerState {
        producer_id: i64               [0..],
        producer_epoch: i32            [0..],
        last_sequence: i32             [0..] = -1,
        last_timestamp: i64            [0..] = -1,
        coordinator_epoch: i32         [0..],
        current_txn_start_offset: i64  [0..] = -1,
    }
}
