//! The configs of topics: every name that Apache Kafka 4.4 knows, in one table.
//!
//! A value is checked by Kafka's rules first. Then it is stored if Kelp obeys it or does so
//! anyway; any other is refused: nothing is stored and ignored.

use super::definition::{Allowed, InvalidValue, Source, Type, check};
use super::server::Config;
use std::collections::BTreeMap;

/// The configs of one topic that were set, by name.
pub type Configs = BTreeMap<String, String>;

pub struct TopicConfig {
    pub name: &'static str,
    pub kind: Type,
    pub allowed: Allowed,
    pub support: Support,
    pub documentation: &'static str,
}

/// What Kelp does with a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Every allowed value is obeyed. A topic that sets none has the value of this property of
    /// the broker.
    Inherited(&'static str),
    /// What Kelp does for every topic; no other value can be set.
    Only(&'static str),
    /// It is about something that Kelp does not have; no value can be set.
    Absent,
}

/// Why a topic's config is refused: all are INVALID_CONFIG to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("Unknown topic config name: {0}")]
    Unknown(String),
    #[error("Null value not supported for topic configs: {0}")]
    Null(String),
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    #[error("{name}={value} is not supported yet. Every topic has {name}={only}")]
    OnlyOne { name: &'static str, value: String, only: &'static str },
    #[error("{name} is not supported yet. Create the topic without it")]
    Absent { name: &'static str },
}

use Allowed::{Any, AtLeast, Between, Fraction, Level, ListOf, OneOf, ThrottledReplicas};
use Support::{Absent, Inherited, Only};
use Type::{Boolean, Double, Int, List, Long, String as Text};

macro_rules! topic_configs {
    ($($name:literal, $kind:ident, $allowed:expr, $support:expr, $documentation:literal;)*) => {
        /// In the order of their names.
        pub const TOPIC_CONFIGS: &[TopicConfig] = &[$(TopicConfig {
            name: $name,
            kind: $kind,
            allowed: $allowed,
            support: $support,
            documentation: $documentation,
        },)*];
    };
}

/// The codecs of `compression.type`, in Kafka's order.
pub const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
/// Both may be set, and none.
pub const POLICIES: &[&str] = &["compact", "delete"];
pub const TIMESTAMP_TYPES: &[&str] = &["CreateTime", "LogAppendTime"];
const FOR_EVER: &str = "9223372036854775807";

topic_configs! {
    "cleanup.policy", List, ListOf(POLICIES), Inherited("log.cleanup.policy"),
        "What becomes of old records: they are deleted, or only the last one of each key is kept.";
    "compression.gzip.level", Int, Level(1, 9), Inherited("compression.gzip.level"),
        "The level of gzip, for a topic whose broker compresses.";
    "compression.lz4.level", Int, Between(1, 17), Inherited("compression.lz4.level"),
        "The level of lz4, for a topic whose broker compresses.";
    "compression.type", Text, OneOf(CODECS), Inherited("compression.type"),
        "The codec of stored batches; producer keeps the one that the producer chose.";
    "compression.zstd.level", Int, Between(-131_072, 22), Inherited("compression.zstd.level"),
        "The level of zstd, for a topic whose broker compresses.";
    "delete.retention.ms", Long, AtLeast(0), Absent,
        "How long the tombstones of a compacted topic are kept.";
    "errors.deadletterqueue.group.enable", Boolean, Any, Only("false"),
        "Whether share groups may write to this topic what could not be processed.";
    "file.delete.delay.ms", Long, AtLeast(0), Absent,
        "How long a deleted file is kept.";
    "flush.messages", Long, AtLeast(1), Only(FOR_EVER),
        "After how many records the log is forced to disk; the host decides on that.";
    "flush.ms", Long, AtLeast(0), Only(FOR_EVER),
        "After how long the log is forced to disk; the host decides on that.";
    "follower.replication.throttled.replicas", List, ThrottledReplicas, Only(""),
        "Followers whose replication is throttled.";
    "index.interval.bytes", Int, AtLeast(0), Absent,
        "How many bytes of records an index entry stands for.";
    "leader.replication.throttled.replicas", List, ThrottledReplicas, Only(""),
        "Leaders whose replication is throttled.";
    "local.retention.bytes", Long, AtLeast(-2), Absent,
        "How many bytes of a tiered topic are kept locally.";
    "local.retention.ms", Long, AtLeast(-2), Absent,
        "How long the records of a tiered topic are kept locally.";
    "max.compaction.lag.ms", Long, AtLeast(1), Absent,
        "After how long a record must have been looked at by compaction.";
    "max.decompressed.message.bytes", Int, Between(1, 2_147_483_639), Absent,
        "The largest record batch after decompression.";
    "max.message.bytes", Int, AtLeast(0), Inherited("message.max.bytes"),
        "The largest record batch.";
    "message.timestamp.after.max.ms", Long, AtLeast(0), Inherited("log.message.timestamp.after.max.ms"),
        "How far a record's time may be in the future.";
    "message.timestamp.before.max.ms", Long, AtLeast(0), Inherited("log.message.timestamp.before.max.ms"),
        "How far a record's time may be in the past.";
    "message.timestamp.type", Text, OneOf(TIMESTAMP_TYPES), Inherited("log.message.timestamp.type"),
        "Whether records keep their producer's time or get that of the append.";
    "min.cleanable.dirty.ratio", Double, Fraction(0.0, 1.0), Absent,
        "How much of a log must be uncompacted before compaction begins.";
    "min.compaction.lag.ms", Long, AtLeast(0), Absent,
        "How long a record is safe from compaction.";
    "min.insync.replicas", Int, AtLeast(1), Only("1"),
        "How many replicas must have a batch before acks=all is answered.";
    "preallocate", Boolean, Any, Absent,
        "Whether files are allocated ahead.";
    "remote.copy.lag.bytes", Long, AtLeast(-1), Absent,
        "How many bytes of a tiered topic may wait to be copied.";
    "remote.copy.lag.ms", Long, AtLeast(-1), Absent,
        "How long the records of a tiered topic may wait to be copied.";
    "remote.log.copy.disable", Boolean, Any, Absent,
        "Whether a tiered topic stops to be copied.";
    "remote.log.delete.on.disable", Boolean, Any, Absent,
        "Whether what was copied is deleted when tiering is turned off.";
    "remote.storage.enable", Boolean, Any, Absent,
        "Whether the topic is tiered by a plugin of the broker.";
    "retention.bytes", Long, Any, Only("-1"),
        "From which size on a partition's oldest records are deleted; -1 is never.";
    "retention.ms", Long, AtLeast(-1), Only("-1"),
        "After how long records are deleted; -1 is never.";
    "segment.bytes", Int, AtLeast(1_048_576), Absent,
        "The size of a file of the log.";
    "segment.index.bytes", Int, AtLeast(4), Absent,
        "The size of a file of the index.";
    "segment.jitter.ms", Long, AtLeast(0), Absent,
        "By how much the age of a file varies.";
    "segment.ms", Long, AtLeast(1), Absent,
        "The age of a file of the log.";
    "unclean.leader.election.enable", Boolean, Any, Only("false"),
        "Whether a replica that lacks records may become the leader.";
}

impl TopicConfig {
    pub fn named(name: &str) -> Option<&'static Self> {
        TOPIC_CONFIGS.iter().find(|config| config.name == name)
    }

    /// The value of a topic that does not set this config; `None` if no topic has it.
    pub fn default(&self, broker: &Config) -> Option<String> {
        match self.support {
            Inherited(property) => broker.value(property),
            Only(value) => Some(value.to_string()),
            Absent => None,
        }
    }

    /// The property of the broker that gives the default.
    pub fn synonym(&self) -> Option<&'static str> {
        match self.support {
            Inherited(property) => Some(property),
            _ => None,
        }
    }

    /// Checks a value that somebody sets, and gives it as it is kept.
    fn accept(&self, value: &str) -> Result<String, Refused> {
        let value = check(self.name, value, self.kind, self.allowed)?;
        match self.support {
            Only(only) if value != only => Err(Refused::OnlyOne { name: self.name, value, only }),
            Absent => Err(Refused::Absent { name: self.name }),
            _ => Ok(value),
        }
    }
}

