//! The header of a record batch (magic 2), and stamping without copying.
//!
//! A broker changes headers only, so a batch is a header and the bytes of its records, which stay
//! where they came in.
//!
//! ```text
//!  0 base offset       i64
//!  8 batch length      i32
//! 12 leader epoch      i32
//! 16 magic             i8
//! 17 crc32c            u32   of all that follows
//! 21 attributes        i16   codec 0–2, timestamp type 3, transactional 4, control 5, horizon 6
//! 23 last offset delta i32
//! 27 base timestamp    i64
//! 35 max timestamp     i64
//! 43 producer id       i64
//! 51 producer epoch    i16
//! 53 base sequence     i32
//! 57 record count      i32
//! 61 records
//! ```

use super::checksum;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes before the records.
pub const HEADER_BYTES: usize = 61;

/// What the batch length does not count: base offset and the length itself.
pub const LENGTH_OFFSET: usize = 12;

/// The only magic that is stored.
pub const MAGIC: i8 = 2;

/// `producer_id` of a batch whose producer is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;

/// The bits of the attributes that hold the codec.
pub(super) const CODEC: i16 = 7;

/// The bit of the attributes that says LogAppendTime.
pub(super) const LOG_APPEND_TIME: i16 = 1 << 3;

pub(super) const TRANSACTIONAL: i16 = 1 << 4;

pub(super) const CONTROL: i16 = 1 << 5;

/// KIP-534: the base timestamp says when tombstones and markers of the batch may go.
pub(super) const DELETE_HORIZON: i16 = 1 << 6;

/// All bits that mean something. As Kafka, a broker that changes the attributes writes no other.
const KNOWN: i16 = CODEC | LOG_APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON;

/// Where the checksum begins: behind itself.
const CHECKED_FROM: usize = 21;

/// The fields of a batch's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub base_offset: i64,
    /// Bytes after this field; the whole batch is 12 bytes longer.
    pub batch_length: i32,
    pub leader_epoch: i32,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if they are fewer than a header has.
    /// Nothing is checked: neither magic nor lengths nor the checksum.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut b = bytes.get(..HEADER_BYTES)?;
        Some(Self {
            base_offset: b.get_i64(),
            batch_length: b.get_i32(),
            leader_epoch: b.get_i32(),
            magic: b.get_i8(),
            crc: b.get_u32(),
            attributes: b.get_i16(),
            last_offset_delta: b.get_i32(),
            base_timestamp: b.get_i64(),
            max_timestamp: b.get_i64(),
            producer_id: b.get_i64(),
            producer_epoch: b.get_i16(),
            base_sequence: b.get_i32(),
            record_count: b.get_i32(),
        })
    }

    /// The header as it is stored.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut b = &mut bytes[..];
        b.put_i64(self.base_offset);
        b.put_i32(self.batch_length);
        b.put_i32(self.leader_epoch);
        b.put_i8(self.magic);
        b.put_u32(self.crc);
        b.put_i16(self.attributes);
        b.put_i32(self.last_offset_delta);
        b.put_i64(self.base_timestamp);
        b.put_i64(self.max_timestamp);
        b.put_i64(self.producer_id);
        b.put_i16(self.producer_epoch);
        b.put_i32(self.base_sequence);
        b.put_i32(self.record_count);
        bytes
    }

    /// Saturating, as a header may come from a host that stores whatever it likes.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta.into())
    }

    /// The offset of what comes behind the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Bytes of the whole batch; `None` if they are fewer than those of a header.
    pub(crate) fn whole_bytes(&self) -> Option<usize> {
        let bytes = usize::try_from(self.batch_length).ok()?.checked_add(LENGTH_OFFSET)?;
        (bytes >= HEADER_BYTES).then_some(bytes)
    }

    /// KIP-32: whether every record has the batch's max timestamp instead of one of its own.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & LOG_APPEND_TIME != 0
    }

    /// The timestamp of a record with this delta.
    pub fn timestamp_of(&self, timestamp_delta: i64) -> i64 {
        match self.is_log_append_time() {
            true => self.max_timestamp,
            false => self.base_timestamp.wrapping_add(timestamp_delta),
        }
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// KIP-534: when tombstones and markers of the batch may go.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    pub fn is_idempotent(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }

    /// The sequence number of the last record. Sequences go from 0 to `i32::MAX` and start again.
    pub fn last_sequence(&self) -> i32 {
        self.base_sequence.wrapping_add(self.last_offset_delta) & i32::MAX
    }
}

