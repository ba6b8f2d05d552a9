//! Reading ahead: who reads old records wants those behind them next.
//!
//! A read that comes to a stretch of a segment asks for those behind it, if they are not in memory,
//! and a fetch from many partitions for the next ones of each. One task reads them, a few at a time,
//! and what is wanted soon before what is further off: who reads many partitions comes to the next
//! records of each before those behind them. What it brings may take a part of the cache only until
//! somebody wants it: so if very many read at once, it stops to read ahead rather than push out what
//! it brought before anybody had it. The further off a stretch is, the more of that part must be
//! free, so that who reads many partitions finds room beside who reads a few.

use super::along::Along;
use super::block::Block;
use super::cache::Place;
use super::journal::{Inner, Journal};
use super::log::Found;
use super::reading::{STRETCH_BYTES, Stretch, index_of};
use crate::store::PartitionId;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How far is read ahead of one reader, up to the beginning of the last stretch.
const AHEAD_BYTES: u64 = 8 << 20;

/// What is further ahead than this is only read along with what is nearer.
pub(super) const SOON_BYTES: u64 = 4 << 20;

/// How many stretches are looked at for it: they may be short.
const MAX_STRETCHES: usize = 16;

/// How many are read at the same time.
const READS: usize = 8;

/// How many may wait to be read. The furthest are not read ahead.
const MAX_WAITING: usize = 1024;

/// Who does not come for what was read ahead in this time does not come, nor for what could not be.
const UNREAD_FOR: Duration = Duration::from_secs(10);

/// How many positions of a fetch are looked up under one lock.
const POSITIONS_AT_ONCE: usize = 256;

/// What is being read from segments, and what is to be read ahead.
#[derive(Default)]
pub(super) struct Reads {
    /// Stretches that somebody reads, whom others wait for.
    pub loading: HashMap<Place, Arc<OnceCell<Option<Block>>>>,
    pub along: Along,
    wanted: BTreeMap<Wanted, Asked>,
    /// The same by their places, each once.
    places: BTreeMap<Place, Wanted>,
    /// Room that is taken for what is just read ahead.
    pub bytes: u64,
}

/// What a reader will want.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    id: PartitionId,
    /// In the stretch that holds it.
    offset: i64,
    /// How many bytes of the partition its reader has before it.
    ahead_bytes: u64,
}

/// A stretch that is to be read ahead. The nearest comes first, and of what is about as near what lies
/// in one object comes together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    stretches_ahead: u64,
    /// Unknown as long as its index is.
    place: Option<Place>,
    next: Next,
}

struct Asked {
    /// When it was last asked for.
    at: Instant,
    stretch: Option<Stretch>,
}

impl Asked {
    fn is_late(&self) -> bool {
        self.at.elapsed() >= UNREAD_FOR
    }
}

impl Next {
    fn behind(self, stretch: &Stretch) -> Self {
        let ahead_bytes = self.ahead_bytes + stretch.bytes_from(self.offset);
        Self { ahead_bytes, offset: stretch.end_offset(), ..self }
    }
}

impl Wanted {
    fn new(next: Next, stretch: Option<&Stretch>) -> Self {
        let stretches_ahead = next.ahead_bytes.div_ceil(STRETCH_BYTES);
        Self { stretches_ahead, place: stretch.map(Stretch::place), next }
    }

    pub(super) fn ahead_bytes(self) -> u64 {
        self.next.ahead_bytes
    }

    fn is_soon(self) -> bool {
        self.ahead_bytes() <= SOON_BYTES
    }
}

impl Reads {
    /// Notes what is wanted, once for all who want it: as the first of them will.
    fn want(&mut self, next: Next, asked: Asked) {
        let mut wanted = Wanted::new(next, asked.stretch.as_ref());
        if let Some(place) = wanted.place {
            if let Some(other) = self.places.get(&place) {
                wanted = wanted.min(*other);
                self.wanted.remove(other);
            }
            self.places.insert(place, wanted);
        }
        self.wanted.insert(wanted, asked);
    }

