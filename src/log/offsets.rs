//! Finding a place in a partition: its ends, or the first record of a time.
//!
//! Source: KIP-79, KIP-734 (the largest timestamp); `UnifiedLog.fetchOffsetByTimestamp` and
//! `FileRecords.searchForTimestamp` of Apache Kafka 4.4.

use super::partition::{Bounds, Partition};
use crate::record::batch::{Batch, Batches, Header};
use crate::record::codec::{Codec, Stream};
use crate::record::records::{self, Malformed, Slice, Source, skim};
use crate::store::{Result, StoreError};
use std::cell::Cell;
use std::ops::ControlFlow;

/// A record, as far as it is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: i64,
    pub timestamp: i64,
    pub leader_epoch: i32,
}

/// How much is read at once while a time is searched.
const READ_BYTES: usize = 1 << 20;

impl Partition {
    /// The leader epoch of the first record; the present one if there is no record.
    pub async fn first_epoch(&self, bounds: &Bounds) -> Result<i32> {
        let mut epoch = bounds.leader_epoch;
        self.scan(bounds.log_start_offset, bounds.high_watermark, 0, |batch| {
            epoch = batch.header.leader_epoch;
            Ok(ControlFlow::Break(()))
        })
        .await?;
        Ok(epoch)
    }

    /// The first record below `end` with this timestamp or a later one.
    pub async fn find_time(
        &self,
        bounds: &Bounds,
        timestamp: i64,
        end: i64,
    ) -> Result<Option<Place>> {
        let start = bounds.log_start_offset;
        let from = self.storage.seek_time(self.id, timestamp).await?.max(start);
        let mut found = None;
        self.scan(from, end, READ_BYTES, |batch| {
            if batch.header.max_timestamp >= timestamp {
                found = first_record(batch, |place| {
                    place.timestamp >= timestamp && (start..end).contains(&place.offset)
                })?;
            }
            Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .await?;
        Ok(found)
    }

    /// The record below `end` with the largest timestamp; of several the first.
    pub async fn find_max_time(&self, bounds: &Bounds, end: i64) -> Result<Option<Place>> {
        let start = bounds.log_start_offset;
        if start >= end {
            return Ok(None);
        }
        // A record as late as the latest of the last batch is there, and most often it is the
        // latest of all. So those before the place of this time need not be looked at.
        let mut latest = i64::MIN;
        self.scan(end - 1, end, 0, |batch| {
            latest = max_timestamp(batch, start)?;
            Ok(ControlFlow::Break(()))
        })
        .await?;
        let from = self.storage.seek_time(self.id, latest).await?.max(start);
        let mut found: Option<Batch> = None;
        latest = i64::MIN;
        self.scan(from, end, READ_BYTES, |batch| {
            let timestamp = max_timestamp(batch, start)?;
            if timestamp > latest || found.is_none() {
                (latest, found) = (timestamp, Some(batch.clone()));
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        let Some(batch) = found else { return Ok(None) };
        first_record(&batch, |place| place.timestamp == latest && place.offset >= start)
    }

    /// Shows the batches from the one that holds `from` up to `end`, until `visit` breaks.
    pub async fn scan(
        &self,
        from: i64,
        end: i64,
        read_bytes: usize,
        mut visit: impl FnMut(&Batch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut offset = from;
        while offset < end {
            let slices = self.storage.read(self.id, offset, read_bytes, true).await?;
            let before = offset;
            for batch in Batches::new(slices) {
                if batch.header.base_offset >= end || visit(&batch)?.is_break() {
                    return Ok(());
                }
                offset = batch.header.next_offset();
            }
            if offset <= before {
                return Err(StoreError::Corrupt(format!("nothing to read at offset {offset}")));
            }
            // What is in memory is read without a wait, and others have to get on too.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// The largest timestamp of a batch's records from `start` on.
fn max_timestamp(batch: &Batch, start: i64) -> Result<i64> {
    if batch.header.record_count == 0 {
        // Compaction left it, and its header speaks of records that are gone.
        return Ok(i64::MIN);
    }
    if batch.header.base_offset >= start {
        return Ok(batch.header.max_timestamp);
    }
    // The header may speak of a record that was deleted.
    let latest = Cell::new(i64::MIN);
    first_record(batch, |place| {
        if place.offset >= start {
            latest.set(latest.get().max(place.timestamp));
        }
        false
    })?;
    Ok(latest.get())
}

/// The first record of a batch that is wanted.
fn first_record(batch: &Batch, wanted: impl Fn(&Place) -> bool) -> Result<Option<Place>> {
    let bytes = batch.records();
    let found = match Codec::from_attributes(batch.header.attributes) {
        None => Err(Malformed::Undecodable),
        Some(Codec::None) => search(&batch.header, &mut Slice::new(&bytes), wanted),
        Some(codec) => Stream::new(codec, &bytes)
            .and_then(|mut stream| search(&batch.header, &mut stream, wanted)),
    };
    found.map_err(|error| {
        StoreError::Corrupt(format!("batch at offset {}: {error}", batch.header.base_offset))
    })
}

fn search<S: Source>(
    header: &Header,
    source: &mut S,
    wanted: impl Fn(&Place) -> bool,
) -> records::Result<Option<Place>> {
    for _ in 0..header.record_count {
        let record = skim(source)?;
        let place = Place {
            offset: header.base_offset + i64::from(record.offset_delta),
            timestamp: header.timestamp_of(record.timestamp_delta),
            leader_epoch: header.leader_epoch,
        };
        if wanted(&place) {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::{Fixture, PARTITION};
    use crate::record::codec::Codec;
    use crate::record::testing::{Draft, from_kafka};
    use crate::store::Storage;

    const T: i64 = 1_700_000_000_000;

    impl Fixture {
        /// Batches of records with these times behind [`T`], one after the other.
        async fn with_times(batches: &[&[i64]]) -> Self {
            let f = Self::new().await;
            for times in batches {
                let times: Vec<i64> = times.iter().map(|time| T + time).collect();
                f.append(&Draft::at(&times)).await.unwrap();
            }
            f
        }

        async fn find(&self, time: i64) -> Option<(i64, i64)> {
            let bounds = self.bounds();
            let found = self.partition.find_time(&bounds, T + time, bounds.high_watermark).await;
            found.unwrap().map(|place| (place.offset, place.timestamp - T))
        }

        async fn find_max(&self) -> Option<(i64, i64)> {
            let bounds = self.bounds();
            let found = self.partition.find_max_time(&bounds, bounds.high_watermark).await;
            found.unwrap().map(|place| (place.offset, place.timestamp - T))
        }

        async fn start_at(&self, offset: i64) {
            self.store.set_log_start(PARTITION, offset).await.unwrap();
            self.partition.state().log_start_offset = offset;
        }
    }

    // The answers in this file are Apache Kafka 4.4's.

    #[tokio::test]
    async fn a_time_is_that_of_the_first_record_at_it_or_later() {
        for batches in [&[&[20, 40, 60, 80][..]][..], &[&[20], &[40], &[60], &[80]]] {
            let f = Fixture::with_times(batches).await;
            for (time, found) in [
                (0, Some((0, 20))),
                (20, Some((0, 20))),
                (30, Some((1, 40))),
                (61, Some((3, 80))),
                (80, Some((3, 80))),
                (81, None),
            ] {
                assert_eq!(f.find(time).await, found, "{batches:?} at {time}");
            }
            assert_eq!(f.find(-T).await, Some((0, 20)));
            assert_eq!(f.find_max().await, Some((3, 80)));
        }
        let empty = Fixture::new().await;
        assert_eq!((empty.find(0).await, empty.find_max().await), (None, None));
    }

    #[tokio::test]
    async fn times_need_not_be_in_order_and_the_first_of_equals_is_told() {
        let f = Fixture::with_times(&[&[50, 90, 90, 10], &[90, 20], &[70]]).await;
        for (time, found) in
            [(0, (0, 50)), (10, (0, 50)), (51, (1, 90)), (60, (1, 90)), (90, (1, 90))]
        {
            assert_eq!(f.find(time).await, Some(found), "at {time}");
        }
        assert_eq!(f.find(91).await, None);
        assert_eq!(f.find_max().await, Some((1, 90)));

        f.start_at(2).await;
        assert_eq!(f.find(0).await, Some((2, 90)), "nothing below the log start");
        f.start_at(7).await;
        assert_eq!((f.find(0).await, f.find_max().await), (None, None));
    }

    /// Kafka keeps the largest time of a file and tells of a record that was deleted.
    #[tokio::test]
    async fn the_largest_time_is_not_that_of_a_deleted_record() {
        let f = Fixture::with_times(&[&[50, 90, 90, 10], &[80, 20]]).await;
        f.start_at(2).await;
        assert_eq!(f.find_max().await, Some((2, 90)));
        f.start_at(3).await;
        assert_eq!(f.find_max().await, Some((4, 80)));
    }

    #[tokio::test]
    async fn all_records_of_a_batch_have_its_append_time() {
        let f = Fixture::new().await;
        let mut times = Vec::new();
        for _ in 0..2 {
            // What their producer said of them is long ago.
            let draft = Draft { attributes: 1 << 3, ..Draft::at(&[1, 2, 3]) };
            times.push(f.append(&draft).await.unwrap().log_append_time_ms - T);
        }
        assert_eq!(f.find(0).await, Some((0, times[0])));
        assert_eq!(f.find(times[0]).await, Some((0, times[0])));
        let latest = if times[1] > times[0] { (3, times[1]) } else { (0, times[0]) };
        assert_eq!(f.find_max().await, Some(latest));
        assert_eq!(f.find(latest.1 + 1).await, None);
    }

    #[tokio::test]
    async fn compressed_batches_are_searched_too() {
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let f = Fixture::new().await;
            let mut batch = from_kafka(codec);
            batch.header.producer_id = -1;
            let (first, last) = (batch.header.base_timestamp, batch.header.max_timestamp);
            let room = f.log.room_for(batch.len()).await;
            f.partition.append(batch, room).await.unwrap();
            // The second record has the same time as the third.
            assert_eq!(f.find(first - T + 1).await, Some((1, last - T)), "{codec:?}");
            assert_eq!(f.find_max().await, Some((1, last - T)), "{codec:?}");
        }
    }

    #[tokio::test]
    async fn the_epoch_is_that_of_the_record() {
        let f = Fixture::with_times(&[&[1]]).await;
        f.partition.state().leader_epoch = 5;
        f.append(&Draft::at(&[T + 2])).await.unwrap();
        let bounds = f.bounds();
        let found = f.partition.find_time(&bounds, T + 2, 2).await.unwrap();
        assert_eq!(found, Some(Place { offset: 1, timestamp: T + 2, leader_epoch: 5 }));
        assert_eq!(f.partition.first_epoch(&bounds).await, Ok(0));
        f.start_at(2).await;
        assert_eq!(f.partition.first_epoch(&f.bounds()).await, Ok(5), "without a record, ours");
    }
}
