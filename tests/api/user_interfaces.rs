//! What user interfaces ask for when they start. The expected answers are those of Apache Kafka 4.4 without an
//! authorizer, but for the loggers of a broker: here they are the host's.

use crate::broker::Broker;
use kelp::messages::{
    create_acls, delete_acls, describe_acls, list_config_resources, list_partition_reassignments,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

#[test]
fn there_are_no_acls_without_an_authorizer() {
    let broker = Broker::start();
    for version in 0..=3 {
        let answer: describe_acls::Response =
            broker.ask(ApiKey::DescribeAcls, version, &describe_acls::Request::default());
        assert_eq!(answer.error_code, ErrorCode::SecurityDisabled);
        let message = "No Authorizer is configured on the broker";
        assert_eq!(answer.error_message.as_deref(), Some(message));

        let message = Some("No Authorizer is configured.");
        let creations = vec![Default::default(), Default::default()];
        let answer: create_acls::Response =
            broker.ask(ApiKey::CreateAcls, version, &create_acls::Request { creations });
        let [one, two] = &answer.results[..] else { panic!("an answer for each: {answer:?}") };
        for result in [one, two] {
            let told = (result.error_code, result.error_message.as_deref());
            assert_eq!(told, (ErrorCode::SecurityDisabled, message));
        }

        let filters = vec![Default::default()];
        let answer: delete_acls::Response =
            broker.ask(ApiKey::DeleteAcls, version, &delete_acls::Request { filters });
        let [result] = &answer.filter_results[..] else { panic!("one answer: {answer:?}") };
        let told = (result.error_code, result.error_message.as_deref());
        assert_eq!(told, (ErrorCode::SecurityDisabled, message));
    }
}

#[test]
fn no_partition_is_on_its_way_to_another_broker() {
    let broker = Broker::start();
    let asked = list_partition_reassignments::Request::default();
    let answer: list_partition_reassignments::Response =
        broker.ask(ApiKey::ListPartitionReassignments, 0, &asked);
    let told = (answer.error_code, answer.error_message, answer.topics.len());
    assert_eq!(told, (ErrorCode::None, None, 0));
}

#[test]
fn topics_and_the_broker_have_configs() {
    let broker = Broker::with("node.id=7");
    broker.create("clicks", 1);
    let ask = |version, types: &[i8]| {
        let asked = list_config_resources::Request { resource_types: types.to_vec() };
        let answer: list_config_resources::Response =
            broker.ask(ApiKey::ListConfigResources, version, &asked);
        let resources = answer.config_resources.iter();
        let names = resources.map(|found| (found.resource_type, found.resource_name.to_string()));
        (answer.error_code, names.collect::<Vec<_>>())
    };
    let topic = (2, "clicks".to_string());
    let own = (4, "7".to_string());
    assert_eq!(ask(1, &[]), (ErrorCode::None, vec![topic.clone(), own.clone()]));
    assert_eq!(ask(1, &[2]), (ErrorCode::None, vec![topic]));
    assert_eq!(ask(1, &[4, 8, 16, 32]), (ErrorCode::None, vec![own]));
    assert_eq!(ask(1, &[99]), (ErrorCode::UnsupportedVersion, vec![]));
    assert_eq!(ask(0, &[]), (ErrorCode::None, vec![]), "only client metrics");
}
