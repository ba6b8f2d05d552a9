//! The bytes of the object log's objects: the header they share, journal objects and fences.
//!
//! ```text
//!  0 magic    "KELP"
//!  4 version  u16   of the format: 1, or 2 of a segment or checkpoint that refers to the journal
//!  6 kind     u16   1 journal, 2 fence, 3 segment, 4 checkpoint; 5 command and 6 snapshot of the
//!                   metadata log; 7 registration
//!  8 epoch    u32   of the writer; a fence has the epoch that it closes; 0 where there is none
//! 12 number   u64   seq, or count
//! 20 nonce    u64   random, one for each start of a process
//! 28 length   u64   of what follows the header
//! 36 crc32c   u32   of the 36 bytes above and of the body (of a segment: of the 36 bytes)
//! 40 body
//!
//! journal: frames        fence: next epoch u32, pid u32, started u64,
//!  0 kind     u8          address and host, each u16 length and UTF-8
//!  1 topic id 16 bytes
//! 17 partition     i32
//! 21 leader epoch  i32
//! 25 base offset   i64   (kind 2: the new log start)
//! 33 length        u32   of the batches (kind 2: 0)
//! 37 batches
//! ```
//!
//! All numbers are big-endian. Decoders take any bytes: they answer an error, never panic, and
//! allocate no more than a small multiple of what they were given.

use super::fence::Fence;
use super::keys::{Name, Position};
use crate::protocol::wire::Uuid;
use crate::record::batch::{self, Batch};
use crate::store::{PartitionId, StoreError};
use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};
use std::ops::Range;
use std::sync::Arc;

pub(super) const HEADER_BYTES: usize = 40;
const MAGIC: &[u8; 4] = b"KELP";
const VERSION: u16 = 1;
/// Of a segment with an index that refers to the journal, and of a checkpoint with such a segment.
pub(super) const REFERRING: u16 = 2;
/// Where the checksum stands in the header.
const CRC_AT: usize = 36;
pub(super) const FRAME_BYTES: usize = 37;
const BATCHES: u8 = 1;
const LOG_START: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Journal = 1,
    Fence = 2,
    Segment = 3,
    Checkpoint = 4,
    Command = 5,
    Snapshot = 6,
    Registration = 7,
}

/// Bytes that are not what they must be; the text says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl From<TryGetError> for Malformed {
    fn from(_: TryGetError) -> Self {
        Self("it ends early")
    }
}

