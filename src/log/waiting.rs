//! Fetches that wait for more data: who brings it counts it, and wakes them when it is enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Notify;

/// A fetch that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    missing_bytes: AtomicI64,
    enough: Notify,
}

/// Its place at one of its partitions.
#[derive(Debug)]
pub(super) struct Parked {
    pub waiting: Arc<Waiting>,
    pub offset: i64,
    /// How many more bytes of this partition the fetch would take.
    pub room_bytes: u64,
}

impl Waiting {
    pub(super) fn new(missing_bytes: i64) -> Arc<Self> {
        Arc::new(Self { missing_bytes: AtomicI64::new(missing_bytes), enough: Notify::new() })
    }

    /// Done when there is enough. One wake-up is kept for who comes late.
    pub(super) async fn enough(&self) {
        self.enough.notified().await;
    }
}

impl Parked {
    /// Counts bytes that became visible.
    pub(super) fn add(&mut self, bytes: u64) {
        let bytes = bytes.min(self.room_bytes);
        self.room_bytes -= bytes;
        let before = self.waiting.missing_bytes.fetch_sub(bytes as i64, Ordering::Relaxed);
        if bytes > 0 && before <= bytes as i64 {
            self.wake();
        }
    }

    /// Something other than data makes the fetch look again.
    pub(super) fn wake(&self) {
        self.waiting.enough.notify_one();
    }
}
