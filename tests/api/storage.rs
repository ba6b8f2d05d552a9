//! A store whose answers a test holds back, and whose state it sets.

use crate::broker::PATIENCE;
use bytes::Bytes;
use kelp::protocol::wire::Uuid;
use kelp::record::batch::Batch;
use kelp::store::memory::Memory;
use kelp::store::topics::{Topic, Topics};
use kelp::store::{BoxFuture, Opened, PartitionId, Result, State, Storage, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

pub(crate) struct Held {
    memory: Memory,
    state: watch::Sender<State>,
    /// One permit lets one answer go.
    pub(crate) answers: Arc<Semaphore>,
    /// How many questions came.
    pub(crate) asked: watch::Sender<usize>,
    /// Whether the store panics when a partition is opened.
    pub(crate) panics: AtomicBool,
    /// Whether reads wait for a permit.
    pub(crate) holds_reads: AtomicBool,
    pub(crate) reads: Semaphore,
    keeps_groups: bool,
    /// Whether the store is ever done with closing.
    closes: bool,
}

impl Held {
    pub(crate) fn new(state: State) -> Self {
        Self {
            memory: Memory::default(),
            state: watch::Sender::new(state),
            answers: Arc::new(Semaphore::new(0)),
            asked: watch::Sender::new(0),
            panics: AtomicBool::new(false),
            holds_reads: AtomicBool::new(false),
            reads: Semaphore::new(0),
            keeps_groups: true,
            closes: true,
        }
    }

    /// A store that keeps producer ids but no groups.
    pub(crate) fn without_groups() -> Self {
        Self { keeps_groups: false, ..Self::new(State::Serving) }
    }

    /// A store that is never done with closing.
    pub(crate) fn that_never_closes(state: State) -> Self {
        Self { closes: false, ..Self::new(state) }
    }

    pub(crate) fn enter(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Waits until the store was asked so often.
    pub(crate) fn until_asked(&self, times: usize) {
        let begin = Instant::now();
        while *self.asked.borrow() < times {
            assert!(begin.elapsed() < PATIENCE);
            thread::yield_now();
        }
    }

    async fn turn(&self) -> Result<()> {
        self.asked.send_modify(|asked| *asked += 1);
        self.answers.acquire().await.unwrap().forget();
        match &*self.state.borrow() {
            State::Fenced(_) => Err(StoreError::Fenced),
            _ => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Storage for Held {
    fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn cluster_id(&self) -> String {
        self.memory.cluster_id()
    }

    fn topics(&self) -> Arc<Topics> {
        self.memory.topics()
    }

    fn has_groups(&self) -> bool {
        self.keeps_groups
    }

    async fn create_topic(&self, topic: Topic) -> Result<()> {
        self.turn().await?;
        self.memory.create_topic(topic).await
    }

    async fn delete_topic(&self, id: Uuid) -> Result<()> {
        self.turn().await?;
        self.memory.delete_topic(id).await
    }

    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        self.memory.allocate_producer_ids(count).await
    }

    async fn open(&self, partition: PartitionId) -> Result<Opened> {
        assert!(!self.panics.load(Ordering::Relaxed), "a bug, as the test wants it");
        self.memory.open(partition).await
    }

    fn leader_epoch(&self, partition: PartitionId) -> Option<i32> {
        self.memory.leader_epoch(partition)
    }

    fn append(
        &self,
        partition: PartitionId,
        expected_base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        if let State::Fenced(_) = &*self.state.borrow() {
            self.asked.send_modify(|asked| *asked += 1);
            return Box::pin(async { Err(StoreError::Fenced) });
        }
        let stored = self.memory.append(partition, expected_base_offset, batches);
        // A semaphore's queue is entered by the first poll: here, so that answers go in the order of the calls and
        // not in that in which their tasks first run.
        let mut turn = Box::pin(self.answers.clone().acquire_owned());
        let entered = turn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.asked.send_modify(|asked| *asked += 1);
        Box::pin(async move {
            let permit = match entered {
                Poll::Ready(permit) => permit,
                Poll::Pending => turn.await,
            };
            permit.unwrap().forget();
            stored.await
        })
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
        if self.holds_reads.load(Ordering::Relaxed) {
            self.reads.acquire().await.unwrap().forget();
        }
        self.memory.read(partition, offset, max_bytes, at_least_one).await
    }

    async fn seek_time(&self, partition: PartitionId, timestamp: i64) -> Result<i64> {
        self.memory.seek_time(partition, timestamp).await
    }

    async fn set_log_start(&self, partition: PartitionId, offset: i64) -> Result<i64> {
        self.turn().await?;
        self.memory.set_log_start(partition, offset).await
    }

    async fn close(&self) {
        if !self.closes {
            std::future::pending::<()>().await;
        }
    }
}
