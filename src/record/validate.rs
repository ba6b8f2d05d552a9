//! What a batch from a producer must be before it gets its place in a log.
//!
//! The checks, their order, their codes and their words are Apache Kafka 4.4's
//! (`ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`), but for these:
//! - An unknown codec and records that cannot be decompressed are INVALID_RECORD, a batch that is
//!   shorter than its header is CORRUPT_MESSAGE; Kafka says UNKNOWN_SERVER_ERROR.
//! - What a batch decompresses to has a limit. MESSAGE_TOO_LARGE lets a client split it.
//! - The lengths in compressed records must add up, no number may have more bits than its type, and
//!   nothing may follow what the codec made. Kafka takes such batches in, if it does not change the
//!   codec, and consumers cannot read most of them.
//! - A batch that is stored in another codec keeps the keys of headers that are no text, and may
//!   have a producer epoch below zero, or be transactional without a producer id.
//! - Records whose offset deltas are not 0, 1, 2, … get these. Kafka does so only where it changes
//!   the codec. Else an uncompressed batch is stored as it is, with offsets that come twice or
//!   never, and a compressed one is an UNKNOWN_SERVER_ERROR.
//! - Of the records to blame a thousand are named at most; Kafka names all.
//! - A batch that is refused as a whole has a message, too. Kafka only logs it.

use super::batch::{
    self, Batch, CODEC, HEADER_BYTES, Header, LENGTH_OFFSET, LOG_APPEND_TIME, TRANSACTIONAL,
};
use super::builder::{BuildError, Builder, Fields, recompress};
use super::codec::{Codec, MAX_DECOMPRESSED_BYTES, Stream};
use super::compress::Compression;
use super::message_set::NO_TIMESTAMP;
use super::records::{Malformed, Record, Skimmed, Slice, Source, skim};
use super::unpacked::Unpacked;
use crate::protocol::error_code::ErrorCode;
use bytes::Bytes;
use std::fmt::{self, Display, Formatter};

/// What a topic's configs ask of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`
    pub max_message_bytes: usize,
    /// What a batch may decompress to.
    pub max_decompressed_bytes: u64,
    /// `cleanup.policy` has `compact`: every record needs a key.
    pub is_compacted: bool,
    /// `message.timestamp.type` is `LogAppendTime`: the records get the time of their append.
    pub is_append_time: bool,
    /// `compression.type` and the level for it; `None` keeps the codec of the producer.
    pub compression: Option<Compression>,
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
            max_decompressed_bytes: MAX_DECOMPRESSED_BYTES,
            is_compacted: false,
            is_append_time: false,
            compression: None,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 60 * 60 * 1000,
        }
    }
}

impl Rules {
    /// Whether a batch is stored in another codec than it came in.
    pub fn changes_codec_of(&self, batch: &Batch) -> bool {
        let of_producer = Codec::from_attributes(batch.header.attributes);
        self.compression.is_some_and(|wanted| of_producer != Some(wanted.codec()))
    }
}

/// A partition as Kafka's messages call it.
#[derive(Clone, Copy, Debug)]
pub struct TopicPartition<'a> {
    pub topic: &'a str,
    pub partition: i32,
}

impl Display for TopicPartition<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// Why a batch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    pub code: ErrorCode,
    /// Empty if the code says enough.
    pub message: String,
    /// The records that are to blame, when it is single ones: their place in the batch, and why.
    pub records: Vec<(i32, String)>,
}

/// How many records are named at most as the reason for a refusal.
const MAX_RECORDS_NAMED: usize = 1000;

/// How many of them the message about the batch repeats.
const MAX_RECORDS_IN_MESSAGE: usize = 3;

/// The attributes that a batch keeps when it is written anew.
const KEPT: i16 = CODEC | LOG_APPEND_TIME | TRANSACTIONAL;

/// The first Produce version that may bring zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;

pub(super) fn invalid(code: ErrorCode, message: impl Into<String>) -> Invalid {
    Invalid { code, message: message.into(), records: Vec::new() }
}

