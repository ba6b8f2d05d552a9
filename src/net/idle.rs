//! Notices when no byte moves on a connection for too long, in either direction.
//!
//! A connection has one timer, which is not touched when bytes move: when it fires, it is set to
//! when the connection would be idle now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

pub(super) struct Activity {
    since: Instant,
    /// When a byte moved last, in milliseconds since the connection began.
    last_ms: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    /// A byte moved.
    pub(super) fn touch(&self) {
        let now_ms = self.since.elapsed().as_millis() as u64;
        self.last_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Done when no byte moved for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            let end = self.since + last + limit;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_byte_that_moves_starts_the_time_anew() {
        let activity = Activity::new();
        let begin = Instant::now();
        let limit = Duration::from_secs(10);
        tokio::join!(activity.idle_for(limit), async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            activity.touch();
        });
        assert_eq!(begin.elapsed().as_secs(), 17);
    }
}
