//! Referring: what is large is not copied from the journal into a segment. The segment's indexes say
//! where it stands, and the journal's object is kept as long as the segment is, as a part of it.

use super::block::Block;
use super::cache::Place;
use super::format::Stored;
use super::keys::{Name, Position};
use super::log::{FramePlace, Log};
use super::reading::{INDEX_OWN_BYTES, Stretch, index_of};
use super::segment::Referring;
use super::state::Image;
use super::writing::Group;
use crate::store::PartitionId;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

impl Group {
    /// The frames of a partition lie one behind the other, in their order, so that there is more of them
    /// to refer to.
    pub(super) fn side_by_side(mut self) -> Self {
        if !self.frames.is_sorted_by_key(|frame| frame.partition) {
            let mut both: Vec<_> = self.frames.into_iter().zip(self.done).collect();
            both.sort_by_key(|(frame, _)| frame.partition);
            (self.frames, self.done) = both.into_iter().unzip();
        }
        self
    }
}

/// What a segment refers to: whole objects of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Referred {
    /// Of these objects, with what nobody needs of them.
    pub bytes: u64,
    pub objects: Positions,
}

impl From<BTreeMap<Position, u64>> for Referred {
    /// From the objects with their sizes.
    fn from(objects: BTreeMap<Position, u64>) -> Self {
        let bytes = objects.values().sum();
        Self { bytes, objects: objects.into_keys().map(Span::from).collect() }
    }
}

/// Places one behind the other in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub epoch: i32,
    pub seqs: Range<u64>,
}

impl Span {
    fn begin(&self) -> Position {
        Position { epoch: self.epoch, seq: self.seqs.start }
    }
}

impl From<Position> for Span {
    fn from(at: Position) -> Self {
        Self { epoch: at.epoch, seqs: at.seq..at.seq.saturating_add(1) }
    }
}

/// A set of places in the journal: spans in their order, with room between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Positions(Vec<Span>);

impl FromIterator<Span> for Positions {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut spans: Vec<Span> = spans.into_iter().collect();
        spans.sort_by_key(Span::begin);
        let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match joined.last_mut() {
                Some(last) if last.epoch == span.epoch && span.seqs.start <= last.seqs.end => {
                    last.seqs.end = last.seqs.end.max(span.seqs.end);
                }
                _ => joined.push(span),
            }
        }
        Self(joined)
    }
}

impl Positions {
    pub(super) fn contains(&self, at: Position) -> bool {
        let behind = self.0.partition_point(|span| span.begin() <= at);
        let before = behind.checked_sub(1).map(|i| &self.0[i]);
        before.is_some_and(|span| span.epoch == at.epoch && span.seqs.contains(&at.seq))
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Position> {
        let of = |span: &Span| {
            let epoch = span.epoch;
            span.seqs.clone().map(move |seq| Position { epoch, seq })
        };
        self.0.iter().flat_map(of)
    }
}

impl Image {
    /// All that segments refer to.
    pub(super) fn referred(&self) -> Positions {
        self.referred.values().flat_map(|of| of.objects.spans()).cloned().collect()
    }

    /// Segments go that nothing names any more, and with them what only they refer to.
    pub(super) fn drop_segments(&mut self, names: &[Name]) -> Vec<Position> {
        let gone: Vec<_> = names.iter().filter_map(|name| self.referred.remove(name)).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let left = self.referred();
        let gone = gone.iter().flat_map(|of| of.objects.iter());
        gone.filter(|at| !left.contains(*at)).collect()
    }
}

impl Log {
    /// Takes note of what a segment refers to. What of it is in memory stays there, as readers look for it
    /// from now on: who is not far behind the tail asks the store for nothing.
    pub(super) fn refer(&mut self, referring: Referring) {
        let Referring { name, referred, indexes } = referring;
        self.image.referred.insert(name, referred);
        for (entry, index) in indexes {
            let mut offset = index.base_offset;
            while offset < index.end_offset
                && let Some(stretch) = Stretch::of(index.clone(), name, offset)
            {
                offset = stretch.end_offset();
                if matches!(stretch.place(), Place::Referred { .. }) {
                    self.rename(index.partition, &stretch);
                }
            }
            let cost = entry.index_length as usize + INDEX_OWN_BYTES;
            self.indexes.insert(index_of(&entry), index, cost);
        }
    }

    /// The blocks of a stretch's frames become that of the stretch, if all are there.
    fn rename(&mut self, id: PartitionId, stretch: &Stretch) {
        let frames = self.frames_of(id, &(stretch.base_offset()..stretch.end_offset()));
        let blocks = frames.iter().map(|frame| self.block(frame));
        let blocks: Vec<Block> = blocks.collect::<Option<_>>().unwrap_or_default();
        if blocks.is_empty() {
            return;
        }
        frames.iter().for_each(|frame| self.blocks.remove(frame.place()));
        let stored: Vec<Stored> = blocks.iter().flat_map(|b| b.committed()).cloned().collect();
        self.remember(stretch.place(), stored.into());
        // What was committed since goes after it.
        self.blocks.let_go(stretch.place());
    }
}

/// Which frames of a round are referred to.
#[derive(Default)]
pub(super) struct Plan {
    /// The objects that they are in, with their sizes.
    objects: BTreeMap<Position, u64>,
    frames: HashSet<(Position, u64)>,
}

impl Plan {
    /// Frames of a partition that lie one behind the other in an object are referred to from so many
    /// bytes on, if such frames are at least half of the object: the rest would be kept for nothing.
    pub(super) fn new(
        frames: &[(PartitionId, Vec<FramePlace>)],
        sizes: &BTreeMap<Position, u64>,
        least_bytes: u64,
    ) -> Self {
        let runs: Vec<&[FramePlace]> =
            frames.iter().flat_map(|(_, frames)| runs(frames, least_bytes)).collect();
        let mut large = BTreeMap::<Position, u64>::new();
        for run in &runs {
            *large.entry(run[0].at).or_default() += bytes_of(run);
        }
        let is_worth = |(at, bytes): (Position, u64)| {
            sizes.get(&at).filter(|size| bytes.saturating_mul(2) >= **size).map(|size| (at, *size))
        };
        let objects: BTreeMap<Position, u64> = large.into_iter().filter_map(is_worth).collect();
        let kept = runs.into_iter().filter(|run| objects.contains_key(&run[0].at)).flatten();
        let frames = kept.map(|frame| (frame.at, frame.offset)).collect();
        Self { objects, frames }
    }

