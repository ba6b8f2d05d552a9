//! The coordinators of groups: one for each partition of `__consumer_offsets`.

use super::journal::{Keyed, LogJournal, MAX_PENDING_KIB};
use super::{Clock, Kind, LOADS, Runtime};
use crate::config::Config;
use crate::coordinator::records::{Record, Unreadable};
use crate::coordinator::shard::{self, Shard};
use crate::log::Log;
use crate::store::Storage;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

pub const TOPIC: &str = "__consumer_offsets";

impl Runtime<Shard> {
    pub fn of_groups(config: &Config, storage: Arc<dyn Storage>, log: Arc<Log>) -> Self {
        let settings = shard::Config::from(config);
        let max_batch_bytes = config.message_max_bytes.unsigned_abs() as usize;
        let write_timeout_ms = config.offsets_commit_timeout_ms.unsigned_abs();
        let room = Arc::new(Semaphore::new(MAX_PENDING_KIB));
        let kind = Kind {
            machine: Box::new(move || Shard::new(settings.clone())),
            journal: Box::new(move |id| {
                Box::new(LogJournal::new(log.clone(), id, max_batch_bytes, room.clone()))
            }),
            write_timeout: Duration::from_millis(write_timeout_ms.into()),
            clock: Clock::default(),
            loads: Semaphore::new(LOADS),
        };
        Self::new(TOPIC, kind, storage)
    }
}

impl Keyed for Record {
    type Error = Unreadable;

    fn encode(&self) -> (Bytes, Option<Bytes>) {
        self.encode()
    }

    fn decode(key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Option<Self>, Unreadable> {
        match Self::decode(key, value) {
            Ok(record) => Ok(Some(record)),
            Err(Unreadable::UnknownType(number)) => {
                // As Kafka: a later version may have written it.
                tracing::debug!(number, "left out a record of a kind that is not known");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
