//! Counters, gauges and histograms.
//!
//! What every request adds to is kept in several parts, so that the processors do not fight for one
//! line of memory: a thread adds to its own part, and who asks adds the parts up.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Parts of one value. More threads than that share them.
const PARTS: usize = 8;

/// One value for each part, on lines of memory of its own.
#[derive(Debug, Default)]
pub(super) struct Parts<T>([Apart<T>; PARTS]);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> Parts<T> {
    pub(super) fn new(make: impl Fn() -> T) -> Self {
        Self(std::array::from_fn(|_| Apart(make())))
    }

    /// The part of this thread.
    #[inline]
    pub(super) fn own(&self) -> &T {
        &self.0[thread_number() % PARTS].0
    }

    pub(super) fn sum(&self, of: impl Fn(&T) -> u64) -> u64 {
        self.0.iter().map(|part| of(&part.0)).fold(0, u64::wrapping_add)
    }
}

/// Threads are numbered as they come, in the whole process: those of an engine come one after the other.
#[inline]
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Relaxed);
    }
    // A thread that ends has no number any more, and counts all the same.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(Parts<AtomicU64>);

impl Counter {
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.own().fetch_add(count, Relaxed);
    }

    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn value(&self) -> u64 {
        self.0.sum(|part| part.load(Relaxed))
    }
}

/// A number that comes and goes, and is not changed by every request.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn set(&self, value: u64) {
        self.0.store(i64::try_from(value).unwrap_or(i64::MAX), Relaxed);
    }

    pub fn value(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

/// Upper bounds of the buckets of times, in nanoseconds: from a produce that the store has at once
/// to one that runs into its client's timeout.
pub(super) const BOUNDS_NS: [u64; 17] = {
    const US: u64 = 1_000;
    const MS: u64 = 1_000 * US;
    const S: u64 = 1_000 * MS;
    [
        100 * US,
        250 * US,
        500 * US,
        MS,
        2_500 * US,
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        S,
        2_500 * MS,
        5 * S,
        10 * S,
        30 * S,
    ]
};

/// How long things took.
#[derive(Debug, Default)]
pub struct Histogram(Parts<Times>);

/// One part of a histogram: how many fell into each bucket, and their sum.
#[derive(Debug, Default)]
pub(super) struct Times {
    buckets: [AtomicU64; BOUNDS_NS.len() + 1],
    sum_ns: AtomicU64,
}

/// What a histogram shows: the last bucket is for what is above all bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub buckets: [u64; BOUNDS_NS.len() + 1],
    pub sum_ns: u64,
}

impl Histogram {
    #[inline]
    pub fn observe(&self, time: Duration) {
        self.0.own().observe(time);
    }

    pub fn show(&self) -> Shown {
        Shown::of(&self.0, |part| part)
    }
}

impl Times {
    #[inline]
    pub(super) fn observe(&self, time: Duration) {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // The bounds are few, and most times are among the first of them.
        let place = BOUNDS_NS.iter().position(|bound| time_ns <= *bound);
        self.buckets[place.unwrap_or(BOUNDS_NS.len())].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(time_ns, Relaxed);
    }
}

impl Shown {
    pub(super) fn of<T>(parts: &Parts<T>, times: impl Fn(&T) -> &Times) -> Self {
        let bucket = |i: usize| parts.sum(|part| times(part).buckets[i].load(Relaxed));
        Self {
            buckets: std::array::from_fn(bucket),
            sum_ns: parts.sum(|part| times(part).sum_ns.load(Relaxed)),
        }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_threads_count_adds_up() {
        let counter = Counter::default();
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..3 * PARTS {
                scope.spawn(|| {
                    (0..1000).for_each(|n| counter.add(n));
                    histogram.observe(Duration::from_millis(3));
                });
            }
        });
        let threads = 3 * PARTS as u64;
        assert_eq!(counter.value(), threads * 499_500);
        let shown = histogram.show();
        assert_eq!((shown.count(), shown.sum_ns), (threads, threads * 3_000_000));
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = Histogram::default();
        for bound in BOUNDS_NS {
            histogram.observe(Duration::from_nanos(bound));
        }
        histogram.observe(Duration::from_nanos(BOUNDS_NS[0] + 1));
        histogram.observe(Duration::from_secs(3600));
        let mut expected = [1; BOUNDS_NS.len() + 1];
        expected[1] = 2;
        assert_eq!(histogram.show().buckets, expected);
    }
}
