//! Idempotent producers that went away: what is known of one is dropped when it has appended nothing
//! for long, or each that ever was would take memory for good.
//!
//! Kafka goes by the times in a producer's last batch, so one that copies old records is forgotten
//! while it is at work, and its retries are stored twice. Here the time of the append counts as well.
//! It is not stored: after a restart a producer has one interval of checks to come back in.
//!
//! Source: `ProducerStateManager.removeExpiredProducers` of Apache Kafka 4.4.

use super::append::wall_clock_ms;
use super::partition::{Partition, State};
use super::{Log, lock};
use crate::config::Config;
use crate::record::batch::Header;
use crate::store::producers::Producer;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::sleep;

/// When producers appended, as far as this process saw it.
pub(super) type Appended = HashMap<i64, i64>;

/// Looks through all producers, again and again.
pub async fn run(log: Arc<Log>, config: impl Fn() -> Arc<Config>) {
    let interval = config().producer_id_expiration_check_interval_ms.unsigned_abs();
    loop {
        sleep(Duration::from_millis(interval.into())).await;
        let expiration_ms = i64::from(config().producer_id_expiration_ms);
        log.expire_producers(wall_clock_ms() - expiration_ms).await;
    }
}

impl Log {
    /// Drops the producers that appended nothing since. Those of a partition that nobody uses stay as
    /// they are: they become no more.
    pub async fn expire_producers(&self, since_ms: i64) {
        for shard in &self.shards {
            let opened: Vec<_> =
                lock(shard).values().filter_map(|slot| slot.get().cloned()).collect();
            for partition in opened {
                // There may be very many.
                consume_budget().await;
                partition.expire_producers(since_ms);
            }
        }
    }
}

impl Partition {
    fn expire_producers(&self, since_ms: i64) {
        let mut state = self.state();
        let State { producers, appended, .. } = &mut *state;
        let is_idle = |id: i64, producer: &Producer| {
            let time = producer.batches.back().map_or(-1, |last| last.max_timestamp);
            let append_time = appended.get(&id).copied().unwrap_or(time);
            time.max(append_time) <= since_ms
        };
        let idle = producers.iter().filter(|(id, producer)| is_idle(*id, producer));
        let idle: Vec<i64> = idle.map(|(id, _)| id).collect();
        idle.iter().for_each(|id| producers.remove(*id));
        appended.retain(|id, _| producers.get(*id).is_some());
        if !idle.is_empty() {
            // Under the lock: what such a producer appends from now on comes behind it.
            self.storage.forget_producers(self.id, &idle);
            tracing::debug!(partition = ?self.id, count = idle.len(), "forgot idle producers");
        }
    }
}

impl State {
    /// Takes in a batch that got its place.
    pub(super) fn note_producer(&mut self, batch: &Header) {
        if batch.is_idempotent() {
            self.producers.apply(batch);
            self.appended.insert(batch.producer_id, wall_clock_ms());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::Fixture;
    use crate::protocol::error_code::ErrorCode;
    use crate::record::testing::Draft;
    use crate::store::StoreError;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    impl Fixture {
        async fn produce(&self, id: i64, sequence: i32, time_ms: i64) -> Result<i64, ErrorCode> {
            let draft = Draft::at(&[time_ms]).from_producer(id, 0, sequence);
            self.append(&draft).await.map(|appended| appended.base_offset)
        }

        fn known(&self) -> Vec<i64> {
            self.partition.producers(|id, _| id).unwrap()
        }

        /// Goes on as a new process does.
        async fn restart(&mut self) {
            self.partition.fail(StoreError::Fenced);
            self.partition = self.log.partition(self.partition.id()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_producer_goes_when_neither_its_times_nor_its_appends_are_new() {
        let now = wall_clock_ms();
        let mut f = Fixture::new().await;
        f.produce(1, 0, now - 3 * DAY_MS).await.unwrap();
        f.produce(2, 0, now).await.unwrap();
        f.log.expire_producers(now - DAY_MS).await;
        assert_eq!(f.known(), [1, 2], "both were at work today");

        f.restart().await;
        f.produce(3, 0, now - 3 * DAY_MS).await.unwrap();
        f.log.expire_producers(now - DAY_MS).await;
        assert_eq!(f.known(), [2, 3]);
        assert_eq!(f.partition.state().appended.len(), 1, "only of those that are known");
        // The store has forgotten it too.
        f.restart().await;
        assert_eq!(f.known(), [2, 3]);

        f.log.expire_producers(wall_clock_ms()).await;
        assert_eq!(f.known(), [0i64; 0]);
    }

    #[tokio::test]
    async fn a_batch_counts_by_the_last_one_of_its_producer_as_in_kafka() {
        let now = wall_clock_ms();
        let mut f = Fixture::new().await;
        f.produce(1, 0, now).await.unwrap();
        f.produce(1, 1, now - 3 * DAY_MS).await.unwrap();
        f.restart().await;
        f.log.expire_producers(now - DAY_MS).await;
        assert_eq!(f.known(), [0i64; 0]);
    }

    /// KIP-360.
    #[tokio::test]
    async fn a_producer_that_comes_back_goes_on_where_it_was() {
        let f = Fixture::new().await;
        assert_eq!(f.produce(1, 0, 0).await, Ok(0));
        assert_eq!(f.produce(1, 9, 0).await, Err(ErrorCode::OutOfOrderSequenceNumber));
        f.log.expire_producers(i64::MAX).await;
        assert_eq!(f.produce(1, 9, 0).await, Ok(1));
        assert_eq!(f.produce(1, 9, 0).await, Ok(1), "known from then on");
        assert_eq!(f.produce(1, 11, 0).await, Err(ErrorCode::OutOfOrderSequenceNumber));
    }
}
