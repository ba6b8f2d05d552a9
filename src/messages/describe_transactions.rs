//! DescribeTransactions (65)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        transactional_ids: Vec<Str>  [0..],
    }

    Response {
        throttle_time_ms: i32                      [0..],
        transaction_states: Vec<TransactionState>  [0..],
    }
    TransactionState {
        error_code: ErrorCode           [0..],
        transactional_id: Str           [0..],
        transaction_state: Str          [0..],
        transaction_timeout_ms: i32     [0..],
        transaction_start_time_ms: i64  [0..],
        producer_id: i64                [0..],
        producer_epoch: i16             [0..],
        topics: Vec<TopicData>          [0..],
    }
    TopicData {
        topic: Str            [0..],
        partitions: Vec<i32>  [0..],
    }
}
