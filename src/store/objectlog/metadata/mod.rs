//! The metadata log: topics, settings of brokers, blocks of producer ids and the cluster's id, shared
//! by all gateways.
//!
//! ```text
//! metadata/<seq %020d>            a command; who creates the key has decided the order
//! metadata/snapshot/<seq %020d>   the state after the commands up to seq
//! ```
//!
//! The rules, numbered as in the design. They were checked by a model of every interleaving:
//!
//! 1. A command carries (process nonce, number). The state holds the last number of each process,
//!    and a command that is not newer changes nothing.
//! 2. After a put at s succeeded, snapshots are listed. Is none at s or above, it is committed; else
//!    the put may have come after s was trimmed, and the newest snapshot tells whether it counts.
//!    If not, or if the outcome of the put is unknown, it is put again with the same number.
//! 3. What was read at s is applied only if a list made after the read shows no snapshot at s or
//!    above; else the newest snapshot is loaded. The same decides whether nothing at s is the end.
//! 4. A snapshot is listed before seqs at or below it are deleted. The newest is never deleted.
//!
//! One process does one thing at a time with its log. A caller that stops waiting leaves its
//! command in the log or not, as with any store that does not answer; nobody after it is harmed,
//! since a put that lands late is either at its own place in the order or on a trimmed seq.

pub mod faults;
pub mod format;
pub mod image;
pub(super) mod retry;

use crate::protocol::wire::Uuid;
use crate::store::objects::{Objects, Put, last_key};
use crate::store::topics::{BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics};
use crate::store::{Result, StoreError};
use bytes::Bytes;
use faults::{Rule, Settings};
use image::{Change, Command, Image, Outcome};
use retry::Retry;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

pub struct Metadata {
    objects: Arc<dyn Objects>,
    nonce: u64,
    settings: Settings,
    image: Mutex<Image>,
    /// Sent after the image changed.
    changes: watch::Sender<()>,
    /// Whoever has it is the one that works on the log.
    turn: tokio::sync::Mutex<Turn>,
}

#[derive(Default)]
struct Turn {
    /// The number of this process' last command.
    number: u64,
    /// The seq of the newest snapshot that this process knows.
    snapshot: u64,
}

/// The folder of commands and, in it, the one of snapshots.
const COMMANDS: &str = "metadata/";
const SNAPSHOTS: &str = "metadata/snapshot/";

/// Longest command. A longer one would be a topic with absurd configs.
const MAX_COMMAND_BYTES: usize = 1 << 20;

/// How many commands are read before what was read is checked and applied.
const COMMANDS_READ: usize = 64;

/// How many keys a list that looks for something to delete gives at once.
const KEYS_LISTED: usize = 1_000;

impl Metadata {
    /// Reads the log to its end. While the store does not answer, this goes on trying, as all of
    /// these calls do; only what cannot be read is an error. `nonce` is random, one for each start
    /// of the process.
    pub async fn open(objects: Arc<dyn Objects>, nonce: u64) -> Result<Self> {
        Self::start(objects, nonce, Settings::default()).await
    }

    /// Opens with other settings, for simulations.
    #[cfg(feature = "faults")]
    pub async fn open_with(
        objects: Arc<dyn Objects>,
        nonce: u64,
        settings: Settings,
    ) -> Result<Self> {
        Self::start(objects, nonce, settings).await
    }

    async fn start(objects: Arc<dyn Objects>, nonce: u64, settings: Settings) -> Result<Self> {
        let (image, changes, turn) = Default::default();
        let metadata = Self { objects, nonce, settings, image, changes, turn };
        metadata.refresh().await?;
        if metadata.image().cluster_id.is_none() {
            // Whoever comes first names the cluster, and all take that name.
            metadata.execute(Change::SetClusterId(Uuid::random().to_string())).await?;
        }
        Ok(metadata)
    }

