//! ListTransactions (66)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        state_filters: Vec<Str>                [0..],
        producer_id_filters: Vec<i64>          [0..],
        duration_filter: i64                   [1..] = -1,
        transactional_id_pattern: Option<Str>  [2..],
    }

    Response {
        throttle_time_ms: i32                      [0..],
        error_code: ErrorCode                      [0..],
        unknown_state_filters: Vec<Str>            [0..],
        transaction_states: Vec<TransactionState>  [0..],
    }
    TransactionState {
        transactional_id: Str   [0..],
        producer_id: i64        [0..],
        transaction_state: Str  [0..],
    }
}
