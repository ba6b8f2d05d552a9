//! The appends of one partition on their way to the host: one under way, the rest in line.
//!
//! ```text
//!   submit ──▶ queued ──▶ under way ──▶ appended: answered; all that is queued goes next
//!                              └──────▶ refused:  answered, and with it all that is queued
//! ```
//!
//! One host append carries all that queued up meanwhile: a group commit. How much that can be is
//! bounded by the log's room, which holds back what would be too much.

use super::data::Slices;
use super::host::Host;
use super::operation::{Callback, KelpOp};
use super::producer_state::ProducerState;
use super::status::{Failure, KELP_CONFLICT, KELP_OK};
use super::storage::{KelpAppend, KelpPartition};
use crate::record::batch::{Batch, HEADER_BYTES};
use crate::store::topics::Topic;
use crate::store::{BoxFuture, Result, StoreError};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// A host append takes no more once it has so much: hosts have limits for their messages.
const RUN_BYTES: usize = 16 << 20;

pub(super) struct Appends {
    host: Arc<Host>,
    append: Callback<KelpAppend>,
    pub(super) topic: Arc<Topic>,
    pub(super) index: i32,
    inner: Mutex<Inner>,
    /// Whether an append is under way. Changed under the lock only.
    busy: watch::Sender<bool>,
    /// Called when the producer state is worth a snapshot.
    snapshot: Box<dyn Fn(&ProducerState) + Send + Sync>,
}

#[derive(Default)]
struct Inner {
    queued: VecDeque<Waiting>,
    producers: Option<ProducerState>,
}

/// One call of [`Appends::submit`].
struct Waiting {
    base_offset: i64,
    next_offset: i64,
    batches: Vec<Batch>,
    answer: oneshot::Sender<Result<i64>>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }
}

impl Appends {
    pub(super) fn new(
        host: Arc<Host>,
        append: Callback<KelpAppend>,
        topic: Arc<Topic>,
        index: i32,
        snapshot: impl Fn(&ProducerState) + Send + Sync + 'static,
    ) -> Self {
        let (inner, busy) = (Mutex::default(), watch::Sender::new(false));
        Self { host, append, topic, index, inner, busy, snapshot: Box::new(snapshot) }
    }

    /// The partition, as the host is told of it. Points into `self`.
    pub(super) fn partition(&self) -> KelpPartition {
        KelpPartition::of(&self.topic, self.index)
    }

    pub(super) fn submit(
        self: &Arc<Self>,
        base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        let Some(last) = batches.last() else {
            return Box::pin(std::future::ready(Ok(base_offset)));
        };
        let next_offset = last.header.next_offset();
        let (answer, answered) = oneshot::channel();
        let run = {
            let mut inner = self.lock();
            inner.queued.push_back(Waiting { base_offset, next_offset, batches, answer });
            if *self.busy.borrow() { None } else { self.next_run(&mut inner) }
        };
        if let Some(run) = run {
            self.send(run);
        }
        Box::pin(async { answered.await.unwrap_or_else(|_| Err(Failure::Stopped.into())) })
    }

    /// Done when nothing is under way or in line.
    pub(super) async fn idle(&self) {
        // The sender lives in `self`, so the channel is open.
        let _ = self.busy.subscribe().wait_for(|busy| !busy).await;
    }

    /// The state of the producers at the end of what was appended, if it is known.
    pub(super) fn producers(&self) -> Option<ProducerState> {
        self.lock().producers.clone()
    }

    /// Keeps what was read of the producers, unless appends have gone further meanwhile.
    pub(super) fn set_producers(&self, read: ProducerState) {
        let mut inner = self.lock();
        if inner.producers.as_ref().is_none_or(|known| known.next_offset < read.next_offset) {
            inner.producers = Some(read);
        }
    }

    pub(super) fn forget_producers(&self, producer_ids: &[i64]) {
        if let Some(state) = &mut self.lock().producers {
            producer_ids.iter().for_each(|id| state.producers.remove(*id));
        }
    }

    /// Submits a run of appends, without the lock: an operation may be answered at once.
    fn send(self: &Arc<Self>, run: Vec<Waiting>) {
        let slices = slices(&run);
        let body = KelpAppend {
            op: KelpOp::NEW,
            partition: self.partition(),
            expected_base_offset: run[0].base_offset,
            next_offset: run[run.len() - 1].next_offset,
            slices: slices.as_ptr(),
            slice_count: slices.len(),
            total_bytes: slices.total_bytes(),
            log_end_offset: -1,
        };
        // Holds the run and the topic as long as the operation lives.
        let appends = self.clone();
        self.host.submit(
            self.append,
            body,
            slices,
            |outcome| {
                let KelpAppend { expected_base_offset, log_end_offset, .. } = *outcome.body;
                match outcome.status {
                    KELP_OK => Ok(None),
                    // The engine would try again at the same place, for ever.
                    KELP_CONFLICT if log_end_offset == expected_base_offset => {
                        Err(Failure::Malformed("a conflict where there is none"))
                    }
                    KELP_CONFLICT if log_end_offset < 0 => {
                        Err(Failure::Malformed("a negative log end"))
                    }
                    KELP_CONFLICT => Ok(Some(StoreError::Conflict { log_end_offset })),
                    _ => Err(outcome.failure()),
                }
            },
            move |answer| {
                appends.answered(
                    run,
                    match answer {
                        Ok(None) => Ok(()),
                        Ok(Some(conflict)) => Err(conflict),
                        Err(failure) => Err(failure.into()),
                    },
                );
            },
        );
    }

