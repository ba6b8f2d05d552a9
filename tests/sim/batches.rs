//! Batches as clients make them. What a record holds follows from who sent it.

use crate::world::{Record, Sent};
use bytes::Bytes;
use kelp::record::batch::{Batch, Batches, Header};
use kelp::record::builder::{Builder, Fields};
use kelp::record::codec::Codec;
use kelp::record::records;
use kelp::record::unpacked::Unpacked;

pub fn batch(sent: Sent) -> Batch {
    let codec = if sent.base_sequence % 5 == 0 { Codec::Lz4 } else { Codec::None };
    let mut builder = Builder::new(Fields {
        compression: codec.into(),
        producer_id: sent.producer_id,
        producer_epoch: 0,
        base_sequence: sent.base_sequence,
        ..Fields::default()
    });
    for (offset, record) in (0..).zip(sent.all()) {
        let (key, value) = ([record.key()], value(record));
        let timestamp = record.timestamp();
        let (key, value) = (Some(&key[..]), value.as_deref());
        let record = records::Record { offset, timestamp, key, value, ..Default::default() };
        builder.append(&record).expect("a batch has room");
    }
    builder.finish().expect("a batch has a record")
}

/// Longer and shorter ones, so that commits, segments and reads are cut at many places.
fn value(record: Record) -> Option<Vec<u8>> {
    let bytes = 10 + (record.sequence as usize * 37) % 120;
    record.has_value().then(|| vec![record.producer_id as u8; bytes])
}

/// One batch that was read: its offsets, and the records that it has.
#[derive(Clone, Debug)]
pub struct Read {
    pub base_offset: i64,
    pub end_offset: i64,
    pub records: Vec<(i64, Record)>,
}

/// What was read, taken apart.
pub fn read(slices: &[Bytes]) -> Result<Vec<Read>, String> {
    let mut batches = Batches::new(slices.to_vec());
    let mut all = Vec::new();
    for batch in batches.by_ref() {
        all.push(take_apart(&batch)?);
    }
    if batches.is_cut() { Err("half a batch was read".into()) } else { Ok(all) }
}

pub fn take_apart(batch: &Batch) -> Result<Read, String> {
    let header = &batch.header;
    if batch.checksum() != header.crc {
        return Err(format!("the checksum of the batch at {} is wrong", header.base_offset));
    }
    let unpacked = Unpacked::new(batch).map_err(|error| format!("{error}"))?;
    let records =
        unpacked.iter().map(|record| checked(header, &record.map_err(|e| e.to_string())?));
    let records = records.collect::<Result<Vec<_>, String>>()?;
    Ok(Read { base_offset: header.base_offset, end_offset: header.next_offset(), records })
}

/// Who sent a record, which must be as it was sent.
fn checked(header: &Header, read: &records::Record<'_>) -> Result<(i64, Record), String> {
    let delta = (read.offset - header.base_offset) as i32;
    let sequence = header.base_sequence + delta;
    let record = Record { producer_id: header.producer_id, sequence };
    let is_same = read.key == Some(&[record.key()][..])
        && read.value == value(record).as_deref()
        && read.timestamp == record.timestamp();
    if !is_same {
        return Err(format!("{record:?} at {} is not as it was sent", read.offset));
    }
    Ok((read.offset, record))
}
