//! The owner's side of the journal: what was submitted, and what became of it.
//!
//! ```text
//!  append ─▶ queue ─▶ sent (at a place, its bytes fixed) ─▶ won ─▶ committed
//!                                      │                     all lower places are won too
//!                                      └▶ another's object at the place: fenced, for good
//! ```
//!
//! A commit takes what arrived while earlier puts were in flight, and a small one waits for its riders
//! (`riders.rs`). A place that was sent keeps its
//! bytes until its outcome is known, however long that takes and whoever still waits for it.

use super::Options;
use super::ahead::Reads;
use super::faults::Rule;
use super::format::{Body, Frame};
use super::keys::{Keys, Position};
use super::log::Log;
use super::opening::Opening;
use super::riders::Riders;
use super::writing::Sent;
use crate::record::batch::Batch;
use crate::store::objects::Objects;
use crate::store::{EpochStart, Opened, PartitionId, Result, State, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

/// The most that one object may hold; clients' requests are far smaller.
const MOST_BYTES: usize = 1 << 30;

pub(super) struct Journal {
    pub objects: Arc<dyn Objects>,
    pub options: Options,
    /// Random: no two starts of a process have the same.
    pub nonce: u64,
    pub keys: Keys,
    pub epoch: i32,
    /// Of the whole store.
    pub state: watch::Sender<State>,
    inner: Mutex<Inner>,
    /// Something to do for the writer.
    pub submitted: Notify,
    /// Something to read ahead.
    pub ahead: Notify,
    /// Something was committed, or this process was fenced. It wakes in the order of waiting: a
    /// watch would wake by chance, and no two runs of a simulation would be alike.
    pub progress: Notify,
    /// The list of segments changed.
    pub list_changed: Notify,
    /// Held by the one job that rewrites.
    pub rewriting: tokio::sync::Mutex<()>,
}

pub(super) struct Inner {
    pub log: Log,
    /// The log ends with what is submitted, where they are not the committed ones.
    pub assigned: BTreeMap<PartitionId, i64>,
    /// Partitions of which an append was refused; its caller knows when the mark is dropped.
    refused: BTreeMap<PartitionId, Weak<()>>,
    pub queue: VecDeque<Submitted>,
    pub queued_bytes: usize,
    pub riders: Riders,
    /// Objects at places from `log.image.position` on, in order.
    pub sent: VecDeque<Sent>,
    /// The first place that was not sent.
    pub next: Position,
    /// When the last put or look began that proved that nobody took over.
    pub proof: Instant,
    pub is_fenced: bool,
    pub closing: bool,
    pub reads: Reads,
}

pub(super) struct Submitted {
    pub frame: Frame,
    pub done: oneshot::Sender<Result<i64>>,
}

/// About what a frame takes in memory besides its batches.
const SUBMITTED_BYTES: usize = 256;

impl Submitted {
    /// What it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        SUBMITTED_BYTES + self.frame.len()
    }
}

/// Why an append was not submitted. Until the first one is dropped, nothing is appended to the
/// partition: a batch behind the refused one must not come before it.
pub(super) struct Refused {
    pub error: StoreError,
    _is_first: Option<Arc<()>>,
}

