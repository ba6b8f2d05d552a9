//! Waiting for a store that does not answer.

use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Waits that grow, and a line in the log once a minute.
pub(crate) struct Retry {
    /// Who waits.
    who: &'static str,
    delay: Duration,
    noted: Option<Instant>,
}

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(5);
const NOTE_EVERY: Duration = Duration::from_secs(60);

impl Retry {
    pub(crate) fn new(who: &'static str) -> Self {
        Self { who, delay: Duration::ZERO, noted: None }
    }

    pub(crate) fn note(&mut self, error: &str) {
        if self.noted.is_none_or(|at| at.elapsed() >= NOTE_EVERY) {
            self.noted = Some(Instant::now());
            tracing::warn!(error, "{} waits for the store", self.who);
        }
    }

    pub(crate) async fn wait(&mut self) {
        self.delay = (self.delay * 2).clamp(SHORTEST, LONGEST);
        sleep(self.delay).await;
    }
}
