use crate::broker::Broker;
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
const BOOLEAN: i8 = 1;
const STRING: i8 = 2;
const INT: i8 = 3;
const LONG: i8 = 5;
const DOUBLE: i8 = 6;
const LIST: i8 = 7;

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
    broker.create_with("own", 1, &[("max.message.bytes", "2000")]);

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

/// Apache Kafka 4.4's answers for topics created alike.
#[test]
fn configs_of_batches_have_kafkas_values_types_and_synonyms() {
    let broker = Broker::start();
    broker.create("plain", 1);
    broker.create_with(
        "own",
        1,
        &[
            ("cleanup.policy", " compact, delete "),
            ("compression.type", " gzip "),
            ("compression.gzip.level", " 05 "),
            ("message.timestamp.type", "LogAppendTime"),
        ],
    );
    let for_ever = "9223372036854775807";
    for (name, kind, synonym, default, own) in [
        ("cleanup.policy", LIST, "log.cleanup.policy", "delete", Some("compact,delete")),
        ("compression.type", STRING, "compression.type", "producer", Some("gzip")),
        ("compression.gzip.level", INT, "compression.gzip.level", "-1", Some("5")),
        ("compression.lz4.level", INT, "compression.lz4.level", "9", None),
        ("compression.zstd.level", INT, "compression.zstd.level", "3", None),
        (
            "message.timestamp.type",
            STRING,
            "log.message.timestamp.type",
            "CreateTime",
            Some("LogAppendTime"),
        ),
        (
            "message.timestamp.before.max.ms",
            LONG,
            "log.message.timestamp.before.max.ms",
            for_ever,
            None,
        ),
        (
            "message.timestamp.after.max.ms",
            LONG,
            "log.message.timestamp.after.max.ms",
            "3600000",
            None,
        ),
    ] {
        let unset = (synonym, default, DEFAULT);
        let plain = one(&broker, 4, TOPIC, "plain", name);
        assert_eq!((plain.value.as_deref(), plain.config_source), (Some(default), DEFAULT));
        assert_eq!((plain.config_type, plain.read_only), (kind, false), "{name}");
        assert_eq!(synonyms(&plain), [unset]);
        if let Some(own) = own {
            let told = one(&broker, 4, TOPIC, "own", name);
            assert_eq!((told.value.as_deref(), told.config_source), (Some(own), OF_TOPIC));
            assert_eq!(synonyms(&told), [(name, own, OF_TOPIC), unset]);
        }
        let brokers = one(&broker, 4, BROKER, "1", synonym);
        assert_eq!((brokers.value.as_deref(), brokers.config_type), (Some(default), kind));
    }
}

