//! Reading from one or many partitions, now or when there is enough.
//!
//! Source: `ReplicaManager.readFromLog`, `fetchMessages` and `DelayedFetch` of Apache Kafka;
//! KIP-74 (limits, and the first batch that comes whole), KIP-320 (leader epochs), KIP-595 (diverging
//! epochs).

use super::Log;
use super::epochs::EpochEnd;
use super::partition::{Bounds, NO_LEADER_EPOCH, Partition};
use super::read_memory::{LEAST_BYTES, Share};
use super::waiting::{Parked, Waiting};
use crate::protocol::error_code::ErrorCode;
use crate::record::batch::Batches;
use crate::store;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

/// From where a client wants to read a partition, and what is there.
pub struct Position {
    pub partition: Arc<Partition>,
    pub offset: i64,
    pub max_bytes: usize,
    /// The leader epoch that the client knows; negative if it knows none.
    pub current_leader_epoch: i32,
    /// The leader epoch of the last record that the client has; negative if it does not say.
    pub last_fetched_epoch: i32,
    pub found: Result<Found, ErrorCode>,
}

/// Batches, and where the partition stood when they were read.
pub struct Found {
    pub bounds: Bounds,
    pub records: Vec<Bytes>,
    /// Where the client's log and this one part. It has records that are not here, so it gets none.
    pub diverging: Option<EpochEnd>,
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
    /// Whether a batch of each position comes whole, not only the first of all.
    pub is_one_of_each: bool,
    /// What is read is held by it, until the answer is made.
    pub share: Share,
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
        let last_fetched_epoch = NO_LEADER_EPOCH;
        Self { partition, offset, max_bytes, current_leader_epoch, last_fetched_epoch, found }
    }

    async fn read(&self, max_bytes: usize, at_least_one: bool) -> Result<Found, ErrorCode> {
        let bounds = self.partition.bounds(self.current_leader_epoch)?;
        let diverging = self.diverging(&bounds).await?;
        if diverging.is_some() {
            return Ok(Found { bounds, records: Vec::new(), diverging, bytes: 0, max_bytes });
        }
        if self.offset < bounds.log_start_offset || self.offset > bounds.log_end_offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let max_bytes = max_bytes.min(self.max_bytes);
        if self.offset >= bounds.high_watermark || (max_bytes == 0 && !at_least_one) {
            return Ok(Found { bounds, records: Vec::new(), diverging, bytes: 0, max_bytes });
        }
        let Partition { id, storage, .. } = &*self.partition;
        let records = storage.read(*id, self.offset, max_bytes, at_least_one).await?;
        let bytes = records.iter().map(Bytes::len).sum();
        Ok(Found { bounds, records, diverging, bytes, max_bytes })
    }

    async fn diverging(&self, bounds: &Bounds) -> Result<Option<EpochEnd>, ErrorCode> {
        let epoch = self.last_fetched_epoch;
        if epoch < 0 {
            return Ok(None);
        }
        let end = self.partition.end_of_epoch(epoch, self.current_leader_epoch).await?;
        match end {
            Some(end) if self.offset >= bounds.log_start_offset => {
                let is_diverging = end.leader_epoch < epoch || end.end_offset < self.offset;
                Ok(is_diverging.then_some(end))
            }
            _ => Err(ErrorCode::OffsetOutOfRange),
        }
    }
}

impl Position {
    /// Some batches from an offset on that is behind what was read here.
    pub async fn read_behind(&self, offset: i64) -> Result<Vec<Bytes>, ErrorCode> {
        let Partition { id, storage, .. } = &*self.partition;
        Ok(storage.read(*id, offset, LEAST_BYTES, true).await?)
    }
}

