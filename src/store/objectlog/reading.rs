//! Reading: from an offset to the bytes, in memory or in the store.
//!
//! A reader keeps the next offset, never a place: an object that is gone was tiered or replaced, and
//! the offset is looked up again.

use super::cache::{Block, Place};
use super::faults::Rule;
use super::format::{self, HEADER_BYTES, Header, Kind, Malformed, Stored};
use super::journal::Journal;
use super::log::{Found, FramePlace};
use super::segment::{Chunk, Index};
use super::state::Entry;
use crate::record::batch::{Batch, detached};
use crate::store::objects::ObjectError;
use crate::store::{PartitionId, Result, StoreError};
use bytes::Bytes;
use std::sync::Arc;

/// The most that is read from a segment at once.
const READ_BYTES: u64 = 4 << 20;

const SHORT: Malformed = Malformed("it ends early");

/// Batches, as slices, up to a number of bytes.
struct Taken {
    slices: Vec<Bytes>,
    left: usize,
    at_least_one: bool,
}

impl Taken {
    /// Takes the batches of a block from `offset` on. False when no more may be taken.
    fn take(&mut self, block: &[Stored], offset: i64) -> bool {
        for stored in block.iter().filter(|stored| stored.last_offset >= offset) {
            let first = self.slices.is_empty() && self.at_least_one;
            if stored.len() > self.left && !first {
                return false;
            }
            self.left = self.left.saturating_sub(stored.len());
            self.slices.push(stored.head.clone());
            if !stored.tail.is_empty() {
                self.slices.push(stored.tail.clone());
            }
        }
        true
    }
}

/// A run of batches with the offset at which it ends; `None` if its object is gone.
type Fetched = Result<Option<(Block, i64)>>;

impl Journal {
    pub(super) async fn read(
        &self,
        id: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        let mut taken = Taken { slices: Vec::new(), left: max_bytes, at_least_one };
        let mut next = offset;
        loop {
            if taken.left == 0 && !taken.slices.is_empty() {
                return Ok(taken.slices);
            }
            match self.block(id, next, taken.left).await {
                Ok(Some((_, end))) if end <= next => {
                    return Err(StoreError::Corrupt(format!("what holds {next} ends at {end}")));
                }
                Ok(Some((block, end))) if taken.take(&block, next) => next = end,
                Ok(_) => return Ok(taken.slices),
                // What was taken so far is true whatever became of the rest.
                Err(_) if !taken.slices.is_empty() => return Ok(taken.slices),
                Err(error) => return Err(error),
            }
        }
    }

    /// The batches that hold `offset`; `None` at the log end.
    async fn block(&self, id: PartitionId, offset: i64, wanted: usize) -> Fetched {
        let mut gone = None;
        loop {
            let found = {
                let mut inner = self.lock();
                self.check_fresh(&inner)?;
                let found = inner.log.locate(id, offset)?;
                if let Found::Journal(frame) = found
                    && let Some(block) = inner.log.blocks.find(frame.place())
                {
                    return Ok(Some((block, frame.end_offset)));
                }
                found
            };
            let (place, fetched) = match found {
                Found::End => return Ok(None),
                Found::Journal(frame) => (frame.place(), self.frame(frame).await?),
                Found::Segment(entry) => {
                    let place = Place::Segment { name: entry.name, offset: entry.index_offset };
                    (place, self.chunk(id, entry, offset, wanted).await?)
                }
            };
            if fetched.is_some() {
                return Ok(fetched);
            }
            if !self.options.faults.keep(Rule::LookUpAgain) {
                return Ok(Some((Block::from([]), end_of(&found))));
            }
            // The list that still names what is gone is not the newest any more.
            if gone.replace(place) == Some(place) {
                return Err(StoreError::Fenced);
            }
        }
    }

    pub(super) async fn frame(&self, frame: FramePlace) -> Fetched {
        let key = self.keys.journal(frame.at);
        let bytes = self.objects.get(&key, frame.offset, frame.length).await.map_err(silent)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let whole = bytes.len() as u64 == frame.length;
        let split = format::split_batches(bytes, frame.base_offset);
        let stored = match split.and_then(|split| checked(split, whole)) {
            Ok(stored) => stored,
            Err(malformed) => {
                // Once it was deleted, the fence of an opener that read too slowly may be there.
                let head = self.objects.get(&key, 0, HEADER_BYTES as u64).await.map_err(silent)?;
                let header = head.as_deref().map(Header::read);
                return match header {
                    None => Ok(None),
                    Some(Ok((header, ..))) if header.kind == Kind::Fence => Ok(None),
                    Some(_) => Err(malformed.at(&key)),
                };
            }
        };
        let block = Block::from(stored);
        self.lock().log.remember(frame.place(), block.clone());
        Ok(Some((block, frame.end_offset)))
    }

