//! StreamsGroupDescribe (89)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_ids: Vec<Str>                  [0..],
        include_authorized_operations: bool  [0..],
        include_topology_description: bool   [1..],
    }

    Response {
        throttle_time_ms: i32        [0..],
        groups: Vec<DescribedGroup>  [0..],
    }
    DescribedGroup {
        error_code: ErrorCode                              [0..],
        error_message: Option<Str>                         [0..],
        group_id: Str                                      [0..],
        group_state: Str                                   [0..],
        group_epoch: i32                                   [0..],
        assignment_epoch: i32                              [0..],
        topology: Option<Topology>                         [0..],
        members: Vec<Member>                               [0..],
        authorized_operations: i32                         [0..] = i32::MIN,
        topology_description: Option<TopologyDescription>  [1..],
        topology_description_status: i8                    [1..],
        assignor_name: Option<Str>                         [1..],
    }
    Topology {
        epoch: i32                               [0..],
        subtopologies: Option<Vec<Subtopology>>  [0..],
    }
    Subtopology {
        subtopology_id: Str                        [0..],
        source_topics: Vec<Str>                    [0..],
        repartition_sink_topics: Vec<Str>          [0..],
        state_changelog_topics: Vec<TopicInfo>     [0..],
        repartition_source_topics: Vec<TopicInfo>  [0..],
    }
    Member {
        member_id: Str                     [0..],
        member_epoch: i32                  [0..],
        instance_id: Option<Str>           [0..],
        rack_id: Option<Str>               [0..],
        client_id: Str                     [0..],
        client_host: Str                   [0..],
        topology_epoch: i32                [0..],
        process_id: Str                    [0..],
        user_endpoint: Option<Endpoint>    [0..],
        client_tags: Vec<KeyValue>         [0..],
        task_offsets: Vec<TaskOffset>      [0..],
        task_end_offsets: Vec<TaskOffset>  [0..],
        assignment: Assignment             [0..],
        target_assignment: Assignment      [0..],
        is_classic: bool                   [0..],
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
    Assignment {
        active_tasks: Vec<TaskIds>   [0..],
        standby_tasks: Vec<TaskIds>  [0..],
        warmup_tasks: Vec<TaskIds>   [0..],
    }
    TaskIds {
        subtopology_id: Str   [0..],
        partitions: Vec<i32>  [0..],
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
    TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology>  [1..],
        global_stores: Vec<TopologyDescriptionGlobalStore>  [1..],
    }
    TopologyDescriptionSubtopology {
        subtopology_id: Str                  [1..],
        nodes: Vec<TopologyDescriptionNode>  [1..],
    }
    TopologyDescriptionNode {
        name: Str                [1..],
        node_type: i8            [1..],
        source_topics: Vec<Str>  [1..],
        sink_topic: Option<Str>  [1..],
        stores: Vec<Str>         [1..],
        successors: Vec<Str>     [1..],
    }
    TopologyDescriptionGlobalStore {
        source: TopologyDescriptionNode     [1..],
        processor: TopologyDescriptionNode  [1..],
    }
}
