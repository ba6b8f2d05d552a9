//! Batches for tests: some as Kafka's own producer wrote them, others made as a test needs them.

use super::batch::{Batch, HEADER_BYTES};
use super::codec::Codec;
use bytes::{BufMut, Bytes, BytesMut};
use std::io::Write;

/// The same three records as Apache Kafka 4.4 stored them from its console producer, in each of
/// its codecs: `k1` with headers `h: 1` and `h: 2`, then `k2: two`, then `k3` with a null value.
pub const FROM_KAFKA: [(Codec, &str); 5] = [
    (
        Codec::None,
        "0000000000000000000000760000000002b1805c78000000000002000001a229a6d401000001a229a6d40f\
         0000000000000035000000000000000000035e000000046b313e6f6e65206f6e65206f6e65206f6e65206f\
         6e65206f6e65206f6e65206f6e6504026802310268023216001c02046b320674776f0010001c04046b3301\
         00",
    ),
    (
        Codec::Gzip,
        "00000000000000000000006f00000000028c44bb02000100000002000001a229a71fd1000001a229a71fe0\
         000000000000003a000000000000000000031f8b08000000000000ff8b63606060c936b4cbcf4b55c08359\
         9832980c81d8488c418e8925db88ada43c9f4180418e8525db989101004833156445000000",
    ),
    (
        Codec::Snappy,
        "0000000000000000000000770000000002a1f92584000200000002000001a229a72693000001a229a72724\
         000000000000003b0000000000000000000382534e4150505900000000010000000100000032472c5e0000\
         00046b313e6f6e65206a04007c0402680231026802321800a20202046b320674776f001200a20204046b33\
         0100",
    ),
    (
        Codec::Lz4,
        "0000000000000000000000720000000002b51b00fc000300000002000001a229a7300e000001a229a73077\
         000000000000003c0000000000000000000304224d1860408232000000cf5e000000046b313e6f6e652004\
         0008f0110402680231026802321800d20102046b320674776f001200d20104046b33010000000000",
    ),
    (
        Codec::Zstd,
        "0000000000000000000000700000000002a2a0f17e000400000002000001a229a737f3000001a229a73881\
         000000000000003d0000000000000000000328b52ffd00589c0100c4025e000000046b313e6f6e65200402\
         6802310268023218009c0202046b320674776f0012009c0204046b3301000100872e09010000",
    ),
];

/// A batch of [`FROM_KAFKA`].
pub fn from_kafka(codec: Codec) -> Batch {
    let text = FROM_KAFKA.iter().find(|(known, _)| *known == codec).unwrap().1;
    Batch::split_off(&mut from_hex(text)).unwrap()
}

pub fn from_hex(text: &str) -> Bytes {
    let digit = |letter: u8| (letter as char).to_digit(16).unwrap() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

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
        Batch::split_off(&mut self.encode()).unwrap()
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