    pub(super) fn forget(&mut self, wanted: Wanted) {
        self.wanted.remove(&wanted);
        if let Some(place) = wanted.place {
            self.places.remove(&place);
        }
    }

    /// Forgets what is wanted at a place: its reader came to it.
    pub(super) fn forget_at(&mut self, place: Place) {
        if let Some(wanted) = self.places.remove(&place) {
            self.wanted.remove(&wanted);
        }
    }

    /// What is wanted between two places, in the order of these.
    pub(super) fn wanted_in(&self, places: Range<Place>) -> Vec<(Wanted, Stretch)> {
        let wanted = self.places.range(places).filter_map(|(_, wanted)| {
            let asked = self.wanted.get(wanted).filter(|asked| !asked.is_late())?;
            Some((*wanted, asked.stretch.clone()?))
        });
        wanted.collect()
    }
}

impl Journal {
    /// Begins with what is read next, one partition after the other.
    pub(super) fn will_read(&self, positions: &[(PartitionId, i64)]) {
        // There may be very many, and others want the lock too.
        for positions in positions.chunks(POSITIONS_AT_ONCE) {
            let mut inner = self.lock();
            for (id, offset) in positions {
                inner.want(Next { id: *id, offset: *offset, ahead_bytes: 0 });
            }
            if inner.is_to_read() {
                self.ahead.notify_one();
            }
        }
    }

    /// Reads what readers will want.
    pub(super) async fn read_ahead(self: Arc<Self>) {
        let mut reads = JoinSet::new();
        loop {
            while reads.len() < READS
                && let Some(next) = self.next_ahead()
            {
                let journal = self.clone();
                reads.spawn(async move {
                    journal.bring(next).await;
                    journal.lock().reads.bytes -= STRETCH_BYTES;
                });
            }
            tokio::select! {
                biased;
                Some(_) = reads.join_next() => {}
                () = self.ahead.notified(), if reads.len() < READS => {}
            }
        }
    }

    /// What is to be read, and takes the room for it. Who goes on to read makes room, and says so.
    fn next_ahead(&self) -> Option<Next> {
        let mut inner = self.lock();
        inner.log.blocks.forget_unread(UNREAD_FOR);
        loop {
            let (&wanted, asked) = inner.reads.wanted.first_key_value()?;
            let is_late = asked.is_late();
            let may_come = wanted.is_soon() && inner.has_room(STRETCH_BYTES, wanted.ahead_bytes());
            if !is_late && !may_come {
                return None;
            }
            inner.reads.forget(wanted);
            if !is_late {
                inner.reads.bytes += STRETCH_BYTES;
                return Some(wanted.next);
            }
        }
    }

    /// Brings a stretch of a segment into memory. Whoever wants it is told of errors.
    async fn bring(&self, next: Next) {
        let Next { id, offset, ahead_bytes } = next;
        let found = self.lock().log.locate(id, offset);
        let Ok(Found::Segment(entry)) = found else { return };
        let Ok(Some(index)) = self.index(id, entry).await else { return };
        let Some(stretch) = Stretch::of(index, entry.name, offset) else { return };
        let more = stretch.length().saturating_sub(STRETCH_BYTES);
        {
            let mut inner = self.lock();
            // If its index was not known before, neither was what comes behind it.
            inner.want(next.behind(&stretch));
            // What is a little longer than most does not wait for a second turn.
            let is_room = more <= STRETCH_BYTES || inner.has_room(more, ahead_bytes);
            if inner.is_known(&stretch) || !is_room {
                return;
            }
            inner.reads.bytes += more;
        }
        let _ = self.stretch(&stretch, false).await;
        self.lock().reads.bytes -= more;
    }
}

impl Inner {
    /// Asks for what the reader of a stretch will want behind it.
    pub(super) fn want_behind(&mut self, id: PartitionId, stretch: &Stretch) {
        let offset = stretch.base_offset();
        self.want(Next { id, offset, ahead_bytes: 0 }.behind(stretch));
    }

