//! Reading from one or many partitions, now or when there is enough.
//!
//! Source: `ReplicaManager.readFromLog`, `fetchMessages` and `DelayedFetch` of Apache Kafka;
//! KIP-74 (limits, and the first batch that comes whole), KIP-320 (leader epochs).

use super::Log;
use super::partition::{Bounds, Partition};
use super::waiting::{Parked, Waiting};
use crate::protocol::error_code::ErrorCode;
use crate::record::batch::Batches;
use crate::store;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// From where a client wants to read a partition, and what is there.
pub struct Position {
    pub partition: Arc<Partition>,
    pub offset: i64,
    pub max_bytes: usize,
    /// The leader epoch that the client knows; negative if it knows none.
    pub current_leader_epoch: i32,
    pub found: Result<Found, ErrorCode>,
}

/// Batches, and where the partition stood when they were read.
pub struct Found {
    pub bounds: Bounds,
    pub records: Vec<Bytes>,
    bytes: usize,
    /// How many bytes were allowed.
    max_bytes: usize,
}

/// A fetch from partitions, in the order in which they are served.
pub struct Fetch {
    pub positions: Vec<Position>,
    pub max_bytes: usize,
    pub min_bytes: usize,
    pub max_wait: Duration,
}

impl Position {
    pub fn new(
        partition: Arc<Partition>,
        offset: i64,
        max_bytes: usize,
        current_leader_epoch: i32,
    ) -> Self {
        // Nobody sees this: a position is read before it is answered.
        let found = Err(ErrorCode::UnknownServerError);
        Self { partition, offset, max_bytes, current_leader_epoch, found }
    }

    async fn read(&self, max_bytes: usize, at_least_one: bool) -> Result<Found, ErrorCode> {
        let bounds = self.partition.bounds(self.current_leader_epoch)?;
        if self.offset < bounds.log_start_offset || self.offset > bounds.log_end_offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let max_bytes = max_bytes.min(self.max_bytes);
        if self.offset >= bounds.high_watermark || (max_bytes == 0 && !at_least_one) {
            return Ok(Found { bounds, records: Vec::new(), bytes: 0, max_bytes });
        }
        let Partition { id, storage, .. } = &*self.partition;
        let records = storage.read(*id, self.offset, max_bytes, at_least_one).await?;
        let bytes = records.iter().map(Bytes::len).sum();
        Ok(Found { bounds, records, bytes, max_bytes })
    }
}

impl Found {
    /// What counts for `min_bytes`. Kafka cuts the last batch at the limit, so a limit that is in
    /// the way counts as used up.
    fn readable_bytes(&self) -> usize {
        let last = Batches::new(self.records.clone()).last();
        match last {
            Some(last) if last.header.last_offset() + 1 < self.bounds.high_watermark => {
                self.bytes.max(self.max_bytes)
            }
            _ => self.bytes,
        }
    }
}

impl Fetch {
    /// Reads what is there. True if that is an answer; otherwise [`Fetch::wait`] for more.
    pub async fn read(&mut self) -> bool {
        let (mut bytes, mut failed) = (0, false);
        for position in &mut self.positions {
            // KIP-74: the first batch comes whole however long it is, so that nobody is stuck.
            let left = self.max_bytes.saturating_sub(bytes);
            position.found = position.read(left, bytes == 0).await;
            match &position.found {
                Ok(found) => bytes += found.bytes,
                Err(_) => failed = true,
            }
        }
        failed
            || bytes >= self.enough()
            || self.max_wait.is_zero()
            || self.positions.is_empty()
            || self.readable_bytes() >= self.enough()
    }

    fn enough(&self) -> usize {
        self.min_bytes.min(self.max_bytes)
    }

    fn readable_bytes(&self) -> usize {
        let found = self.positions.iter().filter_map(|position| position.found.as_ref().ok());
        found.map(Found::readable_bytes).sum()
    }

    /// Waits until there is enough, or the time is over, or something else is to be told.
    pub async fn wait(&mut self, log: &Log) {
        let deadline = Instant::now() + self.max_wait;
        let mut state = log.state.clone();
        loop {
            let parking = self.park();
            let is_late = tokio::select! {
                () = parking.waiting.enough() => false,
                () = tokio::time::sleep_until(deadline) => true,
                // Not `changed`: the log was made before the store was open.
                _ = state.wait_for(|state| *state != store::State::Serving) => true,
            };
            drop(parking);
            if self.read().await || is_late {
                break;
            }
        }
        // A process that was fenced while the fetch was parked has nothing to say.
        if let Err(error) = log.check_serving() {
            let code = ErrorCode::from(error);
            self.positions.iter_mut().for_each(|position| position.found = Err(code));
        }
    }

    /// Takes a place at each partition. What was read is dropped: it is read again in the end.
    fn park(&mut self) -> Parking {
        let missing = self.enough().saturating_sub(self.readable_bytes());
        let waiting = Waiting::new(missing as i64);
        let mut partitions = Vec::with_capacity(self.positions.len());
        for position in &mut self.positions {
            let Ok(found) = &mut position.found else { continue };
            let room_bytes = position.max_bytes.saturating_sub(found.readable_bytes()) as u64;
            found.records = Vec::new();
            let mut parked = Parked { waiting: waiting.clone(), room_bytes };
            let mut state = position.partition.state();
            // What came since it was read counts too.
            parked.add(state.visible_bytes - found.bounds.visible_bytes);
            if state.failed.is_some() {
                parked.wake();
            }
            state.parked.push(parked);
            drop(state);
            partitions.push(position.partition.clone());
        }
        Parking { waiting, partitions }
    }
}

/// The places of a parked fetch, given up with it.
struct Parking {
    waiting: Arc<Waiting>,
    partitions: Vec<Arc<Partition>>,
}

impl Drop for Parking {
    fn drop(&mut self) {
        for partition in &self.partitions {
            partition.state().parked.retain(|parked| !Arc::ptr_eq(&parked.waiting, &self.waiting));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::testing::{PARTITION, append, log};
    use crate::record::testing::Draft;

    async fn fetch(log: &Log, offset: i64) -> Fetch {
        let partition = log.partition(PARTITION).await.unwrap();
        let positions = vec![Position::new(partition, offset, 1 << 20, -1)];
        let max_wait = Duration::from_secs(3600);
        Fetch { positions, max_bytes: 1 << 20, min_bytes: 1, max_wait }
    }

    #[tokio::test]
    async fn what_was_appended_is_read_back_with_its_offset_and_epoch() {
        let log = log().await;
        assert_eq!(append(&log, Draft::of(&["a", "b"])).await.unwrap().base_offset, 0);
        assert_eq!(append(&log, Draft::of(&["c"])).await.unwrap().base_offset, 2);

        let mut fetch = fetch(&log, 1).await;
        assert!(fetch.read().await);
        let found = fetch.positions.remove(0).found.unwrap();
        assert_eq!(found.bounds.high_watermark, 3);
        let mut expected = Draft::of(&["c"]).encode().to_vec();
        expected[7] = 2;
        expected[12..16].copy_from_slice(&[0; 4]);
        assert_eq!(found.records[1], expected);
    }
}