    /// The size of a frame's object if it is referred to.
    pub(super) fn object_of(&self, frame: &FramePlace) -> Option<u64> {
        let is_referred = self.frames.contains(&(frame.at, frame.offset));
        is_referred.then(|| self.objects.get(&frame.at).copied()).flatten()
    }
}

/// Frames that lie one behind the other and have so many bytes together.
fn runs(frames: &[FramePlace], least_bytes: u64) -> Vec<&[FramePlace]> {
    let runs = frames.chunk_by(|before, frame| frame.is_behind(before));
    runs.filter(|run| bytes_of(run) >= least_bytes).collect()
}

fn bytes_of(run: &[FramePlace]) -> u64 {
    run.iter().map(|frame| frame.length).sum()
}

#[cfg(test)]
mod tests {
    use super::super::format::FRAME_BYTES;
    use super::*;
    use crate::store::objectlog::samples::partition;

    fn at(epoch: i32, seq: u64) -> Position {
        Position { epoch, seq }
    }

    fn positions(of: &[(i32, u64)]) -> Positions {
        of.iter().map(|(epoch, seq)| Span::from(at(*epoch, *seq))).collect()
    }

    #[test]
    fn places_are_kept_as_spans_and_none_is_added_or_lost() {
        let of = [(2, 0), (1, 7), (1, 5), (1, 6), (1, 9), (2, 1), (1, 6)];
        let set = positions(&of);
        assert_eq!(set.spans().len(), 3);
        for epoch in 0..4 {
            for seq in 0..12 {
                assert_eq!(set.contains(at(epoch, seq)), of.contains(&(epoch, seq)));
            }
        }
        let sorted = [(1, 5), (1, 6), (1, 7), (1, 9), (2, 0), (2, 1)];
        assert!(set.iter().eq(sorted.map(|(epoch, seq)| at(epoch, seq))));
        let long = Span { epoch: 1, seqs: 2..30 };
        let joined: Positions = set.spans().iter().cloned().chain([long]).collect();
        assert!(joined.contains(at(1, 29)) && joined.contains(at(1, 2)));
        assert!(!joined.contains(at(1, 30)) && !joined.contains(at(2, 2)));
        assert!(!Positions::default().contains(at(0, 0)));
    }

    #[test]
    fn what_another_segment_refers_to_stays_when_one_goes() {
        let name = |count| Name { epoch: 1, count };
        let referred = |of| Referred { bytes: 1, objects: positions(of) };
        let rows = [(name(1), referred(&[(1, 1), (1, 2), (1, 3)])), (name(2), referred(&[(1, 2)]))];
        let mut image = Image { referred: rows.into(), ..Image::default() };
        assert_eq!(image.drop_segments(&[name(3)]), []);
        assert_eq!(image.drop_segments(&[name(1), name(3)]), [at(1, 1), at(1, 3)]);
        assert_eq!(image.drop_segments(&[name(1)]), []);
        assert_eq!(image.drop_segments(&[name(2)]), [at(1, 2)]);
        assert!(image.referred.is_empty());
    }

    /// Frames in an object, each by its partition and its bytes.
    fn frames(object: &[(i32, u64)]) -> Vec<(PartitionId, Vec<FramePlace>)> {
        let mut offset = 40;
        let mut by_partition = BTreeMap::<PartitionId, Vec<FramePlace>>::new();
        for (number, length) in object {
            offset += FRAME_BYTES as u64;
            let (base_offset, end_offset) = (offset as i64, offset as i64 + 1);
            let (max_timestamp, length) = (0, *length);
            let at = at(1, 0);
            let (first, count) = (0, 1);
            let frame = FramePlace {
                base_offset,
                end_offset,
                max_timestamp,
                at,
                offset,
                length,
                first,
                count,
            };
            by_partition.entry(partition(*number)).or_default().push(frame);
            offset += length;
        }
        by_partition.into_iter().collect()
    }

    /// The bytes of the frames that are referred to.
    fn referred(object: &[(i32, u64)], size: u64) -> Vec<u64> {
        let frames = frames(object);
        let plan = Plan::new(&frames, &[(at(1, 0), size)].into(), 100);
        let of = frames.iter().flat_map(|(_, frames)| frames);
        let of = of.filter(|frame| plan.object_of(frame) == Some(size));
        of.map(|frame| frame.length).collect()
    }

    #[test]
    fn what_is_large_is_referred_to_if_it_is_most_of_its_object() {
        assert_eq!(referred(&[(0, 100)], 177), [100]);
        assert_eq!(referred(&[(0, 99)], 176), [0; 0]);
        assert_eq!(referred(&[(0, 60), (0, 50), (1, 99)], 400), [0; 0], "less than half");
        assert_eq!(referred(&[(0, 60), (0, 150), (1, 99)], 400), [60, 150]);
        assert_eq!(referred(&[(0, 60), (1, 90), (0, 60)], 240), [0; 0], "another is between");
        assert_eq!(referred(&[(2, 500), (1, 90), (0, 150)], 900), [150, 500]);
    }
}
