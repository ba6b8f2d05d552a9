//! InitProducerId (22)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        transactional_id: Option<Str>  [0..] = Some(Str::new()),
        transaction_timeout_ms: i32    [0..],
        producer_id: i64               [3..] = -1,
        producer_epoch: i16            [3..] = -1,
        enable2_pc: bool               [6..],
        keep_prepared_txn: bool        [6..],
    }

    Response {
        throttle_time_ms: i32            [0..],
        error_code: ErrorCode            [0..],
        producer_id: i64                 [0..] = -1,
        producer_epoch: i16              [0..],
        ongoing_txn_producer_id: i64     [6..] = -1,
        ongoing_txn_producer_epoch: i16  [6..] = -1,
    }
}
