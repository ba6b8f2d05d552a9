//! Rewriting: some entries of a partition's list are replaced by one whose segment holds less
//! ([`Journal::rewrite`]), or only by fewer ([`Journal::merge_small`]).
//!
//! ```text
//!  plan ─▶ read, filter ─▶ put a segment ─▶ swap in the list as it is now
//! ```
//!
//! The round that comes next makes it last: until its checkpoint is put, a crash leaves the entries
//! that there were, and an orphan. Offsets never change, and the range that replaces others reaches
//! from the first base to the last end. So that readers come to its end, its last batch stays, if
//! need be without records; and so does the last one of each producer, as in Kafka.

use super::faults::Rule;
use super::format::{self, HEADER_BYTES, Stored};
use super::journal::Journal;
use super::keys::Name;
use super::putting::{self, Backoff};
use super::reading;
use super::segment::{Builder, Chunk, Index};
use super::state::Entry;
use crate::record::batch::{Batch, Header};
use crate::record::filter::emptied;
use crate::store::objects::ObjectError;
use crate::store::{Filter, Layout, PartitionId, Result, StoreError};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most that is read at once.
const READ_BYTES: u64 = 4 << 20;

/// Batches that follow each other, and the offset at which what follows begins.
pub(super) type Settled = (Vec<Batch>, i64);

/// Entries of a partition, one after the other, which one is to replace.
pub(super) struct Run {
    pub id: PartitionId,
    pub inputs: Vec<Entry>,
    /// The whole list when it was planned; only a fault goes back to it.
    pub before: Arc<Vec<Entry>>,
    /// It goes into another object also if nothing of it changes.
    pub is_moved: bool,
}

/// What is left of a run.
#[derive(PartialEq, Eq)]
enum Filled {
    Changed,
    /// All that there was: it may as well stay where it is.
    Same,
    /// Some of it left the list and is gone.
    Gone,
}

impl Run {
    fn base_offset(&self) -> i64 {
        self.inputs[0].base_offset
    }

    fn end_offset(&self) -> i64 {
        self.inputs[self.inputs.len() - 1].end_offset
    }
}

impl Journal {
    /// A name for a segment: none is given twice.
    pub(super) fn next_segment(&self) -> Name {
        let epoch = if self.options.faults.keep(Rule::UniqueNames) { self.epoch } else { 0 };
        Name { epoch, count: self.lock().log.next_segment() }
    }

    pub(super) fn layout(&self, partition: PartitionId) -> Result<Layout> {
        let inner = self.lock();
        self.check_fresh(&inner)?;
        Ok(inner.log.layout(partition))
    }

    /// The batches of a segment from `offset` on, and where those end; `None` behind all segments.
    /// The cache is left as it is: who reads so reads everything, once.
    pub(super) async fn read_settled(
        &self,
        id: PartitionId,
        offset: i64,
    ) -> Result<Option<Settled>> {
        let mut gone = None;
        loop {
            let entry = {
                let inner = self.lock();
                self.check_fresh(&inner)?;
                let partition = inner.log.image.partitions.get(&id);
                partition.and_then(|partition| partition.entry_behind(offset))
            };
            let Some(entry) = entry else { return Ok(None) };
            if let Some((mut batches, next)) = self.read_entry(id, entry, offset).await? {
                batches.retain(|batch| batch.header.last_offset() >= offset);
                return Ok(Some((batches, next)));
            }
            // The list that still names what is gone is not the newest any more.
            if gone.replace(entry) == Some(entry) {
                return Err(StoreError::Fenced);
            }
        }
    }

    /// Replaces the entries of a partition, from its first one on, by what `filter` leaves of them,
    /// up to the one that holds `end_offset`. It begins at the first, always: who takes a tombstone
    /// away must have seen all that is before it.
    pub(super) async fn rewrite(
        &self,
        id: PartitionId,
        end_offset: i64,
        filter: &mut dyn Filter,
    ) -> Result<()> {
        let mut at = i64::MIN;
        if !self.options.faults.keep(Rule::TombstonesFromStart) {
            let first = self.plan(id, at, end_offset);
            at = first.map_or(at, |run| run.inputs[0].end_offset);
        }
        loop {
            let _turn = self.rewriting.lock().await;
            let Some(run) = self.plan(id, at, end_offset) else { break };
            let end = run.end_offset();
            if self.replace(vec![run], filter).await? {
                at = end;
            }
        }
        let mut inner = self.lock();
        if let Some(partition) = inner.log.image.partitions.get_mut(&id) {
            partition.clean_end_offset = partition.clean_end_offset.max(end_offset);
            inner.log.rewritten += 1;
        }
        Ok(())
    }

