use crate::broker::Broker;
use kelp::messages::create_topics;
use kelp::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, Request,
    Response,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Where a value comes from.
const OF_TOPIC: i8 = 1;
const OF_BROKER: i8 = 4;
const DEFAULT: i8 = 5;

/// Types of values.
const INT: i8 = 3;
const LONG: i8 = 5;

fn ask(
    broker: &Broker,
    version: i16,
    resource_type: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> DescribeConfigsResult {
    let keys = keys.map(|keys| keys.iter().map(|key| (*key).into()).collect());
    let request = Request {
        resources: vec![DescribeConfigsResource {
            resource_type,
            resource_name: name.into(),
            configuration_keys: keys,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    let answer: Response = broker.ask(ApiKey::DescribeConfigs, version, &request);
    answer.results.into_iter().next().unwrap()
}

fn one(
    broker: &Broker,
    version: i16,
    resource_type: i8,
    name: &str,
    key: &str,
) -> DescribeConfigsResourceResult {
    let mut result = ask(broker, version, resource_type, name, Some(&[key]));
    assert_eq!(result.error_code, ErrorCode::None);
    assert_eq!(result.configs.len(), 1, "{key}");
    result.configs.remove(0)
}

fn synonyms(config: &DescribeConfigsResourceResult) -> Vec<(&str, &str, i8)> {
    let synonyms = config.synonyms.iter();
    synonyms.map(|s| (&*s.name, s.value.as_deref().unwrap(), s.source)).collect()
}

#[test]
fn a_topics_config_tells_where_it_comes_from() {
    let broker = Broker::with("message.max.bytes=5000");
    broker.create("plain", 1);
    let config = create_topics::CreatableTopicConfig {
        name: "max.message.bytes".into(),
        value: Some("2000".into()),
    };
    let topic = create_topics::CreatableTopic {
        name: "own".into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: vec![config],
        ..Default::default()
    };
    let request = create_topics::Request { topics: vec![topic], ..Default::default() };
    let _: create_topics::Response = broker.ask(ApiKey::CreateTopics, 7, &request);

    for version in 1..=4 {
        let own = one(&broker, version, TOPIC, "own", "max.message.bytes");
        assert_eq!((own.value.as_deref(), own.config_source), (Some("2000"), OF_TOPIC));
        assert!(!own.read_only && !own.is_sensitive);
        let broker_has =
            [("message.max.bytes", "5000", OF_BROKER), ("message.max.bytes", "1048588", DEFAULT)];
        assert_eq!(synonyms(&own)[0], ("max.message.bytes", "2000", OF_TOPIC));
        assert_eq!(synonyms(&own)[1..], broker_has);
        let plain = one(&broker, version, TOPIC, "plain", "max.message.bytes");
        assert_eq!((plain.value.as_deref(), plain.config_source), (Some("5000"), OF_BROKER));
        assert_eq!(synonyms(&plain), broker_has);
    }
    let newest = one(&broker, 4, TOPIC, "own", "max.message.bytes");
    assert_eq!(newest.config_type, INT);
    assert!(newest.documentation.is_some_and(|text| !text.is_empty()));
    assert_eq!(one(&broker, 4, TOPIC, "own", "retention.ms").config_type, LONG);
    assert!(one(&broker, 0, TOPIC, "own", "cleanup.policy").is_default);
    assert!(!one(&broker, 0, TOPIC, "own", "max.message.bytes").is_default);
}

#[test]
fn a_brokers_properties_are_read_only() {
    let broker = Broker::with("num.partitions=4");
    let partitions = one(&broker, 4, BROKER, "1", "num.partitions");
    assert_eq!((partitions.value.as_deref(), partitions.config_source), (Some("4"), OF_BROKER));
    assert!(partitions.read_only);
    assert_eq!(
        synonyms(&partitions),
        [("num.partitions", "4", OF_BROKER), ("num.partitions", "1", DEFAULT)]
    );
    let node = one(&broker, 4, BROKER, "1", "node.id");
    assert_eq!((node.value.as_deref(), node.config_source), (Some("1"), DEFAULT));
}

#[test]
fn no_keys_are_all_keys_and_unknown_ones_are_left_out() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let count = |keys| ask(&broker, 4, TOPIC, "clicks", keys).configs.len();
    assert!(count(None) > 10);
    assert_eq!(count(Some(&[])), count(None));
    assert_eq!(count(Some(&["no.such.key", "max.message.bytes"])), 1);
}

#[test]
fn what_is_not_there_is_told() {
    let broker = Broker::start();
    let told = |resource_type, name| {
        let result = ask(&broker, 4, resource_type, name, None);
        assert_eq!((result.resource_type, &*result.resource_name), (resource_type, name));
        (result.error_code, result.error_message.unwrap().to_string())
    };
    let invalid = ErrorCode::InvalidRequest;
    assert_eq!(told(TOPIC, "ghost"), (ErrorCode::UnknownTopicOrPartition, String::new()));
    assert_eq!(told(TOPIC, "a b").0, ErrorCode::InvalidTopicException);
    assert_eq!(told(BROKER, "").0, ErrorCode::None);
    let other = "Unexpected broker id, expected 1 or empty string, but received 2".to_string();
    assert_eq!(told(BROKER, "2"), (invalid, other));
    let no_number = "Broker id must be an integer, but it is: x".to_string();
    assert_eq!(told(BROKER, "x"), (invalid, no_number));
    assert_eq!(told(0, "x").0, invalid);
}
