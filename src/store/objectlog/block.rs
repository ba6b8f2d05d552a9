//! Batches in memory, and how a reader takes them.

use super::format::{Malformed, SMALL_BYTES, Stored};
use crate::record::batch::{Header, detached};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Batches that follow each other.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// As they were committed: each has slices of its own.
    Committed(Committed),
    /// As they were read: one lies behind the other.
    Run(Arc<Run>),
}

/// Some of the batches of a commit, which share its memory.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    all: Arc<[Stored]>,
    part: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Run {
    bytes: Bytes,
    /// Of the buffer that the bytes are a part of.
    buffer_bytes: usize,
    /// Of each batch, its last offset and where it ends in the bytes.
    ends: Vec<(i64, usize)>,
}

impl From<Arc<[Stored]>> for Block {
    fn from(all: Arc<[Stored]>) -> Self {
        let part = 0..all.len();
        Self::Committed(Committed { all, part })
    }
}

impl From<Vec<Stored>> for Block {
    fn from(stored: Vec<Stored>) -> Self {
        Arc::<[Stored]>::from(stored).into()
    }
}

impl Block {
    /// What it takes in memory: its bytes, and about so much for each batch and for itself. The bytes
    /// may be slices of a buffer at most eight times as long, which others share: see [`detached`].
    pub(super) fn cost(&self) -> usize {
        const OWN: usize = 128;
        match self {
            Self::Committed(Committed { all, .. }) => {
                all.iter().map(|stored| stored.len() + size_of::<Stored>()).sum::<usize>() + OWN
            }
            Self::Run(run) => run.bytes.len() + run.ends.len() * size_of::<(i64, usize)>() + OWN,
        }
    }

    /// The batches of a commit.
    pub(super) fn committed(&self) -> &[Stored] {
        match self {
            Self::Committed(Committed { all, part }) => &all[part.clone()],
            Self::Run(_) => unreachable!("the place of a commit holds what was committed"),
        }
    }

    /// Some of the batches of a commit.
    pub(super) fn part(self, part: Range<usize>) -> Self {
        match self {
            Self::Committed(Committed { all, .. }) => Self::Committed(Committed { all, part }),
            Self::Run(_) => unreachable!("the place of a commit holds what was committed"),
        }
    }
}

impl Run {
    /// Takes batches apart whose offsets rise from `base_offset` on and stay below `end_offset`. They were
    /// read with others into a buffer of so many bytes.
    pub(super) fn new(
        batches: Bytes,
        buffer_bytes: usize,
        base_offset: i64,
        end_offset: i64,
    ) -> Result<Self, Malformed> {
        let bytes = detached(batches.clone(), buffer_bytes);
        let is_slice = bytes.as_ptr() == batches.as_ptr();
        let buffer_bytes = if is_slice { buffer_bytes } else { bytes.len() };
        let (mut ends, mut next, mut at) = (Vec::new(), base_offset, 0);
        while at < bytes.len() {
            let header =
                Header::read(&bytes[at..]).ok_or(Malformed("a batch that is cut short"))?;
            let length = header.whole_bytes().ok_or(Malformed("a batch without a header"))?;
            let last = header.last_offset();
            if header.base_offset < next || last < header.base_offset || last >= end_offset {
                return Err(Malformed("a batch at another offset"));
            }
            (next, at) = (last + 1, at + length);
            ends.push((last, at));
        }
        match at == bytes.len() {
            true => Ok(Self { bytes, buffer_bytes, ends }),
            false => Err(Malformed("a batch that is cut short")),
        }
    }
}

/// What a read has: batches, as slices, up to a number of bytes.
pub(super) struct Taken {
    /// The offset of what it wants next.
    pub next: i64,
    slices: Vec<Bytes>,
    /// Small batches behind the slices.
    gathered: Vec<u8>,
    left: usize,
    at_least_one: bool,
}

/// So many bytes of small batches become one slice.
const GATHERED_BYTES: usize = 64 << 10;

impl Taken {
    pub(super) fn new(next: i64, max_bytes: usize, at_least_one: bool) -> Self {
        let (slices, gathered) = (Vec::new(), Vec::new());
        Self { next, slices, gathered, left: max_bytes, at_least_one }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty() && self.gathered.is_empty()
    }

    pub(super) fn into_slices(mut self) -> Vec<Bytes> {
        self.end_gathered();
        self.slices
    }

