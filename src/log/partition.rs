//! One partition that is open: where its log stands, what is under way, who waits.

use super::append::Pending;
use super::expiry::Appended;
use super::lock;
use super::waiting::Parked;
use crate::metrics::Metrics;
use crate::protocol::error_code::ErrorCode;
use crate::store::producers::{Producer, Producers};
use crate::store::{Opened, PartitionId, Storage, StoreError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

pub struct Partition {
    pub(super) id: PartitionId,
    pub(super) storage: Arc<dyn Storage>,
    pub(super) metrics: Arc<Metrics>,
    state: Mutex<State>,
}

/// Short work only is done under its lock, and nothing is awaited.
pub(super) struct State {
    pub log_start_offset: i64,
    /// The offset that the next batch gets. All from the high watermark on is pending.
    pub log_end_offset: i64,
    /// All below it is stored; consumers see no more.
    pub high_watermark: i64,
    pub leader_epoch: i32,
    /// The log end when this epoch began.
    pub epoch_start_offset: i64,
    /// What all batches up to the log end say of their producers, the pending ones too.
    pub producers: Producers,
    pub appended: Appended,
    /// Batches that have their place and are not yet stored, in the order of their offsets.
    pub pending: VecDeque<Pending>,
    /// A task waits for the first of the pending batches.
    pub is_committing: bool,
    /// It is not known what the store holds: the partition is opened anew before the next append.
    pub is_unsure: bool,
    /// The partition serves nothing more, for this reason.
    pub failed: Option<StoreError>,
    /// Fetches that wait for more.
    pub parked: Vec<Parked>,
    /// Bytes of all batches that became visible since the partition was opened.
    pub visible_bytes: u64,
}

/// Where a partition stands, as its answers say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    pub high_watermark: i64,
    /// The end of what `read_committed` shows: the high watermark, until there are transactions.
    pub last_stable_offset: i64,
    pub leader_epoch: i32,
    pub(super) epoch_start_offset: i64,
    pub(super) visible_bytes: u64,
}

/// The epoch of a client that knows none, or of nobody in particular.
pub const NO_LEADER_EPOCH: i32 = -1;

impl Partition {
    pub(super) fn new(
        id: PartitionId,
        storage: Arc<dyn Storage>,
        metrics: Arc<Metrics>,
        opened: Opened,
    ) -> Self {
        let state = State {
            log_start_offset: opened.log_start_offset,
            log_end_offset: opened.log_end_offset,
            high_watermark: opened.log_end_offset,
            leader_epoch: opened.leader_epoch,
            epoch_start_offset: opened.log_end_offset,
            producers: opened.producers,
            appended: Appended::new(),
            pending: VecDeque::new(),
            is_committing: false,
            is_unsure: false,
            failed: None,
            parked: Vec::new(),
            visible_bytes: 0,
        };
        Self { id, storage, metrics, state: Mutex::new(state) }
    }

    pub fn id(&self) -> PartitionId {
        self.id
    }

    /// Where the partition stands now, if the client's view of its leader is ours. KIP-320: a
    /// negative epoch is none.
    pub fn bounds(&self, current_leader_epoch: i32) -> Result<Bounds, ErrorCode> {
        let state = self.state();
        if let Some(error) = &state.failed {
            return Err(error.clone().into());
        }
        if current_leader_epoch >= 0 && current_leader_epoch < state.leader_epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if current_leader_epoch > state.leader_epoch {
            return Err(ErrorCode::UnknownLeaderEpoch);
        }
        Ok(Bounds {
            log_start_offset: state.log_start_offset,
            log_end_offset: state.log_end_offset,
            high_watermark: state.high_watermark,
            last_stable_offset: state.high_watermark,
            leader_epoch: state.leader_epoch,
            epoch_start_offset: state.epoch_start_offset,
            visible_bytes: state.visible_bytes,
        })
    }

