//! How long a small commit waits for others to ride with it.
//!
//! Clients that wait for an answer send again when they have it. A commit that began at once with what
//! waited meanwhile would leave them behind, and from then on each would carry half of the clients while
//! the other half waits. So it waits, a moment, until as many frames are there as were under way:
//!
//! ```text
//!  put of 5 ─▶ answered; 3 wait already ─▶ wait for 8 frames, or a moment ─▶ put of 8
//! ```
//!
//! One frame at a time waits for nothing. A frame that does not come back, since its client has no more
//! to send or sends to fewer partitions, costs the others that moment once. Who sends on and on without
//! waiting has its records a moment later, in fewer objects.

use std::time::Duration;
use tokio::time::Instant;

/// How long, at most: about what the put costs that is saved. tokio's timers count milliseconds, so that
/// it may be one more.
const MOMENT: Duration = Duration::from_micros(500);

/// A put that takes less is not worth a wait, as on a directory.
const LEAST_PUT: Duration = Duration::from_micros(100);

/// The frames that are expected to ride with the next commit.
#[derive(Default)]
pub(super) struct Riders {
    frames: usize,
    until: Option<Instant>,
}

impl Riders {
    /// A put took so long, and so many frames were under way when it was answered.
    pub(super) fn answered(&mut self, took: Duration, frames: usize) {
        let until = (took >= LEAST_PUT).then(|| Instant::now() + MOMENT);
        *self = Self { frames, until };
    }

    /// Until when a commit of so many frames waits for more.
    pub(super) fn wait_until(&self, frames: usize) -> Option<Instant> {
        self.until.filter(|until| frames < self.frames && *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn as_many_are_waited_for_as_were_under_way_but_not_for_long() {
        let mut riders = Riders::default();
        assert_eq!(riders.wait_until(1), None, "nobody was answered yet");
        riders.answered(LEAST_PUT, 8);
        let until = riders.wait_until(3);
        assert_eq!(until, Some(Instant::now() + MOMENT));
        assert_eq!(riders.wait_until(7), until);
        assert_eq!(riders.wait_until(8), None);
        tokio::time::sleep_until(until.unwrap()).await;
        assert_eq!(riders.wait_until(7), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_waits_for_nothing() {
        let mut riders = Riders::default();
        riders.answered(LEAST_PUT, 1);
        assert_eq!(riders.wait_until(1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_put_that_takes_little_is_not_waited_with() {
        let mut riders = Riders::default();
        riders.answered(LEAST_PUT, 8);
        riders.answered(LEAST_PUT / 2, 8);
        assert_eq!(riders.wait_until(1), None);
    }
}
