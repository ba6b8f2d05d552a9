use crate::broker::Broker;
use kelp::messages::describe_cluster::{Request, Response};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

#[test]
fn the_cluster_is_this_broker() {
    let broker = Broker::with("node.id=7");
    for version in 0..=2 {
        let asked =
            Request { include_cluster_authorized_operations: version == 2, ..Request::default() };
        let answer: Response = broker.ask(ApiKey::DescribeCluster, version, &asked);
        assert_eq!(answer.error_code, ErrorCode::None);
        assert_eq!((&*answer.cluster_id, answer.controller_id), (&*broker.engine.cluster_id(), 7));
        let [node] = &answer.brokers[..] else { panic!("one broker: {answer:?}") };
        let address = (node.broker_id, &*node.host, node.port, node.is_fenced);
        assert_eq!(address, (7, "127.0.0.1", i32::from(broker.port), false));
        let operations = if version == 2 { 8096 } else { i32::MIN };
        assert_eq!(answer.cluster_authorized_operations, operations);
    }
}

#[test]
fn a_broker_does_not_tell_of_controllers() {
    let broker = Broker::start();
    for (endpoint_type, code, message) in [
        (
            2,
            ErrorCode::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
             type CONTROLLER",
        ),
        (7, ErrorCode::UnsupportedEndpointType, "Unsupported endpoint type 7"),
    ] {
        let asked = Request { endpoint_type, ..Request::default() };
        let answer: Response = broker.ask(ApiKey::DescribeCluster, 1, &asked);
        let told = (answer.error_code, answer.error_message.as_deref());
        assert_eq!(told, (code, Some(message)));
        assert_eq!((answer.controller_id, answer.brokers.len()), (-1, 0));
    }
}
