//! AlterReplicaLogDirs: there is one log directory, so whatever may be moved is there already.
//!
//! Source: KIP-113; `ReplicaManager.alterReplicaLogDirs` of Apache Kafka 4.4.

use super::Context;
use crate::messages::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, Request, Response,
};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let (topics, log_dir) = (cx.broker.topics(), cx.broker.storage.log_dir());
    let mut response = Response::default();
    for dir in request.dirs {
        for asked in dir.topics {
            let topic = topics.by_name(&asked.name);
            let result = |partition_index: i32| AlterReplicaLogDirPartitionResult {
                partition_index,
                error_code: match topic.and_then(|topic| topic.partition(partition_index)) {
                    _ if *dir.path != *log_dir => ErrorCode::LogDirNotFound,
                    None => ErrorCode::UnknownTopicOrPartition,
                    Some(_) => ErrorCode::None,
                },
            };
            let partitions = asked.partitions.into_iter().map(result).collect();
            let topic_name = asked.name;
            response.results.push(AlterReplicaLogDirTopicResult { topic_name, partitions });
        }
    }
    response
}
