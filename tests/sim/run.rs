//! One run: everything that happens follows from its seed.

use crate::broker::Broker;
use crate::cluster::{Cluster, PARTITIONS};
use crate::events::Events;
use crate::objects::Disk;
use crate::recovery;
use crate::world::{Counts, World, is_compacted};
use kelp::store::objectlog::{Faults, Options, Rule};
use kelp::store::objects::Objects;
use kelp::store::objects::memory::Memory;
use kelp::store::{Owner, PartitionId};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Runs a seed; gives what it met, or what broke.
pub fn run(seed: u64, off: Option<Rule>) -> Result<Counts, String> {
    let world = World::new(seed);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    crate::take_panic();
    tracing::subscriber::with_default(Events::new(world.clone()), || {
        runtime.block_on(simulate(world.clone(), off));
        // Ends whatever is still under way.
        drop(runtime);
    });
    match world.failure().or_else(crate::take_panic) {
        Some(failure) => Err(failure),
        None => Ok(world.counts()),
    }
}

fn options(world: &World, number: u64, off: Option<Rule>) -> Options {
    let owner = Owner { address: format!("broker-{number}"), ..Owner::default() };
    let ms = |of: &[u64]| Duration::from_millis(world.pick(of).unwrap_or(0));
    Options {
        puts_in_flight: 1 + world.below(4) as usize,
        commit_bytes: world.pick(&[1, 200, 4_000]).unwrap_or(1),
        round_bytes: world.pick(&[300, 1_000, 5_000]).unwrap_or(1),
        round_interval: ms(&[150, 600, 3_000]),
        segment_bytes: world.pick(&[1, 500, 10_000]).unwrap_or(1),
        refer_bytes: world.pick(&[1, 200, 400, u64::MAX]).unwrap_or(1),
        merge_entries: world.pick(&[3, 3, 8]).unwrap_or(3),
        cache_bytes: world.pick(&[0, 2_000, 100_000]).unwrap_or(0),
        idle_look: ms(&[100, 400]),
        lag_bound: ms(&[1_500, 20_000]),
        metadata_interval: Duration::from_secs(3),
        faults: Faults { off },
        // Little is stored here, and most of it is to be in flight side by side.
        beside_bytes: world.pick(&[0, 0, 400]).unwrap_or(0),
        // A wait for a clock, which must not be what keeps data safe.
        registration: false,
        ..Options::new(1, owner)
    }
}

#[derive(Default)]
struct Clients {
    /// They end when all that they have to send is acked.
    producers: JoinSet<()>,
    others: JoinSet<()>,
}

async fn simulate(world: World, off: Option<Rule>) {
    let (cluster, disk) = (Cluster::new(world.clone()), Disk::default());
    let mut clients = Clients::default();
    tokio::join!(trouble(&cluster, &disk, off), begin(&cluster, &mut clients));
    if world.failure().is_some() {
        return;
    }
    // Calm weather: whoever comes now must serve, and all that clients want must come true.
    world.calm_down();
    let end = async {
        let done = async { while clients.producers.join_next().await.is_some() {} };
        if timeout(Duration::from_secs(300), done).await.is_err() {
            world.fail("clients do not come to their end".into());
        }
        drop(clients);
        // What is still under way from before lands.
        sleep(Duration::from_secs(12)).await;
        let owner = async {
            while cluster.serving().is_empty() {
                sleep(Duration::from_millis(100)).await;
            }
        };
        if timeout(Duration::from_secs(60), owner).await.is_err() {
            world.fail("nobody serves in the end".into());
        }
    };
    tokio::select! {
        biased;
        () = end => {}
        () = keep_up(&cluster, &disk, off) => unreachable!("it goes on for ever"),
    }
    let options = options(&world, 1000, off);
    recovery::check(&cluster, &disk, &options).await;
    if let Some(owner) = cluster.serving().into_iter().max_by_key(|broker| broker.log.epoch()) {
        compare(&cluster, &disk, &owner, &options).await;
    }
}

/// Starts a process now, and again whenever all are gone: the fence of one that died long ago may
/// land late, and is a successor like any other.
async fn keep_up(cluster: &Cluster, disk: &Disk, off: Option<Rule>) {
    for number in 900.. {
        let options = options(&cluster.world, number, off);
        cluster.add(Broker::start(&cluster.world, disk, options, u64::MAX));
        while cluster.brokers().iter().any(|broker| broker.is_up()) {
            sleep(Duration::from_millis(500)).await;
        }
    }
}

/// What the owner has in memory is what a replay gives, and all of it can be read.
async fn compare(cluster: &Cluster, disk: &Disk, owner: &Broker, options: &Options) {
    recovery::check_live(cluster, &owner.log).await;
    let memory = owner.log.committed(false);
    owner.kill();
    let objects = Arc::new(Memory::default());
    let stored = disk.lock().clone();
    for (key, bytes) in stored {
        // A copy into an empty store: whether it went well shows at once.
        let _ = objects.put_new(&key, vec![bytes]).await;
    }
    match recovery::open(objects, options).await {
        Ok(log) if log.committed(false) == memory => {}
        Ok(log) => {
            let difference = recovery::difference(&memory, &log.committed(false));
            cluster.world.fail(format!("in memory is other than in the replay: {difference}"));
        }
        Err(text) => cluster.world.fail(text),
    }
}

/// Processes come, freeze, die, and take over from each other.
async fn trouble(cluster: &Cluster, disk: &Disk, off: Option<Rule>) {
    let world = &cluster.world;
    let processes = 3 + world.below(4);
    for number in 0..processes {
        let lives = if world.one_in(3) { u64::MAX } else { 3 + world.below(300) };
        let options = options(world, number, off);
        cluster.add(Broker::start(world, disk, options.clone(), lives));
        if world.one_in(3) {
            let rival = self::options(world, 100 + number, off);
            cluster.add(Broker::start(world, disk, rival, lives));
        }
        for _ in 0..1 + world.below(4) {
            world.sleep_below(1_000).await;
            match (world.below(8), world.pick(&cluster.brokers())) {
                (0..3, Some(broker)) if !broker.is_dead() => {
                    world.count("a process that stands still");
                    broker.freeze(world.below(5_000));
                }
                (3, Some(broker)) if !broker.is_dead() => {
                    world.count("a process that is killed");
                    broker.kill();
                }
                (4..6, _) => recovery::check(cluster, disk, &options).await,
                _ => {}
            }
            if world.failure().is_some() {
                return;
            }
        }
    }
}

/// Topics are created one after the other, and clients come to each.
async fn begin(cluster: &Cluster, clients: &mut Clients) {
    let world = &cluster.world;
    for number in 1..=3 {
        let created = timeout(Duration::from_secs(8), cluster.create_topic(number)).await;
        let Ok(topic) = created else { return };
        for partition in 0..PARTITIONS {
            let id = PartitionId { topic, partition };
            for producer in 0..1 + world.below(2) {
                let producer_id =
                    i64::from(number) * 100 + i64::from(partition) * 10 + producer as i64;
                let produce = cluster.clone().produce(id, producer_id, 4 + world.below(10));
                clients.producers.spawn(produce);
            }
            clients.others.spawn(cluster.clone().consume(id));
            if is_compacted(id) {
                clients.others.spawn(cluster.clone().compact(id));
            }
            if world.one_in(2) {
                clients.others.spawn(cluster.clone().delete_records(id));
            }
        }
        world.sleep_below(2_000).await;
        if number == 2 && world.one_in(3) {
            let _ = timeout(Duration::from_secs(8), cluster.delete_topic(topic)).await;
        }
    }
}