impl Malformed {
    pub(super) fn at(self, key: &str) -> StoreError {
        StoreError::Corrupt(format!("{key}: {}", self.0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub version: u16,
    pub kind: Kind,
    pub epoch: i32,
    pub number: u64,
    pub nonce: u64,
}

impl Header {
    pub(super) fn at(kind: Kind, at: Position, nonce: u64) -> Self {
        Self { version: VERSION, kind, epoch: at.epoch, number: at.seq, nonce }
    }

    /// For an object that no epoch's owner writes.
    pub(super) fn numbered(kind: Kind, number: u64, nonce: u64) -> Self {
        Self { version: VERSION, kind, epoch: 0, number, nonce }
    }

    pub(super) fn named(kind: Kind, name: Name, nonce: u64) -> Self {
        Self { version: VERSION, kind, epoch: name.epoch, number: name.count, nonce }
    }

    pub(super) fn position(&self) -> Position {
        Position { epoch: self.epoch, seq: self.number }
    }

    /// The header of a body.
    pub(super) fn encode(&self, body: &[u8]) -> [u8; HEADER_BYTES] {
        self.encode_with(body.len() as u64, |crc| crc32c::crc32c_append(crc, body))
    }

    /// The header of a body of so many bytes. It is told the checksum of what is above, and says that of both.
    pub(super) fn encode_with(
        &self,
        length: u64,
        with_body: impl FnOnce(u32) -> u32,
    ) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut b = &mut bytes[..];
        b.put_slice(MAGIC);
        b.put_u16(self.version);
        b.put_u16(self.kind as u16);
        b.put_u32(self.epoch.cast_unsigned());
        b.put_u64(self.number);
        b.put_u64(self.nonce);
        b.put_u64(length);
        let crc = with_body(crc32c::crc32c(&bytes[..CRC_AT]));
        bytes[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Reads the header of an object; the checksum is the second value.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, u64, u32), Malformed> {
        let mut b = bytes;
        let mut magic = [0; 4];
        b.try_copy_to_slice(&mut magic)?;
        if magic != *MAGIC {
            return Err(Malformed("it is not one of Kelp's objects"));
        }
        let version = b.try_get_u16()?;
        let kind = match b.try_get_u16()? {
            1 => Kind::Journal,
            2 => Kind::Fence,
            3 => Kind::Segment,
            4 => Kind::Checkpoint,
            5 => Kind::Command,
            6 => Kind::Snapshot,
            7 => Kind::Registration,
            _ => return Err(Malformed("its kind is not known")),
        };
        let may_refer = matches!(kind, Kind::Segment | Kind::Checkpoint);
        if version != VERSION && !(version == REFERRING && may_refer) {
            return Err(Malformed("its format has a version that is not known"));
        }
        let epoch = i32::try_from(b.try_get_u32()?).map_err(|_| Malformed("a negative epoch"))?;
        let (number, nonce) = (b.try_get_u64()?, b.try_get_u64()?);
        let (length, crc) = (b.try_get_u64()?, b.try_get_u32()?);
        Ok((Self { version, kind, epoch, number, nonce }, length, crc))
    }
}

/// Takes a whole object apart, its checksum checked.
pub(super) fn open(object: &Bytes) -> Result<(Header, Bytes), Malformed> {
    let (header, length, crc) = Header::read(object)?;
    let body = object.slice(HEADER_BYTES..);
    if body.len() as u64 != length {
        return Err(Malformed("its length is not what it says"));
    }
    if crc32c::crc32c_append(crc32c::crc32c(&object[..CRC_AT]), &body) != crc {
        return Err(Malformed("its checksum is wrong"));
    }
    Ok((header, body))
}

/// What a commit holds for one partition.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub partition: PartitionId,
    pub leader_epoch: i32,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Batches { base_offset: i64, batches: Vec<Batch> },
    LogStart(i64),
}

impl Frame {
    /// Bytes of the batches, without their frame.
    pub(super) fn len(&self) -> usize {
        self.batches().iter().map(Batch::len).sum()
    }

    /// Bytes that it takes in an object.
    pub(super) fn stored_bytes(&self) -> usize {
        FRAME_BYTES + self.len()
    }

    pub(super) fn batches(&self) -> &[Batch] {
        match &self.body {
            Body::Batches { batches, .. } => batches,
            Body::LogStart(_) => &[],
        }
    }

    fn encode(&self, head: &mut BytesMut) {
        let (kind, offset) = match &self.body {
            Body::Batches { base_offset, .. } => (BATCHES, *base_offset),
            Body::LogStart(offset) => (LOG_START, *offset),
        };
        head.put_u8(kind);
        head.put_slice(&self.partition.topic.0);
        head.put_i32(self.partition.partition);
        head.put_i32(self.leader_epoch);
        head.put_i64(offset);
        head.put_u32(self.len() as u32);
    }
}

/// A stored batch, as it is given to readers: `head` then `tail`.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub base_offset: i64,
    pub last_offset: i64,
    pub max_timestamp: i64,
    pub head: Bytes,
    pub tail: Bytes,
}

impl From<&Batch> for Stored {
    fn from(batch: &Batch) -> Self {
        let head = Bytes::copy_from_slice(&batch.head());
        Self::new(&batch.header, head, batch.records())
    }
}

impl Stored {
    fn new(header: &batch::Header, head: Bytes, tail: Bytes) -> Self {
        let (base_offset, last_offset) = (header.base_offset, header.last_offset());
        Self { base_offset, last_offset, max_timestamp: header.max_timestamp, head, tail }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }
}

/// A frame with its place in its object.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub frame: Frame,
    /// Where the batches are.
    pub offset: u64,
    pub length: u64,
}

/// What an object of the journal holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Commit {
    pub frames: Vec<Placed>,
    /// The batches of all frames, in their order.
    pub stored: Arc<[Stored]>,
}

/// An object of the journal as it is put: a list of slices.
#[derive(Debug)]
pub(super) struct Object {
    pub parts: Vec<Bytes>,
    pub bytes: u64,
    pub commit: Commit,
}

/// A batch shorter than this is copied, where a longer one is a slice of what it came in: that costs less
/// than to count references to it and to hand two slices to the kernel.
pub(super) const SMALL_BYTES: usize = 4 << 10;

/// Where a batch came to stand in the buffer of an object, and the records that follow there.
struct Cut {
    range: Range<usize>,
    records: Bytes,
}

