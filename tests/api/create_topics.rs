use crate::broker::Broker;
use crate::storage::Held;
use kelp::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    Request, Response,
};
use kelp::messages::metadata;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;
use kelp::store::State;
use std::sync::Arc;
use std::thread;

fn topic(name: &str) -> CreatableTopic {
    CreatableTopic {
        name: name.into(),
        num_partitions: -1,
        replication_factor: -1,
        ..CreatableTopic::default()
    }
}

fn placed(assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let assignments = assignments.iter().map(|(partition_index, brokers)| {
        let partition_index = *partition_index;
        CreatableReplicaAssignment { partition_index, broker_ids: brokers.to_vec() }
    });
    CreatableTopic { assignments: assignments.collect(), ..topic("placed") }
}

fn set(name: &str, value: Option<&str>) -> CreatableTopic {
    let config = CreatableTopicConfig { name: name.into(), value: value.map(Into::into) };
    CreatableTopic { configs: vec![config], ..topic("set") }
}

fn ask(broker: &Broker, topics: Vec<CreatableTopic>) -> Vec<CreatableTopicResult> {
    let request = Request { topics, ..Request::default() };
    broker.ask::<Response>(ApiKey::CreateTopics, 7, &request).topics
}

/// The code and text of a refusal, from a dry run.
fn refused(broker: &Broker, topic: CreatableTopic) -> (ErrorCode, String) {
    let request = Request { topics: vec![topic], validate_only: true, ..Request::default() };
    let answer: Response = broker.ask(ApiKey::CreateTopics, 7, &request);
    let [result] = &answer.topics[..] else { panic!("one result: {answer:?}") };
    if result.error_code.is_error() {
        let nothing = (result.topic_id, result.num_partitions, result.replication_factor);
        assert_eq!(nothing, (Uuid::ZERO, -1, -1));
        assert_eq!(result.configs.as_deref(), Some(&[][..]));
    }
    (result.error_code, result.error_message.as_deref().unwrap_or_default().to_string())
}

