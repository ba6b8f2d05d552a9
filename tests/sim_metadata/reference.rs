//! What the log of metadata means: the order of the commands and the state after each.
//!
//! Written apart from the code under test, and kept by the store: the first object that was ever
//! put at a seq is the command of that seq, whoever thinks what about it.

use kelp::protocol::wire::Uuid;
use kelp::store::objectlog::metadata::image::{Change, Command};
use kelp::store::topics::{BrokerConfigs, ConfigChanges, Topic};
use std::collections::{BTreeMap, BTreeSet};

/// The state after a number of commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) topics: BTreeMap<Uuid, Topic>,
    /// By broker and name; the reference knows no broker without any.
    pub(crate) brokers: BTreeMap<(String, String), String>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) next_producer_id: i64,
}

/// What a client was told of its command, or what became of it in the log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Created(Uuid),
    NameTaken(Uuid),
    Deleted(Uuid),
    NoSuchTopic(Uuid),
    /// More partitions, or configs.
    Altered(Uuid),
    NotMore(Uuid),
    BrokerAltered(String),
    Allocated(i64, u32),
    Named,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    /// The state before the first command, then after each.
    states: Vec<State>,
    numbers: BTreeMap<u64, u64>,
    /// By process: what became of its commands and that no client was told yet.
    answers: BTreeSet<(u64, Answer, u64)>,
}

impl Reference {
    pub(crate) fn new() -> Self {
        Self { states: vec![State::default()], ..Self::default() }
    }

    /// The seq of the last command.
    pub(crate) fn seq(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    pub(crate) fn at(&self, seq: u64) -> Option<&State> {
        self.states.get(usize::try_from(seq).ok()?)
    }

    pub(crate) fn last(&self) -> &State {
        self.states.last().expect("there is one before the first command")
    }

    pub(crate) fn push(&mut self, command: Command) {
        let mut state = self.last().clone();
        let number = self.numbers.entry(command.nonce).or_default();
        if *number < command.number {
            *number = command.number;
            let answer = state.change(command.change);
            self.answers.insert((command.nonce, answer, self.seq() + 1));
        }
        self.states.push(state);
    }

    /// Takes note that a client was told this. False if the log does not say so up to `seq`, or
    /// if all that say so were told to others.
    pub(crate) fn told(&mut self, nonce: u64, answer: Answer, seq: u64) -> bool {
        let from = (nonce, answer.clone(), 0);
        let found = self.answers.range(from..=(nonce, answer, seq)).next().cloned();
        found.is_some_and(|told| self.answers.remove(&told))
    }
}

impl State {
    fn change(&mut self, change: Change) -> Answer {
        match change {
            Change::CreateTopic(topic) if self.topics.values().any(|t| t.name == topic.name) => {
                Answer::NameTaken(topic.id)
            }
            Change::CreateTopic(topic) => {
                let id = topic.id;
                self.topics.insert(id, topic);
                Answer::Created(id)
            }
            Change::AlterTopic(id, change) => {
                let Some(topic) = self.topics.get_mut(&id) else {
                    return Answer::NoSuchTopic(id);
                };
                match change.partitions {
                    Some(more) if more <= topic.partitions => return Answer::NotMore(id),
                    Some(more) => topic.partitions = more,
                    None => {}
                }
                for (name, value) in change.configs {
                    topic.configs.remove(&name);
                    topic.configs.extend(value.map(|value| (name, value)));
                }
                Answer::Altered(id)
            }
            Change::AlterBroker(broker, changes) => {
                self.change_broker(&broker, changes);
                Answer::BrokerAltered(broker)
            }
            Change::DeleteTopic(id) => match self.topics.remove(&id) {
                Some(_) => Answer::Deleted(id),
                None => Answer::NoSuchTopic(id),
            },
            Change::AllocateProducerIds(count) => {
                self.next_producer_id += i64::from(count);
                Answer::Allocated(self.next_producer_id - i64::from(count), count)
            }
            Change::SetClusterId(id) => {
                self.cluster_id.get_or_insert(id);
                Answer::Named
            }
        }
    }

    fn change_broker(&mut self, broker: &str, changes: ConfigChanges) {
        for (name, value) in changes {
            let key = (broker.to_string(), name);
            self.brokers.remove(&key);
            self.brokers.extend(value.map(|value| (key, value)));
        }
    }

    /// How a state differs from this one: `None` if it does not.
    pub(crate) fn differs<'a>(
        &self,
        topics: impl Iterator<Item = &'a std::sync::Arc<Topic>>,
        brokers: &BrokerConfigs,
        cluster_id: Option<&str>,
    ) -> Option<String> {
        let topics: BTreeMap<_, _> = topics.map(|t| (t.id, (**t).clone())).collect();
        let brokers: BTreeMap<_, _> = brokers
            .iter()
            .flat_map(|(broker, configs)| {
                configs.iter().map(|(name, value)| ((broker.clone(), name.clone()), value.clone()))
            })
            .collect();
        let same = topics == self.topics
            && brokers == self.brokers
            && cluster_id == self.cluster_id.as_deref();
        (!same).then(|| format!("has {topics:?} and {brokers:?}, no replay gives that: {self:?}"))
    }
}
