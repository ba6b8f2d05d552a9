//! ElectLeaders (43)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        election_type: i8                               [1..],
        topic_partitions: Option<Vec<TopicPartitions>>  [0..] = Some(Vec::new()),
        timeout_ms: i32                                 [0..] = 60000,
    }
    TopicPartitions {
        topic: Str            [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                                 [0..],
        error_code: ErrorCode                                 [1..],
        replica_election_results: Vec<ReplicaElectionResult>  [0..],
    }
    ReplicaElectionResult {
        topic: Str                              [0..],
        partition_result: Vec<PartitionResult>  [0..],
    }
    PartitionResult {
        partition_id: i32           [0..],
        error_code: ErrorCode       [0..],
        error_message: Option<Str>  [0..] = Some(Str::new()),
    }
}
