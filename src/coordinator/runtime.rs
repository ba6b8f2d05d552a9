//! What carries the machines: time, storage and those who ask.
//!
//! ```text
//!               ┌──────────────── shard ────────────────┐
//!  ask ────────▶│ machine ─▶ records ─▶ journal         │
//!               │    │                     │ stored     │
//!  deadline ───▶│    └─▶ answers ─▶ held ──┴────────────┼─▶ asked
//!               └───────────────────────────────────────┘
//! ```
//!
//! There is one machine for each partition of an internal topic, or for each number that a store
//! has which keeps what machines know by itself. A request is decided under its
//! shard's lock, where its records get their place in the journal and are applied at once. Its
//! answer waits until all that it saw is stored, also if it only read; so no one is told what a
//! crash could undo. What many ask while a commit is under way goes out with the next one.

pub mod groups;
pub mod journal;
mod shard;
mod store_journal;

use super::{Machine, Millis, Now};
use crate::log::append::wall_clock_ms;
use crate::protocol::error_code::ErrorCode::{self, CoordinatorLoadInProgress, NotCoordinator};
use crate::protocol::wire::Uuid;
use crate::store::groups::Groups;
use crate::store::{PartitionId, State, Storage};
use journal::Journal;
use shard::Shard;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::Instant;

/// All machines of one kind.
pub struct Runtime<M: Machine> {
    kind: Arc<Kind<M>>,
    storage: Arc<dyn Storage>,
    state: watch::Receiver<State>,
    home: Home,
    opened: RwLock<Opened<M>>,
}

