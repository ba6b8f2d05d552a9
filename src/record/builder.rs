//! Making record batches: from records, or from a batch by another codec.
//!
//! Source: `MemoryRecordsBuilder` and `DefaultRecordBatch.writeHeader` of Apache Kafka 4.4,
//! KIP-32 (LogAppendTime), KIP-98 (producer fields), KIP-534 (delete horizon).

use super::batch::{
    Batch, CODEC, CONTROL, DELETE_HORIZON, HEADER_BYTES, Header, LOG_APPEND_TIME, MAGIC,
    NO_PRODUCER_ID, TRANSACTIONAL,
};
use super::codec::{Codec, MAX_DECOMPRESSED_BYTES, Stream};
use super::compress::{Compression, Compressor};
use super::records::{Headers, Malformed, Record};
use bytes::Bytes;

/// The largest batch whose length can be written.
pub const MAX_BATCH_BYTES: usize = i32::MAX as usize;

/// What a batch says of itself besides its records. The defaults are those of a producer that is
/// not idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    pub base_offset: i64,
    /// The batch reaches at least so far behind its base offset, also if its last record does not:
    /// compaction keeps the offsets of what it takes away.
    pub least_last_offset_delta: i32,
    pub leader_epoch: i32,
    pub compression: Compression,
    /// KIP-32: the time of all records, instead of their own.
    pub log_append_time: Option<i64>,
    /// KIP-534: when tombstones and markers of the batch may go.
    pub delete_horizon_ms: Option<i64>,
    pub is_transactional: bool,
    pub is_control: bool,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    /// The batch takes no record with which it would be longer than this. Counted before
    /// compression.
    pub max_bytes: usize,
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            base_offset: 0,
            least_last_offset_delta: 0,
            leader_epoch: -1,
            compression: Compression::NONE,
            log_append_time: None,
            delete_horizon_ms: None,
            is_transactional: false,
            is_control: false,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: -1,
            base_sequence: -1,
            max_bytes: MAX_BATCH_BYTES,
        }
    }
}

impl Fields {
    fn attributes(&self) -> i16 {
        let bit = |bit: i16, is_set: bool| if is_set { bit } else { 0 };
        self.compression.codec() as i16
            | bit(LOG_APPEND_TIME, self.log_append_time.is_some())
            | bit(TRANSACTIONAL, self.is_transactional)
            | bit(CONTROL, self.is_control)
            | bit(DELETE_HORIZON, self.delete_horizon_ms.is_some())
    }
}

