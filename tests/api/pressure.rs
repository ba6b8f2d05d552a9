//! What a broker holds and whom it serves while clients or its store are slow.

use crate::batch::{Batch, fetch, produce, read};
use crate::broker::{Broker, Client, PATIENCE};
use crate::storage::Held;
use bytes::Bytes;
use kelp::messages::{describe_cluster, fetch as fetches, produce as produces};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::State;
use kelp::store::objects::memory::Memory;
use kelp::store::objects::{ObjectError, Objects, Put};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use tokio::sync::watch;

const MIB: usize = 1 << 20;

/// What answers of all connections may hold together, and as much again for what sockets hold of
/// them and for a batch of each.
const ALL_ANSWERS: usize = 2 * 256 * MIB;

/// As much as a broker gives at once, from offset 0 on.
fn large_fetch() -> fetches::Request {
    let mut request = fetch("clicks", 0);
    request.max_bytes = i32::MAX;
    request.topics[0].partitions[0].partition_max_bytes = i32::MAX;
    request
}

/// Sends a fetch and reads how long its answer is, and no more.
fn begin_fetch(broker: &Broker) -> (Client, usize) {
    let mut client = broker.connect();
    client.send(ApiKey::Fetch, 12, &large_fetch());
    let mut length = [0; 4];
    client.stream.read_exact(&mut length).unwrap();
    (client, u32::from_be_bytes(length) as usize)
}

#[test]
fn consumers_that_do_not_read_make_answers_shorter_and_stop_nobody() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let batch = Batch::of(&["x".repeat(MIB - 1000).as_str()]);
    let batch_bytes = batch.encode().len();
    (0..60).for_each(|_| assert!(!broker.produce("clicks", &batch).error_code.is_error()));

    let slow: Vec<_> = (0..20).map(|_| begin_fetch(&broker)).collect();
    let lengths: Vec<_> = slow.iter().map(|(_, length)| *length).collect();
    let whole = lengths[0];
    assert!(whole > 50 * MIB, "{lengths:?}");
    assert!(lengths.iter().sum::<usize>() < ALL_ANSWERS, "{lengths:?}");
    assert!(lengths.iter().all(|length| *length > batch_bytes), "{lengths:?}");

    let answer: fetches::Response = broker.ask(ApiKey::Fetch, 12, &large_fetch());
    assert!(!read(&answer.responses[0].partitions[0]).is_empty());
    let stored = broker.produce("clicks", &Batch::of(&["after"]));
    assert_eq!((stored.error_code, stored.base_offset), (ErrorCode::None, 60));

    // Those who end give it all back.
    drop(slow);
    let begin = Instant::now();
    while begin_fetch(&broker).1 < whole {
        assert!(begin.elapsed() < PATIENCE);
    }
}

/// A broker whose store answers nothing but the creation of the topic, with room for batches of
/// 75,000 bytes.
fn hanging() -> (Arc<Held>, Broker) {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(1);
    let limits = "socket.request.max.bytes=100000\nqueued.max.request.bytes=100000";
    let broker = Broker::on(storage.clone(), limits);
    broker.create("clicks", 1);
    (storage, broker)
}

fn send(client: &mut Client, batch: &Batch, timeout_ms: i32) {
    let request = produces::Request { timeout_ms, ..produce("clicks", batch.encode()) };
    client.send(ApiKey::Produce, 12, &request);
}

fn answer(client: &mut Client) -> (ErrorCode, i64) {
    let (_, answer): (_, produces::Response) = client.receive(ApiKey::Produce, 12);
    let partition = &answer.responses[0].partition_responses[0];
    (partition.error_code, partition.base_offset)
}

#[test]
fn who_needs_no_store_is_served_while_batches_wait_for_it() {
    let (storage, broker) = hanging();
    let batch = Batch::of(&["x".repeat(40_000).as_str()]);
    let mut clients: Vec<_> = (0..5).map(|_| broker.connect()).collect();
    // One batch has room; of the others, one is read and the rest not.
    clients.iter_mut().for_each(|client| send(client, &batch, 60_000));
    storage.until_asked(2);
    for _ in 0..10 {
        let answer: describe_cluster::Response =
            broker.ask(ApiKey::DescribeCluster, 0, &describe_cluster::Request::default());
        assert_eq!(answer.error_code, ErrorCode::None);
    }
    storage.answers.add_permits(5);
    let mut answers: Vec<_> = clients.iter_mut().map(answer).collect();
    answers.sort_by_key(|(_, offset)| *offset);
    assert_eq!(answers, [0, 1, 2, 3, 4].map(|offset| (ErrorCode::None, offset)));
}

