//! How an object log works.

use super::Faults;
use crate::metrics;
use crate::store::Owner;
use std::sync::Arc;
use std::time::Duration;

/// Sizes and times of an object log. [`Options::new`] has what is right for a broker.
#[derive(Clone, Debug)]
pub struct Options {
    pub broker_id: i32,
    /// Who this process is: named in its fence, for those it takes over from.
    pub owner: Owner,
    /// Stands by while another process is registered. A directory has a lock instead.
    pub registration: bool,
    /// Does not stand by: takes over at once.
    pub take_over: bool,
    pub puts_in_flight: usize,
    /// A put begins beside others only if so many bytes wait, and with less waits for its riders
    /// (`riders.rs`): an object costs a filer at least as much as so many bytes do, whatever its size.
    pub beside_bytes: usize,
    /// A commit takes no more once it has so much.
    pub commit_bytes: usize,
    /// Bytes of memory that may wait for a put to begin.
    pub waiting_bytes: usize,
    /// A round begins when so much of the journal is not in segments, or after the interval.
    pub round_bytes: u64,
    pub round_interval: Duration,
    /// A segment is closed when it has so much.
    pub segment_bytes: u64,
    /// What is so large in one object of the journal is not copied into a segment, but referred to where
    /// it is. `u64::MAX`: all is copied, as also in a store that copies cheaply.
    pub refer_bytes: u64,
    /// So many small entries of a partition become one.
    pub merge_entries: usize,
    pub cache_bytes: usize,
    /// How long an owner that writes nothing goes without a look at the journal.
    pub idle_look: Duration,
    /// Nothing is served if the last look or put that succeeded began longer ago.
    pub lag_bound: Duration,
    /// How old the view of topics may become that others create and delete.
    pub metadata_interval: Duration,
    pub faults: Faults,
    /// Where it counts what it does.
    pub metrics: Arc<metrics::Journal>,
}

impl Options {
    pub fn new(broker_id: i32, owner: Owner) -> Self {
        Self {
            broker_id,
            owner,
            registration: true,
            take_over: false,
            puts_in_flight: 4,
            beside_bytes: 128 << 10,
            commit_bytes: 4 << 20,
            waiting_bytes: 256 << 20,
            // Less than is cached, so that a round finds in memory what it moves.
            round_bytes: 128 << 20,
            round_interval: Duration::from_secs(30),
            segment_bytes: 32 << 20,
            refer_bytes: 64 << 10,
            merge_entries: 8,
            cache_bytes: 256 << 20,
            idle_look: Duration::from_secs(2),
            lag_bound: Duration::from_secs(10),
            metadata_interval: Duration::from_secs(10),
            faults: Faults::default(),
            metrics: Arc::default(),
        }
    }
}
