//! Reading along: who reads a stretch brings what else is wanted of its object near it.
//!
//! A store may have to do the same for a part of an object as for much of it. SeaweedFS reads a whole
//! chunk, to check it, before it sends any range of it, and a request for a small range costs it more than
//! the bytes. What others want lies near: a commit has its partitions side by side, and who reads one
//! partition on and on wants what comes behind.

use super::ahead::{SOON_BYTES, Wanted};
use super::cache::Place;
use super::journal::{Inner, Journal};
use super::reading::Stretch;
use std::collections::HashMap;
use std::ops::Range;
use tokio::sync::watch;

/// What is read at once is no longer than this, unless one stretch is.
const MOST_BYTES: u64 = 4 << 20;

/// Of what is read at once, this part at least is wanted.
const WANTED_PART: u64 = 4;

/// Stretches that are read along with others, whom to wait for: a channel that is closed then.
pub(super) type Along = HashMap<Place, watch::Receiver<()>>;

/// Stretches that are read at once from one object. Its end is that of who waits for them.
pub(super) struct Reading<'a> {
    journal: &'a Journal,
    span: Range<u64>,
    /// How much of the span is wanted.
    wanted_bytes: u64,
    along: Vec<Stretch>,
    ends: watch::Sender<()>,
}

impl<'a> Reading<'a> {
    /// One stretch, and nothing else.
    pub(super) fn alone(journal: &'a Journal, stretch: &Stretch) -> Self {
        let (span, wanted_bytes) = (stretch.span(), stretch.length());
        Self { journal, span, wanted_bytes, along: Vec::new(), ends: watch::Sender::new(()) }
    }

    /// A stretch and what is wanted near it, for which it takes room.
    pub(super) fn begin(journal: &'a Journal, stretch: &Stretch) -> Self {
        let mut reading = Self::alone(journal, stretch);
        let inner = &mut *journal.lock();
        inner.reads.forget_at(stretch.place());
        let mut before = inner.reads.wanted_in(stretch.around(MOST_BYTES));
        let first = before.partition_point(|(_, other)| other.place() < stretch.place());
        let behind = before.split_off(first);
        before.reverse();
        reading.widen(inner, behind);
        reading.widen(inner, before);
        reading
    }

    /// Takes along what is wanted on one side, the nearest first.
    fn widen(&mut self, inner: &mut Inner, side: Vec<(Wanted, Stretch)>) {
        for (wanted, other) in side {
            if inner.is_known(&other) {
                continue;
            }
            let (others, length) = (other.span(), other.length());
            let span = self.span.start.min(others.start)..self.span.end.max(others.end);
            let bytes = span.end - span.start;
            if bytes > MOST_BYTES || self.wanted_bytes + length < bytes / WANTED_PART {
                break;
            }
            if inner.has_room(length, wanted.ahead_bytes().min(SOON_BYTES)) {
                inner.reads.forget(wanted);
                inner.reads.bytes += length;
                inner.reads.along.insert(other.place(), self.ends.subscribe());
                (self.span, self.wanted_bytes) = (span, self.wanted_bytes + length);
                self.along.push(other);
            }
        }
    }

    /// What is to be read of the object: from where on, and how much.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.span.start, self.span.end - self.span.start)
    }

    pub(super) fn along(&self) -> &[Stretch] {
        &self.along
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let reads = &mut self.journal.lock().reads;
        for stretch in &self.along {
            reads.bytes -= stretch.length();
            reads.along.remove(&stretch.place());
        }
    }
}
