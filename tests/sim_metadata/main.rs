//! A simulation of the metadata log: gateways that share one store, which fails in every way that a
//! store may.
//!
//! Time is virtual and every choice is made by a seeded generator, so a seed always gives the same
//! run. `KELP_SEED=n cargo test --features faults --test sim_metadata replay -- --nocapture` prints
//! the run of a seed.
//!
//! - [`world`]: the store, its faults, and what has ever been in it;
//! - [`reference`]: what the log means, written a second time and simply;
//! - [`gateway`]: gateways that crash, their clients, a tierer;
//! - here: many seeds, and the runs with a rule taken away.

mod gateway;
mod reference;
mod world;

use kelp::store::objectlog::metadata::faults::Rule;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What is wrong with a run on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wrong {
    /// The rule that the metadata log does not keep.
    rule: Option<Rule>,
    /// The tierer reads the metadata before it reads the journal.
    metadata_before_journal: bool,
}

/// How often a run met what it is to survive.
pub(crate) type Met = BTreeMap<&'static str, u64>;

const SEEDS: u64 = 10_000;

/// Without a rule, so many seeds must find a failure.
const SEEDS_WITHOUT_A_RULE: u64 = 1_000;

#[test]
fn all_invariants_hold_for_every_seed() {
    let (met, failed) = run_seeds(SEEDS, Wrong::default());
    if let Some((seed, violation)) = failed {
        panic!("seed {seed}: {violation}");
    }
    println!("{SEEDS} seeds met {met:#?}");
    for kind in world::KINDS {
        assert!(met.contains_key(kind), "never met: {kind}");
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..20 {
        let [one, two] = [(); 2].map(|()| gateway::run(seed, Wrong::default(), false));
        assert_eq!(one.digest, two.digest, "seed {seed}");
    }
}

/// Prints the run of one seed.
#[test]
fn replay() {
    let Some(seed) = std::env::var("KELP_SEED").ok().and_then(|seed| seed.parse().ok()) else {
        return;
    };
    let run = gateway::run(seed, Wrong::default(), true);
    println!("{:#?}", run.met);
    assert_eq!(run.violation, None);
}

#[test]
fn a_command_without_a_number_is_applied_twice() {
    breaks_without(Rule::NumberedCommands);
}

#[test]
fn a_put_that_is_not_verified_is_acked_on_a_trimmed_seq() {
    breaks_without(Rule::VerifyAfterPut);
}

#[test]
fn a_read_that_is_not_verified_applies_what_landed_on_a_trimmed_seq() {
    breaks_without(Rule::VerifyAfterRead);
}

#[test]
fn a_list_from_before_the_put_or_read_verifies_nothing() {
    breaks_without(Rule::FreshList);
}

#[test]
fn commands_that_are_deleted_before_their_snapshot_are_lost() {
    breaks_without(Rule::SnapshotBeforeDelete);
}

#[test]
fn a_tierer_that_read_the_metadata_first_drops_a_new_topic() {
    breaks(Wrong { metadata_before_journal: true, ..Wrong::default() });
}

fn breaks_without(rule: Rule) {
    breaks(Wrong { rule: Some(rule), ..Wrong::default() });
}

fn breaks(wrong: Wrong) {
    let (_, failed) = run_seeds(SEEDS_WITHOUT_A_RULE, wrong);
    let Some((seed, violation)) = failed else {
        panic!("{SEEDS_WITHOUT_A_RULE} seeds found nothing with {wrong:?}");
    };
    println!("{wrong:?}: seed {seed}: {violation}");
}

/// Runs seeds on all processors until one fails: the lowest that was seen to.
fn run_seeds(seeds: u64, wrong: Wrong) -> (Met, Option<(u64, String)>) {
    let next = AtomicU64::new(0);
    let work = || {
        let (mut met, mut failed) = (Met::new(), None);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return (met, failed);
            }
            let run = gateway::run(seed, wrong, false);
            run.met.iter().for_each(|(kind, times)| *met.entry(kind).or_default() += times);
            if let Some(violation) = run.violation {
                failed = Some((seed, violation));
                next.store(seeds, Ordering::Relaxed);
            }
        }
    };
    let done: Vec<_> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    let mut all = Met::new();
    for (met, _) in &done {
        met.iter().for_each(|(kind, times)| *all.entry(kind).or_default() += times);
    }
    (all, done.into_iter().filter_map(|(_, failed)| failed).min())
}
