//! The log as it is committed, and where each offset's bytes are.

use super::block::Block;
use super::cache::{Cache, Place};
use super::format::{Body, Commit, FRAME_BYTES, Placed};
use super::keys::{Name, Position};
use super::segment::{Index, Referring};
use super::state::{Entry, Image};
use crate::protocol::wire::Uuid;
use crate::store::layout::{Layout, Part};
use crate::store::{PartitionId, Result, StoreError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Of the cache, what indexes of segments may take.
const INDEX_SHARE: usize = 16;

pub(super) struct Log {
    pub image: Image,
    /// Committed batches that are not in segments, in the order of their offsets.
    frames: BTreeMap<PartitionId, VecDeque<FramePlace>>,
    /// The journal's objects that are not deleted yet, oldest first.
    pub objects: VecDeque<JournalObject>,
    /// Bytes of the journal that are not in segments.
    pub untiered_bytes: u64,
    pub blocks: Cache<Block>,
    pub indexes: Cache<Arc<Index>>,
    /// Segments that left the list. The newest checkpoint may still name them.
    pub doomed: BTreeSet<Name>,
    /// Segments that are being rewritten into: no list names them yet.
    pub under_way: BTreeSet<Name>,
    /// Names of segments that were given away.
    segments: u64,
    /// How often the list changed other than by what a round tiers.
    pub rewritten: u64,
    /// Topics with a frame that did not go on where the log ends: they must be deleted ones. Only an
    /// opening asks.
    pub gaps: BTreeSet<Uuid>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JournalObject {
    pub at: Position,
    pub bytes: u64,
    pub is_fence: bool,
}

/// Where the batches of one frame are in the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramePlace {
    pub base_offset: i64,
    pub end_offset: i64,
    pub max_timestamp: i64,
    pub at: Position,
    pub offset: u64,
    pub length: u64,
    /// Which of its commit's batches is its first one, and how many it has.
    pub first: u32,
    pub count: u32,
}

impl FramePlace {
    /// Where its batches are in memory if they are not there with those of its commit.
    pub(super) fn place(&self) -> Place {
        Place::Frame { at: self.at, offset: self.offset }
    }

    /// Where the frame begins, and how long it is.
    pub(super) fn whole(&self) -> (u64, u64) {
        (self.offset - FRAME_BYTES as u64, self.length + FRAME_BYTES as u64)
    }

    /// Whether it lies behind another in the same object.
    pub(super) fn is_behind(&self, before: &Self) -> bool {
        self.at == before.at && self.whole().0 == before.offset + before.length
    }
}

/// Where an offset is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found {
    /// Nowhere yet: it is the log end.
    End,
    Journal(FramePlace),
    Segment(Entry),
}

impl Log {
    pub(super) fn new(image: Image, cache_bytes: usize) -> Self {
        Self {
            image,
            frames: BTreeMap::new(),
            objects: VecDeque::new(),
            untiered_bytes: 0,
            blocks: Cache::new(cache_bytes - cache_bytes / INDEX_SHARE),
            indexes: Cache::new(cache_bytes / INDEX_SHARE),
            doomed: BTreeSet::new(),
            under_way: BTreeSet::new(),
            segments: 0,
            rewritten: 0,
            gaps: BTreeSet::new(),
        }
    }

    /// Takes in what stands at the journal's next place: a commit, or the same in a replay.
    pub(super) fn take(&mut self, at: Position, bytes: u64, commit: Commit) {
        self.image.position = at.next();
        self.objects.push_back(JournalObject { at, bytes, is_fence: false });
        self.untiered_bytes += bytes;
        let mut first = 0;
        for placed in commit.frames {
            let count = placed.frame.batches().len() as u32;
            self.take_frame(at, &placed, first..first + count);
            first += count;
        }
        self.remember(Place::Commit(at), commit.stored.into());
    }

    /// Takes in a frame with these of its commit's batches.
    fn take_frame(&mut self, at: Position, placed: &Placed, batches: Range<u32>) {
        let id = placed.frame.partition;
        if !self.image.apply(&placed.frame) {
            self.gaps.insert(id.topic);
            return;
        }
        if let Body::Batches { base_offset, batches: of_frame } = &placed.frame.body {
            let timestamps = of_frame.iter().map(|batch| batch.header.max_timestamp);
            let place = FramePlace {
                base_offset: *base_offset,
                end_offset: of_frame.last().map_or(*base_offset, |b| b.header.next_offset()),
                max_timestamp: timestamps.max().unwrap_or(i64::MIN),
                at,
                offset: placed.offset,
                length: placed.length,
                first: batches.start,
                count: batches.end - batches.start,
            };
            self.frames.entry(id).or_default().push_back(place);
        }
    }

    /// The batches of a frame, if they are in memory.
    pub(super) fn block(&mut self, frame: &FramePlace) -> Option<Block> {
        let commit = Place::Commit(frame.at);
        if !self.blocks.has(commit) {
            return self.blocks.find(frame.place());
        }
        let first = frame.first as usize;
        self.blocks.find(commit).map(|all| all.part(first..first + frame.count as usize))
    }

    pub(super) fn remember(&mut self, place: Place, block: Block) {
        let cost = block.cost();
        self.blocks.insert(place, block, cost);
    }

    pub(super) fn take_fence(&mut self, at: Position, next: Position) {
        self.image.position = next;
        self.objects.push_back(JournalObject { at, bytes: 0, is_fence: true });
    }

