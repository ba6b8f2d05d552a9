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

use super::keys::{Name, Position};
use crate::protocol::wire::Uuid;
use crate::record::batch::{self, Batch};
use crate::store::{Owner, PartitionId, StoreError};
use bytes::{Buf, BufMut, Bytes, BytesMut, TryGetError};

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

    /// The header of a body of these parts.
    pub(super) fn encode<'a>(
        &self,
        length: u64,
        body: impl IntoIterator<Item = &'a [u8]>,
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
        let head = crc32c::crc32c(&bytes[..CRC_AT]);
        let crc = body.into_iter().fold(head, crc32c::crc32c_append);
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
        match &self.body {
            Body::Batches { batches, .. } => batches.iter().map(Batch::len).sum(),
            Body::LogStart(_) => 0,
        }
    }

    /// Bytes that it takes in an object.
    pub(super) fn stored_bytes(&self) -> usize {
        FRAME_BYTES + self.len()
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
    pub stored: Vec<Stored>,
}

/// An object of the journal as it is put: a list of slices.
#[derive(Debug)]
pub(super) struct Object {
    pub parts: Vec<Bytes>,
    pub bytes: u64,
    pub frames: Vec<Placed>,
}

/// Lays frames out as an object. Record bytes are not copied: all that is not a producer's is one
/// buffer, of which each part is a slice.
pub(super) fn encode_journal(at: Position, nonce: u64, frames: Vec<Frame>) -> Object {
    let mut head = BytesMut::with_capacity(HEADER_BYTES + frames.len() * FRAME_BYTES);
    head.put_bytes(0, HEADER_BYTES);
    // By batch: where its header ends in the buffer; its records follow there.
    let mut cuts = Vec::new();
    for frame in &frames {
        frame.encode(&mut head);
        if let Body::Batches { batches, .. } = &frame.body {
            for batch in batches {
                head.put_slice(&batch.head());
                cuts.push((head.len(), batch.records()));
            }
        }
    }
    let records: usize = cuts.iter().map(|(_, records)| records.len()).sum();
    let length = (head.len() - HEADER_BYTES + records) as u64;
    let body = pieces(&head, &cuts);
    let header = Header::at(Kind::Journal, at, nonce).encode(length, body);
    head[..HEADER_BYTES].copy_from_slice(&header);
    let head = head.freeze();

    let mut parts = Vec::with_capacity(cuts.len() * 2 + 1);
    let mut from = 0;
    for (cut, records) in &cuts {
        parts.push(head.slice(from..*cut));
        parts.push(records.clone());
        from = *cut;
    }
    if from < head.len() {
        parts.push(head.slice(from..));
    }
    let frames = place(frames);
    Object { parts, bytes: HEADER_BYTES as u64 + length, frames }
}

/// The body in order.
fn pieces<'a>(head: &'a [u8], cuts: &'a [(usize, Bytes)]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(HEADER_BYTES).chain(cuts.iter().map(|(cut, _)| *cut));
    let last = cuts.last().map_or(HEADER_BYTES, |(cut, _)| *cut);
    starts
        .zip(cuts)
        .flat_map(move |(from, (cut, records))| [&head[from..*cut], records.as_ref()])
        .chain(std::iter::once(&head[last..]))
}

/// Finds where each frame's batches came to stand.
fn place(frames: Vec<Frame>) -> Vec<Placed> {
    let mut at = HEADER_BYTES as u64;
    let place = |frame: Frame| {
        let (offset, length) = (at + FRAME_BYTES as u64, frame.len() as u64);
        at = offset + length;
        let stored = match &frame.body {
            Body::LogStart(_) => Vec::new(),
            Body::Batches { batches, .. } => batches
                .iter()
                // A copy of the header, as it would keep those of all of the object's batches.
                .map(Stored::from)
                .collect(),
        };
        Placed { frame, offset, length, stored }
    };
    frames.into_iter().map(place).collect()
}

/// What stands at a place in the journal.
#[derive(Debug)]
pub(super) enum Found {
    Frames(Vec<Placed>),
    Fence(Fence),
}

/// Closes an epoch and opens another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub next_epoch: i32,
    pub owner: Owner,
}

