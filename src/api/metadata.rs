//! Metadata: which topics there are, and who leads their partitions: this broker, or the one
//! that took over from it.
//!
//! Unlike Kafka, which answers UNKNOWN_TOPIC_OR_PARTITION while it still creates a topic, the
//! answer waits for the topic that it creates.
//!
//! Version notes: in version 0 an empty list means all topics, later null does. Topics go by id
//! from version 12 on; if one goes by id, those by name are left out, as Kafka does.

use super::successor::leader_epoch;
use super::topics::{Existing, MAX_PARTITIONS_PER_REQUEST, Refusal, check_name, is_internal};
use super::{Broker, CLUSTER_OPERATIONS, Context, TOPIC_OPERATIONS};
use crate::config::topic::Configs;
use crate::messages::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use crate::store::PartitionId;
use crate::store::topics::Topic;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// From this version on, null means all topics.
const NULL_SINCE: i16 = 1;
/// The first version whose topics can go by id.
const IDS_SINCE: i16 = 12;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let broker = &cx.broker;
    let endpoint = cx.advertised();
    let mut response = Response {
        brokers: vec![MetadataResponseBroker {
            node_id: broker.config.node_id,
            host: endpoint.host.into(),
            port: endpoint.port.into(),
            rack: None,
        }],
        cluster_id: Some(broker.storage.cluster_id().into()),
        controller_id: broker.config.node_id,
        ..Response::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    response.topics = match &request.topics {
        None => all_topics(broker),
        Some(asked) if asked.is_empty() && cx.api_version < NULL_SINCE => all_topics(broker),
        Some(asked) if cx.api_version < IDS_SINCE && asked.iter().any(goes_by_id) => {
            asked.iter().map(refused).collect()
        }
        Some(asked) if asked.iter().any(|topic| topic.topic_id != Uuid::ZERO) => {
            by_id(broker, asked)
        }
        Some(asked) => by_name(cx, asked, request.allow_auto_topic_creation).await,
    };
    if request.include_topic_authorized_operations {
        let known = response.topics.iter_mut().filter(|topic| !topic.error_code.is_error());
        known.for_each(|topic| topic.topic_authorized_operations = TOPIC_OPERATIONS);
    }
    response
}

fn all_topics(broker: &Broker) -> Vec<MetadataResponseTopic> {
    broker.topics().iter().map(|topic| describe(broker, topic)).collect()
}

fn goes_by_id(topic: &MetadataRequestTopic) -> bool {
    topic.name.is_none() || topic.topic_id != Uuid::ZERO
}

/// Versions 10 and 11 have the field for the id, but do not look topics up by it.
fn refused(topic: &MetadataRequestTopic) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::InvalidRequest,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn by_id(broker: &Broker, asked: &[MetadataRequestTopic]) -> Vec<MetadataResponseTopic> {
    let topics = broker.topics();
    let mut seen = HashSet::new();
    let ids = asked.iter().map(|topic| topic.topic_id);
    let ids = ids.filter(|id| *id != Uuid::ZERO && seen.insert(*id));
    let found = ids.map(|id| match topics.by_id(id) {
        Some(topic) => describe(broker, topic),
        None => MetadataResponseTopic {
            error_code: ErrorCode::UnknownTopicId,
            name: None,
            topic_id: id,
            ..MetadataResponseTopic::default()
        },
    });
    found.collect()
}

async fn by_name(
    cx: &Context,
    asked: &[MetadataRequestTopic],
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    let broker = &cx.broker;
    let topics = broker.topics();
    let mut seen = HashSet::new();
    let names = asked.iter().map(|topic| topic.name.clone().unwrap_or_default());
    let names: Vec<Str> = names.filter(|name| seen.insert(name.clone())).collect();
    let mut created = HashMap::new();
    if may_create && broker.config.auto_create_topics_enable {
        let missing = names.iter().filter(|name| topics.by_name(name).is_none());
        // Coordinators create their own topics, in their own way.
        let missing = missing.filter(|name| check_name(name).is_ok() && !is_internal(name));
        created = create(broker, missing.cloned().collect()).await;
    }
    let mut answers = Vec::with_capacity(names.len());
    for name in names {
        let found = match topics.by_name(&name).cloned() {
            Some(topic) => Ok(topic),
            None => created.remove(&name).unwrap_or_else(|| Err(unknown_code(&name))),
        };
        answers.push(match found {
            Ok(topic) => describe(broker, &topic),
            Err(error_code) => unknown(name, error_code),
        });
    }
    answers
}

fn unknown_code(name: &str) -> ErrorCode {
    check_name(name).err().map_or(ErrorCode::UnknownTopicOrPartition, |refusal| refusal.code)
}

type Created = HashMap<Str, Result<Arc<Topic>, ErrorCode>>;

/// Creates topics that a client wants to use, unless somebody else just did.
async fn create(broker: &Arc<Broker>, names: Vec<Str>) -> Created {
    let refused = |code| names.iter().map(|name| (name.clone(), Err(code))).collect();
    let partitions = names.len() as i64 * i64::from(broker.config.num_partitions);
    if names.is_empty() || partitions > MAX_PARTITIONS_PER_REQUEST {
        return refused(ErrorCode::PolicyViolation);
    }
    let within = Duration::from_millis(broker.config.host_timeout_ms.unsigned_abs());
    let (owner, work) = (broker.clone(), names.clone());
    let change = async move {
        let mut existing = Existing::new(&owner);
        let mut created = Created::new();
        for name in work {
            let topic = create_one(&owner, &mut existing, &name).await;
            created.insert(name, topic.map_err(|refusal| refusal.code));
        }
        created
    };
    match broker.change_topics(within, change).await {
        Ok(created) => created,
        Err(refusal) => refused(refusal.code),
    }
}

async fn create_one(
    broker: &Broker,
    existing: &mut Existing,
    name: &str,
) -> Result<Arc<Topic>, Refusal> {
    if let Some(topic) = existing.by_name(name) {
        return Ok(topic.clone());
    }
    let partitions = broker.config.num_partitions;
    existing.check_free(name)?;
    existing.make_room(partitions)?;
    broker.create_topic(name, partitions, Configs::new()).await.map(Arc::new)
}

fn unknown(name: Str, error_code: ErrorCode) -> MetadataResponseTopic {
    let is_internal = is_internal(&name);
    MetadataResponseTopic {
        error_code,
        name: Some(name),
        is_internal,
        ..MetadataResponseTopic::default()
    }
}

fn describe(broker: &Broker, topic: &Topic) -> MetadataResponseTopic {
    let leader = broker.config.node_id;
    let partition = |index| MetadataResponsePartition {
        partition_index: index,
        leader_id: leader,
        leader_epoch: leader_epoch(broker, PartitionId { topic: topic.id, partition: index }),
        replica_nodes: vec![leader],
        isr_nodes: vec![leader],
        ..MetadataResponsePartition::default()
    };
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: (0..topic.partitions).map(partition).collect(),
        ..MetadataResponseTopic::default()
    }
}
