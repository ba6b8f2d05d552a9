//! [`Storage`] over the host's `kelp_storage`.
//!
//! Topics are asked for once and kept; partitions are opened when they are first used. What this
//! process knows changes when the host completes an operation, whether or not somebody still
//! waits for it: a topic that was created late is there.

use super::appends::Appends;
use super::broker_settings::BrokerSettings;
use super::data::{KelpBytes, KelpStr};
use super::groups::HostGroups;
use super::host::Host;
use super::host_topics::Known;
use super::operation::{Callback, KelpOp};
use super::producer_state::ProducerState;
use super::read::whole_batches;
use super::records::RecordLogs;
use super::snapshots::Snapshots;
use super::status::Failure;
use super::storage::*;
use crate::protocol::wire::Uuid;
use crate::record::batch::Batch;
use crate::store::groups::Groups;
use crate::store::topics::{BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics};
use crate::store::{BoxFuture, Opened, PartitionId, Result, State, Storage, StoreError};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

pub(super) struct HostStorage {
    pub(super) host: Arc<Host>,
    pub(super) table: Table,
    pub(super) known: Arc<Known>,
    /// Held while a topic is altered, until the host has completed it.
    pub(super) altering: Arc<tokio::sync::Mutex<()>>,
    pub(super) partitions: Arc<Mutex<HashMap<PartitionId, Arc<Appends>>>>,
    pub(super) snapshots: Option<Arc<Snapshots>>,
    pub(super) broker_settings: Option<Arc<BrokerSettings>>,
    pub(super) groups: Option<Arc<HostGroups>>,
}

/// The host's functions, those that are needed and those that may be missing.
pub(super) struct Table {
    pub(super) load_topics: Callback<KelpLoadTopics>,
    pub(super) create_topic: Callback<KelpCreateTopic>,
    pub(super) delete_topic: Callback<KelpDeleteTopic>,
    open_partition: Callback<KelpOpenPartition>,
    append: Callback<KelpAppend>,
    read: Callback<KelpRead>,
    set_log_start: Callback<KelpSetLogStart>,
    seek_time: Option<Callback<KelpSeekTime>>,
    allocate_producer_ids: Option<Callback<KelpAllocateProducerIds>>,
    pub(super) alter_topic: Option<Callback<KelpAlterTopic>>,
}

/// How much of a log is read at once to see its producers.
const SCAN_BYTES: usize = 1 << 20;

