//! CreatePartitions: gives topics more partitions, which are there at once.
//!
//! Groups are not told: their members see new partitions in Metadata and join anew, as with Kafka.

use super::topics::{Existing, MAX_PARTITIONS_PER_REQUEST, Refusal, check_replicas, is_internal};
use super::{Broker, Context};
use crate::messages::create_partitions::{
    CreatePartitionsTopic, CreatePartitionsTopicResult, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::StoreError;
use crate::store::topics::{Topic, TopicChange};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let within = Duration::from_millis(request.timeout_ms.try_into().unwrap_or(0));
    let names: Vec<_> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    let work = create(cx.broker.clone(), request);
    let results = match cx.broker.change_topics(within, work).await {
        Ok(results) => results,
        Err(refusal) => names.into_iter().map(|name| result(name, Err(refusal.clone()))).collect(),
    };
    Response { results, ..Response::default() }
}

async fn create(broker: Arc<Broker>, request: Request) -> Vec<CreatePartitionsTopicResult> {
    let mut count = HashMap::new();
    request.topics.iter().for_each(|topic| *count.entry(topic.name.clone()).or_insert(0) += 1);
    let mut existing = Existing::new(&broker);
    let (once, twice): (Vec<_>, Vec<_>) =
        request.topics.into_iter().partition(|topic| count.get(&topic.name) == Some(&1));

    let mut results = Vec::with_capacity(count.len());
    for topic in twice {
        // A name that stands there twice is answered once.
        if count.remove(&topic.name).is_some() {
            let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
            results.push(result(topic.name, Err(refusal)));
        }
    }
    let too_many = is_too_much(&existing, &once);
    for asked in once {
        let name = asked.name.clone();
        let created = match too_many {
            true => Err(Refusal::new(
                ErrorCode::PolicyViolation,
                "Excessively large number of additional partitions per request.",
            )),
            false => create_some(&broker, &mut existing, &asked, request.validate_only).await,
        };
        results.push(result(name, created));
    }
    results
}

/// Kafka's limit for one request.
fn is_too_much(existing: &Existing, asked: &[CreatePartitionsTopic]) -> bool {
    let more = asked.iter().map(|asked| {
        let now = existing.by_name(&asked.name).map_or(asked.count, |topic| topic.partitions);
        (i64::from(asked.count) - i64::from(now)).max(0)
    });
    more.sum::<i64>() > MAX_PARTITIONS_PER_REQUEST
}

async fn create_some(
    broker: &Broker,
    existing: &mut Existing,
    asked: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<(), Refusal> {
    let topic = existing.by_name(&asked.name).cloned().ok_or_else(unknown)?;
    let more = check_count(&topic, asked.count)?;
    check_assignments(broker, asked, more)?;
    if is_internal(&topic.name) {
        // Kafka's tool refuses this too, its broker does not.
        let message = "Coordinators look for their state by the number of partitions.";
        return Err(Refusal::new(ErrorCode::PolicyViolation, message));
    }
    existing.make_room(more)?;
    if validate_only {
        return Ok(());
    }
    let change = TopicChange { partitions: Some(asked.count), ..TopicChange::default() };
    match broker.storage.alter_topic(topic.id, change).await {
        Ok(()) => {
            tracing::info!(topic = &*topic.name, partitions = asked.count, "created partitions");
            Ok(())
        }
        // Somebody else who shares the metadata was faster.
        Err(StoreError::UnknownPartition) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}

/// How many partitions there are to be more.
fn check_count(topic: &Topic, count: i32) -> Result<i32, Refusal> {
    let now = topic.partitions;
    let message = match count {
        _ if count > now => return Ok(count - now),
        _ if count == now => format!("Topic already has {now} partition(s)."),
        _ => format!(
            "The topic {} currently has {now} partition(s); {count} would not be an increase.",
            topic.name
        ),
    };
    Err(Refusal::new(ErrorCode::InvalidPartitions, message))
}

fn check_assignments(
    broker: &Broker,
    asked: &CreatePartitionsTopic,
    more: i32,
) -> Result<(), Refusal> {
    let refused = |message| Refusal::new(ErrorCode::InvalidReplicaAssignment, message);
    let Some(assignments) = &asked.assignments else { return Ok(()) };
    if assignments.len() as i64 != i64::from(more) {
        let given = assignments.len();
        return Err(refused(format!(
            "Attempted to add {more} additional partition(s), but only {given} assignment(s) were \
             specified."
        )));
    }
    let mut replicas = assignments.iter().map(|assignment| &assignment.broker_ids);
    replicas.try_for_each(|ids| check_replicas(broker, ids).map_err(refused))
}

fn unknown() -> Refusal {
    Refusal::new(ErrorCode::UnknownTopicOrPartition, "")
}

fn result(name: Str, created: Result<(), Refusal>) -> CreatePartitionsTopicResult {
    let (error_code, error_message) = match created {
        Ok(()) => (ErrorCode::None, None),
        Err(refusal) => (refusal.code, refusal.message()),
    };
    CreatePartitionsTopicResult { name, error_code, error_message }
}
