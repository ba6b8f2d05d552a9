//! Segments: raw batches of many partitions in one object, with an index for each range.
//!
//! ```text
//! header (see format), then chunks of whole batches, then one index for each range:
//!  0 topic id 16 bytes
//! 16 partition      i32
//! 20 base offset    i64 ┐ the range: what was compacted away leaves gaps in it, also at its ends
//! 28 end offset     i64 ┘
//! 36 chunks         u32, each:
//!      base offset i64, largest timestamp i64, place in the object u64, length u32, crc32c u32
//!      and, if any chunk of the index is in the journal: epoch u32, seq u64 of its object there; epoch
//!      0 of a chunk in the segment
//!  … crc32c         u32   of the index
//! ```
//!
//! A chunk in the journal is whole frames of the partition. Its checksum is that of their batches.
//!
//! What a segment holds never changes, and its name is used once. The checkpoint's entries say
//! where the indexes are.

use super::format::{self, HEADER_BYTES, Header, Kind, Malformed, Stored};
use super::keys::{Name, Position};
use super::log::FramePlace;
use super::referring::Referred;
use super::state::Entry;
use crate::protocol::wire::Uuid;
use crate::record::batch::append_checksum;
use crate::store::PartitionId;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use std::ops::Range as Numbers;
use std::sync::Arc;

/// Bytes after which a chunk is closed: what is read from a segment at once.
const CHUNK_BYTES: u64 = 256 << 10;
const CHUNK_ENTRY_BYTES: usize = 32;
/// Of what says where in the journal a chunk is.
const POSITION_BYTES: usize = 12;

/// The timestamp of a batch that has none.
const NO_TIMESTAMP: i64 = -1;

/// Where batches are in a segment, and how to find an offset or a time among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub partition: PartitionId,
    pub base_offset: i64,
    pub end_offset: i64,
    pub chunks: Vec<Chunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub base_offset: i64,
    pub max_timestamp: i64,
    pub offset: u64,
    pub length: u32,
    pub crc: u32,
    /// The object of the journal that it is in, if it is not in the segment.
    pub at: Option<Position>,
}

impl Chunk {
    /// Whether what begins there lies behind it in the same object.
    fn is_before(&self, at: Option<Position>, offset: u64) -> bool {
        self.at == at && self.offset.checked_add(self.length.into()) == Some(offset)
    }
}

impl Index {
    /// The number of the chunk that holds `offset`, which is in the range.
    pub(super) fn chunk_of(&self, offset: i64) -> usize {
        self.chunks.partition_point(|chunk| chunk.base_offset <= offset).saturating_sub(1)
    }

    /// Where the chunk's offsets end.
    pub(super) fn end_of(&self, chunk: usize) -> i64 {
        self.chunks.get(chunk + 1).map_or(self.end_offset, |next| next.base_offset)
    }

    /// The chunks around this one that lie one behind the other in one object.
    pub(super) fn row(&self, chunk: usize) -> Numbers<usize> {
        let joined = |pair: &[Chunk]| pair[0].is_before(pair[1].at, pair[1].offset);
        let before = self.chunks[..=chunk].windows(2).rev().take_while(|pair| joined(pair)).count();
        let behind = self.chunks[chunk..].windows(2).take_while(|pair| joined(pair)).count();
        chunk - before..chunk + behind + 1
    }

    /// The batches of chunks that lie one behind the other, out of what was read of their object.
    pub(super) fn batches(&self, chunks: &[Chunk], bytes: &Bytes) -> Result<Bytes, Malformed> {
        let (mut rest, mut parts) = (bytes.clone(), Vec::new());
        let mut has_frames = false;
        for chunk in chunks {
            if rest.len() < chunk.length as usize {
                return Err(Malformed("it ends early"));
            }
            let (bytes, first) = (rest.split_to(chunk.length as usize), parts.len());
            match chunk.at {
                None => parts.push(bytes),
                Some(_) => {
                    format::unframe(bytes, self.partition, &mut parts)?;
                    has_frames = true;
                }
            }
            let crc = |crc, part: &Bytes| crc32c::crc32c_append(crc, part);
            if parts[first..].iter().fold(0, crc) != chunk.crc {
                return Err(Malformed("a chunk's checksum is wrong"));
            }
        }
        Ok(match &parts[..] {
            _ if !has_frames => bytes.slice(..bytes.len() - rest.len()),
            [one] => one.clone(),
            // Without the frames between them.
            _ => parts.concat().into(),
        })
    }

    pub(super) fn refers(&self) -> bool {
        self.chunks.iter().any(|chunk| chunk.at.is_some())
    }

    fn chunk_bytes(refers: bool) -> usize {
        CHUNK_ENTRY_BYTES + if refers { POSITION_BYTES } else { 0 }
    }

