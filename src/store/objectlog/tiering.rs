//! The round: what is committed goes from the journal into segments, and the journal is deleted.
//!
//! ```text
//!  segments ─▶ the list in memory ─▶ checkpoint ─▶ a list shows it ─▶ look ─▶ delete
//! ```
//!
//! Each step may be repeated, and is harmless when it comes late: a fenced owner's segments and
//! checkpoints have names of its own, and it deletes nothing, as it looked first.

use super::block::Block;
use super::checkpoint;
use super::faults::Rule;
use super::format::{Header, Kind};
use super::journal::Journal;
use super::keys::{self, Name, Position};
use super::log::{FramePlace, JournalObject, Tiered};
use super::metadata::Metadata;
use super::opening::{PAGE, list_all};
use super::putting::{self, Backoff};
use super::referring::{Plan, Positions};
use super::segment::{Builder, Referring, Segment};
use super::state::{Entry, Image};
use crate::store::{PartitionId, Result, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{self, Instant};

/// Commits are deleted so far apart, and no fewer at once, while the next round is not due.
const DELETE_INTERVAL: Duration = Duration::from_millis(10);
const DELETE_AT_ONCE: usize = 8;

pub(super) struct Tiering {
    journal: Arc<Journal>,
    metadata: Arc<Metadata>,
    /// When the last round began, and how long after the one before.
    begun: Instant,
    interval: Duration,
    checkpoints: u64,
    /// Where the newest checkpoint of this process stands.
    checkpointed: Option<Position>,
    /// How often the list had been rewritten then.
    rewritten: u64,
    /// What a process before this one left behind was looked for.
    swept: bool,
}

/// What one round works on.
struct Round {
    image: Image,
    frames: Vec<(PartitionId, Vec<FramePlace>)>,
    /// Of the journal's objects that they are in.
    sizes: BTreeMap<Position, u64>,
    entries: Vec<(PartitionId, Entry)>,
    referring: Option<Referring>,
    untiered_bytes: u64,
    rewritten: u64,
    dropped: BTreeSet<PartitionId>,
}

impl Round {
    /// The frames that live: what is below the log start needs no segment, nor does a deleted topic.
    fn take_frames(&mut self) -> Vec<(PartitionId, Vec<FramePlace>)> {
        let mut frames = std::mem::take(&mut self.frames);
        frames.retain_mut(|(id, frames)| {
            let start = self.image.partitions.get(id).map_or(0, |p| p.log_start_offset);
            frames.retain(|frame| frame.end_offset > start);
            !frames.is_empty() && !self.dropped.contains(id)
        });
        frames
    }
}

impl Tiering {
    pub(super) fn new(journal: Arc<Journal>, metadata: Arc<Metadata>) -> Self {
        Self {
            journal,
            metadata,
            begun: Instant::now(),
            interval: Duration::ZERO,
            checkpoints: 0,
            checkpointed: None,
            rewritten: 0,
            swept: false,
        }
    }

    /// Makes rounds until this process is fenced.
    pub(super) async fn run(mut self) {
        let options = self.journal.options.clone();
        loop {
            let full = self.journal.until_full(self.checkpointed);
            // Either reason is enough; an end of the wait is no error.
            let _ = time::timeout(options.round_interval, full).await;
            match self.round().await {
                Ok(()) => {}
                Err(StoreError::Fenced) => return,
                Err(error) => {
                    tracing::error!(%error, "a round of tiering failed");
                    time::sleep(options.round_interval).await;
                }
            }
        }
    }

    async fn round(&mut self) -> Result<()> {
        self.interval = self.begun.elapsed();
        self.begun += self.interval;
        let mut round = self.begin();
        self.drop_deleted(&mut round).await?;
        let is_new = self.checkpointed != Some(round.image.position);
        if !is_new && round.rewritten == self.rewritten && round.dropped.is_empty() {
            return Ok(());
        }
        let faults = self.journal.options.faults;
        let late = match self.put_segments(&mut round).await {
            Err(error) if error != StoreError::Fenced => {
                self.take_back(&round).await;
                return Err(error);
            }
            put => put?,
        };
        self.change_list(&mut round);
        if !faults.keep(Rule::CheckpointBeforeDelete) {
            self.delete(&round.image, None).await;
        }
        let name = self.put_checkpoint(&round.image).await;
        self.rewritten = round.rewritten;
        for segment in late {
            self.put_segment(segment).await;
        }
        if !faults.keep(Rule::LookBeforeTrim) {
            self.delete_journal(round.image.position).await;
        }
        if !faults.keep(Rule::LookBeforeDelete) {
            self.delete_segments(&round.image).await;
        }
        self.journal.look().await?;
        self.journal.options.metrics.round_time.observe(self.begun.elapsed());
        self.delete(&round.image, Some(name)).await;
        Ok(())
    }

    /// What is committed now.
    fn begin(&self) -> Round {
        let mut inner = self.journal.lock();
        let image = inner.log.image.clone();
        let mut round = Round {
            image,
            frames: inner.log.frames(),
            sizes: inner.log.objects.iter().map(|object| (object.at, object.bytes)).collect(),
            entries: Vec::new(),
            referring: None,
            untiered_bytes: inner.log.untiered_bytes,
            rewritten: inner.log.rewritten,
            dropped: BTreeSet::new(),
        };
        if !self.journal.options.faults.keep(Rule::TierCommittedOnly) {
            inner.tier_uncommitted(&mut round.image, &mut round.frames);
        }
        round
    }

    /// Finds the partitions of deleted topics. The metadata is read to its end first: an old view
    /// would take a new topic for a deleted one.
    async fn drop_deleted(&self, round: &mut Round) -> Result<()> {
        let unknown = |image: &Image| -> BTreeSet<PartitionId> {
            let topics = self.metadata.topics();
            let ids = image.partitions.keys().copied();
            ids.filter(|id| topics.by_id(id.topic).is_none()).collect()
        };
        if unknown(&round.image).is_empty() {
            return Ok(());
        }
        if self.journal.options.faults.keep(Rule::JournalBeforeMetadata) {
            self.metadata.refresh().await?;
        }
        round.dropped = unknown(&round.image);
        Ok(())
    }

    /// Puts the frames as segments, and notes their entries. Gives those that are
    /// still to be put, which only a fault leaves.
    async fn put_segments(&mut self, round: &mut Round) -> Result<Vec<Segment>> {
        let options = self.journal.options.clone();
        let mut late = Vec::new();
        let mut builder = self.builder();
        let mut frames = round.take_frames();
        let least_bytes = match self.journal.objects.copies_cheaply() {
            true => u64::MAX,
            false => options.refer_bytes,
        };
        let mut plan = Plan::new(&frames, &round.sizes, least_bytes);
        // Those first, so that one segment has all that refers: no two share what they refer to.
        let is_copied = |frame: &FramePlace| plan.object_of(frame).is_none();
        frames.sort_by_key(|(_, frames)| frames.iter().all(is_copied));
        for (id, frames) in &frames {
            for frame in frames {
                let stored = self.stored(frame).await?;
                builder.split(*id, frame.base_offset, options.segment_bytes);
                match plan.object_of(frame) {
                    Some(bytes) => builder.refer(*id, frame, bytes, stored.committed()),
                    None => builder.add(*id, stored.committed()),
                }
                if builder.bytes() >= options.segment_bytes {
                    let full = std::mem::replace(&mut builder, self.builder());
                    late.extend(self.enter(round, full.finish()).await);
                    plan = Plan::default();
                }
            }
        }
        if !builder.is_empty() {
            late.extend(self.enter(round, builder.finish()).await);
        }
        Ok(late)
    }

    /// Deletes what a round put that cannot come to its end: no list names it, and with each try there
    /// would be more of it.
    async fn take_back(&self, round: &Round) {
        let names: BTreeSet<Name> = round.entries.iter().map(|(_, entry)| entry.name).collect();
        let keys = names.into_iter().map(|name| self.journal.keys.segment(name));
        self.send_deletes(keys.collect()).await;
    }

    async fn enter(&self, round: &mut Round, mut segment: Segment) -> Option<Segment> {
        round.entries.extend(&segment.entries);
        if let Some(referring) = segment.referring.take() {
            tracing::debug!(bytes = referring.referred.bytes, "referring to commits");
            round.referring = Some(referring);
        }
        if !self.journal.options.faults.keep(Rule::SegmentBeforeCheckpoint) {
            return Some(segment);
        }
        self.put_segment(segment).await;
        None
    }

    async fn put_segment(&self, segment: Segment) {
        let key = self.journal.keys.segment(segment.name);
        putting::put_own(self.journal.objects.as_ref(), &key, segment.parts).await;
    }

    fn builder(&self) -> Builder {
        Builder::new(self.journal.next_segment(), self.journal.nonce, wall_clock_ms())
    }

    /// The batches of a frame, from memory or the journal.
    async fn stored(&self, frame: &FramePlace) -> Result<Block> {
        let mut backoff = Backoff::default();
        loop {
            let cached = self.journal.lock().log.block(frame);
            if let Some(block) = cached {
                return Ok(block);
            }
            match self.journal.frame(*frame).await {
                Ok(Some((block, _))) => return Ok(block),
                // Only who took over deletes what is not in segments.
                Ok(None) => return Err(StoreError::Fenced),
                Err(StoreError::Unavailable(text)) => {
                    let error = crate::store::objects::ObjectError(text);
                    backoff.wait("reading the journal", &error).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The list changes in memory, and the round's image gets it as it is then.
    fn change_list(&self, round: &mut Round) {
        let tiered = Tiered {
            entries: std::mem::take(&mut round.entries),
            referring: round.referring.take(),
            dropped: std::mem::take(&mut round.dropped),
            bytes: round.untiered_bytes,
        };
        let mut inner = self.journal.lock();
        inner.log.tiered(&mut round.image, tiered);
        round.rewritten = inner.log.rewritten;
        self.journal.options.metrics.depth_bytes.set(inner.log.untiered_bytes);
        drop(inner);
        self.journal.list_changed.notify_one();
    }

    /// Puts the checkpoint and waits until a list shows it.
    async fn put_checkpoint(&mut self, image: &Image) -> Name {
        let journal = &self.journal;
        self.checkpoints += 1;
        let name = match journal.options.faults.keep(Rule::NumberedCheckpoints) {
            true => Name { epoch: journal.epoch, count: self.checkpoints },
            false => Name { epoch: image.position.epoch, count: image.position.seq },
        };
        let key = journal.keys.checkpoint(name);
        let mut image = image.clone();
        for partition in image.partitions.values_mut() {
            if !journal.options.faults.keep(Rule::CheckpointHasStart) {
                partition.log_start_offset = 0;
            }
            if !journal.options.faults.keep(Rule::CheckpointHasProducers) {
                partition.producers = Default::default();
            }
        }
        let bytes = checkpoint::encode(name, journal.nonce, &image);
        putting::put_own(journal.objects.as_ref(), &key, vec![bytes]).await;
        while !list_all(journal.objects.as_ref(), &journal.keys.checkpoints()).await.contains(&key)
        {
            time::sleep(journal.options.idle_look).await;
        }
        self.checkpointed = Some(image.position);
        name
    }

    /// Only now: nothing of this is needed by who opens from the checkpoint, or from a later one.
    async fn delete(&mut self, image: &Image, checkpoint: Option<Name>) {
        self.delete_journal(image.position).await;
        self.delete_segments(image).await;
        let Some(checkpoint) = checkpoint else { return };
        let journal = &self.journal;
        let older = list_all(journal.objects.as_ref(), &journal.keys.checkpoints()).await;
        let older =
            older.into_iter().filter(|key| keys::name_of(key).is_some_and(|n| n < checkpoint));
        self.send_deletes(older.collect()).await;
        if !self.swept {
            self.sweep(image).await;
        }
    }

    /// The journal below a checkpoint's position, but what segments refer to, and its fences: they are
    /// what a late put of an old owner runs into.
    async fn delete_journal(&self, position: Position) {
        let journal = &self.journal;
        let keep_fences = journal.options.faults.keep(Rule::KeepFences);
        let below: Vec<_> = {
            let mut inner = journal.lock();
            let referred = self.referred(&inner.log.image);
            let count = inner.log.objects.partition_point(|object| object.at < position);
            let below = inner.log.objects.drain(..count);
            let goes = |o: &JournalObject| !(o.is_fence && keep_fences || referred.contains(o.at));
            below.filter(goes).collect()
        };
        let keys: Vec<_> = below.iter().map(|object| journal.keys.journal(object.at)).collect();
        self.delete_slowly(&keys).await;
    }

    /// Spreads deletions over half the time in which so many objects came: clients wait for those that
    /// are put meanwhile. There is no time if the next round is due.
    async fn delete_slowly(&self, keys: &[String]) {
        let times = (self.interval / 2).as_nanos() / DELETE_INTERVAL.as_nanos();
        let at_once = keys.len().div_ceil(times.max(1) as usize).max(DELETE_AT_ONCE);
        let mut due = Instant::now();
        for keys in keys.chunks(at_once) {
            self.send_deletes(keys.to_vec()).await;
            due += DELETE_INTERVAL;
            let full = self.journal.until_full(self.checkpointed);
            let _ = time::timeout_at(due, full).await;
        }
    }

    /// What is kept of the journal: it is a part of segments.
    fn referred(&self, image: &Image) -> Positions {
        match self.journal.options.faults.keep(Rule::KeepReferred) {
            true => image.referred(),
            false => Positions::default(),
        }
    }

    /// Segments that left the list, and with each what only it refers to.
    async fn delete_segments(&mut self, image: &Image) {
        let doomed: Vec<_> = {
            let doomed = &mut self.journal.lock().log.doomed;
            std::mem::take(doomed).into_iter().collect()
        };
        if doomed.is_empty() {
            return;
        }
        let unnamed = self.unnamed(image, &doomed);
        // What was rewritten after the checkpoint is named there, and goes with the next round.
        let kept = doomed.into_iter().filter(|name| unnamed.binary_search(name).is_err());
        let referred = {
            let log = &mut self.journal.lock().log;
            log.doomed.extend(kept);
            log.image.drop_segments(&unnamed)
        };
        if !referred.is_empty() {
            tracing::debug!(objects = referred.len(), "deleting commits that were referred to");
        }
        let keys = &self.journal.keys;
        let referred = referred.into_iter().map(|at| keys.journal(at));
        let keys = unnamed.iter().map(|name| keys.segment(*name)).chain(referred);
        self.send_deletes(keys.collect()).await;
    }

    /// Those of `names` that no range names, that nothing is being rewritten into, and that no
    /// later owner can have made. In their order.
    fn unnamed(&self, image: &Image, names: &[Name]) -> Vec<Name> {
        let (live, under_way) = {
            let log = &self.journal.lock().log;
            (log.image.clone(), log.under_way.clone())
        };
        let mut named = image.names();
        named.extend(live.names());
        named.extend(under_way);
        let own_names = self.journal.options.faults.keep(Rule::OwnNames);
        let is_ours = |name: &Name| name.epoch <= self.journal.epoch || !own_names;
        let ours = |name: &&Name| is_ours(name) && !named.contains(name);
        names.iter().filter(ours).copied().collect()
    }

    /// Looks once for what processes before this one did not come to delete.
    async fn sweep(&mut self, image: &Image) {
        let journal = self.journal.clone();
        let objects = journal.objects.as_ref();
        let segments = list_all(objects, &journal.keys.segments()).await;
        let names: Vec<_> = segments.iter().filter_map(|key| keys::name_of(key)).collect();
        let orphans =
            self.unnamed(image, &names).into_iter().map(|name| journal.keys.segment(name));
        self.send_deletes(orphans.collect()).await;

        let referred = self.referred(&journal.lock().log.image);
        let mut data = Vec::new();
        for key in list_all(objects, &journal.keys.journals()).await {
            let is_left = |at| at < image.position && !referred.contains(at);
            if keys::position_of(&key).is_some_and(is_left) {
                let head = objects.get(&key, 0, super::format::HEADER_BYTES as u64).await;
                // What cannot be read now is left to the next process.
                let Ok(Some(head)) = head else { continue };
                if Header::read(&head).is_ok_and(|(header, ..)| header.kind == Kind::Journal) {
                    data.push(key);
                }
            }
        }
        self.send_deletes(data).await;
        self.swept = true;
    }

    async fn send_deletes(&self, keys: Vec<String>) {
        for page in keys.chunks(PAGE) {
            let mut backoff = Backoff::default();
            while let Err(error) = self.journal.objects.delete(page.to_vec()).await {
                backoff.wait("deleting", &error).await;
            }
        }
    }
}

impl Journal {
    /// Done when enough of the journal for a round waits to be tiered, and some of it stands behind
    /// `tiered`.
    async fn until_full(&self, tiered: Option<Position>) {
        let waits = || {
            let log = &self.lock().log;
            let is_enough = log.untiered_bytes >= self.options.round_bytes;
            is_enough && Some(log.image.position) != tiered
        };
        loop {
            let progress = self.progress.notified();
            if waits() {
                return;
            }
            progress.await;
        }
    }
}

fn wall_clock_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{batch, batches, large_batch};
    use super::super::{ObjectLog, Options};
    use super::*;
    use crate::protocol::wire::Uuid;
    use crate::store::objects::Objects;
    use crate::store::objects::memory::Memory;
    use crate::store::topics::Topic;
    use crate::store::{Owner, State, Storage};

    const ID: PartitionId = PartitionId { topic: Uuid([7; 16]), partition: 0 };

    async fn commits(objects: &Memory) -> usize {
        // One is the fence.
        objects.list("journal/", "", usize::MAX).await.unwrap().len() - 1
    }

    /// A log whose first round has just put its checkpoint, after half a minute of so many commits.
    async fn tiered(count: i64, round_bytes: u64) -> (Arc<Memory>, Arc<ObjectLog>) {
        let objects = Arc::new(Memory::default());
        let options =
            Options { registration: false, round_bytes, ..Options::new(1, Owner::default()) };
        let log = ObjectLog::start(objects.clone(), options);
        log.state().wait_for(|state| *state == State::Serving).await.unwrap();
        let topic = Topic { id: ID.topic, name: "t".into(), partitions: 1, ..Topic::default() };
        log.create_topic(topic).await.unwrap();
        for offset in 0..count {
            log.append(ID, offset, vec![batch(offset, 1, 0)]).await.unwrap();
        }
        while objects.list("checkpoint/", "", 1).await.unwrap().is_empty() {
            time::sleep(Duration::from_millis(1)).await;
        }
        (objects, log)
    }

    #[tokio::test(start_paused = true)]
    async fn commits_are_deleted_over_half_the_time_in_which_they_came() {
        let (objects, log) = tiered(30_000, u64::MAX).await;
        let mut last = commits(&objects).await;
        assert!((29_900..=30_000).contains(&last), "{last}");
        for second in 1..=14 {
            time::sleep(Duration::from_secs(1)).await;
            let now = commits(&objects).await;
            assert!((1_900..=2_100).contains(&(last - now)), "{second}: {last} to {now}");
            last = now;
        }
        time::sleep(Duration::from_secs(2)).await;
        assert_eq!(commits(&objects).await, 0);
        // What is only a little goes at once, a few at a time.
        log.append(ID, 30_000, batches(30_000, &[1])).await.unwrap();
        time::sleep(Duration::from_secs(31)).await;
        assert_eq!(commits(&objects).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_round_does_not_wait_for_slow_deletions() {
        let (objects, log) = tiered(30_000, 16 << 20).await;
        time::sleep(Duration::from_secs(1)).await;
        assert!(commits(&objects).await > 20_000);
        for i in 0..500 {
            log.append(ID, 30_000 + i, vec![large_batch(30_000 + i)]).await.unwrap();
        }
        time::sleep(Duration::from_secs(1)).await;
        let left = commits(&objects).await;
        assert!(left < 500, "{left}, though those of the next round go too");
    }
}
