//! What a batch from a producer must be before it gets its place in a log.
//!
//! The checks, their order and their codes are Apache Kafka 4.4's (`ProduceRequest.validateRecords`,
//! `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`), but for these:
//! - Records whose offset deltas are not 0, 1, 2, … are refused. Kafka stores an uncompressed
//!   batch of that kind as it is, with offsets that come twice or never.
//! - Records that cannot be decompressed are INVALID_RECORD; Kafka says UNKNOWN_SERVER_ERROR.
//! - What a batch decompresses to has a limit. MESSAGE_TOO_LARGE lets a client split it.

use super::batch::{self, Batch, HEADER_BYTES, Header, LENGTH_OFFSET};
use super::codec::{Codec, Stream};
use super::records::{Malformed, Skimmed, Slice, Source, skim};
use crate::protocol::error_code::ErrorCode;
use bytes::Bytes;

/// What a topic's configs ask of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`
    pub max_message_bytes: usize,
    /// `cleanup.policy` has `compact`: every record needs a key.
    pub is_compacted: bool,
    /// `message.timestamp.before.max.ms`
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub timestamp_after_max_ms: i64,
}

/// The defaults of Kafka 4.4.
impl Default for Rules {
    fn default() -> Self {
        Self {
            max_message_bytes: 1024 * 1024 + 12,
            is_compacted: false,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 60 * 60 * 1000,
        }
    }
}

/// Why a batch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    pub code: ErrorCode,
    pub message: &'static str,
    /// The records that are to blame, when it is single ones: their place in the batch, and why.
    pub records: Vec<(i32, &'static str)>,
}

/// How many records are named at most as the reason for a refusal.
const MAX_RECORDS_NAMED: usize = 1000;

/// A record without a timestamp.
const NO_TIMESTAMP: i64 = -1;

/// The first Produce version that may bring zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;

pub(super) fn invalid(code: ErrorCode, message: &'static str) -> Invalid {
    Invalid { code, message, records: Vec::new() }
}

pub(super) fn invalid_record(message: &'static str) -> Invalid {
    invalid(ErrorCode::InvalidRecord, message)
}

/// The one batch that a Produce request has for a partition. Bytes behind it that are no whole
/// batch are dropped, as Kafka does.
pub fn only_batch(mut records: Bytes, api_version: i16) -> Result<Batch, Invalid> {
    let header = whole_batch(&records)?.ok_or(invalid_record("there is no whole batch"))?;
    if header.magic != batch::MAGIC {
        return Err(invalid_record("Produce 4 and later take no message sets"));
    }
    if api_version < FIRST_ZSTD_VERSION
        && Codec::from_attributes(header.attributes) == Some(Codec::Zstd)
    {
        let message = "zstd needs Produce 7 or later";
        return Err(invalid(ErrorCode::UnsupportedCompressionType, message));
    }
    let too_short = invalid(ErrorCode::CorruptMessage, "the batch is shorter than its header");
    let batch = Batch::split_off(&mut records).ok_or(too_short)?;
    if whole_batch(&records)?.is_some() {
        return Err(invalid_record("there is more than one batch"));
    }
    Ok(batch)
}

/// The header of the batch or message at the start of `bytes`, if it is there to its end; fields
/// behind the magic are zero when it is shorter than a batch. As `ByteBufferLogInputStream`.
fn whole_batch(bytes: &[u8]) -> Result<Option<Header>, Invalid> {
    /// The shortest message of magic 0.
    const SHORTEST: i32 = 14;
    const UP_TO_MAGIC: usize = 17;

    let mut start = [0; HEADER_BYTES];
    let len = bytes.len().min(HEADER_BYTES);
    start[..len].copy_from_slice(&bytes[..len]);
    let Some(header) = Header::read(&start) else { unreachable!("a whole header was given") };
    if len < LENGTH_OFFSET {
        return Ok(None);
    }
    if header.batch_length < SHORTEST {
        return Err(invalid(ErrorCode::CorruptMessage, "the length of a batch is too small"));
    }
    if len < UP_TO_MAGIC {
        return Ok(None);
    }
    if !(0..=batch::MAGIC).contains(&header.magic) {
        return Err(invalid(ErrorCode::CorruptMessage, "unknown magic"));
    }
    let is_whole = bytes.len() - LENGTH_OFFSET >= header.batch_length as usize;
    Ok(is_whole.then_some(header))
}