/// One config of one topic, as it is in force.
pub struct InForce {
    pub config: &'static TopicConfig,
    pub value: String,
    pub source: Source,
}

/// All configs of a topic that has set these.
pub fn in_force<'a>(set: &'a Configs, broker: &'a Config) -> impl Iterator<Item = InForce> + 'a {
    TOPIC_CONFIGS.iter().filter_map(move |config| {
        let default = config.default(broker)?;
        let (value, source) = match set.get(config.name) {
            Some(value) => (value.clone(), Source::Topic),
            None => (default, config.synonym().map_or(Source::Default, |name| broker.source(name))),
        };
        Some(InForce { config, value, source })
    })
}

/// Checks the configs that a new topic is to have.
pub fn accept<'a>(
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Result<Configs, Refused> {
    let mut accepted = Configs::new();
    for (name, value) in configs {
        let config = TopicConfig::named(name).ok_or_else(|| Refused::Unknown(name.to_string()))?;
        let value = value.ok_or_else(|| Refused::Null(name.to_string()))?;
        accepted.insert(name.to_string(), config.accept(value)?);
    }
    Ok(accepted)
}

/// The value of a config, as it is in force.
pub fn text(name: &str, set: &Configs, broker: &Config) -> String {
    let config = TopicConfig::named(name).unwrap_or_else(|| unreachable!("{name} is a config"));
    let value = set.get(name).cloned().or_else(|| config.default(broker));
    value.unwrap_or_else(|| unreachable!("{name} has a default"))
}

