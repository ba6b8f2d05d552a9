//! Where a machine's records are kept: in a partition of an internal topic, as Kafka keeps them.

use crate::log::Log;
use crate::log::append::{Appending, wall_clock_ms};
use crate::log::partition::Partition;
use crate::protocol::encoded::{Encoded, Spares};
use crate::protocol::error_code::ErrorCode;
use crate::record::batch::Batch;
use crate::record::builder::{BuildError, Builder, Fields};
use crate::record::records;
use crate::record::unpacked::Unpacked;
use crate::store::{BoxFuture, PartitionId, StoreError};
use bytes::Bytes;
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The records of one machine, in the order in which they were appended.
#[async_trait::async_trait]
pub trait Journal<R>: Send + Sync {
    /// Shows all records that are stored, from the first one on, a few of them in memory at a
    /// time. Nothing is appended meanwhile.
    async fn load(&self, show: &mut (dyn FnMut(R) + Send)) -> Result<(), StoreError>;

    /// Appends records: all of them or none. They have their place when this returns; the future
    /// is done when they are stored. An error says that nothing was appended.
    fn append(&self, records: &[R], limits: Limits) -> Result<Stored, ErrorCode>;
}

/// The promise of a store. Whoever has lost its partition says NOT_LEADER_OR_FOLLOWER, or
/// UNKNOWN_TOPIC_OR_PARTITION; after any other error the records may be stored or not.
pub type Stored = BoxFuture<'static, Result<(), ErrorCode>>;

/// How long a batch may be, and how much may wait for the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// For what a client asked for.
    Apply,
    /// For what must be done: a machine does it in pieces.
    DoNotApply,
}

/// A record that can be kept in a log.
pub trait Keyed: Sized {
    type Error: Display;

    /// Key and value, written into memory that was used for those of the record before. Without a
    /// value it deletes what the key names.
    fn encode_into<'a>(
        &self,
        key: &'a mut Encoded,
        value: &'a mut Encoded,
    ) -> (&'a [u8], Option<&'a [u8]>);

    /// What the bytes say; `None` if they are of a kind that this version leaves alone.
    fn decode(key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Option<Self>, Self::Error>;
}

/// A [`Journal`] in a partition of an internal topic: each call appends one batch.
pub struct LogJournal<R> {
    log: Arc<Log>,
    id: PartitionId,
    max_batch_bytes: usize,
    /// Memory for what is not yet stored, in kibibytes.
    room: Arc<Semaphore>,
    /// Since it was loaded.
    partition: Mutex<Option<Arc<Partition>>>,
    /// Memory in which records are encoded.
    spares: Spares,
    kind: PhantomData<fn(R)>,
}

/// What all journals together may have submitted and not yet stored. A client that comes while it
/// is used up is told to come again.
pub const MAX_PENDING_KIB: usize = 64 << 10;

/// What the record of an offset takes, if the names of its group and topic are not long.
const USUAL_RECORD_BYTES: usize = 128;

/// How much is read at once.
const LOAD_BYTES: usize = 1 << 20;

impl<R: Keyed> LogJournal<R> {
    pub fn new(
        log: Arc<Log>,
        id: PartitionId,
        max_batch_bytes: usize,
        room: Arc<Semaphore>,
    ) -> Self {
        let (partition, spares, kind) = (Mutex::default(), Spares::default(), PhantomData);
        Self { log, id, max_batch_bytes, room, partition, spares, kind }
    }

    fn build(&self, records: &[R], limits: Limits) -> Result<Batch, BuildError> {
        let mut fields = Fields::default();
        if limits == Limits::Apply {
            fields.max_bytes = self.max_batch_bytes;
        }
        let mut builder = Builder::with_capacity(fields, records.len() * USUAL_RECORD_BYTES);
        let timestamp = wall_clock_ms();
        let (mut key_to, mut value_to) = (self.spares.take(), self.spares.take());
        for (offset, record) in (0..).zip(records) {
            let (key, value) = record.encode_into(&mut key_to, &mut value_to);
            let key = Some(key);
            let record = records::Record { offset, timestamp, key, value, ..Default::default() };
            builder.append(&record)?;
        }
        self.spares.give(key_to);
        self.spares.give(value_to);
        builder.finish()
    }

    fn room_for(&self, batch: &Batch, limits: Limits) -> Result<OwnedSemaphorePermit, ErrorCode> {
        let kib = match limits {
            Limits::Apply => u32::try_from(batch.len().div_ceil(1024)).unwrap_or(u32::MAX),
            Limits::DoNotApply => 0,
        };
        // A store that is this far behind does not answer in time either.
        let room = self.room.clone().try_acquire_many_owned(kib);
        room.map_err(|_| ErrorCode::CoordinatorNotAvailable)
    }

    /// Shows the records of one batch.
    fn show(&self, batch: &Batch, show: &mut (dyn FnMut(R) + Send)) -> Result<(), StoreError> {
        let corrupt = |error: &dyn Display| {
            let (partition, offset) = (self.id.partition, batch.header.base_offset);
            StoreError::Corrupt(format!("partition {partition}, batch at {offset}: {error}"))
        };
        // Markers of transactions are for those who know of them.
        if batch.header.is_control() {
            return Ok(());
        }
        let unpacked = Unpacked::new(batch).map_err(|error| corrupt(&error))?;
        for record in &unpacked {
            let record = record.map_err(|error| corrupt(&error))?;
            // Copied, because what a machine keeps of one record must not keep its whole batch.
            let copy = |field: Option<&[u8]>| field.map(Bytes::copy_from_slice);
            let (key, value) = (copy(record.key), copy(record.value));
            let decoded = R::decode(key.as_ref(), value.as_ref());
            if let Some(record) = decoded.map_err(|error| corrupt(&error))? {
                show(record);
            }
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl<R: Keyed> Journal<R> for LogJournal<R> {
    async fn load(&self, show: &mut (dyn FnMut(R) + Send)) -> Result<(), StoreError> {
        let partition = self.log.partition(self.id).await?;
        partition.settle().await?;
        let bounds = partition.bounds(-1).map_err(lost)?;
        let show = |batch: &Batch| self.show(batch, show).map(ControlFlow::Continue);
        partition.scan(bounds.log_start_offset, bounds.high_watermark, LOAD_BYTES, show).await?;
        *self.partition.lock().unwrap_or_else(PoisonError::into_inner) = Some(partition);
        Ok(())
    }

    fn append(&self, records: &[R], limits: Limits) -> Result<Stored, ErrorCode> {
        let partition = self.partition.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(partition) = partition else { unreachable!("nothing is asked before the load") };
        let batch = self.build(records, limits).map_err(|error| {
            tracing::warn!(partition = self.id.partition, %error, "a coordinator's records");
            ErrorCode::UnknownServerError
        })?;
        let room = self.room_for(&batch, limits)?;
        let appending: Appending = partition.append(batch, room);
        Ok(Box::pin(async move { appending.await.map(|_| ()) }))
    }
}

/// What a partition says that serves nothing more.
fn lost(code: ErrorCode) -> StoreError {
    match code {
        ErrorCode::NotLeaderOrFollower => StoreError::Fenced,
        ErrorCode::UnknownTopicOrPartition => StoreError::UnknownPartition,
        other => StoreError::Unavailable(format!("{other:?}")),
    }
}
