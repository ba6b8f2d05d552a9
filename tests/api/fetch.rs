use crate::batch::{Batch, fetch, message_set, produce, read};
use crate::broker::Broker;
use crate::storage::Held;
use kelp::messages::fetch::{FetchPartition, ForgottenTopic, PartitionData, Request, Response};
use kelp::messages::produce;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;
use kelp::record::batch::Batch as Stored;
use kelp::record::filter::emptied;
use kelp::store::memory::Memory;
use kelp::store::{Owner, PartitionId, State, Storage};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A broker with a topic of two records in partition 0.
fn clicks() -> Broker {
    let broker = Broker::start();
    broker.create("clicks", 2);
    assert_eq!(broker.produce("clicks", &Batch::of(&["a", "b"])).error_code, ErrorCode::None);
    broker
}

fn ask(broker: &Broker, version: i16, request: &Request) -> PartitionData {
    let mut answer: Response = broker.ask(ApiKey::Fetch, version, request);
    assert_eq!((answer.error_code, answer.session_id), (ErrorCode::None, 0));
    answer.responses.remove(0).partitions.remove(0)
}

/// What Kafka answers with an error: nothing is known of the partition, and there is no record.
fn refused(broker: &Broker, version: i16, request: &Request) -> ErrorCode {
    let data = ask(broker, version, request);
    let offsets = (data.high_watermark, data.last_stable_offset, data.log_start_offset);
    assert_eq!(offsets, (-1, -1, -1));
    assert_eq!(data.records.map(|records| records.len()), Some(0));
    data.error_code
}

#[test]
fn records_are_read_in_every_version_that_knows_batches() {
    let broker = clicks();
    let topic_id = broker.topic_id("clicks");
    for version in 4..=18 {
        let mut request = fetch("clicks", 0);
        request.topics[0].topic_id = topic_id;
        let data = ask(&broker, version, &request);
        assert_eq!(read(&data), [(0, "a".to_string()), (1, "b".to_string())], "{version}");
        let log_start_offset = if version < 5 { -1 } else { 0 };
        let offsets = (data.high_watermark, data.last_stable_offset, data.log_start_offset);
        assert_eq!(offsets, (2, 2, log_start_offset));
        assert_eq!((data.aborted_transactions, data.preferred_read_replica), (None, -1));
    }
}

/// The bytes in what a fetch brought.
fn bytes(data: &PartitionData) -> Vec<u8> {
    data.records.clone().unwrap().0.concat()
}

#[test]
fn older_versions_get_message_sets() {
    let broker = clicks();
    for version in 0..=3 {
        let set = message_set(usize::from(version > 1));
        let data = ask(&broker, version, &fetch("clicks", 0));
        assert_eq!((data.error_code, data.high_watermark), (ErrorCode::None, 2));
        assert_eq!(bytes(&data), set, "version {version}");
        let data = ask(&broker, version, &fetch("clicks", 1));
        assert_eq!(bytes(&data), set[set.len() / 2..], "version {version}");
        let data = ask(&broker, version, &fetch("clicks", 2));
        assert_eq!((data.error_code, bytes(&data)), (ErrorCode::None, vec![]));
        assert_eq!(refused(&broker, version, &fetch("clicks", 3)), ErrorCode::OffsetOutOfRange);
    }
    // What came as a message set goes as one.
    let request = produce("clicks", message_set(1));
    let _: produce::Response = broker.ask(ApiKey::Produce, 2, &request);
    let data = ask(&broker, 3, &fetch("clicks", 2));
    let mut expected = message_set(1).to_vec();
    expected[7] = 2;
    expected[35 + 7] = 3;
    assert_eq!(bytes(&data), expected);
}

