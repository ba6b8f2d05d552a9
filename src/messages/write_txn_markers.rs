//! WriteTxnMarkers (27)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        markers: Vec<WritableTxnMarker>  [0..],
    }
    WritableTxnMarker {
        producer_id: i64                     [0..],
        producer_epoch: i16                  [0..],
        transaction_result: bool             [0..],
        topics: Vec<WritableTxnMarkerTopic>  [0..],
        coordinator_epoch: i32               [0..],
        transaction_version: i8              [2..],
    }
    WritableTxnMarkerTopic {
        name: Str                    [0..],
        partition_indexes: Vec<i32>  [0..],
    }

    Response {
        markers: Vec<WritableTxnMarkerResult>  [0..],
    }
    WritableTxnMarkerResult {
        producer_id: i64                           [0..],
        topics: Vec<WritableTxnMarkerTopicResult>  [0..],
    }
    WritableTxnMarkerTopicResult {
        name: Str                                          [0..],
        partitions: Vec<WritableTxnMarkerPartitionResult>  [0..],
    }
    WritableTxnMarkerPartitionResult {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