/// Lays frames out as an object. The records of large batches are not copied: all else is one buffer, of
/// which each part is a slice.
pub(super) fn encode_journal(at: Position, nonce: u64, frames: Vec<Frame>) -> Object {
    let own_bytes = |batch: &Batch| if is_small(batch) { batch.len() } else { batch::HEADER_BYTES };
    let batches = frames.iter().flat_map(Frame::batches);
    let own = batches.map(own_bytes).sum::<usize>() + HEADER_BYTES + frames.len() * FRAME_BYTES;
    let mut buffer = BytesMut::with_capacity(own);
    buffer.put_bytes(0, HEADER_BYTES);
    let mut cuts = Vec::new();
    for frame in &frames {
        frame.encode(&mut buffer);
        cuts.extend(frame.batches().iter().map(|batch| cut(&mut buffer, batch)));
    }
    let records: usize = cuts.iter().map(|cut| cut.records.len()).sum();
    let length = (buffer.len() - HEADER_BYTES + records) as u64;
    let header = Header::at(Kind::Journal, at, nonce);
    let header = header.encode_with(length, |crc| checksum(crc, &buffer, &cuts));
    buffer[..HEADER_BYTES].copy_from_slice(&header);
    let buffer = buffer.freeze();

    let mut parts = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().filter(|cut| !cut.records.is_empty()) {
        parts.push(buffer.slice(from..cut.range.end));
        parts.push(cut.records.clone());
        from = cut.range.end;
    }
    if from < buffer.len() {
        parts.push(buffer.slice(from..));
    }
    let batches = frames.iter().flat_map(Frame::batches);
    let stored = batches.zip(cuts).map(|(batch, cut)| stored(&buffer, batch, cut)).collect();
    let commit = Commit { frames: place(frames), stored };
    Object { parts, bytes: HEADER_BYTES as u64 + length, commit }
}

fn is_small(batch: &Batch) -> bool {
    batch.len() < SMALL_BYTES
}

fn cut(buffer: &mut BytesMut, batch: &Batch) -> Cut {
    let from = buffer.len();
    buffer.put_slice(&batch.head());
    let mut records = batch.records();
    if is_small(batch) {
        buffer.put_slice(&std::mem::take(&mut records));
    }
    Cut { range: from..buffer.len(), records }
}

/// The checksum of what has `crc`, with the body behind it.
fn checksum(crc: u32, buffer: &[u8], cuts: &[Cut]) -> u32 {
    let (mut crc, mut from) = (crc, HEADER_BYTES);
    for Cut { range, records } in cuts.iter().filter(|cut| !cut.records.is_empty()) {
        crc = crc32c::crc32c_append(crc, &buffer[from..range.start]);
        crc = batch::append_checksum(crc, &buffer[range.clone()], records);
        from = range.end;
    }
    crc32c::crc32c_append(crc, &buffer[from..])
}

fn stored(buffer: &Bytes, batch: &Batch, cut: Cut) -> Stored {
    let head = match cut.records.is_empty() {
        true => buffer.slice(cut.range),
        // A copy, as it would keep the buffer of all batches for who reads this one.
        false => Bytes::copy_from_slice(&buffer[cut.range]),
    };
    Stored::new(&batch.header, head, cut.records)
}

/// Finds where each frame's batches came to stand.
fn place(frames: Vec<Frame>) -> Vec<Placed> {
    let mut at = HEADER_BYTES as u64;
    let place = |frame: Frame| {
        let (offset, length) = (at + FRAME_BYTES as u64, frame.len() as u64);
        at = offset + length;
        Placed { frame, offset, length }
    };
    frames.into_iter().map(place).collect()
}

/// What stands at a place in the journal.
#[derive(Debug)]
pub(super) enum Found {
    Frames(Commit),
    Fence(Fence),
}

pub(super) fn decode_journal(object: &Bytes) -> Result<(Header, Found), Malformed> {
    let (header, body) = open(object)?;
    let found = match header.kind {
        Kind::Journal => Found::Frames(decode_frames(body)?),
        Kind::Fence => Found::Fence(Fence::decode(body)?),
        _ => return Err(Malformed("it is no object of a journal")),
    };
    Ok((header, found))
}

/// What stands before the batches of a frame.
struct FrameHead {
    kind: u8,
    partition: PartitionId,
    leader_epoch: i32,
    offset: i64,
    length: usize,
}