    fn answered(self: &Arc<Self>, mut run: Vec<Waiting>, outcome: Result<()>) {
        let mut due = None;
        let next = {
            let mut inner = self.lock();
            if outcome.is_ok() {
                due = inner.note(&run);
                self.next_run(&mut inner)
            } else {
                // Those in line were stamped to follow what is not there. Taken under the lock:
                // what is called after this refusal is seen stands for itself.
                run.extend(inner.queued.drain(..));
                self.busy.send_replace(false);
                None
            }
        };
        for Waiting { base_offset, answer, .. } in run {
            // Who waited may be gone: the append is done all the same.
            let _ = answer.send(outcome.clone().map(|()| base_offset));
        }
        if let Some(state) = due {
            (self.snapshot)(&state);
        }
        if let Some(next) = next {
            self.send(next);
        }
    }

    /// Takes from the line what follows on each other.
    fn next_run(&self, inner: &mut Inner) -> Option<Vec<Waiting>> {
        let mut run: Vec<_> = inner.queued.pop_front().into_iter().collect();
        let mut bytes = run.first().map_or(0, Waiting::bytes);
        while let (Some(last), Some(next)) = (run.last(), inner.queued.front())
            && last.next_offset == next.base_offset
            && bytes + next.bytes() <= RUN_BYTES
        {
            bytes += next.bytes();
            run.extend(inner.queued.pop_front());
        }
        self.busy.send_replace(!run.is_empty());
        (!run.is_empty()).then_some(run)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Takes appended batches into the producer state; gives it when it is worth a snapshot.
    fn note(&mut self, run: &[Waiting]) -> Option<ProducerState> {
        let state = self.producers.as_mut()?;
        if state.next_offset != run[0].base_offset {
            // Something else was appended before: the next opening reads it.
            return None;
        }
        run.iter().flat_map(|w| &w.batches).for_each(|batch| state.apply(&batch.header));
        state.take_snapshot_due()
    }
}

/// All batches of a run: for each its stamped header, and its records.
fn slices(run: &[Waiting]) -> Slices {
    let batches = || run.iter().flat_map(|waiting| &waiting.batches);
    let mut heads = BytesMut::with_capacity(batches().count() * HEADER_BYTES);
    batches().for_each(|batch| heads.extend_from_slice(&batch.head()));
    let mut heads = heads.freeze();
    let both = |batch: &Batch| -> [Bytes; 2] { [heads.split_to(HEADER_BYTES), batch.records()] };
    Slices::new(batches().flat_map(both).collect())
}

#[cfg(test)]
mod tests {
    use super::super::operation::kelp_op_complete;
    use super::super::samples::{Kept, batch, host, keep, parsed};
    use super::super::status::{KELP_UNAVAILABLE, KelpStatus};
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    struct Fixture {
        host: Arc<Host>,
        appends: Arc<Appends>,
        kept: Box<Kept>,
    }

    /// The appends of a partition, on a host that does what `answer` says.
    fn fixture() -> Fixture {
        let kept = Box::<Kept>::default();
        let host = host(&kept);
        let topic = Arc::new(Topic { name: "t".into(), ..Topic::default() });
        let appends = Appends::new(host.clone(), keep::<KelpAppend>, topic, 0, |_| {});
        Fixture { host, appends: Arc::new(appends), kept }
    }

    impl Fixture {
        fn submit(&self, offset: i64) -> BoxFuture<'static, Result<i64>> {
            self.appends.submit(offset, vec![parsed(batch(offset, b"value"))])
        }

        /// Completes the append that is under way; gives where it was to go.
        fn answer(&self, status: KelpStatus, log_end_offset: i64) -> (i64, i64) {
            self.host.carry_out_next();
            let op: *mut KelpAppend = self.kept.take().expect("an append is under way");
            // SAFETY: the operation was delivered, and is completed here only.
            unsafe {
                let place = ((*op).expected_base_offset, (*op).next_offset);
                (*op).log_end_offset = log_end_offset;
                assert_eq!(kelp_op_complete(op.cast(), status), KELP_OK);
                place
            }
        }
    }

