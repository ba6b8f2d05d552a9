//! ShareFetch (78)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Option<Str>                       [0..],
        member_id: Option<Str>                      [0..] = Some(Str::new()),
        share_session_epoch: i32                    [0..],
        max_wait_ms: i32                            [0..],
        min_bytes: i32                              [0..],
        max_bytes: i32                              [0..] = i32::MAX,
        max_records: i32                            [1..],
        batch_size: i32                             [1..],
        share_acquire_mode: i8                      [2..],
        is_renew_ack: bool                          [2..],
        topics: Vec<FetchTopic>                     [0..],
        forgotten_topics_data: Vec<ForgottenTopic>  [0..],
    }
    FetchTopic {
        topic_id: Uuid                   [0..],
        partitions: Vec<FetchPartition>  [0..],
    }
    FetchPartition {
        partition_index: i32                                [0..],
        acknowledgement_batches: Vec<AcknowledgementBatch>  [0..],
    }
    AcknowledgementBatch {
        first_offset: i64           [0..],
        last_offset: i64            [0..],
        acknowledge_types: Vec<i8>  [0..],
    }
    ForgottenTopic {
        topic_id: Uuid        [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                        [0..],
        error_code: ErrorCode                        [0..],
        error_message: Option<Str>                   [0..],
        acquisition_lock_timeout_ms: i32             [1..],
        responses: Vec<ShareFetchableTopicResponse>  [0..],
        node_endpoints: Vec<NodeEndpoint>            [0..],
    }
    ShareFetchableTopicResponse {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32                    [0..],
        error_code: ErrorCode                   [0..],
        error_message: Option<Str>              [0..],
        acknowledge_error_code: ErrorCode       [0..],
        acknowledge_error_message: Option<Str>  [0..],
        current_leader: LeaderIdAndEpoch        [0..],
        records: Records                        [0..],
        acquired_records: Vec<AcquiredRecords>  [0..],
    }
    LeaderIdAndEpoch {
        leader_id: i32     [0..],
        leader_epoch: i32  [0..],
    }
    AcquiredRecords {
        first_offset: i64    [0..],
        last_offset: i64     [0..],
        delivery_count: i16  [0..],
    }
    NodeEndpoint {
        node_id: i32       [0..],
        host: Str          [0..],
        port: i32          [0..],
        rack: Option<Str>  [0..],
    }
}
