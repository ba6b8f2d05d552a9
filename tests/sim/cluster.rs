//! All processes and clients of one run.

use crate::batches::{self, Read};
use crate::broker::Broker;
use crate::world::{Record, Sent, Truth, World, is_compacted};
use kelp::log::compaction::cleaning::{self, Rules};
use kelp::log::compaction::offset_map::OffsetMap;
use kelp::protocol::wire::Uuid;
use kelp::record::batch::Batch;
use kelp::store::topics::Topic;
use kelp::store::{Filter, PartitionId, Storage, StoreError};
use std::collections::BTreeSet;
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
                let name = format!("topic-{number}").into();
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
            if self.world.one_in(4) {
                self.seek_time(&broker, id).await;
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
    fn take(&self, id: PartitionId, next: i64, read: &[Read]) -> i64 {
        let mut end = None;
        for batch in read {
            let (base, last) = (batch.base_offset, batch.end_offset);
            let follows = match end {
                Some(end) => base == end || is_compacted(id) && base > end,
                None => (base <= next || is_compacted(id)) && next < last,
            };
            if !follows {
                self.world.fail(format!("{next} was asked for, and {base} came after {end:?}"));
            }
            self.tell(id, &batch.records);
            end = Some(last);
        }
        let end = end.unwrap_or(next);
        let there: BTreeSet<i64> =
            read.iter().flat_map(|batch| &batch.records).map(|(offset, _)| *offset).collect();
        let truth = self.truth();
        let start = truth.start_requested.get(&id).copied().unwrap_or(0);
        for (offset, record) in truth.known(id, next.max(start)..end) {
            if there.contains(&offset) {
                continue;
            }
            self.world.count("a record that is compacted away");
            if !truth.may_be_gone(id, offset, record) {
                self.world.fail(format!("a reader was not given {record:?} at {offset}"));
            }
        }
        end
    }

    /// No record of that time or later is before the place that is found for it.
    async fn seek_time(&self, broker: &Broker, id: PartitionId) {
        let timestamp = self.world.below(60) as i64;
        let Ok(place) = broker.log.seek_time(id, timestamp).await else { return };
        let truth = self.truth();
        let start = truth.start_requested.get(&id).copied().unwrap_or(0);
        let missed = truth.known(id, start..place).find(|(offset, record)| {
            record.timestamp() >= timestamp && !truth.may_be_gone(id, *offset, *record)
        });
        if let Some((offset, record)) = missed {
            let text = format!("time {timestamp} is looked for from {place} on");
            self.world.fail(format!("{text}, but {record:?} is at {offset}"));
        }
    }

    /// Compacts as the log's room does, up to some part and with little memory.
    pub async fn compact(self, id: PartitionId) {
        while !self.is_deleted(id.topic) {
            self.world.sleep_below(1_500).await;
            let Some(broker) = self.world.pick(&self.serving()) else { continue };
            broker.run(self.compact_at(&broker, id)).await;
        }
    }

    async fn compact_at(&self, broker: &Broker, id: PartitionId) {
        let Ok(Some(layout)) = broker.log.layout(id) else { return };
        let settled = layout.parts.iter().filter(|part| part.is_settled);
        let ends: Vec<i64> = settled.map(|part| part.end_offset).collect();
        let Some(end) = self.world.pick(&ends) else { return };
        let clean = if self.world.one_in(3) { 0 } else { layout.clean_end_offset };
        let mut at = clean.max(layout.log_start_offset);
        let mut map = OffsetMap::new(24 * (2 + self.world.below(10)), 1000);
        while at < end && !map.is_full() {
            let Ok(Some((batches, next))) = broker.log.read_settled(id, at).await else { return };
            // Who compacts is a reader too: what it takes for a later record must be one.
            for batch in &batches {
                match batches::take_apart(batch) {
                    Ok(read) => self.tell(id, &read.records),
                    Err(text) => self.world.fail(text),
                }
            }
            cleaning::index(&mut map, &batches, at..end);
            at = next;
        }
        map.reach(end);
        let Some(end) = map.end_offset() else { return };
        let now_ms = self.world.pick(&[0, 100, 10_000]).unwrap_or(0);
        let delete_retention_ms = self.world.pick(&[0, 100]).unwrap_or(0);
        let mut filter = Here(Rules { map, now_ms, delete_retention_ms });
        match broker.log.rewrite(id, end, &mut filter).await {
            Ok(()) => self.world.count("a log that is compacted"),
            Err(StoreError::Corrupt(text)) => self.world.fail(text),
            Err(_) => {}
        }
    }

    fn tell(&self, id: PartitionId, records: &[(i64, Record)]) {
        for (offset, record) in records {
            let done = self.truth().told(id, *record, *offset);
            self.check(done);
        }
    }

    /// DeleteRecords, up to an offset that somebody has seen.
    pub async fn delete_records(self, id: PartitionId) {
        while !self.is_deleted(id.topic) {
            self.world.sleep_below(6_000).await;
            let last = self.truth().known(id, 0..i64::MAX).last();
            let Some((offset, _)) = last else { continue };
            let end = offset + 1;
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

/// Filters on the one thread that there is.
struct Here(Rules);

#[async_trait::async_trait]
impl Filter for Here {
    async fn filter(&mut self, batches: Vec<Batch>) -> Result<Vec<Batch>, StoreError> {
        Ok(self.0.filter(batches))
    }
}