/// What is less than this part of its buffer is copied if it is kept.
const LEAST_PART: usize = 8;

/// A slice keeps its whole buffer alive. So a small part of a buffer is copied if it is kept; the few large
/// batches of one frame are not, as all of them are kept, unless some are refused.
pub fn detached(slice: Bytes, buffer_bytes: usize) -> Bytes {
    match slice.len() < buffer_bytes / LEAST_PART {
        true => Bytes::copy_from_slice(&slice),
        false => slice,
    }
}

/// From so many bytes on it costs less to join a checksum than to read the bytes.
const LARGE_BYTES: usize = 32 << 10;

/// The CRC-32C of bytes of which it is `crc` with a batch behind them, in two parts as they are stored. Of a
/// large batch the records are not read: the batch has their checksum, which was seen to be right when it
/// came.
pub fn append_checksum(crc: u32, head: &[u8], tail: &[u8]) -> u32 {
    let len = head.len() + tail.len();
    let unchecked = head.first_chunk::<CHECKED_FROM>().filter(|_| len >= LARGE_BYTES);
    let Some(unchecked) = unchecked else {
        return crc32c::crc32c_append(crc32c::crc32c_append(crc, head), tail);
    };
    let [.., a, b, c, d] = *unchecked;
    let checked = u32::from_be_bytes([a, b, c, d]);
    let joined = checksum::join(crc32c::crc32c_append(crc, unchecked), checked, len - CHECKED_FROM);
    debug_assert_eq!(joined, crc32c::crc32c_append(crc32c::crc32c_append(crc, head), tail));
    joined
}

/// One whole batch, whose records share the memory of the frame or object it came in. Its bytes
/// were checked: they are as long as the header says.
#[derive(Clone, Debug)]
pub struct Batch {
    pub header: Header,
    records: Bytes,
}

impl Batch {
    /// Takes the first batch off `bytes`; `None` if no whole batch stands there.
    pub fn split_off(bytes: &mut Bytes) -> Option<Self> {
        let header = Header::read(bytes)?;
        let len = header.whole_bytes().filter(|len| *len <= bytes.len())?;
        let records = bytes.split_to(len).slice(HEADER_BYTES..);
        Some(Self { header, records })
    }

    /// Puts a header in front of records: there is room for it in `bytes`. Its length, magic and
    /// checksum are put right. `None` if the batch is longer than a length can say.
    pub(super) fn seal(mut header: Header, mut bytes: Vec<u8>) -> Option<Bytes> {
        header.batch_length = bytes.len().checked_sub(LENGTH_OFFSET)?.try_into().ok()?;
        header.magic = MAGIC;
        bytes.get_mut(..HEADER_BYTES)?.copy_from_slice(&header.encode());
        header.crc = crc32c::crc32c(&bytes[CHECKED_FROM..]);
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        Some(bytes.into())
    }

    /// For a batch that is kept, of a buffer of so many bytes: see [`detached`].
    pub fn detach(&mut self, buffer_bytes: usize) {
        self.records = detached(std::mem::take(&mut self.records), buffer_bytes);
    }

    /// Gives the batch its place, which the checksum does not cover.
    pub fn stamp(&mut self, base_offset: i64, leader_epoch: i32) {
        self.header.base_offset = base_offset;
        self.header.leader_epoch = leader_epoch;
    }

    /// Makes the header say that its records have times of their own, and which is the largest.
    pub fn set_create_time(&mut self, max_timestamp: i64) {
        let attributes = self.header.attributes & !LOG_APPEND_TIME;
        self.set_time(attributes, max_timestamp);
    }

    /// Gives every record the time of its append.
    pub fn set_append_time(&mut self, append_time_ms: i64) {
        let attributes = self.header.attributes | LOG_APPEND_TIME;
        self.set_time(attributes, append_time_ms);
    }

