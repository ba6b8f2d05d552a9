//! The object log: topics, records and offsets kept in a store of objects.
//!
//! One journal for all partitions takes every group commit as one object ([`journal`]); rounds move
//! it into segments that a checkpoint lists ([`tiering`]); who opens reads the checkpoint and the
//! journal's tail and closes it with a fence ([`opening`]). No clock keeps data safe: the fence does.
//!
//! The rules were checked by an executable model, `tests/model`, and are named in its words.

mod ahead;
mod along;
mod block;
mod cache;
mod checkpoint;
mod faults;
mod faulty;
mod fence;
mod format;
#[doc(hidden)]
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod journal;
mod keys;
mod log;
mod looking;
mod merging;
pub mod metadata;
mod opening;
mod options;
mod putting;
mod reading;
mod referring;
pub mod registration;
mod rewriting;
mod riders;
#[cfg(test)]
mod samples;
mod segment;
mod state;
#[cfg(test)]
mod tests;
mod tiering;
mod writing;

pub use faults::{Faults, Rule};
pub use options::Options;

use super::layout::Layout;
use super::objects::Objects;
use super::topics::{BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics};
use super::{
    BoxFuture, EpochStart, Filter, Opened, PartitionId, Result, State, Storage, StoreError,
};
use crate::protocol::wire::Uuid;
use crate::record::batch::Batch;
use bytes::Bytes;
use journal::Journal;
use keys::Keys;
use metadata::Metadata;
use opening::Opener;
use registration::Registration;
#[cfg(any(test, feature = "faults"))]
use state::Image;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tiering::Tiering;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use writing::End;

/// [`Storage`] on [`Objects`].
///
/// ```text
///  Opening ─▶ (Standby ─▶) Serving ─▶ Fenced
///     └──────────┴────────────┴─────▶ Failed
/// ```
pub struct ObjectLog {
    shared: Arc<Shared>,
    tasks: AbortHandle,
}

struct Shared {
    objects: Arc<dyn Objects>,
    options: Options,
    nonce: u64,
    state: watch::Sender<State>,
    serving: OnceLock<Serving>,
    closing: watch::Sender<bool>,
    /// Closed when all work has ended, however it did.
    running: watch::Receiver<()>,
}

#[derive(Clone)]
struct Serving {
    journal: Arc<Journal>,
    metadata: Arc<Metadata>,
}

impl ObjectLog {
    /// Begins to open; [`Storage::state`] tells how that goes. Called inside a tokio runtime.
    pub fn start(objects: Arc<dyn Objects>, options: Options) -> Arc<Self> {
        let (is_running, running) = watch::channel(());
        let shared = Arc::new(Shared {
            objects,
            options,
            nonce: rand::random(),
            state: watch::Sender::new(State::Opening),
            serving: OnceLock::new(),
            closing: watch::Sender::new(false),
            running,
        });
        let run = shared.clone().run();
        let tasks = tokio::spawn(async move {
            run.await;
            drop(is_running);
        });
        let tasks = tasks.abort_handle();
        Arc::new(Self { shared, tasks })
    }

    /// What is committed, as a text that is equal for equal logs. Segments come and go with rounds.
    #[cfg(any(test, feature = "faults"))]
    pub fn committed(&self, with_segments: bool) -> String {
        let text = |serving: &Serving| {
            let Image { mut partitions, mut referred, .. } =
                serving.journal.lock().log.image.clone();
            if !with_segments {
                referred.clear();
                for partition in partitions.values_mut() {
                    (partition.entries, partition.clean_end_offset) = (Arc::default(), 0);
                }
            }
            format!("{partitions:#?}{referred:#?}")
        };
        self.shared.serving.get().map(text).unwrap_or_default()
    }

    /// The log end of a partition as it is committed now.
    #[cfg(feature = "faults")]
    pub fn log_end(&self, id: PartitionId) -> Option<i64> {
        let inner = self.shared.serving.get()?.journal.lock();
        inner.log.image.partitions.get(&id).map(|partition| partition.log_end_offset)
    }

    /// The epoch in which this process serves.
    #[cfg(feature = "faults")]
    pub fn epoch(&self) -> Option<i32> {
        self.shared.serving.get().map(|serving| serving.journal.epoch)
    }

    /// Ends all work at once, as a killed process does.
    #[cfg(feature = "faults")]
    pub fn crash(&self) {
        self.tasks.abort();
    }
}

impl Drop for ObjectLog {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

const LONGEST_RELEASE: Duration = Duration::from_secs(3);

impl Shared {
    async fn run(self: Arc<Self>) {
        if let Err(error) = self.serve().await {
            self.state.send_replace(State::Failed(error.to_string()));
        }
    }

