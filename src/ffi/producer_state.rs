//! What is known of a partition's idempotent producers up to an offset, and its snapshot.
//!
//! A host keeps snapshots among its coordinator records; what came after one is read from the
//! log. A snapshot that cannot be read is not an error: the log has it all.
//!
//! ```text
//! version u8 = 1 │ next offset i64 │ producers u32 │ crc32c u32, of all but itself, at the end
//!   for each: id i64 │ epoch i16 │ batches u8 │ for each: 2 × sequence i32, 2 × offset i64, timestamp i64
//! ```

use crate::record::batch::Header;
use crate::store::PartitionId;
use crate::store::producers::{BATCHES_KEPT, Producer, ProducerBatch, Producers};
use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: u8 = 1;

/// So much of the log is read at most when a partition is opened after a crash.
const SNAPSHOT_EVERY_BYTES: u64 = 32 << 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProducerState {
    pub(super) producers: Producers,
    /// The offset behind the last batch that is in it.
    pub(super) next_offset: i64,
    bytes_since_snapshot: u64,
}

impl ProducerState {
    /// Of a log that begins at `offset`.
    pub(super) fn at(offset: i64) -> Self {
        Self { next_offset: offset, ..Self::default() }
    }

    pub(super) fn apply(&mut self, batch: &Header) {
        self.producers.apply(batch);
        self.next_offset = batch.next_offset();
        self.bytes_since_snapshot += u64::try_from(batch.batch_length).unwrap_or(0);
    }

    /// Whether a snapshot would say more than the one before.
    pub(super) fn is_newer_than_snapshot(&self) -> bool {
        self.bytes_since_snapshot > 0
    }

    /// A copy to take a snapshot of, when so much was appended that it is worth it.
    pub(super) fn take_snapshot_due(&mut self) -> Option<Self> {
        if self.bytes_since_snapshot < SNAPSHOT_EVERY_BYTES {
            return None;
        }
        self.bytes_since_snapshot = 0;
        Some(self.clone())
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u8(VERSION);
        bytes.put_i64(self.next_offset);
        bytes.put_u32(u32::try_from(self.producers.len()).unwrap_or(u32::MAX));
        for (id, producer) in self.producers.iter() {
            bytes.put_i64(id);
            bytes.put_i16(producer.epoch);
            bytes.put_u8(u8::try_from(producer.batches.len()).unwrap_or(u8::MAX));
            for batch in &producer.batches {
                bytes.put_i32(batch.base_sequence);
                bytes.put_i32(batch.last_sequence);
                bytes.put_i64(batch.base_offset);
                bytes.put_i64(batch.last_offset);
                bytes.put_i64(batch.max_timestamp);
            }
        }
        bytes.put_u32(crc32c::crc32c(&bytes));
        bytes.freeze()
    }

    /// `None` if it is not whole or of another version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (mut body, mut crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if crc.get_u32() != crc32c::crc32c(body) || body.try_get_u8().ok()? != VERSION {
            return None;
        }
        let mut state = Self::at(body.try_get_i64().ok()?);
        for _ in 0..body.try_get_u32().ok()? {
            let id = body.try_get_i64().ok()?;
            state.producers.insert(id, producer(&mut body)?);
        }
        Some(state)
    }
}

fn producer(body: &mut &[u8]) -> Option<Producer> {
    let mut producer = Producer { epoch: body.try_get_i16().ok()?, ..Producer::default() };
    let count = usize::from(body.try_get_u8().ok()?);
    if count > BATCHES_KEPT {
        return None;
    }
    for _ in 0..count {
        producer.batches.push_back(ProducerBatch {
            base_sequence: body.try_get_i32().ok()?,
            last_sequence: body.try_get_i32().ok()?,
            base_offset: body.try_get_i64().ok()?,
            last_offset: body.try_get_i64().ok()?,
            max_timestamp: body.try_get_i64().ok()?,
        });
    }
    Some(producer)
}

/// The key of a partition's snapshot.
pub(super) fn key(partition: PartitionId) -> Bytes {
    let mut key = BytesMut::with_capacity(20);
    key.put_slice(&partition.topic.0);
    key.put_i32(partition.partition);
    key.freeze()
}

pub(super) fn partition_of(mut key: &[u8]) -> Option<PartitionId> {
    let mut topic = [0; 16];
    key.try_copy_to_slice(&mut topic).ok()?;
    let partition = key.try_get_i32().ok()?;
    key.is_empty().then_some(PartitionId { topic: crate::protocol::wire::Uuid(topic), partition })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{parsed, producer_batch};
    use super::*;
    use crate::protocol::wire::Uuid;

    fn state(batches: i32) -> ProducerState {
        let mut state = ProducerState::at(100);
        for n in 0..batches {
            let offset = 100 + i64::from(n);
            let batch = producer_batch(offset, b"value", i64::from(n % 3), 1, n / 3);
            state.apply(&parsed(batch).header);
        }
        state
    }

    #[test]
    fn a_snapshot_reads_back_as_it_was() {
        for batches in [0, 1, 7, 100] {
            let state = state(batches);
            let read = ProducerState::from_bytes(&state.to_bytes()).unwrap();
            assert_eq!((&read.producers, read.next_offset), (&state.producers, state.next_offset));
        }
    }

    #[test]
    fn a_snapshot_that_is_cut_or_changed_is_none() {
        let bytes = state(7).to_bytes();
        for len in 0..bytes.len() {
            assert_eq!(ProducerState::from_bytes(&bytes[..len]), None);
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert_eq!(ProducerState::from_bytes(&changed), None);
        }
    }

    #[test]
    fn a_snapshot_is_due_after_so_many_bytes() {
        let mut state = ProducerState::default();
        assert!(!state.is_newer_than_snapshot());
        let mut header = parsed(producer_batch(0, b"value", 1, 1, 0)).header;
        header.batch_length = (SNAPSHOT_EVERY_BYTES / 2) as i32;
        state.apply(&header);
        assert_eq!(state.take_snapshot_due(), None);
        assert!(state.is_newer_than_snapshot());
        state.apply(&header);
        assert!(state.take_snapshot_due().is_some());
        assert!(!state.is_newer_than_snapshot());
    }

    #[test]
    fn a_key_names_its_partition() {
        let id = PartitionId { topic: Uuid::random(), partition: 7 };
        assert_eq!(partition_of(&key(id)), Some(id));
        assert_eq!(partition_of(&key(id)[1..]), None);
        assert_eq!(partition_of(b""), None);
    }
}