    /// Whether anything is to be read ahead, and not only along.
    pub(super) fn is_to_read(&self) -> bool {
        self.reads.wanted.first_key_value().is_some_and(|(wanted, _)| wanted.is_soon())
    }

    /// Asks for a stretch and those behind it that are not in memory.
    fn want(&mut self, mut next: Next) {
        let at = Instant::now();
        for _ in 0..MAX_STRETCHES {
            if next.ahead_bytes > AHEAD_BYTES {
                break;
            }
            let Ok(Found::Segment(entry)) = self.log.locate(next.id, next.offset) else { break };
            let index = self.log.indexes.find(index_of(&entry));
            let is_unknown = index.is_none();
            let stretch = index.and_then(|index| Stretch::of(index, entry.name, next.offset));
            let is_missing = match &stretch {
                Some(stretch) => !self.is_known(stretch),
                None => is_unknown && self.log.indexes.takes_unread(entry.index_length as usize),
            };
            if is_missing {
                self.reads.want(next, Asked { at, stretch: stretch.clone() });
            }
            let Some(stretch) = stretch else { break };
            next = next.behind(&stretch);
        }
        while self.reads.wanted.len() > MAX_WAITING
            && let Some((&furthest, _)) = self.reads.wanted.last_key_value()
        {
            self.reads.forget(furthest);
        }
    }

    /// Whether somebody has it, or reads it.
    pub(super) fn is_known(&self, stretch: &Stretch) -> bool {
        let (place, reads) = (stretch.place(), &self.reads);
        let is_read = reads.loading.contains_key(&place) || reads.along.contains_key(&place);
        is_read || self.log.blocks.has(place)
    }

    /// Whether so much more may be read, so far ahead.
    pub(super) fn has_room(&self, bytes: u64, ahead_bytes: u64) -> bool {
        let limit = self.log.blocks.unread_limit() as u64;
        let left_free = limit * ahead_bytes / (AHEAD_BYTES + STRETCH_BYTES);
        let bytes = usize::try_from(self.reads.bytes + bytes + left_free).unwrap_or(usize::MAX);
        self.log.blocks.takes_unread(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::putting::WHOLE;
    use super::super::{ObjectLog, Options};
    use crate::protocol::wire::Uuid;
    use crate::record::testing::Draft;
    use crate::store::objects::memory::Memory;
    use crate::store::objects::{ObjectError, Objects, Put};
    use crate::store::topics::Topic;
    use crate::store::{Owner, PartitionId, State, Storage};
    use bytes::Bytes;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::time::sleep;

    const ID: PartitionId = PartitionId { topic: Uuid([7; 16]), partition: 0 };

    /// Batches, one in each stretch.
    const BATCHES: i64 = 12;
    const BATCH_BYTES: usize = (2 << 20) - 1000;

    /// A store that takes a second for each read of a part of an object, and counts them.
    #[derive(Default)]
    struct Slow {
        memory: Memory,
        reads: AtomicUsize,
        /// Fails to read more than one stretch at once.
        is_damaged: AtomicBool,
    }

    impl Slow {
        fn reads(&self) -> usize {
            self.reads.swap(0, Ordering::Relaxed)
        }
    }

    #[async_trait::async_trait]
    impl Objects for Slow {
        async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
            self.memory.put_new(key, parts).await
        }

        async fn get(&self, key: &str, at: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
            // More than a header, and not a whole object.
            if (41..WHOLE).contains(&len) {
                self.reads.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                if len > BATCH_BYTES as u64 + 200 && self.is_damaged.load(Ordering::Relaxed) {
                    return Err(ObjectError("a part of it cannot be read".into()));
                }
            }
            self.memory.get(key, at, len).await
        }

        async fn list(&self, p: &str, after: &str, n: usize) -> Result<Vec<String>, ObjectError> {
            self.memory.list(p, after, n).await
        }

        async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
            self.memory.delete(keys).await
        }
    }

