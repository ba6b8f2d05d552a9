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
//! Whoever does not come back costs the others that moment once, as fewer are waited for the next time.
//! One client alone is never waited for, and nothing is while a store answers at once.

use std::time::Duration;
use tokio::time::Instant;

/// How long, at most: about what the put costs that is saved. tokio's timers count milliseconds, so that
/// it may be one more.
const MOMENT: Duration = Duration::from_micros(500);

/// Those who are expected to ride with the next commit.
#[derive(Default)]
pub(super) struct Riders {
    frames: usize,
    until: Option<Instant>,
}

impl Riders {
    /// So many frames were answered just now, and so many wait already.
    pub(super) fn expect(&mut self, answered: usize, waiting: usize) {
        *self = Self { frames: answered + waiting, until: Some(Instant::now() + MOMENT) };
    }

    /// Until when a commit of so many frames waits for more.
    pub(super) fn wait(&self, frames: usize) -> Option<Instant> {
        self.until.filter(|until| (1..self.frames).contains(&frames) && *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn as_many_are_waited_for_as_were_under_way_but_not_for_long() {
        let mut riders = Riders::default();
        assert_eq!(riders.wait(1), None, "nobody was answered yet");
        riders.expect(5, 3);
        let until = riders.wait(3);
        assert_eq!(until, Some(Instant::now() + MOMENT));
        assert_eq!(riders.wait(7), until);
        assert_eq!(riders.wait(8), None);
        assert_eq!(riders.wait(0), None, "there is no commit");
        tokio::time::sleep_until(until.unwrap()).await;
        assert_eq!(riders.wait(7), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_alone_waits_for_nobody() {
        let mut riders = Riders::default();
        riders.expect(1, 0);
        assert_eq!(riders.wait(1), None);
    }
}
