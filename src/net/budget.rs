//! How many bytes may be held: of requests by the whole engine, of answers by a connection.
//!
//! What is held is taken as a whole before any of it is there, in the order in which it was asked
//! for. So two who each hold a part never wait for each other.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// How long something may take that holds memory which others want, and how long more for each MiB
/// of it. Without this, a few clients that send half a frame, or read half an answer, would stop all
/// others.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_PER_MIB: Duration = Duration::from_secs(1);

/// The memory of requests. Small ones have their own, so that a fetch or a heartbeat does not wait
/// behind large batches for which the store has no time.
pub(super) struct Requests {
    pub(super) small: Budget,
    pub(super) large: Budget,
}

impl Requests {
    /// With this limit for each.
    pub(super) fn new(limit: usize) -> Self {
        Self { small: Budget::new(limit), large: Budget::new(limit) }
    }
}

#[derive(Clone)]
pub(super) struct Budget {
    bytes: Arc<Semaphore>,
    limit: usize,
    waiting: Arc<AtomicUsize>,
}

/// A part of a budget, given back when dropped.
pub(super) type Held = OwnedSemaphorePermit;

impl Budget {
    /// A budget of at least a byte and at most as many as can be counted.
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self { bytes: Arc::new(Semaphore::new(limit)), limit, waiting: Arc::default() }
    }

    /// Takes this many bytes, or all there are if it is more: that one is then held alone.
    pub(super) async fn take(&self, bytes: usize) -> Held {
        let bytes = u32::try_from(bytes.min(self.limit)).unwrap_or(u32::MAX);
        if let Ok(held) = self.bytes.clone().try_acquire_many_owned(bytes) {
            return held;
        }
        let _waiting = Waiting::new(&self.waiting);
        let held = self.bytes.clone().acquire_many_owned(bytes).await;
        held.unwrap_or_else(|_| unreachable!("the semaphore is never closed"))
    }

    /// How many bytes are held and how many are free, and how many wait for some.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let free = self.bytes.available_permits();
        (self.limit - free.min(self.limit), free, self.waiting.load(Ordering::Relaxed))
    }

    /// Whether somebody waits until others give back what they hold.
    pub(super) fn is_exhausted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

/// The time until which something may take that holds so many bytes.
pub(super) struct Patience(Instant);

impl Patience {
    pub(super) fn for_bytes(bytes: usize) -> Self {
        Self(Instant::now() + PATIENCE + PATIENCE_PER_MIB * (bytes >> 20) as u32)
    }

    /// Waits for `work`; `None` if its time is over and others want the memory.
    pub(super) async fn wait<T>(
        &mut self,
        work: impl Future<Output = T>,
        is_wanted: impl Fn() -> bool,
    ) -> Option<T> {
        let mut work = pin!(work);
        loop {
            match timeout_at(self.0, work.as_mut()).await {
                Ok(done) => return Some(done),
                Err(_) if is_wanted() => return None,
                Err(_) => self.0 = Instant::now() + PATIENCE_PER_MIB,
            }
        }
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::{Pin, pin};
    use std::task::{self, Poll, Waker};

    fn poll<F: Future>(future: &mut Pin<&mut F>) -> Poll<F::Output> {
        future.as_mut().poll(&mut task::Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn who_asks_first_is_served_first_and_the_largest_alone() {
        let budget = Budget::new(10);
        let first = budget.take(6).await;
        let mut large = pin!(budget.take(1000));
        assert!(poll(&mut large).is_pending());
        let mut small = pin!(budget.take(1));
        assert!(poll(&mut small).is_pending());
        assert!(budget.is_exhausted());

        drop(first);
        let large = large.await;
        assert!(poll(&mut small).is_pending());
        drop(large);
        drop(small.await);
        assert!(!budget.is_exhausted());
    }
}
