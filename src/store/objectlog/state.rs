//! What the journal says, folded: the content of a checkpoint.
//!
//! Replay is this fold and so is every commit of a running owner, so the state in memory is always
//! what a replay of the store gives, and a crash between any two steps loses nothing.

use super::format::{Body, Frame};
use super::keys::{Name, Position};
use super::referring::Referred;
use crate::store::producers::Producers;
use crate::store::{EpochStart, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All partitions, as they are before the journal's object at `position`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Image {
    pub position: Position,
    pub partitions: BTreeMap<PartitionId, Partition>,
    /// Of each segment that refers to the journal, to what. So nobody must open it to know what is to be
    /// kept. Those that no entry names any more stay here until they are deleted.
    pub referred: BTreeMap<Name, Referred>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Partition {
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    /// The leader epochs that appended, each with the offset that it began at.
    pub epochs: Vec<EpochStart>,
    pub producers: Producers,
    /// Compaction has taken away what is superseded by a record below it.
    pub clean_end_offset: i64,
    /// The live segments, in the order of their offsets. Ranges never overlap. As of producers, a copy
    /// shares them until one of the two changes.
    pub entries: Arc<Vec<Entry>>,
}

/// One range of offsets of a partition in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub base_offset: i64,
    pub end_offset: i64,
    pub name: Name,
    /// Where the range's index is in the object; the index says where the batches are.
    pub index_offset: u64,
    pub index_length: u32,
    /// Of its batches.
    pub bytes: u64,
    /// The largest of the first batch, and of all. Where there is none, it is the time at which the
    /// batches came into a segment.
    pub first_timestamp: i64,
    pub max_timestamp: i64,
}

impl Image {
    /// Of the segments that entries name.
    pub(super) fn names(&self) -> BTreeSet<Name> {
        let entries = self.partitions.values().flat_map(|partition| partition.entries.iter());
        entries.map(|entry| entry.name).collect()
    }

    /// Takes in a frame. False if it does not go on where the partition's log ends, which only
    /// happens to a partition that was dropped with its topic; nothing is changed then.
    pub(super) fn apply(&mut self, frame: &Frame) -> bool {
        match &frame.body {
            Body::LogStart(offset) => {
                let Some(partition) = self.partitions.get_mut(&frame.partition) else {
                    return false;
                };
                if *offset > partition.log_end_offset {
                    return false;
                }
                partition.move_start(*offset);
            }
            Body::Batches { base_offset, batches } => {
                let end = self.partitions.get(&frame.partition).map_or(0, |p| p.log_end_offset);
                if end != *base_offset {
                    return false;
                }
                let partition = self.partitions.entry(frame.partition).or_default();
                partition.begin_epoch(frame.leader_epoch, *base_offset);
                for batch in batches {
                    partition.producers.apply(&batch.header);
                    partition.log_end_offset = batch.header.next_offset();
                }
            }
        }
        true
    }
}

impl Partition {
    fn begin_epoch(&mut self, epoch: i32, start_offset: i64) {
        if self.epochs.last().is_none_or(|last| last.epoch < epoch) {
            self.epochs.push(EpochStart { epoch, start_offset });
        }
    }

    pub(super) fn move_start(&mut self, offset: i64) {
        self.log_start_offset = self.log_start_offset.max(offset);
        let start = self.log_start_offset;
        // The epoch that holds the log start stays, as the newest one that began at or below it.
        let below = self.epochs.partition_point(|epoch| epoch.start_offset <= start);
        self.epochs.drain(..below.saturating_sub(1));
    }

    /// The first entry whose end is above an offset.
    pub(super) fn entry_behind(&self, offset: i64) -> Option<Entry> {
        self.entries.get(self.entries.partition_point(|entry| entry.end_offset <= offset)).copied()
    }

    /// Replaces entries by one that holds what is left of them, in the list as it is now: some of
    /// them, or all, may be below the log start since, and gone.
    pub(super) fn swap(&mut self, inputs: &[Entry], output: Option<Entry>) {
        let base_offset = inputs.first().map_or(0, |entry| entry.base_offset);
        let at = self.entries.partition_point(|entry| entry.end_offset <= base_offset);
        let entries = Arc::make_mut(&mut self.entries);
        let count = entries.len();
        entries.retain(|entry| !inputs.contains(entry));
        if entries.len() < count {
            entries.splice(at..at, output);
        }
    }

    /// Takes the entries out that are wholly below a committed log start.
    pub(super) fn drop_entries(&mut self, start: i64) -> Vec<Entry> {
        match self.entries.partition_point(|entry| entry.end_offset <= start) {
            0 => Vec::new(),
            below => Arc::make_mut(&mut self.entries).drain(..below).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::samples::{batches, frame, partition};

    #[test]
    fn a_frame_goes_on_where_the_log_ends_or_is_not_taken() {
        let mut image = Image::default();
        assert!(image.apply(&frame(1, batches(0, &[2, 3]))));
        assert!(!image.apply(&frame(1, batches(7, &[1]))), "a gap");
        assert!(!image.apply(&frame(1, batches(0, &[1]))), "offsets that were used");
        assert!(image.apply(&frame(2, batches(5, &[1]))));
        let log = &image.partitions[&partition(0)];
        assert_eq!((log.log_start_offset, log.log_end_offset), (0, 6));
        let epochs: Vec<_> = log.epochs.iter().map(|e| (e.epoch, e.start_offset)).collect();
        assert_eq!(epochs, [(1, 0), (2, 5)]);
    }

    #[test]
    fn what_is_rewritten_is_swapped_in_the_list_as_it_is_now() {
        let entry = |base_offset, end_offset, count| Entry {
            base_offset,
            end_offset,
            name: Name { epoch: 1, count },
            index_offset: 0,
            index_length: 0,
            bytes: 0,
            first_timestamp: 0,
            max_timestamp: 0,
        };
        let inputs = [entry(0, 5, 1), entry(5, 9, 2)];
        let output = entry(0, 9, 4);
        let swapped = |entries: &[Entry]| {
            let mut partition =
                Partition { entries: entries.to_vec().into(), ..Partition::default() };
            partition.swap(&inputs, Some(output));
            partition.entries.to_vec()
        };
        let last = entry(9, 12, 3);
        assert_eq!(swapped(&[inputs[0], inputs[1], last]), [output, last]);
        assert_eq!(swapped(&[inputs[1], last]), [output, last], "the first one is gone");
        assert_eq!(swapped(&[last]), [last], "all are gone");
        assert_eq!(swapped(&[]), []);
    }

    #[test]
    fn the_log_start_moves_forward_only_and_never_past_the_end() {
        let mut image = Image::default();
        let start = |offset| Frame {
            partition: partition(0),
            leader_epoch: 1,
            body: Body::LogStart(offset),
        };
        assert!(!image.apply(&start(1)));
        assert!(image.apply(&frame(1, batches(0, &[5]))));
        assert!(image.apply(&frame(2, batches(5, &[5]))));
        assert!(!image.apply(&start(11)));
        assert!(image.apply(&start(6)));
        assert!(image.apply(&start(3)));
        let log = &image.partitions[&partition(0)];
        assert_eq!(log.log_start_offset, 6);
        assert_eq!(log.epochs, [EpochStart { epoch: 2, start_offset: 5 }]);
    }
}
