use crate::batch::{Batch, T, message_set, produce};
use crate::broker::Broker;
use crate::storage::Held;
use bytes::Bytes;
use kelp::messages::produce::{
    BatchIndexAndErrorMessage, PartitionProduceData, PartitionProduceResponse, Request, Response,
    TopicProduceData,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;
use kelp::store::{Owner, State};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn clicks() -> Broker {
    let broker = Broker::start();
    broker.create("clicks", 2);
    broker
}

fn ask(broker: &Broker, version: i16, request: &Request) -> PartitionProduceResponse {
    let mut answer: Response = broker.ask(ApiKey::Produce, version, request);
    answer.responses.remove(0).partition_responses.remove(0)
}

fn from_producer(sequence: i32) -> Batch {
    Batch { producer: (7, 0, sequence), ..Batch::of(&["a", "b"]) }
}

#[test]
fn a_batch_is_stored_in_every_version_that_brings_one() {
    let broker = clicks();
    let topic_id = broker.topic_id("clicks");
    for version in 3..=13 {
        let mut request = produce("clicks", Batch::of(&["a", "b"]).encode());
        request.topic_data[0].topic_id = topic_id;
        let answer = ask(&broker, version, &request);
        assert_eq!(answer.error_code, ErrorCode::None, "version {version}");
        let offsets = (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset);
        let log_start_offset = if version < 5 { -1 } else { 0 };
        assert_eq!(offsets, (2 * (i64::from(version) - 3), -1, log_start_offset));
    }
    assert_eq!(broker.records("clicks").len(), 22);
}

#[test]
fn message_sets_are_stored_as_batches_in_every_version_that_brings_them() {
    let broker = clicks();
    let mut expected = Vec::new();
    for version in 0..=3 {
        for magic in [0, 1] {
            let answer = ask(&broker, version, &produce("clicks", message_set(magic)));
            assert_eq!(answer.error_code, ErrorCode::None, "version {version}, magic {magic}");
            let end = expected.len() as i64;
            assert_eq!(answer.base_offset, end);
            expected.extend([(end, "a".to_string()), (end + 1, "b".to_string())]);
        }
    }
    assert_eq!(broker.records("clicks"), expected);
    // Clients of that time may send a batch all the same.
    for version in 0..=2 {
        let answer = ask(&broker, version, &produce("clicks", Batch::of(&["a"]).encode()));
        assert_eq!(answer.error_code, ErrorCode::None, "version {version}");
    }
    for version in 4..=12 {
        let answer = ask(&broker, version, &produce("clicks", message_set(1)));
        assert_eq!(answer.error_code, ErrorCode::InvalidRecord, "version {version}");
    }
}

#[test]
fn message_sets_are_held_to_the_rules_of_their_topic() {
    let broker = clicks();
    let set = message_set(1);
    let code = |set: Bytes| ask(&broker, 2, &produce("clicks", set)).error_code;
    let mut corrupt = set.to_vec();
    corrupt[12] ^= 1;
    assert_eq!(code(corrupt.into()), ErrorCode::CorruptMessage);
    assert_eq!(code(set.slice(..20)), ErrorCode::InvalidRecord);
    // Each message is shorter than a batch may be, but not all together.
    let many = 20_000;
    assert_eq!(code(set.repeat(many).into()), ErrorCode::None);
    assert_eq!(code(set.repeat(5 * many).into()), ErrorCode::MessageTooLarge);
}

#[test]
fn each_partition_has_its_own_answer() {
    let broker = clicks();
    broker.create("views", 1);
    let good = Batch::of(&["a"]).encode();
    let mut bad = good.to_vec();
    bad[30] ^= 1;
    let partition = |index, records: Bytes| PartitionProduceData { index, records: Some(records) };
    let topic = |name: &str, partition_data| TopicProduceData {
        name: name.into(),
        partition_data,
        ..Default::default()
    };
    let twice = Bytes::from(good.repeat(2));
    let of_clicks = vec![partition(0, bad.into()), partition(2, good.clone()), partition(1, twice)];
    let request = Request {
        topic_data: vec![
            topic("clicks", of_clicks),
            topic("ghosts", vec![partition(0, good.clone())]),
            topic("views", vec![partition(0, good.clone()), partition(-1, good)]),
        ],
        ..produce("", Bytes::new())
    };
    let answer: Response = broker.ask(ApiKey::Produce, 12, &request);
    let codes = answer.responses.iter().map(|topic| {
        let partitions = topic.partition_responses.iter();
        (&*topic.name, partitions.map(|p| (p.index, p.error_code)).collect::<Vec<_>>())
    });
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(
        codes.collect::<Vec<_>>(),
        [
            (
                "clicks",
                vec![(0, ErrorCode::CorruptMessage), (2, unknown), (1, ErrorCode::InvalidRecord)]
            ),
            ("ghosts", vec![(0, unknown)]),
            ("views", vec![(0, ErrorCode::None), (-1, unknown)]),
        ]
    );
    assert_eq!(broker.records("clicks"), []);
}

#[test]
fn a_topic_id_that_is_not_known_has_a_code_of_its_own() {
    let broker = clicks();
    let mut request = produce("clicks", Batch::of(&["a"]).encode());
    assert_eq!(ask(&broker, 13, &request).error_code, ErrorCode::UnknownTopicId);
    request.topic_data[0].topic_id = Uuid([9; 16]);
    assert_eq!(ask(&broker, 13, &request).error_code, ErrorCode::UnknownTopicId);
}

#[test]
fn without_acks_nothing_is_answered_and_an_error_closes_the_connection() {
    let broker = clicks();
    let mut client = broker.connect();
    for version in [3, 12] {
        let batch = Batch::of(&["a"]).encode();
        let request = Request { acks: 0, ..produce("clicks", batch.clone()) };
        client.send(ApiKey::Produce, version, &request);
        let answer: Response = client.call(ApiKey::Produce, 12, &produce("clicks", batch));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::None);
    }
    assert_eq!(broker.records("clicks").len(), 4);
    let request = Request { acks: 0, ..produce("ghosts", Batch::of(&["a"]).encode()) };
    client.send(ApiKey::Produce, 12, &request);
    assert!(client.is_closed());
}