pub(super) fn invalid_record(message: impl Into<String>) -> Invalid {
    invalid(ErrorCode::InvalidRecord, message)
}

/// The one batch that a Produce request has for a partition. Bytes behind it that are no whole
/// batch are dropped, as Kafka does.
pub fn only_batch(mut records: Bytes, api_version: i16) -> Result<Batch, Invalid> {
    let wrong = |what: &str| format!("Produce requests with version {api_version} {what}");
    let header = whole_batch(&records)?.ok_or_else(|| {
        invalid_record(wrong("must have at least one record batch per partition"))
    })?;
    if header.magic != batch::MAGIC {
        let what = "are only allowed to contain record batches with magic version 2";
        return Err(invalid_record(wrong(what)));
    }
    if api_version < FIRST_ZSTD_VERSION
        && Codec::from_attributes(header.attributes) == Some(Codec::Zstd)
    {
        let message = wrong("are not allowed to use ZStandard compression");
        return Err(invalid(ErrorCode::UnsupportedCompressionType, message));
    }
    let batch = Batch::split_off(&mut records).ok_or_else(|| {
        let bytes = i64::from(header.batch_length) + LENGTH_OFFSET as i64;
        let message = format!(
            "Record batch is corrupt (the size {bytes} is smaller than the minimum allowed \
             overhead {HEADER_BYTES})"
        );
        invalid(ErrorCode::CorruptMessage, message)
    })?;
    if whole_batch(&records)?.is_some() {
        let what = "are only allowed to contain exactly one record batch per partition";
        return Err(invalid_record(wrong(what)));
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
    let corrupt = |message| Err(invalid(ErrorCode::CorruptMessage, message));
    if len < LENGTH_OFFSET {
        return Ok(None);
    }
    if header.batch_length < SHORTEST {
        return corrupt(format!(
            "Record size {} is less than the minimum record overhead ({SHORTEST})",
            header.batch_length
        ));
    }
    if len < UP_TO_MAGIC {
        return Ok(None);
    }
    if !(0..=batch::MAGIC).contains(&header.magic) {
        return corrupt(format!("Invalid magic found in record: {}", header.magic));
    }
    let is_whole = bytes.len() - LENGTH_OFFSET >= header.batch_length as usize;
    Ok(is_whole.then_some(header))
}

/// Checks all that a batch for `partition` says of itself, and each of its records, and makes it
/// what is stored. `now_ms` is the wall clock.
pub fn check(
    batch: &mut Batch,
    rules: &Rules,
    partition: TopicPartition,
    now_ms: i64,
) -> Result<(), Invalid> {
    check_whole(batch, rules, partition)?;
    check_header(&batch.header, partition)?;
    let header = batch.header;
    let Some(codec) = Codec::from_attributes(header.attributes) else {
        let message = format!("Unknown compression type id: {}", header.attributes & CODEC);
        return Err(invalid_record(message));
    };
    let records = batch.records();
    let mut walk = Walk::new(&header, rules, partition, now_ms);
    match codec {
        Codec::None => walk.all(&mut Slice::new(&records)),
        _ => Stream::with_limit(codec, &records, rules.max_decompressed_bytes)
            .map_err(Invalid::from)
            .and_then(|mut stream| walk.all(&mut stream)),
    }?;
    // A record has its producer's offset and time in it.
    let records_stay = walk.is_dense && !header.is_log_append_time();
    let is_dense = walk.is_dense;
    let max_timestamp = walk.finish()?;
    if !is_dense || rules.changes_codec_of(batch) {
        let compression = rules.compression.unwrap_or(codec.into());
        batch.header.attributes &= KEPT;
        *batch = match records_stay {
            true => recompress(batch, compression)?,
            false => with_new_records(batch, compression)?,
        };
        check_rewritten(batch, rules, partition)?;
    }
    match rules.is_append_time {
        true => batch.set_append_time(now_ms),
        false => batch.set_create_time(max_timestamp),
    }
    Ok(())
}

/// `UnifiedLog.analyzeAndValidateRecords`
fn check_whole(batch: &Batch, rules: &Rules, partition: TopicPartition) -> Result<(), Invalid> {
    let header = &batch.header;
    if header.base_offset != 0 {
        return Err(invalid_record(format!(
            "The baseOffset of the record batch in the append to {partition} should be 0, but it \
             is {}",
            header.base_offset
        )));
    }
    if batch.len() > rules.max_message_bytes {
        let message = format!(
            "The record batch size in the append to {partition} is {} bytes which exceeds the \
             maximum configured value of {}).",
            batch.len(),
            rules.max_message_bytes
        );
        return Err(invalid(ErrorCode::MessageTooLarge, message));
    }
    if batch.checksum() != header.crc {
        let message = format!(
            "Record is corrupt (stored crc = {}) in topic partition {partition}.",
            header.crc
        );
        return Err(invalid(ErrorCode::CorruptMessage, message));
    }
    Ok(())
}

/// `LogValidator.validateBatch`
fn check_header(header: &Header, partition: TopicPartition) -> Result<(), Invalid> {
    let Header { last_offset_delta, record_count, base_sequence, .. } = *header;
    let what = if last_offset_delta < 0 {
        format!("Batch has an invalid offset range: [0, {last_offset_delta}]")
    } else if record_count <= 0 {
        format!("Invalid reported count for record batch: {record_count}")
    } else if last_offset_delta != record_count - 1 {
        format!(
            "Inconsistent batch offset range [0, {last_offset_delta}] and count of records \
             {record_count}"
        )
    } else if header.is_control() {
        "Clients are not allowed to write control records".to_string()
    } else if header.is_idempotent() && base_sequence < 0 {
        format!(
            "Invalid sequence number {base_sequence} in record batch with producerId {}",
            header.producer_id
        )
    } else {
        return Ok(());
    };
    Err(invalid_record(format!("{what} in topic partition {partition}")))
}

/// The same records with the offset deltas 0, 1, 2, …, and with the times that the batch says.
fn with_new_records(batch: &Batch, compression: Compression) -> Result<Batch, BuildError> {
    let Header { producer_id, producer_epoch, base_sequence, .. } = batch.header;
    let mut builder = Builder::new(Fields {
        compression,
        is_transactional: batch.header.is_transactional(),
        producer_id,
        producer_epoch,
        base_sequence,
        ..Fields::default()
    });
    for (offset, record) in (0..).zip(&Unpacked::new(batch)?) {
        builder.append(&Record { offset, ..record? })?;
    }
    builder.finish()
}

/// `UnifiedLog.append`
fn check_rewritten(batch: &Batch, rules: &Rules, partition: TopicPartition) -> Result<(), Invalid> {
    if batch.len() <= rules.max_message_bytes {
        return Ok(());
    }
    let message = format!(
        "Message batch size is {} bytes in append to partition {partition} which exceeds the \
         maximum configured size of {}.",
        batch.len(),
        rules.max_message_bytes
    );
    Err(invalid(ErrorCode::MessageTooLarge, message))
}

/// What is found while the records go by.
struct Walk<'a> {
    header: &'a Header,
    rules: &'a Rules,
    partition: TopicPartition<'a>,
    now_ms: i64,
    max_timestamp: i64,
    /// Whether the offset deltas are 0, 1, 2, …
    is_dense: bool,
    /// How many records are to blame, and whether one is for its timestamp.
    bad: usize,
    is_bad_timestamp: bool,
    named: Vec<(i32, String)>,
}

