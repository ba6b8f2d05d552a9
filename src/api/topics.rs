//! Names and creation of topics: what CreateTopics and the auto-creation of Metadata share.

use super::Broker;
use crate::config::topic::Configs;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use crate::store::StoreError;
use crate::store::topics::{Topic, Topics};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Kafka's limit for the length of a name, which had to fit a file name.
const MAX_NAME: usize = 249;

/// Kafka's limit for the new partitions of one request.
pub(super) const MAX_PARTITIONS_PER_REQUEST: i64 = 10_000;

/// Topics that coordinators keep their state in.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// What a client gets that asked for something that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// As a field of an answer: a refusal that says nothing has null there.
    pub(super) fn message(&self) -> Option<Str> {
        (!self.message.is_empty()).then(|| self.message.as_str().into())
    }
}

/// What the store cannot do, as an API of the controller says it.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            // The client looks for the controller anew, and finds the successor.
            StoreError::Fenced => ErrorCode::NotController,
            other => other.clone().into(),
        };
        Self::new(code, error.to_string())
    }
}

pub(crate) fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

/// Checks a name by Kafka's rules.
pub(super) fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    let problem = if name.is_empty() {
        "the empty string is not allowed".to_string()
    } else if name == "." || name == ".." {
        format!("'{name}' is not allowed")
    } else if name.encode_utf16().count() > MAX_NAME {
        format!("the length of '{name}' is longer than the max allowed length {MAX_NAME}")
    } else if !name.bytes().all(legal) {
        format!(
            "'{name}' contains one or more characters other than ASCII alphanumerics, \
             '.', '_' and '-'"
        )
    } else {
        return Ok(());
    };
    let message = format!("Topic name is invalid: {problem}");
    Err(Refusal::new(ErrorCode::InvalidTopicException, message))
}

/// Checks replicas of one partition that a client placed by hand: there is this broker only.
pub(super) fn check_replicas(broker: &Broker, ids: &[i32]) -> Result<(), String> {
    let own = broker.config.node_id;
    let foreign = ids.iter().find(|id| **id != own);
    match (ids.len(), foreign) {
        (0, _) => Err("The manual partition assignment includes an empty replica list.".into()),
        (_, Some(id)) => Err(format!(
            "The manual partition assignment includes broker {id}, but no such broker is \
             registered."
        )),
        (1, None) => Ok(()),
        (_, None) => Err(format!(
            "The manual partition assignment includes the broker {own} more than once."
        )),
    }
}

/// What new topics must fit in with, as it is while nobody else changes topics.
pub(super) struct Existing {
    topics: Arc<Topics>,
    /// What there is by the name that Kafka's metrics would have; made when it is asked for.
    by_metric_name: OnceCell<HashMap<String, Arc<Topic>>>,
    partitions: i64,
    max_partitions: i32,
}

impl Existing {
    pub(super) fn new(broker: &Broker) -> Self {
        let topics = broker.topics();
        let partitions = topics.iter().map(|topic| i64::from(topic.partitions)).sum();
        let max_partitions = broker.config.max_partitions;
        Self { topics, by_metric_name: OnceCell::new(), partitions, max_partitions }
    }

    pub(super) fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.by_name(name)
    }

    /// Whether a name is not taken, nor one that Kafka's metrics could not tell from it.
    pub(super) fn check_free(&self, name: &str) -> Result<(), Refusal> {
        if self.topics.by_name(name).is_some() {
            let message = format!("Topic '{name}' already exists.");
            return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
        }
        if !name.contains(['.', '_']) {
            return Ok(());
        }
        let names = self.by_metric_name.get_or_init(|| {
            let names = self.topics.iter().map(|topic| (metric_name(&topic.name), topic.clone()));
            names.collect()
        });
        match names.get(&metric_name(name)) {
            None => Ok(()),
            Some(other) => {
                let message =
                    format!("Topic '{name}' collides with existing topic: {}", other.name);
                Err(Refusal::new(ErrorCode::InvalidTopicException, message))
            }
        }
    }

    /// Makes room for the partitions of a new topic.
    pub(super) fn make_room(&mut self, partitions: i32) -> Result<(), Refusal> {
        let (now, most) = (self.partitions, self.max_partitions);
        if now + i64::from(partitions) > i64::from(most) {
            let message = format!("There are {now} partitions, and kelp.max.partitions is {most}.");
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        }
        self.partitions += i64::from(partitions);
        Ok(())
    }
}

