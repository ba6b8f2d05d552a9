//! A simulation of the object log: processes that freeze, die and take over from each other, on a
//! store that does no more than it promised, with idempotent producers, consumers and admins.
//!
//! Same seed, same run: one thread, a paused clock, chance from the seed. A seed that fails is
//! printed; `KELP_SEED=n` runs that one only, `KELP_SEEDS=n` so many.

#![allow(unreachable_pub, reason = "a test is a crate that nobody uses")]

mod batches;
mod broker;
mod cluster;
mod events;
mod mutants;
mod objects;
mod recovery;
mod run;
mod world;

use kelp::store::objectlog::Rule;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use world::Counts;

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic of this thread since the last call. The runtime catches those of tasks.
fn take_panic() -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_run = std::thread::current().name() == Some("run");
            PANIC.with(|last| *last.borrow_mut() = Some(panic.to_string()));
            if !is_run {
                before(panic);
            }
        }));
    });
    PANIC.with(RefCell::take)
}

/// What happened in all runs together must have had each of these.
const WANTED: [&str; 28] = [
    "a batch that is acked again",
    "a commit that finds a fence",
    "a commit that was referred to and goes",
    "a crash while opening",
    "a crash while serving",
    "a delete that acts late",
    "a delete that never acts",
    "a fence that finds a commit",
    "a fence that finds a fence",
    "a log start that moves",
    "a log that is compacted",
    "a process that is killed",
    "a process that stands still",
    "a producer that does not wait",
    "a put that finds itself",
    "a put that lands after it was said to have failed",
    "a put that lands twice",
    "a put that never lands",
    "a put whose answer is lost",
    "a read that finds out about a fence",
    "a record that is compacted away",
    "a recovery that is checked",
    "a round that refers to commits",
    "a topic that is deleted",
    "an ack while there is a newer owner",
    "an entry of many that were merged",
    "an opening that begins anew",
    "an owner that is fenced",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs seeds on two threads until one fails. Gives what was met, and the lowest seed that failed.
fn run_all(seeds: std::ops::Range<u64>, off: Option<Rule>) -> (Counts, Option<(u64, String)>) {
    let next = AtomicU64::new(seeds.start);
    let (send, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (send, next, end) = (send.clone(), &next, seeds.end);
            let work = move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let result = run::run(seed, off);
                    if result.is_err() {
                        next.store(end, Ordering::Relaxed);
                    }
                    send.send((seed, result)).expect("the receiver outlives the threads");
                }
            };
            let thread = std::thread::Builder::new().name("run".into());
            thread.spawn_scoped(scope, work).expect("a thread");
        }
        drop(send);
    });
    let (mut counts, mut failed) = (BTreeMap::new(), None);
    for (seed, result) in results {
        match result {
            Ok(met) => met.into_iter().for_each(|(kind, n)| *counts.entry(kind).or_default() += n),
            Err(text) if failed.as_ref().is_none_or(|(lowest, _)| seed < *lowest) => {
                failed = Some((seed, text));
            }
            Err(_) => {}
        }
    }
    (counts, failed)
}

#[test]
fn nothing_is_lost_moved_or_used_twice_whatever_happens() {
    // A debug build is too slow for all; it still finds what happens often.
    let count = number("KELP_SEEDS").unwrap_or(if cfg!(debug_assertions) { 100 } else { 10_000 });
    let seeds = number("KELP_SEED").map_or(0..count, |seed| seed..seed + 1);
    let one = seeds.end - seeds.start == 1;
    let (counts, failed) = run_all(seeds, None);
    for (kind, n) in &counts {
        println!("{n:>9}  {kind}");
    }
    if let Some((seed, text)) = failed {
        panic!("KELP_SEED={seed}: {text}");
    }
    let missing: Vec<_> = WANTED.iter().filter(|kind| !counts.contains_key(*kind)).collect();
    assert!(one || missing.is_empty(), "never met: {missing:?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..100 {
        assert_eq!(run::run(seed, None), run::run(seed, None));
    }
}