impl<'a> Walk<'a> {
    fn new(
        header: &'a Header,
        rules: &'a Rules,
        partition: TopicPartition<'a>,
        now_ms: i64,
    ) -> Self {
        Self {
            header,
            rules,
            partition,
            now_ms,
            max_timestamp: NO_TIMESTAMP,
            is_dense: true,
            bad: 0,
            is_bad_timestamp: false,
            named: Vec::new(),
        }
    }

    fn all<S: Source>(&mut self, source: &mut S) -> Result<(), Invalid> {
        for index in 0..self.header.record_count {
            self.one(index, skim(source)?);
        }
        if source.is_at_end()? {
            Ok(())
        } else {
            let message = "Incorrect declared batch size, records still remaining in file";
            Err(invalid_record(message))
        }
    }

    #[inline]
    fn one(&mut self, index: i32, record: Skimmed) {
        let timestamp = self.header.timestamp_of(record.timestamp_delta);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.is_dense &= record.offset_delta == index;
        if self.rules.is_compacted && !record.has_key() {
            let partition = self.partition;
            self.blame(index, || {
                format!(
                    "Compacted topic cannot accept message without key in topic partition \
                     {partition}"
                )
            });
        } else if !self.rules.is_append_time && timestamp != NO_TIMESTAMP {
            if self.is_out_of_range(timestamp) {
                self.blame_time(index, timestamp, record);
            }
        } else if self.header.is_log_append_time() {
            self.blame_type(index, timestamp, record);
        }
    }

