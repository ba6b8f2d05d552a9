//! The writer of the journal: group commits, several puts in flight, committed in order.

use super::faults::Rule;
use super::format::{self, Body, Frame, Object, Placed};
use super::journal::{Inner, Journal, ended};
use super::keys::Position;
use super::putting::{self, Outcome};
use crate::store::{PartitionId, Result, State, StoreError};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

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

/// How the writer ended.
pub(super) enum End {
    Closed,
    Fenced,
    Failed(String),
}

/// What the writer does next.
enum Turn {
    Put(Group),
    /// Waits until something happens, or for no longer than this.
    Wait(Option<Instant>),
    End(End),
}

impl Journal {
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
            let until = match self.turn() {
                Turn::Put(group) => {
                    self.send(&mut puts, group);
                    // A store that is done at once must not keep this thread from all else.
                    consume_budget().await;
                    continue;
                }
                Turn::Wait(until) => until,
                Turn::End(end) => return end,
            };
            tokio::select! {
                biased;
                Some(resolved) = puts.join_next() => match resolved {
                    Ok(resolved) => self.resolve(&mut puts, resolved),
                    Err(panic) => return End::Failed(format!("a put ended early: {panic}")),
                },
                () = self.submitted.notified() => {}
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            }
        }
    }

    fn turn(&self) -> Turn {
        let mut inner = self.lock();
        let in_flight = inner.sent.len();
        if inner.is_fenced {
            return Turn::End(End::Fenced);
        }
        if inner.queue.is_empty() {
            let is_done = inner.closing && in_flight == 0;
            return if is_done { Turn::End(End::Closed) } else { Turn::Wait(None) };
        }
        if in_flight >= self.options.puts_in_flight {
            return Turn::Wait(None);
        }
        if inner.queued_bytes < self.options.beside_bytes {
            if in_flight > 0 {
                return Turn::Wait(None);
            }
            if !inner.closing
                && let Some(until) = inner.riders.wait_until(inner.queue.len())
            {
                return Turn::Wait(Some(until));
            }
        }
        Turn::Put(self.group(&mut inner))
    }

    /// Takes what waits for the next place.
    fn group(&self, inner: &mut Inner) -> Group {
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
        group
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
                let took = resolved.began.elapsed();
                self.options.metrics.commit_time.observe(took);
                inner.proof = inner.proof.max(resolved.began);
                inner.sent[i].won = true;
                if !self.options.faults.keep(Rule::AckInOrder) {
                    inner.sent[i].answer_early();
                }
                let answered = self.commit(&mut inner);
                let waiting = inner.queue.len();
                inner.riders.answered(took, answered + waiting);
            }
            Outcome::Foreign(object) if self.options.faults.keep(Rule::StopWhenFenced) => {
                drop(inner);
                self.fence(&object);
            }
            Outcome::Foreign(_) => self.send_behind(inner, puts, i),
            Outcome::Absent => self.regroup(inner, puts, i),
        }
    }

    /// Commits, in order, what is certain: so many frames.
    fn commit(&self, inner: &mut Inner) -> usize {
        let mut answered = 0;
        while inner.sent.front().is_some_and(|sent| sent.won)
            && let Some(mut sent) = inner.sent.pop_front()
        {
            self.options.metrics.commits.increment();
            self.options.metrics.commit_bytes.add(sent.object.bytes);
            let commit = std::mem::take(&mut sent.object.commit);
            answered += commit.frames.len();
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
        answered
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
