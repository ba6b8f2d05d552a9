//! Retention: the oldest records go when they are too old, or too many.
//!
//! The log start moves over whole parts of the log, as the store keeps them; a part goes when its
//! youngest record is too old, or when what is left is still as large as it may be. All of a log may
//! go: Kafka begins a new segment then, and its log starts where it ends.
//!
//! Source: `UnifiedLog.deleteOldSegments` of Apache Kafka 4.4.

use super::Log;
use super::append::wall_clock_ms;
use crate::config::Config;
use crate::config::definition::list;
use crate::config::topic::{Configs, integer, text};
use crate::store::layout::{Layout, Part};
use crate::store::{PartitionId, Result, State, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::sleep;

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    bytes: Option<u64>,
    ms: Option<i64>,
}

impl Retention {
    /// That of a topic; `None` if nothing of it is deleted.
    pub fn of(configs: &Configs, broker: &Config) -> Option<Self> {
        let policy = text("cleanup.policy", configs, broker);
        let ms = integer("retention.ms", configs, broker);
        let retention = Self {
            bytes: u64::try_from(integer("retention.bytes", configs, broker)).ok(),
            ms: (ms >= 0).then_some(ms),
        };
        let is_limited = retention.bytes.is_some() || retention.ms.is_some();
        (is_limited && list(&policy).any(|policy| policy == "delete")).then_some(retention)
    }

    /// How old records may become, if that counts.
    pub fn ms(self) -> Option<i64> {
        self.ms
    }

    /// Where the log must start.
    pub fn start_of(&self, layout: &Layout, now_ms: i64) -> i64 {
        let too_large = self.bytes.map_or(0, |limit| {
            let mut excess = layout.bytes().saturating_sub(limit);
            count_while(&layout.parts, |part| {
                let goes = part.bytes <= excess;
                excess -= if goes { part.bytes } else { 0 };
                goes
            })
        });
        let too_old = self.ms.map_or(0, |limit| {
            count_while(&layout.parts, |part| {
                part.max_timestamp >= 0 && now_ms.saturating_sub(part.max_timestamp) > limit
            })
        });
        let gone = layout.parts.iter().take(too_large.max(too_old)).next_back();
        gone.map_or(layout.log_start_offset, |part| part.end_offset)
    }
}

fn count_while(parts: &[Part], goes: impl FnMut(&&Part) -> bool) -> usize {
    parts.iter().take_while(goes).count()
}

/// Kafka looks so long after its start, then once in each interval.
const FIRST_CHECK: Duration = Duration::from_secs(30);

/// Looks through all logs, again and again, as long as the store serves.
pub async fn run(log: Arc<Log>, config: impl Fn() -> Arc<Config>) {
    let interval = config().log_retention_check_interval_ms.unsigned_abs();
    let interval = Duration::from_millis(interval);
    let mut state = log.state.clone();
    if state.wait_for(|state| *state == State::Serving).await.is_err() {
        return;
    }
    sleep(FIRST_CHECK.min(interval)).await;
    while log.check_serving().is_ok() {
        log.delete_old(&config(), wall_clock_ms()).await;
        sleep(interval).await;
    }
}

impl Log {
    /// Moves the log starts over what is too old, or too much.
    pub async fn delete_old(&self, config: &Config, now_ms: i64) {
        let topics = self.storage.topics();
        for topic in topics.iter() {
            let Some(retention) = Retention::of(&topic.configs, config) else { continue };
            for partition in (0..topic.partitions).filter_map(|index| topic.partition(index)) {
                // There may be very many, and most have nothing to wait for.
                consume_budget().await;
                match self.delete_old_of(partition, retention, now_ms).await {
                    Ok(()) | Err(StoreError::UnknownPartition | StoreError::Fenced) => {}
                    Err(error) => {
                        let (topic, partition) = (&*topic.name, partition.partition);
                        tracing::warn!(topic, partition, %error, "old records were not deleted");
                    }
                }
            }
        }
    }