/// Checks all that a batch says of itself, and each of its records. `now_ms` is the wall clock.
pub fn check(batch: &mut Batch, rules: &Rules, now_ms: i64) -> Result<(), Invalid> {
    check_header(batch, rules)?;
    let header = batch.header;
    let Some(codec) = Codec::from_attributes(header.attributes) else {
        return Err(invalid_record("unknown codec"));
    };
    let records = batch.records();
    let mut walk = Walk { header: &header, rules, now_ms, max_timestamp: NO_TIMESTAMP, bad: None };
    match codec {
        Codec::None => walk.all(&mut Slice::new(&records)),
        _ => Stream::new(codec, &records)
            .map_err(Invalid::from)
            .and_then(|mut stream| walk.all(&mut stream)),
    }?;
    let max_timestamp = walk.max_timestamp;
    if let Some(bad) = walk.bad {
        return Err(bad);
    }
    batch.set_create_time(max_timestamp);
    Ok(())
}

fn check_header(batch: &Batch, rules: &Rules) -> Result<(), Invalid> {
    let header = &batch.header;
    if header.base_offset != 0 {
        return Err(invalid_record("the base offset of a batch to produce must be 0"));
    }
    if batch.len() > rules.max_message_bytes {
        let message = "the batch is longer than max.message.bytes";
        return Err(invalid(ErrorCode::MessageTooLarge, message));
    }
    if batch.checksum() != header.crc {
        return Err(invalid(ErrorCode::CorruptMessage, "the checksum is wrong"));
    }
    if header.record_count <= 0 || header.last_offset_delta != header.record_count - 1 {
        return Err(invalid_record("the record count is not positive or not that of the offsets"));
    }
    if header.is_control() {
        return Err(invalid_record("clients write no control records"));
    }
    if header.is_idempotent() && header.base_sequence < 0 {
        return Err(invalid_record("a batch with a producer id has no sequence number"));
    }
    Ok(())
}

/// What is found while the records go by.
struct Walk<'a> {
    header: &'a Header,
    rules: &'a Rules,
    now_ms: i64,
    max_timestamp: i64,
    bad: Option<Invalid>,
}

impl Walk<'_> {
    fn all<S: Source>(&mut self, source: &mut S) -> Result<(), Invalid> {
        for index in 0..self.header.record_count {
            let record = skim(source)?;
            if record.offset_delta != index {
                return Err(invalid_record("the offsets of the records are not 0, 1, 2, …"));
            }
            self.one(index, record);
        }
        if source.is_at_end()? {
            Ok(())
        } else {
            Err(invalid_record("there is more behind the records that the batch counts"))
        }
    }

    #[inline]
    fn one(&mut self, index: i32, record: Skimmed) {
        let timestamp = self.header.timestamp_of(record.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        if self.rules.is_compacted && !record.has_key {
            self.blame(index, ErrorCode::InvalidRecord, "a compacted topic needs keys");
        } else if timestamp != NO_TIMESTAMP && self.is_out_of_range(timestamp) {
            self.blame(index, ErrorCode::InvalidTimestamp, "the timestamp is out of range");
        }
    }

    /// KIP-937.
    fn is_out_of_range(&self, timestamp: i64) -> bool {
        let age_ms = self.now_ms.saturating_sub(timestamp);
        age_ms > self.rules.timestamp_before_max_ms || -age_ms > self.rules.timestamp_after_max_ms
    }

    #[cold]
    fn blame(&mut self, index: i32, code: ErrorCode, message: &'static str) {
        let summary = "records of the batch are invalid";
        let bad = self.bad.get_or_insert_with(|| invalid(code, summary));
        if code == ErrorCode::InvalidTimestamp {
            bad.code = code;
        }
        if bad.records.len() < MAX_RECORDS_NAMED {
            bad.records.push((index, message));
        }
    }
}

/// A code that says enough.
impl From<ErrorCode> for Invalid {
    fn from(code: ErrorCode) -> Self {
        invalid(code, "")
    }
}

