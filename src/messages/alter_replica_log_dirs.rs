//! AlterReplicaLogDirs (34)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        dirs: Vec<AlterReplicaLogDir>  [0..],
    }
    AlterReplicaLogDir {
        path: Str                             [0..],
        topics: Vec<AlterReplicaLogDirTopic>  [0..],
    }
    AlterReplicaLogDirTopic {
        name: Str             [0..],
        partitions: Vec<i32>  [0..],
    }

    Response {
        throttle_time_ms: i32                        [0..],
        results: Vec<AlterReplicaLogDirTopicResult>  [0..],
    }
    AlterReplicaLogDirTopicResult {
        topic_name: Str                                     [0..],
        partitions: Vec<AlterReplicaLogDirPartitionResult>  [0..],
    }
    AlterReplicaLogDirPartitionResult {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