#[test]
fn a_batch_that_grows_when_it_is_converted_comes_whole_and_others_while_they_fit() {
    let broker = clicks();
    let values: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    for _ in 0..3 {
        broker.produce("clicks", &Batch::of(&values));
    }
    let mut request = fetch("clicks", 2);
    let batch_bytes = Batch::of(&values).encode().len();
    // Records of 8 or 9 bytes become messages of 35 or 36.
    let set_bytes = 10 * 35 + 90 * 36;
    for (limit, sets) in [(1, 1), (batch_bytes, 1), (2 * batch_bytes, 1), (1 << 20, 3)] {
        request.topics[0].partitions[0].partition_max_bytes = limit as i32;
        assert_eq!(bytes(&ask(&broker, 3, &request)).len(), sets * set_bytes, "{limit}");
    }
}

#[test]
fn what_is_nothing_to_old_clients_stops_none_of_them_however_little_they_take() {
    let storage = Arc::new(Memory::default());
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 1);
    let id = PartitionId { topic: broker.topic_id("clicks"), partition: 0 };
    let stored = |base_offset, attributes| {
        let mut bytes = Batch { attributes, ..Batch::of(&["x", "y"]) }.encode();
        let mut batch = Stored::split_off(&mut bytes).unwrap();
        batch.stamp(base_offset, 0);
        batch
    };
    let batches = vec![emptied(&stored(0, 0).header), stored(2, 1 << 5)];
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(storage.append(id, 0, batches)).unwrap();
    let mut request = fetch("clicks", 0);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    let data = ask(&broker, 3, &request);
    assert_eq!((data.high_watermark, bytes(&data)), (4, vec![]), "nothing is behind it yet");

    assert_eq!(broker.produce("clicks", &Batch::of(&["a", "b"])).base_offset, 4);
    for version in 0..=3 {
        let mut expected = message_set(usize::from(version > 1)).to_vec();
        let second = expected.len() / 2;
        (expected[7], expected[second + 7]) = (4, 5);
        for offset in 0..=4 {
            request.topics[0].partitions[0].fetch_offset = offset;
            assert_eq!(bytes(&ask(&broker, version, &request)), expected, "version {version}");
        }
    }
}

#[test]
fn in_versions_of_clients_that_ask_in_one_order_each_partition_brings_a_batch() {
    let broker = clicks();
    let batch = Batch::of(&["a", "b"]).encode();
    let mut request = produce("clicks", batch);
    request.topic_data[0].partition_data[0].index = 1;
    let _: produce::Response = broker.ask(ApiKey::Produce, 12, &request);
    let mut request = fetch("clicks", 0);
    request.topics[0].partitions[0].partition_max_bytes = 1;
    let mut other = request.topics[0].partitions[0].clone();
    other.partition = 1;
    request.topics[0].partitions.push(other);
    for version in 0..=4 {
        let answer: Response = broker.ask(ApiKey::Fetch, version, &request);
        let partitions = &answer.responses[0].partitions;
        let has_records = |data: &PartitionData| !bytes(data).is_empty();
        // KIP-74: from version 3 on clients change the order, so each comes first some time.
        let expected = [true, version < 3];
        assert_eq!([has_records(&partitions[0]), has_records(&partitions[1])], expected);
    }
}

#[test]
fn a_topic_of_zstd_is_refused_to_clients_that_do_not_know_it() {
    let broker = Broker::with("compression.type=zstd");
    broker.create("clicks", 1);
    broker.produce("clicks", &Batch::of(&["a"]));
    for version in 0..=9 {
        let code = refused(&broker, version, &fetch("clicks", 0));
        assert_eq!(code, ErrorCode::UnsupportedCompressionType, "version {version}");
    }
    for version in 10..=12 {
        let data = ask(&broker, version, &fetch("clicks", 0));
        assert_eq!((data.error_code, read(&data)), (ErrorCode::None, vec![(0, "a".to_string())]));
    }
}

