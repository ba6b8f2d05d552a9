use crate::broker::Broker;
use kelp::messages::metadata::{
    MetadataRequestTopic, MetadataResponsePartition, MetadataResponseTopic, Request, Response,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;
use std::thread;

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(name.into()), topic_id: Uuid::ZERO }
}

fn with_id(topic_id: Uuid) -> MetadataRequestTopic {
    MetadataRequestTopic { name: None, topic_id }
}

fn about(topics: Vec<MetadataRequestTopic>) -> Request {
    Request { topics: Some(topics), allow_auto_topic_creation: false, ..Request::default() }
}

fn ask(broker: &Broker, version: i16, request: &Request) -> Response {
    broker.ask(ApiKey::Metadata, version, request)
}

fn codes(topics: &[MetadataResponseTopic]) -> Vec<ErrorCode> {
    topics.iter().map(|topic| topic.error_code).collect()
}

#[test]
fn null_is_all_topics_and_empty_is_none_but_in_version_0() {
    let broker = Broker::start();
    broker.create("clicks", 2);
    assert_eq!(ask(&broker, 0, &about(vec![])).topics.len(), 1);
    for version in 1..=13 {
        let all = Request { topics: None, ..Request::default() };
        assert_eq!(ask(&broker, version, &all).topics.len(), 1, "version {version}");
        let none = ask(&broker, version, &about(vec![]));
        assert_eq!((none.topics.len(), none.brokers.len()), (0, 1), "version {version}");
    }
}

#[test]
fn a_topic_is_described_with_its_leader() {
    let broker = Broker::start();
    broker.create("clicks", 2);
    let answer = ask(&broker, 12, &about(vec![named("clicks"), named("clicks")]));
    assert_eq!(answer.controller_id, 1);
    let address = (answer.brokers[0].node_id, &*answer.brokers[0].host, answer.brokers[0].port);
    assert_eq!(address, (1, "127.0.0.1", i32::from(broker.port)));
    let [topic] = &answer.topics[..] else { panic!("one topic: {answer:?}") };
    assert!(!topic.is_internal);
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        leader_epoch: 0,
        replica_nodes: vec![1],
        isr_nodes: vec![1],
        ..MetadataResponsePartition::default()
    };
    assert_eq!(topic.partitions, [partition(0), partition(1)]);
}

#[test]
fn topics_go_by_id_from_version_12_on() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let id = ask(&broker, 12, &about(vec![named("clicks")])).topics[0].topic_id;
    let unknown = Uuid([9; 16]);
    // Names are left out when one goes by id.
    let asked = about(vec![with_id(id), with_id(unknown), with_id(id), named("other")]);
    for version in [12, 13] {
        let topics = ask(&broker, version, &asked).topics;
        assert_eq!(codes(&topics), [ErrorCode::None, ErrorCode::UnknownTopicId]);
        assert_eq!((topics[0].name.as_deref(), topics[0].topic_id), (Some("clicks"), id));
        assert_eq!((topics[1].name.as_deref(), topics[1].topic_id), (None, unknown));
    }
    for version in [10, 11] {
        let topics = ask(&broker, version, &about(vec![with_id(id), named("clicks")])).topics;
        assert_eq!(codes(&topics), [ErrorCode::InvalidRequest; 2], "version {version}");
    }
}

#[test]
fn a_topic_that_is_not_there_is_unknown() {
    let broker = Broker::start();
    for _ in 0..2 {
        let asked = about(vec![named("ghost"), named("a b"), named("__consumer_offsets")]);
        let topics = ask(&broker, 12, &asked).topics;
        let unknown = ErrorCode::UnknownTopicOrPartition;
        assert_eq!(codes(&topics), [unknown, ErrorCode::InvalidTopicException, unknown]);
        assert_eq!(
            topics.iter().map(|topic| topic.is_internal).collect::<Vec<_>>(),
            [false, false, true]
        );
    }
}

#[test]
fn a_topic_is_created_for_who_wants_to_use_it() {
    let broker = Broker::with("num.partitions=3");
    let may_create =
        Request { allow_auto_topic_creation: true, ..about(vec![named("new"), named("a b")]) };
    let topics = ask(&broker, 12, &may_create).topics;
    assert_eq!(codes(&topics), [ErrorCode::None, ErrorCode::InvalidTopicException]);
    assert_eq!(topics[0].partitions.len(), 3);
    let again = ask(&broker, 12, &about(vec![named("new")])).topics;
    assert_eq!(again[0].topic_id, topics[0].topic_id);
}

#[test]
fn no_topic_is_created_where_the_broker_does_not_want_it() {
    let broker = Broker::with("auto.create.topics.enable=false");
    let may_create = Request { allow_auto_topic_creation: true, ..about(vec![named("new")]) };
    let topics = ask(&broker, 12, &may_create).topics;
    assert_eq!(codes(&topics), [ErrorCode::UnknownTopicOrPartition]);
}

#[test]
fn all_who_create_a_topic_at_the_same_time_get_it() {
    let broker = Broker::start();
    let create = |i: i32| {
        let asked = about((0..20).map(|n| named(&format!("topic-{}", (n + i) % 20))).collect());
        let may_create = Request { allow_auto_topic_creation: true, ..asked };
        let topics = ask(&broker, 12, &may_create).topics;
        let mut ids: Vec<_> = topics.iter().map(|t| (t.name.clone(), t.topic_id)).collect();
        ids.sort();
        (codes(&topics), ids)
    };
    let answers = thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|i| scope.spawn(move || create(i))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for (codes, ids) in &answers {
        assert_eq!(*codes, [ErrorCode::None; 20]);
        assert_eq!(*ids, answers[0].1, "all got the same topics");
    }
}

#[test]
fn without_acls_every_operation_is_allowed() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let asked = Request {
        include_cluster_authorized_operations: true,
        include_topic_authorized_operations: true,
        ..about(vec![named("clicks"), named("ghost")])
    };
    let answer = ask(&broker, 10, &asked);
    assert_eq!(answer.cluster_authorized_operations, 8096);
    assert_eq!(answer.topics[0].topic_authorized_operations, 3576);
    assert_eq!(answer.topics[1].topic_authorized_operations, i32::MIN);
    let not_asked = ask(&broker, 10, &about(vec![named("clicks")]));
    assert_eq!(not_asked.cluster_authorized_operations, i32::MIN);
    assert_eq!(not_asked.topics[0].topic_authorized_operations, i32::MIN);
}

#[test]
fn clients_are_told_what_the_listener_advertises() {
    let listeners = "listeners=A://127.0.0.1:0\nadvertised.listeners=A://kafka.example.com:19092";
    let broker = Broker::with(listeners);
    let answer = ask(&broker, 12, &about(vec![]));
    assert_eq!((&*answer.brokers[0].host, answer.brokers[0].port), ("kafka.example.com", 19092));
}