pub(super) fn decode_journal(object: &Bytes) -> Result<(Header, Found), Malformed> {
    let (header, body) = open(object)?;
    let found = match header.kind {
        Kind::Journal => Found::Frames(decode_frames(body)?),
        Kind::Fence => Found::Fence(decode_fence(body)?),
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

fn decode_frames(mut body: Bytes) -> Result<Vec<Placed>, Malformed> {
    let whole = body.len();
    let mut frames = Vec::new();
    while body.has_remaining() {
        let FrameHead { kind, partition, leader_epoch, offset, length } =
            FrameHead::take(&mut body)?;
        let at = (HEADER_BYTES + whole - body.len()) as u64;
        let bytes = batch::detached(body.split_to(length), whole);
        let (body, stored) = match kind {
            BATCHES => {
                let (batches, stored) = split_batches(bytes, offset)?;
                (Body::Batches { base_offset: offset, batches }, stored)
            }
            LOG_START if length == 0 => (Body::LogStart(offset), Vec::new()),
            _ => return Err(Malformed("a frame of an unknown kind")),
        };
        let frame = Frame { partition, leader_epoch, body };
        frames.push(Placed { frame, offset: at, length: length as u64, stored });
    }
    Ok(frames)
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

pub(super) fn encode_fence(at: Position, nonce: u64, fence: &Fence) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u32(fence.next_epoch.cast_unsigned());
    body.put_u32(fence.owner.pid);
    body.put_u64(fence.owner.started);
    put_text(&mut body, &fence.owner.address);
    put_text(&mut body, &fence.owner.host);
    let header = Header::at(Kind::Fence, at, nonce).encode(body.len() as u64, [&body[..]]);
    [&header[..], &body[..]].concat().into()
}

fn decode_fence(mut body: Bytes) -> Result<Fence, Malformed> {
    let next_epoch = body.try_get_u32()?;
    let next_epoch = i32::try_from(next_epoch).map_err(|_| Malformed("a negative epoch"))?;
    let (pid, started) = (body.try_get_u32()?, body.try_get_u64()?);
    let (address, host) = (take_text(&mut body)?, take_text(&mut body)?);
    Ok(Fence { next_epoch, owner: Owner { address, host, pid, started } })
}

fn put_text(out: &mut BytesMut, text: &str) {
    // Addresses and host names are far shorter; one that is not is cut, as it is only shown.
    let len = text.floor_char_boundary(usize::from(u16::MAX));
    out.put_u16(len as u16);
    out.put_slice(&text.as_bytes()[..len]);
}

fn take_text(body: &mut Bytes) -> Result<String, Malformed> {
    let len = usize::from(body.try_get_u16()?);
    if len > body.len() {
        return Err(Malformed("it ends early"));
    }
    String::from_utf8(body.split_to(len).into()).map_err(|_| Malformed("a text that is not UTF-8"))
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
    use crate::store::objectlog::samples::{batches, flat, frame, partition};

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
        let Found::Frames(frames) = found else { panic!("frames") };
        assert_eq!(frames.len(), 3);
        for (read, written) in frames.iter().zip(&object.frames) {
            assert_eq!((read.offset, read.length), (written.offset, written.length));
            let range = read.offset as usize..(read.offset + read.length) as usize;
            let whole = |stored: &[Stored]| -> Vec<u8> {
                stored.iter().flat_map(|s| [s.head.to_vec(), s.tail.to_vec()].concat()).collect()
            };
            assert_eq!(whole(&written.stored), bytes[range]);
            assert_eq!(whole(&read.stored), whole(&written.stored));
        }
        assert!(matches!(frames[1].frame.body, Body::LogStart(9)));
    }

    #[test]
    fn a_small_frame_that_is_kept_does_not_keep_its_whole_object() {
        let small = || Frame { partition: partition(1), ..frame(3, batches(0, &[1])) };
        let frames = vec![small(), frame(3, batches(0, &[1; 50])), small()];
        let written = encode_journal(Position { epoch: 3, seq: 7 }, 42, frames);
        let bytes = flat(&written.parts);
        let Found::Frames(mut read) = decode_journal(&bytes).unwrap().1 else { panic!("frames") };
        let large = read.remove(1).stored;
        let small: Vec<_> = read.into_iter().map(|placed| placed.stored).collect();
        assert!(!bytes.is_unique(), "most of it is shared");
        drop(large);
        assert!(bytes.is_unique());
        assert_eq!(small.len(), 2);

        let kept = written.frames[0].stored.clone();
        assert_eq!(kept[0].head.len(), batch::HEADER_BYTES);
        drop((written.frames, written.parts));
        assert!(kept[0].head.is_unique());
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
                let head = header.encode(body.len() as u64, [&body[..]]);
                let decoded = decode_journal(&[&head[..], &body[..]].concat().into());
                assert!(decoded.is_err() || body.is_empty() || kind == Kind::Fence);
            }
        }
    }

    #[test]
    fn a_fence_names_the_next_epoch_and_its_owner() {
        let owner = Owner { address: "a:1".into(), host: "h".into(), pid: 7, started: 9 };
        let fence = Fence { next_epoch: 5, owner };
        let bytes = encode_fence(Position { epoch: 4, seq: 2 }, 1, &fence);
        let (header, Found::Fence(read)) = decode_journal(&bytes).unwrap() else {
            panic!("a fence")
        };
        assert_eq!((header.epoch, header.number), (4, 2));
        assert_eq!(read, fence);
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
