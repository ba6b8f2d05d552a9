//! Work that takes long, such as to compress anew what a batch decompresses to, is done aside, and
//! not much of it at a time.

use crate::protocol::error_code::ErrorCode;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Turns to do such work: as many as there are decompressed batches at most.
pub(super) struct Turns(Arc<Semaphore>);

/// One turn, until it is dropped or its work is done.
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    pub(super) async fn next(&self) -> Turn {
        let permit = self.0.clone().acquire_owned().await;
        Turn { _permit: permit.unwrap_or_else(|_| unreachable!("nobody closes the semaphore")) }
    }
}

impl Turn {
    /// Does the work on a thread that serves no client. The turn lasts until it is done, also when
    /// nobody waits for it any more.
    pub(super) async fn take<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorCode> {
        let work = spawn_blocking(move || {
            let _until_done = self;
            work()
        });
        // It panicked.
        work.await.map_err(|_| ErrorCode::UnknownServerError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn a_turn_lasts_until_its_work_is_done_also_when_nobody_waits_for_it() {
        let turns = Turns::new(1);
        let (go_on, gate) = mpsc::channel::<()>();
        let (started, begin) = tokio::sync::oneshot::channel();
        let work = turns.next().await.take(move || {
            let _ = started.send(());
            gate.recv()
        });
        tokio::select! {
            biased;
            _ = work => panic!("nobody has let it go on"),
            _ = begin => {}
        }
        // Whoever waited is gone now.
        assert_eq!(turns.0.available_permits(), 0);
        go_on.send(()).unwrap();
        assert_eq!(turns.next().await.take(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_turn_back() {
        let turns = Turns::new(1);
        for _ in 0..2 {
            let outcome: Result<(), _> = turns.next().await.take(|| panic!("on purpose")).await;
            assert_eq!(outcome, Err(ErrorCode::UnknownServerError));
        }
    }
}