    /// KIP-937.
    fn is_out_of_range(&self, timestamp: i64) -> bool {
        let age_ms = self.now_ms.saturating_sub(timestamp);
        age_ms > self.rules.timestamp_before_max_ms || -age_ms > self.rules.timestamp_after_max_ms
    }

    #[cold]
    fn blame_time(&mut self, index: i32, timestamp: i64, record: Skimmed) {
        let earliest = self.now_ms.wrapping_sub(self.rules.timestamp_before_max_ms);
        let latest = self.now_ms.wrapping_add(self.rules.timestamp_after_max_ms);
        self.is_bad_timestamp = true;
        self.blame(index, || {
            format!(
                "Timestamp {timestamp} of message with offset {} is out of range. The timestamp \
                 should be within [{earliest}, {latest}]",
                record.offset_delta
            )
        });
    }

    #[cold]
    fn blame_type(&mut self, index: i32, timestamp: i64, record: Skimmed) {
        self.is_bad_timestamp = true;
        self.blame(index, || {
            format!(
                "Invalid timestamp type in message DefaultRecord(offset={}, timestamp={timestamp}, \
                 key={} bytes, value={} bytes). Producer should not set timestamp type to \
                 LogAppendTime.",
                record.offset_delta,
                record.key_bytes.max(0),
                record.value_bytes.max(0)
            )
        });
    }

    #[cold]
    fn blame(&mut self, index: i32, message: impl FnOnce() -> String) {
        self.bad += 1;
        if self.named.len() < MAX_RECORDS_NAMED {
            self.named.push((index, message()));
        }
    }

    /// The largest timestamp, if no record is to blame. `LogValidator.processRecordErrors`
    fn finish(self) -> Result<i64, Invalid> {
        if self.bad == 0 {
            return Ok(self.max_timestamp);
        }
        let records = self.named;
        let (code, message) = if self.is_bad_timestamp {
            let message = "One or more records have been rejected due to invalid timestamp";
            (ErrorCode::InvalidTimestamp, message.to_string())
        } else {
            let first: Vec<String> = records
                .iter()
                .take(MAX_RECORDS_IN_MESSAGE)
                .map(|(index, what)| format!("RecordError(batchIndex={index}, message='{what}')"))
                .collect();
            let message = format!(
                "One or more records have been rejected due to {} record errors in total, and \
                 only showing the first three errors at most: [{}]",
                self.bad,
                first.join(", ")
            );
            (ErrorCode::InvalidRecord, message)
        };
        Err(Invalid { code, message, records })
    }
}

/// A code that says enough.
impl From<ErrorCode> for Invalid {
    fn from(code: ErrorCode) -> Self {
        invalid(code, "")
    }
}

impl From<BuildError> for Invalid {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Malformed(malformed) => malformed.into(),
            BuildError::Full => invalid(ErrorCode::MessageTooLarge, error.to_string()),
            _ => invalid(ErrorCode::UnknownServerError, error.to_string()),
        }
    }
}

