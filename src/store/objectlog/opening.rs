//! Taking the journal over: checkpoint, replay, fence, verify. Only then serve.
//!
//! ```text
//!  newest checkpoint ─▶ replay place by place ─▶ nothing there: fence ─▶ is the checkpoint still
//!        ▲                        ▲                     │ taken          the newest? serve in the
//!        │                        └─────────────────────┘                fence's epoch
//!        └─────────────── drop all ◀──────────────────────────── no ─────────┘
//! ```
//!
//! What was read is not believed, and no error in it counts, before the verification: the owner may
//! be alive, far ahead, and deleting what is read here.

use super::Options;
use super::checkpoint;
use super::faults::Rule;
use super::fence::Fence;
use super::format::{self, Found};
use super::keys::{self, Keys, Name, Position};
use super::log::Log;
use super::putting::{Backoff, WHOLE};
use super::state::Image;
use crate::store::objects::{ObjectError, Objects, Put};
use crate::store::{Result, StoreError};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Keys asked for in one list.
pub(super) const PAGE: usize = 1000;

/// Objects read ahead in a replay. What is there never changes, so it may be read early; that
/// nothing is there decides only the put of the fence.
const READ_AHEAD: u64 = 16;

pub(super) struct Opener {
    pub objects: Arc<dyn Objects>,
    pub options: Options,
    pub nonce: u64,
    pub keys: Keys,
}

/// A log that is ours, from its image's position on.
pub(super) struct Opening {
    pub log: Log,
    /// When the put of the fence began.
    pub proof: Instant,
}

/// What stands at a place, or why that cannot be said.
type Read = Result<Option<Bytes>, ObjectError>;

impl Opener {
    pub(super) async fn open(&self) -> Result<Opening> {
        loop {
            let (newest, image) = match self.checkpoint().await? {
                Some((name, image)) => (Some(name), image),
                None => (None, Image::default()),
            };
            let outcome = self.replay(image).await;
            let unchanged = newest == self.newest_checkpoint().await;
            if unchanged || !self.options.faults.keep(Rule::VerifyAfterFence) {
                return outcome;
            }
            tracing::info!("the owner went on while its journal was read; reading anew");
        }
    }

    /// The newest checkpoint, or `None` where there never was one.
    async fn checkpoint(&self) -> Result<Option<(Name, Image)>> {
        let mut backoff = Backoff::default();
        loop {
            let Some(name) = self.newest_checkpoint().await else { return Ok(None) };
            let key = self.keys.checkpoint(name);
            let Some(object) = self.get(&key).await else {
                // Replaced since; or the list shows it long after it was deleted.
                backoff.wait(&key, &ObjectError("it is listed and not there".into())).await;
                continue;
            };
            match checkpoint::decode(&object) {
                Ok((_, image)) => return Ok(Some((name, image))),
                Err(malformed) if self.newest_checkpoint().await == Some(name) => {
                    return Err(malformed.at(&key));
                }
                Err(_) => {}
            }
        }
    }

    async fn newest_checkpoint(&self) -> Option<Name> {
        let keys = list_all(self.objects.as_ref(), &self.keys.checkpoints()).await;
        keys.iter().filter_map(|key| keys::name_of(key)).max()
    }

    /// Takes in all that follows the checkpoint, and closes it with a fence of our own.
    async fn replay(&self, image: Image) -> Result<Opening> {
        let mut at = image.position;
        let mut log = Log::new(image, self.options.cache_bytes);
        let mut ahead = Ahead::default();
        let mut backoff = Backoff::default();
        loop {
            let object = match ahead.next(self, at).await {
                Ok(object) => {
                    backoff = Backoff::default();
                    object
                }
                Err(error) => {
                    backoff.wait("reading the journal", &error).await;
                    ahead = Ahead::default();
                    continue;
                }
            };
            let Some(object) = object else {
                ahead = Ahead::default();
                let fence_at = self.fence_place(at);
                let proof = Instant::now();
                match self.fence(fence_at).await {
                    Fenced::Ours(next) => {
                        log.take_fence(fence_at, next);
                        return Ok(Opening { log, proof });
                    }
                    Fenced::Taken(Some(next)) => {
                        log.take_fence(fence_at, next);
                        at = next;
                    }
                    // Nothing moves, but where a fault has left a gap behind it.
                    Fenced::Taken(None) => at = fence_at,
                }
                continue;
            };
            at = self.take(&mut log, at, &object)?;
            if at.seq == 0 {
                ahead = Ahead::default();
            }
        }
    }

