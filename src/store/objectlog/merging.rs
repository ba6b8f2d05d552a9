//! Merging: each round makes an entry of every partition that was written to, so small ones that
//! stand next to each other become one, and what lives on in an object of which most is dead is
//! moved out of it. It is a rewriting that takes nothing away.

use super::journal::Journal;
use super::keys::Name;
use super::rewriting::Run;
use super::state::{Entry, Image};
use crate::record::batch::Batch;
use crate::store::{Filter, Result, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Entries up to this size are small; each next size is so many times as large as entries are
/// merged at a time. So each byte is written again only a few times.
const SMALL_BYTES: u64 = 64 << 10;

impl Journal {
    /// Merges whatever can be merged, whenever the list has changed, until this process is fenced.
    pub(super) async fn merge_small(self: Arc<Self>) {
        loop {
            let changed = self.list_changed.notified();
            match self.merge_some().await {
                Ok(true) => {}
                Ok(false) => changed.await,
                Err(StoreError::Fenced) => return,
                Err(error) => {
                    tracing::error!(%error, "segments were not merged");
                    changed.await;
                }
            }
        }
    }

    /// Does one job. False if there is nothing to do.
    async fn merge_some(&self) -> Result<bool> {
        let _turn = self.rewriting.lock().await;
        let image = {
            let inner = self.lock();
            if inner.is_fenced {
                return Err(StoreError::Fenced);
            }
            inner.log.image.clone()
        };
        let runs = runs(&image, self.options.segment_bytes, self.options.merge_entries);
        // What changes meanwhile need not be copied for it.
        drop(image);
        let has_work = !runs.is_empty();
        if has_work {
            tracing::debug!(partitions = runs.len(), "merging entries");
            // If some of it is gone meanwhile, the list has changed: there is another look at it.
            self.replace(runs, &mut KeepAll).await?;
        }
        Ok(has_work)
    }
}

/// Lets all batches stay.
struct KeepAll;

#[async_trait::async_trait]
impl Filter for KeepAll {
    async fn filter(&mut self, batches: Vec<Batch>) -> Result<Vec<Batch>> {
        Ok(batches)
    }
}

/// What one job merges: at most one run of each partition, as much as one segment holds.
fn runs(image: &Image, segment_bytes: u64, count: usize) -> Vec<Run> {
    let sparse = sparse(image);
    let (mut runs, mut bytes) = (Vec::new(), 0);
    for (id, partition) in &image.partitions {
        let entries = &partition.entries;
        let moved = || entries.iter().position(|entry| sparse.contains(&entry.name));
        let run = mergeable(entries, segment_bytes, count).or_else(|| moved().map(|at| at..at + 1));
        let Some(run) = run else { continue };
        let inputs = entries[run].to_vec();
        bytes += inputs.iter().map(|entry| entry.bytes).sum::<u64>();
        if bytes > segment_bytes && !runs.is_empty() {
            break;
        }
        runs.push(Run { id: *id, inputs, before: entries.clone(), is_moved: true });
    }
    runs
}

/// The first entries that are to be one, of the smallest size of which there are enough.
fn mergeable(entries: &[Entry], segment_bytes: u64, count: usize) -> Option<Range<usize>> {
    let most = segment_bytes / count.max(2) as u64;
    let mut size = SMALL_BYTES.min(most);
    loop {
        let mut from = 0;
        while from < entries.len() {
            let run = entries[from..].iter().take_while(|entry| entry.bytes <= size);
            let to = from + run.count();
            if let Some(run) = balanced(entries, from..to, segment_bytes, count) {
                return Some(run);
            }
            from = to + 1;
        }
        if size >= most {
            return None;
        }
        size = (size * count as u64).min(most);
    }
}

/// As much of a run as one segment holds, without what is large beside all that follows it: else it
/// would be written again with every few small ones.
fn balanced(
    entries: &[Entry],
    run: Range<usize>,
    segment_bytes: u64,
    count: usize,
) -> Option<Range<usize>> {
    for from in run.clone() {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            bytes += entry.bytes;
            bytes <= segment_bytes
        };
        let to = from + entries[from..run.end].iter().take_while(fits).count();
        if to - from < count {
            return None;
        }
        let rest: u64 = entries[from + 1..to].iter().map(|entry| entry.bytes).sum();
        if entries[from].bytes.saturating_mul(2) <= rest {
            return Some(from..to);
        }
    }
    None
}

