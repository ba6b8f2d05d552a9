//! The topics of a host with a log of its own: loaded once, then kept as they are changed.

use super::data::KelpStr;
use super::groups::Then;
use super::host_storage::{HostStorage, lock};
use super::operation::KelpOp;
use super::status::Failure;
use super::storage::*;
use crate::protocol::wire::Uuid;
use crate::store::topics::{Topic, TopicChange, Topics};
use crate::store::{Result, State, Storage, StoreError};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::{oneshot, watch};

/// What the host has told of its topics.
pub(super) struct Known {
    pub(super) state: watch::Sender<State>,
    pub(super) cluster_id: OnceLock<String>,
    topics: Mutex<Arc<Topics>>,
    /// Sent after topics, or settings of the broker, changed.
    pub(super) changes: Arc<watch::Sender<()>>,
}

impl HostStorage {
    /// Asks for all topics, and then for what else there is to know before clients are served.
    pub(super) fn load_topics(&self, coordinators: i32) {
        let body = KelpLoadTopics {
            op: KelpOp::NEW,
            cluster_id: KelpStr::EMPTY,
            topics: ptr::null(),
            topic_count: 0,
        };
        let known = self.known.clone();
        let (settings, groups) = (self.broker_settings.clone(), self.groups.clone());
        self.host.submit(
            self.table.load_topics,
            body,
            (),
            |outcome| {
                outcome.ok()?;
                let cluster_id = outcome.text(outcome.body.cluster_id)?;
                let raw = outcome.array(outcome.body.topics, outcome.body.topic_count)?;
                let mut topics = Topics::default();
                for topic in raw {
                    let settings = outcome.array(topic.settings, topic.setting_count)?;
                    let pair =
                        |s: &KelpSetting| Ok((outcome.text(s.name)?, outcome.text(s.value)?));
                    let configs = settings.iter().map(pair).collect::<Result<_, _>>()?;
                    insert(
                        &mut topics,
                        Topic {
                            id: Uuid(topic.id),
                            name: outcome.text(topic.name)?.into(),
                            partitions: topic.partition_count,
                            configs,
                        },
                    )?;
                }
                Ok((cluster_id, topics))
            },
            move |answer| {
                let topics = match answer {
                    Ok(topics) => topics,
                    failed => return known.loaded(failed),
                };
                let serve = move |opened: Result<_, _>| known.loaded(opened.map(|()| topics));
                let with_groups: Then = match groups {
                    Some(groups) => Box::new(move |opened| match opened {
                        Ok(()) => groups.open(coordinators, Box::new(serve)),
                        Err(failure) => serve(Err(failure)),
                    }),
                    None => Box::new(serve),
                };
                match settings {
                    Some(settings) => settings.open(with_groups),
                    None => with_groups(Ok(())),
                }
            },
        );
    }

    /// Stores a topic.
    pub(super) async fn create(&self, topic: Topic) -> Result<(), Failure> {
        let (done, answer) = oneshot::channel();
        {
            let settings = Settings::new(&topic.configs);
            let body = KelpCreateTopic { op: KelpOp::NEW, topic: KelpTopic::of(&topic, &settings) };
            let known = self.known.clone();
            self.host.submit(
                self.table.create_topic,
                body,
                settings,
                |outcome| outcome.ok(),
                // Holds the topic, into which the operation points.
                move |created| {
                    if created.is_ok() {
                        Arc::make_mut(&mut *known.topics()).insert(topic);
                        known.changes.send_replace(());
                    }
                    let _ = done.send(created);
                },
            );
        }
        self.host.wait(answer).await
    }

    pub(super) async fn delete(&self, id: Uuid) -> Result<()> {
        let topic = self.topics().by_id(id).cloned().ok_or(StoreError::UnknownPartition)?;
        let (done, answer) = oneshot::channel();
        {
            let body = KelpDeleteTopic {
                op: KelpOp::NEW,
                topic: KelpStr::of(&topic.name),
                topic_id: topic.id.0,
            };
            let (known, partitions) = (self.known.clone(), self.partitions.clone());
            let snapshots = self.snapshots.clone();
            self.host.submit(
                self.table.delete_topic,
                body,
                topic.clone(),
                |outcome| outcome.ok(),
                move |deleted| {
                    if deleted.is_ok() {
                        let mut topics = known.topics();
                        Arc::make_mut(&mut *topics).remove(id);
                        lock(&partitions).retain(|partition, _| partition.topic != id);
                        drop(topics);
                        known.changes.send_replace(());
                        if let Some(snapshots) = snapshots {
                            snapshots.delete(&topic);
                        }
                    }
                    let _ = done.send(deleted);
                },
            );
        }
        Ok(self.host.wait(answer).await?)
    }

    /// Changes a topic. One after the other: a host stores a topic as a whole, and what comes first
    /// must not undo what comes last.
    pub(super) async fn alter(&self, id: Uuid, change: TopicChange) -> Result<()> {
        let callback = self.table.alter_topic.ok_or(Failure::NotOffered)?;
        let alone = self.host.turn(&self.altering).await?;
        let topic = self.known.topics().by_id(id).cloned().ok_or(StoreError::UnknownPartition)?;
        let changed = topic.changed(change)?;
        let (done, answer) = oneshot::channel();
        {
            let settings = Settings::new(&changed.configs);
            let body =
                KelpAlterTopic { op: KelpOp::NEW, topic: KelpTopic::of(&changed, &settings) };
            let known = self.known.clone();
            self.host.submit(
                callback,
                body,
                settings,
                |outcome| outcome.ok(),
                // Holds the topic, into which the operation points.
                move |altered| {
                    let mut topics = known.topics();
                    if altered.is_ok() && topics.by_id(id).is_some() {
                        Arc::make_mut(&mut *topics).insert(changed);
                    }
                    drop(topics);
                    known.changes.send_replace(());
                    drop(alone);
                    let _ = done.send(altered);
                },
            );
        }
        Ok(self.host.wait(answer).await?)
    }
}

impl KelpTopic {
    /// Points into `topic` and `settings`.
    fn of(topic: &Topic, settings: &Settings) -> Self {
        Self {
            id: topic.id.0,
            name: KelpStr::of(&topic.name),
            settings: settings.as_slice().as_ptr(),
            setting_count: settings.as_slice().len(),
            partition_count: topic.partitions,
            reserved: 0,
        }
    }
}

impl Known {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: watch::Sender::new(State::Opening),
            cluster_id: OnceLock::new(),
            topics: Mutex::default(),
            changes: Arc::default(),
        })
    }

    fn loaded(&self, answer: Result<(String, Topics), Failure>) {
        match answer {
            Ok((cluster_id, topics)) => {
                *lock(&self.topics) = Arc::new(topics);
                // Asked for once, so it is not set yet.
                let _ = self.cluster_id.set(cluster_id);
                self.state.send_replace(State::Serving);
            }
            Err(failure) => drop(self.state.send_replace(State::Failed(failure.to_string()))),
        }
    }

    pub(super) fn topics(&self) -> MutexGuard<'_, Arc<Topics>> {
        lock(&self.topics)
    }
}

/// Adds a topic that a host told of.
fn insert(topics: &mut Topics, topic: Topic) -> Result<(), Failure> {
    if topic.name.is_empty() || topic.partitions < 1 || topic.id == Uuid::ZERO {
        return Err(Failure::Malformed("a topic without a name, an id or partitions"));
    }
    if topics.by_name(&topic.name).is_some() || topics.by_id(topic.id).is_some() {
        return Err(Failure::Malformed("two topics with one name or id"));
    }
    topics.insert(topic);
    Ok(())
}
