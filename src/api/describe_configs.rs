//! DescribeConfigs: the configs of topics and of this broker, as they are in force.
//!
//! A topic has all configs of Apache Kafka's; the documentation says which of them Kelp has no use for.

use super::config_resources::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use super::topics::{Refusal, check_name};
use super::{Broker, Context};
use crate::config::definition::{Source, Type};
use crate::config::server::{Property, Synonym};
use crate::config::topic::{InForce, in_force};
use crate::messages::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
    DescribeConfigsSynonym, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::store::topics::ALL_BROKERS;
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

/// Kafka's words, for a type that it does not know either.
const UNKNOWN_TYPE: &str = "This most likely occurs because of a request being malformed by the \
     client library or the message was sent to an incompatible broker. See the broker logs for more \
     details.";

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
        BROKER if name == ALL_BROKERS => of_all_brokers(broker, with),
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
        BROKER_LOGGER | CLIENT_METRICS | GROUP => {
            let kind = resource.resource_type;
            return invalid(&format!("Nothing of resource type {kind} has configs here."));
        }
        _ => return invalid(UNKNOWN_TYPE),
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
    let config = broker.settings.now();
    let configs = in_force(&topic.configs, &config).map(|in_force| {
        let InForce { config: described, value, source } = in_force;
        let mut result = result(described.name, Some(value), source, described.kind);
        if with.documentation {
            result.documentation = Some(described.full_documentation().into());
        }
        if with.synonyms {
            let synonyms = described.synonyms(&topic.configs, &config).into_iter();
            result.synonyms = synonyms.map(synonym).collect();
        }
        result
    });
    Ok(configs.collect())
}

fn of_broker(broker: &Broker, with: With) -> Vec<DescribeConfigsResourceResult> {
    let config = broker.settings.now();
    let properties = Property::all().map(|property| {
        let (value, source) = (config.value(property.name), config.source(property.name));
        let mut result = of_property(property, value, source, with);
        result.read_only = !property.is_dynamic;
        if with.synonyms {
            result.synonyms = config.synonyms(property.name).into_iter().map(synonym).collect();
        }
        result
    });
    properties.collect()
}

/// What was set of all brokers while they ran, and nothing else.
fn of_all_brokers(broker: &Broker, with: With) -> Vec<DescribeConfigsResourceResult> {
    let all = broker.storage.broker_configs();
    let set = all.get(ALL_BROKERS).into_iter().flatten();
    let configs = set.filter_map(|(name, value)| {
        let (property, source) = (Property::named(name)?, Source::DynamicDefault);
        let mut result = of_property(property, Some(value.clone()), source, with);
        if with.synonyms {
            let value = value.clone();
            result.synonyms.push(synonym(Synonym { name: property.name, value, source }));
        }
        Some(result)
    });
    configs.collect()
}

fn of_property(
    property: &Property,
    value: Option<String>,
    source: Source,
    with: With,
) -> DescribeConfigsResourceResult {
    let mut result = result(property.name, value, source, property.kind);
    if with.documentation {
        result.documentation = Some(property.full_documentation().into());
    }
    result
}

fn result(
    name: &'static str,
    value: Option<String>,
    source: Source,
    kind: Type,
) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: name.into(),
        value: value.map(Into::into),
        is_default: source == Source::Default,
        config_source: source as i8,
        config_type: kind as i8,
        documentation: None,
        ..DescribeConfigsResourceResult::default()
    }
}

fn synonym(Synonym { name, value, source }: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym { name: name.into(), value: Some(value.into()), source: source as i8 }
}
