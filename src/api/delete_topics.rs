//! DeleteTopics.
//!
//! Version notes: topics go by name or by id from version 6 on.

use super::topics::Refusal;
use super::{Broker, Context};
use crate::messages::delete_topics::{DeletableTopicResult, DeleteTopicState, Request, Response};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use crate::store::StoreError;
use crate::store::topics::{Topic, Topics};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

const IDS_SINCE: i16 = 6;

/// The first version that has a code for "this broker deletes no topics".
const DELETION_DISABLED_SINCE: i16 = 3;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let within = Duration::from_millis(request.timeout_ms.try_into().unwrap_or(0));
    let asked = match cx.api_version {
        IDS_SINCE.. => request.topics,
        _ => request.topic_names.into_iter().map(by_name).collect(),
    };
    let responses = if cx.broker.config.delete_topic_enable {
        let work = delete(cx.broker.clone(), asked.clone());
        match cx.broker.change_topics(within, work).await {
            Ok(results) => results,
            Err(refusal) => asked.into_iter().map(|topic| refused(topic, &refusal)).collect(),
        }
    } else {
        let code = match cx.api_version {
            DELETION_DISABLED_SINCE.. => ErrorCode::TopicDeletionDisabled,
            _ => ErrorCode::InvalidRequest,
        };
        let refusal = Refusal::new(code, "Topic deletion is disabled.");
        asked.into_iter().map(|topic| refused(topic, &refusal)).collect()
    };
    Response { responses, ..Response::default() }
}

fn by_name(name: Str) -> DeleteTopicState {
    DeleteTopicState { name: Some(name), topic_id: Uuid::ZERO }
}

fn refused(topic: DeleteTopicState, refusal: &Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: topic.name,
        topic_id: topic.topic_id,
        error_code: refusal.code,
        error_message: refusal.message(),
    }
}

async fn delete(broker: Arc<Broker>, asked: Vec<DeleteTopicState>) -> Vec<DeletableTopicResult> {
    let topics = broker.topics();
    let key = |topic: &DeleteTopicState| (topic.name.clone(), topic.topic_id);
    let mut count = HashMap::new();
    asked.iter().for_each(|topic| *count.entry(key(topic)).or_insert(0) += 1);
    let by_id = |topic: &&DeleteTopicState| topic.name.is_none();
    let ids: HashSet<Uuid> = asked.iter().filter(by_id).map(|topic| topic.topic_id).collect();
    let named = asked.iter().filter_map(|topic| topics.by_name(topic.name.as_deref()?));
    let twice: HashSet<Uuid> = named.map(|topic| topic.id).filter(|id| ids.contains(id)).collect();

    let mut results = Vec::with_capacity(count.len());
    for topic in asked {
        let found = match count.remove(&key(&topic)) {
            // What stands there twice is answered once.
            None => continue,
            Some(_) if topic.name.is_none() && twice.contains(&topic.topic_id) => continue,
            Some(times) => find(&topics, &twice, &topic, times),
        };
        let deleted = match found {
            Ok(found) => delete_one(&broker, found).await.map(|()| found),
            Err(refusal) => Err(refusal),
        };
        results.push(match deleted {
            Ok(found) => DeletableTopicResult {
                name: Some(found.name.clone()),
                topic_id: found.id,
                ..DeletableTopicResult::default()
            },
            Err(refusal) => refused(topic, &refusal),
        });
    }
    results
}

/// The topic that a request means, by its name or by its id, and which must stand there once.
fn find<'a>(
    topics: &'a Topics,
    twice: &HashSet<Uuid>,
    asked: &DeleteTopicState,
    times: u32,
) -> Result<&'a Topic, Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    match (asked.name.as_deref(), asked.topic_id) {
        (None, Uuid::ZERO) => invalid("Neither topic name nor id were specified."),
        (Some(_), Uuid::ZERO) if times > 1 => invalid("Duplicate topic name."),
        (None, _) if times > 1 => invalid("Duplicate topic id."),
        (Some(name), Uuid::ZERO) => match topics.by_name(name) {
            Some(topic) if twice.contains(&topic.id) => {
                invalid("The provided topic name maps to an ID that was already supplied.")
            }
            found => found.map(|topic| &**topic).ok_or_else(unknown_name),
        },
        (None, id) => topics.by_id(id).map(|topic| &**topic).ok_or_else(|| {
            let message = "This server does not host this topic ID.";
            Refusal::new(ErrorCode::UnknownTopicId, message)
        }),
        (Some(_), _) => invalid("You may not specify both topic name and topic id."),
    }
}

async fn delete_one(broker: &Broker, topic: &Topic) -> Result<(), Refusal> {
    match broker.storage.delete_topic(topic.id).await {
        Ok(()) => {
            broker.log.forget(topic.id);
            broker.rules.forget(topic.id);
            broker.forget_offsets(topic);
            tracing::info!(topic = &*topic.name, id = %topic.id, "deleted a topic");
            Ok(())
        }
        // Somebody else who shares the metadata was faster.
        Err(StoreError::UnknownPartition) => Err(unknown_name()),
        Err(error) => Err(error.into()),
    }
}

fn unknown_name() -> Refusal {
    let message = "This server does not host this topic-partition.";
    Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
}