impl From<Malformed> for Invalid {
    fn from(malformed: Malformed) -> Self {
        let message = match malformed {
            Malformed::Truncated => "the records end in the middle of one",
            Malformed::BadNumber => "a number in a record has too many bytes",
            Malformed::BadLength => "a field does not fit into its record",
            Malformed::Undecodable => "the records cannot be decompressed",
            Malformed::BadCount => "the records are not as many as the batch counts",
            Malformed::Unknown => "unknown magic or codec",
            Malformed::TooLong => {
                let message = "the records are too long when decompressed";
                return invalid(ErrorCode::MessageTooLarge, message);
            }
        };
        invalid_record(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Draft, DraftRecord, FROM_KAFKA, from_kafka, put_varint};
    use std::io::Write;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn checked(draft: &Draft) -> Result<Batch, Invalid> {
        checked_by(draft, Rules::default())
    }

    fn checked_by(draft: &Draft, rules: Rules) -> Result<Batch, Invalid> {
        let mut batch = draft.batch();
        check(&mut batch, &rules, NOW_MS).map(|()| batch)
    }

    /// The code of a batch that is refused. The expected codes in this file are what Apache Kafka
    /// 4.4 answers to the same batch, but for the three differences that the module names.
    fn refused(draft: &Draft) -> ErrorCode {
        checked(draft).map_or_else(|invalid| invalid.code, |_| ErrorCode::None)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn batches_of_kafkas_producer_are_good_and_stay_as_they_are() {
        for (codec, _) in FROM_KAFKA {
            let mut batch = from_kafka(codec);
            let before = batch.records();
            assert_eq!(check(&mut batch, &Rules::default(), NOW_MS), Ok(()), "{codec:?}");
            assert_eq!(batch.records(), before);
            assert_eq!(batch.records().as_ptr(), before.as_ptr(), "not even copied");
        }
    }

    #[test]
    fn a_partition_gets_exactly_one_whole_batch() {
        let good = Draft::of(&["a"]).encode();
        let bytes = |parts: &[&[u8]]| Bytes::from(parts.concat());
        let code = |records: Bytes, version| {
            only_batch(records, version).map_or_else(|e| e.code, |_| ErrorCode::None)
        };
        let changed = |at: usize, to: u8| {
            let mut bytes = good.to_vec();
            bytes[at] = to;
            Bytes::from(bytes)
        };
        assert_eq!(code(good.clone(), 3), ErrorCode::None);
        // What is behind it and no whole batch is dropped.
        assert_eq!(code(bytes(&[&good, &[1; 10]]), 12), ErrorCode::None);
        assert_eq!(code(bytes(&[&good, &good[..60]]), 12), ErrorCode::None);
        assert_eq!(only_batch(bytes(&[&good, &[1; 10]]), 12).unwrap().len(), good.len());

        assert_eq!(code(bytes(&[&good, &good]), 12), ErrorCode::InvalidRecord);
        assert_eq!(code(bytes(&[&good, &[0; 20]]), 12), ErrorCode::CorruptMessage);
        assert_eq!(code(Bytes::new(), 12), ErrorCode::InvalidRecord);
        assert_eq!(code(good.slice(..5), 12), ErrorCode::InvalidRecord);
        assert_eq!(code(good.slice(..good.len() - 5), 12), ErrorCode::InvalidRecord);
        assert_eq!(code(bytes(&[&[0; 16]]), 12), ErrorCode::CorruptMessage);
        assert_eq!(code(changed(11, 13), 12), ErrorCode::CorruptMessage, "length 13");
        assert_eq!(code(changed(8, 0xff), 12), ErrorCode::CorruptMessage, "negative length");
        assert_eq!(code(changed(11, 20), 12), ErrorCode::CorruptMessage, "less than a header");
        assert_eq!(code(changed(16, 0), 12), ErrorCode::InvalidRecord, "magic 0");
        assert_eq!(code(changed(16, 1), 12), ErrorCode::InvalidRecord, "magic 1");
        assert_eq!(code(changed(16, 3), 12), ErrorCode::CorruptMessage, "magic 3");
        assert_eq!(code(changed(16, 0xff), 12), ErrorCode::CorruptMessage, "magic -1");

        let zstd = Draft { attributes: 4, ..Draft::of(&["a"]) }.encode();
        assert_eq!(code(zstd.clone(), 6), ErrorCode::UnsupportedCompressionType);
        assert_eq!(code(zstd, 7), ErrorCode::None);
    }

    #[test]
    fn every_bit_behind_the_leader_epoch_is_under_the_checksum_or_checked() {
        let good = Draft::of(&["hello"]).encode();
        let leader_epoch = 12..16;
        for at in (0..good.len()).filter(|at| !leader_epoch.contains(at)) {
            for bit in 0..8 {
                let mut bytes = good.to_vec();
                bytes[at] ^= 1 << bit;
                let batch = only_batch(bytes.into(), 12);
                let outcome = batch.and_then(|mut b| check(&mut b, &Rules::default(), NOW_MS));
                assert!(outcome.is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn whatever_stands_behind_a_good_header_and_checksum_is_answered() {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            // Xorshift: the same bytes in each run.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for (codec, _) in FROM_KAFKA {
            let good = from_kafka(codec);
            let (mut outcomes, attributes) = ([0; 2], good.header.attributes);
            for _ in 0..2000 {
                let mut payload = good.records().to_vec();
                for _ in 0..=next(3) {
                    let at = next(payload.len());
                    payload[at] = next(256) as u8;
                }
                payload.truncate(payload.len() - next(3));
                let records = vec![DraftRecord::default(); 3];
                let draft = Draft { attributes, payload: Some(payload), records, ..Draft::of(&[]) };
                outcomes[usize::from(checked(&draft).is_ok())] += 1;
            }
            assert!(outcomes[0] > 500, "{codec:?}: {outcomes:?}");
        }
    }

    #[test]
    fn the_header_must_be_that_of_a_new_batch_of_a_client() {
        let good = Draft::of(&["a", "b"]);
        let with = |change: fn(&mut Draft)| {
            let mut draft = good.clone();
            change(&mut draft);
            refused(&draft)
        };
        assert_eq!(with(|_| {}), ErrorCode::None);
        assert_eq!(with(|d| d.base_offset = 7), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.record_count = Some(3)), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.last_offset_delta = Some(9)), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.last_offset_delta = Some(-1)), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.record_count = Some(-1)), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.records.clear()), ErrorCode::InvalidRecord);
        assert_eq!(with(|d| d.attributes = 1 << 5), ErrorCode::InvalidRecord, "control");
        assert_eq!(with(|d| d.producer_id = 5), ErrorCode::InvalidRecord, "no sequence");
        assert_eq!(with(|d| (d.producer_id, d.base_sequence) = (5, 0)), ErrorCode::None);
        assert_eq!(with(|d| d.producer_id = -5), ErrorCode::None);
        for codec in 5..=7 {
            let draft = Draft { attributes: codec, ..good.clone() };
            assert_eq!(refused(&draft), ErrorCode::InvalidRecord, "codec {codec}");
        }
        let max_message_bytes = good.encode().len();
        let rules = Rules { max_message_bytes, ..Rules::default() };
        assert!(checked_by(&good, rules).is_ok());
        let rules = Rules { max_message_bytes: max_message_bytes - 1, ..rules };
        assert_eq!(checked_by(&good, rules).unwrap_err().code, ErrorCode::MessageTooLarge);
    }