impl FrameHead {
    /// Takes it from before its batches, which are there.
    fn take(body: &mut Bytes) -> Result<Self, Malformed> {
        let kind = body.try_get_u8()?;
        let mut topic = Uuid::ZERO;
        body.try_copy_to_slice(&mut topic.0)?;
        let partition = PartitionId { topic, partition: body.try_get_i32()? };
        let leader_epoch = body.try_get_i32()?;
        let offset = body.try_get_i64()?;
        let length = body.try_get_u32()? as usize;
        if partition.partition < 0 || leader_epoch < 0 || offset < 0 || length > body.len() {
            return Err(Malformed("a frame that cannot be"));
        }
        Ok(Self { kind, partition, leader_epoch, offset, length })
    }
}

/// Takes the batches out of frames of one partition that lie one behind the other.
pub(super) fn unframe(
    mut frames: Bytes,
    partition: PartitionId,
    batches: &mut Vec<Bytes>,
) -> Result<(), Malformed> {
    while frames.has_remaining() {
        let head = FrameHead::take(&mut frames)?;
        if head.kind != BATCHES || head.partition != partition {
            return Err(Malformed("a frame of something else"));
        }
        batches.push(frames.split_to(head.length));
    }
    Ok(())
}

fn decode_frames(mut body: Bytes) -> Result<Commit, Malformed> {
    let whole = body.len();
    let (mut frames, mut stored) = (Vec::new(), Vec::new());
    while body.has_remaining() {
        let FrameHead { kind, partition, leader_epoch, offset, length } =
            FrameHead::take(&mut body)?;
        let at = (HEADER_BYTES + whole - body.len()) as u64;
        let bytes = batch::detached(body.split_to(length), whole);
        let body = match kind {
            BATCHES => {
                let (batches, of_frame) = split_batches(bytes, offset)?;
                stored.extend(of_frame);
                Body::Batches { base_offset: offset, batches }
            }
            LOG_START if length == 0 => Body::LogStart(offset),
            _ => return Err(Malformed("a frame of an unknown kind")),
        };
        let frame = Frame { partition, leader_epoch, body };
        frames.push(Placed { frame, offset: at, length: length as u64 });
    }
    Ok(Commit { frames, stored: stored.into() })
}

/// Takes batches apart that follow each other from `base_offset` on.
pub(super) fn split_batches(bytes: Bytes, base_offset: i64) -> Result<Split, Malformed> {
    split(bytes, base_offset, false)
}

/// Takes batches apart of which the first is at `base_offset`; what was compacted away leaves gaps
/// between the others.
pub(super) fn split_rising(bytes: Bytes, base_offset: i64) -> Result<Split, Malformed> {
    split(bytes, base_offset, true)
}

pub(super) type Split = (Vec<Batch>, Vec<Stored>);

fn split(mut bytes: Bytes, base_offset: i64, has_gaps: bool) -> Result<Split, Malformed> {
    let (mut batches, mut stored) = (Vec::new(), Vec::new());
    let mut next = base_offset;
    while !bytes.is_empty() {
        let mut whole = bytes.clone();
        let batch = Batch::split_off(&mut bytes).ok_or(Malformed("a batch that is cut short"))?;
        whole.truncate(batch.len());
        let header = &batch.header;
        let base_offset = header.base_offset;
        let is_behind =
            base_offset == next || has_gaps && base_offset > next && !batches.is_empty();
        if !is_behind || header.last_offset_delta < 0 {
            return Err(Malformed("a batch at another offset"));
        }
        let last = base_offset.checked_add(i64::from(header.last_offset_delta));
        next = last
            .and_then(|last| last.checked_add(1))
            .ok_or(Malformed("an offset that cannot be"))?;
        stored.push(Stored::new(header, whole, Bytes::new()));
        batches.push(batch);
    }
    if batches.is_empty() {
        return Err(Malformed("a frame without a batch"));
    }
    Ok((batches, stored))
}