fn exists(broker: &Broker, name: &str) -> bool {
    let asked = metadata::MetadataRequestTopic { name: Some(name.into()), topic_id: Uuid::ZERO };
    let request = metadata::Request {
        topics: Some(vec![asked]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let answer: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    !answer.topics[0].error_code.is_error()
}

#[test]
fn a_topic_is_there_when_it_is_answered() {
    let broker = Broker::with("num.partitions=4");
    for version in 0..=7 {
        let name = format!("topic-{version}");
        let request = Request { topics: vec![topic(&name)], ..Request::default() };
        let answer: Response = broker.ask(ApiKey::CreateTopics, version, &request);
        assert_eq!(answer.topics[0].error_code, ErrorCode::None, "version {version}");
        assert!(exists(&broker, &name));
        if version >= 5 {
            let counts = (answer.topics[0].num_partitions, answer.topics[0].replication_factor);
            assert_eq!(counts, (4, 1));
        }
    }
}

#[test]
fn the_answer_tells_the_configs_in_force() {
    let broker = Broker::start();
    let created = ask(&broker, vec![set("max.message.bytes", Some("2000"))]);
    let configs = created[0].configs.as_deref().unwrap();
    let told = |name: &str| {
        let config = configs.iter().find(|config| &*config.name == name).unwrap();
        (config.value.as_deref().unwrap(), config.config_source, config.read_only)
    };
    // Sources: 1 is the topic, 5 is the default.
    assert_eq!(told("max.message.bytes"), ("2000", 1, false));
    assert_eq!(told("cleanup.policy"), ("delete", 5, false));
}

#[test]
fn a_dry_run_says_what_would_be_and_creates_nothing() {
    let broker = Broker::start();
    assert_eq!(refused(&broker, topic("dry")).0, ErrorCode::None);
    assert!(!exists(&broker, "dry"));
    broker.create("there", 1);
    let exists = (ErrorCode::TopicAlreadyExists, "Topic 'there' already exists.".to_string());
    assert_eq!(refused(&broker, topic("there")), exists);
}

#[test]
fn names_partitions_and_replicas_are_checked_as_kafka_does() {
    let broker = Broker::start();
    let invalid = "Topic name is invalid: ";
    let name = ErrorCode::InvalidTopicException;
    let empty = format!("{invalid}the empty string is not allowed");
    assert_eq!(refused(&broker, topic("")), (name, empty));
    assert_eq!(refused(&broker, topic("..")), (name, format!("{invalid}'..' is not allowed")));
    assert_eq!(refused(&broker, topic(&"x".repeat(250))).0, name);
    assert_eq!(refused(&broker, topic("naïve")).0, name);
    broker.create("a.b", 1);
    let collides = "Topic 'a_b' collides with existing topic: a.b".to_string();
    assert_eq!(refused(&broker, topic("a_b")), (name, collides));

    let partitions = |num_partitions| CreatableTopic { num_partitions, ..topic("p") };
    let none = "Number of partitions was set to an invalid non-positive value.".to_string();
    assert_eq!(refused(&broker, partitions(0)), (ErrorCode::InvalidPartitions, none.clone()));
    assert_eq!(refused(&broker, partitions(-5)), (ErrorCode::InvalidPartitions, none));
    let too_many = "Excessively large number of partitions per request.".to_string();
    assert_eq!(refused(&broker, partitions(10_001)), (ErrorCode::PolicyViolation, too_many));

    let replicas = |replication_factor| CreatableTopic { replication_factor, ..topic("r") };
    assert_eq!(refused(&broker, replicas(1)).0, ErrorCode::None);
    for factor in [0, -5, 2, 100] {
        let refusal = refused(&broker, replicas(factor));
        assert_eq!(refusal.0, ErrorCode::InvalidReplicationFactor, "factor {factor}");
    }
}

#[test]
fn replicas_may_be_placed_on_this_broker_only() {
    let broker = Broker::start();
    let code = |topic| refused(&broker, topic).0;
    assert_eq!(code(placed(&[(0, &[1]), (1, &[1])])), ErrorCode::None);
    let both = CreatableTopic { num_partitions: 1, ..placed(&[(0, &[1])]) };
    assert_eq!(code(both), ErrorCode::InvalidRequest);
    let both = CreatableTopic { replication_factor: 1, ..placed(&[(0, &[1])]) };
    assert_eq!(code(both), ErrorCode::InvalidRequest);
    for wrong in [
        placed(&[(0, &[1]), (0, &[1])]),
        placed(&[(0, &[1]), (2, &[1])]),
        placed(&[(-1, &[1])]),
        placed(&[(0, &[7])]),
        placed(&[(0, &[1, 1])]),
        placed(&[(0, &[])]),
    ] {
        assert_eq!(code(wrong.clone()), ErrorCode::InvalidReplicaAssignment, "{wrong:?}");
    }
}

#[test]
fn a_config_that_would_be_ignored_is_refused() {
    let broker = Broker::start();
    let invalid = ErrorCode::InvalidConfig;
    let unknown = "Unknown topic config name: no.such.key".to_string();
    assert_eq!(refused(&broker, set("no.such.key", Some("1"))), (invalid, unknown));
    let null = "Null value not supported for topic configs: retention.ms".to_string();
    assert_eq!(refused(&broker, set("retention.ms", None)), (invalid, null));
    let soon = "Invalid value soon for configuration retention.ms: Not a number of type LONG";
    let refusal = refused(&broker, set("retention.ms", Some("soon")));
    assert_eq!(refusal, (invalid, soon.to_string()));
    // Kafka takes this. Kelp cannot promise it.
    let (code, message) = refused(&broker, set("min.insync.replicas", Some("2")));
    assert_eq!(code, invalid);
    assert!(message.starts_with("min.insync.replicas=2 is not supported"), "{message}");
}

#[test]
fn values_are_taken_and_refused_as_kafka_does() {
    let broker = Broker::start();
    // Apache Kafka 4.4's answers.
    let between = "Value must be between 1 and 9 or equal to -1";
    let codecs = "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer";
    let types = "String must be one of: CreateTime, LogAppendTime";
    for (name, values, refusals) in [
        (
            "cleanup.policy",
            &["compact", "compact,delete", "delete, compact", " compact ", "", "compact,compact"][..],
            &[("Compact", "String must be one of: compact, delete")][..],
        ),
        ("message.timestamp.type", &["CreateTime", "LogAppendTime"], &[("logappendtime", types)]),
        ("message.timestamp.before.max.ms", &["0"], &[("-1", "Value must be at least 0")]),
        (
            "compression.type",
            &["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd", " gzip "],
            &[("none", codecs), ("GZIP", codecs), ("", codecs)],
        ),
        ("compression.gzip.level", &["-1", "1", "9"], &[("0", between), ("10", between)]),
        (
            "compression.lz4.level",
            &["1", "17"],
            &[("0", "Value must be at least 1"), ("18", "Value must be no more than 17")],
        ),
        (
            "compression.zstd.level",
            &["-131072", "22"],
            &[
                ("-131073", "Value must be at least -131072"),
                ("23", "Value must be no more than 22"),
            ],
        ),
    ] {
        for value in values {
            let (code, message) = refused(&broker, set(name, Some(value)));
            assert_eq!((code, &*message), (ErrorCode::None, ""), "{name}={value}");
        }
        for (value, why) in refusals {
            let message = format!("Invalid value {value} for configuration {name}: {why}");
            let refusal = refused(&broker, set(name, Some(value)));
            assert_eq!(refusal, (ErrorCode::InvalidConfig, message));
        }
    }
    let empty = "Configuration 'cleanup.policy' values must not be empty.".to_string();
    let refusal = refused(&broker, set("cleanup.policy", Some("delete,")));
    assert_eq!(refusal, (ErrorCode::InvalidConfig, empty));
}

#[test]
fn a_name_that_stands_there_twice_is_answered_once() {
    let broker = Broker::start();
    let results = ask(&broker, vec![topic("twice"), topic("once"), topic("twice")]);
    let told: Vec<_> =
        results.iter().map(|r| (&*r.name, r.error_code, r.error_message.as_deref())).collect();
    let duplicate = ("twice", ErrorCode::InvalidRequest, Some("Duplicate topic name."));
    assert_eq!(told, [duplicate, ("once", ErrorCode::None, None)]);
    assert!(!exists(&broker, "twice"));
}

#[test]
fn there_is_a_limit_on_partitions_of_all_topics() {
    let broker = Broker::with("kelp.max.partitions=3");
    broker.create("two", 2);
    let results = ask(&broker, vec![topic("one"), topic("no-room")]);
    let codes: Vec<_> = results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::None, ErrorCode::PolicyViolation]);
}

