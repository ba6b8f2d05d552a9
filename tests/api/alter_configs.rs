//! AlterConfigs and IncrementalAlterConfigs. What is expected are the answers of Apache Kafka 4.4.

use crate::broker::Broker;
use kelp::messages::{alter_configs, describe_configs, incremental_alter_configs as incremental};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode::{
    self, InvalidConfig, InvalidRequest, InvalidTopicException, UnknownServerError,
    UnknownTopicOrPartition,
};
use kelp::store::objects::memory::Memory;
use std::collections::BTreeMap;
use std::sync::Arc;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// A name, an operation and a value.
type Change<'a> = (&'a str, i8, Option<&'a str>);
type Told = (ErrorCode, Option<String>);

const DONE: Told = (ErrorCode::None, None);

fn refused(code: ErrorCode, message: &str) -> Told {
    (code, Some(message.to_string()))
}

fn resource(kind: i8, name: &str, changes: &[Change]) -> incremental::AlterConfigsResource {
    let config = |(name, operation, value): &Change| incremental::AlterableConfig {
        name: (*name).into(),
        config_operation: *operation,
        value: value.map(Into::into),
    };
    incremental::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: changes.iter().map(config).collect(),
    }
}

fn ask(
    broker: &Broker,
    version: i16,
    resources: Vec<incremental::AlterConfigsResource>,
    validate_only: bool,
) -> Vec<Told> {
    let request = incremental::Request { resources, validate_only };
    let named: Vec<_> =
        request.resources.iter().map(|r| (r.resource_type, r.resource_name.clone())).collect();
    let answer: incremental::Response =
        broker.ask(ApiKey::IncrementalAlterConfigs, version, &request);
    let answered = answer.responses.iter().map(|r| (r.resource_type, r.resource_name.clone()));
    assert_eq!(answered.collect::<Vec<_>>(), named);
    let told = |r: incremental::AlterConfigsResourceResponse| {
        (r.error_code, r.error_message.map(|message| message.to_string()))
    };
    answer.responses.into_iter().map(told).collect()
}

fn change(broker: &Broker, kind: i8, name: &str, changes: &[Change]) -> Told {
    ask(broker, 1, vec![resource(kind, name, changes)], false).remove(0)
}

/// Sets all configs.
fn replace(broker: &Broker, kind: i8, name: &str, configs: &[(&str, Option<&str>)]) -> Told {
    let config = |(name, value): &(&str, Option<&str>)| alter_configs::AlterableConfig {
        name: (*name).into(),
        value: value.map(Into::into),
    };
    let resource = alter_configs::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: configs.iter().map(config).collect(),
    };
    let request = alter_configs::Request { resources: vec![resource], validate_only: false };
    let mut answer: alter_configs::Response = broker.ask(ApiKey::AlterConfigs, 2, &request);
    let told = answer.responses.remove(0);
    (told.error_code, told.error_message.map(|message| message.to_string()))
}

fn describe(
    broker: &Broker,
    kind: i8,
    name: &str,
) -> Vec<describe_configs::DescribeConfigsResourceResult> {
    let resource = describe_configs::DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configuration_keys: None,
    };
    let request = describe_configs::Request {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: false,
    };
    let mut answer: describe_configs::Response = broker.ask(ApiKey::DescribeConfigs, 4, &request);
    answer.results.remove(0).configs
}

/// The configs that come from a source that is not a default nor a file: of the topic (1), of the broker (2), of
/// all brokers (3).
fn set(broker: &Broker, kind: i8, name: &str) -> BTreeMap<String, (String, i8)> {
    let configs = describe(broker, kind, name).into_iter();
    let set = configs.filter(|config| config.config_source <= 3).map(|config| {
        (config.name.to_string(), (config.value.unwrap().to_string(), config.config_source))
    });
    set.collect()
}

/// What a topic or broker has set by itself.
fn own(broker: &Broker, kind: i8, name: &str) -> BTreeMap<String, String> {
    set(broker, kind, name).into_iter().map(|(name, (value, _))| (name, value)).collect()
}

fn configs<const N: usize>(configs: [(&str, &str); N]) -> BTreeMap<String, String> {
    configs.map(|(name, value)| (name.to_string(), value.to_string())).into()
}

