//! OffsetForLeaderEpoch: tells a client where the records of a leader end, so that it sees whether
//! what it read was undone.
//!
//! Version notes: 0 and 1 do not say which leader epoch the client knows, so it is not checked.
//!
//! Source: KIP-101, KIP-320; `ReplicaManager.lastOffsetForLeaderEpoch` of Apache Kafka 4.4.

use super::{Broker, Context};
use crate::log::epochs::EpochEnd;
use crate::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopic, OffsetForLeaderTopicResult,
    Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::store::topics::Topic;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let mut response = Response::default();
    for topic in request.topics {
        response.topics.push(answer(&cx.broker, topic).await);
    }
    response
}

async fn answer(broker: &Broker, asked: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult {
    let topic = broker.topics().by_name(&asked.topic).cloned();
    let mut partitions = Vec::with_capacity(asked.partitions.len());
    for asked in asked.partitions {
        let found = end(broker, topic.as_deref(), &asked).await;
        let mut result = EpochEndOffset {
            partition: asked.partition,
            error_code: found.err().unwrap_or_default(),
            ..EpochEndOffset::default()
        };
        if let Ok(Some(EpochEnd { leader_epoch, end_offset })) = found {
            (result.leader_epoch, result.end_offset) = (leader_epoch, end_offset);
        }
        partitions.push(result);
    }
    OffsetForLeaderTopicResult { topic: asked.topic, partitions }
}

async fn end(
    broker: &Broker,
    topic: Option<&Topic>,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<EpochEnd>, ErrorCode> {
    let id = topic.and_then(|topic| topic.partition(asked.partition));
    let id = id.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let partition = broker.log.partition(id).await?;
    partition.end_of_epoch(asked.leader_epoch, asked.current_leader_epoch).await
}
