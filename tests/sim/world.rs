//! What all parts of one run share: chance, the counts of what was met, and the first failure.

use kelp::store::PartitionId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Clone)]
pub struct World(Arc<Mutex<Inner>>);

struct Inner {
    chance: u64,
    counts: BTreeMap<&'static str, u64>,
    failure: Option<String>,
    calm: bool,
}

/// How often each kind of event was met.
pub type Counts = BTreeMap<&'static str, u64>;

impl World {
    pub fn new(seed: u64) -> Self {
        let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
        let counts = BTreeMap::new();
        Self(Arc::new(Mutex::new(Inner { chance, counts, failure: None, calm: false })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number below `end`: splitmix64.
    pub fn below(&self, end: u64) -> u64 {
        let mut inner = self.lock();
        inner.chance = inner.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = inner.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len() as u64) as usize].clone())
    }

    pub async fn sleep_below(&self, ms: u64) {
        let ms = self.below(ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    pub fn count(&self, kind: &'static str) {
        *self.lock().counts.entry(kind).or_default() += 1;
    }

    pub fn counts(&self) -> Counts {
        self.lock().counts.clone()
    }

    pub fn fail(&self, text: String) {
        self.lock().failure.get_or_insert(text);
    }

    pub fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// From now on the store does what it is asked, soon.
    pub fn calm_down(&self) {
        self.lock().calm = true;
    }

    pub fn is_calm(&self) -> bool {
        self.lock().calm
    }
}

/// One batch as its producer sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    pub producer_id: i64,
    pub base_sequence: i32,
    pub records: i32,
}

impl Sent {
    pub fn all(self) -> impl Iterator<Item = Record> {
        let sequences = self.base_sequence..self.base_sequence + self.records;
        sequences.map(move |sequence| Record { producer_id: self.producer_id, sequence })
    }
}

/// One record as its producer sends it. All that is in it follows from these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub producer_id: i64,
    pub sequence: i32,
}

impl Record {
    fn number(self) -> u64 {
        let both = self.producer_id as u64 * 1000 + self.sequence as u64;
        both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    /// There are few, so that most come again.
    pub fn key(self) -> u8 {
        (self.number() % 4) as u8
    }

    /// Without one it is a tombstone.
    pub fn has_value(self) -> bool {
        !(self.number() / 4).is_multiple_of(3)
    }

    pub fn timestamp(self) -> i64 {
        1 + (self.number() / 12 % 50) as i64
    }
}

/// Whether this partition is one that is compacted.
pub fn is_compacted(id: PartitionId) -> bool {
    id.partition == 1
}

/// All that anybody was ever told.
#[derive(Clone, Default)]
pub struct Truth {
    /// By partition and offset: what was acked or read there.
    pub told: BTreeMap<(PartitionId, i64), Record>,
    /// By partition and batch: the offset in its acknowledgement.
    pub acked: BTreeMap<(PartitionId, Sent), i64>,
    pub start_requested: BTreeMap<PartitionId, i64>,
    pub start_acked: BTreeMap<PartitionId, i64>,
}

impl Truth {
    pub fn acked(&mut self, id: PartitionId, sent: Sent, offset: i64) -> Result<(), String> {
        let before = *self.acked.entry((id, sent)).or_insert(offset);
        if before != offset {
            return Err(format!("{sent:?} was acked at {before} and at {offset}"));
        }
        (offset..).zip(sent.all()).try_for_each(|(offset, record)| self.told(id, record, offset))
    }

    pub fn told(&mut self, id: PartitionId, record: Record, offset: i64) -> Result<(), String> {
        let before = *self.told.entry((id, offset)).or_insert(record);
        if before != record {
            return Err(format!("at {offset} are {before:?} and {record:?}"));
        }
        Ok(())
    }

    /// What is known of a range of offsets.
    pub fn known(
        &self,
        id: PartitionId,
        offsets: std::ops::Range<i64>,
    ) -> impl Iterator<Item = (i64, Record)> {
        let known = self.told.range((id, offsets.start)..(id, offsets.end.max(offsets.start)));
        known.map(|((_, offset), record)| (*offset, *record))
    }

    /// Whether a record may be gone: it is a tombstone, or one of its key came later.
    pub fn may_be_gone(&self, id: PartitionId, offset: i64, record: Record) -> bool {
        let comes_again = || {
            let mut later = self.known(id, offset + 1..i64::MAX);
            later.any(|(_, later)| later.key() == record.key())
        };
        is_compacted(id) && (!record.has_value() || comes_again())
    }
}
