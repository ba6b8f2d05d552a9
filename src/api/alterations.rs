//! Changes of configs: what AlterConfigs and IncrementalAlterConfigs share.
//!
//! All resources of a request are changed by one that is alone with the topics; each is changed as a
//! whole or not at all.

use super::config_resources::{BROKER, TOPIC};
use super::topics::{Refusal, check_name};
use super::{Broker, Context};
use crate::config::definition::{Type, list};
use crate::config::server::{ConfigError, Property};
use crate::config::topic::{Configs, TopicConfig, accept_one, check_together, text};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::topics::{ALL_BROKERS, ConfigChanges, TopicChange, change_configs};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// What is to be changed of one resource.
pub(super) struct Alteration {
    pub(super) resource_type: i8,
    pub(super) resource_name: Str,
    pub(super) configs: Vec<ConfigAlteration>,
    /// What is not named is set no longer.
    pub(super) replaces_all: bool,
}

pub(super) struct ConfigAlteration {
    pub(super) name: Str,
    /// `AlterConfigOp.OpType` of Apache Kafka 4.4.
    pub(super) operation: i8,
    pub(super) value: Option<Str>,
}

/// What became of a resource, as both APIs answer it.
pub(super) struct Altered {
    pub(super) resource_type: i8,
    pub(super) resource_name: Str,
    pub(super) error_code: ErrorCode,
    pub(super) error_message: Option<Str>,
}

pub(super) const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Changes resources; gives what became of each, in their order.
pub(super) async fn alter(
    cx: &Context,
    alterations: Vec<Alteration>,
    validate_only: bool,
) -> Vec<Altered> {
    let within = Duration::from_millis(cx.broker.config.host_timeout_ms.unsigned_abs());
    let key = |asked: &Alteration| (asked.resource_type, asked.resource_name.clone());
    let named: Vec<_> = alterations.iter().map(key).collect();
    let broker = cx.broker.clone();
    let work = async move {
        let mut times = HashMap::new();
        alterations.iter().for_each(|asked| *times.entry(key(asked)).or_insert(0) += 1);
        let mut results = Vec::with_capacity(alterations.len());
        for asked in &alterations {
            results.push(match times.get(&key(asked)) {
                Some(1) => alter_one(&broker, asked, validate_only).await,
                _ => invalid("Each resource must appear at most once."),
            });
        }
        results
    };
    let results = match cx.broker.change_topics(within, work).await {
        Ok(results) => results,
        Err(refusal) => vec![Err(refusal); named.len()],
    };
    let altered = |((resource_type, resource_name), result): (_, Result<(), Refusal>)| {
        let (error_code, error_message) = match result {
            Ok(()) => (ErrorCode::None, None),
            Err(refusal) => (refusal.code, refusal.message()),
        };
        Altered { resource_type, resource_name, error_code, error_message }
    };
    named.into_iter().zip(results).map(altered).collect()
}

fn invalid<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(ErrorCode::InvalidRequest, message))
}

async fn alter_one(
    broker: &Arc<Broker>,
    asked: &Alteration,
    validate_only: bool,
) -> Result<(), Refusal> {
    let mut names = HashSet::new();
    if !asked.configs.iter().all(|config| names.insert(&*config.name)) {
        return invalid("Error due to duplicate config keys");
    }
    let is_null = |config: &&ConfigAlteration| config.value.is_none() && config.operation != DELETE;
    let nulls: Vec<&str> = asked.configs.iter().filter(is_null).map(|c| &*c.name).collect();
    if !nulls.is_empty() {
        return invalid(format!("Null value not supported for : {}", nulls.join(",")));
    }
    match asked.resource_type {
        TOPIC => alter_topic(broker, asked, validate_only).await,
        BROKER => alter_broker(broker, asked, validate_only).await,
        other => invalid(format!("Unknown resource type {other}")),
    }
}

async fn alter_topic(
    broker: &Arc<Broker>,
    asked: &Alteration,
    validate_only: bool,
) -> Result<(), Refusal> {
    let name = &*asked.resource_name;
    if name.is_empty() {
        return invalid("Default topic resources are not allowed.");
    }
    check_name(name)?;
    let unknown = || {
        let message = format!("The topic '{name}' does not exist.");
        Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
    };
    let topic = broker.topics().by_name(name).cloned().ok_or_else(unknown)?;
    let config = broker.settings.now();
    let changes = changes(asked, &topic.configs, |name| {
        let is_list = TopicConfig::named(name).is_some_and(|config| config.kind == Type::List);
        is_list.then(|| text(name, &topic.configs, &config))
    })?;
    let refused = |why: crate::config::topic::Refused| {
        Refusal::new(ErrorCode::InvalidConfig, why.to_string())
    };
    let changes = accepted(changes, |name, value| accept_one(name, value).map_err(refused))?;
    let mut configs = topic.configs.clone();
    change_configs(&mut configs, changes.clone());
    check_together(&configs, &config).map_err(refused)?;
    if validate_only || configs == topic.configs {
        return Ok(());
    }
    let change = TopicChange { partitions: None, configs: changes };
    broker.storage.alter_topic(topic.id, change).await?;
    tracing::info!(topic = name, ?configs, "changed the configs of a topic");
    Ok(())
}