    async fn serve(&self) -> Result<()> {
        if !self.options.registration {
            return self.open_and_serve().await;
        }
        let Options { broker_id, owner, take_over, .. } = self.options.clone();
        let on_standby = |owner| {
            tracing::info!(?owner, "another process has the data; standing by");
            self.state.send_replace(State::Standby(owner));
        };
        let objects = self.objects.clone();
        let wait = Registration::wait(objects, broker_id, owner, take_over, on_standby);
        let mut registration = tokio::select! {
            biased;
            () = self.until_closing() => return Ok(()),
            registration = wait => registration?,
        };
        self.state.send_replace(State::Opening);
        let served = tokio::select! {
            biased;
            served = self.open_and_serve() => served,
            () = registration.keep() => unreachable!("it is renewed until it is dropped"),
        };
        // A store that is away must not hold up the end: others see the silence then.
        match timeout(LONGEST_RELEASE, registration.release()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the registration was not released"),
            Err(_) => tracing::warn!("the registration was not released in time"),
        }
        served
    }

    async fn open_and_serve(&self) -> Result<()> {
        let serving = tokio::select! {
            biased;
            () = self.until_closing() => return Ok(()),
            serving = self.open() => serving?,
        };
        let Serving { journal, metadata } = serving.clone();
        if self.serving.set(serving).is_err() {
            unreachable!("a log is opened once");
        }
        // Who closes does one of the two: it sees what was set here, or is seen here.
        if *self.closing.borrow() {
            journal.close();
        }
        self.state.send_replace(State::Serving);
        // Dropped, and with it aborted, when the writer ends.
        let mut tasks = JoinSet::new();
        tasks.spawn(Tiering::new(journal.clone(), metadata.clone()).run());
        tasks.spawn(journal.clone().merge_small());
        tasks.spawn(journal.clone().look_when_idle());
        tasks.spawn(journal.clone().read_ahead());
        tasks.spawn(follow(metadata, self.options.metadata_interval));
        match journal.run().await {
            // The state says already who took over.
            End::Closed | End::Fenced => {}
            End::Failed(text) => drop(self.state.send_replace(State::Failed(text))),
        }
        Ok(())
    }

    async fn open(&self) -> Result<Serving> {
        let (objects, options) = (self.objects.clone(), self.options.clone());
        let keys = Keys { broker_id: options.broker_id, faults: options.faults };
        let metadata = Arc::new(Metadata::open(objects.clone(), self.nonce).await?);
        let opener =
            Opener { objects: objects.clone(), options: options.clone(), nonce: self.nonce, keys };
        let opening = opener.open().await?;
        // Only now are all topics known whose frames the owner before may have committed.
        if options.faults.keep(Rule::JournalBeforeMetadata) {
            metadata.refresh().await?;
        }
        check_gaps(&metadata, &opening.log)?;
        let journal = Journal::new(objects, options, self.nonce, keys, self.state.clone(), opening);
        Ok(Serving { journal: Arc::new(journal), metadata })
    }

    async fn until_closing(&self) {
        let mut closing = self.closing.subscribe();
        if closing.wait_for(|closing| *closing).await.is_err() {
            unreachable!("the sender is here");
        }
    }

    fn serving(&self) -> Result<&Serving> {
        match &*self.state.borrow() {
            State::Serving => {}
            State::Fenced(_) => return Err(StoreError::Fenced),
            State::Failed(text) => return Err(StoreError::Corrupt(text.clone())),
            State::Opening | State::Standby(_) => {
                return Err(StoreError::Unavailable("it is not open yet".into()));
            }
        }
        self.serving.get().ok_or_else(journal::ended)
    }

    /// The journal, for a partition that exists.
    fn journal(&self, id: PartitionId) -> Result<&Arc<Journal>> {
        let serving = self.serving()?;
        let topics = serving.metadata.topics();
        let topic = topics.by_id(id.topic).ok_or(StoreError::UnknownPartition)?;
        if !(0..topic.partitions).contains(&id.partition) {
            return Err(StoreError::UnknownPartition);
        }
        Ok(&serving.journal)
    }
}

/// Frames that did not go on where their partition's log ends can only be those of a topic that was
/// deleted, whose state a checkpoint left out. The metadata was read to its end after them.
fn check_gaps(metadata: &Metadata, log: &log::Log) -> Result<()> {
    let topics = metadata.topics();
    match log.gaps.iter().find_map(|id| topics.by_id(*id)) {
        None => Ok(()),
        Some(topic) => {
            Err(StoreError::Corrupt(format!("a gap in the log of topic {}", topic.name)))
        }
    }
}

/// Keeps the view of the topics young: others may change them too.
async fn follow(metadata: Arc<Metadata>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        if let Err(error) = metadata.refresh().await {
            tracing::error!(%error, "the metadata log cannot be read");
        }
    }
}

