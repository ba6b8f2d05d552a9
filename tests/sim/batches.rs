//! Batches as clients make them. What they hold says who sent them.

use crate::world::Sent;
use bytes::{BufMut, Bytes, BytesMut};
use kelp::record::batch::{Batch, HEADER_BYTES, Header, LENGTH_OFFSET, MAGIC};

const CRC_AT: usize = 17;
const CHECKED_FROM: usize = 21;

pub fn batch(sent: Sent) -> Batch {
    // Longer and shorter ones, so that commits, segments and reads are cut at many places.
    let records = 10 + (sent.base_sequence as usize * 37) % 120;
    let mut bytes = BytesMut::new();
    bytes.put_i64(0);
    bytes.put_i32((HEADER_BYTES + records - LENGTH_OFFSET) as i32);
    bytes.put_i32(-1);
    bytes.put_i8(MAGIC);
    bytes.put_u32(0);
    bytes.put_i16(0);
    bytes.put_i32(sent.records - 1);
    bytes.put_i64(0);
    bytes.put_i64(i64::from(sent.base_sequence));
    bytes.put_i64(sent.producer_id);
    bytes.put_i16(0);
    bytes.put_i32(sent.base_sequence);
    bytes.put_i32(sent.records);
    bytes.put_bytes(sent.producer_id as u8, records);
    let crc = crc32c::crc32c(&bytes[CHECKED_FROM..]);
    bytes[CRC_AT..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
    Batch::split_off(&mut bytes.freeze()).expect("a whole batch")
}

/// What was read, taken apart: each batch with its offset.
pub fn read(slices: &[Bytes]) -> Result<Vec<(i64, Sent)>, String> {
    let mut bytes = Bytes::from(slices.concat());
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let batch = Batch::split_off(&mut bytes).ok_or("half a batch was read")?;
        batches.push((batch.header.base_offset, sent(&batch.header)));
    }
    Ok(batches)
}

fn sent(header: &Header) -> Sent {
    let (producer_id, base_sequence) = (header.producer_id, header.base_sequence);
    Sent { producer_id, base_sequence, records: header.record_count }
}
