//! StreamsGroupTopologyDescriptionUpdate (93)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        group_id: Str                              [0..],
        member_id: Str                             [0..],
        topology_epoch: i32                        [0..],
        topology_description: TopologyDescription  [0..],
    }
    TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology>  [0..],
        global_stores: Vec<TopologyDescriptionGlobalStore>  [0..],
    }
    TopologyDescriptionSubtopology {
        subtopology_id: Str                  [0..],
        nodes: Vec<TopologyDescriptionNode>  [0..],
    }
    TopologyDescriptionNode {
        name: Str                [0..],
        node_type: i8            [0..],
        source_topics: Vec<Str>  [0..],
        sink_topic: Option<Str>  [0..],
        stores: Vec<Str>         [0..],
        successors: Vec<Str>     [0..],
    }
    TopologyDescriptionGlobalStore {
        source: TopologyDescriptionNode     [0..],
        processor: TopologyDescriptionNode  [0..],
    }

    Response {
        throttle_time_ms: i32       [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..],
    }
}
