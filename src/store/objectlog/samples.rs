//! What the unit tests of this room are written with.

use super::format::{Body, Frame};
use crate::protocol::wire::Uuid;
use crate::record::batch::{Batch, HEADER_BYTES, LENGTH_OFFSET, MAGIC};
use crate::store::PartitionId;
use bytes::{BufMut, Bytes, BytesMut};

pub(super) fn partition(partition: i32) -> PartitionId {
    PartitionId { topic: Uuid([7; 16]), partition }
}

/// Batches of so many records each, from an offset on; the timestamp is the base offset.
pub(super) fn batches(base_offset: i64, counts: &[i32]) -> Vec<Batch> {
    let mut next = base_offset;
    let one = |count: &i32| {
        let batch = batch(next, *count, next);
        next += i64::from(*count);
        batch
    };
    counts.iter().map(one).collect()
}

const RECORDS: &[u8] = b"the records are nobody's business here";

pub(super) fn batch(base_offset: i64, count: i32, timestamp: i64) -> Batch {
    batch_of(base_offset, count, timestamp, RECORDS)
}

/// A batch of one record that is neither copied nor read for a checksum.
pub(super) fn large_batch(base_offset: i64) -> Batch {
    batch_of(base_offset, 1, base_offset, &RECORDS.repeat(1000))
}

fn batch_of(base_offset: i64, count: i32, timestamp: i64, records: &[u8]) -> Batch {
    const CRC_AT: usize = 17;
    const CHECKED_FROM: usize = 21;
    let mut bytes = BytesMut::new();
    bytes.put_i64(0);
    bytes.put_i32((HEADER_BYTES + records.len() - LENGTH_OFFSET) as i32);
    bytes.put_i32(-1);
    bytes.put_i8(MAGIC);
    bytes.put_u32(0);
    bytes.put_i16(0);
    bytes.put_i32(count - 1);
    bytes.put_i64(timestamp);
    bytes.put_i64(timestamp);
    bytes.put_i64(1000);
    bytes.put_i16(0);
    bytes.put_i32(base_offset as i32);
    bytes.put_i32(count);
    bytes.put_slice(records);
    let crc = crc32c::crc32c(&bytes[CHECKED_FROM..]);
    bytes[CRC_AT..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
    let mut batch = Batch::split_off(&mut bytes.freeze()).expect("a whole batch");
    batch.stamp(base_offset, 1);
    batch
}

pub(super) fn frame(leader_epoch: i32, batches: Vec<Batch>) -> Frame {
    let base_offset = batches[0].header.base_offset;
    Frame { partition: partition(0), leader_epoch, body: Body::Batches { base_offset, batches } }
}

pub(super) fn flat(parts: &[Bytes]) -> Bytes {
    parts.concat().into()
}