#[test]
fn configs_of_a_topic_are_set_and_taken_away() {
    let broker = Broker::start();
    broker.create("t", 1);
    for version in 0..=1 {
        let changes: &[Change] =
            &[("flush.ms", SET, Some("7000")), ("max.message.bytes", SET, Some(" 2000 "))];
        let done = ask(&broker, version, vec![resource(TOPIC, "t", changes)], false);
        assert_eq!(done, [DONE]);
        let both = configs([("flush.ms", "7000"), ("max.message.bytes", "2000")]);
        assert_eq!(own(&broker, TOPIC, "t"), both);
        let deleted = change(&broker, TOPIC, "t", &[("max.message.bytes", DELETE, None)]);
        assert_eq!(deleted, DONE);
        assert_eq!(own(&broker, TOPIC, "t"), configs([("flush.ms", "7000")]));
        assert_eq!(change(&broker, TOPIC, "t", &[("flush.ms", DELETE, Some("x"))]), DONE);
    }
    for name in ["segment.ms", "no.such"] {
        assert_eq!(change(&broker, TOPIC, "t", &[(name, DELETE, None)]), DONE, "was not set");
    }
    assert_eq!(change(&broker, TOPIC, "t", &[]), DONE);
}

#[test]
fn lists_grow_and_shrink() {
    let broker = Broker::start();
    broker.create("t", 1);
    const POLICY: &str = "cleanup.policy";
    for (operation, value, then) in [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact,delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "compact", ""),
    ] {
        assert_eq!(change(&broker, TOPIC, "t", &[(POLICY, operation, Some(value))]), DONE);
        assert_eq!(own(&broker, TOPIC, "t"), configs([(POLICY, then)]));
    }
    let shred = "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete";
    let told = change(&broker, TOPIC, "t", &[(POLICY, APPEND, Some("shred"))]);
    assert_eq!(told, refused(InvalidConfig, shred));
    const THROTTLED: &str = "leader.replication.throttled.replicas";
    assert_eq!(change(&broker, TOPIC, "t", &[(THROTTLED, APPEND, Some("0:1,1:1"))]), DONE);
    let all = "Invalid value [0:1, 1:1, *] for configuration leader.replication.throttled.replicas: \
               leader.replication.throttled.replicas must be the literal '*' or a list of replicas in \
               the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...";
    let told = change(&broker, TOPIC, "t", &[(THROTTLED, APPEND, Some("*"))]);
    assert_eq!(told, refused(InvalidConfig, all));
}

#[test]
fn what_cannot_be_is_refused_in_kafkas_words() {
    let broker = Broker::start();
    broker.create("t", 1);
    let null =
        |name: &str| refused(InvalidRequest, &format!("Null value not supported for : {name}"));
    let no_list = |operation: &str, name: &str| {
        let why = "because its type is not LIST.";
        refused(InvalidConfig, &format!("Can't {operation} to key {name} {why}"))
    };
    let invalid = |text: &str| refused(InvalidConfig, &format!("Invalid value {text}"));
    let value = Some("1");
    for (change_of, told) in [
        (("retention.ms", SET, None), null("retention.ms")),
        (("cleanup.policy", APPEND, None), null("cleanup.policy")),
        (("no.such", SET, value), refused(InvalidConfig, "Unknown topic config name: no.such")),
        (("retention.ms", 7, value), (UnknownServerError, None)),
        (("retention.ms", -1, value), (UnknownServerError, None)),
        (("retention.ms", APPEND, value), no_list("APPEND", "retention.ms")),
        (("retention.ms", SUBTRACT, value), no_list("SUBTRACT", "retention.ms")),
        (("compression.type", APPEND, Some("zstd")), no_list("APPEND", "compression.type")),
        (("no.such", APPEND, value), no_list("APPEND", "no.such")),
        (
            ("retention.ms", SET, Some("soon")),
            invalid("soon for configuration retention.ms: Not a number of type LONG"),
        ),
        (
            ("retention.ms", SET, Some("")),
            invalid(" for configuration retention.ms: Not a number of type LONG"),
        ),
        (
            ("retention.ms", SET, Some("-2")),
            invalid("-2 for configuration retention.ms: Value must be at least -1"),
        ),
        (
            ("segment.bytes", SET, value),
            invalid("1 for configuration segment.bytes: Value must be at least 1048576"),
        ),
    ] {
        assert_eq!(change(&broker, TOPIC, "t", &[change_of]), told, "{change_of:?}");
    }
    let lags: &[Change] =
        &[("min.compaction.lag.ms", SET, Some("100")), ("max.compaction.lag.ms", SET, Some("50"))];
    let conflict =
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)";
    assert_eq!(change(&broker, TOPIC, "t", lags), refused(InvalidConfig, conflict));
    let twice = "Error due to duplicate config keys";
    let names: &[Change] = &[("flush.ms", SET, value), ("flush.ms", DELETE, None)];
    assert_eq!(change(&broker, TOPIC, "t", names), refused(InvalidRequest, twice));
    assert_eq!(own(&broker, TOPIC, "t"), configs([]));

    let flush: &[Change] = &[("flush.ms", SET, value)];
    let ghost = refused(UnknownTopicOrPartition, "The topic 'ghost' does not exist.");
    assert_eq!(change(&broker, TOPIC, "ghost", flush), ghost);
    assert_eq!(change(&broker, TOPIC, "a b", flush).0, InvalidTopicException);
    let default = refused(InvalidRequest, "Default topic resources are not allowed.");
    assert_eq!(change(&broker, TOPIC, "", flush), default);
    for kind in [0, 3, 99] {
        let unknown = refused(InvalidRequest, &format!("Unknown resource type {kind}"));
        assert_eq!(change(&broker, kind, "x", flush), unknown);
    }
}

