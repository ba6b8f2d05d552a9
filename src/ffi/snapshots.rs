//! Snapshots of producer state among the host's coordinator records.

use super::data::{KelpBytes, KelpStr};
use super::host::Host;
use super::operation::{Callback, KelpOp};
use super::producer_state::{ProducerState, key, partition_of};
use super::status::Failure;
use super::storage::{KelpAppendRecords, KelpLoadRecords, KelpRecord};
use crate::store::PartitionId;
use crate::store::topics::Topic;
use bytes::Bytes;
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, oneshot};

/// The coordinator's log that holds the snapshots: the last record of a partition counts.
const LOG: &str = "__producer_state";

/// Records of one host append.
const RECORDS_MAX: usize = 1_000;

/// The key and value of a record; without a value the key is deleted.
type Stored = (Bytes, Option<Bytes>);

pub(super) struct Snapshots {
    host: Arc<Host>,
    append: Callback<KelpAppendRecords>,
    load: Callback<KelpLoadRecords>,
    /// Those of partitions that were not opened yet. Loaded when the first one is.
    stored: OnceCell<Mutex<HashMap<PartitionId, Bytes>>>,
}

impl Snapshots {
    pub(super) fn new(
        host: Arc<Host>,
        append: Callback<KelpAppendRecords>,
        load: Callback<KelpLoadRecords>,
    ) -> Self {
        Self { host, append, load, stored: OnceCell::new() }
    }

    /// What was stored of a partition before this process started.
    pub(super) async fn get(&self, id: PartitionId) -> Result<Option<ProducerState>, Failure> {
        let stored = self.stored.get_or_try_init(|| self.load()).await?;
        let bytes = stored.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        let state = bytes.as_ref().map(|bytes| ProducerState::from_bytes(bytes));
        if state == Some(None) {
            tracing::warn!(
                topic = %id.topic, partition = id.partition,
                "a snapshot of producer state cannot be read; the log is read instead"
            );
        }
        Ok(state.flatten())
    }

    /// Stores a snapshot without waiting. If it is lost, more of the log is read.
    pub(super) fn put(&self, id: PartitionId, state: &ProducerState) {
        self.append(vec![(key(id), Some(state.to_bytes()))], |stored| warn(&stored));
    }

    pub(super) async fn put_all(&self, states: Vec<(PartitionId, ProducerState)>) {
        for states in states.chunks(RECORDS_MAX) {
            let records = states.iter().map(|(id, state)| (key(*id), Some(state.to_bytes())));
            let (done, stored) = oneshot::channel();
            // Who closes the store may have given up.
            self.append(records.collect(), |stored| drop(done.send(stored)));
            warn(&self.host.wait(stored).await);
        }
    }

    /// Forgets the partitions of a topic without waiting.
    pub(super) fn delete(&self, topic: &Topic) {
        let ids: Vec<_> = (0..topic.partitions)
            .map(|partition| PartitionId { topic: topic.id, partition })
            .collect();
        for ids in ids.chunks(RECORDS_MAX) {
            self.append(ids.iter().map(|id| (key(*id), None)).collect(), |stored| warn(&stored));
        }
    }

    fn append(
        &self,
        records: Vec<Stored>,
        then: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let records = Records::new(records);
        let body = KelpAppendRecords {
            op: KelpOp::NEW,
            log: KelpStr::of(LOG),
            records: records.raw.as_ptr(),
            record_count: records.raw.len(),
        };
        self.host.submit(self.append, body, records, |outcome| outcome.ok(), then);
    }

    async fn load(&self) -> Result<Mutex<HashMap<PartitionId, Bytes>>, Failure> {
        let (mut stored, mut position) = (HashMap::new(), 0);
        loop {
            let (records, next_position) = self.load_from(position).await?;
            for (key, value) in records {
                match (partition_of(&key), value) {
                    (None, _) => tracing::warn!("{LOG} has a record with a foreign key"),
                    (Some(id), Some(value)) => drop(stored.insert(id, value)),
                    (Some(id), None) => drop(stored.remove(&id)),
                }
            }
            match next_position {
                0 => return Ok(Mutex::new(stored)),
                next if next <= position => {
                    return Err(Failure::Malformed("a position does not grow"));
                }
                next => position = next,
            }
        }
    }

    fn load_from(
        &self,
        position: u64,
    ) -> impl Future<Output = Result<(Vec<Stored>, u64), Failure>> {
        let body = KelpLoadRecords {
            op: KelpOp::NEW,
            log: KelpStr::of(LOG),
            position,
            records: ptr::null(),
            record_count: 0,
            next_position: 0,
        };
        self.host.ask(self.load, body, (), |outcome| {
            outcome.ok()?;
            let records = outcome.array(outcome.body.records, outcome.body.record_count)?;
            let record = |record: &KelpRecord| {
                let value = match record.is_tombstone {
                    0 => Some(outcome.bytes(record.value)?),
                    _ => None,
                };
                Ok((outcome.bytes(record.key)?, value))
            };
            let records = records.iter().map(record).collect::<Result<_, _>>()?;
            Ok((records, outcome.body.next_position))
        })
    }
}

fn warn(stored: &Result<(), Failure>) {
    if let Err(failure) = stored {
        tracing::warn!("snapshots of producer state are not stored: {failure}");
    }
}

/// Records for the host, with the memory they point to.
struct Records {
    raw: Vec<KelpRecord>,
    _owned: Vec<Stored>,
}

// SAFETY: the pointers lead into `_owned`, which is immutable and may be sent.
unsafe impl Send for Records {}

impl Records {
    fn new(owned: Vec<Stored>) -> Self {
        let record = |(key, value): &(Bytes, Option<Bytes>)| KelpRecord {
            key: KelpBytes::of(key),
            value: value.as_deref().map_or(KelpBytes::EMPTY, KelpBytes::of),
            is_tombstone: u32::from(value.is_none()),
            reserved: 0,
        };
        Self { raw: owned.iter().map(record).collect(), _owned: owned }
    }
}