    /// The topics as this process knows them.
    pub fn topics(&self) -> Arc<Topics> {
        self.image().topics.clone()
    }

    /// Wakes who waits for a command to be applied.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub fn cluster_id(&self) -> String {
        self.image().cluster_id.clone().unwrap_or_default()
    }

    /// The seq of the last command that this process has applied.
    pub fn seq(&self) -> u64 {
        self.image().seq
    }

    /// Whether the name is taken is decided by the order of the log.
    pub async fn create_topic(&self, topic: Topic) -> Result<()> {
        self.execute(Change::CreateTopic(topic)).await.map(drop)
    }

    pub async fn delete_topic(&self, id: Uuid) -> Result<()> {
        self.execute(Change::DeleteTopic(id)).await.map(drop)
    }

    /// That a topic gets more partitions is decided by the order of the log.
    pub async fn alter_topic(&self, id: Uuid, change: TopicChange) -> Result<()> {
        self.execute(Change::AlterTopic(id, change)).await.map(drop)
    }

    /// What is set of brokers, as this process knows it.
    pub fn broker_configs(&self) -> Arc<BrokerConfigs> {
        self.image().broker_configs.clone()
    }

    pub async fn alter_broker(&self, broker: String, changes: ConfigChanges) -> Result<()> {
        self.execute(Change::AlterBroker(broker, changes)).await.map(drop)
    }

    /// A block of `count` producer ids that nobody had or will have.
    pub async fn allocate_producer_ids(&self, count: u32) -> Result<Range<i64>> {
        match self.execute(Change::AllocateProducerIds(count)).await? {
            Outcome::ProducerIds(first) => Ok(first..first + i64::from(count)),
            other => unreachable!("an allocation that went well gives ids, not {other:?}"),
        }
    }

    /// Takes in all that was committed before this call.
    pub async fn refresh(&self) -> Result<()> {
        let mut turn = self.turn.lock().await;
        let mut retry = Retry::new("the metadata log");
        loop {
            let before = self.seq();
            match self.follow(&mut turn).await {
                Ok(Follow::End) => return Ok(()),
                Ok(Follow::More) => {}
                Err(StoreError::Unavailable(error)) => retry.note(&error),
                Err(error) => return Err(error),
            }
            if self.seq() == before {
                retry.wait().await;
            }
        }
    }

    /// Carries a command out: done when it is committed and applied.
    async fn execute(&self, change: Change) -> Result<Outcome> {
        let mut turn = self.turn.lock().await;
        // Counted also if the caller goes away before it is put: a number is never used again.
        turn.number += 1;
        let command = Command { nonce: self.nonce, number: turn.number, change };
        let bytes = format::encode_command(0, &command).len();
        if bytes > MAX_COMMAND_BYTES {
            return Err(StoreError::Unavailable(format!("a metadata command of {bytes} bytes")));
        }
        let outcome = self.commit(&mut turn, &command).await?;
        self.trim_if_due(&mut turn).await;
        outcome.error().map_or(Ok(outcome), Err)
    }

    async fn commit(&self, turn: &mut Turn, command: &Command) -> Result<Outcome> {
        let first = self.seq() + 1;
        let mut retry = Retry::new("the metadata log");
        loop {
            let before = self.seq();
            match self.attempt(turn, command).await {
                Ok(()) => {}
                Err(StoreError::Unavailable(error)) => retry.note(&error),
                Err(error) => return Err(error),
            }
            if let Some(outcome) = self.outcome(command, first)? {
                return Ok(outcome);
            }
            if self.seq() == before {
                retry.wait().await;
            }
        }
    }

    /// What became of a command that was put at `first` or later, if it is in the log.
    fn outcome(&self, command: &Command, first: u64) -> Result<Option<Outcome>> {
        let image = self.image();
        if image.may_have_forgotten(command.nonce, first) {
            // Put again, it could count twice.
            let text = "more processes came and went meanwhile than the log remembers";
            return Err(StoreError::Unavailable(text.into()));
        }
        Ok(image.outcome(command.nonce, command.number))
    }

    /// Puts a command behind all that is applied, or learns what stands there: rule (2).
    async fn attempt(&self, turn: &mut Turn, command: &Command) -> Result<()> {
        let seq = self.seq() + 1;
        let object = format::encode_command(seq, command);
        let early = self.early_look(seq).await?;
        match self.objects.put_new(&command_key(seq), vec![object.clone()]).await {
            Ok(Put::Created) if !self.settings.keep(Rule::VerifyAfterPut) => {
                self.apply(seq, [object])
            }
            Ok(Put::Created) => self.settle(turn, seq, vec![object], early).await.map(drop),
            Ok(Put::Exists) => self.follow(turn).await.map(drop),
            // It may have landed, or may land yet. What stands there tells; if nothing does, the
            // next attempt puts it again.
            Err(unknown) => {
                self.follow(turn).await?;
                Err(unknown.into())
            }
        }
    }

    /// Reads on behind what is applied: rule (3).
    async fn follow(&self, turn: &mut Turn) -> Result<Follow> {
        let first = self.seq() + 1;
        let early = self.early_look(first).await?;
        let mut read = Vec::new();
        while read.len() < COMMANDS_READ {
            let key = command_key(first + read.len() as u64);
            match self.objects.get(&key, 0, u64::MAX).await? {
                Some(object) => read.push(object),
                None => break,
            }
        }
        if !read.is_empty() && !self.settings.keep(Rule::VerifyAfterRead) {
            self.apply(first, read)?;
            return Ok(Follow::More);
        }
        let all = read.len() < COMMANDS_READ;
        let settled = self.settle(turn, first, read, early).await?;
        Ok(if all && settled == Settled::Applied { Follow::End } else { Follow::More })
    }

    /// Applies what was put or read from `first` on, unless that may be trimmed: then the newest
    /// snapshot is loaded in its place.
    async fn settle(
        &self,
        turn: &mut Turn,
        first: u64,
        objects: Vec<Bytes>,
        early: Option<bool>,
    ) -> Result<Settled> {
        let covered = match early {
            Some(covered) => covered,
            None => self.is_covered(first).await?,
        };
        if covered {
            self.load(turn).await?;
            return Ok(Settled::Superseded);
        }
        self.apply(first, objects)?;
        Ok(Settled::Applied)
    }

    /// Whether there is a snapshot at `seq` or above.
    async fn is_covered(&self, seq: u64) -> Result<bool> {
        let below = snapshot_key(seq - 1);
        Ok(!self.objects.list(SNAPSHOTS, &below, 1).await?.is_empty())
    }

    /// The list of a log that has the rule of fresh lists off.
    async fn early_look(&self, seq: u64) -> Result<Option<bool>> {
        match self.settings.keep(Rule::FreshList) {
            true => Ok(None),
            false => self.is_covered(seq).await.map(Some),
        }
    }

    fn apply(&self, first: u64, objects: impl IntoIterator<Item = Bytes>) -> Result<()> {
        let mut image = self.image();
        for (seq, object) in (first..).zip(objects) {
            assert_eq!(image.seq + 1, seq, "commands are applied in order");
            let command = format::decode_command(seq, &object)
                .map_err(|error| error.at(&command_key(seq)))?;
            if !self.settings.keep(Rule::NumberedCommands) {
                image.processes.remove(&command.nonce);
            }
            image.apply(command);
        }
        if image.seq >= first {
            self.changes.send_replace(());
        }
        Ok(())
    }

    /// Goes on from the newest snapshot.
    async fn load(&self, turn: &mut Turn) -> Result<()> {
        let Some(key) = last_key(&*self.objects, SNAPSHOTS, "").await? else { return Ok(()) };
        let seq = seq_of(&key, SNAPSHOTS)?;
        // Gone, if a newer one was put since; the caller comes again.
        let Some(object) = self.objects.get(&key, 0, u64::MAX).await? else { return Ok(()) };
        let mut loaded = format::decode_snapshot(seq, &object).map_err(|error| error.at(&key))?;
        if !self.settings.keep(Rule::NumberedCommands) {
            loaded.processes.clear();
        }
        let mut image = self.image();
        if loaded.seq > image.seq {
            *image = loaded;
            self.changes.send_replace(());
        }
        turn.snapshot = turn.snapshot.max(seq);
        Ok(())
    }

    /// Puts a snapshot if there are many commands since the last one, and deletes what it covers.
    /// What fails or is cut short is done by the next command, of this process or another.
    async fn trim_if_due(&self, turn: &mut Turn) {
        if self.seq() < turn.snapshot + self.settings.snapshot_every {
            return;
        }
        if let Err(error) = self.trim(turn).await {
            tracing::warn!(%error, "could not trim the metadata log");
        }
    }

    async fn trim(&self, turn: &mut Turn) -> Result<()> {
        if let Some(newest) = last_key(&*self.objects, SNAPSHOTS, "").await? {
            turn.snapshot = turn.snapshot.max(seq_of(&newest, SNAPSHOTS)?);
        }
        let image = self.image().clone();
        if image.seq < turn.snapshot + self.settings.snapshot_every {
            return Ok(());
        }
        if !self.settings.keep(Rule::SnapshotBeforeDelete) {
            self.delete_below(COMMANDS, &command_key(image.seq + 1)).await?;
        }
        let key = snapshot_key(image.seq);
        let object = format::encode_snapshot(self.nonce, &image);
        // That one is there already is as good: it is the same state.
        self.objects.put_new(&key, vec![object]).await?;
        // Rule (4): only what a list shows is there for everybody.
        let shown = self.objects.list(SNAPSHOTS, &snapshot_key(image.seq - 1), 1).await?;
        if shown.first() != Some(&key) {
            return Ok(());
        }
        turn.snapshot = turn.snapshot.max(image.seq);
        self.delete_below(SNAPSHOTS, &key).await?;
        self.delete_below(COMMANDS, &command_key(image.seq + 1)).await
    }

    /// Deletes the keys of a folder below `end`: also those that an earlier delete left and those
    /// that landed late.
    async fn delete_below(&self, folder: &str, end: &str) -> Result<()> {
        let mut after = String::new();
        loop {
            let mut keys = self.objects.list(folder, &after, KEYS_LISTED).await?;
            let Some(last) = keys.last().cloned() else { return Ok(()) };
            keys.retain(|key| key.as_str() < end);
            if !keys.is_empty() {
                self.objects.delete(keys).await?;
            }
            if last.as_str() >= end {
                return Ok(());
            }
            after = last;
        }
    }

    fn image(&self) -> MutexGuard<'_, Image> {
        self.image.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where reading on came to.
