//! The object log on a store in memory: what the seam promises, and that a restart keeps it.

use super::fence::Fence;
use super::samples::{batch, batches};
use super::*;
use crate::store::Owner;
use crate::store::objects::memory::Memory;
use crate::store::objects::{ObjectError, Put};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

const TOPIC: Uuid = Uuid([7; 16]);

fn topic() -> Topic {
    Topic { id: TOPIC, name: "clicks".into(), partitions: 2, ..Topic::default() }
}

fn partition(partition: i32) -> PartitionId {
    PartitionId { topic: TOPIC, partition }
}

fn options() -> Options {
    // Several puts are in flight also if there is little to store.
    Options { registration: false, beside_bytes: 0, ..Options::new(1, Owner::default()) }
}

async fn open(objects: &Arc<Memory>, options: Options) -> Arc<ObjectLog> {
    let log = ObjectLog::start(objects.clone(), options);
    let state = log.state().wait_for(|state| *state != State::Opening).await.unwrap().clone();
    assert_eq!(state, State::Serving);
    if log.topics().is_empty() {
        log.create_topic(topic()).await.unwrap();
    }
    log
}

async fn all(log: &ObjectLog, id: PartitionId, from: i64) -> Vec<u8> {
    log.read(id, from, usize::MAX, false).await.unwrap().concat()
}

fn bytes_of(batches: &[Batch]) -> Vec<u8> {
    batches.iter().flat_map(|b| [b.head().to_vec(), b.records().to_vec()].concat()).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_acked_is_there_after_a_restart_in_a_new_epoch() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let opened = log.open(partition(0)).await.unwrap();
    assert_eq!((opened.log_end_offset, opened.leader_epoch), (0, 1));
    let first = log.append(partition(0), 0, batches(0, &[3, 2]));
    let second = log.append(partition(0), 5, batches(5, &[1]));
    let wrong = log.append(partition(0), 5, batches(5, &[1]));
    assert_eq!(wrong.await, Err(StoreError::Conflict { log_end_offset: 6 }));
    assert_eq!((first.await, second.await), (Ok(0), Ok(5)));
    let written = bytes_of(&batches(0, &[3, 2, 1]));
    assert_eq!(all(&log, partition(0), 0).await, written);
    let committed = log.committed(true);
    log.close().await;
    drop(log);

    let log = open(&objects, options()).await;
    assert_eq!(log.committed(true), committed);
    let opened = log.open(partition(0)).await.unwrap();
    assert_eq!((opened.log_end_offset, opened.leader_epoch), (6, 2));
    assert_eq!(opened.producers.get(1000).unwrap().batches.len(), 3);
    assert_eq!(all(&log, partition(0), 0).await, written);
    assert_eq!(log.read(partition(0), 6, 100, true).await.unwrap(), Vec::<Bytes>::new());
    let outside = log.read(partition(0), 7, 100, true).await;
    assert_eq!(outside, Err(StoreError::OffsetOutOfRange));
    let unknown = log.open(PartitionId { topic: TOPIC, partition: 2 }).await;
    assert_eq!(unknown, Err(StoreError::UnknownPartition));
}

