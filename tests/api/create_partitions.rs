use crate::broker::Broker;
use kelp::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsTopic, Request, Response,
};
use kelp::messages::metadata;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

/// A topic, and how many partitions it is to have.
fn to(name: &str, count: i32) -> CreatePartitionsTopic {
    CreatePartitionsTopic { name: name.into(), count, assignments: None }
}

fn placed(name: &str, count: i32, replicas: &[&[i32]]) -> CreatePartitionsTopic {
    let assignment = |ids: &&[i32]| CreatePartitionsAssignment { broker_ids: ids.to_vec() };
    let assignments = Some(replicas.iter().map(assignment).collect());
    CreatePartitionsTopic { assignments, ..to(name, count) }
}

type Told = (String, ErrorCode, Option<String>);

fn ask(broker: &Broker, version: i16, request: Request) -> Vec<Told> {
    let answer: Response = broker.ask(ApiKey::CreatePartitions, version, &request);
    let results = answer.results.into_iter().map(|result| {
        let message = result.error_message.map(|message| message.to_string());
        (result.name.to_string(), result.error_code, message)
    });
    results.collect()
}

fn create(broker: &Broker, topics: Vec<CreatePartitionsTopic>) -> Vec<Told> {
    ask(broker, 3, Request { topics, timeout_ms: 10_000, validate_only: false })
}

fn told(name: &str, code: ErrorCode, message: &str) -> Told {
    (name.to_string(), code, (!message.is_empty()).then(|| message.to_string()))
}

fn partitions(broker: &Broker, name: &str) -> usize {
    let topic = metadata::MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let request = metadata::Request { topics: Some(vec![topic]), ..Default::default() };
    let answer: metadata::Response = broker.ask(ApiKey::Metadata, 12, &request);
    answer.topics[0].partitions.len()
}

#[test]
fn new_partitions_are_there_when_they_are_answered() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    for version in 0..=3 {
        let count = 2 + i32::from(version);
        let topics = vec![to("clicks", count)];
        let request = Request { topics, timeout_ms: 10_000, validate_only: false };
        let done = ask(&broker, version, request);
        assert_eq!(done, [told("clicks", ErrorCode::None, "")]);
        assert_eq!(partitions(&broker, "clicks"), count as usize);
    }
    let done = create(&broker, vec![placed("clicks", 7, &[&[1], &[1]])]);
    assert_eq!(done, [told("clicks", ErrorCode::None, "")]);
    assert_eq!(partitions(&broker, "clicks"), 7);
}

#[test]
fn a_dry_run_changes_nothing() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let topics = vec![to("clicks", 3), to("ghost", 3)];
    let request = Request { topics, timeout_ms: 10_000, validate_only: true };
    let unknown = told("ghost", ErrorCode::UnknownTopicOrPartition, "");
    assert_eq!(ask(&broker, 3, request), [told("clicks", ErrorCode::None, ""), unknown]);
    assert_eq!(partitions(&broker, "clicks"), 1);
}

/// The answers of Apache Kafka 4.4 with one broker.
#[test]
fn what_cannot_be_is_refused_in_kafkas_words() {
    let broker = Broker::start();
    broker.create("t", 2);
    use ErrorCode::{InvalidPartitions, InvalidReplicaAssignment};
    for (count, message) in [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (0, "The topic t currently has 2 partition(s); 0 would not be an increase."),
        (-1, "The topic t currently has 2 partition(s); -1 would not be an increase."),
    ] {
        let refused = [told("t", InvalidPartitions, message)];
        assert_eq!(create(&broker, vec![to("t", count)]), refused);
    }
    let one: &[i32] = &[1];
    let few = |given| {
        format!(
            "Attempted to add 1 additional partition(s), but only {given} assignment(s) were specified."
        )
    };
    let manual = "The manual partition assignment includes";
    let cases: [(&[&[i32]], String); 7] = [
        (&[], few(0)),
        (&[one, one], few(2)),
        (&[&[2]], format!("{manual} broker 2, but no such broker is registered.")),
        (&[&[1, 2]], format!("{manual} broker 2, but no such broker is registered.")),
        (&[&[-1]], format!("{manual} broker -1, but no such broker is registered.")),
        (&[&[]], format!("{manual} an empty replica list.")),
        (&[&[1, 1]], format!("{manual} the broker 1 more than once.")),
    ];
    for (replicas, message) in cases {
        let refused = [told("t", InvalidReplicaAssignment, &message)];
        assert_eq!(create(&broker, vec![placed("t", 3, replicas)]), refused);
    }
    assert_eq!(partitions(&broker, "t"), 2);
}

/// The order of Apache Kafka 4.4's answer too.
#[test]
fn a_name_that_stands_there_twice_is_answered_once_and_first() {
    let broker = Broker::start();
    broker.create("once", 1);
    broker.create("twice", 1);
    let topics = vec![to("once", 2), to("twice", 3), to("ghost", 2), to("twice", 3)];
    assert_eq!(
        create(&broker, topics),
        [
            told("twice", ErrorCode::InvalidRequest, "Duplicate topic name."),
            told("once", ErrorCode::None, ""),
            told("ghost", ErrorCode::UnknownTopicOrPartition, ""),
        ]
    );
}

#[test]
fn a_request_makes_ten_thousand_partitions_at_most() {
    let broker = Broker::start();
    broker.create("t", 2);
    let message = "Excessively large number of additional partitions per request.";
    let refused = [told("t", ErrorCode::PolicyViolation, message)];
    assert_eq!(create(&broker, vec![to("t", 10_003)]), refused);
    let done = create(&broker, vec![to("t", 10_002)]);
    assert_eq!(done, [told("t", ErrorCode::None, "")]);
}

#[test]
fn no_more_partitions_are_made_than_a_broker_may_have() {
    let broker = Broker::with("kelp.max.partitions=4");
    broker.create("t", 2);
    let refused = create(&broker, vec![to("t", 5)]);
    assert_eq!(refused[0].1, ErrorCode::PolicyViolation);
    assert_eq!(create(&broker, vec![to("t", 4)]), [told("t", ErrorCode::None, "")]);
}

#[test]
fn the_topics_of_coordinators_keep_their_partitions() {
    let broker = Broker::start();
    broker.find_coordinator("g");
    let refused = create(&broker, vec![to("__consumer_offsets", 51)]);
    assert_eq!(refused[0].1, ErrorCode::PolicyViolation);
}

#[test]
fn without_time_nothing_is_done() {
    let broker = Broker::start();
    broker.create("t", 1);
    let topics = vec![to("t", 2)];
    let request = Request { topics, timeout_ms: 0, validate_only: false };
    assert_eq!(ask(&broker, 3, request), [told("t", ErrorCode::RequestTimedOut, "")]);
    assert_eq!(partitions(&broker, "t"), 1);
}