fn metric_name(topic: &str) -> String {
    topic.replace('.', "_")
}

impl Broker {
    /// Makes a change of topics, alone, so that what it checks still holds when it stores. It
    /// runs to its end even when the time is over before: a store must not be left in the middle
    /// of one.
    pub(super) async fn change_topics<T: Send + 'static>(
        &self,
        within: Duration,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let timed_out = || Refusal::new(ErrorCode::RequestTimedOut, "");
        if within.is_zero() {
            return Err(timed_out());
        }
        let deadline = Instant::now() + within;
        let alone = timeout_at(deadline, self.topic_changes.clone().lock_owned());
        // Waiting for it here, not in the task, keeps it at one task when the store hangs.
        let alone = alone.await.map_err(|_| timed_out())?;
        let task = tokio::spawn(async move {
            let done = change.await;
            drop(alone);
            done
        });
        match timeout_at(deadline, task).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => Err(Refusal::new(ErrorCode::UnknownServerError, panic.to_string())),
            Err(_) => Err(timed_out()),
        }
    }

    /// Stores a topic whose name and configs were checked.
    pub(super) async fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        configs: Configs,
    ) -> Result<Topic, Refusal> {
        let topic = Topic { id: Uuid::random(), name: name.into(), partitions, configs };
        self.storage.create_topic(topic.clone()).await?;
        tracing::info!(topic = name, id = %topic.id, partitions, "created a topic");
        Ok(topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn existing(names: &[&str]) -> Existing {
        let mut topics = Topics::default();
        for name in names {
            let id = Uuid::random();
            let name = (*name).into();
            topics.insert(Topic { id, name, partitions: 1, configs: Configs::new() });
        }
        let by_metric_name = OnceCell::new();
        Existing { topics: topics.into(), by_metric_name, partitions: 2, max_partitions: 5 }
    }

    #[test]
    fn names_are_refused_in_kafkas_words() {
        // Apache Kafka 4.4's answers to CreateTopics.
        for (name, message) in [
            ("", "the empty string is not allowed"),
            (".", "'.' is not allowed"),
            ("..", "'..' is not allowed"),
            (
                "a b",
                "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' \
                 and '-'",
            ),
        ] {
            let refusal = check_name(name).unwrap_err();
            assert_eq!(refusal.message, format!("Topic name is invalid: {message}"));
        }
        assert!(check_name(&"x".repeat(249)).is_ok());
        assert!(check_name(&"x".repeat(250)).is_err());
        assert!(check_name("naïve").is_err());
    }

    #[test]
    fn a_dot_and_an_underscore_collide() {
        let existing = existing(&["a.b", "plain"]);
        assert_eq!(existing.check_free("a.b").unwrap_err().code, ErrorCode::TopicAlreadyExists);
        let refusal = existing.check_free("a_b").unwrap_err();
        assert_eq!(refusal.code, ErrorCode::InvalidTopicException);
        assert_eq!(refusal.message, "Topic 'a_b' collides with existing topic: a.b");
        assert!(existing.check_free("a-b").is_ok());
    }

    #[test]
    fn there_is_room_for_as_many_partitions_as_the_limit_says() {
        let mut existing = existing(&["a", "b"]);
        assert_eq!(existing.make_room(4).unwrap_err().code, ErrorCode::PolicyViolation);
        assert_eq!(existing.make_room(2), Ok(()));
        assert_eq!(existing.make_room(1), Ok(()));
        assert_eq!(existing.make_room(1).unwrap_err().code, ErrorCode::PolicyViolation);
    }
}