#[test]
fn acks_are_all_one_or_none() {
    let broker = clicks();
    for (acks, code) in [
        (-1, ErrorCode::None),
        (1, ErrorCode::None),
        (2, ErrorCode::InvalidRequiredAcks),
        (-2, ErrorCode::InvalidRequiredAcks),
    ] {
        let request = Request { acks, ..produce("clicks", Batch::of(&["a"]).encode()) };
        assert_eq!(ask(&broker, 12, &request).error_code, code, "acks {acks}");
    }
}

/// Nobody could end the transaction, so the last stable offset would stay before it for ever.
#[test]
fn transactional_batches_are_refused_until_there_are_transactions() {
    let broker = clicks();
    let transactional = Batch { attributes: 1 << 4, ..from_producer(0) }.encode();
    let mut request = produce("clicks", transactional);
    let code = ask(&broker, 12, &request).error_code;
    assert_eq!(code, ErrorCode::TransactionalIdAuthorizationFailed);
    request.transactional_id = Some("tx".into());
    assert_eq!(ask(&broker, 12, &request).error_code, ErrorCode::InvalidTxnState);

    let control = Batch { attributes: 1 << 5, ..from_producer(0) };
    assert_eq!(broker.produce("clicks", &control).error_code, ErrorCode::InvalidRecord);
    // A plain batch may come with a transactional id.
    let plain = produce("clicks", from_producer(0).encode());
    let request = Request { transactional_id: Some("tx".into()), ..plain };
    assert_eq!(ask(&broker, 12, &request).error_code, ErrorCode::None);
}

