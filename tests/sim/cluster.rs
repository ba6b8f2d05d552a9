//! All processes and clients of one run.

use crate::batches;
use crate::broker::Broker;
use crate::world::{Sent, Truth, World};
use kelp::protocol::wire::Uuid;
use kelp::store::topics::Topic;
use kelp::store::{PartitionId, Storage, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub const PARTITIONS: i32 = 2;

#[derive(Clone)]
pub struct Cluster {
    pub world: World,
    brokers: Arc<Mutex<Vec<Arc<Broker>>>>,
    truth: Arc<Mutex<Truth>>,
    topics: Arc<Mutex<Topics>>,
    numbers: Arc<AtomicU64>,
}

#[derive(Default)]
struct Topics {
    created: BTreeSet<Uuid>,
    deleted: BTreeSet<Uuid>,
}

impl Cluster {
    pub fn new(world: World) -> Self {
        let (brokers, truth, topics, numbers) = Default::default();
        Self { world, brokers, truth, topics, numbers }
    }

    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn topics(&self) -> MutexGuard<'_, Topics> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn brokers(&self) -> Vec<Arc<Broker>> {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn add(&self, broker: Arc<Broker>) {
        self.brokers.lock().unwrap_or_else(PoisonError::into_inner).push(broker);
    }

    pub fn serving(&self) -> Vec<Arc<Broker>> {
        self.brokers().into_iter().filter(|broker| broker.is_serving()).collect()
    }

    pub fn live_topics(&self) -> Vec<Uuid> {
        let topics = self.topics();
        topics.created.difference(&topics.deleted).copied().collect()
    }

    pub fn is_deleted(&self, topic: Uuid) -> bool {
        self.topics().deleted.contains(&topic)
    }

    fn check(&self, done: Result<(), String>) {
        if let Err(text) = done {
            self.world.fail(text);
        }
    }

    /// Creates a topic by whoever serves.
    pub async fn create_topic(&self, number: u8) -> Uuid {
        let id = Uuid([number; 16]);
        loop {
            if let Some(broker) = self.world.pick(&self.serving()) {
                let name = format!("topic-{number}");
                let topic = Topic { id, name, partitions: PARTITIONS, ..Topic::default() };
                let create = broker.log.create_topic(topic);
                let done = timeout(Duration::from_secs(2), create).await;
                if matches!(done, Ok(Ok(()) | Err(StoreError::TopicExists))) {
                    self.topics().created.insert(id);
                    return id;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn delete_topic(&self, id: Uuid) {
        // From here on it may be gone at any time.
        self.topics().deleted.insert(id);
        self.world.count("a topic that is deleted");
        while let Some(broker) = self.world.pick(&self.serving()) {
            match timeout(Duration::from_secs(2), broker.log.delete_topic(id)).await {
                Ok(Ok(()) | Err(StoreError::UnknownPartition)) => return,
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// An idempotent producer: its batches in order, two at a time, each to everybody who believes
    /// to serve, again and again until one acks.
    pub async fn produce(self, id: PartitionId, producer_id: i64, count: u64) {
        let mut next = 0;
        let mut batches = Vec::new();
        for _ in 0..count {
            let records = 1 + self.world.below(3) as i32;
            batches.push(Sent { producer_id, base_sequence: next, records });
            next += records;
        }
        let mut first = 0;
        while first < batches.len() && !self.is_deleted(id.topic) {
            let window = &batches[first..batches.len().min(first + 2)];
            let mut answers = tokio::task::JoinSet::new();
            let serving = self.serving();
            let chosen = self.world.pick(&serving);
            for broker in serving {
                let is_chosen = chosen.as_ref().is_some_and(|c| Arc::ptr_eq(c, &broker));
                if is_chosen || self.world.one_in(2) {
                    for sent in window {
                        answers.spawn(self.clone().send(broker.clone(), id, *sent));
                    }
                }
            }
            let patience = 20 + self.world.below(400);
            let all = async { while answers.join_next().await.is_some() {} };
            if timeout(Duration::from_millis(patience), all).await.is_err() {
                self.world.count("a producer that does not wait");
            }
            // Who is still asked goes on: its ack may come late.
            answers.detach_all();
            let acked = |sent: &&Sent| self.truth().acked.contains_key(&(id, **sent));
            first += batches[first..].iter().take_while(acked).count();
            self.world.sleep_below(60).await;
        }
    }

    async fn send(self, broker: Arc<Broker>, id: PartitionId, sent: Sent) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let Some(ack) = broker.produce(id, sent, number).await else { return };
        if self.truth().acked.contains_key(&(id, sent)) {
            self.world.count("a batch that is acked again");
        }
        let done = self.truth().acked(id, sent, ack.offset);
        self.check(done);
        for other in self.serving().iter().filter(|other| other.log.epoch() > Some(ack.epoch)) {
            self.world.count("an ack while there is a newer owner");
            if other.log.log_end(id).unwrap_or(0) <= ack.offset && !self.is_deleted(id.topic) {
                let text = "was acked by an old owner and is not known to the new one";
                self.world.fail(format!("{sent:?} at {} {text}", ack.offset));
            }
        }
    }

    /// A consumer: it goes on from where it is, whoever it asks.
    pub async fn consume(self, id: PartitionId) {
        let mut next = 0;
        while !self.is_deleted(id.topic) {
            self.world.sleep_below(80).await;
            let Some(broker) = self.world.pick(&self.serving()) else { continue };
            if self.world.one_in(20) {
                next = self.truth().start_acked.get(&id).copied().unwrap_or(0);
            }
            let size = self.world.pick(&[0, 150, 400, 10_000]).unwrap_or(0);
            match broker.log.read(id, next, size, true).await {
                Ok(slices) => match batches::read(&slices) {
                    Ok(read) => next = self.take(id, next, &read),
                    Err(text) => self.world.fail(text),
                },
                Err(StoreError::OffsetOutOfRange) => {
                    let requested = self.truth().start_requested.get(&id).copied().unwrap_or(0);
                    next = next.max(requested);
                }
                Err(StoreError::Corrupt(text)) => self.world.fail(text),
                Err(StoreError::Fenced) => self.world.count("a read that finds out about a fence"),
                Err(_) => {}
            }
        }
    }

    /// Takes what was read at `next`: it goes on there, and is what everybody else read.
    fn take(&self, id: PartitionId, next: i64, read: &[(i64, Sent)]) -> i64 {
        let mut end = None;
        for (base, sent) in read {
            let last = base + i64::from(sent.records);
            let follows = end.map_or(*base <= next && next < last, |end| end == *base);
            if !follows {
                self.world.fail(format!("{next} was asked for, and {base} came after {end:?}"));
            }
            let done = self.truth().told(id, *sent, *base);
            self.check(done);
            end = Some(last);
        }
        end.unwrap_or(next)
    }

    /// DeleteRecords, up to an offset that somebody has seen.
    pub async fn delete_records(self, id: PartitionId) {
        while !self.is_deleted(id.topic) {
            self.world.sleep_below(6_000).await;
            let known: BTreeMap<_, _> = {
                let truth = self.truth();
                truth
                    .told
                    .range((id, 0)..(id, i64::MAX))
                    .map(|((_, base), s)| (*base, *s))
                    .collect()
            };
            let Some((base, sent)) = known.last_key_value() else { continue };
            let end = *base + i64::from(sent.records);
            let to = end - (self.world.below(6) as i64).min(end);
            let Some(broker) = self.world.pick(&self.serving()) else { continue };
            let to_now = self.truth().start_requested.get(&id).copied().unwrap_or(0).max(to);
            self.truth().start_requested.insert(id, to_now);
            let moved = timeout(Duration::from_secs(2), broker.log.set_log_start(id, to)).await;
            if let Ok(Ok(start)) = moved {
                self.world.count("a log start that moves");
                let mut truth = self.truth();
                let acked = truth.start_acked.entry(id).or_default();
                *acked = start.max(*acked);
            }
        }
    }
}
