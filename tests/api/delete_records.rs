use crate::batch::{Batch, fetch, produce};
use crate::broker::{Broker, PATIENCE};
use crate::storage::Held;
use kelp::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopic, Request, Response,
};
use kelp::messages::{fetch as fetching, list_offsets, produce as producing};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::State;
use kelp::store::objects::memory::Memory;
use std::sync::Arc;
use std::time::Instant;

/// A broker with a topic of four records in each of three partitions.
fn clicks() -> Broker {
    let broker = Broker::start();
    broker.create("clicks", 3);
    for index in 0..3 {
        for records in [&["a", "b", "c"][..], &["d"]] {
            let mut request = produce("clicks", Batch::of(records).encode());
            request.topic_data[0].partition_data[0].index = index;
            let answer: producing::Response = broker.ask(ApiKey::Produce, 12, &request);
            assert_eq!(answer.responses[0].partition_responses[0].error_code, ErrorCode::None);
        }
    }
    broker
}

fn topic(name: &str, partitions: &[(i32, i64)]) -> DeleteRecordsTopic {
    let partition = |(partition_index, offset): &(i32, i64)| DeleteRecordsPartition {
        partition_index: *partition_index,
        offset: *offset,
    };
    DeleteRecordsTopic { name: name.into(), partitions: partitions.iter().map(partition).collect() }
}

fn request(topics: Vec<DeleteRecordsTopic>) -> Request {
    Request { topics, timeout_ms: 30_000 }
}

type Deleted = Result<i64, ErrorCode>;

fn deleted(result: &DeleteRecordsPartitionResult) -> Deleted {
    match result.error_code {
        ErrorCode::None => Ok(result.low_watermark),
        code => {
            assert_eq!(result.low_watermark, -1);
            Err(code)
        }
    }
}

/// Deletes in one partition.
fn delete(broker: &Broker, name: &str, partition: i32, offset: i64) -> Deleted {
    let request = request(vec![topic(name, &[(partition, offset)])]);
    let answer: Response = broker.ask(ApiKey::DeleteRecords, 2, &request);
    deleted(&answer.topics[0].partitions[0])
}

/// The offset that stands for -2.
fn earliest(broker: &Broker) -> i64 {
    let partition = list_offsets::ListOffsetsPartition { timestamp: -2, ..Default::default() };
    let topic =
        list_offsets::ListOffsetsTopic { name: "clicks".into(), partitions: vec![partition] };
    let request = list_offsets::Request { topics: vec![topic], ..Default::default() };
    let answer: list_offsets::Response = broker.ask(ApiKey::ListOffsets, 9, &request);
    answer.topics[0].partitions[0].offset
}

fn read(broker: &Broker, offset: i64) -> fetching::PartitionData {
    let mut answer: fetching::Response = broker.ask(ApiKey::Fetch, 12, &fetch("clicks", offset));
    answer.responses[0].partitions.remove(0)
}

#[test]
fn the_start_moves_forward_only_and_never_past_the_high_watermark() {
    let broker = clicks();
    let out_of_range = Err(ErrorCode::OffsetOutOfRange);
    for (offset, expected, start) in [
        (-3, out_of_range, 0),
        (-2, out_of_range, 0),
        (5, out_of_range, 0),
        (0, Ok(0), 0),
        (2, Ok(2), 2),
        (1, Ok(2), 2),
        (2, Ok(2), 2),
        (-1, Ok(4), 4),
        (3, Ok(4), 4),
        (5, out_of_range, 4),
    ] {
        assert_eq!(delete(&broker, "clicks", 0, offset), expected, "{offset}");
        assert_eq!(earliest(&broker), start);
        let data = read(&broker, start);
        assert_eq!((data.error_code, data.log_start_offset), (ErrorCode::None, start));
        assert_eq!(read(&broker, start - 1).error_code, ErrorCode::OffsetOutOfRange);
    }
    assert_eq!(delete(&broker, "clicks", 1, 3), Ok(3), "each partition for itself");
    let appended = broker.produce("clicks", &Batch::of(&["e"]));
    assert_eq!((appended.base_offset, appended.log_start_offset), (4, 4));
}

#[test]
fn all_versions_and_many_partitions_at_once() {
    let broker = clicks();
    for version in 0..=2 {
        let offset = i64::from(version) + 1;
        let request = request(vec![
            topic("clicks", &[(0, 1), (0, 4), (2, offset), (1, 9)]),
            topic("others", &[(0, 0)]),
            topic("", &[(0, 0)]),
            topic("nothing", &[]),
            // What is named again counts.
            topic("clicks", &[(0, offset)]),
        ]);
        let answer: Response = broker.ask(ApiKey::DeleteRecords, version, &request);
        let results = answer.topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|p| (&*topic.name, p.partition_index, deleted(p)))
        });
        let unknown = Err(ErrorCode::UnknownTopicOrPartition);
        let expected = [
            ("", 0, unknown),
            ("clicks", 0, Ok(offset)),
            ("clicks", 1, Err(ErrorCode::OffsetOutOfRange)),
            ("clicks", 2, Ok(offset)),
            ("others", 0, unknown),
        ];
        assert_eq!(results.collect::<Vec<_>>(), expected, "version {version}");
    }
    let answer: Response = broker.ask(ApiKey::DeleteRecords, 2, &request(vec![]));
    assert_eq!(answer, Response::default());
}

