//! Metadata (3)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Option<Vec<MetadataRequestTopic>>    [0.., null 1..] = Some(Vec::new()),
        allow_auto_topic_creation: bool              [4..] = true,
        include_cluster_authorized_operations: bool  [8..=10],
        include_topic_authorized_operations: bool    [8..],
    }
    MetadataRequestTopic {
        topic_id: Uuid     [10..],
        name: Option<Str>  [0.., null 10..] = Some(Str::new()),
    }

    Response {
        throttle_time_ms: i32                 [3..],
        brokers: Vec<MetadataResponseBroker>  [0..],
        cluster_id: Option<Str>               [2..],
        controller_id: i32                    [1..] = -1,
        topics: Vec<MetadataResponseTopic>    [0..],
        cluster_authorized_operations: i32    [8..=10] = i32::MIN,
        error_code: ErrorCode                 [13..],
    }
    MetadataResponseBroker {
        node_id: i32       [0..],
        host: Str          [0..],
        port: i32          [0..],
        rack: Option<Str>  [1..],
    }
    MetadataResponseTopic {
        error_code: ErrorCode                       [0..],
        name: Option<Str>                           [0.., null 12..] = Some(Str::new()),
        topic_id: Uuid                              [10..],
        is_internal: bool                           [1..],
        partitions: Vec<MetadataResponsePartition>  [0..],
        topic_authorized_operations: i32            [8..] = i32::MIN,
    }
    MetadataResponsePartition {
        error_code: ErrorCode       [0..],
        partition_index: i32        [0..],
        leader_id: i32              [0..],
        leader_epoch: i32           [7..] = -1,
        replica_nodes: Vec<i32>     [0..],
        isr_nodes: Vec<i32>         [0..],
        offline_replicas: Vec<i32>  [5..],
    }
}
