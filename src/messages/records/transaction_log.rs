//! TransactionLog (0), a record of `__transaction_state`

use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

/// Stands before the key.
pub const TYPE: i16 = 0;

message! {
    Key {
        transactional_id: Str  [0..],
    }

    Value {
        producer_id: i64                                       [0..],
        previous_producer_id: i64                              [1.., tag 0] = -1,
        next_producer_id: i64                                  [1.., tag 1] = -1,
        producer_epoch: i16                                    [0..],
        client_transaction_version: i16                        [1.., tag 2],
        next_producer_epoch: i16                               [1.., tag 3] = -1,
        transaction_timeout_ms: i32                            [0..],
        transaction_status: i8                                 [0..],
        transaction_partitions: Option<Vec<PartitionsSchema>>  [0..] = Some(Vec::new()),
        transaction_last_update_timestamp_ms: i64              [0..],
        transaction_start_timestamp_ms: i64                    [0..],
    }
    PartitionsSchema {
        topic: Str               [0..],
        partition_ids: Vec<i32>  [0..],
    }
}
