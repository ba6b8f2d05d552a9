//! A simulation of groups: consumers, a network that loses, delays and repeats, and a coordinator
//! that crashes.
//!
//! Time is virtual and every choice is made by a seeded generator, so a seed always gives the same
//! run. After every step no partition has two owners in one generation, generations do not go
//! back, each request is answered at most once, the state is what a replay gives, and what an
//! answer told survives every crash. When nothing goes wrong any more, each group becomes stable
//! within its timeouts, with all partitions assigned and nobody waiting, and stays so.
//!
//! `KELP_SEED=n cargo test --features faults --test sim_groups replay -- --nocapture` prints the run
//! of a seed; `KELP_SEEDS=n` runs so many.
//!
//! - [`world`]: time, the network, what goes wrong;
//! - [`client`]: consumers; [`assignor`]: what their leaders do; [`topics`]: what they read;
//! - [`coordinator`]: the shard with its log and its crashes;
//! - [`tool`]: what tools ask meanwhile;
//! - [`check`]: what must hold after every step; [`settled`]: what must hold in the end;
//! - [`wrong`]: rules taken away, which must be missed.

mod assignor;
mod check;
mod client;
mod coordinator;
mod settled;
mod tool;
mod topics;
mod world;
mod wrong;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wrong::Wrong;

/// How often a run met what it is to survive.
pub(crate) type Met = BTreeMap<&'static str, u64>;

pub(crate) fn meet(met: &mut Met, kind: &'static str) {
    *met.entry(kind).or_default() += 1;
}

/// All that a run may meet and many runs must.
const KINDS: [&str; 44] = [
    "a client that gives up its session",
    "a client that is killed",
    "a client that stands still",
    "a commit before the assignment",
    "a commit of a fenced member",
    "a commit of another generation",
    "a commit of no member",
    "a crash of a stable group",
    "a crash that keeps what nobody was told of",
    "a crash that loses what nobody was told of",
    "a crash while a generation waits for its leader",
    "a crash while members join",
    "a crash with answers that wait for the log",
    "a crash with parked requests",
    "a group that becomes empty",
    "a group that is deleted",
    "a group that is full",
    "a group that is not deleted for its members",
    "a heartbeat that tells of a rebalance",
    "a join or sync that is not answered in time",
    "a leader that need not assign",
    "a leader whose topics changed",
    "a member that does not ask for its assignment",
    "a member that does not join again in time",
    "a member that gets its id first",
    "a member that joins",
    "a member that leaves",
    "a member that lets go and joins again",
    "a member that wants other topics",
    "a member whose session ends",
    "a member without the protocol of the others",
    "a request that arrives twice",
    "a request that is lost",
    "a request that is parked",
    "a static member that comes back",
    "a static member that is fenced",
    "a sync that finds a rebalance",
    "a topic that grows",
    "a topic that is deleted",
    "an answer that comes too late",
    "an answer that is lost",
    "an offset that expires",
    "an offset that is deleted",
    "an offset that is not deleted as it is read",
];

/// Without a rule, so many seeds must find a failure.
const SEEDS_WITHOUT_A_RULE: u64 = 1_000;

/// How long to go on with seeds when nobody said how many.
const BOX: Duration = Duration::from_secs(12);

/// So many are run however slow the machine is: each kind is met in them.
const LEAST_SEEDS: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn all_invariants_hold_for_every_seed() {
    let begun = Instant::now();
    let (least, most) = match number("KELP_SEEDS") {
        Some(seeds) => (seeds, seeds),
        None => (LEAST_SEEDS, u64::MAX),
    };
    let goes_on = |seed| seed < least || (seed < most && begun.elapsed() < BOX);
    let (seeds, met, failed) = run_seeds(goes_on, None);
    for (kind, times) in &met {
        println!("{times:>9}  {kind}");
    }
    println!("{seeds} seeds");
    if let Some((seed, violation)) = failed {
        panic!("KELP_SEED={seed}: {violation}");
    }
    if seeds < LEAST_SEEDS {
        return;
    }
    let missing: Vec<_> = KINDS.iter().filter(|kind| !met.contains_key(*kind)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
    let unknown: Vec<_> = met.keys().filter(|kind| !KINDS.contains(kind)).collect();
    assert!(unknown.is_empty(), "not in the list of kinds: {unknown:?}");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..20 {
        let [one, two] = [(); 2].map(|()| world::run(seed, None, false));
        assert_eq!((one.met, one.events), (two.met, two.events), "seed {seed}");
    }
}

/// Prints the run of one seed.
#[test]
fn replay() {
    let Some(seed) = number("KELP_SEED") else { return };
    let run = world::run(seed, None, true);
    println!("{:#?}", run.met);
    assert_eq!(run.violation, None);
}

#[test]
fn each_rule_that_is_taken_away_is_missed() {
    for wrong in Wrong::ALL {
        let (_, _, failed) = run_seeds(|seed| seed < SEEDS_WITHOUT_A_RULE, Some(wrong));
        let Some((seed, violation)) = failed else {
            panic!("{SEEDS_WITHOUT_A_RULE} seeds found nothing with {wrong:?}");
        };
        let violation: String = violation.chars().take(200).collect();
        println!("{wrong:?}: seed {seed}: {violation}");
    }
}

/// Runs seeds on all processors until one fails. Gives how many there were, what they met, and the
/// lowest that was seen to fail.
fn run_seeds(
    goes_on: impl Fn(u64) -> bool + Sync,
    wrong: Option<Wrong>,
) -> (u64, Met, Option<(u64, String)>) {
    let (next, stop) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || {
        let (mut count, mut met, mut failed) = (0, Met::new(), None);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= stop.load(Ordering::Relaxed) || !goes_on(seed) {
                return (count, met, failed);
            }
            let run = world::run_safely(seed, wrong);
            count += 1;
            run.met.iter().for_each(|(kind, times)| *met.entry(kind).or_default() += times);
            if let Some(violation) = run.violation {
                stop.fetch_min(seed, Ordering::Relaxed);
                failed = Some((seed, violation));
            }
        }
    };
    let done: Vec<_> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    let (mut seeds, mut all, mut lowest) = (0, Met::new(), None);
    for (count, met, failed) in done {
        seeds += count;
        met.iter().for_each(|(kind, times)| *all.entry(kind).or_default() += times);
        lowest = [lowest, failed].into_iter().flatten().min();
    }
    (seeds, all, lowest)
}
