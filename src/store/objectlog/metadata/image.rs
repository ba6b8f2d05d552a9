//! What a replay of the metadata log gives: pure, the same for all who apply the same commands.

use crate::protocol::wire::Uuid;
use crate::store::StoreError;
use crate::store::topics::{
    BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics, change_broker_configs,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The process that sent it: a random number, made when the process started.
    pub nonce: u64,
    /// The process' own count of its commands. It knows a command again that is in the log twice.
    pub number: u64,
    pub change: Change,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    CreateTopic(Topic),
    DeleteTopic(Uuid),
    AllocateProducerIds(u32),
    /// Of several, the first counts.
    SetClusterId(String),
    AlterTopic(Uuid, TopicChange),
    /// Of one broker, or, without a name, of all.
    AlterBroker(String, ConfigChanges),
}

/// What became of a command when its turn came in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    TopicExists,
    UnknownTopic,
    /// The first of the block.
    ProducerIds(i64),
    NoProducerIdsLeft,
    NotMorePartitions,
}

impl Outcome {
    pub(super) fn error(self) -> Option<StoreError> {
        match self {
            Self::Done | Self::ProducerIds(_) => None,
            Self::TopicExists => Some(StoreError::TopicExists),
            Self::UnknownTopic => Some(StoreError::UnknownPartition),
            Self::NotMorePartitions => Some(StoreError::NotMorePartitions),
            Self::NoProducerIdsLeft => {
                Some(StoreError::Unavailable("all producer ids are given away".into()))
            }
        }
    }
}

/// How many processes are remembered. Each start of a gateway is one.
pub(super) const PROCESSES_KEPT: usize = 1_000;

/// The state after the commands up to `seq`.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub seq: u64,
    pub cluster_id: Option<String>,
    pub next_producer_id: i64,
    pub topics: Arc<Topics>,
    pub broker_configs: Arc<BrokerConfigs>,
    pub(super) processes: BTreeMap<u64, Process>,
    /// The seq of the last command of the processes that are no longer remembered.
    pub(super) forgotten: u64,
}

/// The last command of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) seq: u64,
    pub(super) outcome: Outcome,
}

impl Image {
    /// Takes in the command at the next seq. One that was applied before changes nothing.
    pub fn apply(&mut self, command: Command) {
        let Command { nonce, number, change } = command;
        self.seq += 1;
        if self.processes.get(&nonce).is_some_and(|last| last.number >= number) {
            return;
        }
        let outcome = self.change(change);
        self.processes.insert(nonce, Process { number, seq: self.seq, outcome });
        if self.processes.len() > PROCESSES_KEPT {
            self.forget_one();
        }
    }

    /// What became of a command, if it is in the log up to here. Only the last one of a process
    /// is known.
    pub(super) fn outcome(&self, nonce: u64, number: u64) -> Option<Outcome> {
        let last = self.processes.get(&nonce)?;
        (last.number == number).then_some(last.outcome)
    }

    /// Whether a process with this nonce may have had a command at `seq` or later of which nothing
    /// is known any more.
    pub(super) fn may_have_forgotten(&self, nonce: u64, seq: u64) -> bool {
        self.forgotten >= seq && !self.processes.contains_key(&nonce)
    }