    async fn delete_old_of(
        &self,
        id: PartitionId,
        retention: Retention,
        now_ms: i64,
    ) -> Result<()> {
        let Some(layout) = self.storage.layout(id)? else { return Ok(()) };
        let start = retention.start_of(&layout, now_ms);
        if start > layout.log_start_offset {
            self.partition(id).await?.move_log_start(start).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::{Fixture, PARTITION};
    use crate::record::testing::Draft;
    use crate::store::Storage;

    const HOUR_MS: i64 = 3_600_000;

    /// Parts of so many bytes and of this age, each of ten offsets.
    fn layout(parts: &[(u64, i64)]) -> Layout {
        let part = |(base, (bytes, timestamp)): (usize, &(u64, i64))| Part {
            base_offset: 10 * base as i64,
            end_offset: 10 * base as i64 + 10,
            bytes: *bytes,
            first_timestamp: *timestamp,
            max_timestamp: *timestamp,
            is_settled: true,
        };
        let parts: Vec<_> = parts.iter().enumerate().map(part).collect();
        let log_end_offset = 10 * parts.len() as i64;
        Layout { log_end_offset, parts, ..Layout::default() }
    }

    fn start(bytes: i64, ms: i64, parts: &[(u64, i64)]) -> i64 {
        let retention = Retention { bytes: u64::try_from(bytes).ok(), ms: (ms >= 0).then_some(ms) };
        retention.start_of(&layout(parts), 1000)
    }

    #[test]
    fn the_oldest_parts_go_until_no_more_than_the_size_is_left() {
        let parts = [(100, 0), (100, 0), (100, 0)];
        // As Kafka: a part stays if the log would be smaller than the size without it.
        for (limit, expected) in [(300, 0), (299, 0), (200, 10), (101, 10), (100, 20), (0, 30)] {
            assert_eq!(start(limit, -1, &parts), expected, "{limit}");
        }
    }

    #[test]
    fn parts_go_when_their_youngest_record_is_too_old_the_last_one_too() {
        let parts = [(1, 100), (1, 300), (1, 200)];
        for (limit, expected) in [(900, 0), (899, 10), (700, 10), (699, 30), (0, 30)] {
            assert_eq!(start(-1, limit, &parts), expected, "{limit}");
        }
        assert_eq!(start(-1, 100, &[(1, 100), (1, -1), (1, 100)]), 10, "of no known age");
        assert_eq!(start(-1, 100, &[(1, 5000), (1, 100)]), 0, "from the future");
        assert_eq!(start(1, 899, &parts), 20, "the stricter one counts");
    }

    #[test]
    fn only_topics_whose_records_are_deleted_have_a_retention() {
        let broker = Config::default();
        let of = |configs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            Retention::of(&configs.iter().map(own).collect(), &broker)
        };
        let week = Retention { bytes: None, ms: Some(7 * 24 * HOUR_MS) };
        assert_eq!(of(&[]), Some(week));
        assert_eq!(of(&[("cleanup.policy", "compact")]), None);
        assert_eq!(of(&[("cleanup.policy", "compact,delete")]), Some(week));
        assert_eq!(of(&[("cleanup.policy", "")]), None);
        assert_eq!(of(&[("retention.ms", "-1")]), None);
        let bytes = Retention { bytes: Some(7), ms: None };
        assert_eq!(of(&[("retention.ms", "-1"), ("retention.bytes", "7")]), Some(bytes));
    }

    #[tokio::test]
    async fn readers_are_told_the_log_start_that_retention_moved() {
        let f = Fixture::new().await;
        for _ in 0..3 {
            f.append(&Draft::of(&["a", "b"])).await.unwrap();
        }
        let layout = f.store.layout(PARTITION).unwrap().unwrap();
        let newest = layout.parts.last().unwrap().max_timestamp;
        let config = Config::from_text("log.retention.ms=1000").unwrap();
        f.log.delete_old(&config, newest + 1000).await;
        assert_eq!(f.bounds().log_start_offset, 0);
        f.log.delete_old(&config, newest + 1001).await;
        assert_eq!((f.bounds().log_start_offset, f.bounds().log_end_offset), (6, 6));
        assert_eq!(f.store.open(PARTITION).await.unwrap().log_start_offset, 6);
    }
}
