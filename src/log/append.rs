//! Appending: a batch gets its offsets at once and becomes visible when it is stored.
//!
//! ```text
//!          stamped, submitted              stored
//!  append ────────────────────▶ pending ───────────▶ visible: high watermark moves, client told
//!                                │   ▲ │
//!       conflict: the log ends   │   │ │ unknown outcome: that client is told; what else was
//!       elsewhere; all pending   └───┘ │ submitted is awaited, the partition opened anew
//!       are stamped and submitted  ▲   ▼
//!       again, in order            └─ unsure
//! ```
//!
//! One task for each partition with pending batches waits for the store, in their order. It does
//! not depend on clients: who goes away or gives up changes nothing.

use super::idempotence::{Verdict, judge};
use super::partition::{Partition, State};
use crate::protocol::error_code::ErrorCode;
use crate::record::batch::{Batch, Header};
use crate::store::producers::ProducerBatch;
use crate::store::{BoxFuture, Opened, Result, StoreError};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: i64,
    /// The broker's time, if it is known: -1 for a topic with CreateTime. A duplicate is answered
    /// with its own largest timestamp, as Kafka does.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
}

pub type Answer = Result<Appended, ErrorCode>;

/// The answer to an append, which comes when the batch is stored. It may be dropped.
#[derive(Debug)]
pub struct Appending(oneshot::Receiver<Answer>);

/// A batch that is not yet stored.
pub(super) struct Pending {
    batch: Batch,
    /// The store's promise; `None` while the batch is not submitted, or the task waits for it.
    stored: Option<BoxFuture<'static, Result<i64>>>,
    answer: oneshot::Sender<Answer>,
    /// Others that sent the same batch.
    duplicates: Vec<oneshot::Sender<Answer>>,
    _room: OwnedSemaphorePermit,
}

impl Partition {
    /// Gives a checked batch its offsets and submits it. Batches are stored in the order of these
    /// calls.
    pub fn append(self: &Arc<Self>, batch: Batch, room: OwnedSemaphorePermit) -> Appending {
        let (answer, answered) = oneshot::channel();
        let duplicates = Vec::new();
        let pending = Pending { batch, stored: None, answer, duplicates, _room: room };
        let mut state = self.state();
        match &state.failed {
            Some(error) => pending.answer(Err(error.clone().into())),
            None if state.is_unsure => state.pending.push_back(pending),
            None => self.place(&mut state, pending),
        }
        if !state.is_committing && !state.pending.is_empty() {
            state.is_committing = true;
            tokio::spawn(self.clone().commit());
        }
        Appending(answered)
    }

    /// Puts a batch behind all others and submits it, unless it is wrong or there already.
    fn place(&self, state: &mut State, mut new: Pending) {
        match judge(&state.producers, &new.batch.header) {
            Ok(Verdict::Next) => {
                new.batch.stamp(state.log_end_offset, state.leader_epoch);
                state.log_end_offset = new.batch.header.last_offset() + 1;
                state.producers.apply(&new.batch.header);
                self.submit(&mut new);
                state.pending.push_back(new);
            }
            Ok(Verdict::Duplicate(of)) => {
                let header = &new.batch.header;
                match state.pending.iter_mut().find(|p| is_same(&p.batch.header, header)) {
                    // It waits as the first one does: there is no ack before the commit.
                    Some(first) => {
                        first.duplicates.push(new.answer);
                        first.duplicates.append(&mut new.duplicates);
                    }
                    None => new.answer(Ok(Appended::duplicate(&of, state.log_start_offset))),
                }
            }
            Err(code) => new.answer(Err(code)),
        }
    }

    fn submit(&self, pending: &mut Pending) {
        let batch = pending.batch.clone();
        let base_offset = batch.header.base_offset;
        pending.stored = Some(self.storage.append(self.id, base_offset, vec![batch]));
    }

    /// Waits for the pending batches, until there are none.
    async fn commit(self: Arc<Self>) {
        loop {
            let submitted = {
                let mut state = self.state();
                if state.pending.is_empty() {
                    state.is_committing = false;
                    return;
                }
                let mut places = state.pending.iter_mut().enumerate();
                places.find_map(|(place, p)| p.stored.take().map(|stored| (place, stored)))
            };
            match submitted {
                Some((place, stored)) => {
                    let outcome = stored.await;
                    self.resolve(&mut self.state(), place, outcome);
                }
                None => {
                    let opened = self.storage.open(self.id).await;
                    self.reopen(&mut self.state(), opened);
                }
            }
        }
    }

