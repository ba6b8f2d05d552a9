//! The configs of topics: every name that Apache Kafka 4.4 knows, in one table.
//!
//! A value is checked by Kafka's rules first. Then it is stored if Kelp obeys it, or if to ignore
//! it breaks no promise; any other is refused. `docs/configs.md` says of each which it is.

use super::definition::{Allowed, InvalidValue, Source, Type, check};
use super::server::{Config, Synonym};
use std::collections::BTreeMap;

/// The configs of one topic that were set, by name.
pub type Configs = BTreeMap<String, String>;

pub struct TopicConfig {
    pub name: &'static str,
    pub kind: Type,
    pub allowed: Allowed,
    pub default: Preset,
    pub support: Support,
    pub documentation: &'static str,
}

/// What a topic has that does not set a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The value of this property of the broker.
    Property(&'static str),
    Value(&'static str),
}

/// What Kelp does with a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Every allowed value is obeyed.
    Obeyed,
    /// Every allowed value is kept and told, and changes nothing. The text says why that breaks no
    /// promise.
    Hint(&'static str),
    /// Only the default can be set. The text says why.
    Fixed(&'static str),
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
    #[error("{name}={value} is not supported, every topic has {name}={only}: {why}")]
    Fixed { name: &'static str, value: String, only: String, why: &'static str },
    #[error(
        "conflict topic config setting min.compaction.lag.ms ({min_ms}) > max.compaction.lag.ms \
         ({max_ms})"
    )]
    CompactionLags { min_ms: i64, max_ms: i64 },
}

use Allowed::{Any, AtLeast, Between, Fraction, Level, ListOf, OneOf, ThrottledReplicas};
use Preset::{Property, Value};
use Support::{Fixed, Hint, Obeyed};
use Type::{Boolean, Double, Int, List, Long, String as Text};

