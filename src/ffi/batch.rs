//! What batches and records are for a host that stores single records: see [`super::batch_reader`]
//! and [`super::batch_builder`].

use super::data::{KelpBytes, Versioned};
use super::status::{KELP_NULL_POINTER, KelpStatus};
use crate::record::batch::Header;
use crate::record::builder::{Fields, MAX_BATCH_BYTES};
use crate::record::codec::Codec;
use crate::record::compress::Compression;
use std::mem::size_of;

/// The codec of a batch: the lowest three bits of its attributes.
pub const KELP_BATCH_CODEC: u32 = 7;
pub const KELP_CODEC_NONE: u32 = 0;
pub const KELP_CODEC_GZIP: u32 = 1;
pub const KELP_CODEC_SNAPPY: u32 = 2;
pub const KELP_CODEC_LZ4: u32 = 3;
pub const KELP_CODEC_ZSTD: u32 = 4;
/// All records have the time `max_timestamp` instead of their own (KIP-32).
pub const KELP_BATCH_LOG_APPEND_TIME: u32 = 8;
/// The records belong to a transaction of the producer.
pub const KELP_BATCH_TRANSACTIONAL: u32 = 16;
/// The records are for brokers and consumers, such as the end of a transaction: applications do
/// not see them, but they have offsets.
pub const KELP_BATCH_CONTROL: u32 = 32;
/// `delete_horizon_ms` is meant (KIP-534).
pub const KELP_BATCH_DELETE_HORIZON: u32 = 64;
/// `producer_id`, `producer_epoch` and `base_sequence` are meant. Not a bit of Kafka's.
pub const KELP_BATCH_PRODUCER: u32 = 1 << 16;

const ATTRIBUTES: u32 = KELP_BATCH_CODEC
    | KELP_BATCH_LOG_APPEND_TIME
    | KELP_BATCH_TRANSACTIONAL
    | KELP_BATCH_CONTROL
    | KELP_BATCH_DELETE_HORIZON;

/// What a batch says of itself besides its records. A reader tells it, a builder is given it; what
/// a reader told may be given to a builder as it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KelpBatchFields {
    /// sizeof(kelp_batch_fields)
    pub struct_size: u32,
    /// A codec and KELP_BATCH_… bits.
    pub attributes: u32,
    pub base_offset: i64,
    /// From the base offset to the last offset of the batch. It may be more than that of the last
    /// record, when compaction has taken records away. A builder that is given less takes the
    /// offset of the last record.
    pub last_offset_delta: i32,
    /// -1: none
    pub leader_epoch: i32,
    pub producer_id: i64,
    /// The sequence number of the first offset.
    pub base_sequence: i32,
    pub producer_epoch: i16,
    /// 0
    pub reserved: u16,
    /// With KELP_BATCH_LOG_APPEND_TIME the time of all records, in milliseconds since 1970. Else
    /// the largest time of a record: a builder does not look at it.
    pub max_timestamp: i64,
    /// When tombstones and markers of transactions may go.
    pub delete_horizon_ms: i64,
    /// How many records there are: a builder does not look at it.
    pub record_count: i32,
    /// How hard the codec tries, in Kafka's levels: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.
    /// 0: the codec's default, and what a reader tells.
    pub level: i32,
    /// A builder takes no record with which the batch would be longer, counted before compression.
    /// 0: 2 GiB, which is the most that a batch can have, and what a reader tells.
    pub max_bytes: u64,
}

// SAFETY: it begins with its size and is made of integers.
unsafe impl Versioned for KelpBatchFields {
    const FIRST_SIZE: usize = size_of::<Self>();
}

/// A header of a record. Keys may come more than once.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KelpRecordHeader {
    pub key: KelpBytes,
    /// As the value of a record: null if its pointer is NULL.
    pub value: KelpBytes,
}

/// One record. Kafka's format is fixed, and so is this struct.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KelpBatchRecord {
    pub offset: i64,
    /// In milliseconds since 1970; -1: none.
    pub timestamp: i64,
    /// A null key has the pointer NULL; an empty one has another pointer, and the length 0.
    pub key: KelpBytes,
    /// As the key. A null value is a tombstone.
    pub value: KelpBytes,
    pub headers: *const KelpRecordHeader,
    pub header_count: usize,
}

impl KelpBatchFields {
    pub(super) fn of(header: &Header) -> Self {
        let producer = if header.is_idempotent() { KELP_BATCH_PRODUCER } else { 0 };
        Self {
            struct_size: size_of::<Self>() as u32,
            attributes: u32::from(header.attributes as u16) & ATTRIBUTES | producer,
            base_offset: header.base_offset,
            last_offset_delta: header.last_offset_delta,
            leader_epoch: header.leader_epoch,
            producer_id: header.producer_id,
            base_sequence: header.base_sequence,
            producer_epoch: header.producer_epoch,
            reserved: 0,
            max_timestamp: header.max_timestamp,
            delete_horizon_ms: header.delete_horizon_ms().unwrap_or(0),
            record_count: header.record_count,
            level: 0,
            max_bytes: 0,
        }
    }

    pub(super) fn for_builder(&self) -> Option<Fields> {
        let has = |bit: u32| self.attributes & bit != 0;
        if has(!(ATTRIBUTES | KELP_BATCH_PRODUCER)) {
            return None;
        }
        let codec = Codec::from_attributes((self.attributes & KELP_BATCH_CODEC) as i16)?;
        let compression = match self.level {
            0 => codec.into(),
            level => Compression::new(codec, level)?,
        };
        let mut fields = Fields {
            base_offset: self.base_offset,
            least_last_offset_delta: self.last_offset_delta,
            leader_epoch: self.leader_epoch,
            compression,
            log_append_time: has(KELP_BATCH_LOG_APPEND_TIME).then_some(self.max_timestamp),
            delete_horizon_ms: has(KELP_BATCH_DELETE_HORIZON).then_some(self.delete_horizon_ms),
            is_transactional: has(KELP_BATCH_TRANSACTIONAL),
            is_control: has(KELP_BATCH_CONTROL),
            max_bytes: match self.max_bytes {
                0 => MAX_BATCH_BYTES,
                max_bytes => usize::try_from(max_bytes).unwrap_or(MAX_BATCH_BYTES),
            },
            ..Fields::default()
        };
        if has(KELP_BATCH_PRODUCER) {
            fields.producer_id = self.producer_id;
            fields.producer_epoch = self.producer_epoch;
            fields.base_sequence = self.base_sequence;
        }
        Some(fields)
    }
}

/// # Safety
///
/// `ptr` is null or points to `len` elements that nobody changes.
pub(super) unsafe fn array<'a, T>(ptr: *const T, len: usize) -> Result<&'a [T], KelpStatus> {
    match (len, ptr.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(KELP_NULL_POINTER),
        // SAFETY: not null, and as long as the caller says.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(ptr, len) }),
    }
}
