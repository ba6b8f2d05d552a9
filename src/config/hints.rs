//! Properties of Kafka's that many set, and that change nothing here: they may be set to what Kafka
//! allows, so that a file made for a Kafka of one broker does for Kelp.

use super::definition::{Allowed, Type};
use super::server::Property;
use Allowed::{Any, AtLeast, Between, OneOf};
use Type::{Boolean, Double, Int, Long, Short};

macro_rules! hints {
    ($($name:literal, $kind:ident, $default:expr, $allowed:expr, $($dynamic:ident,)? $documentation:literal, $why:expr;)*) => {
        pub(super) const HINTS: &[Property] = &[$(Property {
            name: $name,
            kind: $kind,
            allowed: $allowed,
            default: || Option::<&str>::from($default).map(str::to_string),
            is_dynamic: hints!(@is_dynamic $($dynamic)?),
            documentation: $documentation,
            no_effect: Some($why),
        },)*];
    };
    (@is_dynamic) => { false };
    (@is_dynamic dynamic) => { true };
}

const FOR_EVER: &str = "9223372036854775807";

const ONE_REPLICA: &str = "the host keeps the copies, and Kelp sees one replica of each partition";
const ONE_BROKER: &str = "one broker leads all partitions";
const HOST_FLUSHES: &str = "when an acknowledged record is on disk is the host's affair";
const NO_FILES: &str = "Kelp keeps no such files";
const OWN_SEGMENTS: &str = "Kelp moves all partitions into segments together, at times of its own";
const OTHER_CLEANER: &str = "Kelp compacts in another way, with bounds of its own";
const NOT_TIERED: &str =
    "as in Kafka, it counts only for topics of a tiered storage, which Kelp has not";
const OTHER_THREADS: &str = "num.io.threads is the number of threads that serve clients";
const SYSTEM_BUFFERS: &str = "the operating system chooses the size";

hints! {
    "auto.leader.rebalance.enable", Boolean, "true", Any,
        "Whether partitions go back to their preferred leaders.", ONE_BROKER;
    "background.threads", Int, "10", AtLeast(1), dynamic,
        "The threads for work in the background.", OTHER_THREADS;
    "controlled.shutdown.enable", Boolean, "true", Any,
        "Whether a broker gives its partitions away before it stops.", ONE_BROKER;
    "log.cleaner.enable", Boolean, "true", OneOf(&["true"]),
        "Whether topics are compacted whose policy says so.", OTHER_CLEANER;
    "log.cleaner.io.buffer.load.factor", Double, "0.9", Any, dynamic,
        "How full the cleaner's memory for keys may be.", OTHER_CLEANER;
    "log.cleaner.io.buffer.size", Int, "524288", AtLeast(0), dynamic,
        "The memory that the cleaner reads and writes with.", OTHER_CLEANER;
    "log.cleaner.threads", Int, "1", AtLeast(0), dynamic,
        "The threads of the cleaner.", OTHER_CLEANER;
    "log.flush.interval.messages", Long, FOR_EVER, AtLeast(1), dynamic,
        "After how many records a log is forced to disk, unless its topic says otherwise.", HOST_FLUSHES;
    "log.flush.interval.ms", Long, None::<&str>, Any, dynamic,
        "After how long a log is forced to disk, unless its topic says otherwise. Not set: log.flush.scheduler.interval.ms counts.", HOST_FLUSHES;
    "log.flush.scheduler.interval.ms", Long, FOR_EVER, Any,
        "How often it is looked whether a log must be forced to disk.", HOST_FLUSHES;
    "log.index.interval.bytes", Int, "4096", AtLeast(0), dynamic,
        "How many bytes of records an index entry stands for, unless their topic says otherwise.", NO_FILES;
    "log.index.size.max.bytes", Int, "10485760", AtLeast(4), dynamic,
        "The size of a file of the index, unless its topic says otherwise.", NO_FILES;
    "log.local.retention.bytes", Long, "-2", AtLeast(-2), dynamic,
        "How many bytes of a tiered topic are kept locally, unless it says otherwise.", NOT_TIERED;
    "log.local.retention.ms", Long, "-2", AtLeast(-2), dynamic,
        "How long the records of a tiered topic are kept locally, unless it says otherwise.", NOT_TIERED;
    "log.preallocate", Boolean, "false", Any, dynamic,
        "Whether files are allocated ahead, unless their topic says otherwise.", NO_FILES;
    "log.remote.copy.lag.bytes", Long, "-1", Between(-1, -1), dynamic,
        "How many bytes of a tiered topic may wait to be copied, unless it says otherwise.", NOT_TIERED;
    "log.remote.copy.lag.ms", Long, "0", Between(0, 0), dynamic,
        "How long the records of a tiered topic may wait to be copied, unless it says otherwise.", NOT_TIERED;
    "log.roll.jitter.hours", Int, "0", AtLeast(0),
        "By how much the age of a file varies, in hours, where log.roll.jitter.ms is not set.", OWN_SEGMENTS;
    "log.roll.jitter.ms", Long, None::<&str>, Any, dynamic,
        "By how much the age of a file varies, unless its topic says otherwise.", OWN_SEGMENTS;
    "log.segment.delete.delay.ms", Long, "60000", AtLeast(0), dynamic,
        "How long a deleted file is kept, unless its topic says otherwise.", NO_FILES;
    "min.insync.replicas", Int, "1", Between(1, 1), dynamic,
        "How many replicas must have a batch before acks=all is answered.", ONE_REPLICA;
    "num.network.threads", Int, "3", AtLeast(1), dynamic,
        "The threads that read from and write to sockets.", OTHER_THREADS;
    "num.recovery.threads.per.data.dir", Int, "2", AtLeast(1), dynamic,
        "The threads that read logs at the start.", OTHER_THREADS;
    "num.replica.fetchers", Int, "1", AtLeast(1), dynamic,
        "The threads that copy from other brokers.", ONE_REPLICA;
    "offsets.topic.replication.factor", Short, "1", AtLeast(1),
        "The replicas of `__consumer_offsets`.", ONE_REPLICA;
    "share.coordinator.state.topic.min.isr", Short, "1", AtLeast(1),
        "How many replicas of `__share_group_state` must have what is acknowledged.", ONE_REPLICA;
    "share.coordinator.state.topic.replication.factor", Short, "1", AtLeast(1),
        "The replicas of `__share_group_state`.", ONE_REPLICA;
    "socket.receive.buffer.bytes", Int, "102400", Any,
        "The operating system's memory for what comes in on a socket.", SYSTEM_BUFFERS;
    "socket.send.buffer.bytes", Int, "102400", Any,
        "The operating system's memory for what goes out on a socket.", SYSTEM_BUFFERS;
    "transaction.state.log.min.isr", Int, "1", AtLeast(1),
        "How many replicas of `__transaction_state` must have what is acknowledged.", ONE_REPLICA;
    "transaction.state.log.replication.factor", Short, "1", AtLeast(1),
        "The replicas of `__transaction_state`.", ONE_REPLICA;
    "unclean.leader.election.enable", Boolean, "false", Any, dynamic,
        "Whether a replica that lacks records may become the leader, unless its topic says otherwise.", ONE_REPLICA;
}