    fn end_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.slices.push(std::mem::take(&mut self.gathered).into());
        }
    }

    fn push(&mut self, slice: Bytes) {
        self.end_gathered();
        self.slices.push(slice);
    }

    /// Whether so many bytes are more than may still be taken.
    pub(super) fn is_too_much(&self, bytes: u64) -> bool {
        bytes > self.left as u64 && !(self.is_empty() && self.at_least_one)
    }

    /// Takes the batches of a block that are wanted; its offsets end at `end`. False when no more may
    /// be taken.
    pub(super) fn take(&mut self, block: &Block, end: i64) -> bool {
        let is_all = match block {
            Block::Committed(_) => self.take_committed(block.committed()),
            Block::Run(run) => self.take_run(run),
        };
        if is_all {
            self.next = end;
        }
        is_all && (self.left > 0 || self.is_empty())
    }

    fn take_committed(&mut self, batches: &[Stored]) -> bool {
        let first = batches.partition_point(|stored| stored.last_offset < self.next);
        for stored in &batches[first..] {
            if self.is_too_much(stored.len() as u64) {
                return false;
            }
            self.left = self.left.saturating_sub(stored.len());
            if stored.len() < SMALL_BYTES {
                self.gather(stored);
                continue;
            }
            self.push(stored.head.clone());
            if !stored.tail.is_empty() {
                self.push(stored.tail.clone());
            }
        }
        true
    }

    /// Takes a copy of a small batch: a slice would keep all batches of its commit in memory.
    fn gather(&mut self, stored: &Stored) {
        if self.gathered.len() + stored.len() > GATHERED_BYTES {
            self.end_gathered();
            self.gathered.reserve_exact(self.left.clamp(stored.len(), GATHERED_BYTES));
        } else if self.gathered.is_empty() {
            self.gathered.reserve_exact(stored.len());
        }
        self.gathered.extend_from_slice(&stored.head);
        self.gathered.extend_from_slice(&stored.tail);
    }

    fn take_run(&mut self, run: &Run) -> bool {
        let first = run.ends.partition_point(|(last, _)| *last < self.next);
        let Some((_, first_end)) = run.ends.get(first) else { return true };
        let begin = first.checked_sub(1).map_or(0, |before| run.ends[before].1);
        if self.is_too_much((first_end - begin) as u64) {
            return false;
        }
        let fits = run.ends.partition_point(|(_, end)| *end - begin.min(*end) <= self.left);
        let behind = fits.max(first + 1);
        let end = run.ends[behind - 1].1;
        self.left = self.left.saturating_sub(end - begin);
        self.push(detached(run.bytes.slice(begin..end), run.buffer_bytes));
        behind == run.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::format;
    use crate::store::objectlog::keys::Position;
    use crate::store::objectlog::samples::{batches, frame, large_batch};

    /// Batches of ten records at offsets 0 to 29, and then, as after compaction, 50 to 59.
    fn run() -> (Bytes, Block, usize) {
        let all = [batches(0, &[10, 10, 10]), batches(50, &[10])].concat();
        let bytes: Vec<u8> = all.iter().flat_map(|batch| batch.to_bytes()).collect();
        let bytes = Bytes::from(bytes);
        let block = Block::Run(Arc::new(Run::new(bytes.clone(), bytes.len(), 0, 70).unwrap()));
        (bytes, block, all[0].len())
    }

    #[test]
    fn batches_of_a_run_come_as_one_slice_from_the_first_that_is_wanted() {
        let (bytes, block, one) = run();
        let take = |next, max_bytes, at_least_one| {
            let mut taken = Taken::new(next, max_bytes, at_least_one);
            let goes_on = taken.take(&block, 70);
            let next = taken.next;
            (taken.into_slices(), next, goes_on)
        };
        let all = bytes.len();
        assert_eq!(take(0, all + 1, false), (vec![bytes.clone()], 70, true));
        assert_eq!(take(0, all, false), (vec![bytes.clone()], 70, false));
        assert_eq!(take(9, all - 1, false), (vec![bytes.slice(..3 * one)], 9, false));
        assert_eq!(take(10, all, false), (vec![bytes.slice(one..)], 70, true));
        assert_eq!(take(30, all, false), (vec![bytes.slice(3 * one..)], 70, true));
        assert_eq!(take(60, all, false), (vec![], 70, true));
        assert_eq!(take(15, 1, true), (vec![bytes.slice(one..2 * one)], 15, false));
        assert_eq!(take(15, 1, false), (vec![], 15, false));
        assert_eq!(take(59, 1, true), (vec![bytes.slice(3 * one..)], 70, false));
    }

    #[test]
    fn a_small_part_of_a_run_does_not_keep_the_rest() {
        let all: Vec<u8> = batches(0, &[10; 9]).iter().flat_map(|batch| batch.to_bytes()).collect();
        let bytes = Bytes::from(all);
        let one = bytes.len() / 9;
        // The run may itself be a part of what was read.
        for part in [9 * one, 2 * one, one] {
            let run = Run::new(bytes.slice(..part), bytes.len(), 0, 90).unwrap();
            assert_eq!(part == one, bytes.is_unique());
            let block = Block::Run(Arc::new(run));
            let mut taken = Taken::new(0, bytes.len() / 8, true);
            taken.take(&block, 90);
            assert_eq!(taken.into_slices(), [bytes.slice(..one)]);
            drop(block);
            assert!(bytes.is_unique());
        }
    }

    /// A commit of small batches at offsets 0 to 29, a large one at 30, and small ones at 31 to 50.
    fn commit() -> (Arc<[Stored]>, Block) {
        let batches = [batches(0, &[10; 3]), vec![large_batch(30)], batches(31, &[10; 2])].concat();
        let object = format::encode_journal(Position::default(), 1, vec![frame(1, batches)]);
        let stored = object.commit.stored;
        (stored.clone(), stored.into())
    }

    #[test]
    fn small_batches_of_a_commit_come_as_one_slice_that_keeps_nothing_else() {
        let (stored, block) = commit();
        let whole = |range: Range<usize>| -> Vec<u8> {
            let parts = stored[range].iter().flat_map(|stored| [&stored.head, &stored.tail]);
            parts.flat_map(|part| part.to_vec()).collect()
        };
        let take = |block: &Block, next, max_bytes| {
            let mut taken = Taken::new(next, max_bytes, true);
            let goes_on = taken.take(block, 51);
            let next = taken.next;
            (taken.into_slices(), next, goes_on)
        };
        let (slices, next, goes_on) = take(&block, 10, usize::MAX);
        assert_eq!(
            slices,
            [whole(1..3), stored[3].head.to_vec(), stored[3].tail.to_vec(), whole(4..6)]
        );
        assert_eq!((next, goes_on), (51, true));
        assert_eq!(slices[2].as_ptr(), stored[3].tail.as_ptr(), "what is large is not copied");
        assert!(slices[0].is_unique() && slices[3].is_unique());

        let one = stored[0].len();
        assert_eq!(take(&block, 9, 2 * one).0, [whole(0..2)]);
        assert_eq!(take(&block, 9, 2 * one - 1).0, [whole(0..1)]);
        assert_eq!(take(&block, 9, 1).0, [whole(0..1)], "there is at least one");
        assert_eq!(take(&block, 20, one + 1).0, [whole(2..3)]);
        let part = block.part(4..6);
        assert_eq!(take(&part, 41, usize::MAX).0, [whole(5..6)]);
        assert_eq!(take(&part, 0, usize::MAX).0, [whole(4..6)]);
    }

    #[test]
    fn many_small_batches_come_in_slices_of_their_limit() {
        let count = 3 * GATHERED_BYTES / batches(0, &[1])[0].len();
        let frame = frame(1, batches(0, &vec![1; count]));
        let stored = format::encode_journal(Position::default(), 1, vec![frame]).commit.stored;
        let mut taken = Taken::new(0, usize::MAX, false);
        assert!(taken.take(&stored.clone().into(), count as i64));
        let slices = taken.into_slices();
        assert!(slices.iter().all(|slice| slice.len() <= GATHERED_BYTES));
        let in_one = GATHERED_BYTES / stored[0].len();
        assert_eq!(slices.len(), count.div_ceil(in_one));
        let whole: Vec<u8> = stored.iter().flat_map(|stored| stored.head.to_vec()).collect();
        assert_eq!(slices.concat(), whole);
    }

    #[test]
    fn what_is_cut_or_out_of_order_is_no_run() {
        let (bytes, _, one) = run();
        for cut in (1..bytes.len()).filter(|cut| cut % one != 0) {
            assert!(Run::new(bytes.slice(..cut), cut, 0, 70).is_err(), "{cut}");
        }
        let twice = Bytes::from(bytes.slice(..one).repeat(2));
        assert!(Run::new(twice, 1, 0, 70).is_err());
        assert!(Run::new(bytes.clone(), bytes.len(), 1, 70).is_err());
        assert!(Run::new(bytes.clone(), bytes.len(), 0, 59).is_err());
        assert!(Run::new(bytes, 1, 0, 60).is_ok());
        assert!(Run::new(Bytes::new(), 0, 0, 60).unwrap().ends.is_empty());
    }
}
