//! BeginQuorumEpoch (53)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        cluster_id: Option<Str>                [0..],
        voter_id: i32                          [1..] = -1,
        topics: Vec<TopicData>                 [0..],
        leader_endpoints: Vec<LeaderEndpoint>  [1..],
    }
    TopicData {
        topic_name: Str                 [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32      [0..],
        voter_directory_id: Uuid  [1..],
        leader_id: i32            [0..],
        leader_epoch: i32         [0..],
    }
    LeaderEndpoint {
        name: Str  [1..],
        host: Str  [1..],
        port: u16  [1..],
    }

    Response {
        error_code: ErrorCode              [0..],
        topics: Vec<ResponseTopicData>     [0..],
        node_endpoints: Vec<NodeEndpoint>  [1.., tag 0],
    }
    ResponseTopicData {
        topic_name: Str                         [0..],
        partitions: Vec<ResponsePartitionData>  [0..],
    }
    ResponsePartitionData {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
        leader_id: i32         [0..],
        leader_epoch: i32      [0..],
    }
    NodeEndpoint {
        node_id: i32  [1..],
        host: Str     [1..],
        port: u16     [1..],
    }
}