#[derive(PartialEq)]
enum Follow {
    End,
    More,
}

/// What was done with commands that were put or read.
#[derive(PartialEq)]
enum Settled {
    Applied,
    /// A snapshot covers them.
    Superseded,
}

fn command_key(seq: u64) -> String {
    format!("{COMMANDS}{seq:020}")
}

fn snapshot_key(seq: u64) -> String {
    format!("{SNAPSHOTS}{seq:020}")
}

fn seq_of(key: &str, folder: &str) -> Result<u64> {
    let seq = key.strip_prefix(folder).and_then(|seq| seq.parse().ok());
    // Far below the end of the numbers, so that there always is a next one.
    let seq = seq.filter(|seq| *seq < u64::MAX / 2);
    seq.ok_or_else(|| StoreError::Corrupt(format!("{key} is no key of Kelp's")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::ObjectError;
    use crate::store::objects::memory::Memory;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// Objects whose next calls fail.
    #[derive(Default)]
    struct Failing {
        memory: Memory,
        failures: AtomicU32,
    }

    impl Failing {
        fn next(&self) -> Result<(), ObjectError> {
            let less = |left: u32| left.checked_sub(1);
            match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
                Ok(_) => Err(ObjectError("down".into())),
                Err(_) => Ok(()),
            }
        }
    }

    #[async_trait::async_trait]
    impl Objects for Failing {
        async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
            self.next()?;
            self.memory.put_new(key, parts).await
        }
        async fn get(&self, key: &str, from: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
            self.next()?;
            self.memory.get(key, from, len).await
        }
        async fn list(
            &self,
            prefix: &str,
            after: &str,
            limit: usize,
        ) -> Result<Vec<String>, ObjectError> {
            self.next()?;
            self.memory.list(prefix, after, limit).await
        }
        async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
            self.next()?;
            self.memory.delete(keys).await
        }
    }

    async fn open(objects: &Arc<Memory>, nonce: u64) -> Metadata {
        Metadata::open(objects.clone(), nonce).await.unwrap()
    }

    fn topic(id: u8, name: &str) -> Topic {
        Topic { id: Uuid([id; 16]), name: name.into(), partitions: 3, ..Topic::default() }
    }

    fn names(metadata: &Metadata) -> Vec<String> {
        metadata.topics().iter().map(|topic| topic.name.to_string()).collect()
    }

    #[tokio::test]
    async fn all_gateways_agree_on_the_name_of_the_cluster() {
        let objects = Arc::new(Memory::default());
        let (one, two) = tokio::join!(open(&objects, 1), open(&objects, 2));
        assert_eq!(one.cluster_id().len(), 22);
        assert_eq!(one.cluster_id(), two.cluster_id());
        assert_eq!(open(&objects, 3).await.cluster_id(), one.cluster_id());
    }

    #[tokio::test]
    async fn what_one_gateway_does_the_others_see() {
        let objects = Arc::new(Memory::default());
        let (one, two) = (open(&objects, 1).await, open(&objects, 2).await);
        one.create_topic(topic(1, "clicks")).await.unwrap();
        assert_eq!(names(&one), ["clicks"]);
        assert_eq!(two.create_topic(topic(2, "clicks")).await, Err(StoreError::TopicExists));
        assert_eq!(names(&two), ["clicks"], "it has learnt why");

        two.delete_topic(Uuid([1; 16])).await.unwrap();
        let gone = one.delete_topic(Uuid([1; 16])).await;
        assert_eq!(gone, Err(StoreError::UnknownPartition));
        two.create_topic(topic(3, "views")).await.unwrap();
        assert_eq!(names(&one), Vec::<String>::new());
        one.refresh().await.unwrap();
        assert_eq!(names(&one), ["views"]);

        assert_eq!(one.allocate_producer_ids(1_000).await, Ok(0..1_000));
        assert_eq!(two.allocate_producer_ids(10).await, Ok(1_000..1_010));
    }

    #[tokio::test]
    async fn a_trimmed_log_is_a_snapshot_and_the_commands_since() {
        let objects = Arc::new(Memory::default());
        let behind = open(&objects, 1).await;
        let metadata = open(&objects, 2).await;
        let every = Settings::default().snapshot_every;
        // The first command named the cluster.
        for _ in 1..2 * every + 5 {
            metadata.allocate_producer_ids(1).await.unwrap();
        }
        let keys = objects.list("", "", 10_000).await.unwrap();
        let mut expected: Vec<_> = (1..=5).map(|i| command_key(2 * every + i)).collect();
        expected.push(snapshot_key(2 * every));
        assert_eq!(keys, expected);

        let next = 2 * every as i64 + 4;
        assert_eq!(behind.allocate_producer_ids(1).await, Ok(next..next + 1));
        let later = open(&objects, 3).await;
        assert_eq!(later.allocate_producer_ids(1).await, Ok(next + 1..next + 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_comes_back_is_used_and_one_that_does_not_is_waited_for() {
        let objects = Arc::new(Failing::default());
        objects.failures.store(5, Ordering::Relaxed);
        let metadata = Metadata::open(objects.clone(), 1).await.unwrap();

        objects.failures.store(20, Ordering::Relaxed);
        metadata.create_topic(topic(1, "clicks")).await.unwrap();
        assert_eq!(objects.failures.load(Ordering::Relaxed), 0);

        objects.failures.store(u32::MAX, Ordering::Relaxed);
        let hour = Duration::from_secs(3_600);
        let waiting = metadata.create_topic(topic(2, "views"));
        assert!(tokio::time::timeout(hour, waiting).await.is_err());
        let calls = u32::MAX - objects.failures.load(Ordering::Relaxed);
        assert!(calls < 3_000, "{calls} calls in an hour");

        objects.failures.store(0, Ordering::Relaxed);
        metadata.create_topic(topic(3, "orders")).await.unwrap();
        assert_eq!(names(&metadata), ["clicks", "orders"]);
    }

    #[tokio::test]
    async fn callers_who_go_away_hold_up_nobody() {
        let objects = Arc::new(Memory::default());
        let metadata = Arc::new(open(&objects, 1).await);
        let calls: Vec<_> = (0..100)
            .map(|i| {
                let metadata = metadata.clone();
                let call = async move { metadata.create_topic(topic(i, &i.to_string())).await };
                tokio::spawn(call)
            })
            .collect();
        tokio::task::yield_now().await;
        calls.iter().step_by(2).for_each(|call| call.abort());
        for call in calls.into_iter().skip(1).step_by(2) {
            call.await.unwrap().unwrap();
        }
        metadata.refresh().await.unwrap();
        let topics = metadata.topics();
        assert!(topics.len() >= 50);
        assert!(open(&objects, 2).await.topics().iter().eq(topics.iter()));
    }

    #[tokio::test]
    async fn a_command_that_cannot_be_read_is_an_error_and_not_the_end() {
        let objects = Arc::new(Memory::default());
        let metadata = open(&objects, 1).await;
        objects.put_new(&command_key(2), vec![Bytes::from_static(b"KELP")]).await.unwrap();
        let corrupt = |done: Result<()>| match done {
            Err(StoreError::Corrupt(text)) => text.starts_with(&command_key(2)),
            _ => false,
        };
        assert!(corrupt(metadata.refresh().await));
        assert!(corrupt(metadata.create_topic(topic(1, "clicks")).await));
        assert!(corrupt(Metadata::open(objects.clone(), 2).await.map(drop)));
        let keys = objects.list("", "", 10).await.unwrap();
        assert_eq!(keys, [command_key(1), command_key(2)], "nothing was put behind it");
    }

    #[tokio::test]
    async fn a_command_longer_than_the_limit_is_refused() {
        let objects = Arc::new(Memory::default());
        let metadata = open(&objects, 1).await;
        let long = topic(1, &"x".repeat(MAX_COMMAND_BYTES));
        assert!(metadata.create_topic(long).await.is_err());
        metadata.create_topic(topic(1, "short")).await.unwrap();
        assert_eq!(metadata.seq(), 2, "nothing of it was stored");
    }

    #[tokio::test]
    async fn who_waits_for_changes_is_woken_by_those_of_others_too() {
        let objects: Arc<dyn Objects> = Arc::new(Memory::default());
        let one = Metadata::open(objects.clone(), 1).await.unwrap();
        let two = Metadata::open(objects, 2).await.unwrap();
        let mut changes = two.changes();
        two.refresh().await.unwrap();
        assert!(!changes.has_changed().unwrap(), "there was nothing new");
        one.create_topic(topic(1, "a")).await.unwrap();
        two.refresh().await.unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        two.create_topic(topic(2, "b")).await.unwrap();
        assert!(changes.has_changed().unwrap());
    }
}
