//! ListConfigResources: what has configs that can be described.
//!
//! Version notes: version 0 lists only client metrics (KIP-714), of which there are none; since
//! version 1 clients name the types, and an empty list means all (KIP-1142).

use super::Context;
use super::config_resources::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::messages::list_config_resources::{ConfigResource, Request, Response};
use crate::protocol::error_code::ErrorCode;

/// The first version that lists more than client metrics.
const TYPES_SINCE: i16 = 1;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let broker = &cx.broker;
    let all = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
    let asked = match &request.resource_types[..] {
        _ if cx.api_version < TYPES_SINCE => &[CLIENT_METRICS],
        [] => &all[..],
        some => some,
    };
    if asked.iter().any(|resource_type| !all.contains(resource_type)) {
        return Response { error_code: ErrorCode::UnsupportedVersion, ..Response::default() };
    }
    let has = |resource_type| asked.contains(&resource_type);
    let resource = |resource_type, resource_name| ConfigResource { resource_name, resource_type };
    let mut config_resources = Vec::new();
    if has(TOPIC) {
        let topics = broker.topics();
        let names = topics.iter().map(|topic| topic.name.clone());
        config_resources.extend(names.map(|name| resource(TOPIC, name)));
    }
    // Kafka lists the broker's loggers too. Here they belong to the host: none can be described.
    if has(BROKER) {
        let name = broker.config.node_id.to_string();
        config_resources.push(resource(BROKER, name.into()));
    }
    Response { config_resources, ..Response::default() }
}
