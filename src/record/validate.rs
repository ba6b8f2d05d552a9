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

fn invalid(code: ErrorCode, message: &'static str) -> Invalid {
    Invalid { code, message, records: Vec::new() }
}

fn invalid_record(message: &'static str) -> Invalid {
    invalid(ErrorCode::InvalidRecord, message)
}

/// The one batch that a Produce request of `api_version` 3 or later has for a partition. Bytes
/// behind it that are no whole batch are dropped, as Kafka does.
pub fn only_batch(mut records: Bytes, api_version: i16) -> Result<Batch, Invalid> {
    let header = whole_batch(&records)?.ok_or(invalid_record("there is no whole batch"))?;
    if header.magic != batch::MAGIC {
        return Err(invalid_record("Produce 3 and later take no message sets"));
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

impl From<Malformed> for Invalid {
    fn from(malformed: Malformed) -> Self {
        let message = match malformed {
            Malformed::Truncated => "the records end in the middle of one",
            Malformed::BadNumber => "a number in a record has too many bytes",
            Malformed::BadLength => "a field does not fit into its record",
            Malformed::Undecodable => "the records cannot be decompressed",
            Malformed::TooLong => {
                let message = "the records are too long when decompressed";
                return invalid(ErrorCode::MessageTooLarge, message);
            }
        };
        invalid_record(message)
    }
}
