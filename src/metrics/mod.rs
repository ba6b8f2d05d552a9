//! What an engine counts, and how it tells: names, instruments, and the text that Prometheus reads.
//!
//! ```text
//!  rooms ─▶ instruments: counters, gauges, histograms ─┐
//!                                                      ├─▶ Text ─▶ kelp_metrics, a port
//!  rooms, asked at a scrape: offsets, groups, lag ─────┘
//! ```
//!
//! Nothing here is global: a [`Metrics`] belongs to its engine, and rooms get it when they are made.
//! To count is an addition or a few, without locks and allocations. Names and what they mean are in
//! one table, [`names`], which `docs/metrics.md` repeats.

mod clients;
mod instrument;
pub mod names;
mod requests;
mod rooms;
mod text;

pub use clients::{Client, Clients};
pub use instrument::{Counter, Gauge, Histogram, Shown};
pub use names::{Family, Kind};
pub use requests::{Begun, Requests};
pub use rooms::{ByReason, Cache, Call, Journal, Log, Network, StoreCalls};
pub use text::{MAX_SERIES, Text};

use std::sync::Arc;

/// The instruments of an engine. Those of the store's rooms are shared with it.
#[derive(Debug, Default)]
pub struct Metrics {
    pub requests: Requests,
    pub network: Network,
    pub clients: Arc<Clients>,
    pub log: Log,
    pub journal: Arc<Journal>,
    pub store_calls: Arc<StoreCalls>,
}

impl Metrics {
    /// Metrics for these APIs: their numbers, names and last versions.
    pub fn new(apis: impl IntoIterator<Item = (i16, String, i16)>) -> Self {
        Self { requests: Requests::new(apis), ..Self::default() }
    }

    /// Tells what was counted. `error_name` gives Kafka's name of an error code.
    pub fn write(&self, text: &mut Text, error_name: impl Fn(i16) -> String) {
        self.requests.write(text, error_name);
        self.network.write(text);
        self.clients.write(text);
        self.log.write(text);
        self.journal.write(text);
        self.store_calls.write(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::time::Instant;

    const ROUNDS: u32 = 10_000_000;

    /// What a produce of one batch counts.
    fn count_a_produce(metrics: &Metrics) {
        metrics.network.bytes_in.add(black_box(1100));
        let begun = metrics.requests.begin(black_box(0), black_box(9));
        metrics.log.records_in.add(black_box(1));
        metrics.log.batches_in.increment();
        metrics.log.bytes_in.add(black_box(1024));
        metrics.network.bytes_out.add(black_box(60));
        metrics.requests.end(begun, black_box(1), &[]);
    }

    #[test]
    #[ignore = "a measurement: cargo test --release --lib what_a_request -- --ignored --nocapture"]
    fn what_a_request_costs_to_count() {
        let metrics = Metrics::new([(0, "Produce".to_string(), 13)]);
        for threads in [1, 2, 8] {
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| (0..ROUNDS).for_each(|_| count_a_produce(&metrics)));
                }
            });
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let one_after_the_other = threads.max(processors) as u32 / processors as u32;
            let each = begun.elapsed() / ROUNDS / one_after_the_other;
            println!("{threads} threads on {processors} processors: {each:?} a request");
        }
    }
}