    /// The next entries behind `at` that go into one segment.
    fn plan(&self, id: PartitionId, at: i64, end_offset: i64) -> Option<Run> {
        let inner = self.lock();
        let before = inner.log.image.partitions.get(&id)?.entries.clone();
        let behind = before.iter().filter(|entry| entry.end_offset > at);
        let mut bytes = 0;
        let fits = |(i, entry): &(usize, &Entry)| {
            bytes += entry.bytes;
            entry.base_offset < end_offset && (*i == 0 || bytes <= self.options.segment_bytes)
        };
        let inputs: Vec<_> = behind.enumerate().take_while(fits).map(|(_, entry)| *entry).collect();
        (!inputs.is_empty()).then_some(Run { id, inputs, before, is_moved: false })
    }

    /// Does one job: puts a segment with a range for each run, and swaps. False if there is no such
    /// job any more, as some of what it was to replace left the list and is gone.
    pub(super) async fn replace(&self, runs: Vec<Run>, filter: &mut dyn Filter) -> Result<bool> {
        let under_way = UnderWay::begin(self);
        let mut builder = Builder::new(under_way.name, self.nonce, 0);
        let mut is_changed = false;
        for run in &runs {
            match self.fill(&mut builder, run, filter).await? {
                Filled::Gone => return Ok(false),
                filled => is_changed |= filled == Filled::Changed,
            }
        }
        if !is_changed {
            return Ok(true);
        }
        let segment = builder.finish();
        let key = self.keys.segment(segment.name);
        putting::put_own(self.objects.as_ref(), &key, segment.parts).await;
        self.swap(&runs, segment.entries);
        if !self.options.faults.keep(Rule::StillNamed) {
            let inputs = runs.iter().flat_map(|run| &run.inputs);
            let keys = inputs.map(|entry| self.keys.segment(entry.name)).collect();
            let _ = self.objects.delete(keys).await;
        }
        Ok(true)
    }

    /// Adds a range with what is left of a run.
    async fn fill(
        &self,
        builder: &mut Builder,
        run: &Run,
        filter: &mut dyn Filter,
    ) -> Result<Filled> {
        let youngest = run.inputs.iter().map(|entry| entry.max_timestamp).max().unwrap_or(0);
        builder.begin(run.id, run.base_offset(), youngest);
        let of_producers = self.last_of_producers(run.id);
        let mut is_changed = run.is_moved || run.inputs.len() > 1;
        for entry in &run.inputs {
            let mut at = entry.base_offset;
            while at < entry.end_offset {
                let Some((batches, next)) = self.read_entry(run.id, *entry, at).await? else {
                    return self.check_left(run.id, entry).map(|()| Filled::Gone);
                };
                let headers: Vec<Header> = batches.iter().map(|batch| batch.header).collect();
                let last = headers.last().map(|last| last.base_offset);
                let last = last.filter(|_| next >= run.end_offset());
                let left = filter.filter(batches).await?;
                let left = with_emptied(&headers, left, |header| {
                    let is_last = last == Some(header.base_offset)
                        || of_producers.contains(&header.last_offset());
                    is_last && self.options.faults.keep(Rule::KeepRanges)
                })?;
                is_changed |= !left.iter().map(|batch| batch.header).eq(headers);
                builder.add(run.id, &left.iter().map(Stored::from).collect::<Vec<_>>());
                at = next;
            }
        }
        if self.options.faults.keep(Rule::KeepRanges) {
            builder.end_at(run.end_offset());
        } else {
            builder.shrink();
        }
        Ok(if is_changed { Filled::Changed } else { Filled::Same })
    }

    /// What is gone may be below the log start since, or of a deleted topic. Nobody else deletes what
    /// the list names.
    fn check_left(&self, id: PartitionId, entry: &Entry) -> Result<()> {
        let inner = self.lock();
        let partition = inner.log.image.partitions.get(&id);
        match partition.is_some_and(|partition| partition.entries.contains(entry)) {
            true => Err(StoreError::Fenced),
            false => Ok(()),
        }
    }

    /// The last offsets of the batches that say last what their producers did.
    fn last_of_producers(&self, id: PartitionId) -> BTreeSet<i64> {
        let inner = self.lock();
        let producers = inner.log.image.partitions.get(&id).map(|partition| &partition.producers);
        let producers = producers.into_iter().flat_map(|producers| producers.iter());
        producers.filter_map(|(_, producer)| Some(producer.batches.back()?.last_offset)).collect()
    }

