//! How many bytes of records may be on their way to clients, in the whole engine.
//!
//! A fetch takes its share before it reads, and holds it until the answer is written. It gets what
//! it wants, but never more than half of what is free: so those who do not read their answers make
//! the answers of others shorter, and nobody waits for anybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More is only held by batches that are longer than their share: one for each answer.
const MAX_BYTES: usize = 256 << 20;

/// What a fetch may read however little is free.
pub(super) const LEAST_BYTES: usize = 64 << 10;

/// The memory of all answers.
#[derive(Clone, Default)]
pub struct ReadMemory(Arc<AtomicUsize>);

/// A part of it, given back when dropped.
#[derive(Default)]
pub struct Share {
    memory: ReadMemory,
    bytes: usize,
}

impl ReadMemory {
    /// A share that holds nothing yet.
    pub fn share(&self) -> Share {
        Share { memory: self.clone(), bytes: 0 }
    }

    /// The share of bytes that are there already.
    pub fn count(&self, bytes: usize) -> Share {
        let mut share = self.share();
        share.keep(bytes);
        share
    }

    /// Whether answers are shorter than they could be, because others are not taken.
    pub fn is_short(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_BYTES / 4 * 3
    }
}

impl Share {
    /// Takes room for so many bytes, or for as many as there may be. What it held is given back.
    pub fn take(&mut self, wanted: usize) -> usize {
        self.keep(0);
        let granted =
            |used: usize| wanted.min((MAX_BYTES.saturating_sub(used) / 2).max(LEAST_BYTES));
        let add = |used| Some(used + granted(used));
        let used = self.memory.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        self.bytes = granted(used.unwrap_or_else(|used| used));
        self.bytes
    }

    /// Holds what another share held too.
    pub fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Holds so many bytes instead of what it held.
    pub fn keep(&mut self, bytes: usize) {
        self.memory.0.fetch_add(bytes, Ordering::Relaxed);
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_all_that_is_left_and_nobody_gets_nothing() {
        let memory = ReadMemory::default();
        let mut shares = Vec::new();
        for expected in [100 << 20, 78 << 20, 39 << 20] {
            let mut share = memory.share();
            assert_eq!(share.take(100 << 20), expected);
            shares.push(share);
        }
        assert!(memory.is_short());
        let many = (0..100).map(|_| {
            let mut share = memory.share();
            assert!(share.take(100 << 20) >= LEAST_BYTES);
            assert_eq!(memory.share().take(10), 10);
            share
        });
        shares.extend(many);
        let used = memory.0.load(Ordering::Relaxed);
        assert!((MAX_BYTES..MAX_BYTES + 100 * LEAST_BYTES).contains(&used), "{used}");

        shares[0].keep(1000);
        assert!(!memory.is_short());
        drop(shares);
        assert_eq!(memory.0.load(Ordering::Relaxed), 0);
    }
}
