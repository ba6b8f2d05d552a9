//! DescribeQuorum (55)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        topics: Vec<TopicData>  [0..],
    }
    TopicData {
        topic_name: Str                 [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32  [0..],
    }

    Response {
        error_code: ErrorCode           [0..],
        error_message: Option<Str>      [2..] = Some(Str::new()),
        topics: Vec<ResponseTopicData>  [0..],
        nodes: Vec<Node>                [2..],
    }
    ResponseTopicData {
        topic_name: Str                         [0..],
        partitions: Vec<ResponsePartitionData>  [0..],
    }
    ResponsePartitionData {
        partition_index: i32               [0..],
        error_code: ErrorCode              [0..],
        error_message: Option<Str>         [2..] = Some(Str::new()),
        leader_id: i32                     [0..],
        leader_epoch: i32                  [0..],
        high_watermark: i64                [0..],
        current_voters: Vec<ReplicaState>  [0..],
        observers: Vec<ReplicaState>       [0..],
    }
    Node {
        node_id: i32              [2..],
        listeners: Vec<Listener>  [2..],
    }
    Listener {
        name: Str  [2..],
        host: Str  [2..],
        port: u16  [2..],
    }
    ReplicaState {
        replica_id: i32                [0..],
        replica_directory_id: Uuid     [2..],
        log_end_offset: i64            [0..],
        last_fetch_timestamp: i64      [1..] = -1,
        last_caught_up_timestamp: i64  [1..] = -1,
    }
}