    fn set_time(&mut self, attributes: i16, max_timestamp: i64) {
        let header = &mut self.header;
        if (header.attributes, header.max_timestamp) == (attributes, max_timestamp) {
            return;
        }
        (header.attributes, header.max_timestamp) = (attributes & KNOWN, max_timestamp);
        self.header.crc = self.checksum();
    }

    /// The header as it is stored; [`Batch::records`] follow it.
    pub fn head(&self) -> [u8; HEADER_BYTES] {
        self.header.encode()
    }

    /// The whole batch in one piece, for who cannot take two. Copied.
    pub fn to_bytes(&self) -> Bytes {
        [&self.head()[..], &self.records].concat().into()
    }

    /// The records, as they are behind the header: compressed, if the attributes say so.
    pub fn records(&self) -> Bytes {
        self.records.clone()
    }

    /// The CRC-32C of what the header's checksum covers.
    pub fn checksum(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.head()[CHECKED_FROM..]), &self.records)
    }

    /// Bytes of the whole batch.
    pub fn len(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The batches in what a store gave: slices that need not end where a batch does.
pub struct Batches {
    now: Bytes,
    next: std::vec::IntoIter<Bytes>,
}

impl Batches {
    pub fn new(slices: Vec<Bytes>) -> Self {
        Self { now: Bytes::new(), next: slices.into_iter() }
    }

    /// Whether what is left is no whole batch. Asked when there is no next one.
    pub fn is_cut(&self) -> bool {
        !self.now.is_empty()
    }

    /// The batch whose header is all that is left of one slice, with the records in the next one:
    /// as [`Batch::head`] and [`Batch::records`] are stored. They need not be joined.
    fn across(&mut self, next: &Bytes) -> Option<Batch> {
        let header = Header::read(&self.now).filter(|_| self.now.len() == HEADER_BYTES)?;
        let len = header.whole_bytes()? - HEADER_BYTES;
        if len > next.len() {
            return None;
        }
        self.now = next.clone();
        Some(Batch { header, records: self.now.split_to(len) })
    }

    /// Copies what is left of one slice, and as many slices behind it as its batch is long, each
    /// once. Behind a length that no batch has there is nothing to be found.
    fn join(&mut self, next: &Bytes) {
        let mut joined = BytesMut::from(&self.now[..]);
        joined.extend_from_slice(next);
        loop {
            let wanted = Header::read(&joined).map_or(Some(HEADER_BYTES), |h| h.whole_bytes());
            let Some(wanted) = wanted else {
                self.next = Vec::new().into_iter();
                break;
            };
            match self.next.as_slice().first() {
                Some(next) if joined.len() < wanted => joined.extend_from_slice(next),
                _ => break,
            }
            self.next.next();
        }
        self.now = joined.freeze();
    }
}

impl Iterator for Batches {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        loop {
            if let Some(batch) = Batch::split_off(&mut self.now) {
                return Some(batch);
            }
            let next = self.next.next()?;
            if self.now.is_empty() {
                self.now = next;
            } else if let Some(batch) = self.across(&next) {
                return Some(batch);
            } else {
                self.join(&next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::Codec;
    use crate::record::testing::from_kafka;

    #[test]
    fn sequences_wrap_to_zero() {
        // `DefaultRecordBatch.incrementSequence` of Kafka: MAX, then 0.
        let bytes = [0; HEADER_BYTES];
        let mut header = Header::read(&bytes).unwrap();
        (header.base_sequence, header.last_offset_delta) = (i32::MAX - 1, 2);
        assert_eq!(header.last_sequence(), 0);
    }

    #[test]
    fn a_header_is_written_as_it_was_read() {
        let mut bytes: Vec<u8> = (1..=HEADER_BYTES as u8).collect();
        bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
        let batch = Batch::split_off(&mut bytes.clone().into()).unwrap();
        assert_eq!(batch.head(), bytes[..]);
    }

    #[test]
    fn a_batch_of_append_time_gets_its_time_without_a_copy_of_its_records() {
        let mut batch = from_kafka(Codec::Gzip);
        let records = batch.records();
        batch.set_append_time(1_800_000_000_000);
        assert_eq!((batch.header.attributes, batch.header.max_timestamp), (9, 1_800_000_000_000));
        assert_eq!(batch.checksum(), batch.header.crc);
        assert_eq!(batch.records().as_ptr(), records.as_ptr());
        let mut stored = [&batch.head()[..], &records].concat().into();
        assert_eq!(Batch::split_off(&mut stored).unwrap().header, batch.header);
    }

    #[test]
    fn batches_are_found_wherever_their_slices_end() {
        let batch = from_kafka(Codec::None);
        let bytes = batch.to_bytes();
        let three = Bytes::from(bytes.repeat(3));
        for cut in 0..three.len() {
            let mut batches = Batches::new(vec![three.slice(..cut), three.slice(cut..)]);
            let count = batches.by_ref().inspect(|b| assert_eq!(b.to_bytes(), bytes)).count();
            assert_eq!((count, batches.is_cut()), (3, false), "{cut}");
        }
        let mut batches = Batches::new(vec![three.slice(..three.len() - 1)]);
        assert_eq!((batches.by_ref().count(), batches.is_cut()), (2, true));
    }

    #[test]
    fn a_batch_in_very_many_slices_is_copied_once() {
        // If each slice had all before it copied again, this would take half a terabyte of copies.
        let records = vec![7; 1 << 20];
        let mut bytes =
            Header { batch_length: 49 + (1 << 20), ..Header::default() }.encode().to_vec();
        bytes.extend_from_slice(&records);
        let bytes = Bytes::from(bytes);
        let mut batches = Batches::new((0..bytes.len()).map(|at| bytes.slice(at..=at)).collect());
        assert!(batches.next().unwrap().records() == records);
        assert!(batches.next().is_none() && !batches.is_cut());
    }

    #[test]
    fn behind_a_length_that_no_batch_has_nothing_is_found() {
        let good = from_kafka(Codec::None).to_bytes();
        for batch_length in [-1, 0, 48] {
            let bad = Header { batch_length, ..Header::default() }.encode();
            let bad = Bytes::copy_from_slice(&bad);
            for cut in 0..bad.len() {
                let slices = vec![good.clone(), bad.slice(..cut), bad.slice(cut..), good.clone()];
                let mut batches = Batches::new(slices);
                assert_eq!((batches.by_ref().count(), batches.is_cut()), (1, true));
                assert!(batches.next().is_none());
            }
        }
    }

    #[test]
    fn offsets_do_not_overflow() {
        let offsets = |base_offset, last_offset_delta| {
            let header = Header { base_offset, last_offset_delta, ..Header::default() };
            (header.last_offset(), header.next_offset())
        };
        assert_eq!(offsets(5, 2), (7, 8));
        assert_eq!(offsets(i64::MAX, 0), (i64::MAX, i64::MAX));
        assert_eq!(offsets(i64::MAX, i32::MAX), (i64::MAX, i64::MAX));
        assert_eq!(offsets(i64::MIN, -1), (i64::MIN, i64::MIN + 1));
    }

    #[test]
    fn records_in_a_slice_of_their_own_are_not_copied() {
        let batch = from_kafka(Codec::None);
        let head = Bytes::copy_from_slice(&batch.head());
        let slices = vec![head.clone(), batch.records(), head, batch.records()];
        let found: Vec<_> = Batches::new(slices).collect();
        assert_eq!(found.len(), 2);
        for found in found {
            assert_eq!(found.records().as_ptr(), batch.records().as_ptr());
            assert_eq!(found.to_bytes(), batch.to_bytes());
        }
    }

    #[test]
    fn a_batch_that_is_kept_does_not_keep_a_much_larger_frame() {
        let split = |frame_bytes: usize| {
            let mut frame = vec![7; frame_bytes];
            frame[8..12].copy_from_slice(&288_i32.to_be_bytes());
            let frame = Bytes::from(frame);
            let mut batch = Batch::split_off(&mut frame.clone()).unwrap();
            batch.detach(frame.len());
            assert_eq!(batch.records(), frame.slice(HEADER_BYTES..300));
            // What nobody else shares is unique.
            drop(batch.clone());
            (frame.is_unique(), batch.len())
        };
        assert_eq!(split(2400), (true, 300));
        assert_eq!(split(1900), (false, 300), "copying would save too little");
    }
}
