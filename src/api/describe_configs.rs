//! DescribeConfigs: the configs of topics and of this broker, as they are in force.
//!
//! Only what Kelp obeys, or does for every topic, is there to be described.

use super::config_resources::{BROKER, TOPIC};
use super::topics::{Refusal, check_name};
use super::{Broker, Context};
use crate::config::definition::{Source, Type};
use crate::config::server::PROPERTIES;
use crate::config::topic::{InForce, in_force};
use crate::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
    DescribeConfigsSynonym, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use std::collections::HashSet;

/// Kafka has no limit; but an answer is a thousand times as long as its question.
const MAX_RESOURCES: usize = 10_000;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let too_many = request.resources.len() > MAX_RESOURCES;
    let with =
        With { synonyms: request.include_synonyms, documentation: request.include_documentation };
    let describe = |resource: DescribeConfigsResource| {
        let described = match too_many {
            true => Err(Refusal::new(ErrorCode::InvalidRequest, "Too many resources.")),
            false => describe(&cx.broker, &resource, with),
        };
        let (error_code, message, configs) = match described {
            Ok(configs) => (ErrorCode::None, String::new(), configs),
            Err(refusal) => (refusal.code, refusal.message, Vec::new()),
        };
        DescribeConfigsResult {
            error_code,
            error_message: Some(message.into()),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            configs,
        }
    };
    let results = request.resources.into_iter().map(describe).collect();
    Response { results, ..Response::default() }
}

/// What the client wants to be told besides values.
#[derive(Clone, Copy)]
struct With {
    synonyms: bool,
    documentation: bool,
}

fn describe(
    broker: &Broker,
    resource: &DescribeConfigsResource,
    with: With,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let name = &*resource.resource_name;
    let all = match resource.resource_type {
        TOPIC => of_topic(broker, name, with)?,
        // The defaults that all brokers of a cluster share: none can be set.
        BROKER if name.is_empty() => Vec::new(),
        BROKER => {
            let own = broker.config.node_id;
            match name.parse::<i32>() {
                Ok(id) if id == own => of_broker(broker, with),
                Ok(id) => {
                    return invalid(&format!(
                        "Unexpected broker id, expected {own} or empty string, but received {id}"
                    ));
                }
                Err(_) => {
                    return invalid(&format!("Broker id must be an integer, but it is: {name}"));
                }
            }
        }
        other => return invalid(&format!("Nothing of resource type {other} has configs.")),
    };
    // An empty list means all, as null does.
    match resource.configuration_keys.as_deref() {
        None | Some([]) => Ok(all),
        Some(keys) => {
            let keys: HashSet<&str> = keys.iter().map(|key| &**key).collect();
            Ok(all.into_iter().filter(|config| keys.contains(&*config.name)).collect())
        }
    }
}

fn of_topic(
    broker: &Broker,
    name: &str,
    with: With,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    check_name(name)?;
    let topics = broker.topics();
    let topic = topics.by_name(name);
    let topic = topic.ok_or_else(|| Refusal::new(ErrorCode::UnknownTopicOrPartition, ""))?;
    let configs = in_force(&topic.configs, &broker.config);
    Ok(configs.map(|config| of_one(broker, config, with)).collect())
}

fn of_one(broker: &Broker, in_force: InForce, with: With) -> DescribeConfigsResourceResult {
    let InForce { config, value, source } = in_force;
    let mut result = result(config.name, &value, source, config.kind);
    if with.documentation {
        result.documentation = Some(config.documentation.into());
    }
    if with.synonyms {
        if source == Source::Topic {
            result.synonyms.push(synonym(config.name, &value, source));
        }
        result.synonyms.extend(config.synonym().into_iter().flat_map(|name| set(broker, name)));
    }
    result
}

fn of_broker(broker: &Broker, with: With) -> Vec<DescribeConfigsResourceResult> {
    let properties = PROPERTIES.iter().map(|property| {
        let value = broker.config.value(property.name).unwrap_or_default();
        let source = broker.config.source(property.name);
        let mut result = result(property.name, &value, source, property.kind);
        // Nothing of it changes while the broker runs.
        result.read_only = true;
        if with.documentation {
            result.documentation = Some(property.documentation.trim().into());
        }
        if with.synonyms {
            result.synonyms = set(broker, property.name);
        }
        result
    });
    properties.collect()
}

fn result(
    name: &'static str,
    value: &str,
    source: Source,
    kind: Type,
) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: name.into(),
        value: Some(value.into()),
        is_default: source == Source::Default,
        config_source: source as i8,
        config_type: kind as i8,
        documentation: None,
        ..DescribeConfigsResourceResult::default()
    }
}

/// Where the value of a property of the broker comes from, and what it would be otherwise.
fn set(broker: &Broker, name: &'static str) -> Vec<DescribeConfigsSynonym> {
    let set = broker.config.set(name).map(|value| synonym(name, value, Source::Broker));
    let property = PROPERTIES.iter().find(|property| property.name == name);
    let default = property.map(|property| synonym(name, &(property.default)(), Source::Default));
    set.into_iter().chain(default).collect()
}

fn synonym(name: &'static str, value: &str, source: Source) -> DescribeConfigsSynonym {
    let name = Str::from_static(name);
    DescribeConfigsSynonym { name, value: Some(value.into()), source: source as i8 }
}
