//! Committed offsets: what is kept, for how long, and where.

use crate::broker::Broker;
use crate::storage::Held;
use kelp::messages::{
    delete_topics, fetch, heartbeat, metadata, offset_commit, offset_delete, offset_fetch, produce,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;
use kelp::record::batch::Batches;
use kelp::record::unpacked::Unpacked;
use kelp::store::memory::Memory;
use kelp::store::{State, Storage, objects};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const GROUP: &str = "group";

/// A commit of a group without members.
fn commit(topic: &str, topic_id: Uuid, offsets: &[(i32, i64)]) -> offset_commit::Request {
    let partition = |(partition_index, committed_offset): &(i32, i64)| {
        offset_commit::OffsetCommitRequestPartition {
            partition_index: *partition_index,
            committed_offset: *committed_offset,
            committed_leader_epoch: 3,
            committed_metadata: Some("note".into()),
            ..Default::default()
        }
    };
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: topic.into(),
        topic_id,
        partitions: offsets.iter().map(partition).collect(),
    };
    offset_commit::Request { group_id: GROUP.into(), topics: vec![topic], ..Default::default() }
}

fn committed(broker: &Broker, version: i16, request: &offset_commit::Request) -> Vec<ErrorCode> {
    let answer: offset_commit::Response = broker.ask(ApiKey::OffsetCommit, version, request);
    let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| partition.error_code).collect()
}

/// All offsets of the group; or why there are none.
fn fetched(broker: &Broker) -> Result<Vec<(String, i32, i64)>, ErrorCode> {
    let request =
        offset_fetch::Request { group_id: GROUP.into(), topics: None, ..Default::default() };
    let answer: offset_fetch::Response = broker.ask(ApiKey::OffsetFetch, 7, &request);
    if answer.error_code.is_error() {
        return Err(answer.error_code);
    }
    let mut offsets = Vec::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            let (index, offset) = (partition.partition_index, partition.committed_offset);
            offsets.push((topic.name.to_string(), index, offset));
        }
    }
    Ok(offsets)
}

fn clicks(partition: i32, offset: i64) -> (String, i32, i64) {
    ("clicks".to_string(), partition, offset)
}

/// A broker with a topic of two partitions, and a coordinator.
fn broker() -> Broker {
    let broker = Broker::start();
    broker.create("clicks", 2);
    broker.find_coordinator(GROUP);
    broker
}

fn delete(broker: &Broker, topic: &'static str) {
    let topic_names = vec![topic.into()];
    let request = delete_topics::Request { topic_names, timeout_ms: 20_000, ..Default::default() };
    let answer: delete_topics::Response = broker.ask(ApiKey::DeleteTopics, 5, &request);
    assert_eq!(answer.responses[0].error_code, ErrorCode::None);
}

fn id_of(broker: &Broker, topic: &str) -> Uuid {
    let name = Some(topic.into());
    let asked = metadata::MetadataRequestTopic { name, ..Default::default() };
    let request = metadata::Request { topics: Some(vec![asked]), ..Default::default() };
    let answer: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    answer.topics[0].topic_id
}

#[test]
fn offsets_are_told_as_they_were_committed_in_every_version() {
    for version in ApiKey::OffsetCommit.versions() {
        let broker = broker();
        let id = id_of(&broker, "clicks");
        let request = commit("clicks", id, &[(1, 7), (2, 7), (0, 8)]);
        let unknown = ErrorCode::UnknownTopicOrPartition;
        let codes = committed(&broker, version, &request);
        assert_eq!(codes, [ErrorCode::None, unknown, ErrorCode::None], "version {version}");
        assert_eq!(fetched(&broker), Ok(vec![clicks(0, 8), clicks(1, 7)]), "version {version}");
    }
}

#[test]
fn a_topic_that_is_not_there_is_refused_alone() {
    let broker = broker();
    let mut request = commit("nobody", Uuid::ZERO, &[(0, 7)]);
    assert_eq!(committed(&broker, 9, &request), [ErrorCode::UnknownTopicOrPartition]);
    assert_eq!(committed(&broker, 10, &request), [ErrorCode::UnknownTopicId]);
    request.topics.extend(commit("clicks", Uuid::ZERO, &[(0, 9)]).topics);
    let codes = committed(&broker, 9, &request);
    assert_eq!(codes, [ErrorCode::UnknownTopicOrPartition, ErrorCode::None]);
}