    /// The chunk of a segment that holds `offset`, and a few more into the cache if so much is
    /// wanted.
    async fn chunk(&self, id: PartitionId, entry: Entry, offset: i64, wanted: usize) -> Fetched {
        let Some(index) = self.index(id, entry).await? else { return Ok(None) };
        let first = index.chunk_of(offset.max(entry.base_offset));
        let end = index.end_of(first);
        let place = |chunk: &Chunk| Place::Segment { name: entry.name, offset: chunk.offset };
        if let Some(block) = self.lock().log.blocks.find(place(&index.chunks[first])) {
            return Ok(Some((block, end)));
        }
        let most = READ_BYTES.min(wanted as u64);
        let from = index.chunks[first].offset;
        let within = |chunk: &&Chunk| chunk.offset + u64::from(chunk.length) - from <= most;
        let more = index.chunks[first + 1..].iter().take_while(within).count();
        let chunks = &index.chunks[first..=first + more];
        let length = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
        let key = self.keys.segment(entry.name);
        let bytes = self.objects.get(&key, from, length).await.map_err(silent)?;
        let Some(mut bytes) = bytes else { return Ok(None) };
        if bytes.len() as u64 != length {
            return Err(SHORT.at(&key));
        }
        let mut blocks = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let part = detached(bytes.split_to(chunk.length as usize), length as usize);
            if crc32c::crc32c(&part) != chunk.crc {
                return Err(StoreError::Corrupt(format!("{key}: a chunk's checksum is wrong")));
            }
            let split = format::split_rising(part, chunk.base_offset);
            blocks.push((place(chunk), Block::from(split.map_err(|m| m.at(&key))?.1)));
        }
        let block = blocks[0].1.clone();
        let mut inner = self.lock();
        blocks.into_iter().for_each(|(place, block)| inner.log.remember(place, block));
        Ok(Some((block, end)))
    }

    async fn index(&self, id: PartitionId, entry: Entry) -> Result<Option<Arc<Index>>> {
        let place = Place::Segment { name: entry.name, offset: entry.index_offset };
        if let Some(index) = self.lock().log.indexes.find(place) {
            return Ok(Some(index));
        }
        let key = self.keys.segment(entry.name);
        let length = entry.index_length;
        let bytes =
            self.objects.get(&key, entry.index_offset, length.into()).await.map_err(silent)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let index = Index::decode(&bytes).map_err(|malformed| malformed.at(&key))?;
        if (index.partition, index.base_offset, index.end_offset)
            != (id, entry.base_offset, entry.end_offset)
        {
            return Err(StoreError::Corrupt(format!("{key}: an index of something else")));
        }
        let index = Arc::new(index);
        self.lock().log.indexes.insert(place, index.clone(), bytes.len() + 128);
        Ok(Some(index))
    }

    /// The base of the first run of batches that has a record of `timestamp` or later, or the log
    /// end.
    pub(super) async fn seek_time(&self, id: PartitionId, timestamp: i64) -> Result<i64> {
        let mut gone = None;
        loop {
            let (start, entry) = {
                let inner = self.lock();
                self.check_fresh(&inner)?;
                let Some(partition) = inner.log.image.partitions.get(&id) else { return Ok(0) };
                let start = partition.log_start_offset;
                let late = |e: &&Entry| e.max_timestamp >= timestamp && e.end_offset > start;
                let Some(entry) = partition.entries.iter().find(late) else {
                    let frame = inner.log.frame_of_time(id, timestamp);
                    return Ok(frame.unwrap_or(partition.log_end_offset).max(start));
                };
                (start, *entry)
            };
            if let Some(index) = self.index(id, entry).await? {
                let chunk = index.chunks.iter().find(|chunk| chunk.max_timestamp >= timestamp);
                return Ok(chunk.map_or(entry.base_offset, |chunk| chunk.base_offset).max(start));
            }
            if gone.replace(entry) == Some(entry) {
                return Err(StoreError::Fenced);
            }
        }
    }
}

/// A part of an object has no checksum but the batches' own. Without a look at them tiering would
/// give damaged bytes a right one.
fn checked(
    (batches, stored): (Vec<Batch>, Vec<Stored>),
    whole: bool,
) -> Result<Vec<Stored>, Malformed> {
    if !whole {
        return Err(SHORT);
    }
    let is_intact = |batch: &Batch| batch.checksum() == batch.header.crc;
    batches.iter().all(is_intact).then_some(stored).ok_or(Malformed("a batch's checksum is wrong"))
}

fn end_of(found: &Found) -> i64 {
    match found {
        Found::End => unreachable!("nothing is fetched at the log end"),
        Found::Journal(frame) => frame.end_offset,
        Found::Segment(entry) => entry.end_offset,
    }
}

fn silent(error: ObjectError) -> StoreError {
    StoreError::Unavailable(error.0)
}
