//! AssignReplicasToDirs (73)

use crate::protocol::error_code::ErrorCode;
use crate::protocol::message::message;
use crate::protocol::wire::*;
use bytes::Bytes;

message! {
    Request {
        broker_id: i32                   [0..],
        broker_epoch: i64                [0..] = -1,
        directories: Vec<DirectoryData>  [0..],
    }
    DirectoryData {
        id: Uuid                [0..],
        topics: Vec<TopicData>  [0..],
    }
    TopicData {
        topic_id: Uuid                  [0..],
        partitions: Vec<PartitionData>  [0..],
    }
    PartitionData {
        partition_index: i32  [0..],
    }

    Response {
        throttle_time_ms: i32                    [0..],
        error_code: ErrorCode                    [0..],
        directories: Vec<ResponseDirectoryData>  [0..],
    }
    ResponseDirectoryData {
        id: Uuid                        [0..],
        topics: Vec<ResponseTopicData>  [0..],
    }
    ResponseTopicData {
        topic_id: Uuid                          [0..],
        partitions: Vec<ResponsePartitionData>  [0..],
    }
    ResponsePartitionData {
        partition_index: i32   [0..],
        error_code: ErrorCode  [0..],
    }
}
