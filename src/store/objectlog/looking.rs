//! Learning of a successor: looks at the place where its fence would stand.

use super::journal::{Inner, Journal};
use super::putting::{self, WHOLE};
use crate::store::{Result, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

impl Journal {
    /// An owner that could not look at the journal for a while serves nothing: not for safety, but
    /// so that nobody reads for long what a successor has left behind.
    pub(super) fn check_fresh(&self, inner: &Inner) -> Result<()> {
        if inner.is_fenced {
            return Err(StoreError::Fenced);
        }
        if inner.proof.elapsed() > self.options.lag_bound {
            return Err(StoreError::Unavailable("its last answer is too old".into()));
        }
        Ok(())
    }

    /// Makes sure that nobody took over before this call began.
    pub(super) async fn look(&self) -> Result<()> {
        let first = self.lock().next;
        let mut backoff = putting::Backoff::default();
        loop {
            let progress = self.progress.notified();
            let (at, idle) = {
                let inner = self.lock();
                if inner.is_fenced {
                    return Err(StoreError::Fenced);
                }
                // A put that began after this call is committed.
                if inner.log.image.position > first {
                    return Ok(());
                }
                (inner.next, inner.log.image.position == inner.next && inner.queue.is_empty())
            };
            if !idle {
                progress.await;
                continue;
            }
            // All lower places hold our own objects: only here could a fence stand.
            let began = Instant::now();
            match self.objects.get(&self.keys.journal(at), 0, WHOLE).await {
                Ok(None) => {
                    let mut inner = self.lock();
                    inner.proof = inner.proof.max(began);
                    return Ok(());
                }
                Ok(Some(object)) if putting::is_commit_from(&object, self.nonce) => return Ok(()),
                Ok(Some(object)) => {
                    self.fence(&object);
                    return Err(StoreError::Fenced);
                }
                Err(error) => backoff.wait("looking at the journal", &error).await,
            }
        }
    }

    /// Looks now and then while nothing is written, so that an idle owner learns of its successor.
    pub(super) async fn look_when_idle(self: Arc<Self>) {
        loop {
            let age = self.lock().proof.elapsed();
            match self.options.idle_look.checked_sub(age) {
                Some(left) if left > Duration::ZERO => tokio::time::sleep(left).await,
                _ if self.look().await.is_err() => return,
                // Puts in flight were the proof, though none of them may be as young as the call.
                _ => tokio::time::sleep(self.options.idle_look / 4).await,
            }
        }
    }
}
