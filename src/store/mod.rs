//! Where topics, partitions, offsets and bytes are kept: the seam between Kafka's log and a host.
//!
//! [`Storage`] speaks of topics, partitions, offsets and bytes, never of requests. It has two
//! implementations: the object log over a store of [`Objects`](objects::Objects), and the host's
//! own log behind the C ABI's `kelp_storage`. [`memory`] is a third for tests of the rooms above.

pub mod groups;
pub mod layout;
pub mod memory;
pub mod objectlog;
pub mod objects;
pub mod producers;
pub mod settings;
pub mod topics;

use crate::protocol::wire::Uuid;
use crate::record::batch::Batch;
use bytes::Bytes;
use groups::Groups;
use layout::Layout;
use producers::Producers;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;
use topics::{BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics};

/// The log directory of a host that has no name for where its data is.
const LOG_DIR: &str = "kelp";

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// One partition of a topic. Topics go by id: a name may be deleted and created anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId {
    pub topic: Uuid,
    pub partition: i32,
}

/// Where a partition stands when it is opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opened {
    pub log_start_offset: i64,
    /// The next offset. All below it is committed.
    pub log_end_offset: i64,
    /// The epoch of this process as the partition's leader; it grows with every start.
    pub leader_epoch: i32,
    /// What the batches up to the log end say of their idempotent producers.
    pub producers: Producers,
}

/// A leader epoch, and where in the log its records begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: i32,
    pub start_offset: i64,
}

/// The process that has the data, as others are told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// `HOST:PORT` that clients are told.
    pub address: String,
    pub host: String,
    pub pid: u32,
    /// When the process started, as the operating system says it: a pid alone is used again.
    pub started: u64,
}

/// Whether this process may serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Reading what is stored.
    Opening,
    /// Another process has the data and is alive.
    Standby(Owner),
    Serving,
    /// Another process took the data over. For good: this store serves nothing more.
    Fenced(Owner),
    /// What is stored cannot be read; the text says what.
    Failed(String),
}

/// What a store cannot do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("another process took over")]
    Fenced,
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    #[error("the store did not answer in time")]
    TimedOut,
    #[error("stored bytes cannot be read: {0}")]
    Corrupt(String),
    #[error("no such topic or partition")]
    UnknownPartition,
    #[error("the topic exists")]
    TopicExists,
    #[error("the topic has as many partitions already")]
    NotMorePartitions,
    #[error("the offset is outside of the log")]
    OffsetOutOfRange,
    /// Nothing was appended, as the log ends elsewhere.
    #[error("the log ends at {log_end_offset}")]
    Conflict { log_end_offset: i64 },
}

/// Says what is left of batches.
#[async_trait::async_trait]
pub trait Filter: Send {
    /// Takes batches that follow each other, and gives those that are left, in their order, each at the
    /// base offset that it had.
    async fn filter(&mut self, batches: Vec<Batch>) -> Result<Vec<Batch>>;
}