/// Why a batch cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing was changed: the record may be the first of another batch.
    #[error("the batch would be longer than it may be")]
    Full,
    /// Nothing was changed.
    #[error("the offset of a record is not above the one before, or too far from the first")]
    BadOffset,
    #[error("the batch has no record")]
    Empty,
    #[error("the records to compress cannot be read: {0}")]
    Malformed(#[from] Malformed),
    #[error("the codec failed: {0}")]
    Codec(#[from] std::io::Error),
}

/// Makes a batch of records that come in the order of their offsets.
pub struct Builder {
    fields: Fields,
    to: Compressor,
    /// Header and records, before compression.
    bytes: usize,
    record_count: i32,
    last_offset_delta: i32,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
}

impl Builder {
    pub fn new(fields: Fields) -> Self {
        Self::with_capacity(fields, 0)
    }

    /// With memory for so many bytes of records, for who knows about how many will come.
    pub fn with_capacity(fields: Fields, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(HEADER_BYTES + bytes);
        out.resize(HEADER_BYTES, 0);
        Self {
            to: Compressor::new(fields.compression, out),
            bytes: HEADER_BYTES,
            record_count: 0,
            last_offset_delta: -1,
            // KIP-534: the deltas are then to the horizon.
            base_timestamp: fields.delete_horizon_ms,
            max_timestamp: -1,
            fields,
        }
    }

    /// Adds a record. Its bytes are copied into the batch or given to the codec.
    pub fn append(&mut self, record: &Record<'_>) -> Result<(), BuildError> {
        let offset_delta = record.offset.checked_sub(self.fields.base_offset);
        let offset_delta = offset_delta.and_then(|delta| i32::try_from(delta).ok());
        let last = self.last_offset_delta;
        let offset_delta = offset_delta.filter(|d| *d > last).ok_or(BuildError::BadOffset)?;
        let base_timestamp = self.base_timestamp.unwrap_or(record.timestamp);
        let timestamp_delta = record.timestamp.wrapping_sub(base_timestamp);

        let body = body_bytes(record, timestamp_delta, offset_delta);
        let bytes = self.bytes.saturating_add(varint_bytes(body as i64)).saturating_add(body);
        if bytes > self.fields.max_bytes.min(MAX_BATCH_BYTES) {
            return Err(BuildError::Full);
        }
        write_record(&mut self.to, record, body, timestamp_delta, offset_delta)?;
        self.bytes = bytes;
        self.record_count += 1;
        self.last_offset_delta = offset_delta;
        self.base_timestamp = Some(base_timestamp);
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        Ok(())
    }

    /// Bytes of the batch, before compression.
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// The batch, if it has a record.
    pub fn finish(self) -> Result<Batch, BuildError> {
        Ok(whole(self.finish_bytes()?))
    }

    /// The same as the bytes that are stored, in one piece.
    pub fn finish_bytes(self) -> Result<Bytes, BuildError> {
        let fields = &self.fields;
        let base_timestamp = self.base_timestamp.filter(|_| !self.is_empty());
        let base_timestamp = base_timestamp.ok_or(BuildError::Empty)?;
        let header = Header {
            base_offset: fields.base_offset,
            batch_length: 0,
            leader_epoch: fields.leader_epoch,
            magic: MAGIC,
            crc: 0,
            attributes: fields.attributes(),
            last_offset_delta: self.last_offset_delta.max(fields.least_last_offset_delta),
            base_timestamp,
            max_timestamp: fields.log_append_time.unwrap_or(self.max_timestamp),
            producer_id: fields.producer_id,
            producer_epoch: fields.producer_epoch,
            base_sequence: fields.base_sequence,
            record_count: self.record_count,
        };
        Batch::seal(header, self.to.finish()?).ok_or(BuildError::Full)
    }
}

/// The same batch by another codec: all fields of its header stay but length, codec and checksum,
/// and the records are compressed anew as they are. Their own checks are not done again.
pub fn recompress(batch: &Batch, compression: Compression) -> Result<Batch, BuildError> {
    let mut header = batch.header;
    let codec = Codec::from_attributes(header.attributes);
    let codec = codec.filter(|_| header.magic == MAGIC).ok_or(Malformed::Unknown)?;
    header.attributes = header.attributes & !CODEC | compression.codec() as i16;

    let records = batch.records();
    let mut to = Compressor::new(compression, vec![0; HEADER_BYTES]);
    if codec == Codec::None {
        to.write(&records)?;
    } else {
        // What it comes to must have a length.
        let limit = MAX_DECOMPRESSED_BYTES.min((MAX_BATCH_BYTES - HEADER_BYTES) as u64);
        let mut stream = Stream::with_limit(codec, &records, limit)?;
        loop {
            let chunk = stream.chunk()?;
            if chunk.is_empty() {
                break;
            }
            to.write(chunk)?;
        }
    }
    Batch::seal(header, to.finish()?).map(whole).ok_or(BuildError::Full)
}

pub(super) fn whole(mut bytes: Bytes) -> Batch {
    let Some(batch) = Batch::split_off(&mut bytes) else { unreachable!("a sealed batch is whole") };
    batch
}

/// Bytes of a record behind its length.
fn body_bytes(record: &Record<'_>, timestamp_delta: i64, offset_delta: i32) -> usize {
    let attributes = 1;
    let deltas = varint_bytes(timestamp_delta) + varint_bytes(offset_delta.into());
    let fields = nullable_bytes(record.key).saturating_add(nullable_bytes(record.value));
    let headers = headers_bytes(&record.headers);
    fields.saturating_add(headers).saturating_add(attributes + deltas)
}

fn headers_bytes(headers: &Headers<'_>) -> usize {
    let count = varint_bytes(headers.len() as i64);
    let bytes = match headers.encoded() {
        Some(encoded) => encoded.len(),
        None => headers.clone().fold(0, |bytes: usize, (key, value)| {
            bytes.saturating_add(nullable_bytes(Some(key))).saturating_add(nullable_bytes(value))
        }),
    };
    bytes.saturating_add(count)
}

fn nullable_bytes(field: Option<&[u8]>) -> usize {
    field.map_or(1, |bytes| bytes.len().saturating_add(varint_bytes(bytes.len() as i64)))
}

fn write_record(
    to: &mut Compressor,
    record: &Record<'_>,
    body: usize,
    timestamp_delta: i64,
    offset_delta: i32,
) -> std::io::Result<()> {
    write_varint(to, body as i64)?;
    to.write(&[0])?;
    write_varint(to, timestamp_delta)?;
    write_varint(to, offset_delta.into())?;
    write_nullable(to, record.key)?;
    write_nullable(to, record.value)?;
    write_varint(to, record.headers.len() as i64)?;
    if let Some(encoded) = record.headers.encoded() {
        return to.write(encoded);
    }
    for (key, value) in record.headers.clone() {
        write_nullable(to, Some(key))?;
        write_nullable(to, value)?;
    }
    Ok(())
}

fn write_nullable(to: &mut Compressor, field: Option<&[u8]>) -> std::io::Result<()> {
    let Some(bytes) = field else { return write_varint(to, -1) };
    write_varint(to, bytes.len() as i64)?;
    to.write(bytes)
}

/// Small numbers of either sign are short.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn varint_bytes(value: i64) -> usize {
    let bits = u64::BITS - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn write_varint(to: &mut Compressor, value: i64) -> std::io::Result<()> {
    let (mut rest, mut bytes, mut len) = (zigzag(value), [0; 10], 0);
    while rest >= 0x80 {
        bytes[len] = rest as u8 | 0x80;
        (rest, len) = (rest >> 7, len + 1);
    }
    bytes[len] = rest as u8;
    to.write(&bytes[..=len])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::records::control::EndTransactionMarker;
    use crate::protocol::wire::{Wire, Writer};
    use crate::record::testing::{Draft, FROM_KAFKA, from_kafka};
    use crate::record::unpacked::Unpacked;
    use crate::record::validate::{Rules, TopicPartition, check, only_batch};

    const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 3 };

    /// The records of a batch, put together by another builder.
    fn rebuilt(batch: &Batch, fields: Fields) -> Batch {
        let mut builder = Builder::new(fields);
        for record in &Unpacked::new(batch).unwrap() {
            builder.append(&record.unwrap()).unwrap();
        }
        builder.finish().unwrap()
    }

    /// All that is in two batches besides how it is compressed.
    fn assert_same(a: &Batch, b: &Batch) {
        let plain = |header: Header| Header {
            attributes: header.attributes & !CODEC,
            crc: 0,
            batch_length: 0,
            ..header
        };
        assert_eq!(plain(a.header), plain(b.header));
        let (a, b) = (Unpacked::new(a).unwrap(), Unpacked::new(b).unwrap());
        assert_eq!(a.bytes(), b.bytes());
    }

    fn value(offset: i64, value: &[u8]) -> Record<'_> {
        Record { offset, value: Some(value), ..Record::default() }
    }

    /// A batch of the records at these offsets.
    fn batch_of(fields: Fields, offsets: &[i64]) -> Result<Batch, BuildError> {
        let mut builder = Builder::new(fields);
        for offset in offsets {
            builder.append(&value(*offset, b"v"))?;
        }
        builder.finish()
    }

    #[test]
    fn the_records_of_kafkas_producer_make_the_batch_that_it_sent() {
        for (codec, _) in FROM_KAFKA {
            let kafkas = from_kafka(codec);
            let (leader_epoch, compression) = (kafkas.header.leader_epoch, codec.into());
            let Header { producer_id, producer_epoch, base_sequence, .. } = kafkas.header;
            let producer = Fields { producer_id, producer_epoch, base_sequence, ..<_>::default() };
            let ours = rebuilt(&kafkas, Fields { leader_epoch, compression, ..producer });
            assert_same(&ours, &kafkas);
            if codec == Codec::None {
                assert_eq!(ours.to_bytes(), kafkas.to_bytes());
            }
            let mut ours = only_batch(ours.to_bytes(), 12).unwrap();
            assert_eq!(check(&mut ours, &Rules::default(), PARTITION, 1_800_000_000_000), Ok(()));
        }
    }

    #[test]
    fn headers_are_written_from_a_batch_and_from_a_list_alike() {
        let batch = from_kafka(Codec::None);
        let Header { producer_id, producer_epoch, base_sequence, leader_epoch, .. } = batch.header;
        let mut builder = Builder::new(Fields {
            producer_id,
            producer_epoch,
            base_sequence,
            leader_epoch,
            ..Fields::default()
        });
        for record in &Unpacked::new(&batch).unwrap() {
            let record = record.unwrap();
            let headers: Vec<_> = record.headers.clone().collect();
            builder.append(&Record { headers: Headers::new(&headers), ..record }).unwrap();
        }
        assert_eq!(builder.finish().unwrap().to_bytes(), batch.to_bytes());
    }

    #[test]
    fn every_field_of_the_header_is_what_was_set() {
        let fields = Fields {
            base_offset: 100,
            least_last_offset_delta: 9,
            leader_epoch: 4,
            compression: Codec::Zstd.into(),
            log_append_time: Some(999),
            delete_horizon_ms: Some(50),
            is_transactional: true,
            is_control: true,
            producer_id: 7,
            producer_epoch: 8,
            base_sequence: 9,
            max_bytes: 1000,
        };
        let batch = batch_of(fields, &[101, 105]).unwrap();
        assert_eq!(
            batch.header,
            Header {
                base_offset: 100,
                leader_epoch: 4,
                magic: 2,
                // `DefaultRecordBatch` of Kafka: horizon 0x40, control, transactional, time, codec.
                attributes: 0x40 | 0x20 | 0x10 | 0x08 | 4,
                last_offset_delta: 9,
                base_timestamp: 50,
                max_timestamp: 999,
                producer_id: 7,
                producer_epoch: 8,
                base_sequence: 9,
                record_count: 2,
                crc: batch.checksum(),
                batch_length: batch.len() as i32 - 12,
            }
        );
        let bytes = batch.to_bytes();
        assert_eq!(Header::read(&bytes), Some(batch.header));
        let records = Unpacked::new(&batch).unwrap();
        let read: Vec<_> =
            records.iter().map(|r| r.unwrap()).map(|r| (r.offset, r.timestamp)).collect();
        assert_eq!(read, [(101, 999), (105, 999)]);
    }

    #[test]
    fn a_delete_horizon_leaves_the_times_of_records_as_they_are() {
        // As Kafka's cleaner does: the horizon takes the place of the first record's time.
        let mut builder =
            Builder::new(Fields { delete_horizon_ms: Some(5_000), ..Fields::default() });
        for (offset, timestamp) in [(0, 1_000), (1, 9_000), (2, 2_000)] {
            builder.append(&Record { offset, timestamp, ..Record::default() }).unwrap();
        }
        let batch = builder.finish().unwrap();
        assert_eq!(batch.header.delete_horizon_ms(), Some(5_000));
        assert_eq!((batch.header.base_timestamp, batch.header.max_timestamp), (5_000, 9_000));
        let records = Unpacked::new(&batch).unwrap();
        let times: Vec<_> = records.iter().map(|record| record.unwrap().timestamp).collect();
        assert_eq!(times, [1_000, 9_000, 2_000]);
        assert_eq!(batch_of(Fields::default(), &[0]).unwrap().header.delete_horizon_ms(), None);
    }

    #[test]
    fn a_marker_of_a_transaction_is_what_kafka_writes() {
        let fields = Fields {
            base_offset: 3,
            leader_epoch: 0,
            is_transactional: true,
            is_control: true,
            producer_id: 2000,
            producer_epoch: 0,
            ..Fields::default()
        };
        let mut marker = Writer::new(0, false);
        EndTransactionMarker { coordinator_epoch: 0 }.write(&mut marker);
        let marker = [&[0, 0][..], &marker.finish().concat()].concat();
        let record = Record {
            offset: 3,
            timestamp: 1_700_000_000_000,
            key: Some(&[0, 0, 0, 1]),
            value: Some(&marker),
            ..Record::default()
        };
        let mut builder = Builder::new(fields);
        builder.append(&record).unwrap();
        let batch = builder.finish().unwrap();
        assert!(batch.header.is_control() && batch.header.is_transactional());
        // Behind the header: length, attributes, deltas, key, value of version and epoch, headers.
        let expected = [32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(batch.records()[..], expected);
    }

    #[test]
    fn what_was_built_is_what_is_walked() {
        let mut state = 1_u64;
        let mut next = |below: usize| {
            // Xorshift: the same records in each run.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize % below
        };
        let bytes: Vec<u8> = (0..100_000).map(|_| next(7) as u8 * 30).collect();
        let times = [0, -1, 1_700_000_000_000, i64::MAX, i64::MIN, 5];
        for round in 0..200 {
            let mut some = |nullable: bool| {
                let most =
                    [3, 200, 70_000][usize::from(round % 20 == 0) + usize::from(round % 3 == 0)];
                let (at, len) = (next(20_000), next(most));
                let is_null = nullable && next(3) == 0;
                (!is_null).then_some(&bytes[at..at + len])
            };
            let fields: Vec<_> = (0..20)
                .map(|_| {
                    let headers: Vec<_> =
                        (0..round % 4).map(|_| (some(false).unwrap(), some(true))).collect();
                    (some(true), some(true), headers)
                })
                .collect();
            let mut offset = i64::MAX / 2;
            let mut record = |(key, value, headers): &'_ (_, _, Vec<_>)| {
                offset += 1 + next(3) as i64 * 100;
                let timestamp = times[next(times.len())];
                (offset, timestamp, *key, *value, headers.clone())
            };
            let records: Vec<_> = fields.iter().map(&mut record).collect();
            let records = records.iter().map(|(offset, timestamp, key, value, headers)| Record {
                offset: *offset,
                timestamp: *timestamp,
                key: *key,
                value: *value,
                headers: Headers::new(headers),
            });
            let compression = FROM_KAFKA[round % 5].0.into();
            let mut builder = Builder::new(Fields {
                base_offset: i64::MAX / 2,
                compression,
                ..Fields::default()
            });
            records.clone().for_each(|record| builder.append(&record).unwrap());
            let (len, batch) = (builder.len(), builder.finish().unwrap());
            assert_eq!(batch.checksum(), batch.header.crc);
            let unpacked = Unpacked::new(&batch).unwrap();
            assert_eq!(unpacked.bytes().len() + HEADER_BYTES, len);
            assert!(unpacked.iter().map(Result::unwrap).eq(records));
        }
    }

    #[test]
    fn offsets_go_up_and_are_not_too_far_from_the_base() {
        let base = |base_offset| Fields { base_offset, ..Fields::default() };
        let is_good = |fields, offsets: &[i64]| batch_of(fields, offsets).is_ok();
        assert!(is_good(base(10), &[10, 11]) && is_good(base(10), &[15, 99]));
        assert!(is_good(base(0), &[0, i32::MAX.into()]));
        for (fields, offsets) in [
            (base(10), &[9][..]),
            (base(10), &[10, 10]),
            (base(10), &[12, 11]),
            (base(0), &[1 << 31]),
            (base(i64::MIN), &[i64::MAX]),
        ] {
            assert!(matches!(batch_of(fields, offsets), Err(BuildError::BadOffset)), "{offsets:?}");
        }
        let least_nine = Fields { least_last_offset_delta: 9, ..Fields::default() };
        let last = |offsets: &[i64]| batch_of(least_nine, offsets).unwrap().header.last_offset();
        assert_eq!((last(&[5]), last(&[5, 20])), (9, 20));
        for fields in [Fields::default(), least_nine] {
            assert!(matches!(batch_of(fields, &[]), Err(BuildError::Empty)));
        }
    }

    #[test]
    fn a_record_that_does_not_fit_changes_nothing() {
        for codec in [Codec::None, Codec::Gzip] {
            let fields = Fields { compression: codec.into(), ..Fields::default() };
            let two = batch_of(fields, &[0, 1]).unwrap();
            let max_bytes = HEADER_BYTES + 2 * 8;
            let limited = |max_bytes| Fields { max_bytes, ..fields };
            let mut builder = Builder::new(limited(max_bytes));
            builder.append(&value(0, b"v")).unwrap();
            let too_long = value(1, b"vv");
            assert!(matches!(builder.append(&too_long), Err(BuildError::Full)));
            builder.append(&value(1, b"v")).unwrap();
            assert_eq!(builder.len(), max_bytes);
            assert!(matches!(builder.append(&value(2, b"")), Err(BuildError::Full)));
            assert_eq!(builder.finish().unwrap().to_bytes(), two.to_bytes());
            let one_less = batch_of(limited(max_bytes - 1), &[0, 1]);
            assert!(matches!(one_less, Err(BuildError::Full)));
        }
    }

    #[test]
    fn another_codec_keeps_all_but_itself() {
        let fields = Fields {
            base_offset: 100,
            least_last_offset_delta: 20,
            leader_epoch: 4,
            delete_horizon_ms: Some(50),
            is_transactional: true,
            producer_id: 7,
            producer_epoch: 8,
            base_sequence: 9,
            ..Fields::default()
        };
        let stored = batch_of(fields, &[100, 110]).unwrap();
        let sources = FROM_KAFKA.iter().map(|(codec, _)| from_kafka(*codec)).chain([stored]);
        for source in sources {
            for (codec, _) in FROM_KAFKA {
                let other = recompress(&source, codec.into()).unwrap();
                assert_eq!(other.header.attributes & CODEC, codec as i16);
                assert_eq!(other.header.attributes & !CODEC, source.header.attributes & !CODEC);
                assert_eq!(other.checksum(), other.header.crc);
                assert_same(&other, &source);
                let again = recompress(&other, Compression::NONE).unwrap();
                assert_same(&again, &source);
            }
        }
    }

    #[test]
    fn a_stamp_is_kept_by_another_codec() {
        let mut batch = from_kafka(Codec::Lz4);
        batch.stamp(1000, 5);
        let other = recompress(&batch, Codec::Zstd.into()).unwrap();
        assert_eq!((other.header.base_offset, other.header.leader_epoch), (1000, 5));
        assert_same(&other, &batch);
    }

    #[test]
    fn what_cannot_be_read_is_not_compressed() {
        let garbage = Draft { attributes: 1, payload: Some(vec![7; 50]), ..Draft::of(&["a"]) };
        for codec in [Codec::None, Codec::Gzip] {
            let outcome = recompress(&garbage.batch(), codec.into());
            assert!(matches!(outcome, Err(BuildError::Malformed(Malformed::Undecodable))));
        }
        let unknown = Draft { attributes: 5, ..Draft::of(&["a"]) };
        let outcome = recompress(&unknown.batch(), Codec::Gzip.into());
        assert!(matches!(outcome, Err(BuildError::Malformed(Malformed::Unknown))));
    }
}
