//! The owner's side of the journal: group commits, several puts in flight, committed in order.
//!
//! ```text
//!  append ─▶ queue ─▶ sent (at a place, its bytes fixed) ─▶ won ─▶ committed
//!                                      │                     all lower places are won too
//!                                      └▶ another's object at the place: fenced, for good
//! ```
//!
//! A commit takes what arrived while earlier puts were in flight. A place that was sent keeps its
//! bytes until its outcome is known, however long that takes and whoever still waits for it.

use super::Options;
use super::ahead::Reads;
use super::faults::Rule;
use super::format::{self, Body, Frame, Object, Placed};
use super::keys::{Keys, Position};
use super::log::Log;
use super::opening::Opening;
use super::putting::{self, Outcome};
use crate::record::batch::Batch;
use crate::store::objects::Objects;
use crate::store::{EpochStart, Opened, PartitionId, Result, State, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;
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
    state: watch::Sender<State>,
    inner: Mutex<Inner>,
    /// Something to do for the writer.
    submitted: Notify,
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
    assigned: BTreeMap<PartitionId, i64>,
    /// Partitions of which an append was refused; its caller knows when the mark is dropped.
    refused: BTreeMap<PartitionId, Weak<()>>,
    pub queue: VecDeque<Submitted>,
    pub queued_bytes: usize,
    /// Objects at places from `log.image.position` on, in order.
    pub sent: VecDeque<Sent>,
    /// The first place that was not sent.
    pub next: Position,
    /// When the last put or look began that proved that nobody took over.
    pub proof: Instant,
    pub is_fenced: bool,
    closing: bool,
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

pub(super) struct Sent {
    pub object: Object,
    pub at: Position,
    pub done: Vec<Done>,
    pub won: bool,
}

/// What becomes one object.
pub(super) struct Group {
    pub at: Position,
    pub frames: Vec<Frame>,
    pub done: Vec<Done>,
}

/// Whoever waits for a frame, until there is an answer.
type Done = Option<oneshot::Sender<Result<i64>>>;

/// Why an append was not submitted. Until the first one is dropped, nothing is appended to the
/// partition: a batch behind the refused one must not come before it.
pub(super) struct Refused {
    pub error: StoreError,
    _is_first: Option<Arc<()>>,
}

/// How the writer ended.
pub(super) enum End {
    Closed,
    Fenced,
    Failed(String),
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

    /// The writer. Ends when this process is fenced, or closed and all is stored; who waits still
    /// is answered then.
    pub(super) async fn run(self: Arc<Self>) -> End {
        let end = self.write().await;
        let error = if matches!(end, End::Fenced) { StoreError::Fenced } else { ended() };
        let mut inner = self.lock();
        inner.closing = true;
        inner.assigned.clear();
        let sent = std::mem::take(&mut inner.sent).into_iter().flat_map(|sent| sent.done).flatten();
        let queued = std::mem::take(&mut inner.queue).into_iter().map(|submitted| submitted.done);
        for done in sent.chain(queued) {
            // Who no longer waits needs no answer.
            let _ = done.send(Err(error.clone()));
        }
        drop(inner);
        self.progress.notify_waiters();
        end
    }

    async fn write(&self) -> End {
        let mut puts = JoinSet::new();
        loop {
            while let Some(group) = self.group() {
                self.send(&mut puts, group);
                // A store that is done at once must not keep this thread from all else.
                consume_budget().await;
            }
            if self.lock().is_fenced {
                return End::Fenced;
            }
            if puts.is_empty() && self.is_closed() {
                return End::Closed;
            }
            tokio::select! {
                biased;
                Some(resolved) = puts.join_next() => match resolved {
                    Ok(resolved) => self.resolve(&mut puts, resolved),
                    Err(panic) => return End::Failed(format!("a put ended early: {panic}")),
                },
                () = self.submitted.notified() => {}
            }
        }
    }

    /// Takes what waits for the next place, if a put may begin.
    fn group(&self) -> Option<Group> {
        let mut inner = self.lock();
        let is_full = inner.sent.len() >= self.options.puts_in_flight;
        let is_little = inner.queued_bytes < self.options.beside_bytes && !inner.sent.is_empty();
        if inner.is_fenced || is_full || is_little || inner.queue.is_empty() {
            return None;
        }
        let mut group = Group { at: inner.next, frames: Vec::new(), done: Vec::new() };
        let mut bytes = 0;
        while let Some(front) = inner.queue.front() {
            bytes += front.frame.stored_bytes();
            if !group.frames.is_empty() && bytes > self.options.commit_bytes {
                break;
            }
            let Some(submitted) = inner.queue.pop_front() else { break };
            inner.queued_bytes -= submitted.bytes();
            group.frames.push(submitted.frame);
            group.done.push(Some(submitted.done));
        }
        inner.next = group.at.next();
        self.options.metrics.waiting_bytes.set(inner.queued_bytes as u64);
        Some(group)
    }

    pub(super) fn send(&self, puts: &mut JoinSet<putting::Resolved>, group: Group) {
        let Group { at, frames, done } = group.side_by_side();
        let object = format::encode_journal(at, self.nonce, frames);
        let (objects, key) = (self.objects.clone(), self.keys.journal(at));
        let put = putting::put(objects, at, key, object.parts.clone(), self.options.faults);
        {
            let mut inner = self.lock();
            if !self.options.faults.keep(Rule::VisibleAfterCommit) {
                inner.log.take(at, object.bytes, object.commit.clone());
            }
            inner.sent.push_back(Sent { object, at, done, won: false });
        }
        // A store that is done at once needs no task that waits for it.
        let mut put = Box::pin(put);
        match put.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(resolved) => self.resolve(puts, resolved),
            Poll::Pending => drop(puts.spawn(put)),
        }
    }

    fn resolve(&self, puts: &mut JoinSet<putting::Resolved>, resolved: putting::Resolved) {
        let mut inner = self.lock();
        if inner.is_fenced {
            return;
        }
        let Some(i) = inner.sent.iter().position(|sent| sent.at == resolved.at) else {
            unreachable!("a put is resolved once, and its place is sent until then");
        };
        match resolved.outcome {
            Outcome::Ours => {
                self.options.metrics.commit_time.observe(resolved.began.elapsed());
                inner.proof = inner.proof.max(resolved.began);
                inner.sent[i].won = true;
                if !self.options.faults.keep(Rule::AckInOrder) {
                    inner.sent[i].answer_early();
                }
                self.commit(&mut inner);
            }
            Outcome::Foreign(object) if self.options.faults.keep(Rule::StopWhenFenced) => {
                drop(inner);
                self.fence(&object);
            }
            Outcome::Foreign(_) => self.send_behind(inner, puts, i),
            Outcome::Absent => self.regroup(inner, puts, i),
        }
    }

    /// Commits, in order, what is certain.
    fn commit(&self, inner: &mut Inner) {
        while inner.sent.front().is_some_and(|sent| sent.won)
            && let Some(mut sent) = inner.sent.pop_front()
        {
            self.options.metrics.commits.increment();
            self.options.metrics.commit_bytes.add(sent.object.bytes);
            let commit = std::mem::take(&mut sent.object.commit);
            let ends: Vec<_> = commit.frames.iter().filter_map(end_of).collect();
            sent.answers_of(&commit.frames);
            if self.options.faults.keep(Rule::VisibleAfterCommit) {
                inner.log.take(sent.at, sent.object.bytes, commit);
            }
            for (partition, end) in ends {
                if inner.assigned.get(&partition) == Some(&end) {
                    inner.assigned.remove(&partition);
                }
            }
        }
        self.options.metrics.depth_bytes.set(inner.log.untiered_bytes);
        self.progress.notify_waiters();
    }

    /// Another process took over: nothing more is taken or answered, for good.
    pub(super) fn fence(&self, object: &[u8]) {
        let owner = putting::owner_of(object);
        tracing::warn!(address = owner.address, pid = owner.pid, "another process took over");
        // First, so that who is told that it must look for another owner finds it.
        self.state.send_replace(State::Fenced(owner));
        self.lock().is_fenced = true;
        self.submitted.notify_one();
        self.progress.notify_waiters();
    }

    /// Takes nothing more; the writer ends when all is stored.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.submitted.notify_one();
    }

    fn is_closed(&self) -> bool {
        let inner = self.lock();
        inner.closing && inner.queue.is_empty()
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

impl Sent {
    pub(super) fn answers_of(&mut self, frames: &[Placed]) {
        for (done, placed) in self.done.iter_mut().zip(frames) {
            let offset = match &placed.frame.body {
                Body::Batches { base_offset, .. } => *base_offset,
                Body::LogStart(offset) => *offset,
            };
            if let Some(done) = done.take() {
                // Who no longer waits needs no answer.
                let _ = done.send(Ok(offset));
            }
        }
    }
}

fn end_of(placed: &Placed) -> Option<(PartitionId, i64)> {
    let Body::Batches { batches, .. } = &placed.frame.body else { return None };
    batches.last().map(|batch| (placed.frame.partition, batch.header.next_offset()))
}

pub(super) fn ended() -> StoreError {
    StoreError::Unavailable("it has ended".into())
}