/// Apache Kafka 4.4's whole answer for a topic that sets nothing: name, value, type, and the property
/// of the broker that gives the value, if one does. In Kafka min.insync.replicas comes from a default
/// for all brokers, which its eligible leader replicas set; Kelp has none.
const OF_KAFKA: &[(&str, &str, i8, &str)] = &[
    ("cleanup.policy", "delete", LIST, "log.cleanup.policy"),
    ("compression.gzip.level", "-1", INT, "compression.gzip.level"),
    ("compression.lz4.level", "9", INT, "compression.lz4.level"),
    ("compression.type", "producer", STRING, "compression.type"),
    ("compression.zstd.level", "3", INT, "compression.zstd.level"),
    ("delete.retention.ms", "86400000", LONG, "log.cleaner.delete.retention.ms"),
    ("errors.deadletterqueue.group.enable", "false", BOOLEAN, ""),
    ("file.delete.delay.ms", "60000", LONG, "log.segment.delete.delay.ms"),
    ("flush.messages", "9223372036854775807", LONG, "log.flush.interval.messages"),
    ("flush.ms", "9223372036854775807", LONG, ""),
    ("follower.replication.throttled.replicas", "", LIST, ""),
    ("index.interval.bytes", "4096", INT, "log.index.interval.bytes"),
    ("leader.replication.throttled.replicas", "", LIST, ""),
    ("local.retention.bytes", "-2", LONG, "log.local.retention.bytes"),
    ("local.retention.ms", "-2", LONG, "log.local.retention.ms"),
    ("max.compaction.lag.ms", "9223372036854775807", LONG, "log.cleaner.max.compaction.lag.ms"),
    ("max.decompressed.message.bytes", "2147483639", INT, "max.decompressed.message.bytes"),
    ("max.message.bytes", "1048588", INT, "message.max.bytes"),
    ("message.timestamp.after.max.ms", "3600000", LONG, "log.message.timestamp.after.max.ms"),
    (
        "message.timestamp.before.max.ms",
        "9223372036854775807",
        LONG,
        "log.message.timestamp.before.max.ms",
    ),
    ("message.timestamp.type", "CreateTime", STRING, "log.message.timestamp.type"),
    ("min.cleanable.dirty.ratio", "0.5", DOUBLE, "log.cleaner.min.cleanable.ratio"),
    ("min.compaction.lag.ms", "0", LONG, "log.cleaner.min.compaction.lag.ms"),
    ("min.insync.replicas", "1", INT, "min.insync.replicas"),
    ("preallocate", "false", BOOLEAN, "log.preallocate"),
    ("remote.copy.lag.bytes", "-1", LONG, "log.remote.copy.lag.bytes"),
    ("remote.copy.lag.ms", "0", LONG, "log.remote.copy.lag.ms"),
    ("remote.log.copy.disable", "false", BOOLEAN, ""),
    ("remote.log.delete.on.disable", "false", BOOLEAN, ""),
    ("remote.storage.enable", "false", BOOLEAN, ""),
    ("retention.bytes", "-1", LONG, "log.retention.bytes"),
    ("retention.ms", "604800000", LONG, ""),
    ("segment.bytes", "1073741824", INT, "log.segment.bytes"),
    ("segment.index.bytes", "10485760", INT, "log.index.size.max.bytes"),
    ("segment.jitter.ms", "0", LONG, ""),
    ("segment.ms", "604800000", LONG, ""),
    ("unclean.leader.election.enable", "false", BOOLEAN, "unclean.leader.election.enable"),
];

#[test]
fn a_topic_has_all_configs_of_kafka_with_its_values_types_and_synonyms() {
    let broker = Broker::that_deletes("");
    broker.create("plain", 1);
    let described = ask(&broker, 4, TOPIC, "plain", None);
    let told = described.configs.iter().map(|config| {
        assert!(!config.read_only && !config.is_sensitive && config.config_source == DEFAULT);
        assert!(config.documentation.as_ref().is_some_and(|text| !text.is_empty()));
        let value = config.value.as_deref().unwrap();
        let synonym = config.synonyms.first().map_or("", |synonym| &*synonym.name);
        assert!(synonyms(config).iter().all(|told| *told == (synonym, value, DEFAULT)));
        (&*config.name, value, config.config_type, synonym)
    });
    assert_eq!(told.collect::<Vec<_>>(), OF_KAFKA);
}

#[test]
fn most_of_a_brokers_properties_are_read_only() {
    let broker = Broker::that_deletes("num.partitions=4");
    let partitions = one(&broker, 4, BROKER, "1", "num.partitions");
    assert_eq!((partitions.value.as_deref(), partitions.config_source), (Some("4"), OF_BROKER));
    assert!(partitions.read_only);
    assert_eq!(
        synonyms(&partitions),
        [("num.partitions", "4", OF_BROKER), ("num.partitions", "1", DEFAULT)]
    );
    let node = one(&broker, 4, BROKER, "1", "node.id");
    assert_eq!((node.value.as_deref(), node.config_source), (Some("1"), DEFAULT));
    let open = one(&broker, 4, BROKER, "1", "log.retention.ms");
    assert_eq!((open.value, open.read_only, open.synonyms.len()), (None, false, 0));
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
    for kind in [0, 3, 8, 16, 32, 99] {
        assert_eq!(told(kind, "x").0, invalid);
    }
}
