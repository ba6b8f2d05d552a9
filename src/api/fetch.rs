//! Fetch: reads batches, at once or when there are enough of them.
//!
//! Versions 0–3 are of clients that know message sets only, so what was read is converted (KIP-283).
//! A set may begin before the offset that was asked for: clients leave out what they did not ask for.
//!
//! A request in a session is made one for all partitions of that first, and its answer loses what the
//! client knows: see [`super::fetch_sessions`].
//!
//! Source: KIP-74, KIP-227, KIP-320, KIP-516; `KafkaApis.handleFetchRequest` of Apache Kafka 4.4, for
//! message sets `LazyDownConversionRecords` of 3.9.

use super::fetch_sessions::Turn;
use super::successor::Successor;
use super::{Broker, Context, Reply};
use crate::config::topic::text;
use crate::log::epochs::EpochEnd;
use crate::log::fetch::{Fetch, Position};
use crate::messages::fetch::{
    EpochEndOffset, FetchPartition, FetchTopic, FetchableTopicResponse, LeaderIdAndEpoch,
    NodeEndpoint, PartitionData, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Records;
use crate::record::batch::Batches;
use crate::record::convert::to_message_set;
use crate::store::topics::{Topic, Topics};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The last version of clients that ask for their partitions in the same order each time. If only
/// the first batch came whole, others could stay behind it for ever (KIP-74).
const LAST_VERSION_OF_ONE_ORDER: i16 = 2;

/// The first version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;

/// The first version of clients that know zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 10;

/// Up to this version, clients do not know KAFKA_STORAGE_ERROR.
const LAST_VERSION_WITHOUT_STORAGE_ERROR: i16 = 5;

pub async fn handle(cx: &Context, mut request: Request) -> Reply<Response> {
    let uses_topic_ids = cx.api_version >= FIRST_TOPIC_ID_VERSION;
    let turn = match cx.broker.fetch_sessions.begin(&mut request, uses_topic_ids, Instant::now()) {
        Ok(turn) => turn,
        Err(error_code) => return Reply::Ready(Response { error_code, ..Default::default() }),
    };
    let mut answer = Answer {
        turn,
        version: cx.api_version,
        isolation: Isolation::from_level(request.isolation_level),
        is_follower: request.replica_id.max(request.replica_state.replica_id) >= 0,
        response: Response::default(),
        fetch: Fetch {
            positions: Vec::new(),
            max_bytes: request.max_bytes.clamp(0, cx.broker.config.fetch_max_bytes) as usize,
            min_bytes: request.min_bytes.max(0) as usize,
            max_wait: Duration::from_millis(request.max_wait_ms.max(0) as u64),
            is_one_of_each: cx.api_version <= LAST_VERSION_OF_ONE_ORDER,
            share: cx.broker.log.reads.share(),
        },
    };
    let topics = cx.broker.storage.topics();
    for topic in request.topics {
        answer.add_topic(cx, &topics, topic).await;
    }
    if answer.fetch.read().await {
        answer.convert(&cx.broker).await;
        return Reply::Ready(answer.finish(&cx.broker, &topics));
    }
    let broker = cx.broker.clone();
    Reply::Deferred(Box::pin(async move {
        answer.fetch.wait(&broker.log).await;
        answer.convert(&broker).await;
        answer.finish(&broker, &topics)
    }))
}

/// The magic of the messages that clients of this version know, if they know no batches.
fn message_magic(version: i16) -> Option<i8> {
    match version {
        0 | 1 => Some(0),
        2 | 3 => Some(1),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Isolation {
    ReadUncommitted,
    ReadCommitted,
}

impl Isolation {
    /// Kafka has no error code of its own for a level that there isn't.
    fn from_level(level: i8) -> Result<Self, ErrorCode> {
        match level {
            0 => Ok(Self::ReadUncommitted),
            1 => Ok(Self::ReadCommitted),
            _ => Err(ErrorCode::UnknownServerError),
        }
    }
}

/// The answer to a request: partitions without an error are those of the fetch, in its order.
struct Answer {
    turn: Turn,
    version: i16,
    isolation: Result<Isolation, ErrorCode>,
    is_follower: bool,
    response: Response,
    fetch: Fetch,
}

impl Answer {
    async fn add_topic(&mut self, cx: &Context, topics: &Topics, wanted: FetchTopic) {
        let topic = if self.version >= FIRST_TOPIC_ID_VERSION {
            topics.by_id(wanted.topic_id).ok_or(ErrorCode::UnknownTopicId)
        } else {
            topics.by_name(&wanted.topic).ok_or(ErrorCode::UnknownTopicOrPartition)
        };
        let mut response = FetchableTopicResponse {
            topic: wanted.topic,
            topic_id: wanted.topic_id,
            partitions: Vec::with_capacity(wanted.partitions.len()),
        };
        self.fetch.positions.reserve(wanted.partitions.len());
        for partition in wanted.partitions {
            let position = self.position(cx, topic, &partition).await;
            response.partitions.push(PartitionData {
                partition_index: partition.partition,
                error_code: position.as_ref().err().copied().unwrap_or_default(),
                high_watermark: -1,
                aborted_transactions: Some(Vec::new()),
                records: Some(Records::default()),
                ..Default::default()
            });
            self.fetch.positions.extend(position);
        }
        self.response.responses.push(response);
    }

    async fn position(
        &self,
        cx: &Context,
        topic: Result<&Arc<Topic>, ErrorCode>,
        wanted: &FetchPartition,
    ) -> Result<Position, ErrorCode> {
        self.isolation?;
        let topic = topic?;
        let id = topic.partition(wanted.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        // As Kafka, which looks into no batch: if its producer chose zstd, not the topic, it goes
        // to clients as it is.
        if self.version < FIRST_ZSTD_VERSION
            && text("compression.type", &topic.configs, &cx.broker.settings.now()) == "zstd"
        {
            return Err(ErrorCode::UnsupportedCompressionType);
        }
        if self.is_follower {
            // Nobody replicates from this broker: the store keeps the data safe.
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let partition = cx.broker.log.partition(id).await.map_err(ErrorCode::from)?;
        let max_bytes = wanted.partition_max_bytes.max(0) as usize;
        let epoch = wanted.current_leader_epoch;
        Ok(Position {
            last_fetched_epoch: wanted.last_fetched_epoch,
            ..Position::new(partition, wanted.fetch_offset, max_bytes, epoch)
        })
    }

    /// Makes message sets of what was read, for clients that want these. They may come to more than
    /// the batches did, so the answer's limit is kept anew.
    async fn convert(&mut self, broker: &Broker) {
        let Some(magic) = message_magic(self.version) else { return };
        let mut left = self.fetch.max_bytes;
        for position in &mut self.fetch.positions {
            let Ok(found) = &mut position.found else { continue };
            let batches = std::mem::take(&mut found.records);
            if left == 0 || batches.is_empty() {
                continue;
            }
            let limit = position.max_bytes.min(left);
            let sets = converted(broker, position, batches, magic, limit).await;
            match (sets, &mut position.found) {
                (Ok(sets), Ok(found)) => {
                    left = left.saturating_sub(sets.iter().map(Bytes::len).sum());
                    found.records = sets;
                }
                (Err(code), found) => *found = Err(code),
                (Ok(_), Err(_)) => unreachable!("it was found"),
            }
        }
    }

    fn finish(mut self, broker: &Broker, topics: &Topics) -> Response {
        let mut positions = std::mem::take(&mut self.fetch.positions).into_iter();
        let (mut is_lost, mut bytes) = (false, 0);
        for partition in self.response.responses.iter_mut().flat_map(|t| &mut t.partitions) {
            if !partition.error_code.is_error() {
                let Some(position) = positions.next() else { break };
                fill(partition, position, self.isolation == Ok(Isolation::ReadCommitted));
                bytes += partition.records.as_ref().map_or(0, Records::len);
            }
            if self.version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
                && partition.error_code == ErrorCode::KafkaStorageError
            {
                partition.error_code = ErrorCode::NotLeaderOrFollower;
            }
            is_lost |= partition.error_code == ErrorCode::NotLeaderOrFollower;
        }
        broker.metrics.log.bytes_out.add(bytes as u64);
        if is_lost && let Some(successor) = Successor::of(broker) {
            self.name_leader(&successor, topics);
        }
        broker.fetch_sessions.finish(self.turn, &mut self.response, Instant::now());
        self.response
    }

    #[cold]
    fn name_leader(&mut self, successor: &Successor, topics: &Topics) {
        for topic in &mut self.response.responses {
            let known = topics.by_id(topic.topic_id).or_else(|| topics.by_name(&topic.topic));
            for partition in &mut topic.partitions {
                let id = known.and_then(|topic| topic.partition(partition.partition_index));
                let leader_epoch = id.and_then(|id| successor.leader_epoch(id));
                if let (ErrorCode::NotLeaderOrFollower, Some(leader_epoch)) =
                    (partition.error_code, leader_epoch)
                {
                    let leader_id = successor.node_id;
                    partition.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
                }
            }
        }
        self.response.node_endpoints.push(NodeEndpoint {
            node_id: successor.node_id,
            host: successor.address.host.as_str().into(),
            port: successor.address.port.into(),
            rack: None,
        });
    }
}

/// Message sets of what was read at a position. If that is nothing to an old client (control batches,
/// and what compaction emptied), they are of what is behind it: a client that gets nothing would ask
/// for the same for ever.
async fn converted(
    broker: &Broker,
    position: &Position,
    mut batches: Vec<Bytes>,
    magic: i8,
    limit: usize,
) -> Result<Vec<Bytes>, ErrorCode> {
    let offset = position.offset;
    loop {
        let turn = broker.turns.next().await;
        let sets = turn.take(move || message_sets(batches, magic, offset, limit));
        let (sets, next_offset) = sets.await??;
        let Some(next_offset) = next_offset.filter(|_| sets.is_empty()) else { return Ok(sets) };
        batches = position.read_behind(next_offset).await?;
    }
}

/// What a client that asked for `offset` gets of these batches: the first that has something for it
/// whole, however much longer that becomes, and more up to the limit (KIP-283). Besides, where the
/// last one ends that was looked at, if there was one.
fn message_sets(
    batches: Vec<Bytes>,
    magic: i8,
    offset: i64,
    limit: usize,
) -> Result<(Vec<Bytes>, Option<i64>), ErrorCode> {
    let (mut sets, mut bytes, mut next_offset) = (Vec::new(), 0, None);
    for batch in Batches::new(batches) {
        if bytes > 0 && bytes + batch.len() > limit {
            break;
        }
        let set = match to_message_set(&batch, magic, offset) {
            Ok(set) => set,
            Err(code) if sets.is_empty() => return Err(code),
            // It is told when it comes back for this batch.
            Err(_) => break,
        };
        next_offset = Some(batch.header.next_offset());
        if !set.is_empty() {
            bytes += set.len();
            sets.push(Bytes::from(set));
        }
    }
    Ok((sets, next_offset))
}

/// Puts what was found at a position into the answer.
fn fill(partition: &mut PartitionData, position: Position, is_committed: bool) {
    partition.aborted_transactions = None;
    match position.found {
        Err(code) => partition.error_code = code,
        Ok(found) => {
            partition.high_watermark = found.bounds.high_watermark;
            partition.last_stable_offset = found.bounds.last_stable_offset;
            partition.log_start_offset = found.bounds.log_start_offset;
            partition.records = Some(Records(found.records));
            if let Some(EpochEnd { leader_epoch, end_offset }) = found.diverging {
                partition.diverging_epoch = EpochEndOffset { epoch: leader_epoch, end_offset };
            }
            partition.aborted_transactions = is_committed.then(Vec::new);
        }
    }
}
