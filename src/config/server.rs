//! The broker's own properties: one table, from which come the fields, the defaults, the checks
//! and what DescribeConfigs tells.
//!
//! Source: the broker configs of Apache Kafka 4.4. What begins with `kelp.` or `host.` is Kelp's.

use super::definition::{Allowed, InvalidValue, Items, Setting, Source, Type, check};
use super::hints::HINTS;
use super::listeners::{Listener, read_listeners};
use super::topic::{CODECS, POLICIES, TIMESTAMP_TYPES};
use std::collections::BTreeMap;

macro_rules! properties {
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $ty:ty = $default:expr, $name:literal, $allowed:expr $(, $dynamic:ident)? $(=> $why:expr)?;
    )*) => {
        /// What the broker was told when it started, and since.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[doc = $doc])+ pub $field: $ty,)*
            /// What `listeners` and `advertised.listeners` say.
            pub endpoints: Vec<Listener>,
            layers: Layers,
        }

        /// The properties that have a field.
        const FIELDS: &[Property] = &[$(Property {
            name: $name,
            kind: <$ty as Setting>::TYPE,
            allowed: $allowed,
            default: || Setting::text(&<$ty>::from($default)),
            is_dynamic: properties!(@is_dynamic $($dynamic)?),
            documentation: concat!($($doc,)+),
            no_effect: properties!(@why $($why)?),
        },)*];

        impl Config {
            /// Reads the properties that were set; all others get their defaults.
            fn read(layers: Layers) -> Result<Self, ConfigError> {
                let mut config = Self {
                    $($field: layers.value($name, || $default.into()),)*
                    endpoints: Vec::new(),
                    layers,
                };
                config.check_together()?;
                Ok(config)
            }
        }
    };
    (@why) => { None };
    (@why $why:expr) => { Some($why) };
    (@is_dynamic) => { false };
    (@is_dynamic dynamic) => { true };
}

