//! How an engine begins and ends.

use crate::broker::{Broker, Client, PATIENCE};
use crate::storage::Held;
use bytes::Bytes;
use kelp::messages::{api_versions, create_topics, describe_cluster, metadata, produce};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::{Owner, State, objects};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

fn creation(name: &str, timeout_ms: i32) -> create_topics::Request {
    let topic = create_topics::CreatableTopic {
        name: name.into(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    create_topics::Request { topics: vec![topic], timeout_ms, ..Default::default() }
}

fn successor() -> Owner {
    Owner { address: "kelp-2:9093".into(), host: "kelp-2".into(), pid: 7, started: 9 }
}

#[test]
fn a_stop_answers_what_is_under_way_and_takes_nothing_new() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    // An address of its own: no other test may get the port when it is free again.
    let alone = Ipv4Addr::new(127, 0, 0, 2);
    let port = broker.engine.listen(&format!("{alone}:0")).unwrap();
    let mut client = broker.connect();
    let mut idle = Client::new(TcpStream::connect((alone, port)).unwrap());
    client.send(ApiKey::CreateTopics, 7, &creation("late", 20_000));
    storage.until_asked(1);
    thread::scope(|scope| {
        scope.spawn(|| broker.engine.stop(PATIENCE));
        assert!(idle.is_closed(), "who waits for nothing is closed at once");
        storage.answers.add_permits(1);
        let (_, answer): (i32, create_topics::Response) = client.receive(ApiKey::CreateTopics, 7);
        assert_eq!(answer.topics[0].error_code, ErrorCode::None);
        assert!(client.is_closed());
    });
    assert!(*broker.engine.ended().borrow());
    assert!(TcpStream::connect((alone, port)).is_err(), "nobody listens");
    assert!(broker.engine.listen("127.0.0.1:0").is_err());
}

#[test]
fn a_stop_does_not_wait_longer_than_it_may() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    let mut client = broker.connect();
    client.send(ApiKey::CreateTopics, 7, &creation("never", 60_000));
    storage.until_asked(1);
    let begin = Instant::now();
    broker.engine.stop(Duration::from_millis(200));
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert!(client.is_closed());
}

#[test]
fn neither_stop_nor_drop_hangs_with_a_store_that_never_answers() {
    let storage = Arc::new(Held::that_never_closes(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    let mut client = broker.connect();
    client.send(ApiKey::CreateTopics, 7, &creation("never", 60_000));
    storage.until_asked(1);
    let begin = Instant::now();
    broker.engine.stop(Duration::ZERO);
    drop(broker);
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
    assert_eq!(Arc::strong_count(&storage), 1, "nothing of the engine is left");
}

#[test]
fn a_dropped_engine_closes_everything() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    let mut client = broker.connect();
    client.send(ApiKey::CreateTopics, 7, &creation("never", 60_000));
    storage.until_asked(1);
    drop(broker);
    assert!(client.is_closed());
    assert_eq!(Arc::strong_count(&storage), 1, "nothing of the engine is left");
}

#[test]
fn a_request_that_panics_takes_only_its_connection_along() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    storage.answers.add_permits(1);
    broker.create("clicks", 1);
    let mut other = broker.connect();
    storage.panics.store(true, Ordering::Relaxed);
    let mut client = broker.connect();
    client.send(ApiKey::Produce, 9, &production());
    assert!(client.is_closed());

    storage.panics.store(false, Ordering::Relaxed);
    storage.answers.add_permits(1);
    let produced: produce::Response = other.call(ApiKey::Produce, 9, &production());
    assert_eq!(produced.responses[0].partition_responses[0].error_code, ErrorCode::None);
}

/// A client whose connection the host accepted and handed over.
fn handed(broker: &Broker) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    broker.engine.serve(listener.accept().unwrap().0).unwrap();
    client
}

#[test]
fn clients_that_come_before_the_store_is_open_are_served_then() {
    let storage = Arc::new(Held::new(State::Opening));
    let broker = Broker::on(storage.clone(), "");
    let mut clients = [handed(&broker), broker.connect()];
    for client in &mut clients {
        client.send(ApiKey::ApiVersions, 0, &api_versions::Request::default());
    }
    clients[0].stream.set_nonblocking(true).unwrap();
    let answer = clients[0].stream.peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(answer, Err(ErrorKind::WouldBlock));
    clients[0].stream.set_nonblocking(false).unwrap();

    storage.enter(State::Serving);
    for client in &mut clients {
        let (_, answer): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
        assert_eq!(answer.error_code, ErrorCode::None);
    }
}

#[test]
fn who_stands_by_sends_clients_away() {
    let storage = Arc::new(Held::new(State::Standby(successor())));
    let broker = Broker::on(storage, "");
    assert!(handed(&broker).is_closed());
}