async fn alter_broker(
    broker: &Arc<Broker>,
    asked: &Alteration,
    validate_only: bool,
) -> Result<(), Refusal> {
    let (name, own) = (&*asked.resource_name, broker.config.node_id);
    match name.parse::<i32>() {
        _ if name == ALL_BROKERS => {}
        Ok(id) if id == own => {}
        Ok(id) => {
            return invalid(format!("Unexpected broker id, expected {own}, but received {id}"));
        }
        Err(_) => return invalid(format!("Node id must be an integer, but it is: {name}")),
    }
    if !broker.storage.alters_brokers() {
        return invalid("The host keeps no settings of brokers.");
    }
    let config = broker.settings.now();
    let mut all = (*broker.storage.broker_configs()).clone();
    let set = all.entry(name.to_string()).or_default();
    let changes = changes(asked, set, |name| {
        let property = Property::named(name).filter(|property| property.kind == Type::List)?;
        config.value(property.name)
    })?;
    let is_dynamic = |name: &str| Property::named(name).is_some_and(|property| property.is_dynamic);
    let sets = changes.iter().filter(|(_, value)| value.is_some());
    let fixed: Vec<&str> =
        sets.map(|(name, _)| name.as_str()).filter(|name| !is_dynamic(name)).collect();
    if !fixed.is_empty() {
        let names = fixed.join(", ");
        return invalid(format!("Cannot update these configs dynamically: [{names}]"));
    }
    let before = set.clone();
    change_configs(set, changes.clone());
    let is_changed = *set != before;
    check_brokers(broker, &all)?;
    if validate_only || !is_changed {
        return Ok(());
    }
    broker.storage.alter_broker_configs(name.to_string(), changes).await?;
    tracing::info!(broker = name, "changed the configs of the broker");
    Ok(())
}

/// Whether the broker could run with what is set.
fn check_brokers(broker: &Broker, all: &BTreeMap<String, Configs>) -> Result<(), Refusal> {
    let none = Configs::new();
    let of = |name: &str| all.get(name).unwrap_or(&none);
    let own = broker.config.node_id.to_string();
    match broker.config.with_dynamic(of(ALL_BROKERS), of(&own)) {
        Ok(_) => Ok(()),
        Err(error @ ConfigError::NoRetention(_)) => invalid(format!("requirement failed: {error}")),
        Err(error) => invalid(error.to_string()),
    }
}

/// What the operations of a request make of what is set. `in_force` gives the value of a list.
fn changes(
    asked: &Alteration,
    set: &Configs,
    in_force: impl Fn(&str) -> Option<String>,
) -> Result<ConfigChanges, Refusal> {
    let mut changes = ConfigChanges::new();
    if asked.replaces_all {
        changes.extend(set.keys().map(|name| (name.clone(), None)));
    }
    for ConfigAlteration { name, operation, value } in &asked.configs {
        let value = value.as_deref().unwrap_or_default();
        let value = match *operation {
            SET => Some(value.to_string()),
            DELETE => None,
            APPEND | SUBTRACT => {
                let before = in_force(name).ok_or_else(|| no_list(name, *operation))?;
                Some(changed_list(&before, *operation == APPEND, value))
            }
            // Kafka does not know what it did wrong either.
            _ => return Err(Refusal::new(ErrorCode::UnknownServerError, "")),
        };
        changes.insert(name.to_string(), value);
    }
    Ok(changes)
}

fn no_list(name: &str, operation: i8) -> Refusal {
    let operation = if operation == APPEND { "APPEND" } else { "SUBTRACT" };
    let message = format!("Can't {operation} to key {name} because its type is not LIST.");
    Refusal::new(ErrorCode::InvalidConfig, message)
}

fn changed_list(before: &str, appends: bool, value: &str) -> String {
    let mut items: Vec<&str> = list(before).collect();
    if appends {
        let new: Vec<&str> = list(value).filter(|item| !items.contains(item)).collect();
        items.extend(new);
    } else {
        items.retain(|item| !list(value).any(|gone| gone == *item));
    }
    items.join(",")
}

/// Checks the values that are set, and gives them as they are kept.
fn accepted(
    changes: ConfigChanges,
    accept: impl Fn(&str, &str) -> Result<String, Refusal>,
) -> Result<ConfigChanges, Refusal> {
    let accepted = changes.into_iter().map(|(name, value)| {
        let value = value.map(|value| accept(&name, &value)).transpose()?;
        Ok((name, value))
    });
    accepted.collect()
}
