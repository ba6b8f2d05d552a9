//! Where the records of a leader epoch end: how a client sees that its view of a log is an old one.
//!
//! Source: KIP-101, KIP-279, KIP-320; `LeaderEpochFileCache.endOffsetFor` of Apache Kafka 4.4.

use super::partition::Partition;
use crate::protocol::error_code::ErrorCode;
use crate::store::EpochStart;

/// The end of what was appended in an epoch and all before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    pub leader_epoch: i32,
    pub end_offset: i64,
}

/// Kafka's name for "no epoch".
const NO_EPOCH: i32 = -1;

impl Partition {
    /// The largest epoch up to `epoch` that the log has, and where the next one begins. `None` for
    /// an epoch that is yet to come. An epoch that is older than all records ends where they begin.
    pub async fn end_of_epoch(
        &self,
        epoch: i32,
        current_leader_epoch: i32,
    ) -> Result<Option<EpochEnd>, ErrorCode> {
        let bounds = self.bounds(current_leader_epoch)?;
        if epoch == NO_EPOCH || epoch > bounds.leader_epoch {
            return Ok(None);
        }
        if epoch == bounds.leader_epoch {
            // Not the log end, as Kafka's leader says to its followers: what is pending may go.
            let end_offset = bounds.high_watermark;
            return Ok(Some(EpochEnd { leader_epoch: epoch, end_offset }));
        }
        let (log_start, start_offset) = (bounds.log_start_offset, bounds.epoch_start_offset);
        let mut known = self.storage.epochs(self.id).await?;
        known.retain(|known| known.epoch < bounds.leader_epoch);
        known.push(EpochStart { epoch: bounds.leader_epoch, start_offset });
        // An epoch whose records are all below the log start is not known any more.
        let below = known.partition_point(|known| known.start_offset <= log_start);
        known.drain(..below.saturating_sub(1));
        let next = known.partition_point(|known| known.epoch <= epoch);
        Ok(Some(EpochEnd {
            leader_epoch: next.checked_sub(1).map_or(epoch, |last| known[last].epoch),
            end_offset: known[next].start_offset.max(log_start),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::fetch::{Fetch, Position};
    use crate::log::read_memory::Share;
    use crate::log::testing::{Fixture, PARTITION};
    use crate::record::testing::Draft;
    use crate::store::{Opened, Storage, StoreError};
    use std::time::Duration;

    /// A log of six records of which two were written in epoch 0 and one in 2; in 4 none was, and
    /// 6 is the present one.
    async fn log() -> Fixture {
        let mut f = Fixture::new().await;
        for _ in 0..3 {
            f.append(&Draft::of(&["a"])).await.unwrap();
        }
        let begun = |(epoch, start_offset)| EpochStart { epoch, start_offset };
        *f.store.epochs.lock().unwrap() = [(0, 0), (2, 2)].map(begun).to_vec();
        f.reopen(6, 3).await;
        for _ in 0..3 {
            f.append(&Draft::of(&["a"])).await.unwrap();
        }
        // The store says that it began where its first record is.
        f.store.epochs.lock().unwrap().push(begun((6, 3)));
        f
    }

    impl Fixture {
        /// Goes on with what another process left.
        async fn reopen(&mut self, leader_epoch: i32, log_end_offset: i64) {
            self.partition.fail(StoreError::Fenced);
            let opened = Opened { log_end_offset, leader_epoch, ..Opened::default() };
            self.store.openings.lock().unwrap().push_back(Ok(opened));
            self.partition = self.log.partition(PARTITION).await.unwrap();
        }

        /// Epoch and end offset; -1 for an epoch that is not known.
        async fn end_of(&self, epoch: i32) -> (i32, i64) {
            let end = self.partition.end_of_epoch(epoch, -1).await.unwrap();
            end.map_or((-1, -1), |end| (end.leader_epoch, end.end_offset))
        }

        async fn ends(&self) -> Vec<(i32, i64)> {
            let mut ends = Vec::new();
            for epoch in -2..=7 {
                ends.push(self.end_of(epoch).await);
            }
            ends
        }
    }

    // The answers in this file are Apache Kafka 4.4's.

    #[tokio::test]
    async fn an_epoch_ends_where_the_next_one_with_records_begins() {
        let f = log().await;
        let ends = [(-2, 0), (-1, -1), (0, 2), (0, 2), (2, 3), (2, 3), (2, 3), (2, 3), (6, 6)];
        assert_eq!(f.ends().await, [&ends[..], &[(-1, -1)]].concat());
    }

    #[tokio::test]
    async fn epochs_below_the_log_start_end_there() {
        let f = log().await;
        f.store.set_log_start(PARTITION, 4).await.unwrap();
        f.partition.state().log_start_offset = 4;
        let mut ends: Vec<_> = (-2..6).map(|epoch| (epoch, 4)).collect();
        ends[1] = (-1, -1);
        assert_eq!(f.ends().await, [&ends[..], &[(6, 6), (-1, -1)]].concat());
    }

    #[tokio::test]
    async fn a_fetch_with_the_epoch_of_its_last_record_is_told_where_the_logs_part() {
        let f = log().await;
        f.store.set_log_start(PARTITION, 4).await.unwrap();
        f.partition.state().log_start_offset = 4;
        let out_of_range = Err(ErrorCode::OffsetOutOfRange);
        for (offset, last_fetched_epoch, expected) in [
            (3, -1, out_of_range),
            (3, 0, out_of_range),
            (3, 6, out_of_range),
            (5, -1, Ok(None)),
            (5, 0, Ok(Some((0, 4)))),
            (5, 5, Ok(Some((5, 4)))),
            (5, 6, Ok(None)),
            (5, 7, out_of_range),
            (9, -1, out_of_range),
            (9, 0, Ok(Some((0, 4)))),
            (9, 6, Ok(Some((6, 6)))),
            (9, 7, out_of_range),
        ] {
            let position = Position::new(f.partition.clone(), offset, 1 << 20, -1);
            let mut fetch = Fetch {
                positions: vec![Position { last_fetched_epoch, ..position }],
                max_bytes: 1 << 20,
                min_bytes: 1 << 20,
                max_wait: Duration::from_secs(60),
                is_one_of_each: false,
                share: Share::default(),
            };
            let is_answer = fetch.read().await;
            let found = fetch.positions.remove(0).found.map(|found| {
                assert_eq!(found.records.is_empty(), found.diverging.is_some());
                found.diverging.map(|end| (end.leader_epoch, end.end_offset))
            });
            assert_eq!(found, expected, "offset {offset}, epoch {last_fetched_epoch}");
            assert_eq!(is_answer, found != Ok(None), "it does not wait");
        }
    }

    #[tokio::test]
    async fn an_epoch_without_records_is_known_too() {
        let mut f = log().await;
        f.reopen(8, 6).await;
        assert_eq!(
            [f.end_of(5).await, f.end_of(6).await, f.end_of(7).await],
            [(2, 3), (6, 6), (6, 6)]
        );
        assert_eq!([f.end_of(8).await, f.end_of(9).await], [(8, 6), (-1, -1)]);
    }

    #[tokio::test]
    async fn without_epochs_in_the_store_all_earlier_ones_end_where_this_one_began() {
        let f = log().await;
        f.store.epochs.lock().unwrap().clear();
        assert_eq!(
            [f.end_of(0).await, f.end_of(5).await, f.end_of(6).await],
            [(0, 3), (5, 3), (6, 6)]
        );
    }

    #[tokio::test]
    async fn what_is_not_stored_yet_does_not_count() {
        let f = log().await;
        f.store.hold();
        drop(f.submit(&Draft::of(&["pending"])).await);
        assert_eq!(f.bounds().log_end_offset, 7);
        assert_eq!(f.end_of(6).await, (6, 6));
    }

    #[tokio::test]
    async fn a_client_with_another_leader_epoch_is_told() {
        let f = log().await;
        let asked = async |current| f.partition.end_of_epoch(0, current).await.err();
        assert_eq!((asked(-1).await, asked(6).await), (None, None));
        assert_eq!(asked(5).await, Some(ErrorCode::FencedLeaderEpoch));
        assert_eq!(asked(7).await, Some(ErrorCode::UnknownLeaderEpoch));
    }
}
