//! Snapshots of producer state among the host's coordinator records.

use super::producer_state::{ProducerState, key, partition_of};
use super::records::RecordLogs;
use super::status::Failure;
use crate::store::PartitionId;
use crate::store::groups::Record;
use crate::store::topics::Topic;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{OnceCell, oneshot};

/// The coordinator's log that holds the snapshots: the last record of a partition counts.
const LOG: &str = "__producer_state";

/// Records of one host append.
const RECORDS_MAX: usize = 1_000;

pub(super) struct Snapshots {
    logs: RecordLogs,
    /// Those of partitions that were not opened yet. Loaded when the first one is.
    stored: OnceCell<Mutex<HashMap<PartitionId, Bytes>>>,
}

impl Snapshots {
    pub(super) fn new(logs: RecordLogs) -> Self {
        Self { logs, stored: OnceCell::new() }
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
        self.append(vec![Record { key: key(id), value: Some(state.to_bytes()) }], |stored| {
            warn(&stored)
        });
    }

    pub(super) async fn put_all(&self, states: Vec<(PartitionId, ProducerState)>) {
        for states in states.chunks(RECORDS_MAX) {
            let records = states
                .iter()
                .map(|(id, state)| Record { key: key(*id), value: Some(state.to_bytes()) });
            let (done, stored) = oneshot::channel();
            // Who closes the store may have given up.
            self.append(records.collect(), |stored| drop(done.send(stored)));
            warn(&self.logs.host.wait(stored).await);
        }
    }

    /// Forgets the partitions of a topic without waiting.
    pub(super) fn delete(&self, topic: &Topic) {
        let ids: Vec<_> = (0..topic.partitions)
            .map(|partition| PartitionId { topic: topic.id, partition })
            .collect();
        for ids in ids.chunks(RECORDS_MAX) {
            let deleted = ids.iter().map(|id| Record { key: key(*id), value: None });
            self.append(deleted.collect(), |stored| warn(&stored));
        }
    }

    fn append(
        &self,
        records: Vec<Record>,
        then: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        self.logs.append(LOG, records, then);
    }

    async fn load(&self) -> Result<Mutex<HashMap<PartitionId, Bytes>>, Failure> {
        let mut stored = HashMap::new();
        let show = |Record { key, value }| match (partition_of(&key), value) {
            (None, _) => tracing::warn!("{LOG} has a record with a foreign key"),
            (Some(id), Some(value)) => drop(stored.insert(id, value)),
            (Some(id), None) => drop(stored.remove(&id)),
        };
        self.logs.load(LOG, show).await?;
        Ok(Mutex::new(stored))
    }
}

fn warn(stored: &Result<(), Failure>) {
    if let Err(failure) = stored {
        tracing::warn!("snapshots of producer state are not stored: {failure}");
    }
}