/// Segments of which less than half is named, with what they refer to, and the rest is worth to be given
/// back.
fn sparse(image: &Image) -> BTreeSet<Name> {
    const WORTH_BYTES: u64 = 1 << 20;
    // By name: bytes that live, and the place of their first index, which is behind all batches. What
    // was just moved has no more than that before it, however long its indexes are.
    let mut objects = BTreeMap::<Name, (u64, u64)>::new();
    for entry in image.partitions.values().flat_map(|partition| partition.entries.iter()) {
        let (live, end) = objects.entry(entry.name).or_insert((0, u64::MAX));
        *live += entry.bytes;
        *end = entry.index_offset.min(*end);
    }
    for (name, (_, end)) in &mut objects {
        let referred = image.referred.get(name).map_or(0, |referred| referred.bytes);
        *end = end.saturating_add(referred);
    }
    let is_sparse = |(_, (live, end)): &(Name, (u64, u64))| {
        *end >= WORTH_BYTES && live.saturating_mul(2) < *end
    };
    objects.into_iter().filter(is_sparse).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::samples::partition;
    use crate::store::objectlog::state::Partition;

    const MIB: u64 = 1 << 20;

    /// An entry for each size, each in an object of its own.
    fn entries(sizes: &[u64]) -> Vec<Entry> {
        let entry = |(i, bytes): (usize, &u64)| Entry {
            base_offset: i as i64,
            end_offset: i as i64 + 1,
            name: Name { epoch: 1, count: i as u64 },
            index_offset: *bytes,
            index_length: 0,
            bytes: *bytes,
            first_timestamp: 0,
            max_timestamp: 0,
        };
        sizes.iter().enumerate().map(entry).collect()
    }

    fn merged(sizes: &[u64]) -> Option<Range<usize>> {
        mergeable(&entries(sizes), 32 * MIB, 4)
    }

    #[test]
    fn enough_small_entries_side_by_side_are_merged_and_large_ones_never() {
        assert_eq!(merged(&[10, 10, 10]), None);
        assert_eq!(merged(&[10, 10, 10, 10]), Some(0..4));
        assert_eq!(merged(&[9 * MIB, 10, 10, 10, 10, 10]), Some(1..6));
        assert_eq!(merged(&[10, 10, 9 * MIB, 10, 10]), None);
        assert_eq!(merged(&[9 * MIB; 20]), None);
        assert_eq!(merged(&[8 * MIB; 20]), Some(0..4), "as much as a segment holds");
    }

    #[test]
    fn what_was_merged_waits_for_others_of_its_size() {
        assert_eq!(merged(&[200_000, 10, 10, 10]), None);
        assert_eq!(merged(&[200_000, 10, 10, 10, 10]), Some(1..5));
        assert_eq!(merged(&[200_000; 4]), Some(0..4));
    }

    /// Entries that come one by one are merged until nothing can be.
    #[test]
    fn the_list_stays_short_and_each_byte_is_written_a_few_times() {
        let (mut sizes, mut written, total) = (Vec::new(), 0, 20_000);
        for _ in 0..total {
            sizes.extend([1000]);
            while let Some(run) = merged(&sizes) {
                let bytes: u64 = sizes[run.clone()].iter().sum();
                written += bytes;
                sizes.splice(run, [bytes]);
            }
        }
        assert!(sizes.len() < 50, "{} entries", sizes.len());
        assert!(written < 10 * total * 1000, "{written} bytes written");
    }

    #[test]
    fn what_lives_on_in_an_object_that_is_mostly_dead_is_moved() {
        let mut image = Image::default();
        for (number, bytes) in [(0, 100), (1, MIB), (2, 50)] {
            let mut log = Partition { entries: entries(&[bytes]).into(), ..Partition::default() };
            Arc::make_mut(&mut log.entries)[0].index_offset = 3 * MIB;
            image.partitions.insert(partition(number), log);
        }
        let moved = runs(&image, 32 * MIB, 4);
        assert_eq!(moved.iter().map(|run| run.id.partition).collect::<Vec<_>>(), [0, 1, 2]);
        let log = image.partitions.get_mut(&partition(1)).unwrap();
        Arc::make_mut(&mut log.entries)[0].bytes = 2 * MIB;
        assert!(runs(&image, 32 * MIB, 4).is_empty());
    }
}
