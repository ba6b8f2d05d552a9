//! What an opener that nothing disturbs makes of the store, and what must hold of that at any time.

use crate::batches;
use crate::cluster::{Cluster, PARTITIONS};
use crate::objects::Disk;
use crate::world::{Sent, Truth};
use kelp::protocol::wire::Uuid;
use kelp::store::objectlog::{ObjectLog, Options};
use kelp::store::objects::Objects;
use kelp::store::objects::memory::Memory;
use kelp::store::{Opened, Owner, PartitionId, State, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Opens a copy of what is stored now, and compares it with all that anybody was ever told.
pub async fn check(cluster: &Cluster, disk: &Disk, options: &Options) {
    let (stored, truth, live) =
        (disk.lock().clone(), cluster.truth().clone(), cluster.live_topics());
    let objects = Arc::new(Memory::default());
    for (key, bytes) in stored {
        if objects.put_new(&key, vec![bytes]).await.is_err() {
            cluster.world.fail(format!("{key} cannot be copied"));
        }
    }
    let log = match open(objects.clone(), options).await {
        Ok(log) => log,
        Err(text) => return cluster.world.fail(text),
    };
    check_partitions(cluster, &log, &truth, &live).await;
    cluster.world.count("a recovery that is checked");

    let again = match open(objects, options).await {
        Ok(log) => log,
        Err(text) => return cluster.world.fail(text),
    };
    if again.committed(true) != log.committed(true) {
        let difference = difference(&log.committed(true), &again.committed(true));
        cluster.world.fail(format!("two replays differ: {difference}"));
    }
}

/// The same of an owner who serves.
pub async fn check_live(cluster: &Cluster, log: &ObjectLog) {
    let (truth, live) = (cluster.truth().clone(), cluster.live_topics());
    check_partitions(cluster, log, &truth, &live).await;
}

async fn check_partitions(cluster: &Cluster, log: &ObjectLog, truth: &Truth, live: &[Uuid]) {
    let partitions = live.iter().flat_map(|topic| {
        (0..PARTITIONS).map(|partition| PartitionId { topic: *topic, partition })
    });
    for id in partitions {
        // A topic may have been deleted since the copy.
        if let Err(text) = partition(log, truth, id).await
            && !cluster.is_deleted(id.topic)
        {
            cluster.world.fail(format!("{}-{}: {text}", id.topic.0[0], id.partition));
        }
    }
}

/// The first line that differs, with some before it.
pub fn difference(one: &str, two: &str) -> String {
    let (one, two): (Vec<_>, Vec<_>) = (one.lines().collect(), two.lines().collect());
    let at = one.iter().zip(&two).take_while(|(one, two)| one == two).count();
    let around = |lines: &[&str]| lines[at.saturating_sub(12)..lines.len().min(at + 4)].join("\n");
    format!("\n{}\nand\n{}", around(&one), around(&two))
}

/// An opener without rounds, so that it changes nothing.
pub async fn open(objects: Arc<Memory>, options: &Options) -> Result<Arc<ObjectLog>, String> {
    let never = Duration::from_secs(1_000_000);
    let options = Options {
        owner: Owner::default(),
        round_bytes: u64::MAX,
        round_interval: never,
        idle_look: never,
        lag_bound: never,
        metadata_interval: never,
        ..options.clone()
    };
    let log = ObjectLog::start(objects, options);
    let mut state = log.state();
    let opened = state.wait_for(|state| *state != State::Opening);
    match tokio::time::timeout(Duration::from_secs(1000), opened).await {
        Ok(Ok(state)) if *state == State::Serving => {}
        Ok(Ok(state)) => return Err(format!("what is stored cannot be opened: {:?}", *state)),
        _ => return Err("an undisturbed opener comes to no end".into()),
    }
    Ok(log)
}

async fn partition(log: &ObjectLog, truth: &Truth, id: PartitionId) -> Result<(), String> {
    let opened = log.open(id).await.map_err(|error| format!("it cannot be opened: {error}"))?;
    let (start, end) = (opened.log_start_offset, opened.log_end_offset);
    if start < truth.start_acked.get(&id).copied().unwrap_or(0) {
        return Err("an acked DeleteRecords is undone".into());
    }
    if start > truth.start_requested.get(&id).copied().unwrap_or(0) {
        return Err("the log start moved by itself".into());
    }
    let read = read_all(log, id, start, end).await?;
    for ((_, base), sent) in truth.told.range((id, 0)..(id, i64::MAX)) {
        let last = base + i64::from(sent.records);
        if last > end {
            return Err(format!("{sent:?} at {base} is above the log end {end}"));
        }
        if last > start && !read.contains(&(*base, *sent)) {
            return Err(format!("{sent:?} is not at {base} any more"));
        }
    }
    in_order(&read)?;
    producers(&opened, truth, id)
}

async fn read_all(
    log: &ObjectLog,
    id: PartitionId,
    start: i64,
    end: i64,
) -> Result<Vec<(i64, Sent)>, String> {
    let (mut next, mut all) = (start, Vec::new());
    while next < end {
        let slices = log.read(id, next, 10_000, true).await;
        let slices = slices.map_err(|error| format!("{next} cannot be read: {error}"))?;
        let read = batches::read(&slices)?;
        let before = next;
        for (base, sent) in read {
            if base > next || (base < next && !all.is_empty()) {
                return Err(format!("at {next} is a batch of {base}"));
            }
            next = base + i64::from(sent.records);
            all.push((base, sent));
        }
        if next <= before {
            return Err(format!("nothing is at {next}, and the log ends at {end}"));
        }
    }
    Ok(all)
}

/// No batch is there twice, and each producer's are in their order.
fn in_order(read: &[(i64, Sent)]) -> Result<(), String> {
    let ids: BTreeSet<i64> = read.iter().map(|(_, sent)| sent.producer_id).collect();
    for id in ids {
        let mut batches = read.iter().map(|(_, sent)| sent).filter(|sent| sent.producer_id == id);
        let Some(first) = batches.next() else { continue };
        let mut next = first.base_sequence + first.records;
        for sent in batches {
            if sent.base_sequence != next {
                return Err(format!("{sent:?} stands where {next} must"));
            }
            next += sent.records;
        }
    }
    Ok(())
}

/// What was acked is known, even if its records are deleted: its retry must not be stored again.
fn producers(opened: &Opened, truth: &Truth, id: PartitionId) -> Result<(), String> {
    for (_, sent) in truth.acked.keys().filter(|(partition, _)| *partition == id) {
        let producer = opened.producers.get(sent.producer_id);
        let last = producer.and_then(|p| p.batches.back()).map_or(-1, |batch| batch.last_sequence);
        if last < sent.base_sequence + sent.records - 1 {
            return Err(format!("{sent:?} was acked and is forgotten"));
        }
    }
    Ok(())
}