/// True if `object` is exactly these parts, one after the other.
pub(super) fn is_equal(object: &[u8], parts: &[Bytes]) -> bool {
    let mut left = object;
    let mut takes = |part: &Bytes| match left.strip_prefix(part.as_ref()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    parts.iter().all(&mut takes) && left.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch;
    use crate::store::objectlog::samples::{batches, flat, frame, large_batch, partition};

    fn object() -> Object {
        let start = Frame { partition: partition(1), leader_epoch: 3, body: Body::LogStart(9) };
        let frames = vec![frame(3, batches(5, &[2, 1])), start, frame(3, batches(8, &[4]))];
        encode_journal(Position { epoch: 3, seq: 7 }, 42, frames)
    }

    #[test]
    fn a_journal_object_reads_back_with_every_frame_in_its_place() {
        let object = object();
        let bytes = flat(&object.parts);
        assert_eq!(bytes.len() as u64, object.bytes);
        let (header, found) = decode_journal(&bytes).unwrap();
        assert_eq!(header.position(), Position { epoch: 3, seq: 7 });
        assert_eq!(header.nonce, 42);
        let Found::Frames(Commit { frames, stored }) = found else { panic!("frames") };
        assert_eq!(frames.len(), 3);
        let mut stored = stored.iter().zip(object.commit.stored.iter());
        for (read, written) in frames.iter().zip(&object.commit.frames) {
            assert_eq!((read.offset, read.length), (written.offset, written.length));
            let range = read.offset as usize..(read.offset + read.length) as usize;
            let whole = |s: &Stored| [&s.head[..], &s.tail].concat();
            let of_frame = stored.by_ref().take(read.frame.batches().len());
            let (read, written): (Vec<_>, Vec<_>) =
                of_frame.map(|(read, written)| (whole(read), whole(written))).unzip();
            assert_eq!(read, written);
            assert_eq!(read.concat(), bytes[range]);
        }
        assert!(stored.next().is_none());
        assert!(matches!(frames[1].frame.body, Body::LogStart(9)));
    }

    #[test]
    fn a_small_frame_that_is_kept_does_not_keep_the_object_it_was_read_from() {
        let small = || Frame { partition: partition(1), ..frame(3, batches(0, &[1])) };
        let frames = vec![small(), frame(3, batches(0, &[1; 50])), small()];
        let written = encode_journal(Position { epoch: 3, seq: 7 }, 42, frames);
        let bytes = flat(&written.parts);
        let Found::Frames(read) = decode_journal(&bytes).unwrap().1 else { panic!("frames") };
        let kept = [&read.stored[0], &read.stored[51]].map(Stored::clone);
        assert!(!bytes.is_unique(), "most of it is shared");
        drop(read);
        assert!(bytes.is_unique());
        assert_eq!(kept[0].head, kept[1].head);
    }

    #[test]
    fn small_batches_are_one_part_and_the_records_of_a_large_one_are_not_copied() {
        let small = || batches(0, &[1, 1]);
        let large = || vec![large_batch(2)];
        let frames = vec![frame(3, small()), frame(3, large()), frame(3, small())];
        let records = frames[1].batches()[0].records();
        let Object { parts, commit, .. } = encode_journal(Position::default(), 42, frames);
        let lens: Vec<_> = parts.iter().map(Bytes::len).collect();
        let of_small = FRAME_BYTES + 2 * small()[0].len();
        let head = batch::HEADER_BYTES;
        let before = HEADER_BYTES + of_small + FRAME_BYTES + head;
        assert_eq!(lens, [before, records.len(), of_small]);
        assert_eq!((parts[1].as_ptr(), parts[1].len()), (records.as_ptr(), records.len()));
        assert!(decode_journal(&flat(&parts)).is_ok(), "the checksum is right");

        let [_, _, large, _, _] = &commit.stored[..] else { panic!("five batches") };
        assert_eq!(large.tail.as_ptr(), records.as_ptr());
        let kept = large.head.clone();
        drop(commit);
        assert!(kept.is_unique(), "it would keep the small ones");
    }

    #[test]
    fn no_changed_or_cut_byte_goes_unnoticed() {
        let bytes = flat(&object().parts);
        for len in 0..bytes.len() {
            assert!(decode_journal(&bytes.slice(..len)).is_err(), "cut at {len}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0x40;
            assert!(decode_journal(&changed.into()).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn garbage_behind_a_right_checksum_is_refused_and_never_panics() {
        let mut state = 1_u64;
        for round in 0..20_000 {
            let mut body: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
                (state >> 56) as u8
            })
            .take((round % 90) as usize)
            .collect();
            if let Some(first) = body.first_mut() {
                *first = 1 + (round % 2) as u8;
            }
            for kind in [Kind::Journal, Kind::Fence, Kind::Segment, Kind::Checkpoint] {
                let header = Header { version: VERSION, kind, epoch: 1, number: 1, nonce: 1 };
                let head = header.encode(&body);
                let decoded = decode_journal(&[&head[..], &body[..]].concat().into());
                assert!(decoded.is_err() || body.is_empty() || kind == Kind::Fence);
            }
        }
    }

    #[test]
    fn bytes_are_equal_only_as_a_whole() {
        let parts = [Bytes::from_static(b"ab"), Bytes::from_static(b"c")];
        assert!(is_equal(b"abc", &parts));
        assert!(
            !is_equal(b"abcd", &parts) && !is_equal(b"ab", &parts) && !is_equal(b"abd", &parts)
        );
    }
}