    fn change(&mut self, change: Change) -> Outcome {
        match change {
            Change::CreateTopic(topic) => {
                let topics = &self.topics;
                if topics.by_name(&topic.name).is_some() || topics.by_id(topic.id).is_some() {
                    return Outcome::TopicExists;
                }
                Arc::make_mut(&mut self.topics).insert(topic);
                Outcome::Done
            }
            Change::DeleteTopic(id) => {
                if self.topics.by_id(id).is_none() {
                    return Outcome::UnknownTopic;
                }
                Arc::make_mut(&mut self.topics).remove(id);
                Outcome::Done
            }
            Change::AllocateProducerIds(count) => {
                let first = self.next_producer_id;
                let Some(next) = first.checked_add(i64::from(count)) else {
                    return Outcome::NoProducerIdsLeft;
                };
                self.next_producer_id = next;
                Outcome::ProducerIds(first)
            }
            Change::SetClusterId(id) => {
                self.cluster_id.get_or_insert(id);
                Outcome::Done
            }
            Change::AlterTopic(id, change) => {
                let Some(topic) = self.topics.by_id(id) else {
                    return Outcome::UnknownTopic;
                };
                let Ok(changed) = topic.changed(change) else {
                    return Outcome::NotMorePartitions;
                };
                Arc::make_mut(&mut self.topics).insert(changed);
                Outcome::Done
            }
            Change::AlterBroker(broker, changes) => {
                change_broker_configs(Arc::make_mut(&mut self.broker_configs), broker, changes);
                Outcome::Done
            }
        }
    }

