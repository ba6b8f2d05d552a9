//! A log over a store that does what a test tells it.

use super::Log;
use super::append::{Answer, Appending};
use super::partition::{Bounds, Partition};
use crate::protocol::wire::Uuid;
use crate::record::batch::Batch;
use crate::record::testing::Draft;
use crate::store::layout::Layout;
use crate::store::memory::Memory;
use crate::store::topics::{Topic, Topics};
use crate::store::{
    BoxFuture, EpochStart, Opened, PartitionId, Result, State, Storage, StoreError,
};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{oneshot, watch};

pub(super) const PARTITION: PartitionId = PartitionId { topic: Uuid([1; 16]), partition: 0 };

/// A memory store whose appends can be held back and given any outcome.
pub(super) struct Scripted {
    pub(super) memory: Memory,
    pub(super) state: watch::Sender<State>,
    holds: AtomicBool,
    held: Mutex<VecDeque<Held>>,
    pub(super) reads: AtomicUsize,
    pub(super) opens: AtomicUsize,
    /// What the next openings answer instead of the truth.
    pub(super) openings: Mutex<VecDeque<Result<Opened>>>,
    pub(super) epochs: Mutex<Vec<EpochStart>>,
    /// What it was told will be read.
    pub(super) announced: Mutex<Vec<(PartitionId, i64)>>,
}

/// An append that was submitted and is not yet carried out.
pub(super) struct Held {
    partition: PartitionId,
    pub(super) expected: i64,
    pub(super) batches: Vec<Batch>,
    answer: oneshot::Sender<Result<i64>>,
}

impl Held {
    /// Carries the append out, so far as the log end allows, and answers what came of it.
    pub(super) async fn store(self, store: &Scripted) {
        let Self { partition, expected, batches, answer } = self;
        let outcome = store.memory.append(partition, expected, batches).await;
        let _ = answer.send(outcome);
    }

    pub(super) fn fail(self, error: StoreError) {
        let _ = self.answer.send(Err(error));
    }

    /// Carries the append out, but answers an error.
    pub(super) async fn store_and_fail(self, store: &Scripted, error: StoreError) {
        let Self { partition, expected, batches, answer } = self;
        store.memory.append(partition, expected, batches).await.unwrap();
        let _ = answer.send(Err(error));
    }
}

impl Scripted {
    /// The oldest append that is held.
    pub(super) async fn next(&self) -> Held {
        loop {
            if let Some(held) = self.held.lock().unwrap().pop_front() {
                return held;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(super) fn hold(&self) {
        self.holds.store(true, Ordering::Relaxed);
    }

    pub(super) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn opens(&self) -> usize {
        self.opens.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Storage for Scripted {
    fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn cluster_id(&self) -> String {
        self.memory.cluster_id()
    }

    fn topics(&self) -> Arc<Topics> {
        self.memory.topics()
    }

    async fn create_topic(&self, topic: Topic) -> Result<()> {
        self.memory.create_topic(topic).await
    }

    async fn delete_topic(&self, id: Uuid) -> Result<()> {
        self.memory.delete_topic(id).await
    }

    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        self.memory.allocate_producer_ids(count).await
    }

    async fn open(&self, partition: PartitionId) -> Result<Opened> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        let scripted = self.openings.lock().unwrap().pop_front();
        match scripted {
            Some(opening) => opening,
            None => self.memory.open(partition).await,
        }
    }

    fn will_read(&self, positions: &[(PartitionId, i64)]) {
        self.announced.lock().unwrap().extend(positions);
    }

    async fn epochs(&self, _partition: PartitionId) -> Result<Vec<EpochStart>> {
        Ok(self.epochs.lock().unwrap().clone())
    }

    fn append(
        &self,
        partition: PartitionId,
        expected: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        if !self.holds.load(Ordering::Relaxed) {
            return self.memory.append(partition, expected, batches);
        }
        let (answer, answered) = oneshot::channel();
        self.held.lock().unwrap().push_back(Held { partition, expected, batches, answer });
        Box::pin(async { answered.await.unwrap_or(Err(StoreError::TimedOut)) })
    }

    fn forget_producers(&self, partition: PartitionId, producer_ids: &[i64]) {
        self.memory.forget_producers(partition, producer_ids);
    }

    async fn read(
        &self,
        partition: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.memory.read(partition, offset, max_bytes, at_least_one).await
    }

    async fn seek_time(&self, partition: PartitionId, timestamp: i64) -> Result<i64> {
        self.memory.seek_time(partition, timestamp).await
    }

    fn layout(&self, partition: PartitionId) -> Result<Option<Layout>> {
        self.memory.layout(partition)
    }

    async fn set_log_start(&self, partition: PartitionId, offset: i64) -> Result<i64> {
        self.memory.set_log_start(partition, offset).await
    }

    async fn close(&self) {}
}

/// A log with one topic of two partitions.
pub(super) struct Fixture {
    pub(super) store: Arc<Scripted>,
    pub(super) log: Arc<Log>,
    pub(super) partition: Arc<Partition>,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        let store = Arc::new(Scripted {
            memory: Memory::default(),
            state: watch::Sender::new(State::Serving),
            holds: AtomicBool::new(false),
            held: Mutex::default(),
            reads: AtomicUsize::new(0),
            opens: AtomicUsize::new(0),
            openings: Mutex::default(),
            epochs: Mutex::default(),
            announced: Mutex::default(),
        });
        let (id, name) = (PARTITION.topic, "clicks".into());
        store.create_topic(Topic { id, name, partitions: 2, ..Topic::default() }).await.unwrap();
        let log = Arc::new(Log::new(store.clone(), 1 << 20, Arc::default()));
        let partition = log.partition(PARTITION).await.unwrap();
        Self { store, log, partition }
    }

    /// Submits a batch that needs no check.
    pub(super) async fn submit(&self, draft: &Draft) -> Appending {
        self.submit_to(&self.partition, draft).await
    }

    pub(super) async fn submit_to(&self, partition: &Arc<Partition>, draft: &Draft) -> Appending {
        let batch = draft.batch();
        let room = self.log.room_for(batch.len()).await;
        partition.append(batch, room)
    }

    pub(super) async fn append(&self, draft: &Draft) -> Answer {
        self.submit(draft).await.await
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.partition.bounds(-1).unwrap()
    }

    /// The values of all records that are stored, with their offsets.
    pub(super) async fn stored(&self) -> Vec<(i64, String)> {
        use crate::record::batch::Batches;
        use crate::record::unpacked::Unpacked;
        let slices = self.store.memory.read(PARTITION, 0, usize::MAX, true).await.unwrap();
        let mut stored = Vec::new();
        for batch in Batches::new(slices) {
            for record in &Unpacked::new(&batch).unwrap() {
                let record = record.unwrap();
                let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap();
                stored.push((record.offset, value));
            }
        }
        stored
    }
}
