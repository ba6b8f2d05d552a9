//! ReadShareGroupState (84)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str               [0..],
        topics: Vec<ReadStateData>  [0..],
    }
    ReadStateData {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition: i32     [0..],
        leader_epoch: i32  [0..],
    }

    Response {
        results: Vec<ReadStateResult>  [0..],
    }
    ReadStateResult {
        topic_id: Uuid                    [0..],
        partitions: Vec<PartitionResult>  [0..],
    }
    PartitionResult {
        partition: i32                  [0..],
        error_code: ErrorCode           [0..],
        error_message: Option<Str>      [0..],
        state_epoch: i32                [0..],
        start_offset: i64               [0..],
        state_batches: Vec<StateBatch>  [0..],
    }
    StateBatch {
        first_offset: i64    [0..],
        last_offset: i64     [0..],
        delivery_state: i8   [0..],
        delivery_count: i16  [0..],
    }
}