    /// A log whose batches all are in segments, and none in memory.
    async fn old(cache_bytes: usize, refer_bytes: u64) -> (Arc<Slow>, Arc<ObjectLog>) {
        old_of(1, cache_bytes, refer_bytes).await
    }

    /// The same with so many partitions.
    async fn old_of(
        partitions: i32,
        cache_bytes: usize,
        refer_bytes: u64,
    ) -> (Arc<Slow>, Arc<ObjectLog>) {
        let objects = Arc::new(Slow::default());
        let options = Options {
            registration: false,
            refer_bytes,
            cache_bytes,
            round_bytes: u64::MAX,
            lag_bound: Duration::MAX,
            ..Options::new(1, Owner::default())
        };
        let open = async || {
            let log = ObjectLog::start(objects.clone(), options.clone());
            log.state().wait_for(|state| *state == State::Serving).await.unwrap();
            log
        };
        let log = open().await;
        let topic = Topic { id: ID.topic, name: "old".into(), partitions, ..Topic::default() };
        log.create_topic(topic).await.unwrap();
        let value = "v".repeat(BATCH_BYTES);
        for base_offset in 0..BATCHES {
            for id in ids(partitions) {
                let mut batch = Draft::of(&[value.as_str()]).batch();
                batch.stamp(base_offset, 1);
                log.append(id, base_offset, vec![batch]).await.unwrap();
            }
        }
        sleep(Duration::from_secs(300)).await;
        assert!(!objects.list("segment/", "", 9).await.unwrap().is_empty());
        let journal = objects.list("journal/", "", 99).await.unwrap().len();
        assert_eq!(journal as i64, if refer_bytes == u64::MAX { 1 } else { 1 + BATCHES });
        drop(log);
        (objects.clone(), open().await)
    }

    fn ids(partitions: i32) -> impl Iterator<Item = PartitionId> {
        (0..partitions).map(|partition| PartitionId { partition, ..ID })
    }

    async fn read(log: &ObjectLog, offset: i64) {
        read_of(log, ID, offset).await;
    }

