//! Vote (52)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        cluster_id: Option<Str>  [0..],
        voter_id: i32            [1..] = -1,
        topics: Vec<TopicData>   [0..],
    }
    TopicData {
        topic_name: Str                 [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32        [0..],
        replica_epoch: i32          [0..],
        replica_id: i32             [0..],
        replica_directory_id: Uuid  [1..],
        voter_directory_id: Uuid    [1..],
        last_offset_epoch: i32      [0..],
        last_offset: i64            [0..],
        pre_vote: bool              [2..],
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
        vote_granted: bool     [0..],
    }
    NodeEndpoint {
        node_id: i32  [1..],
        host: Str     [1..],
        port: u16     [1..],
    }
}