    pub(super) fn encode(&self) -> Bytes {
        let refers = self.refers();
        let mut out = BytesMut::with_capacity(44 + self.chunks.len() * Self::chunk_bytes(refers));
        out.put_slice(&self.partition.topic.0);
        out.put_i32(self.partition.partition);
        out.put_i64(self.base_offset);
        out.put_i64(self.end_offset);
        out.put_u32(self.chunks.len() as u32);
        for chunk in &self.chunks {
            out.put_i64(chunk.base_offset);
            out.put_i64(chunk.max_timestamp);
            out.put_u64(chunk.offset);
            out.put_u32(chunk.length);
            out.put_u32(chunk.crc);
            if refers {
                let at = chunk.at.unwrap_or_default();
                out.put_u32(at.epoch.cast_unsigned());
                out.put_u64(at.seq);
            }
        }
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        out.freeze()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or(Malformed("it ends early"))?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
            return Err(Malformed("an index with a wrong checksum"));
        }
        let mut b = body;
        let mut topic = Uuid::ZERO;
        b.try_copy_to_slice(&mut topic.0)?;
        let partition = PartitionId { topic, partition: b.try_get_i32()? };
        let (base_offset, end_offset) = (b.try_get_i64()?, b.try_get_i64()?);
        let count = b.try_get_u32()? as usize;
        let is_of = |refers| count.checked_mul(Self::chunk_bytes(refers)) == Some(b.len());
        let refers = is_of(true);
        if count == 0 || !refers && !is_of(false) {
            return Err(Malformed("an index of another length"));
        }
        let mut chunks = Vec::with_capacity(count);
        for _ in 0..count {
            chunks.push(Chunk {
                base_offset: b.try_get_i64()?,
                max_timestamp: b.try_get_i64()?,
                offset: b.try_get_u64()?,
                length: b.try_get_u32()?,
                crc: b.try_get_u32()?,
                at: if refers { take_position(&mut b)? } else { None },
            });
        }
        let index = Self { partition, base_offset, end_offset, chunks };
        if index.refers() != refers {
            return Err(Malformed("an index that refers to nothing"));
        }
        index.is_in_order().then_some(index).ok_or(Malformed("an index out of order"))
    }

    fn is_in_order(&self) -> bool {
        let starts = self.chunks[0].base_offset >= self.base_offset;
        let rises = self.chunks.is_sorted_by(|a, b| a.base_offset < b.base_offset);
        starts && rises && self.chunks[self.chunks.len() - 1].base_offset < self.end_offset
    }
}

fn take_position(b: &mut &[u8]) -> Result<Option<Position>, Malformed> {
    let epoch = i32::try_from(b.try_get_u32()?).map_err(|_| Malformed("a negative epoch"))?;
    let at = Position { epoch, seq: b.try_get_u64()? };
    match at {
        Position { epoch: 0, seq: 0 } => Ok(None),
        // Before the first epoch is only its fence.
        Position { epoch: 0, .. } => Err(Malformed("a chunk in no epoch")),
        _ => Ok(Some(at)),
    }
}

/// A segment in the making.
pub(super) struct Builder {
    name: Name,
    nonce: u64,
    now_ms: i64,
    parts: Vec<Bytes>,
    bytes: u64,
    ranges: Vec<Range>,
    /// Objects of the journal that are referred to, with their sizes.
    referred: BTreeMap<Position, u64>,
}

/// A range in the making.
struct Range {
    index: Index,
    /// Of its batches.
    bytes: u64,
    /// The largest of its first batch.
    first_timestamp: i64,
    /// How old its batches are if they have no timestamps: retention must know.
    age: i64,
}

/// A segment as it is put.
pub(super) struct Segment {
    pub name: Name,
    pub parts: Vec<Bytes>,
    pub entries: Vec<(PartitionId, Entry)>,
    pub referring: Option<Referring>,
}

/// What a segment has in the journal.
pub(super) struct Referring {
    pub name: Name,
    pub referred: Referred,
    /// The indexes that say where, each with its entry.
    pub indexes: Vec<(Entry, Arc<Index>)>,
}

/// Where batches are that come into a chunk.
struct Piece {
    at: Option<Position>,
    offset: u64,
    length: u64,
}

impl Builder {
    pub(super) fn new(name: Name, nonce: u64, now_ms: i64) -> Self {
        let (parts, bytes) = (vec![Bytes::new()], HEADER_BYTES as u64);
        let (ranges, referred) = (vec![], BTreeMap::new());
        Self { name, nonce, now_ms, parts, bytes, ranges, referred }
    }

    /// Of the batches that it holds.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes - HEADER_BYTES as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Begins a range that need not begin with a batch, of batches that are so old if they do not
    /// say it.
    pub(super) fn begin(&mut self, partition: PartitionId, base_offset: i64, age: i64) {
        let index = Index { partition, base_offset, end_offset: base_offset, chunks: vec![] };
        self.ranges.push(Range { index, bytes: 0, first_timestamp: NO_TIMESTAMP, age });
    }

