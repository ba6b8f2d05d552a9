//! Produce (0)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        transactional_id: Option<Str>      [3..],
        acks: i16                          [0..],
        timeout_ms: i32                    [0..],
        topic_data: Vec<TopicProduceData>  [0..],
    }
    TopicProduceData {
        name: Str                                  [0..=12],
        topic_id: Uuid                             [13..],
        partition_data: Vec<PartitionProduceData>  [0..],
    }
    PartitionProduceData {
        index: i32              [0..],
        records: Option<Bytes>  [0..],
    }

    Response {
        responses: Vec<TopicProduceResponse>  [0..],
        throttle_time_ms: i32                 [1..],
        node_endpoints: Vec<NodeEndpoint>     [10.., tag 0],
    }
    TopicProduceResponse {
        name: Str                                           [0..=12],
        topic_id: Uuid                                      [13..],
        partition_responses: Vec<PartitionProduceResponse>  [0..],
    }
    PartitionProduceResponse {
        index: i32                                     [0..],
        error_code: ErrorCode                          [0..],
        base_offset: i64                               [0..],
        log_append_time_ms: i64                        [2..] = -1,
        log_start_offset: i64                          [5..] = -1,
        record_errors: Vec<BatchIndexAndErrorMessage>  [8..],
        error_message: Option<Str>                     [8..],
        current_leader: LeaderIdAndEpoch               [10.., tag 0],
    }
    BatchIndexAndErrorMessage {
        batch_index: i32                        [8..],
        batch_index_error_message: Option<Str>  [8..],
    }
    LeaderIdAndEpoch {
        leader_id: i32     [10..] = -1,
        leader_epoch: i32  [10..] = -1,
    }
    NodeEndpoint {
        node_id: i32       [10..],
        host: Str          [10..],
        port: i32          [10..],
        rack: Option<Str>  [10..],
    }
}