/// Kafka has these; Kelp has not, and says so as of a type that nobody knows.
#[test]
fn loggers_client_metrics_and_groups_have_no_configs() {
    let broker = Broker::start();
    for kind in [8, 16, 32] {
        let unknown = refused(InvalidRequest, &format!("Unknown resource type {kind}"));
        assert_eq!(change(&broker, kind, "1", &[("a", SET, Some("1"))]), unknown);
        assert_eq!(replace(&broker, kind, "1", &[("a", Some("1"))]), unknown);
    }
}

#[test]
fn what_would_break_a_promise_is_refused() {
    let broker = Broker::start();
    broker.create("t", 1);
    let (code, message) = change(&broker, TOPIC, "t", &[("min.insync.replicas", SET, Some("2"))]);
    assert_eq!(code, InvalidConfig);
    assert!(message.unwrap().starts_with("min.insync.replicas=2 is not supported"));
}

#[test]
fn each_resource_is_changed_as_a_whole_or_not_at_all() {
    let broker = Broker::start();
    broker.create("one", 1);
    broker.create("two", 1);
    let bad: &[Change] = &[("flush.ms", SET, Some("8000")), ("retention.ms", SET, Some("x"))];
    let good: &[Change] = &[("flush.ms", SET, Some("7000"))];
    let told =
        ask(&broker, 1, vec![resource(TOPIC, "one", good), resource(TOPIC, "two", bad)], false);
    assert_eq!((told[0].0, told[1].0), (ErrorCode::None, InvalidConfig));
    assert_eq!(own(&broker, TOPIC, "one"), configs([("flush.ms", "7000")]));
    assert_eq!(own(&broker, TOPIC, "two"), configs([]));

    let twice = vec![resource(TOPIC, "two", good), resource(TOPIC, "two", good)];
    let once = refused(InvalidRequest, "Each resource must appear at most once.");
    assert_eq!(ask(&broker, 1, twice, false), [once.clone(), once]);
    assert_eq!(ask(&broker, 1, vec![resource(TOPIC, "two", good)], true), [DONE]);
    assert_eq!(ask(&broker, 1, vec![resource(TOPIC, "two", bad)], true)[0].0, InvalidConfig);
    assert_eq!(own(&broker, TOPIC, "two"), configs([]), "these only asked");
}

#[test]
fn the_older_api_sets_all_configs_at_once() {
    let broker = Broker::start();
    broker.create_with("t", 1, &[("max.message.bytes", "2000"), ("flush.ms", "7000")]);
    assert_eq!(replace(&broker, TOPIC, "t", &[("segment.ms", Some("60000"))]), DONE);
    assert_eq!(own(&broker, TOPIC, "t"), configs([("segment.ms", "60000")]));
    let null = refused(InvalidRequest, "Null value not supported for : segment.ms");
    assert_eq!(replace(&broker, TOPIC, "t", &[("segment.ms", None)]), null);
    let unknown = refused(InvalidConfig, "Unknown topic config name: nope");
    assert_eq!(replace(&broker, TOPIC, "t", &[("nope", Some("1"))]), unknown);
    let both = &[("segment.ms", Some("1000")), ("segment.ms", Some("2000"))];
    let twice = refused(InvalidRequest, "Error due to duplicate config keys");
    assert_eq!(replace(&broker, TOPIC, "t", both), twice);
    assert_eq!(own(&broker, TOPIC, "t"), configs([("segment.ms", "60000")]));
    assert_eq!(replace(&broker, TOPIC, "t", &[]), DONE);
    assert_eq!(own(&broker, TOPIC, "t"), configs([]));
}