#[tokio::test(start_paused = true)]
async fn reads_give_whole_batches_up_to_the_size_and_the_first_one_if_asked() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    log.append(partition(0), 0, batches(0, &[10, 10, 10])).await.unwrap();
    let one = batches(0, &[10])[0].len();
    let len = async |offset, max, at_least_one| {
        log.read(partition(0), offset, max, at_least_one).await.unwrap().concat().len() / one
    };
    assert_eq!(len(0, one * 2, false).await, 2);
    assert_eq!(len(15, one * 9, false).await, 2, "from the batch that holds the offset");
    assert_eq!(len(0, one - 1, false).await, 0);
    assert_eq!(len(0, one - 1, true).await, 1);
    assert_eq!(len(0, one, true).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_round_moves_all_into_segments_and_leaves_only_fences_in_the_journal() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let mut written = Vec::new();
    for base in 0..50 {
        let one = vec![batch(base, 1, 1000 + base)];
        written.extend(bytes_of(&one));
        log.append(partition(0), base, one).await.unwrap();
    }
    assert_eq!(log.set_log_start(partition(0), 7).await, Ok(7));
    assert_eq!(log.set_log_start(partition(0), 3).await, Ok(7));
    assert_eq!(log.set_log_start(partition(0), 51).await, Err(StoreError::OffsetOutOfRange));
    tokio::time::sleep(Duration::from_secs(40)).await;
    let keys = objects.list("journal/", "", 100).await.unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!(objects.list("segment/", "", 100).await.unwrap().len(), 1);
    let committed = log.committed(true);
    drop(log);

    let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
    assert_eq!(log.committed(true), committed);
    let one = written.len() / 50;
    assert_eq!(all(&log, partition(0), 7).await, written[one * 7..]);
    let below = log.read(partition(0), 6, 100, true).await;
    assert_eq!(below, Err(StoreError::OffsetOutOfRange));
    assert_eq!(log.seek_time(partition(0), 1020).await, Ok(7), "the chunk's first offset");
    assert_eq!(log.seek_time(partition(0), 2000).await, Ok(50));

    // What is wholly below the log start goes with the next round; the log end stays.
    assert_eq!(log.set_log_start(partition(0), 50).await, Ok(50));
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(objects.list("segment/", "", 100).await.unwrap(), Vec::<String>::new());
    assert_eq!(objects.list("checkpoint/", "", 100).await.unwrap().len(), 1);
    drop(log);
    let log = open(&objects, options()).await;
    let opened = log.open(partition(0)).await.unwrap();
    assert_eq!((opened.log_start_offset, opened.log_end_offset), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn who_is_taken_over_acks_nothing_more_and_names_the_successor() {
    let objects = Arc::new(Memory::default());
    let old = open(&objects, options()).await;
    old.append(partition(0), 0, batches(0, &[1])).await.unwrap();
    let owner = Owner { address: "new:9092".into(), ..Owner::default() };
    let new = open(&objects, Options { owner: owner.clone(), ..options() }).await;
    assert_eq!(old.append(partition(0), 1, batches(1, &[1])).await, Err(StoreError::Fenced));
    assert_eq!(*old.state().borrow(), State::Fenced(owner));
    assert_eq!(old.read(partition(0), 0, 100, true).await, Err(StoreError::Fenced));
    new.append(partition(0), 1, batches(1, &[1])).await.unwrap();

    // The new one is idle when a third comes: it looks by itself.
    let _third = open(&objects, options()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(matches!(*new.state().borrow(), State::Fenced(_)));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_producer_is_known_again_by_what_it_appends_then() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let known = async |log: &ObjectLog| {
        let producers = log.open(partition(0)).await.unwrap().producers;
        producers.get(1000).map_or(0, |producer| producer.batches.len())
    };
    log.append(partition(0), 0, batches(0, &[1, 1])).await.unwrap();
    log.forget_producers(partition(0), &[7, 1000]);
    log.forget_producers(partition(1), &[1000]);
    assert_eq!(known(&log).await, 0);
    log.append(partition(0), 2, batches(2, &[1])).await.unwrap();
    assert_eq!(known(&log).await, 1);
    drop(log);

    let log = open(&objects, options()).await;
    assert_eq!(known(&log).await, 3, "the journal has it all");
    log.forget_producers(partition(0), &[1000]);
    log.append(partition(0), 3, batches(3, &[1])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let committed = log.committed(true);
    drop(log);
    let log = open(&objects, options()).await;
    assert_eq!((known(&log).await, log.committed(true)), (1, committed), "and a checkpoint not");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_takes_its_segments_with_it() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    log.append(partition(1), 0, batches(0, &[4])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(objects.list("segment/", "", 100).await.unwrap().len(), 1);
    log.delete_topic(TOPIC).await.unwrap();
    let refused = log.append(partition(1), 4, batches(4, &[4])).await;
    assert_eq!(refused, Err(StoreError::UnknownPartition));
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(objects.list("segment/", "", 100).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_second_process_stands_by_until_the_first_is_done() {
    let objects = Arc::new(Memory::default());
    let owner = |host: &str| Owner { host: host.into(), ..Owner::default() };
    let registered = |host| Options { registration: true, ..Options::new(1, owner(host)) };
    let first = open(&objects, registered("one")).await;
    first.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    let second = ObjectLog::start(objects.clone(), registered("two"));
    let mut state = second.state();
    state.wait_for(|state| *state == State::Standby(owner("one"))).await.unwrap();
    assert!(matches!(second.open(partition(0)).await, Err(StoreError::Unavailable(_))));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*second.state().borrow(), State::Standby(owner("one")));
    first.append(partition(0), 3, batches(3, &[1])).await.unwrap();

    first.close().await;
    let released = tokio::time::Instant::now();
    state.wait_for(|state| *state == State::Serving).await.unwrap();
    assert!(released.elapsed() < Duration::from_secs(2));
    assert_eq!(second.open(partition(0)).await.unwrap().log_end_offset, 4);

    // Told to take over, a third one waits for nothing.
    let third = Options { take_over: true, ..registered("three") };
    let _third = open(&objects, third).await;
    state.wait_for(|state| *state == State::Fenced(owner("three"))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_arrives_while_puts_are_in_flight_is_one_commit() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { puts_in_flight: 1, ..options() }).await;
    let appends: Vec<_> =
        (0..100).map(|base| log.append(partition(0), base, batches(base, &[1]))).collect();
    for (base, append) in (0..).zip(appends) {
        assert_eq!(append.await, Ok(base));
    }
    // All were submitted before the writer came to its turn: nothing was in flight yet, and so
    // they are one object, besides the fence.
    assert_eq!(objects.list("journal/", "", 100).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fence_where_a_frame_was_deleted_is_not_the_frame() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
    log.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    let key = "journal/1/0000000001/00000000000000000000";
    let frame = objects.get(key, 0, u64::MAX).await.unwrap().unwrap();
    objects.delete(vec![key.into()]).await.unwrap();
    let at = keys::Position { epoch: 1, seq: 0 };
    let fence = Fence { next_epoch: 2, owner: Owner::default() };
    let fence = fence.encode(at, 9);
    objects.put_new(key, vec![fence]).await.unwrap();
    assert_eq!(log.read(partition(0), 0, 100, true).await, Err(StoreError::Fenced));

    // Bytes that are wrong are not taken for a successor's doing.
    objects.delete(vec![key.into()]).await.unwrap();
    objects.put_new(key, vec![frame.slice(..frame.len() - 1)]).await.unwrap();
    let corrupt = log.read(partition(0), 0, 100, true).await;
    assert_eq!(corrupt, Err(StoreError::Corrupt(format!("{key}: a batch that is cut short"))));
}

/// It put that one when it began to open, and then began anew. Others go on behind it.
#[tokio::test(start_paused = true)]
async fn a_fence_of_its_own_at_the_next_place_ends_an_owner() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let at = keys::Position { epoch: 1, seq: 0 };
    let fence = Fence { next_epoch: 2, owner: Owner::default() };
    let fence = fence.encode(at, log.shared.nonce);
    let key = "journal/1/0000000001/00000000000000000000";
    objects.put_new(key, vec![fence]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(*log.state().borrow(), State::Fenced(Owner::default()));
    assert_eq!(log.read(partition(0), 0, 100, true).await, Err(StoreError::Fenced));
}

#[tokio::test(start_paused = true)]
async fn everybody_who_waits_learns_of_the_successor() {
    let objects = Arc::new(Memory::default());
    let old = open(&objects, Options { puts_in_flight: 1, commit_bytes: 1, ..options() }).await;
    let _new = open(&objects, options()).await;
    let appends: Vec<_> =
        (0..50).map(|base| old.append(partition(0), base, batches(base, &[1]))).collect();
    let opening = old.open(partition(0));
    for append in appends {
        assert_eq!(append.await, Err(StoreError::Fenced));
    }
    assert_eq!(opening.await, Err(StoreError::Fenced));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_a_failure_and_not_the_end() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    log.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    log.close().await;
    let key = "journal/1/0000000001/00000000000000000000";
    objects.delete(vec![key.into()]).await.unwrap();
    objects.put_new(key, vec![Bytes::from_static(b"KELP")]).await.unwrap();
    let log = ObjectLog::start(objects.clone(), options());
    let mut state = log.state();
    let failed = state.wait_for(|state| *state != State::Opening).await.unwrap().clone();
    assert!(matches!(failed, State::Failed(text) if text.contains(key)));
    assert_eq!(objects.list("journal/1/0000000001/", "", 9).await.unwrap().len(), 1, "no fence");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_several_threads_every_reader_gets_every_batch_once_and_in_order() {
    const COUNT: i64 = 500;
    let objects = Arc::new(Memory::default());
    let small = Options {
        round_bytes: 20_000,
        round_interval: Duration::from_millis(20),
        segment_bytes: 10_000,
        cache_bytes: 20_000,
        ..options()
    };
    let log = open(&objects, small).await;
    let mut tasks = JoinSet::new();
    for partition in [partition(0), partition(1)] {
        let writer = log.clone();
        tasks.spawn(async move {
            for base in (0..COUNT).step_by(5) {
                let appends: Vec<_> = (base..base + 5)
                    .map(|base| writer.append(partition, base, batches(base, &[1])))
                    .collect();
                for (base, append) in (base..).zip(appends) {
                    assert_eq!(append.await, Ok(base));
                }
            }
        });
        for max_bytes in [1, 500, 100_000] {
            let reader = log.clone();
            tasks.spawn(async move {
                let mut next = 0;
                while next < COUNT {
                    let slices = reader.read(partition, next, max_bytes, true).await.unwrap();
                    let mut bytes = Bytes::from(slices.concat());
                    while let Some(batch) = Batch::split_off(&mut bytes) {
                        assert_eq!(batch.header.base_offset, next);
                        next += 1;
                    }
                    assert!(bytes.is_empty());
                    tokio::task::yield_now().await;
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let committed = log.committed(false);
    log.close().await;
    let log = open(&objects, options()).await;
    assert_eq!(log.committed(false), committed);
    assert_eq!(all(&log, partition(1), 0).await, bytes_of(&batches(0, &[1; COUNT as usize])));
}

#[tokio::test(start_paused = true)]
async fn a_close_carries_out_what_was_submitted_and_takes_no_more() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { commit_bytes: 1, ..options() }).await;
    let appends: Vec<_> =
        (0..50).map(|base| log.append(partition(0), base, batches(base, &[1]))).collect();
    log.close().await;
    for (base, append) in (0..).zip(appends) {
        assert_eq!(append.await, Ok(base));
    }
    let late = log.append(partition(0), 50, batches(50, &[1])).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))));
    let log = open(&objects, options()).await;
    assert_eq!(log.open(partition(0)).await.unwrap().log_end_offset, 50);
}

#[tokio::test(start_paused = true)]
async fn an_append_of_nothing_is_refused_and_stores_nothing() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let nothing = log.append(partition(0), 0, Vec::new()).await;
    assert!(matches!(nothing, Err(StoreError::Corrupt(_))));
    assert_eq!(log.append(partition(0), 0, batches(0, &[2])).await, Ok(0));
    log.close().await;
    let log = open(&objects, options()).await;
    assert_eq!(log.open(partition(0)).await.unwrap().log_end_offset, 2);
}

#[tokio::test(start_paused = true)]
async fn log_starts_that_wait_to_be_stored_are_bounded_too() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { waiting_bytes: 10_000, ..options() }).await;
    log.append(partition(0), 0, batches(0, &[9])).await.unwrap();
    // All are submitted before the writer comes to its turn.
    let mut moves = JoinSet::new();
    for _ in 0..1_000 {
        let log = log.clone();
        moves.spawn(async move { log.set_log_start(partition(0), 5).await });
    }
    let answers = moves.join_all().await;
    let moved = answers.iter().filter(|answer| **answer == Ok(5)).count();
    assert!(moved > 0 && moved < 100, "{moved} were taken");
    let refused = |answer: &Result<i64>| matches!(answer, Ok(5) | Err(StoreError::Unavailable(_)));
    assert!(answers.iter().all(refused));
}

#[tokio::test(start_paused = true)]
async fn behind_a_refused_append_nothing_is_appended_before_its_caller_knows() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    log.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    let conflict = Err(StoreError::Conflict { log_end_offset: 3 });
    let refused = log.append(partition(0), 1, batches(1, &[2]));
    let behind = log.append(partition(0), 3, batches(3, &[1]));
    let elsewhere = log.append(partition(1), 0, batches(0, &[1]));
    assert_eq!(elsewhere.await, Ok(0));
    assert_eq!((refused.await, behind.await), (conflict.clone(), conflict));
    assert_eq!(log.append(partition(0), 3, batches(3, &[1])).await, Ok(3));

    // What was refused with the first one holds up nobody.
    let refused = log.append(partition(0), 9, batches(9, &[1]));
    let _with_it = log.append(partition(0), 10, batches(10, &[1]));
    assert_eq!(refused.await, Err(StoreError::Conflict { log_end_offset: 4 }));
    assert_eq!(log.append(partition(0), 4, batches(4, &[1])).await, Ok(4));

    // Who drops a refusal does not wait for it.
    drop(log.append(partition(0), 9, batches(9, &[1])));
    assert_eq!(log.append(partition(0), 5, batches(5, &[1])).await, Ok(5));
}

#[tokio::test(start_paused = true)]
async fn two_logs_of_the_same_options_are_told_apart() {
    let objects = Arc::new(Memory::default());
    let options = options();
    let old = open(&objects, options.clone()).await;
    let new = open(&objects, options).await;
    assert_eq!(old.append(partition(0), 0, batches(0, &[1])).await, Err(StoreError::Fenced));
    assert_eq!(new.append(partition(0), 0, batches(0, &[1])).await, Ok(0));
    let mut nonces = Vec::new();
    for epoch in 0..2 {
        let key = format!("journal/1/{epoch:010}/{:020}", 0);
        let fence = objects.get(&key, 0, u64::MAX).await.unwrap().unwrap();
        nonces.push(format::Header::read(&fence).unwrap().0.nonce);
    }
    assert_ne!(nonces[0], nonces[1]);
}

#[tokio::test(start_paused = true)]
async fn bytes_of_the_journal_that_were_damaged_are_neither_read_nor_tiered() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { cache_bytes: 0, segment_bytes: 1, ..options() }).await;
    log.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    log.append(partition(1), 0, batches(0, &[3])).await.unwrap();
    let key = "journal/1/0000000001/00000000000000000001";
    let mut frame = objects.get(key, 0, u64::MAX).await.unwrap().unwrap().to_vec();
    *frame.last_mut().unwrap() ^= 1;
    objects.delete(vec![key.into()]).await.unwrap();
    objects.put_new(key, vec![frame.into()]).await.unwrap();
    let damaged = log.read(partition(1), 0, 100, true).await;
    let text = format!("{key}: a batch's checksum is wrong");
    assert_eq!(damaged, Err(StoreError::Corrupt(text)));
    tokio::time::sleep(Duration::from_secs(400)).await;
    let segments = objects.list("segment/", "", 100).await.unwrap();
    assert!(segments.is_empty(), "no round came to its end: {segments:?}");
    assert!(objects.get(key, 0, 1).await.unwrap().is_some(), "nothing takes its place");
}

#[tokio::test(start_paused = true)]
async fn who_is_closed_while_it_opens_leaves_no_registration_behind() {
    let objects = Arc::new(Unreadable::default());
    let log = ObjectLog::start(objects.clone(), Options { registration: true, ..options() });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(*log.state().borrow(), State::Opening);
    let registered = async || objects.list("registration/", "", 9).await.unwrap().len();
    assert_eq!(registered().await, 1);
    log.close().await;
    assert_eq!(registered().await, 0);
    log.close().await;
}

/// Writes down what it is asked for, by call and folder.
#[derive(Default)]
struct Counted {
    memory: Memory,
    calls: Mutex<BTreeMap<(&'static str, String), usize>>,
}

impl Counted {
    fn count(&self, call: &'static str, key: &str) {
        let folder = key.split('/').next().unwrap_or_default().to_owned();
        *self.calls.lock().unwrap().entry((call, folder)).or_default() += 1;
    }
}

#[async_trait::async_trait]
impl Objects for Counted {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        self.count("put_new", key);
        self.memory.put_new(key, parts).await
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        self.count("get", key);
        self.memory.get(key, offset, len).await
    }

    async fn list(&self, p: &str, after: &str, limit: usize) -> Result<Vec<String>, ObjectError> {
        self.count("list", p);
        self.memory.list(p, after, limit).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.count("delete", keys.first().map_or("", String::as_str));
        self.memory.delete(keys).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_log_asks_for_no_more_than_is_documented() {
    let objects = Arc::new(Counted::default());
    let log = ObjectLog::start(objects.clone(), Options { registration: true, ..options() });
    log.state().wait_for(|state| *state == State::Serving).await.unwrap();
    log.create_topic(topic()).await.unwrap();
    log.append(partition(0), 0, batches(0, &[3])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    objects.calls.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let calls = std::mem::take(&mut *objects.calls.lock().unwrap());
    let about = |call, folder: &str, count: usize| {
        let n = calls.get(&(call, folder.to_owned())).copied().unwrap_or_default();
        assert!(n.abs_diff(count) <= 2, "{call} {folder}: {n}, not {count}");
    };
    about("get", "journal", 300);
    for call in ["put_new", "list", "delete"] {
        about(call, "registration", 200);
    }
    about("get", "metadata", 60);
    about("list", "metadata", 60);
    assert_eq!(calls.len(), 6, "{calls:?}");
}

/// A store that fails every read of the journal, and counts them.
#[derive(Default)]
struct Unreadable {
    memory: Memory,
    reads: AtomicUsize,
}

#[async_trait::async_trait]
impl Objects for Unreadable {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        self.memory.put_new(key, parts).await
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        if !key.starts_with("journal/") {
            return self.memory.get(key, offset, len).await;
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        Err(ObjectError("it is away".into()))
    }

    async fn list(&self, p: &str, after: &str, limit: usize) -> Result<Vec<String>, ObjectError> {
        self.memory.list(p, after, limit).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.memory.delete(keys).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_opening_asks_a_store_that_is_away_less_and_less_often() {
    let objects = Arc::new(Unreadable::default());
    let _log = ObjectLog::start(objects.clone(), options());
    tokio::time::sleep(Duration::from_secs(100)).await;
    let reads = objects.reads.load(Ordering::Relaxed);
    assert!((90..120).contains(&reads), "{reads}");
}

/// Leaves out the batches at these offsets.
struct Without(Vec<i64>);

#[async_trait::async_trait]
impl Filter for Without {
    async fn filter(&mut self, mut batches: Vec<Batch>) -> Result<Vec<Batch>> {
        batches.retain(|batch| !self.0.contains(&batch.header.base_offset));
        Ok(batches)
    }
}

/// The base offset and the number of records of each batch that is read.
async fn read_at(log: &ObjectLog, offset: i64) -> Vec<(i64, i32)> {
    let slices = log.read(partition(0), offset, usize::MAX, true).await.unwrap();
    let batches = crate::record::batch::Batches::new(slices);
    batches.map(|batch| (batch.header.base_offset, batch.header.record_count)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_rewritten_keeps_its_offsets_and_its_end_and_so_it_is_after_a_restart() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    for base in [0, 10, 20] {
        log.append(partition(0), base, batches(base, &[5, 5])).await.unwrap();
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    let layout = Storage::layout(&*log, partition(0)).unwrap().unwrap();
    let ends: Vec<_> = layout.parts.iter().map(|part| part.end_offset).collect();
    assert_eq!((ends, layout.clean_end_offset), (vec![10, 20, 30], 0));
    let bytes = layout.bytes();

    log.rewrite(partition(0), 30, &mut Without(vec![0, 5, 10, 25])).await.unwrap();
    let layout = Storage::layout(&*log, partition(0)).unwrap().unwrap();
    assert_eq!((layout.parts.len(), layout.clean_end_offset), (1, 30));
    assert!(layout.bytes() < bytes / 2);
    let left = [(15, 5), (20, 5), (25, 0)];
    for offset in [0, 12, 19] {
        assert_eq!(read_at(&log, offset).await, left, "from {offset}");
    }
    assert_eq!(read_at(&log, 21).await, left[1..]);
    assert_eq!(read_at(&log, 29).await, left[2..], "so that a reader comes to the end");
    let mut settled = log.read_settled(partition(0), 17).await.unwrap().unwrap();
    assert_eq!((settled.0.remove(0).header.base_offset, settled.1), (15, 30));
    assert!(log.read_settled(partition(0), 30).await.unwrap().is_none());

    log.append(partition(0), 30, batches(30, &[1])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let segments = objects.list("segment/", "", 100).await.unwrap();
    assert_eq!(segments.len(), 2, "what was replaced is gone: {segments:?}");
    let committed = log.committed(true);
    drop(log);

    let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
    assert_eq!(log.committed(true), committed);
    assert_eq!(read_at(&log, 3).await, [&left[..], &[(30, 1)]].concat());
}

#[tokio::test(start_paused = true)]
async fn a_rewriting_that_finds_nothing_to_do_puts_nothing() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    log.append(partition(0), 0, batches(0, &[5, 5])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let before = objects.list("segment/", "", 100).await.unwrap();
    log.rewrite(partition(0), 10, &mut Without(vec![])).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(objects.list("segment/", "", 100).await.unwrap(), before);
    assert_eq!(Storage::layout(&*log, partition(0)).unwrap().unwrap().clean_end_offset, 10);
}

#[tokio::test(start_paused = true)]
async fn small_entries_become_one_and_their_objects_go() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let mut written = Vec::new();
    for base in 0..20 {
        let one = batches(base, &[1]);
        written.extend(bytes_of(&one));
        log.append(partition(0), base, one).await.unwrap();
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    let layout = Storage::layout(&*log, partition(0)).unwrap().unwrap();
    assert!(layout.parts.len() < 9, "{:?}", layout.parts);
    let segments = objects.list("segment/", "", 100).await.unwrap();
    assert!(segments.len() < 9, "{segments:?}");
    assert_eq!(all(&log, partition(0), 0).await, written);
}

/// A batch of its own with one long record.
fn long(base_offset: i64, bytes: usize) -> Vec<Batch> {
    let value = "v".repeat(bytes);
    let mut batch = crate::record::testing::Draft::of(&[value.as_str()]).batch();
    batch.stamp(base_offset, 1);
    vec![batch]
}

#[tokio::test(start_paused = true)]
async fn what_lives_on_in_an_object_that_is_mostly_dead_moves_once() {
    let objects = Arc::new(Counted::default());
    let log = ObjectLog::start(objects.clone(), options());
    log.state().wait_for(|state| *state == State::Serving).await.unwrap();
    log.create_topic(topic()).await.unwrap();
    let live = long(0, 100_000);
    log.append(partition(0), 0, live.clone()).await.unwrap();
    log.append(partition(1), 0, long(0, 2 << 20)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let both = objects.memory.list("segment/", "", 9).await.unwrap();
    assert_eq!(both.len(), 1);
    assert_eq!(log.set_log_start(partition(1), 1).await, Ok(1));
    // The first round takes the dead entry out, the next one the object.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let moved = objects.memory.list("segment/", "", 9).await.unwrap();
    assert!(moved.len() == 1 && moved != both, "{moved:?}");
    assert_eq!(all(&log, partition(0), 0).await, bytes_of(&live));
    objects.calls.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(100)).await;
    let calls = objects.calls.lock().unwrap();
    assert!(calls.keys().all(|(_, folder)| folder != "segment"), "{calls:?}");
}

/// A store whose reads of segments and puts of journal objects wait until they are let through.
#[derive(Default)]
struct Gated {
    memory: Memory,
    gate: watch::Sender<bool>,
    puts_are_gated: bool,
    /// Puts of journal objects that were begun.
    puts: AtomicUsize,
}

impl Gated {
    async fn passed(&self) {
        self.gate.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    }
}

#[async_trait::async_trait]
impl Objects for Gated {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        if self.puts_are_gated && key.starts_with("journal/") {
            self.puts.fetch_add(1, Ordering::Relaxed);
            self.passed().await;
        }
        self.memory.put_new(key, parts).await
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        if key.starts_with("segment/") {
            self.passed().await;
        }
        self.memory.get(key, offset, len).await
    }

    async fn list(&self, p: &str, after: &str, limit: usize) -> Result<Vec<String>, ObjectError> {
        self.memory.list(p, after, limit).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.memory.delete(keys).await
    }
}

/// A log in which less than a thousand bytes are little, on a store whose gate is open.
async fn gated() -> (Arc<Gated>, Arc<ObjectLog>) {
    let objects = Arc::new(Gated { puts_are_gated: true, ..Gated::default() });
    objects.gate.send_replace(true);
    let log = ObjectLog::start(objects.clone(), Options { beside_bytes: 1_000, ..options() });
    log.state().wait_for(|state| *state == State::Serving).await.unwrap();
    log.create_topic(topic()).await.unwrap();
    (objects, log)
}

#[tokio::test(start_paused = true)]
async fn little_waits_for_the_put_in_flight_and_much_does_not() {
    let (objects, log) = gated().await;
    objects.gate.send_replace(false);
    let before = objects.puts.load(Ordering::Relaxed);
    let begun = async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        objects.puts.load(Ordering::Relaxed) - before
    };
    let first = log.append(partition(0), 0, batches(0, &[1]));
    assert_eq!(begun().await, 1);
    let little = log.append(partition(0), 1, batches(1, &[1]));
    assert_eq!(begun().await, 1);
    let much = log.append(partition(0), 2, batches(2, &[1; 20]));
    assert_eq!(begun().await, 2, "with what waited");
    let last = log.append(partition(0), 22, batches(22, &[1]));
    assert_eq!(begun().await, 2);
    objects.gate.send_replace(true);
    assert_eq!((first.await, little.await, much.await, last.await), (Ok(0), Ok(1), Ok(2), Ok(22)));
    assert_eq!(begun().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_little_commit_waits_a_moment_for_those_who_were_answered() {
    let (objects, log) = gated().await;
    let puts = || objects.puts.load(Ordering::Relaxed);
    let append = |client, base| log.append(partition(client), base, batches(base, &[1]));
    // Two requests that do not meet: the first is answered while the second waits.
    let apart = async |base| {
        objects.gate.send_replace(false);
        let first = append(0, base);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let second = append(1, base);
        objects.gate.send_replace(true);
        assert_eq!(first.await, Ok(base));
        (second, Instant::now())
    };

    let before = puts();
    let (second, begun) = apart(0).await;
    let again = append(0, 1);
    assert_eq!((second.await, again.await), (Ok(0), Ok(1)));
    assert_eq!(puts() - before, 2, "they ride together");
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits when all are there");
    assert_eq!(append(1, 1).await, Ok(1));

    let (second, begun) = apart(2).await;
    assert_eq!(second.await, Ok(2));
    let waited = begun.elapsed();
    assert!(!waited.is_zero() && waited < Duration::from_millis(3), "it waited {waited:?} in vain");

    let (second, begun) = apart(3).await;
    log.close().await;
    assert_eq!(second.await, Ok(3));
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody comes after the end");
}

#[tokio::test(start_paused = true)]
async fn what_goes_while_it_is_rewritten_ends_nothing_but_its_job() {
    let objects = Arc::new(Gated::default());
    let log = ObjectLog::start(objects.clone(), options());
    log.state().wait_for(|state| *state == State::Serving).await.unwrap();
    log.create_topic(topic()).await.unwrap();
    let next = Cell::new(0);
    let rounds = async |count: i64| {
        for base in next.get()..next.get() + count {
            log.append(partition(0), base, batches(base, &[1])).await.unwrap();
            tokio::time::sleep(Duration::from_secs(40)).await;
        }
        next.set(next.get() + count);
    };
    // Enough that they are merged, which waits at the gate; then they go.
    rounds(8).await;
    assert_eq!(log.set_log_start(partition(0), 8).await, Ok(8));
    rounds(1).await;
    let left = objects.memory.list("segment/", "", 99).await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    objects.gate.send_replace(true);
    rounds(20).await;
    let parts = layout_of(&log).parts;
    assert!(parts.len() < 9, "{parts:?}");

    // The same of a compaction, which goes on with what is left.
    objects.gate.send_replace(false);
    let (compacting, end) = (log.clone(), next.get());
    let compaction = tokio::spawn(async move {
        compacting.rewrite(partition(0), end, &mut Without((0..end).collect())).await
    });
    rounds(1).await;
    let parts = layout_of(&log).parts;
    assert_eq!(log.set_log_start(partition(0), parts[0].end_offset).await, Ok(parts[0].end_offset));
    rounds(2).await;
    objects.gate.send_replace(true);
    assert_eq!(compaction.await.unwrap(), Ok(()));
    assert_eq!(layout_of(&log).clean_end_offset, end);
    let mut left = read_at(&log, parts[0].end_offset).await;
    left.retain(|(_, count)| *count > 0);
    assert_eq!(left, [(end, 1), (end + 1, 1), (end + 2, 1)]);
}

fn layout_of(log: &ObjectLog) -> Layout {
    Storage::layout(log, partition(0)).unwrap().unwrap()
}

/// The keys below a prefix, and the bytes of their objects together.
async fn stored(objects: &Memory, prefix: &str) -> (Vec<String>, usize) {
    let keys = objects.list(prefix, "", 1_000).await.unwrap();
    let mut bytes = 0;
    for key in &keys {
        bytes += objects.get(key, 0, u64::MAX).await.unwrap().unwrap().len();
    }
    (keys, bytes)
}

/// Ten commits of 300 KB with a little one behind each.
async fn write_large(log: &ObjectLog) -> (Vec<u8>, Vec<u8>) {
    let (mut large, mut little) = (Vec::new(), Vec::new());
    for base in 0..10 {
        let batches = long(base, 300_000);
        large.extend(bytes_of(&batches));
        log.append(partition(0), base, batches).await.unwrap();
        let batches = long(base, 100);
        little.extend(bytes_of(&batches));
        log.append(partition(1), base, batches).await.unwrap();
    }
    (large, little)
}

#[tokio::test(start_paused = true)]
async fn what_is_large_stays_in_the_journal_as_long_as_the_list_names_it() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let (large, little) = write_large(&log).await;
    let check = async |log: &ObjectLog| {
        assert_eq!(all(log, partition(0), 0).await, large);
        assert_eq!(all(log, partition(0), 7).await, large[large.len() / 10 * 7..]);
        assert_eq!(all(log, partition(1), 0).await, little);
    };
    let (journal, journal_bytes) = stored(&objects, "journal/").await;
    assert_eq!(journal.len(), 21);
    check(&log).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (segments, segment_bytes) = stored(&objects, "segment/").await;
    assert!(segments.len() == 1 && segment_bytes < 4_096, "{segment_bytes}");
    let (kept, kept_bytes) = stored(&objects, "journal/").await;
    assert!(kept.len() == 11 && kept_bytes > journal_bytes - 3_000, "{kept:?}");
    check(&log).await;
    let layout = layout_of(&log);
    assert_eq!((layout.bytes() as usize, layout.parts.len()), (large.len(), 1));
    let committed = log.committed(true);
    drop(log);

    // Who opens looks for orphans with its first round, and with that takes in what is new.
    for cache_bytes in [0, 256 << 20] {
        let log = open(&objects, Options { cache_bytes, ..options() }).await;
        assert_eq!(log.committed(true), committed);
        check(&log).await;
        tokio::time::sleep(Duration::from_secs(40)).await;
        check(&log).await;
        let (left, _) = stored(&objects, "journal/").await;
        assert!(kept.iter().all(|key| left.contains(key)), "{left:?}");
    }

    let log = open(&objects, options()).await;
    assert_eq!(log.set_log_start(partition(0), 10).await, Ok(10));
    // The first round takes the dead entry out; then the little ones move, and all else goes.
    tokio::time::sleep(Duration::from_secs(200)).await;
    let (fences, _) = stored(&objects, "journal/").await;
    assert_eq!(fences.len(), 4, "{fences:?}");
    assert_eq!(all(&log, partition(1), 0).await, little);
    let (moved, _) = stored(&objects, "segment/").await;
    assert!(moved.len() == 1 && moved != segments, "{moved:?}");
    log.delete_topic(TOPIC).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(stored(&objects, "segment/").await.0, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_is_referred_to_stays_in_memory() {
    let objects = Arc::new(Counted::default());
    let log = ObjectLog::start(objects.clone(), options());
    log.state().wait_for(|state| *state == State::Serving).await.unwrap();
    log.create_topic(topic()).await.unwrap();
    let (large, _) = write_large(&log).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (journal, _) = stored(&objects.memory, "journal/").await;
    assert_eq!(journal.len(), 11);
    objects.calls.lock().unwrap().clear();
    assert_eq!(all(&log, partition(0), 0).await, large);
    let rest = log.read(partition(0), 3, 1_000_000, true).await.unwrap().concat();
    assert_eq!(rest, large[large.len() / 10 * 3..large.len() / 10 * 6]);
    assert!(objects.calls.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_referred_to_if_that_is_turned_off() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { refer_bytes: u64::MAX, ..options() }).await;
    let (large, _) = write_large(&log).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stored(&objects, "journal/").await.0.len(), 1);
    let (_, segment_bytes) = stored(&objects, "segment/").await;
    assert!(segment_bytes > large.len());
    let (checkpoints, _) = stored(&objects, "checkpoint/").await;
    let checkpoint = objects.get(&checkpoints[0], 4, 2).await.unwrap().unwrap();
    assert_eq!(checkpoint[..], [0, 1], "as it was before there was anything to refer to");
}

#[tokio::test(start_paused = true)]
async fn frames_of_one_commit_are_referred_to_together_and_read_without_what_is_between() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { puts_in_flight: 1, ..options() }).await;
    let mut appends = JoinSet::new();
    let mut written = [Vec::new(), Vec::new()];
    for base in 0..50 {
        for number in [1, 0] {
            let batches = long(base, 2_000 + base as usize);
            written[number as usize].extend(bytes_of(&batches));
            appends.spawn(log.append(partition(number), base, batches));
        }
    }
    assert!(appends.join_all().await.iter().all(Result::is_ok));
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stored(&objects, "journal/").await.0.len(), 2);
    assert!(stored(&objects, "segment/").await.1 < 1_000);
    drop(log);
    for cache_bytes in [0, 256 << 20] {
        let log = open(&objects, Options { cache_bytes, ..options() }).await;
        for number in [0, 1] {
            let bytes = &written[number as usize];
            assert_eq!(all(&log, partition(number), 0).await, *bytes);
            let last = log.read(partition(number), 49, 1, true).await.unwrap().concat();
            assert!(bytes.ends_with(&last) && (2_049..2_200).contains(&last.len()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_referred_to_is_compacted_like_all_else_and_then_goes() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, options()).await;
    let (_, little) = write_large(&log).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let mut read = Vec::new();
    let mut at = 0;
    while let Some((batches, next)) = log.read_settled(partition(0), at).await.unwrap() {
        read.extend(batches.iter().map(|batch| batch.header.base_offset));
        at = next;
    }
    assert_eq!(read, (0..10).collect::<Vec<_>>());
    log.rewrite(partition(0), 10, &mut Without(vec![0, 1, 2, 3, 5, 6, 7, 8])).await.unwrap();
    assert_eq!(read_at(&log, 0).await, [(4, 1), (9, 1)]);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(stored(&objects, "journal/").await.0.len(), 1);
    drop(log);
    let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
    assert_eq!(read_at(&log, 0).await, [(4, 1), (9, 1)]);
    assert_eq!(all(&log, partition(1), 0).await, little);
}

#[tokio::test(start_paused = true)]
async fn what_is_referred_to_and_gone_is_a_successors_doing_and_what_is_damaged_is_not() {
    let objects = Arc::new(Memory::default());
    let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
    write_large(&log).await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let key = "journal/1/0000000001/00000000000000000000";
    let object = objects.get(key, 0, u64::MAX).await.unwrap().unwrap();
    let with = async |object: Bytes| {
        objects.delete(vec![key.into()]).await.unwrap();
        objects.put_new(key, vec![object]).await.unwrap();
        let settled = log.read_settled(partition(0), 0).await.map(|_| ());
        (log.read(partition(0), 0, 100, true).await.map(|_| ()), settled)
    };
    assert_eq!(with(object.clone()).await, (Ok(()), Ok(())));
    let corrupt = |text| Err(StoreError::Corrupt(format!("{key}: {text}")));
    for (at, text) in [(45, "a frame of something else"), (300, "a chunk's checksum is wrong")] {
        let mut damaged = object.to_vec();
        damaged[at] ^= 1;
        assert_eq!(with(damaged.into()).await, (corrupt(text), corrupt(text)));
    }
    let cut = corrupt("it ends early");
    assert_eq!(with(object.slice(..object.len() - 1)).await, (cut.clone(), cut));
    let fence = Fence { next_epoch: 2, owner: Owner::default() };
    let fence = fence.encode(keys::Position { epoch: 1, seq: 0 }, 9);
    let fenced = Err(StoreError::Fenced);
    assert_eq!(with(fence).await, (fenced.clone(), fenced.clone()));
    objects.delete(vec![key.into()]).await.unwrap();
    assert_eq!(log.read(partition(0), 0, 100, true).await.map(|_| ()), fenced);
    assert!(!log.read(partition(0), 1, 100, true).await.unwrap().is_empty());
}

/// A header as `docs/object-log.md` has it, of an object of the first version.
fn first_version(kind: u8, epoch: u32, number: u64, body: &[u8], checked: &[u8]) -> Bytes {
    let mut object = [&b"KELP\0\x01\0"[..], &[kind], &epoch.to_be_bytes()].concat();
    for field in [number, 5, body.len() as u64] {
        object.extend(field.to_be_bytes());
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&object), checked);
    object.extend(crc.to_be_bytes());
    object.extend(body);
    object.into()
}

/// Laid out by hand: what a log wrote before there was anything to refer to.
#[tokio::test(start_paused = true)]
async fn a_store_of_the_first_version_is_opened_and_goes_on() {
    let objects = Arc::new(Memory::default());
    open(&objects, options()).await.close().await;
    let written = bytes_of(&batches(0, &[3, 2]));
    let one = written.len() / 2;
    let id = [&[7; 16][..], &[0; 4]].concat();
    let offset = |offset: i64| offset.to_be_bytes();
    let mut index = [&id[..], &offset(0), &offset(5), &[0, 0, 0, 2]].concat();
    for (base, time, place) in [(0, 0, 0), (3, 3, one)] {
        index.extend([offset(base), offset(time), offset(40 + place as i64)].concat());
        index.extend((one as u32).to_be_bytes());
        index.extend(crc32c::crc32c(&written[place..place + one]).to_be_bytes());
    }
    index.extend(crc32c::crc32c(&index).to_be_bytes());
    let body = [&written[..], &index].concat();
    let segment = first_version(3, 1, 1, &body, &[]);
    objects.put_new("segment/1/0000000001-0000000001", vec![segment]).await.unwrap();

    // Position, partitions; start, end, clean end; epochs, producers, entries.
    let mut body = [&1_u32.to_be_bytes()[..], &offset(0), &[0, 0, 0, 1], &id].concat();
    body.extend([offset(0), offset(5), offset(0)].concat());
    body.extend([&[0, 0, 0, 1, 0, 0, 0, 1][..], &offset(0), &[0; 4], &[0, 0, 0, 1]].concat());
    body.extend([&offset(0)[..], &offset(5), &1_u32.to_be_bytes(), &offset(1)].concat());
    body.extend(offset(40 + written.len() as i64));
    body.extend((index.len() as u32).to_be_bytes());
    body.extend([offset(written.len() as i64), offset(0), offset(3)].concat());
    let checkpoint = first_version(4, 1, 1, &body, &body);
    objects.put_new("checkpoint/1/0000000001-0000000001", vec![checkpoint]).await.unwrap();

    for large in 0..2 {
        let log = open(&objects, Options { cache_bytes: 0, ..options() }).await;
        assert_eq!(log.open(partition(0)).await.unwrap().log_end_offset, 5 + large);
        assert_eq!(all(&log, partition(0), 0).await[..written.len()], written);
        assert_eq!(log.seek_time(partition(0), 2).await, Ok(3));
        log.append(partition(0), 5 + large, long(5 + large, 300_000)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(all(&log, partition(0), 0).await[..written.len()], written);
        assert_eq!(layout_of(&log).parts.len() as i64, 2 + large);
    }
    assert_eq!(stored(&objects, "journal/").await.0.len(), 5, "three fences and what is large");
}