macro_rules! topic_configs {
    ($($name:literal, $kind:ident, $allowed:expr, $default:expr, $support:expr, $documentation:literal;)*) => {
        /// In the order of their names.
        pub const TOPIC_CONFIGS: &[TopicConfig] = &[$(TopicConfig {
            name: $name,
            kind: $kind,
            allowed: $allowed,
            default: $default,
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
const NO_FILES: &str = "Kelp keeps no such files";
const HOST_FLUSHES: &str = "when an acknowledged record is on disk is the host's affair";
const NO_REPLICATION: &str = "the host keeps the copies, so nothing is replicated";
const NOT_TIERED: &str =
    "as in Kafka, it counts only for topics of a tiered storage, which Kelp has not";
const OWN_SEGMENTS: &str = "Kelp moves all partitions into segments together, at times of its own";
const NO_PLUGIN: &str =
    "Kelp has no plugins for tiered storage; the host's storage holds all records";

topic_configs! {
    "cleanup.policy", List, ListOf(POLICIES), Property("log.cleanup.policy"), Obeyed,
        "What becomes of old records: they are deleted, or only the last one of each key is kept.";
    "compression.gzip.level", Int, Level(1, 9), Property("compression.gzip.level"), Obeyed,
        "The level of gzip, for a topic whose broker compresses.";
    "compression.lz4.level", Int, Between(1, 17), Property("compression.lz4.level"), Obeyed,
        "The level of lz4, for a topic whose broker compresses.";
    "compression.type", Text, OneOf(CODECS), Property("compression.type"), Obeyed,
        "The codec of stored batches; producer keeps the one that the producer chose.";
    "compression.zstd.level", Int, Between(-131_072, 22), Property("compression.zstd.level"), Obeyed,
        "The level of zstd, for a topic whose broker compresses.";
    "delete.retention.ms", Long, AtLeast(0), Property("log.cleaner.delete.retention.ms"), Obeyed,
        "How long the tombstones of a compacted topic are kept.";
    "errors.deadletterqueue.group.enable", Boolean, Any, Value("false"), Fixed("there are no share groups yet"),
        "Whether share groups may write to this topic what could not be processed.";
    "file.delete.delay.ms", Long, AtLeast(0), Property("log.segment.delete.delay.ms"), Hint(NO_FILES),
        "How long a deleted file is kept.";
    "flush.messages", Long, AtLeast(1), Property("log.flush.interval.messages"), Hint(HOST_FLUSHES),
        "After how many records the log is forced to disk.";
    "flush.ms", Long, AtLeast(0), Property("log.flush.interval.ms"), Hint(HOST_FLUSHES),
        "After how long the log is forced to disk.";
    "follower.replication.throttled.replicas", List, ThrottledReplicas, Value(""), Hint(NO_REPLICATION),
        "Followers whose replication is throttled.";
    "index.interval.bytes", Int, AtLeast(0), Property("log.index.interval.bytes"), Hint(NO_FILES),
        "How many bytes of records an index entry stands for.";
    "leader.replication.throttled.replicas", List, ThrottledReplicas, Value(""), Hint(NO_REPLICATION),
        "Leaders whose replication is throttled.";
    "local.retention.bytes", Long, AtLeast(-2), Property("log.local.retention.bytes"), Hint(NOT_TIERED),
        "How many bytes of a tiered topic are kept locally.";
    "local.retention.ms", Long, AtLeast(-2), Property("log.local.retention.ms"), Hint(NOT_TIERED),
        "How long the records of a tiered topic are kept locally.";
    "max.compaction.lag.ms", Long, AtLeast(1), Property("log.cleaner.max.compaction.lag.ms"), Obeyed,
        "After how long a record must have been looked at by compaction.";
    "max.decompressed.message.bytes", Int, Between(1, 2_147_483_639), Property("max.decompressed.message.bytes"), Obeyed,
        "The largest record batch after decompression.";
    "max.message.bytes", Int, AtLeast(0), Property("message.max.bytes"), Obeyed,
        "The largest record batch.";
    "message.timestamp.after.max.ms", Long, AtLeast(0), Property("log.message.timestamp.after.max.ms"), Obeyed,
        "How far a record's time may be in the future.";
    "message.timestamp.before.max.ms", Long, AtLeast(0), Property("log.message.timestamp.before.max.ms"), Obeyed,
        "How far a record's time may be in the past.";
    "message.timestamp.type", Text, OneOf(TIMESTAMP_TYPES), Property("log.message.timestamp.type"), Obeyed,
        "Whether records keep their producer's time or get that of the append.";
    "min.cleanable.dirty.ratio", Double, Fraction(0.0, 1.0), Property("log.cleaner.min.cleanable.ratio"), Obeyed,
        "How much of a log must be uncompacted before compaction begins.";
    "min.compaction.lag.ms", Long, AtLeast(0), Property("log.cleaner.min.compaction.lag.ms"), Obeyed,
        "How long a record is safe from compaction.";
    "min.insync.replicas", Int, AtLeast(1), Property("min.insync.replicas"),
        Fixed("the host keeps the copies, and Kelp cannot count them"),
        "How many replicas must have a batch before acks=all is answered.";
    "preallocate", Boolean, Any, Property("log.preallocate"), Hint(NO_FILES),
        "Whether files are allocated ahead.";
    "remote.copy.lag.bytes", Long, AtLeast(-1), Property("log.remote.copy.lag.bytes"), Fixed(NO_PLUGIN),
        "How many bytes of a tiered topic may wait to be copied.";
    "remote.copy.lag.ms", Long, AtLeast(-1), Property("log.remote.copy.lag.ms"), Fixed(NO_PLUGIN),
        "How long the records of a tiered topic may wait to be copied.";
    "remote.log.copy.disable", Boolean, Any, Value("false"), Fixed(NO_PLUGIN),
        "Whether a tiered topic stops to be copied.";
    "remote.log.delete.on.disable", Boolean, Any, Value("false"), Fixed(NO_PLUGIN),
        "Whether what was copied is deleted when tiering is turned off.";
    "remote.storage.enable", Boolean, Any, Value("false"), Fixed(NO_PLUGIN),
        "Whether the topic is tiered by a plugin of the broker.";
    "retention.bytes", Long, Any, Property("log.retention.bytes"), Obeyed,
        "From which size on a partition's oldest records are deleted; -1 is never.";
    "retention.ms", Long, AtLeast(-1), Property("log.retention.ms"), Obeyed,
        "After how long records are deleted; -1 is never.";
    "segment.bytes", Int, AtLeast(1_048_576), Property("log.segment.bytes"), Obeyed,
        "The size of a segment: what was written after the last full one is not compacted.";
    "segment.index.bytes", Int, AtLeast(4), Property("log.index.size.max.bytes"), Hint(NO_FILES),
        "The size of a file of the index.";
    "segment.jitter.ms", Long, AtLeast(0), Property("log.roll.jitter.ms"), Hint(OWN_SEGMENTS),
        "By how much the age of a file varies.";
    "segment.ms", Long, AtLeast(1), Property("log.roll.ms"), Obeyed,
        "The age of a segment: as its size, it ends what is not compacted.";
    "unclean.leader.election.enable", Boolean, Any, Property("unclean.leader.election.enable"),
        Hint("there is no replica that could lack records"),
        "Whether a replica that lacks records may become the leader.";
}

impl TopicConfig {
    pub fn named(name: &str) -> Option<&'static Self> {
        TOPIC_CONFIGS.iter().find(|config| config.name == name)
    }

    /// The value of a topic that does not set this config.
    pub fn default(&self, broker: &Config) -> String {
        match self.default {
            Property(name) => broker.in_force(name).unwrap_or_default(),
            Value(value) => value.to_string(),
        }
    }

    /// The value of a topic, where it comes from, and what would count without it.
    pub fn synonyms(&self, set: &Configs, broker: &Config) -> Vec<Synonym> {
        let own = set.get(self.name).map(|value| Synonym {
            name: self.name,
            value: value.clone(),
            source: Source::Topic,
        });
        let brokers = match self.default {
            Property(name) => broker.synonyms(name),
            Value(_) => Vec::new(),
        };
        own.into_iter().chain(brokers).collect()
    }

    /// What it is about, and what Kelp makes of it.
    pub fn full_documentation(&self) -> String {
        match self.support {
            Obeyed => self.documentation.to_string(),
            Hint(why) => format!("{} It has no effect: {why}.", self.documentation),
            Fixed(why) => format!("{} It cannot be changed: {why}.", self.documentation),
        }
    }

    /// Checks a value that somebody sets, and gives it as it is kept.
    fn accept(&self, value: &str) -> Result<String, Refused> {
        let value = check(self.name, value, self.kind, self.allowed)?;
        match self.support {
            Fixed(why) => {
                let only = self.default(&Config::default());
                if value != only {
                    return Err(Refused::Fixed { name: self.name, value, only, why });
                }
                Ok(value)
            }
            Obeyed | Hint(_) => Ok(value),
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
    TOPIC_CONFIGS.iter().map(move |config| {
        let (value, source) = match (set.get(config.name), config.default) {
            (Some(value), _) => (value.clone(), Source::Topic),
            (None, Property(name)) => (config.default(broker), broker.source(name)),
            (None, Value(value)) => (value.to_string(), Source::Default),
        };
        InForce { config, value, source }
    })
}

/// Checks the configs that a new topic is to have.
pub fn accept<'a>(
    configs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    broker: &Config,
) -> Result<Configs, Refused> {
    let mut accepted = Configs::new();
    for (name, value) in configs {
        let config = TopicConfig::named(name).ok_or_else(|| Refused::Unknown(name.to_string()))?;
        let value = value.ok_or_else(|| Refused::Null(name.to_string()))?;
        accepted.insert(name.to_string(), config.accept(value)?);
    }
    check_together(&accepted, broker)?;
    Ok(accepted)
}

/// Checks the value of one config, and gives it as it is kept.
pub fn accept_one(name: &str, value: &str) -> Result<String, Refused> {
    let config = TopicConfig::named(name).ok_or_else(|| Refused::Unknown(name.to_string()))?;
    config.accept(value)
}

/// What one config alone does not show.
pub fn check_together(set: &Configs, broker: &Config) -> Result<(), Refused> {
    let integer = |name| integer(name, set, broker);
    let (min_ms, max_ms) = (integer("min.compaction.lag.ms"), integer("max.compaction.lag.ms"));
    if min_ms > max_ms {
        return Err(Refused::CompactionLags { min_ms, max_ms });
    }
    Ok(())
}

/// The value of a config, as it is in force.
pub fn text(name: &str, set: &Configs, broker: &Config) -> String {
    let config = TopicConfig::named(name).unwrap_or_else(|| unreachable!("{name} is a config"));
    set.get(name).cloned().unwrap_or_else(|| config.default(broker))
}

/// The value of a config whose values are integers, as it is in force.
pub fn integer(name: &str, set: &Configs, broker: &Config) -> i64 {
    let value = text(name, set, broker);
    value.parse().unwrap_or_else(|_| unreachable!("{name} was checked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept_all(configs: &[(&str, Option<&str>)]) -> Result<Configs, Refused> {
        accept(configs.iter().copied(), &Config::default())
    }

    fn accepted(name: &str, value: &str) -> Result<String, Refused> {
        accept_all(&[(name, Some(value))]).map(|configs| configs[name].clone())
    }

    #[test]
    fn what_is_obeyed_or_breaks_no_promise_is_kept() {
        assert_eq!(accepted("max.message.bytes", " 2000 "), Ok("2000".to_string()));
        // What Connect, Schema Registry, Streams and operators of topics ask for.
        for (name, value) in [
            ("cleanup.policy", "compact"),
            ("segment.bytes", "52428800"),
            ("retention.ms", "-1"),
            ("min.insync.replicas", "1"),
            ("unclean.leader.election.enable", "false"),
            ("message.timestamp.type", "CreateTime"),
            ("flush.messages", "1"),
        ] {
            assert_eq!(accepted(name, value), Ok(value.to_string()));
        }
    }

    #[test]
    fn what_would_break_a_promise_is_refused() {
        let refused = accepted("min.insync.replicas", "2").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "min.insync.replicas=2 is not supported, every topic has min.insync.replicas=1: the \
             host keeps the copies, and Kelp cannot count them"
        );
        assert!(matches!(accepted("remote.storage.enable", "true"), Err(Refused::Fixed { .. })));
        assert!(accepted("remote.storage.enable", "false").is_ok());
    }

    #[test]
    fn what_kafka_refuses_is_refused_as_kafka_does() {
        assert!(matches!(accepted("no.such.key", "1"), Err(Refused::Unknown(_))));
        assert!(matches!(accepted("retention.ms", "soon"), Err(Refused::Invalid(_))));
        assert!(matches!(accepted("segment.bytes", "1"), Err(Refused::Invalid(_))));
        assert!(matches!(accept_all(&[("retention.ms", None)]), Err(Refused::Null(_))));
        let lags = [("min.compaction.lag.ms", Some("100")), ("max.compaction.lag.ms", Some("50"))];
        assert_eq!(
            accept_all(&lags).unwrap_err().to_string(),
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)"
        );
    }

    #[test]
    fn every_default_is_a_value_that_can_be_set() {
        let broker = Config::default();
        for config in TOPIC_CONFIGS {
            let default = config.default(&broker);
            assert_eq!(config.accept(&default), Ok(default), "{}", config.name);
        }
    }

    #[test]
    fn a_topic_has_the_brokers_limit_unless_it_sets_its_own() {
        let broker = Config::from_text("message.max.bytes=5000").unwrap();
        assert_eq!(integer("max.message.bytes", &Configs::new(), &broker), 5000);
        let own = accept([("max.message.bytes", Some("2000"))], &broker).unwrap();
        assert_eq!(integer("max.message.bytes", &own, &broker), 2000);
        let hour = integer("message.timestamp.after.max.ms", &own, &broker);
        assert_eq!(hour, 60 * 60 * 1000);
    }

    /// `KafkaConfig.extractLogConfigMap` of Apache Kafka 4.4.
    #[test]
    fn a_topic_has_the_time_of_the_finest_unit_that_its_broker_sets() {
        let retention_ms =
            |text| integer("retention.ms", &Configs::new(), &Config::from_text(text).unwrap());
        assert_eq!(retention_ms(""), 7 * 24 * 3_600_000);
        assert_eq!(retention_ms("log.retention.hours=2"), 2 * 3_600_000);
        assert_eq!(retention_ms("log.retention.hours=2\nlog.retention.minutes=3"), 180_000);
        assert_eq!(retention_ms("log.retention.ms=5\nlog.retention.minutes=3"), 5);
        assert_eq!(retention_ms("log.retention.minutes=-7"), -1);
        let broker = Config::from_text("log.roll.hours=2\nlog.roll.jitter.hours=1").unwrap();
        assert_eq!(integer("segment.ms", &Configs::new(), &broker), 2 * 3_600_000);
        assert_eq!(integer("segment.jitter.ms", &Configs::new(), &broker), 3_600_000);
    }
}
