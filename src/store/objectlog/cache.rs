//! Stored batches in memory, as many bytes as the limit says: what was used last stays.
//!
//! Commits fill it, so that readers at the tail ask the store for nothing. Who reads old records does not
//! push those out: what was read to its end goes first.

use super::keys::{Name, Position};
use crate::metrics;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where a run of batches is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// All batches of an object of the journal.
    Commit(Position),
    /// Those of one of its frames, which was read again.
    Frame {
        at: Position,
        offset: u64,
    },
    Segment {
        name: Name,
        offset: u64,
    },
    /// In the journal, as a segment refers to it.
    Referred {
        name: Name,
        at: Position,
        offset: u64,
    },
}

/// Values that are shared, each with what it costs in bytes.
pub(super) struct Cache<V> {
    limit_bytes: usize,
    bytes: usize,
    /// Of values that nobody asked for yet.
    unread_bytes: usize,
    /// When these came, the oldest first. Some may have been asked for since.
    unread: VecDeque<(Instant, Place)>,
    values: HashMap<Place, Cached<V>>,
    /// What goes first is first.
    order: BTreeMap<Turn, Place>,
    clock: u64,
    pub metrics: Arc<metrics::Cache>,
}

struct Cached<V> {
    value: V,
    bytes: usize,
    turn: Turn,
    is_unread: bool,
}

/// When a value goes: those that are of no more use, then others, each by the time of their last use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_of_use: bool,
    used: u64,
}

/// Of the cache, what may be there that nobody asked for yet: more would be gone again before, or push
/// out commits that are still to be moved into segments.
const UNREAD_SHARE: usize = 4;

impl<V: Clone> Cache<V> {
    pub(super) fn new(limit_bytes: usize) -> Self {
        let (values, order) = (HashMap::new(), BTreeMap::new());
        let metrics = Arc::default();
        Self {
            limit_bytes,
            bytes: 0,
            unread_bytes: 0,
            unread: VecDeque::new(),
            values,
            order,
            clock: 0,
            metrics,
        }
    }

    pub(super) fn find(&mut self, place: Place) -> Option<V> {
        let count = self.values.len() as u64;
        let Some(cached) = self.values.get_mut(&place) else {
            self.metrics.misses.increment();
            return None;
        };
        self.metrics.hits.increment();
        if std::mem::take(&mut cached.is_unread) {
            self.unread_bytes -= cached.bytes;
        }
        // What is among the newest half anyway is left where it is: that costs nothing.
        if !cached.turn.is_of_use || 2 * (self.clock - cached.turn.used) >= count {
            self.move_to_end(place, true);
        }
        self.values.get(&place).map(|cached| cached.value.clone())
    }

    /// Notes that a value was read to its end: it goes before others.
    pub(super) fn let_go(&mut self, place: Place) {
        self.move_to_end(place, false);
    }

    fn move_to_end(&mut self, place: Place, is_of_use: bool) {
        let Some(cached) = self.values.get_mut(&place) else { return };
        self.order.remove(&cached.turn);
        self.clock += 1;
        cached.turn = Turn { is_of_use, used: self.clock };
        self.order.insert(cached.turn, place);
    }

    pub(super) fn has(&self, place: Place) -> bool {
        self.values.contains_key(&place)
    }

    /// Whether so many bytes may come in for which nobody asked yet.
    pub(super) fn takes_unread(&self, bytes: usize) -> bool {
        self.unread_bytes.saturating_add(bytes) <= self.unread_limit()
    }

    pub(super) fn unread_limit(&self) -> usize {
        self.limit_bytes / UNREAD_SHARE
    }

    /// Lets go of what nobody has asked for in such a time.
    pub(super) fn forget_unread(&mut self, time: Duration) {
        while let Some(&(since, place)) = self.unread.front() {
            let cached = self.values.get_mut(&place).filter(|cached| cached.is_unread);
            if let Some(cached) = cached {
                if since.elapsed() < time {
                    break;
                }
                cached.is_unread = false;
                self.unread_bytes -= cached.bytes;
                self.let_go(place);
            }
            self.unread.pop_front();
        }
    }