#[test]
fn a_commit_that_does_not_fit_into_a_batch_is_refused_as_a_whole() {
    let broker = Broker::with("message.max.bytes=1000");
    broker.create("clicks", 30);
    broker.find_coordinator(GROUP);
    let offsets: Vec<_> = (0..30).map(|partition| (partition, 7)).collect();
    let codes = committed(&broker, 9, &commit("clicks", Uuid::ZERO, &offsets));
    assert_eq!(codes, [ErrorCode::UnknownServerError; 30]);
    assert_eq!(fetched(&broker), Ok(vec![]));
    for offsets in offsets.chunks(3) {
        let codes = committed(&broker, 9, &commit("clicks", Uuid::ZERO, offsets));
        assert_eq!(codes, [ErrorCode::None; 3]);
    }
    // What the broker itself has to do is not refused.
    delete(&broker, "clicks");
    assert_eq!(fetched(&broker), Ok(vec![]));
}

#[test]
fn several_groups_are_asked_at_once_by_names_and_by_ids() {
    let broker = broker();
    let id = id_of(&broker, "clicks");
    committed(&broker, 9, &commit("clicks", id, &[(1, 7)]));
    for version in 8..=10 {
        let topic = |name: &str, topic_id| offset_fetch::OffsetFetchRequestTopics {
            name: name.into(),
            topic_id,
            partition_indexes: vec![0, 1],
        };
        let some = offset_fetch::OffsetFetchRequestGroup {
            group_id: GROUP.into(),
            topics: Some(vec![topic("clicks", id), topic("nobody", Uuid([7; 16]))]),
            ..Default::default()
        };
        let all = offset_fetch::OffsetFetchRequestGroup { topics: None, ..some.clone() };
        let none = offset_fetch::OffsetFetchRequestGroup { group_id: "none".into(), ..all.clone() };
        let groups = vec![some, all, none];
        let request = offset_fetch::Request { groups, ..Default::default() };
        let answer: offset_fetch::Response = broker.ask(ApiKey::OffsetFetch, version, &request);
        let [some, all, none] = &answer.groups[..] else { panic!("{answer:?}") };
        let is_clicks = |topic: &offset_fetch::OffsetFetchResponseTopics| match version {
            10 => topic.topic_id == id && topic.name.is_empty(),
            _ => &*topic.name == "clicks",
        };
        let partitions = |topic: &offset_fetch::OffsetFetchResponseTopics| {
            let partition = |p: &offset_fetch::OffsetFetchResponsePartitions| {
                (p.partition_index, p.committed_offset, p.metadata.clone(), p.error_code)
            };
            topic.partitions.iter().map(partition).collect::<Vec<_>>()
        };
        let nothing = |index, code| (index, -1, Some("".into()), code);
        let seven = (1, 7, Some("note".into()), ErrorCode::None);
        assert!(is_clicks(&some.topics[0]), "version {version}: {some:?}");
        assert_eq!(partitions(&some.topics[0]), [nothing(0, ErrorCode::None), seven.clone()]);
        let unknown = if version == 10 { ErrorCode::UnknownTopicId } else { ErrorCode::None };
        assert_eq!(partitions(&some.topics[1]), [nothing(0, unknown), nothing(1, unknown)]);
        assert!(is_clicks(&all.topics[0]));
        assert_eq!((all.topics.len(), partitions(&all.topics[0])), (1, vec![seven]));
        assert_eq!((none.error_code, none.topics.len()), (ErrorCode::None, 0));
    }
}

#[test]
fn an_error_of_the_group_is_told_for_each_partition_where_it_has_no_place_of_its_own() {
    // There is no coordinator: nobody has asked for one.
    let broker = Broker::start();
    let topic = offset_fetch::OffsetFetchRequestTopic {
        name: "clicks".into(),
        partition_indexes: vec![0, 1],
    };
    for (version, partitions, code) in
        [(0, 2, ErrorCode::None), (1, 2, ErrorCode::None), (2, 0, ErrorCode::NotCoordinator)]
    {
        let topics = Some(vec![topic.clone()]);
        let request =
            offset_fetch::Request { group_id: GROUP.into(), topics, ..Default::default() };
        let answer: offset_fetch::Response = broker.ask(ApiKey::OffsetFetch, version, &request);
        assert_eq!(answer.error_code, code);
        let told: Vec<_> = answer.topics.iter().flat_map(|topic| &topic.partitions).collect();
        assert_eq!(told.len(), partitions, "version {version}");
        for partition in told {
            assert_eq!(partition.error_code, ErrorCode::NotCoordinator);
            assert_eq!(partition.committed_offset, -1);
        }
    }
}

