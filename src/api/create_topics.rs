//! CreateTopics.
//!
//! A config that Kelp would ignore is refused, see [`crate::config::topic`]. The replicas of a
//! partition are the host's affair, so there is one of each, as on a Kafka of one broker.

use super::topics::{Existing, MAX_PARTITIONS_PER_REQUEST, Refusal, check_name, check_replicas};
use super::{Broker, Context};
use crate::config::topic::{self, Configs, in_force};
use crate::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfigs, CreatableTopicResult,
    Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// In a request, these mean "the broker's default".
const DEFAULT_PARTITIONS: i32 = -1;
const DEFAULT_REPLICATION: i16 = -1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let within = Duration::from_millis(request.timeout_ms.try_into().unwrap_or(0));
    let names: Vec<_> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    let work = create(cx.broker.clone(), request);
    let topics = match cx.broker.change_topics(within, work).await {
        Ok(topics) => topics,
        Err(refusal) => names.into_iter().map(|name| refused(name, refusal.clone())).collect(),
    };
    Response { topics, ..Response::default() }
}

async fn create(broker: Arc<Broker>, request: Request) -> Vec<CreatableTopicResult> {
    let mut count = BTreeMap::new();
    request.topics.iter().for_each(|topic| *count.entry(topic.name.clone()).or_insert(0) += 1);
    // A topic that asks for none is work too.
    let partitions = |topic| i64::from(partitions_of(&broker, topic).max(1));
    let too_many = request.topics.iter().map(partitions).sum::<i64>() > MAX_PARTITIONS_PER_REQUEST;
    let mut existing = Existing::new(&broker);

    let mut results = Vec::with_capacity(count.len());
    for topic in request.topics {
        let name = topic.name.clone();
        let outcome = match count.remove(&name) {
            // A name that stands there twice is answered once.
            None => continue,
            Some(1) if too_many => Err(Refusal::new(
                ErrorCode::PolicyViolation,
                "Excessively large number of partitions per request.",
            )),
            Some(1) => create_one(&broker, &mut existing, topic, request.validate_only).await,
            Some(_) => Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.")),
        };
        results.push(outcome.unwrap_or_else(|refusal| refused(name, refusal)));
    }
    results
}

async fn create_one(
    broker: &Broker,
    existing: &mut Existing,
    asked: CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refusal> {
    check_name(&asked.name)?;
    existing.check_free(&asked.name)?;
    let configs = read_configs(broker, &asked)?;
    if asked.assignments.is_empty() {
        check_counts(broker, &asked)?;
    } else {
        check_assignments(broker, &asked)?;
    }
    let partitions = partitions_of(broker, &asked);
    existing.make_room(partitions)?;

    let described = describe(broker, &configs);
    let topic_id = match validate_only {
        // As Kafka, which makes an id before it knows that it will not be used.
        true => Uuid::random(),
        false => broker.create_topic(&asked.name, partitions, configs).await?.id,
    };
    Ok(CreatableTopicResult {
        error_message: None,
        name: asked.name,
        topic_id,
        num_partitions: partitions,
        replication_factor: 1,
        configs: Some(described),
        ..CreatableTopicResult::default()
    })
}

fn refused(name: Str, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: refusal.code,
        error_message: refusal.message(),
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}

/// How many partitions the topic is to have.
fn partitions_of(broker: &Broker, asked: &CreatableTopic) -> i32 {
    match asked.num_partitions {
        _ if !asked.assignments.is_empty() => asked.assignments.len() as i32,
        DEFAULT_PARTITIONS => broker.config.num_partitions,
        count => count.max(0),
    }
}

fn read_configs(broker: &Broker, asked: &CreatableTopic) -> Result<Configs, Refusal> {
    let configs = asked.configs.iter().map(|config| (&*config.name, config.value.as_deref()));
    topic::accept(configs, &broker.settings.now())
        .map_err(|e| Refusal::new(ErrorCode::InvalidConfig, e.to_string()))
}

fn check_counts(broker: &Broker, asked: &CreatableTopic) -> Result<(), Refusal> {
    if asked.num_partitions != DEFAULT_PARTITIONS && asked.num_partitions <= 0 {
        return Err(Refusal::new(
            ErrorCode::InvalidPartitions,
            "Number of partitions was set to an invalid non-positive value.",
        ));
    }
    let refused = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
    let replicas = match asked.replication_factor {
        DEFAULT_REPLICATION => broker.config.default_replication_factor,
        factor => i32::from(factor),
    };
    match replicas {
        1 => Ok(()),
        ..=0 => refused(
            "Replication factor must be larger than 0, or -1 to use the default value.".to_string(),
        ),
        more => refused(format!(
            "Unable to replicate the partition {more} time(s): The target replication factor of \
             {more} cannot be reached because only 1 broker(s) are registered."
        )),
    }
}

/// Checks replicas that the client placed by hand: all of them on this broker.
fn check_assignments(broker: &Broker, asked: &CreatableTopic) -> Result<(), Refusal> {
    let refused = |what: &str| {
        let message =
            format!("A manual partition assignment was specified, but {what} was not set to -1.");
        Err(Refusal::new(ErrorCode::InvalidRequest, message))
    };
    if asked.replication_factor != DEFAULT_REPLICATION {
        return refused("replication factor");
    }
    if asked.num_partitions != DEFAULT_PARTITIONS {
        return refused("numPartitions");
    }
    let mut seen = vec![false; asked.assignments.len()];
    for assignment in &asked.assignments {
        check_assignment(broker, assignment, &mut seen)
            .map_err(|message| Refusal::new(ErrorCode::InvalidReplicaAssignment, message))?;
    }
    Ok(())
}

fn check_assignment(
    broker: &Broker,
    assignment: &CreatableReplicaAssignment,
    seen: &mut [bool],
) -> Result<(), String> {
    let index = assignment.partition_index;
    let place = usize::try_from(index).ok().and_then(|index| seen.get_mut(index));
    match place {
        None => return Err("partitions should be a consecutive 0-based integer sequence".into()),
        Some(true) => {
            return Err(format!(
                "Found multiple manual partition assignments for partition {index}"
            ));
        }
        Some(place) => *place = true,
    }
    check_replicas(broker, &assignment.broker_ids)
}

fn describe(broker: &Broker, configs: &Configs) -> Vec<CreatableTopicConfigs> {
    let config = broker.settings.now();
    let described = in_force(configs, &config).map(|config| CreatableTopicConfigs {
        name: config.config.name.into(),
        value: Some(config.value.into()),
        read_only: false,
        config_source: config.source as i8,
        is_sensitive: false,
    });
    described.collect()
}