    /// Deletes the records below `offset`: moves the log start there, never back and never past the
    /// high watermark. Gives the log start as it is then. The work is to be done to its end, also if
    /// nobody waits for it any more.
    pub async fn delete_before(&self, offset: i64) -> Result<i64, ErrorCode> {
        let bounds = self.bounds(NO_LEADER_EPOCH)?;
        if offset < 0 || offset > bounds.high_watermark {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        Ok(self.move_log_start(offset).await?)
    }

    /// Moves the log start forward, never back; gives it as it is then.
    pub(super) async fn move_log_start(&self, offset: i64) -> Result<i64, StoreError> {
        if offset > self.state().log_start_offset {
            let start = self.storage.set_log_start(self.id, offset).await?;
            self.state().start_at(start);
        }
        Ok(self.state().log_start_offset)
    }

    /// What is known of each idempotent producer, as `describe` has it.
    pub fn producers<T>(
        &self,
        describe: impl Fn(i64, &Producer) -> T,
    ) -> Result<Vec<T>, StoreError> {
        let state = self.state();
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => Ok(state.producers.iter().map(|(id, p)| describe(id, p)).collect()),
        }
    }

    /// Whether it ended because another process has it.
    pub(super) fn was_taken(&self) -> bool {
        self.state().failed == Some(StoreError::Fenced)
    }

    /// Ends the partition: whatever waits for it is answered with `error`, and whatever comes.
    pub(super) fn fail(&self, error: StoreError) {
        self.state().fail(error);
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    pub(super) fn fail(&mut self, error: StoreError) {
        let code = ErrorCode::from(error.clone());
        self.failed = Some(error);
        self.pending.drain(..).for_each(|pending| pending.answer(Err(code)));
        self.parked.drain(..).for_each(|parked| parked.wake());
    }

    /// Moves the log start forward. A fetch that waits below it is to answer that it is out of range.
    pub(super) fn start_at(&mut self, offset: i64) {
        self.log_start_offset = self.log_start_offset.max(offset);
        let below = |parked: &&Parked| parked.offset < self.log_start_offset;
        self.parked.iter().filter(below).for_each(Parked::wake);
    }

    /// Moves the high watermark over a batch of `bytes`.
    pub(super) fn advance(&mut self, high_watermark: i64, bytes: usize) {
        self.high_watermark = high_watermark;
        self.visible_bytes += bytes as u64;
        self.parked.iter_mut().for_each(|parked| parked.add(bytes as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::Fixture;
    use crate::record::testing::Draft;

    #[tokio::test]
    async fn the_log_start_moves_forward_only_and_over_what_is_stored_only() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a", "b"])).await.unwrap();
        f.store.hold();
        drop(f.submit(&Draft::of(&["pending"])).await);
        let out_of_range = Err(ErrorCode::OffsetOutOfRange);
        for (offset, expected, start) in [
            (-1, out_of_range, 0),
            (3, out_of_range, 0),
            (1, Ok(1), 1),
            (0, Ok(1), 1),
            (2, Ok(2), 2),
        ] {
            assert_eq!(f.partition.delete_before(offset).await, expected, "{offset}");
            assert_eq!(f.bounds().log_start_offset, start);
        }
        f.partition.fail(StoreError::UnknownPartition);
        let gone = Err(ErrorCode::UnknownTopicOrPartition);
        assert_eq!(f.partition.delete_before(1).await, gone);
    }

    /// An opening may have looked before the log start moved.
    #[tokio::test]
    async fn a_log_start_does_not_go_back_when_the_partition_is_opened_anew() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a", "b"])).await.unwrap();
        let old = Opened { log_end_offset: 2, ..Opened::default() };
        f.store.openings.lock().unwrap().push_back(Ok(old));
        f.store.hold();
        let lost = f.submit(&Draft::of(&["lost"])).await;
        assert_eq!(f.partition.delete_before(1).await, Ok(1));
        f.store.next().await.fail(StoreError::TimedOut);
        assert_eq!(lost.await, Err(ErrorCode::RequestTimedOut));
        f.partition.settle().await.unwrap();
        assert_eq!(f.bounds().log_start_offset, 1);
    }
}
