//! A [`Journal`] in a store that keeps groups by itself.
//!
//! ```text
//!  append ──▶ waiting ──▶ under way: offsets, then records ──▶ stored: all that waits goes next
//!                                                    └───────▶ failed: nothing more until a load
//! ```
//!
//! One call carries all that came while the one before was under way. Offsets go first: so there
//! is no moment at which a group is deleted and its offsets are not.

use super::journal::{Journal, Keyed, Limits, Stored};
use crate::coordinator::own;
use crate::coordinator::records::Record;
use crate::messages::records::offset_commit;
use crate::protocol::error_code::ErrorCode;
use crate::store::StoreError;
use crate::store::groups::{self, Committed, Groups, Offset};
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

pub(super) struct StoreJournal {
    appends: Arc<Appends>,
    max_bytes: usize,
    /// Memory for what is not yet stored, in kibibytes.
    room: Arc<Semaphore>,
}

/// What is on its way to the store.
struct Appends {
    groups: Arc<dyn Groups>,
    coordinator: i32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Waiting>,
    is_busy: bool,
    /// What is stored is unknown until it was loaded.
    has_failed: bool,
}

/// One call of [`Journal::append`].
struct Waiting {
    changes: Vec<Change>,
    bytes: usize,
    answer: oneshot::Sender<Result<(), ErrorCode>>,
    _room: OwnedSemaphorePermit,
}

#[derive(Debug, PartialEq)]
enum Change {
    Offset(Offset),
    Record(groups::Record),
}

/// A call takes no more once it has so much.
const CALL_BYTES: usize = 1 << 20;

/// What an offset costs besides its texts.
const OFFSET_BYTES: usize = 64;

impl StoreJournal {
    pub(super) fn new(
        groups: Arc<dyn Groups>,
        coordinator: i32,
        max_bytes: usize,
        room: Arc<Semaphore>,
    ) -> Self {
        let appends = Appends { groups, coordinator, inner: Mutex::default() };
        Self { appends: Arc::new(appends), max_bytes, room }
    }
}

#[async_trait::async_trait]
impl Journal<Record> for StoreJournal {
    async fn load(&self, show: &mut (dyn FnMut(Record) + Send)) -> Result<(), StoreError> {
        let Appends { groups, coordinator, .. } = &*self.appends;
        let mut unreadable = None;
        // Groups first: an offset brings back one that was deleted before it was committed.
        let decode = &mut |record: groups::Record| match <Record as Keyed>::decode(
            Some(&record.key),
            record.value.as_ref(),
        ) {
            Ok(record) => record.into_iter().for_each(&mut *show),
            Err(error) => unreadable = Some(error),
        };
        groups.load_records(*coordinator, decode).await?;
        if let Some(error) = unreadable {
            return Err(StoreError::Corrupt(format!(
                "a record of coordinator {coordinator}: {error}"
            )));
        }
        groups.load_offsets(*coordinator, &mut |offset| show(offset.into())).await?;
        self.appends.lock().has_failed = false;
        Ok(())
    }

    fn append(&self, records: &[Record], limits: Limits) -> Result<Stored, ErrorCode> {
        let changes: Vec<_> = records.iter().map(Change::of).collect();
        let bytes: usize = changes.iter().map(Change::bytes).sum();
        let kib = match limits {
            Limits::Apply if bytes > self.max_bytes => {
                tracing::warn!(bytes, "a coordinator's records are too long");
                return Err(ErrorCode::UnknownServerError);
            }
            Limits::Apply => u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX),
            Limits::DoNotApply => 0,
        };
        // A store that is this far behind does not answer in time either.
        let room = self.room.clone().try_acquire_many_owned(kib);
        let room = room.map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
        let (answer, answered) = oneshot::channel();
        self.appends.push(Waiting { changes, bytes, answer, _room: room })?;
        // The engine may end first.
        Ok(Box::pin(async { answered.await.unwrap_or(Err(ErrorCode::NotCoordinator)) }))
    }
}

impl Appends {
    fn push(self: &Arc<Self>, waiting: Waiting) -> Result<(), ErrorCode> {
        let mut inner = self.lock();
        if inner.has_failed {
            return Err(ErrorCode::CoordinatorNotAvailable);
        }
        inner.waiting.push_back(waiting);
        if !inner.is_busy {
            inner.is_busy = true;
            tokio::spawn(self.clone().store_all());
        }
        Ok(())
    }

    /// Stores what waits, until nothing does.
    async fn store_all(self: Arc<Self>) {
        while let Some(mut call) = self.next_call() {
            let changes = call.iter_mut().flat_map(|waiting| mem::take(&mut waiting.changes));
            let stored = self.store(changes.collect()).await.map_err(|error| {
                tracing::error!(coordinator = self.coordinator, %error, "groups are not stored");
                ErrorCode::from(error)
            });
            if stored.is_err() {
                let mut inner = self.lock();
                inner.has_failed = true;
                call.extend(inner.waiting.drain(..));
            }
            for waiting in call {
                // A shard that is gone needs no answer.
                let _ = waiting.answer.send(stored);
            }
        }
    }

    fn next_call(&self) -> Option<Vec<Waiting>> {
        let mut inner = self.lock();
        let (mut call, mut bytes) = (Vec::new(), 0);
        while bytes < CALL_BYTES
            && let Some(waiting) = inner.waiting.pop_front()
        {
            bytes += waiting.bytes;
            call.push(waiting);
        }
        inner.is_busy = !call.is_empty();
        inner.is_busy.then_some(call)
    }

    async fn store(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        let (mut offsets, mut records) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Offset(offset) => offsets.push(offset),
                Change::Record(record) => records.push(record),
            }
        }
        if !offsets.is_empty() {
            self.groups.commit_offsets(self.coordinator, offsets).await?;
        }
        if !records.is_empty() {
            self.groups.append_records(self.coordinator, records).await?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    fn of(record: &Record) -> Self {
        match record {
            Record::OffsetCommit { key, value } => Self::Offset(Offset {
                group: own(&key.group),
                topic: own(&key.topic),
                partition: key.partition,
                committed: value.as_ref().map(|value| Committed {
                    offset: value.offset,
                    leader_epoch: value.leader_epoch,
                    metadata: own(&value.metadata),
                    commit_timestamp: value.commit_timestamp,
                    expire_timestamp: value.expire_timestamp,
                    topic_id: value.topic_id,
                }),
            }),
            Record::GroupMetadata { .. } => {
                let (key, value) = record.encode();
                Self::Record(groups::Record { key, value })
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Offset(Offset { group, topic, committed, .. }) => {
                let metadata = committed.as_ref().map_or(0, |committed| committed.metadata.len());
                OFFSET_BYTES + group.len() + topic.len() + metadata
            }
            Self::Record(groups::Record { key, value }) => {
                key.len() + value.as_ref().map_or(0, |value| value.len())
            }
        }
    }
}

impl From<Offset> for Record {
    fn from(Offset { group, topic, partition, committed }: Offset) -> Self {
        Self::OffsetCommit {
            key: offset_commit::Key { group, topic, partition },
            value: committed.map(|committed| offset_commit::Value {
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                metadata: committed.metadata,
                commit_timestamp: committed.commit_timestamp,
                expire_timestamp: committed.expire_timestamp,
                topic_id: committed.topic_id,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