impl From<Malformed> for Invalid {
    fn from(malformed: Malformed) -> Self {
        let code = match malformed {
            Malformed::TooLong => ErrorCode::MessageTooLarge,
            _ => ErrorCode::InvalidRecord,
        };
        invalid(code, malformed.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Draft, DraftRecord, FROM_KAFKA, from_kafka, gzip, put_varint};

    const NOW_MS: i64 = 1_800_000_000_000;
    const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 3 };

    fn checked(draft: &Draft) -> Result<Batch, Invalid> {
        checked_by(draft, Rules::default())
    }

    fn checked_by(draft: &Draft, rules: Rules) -> Result<Batch, Invalid> {
        let mut batch = draft.batch();
        check(&mut batch, &rules, PARTITION, NOW_MS).map(|()| batch)
    }

    /// The code of a batch that is refused. The expected codes in this file are what Apache Kafka
    /// 4.4 answers to the same batch, but for the differences that the module names.
    fn refused(draft: &Draft) -> ErrorCode {
        checked(draft).map_or_else(|invalid| invalid.code, |_| ErrorCode::None)
    }

    #[test]
    fn batches_of_kafkas_producer_are_good_and_stay_as_they_are() {
        for (codec, _) in FROM_KAFKA {
            let mut batch = from_kafka(codec);
            let before = batch.records();
            assert_eq!(
                check(&mut batch, &Rules::default(), PARTITION, NOW_MS),
                Ok(()),
                "{codec:?}"
            );
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
                let outcome =
                    batch.and_then(|mut b| check(&mut b, &Rules::default(), PARTITION, NOW_MS));
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
        }
        assert_eq!(claim(2, records.clone(), 1), ErrorCode::InvalidRecord, "not gzip");
        let packed = gzip(&records);
        assert_eq!(claim(2, packed[..packed.len() - 9].to_vec(), 1), ErrorCode::InvalidRecord);
    }

    #[test]
    fn offsets_that_come_twice_or_never_are_put_right() {
        // As Kafka does where it compresses or decompresses the batch.
        let draft = Draft::of(&["a", "b"]).from_producer(7, 0, 5);
        let first = draft.payload()[..draft.payload().len() / 2].to_vec();
        for (attributes, pack) in [(0, <[u8]>::to_vec as fn(&[u8]) -> Vec<u8>), (1, gzip)] {
            let payload = Some(pack(&first.repeat(2)));
            let batch = checked(&Draft { payload, attributes, ..draft.clone() }).unwrap();
            let header = batch.header;
            assert_eq!((header.attributes, header.last_offset_delta), (attributes, 1));
            assert_eq!((header.producer_id, header.base_sequence), (7, 5));
            let records = Unpacked::new(&batch).unwrap();
            let read: Vec<_> = records.iter().map(|r| r.unwrap()).collect();
            let read: Vec<_> = read.iter().map(|r| (r.offset, r.value, r.timestamp)).collect();
            let time = draft.base_timestamp;
            assert_eq!(read, [(0, Some(&b"a"[..]), time), (1, Some(b"a"), time)]);
        }
    }