#[test]
fn offsets_go_when_somebody_deletes_them_or_their_topic() {
    let broker = broker();
    broker.create("views", 1);
    let id = id_of(&broker, "clicks");
    committed(&broker, 9, &commit("clicks", id, &[(0, 7), (1, 8)]));
    committed(&broker, 9, &commit("views", Uuid::ZERO, &[(0, 9)]));

    let partition =
        |partition_index| offset_delete::OffsetDeleteRequestPartition { partition_index };
    let topic = offset_delete::OffsetDeleteRequestTopic {
        name: "clicks".into(),
        partitions: vec![partition(9), partition(0)],
    };
    let request = offset_delete::Request { group_id: GROUP.into(), topics: vec![topic] };
    let deleted: offset_delete::Response = broker.ask(ApiKey::OffsetDelete, 0, &request);
    assert_eq!(deleted.error_code, ErrorCode::None);
    let codes: Vec<_> = deleted.topics[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [ErrorCode::UnknownTopicOrPartition, ErrorCode::None]);
    assert_eq!(fetched(&broker), Ok(vec![clicks(1, 8), ("views".to_string(), 0, 9)]));

    delete(&broker, "clicks");
    assert_eq!(fetched(&broker), Ok(vec![("views".to_string(), 0, 9)]));
}

#[test]
fn offsets_of_a_topic_whose_deletion_a_broker_did_not_live_to_tell_go_when_they_are_read() {
    let storage = Arc::new(Memory::default());
    let first = Broker::on(storage.clone(), "");
    first.create("clicks", 2);
    first.create("views", 1);
    first.find_coordinator(GROUP);
    let offsets =
        [commit("clicks", Uuid::ZERO, &[(0, 7), (1, 8)]), commit("views", Uuid::ZERO, &[(0, 9)])];
    offsets.iter().for_each(|offsets| assert!(!committed(&first, 9, offsets)[0].is_error()));
    let id = id_of(&first, "clicks");
    first.engine.stop(crate::broker::PATIENCE);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(storage.delete_topic(id)).unwrap();

    let second = Broker::on(storage.clone(), "");
    // One of the same name is another topic.
    second.create("clicks", 1);
    let views = ("views".to_string(), 0, 9);
    assert_eq!(second.until_loaded(fetched), Ok(vec![views.clone()]));
    committed(&second, 9, &commit("clicks", Uuid::ZERO, &[(0, 1)]));
    second.engine.stop(crate::broker::PATIENCE);
    let third = Broker::on(storage, "");
    assert_eq!(third.until_loaded(fetched), Ok(vec![clicks(0, 1), views]));
}

#[test]
fn the_topic_of_offsets_is_there_when_somebody_needs_it_and_belongs_to_the_broker() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let name = Some("__consumer_offsets".into());
    let asked = metadata::MetadataRequestTopic { name, ..Default::default() };
    let request = metadata::Request { topics: Some(vec![asked]), ..Default::default() };
    let before: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    assert_eq!(before.topics[0].error_code, ErrorCode::UnknownTopicOrPartition);
    broker.find_coordinator(GROUP);
    let after: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    let topic = &after.topics[0];
    assert_eq!((topic.error_code, topic.partitions.len()), (ErrorCode::None, 50));
    assert!(topic.is_internal);

    let data = produce::PartitionProduceData::default();
    let produced = produce::Request {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![produce::TopicProduceData {
            name: "__consumer_offsets".into(),
            partition_data: vec![data],
            ..Default::default()
        }],
        ..Default::default()
    };
    let refused: produce::Response = broker.ask(ApiKey::Produce, 9, &produced);
    assert!(refused.responses[0].partition_responses[0].error_code.is_error());
}

