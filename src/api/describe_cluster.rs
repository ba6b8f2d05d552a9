//! DescribeCluster: the cluster's id, and its only broker: this one, or who took over from it.

use super::{CLUSTER_OPERATIONS, Context};
use crate::messages::describe_cluster::{DescribeClusterBroker, Request, Response};
use crate::protocol::error_code::ErrorCode;

/// Whom a client may ask about (KIP-919).
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub async fn handle(cx: &Context, request: Request) -> Response {
    if request.endpoint_type != BROKERS {
        return refused(request.endpoint_type);
    }
    let broker = &cx.broker;
    let endpoint = cx.advertised();
    let mut response = Response {
        cluster_id: broker.storage.cluster_id().into(),
        controller_id: broker.config.node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: broker.config.node_id,
            host: endpoint.host.into(),
            port: endpoint.port.into(),
            ..DescribeClusterBroker::default()
        }],
        ..Response::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = CLUSTER_OPERATIONS;
    }
    response
}

fn refused(endpoint_type: i8) -> Response {
    let (error_code, message) = match endpoint_type {
        CONTROLLERS => (
            ErrorCode::MismatchedEndpointType,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of \
             type CONTROLLER"
                .to_string(),
        ),
        other => (ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}")),
    };
    Response { error_code, error_message: Some(message.into()), ..Response::default() }
}