#[test]
fn only_of_topics_whose_records_may_be_deleted() {
    let refused = Err(ErrorCode::PolicyViolation);
    for (policy, expected) in
        [("compact", refused), ("compact,delete", Ok(1)), ("delete", Ok(1)), ("", Ok(1))]
    {
        let broker = Broker::start();
        broker.create_with("clicks", 1, &[("cleanup.policy", policy)]);
        if expected.is_ok() {
            // A compacted topic takes no record without a key.
            let (code, empty) = (ErrorCode::OffsetOutOfRange, delete(&broker, "clicks", 0, 1));
            assert_eq!(empty, Err(code), "{policy}");
            assert_eq!(delete(&broker, "clicks", 0, -1), Ok(0), "{policy}");
        }
        if policy == "compact" {
            assert_eq!(delete(&broker, "clicks", 0, 9), refused);
            assert_eq!(delete(&broker, "clicks", 0, -1), refused);
        } else if policy != "compact,delete" {
            broker.produce("clicks", &Batch::of(&["a"]));
            assert_eq!(delete(&broker, "clicks", 0, 1), expected, "{policy}");
        }
    }
    let broker = clicks();
    let unknown = Err(ErrorCode::UnknownTopicOrPartition);
    assert_eq!(delete(&broker, "clicks", 3, 0), unknown);
    assert_eq!(delete(&broker, "clicks", -1, 0), unknown);
    broker.find_coordinator("group");
    let internal = Err(ErrorCode::InvalidTopicException);
    assert_eq!(delete(&broker, "__consumer_offsets", 0, 0), internal);
    assert_eq!(delete(&broker, "__consumer_offsets", 99, 0), unknown);
}

/// Apache Kafka leaves such a fetch waiting until its time is over.
#[test]
fn a_fetch_that_waits_below_the_new_start_is_answered_at_once() {
    let broker = clicks();
    let mut client = broker.connect();
    let mut waiting = fetch("clicks", 1);
    (waiting.max_wait_ms, waiting.min_bytes) = (i32::MAX, 1 << 20);
    client.send(ApiKey::Fetch, 12, &waiting);
    let mut at_the_end = broker.connect();
    waiting.topics[0].partitions[0].fetch_offset = 4;
    waiting.min_bytes = 1;
    at_the_end.send(ApiKey::Fetch, 12, &waiting);

    assert_eq!(delete(&broker, "clicks", 0, -1), Ok(4));
    let (_, answer): (i32, fetching::Response) = client.receive(ApiKey::Fetch, 12);
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::OffsetOutOfRange);
    broker.produce("clicks", &Batch::of(&["e"]));
    let (_, answer): (i32, fetching::Response) = at_the_end.receive(ApiKey::Fetch, 12);
    let data = &answer.responses[0].partitions[0];
    assert_eq!((data.error_code, data.log_start_offset), (ErrorCode::None, 4));
}

#[test]
fn what_was_deleted_stays_so_after_a_restart() {
    let objects = Arc::new(Memory::default());
    let first = Broker::sharing(objects.clone(), "");
    first.create("clicks", 1);
    first.produce("clicks", &Batch::of(&["a", "b", "c"]));
    assert_eq!(delete(&first, "clicks", 0, 2), Ok(2));
    first.engine.stop(PATIENCE);
    let second = Broker::sharing(objects, "");
    assert_eq!(earliest(&second), 2);
    assert_eq!(read(&second, 1).error_code, ErrorCode::OffsetOutOfRange);
}

#[test]
fn a_store_that_is_late_is_not_waited_for_and_what_it_did_is_known() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(2);
    let broker = Broker::on(storage.clone(), "");
    broker.create("clicks", 1);
    broker.produce("clicks", &Batch::of(&["a", "b"]));
    let request = Request { topics: vec![topic("clicks", &[(0, 1)])], timeout_ms: 0 };
    let answer: Response = broker.ask(ApiKey::DeleteRecords, 2, &request);
    assert_eq!(deleted(&answer.topics[0].partitions[0]), Err(ErrorCode::RequestTimedOut));
    assert_eq!(earliest(&broker), 0);

    storage.answers.add_permits(1);
    let begin = Instant::now();
    while earliest(&broker) != 1 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}
