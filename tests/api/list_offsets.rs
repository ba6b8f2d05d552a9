use crate::batch::{Batch, T};
use crate::broker::Broker;
use kelp::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic, Request, Response,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

/// A broker with a topic of four records, the third of which is the latest.
fn clicks() -> Broker {
    let broker = Broker::start();
    broker.create("clicks", 2);
    broker.produce("clicks", &Batch::at(&[20, 40]));
    broker.produce("clicks", &Batch::at(&[80, 60]));
    broker
}

fn question(timestamp: i64) -> ListOffsetsPartition {
    ListOffsetsPartition { timestamp, max_num_offsets: 1, ..ListOffsetsPartition::default() }
}

fn request(partitions: Vec<ListOffsetsPartition>) -> Request {
    let topic = ListOffsetsTopic { name: "clicks".into(), partitions };
    Request { replica_id: -1, topics: vec![topic], ..Request::default() }
}

fn ask(
    broker: &Broker,
    version: i16,
    partition: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse {
    let mut answer: Response = broker.ask(ApiKey::ListOffsets, version, &request(vec![partition]));
    answer.topics.remove(0).partitions.remove(0)
}

/// Offset, time behind [`T`] (-1 for none) and leader epoch; -2 for a special time that the
/// version does not know.
fn found(broker: &Broker, version: i16, timestamp: i64) -> (i64, i64, i32) {
    let answer = ask(broker, version, question(timestamp));
    if answer.error_code == ErrorCode::UnsupportedVersion {
        return (-2, -2, -2);
    }
    assert_eq!(answer.error_code, ErrorCode::None);
    let time = if answer.timestamp < 0 { answer.timestamp } else { answer.timestamp - T };
    (answer.offset, time, answer.leader_epoch)
}

#[test]
fn the_ends_are_found_in_every_version() {
    let broker = clicks();
    for version in 1..=11 {
        let epoch = if version < 4 { -1 } else { 0 };
        assert_eq!(found(&broker, version, -1), (4, -1, epoch), "version {version}");
        assert_eq!(found(&broker, version, -2), (0, -1, epoch), "version {version}");
        let committed = Request { isolation_level: 1, ..request(vec![question(-1)]) };
        let answer: Response = broker.ask(ApiKey::ListOffsets, version, &committed);
        assert_eq!(answer.topics[0].partitions[0].offset, 4);
    }
}

#[test]
fn special_times_are_known_from_their_versions_on() {
    let broker = clicks();
    let unsupported = (-2, -2, -2);
    let nothing = (-1, -1, -1);
    for version in 1..=11 {
        let since = |first, found| if version < first { unsupported } else { found };
        let told = [-3, -4, -5, -6, -7].map(|timestamp| found(&broker, version, timestamp));
        let expected = [
            since(7, (2, 80, 0)),
            since(8, (0, -1, 0)),
            since(9, nothing),
            since(11, nothing),
            unsupported,
        ];
        assert_eq!(told, expected, "version {version}");
    }
}

#[test]
fn a_time_is_that_of_the_first_record_at_it_or_later() {
    let broker = clicks();
    for (time, expected) in [(-T, (0, 20, 0)), (20, (0, 20, 0)), (21, (1, 40, 0)), (41, (2, 80, 0))]
    {
        assert_eq!(found(&broker, 9, T + time), expected, "{time}");
    }
    assert_eq!(found(&broker, 9, T + 81), (-1, -1, -1));
    assert_eq!(found(&broker, 9, i64::MAX), (-1, -1, -1));
}

#[test]
fn version_0_answers_a_list() {
    let broker = clicks();
    let offsets = |timestamp, max_num_offsets| {
        let partition = ListOffsetsPartition { max_num_offsets, ..question(timestamp) };
        let answer = ask(&broker, 0, partition);
        assert_eq!(answer.error_code, ErrorCode::None);
        answer.old_style_offsets
    };
    assert_eq!(offsets(-1, 1), [4]);
    assert_eq!(offsets(-1, 9), [4, 0]);
    assert_eq!(offsets(-2, 9), [0]);
    assert_eq!(offsets(T + 41, 9), [2, 0]);
    assert_eq!(offsets(T + 81, 1), [4], "all is before this time");
    assert_eq!(offsets(-1, 0), [0i64; 0]);
    assert_eq!(offsets(-1, -1), [0i64; 0]);
    let code = ask(&broker, 0, question(-3)).error_code;
    assert_eq!(code, ErrorCode::UnsupportedVersion);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let broker = clicks();
    let refused = |partition| {
        let answer = ask(&broker, 9, partition);
        assert_eq!((answer.offset, answer.timestamp, answer.leader_epoch), (-1, -1, -1));
        answer.error_code
    };
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(refused(ListOffsetsPartition { partition_index: 2, ..question(-1) }), unknown);
    assert_eq!(refused(ListOffsetsPartition { partition_index: -1, ..question(-1) }), unknown);
    // The memory store's epoch is 0.
    let later = ListOffsetsPartition { current_leader_epoch: 1, ..question(-1) };
    assert_eq!(refused(later), ErrorCode::UnknownLeaderEpoch);

    let twice = request(vec![question(-1), question(-2)]);
    let answer: Response = broker.ask(ApiKey::ListOffsets, 9, &twice);
    let codes = answer.topics[0].partitions.iter().map(|p| p.error_code);
    assert_eq!(codes.collect::<Vec<_>>(), [ErrorCode::InvalidRequest; 2]);
    let level = Request { isolation_level: 9, ..request(vec![question(-1)]) };
    let answer: Response = broker.ask(ApiKey::ListOffsets, 9, &level);
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::UnknownServerError);
}