properties! {
    /// The number by which clients know this broker.
    node_id: i32 = 1, "node.id", Allowed::AtLeast(0);
    /// Where the broker listens: NAME://HOST:PORT, separated by commas. An empty host is every
    /// address of the machine.
    listeners: String = "PLAINTEXT://:9092", "listeners", Allowed::Any;
    /// What clients are told to connect to, for each listener that needs it. A listener on every
    /// address that is not named here tells the address that the client came in on.
    advertised_listeners: String = "", "advertised.listeners", Allowed::Any;
    /// How many partitions a topic gets when its creator does not say.
    num_partitions: i32 = 1, "num.partitions", Allowed::AtLeast(1);
    /// The replication factor of a topic when its creator does not say. A host keeps the copies,
    /// so only 1 can be created.
    default_replication_factor: i32 = 1, "default.replication.factor", Allowed::AtLeast(1);
    /// Whether a topic is created when a client asks for it that may create it.
    auto_create_topics_enable: bool = true, "auto.create.topics.enable", Allowed::Any;
    /// Whether topics can be deleted.
    delete_topic_enable: bool = true, "delete.topic.enable", Allowed::Any;
    /// The largest record batch, unless its topic says otherwise.
    message_max_bytes: i32 = 1_048_588, "message.max.bytes", Allowed::AtLeast(0), dynamic;
    /// The codec of stored batches, unless their topic says otherwise; producer keeps the one that
    /// the producer chose.
    compression_type: String = "producer", "compression.type", Allowed::OneOf(CODECS), dynamic;
    /// The level of gzip, for topics whose batches are stored in it.
    compression_gzip_level: i32 = -1, "compression.gzip.level", Allowed::Level(1, 9), dynamic;
    /// The level of lz4, for topics whose batches are stored in it.
    compression_lz4_level: i32 = 9, "compression.lz4.level", Allowed::Between(1, 17), dynamic;
    /// The level of zstd, for topics whose batches are stored in it.
    compression_zstd_level: i32 = 3, "compression.zstd.level", Allowed::Between(-131_072, 22), dynamic;
    /// What becomes of old records, unless their topic says otherwise.
    log_cleanup_policy: Items = "delete", "log.cleanup.policy", Allowed::ListOf(POLICIES), dynamic;
    /// After how long records are deleted, unless their topic says otherwise; -1 is never. Not set:
    /// log.retention.minutes counts, else log.retention.hours.
    log_retention_ms: Option<i64> = None::<i64>, "log.retention.ms", Allowed::Any, dynamic;
    /// After how many minutes records are deleted, where log.retention.ms is not set.
    log_retention_minutes: Option<i32> = None::<i32>, "log.retention.minutes", Allowed::Any;
    /// After how many hours records are deleted, where no finer unit is set.
    log_retention_hours: i32 = 168, "log.retention.hours", Allowed::Any;
    /// From which size on the oldest records of a partition are deleted, unless their topic says
    /// otherwise; -1 is never.
    log_retention_bytes: i64 = -1, "log.retention.bytes", Allowed::Any, dynamic;
    /// The largest record batch after decompression, unless its topic says otherwise.
    max_decompressed_message_bytes: i32 = 2_147_483_639, "max.decompressed.message.bytes", Allowed::Between(1, 2_147_483_639), dynamic;
    /// The size of a segment of a log, unless its topic says otherwise: what is written after the
    /// last full one is not compacted.
    log_segment_bytes: i32 = 1_073_741_824, "log.segment.bytes", Allowed::AtLeast(1_048_576), dynamic;
    /// The age of a segment of a log, unless its topic says otherwise. Not set:
    /// log.roll.hours counts.
    log_roll_ms: Option<i64> = None::<i64>, "log.roll.ms", Allowed::AtLeast(1), dynamic;
    /// The age of a segment of a log in hours, where log.roll.ms is not set.
    log_roll_hours: i32 = 168, "log.roll.hours", Allowed::AtLeast(1);
    /// How long tombstones of a compacted topic are kept, unless it says otherwise.
    log_cleaner_delete_retention_ms: i64 = 86_400_000, "log.cleaner.delete.retention.ms", Allowed::AtLeast(0), dynamic;
    /// How long a record is safe from compaction, unless its topic says otherwise.
    log_cleaner_min_compaction_lag_ms: i64 = 0, "log.cleaner.min.compaction.lag.ms", Allowed::AtLeast(0), dynamic;
    /// After how long a record is compacted, however little is dirty, unless its topic says
    /// otherwise.
    log_cleaner_max_compaction_lag_ms: i64 = i64::MAX, "log.cleaner.max.compaction.lag.ms", Allowed::AtLeast(1), dynamic;
    /// How much of a log must be dirty before it is compacted, unless its topic says otherwise.
    log_cleaner_min_cleanable_ratio: f64 = 0.5, "log.cleaner.min.cleanable.ratio", Allowed::Fraction(0.0, 1.0), dynamic;
    /// How many bytes of memory compaction takes for keys.
    log_cleaner_dedupe_buffer_size: i64 = 134_217_728, "log.cleaner.dedupe.buffer.size", Allowed::AtLeast(1), dynamic;
    /// How long compaction waits when there is nothing to do.
    log_cleaner_backoff_ms: i64 = 15_000, "log.cleaner.backoff.ms", Allowed::AtLeast(1), dynamic;
    /// How often logs are looked through for records to be deleted.
    log_retention_check_interval_ms: i64 = 300_000, "log.retention.check.interval.ms", Allowed::AtLeast(1);
    /// Whether records keep their producer's time or get that of the append, unless their topic
    /// says otherwise.
    log_message_timestamp_type: String = "CreateTime", "log.message.timestamp.type", Allowed::OneOf(TIMESTAMP_TYPES), dynamic;
    /// How far a record's time may be in the past, unless its topic says otherwise.
    log_message_timestamp_before_max_ms: i64 = i64::MAX, "log.message.timestamp.before.max.ms", Allowed::AtLeast(0), dynamic;
    /// How far a record's time may be in the future, unless its topic says otherwise.
    log_message_timestamp_after_max_ms: i64 = 3_600_000, "log.message.timestamp.after.max.ms", Allowed::AtLeast(0), dynamic;
    /// After how long without a batch an idempotent producer is forgotten.
    producer_id_expiration_ms: i32 = 86_400_000, "producer.id.expiration.ms", Allowed::AtLeast(1), dynamic;
    /// How often producers are looked through for those to be forgotten.
    producer_id_expiration_check_interval_ms: i32 = 600_000, "producer.id.expiration.check.interval.ms", Allowed::AtLeast(1);
    /// The most bytes that a fetch answers.
    fetch_max_bytes: i32 = 57_671_680, "fetch.max.bytes", Allowed::AtLeast(1024);
    /// The most fetch sessions at a time; clients without one name all their partitions each time.
    max_incremental_fetch_session_cache_slots: i32 = 1000, "max.incremental.fetch.session.cache.slots", Allowed::AtLeast(0);
    /// The largest request. A connection that announces a larger one is closed.
    socket_request_max_bytes: i32 = 104_857_600, "socket.request.max.bytes", Allowed::AtLeast(1);
    /// The most bytes of large requests that are being read or handled, and the most of small ones, up
    /// to 32 KiB; three quarters of it may be batches that wait for the store. While it is used up, such
    /// requests are not read from sockets. Zero or less is no limit.
    queued_max_request_bytes: i64 = 268_435_456, "queued.max.request.bytes", Allowed::Any;
    /// After how long a connection is closed on which no byte moves. Less than zero is never.
    connections_max_idle_ms: i64 = 600_000, "connections.max.idle.ms", Allowed::Any;
    /// The most connections at a time; others are closed at once.
    max_connections: i32 = i32::MAX, "max.connections", Allowed::AtLeast(0), dynamic;
    /// The most connections at a time from one address; others are closed at once.
    max_connections_per_ip: i32 = i32::MAX, "max.connections.per.ip", Allowed::AtLeast(0), dynamic;
    /// The threads that serve requests. The default is one for each processor.
    num_io_threads: i32 = processors(), "num.io.threads", Allowed::Between(1, 4096);
    /// How long the first rebalance of an empty group waits for further members.
    group_initial_rebalance_delay_ms: i32 = 3000, "group.initial.rebalance.delay.ms", Allowed::AtLeast(0);
    /// The shortest session that a member may ask for.
    group_min_session_timeout_ms: i32 = 6000, "group.min.session.timeout.ms", Allowed::AtLeast(0);
    /// The longest session that a member may ask for.
    group_max_session_timeout_ms: i32 = 1_800_000, "group.max.session.timeout.ms", Allowed::AtLeast(0);
    /// The most members of a group.
    group_max_size: i32 = i32::MAX, "group.max.size", Allowed::AtLeast(1);
    /// The most bytes of the text that is committed with an offset.
    offset_metadata_max_bytes: i32 = 4096, "offset.metadata.max.bytes", Allowed::AtLeast(0);
    /// For how many minutes offsets are kept that no member of a group needs.
    offsets_retention_minutes: i32 = 7 * 24 * 60, "offsets.retention.minutes", Allowed::AtLeast(1);
    /// How often offsets are looked through for those that are no longer kept.
    offsets_retention_check_interval_ms: i64 = 600_000, "offsets.retention.check.interval.ms", Allowed::AtLeast(1);
    /// The partitions of `__consumer_offsets`, and so how many parts the groups are spread over.
    /// Fixed once the topic is there.
    offsets_topic_num_partitions: i32 = 50, "offsets.topic.num.partitions", Allowed::AtLeast(1);
    /// The most partitions that one DescribeTopicPartitions answers.
    max_request_partition_size_limit: i32 = 2000, "max.request.partition.size.limit", Allowed::AtLeast(1);
    /// The size of a file of `__consumer_offsets`, for its config of that name.
    offsets_topic_segment_bytes: i32 = 104_857_600, "offsets.topic.segment.bytes", Allowed::AtLeast(1);
    /// How long what a group wrote may take to be stored before its client is told to try again.
    offsets_commit_timeout_ms: i32 = 5000, "offsets.commit.timeout.ms", Allowed::AtLeast(1);
    /// How long a request waits for the host's storage when the client sets no time of its own.
    host_timeout_ms: i64 = 30_000, "host.timeout.ms", Allowed::AtLeast(1);
    /// The most partitions of all topics together.
    max_partitions: i32 = 200_000, "kelp.max.partitions", Allowed::AtLeast(1);
    /// How often what was written goes from the journal into segments, which alone are compacted;
    /// much of it goes at once.
    round_interval_ms: i64 = 30_000, "kelp.round.interval.ms", Allowed::AtLeast(1);
    /// Takes the data over at once from another process that has it, rather than wait for its end.
    takeover: bool = false, "kelp.takeover", Allowed::Any;
    /// Whether this process tells others, by a small object every few seconds, that it is alive.
    registration: bool = true, "kelp.registration", Allowed::Any;
}