#[test]
fn what_no_message_set_can_hold_is_refused() {
    let broker = clicks();
    // Kafka's console producer wrote it: three records by zstd.
    let zstd = "0000000000000000000000700000000002a2a0f17e000400000002000001a229a737f3000001a229\
        a73881000000000000003d0000000000000000000328b52ffd00589c0100c4025e000000046b313e6f6e65200\
        4026802310268023218009c0202046b320674776f0012009c0204046b3301000100872e09010000";
    let digits: Vec<u32> = zstd.chars().map(|c| c.to_digit(16).unwrap()).collect();
    let zstd: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    let answer: produce::Response =
        broker.ask(ApiKey::Produce, 12, &produce("clicks", zstd.into()));
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::None);
    for version in 0..=3 {
        // What is before it is not.
        let data = ask(&broker, version, &fetch("clicks", 0));
        assert_eq!(bytes(&data), message_set(usize::from(version > 1)));
        let code = refused(&broker, version, &fetch("clicks", 2));
        assert_eq!(code, ErrorCode::UnsupportedCompressionType);
    }
}

#[test]
fn read_committed_is_told_which_transactions_were_aborted_and_none_were() {
    let broker = clicks();
    let request = Request { isolation_level: 1, ..fetch("clicks", 0) };
    assert_eq!(ask(&broker, 12, &request).aborted_transactions, Some(vec![]));
    let request = Request { isolation_level: 7, ..fetch("clicks", 0) };
    assert_eq!(refused(&broker, 12, &request), ErrorCode::UnknownServerError);
}

/// A client in a fetch session.
struct Session<'a> {
    broker: &'a Broker,
    version: i16,
    id: i32,
    epoch: i32,
}

impl Session<'_> {
    /// Opens one of these partitions of `clicks`, from these offsets on.
    fn open<'a>(broker: &'a Broker, version: i16, positions: &[(i32, i64)]) -> Session<'a> {
        let mut session = Session { broker, version, id: 0, epoch: 0 };
        let answer = session.fetch(positions);
        assert_eq!(answer.error_code, ErrorCode::None);
        assert_eq!(told(&answer).len(), positions.len());
        assert!(answer.session_id > 0);
        session.id = answer.session_id;
        session
    }

    /// The next request, which names positions that changed.
    fn fetch(&mut self, positions: &[(i32, i64)]) -> Response {
        let mut request = fetch("clicks", 0);
        request.topics[0].topic_id = self.broker.topic_id("clicks");
        let partition = request.topics[0].partitions.remove(0);
        let partitions = positions.iter().map(|(index, offset)| FetchPartition {
            partition: *index,
            fetch_offset: *offset,
            ..partition.clone()
        });
        request.topics[0].partitions = partitions.collect();
        request.topics.retain(|topic| !topic.partitions.is_empty());
        self.ask(request)
    }

    fn ask(&mut self, request: Request) -> Response {
        let (session_id, session_epoch) = (self.id, self.epoch);
        let request = Request { session_id, session_epoch, ..request };
        let answer: Response = self.broker.ask(ApiKey::Fetch, self.version, &request);
        if !answer.error_code.is_error() {
            self.epoch += 1;
        }
        answer
    }
}

/// Which partitions are in an answer, each with the first value that it brought.
fn told(answer: &Response) -> Vec<(i32, Option<String>)> {
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let first = |data: &PartitionData| read(data).into_iter().next().map(|(_, value)| value);
    partitions.map(|data| (data.partition_index, first(data))).collect()
}

fn produce_to(broker: &Broker, partition: i32, value: &str) {
    let mut request = produce("clicks", Batch::of(&[value]).encode());
    request.topic_data[0].partition_data[0].index = partition;
    let answer: produce::Response = broker.ask(ApiKey::Produce, 12, &request);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::None);
}

