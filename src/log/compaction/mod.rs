//! Compaction: of each key only the last record stays.
//!
//! ```text
//!  choose the log with the largest share of what is dirty
//!    ─▶ read the dirty part: the last offset of each key, as many keys as there is memory for
//!    ─▶ rewrite the log up to there: a record goes if a later one has its key
//!    ─▶ the log is clean up to there
//! ```
//!
//! [`policy`] says when, [`offset_map`] holds the keys, [`cleaning`] says what goes. It is the store that
//! rewrites: see [`Storage::rewrite`](crate::store::Storage::rewrite).
//!
//! Source: `LogCleanerManager` and `Cleaner` of Apache Kafka 4.4; KIP-58 (the lag), KIP-354 (the
//! largest lag), KIP-534 (tombstones).

pub mod cleaning;
pub mod offset_map;
pub mod policy;

use super::Log;
use super::append::wall_clock_ms;
use crate::config::Config;
use crate::protocol::wire::Str;
use crate::record::batch::Batch;
use crate::store::{Filter, PartitionId, Result, State, Storage, StoreError};
use cleaning::Rules;
use offset_map::OffsetMap;
use policy::{Dirty, Policy};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Compacts one log after the other, as long as the store serves.
pub async fn run(log: Arc<Log>, config: impl Fn() -> Arc<Config>) {
    let mut state = log.state.clone();
    if state.wait_for(|state| *state == State::Serving).await.is_err() {
        return;
    }
    let mut uncleanable = HashSet::new();
    while log.check_serving().is_ok() {
        let config = config();
        let is_idle = match log.dirtiest(&config, wall_clock_ms(), &uncleanable).await {
            None => true,
            Some(job) => match job.run(&*log.storage, &config).await {
                Ok(()) => false,
                Err(StoreError::UnknownPartition | StoreError::Fenced) => true,
                Err(error) => {
                    let Job { topic, id, .. } = &job;
                    let partition = id.partition;
                    tracing::error!(%topic, partition, %error, "the log was not compacted");
                    // As in Kafka: nothing becomes better by itself, and others have to get on.
                    if matches!(error, StoreError::Corrupt(_)) {
                        uncleanable.insert(*id);
                    }
                    true
                }
            },
        };
        if is_idle {
            sleep(Duration::from_millis(config.log_cleaner_backoff_ms.unsigned_abs())).await;
        }
    }
}

/// A log that is to be compacted.
#[derive(Debug)]
pub struct Job {
    topic: Str,
    id: PartitionId,
    dirty: Dirty,
    delete_retention_ms: i64,
}

impl Log {
    /// The log that needs it most, if one does, but for some.
    pub async fn dirtiest(
        &self,
        config: &Config,
        now_ms: i64,
        uncleanable: &HashSet<PartitionId>,
    ) -> Option<Job> {
        let mut dirtiest: Option<Job> = None;
        let topics = self.storage.topics();
        for topic in topics.iter() {
            let Some(policy) = Policy::of(&topic.configs, config) else { continue };
            let partitions = (0..topic.partitions).filter_map(|index| topic.partition(index));
            for id in partitions.filter(|id| !uncleanable.contains(id)) {
                consume_budget().await;
                let Ok(Some(layout)) = self.storage.layout(id) else { continue };
                let Some(dirty) = policy.dirty(&layout, now_ms) else { continue };
                if dirtiest.as_ref().is_none_or(|job| job.dirty.ratio < dirty.ratio) {
                    let delete_retention_ms = policy.delete_retention_ms;
                    let topic = topic.name.clone();
                    dirtiest = Some(Job { topic, id, dirty, delete_retention_ms });
                }
            }
        }
        dirtiest
    }
}

impl Job {
    pub async fn run(&self, storage: &dyn Storage, config: &Config) -> Result<()> {
        let Dirty { base_offset, end_offset, .. } = self.dirty;
        let bytes = config.log_cleaner_dedupe_buffer_size.unsigned_abs();
        let keys = end_offset.abs_diff(base_offset);
        // To fill 128 MiB takes a while too.
        let map = on_another_thread(move || OffsetMap::new(bytes, keys)).await?;
        let now_ms = wall_clock_ms();
        let map = self.index(storage, map).await?;
        let Some(end_offset) = map.end_offset() else { return Ok(()) };
        tracing::debug!(topic = %self.topic, id = ?self.id, keys = map.len(), "compacting");
        let rules = Rules { map, now_ms, delete_retention_ms: self.delete_retention_ms };
        storage.rewrite(self.id, end_offset, &mut Aside(Arc::new(rules))).await
    }

    /// Reads the keys of what is dirty, until the map is full.
    async fn index(&self, storage: &dyn Storage, mut map: OffsetMap) -> Result<OffsetMap> {
        let Dirty { base_offset, end_offset, .. } = self.dirty;
        let mut at = base_offset;
        while at < end_offset && !map.is_full() {
            let Some((batches, next)) = storage.read_settled(self.id, at).await? else { break };
            let work = move || {
                cleaning::index(&mut map, &batches, at..end_offset);
                map
            };
            map = on_another_thread(work).await?;
            at = next;
        }
        map.reach(end_offset);
        Ok(map)
    }
}

/// Decompresses and compresses where no connection waits for it.
struct Aside(Arc<Rules>);

#[async_trait::async_trait]
impl Filter for Aside {
    async fn filter(&mut self, batches: Vec<Batch>) -> Result<Vec<Batch>> {
        let rules = self.0.clone();
        on_another_thread(move || rules.filter(batches)).await
    }
}

async fn on_another_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let ended = |error| StoreError::Unavailable(format!("the work ended early: {error}"));
    spawn_blocking(work).await.map_err(ended)
}