    /// Takes in one object; gives the place that follows it.
    fn take(&self, log: &mut Log, at: Position, object: &Bytes) -> Result<Position> {
        let key = self.keys.journal(at);
        let (header, found) =
            format::decode_journal(object).map_err(|malformed| malformed.at(&key))?;
        if header.position() != at {
            return Err(StoreError::Corrupt(format!(
                "{key}: it says that it is {:?}",
                header.position()
            )));
        }
        match found {
            Found::Frames(commit) => log.take(at, object.len() as u64, commit),
            Found::Fence(fence) => log.take_fence(at, self.behind(at, fence.next_epoch)),
        }
        Ok(log.image.position)
    }

    /// Where an epoch begins whose fence is at `fence`.
    fn behind(&self, fence: Position, epoch: i32) -> Position {
        let own_prefix = self.options.faults.keep(Rule::OwnPrefix);
        Position { epoch, seq: if own_prefix { 0 } else { fence.seq + 1 } }
    }

    /// The fence goes to the first place where nothing is.
    fn fence_place(&self, at: Position) -> Position {
        if self.options.faults.keep(Rule::FenceAtFirstGap) { at } else { at.next() }
    }

    async fn fence(&self, mut at: Position) -> Fenced {
        let mut backoff = Backoff::default();
        loop {
            let fence = Fence { next_epoch: at.epoch + 1, owner: self.options.owner.clone() };
            let ours = self.behind(at, fence.next_epoch);
            let key = self.keys.journal(at);
            let bytes = fence.encode(at, self.nonce);
            match self.objects.put_new(&key, vec![bytes]).await {
                Ok(Put::Created) => return Fenced::Ours(ours),
                Ok(Put::Exists) => {}
                Err(error) => backoff.wait("the fence", &error).await,
            }
            // An earlier try may have landed though we were told that it failed.
            let Some(object) = self.get(&key).await else { continue };
            let Ok((header, found)) = format::decode_journal(&object) else {
                return Fenced::Taken(None);
            };
            let own = header.nonce == self.nonce || !self.options.faults.keep(Rule::Nonce);
            match found {
                Found::Fence(_) if own => return Fenced::Ours(ours),
                // The replay takes it in where it stands.
                _ if self.options.faults.keep(Rule::FenceAtFirstGap)
                    && self.options.faults.keep(Rule::ReadUpToFence) =>
                {
                    return Fenced::Taken(None);
                }
                Found::Fence(fence) => {
                    return Fenced::Taken(Some(self.behind(at, fence.next_epoch)));
                }
                Found::Frames(_) if self.options.faults.keep(Rule::ReadUpToFence) => {
                    return Fenced::Taken(None);
                }
                Found::Frames(_) => at = at.next(),
            }
        }
    }

    /// Asks until there is an answer.
    async fn get(&self, key: &str) -> Option<Bytes> {
        let mut backoff = Backoff::default();
        loop {
            match self.objects.get(key, 0, WHOLE).await {
                Ok(object) => return object,
                Err(error) => backoff.wait(key, &error).await,
            }
        }
    }
}

enum Fenced {
    /// The place behind our fence.
    Ours(Position),
    /// Somebody else's object is there. The place behind it is only given where a fault has
    /// made the replay blind to it.
    Taken(Option<Position>),
}

/// Reads that were begun ahead of the replay, in the order of their places: more and more, as long
/// as something is there.
#[derive(Default)]
struct Ahead {
    reads: VecDeque<JoinHandle<Read>>,
    window: u64,
}

impl Ahead {
    async fn next(&mut self, opener: &Opener, at: Position) -> Read {
        self.window = (self.window * 2).clamp(1, READ_AHEAD);
        while (self.reads.len() as u64) < self.window {
            let next = Position { seq: at.seq + self.reads.len() as u64, ..at };
            let (objects, key) = (opener.objects.clone(), opener.keys.journal(next));
            self.reads.push_back(tokio::spawn(async move { objects.get(&key, 0, WHOLE).await }));
        }
        let Some(read) = self.reads.pop_front() else { unreachable!("at least one was begun") };
        read.await.unwrap_or_else(|error| Err(ObjectError(format!("a read ended early: {error}"))))
    }
}

/// All keys below a prefix.
pub(super) async fn list_all(objects: &dyn Objects, prefix: &str) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    let mut backoff = Backoff::default();
    loop {
        match objects.list(prefix, &after, PAGE).await {
            Ok(page) => {
                let Some(last) = page.last() else { return keys };
                after = last.clone();
                keys.extend(page);
            }
            Err(error) => backoff.wait(prefix, &error).await,
        }
    }
}
