//! DescribeProducers: the idempotent producers that a partition knows.
//!
//! Source: KIP-664; `ReplicaManager.activeProducerState` of Apache Kafka 4.4.

use super::topics::check_name;
use super::{Broker, Context};
use crate::messages::describe_producers::{
    PartitionResponse, ProducerState, Request, Response, TopicRequest, TopicResponse,
};
use crate::protocol::error_code::ErrorCode;
use crate::store::PartitionId;
use crate::store::producers::Producer;

/// No coordinator has written a marker for the producer.
const NO_COORDINATOR_EPOCH: i32 = -1;

const NOT_HOSTED: &str = "This server does not host this topic-partition.";

pub async fn handle(cx: &Context, request: Request) -> Response {
    let mut response = Response::default();
    for topic in request.topics {
        response.topics.push(describe(&cx.broker, topic).await);
    }
    response
}

async fn describe(broker: &Broker, asked: TopicRequest) -> TopicResponse {
    let topic = broker.topics().by_name(&asked.name).cloned();
    // A message is only given for the topic, as in Kafka.
    let refusal = match (&topic, check_name(&asked.name)) {
        (Some(_), _) => None,
        (None, Err(refusal)) => Some((refusal.code, refusal.message())),
        (None, Ok(())) => Some((ErrorCode::UnknownTopicOrPartition, Some(NOT_HOSTED.into()))),
    };
    let mut partitions = Vec::with_capacity(asked.partition_indexes.len());
    for partition_index in asked.partition_indexes {
        let mut answer = PartitionResponse { partition_index, ..PartitionResponse::default() };
        if let Some((code, message)) = &refusal {
            (answer.error_code, answer.error_message) = (*code, message.clone());
        } else {
            let id = topic.as_ref().and_then(|topic| topic.partition(partition_index));
            match producers(broker, id).await {
                Ok(producers) => answer.active_producers = producers,
                Err(code) => answer.error_code = code,
            }
        }
        partitions.push(answer);
    }
    TopicResponse { name: asked.name, partitions }
}

async fn producers(
    broker: &Broker,
    id: Option<PartitionId>,
) -> Result<Vec<ProducerState>, ErrorCode> {
    let id = id.ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let partition = broker.log.partition(id).await?;
    Ok(partition.producers(state)?)
}

fn state(producer_id: i64, producer: &Producer) -> ProducerState {
    let last = producer.batches.back();
    ProducerState {
        producer_id,
        producer_epoch: producer.epoch.into(),
        last_sequence: last.map_or(-1, |batch| batch.last_sequence),
        last_timestamp: last.map_or(-1, |batch| batch.max_timestamp),
        coordinator_epoch: NO_COORDINATOR_EPOCH,
        current_txn_start_offset: -1,
    }
}