#[test]
fn what_was_committed_can_be_consumed_as_kafka_writes_it() {
    let broker = broker();
    committed(&broker, 9, &commit("clicks", Uuid::ZERO, &[(1, 7)]));
    // `"group".hashCode()` is 98629247: partition 47 of 50.
    let partition =
        fetch::FetchPartition { partition: 47, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = fetch::FetchTopic {
        topic: "__consumer_offsets".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = fetch::Request { max_bytes: 1 << 20, topics: vec![topic], ..Default::default() };
    let answer: fetch::Response = broker.ask(ApiKey::Fetch, 12, &request);
    let records = answer.responses[0].partitions[0].records.clone().unwrap();
    let mut keys = Vec::new();
    for batch in Batches::new(records.0) {
        for record in &Unpacked::new(&batch).unwrap() {
            keys.push(record.unwrap().key.unwrap().to_vec());
        }
    }
    // Version 1 of the key: group, topic, partition.
    let key = b"\0\x01\0\x05group\0\x06clicks\0\0\0\x01".to_vec();
    assert_eq!(keys, [key]);
}

#[test]
fn a_restarted_broker_has_all_offsets_and_so_has_one_that_takes_over() {
    let objects = Arc::new(objects::memory::Memory::default());
    let first = Broker::sharing(objects.clone(), "");
    first.create("clicks", 2);
    first.find_coordinator(GROUP);
    assert_eq!(committed(&first, 9, &commit("clicks", Uuid::ZERO, &[(1, 7)])), [ErrorCode::None]);
    first.engine.stop(crate::broker::PATIENCE);

    let second = Broker::sharing(objects.clone(), "");
    second.find_coordinator(GROUP);
    assert_eq!(second.until_loaded(fetched), Ok(vec![clicks(1, 7)]));
    assert_eq!(committed(&second, 9, &commit("clicks", Uuid::ZERO, &[(1, 8)])), [ErrorCode::None]);

    let listeners = "listeners=A://127.0.0.1:0\nadvertised.listeners=A://third:9092";
    let third = Broker::sharing(objects, &format!("{listeners}\nkelp.takeover=true"));
    third.find_coordinator(GROUP);
    assert_eq!(third.until_loaded(fetched), Ok(vec![clicks(1, 8)]));
    // The second learns of it when it writes, and sends the group there.
    let codes = committed(&second, 9, &commit("clicks", Uuid::ZERO, &[(1, 6)]));
    assert_eq!(codes, [ErrorCode::NotCoordinator]);
    assert_eq!(second.find_coordinator(GROUP), ("third".to_string(), 9092));
    assert_eq!(third.until_loaded(fetched), Ok(vec![clicks(1, 8)]));
}

#[test]
fn while_records_are_read_clients_are_told_to_come_again() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(1000);
    let first = Broker::on(storage.clone(), "");
    first.create("clicks", 2);
    first.find_coordinator(GROUP);
    assert_eq!(committed(&first, 9, &commit("clicks", Uuid::ZERO, &[(1, 7)])), [ErrorCode::None]);
    first.engine.stop(crate::broker::PATIENCE);

    storage.holds_reads.store(true, Ordering::Relaxed);
    let second = Broker::on(storage.clone(), "");
    let loading = ErrorCode::CoordinatorLoadInProgress;
    assert_eq!(fetched(&second), Err(loading));
    assert_eq!(committed(&second, 9, &commit("clicks", Uuid::ZERO, &[(1, 8)])), [loading]);
    // As Kafka does: a member must not give up because its coordinator has moved.
    let request = heartbeat::Request { group_id: GROUP.into(), ..Default::default() };
    let answer: heartbeat::Response = second.ask(ApiKey::Heartbeat, 4, &request);
    assert_eq!(answer.error_code, ErrorCode::None);
    storage.reads.add_permits(1000);
    assert_eq!(second.until_loaded(fetched), Ok(vec![clicks(1, 7)]));
    assert!(storage.topics().by_name("__consumer_offsets").is_some());
}

#[test]
fn a_commit_is_not_acknowledged_before_it_is_stored() {
    let storage = Arc::new(Held::new(State::Serving));
    storage.answers.add_permits(2);
    let broker = Broker::on(storage.clone(), "offsets.commit.timeout.ms=600000");
    broker.create("clicks", 2);
    broker.find_coordinator(GROUP);
    let mut client = broker.connect();
    client.send(ApiKey::OffsetCommit, 9, &commit("clicks", Uuid::ZERO, &[(1, 7)]));
    storage.until_asked(3);
    // The answer to who only reads waits too: a crash would undo what it saw.
    let mut reader = broker.connect();
    let request =
        offset_fetch::Request { group_id: GROUP.into(), topics: None, ..Default::default() };
    reader.send(ApiKey::OffsetFetch, 7, &request);
    for client in [&mut client, &mut reader] {
        client.stream.set_nonblocking(true).unwrap();
        let nothing = client.stream.peek(&mut [0]).map_err(|error| error.kind());
        assert_eq!(nothing, Err(std::io::ErrorKind::WouldBlock));
        client.stream.set_nonblocking(false).unwrap();
    }
    storage.answers.add_permits(1);
    let (_, answer): (i32, offset_commit::Response) = client.receive(ApiKey::OffsetCommit, 9);
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::None);
    let (_, answer): (i32, offset_fetch::Response) = reader.receive(ApiKey::OffsetFetch, 7);
    assert_eq!(answer.topics[0].partitions[0].committed_offset, 7);
}