    /// Forgets the process that has been silent for the most commands.
    fn forget_one(&mut self) {
        let Some((&nonce, &last)) = self.processes.iter().min_by_key(|(_, last)| last.seq) else {
            return;
        };
        self.processes.remove(&nonce);
        self.forgotten = last.seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: u64 = 7;

    fn topic(id: u8, name: &str) -> Topic {
        Topic { id: Uuid([id; 16]), name: name.into(), partitions: 1, ..Topic::default() }
    }

    /// Applies changes of one process, numbered from 1; gives what became of each.
    fn outcomes(changes: impl IntoIterator<Item = Change>) -> (Image, Vec<Outcome>) {
        let mut image = Image::default();
        let mut outcomes = Vec::new();
        for (change, number) in changes.into_iter().zip(1..) {
            image.apply(Command { nonce: NONCE, number, change });
            outcomes.push(image.outcome(NONCE, number).unwrap());
        }
        (image, outcomes)
    }

    #[test]
    fn a_name_belongs_to_the_first_topic_in_the_log_until_that_is_deleted() {
        let (image, outcomes) = outcomes([
            Change::CreateTopic(topic(1, "clicks")),
            Change::CreateTopic(topic(2, "clicks")),
            Change::CreateTopic(topic(1, "views")),
            Change::DeleteTopic(Uuid([2; 16])),
            Change::DeleteTopic(Uuid([1; 16])),
            Change::CreateTopic(topic(3, "clicks")),
        ]);
        use Outcome::{Done, TopicExists, UnknownTopic};
        assert_eq!(outcomes, [Done, TopicExists, TopicExists, UnknownTopic, Done, Done]);
        assert_eq!(image.topics.len(), 1);
        assert_eq!(image.topics.by_name("clicks").unwrap().id, Uuid([3; 16]));
    }

    #[test]
    fn blocks_of_producer_ids_follow_each_other_until_there_are_no_more() {
        let allocate = Change::AllocateProducerIds;
        let (mut image, outcomes) = outcomes([allocate(1_000), allocate(5)]);
        assert_eq!(outcomes, [Outcome::ProducerIds(0), Outcome::ProducerIds(1_000)]);

        image.next_producer_id = i64::MAX - 4;
        image.apply(Command { nonce: NONCE, number: 3, change: allocate(5) });
        assert_eq!(image.outcome(NONCE, 3), Some(Outcome::NoProducerIdsLeft));
        image.apply(Command { nonce: NONCE, number: 4, change: allocate(4) });
        assert_eq!(image.outcome(NONCE, 4), Some(Outcome::ProducerIds(i64::MAX - 4)));
    }

    #[test]
    fn the_first_cluster_id_stays() {
        let (image, _) = outcomes(["one", "two"].map(|id| Change::SetClusterId(id.into())));
        assert_eq!(image.cluster_id.as_deref(), Some("one"));
    }

    #[test]
    fn a_topic_gets_more_partitions_and_never_fewer() {
        let id = Uuid([1; 16]);
        let to = |partitions| {
            Change::AlterTopic(
                id,
                TopicChange { partitions: Some(partitions), ..Default::default() },
            )
        };
        let (image, outcomes) =
            outcomes([to(3), Change::CreateTopic(topic(1, "clicks")), to(3), to(3), to(2), to(4)]);
        use Outcome::{Done, NotMorePartitions, UnknownTopic};
        let refused = NotMorePartitions;
        assert_eq!(outcomes, [UnknownTopic, Done, Done, refused, refused, Done]);
        assert_eq!(image.topics.by_id(id).unwrap().partitions, 4);
    }

    #[test]
    fn configs_are_set_and_taken_away_one_by_one() {
        let id = Uuid([1; 16]);
        let changes = |changes: &[(&str, Option<&str>)]| -> ConfigChanges {
            changes.iter().map(|(name, value)| (name.to_string(), value.map(Into::into))).collect()
        };
        let of_topic = |configs| TopicChange { partitions: None, configs };
        let (image, _) = outcomes([
            Change::CreateTopic(topic(1, "clicks")),
            Change::AlterTopic(id, of_topic(changes(&[("a", Some("1")), ("b", Some("2"))]))),
            Change::AlterTopic(id, of_topic(changes(&[("a", None), ("c", Some("3"))]))),
            Change::AlterBroker("1".into(), changes(&[("a", Some("1")), ("b", Some("2"))])),
            Change::AlterBroker("1".into(), changes(&[("a", None), ("b", Some("3"))])),
            Change::AlterBroker(String::new(), changes(&[("a", Some("4"))])),
            Change::AlterBroker("2".into(), changes(&[("a", Some("5"))])),
            Change::AlterBroker("2".into(), changes(&[("a", None)])),
        ]);
        let topic = image.topics.by_id(id).unwrap();
        let set = |configs: &std::collections::BTreeMap<String, String>| format!("{configs:?}");
        assert_eq!(set(&topic.configs), r#"{"b": "2", "c": "3"}"#);
        assert_eq!(topic.partitions, 1);
        let brokers = format!("{:?}", image.broker_configs);
        assert_eq!(brokers, r#"{"": {"a": "4"}, "1": {"b": "3"}}"#);
    }

    #[test]
    fn a_command_that_is_in_the_log_twice_counts_once() {
        let (mut image, _) = outcomes([Change::AllocateProducerIds(10)]);
        let again =
            |number| Command { nonce: NONCE, number, change: Change::AllocateProducerIds(10) };
        image.apply(again(1));
        assert_eq!((image.seq, image.next_producer_id), (2, 10));
        image.apply(again(2));
        assert_eq!((image.seq, image.next_producer_id), (3, 20));
        image.apply(Command { nonce: NONCE + 1, ..again(1) });
        assert_eq!((image.seq, image.next_producer_id), (4, 30), "another process counts anew");
    }

    #[test]
    fn the_process_that_was_silent_longest_is_forgotten_and_that_is_known() {
        let mut image = Image::default();
        let command =
            |nonce, number| Command { nonce, number, change: Change::DeleteTopic(Uuid::ZERO) };
        for nonce in 0..PROCESSES_KEPT as u64 {
            image.apply(command(nonce, 1));
        }
        image.apply(command(0, 2));
        assert_eq!(image.forgotten, 0);
        image.apply(command(u64::MAX, 1));

        assert_eq!(image.processes.len(), PROCESSES_KEPT);
        assert_eq!(image.outcome(0, 2), Some(Outcome::UnknownTopic));
        assert_eq!(image.outcome(1, 1), None);
        assert!(image.may_have_forgotten(1, 2), "its command was at seq 2");
        assert!(!image.may_have_forgotten(1, 3), "nothing at 3 or later is forgotten");
        assert!(!image.may_have_forgotten(0, 1), "what is remembered is not forgotten");
    }
}