    /// Takes in what became of the batch at `place`, of which the store was asked.
    fn resolve(&self, state: &mut State, place: usize, outcome: Result<i64>) {
        // The partition may have failed in the meantime, and all its clients were told.
        let Some(pending) = state.pending.get(place) else { return };
        let header = pending.batch.header;
        match outcome {
            Ok(base_offset) if base_offset == header.base_offset => {
                let Some(stored) = state.pending.remove(place) else { return };
                state.advance(header.last_offset() + 1, stored.batch.len());
                let log_start_offset = state.log_start_offset;
                stored.answer(Ok(Appended {
                    base_offset,
                    log_append_time_ms: -1,
                    log_start_offset,
                }));
            }
            Err(StoreError::Conflict { log_end_offset })
                if log_end_offset >= state.high_watermark
                    && log_end_offset != header.base_offset =>
            {
                if !state.is_unsure {
                    self.restamp(state, log_end_offset);
                }
            }
            Err(error @ (StoreError::Fenced | StoreError::UnknownPartition)) => state.fail(error),
            // Also a store that breaks its contract: nothing is known of what it holds.
            unknown => {
                let error = unknown.err().unwrap_or(StoreError::Unavailable("wrong offset".into()));
                tracing::warn!(partition = ?self.id, %error, "the outcome of an append is unknown");
                state.is_unsure = true;
                if let Some(lost) = state.pending.remove(place) {
                    lost.answer(Err(error.into()));
                }
            }
        }
    }

    /// Gives all pending batches, none of which was stored, their places behind the true log end.
    fn restamp(&self, state: &mut State, log_end_offset: i64) {
        state.log_end_offset = log_end_offset;
        for pending in &mut state.pending {
            pending.batch.stamp(state.log_end_offset, state.leader_epoch);
            state.log_end_offset = pending.batch.header.last_offset() + 1;
            state.producers.restamp(&pending.batch.header);
            self.submit(pending);
        }
    }

    /// Takes in where the partition really stands, and judges the batches that wait for that.
    fn reopen(&self, state: &mut State, opened: Result<Opened>) {
        let opened = match opened {
            Ok(opened) if opened.log_end_offset >= state.high_watermark => opened,
            // Going on would give offsets a second time.
            Ok(_) => return state.fail(StoreError::Corrupt("stored records are gone".into())),
            Err(error @ (StoreError::Fenced | StoreError::UnknownPartition)) => {
                return state.fail(error);
            }
            Err(error) => {
                let code = ErrorCode::from(error);
                return state.pending.drain(..).for_each(|pending| pending.answer(Err(code)));
            }
        };
        state.is_unsure = false;
        state.log_start_offset = opened.log_start_offset;
        state.log_end_offset = opened.log_end_offset;
        state.high_watermark = opened.log_end_offset;
        state.leader_epoch = opened.leader_epoch;
        state.producers = opened.producers;
        state.parked.drain(..).for_each(|parked| parked.wake());
        for pending in std::mem::take(&mut state.pending) {
            self.place(state, pending);
        }
    }
}

fn is_same(a: &Header, b: &Header) -> bool {
    (a.producer_id, a.producer_epoch, a.base_sequence)
        == (b.producer_id, b.producer_epoch, b.base_sequence)
}

impl Appended {
    fn duplicate(of: &ProducerBatch, log_start_offset: i64) -> Self {
        let (base_offset, log_append_time_ms) = (of.base_offset, of.max_timestamp);
        Self { base_offset, log_append_time_ms, log_start_offset }
    }
}

impl Pending {
    pub(super) fn answer(self, answer: Answer) {
        let log_append_time_ms = self.batch.header.max_timestamp;
        let of_duplicate = answer.map(|first| Appended { log_append_time_ms, ..first });
        // A client that has gone away or given up hears nothing.
        let _ = self.answer.send(answer);
        for duplicate in self.duplicates {
            let _ = duplicate.send(of_duplicate);
        }
    }
}

impl Appending {
    /// The answer, if it is there already: a batch that is refused has it at once.
    pub fn now(&mut self) -> Option<Answer> {
        self.0.try_recv().ok()
    }
}

impl Future for Appending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        // The engine may end before the batch is stored: the client looks for another leader.
        let ended = Err(ErrorCode::NotLeaderOrFollower);
        Pin::new(&mut self.0).poll(cx).map(|answer| answer.unwrap_or(ended))
    }
}
