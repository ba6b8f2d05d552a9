//! What the APIs of groups share: who asks, which coordinator, and the topic of them all.

use super::topics::{Existing, Refusal};
use super::{Broker, Context, Reply};
use crate::config::topic::Configs;
use crate::coordinator::runtime::{Answer, Asked, groups};
use crate::coordinator::shard::{self, Client, DeletedTopic};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;
use crate::store::topics::Topic;
use std::sync::Arc;
use std::time::Duration;

impl Context {
    /// Who asks, as a group remembers it.
    pub(super) fn client(&self) -> Client {
        Client {
            id: self.client_id.clone().unwrap_or_default(),
            host: self.connection.host.clone(),
            version: self.api_version,
            unique: Uuid::random(),
        }
    }

    /// Asks the coordinator of a group.
    pub(super) fn ask(&self, group_id: &str, request: shard::Request) -> Asked<shard::Response> {
        self.broker.groups.ask(group_id, request)
    }
}

/// Makes an answer of what a coordinator says, now or when it says it.
pub(super) fn reply<T>(
    mut asked: Asked<shard::Response>,
    shape: impl FnOnce(Answer<shard::Response>) -> T + Send + 'static,
) -> Reply<T> {
    match asked.now() {
        Some(answer) => Reply::Ready(shape(answer)),
        None => Reply::Deferred(Box::pin(async move { shape(asked.await) })),
    }
}

/// A coordinator answers what it was asked: the answer, of the kind that was asked for.
macro_rules! answered {
    ($kind:ident, $answer:expr) => {
        match $answer {
            Ok($crate::coordinator::shard::Response::$kind(response)) => Ok(response),
            Ok(other) => unreachable!("{} was asked for, not {other:?}", stringify!($kind)),
            Err(code) => Err(code),
        }
    };
}
pub(super) use answered;

/// Puts the answers of a coordinator where the errors of what it was not asked are not.
pub(super) fn fill<'a>(
    errors: impl Iterator<Item = &'a mut ErrorCode>,
    mut answers: impl Iterator<Item = ErrorCode>,
) {
    for hole in errors.filter(|error| !error.is_error()) {
        // It answers all that it was asked, in that order.
        *hole = answers.next().unwrap_or(ErrorCode::UnknownServerError);
    }
}

impl Broker {
    /// Makes sure that groups can be kept: their topic is created when somebody first needs it,
    /// unless the store keeps them by itself.
    pub(super) async fn make_room_for_groups(self: &Arc<Self>) -> Result<(), Refusal> {
        match self.storage.groups() {
            Some(_) => Ok(()),
            None => self.groups_topic().await.map(|_| ()),
        }
    }

    async fn groups_topic(self: &Arc<Self>) -> Result<Arc<Topic>, Refusal> {
        if let Some(topic) = self.topics().by_name(groups::TOPIC) {
            return Ok(topic.clone());
        }
        let within = Duration::from_millis(self.config.host_timeout_ms.unsigned_abs());
        let broker = self.clone();
        let change = async move {
            let mut existing = Existing::new(&broker);
            if let Some(topic) = existing.by_name(groups::TOPIC) {
                return Ok(topic.clone());
            }
            let partitions = broker.config.offsets_topic_num_partitions;
            existing.make_room(partitions)?;
            let segment_bytes = broker.config.offsets_topic_segment_bytes.to_string();
            let configs = [
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", &segment_bytes),
            ];
            let configs = configs.map(|(name, value)| (name.to_string(), value.to_string()));
            let configs = Configs::from(configs);
            let topic = broker.create_topic(groups::TOPIC, partitions, configs).await?;
            broker.groups.refresh();
            Ok(Arc::new(topic))
        };
        self.change_topics(within, change).await?
    }

    /// Lets groups forget the offsets of a topic that was deleted. The one who deletes it does not
    /// wait for that, as in Kafka.
    pub(super) fn forget_offsets(&self, topic: &Topic) {
        if topic.name == groups::TOPIC {
            return self.groups.refresh();
        }
        // Clients without topic ids, and such as say how long their offsets count, tell no id.
        let ids = [topic.id, Uuid::ZERO];
        let deleted = ids.map(|id| DeletedTopic { name: topic.name.clone(), id });
        self.groups.tell_all(|| shard::Request::TopicsDeleted(deleted.to_vec()));
    }
}
