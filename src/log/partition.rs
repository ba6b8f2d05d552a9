//! One partition that is open: where its log stands, what is under way, who waits.

use super::append::Pending;
use super::lock;
use super::waiting::Parked;
use crate::metrics::Metrics;
use crate::protocol::error_code::ErrorCode;
use crate::store::producers::Producers;
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

    /// Moves the log start forward, never back; gives it as it is then.
    pub async fn move_log_start(&self, offset: i64) -> Result<i64, StoreError> {
        let start = self.storage.set_log_start(self.id, offset).await?;
        let mut state = self.state();
        state.log_start_offset = state.log_start_offset.max(start);
        Ok(state.log_start_offset)
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

    /// Moves the high watermark over a batch of `bytes`.
    pub(super) fn advance(&mut self, high_watermark: i64, bytes: usize) {
        self.high_watermark = high_watermark;
        self.visible_bytes += bytes as u64;
        self.parked.iter_mut().for_each(|parked| parked.add(bytes as u64));
    }
}