    async fn read_of(log: &ObjectLog, id: PartitionId, offset: i64) {
        let records = log.read(id, offset, BATCH_BYTES, true).await.unwrap();
        assert!(records.iter().map(Bytes::len).sum::<usize>() > BATCH_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_on_finds_the_next_records_in_memory() {
        // The index, that stretch, and the two that begin in the next 4 MiB; in one object two at a time.
        for (refer_bytes, at_once, later) in [(1, 4, 9), (u64::MAX, 3, 4)] {
            let (objects, log) = old(256 << 20, refer_bytes).await;
            objects.reads();
            read(&log, 0).await;
            sleep(Duration::from_secs(10)).await;
            assert_eq!(objects.reads(), at_once);
            for offset in 1..BATCHES {
                let begin = tokio::time::Instant::now();
                read(&log, offset).await;
                assert_eq!(begin.elapsed(), Duration::ZERO, "{offset}");
                sleep(Duration::from_secs(10)).await;
            }
            assert_eq!(objects.reads(), later, "each once");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_be_read_in_turn_is_read_at_the_same_time() {
        let (objects, log) = old(256 << 20, u64::MAX).await;
        objects.reads();
        let begin = tokio::time::Instant::now();
        // The second is behind what is read ahead for the first.
        let offsets = [0, BATCHES - 1];
        log.will_read(&offsets.map(|offset| (ID, offset)));
        for offset in offsets {
            read(&log, offset).await;
        }
        assert_eq!(begin.elapsed(), Duration::from_secs(2), "the index, and both");
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_many_partitions_finds_the_next_records_of_each_in_memory() {
        // A quarter of the cache has room for 7 of the 16 that begin in the next 8 MiB of all.
        let (objects, log) = old_of(4, 64 << 20, u64::MAX).await;
        objects.reads();
        for offset in 0..BATCHES {
            let begin = tokio::time::Instant::now();
            log.will_read(&ids(4).map(|id| (id, offset)).collect::<Vec<_>>());
            for id in ids(4) {
                read_of(&log, id, offset).await;
            }
            let waited = begin.elapsed();
            assert!(offset == 0 || waited == Duration::ZERO, "{offset}: {waited:?}");
            sleep(Duration::from_secs(5)).await;
        }
        let stretches = 4 * BATCHES as usize;
        assert!(objects.reads() < stretches + 8, "each once, and the indexes");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_more_is_read_for_a_reader_that_left() {
        let (objects, log) = old_of(4, 64 << 20, u64::MAX).await;
        objects.reads();
        log.will_read(&ids(3).map(|id| (id, 0)).collect::<Vec<_>>());
        sleep(Duration::from_secs(30)).await;
        let room = 7;
        assert!(objects.reads() <= room + 3 + 2, "and indexes");
        let other = PartitionId { partition: 3, ..ID };
        for offset in 0..BATCHES {
            read_of(&log, other, offset).await;
            sleep(Duration::from_secs(5)).await;
        }
        assert!(objects.reads() <= BATCHES as usize + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_two_want_at_the_same_time_is_read_once() {
        let (objects, log) = old(256 << 20, u64::MAX).await;
        objects.reads();
        read(&log, 11).await;
        assert_eq!(objects.reads(), 2);
        tokio::join!(read(&log, 9), read(&log, 9), read(&log, 10));
        sleep(Duration::from_secs(10)).await;
        assert_eq!(objects.reads(), 1, "two that lie side by side");
        // Also if the one who began it does not wait for it.
        let gone = tokio::time::timeout(Duration::from_millis(500), read(&log, 3));
        let (gone, ()) = tokio::join!(gone, read(&log, 3));
        assert!(gone.is_err());
    }

    /// The last stretch of a partition, and the first of another that lies behind it in the same object.
    async fn neighbours() -> (Arc<Slow>, Arc<ObjectLog>, [(PartitionId, i64); 2]) {
        let (objects, log) = old_of(2, 256 << 20, u64::MAX).await;
        for id in ids(2) {
            // Reads the index only.
            log.seek_time(id, 0).await.unwrap();
        }
        objects.reads();
        let other = PartitionId { partition: 1, ..ID };
        (objects, log, [(ID, BATCHES - 1), (other, 0)])
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_want_of_the_same_object_is_read_along() {
        let (objects, log, places) = neighbours().await;
        log.will_read(&places);
        for (id, offset) in places {
            read_of(&log, id, offset).await;
        }
        assert_eq!(objects.reads(), 2, "both, and two of what is behind the other");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_intact_is_read_though_what_is_near_it_is_not() {
        let (objects, log, places) = neighbours().await;
        objects.is_damaged.store(true, Ordering::Relaxed);
        log.will_read(&places);
        for (id, offset) in places {
            read_of(&log, id, offset).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_what_is_read_along_reads_it_if_that_is_given_up() {
        let (_, log, places) = neighbours().await;
        log.will_read(&places);
        let begin = tokio::time::Instant::now();
        let [(one, last), (other, first)] = places;
        let gone = tokio::time::timeout(Duration::from_millis(500), read_of(&log, one, last));
        let (gone, ()) = tokio::join!(gone, read_of(&log, other, first));
        assert!(gone.is_err());
        assert_eq!(begin.elapsed(), Duration::from_millis(1500));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_ahead_that_would_be_gone_before_it_is_wanted() {
        // A quarter of the cache has room for one.
        let (objects, log) = old(5 * BATCH_BYTES, u64::MAX).await;
        objects.reads();
        read(&log, 0).await;
        sleep(Duration::from_secs(10)).await;
        assert!((2..=3).contains(&objects.reads()));
        let (objects, log) = old(0, u64::MAX).await;
        objects.reads();
        for offset in 0..BATCHES {
            read(&log, offset).await;
            sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(objects.reads(), 2 * BATCHES as usize, "the index each time");
    }
}