#[test]
fn records_that_are_to_blame_are_named() {
    let broker = clicks();
    // Some thousand years ahead.
    let ahead = Batch::at(&[0, 1 << 45, 0]);
    let answer = broker.produce("clicks", &ahead);
    let told = (answer.error_code, answer.base_offset, answer.log_start_offset);
    assert_eq!(told, (ErrorCode::InvalidTimestamp, -1, 0));
    let named: Vec<_> = answer.record_errors.iter().map(|error| error.batch_index).collect();
    assert_eq!(named, [1]);
    let message = "One or more records have been rejected due to invalid timestamp";
    assert_eq!(answer.error_message.as_deref(), Some(message));
    // Older versions have a code only.
    let answer = ask(&broker, 7, &produce("clicks", ahead.encode()));
    assert_eq!(answer.error_code, ErrorCode::InvalidTimestamp);
    assert_eq!((answer.record_errors, answer.error_message), (vec![], None));
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = clicks();
    broker.create_with("compacted", 1, &[("cleanup.policy", "compact,delete")]);
    let batch = Batch::of(&["a", "b"]);
    assert_eq!(broker.produce("clicks", &batch).error_code, ErrorCode::None);
    let answer = broker.produce("compacted", &batch);
    assert_eq!((answer.error_code, answer.log_start_offset), (ErrorCode::InvalidRecord, 0));
    let why = "Compacted topic cannot accept message without key in topic partition compacted-0";
    let error = |batch_index| BatchIndexAndErrorMessage {
        batch_index,
        batch_index_error_message: Some(why.into()),
    };
    assert_eq!(answer.record_errors, [error(0), error(1)]);
    let message = format!(
        "One or more records have been rejected due to 2 record errors in total, and only showing \
         the first three errors at most: [RecordError(batchIndex=0, message='{why}'), \
         RecordError(batchIndex=1, message='{why}')]"
    );
    assert_eq!(answer.error_message.as_deref(), Some(&*message));
    assert_eq!(broker.records("compacted"), []);
}

#[test]
fn batches_are_stored_in_the_codec_of_their_topic() {
    let broker = Broker::with("compression.type=zstd");
    broker.create("zstd", 1);
    broker.create_with("producer", 1, &[("compression.type", "producer")]);
    for (codec, name) in ["uncompressed", "gzip", "snappy", "lz4"].iter().enumerate() {
        broker.create_with(name, 1, &[("compression.type", name)]);
        assert_eq!(broker.produce(name, &from_producer(0)).base_offset, 0);
        assert_eq!(broker.produce(name, &from_producer(2)).base_offset, 2);
        assert_eq!(broker.produce(name, &from_producer(0)).base_offset, 0, "a retry");
        let codecs: Vec<_> = broker.batches(name).iter().map(|b| b.header.attributes).collect();
        assert_eq!(codecs, [codec as i16; 2], "{name}");
        let values: Vec<_> = broker.records(name).into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, ["a", "b", "a", "b"]);
    }
    // What one broker compressed, another one takes as it is.
    let zipped = broker.batches("gzip").remove(0);
    let request = |topic| produce(topic, zipped.to_bytes());
    for (topic, codec) in [("zstd", 4), ("producer", 1), ("gzip", 1), ("uncompressed", 0)] {
        assert_eq!(ask(&broker, 12, &request(topic)).error_code, ErrorCode::None);
        let stored = broker.batches(topic).pop().unwrap();
        assert_eq!(stored.header.attributes, codec, "{topic}");
        assert_eq!(stored.records() == zipped.records(), codec == 1);
    }
}

#[test]
fn records_of_a_topic_of_log_append_time_have_the_time_that_is_answered() {
    for properties in ["", "log.message.timestamp.type=LogAppendTime"] {
        let broker = Broker::with(properties);
        let configs = [("message.timestamp.type", "LogAppendTime")];
        broker.create_with("clicks", 1, if properties.is_empty() { &configs } else { &[] });
        let first = broker.produce("clicks", &from_producer(0));
        assert_eq!(first.error_code, ErrorCode::None);
        assert!(first.log_append_time_ms > T);
        let again = broker.produce("clicks", &from_producer(0));
        assert_eq!(again.log_append_time_ms, first.log_append_time_ms, "a retry");
        let answer = ask(&broker, 3, &produce("clicks", Batch::at(&[0, 1 << 60]).encode()));
        assert!(answer.log_append_time_ms >= first.log_append_time_ms, "of records of any time");

        let mut stored = broker.batches("clicks");
        let header = stored.remove(0).header;
        assert_eq!((header.max_timestamp, header.attributes), (first.log_append_time_ms, 1 << 3));
        assert_eq!(header.base_timestamp, T, "what their producer said is still there");
        assert_eq!(stored[0].header.max_timestamp, answer.log_append_time_ms);
    }
}