#[test]
fn a_batch_without_room_is_refused_in_time_and_stored_when_it_comes_again() {
    let (storage, broker) = hanging();
    let value = "x".repeat(60_000);
    let from = |producer| Batch { producer: (producer, 0, 0), ..Batch::of(&[&value]) };
    let (mut first, mut second) = (broker.connect(), broker.connect());
    send(&mut first, &from(1), 10);
    storage.until_asked(2);
    send(&mut second, &from(2), 10);
    for client in [&mut first, &mut second] {
        assert_eq!(answer(client), (ErrorCode::RequestTimedOut, -1));
    }
    assert_eq!(*storage.asked.borrow(), 2, "the store was not asked for what had no room");

    storage.answers.add_permits(2);
    send(&mut second, &from(2), 10_000);
    assert_eq!(answer(&mut second), (ErrorCode::None, 1));
    send(&mut first, &from(1), 10_000);
    assert_eq!(answer(&mut first), (ErrorCode::None, 0), "it was stored after its client was told");
    assert_eq!(broker.records("clicks").len(), 2);
}

/// Objects in memory that cannot be reached now and then: of three puts one is not carried out, one is
/// and nobody is told, and one waits until the store is back.
#[derive(Default)]
struct Failing {
    memory: Memory,
    is_down: watch::Sender<bool>,
    puts: AtomicUsize,
}

impl Failing {
    fn set_down(&self, down: bool) {
        self.is_down.send_replace(down);
    }

    fn check(&self) -> Result<(), ObjectError> {
        if *self.is_down.borrow() { Err(ObjectError("no answer".into())) } else { Ok(()) }
    }
}

#[async_trait::async_trait]
impl Objects for Failing {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        match self.puts.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => self.check()?,
            1 => {
                let _ = self.is_down.subscribe().wait_for(|down| !down).await;
            }
            _ => {}
        }
        let put = self.memory.put_new(key, parts).await;
        self.check()?;
        put
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        self.check()?;
        self.memory.get(key, offset, len).await
    }

    async fn list(&self, p: &str, after: &str, n: usize) -> Result<Vec<String>, ObjectError> {
        self.check()?;
        self.memory.list(p, after, n).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.check()?;
        self.memory.delete(keys).await
    }
}

/// How many batches a producer sends.
const BATCHES: i32 = 40;

/// Sends batches one after the other, each until it is acknowledged. Gives their offsets; counts those
/// that were acknowledged and, in `refused`, whether one was not.
fn produce_all(broker: &Broker, id: i64, acked: &AtomicUsize, refused: &AtomicUsize) -> Vec<i64> {
    let mut client = broker.connect();
    let mut told = false;
    (0..BATCHES)
        .map(|sequence| {
            let batch = Batch {
                producer: if id < 0 { (-1, -1, -1) } else { (id, 0, sequence) },
                ..Batch::of(&[&format!("{id} {sequence}")])
            };
            loop {
                send(&mut client, &batch, 1_000);
                match answer(&mut client) {
                    (ErrorCode::None, offset) => {
                        acked.fetch_add(1, Ordering::Relaxed);
                        return offset;
                    }
                    // Both are retriable.
                    (ErrorCode::RequestTimedOut | ErrorCode::KafkaStorageError, -1) if !told => {
                        told = true;
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    (ErrorCode::RequestTimedOut | ErrorCode::KafkaStorageError, -1) => {}
                    other => panic!("{other:?}"),
                }
            }
        })
        .collect()
}

#[test]
fn an_outage_of_the_store_is_ridden_out_by_retries() {
    let objects = Arc::new(Failing::default());
    let broker = Broker::sharing(objects.clone(), "");
    broker.create("clicks", 1);
    let (acked, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let until = |what: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !what() {
            assert!(begin.elapsed() < PATIENCE);
            thread::yield_now();
        }
    };
    let producers = [1, 2, 3, -1];
    let offsets = thread::scope(|scope| {
        let run = |id| {
            (
                id,
                scope.spawn({
                    let (broker, acked, refused) = (&broker, &acked, &refused);
                    move || produce_all(broker, id, acked, refused)
                }),
            )
        };
        let running = producers.map(run);
        until(&|| acked.load(Ordering::Relaxed) >= 20);
        objects.set_down(true);
        until(&|| refused.load(Ordering::Relaxed) == producers.len());
        objects.set_down(false);
        running.map(|(id, running)| (id, running.join().unwrap()))
    });

    let stored = broker.records("clicks");
    for (id, offsets) in offsets {
        let own = |(offset, value): &(i64, String)| {
            value.strip_prefix(&format!("{id} ")).map(|n| (n.parse::<i32>().unwrap(), *offset))
        };
        let stored: Vec<_> = stored.iter().filter_map(own).collect();
        let acked: Vec<_> = (0..).zip(offsets).collect();
        if id < 0 {
            // What was refused may be there as well, as in Kafka.
            assert!(acked.iter().all(|record| stored.contains(record)), "{acked:?} {stored:?}");
        } else {
            assert_eq!(stored, acked, "producer {id}");
        }
    }
}