#[test]
fn in_a_session_only_what_is_new_comes_back() {
    for version in [7, 12, 13, 18] {
        let broker = Broker::start();
        broker.create("clicks", 3);
        let mut session = Session::open(&broker, version, &[(0, 0), (1, 0), (2, 0)]);
        assert_eq!(told(&session.fetch(&[])), []);
        produce_to(&broker, 1, "a");
        let answer = session.fetch(&[]);
        assert_eq!(told(&answer), [(1, Some("a".to_string()))], "version {version}");
        assert_eq!(answer.session_id, session.id);
        // The client read it; then there is an end of what it was told, and no news.
        assert_eq!(told(&session.fetch(&[(1, 1)])), []);
        // A position outside of the log is told of again and again, until it is another one.
        assert_eq!(told(&session.fetch(&[(2, 5)])), [(2, None)]);
        assert_eq!(told(&session.fetch(&[])), [(2, None)]);
        assert_eq!(told(&session.fetch(&[(2, 0)])), [(2, None)]);
        assert_eq!(told(&session.fetch(&[])), []);
        produce_to(&broker, 2, "b");
        let topic = ForgottenTopic {
            topic: "clicks".into(),
            topic_id: broker.topic_id("clicks"),
            partitions: vec![2],
        };
        let forgotten_topics_data = vec![topic];
        let forget = Request { forgotten_topics_data, topics: vec![], ..fetch("clicks", 0) };
        assert_eq!(told(&session.ask(forget)), []);
    }
}

#[test]
fn a_poll_in_a_session_waits_for_the_partitions_that_it_does_not_name() {
    let broker = Broker::start();
    broker.create("clicks", 3);
    let mut session = Session::open(&broker, 12, &[(0, 0), (1, 0), (2, 0)]);
    let poll = Request { max_wait_ms: 60_000, min_bytes: 1, topics: vec![], ..fetch("clicks", 0) };
    let answer = thread::scope(|scope| {
        let poll = scope.spawn(|| session.ask(poll));
        produce_to(&broker, 2, "a");
        poll.join().unwrap()
    });
    assert_eq!(told(&answer), [(2, Some("a".to_string()))]);
}