    /// What a future has come to without waiting.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_comes_in_while_one_is_under_way_goes_in_one_append() {
        let fixture = fixture();
        let mut answers = [0, 1, 2, 3].map(|offset| fixture.submit(offset));
        assert_eq!(now(&mut answers[0]), None);
        assert_eq!(fixture.answer(KELP_OK, -1), (0, 1));
        assert_eq!(now(&mut answers[0]), Some(Ok(0)));
        assert_eq!(now(&mut answers[1]), None);
        assert_eq!(fixture.answer(KELP_OK, -1), (1, 4));
        let rest = answers[1..].iter_mut().map(now).collect::<Vec<_>>();
        assert_eq!(rest, [Some(Ok(1)), Some(Ok(2)), Some(Ok(3))]);
    }

    #[test]
    fn an_append_carries_whole_stamped_batches() {
        let fixture = fixture();
        let mut stamped = parsed(batch(0, b"value"));
        stamped.stamp(70, 3);
        drop(fixture.appends.submit(70, vec![stamped]));
        fixture.host.carry_out_next();
        let op: *mut KelpAppend = fixture.kept.take().unwrap();
        // SAFETY: the operation was delivered, so all it points to can be read until it is
        // completed, here only.
        unsafe {
            let slices = std::slice::from_raw_parts((*op).slices, (*op).slice_count);
            let part = |slice: &super::super::data::KelpBytes| {
                std::slice::from_raw_parts(slice.ptr, slice.len)
            };
            let all: Vec<u8> = slices.iter().flat_map(part).copied().collect();
            assert_eq!((all.len(), (*op).next_offset), ((*op).total_bytes, 71));
            let whole = Batch::split_off(&mut all.clone().into()).unwrap();
            assert_eq!((whole.header.base_offset, whole.header.leader_epoch), (70, 3));
            assert_eq!(all[16..], batch(0, b"value")[16..], "the rest is the producer's");
            kelp_op_complete(op.cast(), KELP_OK);
        }
    }

    #[test]
    fn a_refusal_refuses_all_that_is_in_line_and_nothing_that_comes_after() {
        for (status, refusal) in [
            (KELP_CONFLICT, StoreError::Conflict { log_end_offset: 9 }),
            (KELP_UNAVAILABLE, StoreError::Unavailable("host: status -7".into())),
        ] {
            let fixture = fixture();
            let mut answers = [0, 1, 2].map(|offset| fixture.submit(offset));
            assert_eq!(fixture.answer(status, 9), (0, 1));
            for answer in &mut answers {
                assert_eq!(now(answer), Some(Err(refusal.clone())));
            }
            let mut again = fixture.submit(9);
            assert_eq!(fixture.answer(KELP_OK, -1), (9, 10));
            assert_eq!(now(&mut again), Some(Ok(9)));
        }
    }

    #[test]
    fn what_does_not_follow_goes_by_itself() {
        let fixture = fixture();
        let _answers = [0, 1, 5, 6].map(|offset| fixture.submit(offset));
        let places = [(); 3].map(|()| fixture.answer(KELP_OK, -1));
        assert_eq!(places, [(0, 1), (1, 2), (5, 7)]);
    }

    #[test]
    fn an_append_is_limited_in_bytes() {
        let fixture = fixture();
        let large = vec![0; RUN_BYTES / 2];
        for offset in 0..4 {
            drop(fixture.appends.submit(offset, vec![parsed(batch(offset, &large))]));
        }
        let places = [(); 4].map(|()| fixture.answer(KELP_OK, -1));
        assert_eq!(places, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn an_answer_that_would_be_tried_again_for_ever_is_an_error() {
        let fixture = fixture();
        for log_end_offset in [0, -1] {
            let mut answer = fixture.submit(0);
            fixture.answer(KELP_CONFLICT, log_end_offset);
            assert!(matches!(now(&mut answer), Some(Err(StoreError::Corrupt(_)))));
        }
    }

    #[test]
    fn who_goes_away_changes_nothing() {
        let fixture = fixture();
        drop(fixture.submit(0));
        drop(fixture.submit(1));
        assert_eq!(now(fixture.appends.idle()), None);
        assert_eq!(fixture.answer(KELP_OK, -1), (0, 1));
        assert_eq!(fixture.answer(KELP_OK, -1), (1, 2));
        assert_eq!(now(fixture.appends.idle()), Some(()));
    }

    #[test]
    fn when_the_engine_ends_whatever_waits_is_told() {
        let fixture = fixture();
        let mut answers = [0, 1].map(|offset| fixture.submit(offset));
        fixture.host.close();
        for answer in &mut answers {
            assert!(matches!(now(answer), Some(Err(StoreError::Unavailable(_)))));
        }
        assert!(matches!(now(fixture.submit(2)), Some(Err(StoreError::Unavailable(_)))));
    }
}