impl HostStorage {
    /// Asks the host for its topics. Gives the name of a function that is missing. `coordinators`
    /// is how many there are to be of groups.
    pub(super) fn new(
        host: &Arc<Host>,
        table: KelpStorage,
        coordinators: i32,
    ) -> Result<Arc<Self>, &'static str> {
        let logs = match (table.allocate_producer_ids, table.append_records, table.load_records) {
            (None, None, None) => None,
            (Some(_), Some(append), Some(load)) => {
                Some(RecordLogs { host: host.clone(), append, load })
            }
            _ => return Err("allocate_producer_ids, append_records or load_records"),
        };
        let groups = match (logs.clone(), table.commit_offsets, table.load_offsets) {
            (_, None, None) => None,
            (Some(logs), Some(commit), Some(load)) => {
                Some(Arc::new(HostGroups::new(logs, commit, load)))
            }
            (None, ..) => return Err("append_records or load_records"),
            _ => return Err("commit_offsets or load_offsets"),
        };
        let known = Known::new();
        let settings = |logs| Arc::new(BrokerSettings::new(logs, known.changes.clone()));
        let broker_settings = logs.clone().map(settings);
        let snapshots = logs.map(|logs| Arc::new(Snapshots::new(logs)));
        let storage = Arc::new(Self {
            host: host.clone(),
            table: Table {
                load_topics: table.load_topics.ok_or("load_topics")?,
                create_topic: table.create_topic.ok_or("create_topic")?,
                delete_topic: table.delete_topic.ok_or("delete_topic")?,
                open_partition: table.open_partition.ok_or("open_partition")?,
                append: table.append.ok_or("append")?,
                read: table.read.ok_or("read")?,
                set_log_start: table.set_log_start.ok_or("set_log_start")?,
                seek_time: table.seek_time,
                allocate_producer_ids: table.allocate_producer_ids,
                alter_topic: table.alter_topic,
            },
            known,
            altering: Arc::default(),
            broker_settings,
            partitions: Arc::default(),
            snapshots,
            groups,
        });
        storage.load_topics(coordinators);
        Ok(storage)
    }

    /// A partition that exists, with the appends that are on their way to it.
    fn partition(&self, id: PartitionId) -> Result<Arc<Appends>> {
        // Held until the partition is in: a topic that is deleted takes its partitions with it.
        let topics = self.known.topics();
        let topic = topics.by_id(id.topic).ok_or(StoreError::UnknownPartition)?;
        if !(0..topic.partitions).contains(&id.partition) {
            return Err(StoreError::UnknownPartition);
        }
        let mut partitions = lock(&self.partitions);
        let partition = partitions.entry(id).or_insert_with(|| {
            let snapshots = self.snapshots.clone();
            let snapshot = move |state: &ProducerState| {
                if let Some(snapshots) = &snapshots {
                    snapshots.put(id, state);
                }
            };
            let (host, topic) = (self.host.clone(), topic.clone());
            Arc::new(Appends::new(host, self.table.append, topic, id.partition, snapshot))
        });
        Ok(partition.clone())
    }

    /// Where the host's log begins and ends, and the leader epoch.
    async fn bounds(&self, partition: &Arc<Appends>) -> Result<(Range<i64>, i32)> {
        let asked = {
            let body = KelpOpenPartition {
                op: KelpOp::NEW,
                partition: partition.partition(),
                log_start_offset: -1,
                log_end_offset: -1,
                leader_epoch: -1,
                reserved: 0,
            };
            self.host.ask(self.table.open_partition, body, partition.clone(), |outcome| {
                outcome.ok()?;
                let KelpOpenPartition { log_start_offset, log_end_offset, leader_epoch, .. } =
                    *outcome.body;
                if log_start_offset < 0 || log_end_offset < log_start_offset || leader_epoch < 0 {
                    return Err(Failure::Malformed("impossible offsets or leader epoch"));
                }
                Ok((log_start_offset..log_end_offset, leader_epoch))
            })
        };
        Ok(asked.await?)
    }

    /// Reads what is not known yet of the producers up to the log's end.
    async fn producers(
        &self,
        id: PartitionId,
        partition: &Appends,
        log: Range<i64>,
    ) -> Result<ProducerState> {
        let known = match (partition.producers(), &self.snapshots) {
            (None, Some(snapshots)) => snapshots.get(id).await?,
            (known, _) => known,
        };
        let mut state = known
            .filter(|state| state.next_offset <= log.end)
            .unwrap_or_else(|| ProducerState::at(log.start));
        state.next_offset = state.next_offset.max(log.start);
        while state.next_offset < log.end {
            let before = state.next_offset;
            for mut slice in self.read(id, before, SCAN_BYTES, true).await? {
                while let Some(batch) = Batch::split_off(&mut slice)
                    && state.next_offset < log.end
                {
                    state.apply(&batch.header);
                }
            }
            if state.next_offset <= before {
                return Err(Failure::Malformed("a read gave nothing below the log's end").into());
            }
        }
        Ok(state)
    }
}

impl KelpPartition {
    /// Points into `topic`.
    pub(super) fn of(topic: &Topic, index: i32) -> Self {
        Self { topic: KelpStr::of(&topic.name), topic_id: topic.id.0, index, reserved: 0 }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait::async_trait]
impl Storage for HostStorage {
    fn state(&self) -> watch::Receiver<State> {
        self.known.state.subscribe()
    }

    fn cluster_id(&self) -> String {
        self.known.cluster_id.get().cloned().unwrap_or_default()
    }

    fn topics(&self) -> Arc<Topics> {
        self.known.topics().clone()
    }

    fn changes(&self) -> Option<watch::Receiver<()>> {
        Some(self.known.changes.subscribe())
    }

    fn has_coordinators(&self) -> bool {
        self.snapshots.is_some()
    }

    fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    fn groups(&self) -> Option<Arc<dyn Groups>> {
        let groups = self.groups.clone()?;
        Some(groups)
    }

    async fn create_topic(&self, topic: Topic) -> Result<()> {
        Ok(self.create(topic).await?)
    }

    async fn delete_topic(&self, id: Uuid) -> Result<()> {
        self.delete(id).await
    }

    fn alters_topics(&self) -> bool {
        self.table.alter_topic.is_some()
    }

    async fn alter_topic(&self, id: Uuid, change: TopicChange) -> Result<()> {
        self.alter(id, change).await
    }