/// The value of a config whose values are integers, as it is in force.
pub fn integer(name: &str, set: &Configs, broker: &Config) -> i64 {
    let value = text(name, set, broker);
    value.parse().unwrap_or_else(|_| unreachable!("{name} was checked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(name: &str, value: &str) -> Result<String, Refused> {
        accept([(name, Some(value))]).map(|configs| configs[name].clone())
    }

    #[test]
    fn what_is_obeyed_or_done_anyway_is_kept() {
        assert_eq!(accepted("max.message.bytes", " 2000 "), Ok("2000".to_string()));
        // What Connect and Schema Registry ask for.
        assert_eq!(accepted("cleanup.policy", "compact"), Ok("compact".to_string()));
        assert!(accepted("retention.ms", "-1").is_ok());
        assert!(accepted("unclean.leader.election.enable", "FALSE").is_ok());
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let refused = accepted("retention.ms", "1000").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "retention.ms=1000 is not supported yet. Every topic has retention.ms=-1"
        );
        assert!(matches!(accepted("segment.bytes", "52428800"), Err(Refused::Absent { .. })));
    }

    #[test]
    fn what_kafka_refuses_is_refused_as_kafka_does() {
        assert!(matches!(accepted("no.such.key", "1"), Err(Refused::Unknown(_))));
        assert!(matches!(accepted("retention.ms", "soon"), Err(Refused::Invalid(_))));
        assert!(matches!(accepted("segment.bytes", "1"), Err(Refused::Invalid(_))));
        assert!(matches!(accept([("retention.ms", None)]), Err(Refused::Null(_))));
    }

    #[test]
    fn a_topic_has_the_brokers_limit_unless_it_sets_its_own() {
        let broker = Config::from_text("message.max.bytes=5000").unwrap();
        assert_eq!(integer("max.message.bytes", &Configs::new(), &broker), 5000);
        let own = accept([("max.message.bytes", Some("2000"))]).unwrap();
        assert_eq!(integer("max.message.bytes", &own, &broker), 2000);
        let hour = integer("message.timestamp.after.max.ms", &own, &broker);
        assert_eq!(hour, 60 * 60 * 1000);
    }
}
