//! Stored batches in memory, as many bytes as the limit says: what was used last stays.
//!
//! Commits fill it, so that readers at the tail ask the store for nothing.

use super::format::Stored;
use super::keys::{Name, Position};
use crate::metrics;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Where a run of batches is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Journal { at: Position, offset: u64 },
    Segment { name: Name, offset: u64 },
}

pub(super) type Block = Arc<[Stored]>;

/// Values that are shared, each with what it costs in bytes.
pub(super) struct Cache<V> {
    limit_bytes: usize,
    bytes: usize,
    values: HashMap<Place, Cached<V>>,
    /// By the time of their last use.
    order: BTreeMap<u64, Place>,
    clock: u64,
    pub metrics: Arc<metrics::Cache>,
}

struct Cached<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(limit_bytes: usize) -> Self {
        let (values, order) = (HashMap::new(), BTreeMap::new());
        Self { limit_bytes, bytes: 0, values, order, clock: 0, metrics: Arc::default() }
    }

    pub(super) fn find(&mut self, place: Place) -> Option<V> {
        let Some(cached) = self.values.get_mut(&place) else {
            self.metrics.misses.increment();
            return None;
        };
        self.metrics.hits.increment();
        self.order.remove(&cached.used);
        self.clock += 1;
        cached.used = self.clock;
        self.order.insert(self.clock, place);
        Some(cached.value.clone())
    }

    pub(super) fn insert(&mut self, place: Place, value: V, bytes: usize) {
        self.remove(place);
        self.clock += 1;
        self.bytes += bytes;
        self.order.insert(self.clock, place);
        self.values.insert(place, Cached { value, bytes, used: self.clock });
        while self.bytes > self.limit_bytes
            && let Some((_, oldest)) = self.order.pop_first()
        {
            if let Some(cached) = self.values.remove(&oldest) {
                self.bytes -= cached.bytes;
            }
        }
        self.metrics.bytes.set(self.bytes as u64);
    }

    pub(super) fn remove(&mut self, place: Place) {
        if let Some(cached) = self.values.remove(&place) {
            self.order.remove(&cached.used);
            self.bytes -= cached.bytes;
        }
    }
}

/// What a block takes: its bytes, and about so much for each batch and for the block itself. Its bytes
/// may be slices of a buffer at most twice as long: see [`crate::record::batch::detached`].
pub(super) fn cost(block: &[Stored]) -> usize {
    block.iter().map(|stored| stored.len() + size_of::<Stored>()).sum::<usize>() + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays_and_the_limit_holds() {
        let place = |offset| Place::Journal { at: Position::default(), offset };
        let mut cache = Cache::new(2000);
        cache.insert(place(1), 'a', 1000);
        cache.insert(place(2), 'b', 1000);
        assert_eq!(cache.find(place(1)), Some('a'));
        cache.insert(place(3), 'c', 1000);
        assert_eq!(cache.find(place(2)), None, "the least used one went");
        assert_eq!((cache.find(place(1)), cache.find(place(3))), (Some('a'), Some('c')));
        cache.insert(place(3), 'd', 10);
        assert_eq!(cache.bytes, 1010);
        cache.insert(place(4), 'e', 1_000_000);
        assert_eq!((cache.bytes, cache.values.len(), cache.order.len()), (0, 0, 0));
    }
}
