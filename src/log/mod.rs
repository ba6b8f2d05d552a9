//! Kafka's log semantics over a [`Storage`]: what a partition accepts, where it puts it, who is
//! told, and what a reader gets.
//!
//! A [`Partition`] is opened on first use. Producers go through [`append`], which gives a batch
//! its offsets before it is stored and makes it visible after; consumers through [`fetch`], which
//! parks in [`waiting`] until there is enough; [`offsets`] finds a place by time, [`epochs`] where
//! a leader's records end. [`retention`] lets old records go, [`compaction`] those whose key came
//! again.

pub mod append;
pub mod compaction;
pub mod epochs;
pub mod expiry;
pub mod fetch;
pub mod idempotence;
pub mod offsets;
pub mod partition;
pub mod producer_ids;
pub mod read_memory;
pub mod retention;
pub mod waiting;

#[cfg(test)]
mod testing;

use crate::metrics::Metrics;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;
use crate::store::{PartitionId, State, Storage, StoreError};
use partition::Partition;
use read_memory::ReadMemory;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, watch};

/// All partitions that were used.
pub struct Log {
    storage: Arc<dyn Storage>,
    state: watch::Receiver<State>,
    shards: [Mutex<HashMap<PartitionId, Arc<Slot>>>; SHARDS],
    hasher: RandomState,
    metrics: Arc<Metrics>,
    /// Memory for batches that were submitted and are not yet stored, in kibibytes.
    room: Arc<Semaphore>,
    room_kib: u32,
    /// Memory of records that were read and are not yet with their clients.
    pub reads: ReadMemory,
}

/// A partition's place in the map: of those who use it first, one opens it and the others wait.
type Slot = OnceCell<Arc<Partition>>;

/// So that requests for different partitions seldom wait for each other.
const SHARDS: usize = 16;

impl Log {
    /// A log with this much memory for batches that are submitted and not yet stored. They stay
    /// when their clients have given up, so a store that hangs would otherwise take all memory.
    pub fn new(storage: Arc<dyn Storage>, pending_bytes: usize, metrics: Arc<Metrics>) -> Self {
        let room_kib = (pending_bytes >> 10).clamp(1, Semaphore::MAX_PERMITS);
        let room_kib = u32::try_from(room_kib).unwrap_or(u32::MAX);
        Self {
            state: storage.state(),
            storage,
            shards: Default::default(),
            hasher: RandomState::new(),
            metrics,
            room: Arc::new(Semaphore::new(room_kib as usize)),
            room_kib,
            reads: ReadMemory::default(),
        }
    }

    /// The partition `id`, which must exist: who asks has found it among the topics.
    pub async fn partition(&self, id: PartitionId) -> Result<Arc<Partition>, StoreError> {
        self.check_serving()?;
        let slot = {
            let mut shard = self.shard(id);
            let slot = shard.entry(id).or_default();
            // A host may give single partitions to another process, and back.
            if slot.get().is_some_and(|partition| partition.was_taken()) {
                *slot = Arc::default();
            }
            slot.clone()
        };
        let open = async || {
            let opened = self.storage.open(id).await?;
            let (storage, metrics) = (self.storage.clone(), self.metrics.clone());
            Ok(Arc::new(Partition::new(id, storage, metrics, opened)))
        };
        slot.get_or_try_init(open).await.cloned()
    }

    /// The epoch of this process as the leader of a partition, if it is known without opening it.
    pub fn leader_epoch(&self, id: PartitionId) -> Option<i32> {
        let opened = || {
            let slot = self.shard(id).get(&id).cloned()?;
            slot.get().map(|partition| partition.state().leader_epoch)
        };
        self.storage.leader_epoch(id).or_else(opened)
    }

    /// From the log start to the high watermark, if it is known without opening the partition.
    pub fn bounds(&self, id: PartitionId) -> Option<Range<i64>> {
        let slot = self.shard(id).get(&id).cloned();
        let opened = slot.as_ref().and_then(|slot| slot.get()).map(|partition| {
            let state = partition.state();
            state.log_start_offset..state.high_watermark
        });
        opened.or_else(|| self.storage.bounds(id))
    }

    /// Drops what is kept of a deleted topic. Who waits for one of its partitions is told.
    pub fn forget(&self, topic: Uuid) {
        for shard in &self.shards {
            let gone = lock(shard).extract_if(|id, _| id.topic == topic).collect::<Vec<_>>();
            let opened = gone.iter().filter_map(|(_, slot)| slot.get());
            opened.for_each(|partition| partition.fail(StoreError::UnknownPartition));
        }
    }

    /// Waits for memory for a batch of `bytes`; it is given back when the batch is stored.
    pub async fn room_for(&self, bytes: usize) -> OwnedSemaphorePermit {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        match self.room.clone().acquire_many_owned(kib.min(self.room_kib)).await {
            Ok(permit) => permit,
            Err(_) => unreachable!("the semaphore is never closed"),
        }
    }

    /// A process that was fenced must not even say that there is nothing new.
    fn check_serving(&self) -> Result<(), StoreError> {
        match &*self.state.borrow() {
            State::Serving => Ok(()),
            State::Fenced(_) => Err(StoreError::Fenced),
            State::Failed(why) => Err(StoreError::Corrupt(why.clone())),
            State::Opening | State::Standby(_) => {
                Err(StoreError::Unavailable("it is not open yet".into()))
            }
        }
    }

    fn shard(&self, id: PartitionId) -> MutexGuard<'_, HashMap<PartitionId, Arc<Slot>>> {
        lock(&self.shards[self.hasher.hash_one(id) as usize % SHARDS])
    }
}

/// Takes a lock that is never held across an await. Nothing panics under one, so its state is
/// whole even if a thread died.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What clients are told of a store's failure.
impl From<StoreError> for ErrorCode {
    fn from(error: StoreError) -> Self {
        match error {
            // A conflict that comes this far is a writer that is not alone.
            StoreError::Fenced | StoreError::Conflict { .. } => Self::NotLeaderOrFollower,
            StoreError::TimedOut => Self::RequestTimedOut,
            StoreError::UnknownPartition => Self::UnknownTopicOrPartition,
            StoreError::TopicExists => Self::TopicAlreadyExists,
            StoreError::NotMorePartitions => Self::InvalidPartitions,
            StoreError::OffsetOutOfRange => Self::OffsetOutOfRange,
            // KAFKA_STORAGE_ERROR is retriable: clients refresh their metadata and come again.
            StoreError::Unavailable(_) | StoreError::Corrupt(_) => Self::KafkaStorageError,
        }
    }
}