/// The data of all topics and partitions.
#[async_trait::async_trait]
pub trait Storage: Send + Sync + 'static {
    fn state(&self) -> watch::Receiver<State>;

    /// The name of the cluster: made once, when the store was first used.
    fn cluster_id(&self) -> String;

    /// Where the data is, as the name of Kafka's one log directory.
    fn log_dir(&self) -> String {
        LOG_DIR.into()
    }

    /// The topics as this process knows them now. Cheap: asked in every request.
    fn topics(&self) -> Arc<Topics>;

    /// Wakes when [`Storage::topics`] or [`Storage::broker_configs`] may give something else.
    /// `None` before the store is open, and of one that does not tell.
    fn changes(&self) -> Option<watch::Receiver<()>> {
        None
    }

    /// Whether the store keeps what coordinators need. Without it there are no producer ids, and
    /// the APIs that need coordinators are not advertised.
    fn has_coordinators(&self) -> bool {
        true
    }

    /// Whether groups can be kept. Without it their APIs are not advertised.
    fn has_groups(&self) -> bool {
        self.has_coordinators()
    }

    /// Where groups are kept, if not in an internal topic.
    fn groups(&self) -> Option<Arc<dyn Groups>> {
        None
    }

    /// Done when the topic is stored; [`Storage::topics`] shows it then.
    async fn create_topic(&self, topic: Topic) -> Result<()>;

    async fn delete_topic(&self, id: Uuid) -> Result<()>;

    /// Whether [`Storage::alter_topic`] works. Without it the APIs that change topics and configs
    /// are not advertised.
    fn alters_topics(&self) -> bool {
        false
    }

    /// Changes a topic: done when that is stored, and [`Storage::topics`] shows it then. New
    /// partitions are empty.
    async fn alter_topic(&self, _id: Uuid, _change: TopicChange) -> Result<()> {
        Err(StoreError::Unavailable("topics cannot be changed".into()))
    }

    /// Whether [`Storage::alter_broker_configs`] works.
    fn alters_brokers(&self) -> bool {
        false
    }

    /// What was set of brokers, as this process knows it now. The same value is the same `Arc`.
    fn broker_configs(&self) -> Arc<BrokerConfigs> {
        Arc::default()
    }

    /// Changes what is set of one broker, or, with [`ALL_BROKERS`](topics::ALL_BROKERS), of all.
    async fn alter_broker_configs(&self, _broker: String, _changes: ConfigChanges) -> Result<()> {
        Err(StoreError::Unavailable("settings of brokers are not kept".into()))
    }

    /// Producer ids that nobody had or will have.
    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>>;

    async fn open(&self, partition: PartitionId) -> Result<Opened>;

    /// The leader epoch that [`Storage::open`] would give, where it is known without a look at the
    /// partition: asked for every partition of a Metadata answer.
    fn leader_epoch(&self, _partition: PartitionId) -> Option<i32> {
        None
    }

    /// The leader epochs of which records were appended, in their order. A store that keeps none
    /// may leave it so: all that its records say then is that they are older than its opening.
    async fn epochs(&self, _partition: PartitionId) -> Result<Vec<EpochStart>> {
        Ok(Vec::new())
    }

    /// From the log start to the end of what is committed, where that is known without a look at the
    /// partition: for metrics.
    fn bounds(&self, _partition: PartitionId) -> Option<Range<i64>> {
        None
    }

    /// Appends batches, stamped from `expected_base_offset` on, exactly there, or appends nothing.
    ///
    /// The call itself submits: appends to one partition are carried out in the order of the
    /// calls, any number may be under way, and after one was refused so are those called before
    /// its future gave the refusal, or was dropped; what is called then stands for itself. The future only waits; it may be dropped. It is done when the
    /// batches are durable as the host says, and gives the base offset.
    fn append(
        &self,
        partition: PartitionId,
        expected_base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>>;

    /// Drops what is known of idempotent producers that have appended nothing for long, and have
    /// nothing under way. A later opening may know of them again.
    fn forget_producers(&self, partition: PartitionId, producer_ids: &[i64]);

    /// Says from which offsets will be read next, one partition after the other. A store that has to
    /// look elsewhere for records may begin with all of them.
    fn will_read(&self, _positions: &[(PartitionId, i64)]) {}

    /// Reads whole batches from the one that holds `offset` on, as slices in order, up to
    /// `max_bytes`; the first batch comes whole however long it is if `at_least_one`. Nothing at
    /// or above the end of what is committed; [`StoreError::OffsetOutOfRange`] below the log start
    /// and above that end.
    async fn read(
        &self,
        partition: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>>;

    /// An offset from which a search for the first record of `timestamp` or later may begin:
    /// never above that record.
    async fn seek_time(&self, partition: PartitionId, timestamp: i64) -> Result<i64>;

    /// What a partition's log is made of; `None` if the store lets old records go by rules of its
    /// own.
    fn layout(&self, _partition: PartitionId) -> Result<Option<Layout>> {
        Ok(None)
    }

    /// The batches from `offset` on that are in settled parts, some at a time, and the offset at which
    /// the next ones begin; `None` behind them. For who reads everything once, and wants no cache
    /// to be filled with it.
    async fn read_settled(
        &self,
        _partition: PartitionId,
        _offset: i64,
    ) -> Result<Option<(Vec<Batch>, i64)>> {
        Ok(None)
    }

    /// Replaces what is in settled parts, from the log's first batch on up to the part that holds
    /// `end_offset`, by what a filter leaves of it. Offsets stay. A batch of which nothing is left
    /// may stay without records.
    async fn rewrite(
        &self,
        _partition: PartitionId,
        _end_offset: i64,
        _filter: &mut dyn Filter,
    ) -> Result<()> {
        Ok(())
    }

    /// Moves the log start forward, never past the log end; gives the log start then.
    async fn set_log_start(&self, partition: PartitionId, offset: i64) -> Result<i64>;

    /// Ends the store's own work in good order; what was submitted is carried out first.
    async fn close(&self);
}