impl Found {
    /// What counts for `min_bytes`. Kafka cuts the last batch at the limit, so a limit that is in
    /// the way counts as used up.
    fn readable_bytes(&self) -> usize {
        let last = Batches::new(self.records.clone()).last();
        match last {
            Some(last) if last.header.next_offset() < self.bounds.high_watermark => {
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
        let max_bytes = self.take_share();
        self.announce(max_bytes);
        for position in &mut self.positions {
            // There may be very many, and none has to wait for anything.
            consume_budget().await;
            // KIP-74: the first batch comes whole however long it is, so that nobody is stuck.
            let left = max_bytes.saturating_sub(bytes);
            let at_least_one = bytes == 0 || self.is_one_of_each && left > 0;
            position.found = position.read(left, at_least_one).await;
            match &position.found {
                Ok(found) => {
                    bytes += found.bytes;
                    failed |= found.diverging.is_some();
                }
                Err(_) => failed = true,
            }
        }
        self.share.keep(bytes);
        let enough = self.enough().min(max_bytes);
        failed
            || bytes >= enough
            || self.max_wait.is_zero()
            || self.positions.is_empty()
            || self.readable_bytes() >= enough
    }

    /// Tells the store of all that is read now, so that not each position waits for it in its turn.
    fn announce(&self, mut max_bytes: usize) {
        let [first, _, ..] = &self.positions[..] else { return };
        let is_there = |position: &&Position| {
            let bounds = position.partition.bounds(position.current_leader_epoch);
            bounds.is_ok_and(|bounds| position.offset < bounds.high_watermark)
        };
        let is_wanted = |position: &&Position| {
            let is_room = max_bytes > 0;
            max_bytes = max_bytes.saturating_sub(position.max_bytes);
            is_room
        };
        let wanted = self.positions.iter().filter(is_there).take_while(is_wanted);
        let wanted: Vec<_> = wanted.map(|p| (p.partition.id, p.offset)).collect();
        first.partition.storage.will_read(&wanted);
    }

    /// Takes memory for what may be read, and gives the limit of all that is: less than was asked
    /// for if too much is on its way to others.
    fn take_share(&mut self) -> usize {
        let of_all = self.positions.iter().map(|position| position.max_bytes);
        let wanted = of_all.fold(0, usize::saturating_add).min(self.max_bytes);
        let granted = self.share.take(wanted);
        if granted < wanted { granted } else { self.max_bytes }
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
            let offset = position.offset;
            let mut parked = Parked { waiting: waiting.clone(), offset, room_bytes };
            let mut state = position.partition.state();
            // What came since it was read counts too.
            parked.add(state.visible_bytes - found.bounds.visible_bytes);
            if state.failed.is_some() || offset < state.log_start_offset {
                parked.wake();
            }
            state.parked.push(parked);
            drop(state);
            partitions.push(position.partition.clone());
        }
        self.share.keep(0);
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
    use crate::log::testing::{Fixture, PARTITION};
    use crate::record::testing::Draft;
    use crate::store::{PartitionId, State, StoreError};

    const OTHER: PartitionId = PartitionId { partition: 1, ..PARTITION };
    const HOUR: Duration = Duration::from_secs(3600);

    impl Fixture {
        fn at(&self, offset: i64) -> Position {
            Position::new(self.partition.clone(), offset, 1 << 20, -1)
        }
    }

    /// A fetch that is content with one byte and waits for long.
    fn fetch(positions: Vec<Position>) -> Fetch {
        Fetch {
            positions,
            max_bytes: 1 << 20,
            min_bytes: 1,
            max_wait: HOUR,
            is_one_of_each: false,
            share: Share::default(),
        }
    }

    fn bytes(fetch: &Fetch) -> Vec<Result<usize, ErrorCode>> {
        let bytes = |p: &Position| p.found.as_ref().map(|found| found.bytes).map_err(|code| *code);
        fetch.positions.iter().map(bytes).collect()
    }

    fn batch_bytes() -> usize {
        Draft::of(&["a"]).encode().len()
    }

    #[tokio::test]
    async fn what_was_appended_is_read_back_with_its_offset_and_epoch() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a", "b"])).await.unwrap();
        f.append(&Draft::of(&["c"])).await.unwrap();
        let mut fetch = fetch(vec![f.at(1)]);
        assert!(fetch.read().await);
        let found = fetch.positions.remove(0).found.unwrap();
        assert_eq!(found.bounds.high_watermark, 3);
        let mut expected = Draft::of(&["c"]).encode().to_vec();
        expected[7] = 2;
        expected[12..16].copy_from_slice(&[0; 4]);
        assert_eq!(found.records[1], expected);
    }

    #[tokio::test]
    async fn the_store_is_told_of_what_is_there_and_fits() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a", "b"])).await.unwrap();
        let told = async |offsets: &[i64], max_bytes| {
            let mut fetch = fetch(offsets.iter().map(|offset| f.at(*offset)).collect());
            fetch.max_bytes = max_bytes;
            fetch.read().await;
            std::mem::take(&mut *f.store.announced.lock().unwrap())
        };
        assert_eq!(told(&[0, 2, 1], 2 << 20).await, [(PARTITION, 0), (PARTITION, 1)]);
        // Each may have a mebibyte.
        assert_eq!(told(&[0, 1, 1], 3 << 19).await, [(PARTITION, 0), (PARTITION, 1)]);
        assert_eq!(told(&[0], 1 << 20).await, [], "one waits for no other");
    }