/// One property, as DescribeConfigs tells of it.
pub struct Property {
    pub name: &'static str,
    pub kind: Type,
    pub allowed: Allowed,
    pub default: fn() -> Option<String>,
    /// Whether it can be changed while the broker runs.
    pub is_dynamic: bool,
    pub documentation: &'static str,
    /// Why the property can be set though Kelp has no use for it.
    pub no_effect: Option<&'static str>,
}

impl Property {
    /// All that there are.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        FIELDS.iter().chain(HINTS)
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|property| property.name == name)
    }

    /// What it is about, and what Kelp makes of it.
    pub fn full_documentation(&self) -> String {
        let documentation = self.documentation.trim();
        match self.no_effect {
            None => documentation.to_string(),
            Some(why) => format!("{documentation} It has no effect: {why}."),
        }
    }
}

/// A value, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synonym {
    pub name: &'static str,
    pub value: String,
    pub source: Source,
}

/// Properties of which the first that is set counts, each with what its unit is of the first one's.
const FINEST_FIRST: &[&[(&str, i64)]] = &[
    &[("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", HOUR_MS)],
    &[("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)],
    &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)],
    &[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)],
];
const HOUR_MS: i64 = 3_600_000;

type Values = BTreeMap<&'static str, String>;

/// What was set, by name: what counts first stands first. The rest has its default.
#[derive(Clone, Debug, Default)]
struct Layers([Values; 3]);

