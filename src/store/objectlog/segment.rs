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
//!  … crc32c         u32   of the index
//! ```
//!
//! What a segment holds never changes, and its name is used once. The checkpoint's entries say
//! where the indexes are.

use super::format::{HEADER_BYTES, Header, Kind, Malformed, Stored};
use super::keys::Name;
use super::state::Entry;
use crate::protocol::wire::Uuid;
use crate::store::PartitionId;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes after which a chunk is closed: what is read from a segment at once.
const CHUNK_BYTES: u64 = 256 << 10;
const CHUNK_ENTRY_BYTES: usize = 32;

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

    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(44 + self.chunks.len() * CHUNK_ENTRY_BYTES);
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
        if count.checked_mul(CHUNK_ENTRY_BYTES) != Some(b.len()) || count == 0 {
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
            });
        }
        let index = Self { partition, base_offset, end_offset, chunks };
        index.is_in_order().then_some(index).ok_or(Malformed("an index out of order"))
    }

    fn is_in_order(&self) -> bool {
        let starts = self.chunks[0].base_offset >= self.base_offset;
        let rises = self.chunks.is_sorted_by(|a, b| a.base_offset < b.base_offset);
        starts && rises && self.chunks[self.chunks.len() - 1].base_offset < self.end_offset
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
}

/// A range in the making.
struct Range {
    index: Index,
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
}

impl Builder {
    pub(super) fn new(name: Name, nonce: u64, now_ms: i64) -> Self {
        let (parts, bytes) = (vec![Bytes::new()], HEADER_BYTES as u64);
        Self { name, nonce, now_ms, parts, bytes, ranges: vec![] }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Begins a range that need not begin with a batch, of batches that are so old if they do not
    /// say it.
    pub(super) fn begin(&mut self, partition: PartitionId, base_offset: i64, age: i64) {
        let index = Index { partition, base_offset, end_offset: base_offset, chunks: vec![] };
        self.ranges.push(Range { index, first_timestamp: NO_TIMESTAMP, age });
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
            self.add_batch(partition, batch);
        }
    }

    fn add_batch(&mut self, partition: PartitionId, batch: &Stored) {
        if self.ranges.last().is_none_or(|range| range.index.partition != partition) {
            self.begin(partition, batch.base_offset, self.now_ms);
        }
        let Some(range) = self.ranges.last_mut() else { unreachable!("one was just added") };
        if range.index.chunks.is_empty() {
            range.first_timestamp = batch.max_timestamp;
        }
        let range = &mut range.index;
        let full = |chunk: &Chunk| u64::from(chunk.length) + batch.len() as u64 > CHUNK_BYTES;
        if range.chunks.last().is_none_or(full) {
            range.chunks.push(Chunk {
                base_offset: batch.base_offset,
                max_timestamp: i64::MIN,
                offset: self.bytes,
                length: 0,
                crc: 0,
            });
        }
        let Some(chunk) = range.chunks.last_mut() else { unreachable!("one was just added") };
        chunk.max_timestamp = chunk.max_timestamp.max(batch.max_timestamp);
        chunk.length += batch.len() as u32;
        range.end_offset = batch.last_offset + 1;
        for part in [&batch.head, &batch.tail] {
            chunk.crc = crc32c::crc32c_append(chunk.crc, part);
            self.bytes += part.len() as u64;
            if !part.is_empty() {
                self.parts.push(part.clone());
            }
        }
    }

    pub(super) fn finish(mut self) -> Segment {
        let mut entries = Vec::with_capacity(self.ranges.len());
        for Range { index: range, first_timestamp, age } in &self.ranges {
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
                    bytes: range.chunks.iter().map(|chunk| u64::from(chunk.length)).sum(),
                    first_timestamp: Some(*first_timestamp).filter(known).unwrap_or(max_timestamp),
                    max_timestamp,
                },
            ));
            self.bytes += index.len() as u64;
            self.parts.push(index);
        }
        // The header's checksum is of itself only: chunks and indexes have their own, so that a
        // reader can check what it reads.
        let header = Header::named(Kind::Segment, self.name, self.nonce);
        let head = header.encode(self.bytes - HEADER_BYTES as u64, []);
        self.parts[0] = Bytes::copy_from_slice(&head);
        Segment { name: self.name, parts: self.parts, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::format::{self, split_batches};
    use crate::store::objectlog::keys::Position;
    use crate::store::objectlog::samples::{batches, flat, frame, partition};

    /// Batches of ten records, as a commit stores them.
    fn stored(base_offset: i64, count: usize) -> Vec<Stored> {
        let frames = vec![frame(1, batches(base_offset, &vec![10; count]))];
        let mut object = format::encode_journal(Position::default(), 1, frames);
        object.frames.remove(0).stored
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
