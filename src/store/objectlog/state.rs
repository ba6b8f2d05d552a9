//! What the journal says, folded: the content of a checkpoint.
//!
//! Replay is this fold and so is every commit of a running owner, so the state in memory is always
//! what a replay of the store gives, and a crash between any two steps loses nothing.

use super::format::{Body, Frame};
use super::keys::{Name, Position};
use crate::store::producers::Producers;
use crate::store::{EpochStart, PartitionId};
use std::collections::BTreeMap;

/// All partitions, as they are before the journal's object at `position`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Image {
    pub position: Position,
    pub partitions: BTreeMap<PartitionId, Partition>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Partition {
    pub log_start_offset: i64,
    pub log_end_offset: i64,
    /// The leader epochs that appended, each with the offset that it began at.
    pub epochs: Vec<EpochStart>,
    pub producers: Producers,
    /// The live segments, in the order of their offsets. Ranges never overlap.
    pub entries: Vec<Entry>,
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
    pub max_timestamp: i64,
}

impl Image {
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

    fn move_start(&mut self, offset: i64) {
        self.log_start_offset = self.log_start_offset.max(offset);
        let start = self.log_start_offset;
        // The epoch that holds the log start stays, as the newest one that began at or below it.
        let below = self.epochs.partition_point(|epoch| epoch.start_offset <= start);
        self.epochs.drain(..below.saturating_sub(1));
    }

    /// Takes the entries out that are wholly below the log start.
    pub(super) fn drop_entries(&mut self) -> Vec<Entry> {
        let start = self.log_start_offset;
        let below = self.entries.partition_point(|entry| entry.end_offset <= start);
        self.entries.drain(..below).collect()
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
