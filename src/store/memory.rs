//! A [`Storage`] in memory, committed at once: what the rooms above the store are tested on.

use super::layout::{Layout, Part};
use super::producers::Producers;
use super::topics::{
    BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics, change_broker_configs,
};
use super::{BoxFuture, Opened, PartitionId, Result, State, Storage, StoreError};
use crate::protocol::wire::Uuid;
use crate::record::batch::{Batch, Header};
use bytes::{Bytes, BytesMut};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

pub struct Memory {
    state: watch::Sender<State>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    topics: Arc<Topics>,
    broker_configs: Arc<BrokerConfigs>,
    partitions: HashMap<PartitionId, Partition>,
    next_producer_id: i64,
}

#[derive(Default)]
struct Partition {
    start: i64,
    end: i64,
    batches: Vec<(i64, Bytes)>,
    producers: Producers,
}

/// Its only epoch: a memory store does not survive its process.
const LEADER_EPOCH: i32 = 0;

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self { state: watch::Sender::new(State::Serving), inner: Mutex::default() }
    }
}

impl Inner {
    fn partition(&mut self, id: PartitionId) -> Result<&mut Partition> {
        let topic = self.topics.by_id(id.topic).ok_or(StoreError::UnknownPartition)?;
        if !(0..topic.partitions).contains(&id.partition) {
            return Err(StoreError::UnknownPartition);
        }
        Ok(self.partitions.entry(id).or_default())
    }

    fn append(&mut self, id: PartitionId, expected: i64, batches: Vec<Batch>) -> Result<i64> {
        let partition = self.partition(id)?;
        if partition.end != expected {
            return Err(StoreError::Conflict { log_end_offset: partition.end });
        }
        for batch in batches {
            let mut bytes = BytesMut::with_capacity(batch.len());
            bytes.extend_from_slice(&batch.head());
            bytes.extend_from_slice(&batch.records());
            partition.producers.apply(&batch.header);
            partition.end = batch.header.next_offset();
            partition.batches.push((partition.end, bytes.freeze()));
        }
        Ok(expected)
    }
}

#[async_trait::async_trait]
impl Storage for Memory {
    fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    fn cluster_id(&self) -> String {
        "memory".into()
    }

    fn topics(&self) -> Arc<Topics> {
        self.lock().topics.clone()
    }

    async fn create_topic(&self, topic: Topic) -> Result<()> {
        let mut inner = self.lock();
        if inner.topics.by_name(&topic.name).is_some() {
            return Err(StoreError::TopicExists);
        }
        Arc::make_mut(&mut inner.topics).insert(topic);
        Ok(())
    }

    async fn delete_topic(&self, id: Uuid) -> Result<()> {
        let mut inner = self.lock();
        Arc::make_mut(&mut inner.topics).remove(id).ok_or(StoreError::UnknownPartition)?;
        inner.partitions.retain(|partition, _| partition.topic != id);
        Ok(())
    }

    fn alters_topics(&self) -> bool {
        true
    }

    async fn alter_topic(&self, id: Uuid, change: TopicChange) -> Result<()> {
        let mut inner = self.lock();
        let topic = inner.topics.by_id(id).ok_or(StoreError::UnknownPartition)?;
        let changed = topic.changed(change)?;
        Arc::make_mut(&mut inner.topics).insert(changed);
        Ok(())
    }

    fn alters_brokers(&self) -> bool {
        true
    }

    fn broker_configs(&self) -> Arc<BrokerConfigs> {
        self.lock().broker_configs.clone()
    }

    async fn alter_broker_configs(&self, broker: String, changes: ConfigChanges) -> Result<()> {
        let mut inner = self.lock();
        let mut all = (*inner.broker_configs).clone();
        change_broker_configs(&mut all, broker, changes);
        inner.broker_configs = Arc::new(all);
        Ok(())
    }

    async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        let mut inner = self.lock();
        let first = inner.next_producer_id;
        inner.next_producer_id += i64::from(count);
        Ok(first..inner.next_producer_id)
    }

    async fn open(&self, id: PartitionId) -> Result<Opened> {
        let mut inner = self.lock();
        let partition = inner.partition(id)?;
        Ok(Opened {
            log_start_offset: partition.start,
            log_end_offset: partition.end,
            leader_epoch: LEADER_EPOCH,
            producers: partition.producers.clone(),
        })
    }

    fn leader_epoch(&self, _partition: PartitionId) -> Option<i32> {
        Some(LEADER_EPOCH)
    }

    fn append(
        &self,
        partition: PartitionId,
        expected_base_offset: i64,
        batches: Vec<Batch>,
    ) -> BoxFuture<'static, Result<i64>> {
        let done = self.lock().append(partition, expected_base_offset, batches);
        Box::pin(std::future::ready(done))
    }

    fn forget_producers(&self, id: PartitionId, producer_ids: &[i64]) {
        if let Ok(partition) = self.lock().partition(id) {
            producer_ids.iter().for_each(|id| partition.producers.remove(*id));
        }
    }

    async fn read(
        &self,
        id: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        let mut inner = self.lock();
        let partition = inner.partition(id)?;
        if offset < partition.start || offset > partition.end {
            return Err(StoreError::OffsetOutOfRange);
        }
        let first = partition.batches.partition_point(|(end, _)| *end <= offset);
        let (mut slices, mut bytes) = (Vec::new(), 0);
        for (_, batch) in &partition.batches[first..] {
            bytes += batch.len();
            if bytes > max_bytes && !(slices.is_empty() && at_least_one) {
                break;
            }
            slices.push(batch.clone());
        }
        Ok(slices)
    }

    async fn seek_time(&self, id: PartitionId, _timestamp: i64) -> Result<i64> {
        self.lock().partition(id).map(|partition| partition.start)
    }

    fn layout(&self, id: PartitionId) -> Result<Option<Layout>> {
        let mut inner = self.lock();
        let partition = inner.partition(id)?;
        let (start, log_end_offset) = (partition.start, partition.end);
        let headers = partition.batches.iter().filter_map(|(_, batch)| Header::read(batch));
        let parts = headers.map(|header| Part {
            base_offset: header.base_offset,
            end_offset: header.next_offset(),
            bytes: header.whole_bytes().unwrap_or_default() as u64,
            first_timestamp: header.max_timestamp,
            max_timestamp: header.max_timestamp,
            is_settled: false,
        });
        let parts = parts.filter(|part| part.end_offset > start).collect();
        let clean_end_offset = 0;
        Ok(Some(Layout { log_start_offset: start, log_end_offset, clean_end_offset, parts }))
    }

    async fn set_log_start(&self, id: PartitionId, offset: i64) -> Result<i64> {
        let mut inner = self.lock();
        let partition = inner.partition(id)?;
        if offset > partition.end {
            return Err(StoreError::OffsetOutOfRange);
        }
        partition.start = partition.start.max(offset);
        Ok(partition.start)
    }

    async fn close(&self) {}
}
