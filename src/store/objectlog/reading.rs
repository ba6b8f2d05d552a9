//! Reading: from an offset to the bytes, in memory or in the store.
//!
//! A reader keeps the next offset, never a place: an object that is gone was tiered or replaced, and
//! the offset is looked up again.

use super::along::Reading;
use super::block::{Block, Run, Taken};
use super::cache::Place;
use super::faults::Rule;
use super::format::{self, HEADER_BYTES, Header, Kind, Malformed, Stored};
use super::journal::{Inner, Journal};
use super::keys::Name;
use super::log::{Found, FramePlace};
use super::segment::{Chunk, Index};
use super::state::Entry;
use crate::record::batch::Batch;
use crate::store::objects::ObjectError;
use crate::store::{PartitionId, Result, StoreError};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A stretch ends with the first chunk behind so many bytes.
pub(super) const STRETCH_BYTES: u64 = 1 << 20;

/// How many blocks are taken from memory while others wait for the log's lock.
const BLOCKS_AT_ONCE: usize = 256;

/// About what an index takes in memory besides its bytes.
pub(super) const INDEX_OWN_BYTES: usize = 128;

const SHORT: Malformed = Malformed("it ends early");

/// A run of batches with the offset at which it ends; `None` if its object is gone.
type Fetched = Result<Option<(Block, i64)>>;

/// What a read has to do next.
enum Next {
    Nothing,
    Again,
    Fetch(Found),
}

