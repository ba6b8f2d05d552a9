//! FetchSnapshot (59)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        cluster_id: Option<Str>     [0.., tag 0],
        replica_id: i32             [0..] = -1,
        max_bytes: i32              [0..] = i32::MAX,
        topics: Vec<TopicSnapshot>  [0..],
    }
    TopicSnapshot {
        name: Str                           [0..],
        partitions: Vec<PartitionSnapshot>  [0..],
    }
    PartitionSnapshot {
        partition: i32              [0..],
        current_leader_epoch: i32   [0..],
        snapshot_id: SnapshotId     [0..],
        position: i64               [0..],
        replica_directory_id: Uuid  [1.., tag 0],
    }
    SnapshotId {
        end_offset: i64  [0..],
        epoch: i32       [0..],
    }

    Response {
        throttle_time_ms: i32               [0..],
        error_code: ErrorCode               [0..],
        topics: Vec<ResponseTopicSnapshot>  [0..],
        node_endpoints: Vec<NodeEndpoint>   [1.., tag 0],
    }
    ResponseTopicSnapshot {
        name: Str                                   [0..],
        partitions: Vec<ResponsePartitionSnapshot>  [0..],
    }
    ResponsePartitionSnapshot {
        index: i32                        [0..],
        error_code: ErrorCode             [0..],
        snapshot_id: ResponseSnapshotId   [0..],
        current_leader: LeaderIdAndEpoch  [0.., tag 0],
        size: i64                         [0..],
        position: i64                     [0..],
        unaligned_records: Bytes          [0..],
    }
    ResponseSnapshotId {
        end_offset: i64  [0..],
        epoch: i32       [0..],
    }
    LeaderIdAndEpoch {
        leader_id: i32     [0..],
        leader_epoch: i32  [0..],
    }
    NodeEndpoint {
        node_id: i32  [1..],
        host: Str     [1..],
        port: u16     [1..],
    }
}