    pub(super) fn locate(&self, id: PartitionId, offset: i64) -> Result<Found> {
        let Some(partition) = self.image.partitions.get(&id) else {
            return if offset == 0 { Ok(Found::End) } else { Err(StoreError::OffsetOutOfRange) };
        };
        if offset < partition.log_start_offset || offset > partition.log_end_offset {
            return Err(StoreError::OffsetOutOfRange);
        }
        if offset == partition.log_end_offset {
            return Ok(Found::End);
        }
        let entries = &partition.entries;
        let entry = entries.get(entries.partition_point(|entry| entry.end_offset <= offset));
        if let Some(entry) = entry {
            return Ok(Found::Segment(*entry));
        }
        let frame = self.frames.get(&id).and_then(|frames| {
            frames.get(frames.partition_point(|frame| frame.end_offset <= offset))
        });
        let nowhere = || StoreError::Corrupt(format!("offset {offset} is in the log but nowhere"));
        frame.map(|frame| Found::Journal(*frame)).ok_or_else(nowhere)
    }

    /// The frames that are not in segments, by partition.
    pub(super) fn frames(&self) -> Vec<(PartitionId, Vec<FramePlace>)> {
        let copy = |(id, frames): (&PartitionId, &VecDeque<FramePlace>)| {
            (*id, frames.iter().copied().collect())
        };
        self.frames.iter().map(copy).collect()
    }

    /// The frames of these offsets that are not in segments, if they begin and end with them.
    pub(super) fn frames_of(&self, id: PartitionId, offsets: &Range<i64>) -> Vec<FramePlace> {
        let Some(frames) = self.frames.get(&id) else { return Vec::new() };
        let first = frames.partition_point(|frame| frame.end_offset <= offsets.start);
        let of = frames.range(first..).take_while(|frame| frame.base_offset < offsets.end);
        let of: Vec<_> = of.copied().collect();
        let ends = of.first().zip(of.last()).map(|(a, z)| a.base_offset..z.end_offset);
        if ends.as_ref() == Some(offsets) { of } else { Vec::new() }
    }

    /// The first frame behind the segments with a record of `timestamp` or later: its base.
    pub(super) fn frame_of_time(&self, id: PartitionId, timestamp: i64) -> Option<i64> {
        let frames = self.frames.get(&id)?;
        frames.iter().find(|frame| frame.max_timestamp >= timestamp).map(|frame| frame.base_offset)
    }

    pub(super) fn next_segment(&mut self) -> u64 {
        self.segments += 1;
        self.segments
    }

    /// All before the image's position is in segments now. The list changes as it is now: others
    /// may have rewritten parts of it since the image was taken. The image gets the new list.
    pub(super) fn tiered(&mut self, image: &mut Image, tiered: Tiered) {
        self.untiered_bytes = self.untiered_bytes.saturating_sub(tiered.bytes);
        // Or each topic that was ever deleted would take memory for good.
        self.gaps.clear();
        for id in &tiered.dropped {
            image.partitions.remove(id);
            self.frames.remove(id);
            if let Some(dropped) = self.image.partitions.remove(id) {
                self.doomed.extend(dropped.entries.iter().map(|entry| entry.name));
            }
        }
        if let Some(referring) = tiered.referring {
            self.refer(referring);
        }
        image.referred.clone_from(&self.image.referred);
        for (id, entry) in tiered.entries {
            // Only a fault tiers what the log does not know.
            let live = self.image.partitions.get_mut(&id).or_else(|| image.partitions.get_mut(&id));
            live.into_iter().for_each(|live| Arc::make_mut(&mut live.entries).push(entry));
        }
        for (id, partition) in &mut image.partitions {
            if let Some(live) = self.image.partitions.get_mut(id) {
                let gone = live.drop_entries(partition.log_start_offset);
                self.doomed.extend(gone.iter().map(|entry| entry.name));
                partition.entries.clone_from(&live.entries);
                partition.clean_end_offset = live.clean_end_offset;
            }
        }
        self.frames.retain(|_, frames| {
            let count = frames.partition_point(|frame| frame.at < image.position);
            frames.drain(..count);
            !frames.is_empty()
        });
        // Readers find them in the segments from now on.
        let moved = self.objects.iter().take_while(|object| object.at < image.position);
        moved.for_each(|object| self.blocks.remove(Place::Commit(object.at)));
    }

    /// What a partition's log is made of; what the journal holds of it is one part.
    pub(super) fn layout(&self, id: PartitionId) -> Layout {
        let Some(partition) = self.image.partitions.get(&id) else { return Layout::default() };
        let start = partition.log_start_offset;
        let settled = partition.entries.iter().map(|entry| Part {
            base_offset: entry.base_offset,
            end_offset: entry.end_offset,
            bytes: entry.bytes,
            first_timestamp: entry.first_timestamp,
            max_timestamp: entry.max_timestamp,
            is_settled: true,
        });
        let frames = self.frames.get(&id).into_iter().flatten();
        let tail = frames.fold(None, |tail: Option<Part>, frame| {
            let before = tail.unwrap_or(Part {
                base_offset: frame.base_offset,
                end_offset: frame.base_offset,
                bytes: 0,
                first_timestamp: frame.max_timestamp,
                max_timestamp: frame.max_timestamp,
                is_settled: false,
            });
            Some(Part {
                end_offset: frame.end_offset,
                bytes: before.bytes + frame.length,
                max_timestamp: before.max_timestamp.max(frame.max_timestamp),
                ..before
            })
        });
        Layout {
            log_start_offset: start,
            log_end_offset: partition.log_end_offset,
            clean_end_offset: partition.clean_end_offset,
            parts: settled.chain(tail).filter(|part| part.end_offset > start).collect(),
        }
    }
}

/// What a round moved from the journal into segments.
pub(super) struct Tiered {
    pub entries: Vec<(PartitionId, Entry)>,
    /// Of the segment that refers to the journal.
    pub referring: Option<Referring>,
    /// Partitions of deleted topics.
    pub dropped: BTreeSet<PartitionId>,
    /// Of the journal.
    pub bytes: u64,
}
