//! Batches for tests, written as a producer writes them.

use super::batch::{Batch, HEADER_BYTES};
use bytes::{BufMut, Bytes, BytesMut};

/// A batch to be encoded; what a test does not set is as an honest producer has it.
#[derive(Clone, Debug)]
pub struct Draft {
    pub base_offset: i64,
    pub attributes: i16,
    pub base_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub records: Vec<DraftRecord>,
    /// What the header says instead of the truth.
    pub record_count: Option<i32>,
    pub last_offset_delta: Option<i32>,
    pub max_timestamp: Option<i64>,
    /// The bytes behind the header instead of the records.
    pub payload: Option<Vec<u8>>,
}

#[derive(Clone, Debug, Default)]
pub struct DraftRecord {
    pub timestamp_delta: i64,
    pub key: Option<&'static [u8]>,
    pub value: Option<Vec<u8>>,
}

impl Draft {
    /// A batch with a record for each value, all of the same time.
    pub fn of(values: &[&str]) -> Self {
        let record = |value: &&str| DraftRecord { value: Some((*value).into()), ..<_>::default() };
        Self {
            base_offset: 0,
            attributes: 0,
            base_timestamp: 1_700_000_000_000,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records: values.iter().map(record).collect(),
            record_count: None,
            last_offset_delta: None,
            max_timestamp: None,
            payload: None,
        }
    }

    /// A batch with a record for each timestamp.
    pub fn at(timestamps: &[i64]) -> Self {
        let base_timestamp = timestamps[0];
        let record = |timestamp: &i64| DraftRecord {
            timestamp_delta: timestamp - base_timestamp,
            ..DraftRecord::default()
        };
        let records = timestamps.iter().map(record).collect();
        Self { base_timestamp, records, ..Self::of(&[]) }
    }

    pub fn from_producer(mut self, id: i64, epoch: i16, sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (id, epoch, sequence);
        self
    }

    pub fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for (offset_delta, record) in self.records.iter().enumerate() {
            payload.extend(record.encode(offset_delta as i64));
        }
        payload
    }

    pub fn encode(&self) -> Bytes {
        let payload = self.payload.clone().unwrap_or_else(|| self.payload());
        let count = self.records.len() as i32;
        let latest = self.records.iter().map(|r| self.base_timestamp + r.timestamp_delta).max();
        let mut checked = BytesMut::with_capacity(HEADER_BYTES + payload.len());
        checked.put_i16(self.attributes);
        checked.put_i32(self.last_offset_delta.unwrap_or(count - 1));
        checked.put_i64(self.base_timestamp);
        checked.put_i64(self.max_timestamp.or(latest).unwrap_or(self.base_timestamp));
        checked.put_i64(self.producer_id);
        checked.put_i16(self.producer_epoch);
        checked.put_i32(self.base_sequence);
        checked.put_i32(self.record_count.unwrap_or(count));
        checked.put_slice(&payload);
        let mut bytes = BytesMut::new();
        bytes.put_i64(self.base_offset);
        bytes.put_i32(9 + checked.len() as i32);
        bytes.put_i32(-1);
        bytes.put_i8(2);
        bytes.put_u32(crc32c::crc32c(&checked));
        bytes.put_slice(&checked);
        bytes.freeze()
    }

    pub fn batch(&self) -> Batch {
        let Some(batch) = Batch::split_off(&mut self.encode()) else { panic!("a whole batch") };
        batch
    }
}

impl DraftRecord {
    fn encode(&self, offset_delta: i64) -> Vec<u8> {
        let mut body = vec![0];
        put_varint(&mut body, self.timestamp_delta);
        put_varint(&mut body, offset_delta);
        for field in [self.key, self.value.as_deref()] {
            put_varint(&mut body, field.map_or(-1, |bytes| bytes.len() as i64));
            body.extend_from_slice(field.unwrap_or_default());
        }
        put_varint(&mut body, 0);
        let mut record = Vec::new();
        put_varint(&mut record, body.len() as i64);
        record.extend(body);
        record
    }
}

pub fn put_varint(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}
