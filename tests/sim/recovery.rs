//! What an opener that nothing disturbs makes of the store, and what must hold of that at any time.

use crate::batches;
use crate::cluster::{Cluster, PARTITIONS};
use crate::objects::Disk;
use crate::world::{Record, Truth, is_compacted};
use kelp::protocol::wire::Uuid;
use kelp::store::objectlog::{ObjectLog, Options};
use kelp::store::objects::Objects;
use kelp::store::objects::memory::Memory;
use kelp::store::{Opened, Owner, PartitionId, State, Storage};
use std::collections::BTreeMap;
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
        merge_entries: usize::MAX,
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
    for (offset, record) in truth.known(id, 0..i64::MAX) {
        if offset >= end {
            return Err(format!("{record:?} at {offset} is above the log end {end}"));
        }
        match read.get(&offset) {
            Some(there) if *there != record => {
                return Err(format!("at {offset} is {there:?}, not {record:?}"));
            }
            None if offset >= start && !is_compacted(id) => {
                return Err(format!("{record:?} is not at {offset} any more"));
            }
            _ => {}
        }
    }
    last_of_keys(&read, truth, id, start)?;
    in_order(&read, is_compacted(id))?;
    producers(&opened, truth, id)
}

/// The last record of each key is there; but for a tombstone, and then nothing that it deleted is.
fn last_of_keys(
    read: &BTreeMap<i64, Record>,
    truth: &Truth,
    id: PartitionId,
    start: i64,
) -> Result<(), String> {
    let there = read.iter().map(|(offset, record)| (*offset, *record));
    let known = truth.known(id, start..i64::MAX).chain(there);
    let mut last = BTreeMap::new();
    for (offset, record) in known {
        let of_key = last.entry(record.key()).or_insert((offset, record));
        if offset > of_key.0 {
            *of_key = (offset, record);
        }
    }
    for (key, (offset, record)) in last {
        if read.contains_key(&offset) {
            continue;
        }
        if record.has_value() {
            return Err(format!("{record:?} at {offset} is the last of its key, and gone"));
        }
        if let Some((older, _)) = read.iter().find(|(_, older)| older.key() == key) {
            return Err(format!(
                "{record:?} at {offset} is gone before what it deleted at {older}"
            ));
        }
    }
    Ok(())
}

async fn read_all(
    log: &ObjectLog,
    id: PartitionId,
    start: i64,
    end: i64,
) -> Result<BTreeMap<i64, Record>, String> {
    let (mut next, mut all) = (start, BTreeMap::new());
    while next < end {
        let slices = log.read(id, next, 10_000, true).await;
        let slices = slices.map_err(|error| format!("{next} cannot be read: {error}"))?;
        let before = next;
        for batch in batches::read(&slices)? {
            let is_first = next == before;
            let base = batch.base_offset;
            if base > next && !is_compacted(id) || base < next && !is_first {
                return Err(format!("at {next} is a batch of {base}"));
            }
            next = batch.end_offset;
            all.extend(batch.records.into_iter().filter(|(offset, _)| *offset >= start));
        }
        if next <= before {
            return Err(format!("nothing is at {next}, and the log ends at {end}"));
        }
    }
    Ok(all)
}

/// No record is there twice, and each producer's are in their order.
fn in_order(read: &BTreeMap<i64, Record>, has_gaps: bool) -> Result<(), String> {
    let mut last = BTreeMap::new();
    for record in read.values() {
        let before = last.insert(record.producer_id, record.sequence);
        let is_next = |before| match has_gaps {
            true => record.sequence > before,
            false => record.sequence == before + 1,
        };
        if let Some(before) = before.filter(|before| !is_next(*before)) {
            return Err(format!("{record:?} stands behind {before}"));
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
