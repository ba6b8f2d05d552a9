use crate::batch::{Batch, fetch};
use crate::broker::{Broker, PATIENCE};
use kelp::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopic, Request, Response,
};
use kelp::messages::{fetch as fetching, metadata};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::objects::memory::Memory;
use std::sync::Arc;

fn ask(
    broker: &Broker,
    version: i16,
    topic: &str,
    asked: OffsetForLeaderPartition,
) -> EpochEndOffset {
    let topic = OffsetForLeaderTopic { topic: topic.into(), partitions: vec![asked] };
    let request = Request { replica_id: -1, topics: vec![topic] };
    let mut answer: Response = broker.ask(ApiKey::OffsetForLeaderEpoch, version, &request);
    answer.topics.remove(0).partitions.remove(0)
}

fn question(leader_epoch: i32) -> OffsetForLeaderPartition {
    OffsetForLeaderPartition { leader_epoch, ..OffsetForLeaderPartition::default() }
}

/// Epoch and end offset.
fn end(broker: &Broker, leader_epoch: i32) -> (i32, i64) {
    let answer = ask(broker, 4, "clicks", question(leader_epoch));
    assert_eq!((answer.error_code, answer.partition), (ErrorCode::None, 0));
    (answer.leader_epoch, answer.end_offset)
}

#[test]
fn every_version_says_where_the_present_epoch_ends() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    broker.produce("clicks", &Batch::of(&["a", "b"]));
    for version in 0..=4 {
        let known = ask(&broker, version, "clicks", question(0));
        let leader_epoch = if version == 0 { -1 } else { 0 };
        let expected = EpochEndOffset { leader_epoch, end_offset: 2, ..Default::default() };
        assert_eq!(known, expected, "version {version}");
        let future = ask(&broker, version, "clicks", question(1));
        assert_eq!(future, EpochEndOffset::default());
    }
}

/// What a client is told that comes back after its broker was started again.
#[test]
fn the_epochs_of_earlier_starts_are_known() {
    let objects = Arc::new(Memory::default());
    let mut epochs = Vec::new();
    for (start, records) in [2, 0, 1, 3].into_iter().enumerate() {
        let broker = Broker::sharing(objects.clone(), "");
        if start == 0 {
            broker.create("clicks", 1);
        }
        for _ in 0..records {
            assert_eq!(broker.produce("clicks", &Batch::of(&["a"])).error_code, ErrorCode::None);
        }
        epochs.push(leader_epoch(&broker));
        if start < 3 {
            broker.engine.stop(PATIENCE);
            continue;
        }
        let ends: Vec<_> = epochs.iter().map(|epoch| end(&broker, *epoch)).collect();
        let expected = [(epochs[0], 2), (epochs[0], 2), (epochs[2], 3), (epochs[3], 6)];
        assert_eq!(ends, expected);
        assert_eq!(end(&broker, epochs[3] + 1), (-1, -1));
    }
    assert!(epochs.is_sorted_by(|a, b| a < b));
}

/// No client of Kafka's says which epoch it read last, only followers do; but who does is answered.
#[test]
fn a_fetch_that_says_what_it_read_last_is_told_where_the_logs_part() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    broker.produce("clicks", &Batch::of(&["a", "b"]));
    let mut request = fetch("clicks", 3);
    request.topics[0].topic_id = broker.topic_id("clicks");
    (request.max_wait_ms, request.min_bytes) = (i32::MAX, 1);
    request.topics[0].partitions[0].last_fetched_epoch = 0;
    for version in 12..=18 {
        let answer: fetching::Response = broker.ask(ApiKey::Fetch, version, &request);
        let data = &answer.responses[0].partitions[0];
        let diverging = (data.diverging_epoch.epoch, data.diverging_epoch.end_offset);
        assert_eq!((data.error_code, diverging), (ErrorCode::None, (0, 2)), "version {version}");
        assert_eq!(data.records.as_ref().map(|records| records.len()), Some(0));
    }
}

fn leader_epoch(broker: &Broker) -> i32 {
    let request = metadata::Request { topics: None, ..Default::default() };
    let answer: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    answer.topics[0].partitions[0].leader_epoch
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let refused = |version, topic: &str, asked| {
        let answer = ask(&broker, version, topic, asked);
        assert_eq!((answer.leader_epoch, answer.end_offset), (-1, -1));
        answer.error_code
    };
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(refused(4, "others", question(0)), unknown);
    for partition in [-1, 1] {
        let asked = OffsetForLeaderPartition { partition, ..question(0) };
        assert_eq!(refused(4, "clicks", asked), unknown);
    }
    // The memory store's epoch is 0.
    let later = OffsetForLeaderPartition { current_leader_epoch: 1, ..question(0) };
    assert_eq!(refused(2, "clicks", later.clone()), ErrorCode::UnknownLeaderEpoch);
    assert_eq!(ask(&broker, 1, "clicks", later).error_code, ErrorCode::None);
}
