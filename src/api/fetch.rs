//! Fetch: reads batches, at once or when there are enough of them.
//!
//! No fetch session is opened yet: session id 0 tells the client to ask for all its partitions
//! each time (KIP-227), and a request in a session is told that there is none.
//!
//! Source: KIP-74, KIP-227, KIP-320, KIP-516; `KafkaApis.handleFetchRequest` of Apache Kafka 4.4.

use super::successor::Successor;
use super::{Broker, Context, Reply};
use crate::log::fetch::{Fetch, Position};
use crate::messages::fetch::{
    FetchPartition, FetchTopic, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Records;
use crate::store::topics::{Topic, Topics};
use std::sync::Arc;
use std::time::Duration;

/// The first version that reads record batches; older ones want message sets.
const FIRST_BATCH_VERSION: i16 = 4;

/// The first version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;

/// Up to this version, clients do not know KAFKA_STORAGE_ERROR.
const LAST_VERSION_WITHOUT_STORAGE_ERROR: i16 = 5;

/// The session epochs of requests outside of a session: one that would open one, one that doesn't.
const SESSIONLESS_EPOCHS: [i32; 2] = [0, -1];

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    if !SESSIONLESS_EPOCHS.contains(&request.session_epoch) {
        let error_code = ErrorCode::FetchSessionIdNotFound;
        return Reply::Ready(Response { error_code, ..Default::default() });
    }
    let mut answer = Answer {
        version: cx.api_version,
        isolation: Isolation::from_level(request.isolation_level),
        is_follower: request.replica_id.max(request.replica_state.replica_id) >= 0,
        response: Response::default(),
        fetch: Fetch {
            positions: Vec::new(),
            max_bytes: request.max_bytes.clamp(0, cx.broker.config.fetch_max_bytes) as usize,
            min_bytes: request.min_bytes.max(0) as usize,
            max_wait: Duration::from_millis(request.max_wait_ms.max(0) as u64),
        },
    };
    let topics = cx.broker.storage.topics();
    for topic in request.topics {
        answer.add_topic(cx, &topics, topic).await;
    }
    if answer.fetch.read().await {
        return Reply::Ready(answer.finish(&cx.broker, &topics));
    }
    let broker = cx.broker.clone();
    Reply::Deferred(Box::pin(async move {
        answer.fetch.wait(&broker.log).await;
        answer.finish(&broker, &topics)
    }))
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
        let id = topic?.partition(wanted.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        if self.version < FIRST_BATCH_VERSION {
            return Err(ErrorCode::UnsupportedVersion);
        }
        if self.is_follower {
            // Nobody replicates from this broker: the store keeps the data safe.
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        let partition = cx.broker.log.partition(id).await.map_err(ErrorCode::from)?;
        let max_bytes = wanted.partition_max_bytes.max(0) as usize;
        let epoch = wanted.current_leader_epoch;
        Ok(Position::new(partition, wanted.fetch_offset, max_bytes, epoch))
    }

    fn finish(mut self, broker: &Broker, topics: &Topics) -> Response {
        let mut positions = std::mem::take(&mut self.fetch.positions).into_iter();
        let mut is_lost = false;
        for partition in self.response.responses.iter_mut().flat_map(|t| &mut t.partitions) {
            if !partition.error_code.is_error() {
                let Some(position) = positions.next() else { break };
                fill(partition, position, self.isolation == Ok(Isolation::ReadCommitted));
            }
            if self.version <= LAST_VERSION_WITHOUT_STORAGE_ERROR
                && partition.error_code == ErrorCode::KafkaStorageError
            {
                partition.error_code = ErrorCode::NotLeaderOrFollower;
            }
            is_lost |= partition.error_code == ErrorCode::NotLeaderOrFollower;
        }
        if is_lost && let Some(successor) = Successor::of(broker) {
            self.name_leader(&successor, topics);
        }
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
            partition.aborted_transactions = is_committed.then(Vec::new);
        }
    }
}
