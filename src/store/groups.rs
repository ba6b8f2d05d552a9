//! Where a store keeps groups and their offsets that has a place of its own for them.
//!
//! The object log has none: there they are records of an internal topic, as in Kafka.

use super::Result;
use crate::protocol::wire::{Str, Uuid};
use bytes::Bytes;

/// What the coordinators of groups keep. They go by numbers from 0 on, and each has its own groups.
///
/// A coordinator makes one change at a time, and makes it wait as long as it takes: after an error
/// it is unknown what was stored, but nothing more of it will be.
#[async_trait::async_trait]
pub trait Groups: Send + Sync + 'static {
    /// How many coordinators there are: fixed when the store is first used, known when it serves.
    fn coordinators(&self) -> i32;

    /// Stores offsets, all or none, in their order.
    async fn commit_offsets(&self, coordinator: i32, offsets: Vec<Offset>) -> Result<()>;

    /// Stores records, all or none, in their order.
    async fn append_records(&self, coordinator: i32, records: Vec<Record>) -> Result<()>;

    /// Shows all offsets; the last one of a key counts.
    async fn load_offsets(
        &self,
        coordinator: i32,
        show: &mut (dyn FnMut(Offset) + Send),
    ) -> Result<()>;

    /// Shows all records; the last one of a key counts.
    async fn load_records(
        &self,
        coordinator: i32,
        show: &mut (dyn FnMut(Record) + Send),
    ) -> Result<()>;
}

/// The offset of a group in a partition. Group, topic and partition are its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    pub group: Str,
    pub topic: Str,
    pub partition: i32,
    /// `None` deletes it.
    pub committed: Option<Committed>,
}

/// What a group has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    pub offset: i64,
    /// -1 if it is not known.
    pub leader_epoch: i32,
    pub metadata: Str,
    /// Of the wall clock, in milliseconds.
    pub commit_timestamp: i64,
    /// When it expires; -1 if it has no such time of its own.
    pub expire_timestamp: i64,
    /// Zero if it is not known.
    pub topic_id: Uuid,
}

/// The last record of a key counts; one without a value deletes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Option<Bytes>,
}