    #[test]
    fn the_records_must_be_those_that_the_header_counts() {
        let two = Draft::of(&["a", "b"]);
        let records = two.payload();
        let claim = |count: i32, payload: Vec<u8>, attributes: i16| {
            refused(&Draft {
                record_count: Some(count),
                last_offset_delta: Some(count - 1),
                payload: Some(payload),
                attributes,
                ..two.clone()
            })
        };
        for (attributes, pack) in [(0, <[u8]>::to_vec as fn(&[u8]) -> Vec<u8>), (1, gzip)] {
            let claim = |count, payload: &[u8]| claim(count, pack(payload), attributes);
            assert_eq!(claim(2, &records), ErrorCode::None);
            assert_eq!(claim(1, &records), ErrorCode::InvalidRecord);
            assert_eq!(claim(3, &records), ErrorCode::InvalidRecord);
            assert_eq!(claim(i32::MAX, &records), ErrorCode::InvalidRecord);
            assert_eq!(claim(2, &[&records[..], &[0]].concat()), ErrorCode::InvalidRecord);
            assert_eq!(claim(2, &records[..records.len() - 1]), ErrorCode::InvalidRecord);
            // Two records that both have offset delta 0.
            let first = &records[..records.len() / 2];
            assert_eq!(claim(2, &first.repeat(2)), ErrorCode::InvalidRecord);
        }
        assert_eq!(claim(2, records.clone(), 1), ErrorCode::InvalidRecord, "not gzip");
        let packed = gzip(&records);
        assert_eq!(claim(2, packed[..packed.len() - 9].to_vec(), 1), ErrorCode::InvalidRecord);
    }