    fn alters_brokers(&self) -> bool {
        self.broker_settings.is_some()
    }

    fn broker_configs(&self) -> Arc<BrokerConfigs> {
        self.broker_settings.as_ref().map(|settings| settings.configs()).unwrap_or_default()
    }

    async fn alter_broker_configs(&self, broker: String, changes: ConfigChanges) -> Result<()> {
        let settings = self.broker_settings.as_ref().ok_or(Failure::NotOffered)?;
        Ok(settings.alter(broker, changes).await?)
    }

    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        let allocate = self.table.allocate_producer_ids.ok_or(Failure::NotOffered)?;
        let body = KelpAllocateProducerIds { op: KelpOp::NEW, count, reserved: 0, first: -1 };
        let asked = self.host.ask(allocate, body, (), move |outcome| {
            outcome.ok()?;
            let first = outcome.body.first;
            let end = first.checked_add(i64::from(count)).filter(|_| first >= 0);
            end.map(|end| first..end).ok_or(Failure::Malformed("producer ids out of range"))
        });
        Ok(asked.await?)
    }

    async fn open(&self, id: PartitionId) -> Result<Opened> {
        let partition = self.partition(id)?;
        let (log, leader_epoch) = self.bounds(&partition).await?;
        let state = self.producers(id, &partition, log.clone()).await?;
        partition.set_producers(state.clone());
        Ok(Opened {
            log_start_offset: log.start,
            log_end_offset: log.end,
            leader_epoch,
            producers: state.producers,
        })
    }

    fn append(
        &self,
        partition: PartitionId,
        expected_base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        match self.partition(partition) {
            Ok(partition) => partition.submit(expected_base_offset, batches),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn forget_producers(&self, id: PartitionId, producer_ids: &[i64]) {
        if let Some(partition) = lock(&self.partitions).get(&id) {
            partition.forget_producers(producer_ids);
        }
    }

    async fn read(
        &self,
        id: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        let partition = self.partition(id)?;
        let asked = {
            let body = KelpRead {
                op: KelpOp::NEW,
                partition: partition.partition(),
                offset,
                max_bytes,
                at_least_one: u32::from(at_least_one),
                reserved: 0,
                slices: ptr::null::<KelpBytes>(),
                slice_count: 0,
            };
            self.host.ask(self.table.read, body, partition, |outcome| {
                outcome.ok()?;
                let slices = outcome.array(outcome.body.slices, outcome.body.slice_count)?;
                slices.iter().map(|slice| outcome.bytes(*slice)).collect::<Result<Vec<_>, _>>()
            })
        };
        Ok(whole_batches(asked.await?, offset, max_bytes, at_least_one)?)
    }

    async fn seek_time(&self, id: PartitionId, timestamp: i64) -> Result<i64> {
        let partition = self.partition(id)?;
        let Some(seek_time) = self.table.seek_time else {
            return Ok(self.bounds(&partition).await?.0.start);
        };
        let asked = {
            let body = KelpSeekTime {
                op: KelpOp::NEW,
                partition: partition.partition(),
                timestamp,
                offset: -1,
            };
            self.host.ask(seek_time, body, partition, |outcome| {
                outcome.ok()?;
                let offset = outcome.body.offset;
                (offset >= 0).then_some(offset).ok_or(Failure::Malformed("a negative offset"))
            })
        };
        Ok(asked.await?)
    }

    async fn set_log_start(&self, id: PartitionId, offset: i64) -> Result<i64> {
        let partition = self.partition(id)?;
        let asked = {
            let body = KelpSetLogStart {
                op: KelpOp::NEW,
                partition: partition.partition(),
                offset,
                log_start_offset: -1,
            };
            self.host.ask(self.table.set_log_start, body, partition, move |outcome| {
                outcome.ok()?;
                let start = outcome.body.log_start_offset;
                (start >= offset).then_some(start).ok_or(Failure::Malformed("a log start below"))
            })
        };
        Ok(asked.await?)
    }

    async fn close(&self) {
        let partitions: Vec<_> =
            lock(&self.partitions).iter().map(|(id, p)| (*id, p.clone())).collect();
        for (_, partition) in &partitions {
            partition.idle().await;
        }
        if let Some(snapshots) = &self.snapshots {
            let states = partitions.iter().filter_map(|(id, p)| Some((*id, p.producers()?)));
            let newer = states.filter(|(_, state)| state.is_newer_than_snapshot()).collect();
            snapshots.put_all(newer).await;
        }
    }
}
