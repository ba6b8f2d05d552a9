//! ShareAcknowledge (79)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Option<Str>          [0..],
        member_id: Option<Str>         [0..] = Some(Str::new()),
        share_session_epoch: i32       [0..],
        is_renew_ack: bool             [2..],
        topics: Vec<AcknowledgeTopic>  [0..],
    }
    AcknowledgeTopic {
        topic_id: Uuid                         [0..],
        partitions: Vec<AcknowledgePartition>  [0..],
    }
    AcknowledgePartition {
        partition_index: i32                                [0..],
        acknowledgement_batches: Vec<AcknowledgementBatch>  [0..],
    }
    AcknowledgementBatch {
        first_offset: i64           [0..],
        last_offset: i64            [0..],
        acknowledge_types: Vec<i8>  [0..],
    }

    Response {
        throttle_time_ms: i32                          [0..],
        error_code: ErrorCode                          [0..],
        error_message: Option<Str>                     [0..],
        acquisition_lock_timeout_ms: i32               [2..],
        responses: Vec<ShareAcknowledgeTopicResponse>  [0..],
        node_endpoints: Vec<NodeEndpoint>              [0..],
    }
    ShareAcknowledgeTopicResponse {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32              [0..],
        error_code: ErrorCode             [0..],
        error_message: Option<Str>        [0..],
        current_leader: LeaderIdAndEpoch  [0..],
    }
    LeaderIdAndEpoch {
        leader_id: i32     [0..],
        leader_epoch: i32  [0..],
    }
    NodeEndpoint {
        node_id: i32       [0..],
        host: Str          [0..],
        port: i32          [0..],
        rack: Option<Str>  [0..],
    }
}
