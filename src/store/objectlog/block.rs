//! Batches in memory, and how a reader takes them.

use super::format::{Malformed, Stored};
use crate::record::batch::{Header, detached};
use bytes::Bytes;
use std::sync::Arc;

/// Batches that follow each other.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// As they were committed: each has slices of its own.
    Committed(Arc<[Stored]>),
    /// As they were read: one lies behind the other.
    Run(Arc<Run>),
}

#[derive(Debug)]
pub(super) struct Run {
    bytes: Bytes,
    /// Of each batch, its last offset and where it ends in the bytes.
    ends: Vec<(i64, usize)>,
}

impl From<Vec<Stored>> for Block {
    fn from(stored: Vec<Stored>) -> Self {
        Self::Committed(stored.into())
    }
}

impl Block {
    /// What it takes in memory: its bytes, and about so much for each batch and for itself. The bytes
    /// of a commit may be slices of a buffer at most twice as long: see [`detached`].
    pub(super) fn cost(&self) -> usize {
        const OWN: usize = 128;
        match self {
            Self::Committed(stored) => {
                stored.iter().map(|stored| stored.len() + size_of::<Stored>()).sum::<usize>() + OWN
            }
            Self::Run(run) => run.bytes.len() + run.ends.len() * size_of::<(i64, usize)>() + OWN,
        }
    }

    /// The batches of a commit.
    pub(super) fn committed(&self) -> &[Stored] {
        match self {
            Self::Committed(stored) => stored,
            Self::Run(_) => unreachable!("the place of a commit holds what was committed"),
        }
    }
}

impl Run {
    /// Takes batches apart whose offsets rise from `base_offset` on and stay below `end_offset`.
    pub(super) fn new(bytes: Bytes, base_offset: i64, end_offset: i64) -> Result<Self, Malformed> {
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
            true => Ok(Self { bytes, ends }),
            false => Err(Malformed("a batch that is cut short")),
        }
    }
}

/// What a read has: batches, as slices, up to a number of bytes.
pub(super) struct Taken {
    /// The offset of what it wants next.
    pub next: i64,
    pub slices: Vec<Bytes>,
    left: usize,
    at_least_one: bool,
}

/// A slice keeps all of its block's bytes in memory as long as a client takes to read it. So what is
/// less than this part of them is copied.
const LEAST_PART: usize = 4;

impl Taken {
    pub(super) fn new(next: i64, max_bytes: usize, at_least_one: bool) -> Self {
        Self { next, slices: Vec::new(), left: max_bytes, at_least_one }
    }

    /// Whether so many bytes are more than may still be taken.
    pub(super) fn is_too_much(&self, bytes: u64) -> bool {
        bytes > self.left as u64 && !(self.slices.is_empty() && self.at_least_one)
    }

    /// Takes the batches of a block that are wanted; its offsets end at `end`. False when no more may
    /// be taken.
    pub(super) fn take(&mut self, block: &Block, end: i64) -> bool {
        let is_all = match block {
            Block::Committed(stored) => self.take_committed(stored),
            Block::Run(run) => self.take_run(run),
        };
        if is_all {
            self.next = end;
        }
        is_all && (self.left > 0 || self.slices.is_empty())
    }

    fn take_committed(&mut self, batches: &[Stored]) -> bool {
        for stored in batches.iter().filter(|stored| stored.last_offset >= self.next) {
            if self.is_too_much(stored.len() as u64) {
                return false;
            }
            self.left = self.left.saturating_sub(stored.len());
            self.slices.push(stored.head.clone());
            if !stored.tail.is_empty() {
                self.slices.push(stored.tail.clone());
            }
        }
        true
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
        self.slices.push(detached(run.bytes.slice(begin..end), run.bytes.len() * 2 / LEAST_PART));
        behind == run.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::samples::batches;

    /// Batches of ten records at offsets 0 to 29, and then, as after compaction, 50 to 59.
    fn run() -> (Bytes, Block, usize) {
        let all = [batches(0, &[10, 10, 10]), batches(50, &[10])].concat();
        let bytes: Vec<u8> = all.iter().flat_map(|batch| batch.to_bytes()).collect();
        let bytes = Bytes::from(bytes);
        let block = Block::Run(Arc::new(Run::new(bytes.clone(), 0, 70).unwrap()));
        (bytes, block, all[0].len())
    }

    #[test]
    fn batches_of_a_run_come_as_one_slice_from_the_first_that_is_wanted() {
        let (bytes, block, one) = run();
        let take = |next, max_bytes, at_least_one| {
            let mut taken = Taken::new(next, max_bytes, at_least_one);
            let goes_on = taken.take(&block, 70);
            (taken.slices, taken.next, goes_on)
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
        let block = Block::Run(Arc::new(Run::new(bytes.clone(), 0, 90).unwrap()));
        let mut taken = Taken::new(0, bytes.len() / 4, true);
        taken.take(&block, 90);
        assert_eq!(taken.slices, [bytes.slice(..bytes.len() / 9 * 2)]);
        drop(block);
        assert!(bytes.is_unique());
    }

    #[test]
    fn what_is_cut_or_out_of_order_is_no_run() {
        let (bytes, _, one) = run();
        for cut in (1..bytes.len()).filter(|cut| cut % one != 0) {
            assert!(Run::new(bytes.slice(..cut), 0, 70).is_err(), "{cut}");
        }
        let twice = Bytes::from(bytes.slice(..one).repeat(2));
        assert!(Run::new(twice, 0, 70).is_err());
        assert!(Run::new(bytes.clone(), 1, 70).is_err());
        assert!(Run::new(bytes.clone(), 0, 59).is_err());
        assert!(Run::new(bytes, 0, 60).is_ok());
        assert!(Run::new(Bytes::new(), 0, 60).unwrap().ends.is_empty());
    }
}
