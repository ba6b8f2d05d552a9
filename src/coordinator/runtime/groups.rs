//! The coordinators of groups: one for each partition of `__consumer_offsets`, unless the store
//! keeps groups by itself.

use super::journal::{Journal, Keyed, LogJournal, MAX_PENDING_KIB};
use super::store_journal::StoreJournal;
use super::{Clock, Home, Kind, LOADS, Runtime};
use crate::config::Config;
use crate::coordinator::records::{Record, Unreadable};
use crate::coordinator::shard::{self, Shard};
use crate::log::Log;
use crate::protocol::encoded::Encoded;
use crate::protocol::wire::Str;
use crate::store::{PartitionId, Storage};
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
        let kept_by = storage.groups();
        let home = kept_by.clone().map_or(Home::Topic(TOPIC), Home::Store);
        let knows_topics = kept_by.is_none().then(|| storage.clone());
        let journal = move |id: PartitionId| -> Box<dyn Journal<Record>> {
            let room = room.clone();
            match &kept_by {
                None => Box::new(LogJournal::new(log.clone(), id, max_batch_bytes, room)),
                Some(groups) => {
                    let number = id.partition;
                    Box::new(StoreJournal::new(groups.clone(), number, max_batch_bytes, room))
                }
            }
        };
        let kind = Kind {
            machine: Box::new(move || Shard::new(settings.clone())),
            journal: Box::new(journal),
            first: Box::new(move |shard| unseen_deletions(knows_topics.as_deref()?, shard)),
            write_timeout: Duration::from_millis(write_timeout_ms.into()),
            clock: Clock::default(),
            loads: Semaphore::new(LOADS),
        };
        Self::new(home, kind, storage)
    }
}

/// The topics whose deletion a broker before this one did not live to tell the groups. The view of
/// the topics is from after the records were read, and this process makes all topics: so it has
/// each topic that a record names, if that is still there. Who keeps groups by itself may have
/// topics from others, so there nothing is taken for deleted.
fn unseen_deletions(storage: &dyn Storage, shard: &Shard) -> Option<shard::Request> {
    let topics = storage.topics();
    let exists = |name: &Str| topics.by_name(name).is_some();
    let deleted = shard.offsets.deleted_topics(exists, |id| topics.by_id(id).is_some());
    (!deleted.is_empty()).then(|| shard::Request::TopicsDeleted(deleted.into_iter().collect()))
}

impl Keyed for Record {
    type Error = Unreadable;

    fn encode_into<'a>(
        &self,
        key: &'a mut Encoded,
        value: &'a mut Encoded,
    ) -> (&'a [u8], Option<&'a [u8]>) {
        self.encode_into(key, value)
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