    pub(super) fn insert(&mut self, place: Place, value: V, bytes: usize) {
        self.put(place, value, bytes, false);
    }

    /// Adds what nobody asked for yet.
    pub(super) fn insert_unread(&mut self, place: Place, value: V, bytes: usize) {
        self.put(place, value, bytes, true);
        self.unread.push_back((Instant::now(), place));
    }

    fn put(&mut self, place: Place, value: V, bytes: usize, is_unread: bool) {
        self.remove(place);
        self.clock += 1;
        self.bytes += bytes;
        self.unread_bytes += if is_unread { bytes } else { 0 };
        let turn = Turn { is_of_use: true, used: self.clock };
        self.order.insert(turn, place);
        self.values.insert(place, Cached { value, bytes, turn, is_unread });
        while self.bytes > self.limit_bytes
            && let Some((_, &oldest)) = self.order.first_key_value()
        {
            self.remove(oldest);
        }
        self.metrics.bytes.set(self.bytes as u64);
    }

    pub(super) fn remove(&mut self, place: Place) {
        if let Some(cached) = self.values.remove(&place) {
            self.order.remove(&cached.turn);
            self.bytes -= cached.bytes;
            self.unread_bytes -= if cached.is_unread { cached.bytes } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays_and_the_limit_holds() {
        let place = |offset| Place::Frame { at: Position::default(), offset };
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

    #[test]
    fn what_nobody_asked_for_yet_is_counted_until_somebody_does_or_it_goes() {
        let place = |offset| Place::Frame { at: Position::default(), offset };
        let mut cache = Cache::new(1000);
        assert!(cache.takes_unread(250) && !cache.takes_unread(251));
        cache.insert_unread(place(1), 'a', 100);
        cache.insert_unread(place(2), 'b', 100);
        assert!(cache.takes_unread(50) && !cache.takes_unread(51));
        assert_eq!((cache.find(place(1)), cache.find(place(1))), (Some('a'), Some('a')));
        assert!(cache.takes_unread(150) && !cache.takes_unread(151));
        cache.insert(place(3), 'c', 1000);
        assert_eq!(
            (cache.unread_bytes, cache.has(place(2)), cache.has(place(3))),
            (0, false, true)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_in_time_is_not_counted_and_goes_first() {
        let place = |offset| Place::Frame { at: Position::default(), offset };
        let mut cache = Cache::new(1000);
        cache.insert(place(1), 'a', 700);
        cache.insert_unread(place(2), 'b', 100);
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.insert_unread(place(3), 'c', 100);
        assert_eq!(cache.find(place(2)), Some('b'));
        cache.forget_unread(Duration::from_secs(1));
        assert!(cache.takes_unread(150) && !cache.takes_unread(151), "it came just now");
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.forget_unread(Duration::from_secs(1));
        assert!(cache.takes_unread(250) && cache.unread.is_empty());
        cache.insert(place(4), 'd', 200);
        assert_eq!((cache.find(place(1)), cache.find(place(3))), (Some('a'), None));
    }

    #[test]
    fn what_was_read_to_its_end_goes_first() {
        let place = |offset| Place::Frame { at: Position::default(), offset };
        let mut cache = Cache::new(300);
        (1..=3).for_each(|at| cache.insert(place(at), at, 100));
        [3, 2].iter().for_each(|at| cache.let_go(place(*at)));
        cache.insert(place(4), 4, 100);
        assert_eq!((cache.find(place(3)), cache.find(place(2))), (None, Some(2)));
        // Somebody else still wants it.
        cache.insert(place(5), 5, 100);
        assert_eq!((cache.find(place(1)), cache.find(place(2))), (None, Some(2)));
        cache.let_go(place(9));
        assert_eq!(cache.order.len(), 3);
    }
}
