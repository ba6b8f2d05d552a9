//! OffsetFetch (9)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                                 [0..=7],
        topics: Option<Vec<OffsetFetchRequestTopic>>  [0..=7, null 2..=7] = Some(Vec::new()),
        groups: Vec<OffsetFetchRequestGroup>          [8..],
        require_stable: bool                          [7..],
    }
    OffsetFetchRequestTopic {
        name: Str                    [0..=7],
        partition_indexes: Vec<i32>  [0..=7],
    }
    OffsetFetchRequestGroup {
        group_id: Str                                  [8..],
        member_id: Option<Str>                         [9..],
        member_epoch: i32                              [9..] = -1,
        topics: Option<Vec<OffsetFetchRequestTopics>>  [8..] = Some(Vec::new()),
    }
    OffsetFetchRequestTopics {
        name: Str                    [8..=9],
        topic_id: Uuid               [10..],
        partition_indexes: Vec<i32>  [8..],
    }

    Response {
        throttle_time_ms: i32                  [3..],
        topics: Vec<OffsetFetchResponseTopic>  [0..=7],
        error_code: ErrorCode                  [2..=7],
        groups: Vec<OffsetFetchResponseGroup>  [8..],
    }
    OffsetFetchResponseTopic {
        name: Str                                      [0..=7],
        partitions: Vec<OffsetFetchResponsePartition>  [0..=7],
    }
    OffsetFetchResponsePartition {
        partition_index: i32         [0..=7],
        committed_offset: i64        [0..=7],
        committed_leader_epoch: i32  [5..=7] = -1,
        metadata: Option<Str>        [0..=7] = Some(Str::new()),
        error_code: ErrorCode        [0..=7],
    }
    OffsetFetchResponseGroup {
        group_id: Str                           [8..],
        topics: Vec<OffsetFetchResponseTopics>  [8..],
        error_code: ErrorCode                   [8..],
    }
    OffsetFetchResponseTopics {
        name: Str                                       [8..=9],
        topic_id: Uuid                                  [10..],
        partitions: Vec<OffsetFetchResponsePartitions>  [8..],
    }
    OffsetFetchResponsePartitions {
        partition_index: i32         [8..],
        committed_offset: i64        [8..],
        committed_leader_epoch: i32  [8..] = -1,
        metadata: Option<Str>        [8..] = Some(Str::new()),
        error_code: ErrorCode        [8..],
    }
}