#[test]
fn what_a_broker_is_told_while_it_runs_counts_for_its_topics() {
    let broker = Broker::with("message.max.bytes=1000");
    broker.create("t", 1);
    const MAX: &str = "message.max.bytes";
    assert_eq!(change(&broker, BROKER, "", &[(MAX, SET, Some("2000"))]), DONE);
    assert_eq!(change(&broker, BROKER, "1", &[(MAX, SET, Some("3000"))]), DONE);
    let one = |kind: i8, name: &str, key: &str| {
        let mut configs = describe(&broker, kind, name).into_iter();
        configs.find(|config| &*config.name == key).unwrap()
    };
    let told = one(TOPIC, "t", "max.message.bytes");
    assert_eq!((told.value.as_deref(), told.config_source), (Some("3000"), 2));
    let synonyms = told.synonyms.iter().map(|s| (&*s.name, s.value.as_deref().unwrap(), s.source));
    assert_eq!(
        synonyms.collect::<Vec<_>>(),
        [(MAX, "3000", 2), (MAX, "2000", 3), (MAX, "1000", 4), (MAX, "1048588", 5)]
    );
    assert!(!one(BROKER, "1", MAX).read_only && one(BROKER, "1", "num.partitions").read_only);
    let of_all = describe(&broker, BROKER, "");
    assert_eq!(of_all.len(), 1);
    assert_eq!((&*of_all[0].name, of_all[0].config_source), (MAX, 3));
    assert_eq!(of_all[0].synonyms.len(), 1);

    assert_eq!(change(&broker, BROKER, "1", &[(MAX, DELETE, None)]), DONE);
    assert_eq!(one(TOPIC, "t", "max.message.bytes").value.as_deref(), Some("2000"));
    assert_eq!(replace(&broker, BROKER, "", &[]), DONE);
    assert_eq!(one(TOPIC, "t", "max.message.bytes").value.as_deref(), Some("1000"));
    const POLICY: &str = "log.cleanup.policy";
    assert_eq!(change(&broker, BROKER, "1", &[(POLICY, APPEND, Some("compact"))]), DONE);
    assert_eq!(own(&broker, BROKER, "1"), configs([(POLICY, "delete,compact")]));
}

#[test]
fn a_broker_is_told_only_what_can_change_while_it_runs() {
    let broker = Broker::start();
    let fixed = |names: &str| {
        refused(InvalidRequest, &format!("Cannot update these configs dynamically: [{names}]"))
    };
    let value = Some("3");
    for (name, changes, told) in [
        ("1", &[("num.partitions", SET, value)][..], fixed("num.partitions")),
        ("", &[("log.retention.hours", SET, value)], fixed("log.retention.hours")),
        (
            "1",
            &[("message.max.bytes", SET, value), ("num.partitions", SET, value)],
            fixed("num.partitions"),
        ),
        // Kafka keeps a name that it does not know.
        ("1", &[("no.such", SET, value)], fixed("no.such")),
        (
            "1",
            &[("message.max.bytes", SET, Some("x"))],
            refused(
                InvalidRequest,
                "Invalid value x for configuration message.max.bytes: Not a number of type INT",
            ),
        ),
        (
            "1",
            &[("message.max.bytes", SET, Some("-1"))],
            refused(
                InvalidRequest,
                "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
            ),
        ),
        (
            "1",
            &[("log.retention.ms", SET, Some("0"))],
            refused(
                InvalidRequest,
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or \
                 equal to 1",
            ),
        ),
        (
            "7",
            &[("message.max.bytes", SET, value)],
            refused(InvalidRequest, "Unexpected broker id, expected 1, but received 7"),
        ),
        (
            "x",
            &[("message.max.bytes", SET, value)],
            refused(InvalidRequest, "Node id must be an integer, but it is: x"),
        ),
    ] {
        assert_eq!(change(&broker, BROKER, name, changes), told, "{changes:?}");
    }
    assert_eq!(own(&broker, BROKER, "1"), configs([]));
    let resources = vec![resource(BROKER, "1", &[("message.max.bytes", SET, Some("5000"))])];
    assert_eq!(ask(&broker, 1, resources, true), [DONE]);
    assert_eq!(own(&broker, BROKER, "1"), configs([]));
}

#[test]
fn what_was_changed_outlives_the_broker() {
    let objects = Arc::new(Memory::default());
    {
        let broker = Broker::sharing(objects.clone(), "");
        broker.create("t", 1);
        assert_eq!(change(&broker, TOPIC, "t", &[("flush.ms", SET, Some("7000"))]), DONE);
        let max = &[("message.max.bytes", SET, Some("5000"))];
        assert_eq!(change(&broker, BROKER, "1", max), DONE);
        broker.engine.stop(crate::broker::PATIENCE);
    }
    let broker = Broker::sharing(objects, "");
    assert_eq!(own(&broker, TOPIC, "t")["flush.ms"], "7000");
    let set = set(&broker, TOPIC, "t");
    assert_eq!(set["max.message.bytes"], ("5000".to_string(), 2));
}