    #[test]
    fn records_that_are_to_blame_are_named() {
        let mut draft = Draft { base_timestamp: NOW_MS, ..Draft::of(&["a", "b", "c"]) };
        draft.records[1].key = Some(b"k");
        let compacted = Rules { is_compacted: true, ..Rules::default() };
        let places = |invalid: &Invalid| invalid.records.iter().map(|r| r.0).collect::<Vec<_>>();

        assert!(checked(&draft).is_ok());
        let invalid = checked_by(&draft, compacted).unwrap_err();
        assert_eq!((invalid.code, places(&invalid)), (ErrorCode::InvalidRecord, vec![0, 2]));

        // An hour is allowed between the clocks of client and broker.
        draft.records[1].timestamp_delta = 3_600_000;
        assert!(checked(&draft).is_ok());
        draft.records[1].timestamp_delta += 1;
        let invalid = checked(&draft).unwrap_err();
        assert_eq!((invalid.code, places(&invalid)), (ErrorCode::InvalidTimestamp, vec![1]));

        // Of the two codes that of the timestamp wins.
        let invalid = checked_by(&draft, compacted).unwrap_err();
        assert_eq!((invalid.code, places(&invalid)), (ErrorCode::InvalidTimestamp, vec![0, 1, 2]));

        let many = Draft { records: vec![DraftRecord::default(); 5000], ..draft };
        let invalid = checked_by(&many, compacted).unwrap_err();
        assert_eq!(invalid.records.len(), MAX_RECORDS_NAMED);
    }

    #[test]
    fn times_have_limits_that_a_topic_sets_and_none_is_no_time() {
        let rules = Rules { timestamp_before_max_ms: 1000, ..Rules::default() };
        let at = |timestamp| checked_by(&Draft::at(&[timestamp]), rules).err().map(|e| e.code);
        assert_eq!(at(NOW_MS - 1000), None);
        assert_eq!(at(NOW_MS - 1001), Some(ErrorCode::InvalidTimestamp));
        assert_eq!(at(-1), None);
        assert_eq!(at(i64::MIN), Some(ErrorCode::InvalidTimestamp));
        assert_eq!(at(i64::MAX), Some(ErrorCode::InvalidTimestamp));
        assert_eq!(refused(&Draft::at(&[-5])), ErrorCode::None);
        assert_eq!(refused(&Draft::at(&[0])), ErrorCode::None);
    }

    #[test]
    fn a_header_that_lies_about_the_largest_time_is_put_right() {
        for attributes in [0, 1 << 3] {
            let lie = Draft {
                max_timestamp: Some(1_700_000_999_999),
                attributes,
                ..Draft::at(&[1_700_000_000_000, 1_700_000_000_007])
            };
            let batch = checked(&lie).unwrap();
            // LogAppendTime: the header's time is that of every record, as Kafka has it.
            let time = if attributes == 0 { 1_700_000_000_007 } else { 1_700_000_999_999 };
            assert_eq!((batch.header.max_timestamp, batch.header.attributes), (time, 0));
            let mut stored = [&batch.head()[..], &batch.records()].concat().into();
            let stored = Batch::split_off(&mut stored).unwrap();
            assert_eq!(stored.header, batch.header);
            assert_eq!(stored.checksum(), stored.header.crc);
        }
    }

    #[test]
    fn a_varint_that_never_ends_is_refused() {
        let mut payload = vec![0xff; 6];
        put_varint(&mut payload, 1);
        let draft = Draft { payload: Some(payload), ..Draft::of(&["a"]) };
        assert_eq!(refused(&draft), ErrorCode::InvalidRecord);
    }
}