    #[tokio::test]
    async fn offsets_outside_of_the_log_are_refused_at_once() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a", "b"])).await.unwrap();
        for (offset, expected) in [(-5, false), (0, true), (2, true), (3, false)] {
            let mut fetch = fetch(vec![f.at(offset)]);
            fetch.min_bytes = 1 << 20;
            let is_answer = fetch.read().await;
            let refused = bytes(&fetch)[0] == Err(ErrorCode::OffsetOutOfRange);
            assert_eq!((refused, is_answer), (!expected, !expected), "offset {offset}");
        }
        // What is not yet stored is neither seen nor out of range.
        f.store.hold();
        drop(f.submit(&Draft::of(&["c"])).await);
        let mut fetch = fetch(vec![f.at(3)]);
        assert!(!fetch.read().await);
        assert_eq!(bytes(&fetch), [Ok(0)]);
    }

    #[tokio::test]
    async fn a_client_with_another_leader_epoch_is_told() {
        let f = Fixture::new().await;
        f.partition.state().leader_epoch = 5;
        for (epoch, expected) in [
            (-1, None),
            (5, None),
            (4, Some(ErrorCode::FencedLeaderEpoch)),
            (6, Some(ErrorCode::UnknownLeaderEpoch)),
        ] {
            let position = Position::new(f.partition.clone(), 0, 100, epoch);
            let mut fetch = fetch(vec![position]);
            assert_eq!(fetch.read().await, expected.is_some());
            assert_eq!(bytes(&fetch)[0].err(), expected, "epoch {epoch}");
        }
    }

    #[tokio::test]
    async fn the_first_batch_comes_whole_and_the_limits_hold_for_the_rest() {
        let f = Fixture::new().await;
        let other = f.log.partition(OTHER).await.unwrap();
        let empty = || Position::new(other.clone(), 0, 1 << 20, -1);
        for _ in 0..3 {
            f.append(&Draft::of(&["a"])).await.unwrap();
        }
        let one = batch_bytes();
        let read = async |max_bytes, positions| {
            let mut fetch = Fetch { max_bytes, ..fetch(positions) };
            fetch.read().await;
            bytes(&fetch).into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(read(1, vec![f.at(0), f.at(1)]).await, [one, 0]);
        assert_eq!(read(0, vec![f.at(0)]).await, [one]);
        // The rule is for the first batch, not for the first partition.
        assert_eq!(read(1, vec![empty(), f.at(1), f.at(0)]).await, [0, one, 0]);
        assert_eq!(read(2 * one, vec![f.at(0), f.at(0)]).await, [2 * one, 0]);
        assert_eq!(read(3 * one, vec![f.at(1), f.at(0)]).await, [2 * one, one]);
        let limited = Position { max_bytes: one + 1, ..f.at(0) };
        assert_eq!(read(1 << 20, vec![limited, f.at(0)]).await, [one, 3 * one]);
    }

    #[tokio::test]
    async fn nothing_is_asked_of_the_store_where_there_is_nothing_new() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a"])).await.unwrap();
        let mut fetch = fetch(vec![f.at(1)]);
        assert!(!fetch.read().await);
        assert_eq!(f.store.reads(), 0);
    }

    #[tokio::test]
    async fn an_error_is_answered_at_once_with_what_there_is() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a"])).await.unwrap();
        let mut fetch = fetch(vec![f.at(99), f.at(0)]);
        fetch.min_bytes = 1 << 20;
        assert!(fetch.read().await);
        assert_eq!(bytes(&fetch), [Err(ErrorCode::OffsetOutOfRange), Ok(batch_bytes())]);
    }

    #[tokio::test]
    async fn who_does_not_wait_or_ask_is_answered_at_once() {
        let f = Fixture::new().await;
        assert!(Fetch { max_wait: Duration::ZERO, ..fetch(vec![f.at(0)]) }.read().await);
        assert!(Fetch { min_bytes: 0, ..fetch(vec![f.at(0)]) }.read().await);
        assert!(Fetch { max_bytes: 0, ..fetch(vec![f.at(0)]) }.read().await);
        assert!(fetch(vec![]).read().await);
    }

    #[tokio::test]
    async fn a_limit_that_is_in_the_way_counts_as_used_up() {
        let f = Fixture::new().await;
        let one = batch_bytes();
        for _ in 0..3 {
            f.append(&Draft::of(&["a"])).await.unwrap();
        }
        let limits = |min_bytes, max_bytes| Fetch { min_bytes, max_bytes, ..fetch(vec![f.at(0)]) };
        // Kafka would cut the second batch.
        assert!(limits(1 << 20, one + 1).read().await);
        assert!(limits(one + 1, one + 1).read().await);
        // Not so if it is the partition's limit: others may bring the rest.
        let mut waits = limits(1 << 20, 1 << 20);
        waits.positions[0].max_bytes = one + 1;
        assert!(!waits.read().await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_fetch_wakes_when_there_is_enough_and_not_before() {
        let f = Arc::new(Fixture::new().await);
        let other = f.log.partition(OTHER).await.unwrap();
        let started = Instant::now();
        let positions = vec![f.at(0), Position::new(other.clone(), 0, 1 << 20, -1)];
        let mut fetch = Fetch { min_bytes: 3 * batch_bytes(), ..fetch(positions) };
        assert!(!fetch.read().await);
        let writer = tokio::spawn({
            let f = f.clone();
            async move {
                for i in 0..4 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let partition = if i % 2 == 0 { &other } else { &f.partition };
                    f.submit_to(partition, &Draft::of(&["a"])).await.await.unwrap();
                }
            }
        });
        fetch.wait(&f.log).await;
        assert_eq!(started.elapsed().as_secs(), 3);
        assert_eq!(bytes(&fetch), [Ok(batch_bytes()), Ok(2 * batch_bytes())]);
        assert_eq!(f.store.reads(), 2, "it was woken once");
        writer.await.unwrap();
        assert_eq!(f.partition.state().parked.len(), 0, "its place was given up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_fetch_ends_with_what_there_is_when_its_time_is_over() {
        let f = Fixture::new().await;
        f.append(&Draft::of(&["a"])).await.unwrap();
        let started = Instant::now();
        let mut fetch = Fetch { min_bytes: 1 << 20, ..fetch(vec![f.at(0)]) };
        assert!(!fetch.read().await);
        fetch.wait(&f.log).await;
        assert_eq!(started.elapsed(), HOUR);
        assert_eq!(bytes(&fetch), [Ok(batch_bytes())]);
    }

    #[tokio::test(start_paused = true)]
    async fn data_that_comes_between_the_look_and_the_wait_is_not_missed() {
        let f = Fixture::new().await;
        let started = Instant::now();
        let mut fetch = fetch(vec![f.at(0)]);
        assert!(!fetch.read().await);
        f.append(&Draft::of(&["a"])).await.unwrap();
        fetch.wait(&f.log).await;
        assert_eq!((started.elapsed(), bytes(&fetch)), (Duration::ZERO, vec![Ok(batch_bytes())]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_partitions_limit_bounds_what_it_counts_for() {
        let f = Fixture::new().await;
        let position = Position { max_bytes: batch_bytes(), ..f.at(0) };
        let mut fetch = Fetch { min_bytes: 2 * batch_bytes(), ..fetch(vec![position]) };
        assert!(!fetch.read().await);
        let started = Instant::now();
        let ((), ()) = tokio::join!(fetch.wait(&f.log), async {
            for _ in 0..5 {
                f.append(&Draft::of(&["a"])).await.unwrap();
            }
        });
        // As in Kafka: it could only ever bring one batch, so it waits in vain.
        assert_eq!((started.elapsed(), bytes(&fetch)), (HOUR, vec![Ok(batch_bytes())]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_fetch_is_told_at_once_when_the_partition_or_the_store_ends() {
        let started = Instant::now();
        let f = Fixture::new().await;
        let mut parked = fetch(vec![f.at(0)]);
        assert!(!parked.read().await);
        let ((), ()) = tokio::join!(parked.wait(&f.log), async {
            f.partition.fail(StoreError::UnknownPartition);
        });
        assert_eq!(bytes(&parked), [Err(ErrorCode::UnknownTopicOrPartition)]);

        let f = Fixture::new().await;
        let mut parked = fetch(vec![f.at(0)]);
        assert!(!parked.read().await);
        let ((), ()) = tokio::join!(parked.wait(&f.log), async {
            f.store.state.send_replace(State::Fenced(Default::default()));
        });
        assert_eq!(bytes(&parked), [Err(ErrorCode::NotLeaderOrFollower)]);
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_parked_fetch_is_told_at_once_when_the_log_starts_behind_it() {
        let started = Instant::now();
        for is_parked in [true, false] {
            let f = Fixture::new().await;
            for _ in 0..3 {
                f.append(&Draft::of(&["a"])).await.unwrap();
            }
            let other = Position::new(f.log.partition(OTHER).await.unwrap(), 0, 1 << 20, -1);
            let mut parked = Fetch { min_bytes: 1 << 20, ..fetch(vec![f.at(1), other]) };
            assert!(!parked.read().await);
            let delete = async || assert_eq!(f.partition.delete_before(2).await, Ok(2));
            if is_parked {
                let ((), ()) = tokio::join!(parked.wait(&f.log), delete());
            } else {
                delete().await;
                parked.wait(&f.log).await;
            }
            assert_eq!(bytes(&parked), [Err(ErrorCode::OffsetOutOfRange), Ok(0)]);
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_whose_client_went_away_leaves_no_place_behind() {
        let f = Fixture::new().await;
        let mut parked = fetch(vec![f.at(0)]);
        assert!(!parked.read().await);
        let waited = tokio::time::timeout(Duration::from_secs(1), parked.wait(&f.log)).await;
        assert!(waited.is_err());
        assert_eq!(f.partition.state().parked.len(), 0);
    }
}
