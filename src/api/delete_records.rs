//! DeleteRecords: moves the starts of partitions' logs forward.
//!
//! Source: KIP-107; `ReplicaManager.deleteRecords` and `Partition.deleteRecordsOnLeader` of Apache
//! Kafka 4.4.

use super::topics::is_internal;
use super::{Broker, Context};
use crate::config::definition::list;
use crate::config::topic::text;
use crate::log::partition::NO_LEADER_EPOCH;
use crate::messages::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::PartitionId;
use crate::store::topics::Topic;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// In a request, this offset stands for the high watermark.
const HIGH_WATERMARK: i64 = -1;

/// The low watermark of a partition of which nothing was deleted.
const NO_LOW_WATERMARK: i64 = -1;

/// Kafka's timeout is for its followers, so clients may send zero and still be answered. Here it is
/// for the store, which gets at least this long.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

pub async fn handle(cx: &Context, request: Request) -> Response {
    let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64).max(MIN_TIMEOUT);
    let deadline = Instant::now() + timeout;
    // A partition that is named more than once gets the last of its offsets, as in Kafka.
    let mut wanted: BTreeMap<Str, BTreeMap<i32, i64>> = BTreeMap::new();
    for topic in request.topics {
        let offsets = topic.partitions.iter().map(|p| (p.partition_index, p.offset));
        wanted.entry(topic.name).or_default().extend(offsets);
    }
    wanted.retain(|_, offsets| !offsets.is_empty());
    let topics = wanted.into_iter().map(|(name, offsets)| begin(&cx.broker, name, offsets));
    // All at once: the store takes them together.
    let under_way: Vec<_> = topics.collect();
    let mut response = Response::default();
    for (name, partitions) in under_way {
        let mut results = Vec::with_capacity(partitions.len());
        for (partition_index, deletion) in partitions {
            let deleted = match deletion {
                Ok(deletion) => outcome(deletion, deadline).await,
                Err(code) => Err(code),
            };
            results.push(DeleteRecordsPartitionResult {
                partition_index,
                low_watermark: deleted.unwrap_or(NO_LOW_WATERMARK),
                error_code: deleted.err().unwrap_or_default(),
            });
        }
        response.topics.push(DeleteRecordsTopicResult { name, partitions: results });
    }
    response
}

/// The work on one partition. It goes on when nobody waits for it any more: what the store was told
/// must become known here.
type Deletion = JoinHandle<Result<i64, ErrorCode>>;
type Begun = Result<Deletion, ErrorCode>;

fn begin(broker: &Arc<Broker>, name: Str, offsets: BTreeMap<i32, i64>) -> (Str, Vec<(i32, Begun)>) {
    let topics = broker.topics();
    let topic = topics.by_name(&name);
    let begun = offsets.into_iter().map(|(index, offset)| {
        let id = topic.and_then(|topic| topic.partition(index));
        let deletion = match (topic, id) {
            (Some(topic), Some(id)) => {
                may_delete(broker, topic).map(|()| tokio::spawn(delete(broker.clone(), id, offset)))
            }
            _ => Err(ErrorCode::UnknownTopicOrPartition),
        };
        (index, deletion)
    });
    let begun = begun.collect();
    (name, begun)
}

/// A topic that is only compacted keeps the last record of each key, whatever its offset.
fn may_delete(broker: &Broker, topic: &Topic) -> Result<(), ErrorCode> {
    let policy = text("cleanup.policy", &topic.configs, &broker.settings.now());
    if is_internal(&topic.name) {
        Err(ErrorCode::InvalidTopicException)
    } else if list(&policy).eq(["compact"]) {
        Err(ErrorCode::PolicyViolation)
    } else {
        Ok(())
    }
}

async fn delete(broker: Arc<Broker>, id: PartitionId, offset: i64) -> Result<i64, ErrorCode> {
    let partition = broker.log.partition(id).await?;
    let offset = match offset {
        HIGH_WATERMARK => partition.bounds(NO_LEADER_EPOCH)?.high_watermark,
        offset => offset,
    };
    partition.delete_before(offset).await
}

async fn outcome(deletion: Deletion, deadline: Instant) -> Result<i64, ErrorCode> {
    match timeout_at(deadline, deletion).await {
        Ok(Ok(deleted)) => deleted,
        Ok(Err(panic)) => {
            tracing::error!(%panic, "a deletion of records ended early");
            Err(ErrorCode::UnknownServerError)
        }
        Err(_) => Err(ErrorCode::RequestTimedOut),
    }
}
