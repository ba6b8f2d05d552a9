//! Metadata: which topics there are, and who leads their partitions: this broker, or the one
//! that took over from it.
//!
//! Unlike Kafka, which answers UNKNOWN_TOPIC_OR_PARTITION while it still creates a topic, the
//! answer waits for the topic that it creates.
//!
//! Version notes: in version 0 an empty list means all topics, later null does. Topics go by id
//! from version 12 on; if one goes by id, those by name are left out, as Kafka does.

use super::topics::{check_free, check_name, is_internal};
use super::{Broker, CLUSTER_OPERATIONS, Context, TOPIC_OPERATIONS};
use crate::config::topic::Configs;
use crate::messages::metadata::{
    MetadataRequestTopic, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use crate::store::topics::Topic;
use std::collections::HashSet;
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
    let may_create = may_create && cx.broker.config.auto_create_topics_enable;
    let mut topics = cx.broker.topics();
    let mut seen = HashSet::new();
    let mut answers = Vec::with_capacity(asked.len());
    for name in asked.iter().map(|topic| topic.name.clone().unwrap_or_default()) {
        if !seen.insert(name.clone()) {
            continue;
        }
        let mut found = topics.by_name(&name).cloned().ok_or(ErrorCode::UnknownTopicOrPartition);
        if found.is_err() {
            found = match check_name(&name) {
                Ok(()) if may_create && !is_internal(&name) => create(&cx.broker, &name).await,
                Ok(()) => found,
                Err(refusal) => Err(refusal.code),
            };
            topics = cx.broker.topics();
        }
        answers.push(match found {
            Ok(topic) => describe(&cx.broker, &topic),
            Err(error_code) => unknown(name, error_code),
        });
    }
    answers
}

/// Creates a topic that a client wants to use, unless somebody else just did.
async fn create(broker: &Arc<Broker>, name: &Str) -> Result<Arc<Topic>, ErrorCode> {
    let (owner, name) = (broker.clone(), name.clone());
    let change = async move {
        if let Some(topic) = owner.topics().by_name(&name) {
            return Ok(topic.clone());
        }
        let partitions = owner.config.num_partitions;
        check_free(&owner.topics(), &name)?;
        owner.check_room(partitions)?;
        owner.create_topic(&name, partitions, Configs::new()).await.map(Arc::new)
    };
    let within = Duration::from_millis(broker.config.host_timeout_ms.unsigned_abs());
    broker.change_topics(within, change).await.flatten().map_err(|refusal| refusal.code)
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
        replica_nodes: vec![leader],
        isr_nodes: vec![leader],
        ..MetadataResponsePartition::default()
    };
    MetadataResponseTopic {
        name: Some(topic.name.as_str().into()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: (0..topic.partitions).map(partition).collect(),
        ..MetadataResponseTopic::default()
    }
}
