//! Appending: a batch gets its offsets at once and becomes visible when it is stored.
//!
//! ```text
//!          stamped, submitted              stored
//!  append ────────────────────▶ pending ───────────▶ visible: high watermark moves, client told
//!                                 ▲ │
//!       all else that was         │ │ conflict: the log ends elsewhere, the batch stays;
//!       submitted has its outcome,│ │ unknown outcome: it goes, and its client is told
//!       the partition is opened   │ ▼
//!       anew: what is pending    unsure
//!       gets places again, in order
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
use std::task::{Context, Poll, Waker};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Where a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: i64,
    /// The time of the append; -1 for a topic with CreateTime. A duplicate is answered with the
    /// largest timestamp of the first, as Kafka does.
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
        if !state.is_committing {
            self.resolve_at_once(&mut state);
        }
        if !state.is_committing && !state.pending.is_empty() {
            state.is_committing = true;
            tokio::spawn(self.clone().commit());
        }
        Appending(answered)
    }

    /// A store that has the batch already when it was submitted, as one in memory, needs no task
    /// that waits for it.
    fn resolve_at_once(&self, state: &mut State) {
        let stored = state.pending.front_mut().and_then(|first| first.stored.as_mut());
        let outcome =
            stored.map(|stored| stored.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        let Some(Poll::Ready(outcome)) = outcome else { return };
        // It has answered: a refused batch stays, and must not be waited for as if it had not.
        state.pending.iter_mut().take(1).for_each(|first| first.stored = None);
        self.resolve(state, 0, outcome);
    }

    /// Puts a batch behind all others and submits it, unless it is wrong or there already.
    fn place(&self, state: &mut State, mut new: Pending) {
        match judge(&state.producers, &new.batch.header) {
            Ok(Verdict::Next) => {
                new.batch.stamp(state.log_end_offset, state.leader_epoch);
                if new.batch.header.is_log_append_time() {
                    // Batches of one partition have times in the order of their offsets.
                    new.batch.set_append_time(wall_clock_ms());
                }
                state.log_end_offset = new.batch.header.next_offset();
                state.note_producer(&new.batch.header);
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
                state.advance(header.next_offset(), stored.batch.len());
                let metrics = &self.metrics.log;
                metrics.records_in.add(header.record_count.unsigned_abs().into());
                metrics.batches_in.increment();
                metrics.bytes_in.add(stored.batch.len() as u64);
                let log_start_offset = state.log_start_offset;
                let log_append_time_ms = match header.is_log_append_time() {
                    true => header.max_timestamp,
                    false => -1,
                };
                stored.answer(Ok(Appended { base_offset, log_append_time_ms, log_start_offset }));
            }
            Err(StoreError::Conflict { log_end_offset })
                if state.is_unsure
                    || log_end_offset >= state.high_watermark
                        && log_end_offset != header.base_offset =>
            {
                // It stays, and gets another place. But before that all others must have their
                // outcome: one that came after the refusal may have had the right place by chance.
                state.is_unsure = true;
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

    /// Finds out where the partition stands if that is not known: a batch whose append had an
    /// unknown outcome may be there. For who reads it to its end; nobody appends meanwhile.
    pub async fn settle(&self) -> Result<()> {
        if !self.state().is_unsure {
            return Ok(());
        }
        let opened = self.storage.open(self.id).await?;
        let mut state = self.state();
        if state.is_unsure && state.pending.is_empty() {
            self.reopen(&mut state, Ok(opened));
        }
        match state.is_unsure {
            true => Err(state.failed.clone().unwrap_or(StoreError::TimedOut)),
            false => Ok(()),
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
        state.start_at(opened.log_start_offset);
        state.log_end_offset = opened.log_end_offset;
        state.high_watermark = opened.log_end_offset;
        if state.leader_epoch != opened.leader_epoch {
            state.leader_epoch = opened.leader_epoch;
            state.epoch_start_offset = opened.log_end_offset;
        }
        state.producers = opened.producers;
        state.parked.drain(..).for_each(|parked| parked.wake());
        for pending in std::mem::take(&mut state.pending) {
            self.place(state, pending);
        }
    }
}

/// The time to which the timestamps of new records are held.
pub fn wall_clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::{Fixture, PARTITION};
    use crate::record::testing::Draft;
    use crate::store::{State as StoreState, Storage};

    fn base(answer: Answer) -> Result<i64, ErrorCode> {
        answer.map(|appended| appended.base_offset)
    }

    fn unavailable() -> StoreError {
        StoreError::Unavailable("test".into())
    }

    #[tokio::test]
    async fn batches_have_their_offsets_at_once_and_are_visible_when_stored() {
        let f = Fixture::new().await;
        f.store.hold();
        let mut first = f.submit(&Draft::of(&["a", "b"])).await;
        let mut second = f.submit(&Draft::of(&["c"])).await;
        let bounds = f.bounds();
        assert_eq!((bounds.log_end_offset, bounds.high_watermark), (3, 0));
        let (held, next) = (f.store.next().await, f.store.next().await);
        assert_eq!((held.expected, next.expected), (0, 2));
        assert_eq!((first.now(), second.now()), (None, None), "no ack before the commit");

        held.store(&f.store).await;
        assert_eq!(base(first.await), Ok(0));
        assert_eq!(f.bounds().high_watermark, 2);
        assert_eq!(second.now(), None);
        next.store(&f.store).await;
        assert_eq!(base(second.await), Ok(2));
        let stored = [(0, "a"), (1, "b"), (2, "c")].map(|(offset, v)| (offset, v.to_string()));
        assert_eq!(f.stored().await, stored);
    }

    #[tokio::test]
    async fn who_settles_sees_a_batch_that_was_stored_though_nobody_said_so() {
        let f = Fixture::new().await;
        f.store.hold();
        let appending = f.submit(&Draft::of(&["a", "b"])).await;
        f.store.next().await.store_and_fail(&f.store, unavailable()).await;
        assert_eq!(base(appending.await), Err(ErrorCode::KafkaStorageError));
        assert_eq!(f.bounds().high_watermark, 0);
        f.store.openings.lock().unwrap().push_back(Err(unavailable()));
        assert_eq!(f.partition.settle().await, Err(unavailable()));
        assert_eq!(f.partition.settle().await, Ok(()));
        assert_eq!(f.bounds().high_watermark, 2);
        assert_eq!((f.partition.settle().await, f.store.opens()), (Ok(()), 3));
    }

    #[tokio::test]
    async fn after_a_conflict_all_pending_batches_get_new_places_in_the_same_order() {
        let f = Fixture::new().await;
        f.store.hold();
        let producer = |sequence| Draft::of(&["ours"]).from_producer(7, 0, sequence);
        let mut appending = Vec::new();
        for sequence in 0..3 {
            appending.push(f.submit(&producer(sequence)).await);
        }
        let retry = f.submit(&producer(1)).await;
        // Somebody else writes to the host's log.
        let mut theirs = Draft::of(&["theirs", "theirs"]).batch();
        theirs.stamp(0, 0);
        f.store.memory.append(PARTITION, 0, vec![theirs]).await.unwrap();
        f.store.next().await.store(&f.store).await;
        for _ in 1..3 {
            f.store.next().await.fail(StoreError::Conflict { log_end_offset: 2 });
        }
        for expected in 2..5 {
            let held = f.store.next().await;
            assert_eq!(held.expected, expected);
            assert_eq!(held.batches[0].header.base_offset, expected);
            held.store(&f.store).await;
        }
        for (expected, appending) in (2..).zip(appending) {
            assert_eq!(base(appending.await), Ok(expected));
        }
        assert_eq!(base(retry.await), Ok(3));
        assert_eq!(base(f.append(&producer(2)).await), Ok(4), "also a later retry");
        assert_eq!(f.stored().await.len(), 5);
    }

    #[tokio::test]
    async fn a_batch_that_the_store_refuses_at_once_gets_another_place() {
        let f = Fixture::new().await;
        let mut theirs = Draft::of(&["theirs"]).batch();
        theirs.stamp(0, 0);
        f.store.memory.append(PARTITION, 0, vec![theirs]).await.unwrap();
        let ours = f.submit(&Draft::of(&["ours"])).await;
        assert_eq!(base(ours.await), Ok(1));
        let both = [(0, "theirs"), (1, "ours")].map(|(offset, v)| (offset, v.to_string()));
        assert_eq!(f.stored().await, both);
    }

    #[tokio::test]
    async fn a_batch_that_fits_behind_a_refused_one_is_stored_once() {
        let f = Fixture::new().await;
        f.store.hold();
        let refused = f.submit(&Draft::of(&["a"])).await;
        // As many records as that one has, so that the next one has the right place by chance.
        let mut theirs = Draft::of(&["theirs"]).batch();
        theirs.stamp(0, 0);
        f.store.memory.append(PARTITION, 0, vec![theirs]).await.unwrap();
        f.store.next().await.store(&f.store).await;
        // Nobody has taken the refusal in yet.
        let stored = f.submit(&Draft::of(&["b"])).await;
        f.store.next().await.store(&f.store).await;
        f.store.next().await.store(&f.store).await;
        assert_eq!((base(stored.await), base(refused.await)), (Ok(1), Ok(2)));
        let all = [(0, "theirs"), (1, "b"), (2, "a")].map(|(offset, v)| (offset, v.to_string()));
        assert_eq!(f.stored().await, all);
    }

    #[tokio::test]
    async fn a_duplicate_waits_for_the_first_and_is_stored_once() {
        let f = Fixture::new().await;
        f.store.hold();
        let draft = Draft::of(&["a", "b"]).from_producer(7, 0, 0);
        let first = f.submit(&draft).await;
        let mut retry = f.submit(&draft).await;
        assert_eq!(retry.now(), None);
        f.store.next().await.store(&f.store).await;
        let answer = first.await.unwrap();
        assert_eq!((answer.base_offset, answer.log_append_time_ms), (0, -1));
        let answer = retry.await.unwrap();
        assert_eq!((answer.base_offset, answer.log_append_time_ms), (0, draft.base_timestamp));
        assert_eq!(f.bounds().log_end_offset, 2);
    }

    #[tokio::test]
    async fn an_append_time_is_that_of_the_broker_and_answered_as_it_is_stored() {
        let f = Fixture::new().await;
        let draft = Draft { attributes: 1 << 3, max_timestamp: Some(7), ..Draft::of(&["a", "b"]) };
        let draft = draft.from_producer(7, 0, 0);
        let first = f.append(&draft).await.unwrap();
        assert!(first.log_append_time_ms > draft.base_timestamp);
        assert_eq!(f.append(&draft).await, Ok(first), "a retry");

        let mut stored = f.store.memory.read(PARTITION, 0, usize::MAX, true).await.unwrap();
        let batch = Batch::split_off(&mut stored[0]).unwrap();
        assert_eq!(
            (batch.header.max_timestamp, batch.header.attributes),
            (first.log_append_time_ms, 1 << 3)
        );
        assert_eq!((batch.checksum(), stored[0].len()), (batch.header.crc, 0));
    }

    #[tokio::test]
    async fn a_batch_whose_outcome_is_unknown_is_stored_once_if_its_client_tries_again() {
        for was_stored in [true, false] {
            let f = Fixture::new().await;
            let draft = Draft::of(&["a"]).from_producer(7, 0, 0);
            f.store.hold();
            let first = f.submit(&draft).await;
            let second = f.submit(&Draft::of(&["b"]).from_producer(8, 0, 0)).await;
            let held = f.store.next().await;
            match was_stored {
                true => held.store_and_fail(&f.store, StoreError::TimedOut).await,
                false => held.fail(StoreError::TimedOut),
            }
            assert_eq!(first.await, Err(ErrorCode::RequestTimedOut));
            let retry = f.submit(&draft).await;
            // What was submitted behind it is awaited before anything else is.
            f.store.next().await.store(&f.store).await;
            let mut left = if was_stored { 0 } else { 2 };
            while left > 0 {
                f.store.next().await.store(&f.store).await;
                left -= 1;
            }
            assert_eq!(base(retry.await), Ok(if was_stored { 0 } else { 1 }));
            assert_eq!(base(second.await), Ok(if was_stored { 1 } else { 0 }));
            assert_eq!((f.stored().await.len(), f.store.opens()), (2, 2));
        }
    }

    #[tokio::test]
    async fn what_followed_a_lost_batch_of_its_producer_is_out_of_order() {
        let f = Fixture::new().await;
        f.store.hold();
        let draft = |sequence| Draft::of(&["a"]).from_producer(7, 0, sequence);
        assert_eq!(f.bounds().log_end_offset, 0);
        let (zeroth, first, second) =
            (f.submit(&draft(0)).await, f.submit(&draft(1)).await, f.submit(&draft(2)).await);
        f.store.next().await.store(&f.store).await;
        f.store.next().await.fail(unavailable());
        f.store.next().await.store(&f.store).await;
        assert_eq!(base(zeroth.await), Ok(0));
        assert_eq!(base(first.await), Err(ErrorCode::KafkaStorageError));
        assert_eq!(base(second.await), Err(ErrorCode::OutOfOrderSequenceNumber));
        let again = f.submit(&draft(1)).await;
        f.store.next().await.store(&f.store).await;
        assert_eq!(base(again.await), Ok(1));
    }

    #[tokio::test]
    async fn a_partition_that_cannot_be_opened_anew_is_tried_again_by_the_next_append() {
        let f = Fixture::new().await;
        f.store.hold();
        let lost = f.submit(&Draft::of(&["lost"])).await;
        f.store.openings.lock().unwrap().push_back(Err(unavailable()));
        let waits = f.submit(&Draft::of(&["waits"])).await;
        f.store.next().await.fail(unavailable());
        f.store.next().await.store(&f.store).await;
        assert_eq!(base(lost.await), Err(ErrorCode::KafkaStorageError));
        assert_eq!(base(waits.await), Err(ErrorCode::KafkaStorageError));

        let again = f.submit(&Draft::of(&["again"])).await;
        f.store.next().await.store(&f.store).await;
        assert_eq!(base(again.await), Ok(0));
        assert_eq!(f.store.opens(), 3);
    }

    #[tokio::test]
    async fn a_store_that_lost_records_gives_no_offset_a_second_time() {
        let f = Fixture::new().await;
        assert_eq!(base(f.append(&Draft::of(&["a", "b"])).await), Ok(0));
        f.store.hold();
        let next = f.submit(&Draft::of(&["c"])).await;
        f.store.openings.lock().unwrap().push_back(Ok(Opened::default()));
        f.store.next().await.fail(StoreError::Conflict { log_end_offset: 0 });
        assert_eq!(base(next.await), Err(ErrorCode::NotLeaderOrFollower));
        let later = f.submit(&Draft::of(&["d"])).await;
        assert_eq!(base(later.await), Err(ErrorCode::KafkaStorageError));
        assert_eq!(f.partition.bounds(-1).err(), Some(ErrorCode::KafkaStorageError));
    }

    #[tokio::test]
    async fn a_fenced_writer_acks_nothing_more() {
        let f = Fixture::new().await;
        f.store.hold();
        let appending = [f.submit(&Draft::of(&["a"])).await, f.submit(&Draft::of(&["b"])).await];
        f.store.next().await.fail(StoreError::Fenced);
        for answer in appending {
            assert_eq!(base(answer.await), Err(ErrorCode::NotLeaderOrFollower));
        }
        let later = f.submit(&Draft::of(&["c"])).await;
        assert_eq!(base(later.await), Err(ErrorCode::NotLeaderOrFollower));
        assert_eq!(f.bounds_error(), Some(ErrorCode::NotLeaderOrFollower));
        f.store.state.send_replace(StoreState::Fenced(Default::default()));
        assert_eq!(f.log.partition(PARTITION).await.err(), Some(StoreError::Fenced));
        assert_eq!(f.log.leader_epoch(PARTITION), Some(0), "still known");
    }

    #[tokio::test]
    async fn a_partition_that_another_process_had_is_opened_anew() {
        let f = Fixture::new().await;
        f.store.hold();
        let lost = f.submit(&Draft::of(&["a"])).await;
        let mut theirs = Draft::of(&["theirs"]).batch();
        theirs.stamp(0, 0);
        f.store.memory.append(PARTITION, 0, vec![theirs]).await.unwrap();
        f.store.next().await.fail(StoreError::Fenced);
        assert_eq!(base(lost.await), Err(ErrorCode::NotLeaderOrFollower));

        f.store.openings.lock().unwrap().push_back(Err(StoreError::Fenced));
        assert_eq!(f.log.partition(PARTITION).await.err(), Some(StoreError::Fenced));
        let back = f.log.partition(PARTITION).await.unwrap();
        assert_eq!(back.bounds(-1).unwrap().log_end_offset, 1);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_changes_nothing() {
        let f = Fixture::new().await;
        f.store.hold();
        drop(f.submit(&Draft::of(&["a"])).await);
        f.store.next().await.store(&f.store).await;
        let next = f.submit(&Draft::of(&["b"])).await;
        f.store.next().await.store(&f.store).await;
        assert_eq!(base(next.await), Ok(1));
    }

    #[tokio::test]
    async fn memory_of_a_batch_is_given_back_when_it_is_stored() {
        let f = Fixture::new().await;
        f.store.hold();
        let before = f.log.room.available_permits();
        drop(f.submit(&Draft::of(&["a"])).await);
        assert_eq!(f.log.room.available_permits(), before - 1);
        f.store.next().await.store(&f.store).await;
        let next = f.submit(&Draft::of(&["b"])).await;
        f.store.next().await.store(&f.store).await;
        next.await.unwrap();
        assert_eq!(f.log.room.available_permits(), before);
    }

    #[tokio::test]
    async fn appends_of_many_at_once_have_dense_offsets() {
        let f = std::sync::Arc::new(Fixture::new().await);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let f = f.clone();
            tasks.spawn(async move { base(f.append(&Draft::of(&["a", "b"])).await) });
        }
        let mut offsets: Vec<i64> =
            tasks.join_all().await.into_iter().map(|o| o.unwrap()).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, (0..50).map(|i| 2 * i).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_deleted_topic_answers_whoever_waits_for_it() {
        let f = Fixture::new().await;
        f.store.hold();
        let appending = f.submit(&Draft::of(&["a"])).await;
        f.log.forget(PARTITION.topic);
        assert_eq!(base(appending.await), Err(ErrorCode::UnknownTopicOrPartition));
        f.store.next().await.store(&f.store).await;
        tokio::task::yield_now().await;
        assert_eq!(f.bounds_error(), Some(ErrorCode::UnknownTopicOrPartition));
    }

    impl Fixture {
        fn bounds_error(&self) -> Option<ErrorCode> {
            self.partition.bounds(-1).err()
        }
    }
}