#[async_trait::async_trait]
impl Storage for ObjectLog {
    fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    fn cluster_id(&self) -> String {
        self.shared.serving.get().map(|serving| serving.metadata.cluster_id()).unwrap_or_default()
    }

    fn log_dir(&self) -> String {
        self.shared.objects.location()
    }

    fn topics(&self) -> Arc<Topics> {
        self.shared.serving.get().map(|serving| serving.metadata.topics()).unwrap_or_default()
    }

    fn changes(&self) -> Option<watch::Receiver<()>> {
        self.shared.serving.get().map(|serving| serving.metadata.changes())
    }

    async fn create_topic(&self, topic: Topic) -> Result<()> {
        self.shared.serving()?.metadata.create_topic(topic).await
    }

    async fn delete_topic(&self, id: Uuid) -> Result<()> {
        self.shared.serving()?.metadata.delete_topic(id).await
    }

    fn alters_topics(&self) -> bool {
        true
    }

    async fn alter_topic(&self, id: Uuid, change: TopicChange) -> Result<()> {
        self.shared.serving()?.metadata.alter_topic(id, change).await
    }

    fn alters_brokers(&self) -> bool {
        true
    }

    fn broker_configs(&self) -> Arc<BrokerConfigs> {
        let serving = self.shared.serving.get();
        serving.map(|serving| serving.metadata.broker_configs()).unwrap_or_default()
    }

    async fn alter_broker_configs(&self, broker: String, changes: ConfigChanges) -> Result<()> {
        self.shared.serving()?.metadata.alter_broker(broker, changes).await
    }

    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        self.shared.serving()?.metadata.allocate_producer_ids(count).await
    }

    async fn open(&self, partition: PartitionId) -> Result<Opened> {
        self.shared.journal(partition)?.open(partition).await
    }

    fn leader_epoch(&self, _partition: PartitionId) -> Option<i32> {
        self.shared.serving.get().map(|serving| serving.journal.epoch)
    }

    async fn epochs(&self, partition: PartitionId) -> Result<Vec<EpochStart>> {
        self.shared.journal(partition)?.epochs(partition)
    }

    fn bounds(&self, partition: PartitionId) -> Option<Range<i64>> {
        let journal = &self.shared.serving.get()?.journal;
        let bounds = |log: &log::Log| {
            let partition = log.image.partitions.get(&partition)?;
            Some(partition.log_start_offset..partition.log_end_offset)
        };
        // One that nobody wrote to is nowhere.
        Some(bounds(&journal.lock().log).unwrap_or(0..0))
    }

    fn append(
        &self,
        partition: PartitionId,
        expected_base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        let journal = self.shared.journal(partition);
        let submitted = journal.map(|j| j.append(partition, expected_base_offset, batches));
        Box::pin(async move {
            match submitted? {
                Ok(done) => done.await.unwrap_or_else(|_| Err(journal::ended())),
                Err(refused) => Err(refused.error),
            }
        })
    }

    fn forget_producers(&self, partition: PartitionId, producer_ids: &[i64]) {
        // A store that does not serve has nothing to forget.
        if let Ok(journal) = self.shared.journal(partition) {
            journal.forget_producers(partition, producer_ids);
        }
    }

    fn will_read(&self, positions: &[(PartitionId, i64)]) {
        if let Ok(serving) = self.shared.serving() {
            serving.journal.will_read(positions);
        }
    }

    async fn read(
        &self,
        partition: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        self.shared.journal(partition)?.read(partition, offset, max_bytes, at_least_one).await
    }

    async fn seek_time(&self, partition: PartitionId, timestamp: i64) -> Result<i64> {
        self.shared.journal(partition)?.seek_time(partition, timestamp).await
    }

    async fn read_settled(
        &self,
        partition: PartitionId,
        offset: i64,
    ) -> Result<Option<(Vec<Batch>, i64)>> {
        self.shared.journal(partition)?.read_settled(partition, offset).await
    }

    async fn rewrite(
        &self,
        partition: PartitionId,
        end_offset: i64,
        filter: &mut dyn Filter,
    ) -> Result<()> {
        self.shared.journal(partition)?.rewrite(partition, end_offset, filter).await
    }

    fn layout(&self, partition: PartitionId) -> Result<Option<Layout>> {
        self.shared.journal(partition)?.layout(partition).map(Some)
    }

    async fn set_log_start(&self, partition: PartitionId, offset: i64) -> Result<i64> {
        self.shared.journal(partition)?.set_log_start(partition, offset).await
    }

    async fn close(&self) {
        self.shared.closing.send_replace(true);
        if let Some(serving) = self.shared.serving.get() {
            serving.journal.close();
        }
        let mut running = self.shared.running.clone();
        // An error says that the sender is gone: that is the end.
        while running.changed().await.is_ok() {}
    }
}
