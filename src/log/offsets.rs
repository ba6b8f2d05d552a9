//! Finding a place in a partition: its ends, or the first record of a time.
//!
//! Source: KIP-79, KIP-734 (the largest timestamp); `UnifiedLog.fetchOffsetByTimestamp` and
//! `FileRecords.searchForTimestamp` of Apache Kafka 4.4.

use super::partition::{Bounds, Partition};
use crate::record::batch::{Batch, Batches, Header};
use crate::record::codec::{Codec, Stream};
use crate::record::records::{self, Malformed, Slice, Source, skim};
use crate::store::{Result, StoreError};
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
        // No record before the place of this timestamp has a larger one, and most often it is
        // the largest.
        let mut timestamp = i64::MIN;
        self.scan(end - 1, end, 0, |batch| {
            timestamp = batch.header.max_timestamp;
            Ok(ControlFlow::Break(()))
        })
        .await?;
        let from = self.storage.seek_time(self.id, timestamp).await?.max(start);
        let mut largest: Option<Batch> = None;
        self.scan(from, end, READ_BYTES, |batch| {
            let so_far = largest.as_ref().map_or(i64::MIN, |batch| batch.header.max_timestamp);
            if batch.header.max_timestamp > so_far {
                largest = Some(batch.clone());
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        let Some(batch) = largest else { return Ok(None) };
        let timestamp = batch.header.max_timestamp;
        first_record(&batch, |place| place.timestamp == timestamp && place.offset >= start)
    }

    /// Shows the batches from the one that holds `from` up to `end`, until `visit` breaks.
    async fn scan(
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
                offset = batch.header.last_offset() + 1;
            }
            if offset <= before {
                return Err(StoreError::Corrupt(format!("nothing to read at offset {offset}")));
            }
        }
        Ok(())
    }
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
