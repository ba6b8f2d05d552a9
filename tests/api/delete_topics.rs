use crate::broker::Broker;
use kelp::messages::delete_topics::{DeleteTopicState, Request, Response};
use kelp::messages::metadata;
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Uuid;

/// Asks by names, in a version that has no ids; gives names, codes and texts.
fn by_names(
    broker: &Broker,
    version: i16,
    names: &[&str],
) -> Vec<(String, ErrorCode, Option<String>)> {
    let topic_names = names.iter().map(|name| (*name).into()).collect();
    let request = Request { topic_names, timeout_ms: 10_000, ..Request::default() };
    let answer: Response = broker.ask(ApiKey::DeleteTopics, version, &request);
    let results = answer.responses.into_iter().map(|result| {
        let name = result.name.unwrap().to_string();
        (name, result.error_code, result.error_message.map(|message| message.to_string()))
    });
    results.collect()
}

type Told = (Option<String>, Uuid, ErrorCode, Option<String>);

/// Asks in version 6.
fn ask(broker: &Broker, topics: &[(Option<&str>, Uuid)]) -> Vec<Told> {
    let topics = topics.iter().map(|(name, topic_id)| DeleteTopicState {
        name: name.map(Into::into),
        topic_id: *topic_id,
    });
    let request = Request { topics: topics.collect(), timeout_ms: 10_000, ..Request::default() };
    let answer: Response = broker.ask(ApiKey::DeleteTopics, 6, &request);
    let results = answer.responses.into_iter().map(|result| {
        let name = result.name.map(|name| name.to_string());
        let message = result.error_message.map(|message| message.to_string());
        (name, result.topic_id, result.error_code, message)
    });
    results.collect()
}

fn id(broker: &Broker, name: &str) -> Option<Uuid> {
    let all = metadata::Request { topics: None, ..Default::default() };
    let answer: metadata::Response = broker.ask(ApiKey::Metadata, 12, &all);
    let topic = answer.topics.iter().find(|topic| topic.name.as_deref() == Some(name));
    topic.map(|topic| topic.topic_id)
}

#[test]
fn a_topic_is_gone_when_it_is_answered() {
    let broker = Broker::start();
    for version in 0..=5 {
        broker.create("clicks", 1);
        let deleted = by_names(&broker, version, &["clicks"]);
        assert_eq!(deleted, [("clicks".to_string(), ErrorCode::None, None)]);
        assert_eq!(id(&broker, "clicks"), None);
    }
    broker.create("clicks", 1);
    let clicks = id(&broker, "clicks").unwrap();
    let deleted = (Some("clicks".to_string()), clicks, ErrorCode::None, None);
    assert_eq!(ask(&broker, &[(None, clicks)]), [deleted]);
    broker.create("clicks", 1);
    let clicks = id(&broker, "clicks").unwrap();
    let deleted = (Some("clicks".to_string()), clicks, ErrorCode::None, None);
    assert_eq!(ask(&broker, &[(Some("clicks"), Uuid::ZERO)]), [deleted]);
}

#[test]
fn what_is_not_there_or_stands_there_twice_is_told() {
    let broker = Broker::start();
    let unknown = Some("This server does not host this topic-partition.".to_string());
    let twice = Some("Duplicate topic name.".to_string());
    assert_eq!(
        by_names(&broker, 5, &["ghost", "twice", "a b", "twice"]),
        [
            ("ghost".to_string(), ErrorCode::UnknownTopicOrPartition, unknown.clone()),
            ("twice".to_string(), ErrorCode::InvalidRequest, twice),
            ("a b".to_string(), ErrorCode::UnknownTopicOrPartition, unknown),
        ]
    );
}

#[test]
fn a_topic_goes_by_its_name_or_by_its_id() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let clicks = id(&broker, "clicks").unwrap();
    let ghost = Uuid([9; 16]);
    let name = || Some("clicks".to_string());
    let invalid = ErrorCode::InvalidRequest;
    let told = |message: &str| Some(message.to_string());
    for (asked, results) in [
        (
            vec![(None, Uuid::ZERO)],
            (None, Uuid::ZERO, invalid, told("Neither topic name nor id were specified.")),
        ),
        (
            vec![(Some("clicks"), clicks)],
            (name(), clicks, invalid, told("You may not specify both topic name and topic id.")),
        ),
        (
            vec![(None, ghost)],
            (
                None,
                ghost,
                ErrorCode::UnknownTopicId,
                told("This server does not host this topic ID."),
            ),
        ),
        (
            vec![(None, clicks), (None, clicks)],
            (None, clicks, invalid, told("Duplicate topic id.")),
        ),
        (
            vec![(None, clicks), (Some("clicks"), Uuid::ZERO)],
            (
                name(),
                Uuid::ZERO,
                invalid,
                told("The provided topic name maps to an ID that was already supplied."),
            ),
        ),
    ] {
        assert_eq!(ask(&broker, &asked), [results]);
    }
    assert_eq!(id(&broker, "clicks"), Some(clicks), "nothing was deleted");
}

#[test]
fn topics_are_not_deleted_where_the_broker_does_not_want_it() {
    let broker = Broker::with("delete.topic.enable=false");
    broker.create("clicks", 1);
    let code = |version| by_names(&broker, version, &["clicks"])[0].1;
    assert_eq!(code(2), ErrorCode::InvalidRequest);
    assert_eq!(code(3), ErrorCode::TopicDeletionDisabled);
    assert!(id(&broker, "clicks").is_some());
}
