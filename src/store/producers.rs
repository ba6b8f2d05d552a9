//! What a partition's batches say of their idempotent producers.
//!
//! It is only a summary of batches, in their order: whoever folds the same batches gets the same
//! state, but for producers that were dropped. What follows from it for a new batch is decided in the log's room.
//!
//! Source: KIP-98; `ProducerStateEntry` of Apache Kafka keeps the same five batches.

use crate::record::batch::Header;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How many batches of a producer are remembered. Kafka's clients have at most five in flight.
pub const BATCHES_KEPT: usize = 5;

/// A copy shares all with the original until one of them changes: copies of all partitions are made
/// under a lock that appends need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Producers {
    by_id: Arc<BTreeMap<i64, Producer>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Producer {
    pub epoch: i16,
    /// The last batches of this epoch, oldest first, at most [`BATCHES_KEPT`].
    pub batches: VecDeque<ProducerBatch>,
}

/// One batch of a producer, as its retry must be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    pub base_sequence: i32,
    pub last_sequence: i32,
    pub base_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
}

impl Producers {
    pub fn get(&self, producer_id: i64) -> Option<&Producer> {
        self.by_id.get(&producer_id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.by_id.iter().map(|(id, producer)| (*id, producer))
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Sets what is known of one producer: how a snapshot is read back.
    pub fn insert(&mut self, producer_id: i64, producer: Producer) {
        Arc::make_mut(&mut self.by_id).insert(producer_id, producer);
    }

    pub fn remove(&mut self, producer_id: i64) {
        Arc::make_mut(&mut self.by_id).remove(&producer_id);
    }

    /// Takes in a stamped batch that was appended behind all before.
    pub fn apply(&mut self, batch: &Header) {
        if !batch.is_idempotent() {
            return;
        }
        let producer = Arc::make_mut(&mut self.by_id).entry(batch.producer_id).or_default();
        if producer.epoch != batch.producer_epoch {
            // A new epoch starts its sequence anew; the old one's batches are never asked for.
            *producer = Producer { epoch: batch.producer_epoch, ..Producer::default() };
        }
        if producer.batches.len() == BATCHES_KEPT {
            producer.batches.pop_front();
        }
        producer.batches.push_back(ProducerBatch {
            base_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
            base_offset: batch.base_offset,
            last_offset: batch.last_offset(),
            max_timestamp: batch.max_timestamp,
        });
    }
}