    #[test]
    fn a_batch_is_stored_in_the_codec_of_its_topic() {
        for (codec, _) in FROM_KAFKA {
            for (wanted, _) in FROM_KAFKA {
                let sent = from_kafka(codec);
                let (mut batch, records) = (sent.clone(), Unpacked::new(&sent).unwrap());
                let rules = Rules { compression: Some(wanted.into()), ..Rules::default() };
                assert_eq!(rules.changes_codec_of(&sent), codec != wanted);
                assert_eq!(check(&mut batch, &rules, PARTITION, NOW_MS), Ok(()));
                assert_eq!(Codec::from_attributes(batch.header.attributes), Some(wanted));
                assert_eq!(Unpacked::new(&batch).unwrap().bytes(), records.bytes());
                assert_eq!(batch.checksum(), batch.header.crc);
                let is_untouched = batch.records().as_ptr() == sent.records().as_ptr();
                assert_eq!(is_untouched, codec == wanted, "{codec:?} {wanted:?}");
            }
        }
        // A level is obeyed, and does not matter to a batch that has the codec already.
        let long = Draft::of(&[&"abcdefghij".repeat(500), &"klmnopqrst".repeat(500)]);
        let lens = [1, 9].map(|level| {
            let compression = Compression::new(Codec::Gzip, level);
            checked_by(&long, Rules { compression, ..Rules::default() }).unwrap().len()
        });
        assert!(lens[1] < lens[0], "{lens:?}");

        let rules = Rules { compression: Some(Codec::None.into()), ..Rules::default() };
        let gzipped = Draft { attributes: 1, payload: Some(gzip(&long.payload())), ..long.clone() };
        let plain = long.encode().len();
        let limited = |max_message_bytes| Rules { max_message_bytes, ..rules };
        assert!(checked_by(&gzipped, limited(plain)).is_ok());
        let invalid = checked_by(&gzipped, limited(plain - 1)).unwrap_err();
        assert_eq!(invalid.code, ErrorCode::MessageTooLarge);
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

        assert_eq!(
            invalid.message,
            "One or more records have been rejected due to invalid timestamp"
        );
        assert_eq!(
            invalid.records[0].1,
            "Timestamp 1800003600001 of message with offset 1 is out of range. The timestamp should \
             be within [-9223370236854775807, 1800003600000]"
        );

        // Of the two codes that of the timestamp wins.
        let invalid = checked_by(&draft, compacted).unwrap_err();
        assert_eq!((invalid.code, places(&invalid)), (ErrorCode::InvalidTimestamp, vec![0, 1, 2]));

        let many = Draft { records: vec![DraftRecord::default(); 5000], ..draft };
        let invalid = checked_by(&many, compacted).unwrap_err();
        assert_eq!(invalid.records.len(), MAX_RECORDS_NAMED);
        let why = "Compacted topic cannot accept message without key in topic partition clicks-3";
        assert_eq!(invalid.records[0], (0, why.to_string()));
        let error = |index| format!("RecordError(batchIndex={index}, message='{why}')");
        assert_eq!(
            invalid.message,
            format!(
                "One or more records have been rejected due to 5000 record errors in total, and \
                 only showing the first three errors at most: [{}, {}, {}]",
                error(0),
                error(1),
                error(2)
            )
        );
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
    fn an_append_time_is_given_to_records_of_any_time_but_not_taken_from_a_producer() {
        let rules = Rules { is_append_time: true, timestamp_before_max_ms: 0, ..Rules::default() };
        let draft = Draft::at(&[0, i64::MAX]);
        let batch = checked_by(&draft, rules).unwrap();
        assert_eq!((batch.header.attributes, batch.header.max_timestamp), (1 << 3, NOW_MS));
        assert_eq!((batch.header.base_timestamp, batch.checksum()), (0, batch.header.crc));

        let theirs = Draft { attributes: 1 << 3, ..Draft::of(&["a", "b"]) };
        let invalid = checked_by(&theirs, rules).unwrap_err();
        assert_eq!((invalid.code, invalid.records.len()), (ErrorCode::InvalidTimestamp, 2));
        assert_eq!(
            invalid.records[1].1,
            "Invalid timestamp type in message DefaultRecord(offset=1, timestamp=1700000000000, \
             key=0 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."
        );
        // In a topic of CreateTime only if it says no time.
        let timeless = Draft { max_timestamp: Some(-1), ..theirs };
        assert_eq!(refused(&timeless), ErrorCode::InvalidTimestamp);
    }

    #[test]
    fn a_varint_that_never_ends_is_refused() {
        let mut payload = vec![0xff; 6];
        put_varint(&mut payload, 1);
        let draft = Draft { payload: Some(payload), ..Draft::of(&["a"]) };
        assert_eq!(refused(&draft), ErrorCode::InvalidRecord);
    }
}