#[test]
fn a_limit_starves_no_partition_of_a_session() {
    let broker = Broker::start();
    broker.create("clicks", 3);
    (0..3).for_each(|partition| produce_to(&broker, partition, "a"));
    let one_batch = |mut session: Session| {
        let request = Request { max_bytes: 1, topics: vec![], ..fetch("clicks", 0) };
        let mut come = Vec::new();
        for _ in 0..6 {
            let told = told(&session.ask(request.clone()));
            come.extend(told.into_iter().filter_map(|(partition, value)| value.map(|_| partition)));
        }
        come
    };
    let session = Session::open(&broker, 12, &[(0, 0), (1, 0), (2, 0)]);
    assert_eq!(one_batch(session), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn a_request_that_is_not_the_next_of_its_session_is_refused() {
    let broker = clicks();
    let mut session = Session::open(&broker, 12, &[(0, 0)]);
    let (id, epoch) = (session.id, session.epoch);
    let refused = |version, id, epoch| {
        let mut session = Session { broker: &broker, version, id, epoch };
        let answer = session.fetch(&[]);
        assert_eq!((answer.session_id, answer.responses.len()), (0, 0));
        answer.error_code
    };
    assert_eq!(refused(12, id, epoch + 1), ErrorCode::InvalidFetchSessionEpoch);
    assert_eq!(refused(12, id ^ 1, epoch), ErrorCode::FetchSessionIdNotFound);
    assert_eq!(refused(12, 0, 3), ErrorCode::FetchSessionIdNotFound);
    assert_eq!(refused(12, 0, -2), ErrorCode::FetchSessionIdNotFound);
    // It named topics by their names.
    assert_eq!(refused(13, id, epoch), ErrorCode::FetchSessionTopicIdError);
    assert_eq!(session.fetch(&[]).error_code, ErrorCode::None);
    // A full fetch ends it.
    let mut last = Session { epoch: -1, ..session };
    let answer = last.fetch(&[(0, 0)]);
    assert_eq!(
        (answer.error_code, answer.session_id, told(&answer).len()),
        (ErrorCode::None, 0, 1)
    );
    assert_eq!(refused(12, id, epoch + 1), ErrorCode::FetchSessionIdNotFound);
}

#[test]
fn who_gets_no_session_is_answered_without_one() {
    let broker = Broker::with("max.incremental.fetch.session.cache.slots=1");
    broker.create("clicks", 2);
    let mut first = Session::open(&broker, 12, &[(0, 0)]);
    let mut second = Session { broker: &broker, version: 12, id: 0, epoch: 0 };
    let answer = second.fetch(&[(0, 0), (1, 0)]);
    assert_eq!((answer.session_id, told(&answer).len()), (0, 2), "a young one keeps its place");
    assert_eq!(first.fetch(&[]).error_code, ErrorCode::None);
}

#[test]
fn what_is_not_there_is_refused() {
    let broker = clicks();
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(refused(&broker, 12, &fetch("ghosts", 0)), unknown);
    let mut request = fetch("clicks", 0);
    request.topics[0].partitions[0].partition = 2;
    assert_eq!(refused(&broker, 12, &request), unknown);
    request.topics[0].topic_id = Uuid([9; 16]);
    assert_eq!(refused(&broker, 13, &request), ErrorCode::UnknownTopicId);
    for offset in [-5, 3, i64::MAX] {
        assert_eq!(refused(&broker, 12, &fetch("clicks", offset)), ErrorCode::OffsetOutOfRange);
    }
    let at_the_end = ask(&broker, 12, &fetch("clicks", 2));
    assert_eq!((at_the_end.error_code, at_the_end.high_watermark), (ErrorCode::None, 2));
}

#[test]
fn nobody_follows_this_broker() {
    let broker = clicks();
    let request = Request { replica_id: 5, ..fetch("clicks", 0) };
    assert_eq!(refused(&broker, 12, &request), ErrorCode::NotLeaderOrFollower);
}

#[test]
fn a_client_that_knows_another_leader_is_told() {
    let broker = clicks();
    // The memory store's epoch is 0.
    for (epoch, code) in [(-1, None), (0, None), (1, Some(ErrorCode::UnknownLeaderEpoch))] {
        let mut request = fetch("clicks", 0);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        match code {
            Some(code) => assert_eq!(refused(&broker, 12, &request), code),
            None => assert_eq!(read(&ask(&broker, 12, &request)).len(), 2),
        }
    }
}

#[test]
fn a_poll_waits_for_a_record_and_not_longer() {
    let broker = clicks();
    // Longer than the client waits for an answer.
    let poll = Request { max_wait_ms: 60_000, min_bytes: 1, ..fetch("clicks", 2) };
    let answer = thread::scope(|scope| {
        let poll = scope.spawn(|| ask(&broker, 12, &poll));
        thread::sleep(Duration::from_millis(200));
        broker.produce("clicks", &Batch::of(&["c"]));
        poll.join().unwrap()
    });
    assert_eq!(read(&answer), [(2, "c".to_string())]);

    let poll = Request { max_wait_ms: 300, min_bytes: 1, ..fetch("clicks", 3) };
    let begin = Instant::now();
    let answer: Response = broker.ask(ApiKey::Fetch, 12, &poll);
    assert!(begin.elapsed() >= Duration::from_millis(300));
    assert_eq!(answer.throttle_time_ms, 0, "to wait is not to be throttled");
}

#[test]
fn a_parked_poll_is_told_that_another_process_took_over() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(1);
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 1);
    let mut client = broker.connect();
    let poll = Request { max_wait_ms: 60_000, min_bytes: 1, ..fetch("clicks", 0) };
    client.send(ApiKey::Fetch, 16, &{
        let mut poll = poll;
        poll.topics[0].topic_id = broker.topic_id("clicks");
        poll
    });
    thread::sleep(Duration::from_millis(200));
    let owner = Owner { address: "kafka.example:9093".into(), ..Owner::default() };
    storage.enter(State::Fenced(owner));
    let (_, answer): (_, Response) = client.receive(ApiKey::Fetch, 16);
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower);
    let leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
    assert_eq!(leader, (1, 1));
    assert_eq!(&*answer.node_endpoints[0].host, "kafka.example");
}
