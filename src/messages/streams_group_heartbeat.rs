//! StreamsGroupHeartbeat (88)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                              [0..],
        member_id: Str                             [0..],
        member_epoch: i32                          [0..],
        endpoint_information_epoch: i32            [0..],
        instance_id: Option<Str>                   [0..],
        rack_id: Option<Str>                       [0..],
        rebalance_timeout_ms: i32                  [0..] = -1,
        topology: Option<Topology>                 [0..],
        active_tasks: Option<Vec<TaskIds>>         [0..],
        standby_tasks: Option<Vec<TaskIds>>        [0..],
        warmup_tasks: Option<Vec<TaskIds>>         [0..],
        process_id: Option<Str>                    [0..],
        user_endpoint: Option<Endpoint>            [0..],
        client_tags: Option<Vec<KeyValue>>         [0..],
        task_offsets: Option<Vec<TaskOffset>>      [0..],
        task_end_offsets: Option<Vec<TaskOffset>>  [0..],
        shutdown_application: bool                 [0..],
    }
    Topology {
        epoch: i32                       [0..],
        subtopologies: Vec<Subtopology>  [0..],
    }
    Subtopology {
        subtopology_id: Str                        [0..],
        source_topics: Vec<Str>                    [0..],
        source_topic_regex: Vec<Str>               [0..],
        state_changelog_topics: Vec<TopicInfo>     [0..],
        repartition_sink_topics: Vec<Str>          [0..],
        repartition_source_topics: Vec<TopicInfo>  [0..],
        copartition_groups: Vec<CopartitionGroup>  [0..],
    }
    CopartitionGroup {
        source_topics: Vec<i16>              [0..],
        source_topic_regex: Vec<i16>         [0..],
        repartition_source_topics: Vec<i16>  [0..],
    }
    KeyValue {
        key: Str    [0..],
        value: Str  [0..],
    }
    TopicInfo {
        name: Str                     [0..],
        partitions: i32               [0..],
        replication_factor: i16       [0..],
        topic_configs: Vec<KeyValue>  [0..],
    }
    Endpoint {
        host: Str  [0..],
        port: u16  [0..],
    }
    TaskOffset {
        subtopology_id: Str  [0..],
        partition: i32       [0..],
        offset: i64          [0..],
    }
    TaskIds {
        subtopology_id: Str   [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                                           [0..],
        error_code: ErrorCode                                           [0..],
        error_message: Option<Str>                                      [0..],
        member_id: Str                                                  [0..],
        member_epoch: i32                                               [0..],
        heartbeat_interval_ms: i32                                      [0..],
        acceptable_recovery_lag_legacy: i32                             [0..=0],
        task_offset_interval_ms: i32                                    [0..],
        acceptable_recovery_lag: i64                                    [1..] = -1,
        status: Option<Vec<Status>>                                     [0..] = Some(Vec::new()),
        active_tasks: Option<Vec<ResponseTaskIds>>                      [0..],
        standby_tasks: Option<Vec<ResponseTaskIds>>                     [0..],
        warmup_tasks: Option<Vec<ResponseTaskIds>>                      [0..],
        topology_description_required: bool                             [1..],
        endpoint_information_epoch: i32                                 [0..],
        partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>>  [0..],
    }
    EndpointToPartitions {
        user_endpoint: ResponseEndpoint          [0..],
        active_partitions: Vec<TopicPartition>   [0..],
        standby_partitions: Vec<TopicPartition>  [0..],
    }
    Status {
        status_code: i8     [0..],
        status_detail: Str  [0..],
    }
    TopicPartition {
        topic: Str            [0..],
        partitions: Vec<i32>  [0..],
    }
    ResponseTaskIds {
        subtopology_id: Str   [0..],
        partitions: Vec<i32>  [0..],
    }
    ResponseEndpoint {
        host: Str  [0..],
        port: u16  [0..],
    }
}