    /// Begins another range of a partition if the one that was begun has so many bytes.
    pub(super) fn split(&mut self, partition: PartitionId, base_offset: i64, most_bytes: u64) {
        let is_full =
            |range: &Range| range.index.partition == partition && range.bytes >= most_bytes;
        if self.ranges.last().is_some_and(is_full) {
            self.begin(partition, base_offset, self.now_ms);
        }
    }

    /// Makes the last range end at an offset, also if its last batch does not.
    pub(super) fn end_at(&mut self, end_offset: i64) {
        if let Some(range) = self.ranges.last_mut() {
            range.index.end_offset = end_offset;
        }
    }

    /// Makes the last range no longer than its batches, as no rule allows.
    pub(super) fn shrink(&mut self) {
        let Some(range) = self.ranges.last_mut() else { return };
        match range.index.chunks.first() {
            Some(first) => range.index.base_offset = first.base_offset,
            None => drop(self.ranges.pop()),
        }
    }

    /// Adds batches, which go on where those of the same partition ended that were added last.
    pub(super) fn add(&mut self, partition: PartitionId, batches: &[Stored]) {
        for batch in batches {
            let piece = Piece { at: None, offset: self.bytes, length: batch.len() as u64 };
            self.note(partition, std::slice::from_ref(batch), &piece);
            self.bytes += batch.len() as u64;
            let parts = [&batch.head, &batch.tail].into_iter().filter(|part| !part.is_empty());
            self.parts.extend(parts.cloned());
        }
    }

    /// The same of the batches of a frame that stays in the journal, in an object of so many bytes.
    pub(super) fn refer(
        &mut self,
        partition: PartitionId,
        frame: &FramePlace,
        object_bytes: u64,
        batches: &[Stored],
    ) {
        let (offset, length) = frame.whole();
        self.note(partition, batches, &Piece { at: Some(frame.at), offset, length });
        self.referred.insert(frame.at, object_bytes);
    }

    fn note(&mut self, partition: PartitionId, batches: &[Stored], piece: &Piece) {
        let [first, ..] = batches else { return };
        if self.ranges.last().is_none_or(|range| range.index.partition != partition) {
            self.begin(partition, first.base_offset, self.now_ms);
        }
        let Some(range) = self.ranges.last_mut() else { unreachable!("one was just added") };
        let chunks = &mut range.index.chunks;
        if chunks.is_empty() {
            range.first_timestamp = first.max_timestamp;
        }
        let fits = |chunk: &Chunk| {
            chunk.is_before(piece.at, piece.offset)
                && u64::from(chunk.length) + piece.length <= CHUNK_BYTES
        };
        if !chunks.last().is_some_and(fits) {
            chunks.push(Chunk {
                base_offset: first.base_offset,
                max_timestamp: i64::MIN,
                offset: piece.offset,
                length: 0,
                crc: 0,
                at: piece.at,
            });
        }
        let Some(chunk) = chunks.last_mut() else { unreachable!("one was just added") };
        chunk.length += piece.length as u32;
        for batch in batches {
            chunk.max_timestamp = chunk.max_timestamp.max(batch.max_timestamp);
            chunk.crc = append_checksum(chunk.crc, &batch.head, &batch.tail);
            range.bytes += batch.len() as u64;
            range.index.end_offset = batch.last_offset + 1;
        }
    }