impl Journal {
    pub(super) async fn read(
        &self,
        id: PartitionId,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Vec<Bytes>> {
        let mut taken = Taken::new(offset, max_bytes, at_least_one);
        let mut gone = None;
        loop {
            match self.go_on(id, &mut taken, &mut gone).await {
                Ok(true) => {}
                Ok(false) => return Ok(taken.into_slices()),
                // What was taken so far is true whatever became of the rest.
                Err(_) if !taken.is_empty() => return Ok(taken.into_slices()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes what is in memory, and then what has to be fetched next. False when that is all.
    async fn go_on(
        &self,
        id: PartitionId,
        taken: &mut Taken,
        gone: &mut Option<Place>,
    ) -> Result<bool> {
        let found = match self.take_cached(id, taken)? {
            Next::Nothing => return Ok(false),
            Next::Again => {
                tokio::task::yield_now().await;
                return Ok(true);
            }
            Next::Fetch(found) => found,
        };
        let (place, fetched) = match found {
            Found::End => unreachable!("nothing is fetched at the log end"),
            Found::Journal(frame) => (frame.place(), self.frame(frame).await?),
            Found::Segment(entry) => (index_of(&entry), self.segment(id, entry, taken.next).await?),
        };
        match fetched {
            Some((_, end)) if end <= taken.next => {
                let next = taken.next;
                Err(StoreError::Corrupt(format!("what holds {next} ends at {end}")))
            }
            Some((block, end)) => {
                *gone = None;
                Ok(taken.take(&block, end))
            }
            None if !self.options.faults.keep(Rule::LookUpAgain) => {
                taken.next = end_of(&found);
                Ok(true)
            }
            // The list that still names what is gone is not the newest any more.
            None if gone.replace(place) == Some(place) => Err(StoreError::Fenced),
            None => Ok(true),
        }
    }

    /// Takes what is in memory, up to what is not, and sees to it that what comes then will be.
    fn take_cached(&self, id: PartitionId, taken: &mut Taken) -> Result<Next> {
        let mut inner = self.lock();
        self.check_fresh(&inner)?;
        for _ in 0..BLOCKS_AT_ONCE {
            let found = inner.log.locate(id, taken.next)?;
            let (place, block, end, bytes) = match found {
                Found::End => return Ok(Next::Nothing),
                Found::Journal(frame) => {
                    (frame.place(), inner.log.block(&frame), frame.end_offset, frame.length)
                }
                Found::Segment(entry) => {
                    let index = inner.log.indexes.find(index_of(&entry));
                    let Some(stretch) =
                        index.and_then(|index| Stretch::of(index, entry.name, taken.next))
                    else {
                        return Ok(Next::Fetch(found));
                    };
                    self.look_ahead(&mut inner, id, &stretch, taken.next);
                    let (place, end) = (stretch.place(), stretch.end_offset());
                    let block = inner.log.blocks.find(place);
                    (place, block, end, stretch.chunk_bytes(taken.next))
                }
            };
            match block {
                Some(block) => {
                    let goes_on = taken.take(&block, end);
                    if taken.next == end && matches!(block, Block::Run(_)) {
                        inner.log.blocks.let_go(place);
                    }
                    if !goes_on {
                        return Ok(Next::Nothing);
                    }
                }
                // Who has something does not wait for what may not fit.
                None if taken.is_too_much(bytes) && !taken.is_empty() => {
                    return Ok(Next::Nothing);
                }
                None => return Ok(Next::Fetch(found)),
            }
        }
        Ok(Next::Again)
    }

    /// Who comes to the beginning of a stretch will want it all, and what is behind it.
    fn look_ahead(&self, inner: &mut Inner, id: PartitionId, stretch: &Stretch, offset: i64) {
        if offset == stretch.base_offset() {
            inner.want_behind(id, stretch);
        }
        // What is read makes room for what waits.
        if inner.is_to_read() {
            self.ahead.notify_one();
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
                let head = self.objects.get(&key, 0, HEADER_BYTES as u64).await.map_err(silent)?;
                return none_if_gone(head, malformed, &key);
            }
        };
        let block = Block::from(stored);
        self.lock().log.remember(frame.place(), block.clone());
        Ok(Some((block, frame.end_offset)))
    }

    /// The stretch of a segment that holds `offset`.
    async fn segment(&self, id: PartitionId, entry: Entry, offset: i64) -> Fetched {
        let Some(index) = self.index(id, entry).await? else { return Ok(None) };
        let Some(stretch) = Stretch::of(index, entry.name, offset) else {
            return Ok(Some((Block::from(Vec::new()), entry.end_offset)));
        };
        self.look_ahead(&mut self.lock(), id, &stretch, offset);
        let block = self.stretch(&stretch, true).await?;
        Ok(block.map(|block| (block, stretch.end_offset())))
    }

    /// Reads a stretch into memory, unless somebody just does: then that is waited for.
    pub(super) async fn stretch(
        &self,
        stretch: &Stretch,
        is_wanted: bool,
    ) -> Result<Option<Block>> {
        let place = stretch.place();
        let loading = loop {
            let mut along = {
                let mut inner = self.lock();
                if let Some(block) = inner.log.blocks.find(place) {
                    return Ok(Some(block));
                }
                match inner.reads.along.get(&place) {
                    Some(along) => along.clone(),
                    None => {
                        let block = inner.reads.loading.entry(place).or_default().clone();
                        break Loading { journal: self, place, block };
                    }
                }
            };
            // Nothing is sent: whoever reads it came to an end.
            let _ = along.changed().await;
        };
        let load = async || {
            let Some(run) = self.load(stretch).await? else { return Ok(None) };
            let block = Block::Run(Arc::new(run));
            let blocks = &mut self.lock().log.blocks;
            match is_wanted {
                true => blocks.insert(place, block.clone(), block.cost()),
                false => blocks.insert_unread(place, block.clone(), block.cost()),
            }
            Ok(Some(block))
        };
        let block: Result<&Option<Block>> = loading.block.get_or_try_init(load).await;
        let block = block.cloned()?;
        if is_wanted {
            // It may be there as what nobody asked for.
            let _ = self.lock().log.blocks.find(place);
        }
        Ok(block)
    }

    /// Reads a stretch, and what else is wanted of its object near it.
    async fn load(&self, stretch: &Stretch) -> Result<Option<Run>> {
        let reading = Reading::begin(self, stretch);
        match self.load_all(stretch, &reading).await {
            // Perhaps it is what is near it that cannot be read.
            Err(StoreError::Unavailable(_)) if !reading.along().is_empty() => {
                drop(reading);
                self.load_all(stretch, &Reading::alone(self, stretch)).await
            }
            loaded => loaded,
        }
    }

    async fn load_all(&self, stretch: &Stretch, reading: &Reading<'_>) -> Result<Option<Run>> {
        let key = self.key_of(stretch.name, &stretch.chunks()[0]);
        let (offset, length) = reading.range();
        let bytes = self.objects.get(&key, offset, length).await.map_err(silent)?;
        let Some(bytes) = bytes else { return Ok(None) };
        for other in reading.along() {
            // If it is damaged, who wants it is told.
            if let Ok(run) = other.run(&bytes, offset) {
                let block = Block::Run(Arc::new(run));
                self.lock().log.blocks.insert_unread(other.place(), block.clone(), block.cost());
            }
        }
        match stretch.run(&bytes, offset) {
            Ok(run) => Ok(Some(run)),
            Err(malformed) if stretch.is_in_segment() => Err(malformed.at(&key)),
            Err(malformed) => {
                let head = self.objects.get(&key, 0, HEADER_BYTES as u64).await.map_err(silent)?;
                none_if_gone(head, malformed, &key)
            }
        }
    }

    /// The object that a chunk of a segment is in.
    pub(super) fn key_of(&self, segment: Name, chunk: &Chunk) -> String {
        match chunk.at {
            None => self.keys.segment(segment),
            Some(at) => self.keys.journal(at),
        }
    }

    pub(super) async fn index(&self, id: PartitionId, entry: Entry) -> Result<Option<Arc<Index>>> {
        let place = index_of(&entry);
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
        self.lock().log.indexes.insert(place, index.clone(), bytes.len() + INDEX_OWN_BYTES);
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

/// Chunks that lie one behind the other in one object and are read at once.
#[derive(Clone)]
pub(super) struct Stretch {
    name: Name,
    index: Arc<Index>,
    chunks: Range<usize>,
}

impl Stretch {
    /// The one that holds `offset`; `None` if the range has no chunks. Where it begins does not depend
    /// on the offset, so that it is in memory once.
    pub(super) fn of(index: Arc<Index>, name: Name, offset: i64) -> Option<Self> {
        let chunk = index.chunk_of(offset);
        let wanted = index.chunks.get(chunk)?;
        let row = index.row(chunk);
        let chunks = &index.chunks[row.clone()];
        let part = |chunk: &Chunk| (chunk.offset - chunks[0].offset) / STRETCH_BYTES;
        let first = row.start + chunks.partition_point(|chunk| part(chunk) < part(wanted));
        let behind = row.start + chunks.partition_point(|chunk| part(chunk) <= part(wanted));
        Some(Self { name, index, chunks: first..behind })
    }

    fn chunks(&self) -> &[Chunk] {
        &self.index.chunks[self.chunks.clone()]
    }

    pub(super) fn place(&self) -> Place {
        self.place_at(self.chunks()[0].offset)
    }

    /// The places in its object that are so near.
    pub(super) fn around(&self, bytes: u64) -> Range<Place> {
        let Range { start, end } = self.span();
        self.place_at(start.saturating_sub(bytes))..self.place_at(end.saturating_add(bytes))
    }

    fn place_at(&self, offset: u64) -> Place {
        match self.chunks()[0].at {
            None => Place::Segment { name: self.name, offset },
            Some(at) => Place::Referred { name: self.name, at, offset },
        }
    }

    fn is_in_segment(&self) -> bool {
        self.chunks()[0].at.is_none()
    }

    /// Where it lies in its object.
    pub(super) fn span(&self) -> Range<u64> {
        let Chunk { offset, .. } = self.chunks()[0];
        offset..offset.saturating_add(self.length())
    }

    /// Its batches, out of what was read of its object from an offset on.
    fn run(&self, bytes: &Bytes, from: u64) -> Result<Run, Malformed> {
        let within =
            |at: u64| usize::try_from(at - from).map_or(bytes.len(), |at| at.min(bytes.len()));
        let span = self.span();
        let part = bytes.slice(within(span.start)..within(span.end));
        let batches = self.index.batches(self.chunks(), &part)?;
        let is_slice = part.as_ptr_range().contains(&batches.as_ptr());
        let buffer_bytes = if is_slice { bytes.len() } else { batches.len() };
        Run::new(batches, buffer_bytes, self.base_offset(), self.end_offset())
    }

    pub(super) fn length(&self) -> u64 {
        self.chunks().iter().map(|chunk| u64::from(chunk.length)).sum()
    }

    /// From the chunk on that holds an offset.
    pub(super) fn bytes_from(&self, offset: i64) -> u64 {
        let chunks = &self.index.chunks[self.index.chunk_of(offset)..self.chunks.end];
        chunks.iter().map(|chunk| u64::from(chunk.length)).sum()
    }

    pub(super) fn base_offset(&self) -> i64 {
        self.chunks()[0].base_offset
    }

    pub(super) fn end_offset(&self) -> i64 {
        self.index.end_of(self.chunks.end - 1)
    }

    /// Bytes of the chunk that holds an offset.
    fn chunk_bytes(&self, offset: i64) -> u64 {
        self.index.chunks[self.index.chunk_of(offset)].length.into()
    }
}

/// A stretch that is being read, by the first of those who want it.
struct Loading<'a> {
    journal: &'a Journal,
    place: Place,
    block: Arc<OnceCell<Option<Block>>>,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let loading = &mut self.journal.lock().reads.loading;
        // Let go of under the lock: of two that end at the same time one sees that it is the last.
        drop(std::mem::take(&mut self.block));
        if loading.get(&self.place).is_some_and(|block| Arc::strong_count(block) == 1) {
            loading.remove(&self.place);
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

/// What is wrong with bytes of a journal's object; `None` if it is gone: once it was deleted, the fence of
/// an opener that read too slowly may be there.
pub(super) fn none_if_gone<T>(
    head: Option<Bytes>,
    malformed: Malformed,
    key: &str,
) -> Result<Option<T>> {
    match head.as_deref().map(Header::read) {
        None => Ok(None),
        Some(Ok((header, ..))) if header.kind == Kind::Fence => Ok(None),
        Some(_) => Err(malformed.at(key)),
    }
}

/// Where the index of a range is stored.
pub(super) fn index_of(entry: &Entry) -> Place {
    Place::Segment { name: entry.name, offset: entry.index_offset }
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
