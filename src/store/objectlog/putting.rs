//! Puts whose outcome becomes certain.

use super::faults::{Faults, Rule};
use super::format::{self, Header, Kind};
use super::keys::Position;
use crate::store::Owner;
use crate::store::objects::{ObjectError, Objects, Put};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A length that no object has.
pub(super) const WHOLE: u64 = 1 << 31;

/// What became of a put into the journal.
pub(super) enum Outcome {
    Ours,
    /// What another process put there.
    Foreign(Bytes),
    /// Nothing is there. Not an outcome: only the fault stops here.
    Absent,
}

pub(super) struct Resolved {
    pub at: Position,
    pub outcome: Outcome,
    /// When the first call began. An answer to a later one proves no more: what stands there may have
    /// landed by then, and a fence behind it.
    pub began: Instant,
}

/// Puts an object of the journal until it is certain whose object stands at its place.
pub(super) async fn put(
    objects: Arc<dyn Objects>,
    at: Position,
    key: String,
    parts: Vec<Bytes>,
    faults: Faults,
) -> Resolved {
    let began = Instant::now();
    let resolved = |outcome| Resolved { at, outcome, began };
    let mut backoff = Backoff::default();
    loop {
        match objects.put_new(&key, parts.clone()).await {
            Ok(Put::Created) => return resolved(Outcome::Ours),
            Ok(Put::Exists) => {}
            Err(error) => backoff.wait("a put into the journal", &error).await,
        }
        // Ours may have landed though we were told that it failed.
        match objects.get(&key, 0, WHOLE).await {
            Ok(Some(object)) if is_ours(&object, &parts, faults) => return resolved(Outcome::Ours),
            Ok(Some(object)) => return resolved(Outcome::Foreign(object)),
            Ok(None) if faults.keep(Rule::SameBytes) => {}
            Ok(None) => return resolved(Outcome::Absent),
            Err(error) => backoff.wait("reading a put back", &error).await,
        }
    }
}

fn is_ours(object: &Bytes, parts: &[Bytes], faults: Faults) -> bool {
    if faults.keep(Rule::SameBytes) {
        return format::is_equal(object, parts);
    }
    let nonce = |bytes: &[u8]| Header::read(bytes).ok().map(|(header, ..)| header.nonce);
    nonce(object) == parts.first().and_then(|head| nonce(head))
}

/// Puts an object under a name that only this process uses: what exists there is its own.
pub(super) async fn put_own(objects: &dyn Objects, key: &str, parts: Vec<Bytes>) {
    let mut backoff = Backoff::default();
    while let Err(error) = objects.put_new(key, parts.clone()).await {
        backoff.wait(key, &error).await;
    }
}

/// Whether it is a commit of the process with this nonce. A fence of its own is none: it put that when it
/// began to open, and began anew since, so that others may have gone on behind it.
pub(super) fn is_commit_from(object: &[u8], nonce: u64) -> bool {
    let is_ours = |header: Header| header.kind == Kind::Journal && header.nonce == nonce;
    Header::read(object).is_ok_and(|(header, ..)| is_ours(header))
}

/// Whom a fence names; nobody if the object says nothing that can be read.
pub(super) fn owner_of(object: &[u8]) -> Owner {
    match format::decode_journal(&Bytes::copy_from_slice(object)) {
        Ok((_, format::Found::Fence(fence))) => fence.owner,
        _ => Owner::default(),
    }
}

/// Short waits that grow, while a store does not answer, and a line in the log once a minute.
pub(super) struct Backoff {
    wait: Duration,
    told: Option<Instant>,
}

const SHORTEST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const TELL_EVERY: Duration = Duration::from_secs(60);

impl Default for Backoff {
    fn default() -> Self {
        Self { wait: SHORTEST_WAIT, told: None }
    }
}

impl Backoff {
    pub(super) async fn wait(&mut self, what: &str, error: &ObjectError) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.told = Some(Instant::now());
            tracing::warn!(%error, "{what} failed; trying again");
        }
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::memory::Memory;

    /// Stores what it is given, and says a minute later that this failed.
    struct Late(Memory);

    #[async_trait::async_trait]
    impl Objects for Late {
        async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
            self.0.put_new(key, parts).await?;
            tokio::time::sleep(Duration::from_secs(60)).await;
            Err(ObjectError("no answer".into()))
        }

        async fn get(&self, key: &str, at: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
            self.0.get(key, at, len).await
        }

        async fn list(
            &self,
            prefix: &str,
            after: &str,
            limit: usize,
        ) -> Result<Vec<String>, ObjectError> {
            self.0.list(prefix, after, limit).await
        }

        async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
            self.0.delete(keys).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_put_that_is_read_back_proves_nothing_of_the_time_after_it_landed() {
        let begun = Instant::now();
        let objects = Arc::new(Late(Memory::default()));
        let at = Position { epoch: 1, seq: 0 };
        let parts = vec![Bytes::from_static(b"object")];
        let resolved = put(objects, at, "journal".into(), parts, Faults::default()).await;
        assert!(matches!(resolved.outcome, Outcome::Ours));
        assert!(begun.elapsed() >= Duration::from_secs(60));
        assert_eq!(resolved.began, begun);
    }
}
