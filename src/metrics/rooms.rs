//! What the rooms count, besides requests and clients.

use super::instrument::{Counter, Gauge, Histogram};
use super::names::{self, Family};
use super::text::Text;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections and their bytes.
#[derive(Debug, Default)]
pub struct Network {
    pub accepted: Counter,
    /// Refused as there were too many.
    pub refused: ByReason,
    pub closed: ByReason,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
}

impl Network {
    pub(super) fn write(&self, text: &mut Text) {
        text.single(&names::CONNECTIONS_ACCEPTED, self.accepted.value());
        self.refused.write(text, &names::CONNECTIONS_REFUSED);
        self.closed.write(text, &names::CONNECTIONS_CLOSED);
        text.single(&names::NETWORK_BYTES_IN, self.bytes_in.value());
        text.single(&names::NETWORK_BYTES_OUT, self.bytes_out.value());
    }
}

/// Counts by reasons, of which the code has a few. For what does not come with every request.
#[derive(Debug, Default)]
pub struct ByReason(Mutex<BTreeMap<&'static str, u64>>);

impl ByReason {
    pub fn count(&self, reason: &'static str) {
        *self.lock().entry(reason).or_default() += 1;
    }

    fn write(&self, text: &mut Text, family: &'static Family) {
        let mut series = text.family(family);
        self.lock().iter().for_each(|(reason, count)| series.add(&[reason], count));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What goes into the log and out of it.
#[derive(Debug, Default)]
pub struct Log {
    pub records_in: Counter,
    pub batches_in: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
}

impl Log {
    pub(super) fn write(&self, text: &mut Text) {
        text.single(&names::RECORDS_IN, self.records_in.value());
        text.single(&names::BATCHES_IN, self.batches_in.value());
        text.single(&names::BYTES_IN, self.bytes_in.value());
        text.single(&names::BYTES_OUT, self.bytes_out.value());
    }
}

/// The object log: its journal, the rounds that tier it, and its caches.
#[derive(Debug, Default)]
pub struct Journal {
    /// The epoch in which this process writes; 0 before it serves.
    pub epoch: Gauge,
    pub commits: Counter,
    pub commit_bytes: Counter,
    /// From when a commit is sent until it is certainly stored.
    pub commit_time: Histogram,
    /// Bytes that are not in segments yet.
    pub depth_bytes: Gauge,
    /// Bytes that wait for a commit to take them.
    pub waiting_bytes: Gauge,
    pub round_time: Histogram,
    pub batches: Arc<Cache>,
    pub indexes: Arc<Cache>,
}

/// How often a cache had what was looked for.
#[derive(Debug, Default)]
pub struct Cache {
    pub hits: Counter,
    pub misses: Counter,
    pub bytes: Gauge,
}

impl Journal {
    pub(super) fn write(&self, text: &mut Text) {
        if self.epoch.value() == 0 {
            // There is no such log, or it is not open.
            return;
        }
        text.single(&names::EPOCH, self.epoch.value());
        text.single(&names::COMMITS, self.commits.value());
        text.single(&names::COMMIT_BYTES, self.commit_bytes.value());
        text.family(&names::COMMIT_TIME).add_times(&[], &self.commit_time.show());
        text.single(&names::JOURNAL_DEPTH, self.depth_bytes.value());
        text.single(&names::JOURNAL_WAITING, self.waiting_bytes.value());
        text.family(&names::ROUND_TIME).add_times(&[], &self.round_time.show());
        let caches = [("batches", &self.batches), ("indexes", &self.indexes)];
        let mut series = text.family(&names::CACHE_HITS);
        caches.iter().for_each(|(name, cache)| series.add(&[name], cache.hits.value()));
        let mut series = text.family(&names::CACHE_MISSES);
        caches.iter().for_each(|(name, cache)| series.add(&[name], cache.misses.value()));
        let mut series = text.family(&names::CACHE_BYTES);
        caches.iter().for_each(|(name, cache)| series.add(&[name], cache.bytes.value()));
    }
}

/// The calls of a store of objects.
#[derive(Debug, Default)]
pub struct StoreCalls {
    calls: [StoreCall; Call::ALL.len()],
    pub bytes_put: Counter,
    pub bytes_got: Counter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    PutNew,
    Get,
    List,
    Delete,
}

/// The calls of one function.
#[derive(Debug, Default)]
struct StoreCall {
    time: Histogram,
    errors: Counter,
}

impl Call {
    const ALL: [Self; 4] = [Self::PutNew, Self::Get, Self::List, Self::Delete];

    fn name(self) -> &'static str {
        match self {
            Self::PutNew => "put_new",
            Self::Get => "get",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }
}

impl StoreCalls {
    pub fn count(&self, call: Call, time: Duration, is_error: bool) {
        let counted = &self.calls[call as usize];
        counted.time.observe(time);
        counted.errors.add(is_error.into());
    }

    pub(super) fn write(&self, text: &mut Text) {
        let calls = || Call::ALL.iter().map(|call| (call.name(), &self.calls[*call as usize]));
        if calls().all(|(_, call)| call.time.show().count() == 0) {
            // The host has a log of its own.
            return;
        }
        let mut series = text.family(&names::STORE_TIME);
        calls().for_each(|(name, call)| series.add_times(&[&name], &call.time.show()));
        let mut series = text.family(&names::STORE_ERRORS);
        calls().for_each(|(name, call)| series.add(&[&name], call.errors.value()));
        text.single(&names::STORE_BYTES_PUT, self.bytes_put.value());
        text.single(&names::STORE_BYTES_GOT, self.bytes_got.value());
    }
}