    pub(super) fn finish(mut self) -> Segment {
        let mut entries = Vec::with_capacity(self.ranges.len());
        for Range { index: range, bytes, first_timestamp, age } in &self.ranges {
            let index = range.encode();
            let largest = range.chunks.iter().map(|chunk| chunk.max_timestamp).max();
            let known = |time: &i64| *time > NO_TIMESTAMP;
            let max_timestamp = largest.filter(known).unwrap_or(*age);
            entries.push((
                range.partition,
                Entry {
                    base_offset: range.base_offset,
                    end_offset: range.end_offset,
                    name: self.name,
                    index_offset: self.bytes,
                    index_length: index.len() as u32,
                    bytes: *bytes,
                    first_timestamp: Some(*first_timestamp).filter(known).unwrap_or(max_timestamp),
                    max_timestamp,
                },
            ));
            self.bytes += index.len() as u64;
            self.parts.push(index);
        }
        // The header's checksum is of itself only: chunks and indexes have their own, so that a
        // reader can check what it reads.
        let mut header = Header::named(Kind::Segment, self.name, self.nonce);
        let has_part = !self.referred.is_empty();
        let referring = has_part.then(|| {
            header.version = format::REFERRING;
            let indexes = self.ranges.into_iter().map(|range| range.index);
            let both = entries.iter().map(|(_, entry)| *entry).zip(indexes);
            let both = both.filter(|(_, index)| index.refers());
            let indexes = both.map(|(entry, index)| (entry, Arc::new(index))).collect();
            Referring { name: self.name, referred: Referred::from(self.referred), indexes }
        });
        let head = header.encode_with(self.bytes - HEADER_BYTES as u64, |crc| crc);
        self.parts[0] = Bytes::copy_from_slice(&head);
        Segment { name: self.name, parts: self.parts, entries, referring }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::format::{self, split_batches};
    use crate::store::objectlog::keys::Position;
    use crate::store::objectlog::samples::{batches, flat, frame, large_batch, partition};

    /// Batches of ten records, as a commit stores them.
    fn stored(base_offset: i64, count: usize) -> Vec<Stored> {
        let frames = vec![frame(1, batches(base_offset, &vec![10; count]))];
        format::encode_journal(Position::default(), 1, frames).commit.stored.to_vec()
    }

    #[test]
    fn every_offset_is_found_in_its_chunk() {
        let name = Name { epoch: 2, count: 5 };
        let mut builder = Builder::new(name, 1, 0);
        builder.add(partition(1), &stored(0, 1));
        builder.add(partition(2), &stored(30, 4000));
        builder.add(partition(2), &stored(40_030, 4000));
        let segment = builder.finish();
        let object = flat(&segment.parts);
        let (header, length, _) = Header::read(&object).unwrap();
        assert_eq!((header.kind, header.epoch, header.number), (Kind::Segment, 2, 5));
        assert_eq!(length as usize, object.len() - HEADER_BYTES);

        let (id, entry) = segment.entries[1];
        assert_eq!((id, entry.base_offset, entry.end_offset), (partition(2), 30, 80_030));
        assert_eq!(entry.max_timestamp, 80_020, "that of the last batch");
        assert_eq!((entry.first_timestamp, entry.bytes), (30, 8000 * stored(0, 1)[0].len() as u64));
        let from = entry.index_offset as usize;
        let index = Index::decode(&object[from..][..entry.index_length as usize]).unwrap();
        assert!(index.chunks.len() > 2);
        for offset in [30, 31, 39_999, 40_030, 80_029] {
            let chunk = index.chunk_of(offset);
            let place = index.chunks[chunk];
            let bytes = object.slice(place.offset as usize..);
            let bytes = bytes.slice(..place.length as usize);
            assert_eq!(crc32c::crc32c(&bytes), place.crc);
            let (_, batches) = split_batches(bytes, place.base_offset).unwrap();
            assert!(batches.iter().any(|b| (b.base_offset..=b.last_offset).contains(&offset)));
            assert_eq!(index.end_of(chunk), batches[batches.len() - 1].last_offset + 1);
        }
    }

    #[test]
    fn a_chunk_has_the_checksum_of_its_bytes_however_long_its_batches_are() {
        let batches = [batches(0, &[2]), vec![large_batch(2)], batches(3, &[1])].concat();
        let object = format::encode_journal(Position::default(), 1, vec![frame(1, batches)]);
        let mut builder = Builder::new(Name::default(), 1, 0);
        builder.add(partition(0), &object.commit.stored);
        let index = builder.ranges[0].index.clone();
        let bytes = flat(&builder.finish().parts).slice(HEADER_BYTES..);
        let [chunk] = index.chunks[..] else { panic!("one chunk") };
        assert_eq!(chunk.crc, crc32c::crc32c(&bytes[..chunk.length as usize]));
    }

    #[test]
    fn a_range_may_begin_and_end_with_a_gap_and_is_as_old_as_is_said() {
        let mut builder = Builder::new(Name::default(), 1, 0);
        let mut batches = stored(30, 1);
        batches[0].max_timestamp = NO_TIMESTAMP;
        builder.begin(partition(1), 10, 77);
        builder.add(partition(1), &batches);
        builder.end_at(60);
        let (_, entry) = builder.finish().entries[0];
        assert_eq!((entry.base_offset, entry.end_offset), (10, 60));
        assert_eq!((entry.first_timestamp, entry.max_timestamp), (77, 77));
    }

    #[test]
    fn a_changed_or_cut_index_is_refused() {
        let mut builder = Builder::new(Name::default(), 1, 0);
        builder.add(partition(1), &stored(0, 3));
        let bytes = builder.ranges[0].index.encode();
        assert!(Index::decode(&bytes).is_ok());
        for at in 0..bytes.len() {
            assert!(Index::decode(&bytes[..at]).is_err());
            let mut changed = bytes.to_vec();
            changed[at] ^= 1;
            assert!(Index::decode(&changed).is_err());
        }
        let mut none = builder.ranges[0].index.clone();
        none.chunks.clear();
        assert!(Index::decode(&none.encode()).is_err());
    }
}