/// Where the journals of a kind are.
pub enum Home {
    /// In the partitions of the internal topic of this name.
    Topic(&'static str),
    /// In a store that keeps groups by itself.
    Store(Arc<dyn Groups>),
}

/// A home as it is now: an id that only it has, and how many journals there are.
type Found = (Uuid, i32);

/// How the machines of a kind are made and kept.
pub struct Kind<M: Machine> {
    /// A machine without state.
    pub machine: Box<dyn Fn() -> M + Send + Sync>,
    /// The journal of one of the topic's partitions. A store's have no topic.
    pub journal: Box<dyn Fn(PartitionId) -> Box<dyn Journal<M::Record>> + Send + Sync>,
    /// What a machine that has read its journal is told before all else: of what it missed.
    pub first: Box<First<M>>,
    /// How long an answer waits for the store.
    pub write_timeout: Duration,
    pub clock: Clock,
    /// So that not all journals are read at once when the broker starts.
    pub loads: Semaphore,
}

type First<M> = dyn Fn(&M) -> Option<<M as Machine>::Request> + Send + Sync;

enum Opened<M: Machine> {
    /// There was no topic yet.
    Nothing,
    Home(Uuid, Vec<Arc<Shard<M>>>),
    /// The broker ends.
    Ended,
}

/// How many journals of a kind are read at the same time.
pub const LOADS: usize = 4;

/// Time as machines see it.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

/// What a machine answers, or why it cannot.
pub type Answer<T> = Result<T, ErrorCode>;

/// The answer to come. Who drops it is not missed.
#[derive(Debug)]
pub struct Asked<T>(oneshot::Receiver<Answer<T>>);

impl<M> Runtime<M>
where
    M: Machine<Request: Send, Response: Send, Record: Send, Effect: Send> + Send + 'static,
{
    pub fn new(home: Home, kind: Kind<M>, storage: Arc<dyn Storage>) -> Self {
        let (state, opened) = (storage.state(), RwLock::new(Opened::Nothing));
        Self { kind: Arc::new(kind), storage, state, home, opened }
    }

    /// Asks the machine that has this key. Called inside an async runtime.
    pub fn ask(&self, key: &str, request: M::Request) -> Asked<M::Response> {
        let asked = self.with_shards(|shards| {
            let partition = partition_of(key, shards.len());
            shards.get(partition).map(|shard| shard.ask(request))
        });
        match asked {
            Ok(asked) => asked.flatten().unwrap_or_else(|| Asked::refused(NotCoordinator)),
            Err(code) => Asked::refused(code),
        }
    }

    /// Asks every machine; there is none before there is a topic.
    pub fn ask_all(
        &self,
        request: impl Fn() -> M::Request,
    ) -> Result<Vec<Asked<M::Response>>, ErrorCode> {
        let all = |shards: &[Arc<Shard<M>>]| shards.iter().map(|s| s.ask(request())).collect();
        self.with_shards(all).map(Option::unwrap_or_default)
    }

    /// Tells every machine something, now or when it has read its records.
    pub fn tell_all(&self, request: impl Fn() -> M::Request) {
        // If there is no machine, nothing has to know.
        let _ = self.with_shards(|shards| shards.iter().for_each(|s| s.tell(request())));
    }

    /// Shows every machine that serves as it is now: what it decided may not be stored yet. Waits for
    /// nothing, and opens nothing.
    pub fn show_all(&self, mut show: impl FnMut(&M)) {
        if let Opened::Home(_, shards) = &*self.read() {
            shards.iter().for_each(|shard| shard.show(&mut show));
        }
    }

    /// Begins to read what was kept if the topic is there, and lets go of it if it is there no
    /// more. Every question does that too: this is for who would not wait for the first one.
    pub fn refresh(&self) {
        // What is in the way, the next one who asks is told.
        let _ = self.with_shards(|_| ());
    }

    /// Ends all machines: whoever waits for one is told to look for it elsewhere.
    pub fn end(&self) {
        self.write(|opened| {
            opened.end();
            Opened::Ended
        });
    }

    /// Does something with the shards as they are now; nothing if there is no topic.
    fn with_shards<T>(
        &self,
        then: impl FnOnce(&[Arc<Shard<M>>]) -> T,
    ) -> Result<Option<T>, ErrorCode> {
        match &*self.state.borrow() {
            State::Serving => {}
            State::Opening | State::Standby(_) => return Err(CoordinatorLoadInProgress),
            State::Fenced(_) | State::Failed(_) => return Err(NotCoordinator),
        }
        if !self.read().is_of(self.find()) {
            self.write(|opened| self.open(opened));
        }
        match &*self.read() {
            Opened::Home(_, shards) => Ok(Some(then(shards))),
            Opened::Nothing => Ok(None),
            Opened::Ended => Err(NotCoordinator),
        }
    }

    fn open(&self, opened: Opened<M>) -> Opened<M> {
        // Looked up again: another one may have seen a later view of the topics.
        let found = self.find();
        if opened.is_of(found) {
            return opened;
        }
        opened.end();
        let Some((topic, count)) = found else { return Opened::Nothing };
        let ids = (0..count).map(|partition| PartitionId { topic, partition });
        let shards = ids.map(|id| Shard::start(self.kind.clone(), (self.kind.journal)(id)));
        Opened::Home(topic, shards.collect())
    }

    fn find(&self) -> Option<Found> {
        match &self.home {
            Home::Topic(name) => {
                let topics = self.storage.topics();
                topics.by_name(name).map(|topic| (topic.id, topic.partitions))
            }
            Home::Store(groups) => Some((Uuid::ZERO, groups.coordinators())),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Opened<M>> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, change: impl FnOnce(Opened<M>) -> Opened<M>) {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        *opened = change(std::mem::replace(&mut opened, Opened::Nothing));
    }
}

impl<M> Opened<M>
where
    M: Machine<Request: Send, Response: Send, Record: Send, Effect: Send> + Send + 'static,
{
    fn is_of(&self, found: Option<Found>) -> bool {
        match self {
            Self::Nothing => found.is_none(),
            Self::Home(id, _) => found.is_some_and(|(found, _)| found == *id),
            Self::Ended => true,
        }
    }

    fn end(&self) {
        if let Self::Home(_, shards) = self {
            shards.iter().for_each(|shard| shard.end());
        }
    }
}

/// Which of so many partitions has a key: the hash of Java's strings, as in Kafka.
fn partition_of(key: &str, partitions: usize) -> usize {
    let add = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    let hash = key.encode_utf16().fold(0, add);
    // `Utils.abs`: the smallest number has no absolute value.
    hash.checked_abs().map_or(0, i32::unsigned_abs) as usize % partitions.max(1)
}

impl<T> Asked<T> {
    fn refused(code: ErrorCode) -> Self {
        let (answer, asked) = oneshot::channel();
        // It is not gone: it is given out below.
        let _ = answer.send(Err(code));
        Self(asked)
    }

    /// The answer, if it is there already.
    pub fn now(&mut self) -> Option<Answer<T>> {
        match self.0.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(NotCoordinator)),
        }
    }
}

impl<T> Future for Asked<T> {
    type Output = Answer<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer<T>> {
        // The engine may end first: the client looks for the coordinator anew.
        Pin::new(&mut self.0).poll(cx).map(|answer| answer.unwrap_or(Err(NotCoordinator)))
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock {
    fn now(&self) -> Now {
        let monotonic = Millis::try_from(self.0.elapsed().as_millis()).unwrap_or(Millis::MAX);
        Now { monotonic, wall: wall_clock_ms() }
    }

    /// When this clock shows `at`; `None` if that never comes.
    fn instant(&self, at: Millis) -> Option<Instant> {
        self.0.checked_add(Duration::from_millis(at.try_into().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests;