const SOURCES: [Source; 3] = [Source::DynamicBroker, Source::DynamicDefault, Source::Broker];

impl Layers {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|layer| layer.get(name)).map(String::as_str)
    }

    fn value<T: Setting>(&self, name: &str, default: impl FnOnce() -> T) -> T {
        self.get(name).and_then(T::parse).unwrap_or_else(default)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("unknown property {0}")]
    Unknown(String),
    #[error(transparent)]
    Invalid(#[from] InvalidValue),
    #[error("{0} must be unlimited (-1) or, greater than or equal to 1")]
    NoRetention(&'static str),
    #[error("{0:?} is not NAME=VALUE")]
    NotAProperty(String),
    #[error(
        "queued.max.request.bytes must be at least socket.request.max.bytes, or no request of \
         that size could be read"
    )]
    QueueSmallerThanRequest,
}

impl Config {
    /// Reads properties in order: of two that name the same one, the later counts.
    pub fn from_properties<N: AsRef<str>, V: AsRef<str>>(
        properties: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, ConfigError> {
        let mut set = BTreeMap::new();
        for (name, text) in properties {
            let (name, text) = (name.as_ref(), text.as_ref());
            let property =
                Property::named(name).ok_or_else(|| ConfigError::Unknown(name.to_string()))?;
            let text = check(name, text, property.kind, property.allowed)?;
            set.insert(property.name, text);
        }
        Self::read(Layers([Values::new(), Values::new(), set]))
    }

    /// The properties with what was set of all brokers, and of this one, while they ran. What
    /// cannot be set that way is an error.
    pub fn with_dynamic<'a>(
        &self,
        of_all: impl IntoIterator<Item = (&'a String, &'a String)>,
        own: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Result<Self, ConfigError> {
        let [_, _, fixed] = &self.layers.0;
        Self::read(Layers([dynamic(own)?, dynamic(of_all)?, fixed.clone()]))
    }

    /// Reads the text of a properties file: one NAME=VALUE a line; `#` and `!` begin a comment.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        Self::from_properties(properties(text)?)
    }