impl Journal {
    pub(super) fn new(
        objects: Arc<dyn Objects>,
        options: Options,
        nonce: u64,
        keys: Keys,
        state: watch::Sender<State>,
        opening: Opening,
    ) -> Self {
        let Opening { mut log, proof } = opening;
        let next = log.image.position;
        let metrics = &options.metrics;
        metrics.epoch.set(u64::from(next.epoch.unsigned_abs()));
        metrics.depth_bytes.set(log.untiered_bytes);
        log.blocks.metrics = metrics.batches.clone();
        log.indexes.metrics = metrics.indexes.clone();
        let inner = Inner {
            log,
            assigned: BTreeMap::new(),
            refused: BTreeMap::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            riders: Riders::default(),
            sent: VecDeque::new(),
            next,
            proof,
            is_fenced: false,
            closing: false,
            reads: Reads::default(),
        };
        Self {
            objects,
            options,
            nonce,
            keys,
            epoch: next.epoch,
            state,
            inner: Mutex::new(inner),
            submitted: Notify::new(),
            ahead: Notify::new(),
            progress: Notify::new(),
            list_changed: Notify::new(),
            rewriting: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits batches that go exactly where the partition's log ends.
    pub(super) fn append(
        &self,
        partition: PartitionId,
        base_offset: i64,
        batches: Vec<Batch>,
    ) -> Result<oneshot::Receiver<Result<i64>>, Refused> {
        let mut inner = self.lock();
        let submitted = self.submit_batches(&mut inner, partition, base_offset, batches);
        submitted.map_err(|error| inner.refuse(partition, error))
    }

    fn submit_batches(
        &self,
        inner: &mut Inner,
        partition: PartitionId,
        base_offset: i64,
        batches: Vec<Batch>,
    ) -> Result<oneshot::Receiver<Result<i64>>> {
        if batches.is_empty() {
            return Err(StoreError::Corrupt("there is no batch to append".into()));
        }
        let mut next = base_offset;
        for batch in &batches {
            if batch.header.base_offset != next || batch.header.last_offset_delta < 0 {
                return Err(StoreError::Corrupt("batches that do not follow each other".into()));
            }
            next = batch.header.next_offset();
        }
        let log_end_offset = inner.assigned_end(partition);
        if log_end_offset != base_offset || inner.is_refused(partition) {
            return Err(StoreError::Conflict { log_end_offset });
        }
        let body = Body::Batches { base_offset, batches };
        let done = self.submit(inner, Frame { partition, leader_epoch: self.epoch, body })?;
        inner.assigned.insert(partition, next);
        inner.refused.remove(&partition);
        Ok(done)
    }

    fn submit(&self, inner: &mut Inner, frame: Frame) -> Result<oneshot::Receiver<Result<i64>>> {
        if inner.is_fenced {
            return Err(StoreError::Fenced);
        }
        if inner.closing || frame.len() > MOST_BYTES {
            return Err(StoreError::Unavailable("it takes no more".into()));
        }
        let (done, wait) = oneshot::channel();
        let submitted = Submitted { frame, done };
        let bytes = submitted.bytes();
        if inner.queued_bytes + bytes > self.options.waiting_bytes.max(bytes) {
            return Err(StoreError::Unavailable("too many bytes wait to be stored".into()));
        }
        inner.queued_bytes += bytes;
        self.options.metrics.waiting_bytes.set(inner.queued_bytes as u64);
        inner.queue.push_back(submitted);
        self.submitted.notify_one();
        Ok(wait)
    }

    /// Moves the log start forward by a frame, and answers when that is committed.
    pub(super) async fn set_log_start(&self, partition: PartitionId, offset: i64) -> Result<i64> {
        let wait = {
            let mut inner = self.lock();
            let known = inner.log.image.partitions.get(&partition);
            let (start, end) = known.map_or((0, 0), |p| (p.log_start_offset, p.log_end_offset));
            if offset > end {
                return Err(StoreError::OffsetOutOfRange);
            }
            if offset <= start {
                return Ok(start);
            }
            if !self.options.faults.keep(Rule::StartByFrame) {
                let partition = inner.log.image.partitions.get_mut(&partition);
                partition.into_iter().for_each(|partition| partition.move_start(offset));
                return Ok(offset);
            }
            let body = Body::LogStart(offset);
            self.submit(&mut inner, Frame { partition, leader_epoch: self.epoch, body })?
        };
        let start = wait.await.unwrap_or_else(|_| Err(ended()))?;
        let inner = self.lock();
        Ok(inner.log.image.partitions.get(&partition).map_or(start, |p| p.log_start_offset))
    }

    /// Where a partition stands when nothing that was submitted to it is under way.
    pub(super) async fn open(&self, partition: PartitionId) -> Result<Opened> {
        loop {
            let progress = self.progress.notified();
            {
                let inner = self.lock();
                self.check_fresh(&inner)?;
                if !inner.assigned.contains_key(&partition) {
                    let state = inner.log.image.partitions.get(&partition);
                    return Ok(Opened {
                        log_start_offset: state.map_or(0, |state| state.log_start_offset),
                        log_end_offset: state.map_or(0, |state| state.log_end_offset),
                        leader_epoch: self.epoch,
                        producers: state.map(|state| state.producers.clone()).unwrap_or_default(),
                    });
                }
            }
            progress.await;
        }
    }

    pub(super) fn epochs(&self, partition: PartitionId) -> Result<Vec<EpochStart>> {
        let inner = self.lock();
        self.check_fresh(&inner)?;
        let state = inner.log.image.partitions.get(&partition);
        Ok(state.map(|state| state.epochs.clone()).unwrap_or_default())
    }

    /// Who replays the journal from an older checkpoint than the next one knows them again: all that
    /// follows from it is that they are forgotten later.
    pub(super) fn forget_producers(&self, partition: PartitionId, producer_ids: &[i64]) {
        if let Some(partition) = self.lock().log.image.partitions.get_mut(&partition) {
            producer_ids.iter().for_each(|id| partition.producers.remove(*id));
        }
    }

    /// Takes nothing more; the writer ends when all is stored.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.submitted.notify_one();
    }
}

impl Inner {
    fn assigned_end(&self, partition: PartitionId) -> i64 {
        let committed =
            || self.log.image.partitions.get(&partition).map_or(0, |p| p.log_end_offset);
        self.assigned.get(&partition).copied().unwrap_or_else(committed)
    }

    /// Whether a refusal is under way to its caller.
    fn is_refused(&self, partition: PartitionId) -> bool {
        self.refused.get(&partition).is_some_and(|first| first.strong_count() > 0)
    }

    fn refuse(&mut self, partition: PartitionId, error: StoreError) -> Refused {
        let is_first = (!self.is_refused(partition)).then(Arc::default);
        if let Some(first) = &is_first {
            // Those of partitions that nobody appends to any more would stay for good.
            self.refused.retain(|_, first| first.strong_count() > 0);
            self.refused.insert(partition, Arc::downgrade(first));
        }
        Refused { error, _is_first: is_first }
    }
}

pub(super) fn ended() -> StoreError {
    StoreError::Unavailable("it has ended".into())
}