    fn swap(&self, runs: &[Run], outputs: Vec<(PartitionId, Entry)>) {
        let mut inner = self.lock();
        let log = &mut inner.log;
        let mut outputs = outputs.into_iter().peekable();
        for run in runs {
            // Without a fault each has one.
            let output = outputs.next_if(|(id, _)| *id == run.id).map(|(_, entry)| entry);
            let Some(partition) = log.image.partitions.get_mut(&run.id) else { continue };
            if !self.options.faults.keep(Rule::SwapInList) {
                partition.entries.clone_from(&run.before);
            }
            partition.swap(&run.inputs, output);
        }
        // What is still named stays.
        log.doomed.extend(runs.iter().flat_map(|run| &run.inputs).map(|entry| entry.name));
        log.rewritten += 1;
        drop(inner);
        self.list_changed.notify_one();
    }

    /// The batches of an entry from the chunk on that holds `offset`, past the cache; `None` if the
    /// object is gone.
    async fn read_entry(
        &self,
        id: PartitionId,
        entry: Entry,
        offset: i64,
    ) -> Result<Option<Settled>> {
        let key = self.keys.segment(entry.name);
        let Some(index) = self.index_past_cache(id, entry, &key).await? else { return Ok(None) };
        let number = index.chunk_of(offset);
        let first = index.chunks[number];
        let within =
            |chunk: &&Chunk| chunk.offset - first.offset + u64::from(chunk.length) <= READ_BYTES;
        let row = &index.chunks[number + 1..index.row(number).end];
        let last = number + row.iter().take_while(within).count();
        let chunks = &index.chunks[number..=last];
        let length = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
        let key = self.key_of(entry.name, &first);
        let Some(bytes) = self.get_surely(&key, first.offset, length).await? else {
            return Ok(None);
        };
        let batches = index.batches(chunks, &bytes);
        match batches.and_then(|bytes| format::split_rising(bytes, first.base_offset)) {
            Ok((batches, _)) => Ok(Some((batches, index.end_of(last)))),
            Err(malformed) if first.at.is_none() => Err(malformed.at(&key)),
            Err(malformed) => {
                let head = self.get_surely(&key, 0, HEADER_BYTES as u64).await?;
                reading::none_if_gone(head, malformed, &key)
            }
        }
    }

    async fn index_past_cache(
        &self,
        id: PartitionId,
        entry: Entry,
        key: &str,
    ) -> Result<Option<Index>> {
        let length = entry.index_length.into();
        let Some(bytes) = self.get_surely(key, entry.index_offset, length).await? else {
            return Ok(None);
        };
        let index = Index::decode(&bytes).map_err(|malformed| malformed.at(key))?;
        let range = (index.partition, index.base_offset, index.end_offset);
        if range != (id, entry.base_offset, entry.end_offset) {
            return Err(StoreError::Corrupt(format!("{key}: an index of something else")));
        }
        Ok(Some(index))
    }

    /// Asks until there is an answer, or this process is fenced.
    async fn get_surely(&self, key: &str, at: u64, length: u64) -> Result<Option<Bytes>> {
        let mut backoff = Backoff::default();
        loop {
            let error: ObjectError = match self.objects.get(key, at, length).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            if self.lock().is_fenced {
                return Err(StoreError::Fenced);
            }
            backoff.wait(key, &error).await;
        }
    }
}

/// What is left of batches with these headers, with empty ones where all of a batch that must stay
/// was taken out.
fn with_emptied(
    headers: &[Header],
    left: Vec<Batch>,
    must_stay: impl Fn(&Header) -> bool,
) -> Result<Vec<Batch>> {
    let mut left = left.into_iter().peekable();
    let mut all = Vec::with_capacity(headers.len());
    for header in headers {
        match left.next_if(|batch| batch.header.base_offset == header.base_offset) {
            Some(batch) => all.push(batch),
            None if must_stay(header) => all.push(emptied(header)),
            None => {}
        }
    }
    match left.next() {
        None => Ok(all),
        Some(_) => Err(StoreError::Corrupt("a filter made a batch that was not there".into())),
    }
}

/// The name of a segment that is being made: it is not deleted as an orphan until then. What the
/// list does not name in the end, as the job came to nothing, goes with the next round.
struct UnderWay<'a> {
    journal: &'a Journal,
    name: Name,
}

impl<'a> UnderWay<'a> {
    fn begin(journal: &'a Journal) -> Self {
        let name = journal.next_segment();
        if journal.options.faults.keep(Rule::SpareInFlight) {
            journal.lock().log.under_way.insert(name);
        }
        Self { journal, name }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let log = &mut self.journal.lock().log;
        log.under_way.remove(&self.name);
        log.doomed.insert(self.name);
    }
}