#[test]
fn a_creation_that_takes_too_long_times_out_and_is_carried_out() {
    let storage = Arc::new(Held::new(State::Serving));
    let broker = Broker::on(storage.clone(), "");
    let code = |name, timeout_ms| {
        let request = Request { topics: vec![topic(name)], timeout_ms, ..Request::default() };
        broker.ask::<Response>(ApiKey::CreateTopics, 7, &request).topics[0].error_code
    };
    // Without time, Kafka does not even begin.
    assert_eq!(code("none", 0), ErrorCode::RequestTimedOut);
    assert_eq!(code("none", -1), ErrorCode::RequestTimedOut);
    assert_eq!(*storage.asked.borrow(), 0);

    assert_eq!(code("late", 100), ErrorCode::RequestTimedOut);
    // Behind it, nothing is begun that could hang too.
    assert_eq!(code("behind", 100), ErrorCode::RequestTimedOut);
    assert_eq!(*storage.asked.borrow(), 1);
    storage.answers.add_permits(2);
    assert_eq!(code("late", 10_000), ErrorCode::TopicAlreadyExists);
    assert_eq!(code("behind", 10_000), ErrorCode::None);
}

#[test]
fn of_those_who_create_one_topic_at_the_same_time_one_does() {
    let broker = Broker::start();
    let codes = thread::scope(|scope| {
        let create = || ask(&broker, vec![topic("race")])[0].error_code;
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    let created = codes.iter().filter(|code| **code == ErrorCode::None).count();
    let refused = codes.iter().filter(|code| **code == ErrorCode::TopicAlreadyExists).count();
    assert_eq!((created, refused), (1, 7));
}
