//! A log over a store in memory, for tests.

use super::Log;
use super::append::Appended;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;
use crate::record::testing::Draft;
use crate::store::memory::Memory;
use crate::store::topics::Topic;
use crate::store::{PartitionId, Storage};
use std::sync::Arc;

pub(super) const PARTITION: PartitionId = PartitionId { topic: Uuid([1; 16]), partition: 0 };

/// A log with one topic of two partitions.
pub(super) async fn log() -> Log {
    let storage = Arc::new(Memory::default());
    let (id, name) = (PARTITION.topic, "clicks".into());
    storage.create_topic(Topic { id, name, partitions: 2, ..Topic::default() }).await.unwrap();
    Log::new(storage)
}

/// Appends a batch that needs no check, and waits for the answer.
pub(super) async fn append(log: &Log, draft: Draft) -> Result<Appended, ErrorCode> {
    let partition = log.partition(PARTITION).await?;
    let batch = draft.batch();
    let room = log.room_for(batch.len()).await;
    partition.append(batch, room).await
}
