//! DescribeLogDirs: how large partitions are.
//!
//! There is one log directory: where the store has its data. A size is that of the batches as they
//! are stored; of a host with a log of its own it is not known.
//!
//! Source: KIP-113, KIP-827; `ReplicaManager.describeLogDirs` of Apache Kafka 4.4.

use super::{Broker, Context};
use crate::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic, Request, Response,
};
use crate::protocol::wire::Str;
use crate::store::topics::Topic;
use crate::store::{PartitionId, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Kafka's sign for a number of bytes that is not known.
const UNKNOWN_BYTES: i64 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let topics = cx.broker.topics();
    let described = match request.topics {
        None => {
            topics.iter().map(|topic| describe(&cx.broker, topic, 0..topic.partitions)).collect()
        }
        Some(asked) => {
            let mut wanted: BTreeMap<Str, BTreeSet<i32>> = BTreeMap::new();
            for topic in asked {
                wanted.entry(topic.topic).or_default().extend(topic.partitions);
            }
            let known = wanted.into_iter().filter_map(|(name, indexes)| {
                topics.by_name(&name).map(|topic| describe(&cx.broker, topic, indexes))
            });
            known.collect()
        }
    };
    let mut result = DescribeLogDirsResult {
        log_dir: cx.broker.storage.log_dir().into(),
        ..DescribeLogDirsResult::default()
    };
    match described {
        Ok(described) => result.topics = described,
        Err(error) => result.error_code = error.into(),
    }
    result.topics.retain(|topic| !topic.partitions.is_empty());
    Response { results: vec![result], ..Response::default() }
}

/// Those of the partitions that there are.
fn describe(
    broker: &Broker,
    topic: &Topic,
    indexes: impl IntoIterator<Item = i32>,
) -> Result<DescribeLogDirsTopic, StoreError> {
    let known = indexes.into_iter().filter_map(|index| topic.partition(index));
    let partitions = known.map(|id| {
        Ok(DescribeLogDirsPartition {
            partition_index: id.partition,
            partition_size: size(broker, id)?,
            ..DescribeLogDirsPartition::default()
        })
    });
    let partitions = partitions.collect::<Result<_, StoreError>>()?;
    Ok(DescribeLogDirsTopic { name: topic.name.as_str().into(), partitions })
}

fn size(broker: &Broker, id: PartitionId) -> Result<i64, StoreError> {
    let layout = broker.storage.layout(id)?;
    Ok(layout.map_or(UNKNOWN_BYTES, |layout| layout.bytes() as i64))
}