    /// What one property alone does not show.
    fn check_together(&mut self) -> Result<(), ConfigError> {
        self.endpoints = read_listeners(&self.listeners, &self.advertised_listeners)?;
        const RETENTION: &str = "log.retention.ms";
        if self.in_force(RETENTION).as_deref() == Some("0") {
            return Err(ConfigError::NoRetention(RETENTION));
        }
        let queue = self.queued_max_request_bytes;
        if queue > 0 && queue < i64::from(self.socket_request_max_bytes) {
            return Err(ConfigError::QueueSmallerThanRequest);
        }
        Ok(())
    }

    /// How many bytes of requests may be held, if there is a limit.
    pub fn request_bytes(&self) -> Option<usize> {
        usize::try_from(self.queued_max_request_bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// Where others are told that this broker is: at its first listener.
    pub fn address(&self) -> String {
        let first = self.endpoints.first();
        let address = first.map(|first| first.advertised.as_ref().unwrap_or(&first.bind));
        address.map(ToString::to_string).unwrap_or_default()
    }

    /// What a property has: the text it was set to, or its default; `None` for one that is left
    /// open.
    pub fn value(&self, name: &str) -> Option<String> {
        let property = Property::named(name)?;
        self.set(name).map(str::to_string).or_else(property.default)
    }

    /// What counts for a property that others count for while it is left open.
    pub fn in_force(&self, name: &str) -> Option<String> {
        let chain = FINEST_FIRST.iter().find(|chain| chain[0].0 == name);
        let Some(chain) = chain else { return self.value(name) };
        chain.iter().find_map(|(name, factor)| {
            let number: i64 = self.value(name)?.parse().ok()?;
            Some(number.saturating_mul(*factor).max(-1).to_string())
        })
    }

    /// Where a value comes from: what counts first, then what would count without it.
    pub fn synonyms(&self, name: &str) -> Vec<Synonym> {
        let chain = FINEST_FIRST.iter().find(|chain| chain.iter().any(|(link, _)| *link == name));
        let names = chain.map_or(vec![name], |chain| chain.iter().map(|(name, _)| *name).collect());
        let properties: Vec<_> = names.into_iter().filter_map(Property::named).collect();
        let mut found = Vec::new();
        for (layer, source) in self.layers.0.iter().zip(SOURCES) {
            let set = properties.iter().filter_map(|p| Some((p.name, layer.get(p.name)?.clone())));
            found.extend(set.map(|(name, value)| Synonym { name, value, source }));
        }
        let defaults = properties.iter().filter_map(|p| Some((p.name, (p.default)()?)));
        let source = Source::Default;
        found.extend(defaults.map(|(name, value)| Synonym { name, value, source }));
        // As Kafka, which leaves out whatever counts before the property itself.
        let own = found.iter().position(|synonym| synonym.name == name);
        found.split_off(own.unwrap_or(found.len()))
    }

    pub fn source(&self, name: &str) -> Source {
        let first = self.synonyms(name).into_iter().next();
        first.map_or(Source::Default, |synonym| synonym.source)
    }

    /// The text that a property was set to.
    pub fn set(&self, name: &str) -> Option<&str> {
        self.layers.get(name)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::read(Layers::default())
            .unwrap_or_else(|e| unreachable!("the defaults are valid: {e}"))
    }
}

/// The properties in the text of a file, in its order.
pub fn properties(text: &str) -> Result<Vec<(&str, &str)>, ConfigError> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    lines.map(property).collect()
}

/// The name and value of one `NAME=VALUE`.
pub fn property(line: &str) -> Result<(&str, &str), ConfigError> {
    let (name, value) =
        line.split_once('=').ok_or_else(|| ConfigError::NotAProperty(line.to_string()))?;
    Ok((name.trim(), value.trim()))
}

/// Checks what is set while a broker runs.
fn dynamic<'a>(
    set: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Result<Values, ConfigError> {
    let checked = set.into_iter().map(|(name, value)| {
        let property = Property::named(name).filter(|property| property.is_dynamic);
        let property = property.ok_or_else(|| ConfigError::Unknown(name.to_string()))?;
        Ok((property.name, check(name, value, property.kind, property.allowed)?))
    });
    checked.collect()
}

fn processors() -> i32 {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_has_kafkas_default() {
        // The defaults that Apache Kafka 4.4 documents for these names.
        let config = Config::default();
        assert_eq!((config.num_partitions, config.message_max_bytes), (1, 1_048_588));
        assert_eq!(config.socket_request_max_bytes, 100 << 20);
        assert_eq!(config.connections_max_idle_ms, 10 * 60 * 1000);
        assert_eq!(config.fetch_max_bytes, 55 << 20);
        assert!(config.auto_create_topics_enable && config.delete_topic_enable);
        assert_eq!(config.group_initial_rebalance_delay_ms, 3000);
        let session = (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms);
        assert_eq!(session, (6000, 30 * 60 * 1000));
        assert_eq!((config.group_max_size, config.offset_metadata_max_bytes), (i32::MAX, 4096));
        assert_eq!(config.offsets_retention_minutes, 7 * 24 * 60);
        assert_eq!(config.offsets_retention_check_interval_ms, 10 * 60 * 1000);
        assert_eq!(config.offsets_topic_num_partitions, 50);
        assert_eq!(config.offsets_topic_segment_bytes, 100 << 20);
        assert_eq!(config.offsets_commit_timeout_ms, 5000);
        let week_ms = 7 * 24 * 60 * 60 * 1000;
        assert_eq!(config.in_force("log.retention.ms"), Some(week_ms.to_string()));
        assert_eq!(config.log_retention_bytes, -1);
        assert_eq!(config.log_retention_check_interval_ms, 5 * 60 * 1000);
    }

    #[test]
    fn a_later_property_counts_and_comments_do_not() {
        let text = "# partitions\n num.partitions = 3\n\n!old\nnum.partitions=4";
        let config = Config::from_text(text).unwrap();
        assert_eq!(config.num_partitions, 4);
        assert_eq!(config.set("num.partitions"), Some("4"));
        assert_eq!(config.set("node.id"), None);
    }

    fn synonyms(config: &Config, name: &str) -> Vec<(&'static str, String, Source)> {
        let synonyms = config.synonyms(name).into_iter();
        synonyms.map(|synonym| (synonym.name, synonym.value, synonym.source)).collect()
    }

    /// Apache Kafka 4.4's answers to DescribeConfigs.
    #[test]
    fn what_was_set_last_counts_and_the_rest_is_told() {
        let fixed = Config::from_text("message.max.bytes=1000").unwrap();
        let [own, of_all] = [("message.max.bytes", "3000"), ("message.max.bytes", "2000")]
            .map(|(name, value)| BTreeMap::from([(name.to_string(), value.to_string())]));
        let config = fixed.with_dynamic(&of_all, &own).unwrap();
        assert_eq!(config.message_max_bytes, 3000);
        use Source::{Broker, Default, DynamicBroker, DynamicDefault};
        let values = [("3000", DynamicBroker), ("2000", DynamicDefault), ("1000", Broker)];
        let values = values.into_iter().chain([("1048588", Default)]);
        let values: Vec<_> = values
            .map(|(value, source)| ("message.max.bytes", value.to_string(), source))
            .collect();
        assert_eq!(synonyms(&config, "message.max.bytes"), values);
        assert_eq!(fixed.with_dynamic(&of_all, &BTreeMap::new()).unwrap().message_max_bytes, 2000);
    }

    #[test]
    fn what_is_told_of_a_time_begins_with_its_own_unit() {
        const HOURS: &str = "log.retention.hours";
        let hours = Config::from_text("log.retention.hours=24").unwrap();
        assert_eq!(synonyms(&hours, "log.retention.ms"), []);
        assert_eq!(hours.source("log.retention.ms"), Source::Default);
        let of_hours =
            [(HOURS, "24".to_string(), Source::Broker), (HOURS, "168".into(), Source::Default)];
        assert_eq!(synonyms(&hours, HOURS), of_hours);
        let own = BTreeMap::from([("log.retention.ms".to_string(), "86400000".to_string())]);
        let ms = Config::default().with_dynamic(&BTreeMap::new(), &own).unwrap();
        assert_eq!(
            synonyms(&ms, "log.retention.ms"),
            [
                ("log.retention.ms", "86400000".into(), Source::DynamicBroker),
                (HOURS, "168".into(), Source::Default)
            ]
        );
    }

    #[test]
    fn the_most_exact_time_of_retention_counts() {
        // `AbstractKafkaConfig.logRetentionTimeMillis` of Apache Kafka 4.4.
        for (text, ms) in [
            ("log.retention.hours=2", "7200000"),
            ("log.retention.hours=2\nlog.retention.minutes=3", "180000"),
            ("log.retention.ms=5\nlog.retention.minutes=3", "5"),
            ("log.retention.minutes=-7", "-1"),
        ] {
            let config = Config::from_text(text).unwrap();
            assert_eq!(config.in_force("log.retention.ms").as_deref(), Some(ms), "{text}");
        }
        let none = Config::from_text("log.retention.hours=0").unwrap_err();
        assert_eq!(none, ConfigError::NoRetention("log.retention.ms"));
    }

    #[test]
    fn what_kafka_lets_be_changed_while_it_runs_can_be_changed() {
        // Of `DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS` of Apache Kafka 4.4, those that Kelp has.
        // Without `listeners` and `num.io.threads`: sockets and threads are there once.
        let of_kafka = "background.threads compression.gzip.level compression.lz4.level \
            compression.type compression.zstd.level log.cleaner.backoff.ms \
            log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms \
            log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size \
            log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio \
            log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy \
            log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes \
            log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms \
            log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms \
            log.message.timestamp.type log.preallocate log.remote.copy.lag.bytes \
            log.remote.copy.lag.ms log.retention.bytes log.retention.ms log.roll.jitter.ms \
            log.roll.ms log.segment.bytes log.segment.delete.delay.ms max.connections \
            max.connections.per.ip max.decompressed.message.bytes message.max.bytes \
            min.insync.replicas num.network.threads num.recovery.threads.per.data.dir \
            num.replica.fetchers producer.id.expiration.ms unclean.leader.election.enable";
        let dynamic = Property::all().filter(|property| property.is_dynamic);
        let mut dynamic: Vec<_> = dynamic.map(|property| property.name).collect();
        dynamic.sort_unstable();
        assert_eq!(dynamic, of_kafka.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_unknown_or_invalid_is_an_error() {
        let error = |text| Config::from_text(text).unwrap_err();
        assert_eq!(error("log.dirs=/tmp"), ConfigError::Unknown("log.dirs".to_string()));
        assert!(matches!(error("num.partitions=0"), ConfigError::Invalid(_)));
        assert!(matches!(error("num.partitions"), ConfigError::NotAProperty(_)));
        assert_eq!(error("log.retention.hours=0"), ConfigError::NoRetention("log.retention.ms"));
        assert_eq!(error("log.retention.ms=0"), ConfigError::NoRetention("log.retention.ms"));
        assert_eq!(error("queued.max.request.bytes=1000000"), ConfigError::QueueSmallerThanRequest);
    }
}
