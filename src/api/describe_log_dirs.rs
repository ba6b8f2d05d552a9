//! DescribeLogDirs: how large partitions are.
//!
//! There is one log directory: where the store has its data. A size is that of the batches as they
//! are stored; of a host with a log of its own it is not known.
//!
//! Source: KIP-113, KIP-827; `ReplicaManager.describeLogDirs` of Apache Kafka 4.4.

use super::{Broker, Context};
use crate::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
    Request, Response,
};
use crate::protocol::wire::Str;
use crate::store::StoreError;
use crate::store::topics::Topic;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::coop::consume_budget;

/// Kafka's sign for a number of bytes that is not known.
const UNKNOWN_BYTES: i64 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let mut result = DescribeLogDirsResult {
        log_dir: cx.broker.storage.log_dir().into(),
        ..DescribeLogDirsResult::default()
    };
    match describe(&cx.broker, request.topics).await {
        Ok(described) => result.topics = described,
        Err(error) => result.error_code = error.into(),
    }
    Response { results: vec![result], ..Response::default() }
}

/// All topics, or those of the ones that are asked for that there are.
async fn describe(
    broker: &Broker,
    asked: Option<Vec<DescribableLogDirTopic>>,
) -> Result<Vec<DescribeLogDirsTopic>, StoreError> {
    let topics = broker.topics();
    let mut described = Vec::new();
    match asked {
        None => {
            for topic in topics.iter() {
                described.push(describe_topic(broker, topic, 0..topic.partitions).await?);
            }
        }
        Some(asked) => {
            let mut wanted: BTreeMap<Str, BTreeSet<i32>> = BTreeMap::new();
            for topic in asked {
                wanted.entry(topic.topic).or_default().extend(topic.partitions);
            }
            for (name, indexes) in wanted {
                let Some(topic) = topics.by_name(&name) else { continue };
                described.push(describe_topic(broker, topic, indexes).await?);
            }
        }
    }
    described.retain(|topic| !topic.partitions.is_empty());
    Ok(described)
}

/// Those of the partitions that there are.
async fn describe_topic(
    broker: &Broker,
    topic: &Topic,
    indexes: impl IntoIterator<Item = i32>,
) -> Result<DescribeLogDirsTopic, StoreError> {
    let mut partitions = Vec::new();
    for id in indexes.into_iter().filter_map(|index| topic.partition(index)) {
        // There may be very many.
        consume_budget().await;
        let layout = match broker.storage.layout(id) {
            // It was just deleted.
            Err(StoreError::UnknownPartition) => continue,
            layout => layout?,
        };
        partitions.push(DescribeLogDirsPartition {
            partition_index: id.partition,
            partition_size: layout.map_or(UNKNOWN_BYTES, |layout| layout.bytes() as i64),
            ..DescribeLogDirsPartition::default()
        });
    }
    Ok(DescribeLogDirsTopic { name: topic.name.clone(), partitions })
}