#[test]
fn a_batch_that_comes_again_is_answered_as_the_first_time_and_stored_once() {
    let broker = clicks();
    assert_eq!(broker.produce("clicks", &from_producer(0)).base_offset, 0);
    assert_eq!(broker.produce("clicks", &from_producer(2)).base_offset, 2);
    let again = broker.produce("clicks", &from_producer(0));
    let told = (again.error_code, again.base_offset, again.log_append_time_ms);
    // Kafka tells the batch's largest timestamp, also if it is the producer's.
    assert_eq!(told, (ErrorCode::None, 0, T));
    let gap = broker.produce("clicks", &from_producer(6));
    let told = (gap.error_code, gap.base_offset, gap.log_start_offset);
    assert_eq!(told, (ErrorCode::OutOfOrderSequenceNumber, -1, 0));
    assert_eq!(broker.records("clicks").len(), 4);
}

#[test]
fn batches_of_one_connection_are_stored_in_the_order_in_which_they_were_sent() {
    let broker = clicks();
    let mut client = broker.connect();
    let values: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    for value in &values {
        client.send(ApiKey::Produce, 9, &produce("clicks", Batch::of(&[value]).encode()));
    }
    for (offset, _) in (0..).zip(&values) {
        let (_, answer): (_, Response) = client.receive(ApiKey::Produce, 9);
        assert_eq!(answer.responses[0].partition_responses[0].base_offset, offset);
    }
    assert_eq!(broker.records("clicks"), (0..).zip(values).collect::<Vec<_>>());
}

#[test]
fn what_the_store_does_not_answer_in_time_may_still_be_stored_once() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(1);
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 1);
    let request = Request { timeout_ms: 10, ..produce("clicks", from_producer(0).encode()) };
    let begin = Instant::now();
    assert_eq!(ask(&broker, 12, &request).error_code, ErrorCode::RequestTimedOut);
    assert!(begin.elapsed() >= Duration::from_secs(1), "a store gets a second at least");
    assert_eq!(broker.records("clicks"), [], "nothing is visible that is not stored");

    let mut client = broker.connect();
    client.send(ApiKey::Produce, 12, &produce("clicks", from_producer(0).encode()));
    storage.answers.add_permits(1);
    let (_, answer): (_, Response) = client.receive(ApiKey::Produce, 12);
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!((partition.error_code, partition.base_offset), (ErrorCode::None, 0));
    assert_eq!(broker.records("clicks").len(), 2);
}

#[test]
fn a_partition_that_is_late_does_not_hide_that_another_one_is_stored() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(1);
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 2);
    let asked = |times| {
        while *storage.asked.borrow() < times {
            std::thread::yield_now();
        }
    };
    let batch = || Batch::of(&["a"]).encode();
    let mut before = broker.connect();
    before.send(ApiKey::Produce, 12, &produce("clicks", batch()));
    asked(2);
    // The store's next two answers are for the batch before, and for partition 1.
    let mut request = Request { timeout_ms: 10, ..produce("clicks", batch()) };
    let other = PartitionProduceData { index: 1, records: Some(batch()) };
    request.topic_data[0].partition_data.insert(0, other);
    let mut client = broker.connect();
    client.send(ApiKey::Produce, 12, &request);
    asked(4);
    storage.answers.add_permits(2);

    let (_, answer): (_, Response) = client.receive(ApiKey::Produce, 12);
    let codes: Vec<_> =
        answer.responses[0].partition_responses.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::RequestTimedOut]);
}

#[test]
fn who_was_taken_over_names_its_successor() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(2);
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 1);
    assert_eq!(broker.produce("clicks", &Batch::of(&["a"])).error_code, ErrorCode::None);
    let mut client = broker.connect();
    let owner = Owner { address: "kafka.example:9093".into(), ..Owner::default() };
    storage.enter(State::Fenced(owner));

    let request = produce("clicks", Batch::of(&["b"]).encode());
    let answer: Response = client.call(ApiKey::Produce, 12, &request);
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower);
    // The memory store's epoch is 0.
    let leader = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
    assert_eq!(leader, (1, 1));
    let [endpoint] = &answer.node_endpoints[..] else { panic!("one endpoint: {answer:?}") };
    let told = (endpoint.node_id, &*endpoint.host, endpoint.port);
    assert_eq!(told, (1, "kafka.example", 9093));
}