#[test]
fn who_is_fenced_names_the_successor_and_ends() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    storage.answers.add_permits(1);
    broker.create("clicks", 1);
    storage.answers.add_permits(1);
    let mut client = broker.connect();
    storage.enter(State::Fenced(successor()));
    let begin = Instant::now();

    let all = metadata::Request { topics: None, ..Default::default() };
    let told: metadata::Response = client.call(ApiKey::Metadata, 12, &all);
    assert_eq!((&*told.brokers[0].host, told.brokers[0].port), ("kelp-2", 9093));
    let partition = &told.topics[0].partitions[0];
    assert_eq!((partition.leader_id, partition.leader_epoch), (told.brokers[0].node_id, 1));
    let asked = describe_cluster::Request::default();
    let told: describe_cluster::Response = client.call(ApiKey::DescribeCluster, 0, &asked);
    assert_eq!(&*told.brokers[0].host, "kelp-2");
    let refused: create_topics::Response =
        client.call(ApiKey::CreateTopics, 7, &creation("more", 10_000));
    assert_eq!(refused.topics[0].error_code, ErrorCode::NotController);
    // New clients are told too.
    let refused: produce::Response = broker.ask(ApiKey::Produce, 9, &production());
    let partition = &refused.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower);

    assert!(client.is_closed());
    let seconds = begin.elapsed().as_secs();
    assert!((9..=30).contains(&seconds), "it ended after {seconds} s");
    while !*broker.engine.ended().borrow() {
        assert!(begin.elapsed() < PATIENCE);
        thread::yield_now();
    }
    assert_eq!(*broker.engine.state().borrow(), State::Fenced(successor()));
}

/// Waits for a state of a broker's store.
fn wait_for(broker: &Broker, wanted: impl Fn(&State) -> bool) {
    let begin = Instant::now();
    while !wanted(&broker.engine.state().borrow()) {
        assert!(begin.elapsed() < PATIENCE, "{:?}", broker.engine.state());
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_broker_that_takes_over_has_everything_and_the_old_one_names_it() {
    let objects = Arc::new(objects::memory::Memory::default());
    let first = Broker::sharing(objects.clone(), "");
    first.create("clicks", 1);
    let produced: produce::Response = first.ask(ApiKey::Produce, 9, &production());
    assert_eq!(produced.responses[0].partition_responses[0].error_code, ErrorCode::None);

    let listeners = "listeners=A://127.0.0.1:0\nadvertised.listeners=A://second:9092";
    let second = Broker::sharing(objects, &format!("{listeners}\nkelp.takeover=true"));
    wait_for(&second, |state| *state == State::Serving);
    let produced: produce::Response = second.ask(ApiKey::Produce, 9, &production());
    assert_eq!(produced.responses[0].partition_responses[0].base_offset, 1);

    // The first learns of it when it writes, at the latest.
    let refused: produce::Response = first.ask(ApiKey::Produce, 9, &production());
    let partition = &refused.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower);
    let all = metadata::Request { topics: None, ..Default::default() };
    let told: metadata::Response = first.ask(ApiKey::Metadata, 12, &all);
    assert_eq!((&*told.brokers[0].host, told.brokers[0].port), ("second", 9092));
    let known: metadata::Response = second.ask(ApiKey::Metadata, 12, &all);
    assert_eq!(told.topics, known.topics, "down to the leader epoch");
    assert_eq!(told.cluster_id, known.cluster_id);
}

#[test]
fn a_broker_stands_by_until_the_other_ends() {
    let objects = Arc::new(objects::memory::Memory::default());
    let first = Broker::sharing(objects.clone(), "");
    first.create("clicks", 1);
    let second = Broker::sharing(objects, "");
    wait_for(&second, |state| matches!(state, State::Standby(_)));
    assert!(handed(&second).is_closed(), "its clients shall go to the other");
    first.engine.stop(PATIENCE);
    wait_for(&second, |state| *state == State::Serving);
    let all = metadata::Request { topics: None, ..Default::default() };
    let told: metadata::Response = second.ask(ApiKey::Metadata, 12, &all);
    assert_eq!(told.topics.len(), 1);
}

/// One batch for the first partition of the topic "clicks".
fn production() -> produce::Request {
    let partition = produce::PartitionProduceData { index: 0, records: Some(batch()) };
    let topic = produce::TopicProduceData {
        name: "clicks".into(),
        partition_data: vec![partition],
        ..Default::default()
    };
    produce::Request { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }
}

/// A batch with one record, "hello", that Apache Kafka takes.
fn batch() -> Bytes {
    const HEX: &str = "00000000000000000000003dffffffff02d46327c5000000000000000001a229b5b06d\
                       000001a229b5b06dffffffffffffffffffffffffffff0000000116000000010a68656c6c\
                       6f00";
    let byte = |i| u8::from_str_radix(&HEX[i..i + 2], 16).unwrap();
    (0..HEX.len()).step_by(2).map(byte).collect()
}
