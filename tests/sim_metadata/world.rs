//! A store of objects that keeps its contract and does everything else wrong.
//!
//! Calls take from a millisecond to a minute. They fail before they act or after; a put whose
//! outcome is unknown may land later, also when its gateway is gone, and may land twice; a delete
//! acts late, in any order, on some keys only.

use crate::reference::Reference;
use crate::{Met, Wrong};
use bytes::Bytes;
use kelp::store::objectlog::metadata::format;
use kelp::store::objects::{ObjectError, Objects, Put};
use kelp::store::topics::{BrokerConfigs, Topics};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// All that a run may meet and many runs must.
pub(crate) const KINDS: [&str; 16] = [
    "a caller went away",
    "a crash",
    "a delete that left keys behind",
    "a frame of a deleted topic was dropped",
    "a name was taken",
    "a put succeeded on a trimmed seq",
    "a put landed late",
    "a put that failed never landed",
    "a put was answered by an error though it landed",
    "a put was lost to another",
    "a read found what landed on a trimmed seq",
    "a snapshot was read",
    "a snapshot was there already",
    "a topic had as many partitions already",
    "an allocation was answered",
    "settings of brokers were read",
];

/// After this time nothing fails any more, so that every run ends.
const HEALED_AFTER: Duration = Duration::from_secs(600);

const COMMANDS: &str = "metadata/";
const SNAPSHOTS: &str = "metadata/snapshot/";

pub(crate) struct World {
    pub(crate) wrong: Wrong,
    pub(crate) rng: SmallRng,
    pub(crate) reference: Reference,
    pub(crate) met: Met,
    pub(crate) violation: Option<String>,
    /// Fed with all that happens: equal for equal runs.
    pub(crate) digest: DefaultHasher,
    pub(crate) frames: Frames,
    /// The highest seq that any gateway ever had applied.
    pub(crate) known: u64,
    /// The nonce of the next process.
    pub(crate) processes: u64,
    objects: BTreeMap<String, Bytes>,
    began: Instant,
    print: bool,
}

/// The journal and the segments of records, each a step of its own; frames carry a topic's id.
#[derive(Default)]
pub(crate) struct Frames {
    pub(crate) acked: Vec<Frame>,
    pub(crate) journal: Vec<Frame>,
    pub(crate) segments: Vec<Frame>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) topic: kelp::protocol::wire::Uuid,
    pub(crate) number: usize,
}

/// What happens to a put.
enum Fate {
    Answered,
    AnswerLost,
    NeverLands,
    LandsAfter(Duration),
}

#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    /// Made inside the runtime, whose time it reads.
    pub(crate) fn new(seed: u64, wrong: Wrong, print: bool) -> Self {
        Self(Arc::new(Mutex::new(World {
            wrong,
            rng: SmallRng::seed_from_u64(seed),
            reference: Reference::new(),
            met: Met::new(),
            violation: None,
            digest: DefaultHasher::new(),
            frames: Frames::default(),
            known: 0,
            processes: 0,
            objects: BTreeMap::new(),
            began: Instant::now(),
            print,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("a run that panics is over")
    }

    pub(crate) fn roll<T>(&self, roll: impl FnOnce(&mut SmallRng) -> T) -> T {
        roll(&mut self.lock().rng)
    }

    /// Time goes by, mostly little or none, sometimes so much that the others are far on.
    async fn pause(&self) {
        let pause = self.lock().pause();
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }

    /// A call that fails for no reason.
    fn fails(&self, one_in: u32) -> Result<(), ObjectError> {
        let mut world = self.lock();
        if !world.healed() && world.rng.random_ratio(1, one_in) {
            return Err(ObjectError("a fault".into()));
        }
        Ok(())
    }

    /// Lets a put land by itself, whatever becomes of who sent it.
    fn land_later(&self, after: Duration, key: &str, object: &Bytes) {
        let (this, key, object) = (self.clone(), key.to_owned(), object.clone());
        tokio::spawn(async move {
            sleep(after).await;
            let mut world = this.lock();
            if world.land(&key, object) == Put::Created {
                world.meet("a put landed late");
            }
        });
    }
}

#[async_trait::async_trait]
impl Objects for Shared {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        let object = Bytes::from(parts.concat());
        let fate = self.lock().fate();
        if self.roll(|rng| rng.random_ratio(1, 50)) {
            let after = self.roll(|rng| Duration::from_millis(rng.random_range(1..20_000)));
            self.land_later(after, key, &object);
        }
        if let Fate::LandsAfter(after) = fate {
            self.land_later(after, key, &object);
        }
        self.pause().await;
        let lost = Err(ObjectError("the answer is lost".into()));
        match fate {
            Fate::NeverLands => {
                self.lock().meet("a put that failed never landed");
                return lost;
            }
            Fate::LandsAfter(_) => return lost,
            Fate::Answered | Fate::AnswerLost => {}
        }
        let put = self.lock().land(key, object);
        self.pause().await;
        let mut world = self.lock();
        if matches!(fate, Fate::AnswerLost) {
            world.meet("a put was answered by an error though it landed");
            return lost;
        }
        if put == Put::Exists {
            let snapshot = key.starts_with(SNAPSHOTS);
            let kind = ["a put was lost to another", "a snapshot was there already"];
            world.meet(kind[usize::from(snapshot)]);
        }
        Ok(put)
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        self.pause().await;
        self.fails(20)?;
        let object = {
            let mut world = self.lock();
            world.note_read(key);
            world.objects.get(key).cloned()
        };
        self.pause().await;
        self.fails(20)?;
        Ok(object.map(|object| {
            let size = object.len() as u64;
            object.slice(offset.min(size) as usize..offset.saturating_add(len).min(size) as usize)
        }))
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        self.pause().await;
        self.fails(20)?;
        let keys = {
            let world = self.lock();
            let keys = world.objects.keys();
            let wanted = keys.filter(|key| key.starts_with(prefix) && key.as_str() > after);
            wanted.take(limit).cloned().collect()
        };
        self.pause().await;
        self.fails(20)?;
        Ok(keys)
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.pause().await;
        for key in keys {
            let after = {
                let mut world = self.lock();
                if !world.healed() && world.rng.random_ratio(1, 10) {
                    world.meet("a delete that left keys behind");
                    continue;
                }
                world.pause()
            };
            let this = self.clone();
            tokio::spawn(async move {
                sleep(after).await;
                this.lock().remove(&key);
            });
        }
        self.pause().await;
        self.fails(20)
    }
}

impl World {
    pub(crate) fn meet(&mut self, kind: &'static str) {
        *self.met.entry(kind).or_default() += 1;
        self.happened(kind);
    }

    pub(crate) fn happened(&mut self, what: impl AsRef<str>) {
        let (at, what) = (self.began.elapsed().as_millis(), what.as_ref());
        (at, what).hash(&mut self.digest);
        if self.print {
            println!("{at:>8} ms  {what}");
        }
    }

    /// Only the first counts: what comes after may follow from it.
    pub(crate) fn violated(&mut self, what: String) {
        self.happened(&what);
        self.violation.get_or_insert(what);
    }

    fn healed(&self) -> bool {
        self.began.elapsed() >= HEALED_AFTER
    }

    fn pause(&mut self) -> Duration {
        let pauses = match self.rng.random_range(0..200) {
            _ if self.healed() => 1..5,
            0 => 1_000..60_000,
            1..20 => 10..500,
            20..80 => 0..1,
            _ => 1..5,
        };
        Duration::from_millis(self.rng.random_range(pauses))
    }

    fn fate(&mut self) -> Fate {
        match self.rng.random_range(0..30) {
            _ if self.healed() => Fate::Answered,
            0 => Fate::AnswerLost,
            1 => Fate::NeverLands,
            2 => Fate::LandsAfter(Duration::from_millis(self.rng.random_range(1..10_000))),
            _ => Fate::Answered,
        }
    }

    /// Look and insert in one step.
    fn land(&mut self, key: &str, object: Bytes) -> Put {
        if self.objects.contains_key(key) {
            return Put::Exists;
        }
        self.happened(format!("put {key}"));
        self.objects.insert(key.into(), object.clone());
        if let Some(seq) = key.strip_prefix(SNAPSHOTS) {
            self.landed_snapshot(seq.parse().expect("a key has a number"), &object);
        } else if let Some(seq) = key.strip_prefix(COMMANDS) {
            self.landed_command(seq.parse().expect("a key has a number"), &object);
        }
        Put::Created
    }

    fn landed_command(&mut self, seq: u64, object: &Bytes) {
        let command = format::decode_command(seq, object).expect("what is put can be read");
        let last = self.reference.seq();
        if seq <= last {
            self.meet("a put succeeded on a trimmed seq");
        } else if seq == last + 1 {
            self.reference.push(command);
        } else {
            self.violated(format!("a command is put at {seq} behind a gap, the last is {last}"));
        }
    }

    fn landed_snapshot(&mut self, seq: u64, object: &Bytes) {
        let image = format::decode_snapshot(seq, object).expect("what is put can be read");
        let cluster_id = image.cluster_id.as_deref();
        let differs = match self.compare(seq, &image.topics, &image.broker_configs, cluster_id) {
            None => {
                self.reference.at(seq).map(|state| state.next_producer_id)
                    != Some(image.next_producer_id)
            }
            Some(wrong) => return self.violated(format!("the snapshot at {seq} {wrong}")),
        };
        if differs {
            self.violated(format!("the snapshot at {seq} has other producer ids than a replay"));
        }
    }

    /// How a state differs from what a replay gives.
    pub(crate) fn compare(
        &self,
        seq: u64,
        topics: &Topics,
        brokers: &BrokerConfigs,
        cluster_id: Option<&str>,
    ) -> Option<String> {
        let Some(state) = self.reference.at(seq) else {
            return Some(format!("is ahead of the log, which ends at {}", self.reference.seq()));
        };
        state.differs(topics.iter(), brokers, cluster_id)
    }

    fn note_read(&mut self, key: &str) {
        if !self.objects.contains_key(key) {
            return;
        }
        if key.starts_with(SNAPSHOTS) {
            self.meet("a snapshot was read");
        } else if let Some(newest) = self.newest_snapshot()
            && format!("{COMMANDS}{newest:020}").as_str() >= key
        {
            self.meet("a read found what landed on a trimmed seq");
        }
    }

    fn newest_snapshot(&self) -> Option<u64> {
        let last = self.objects.keys().rfind(|key| key.starts_with(SNAPSHOTS))?;
        last.strip_prefix(SNAPSHOTS)?.parse().ok()
    }

    /// A delete acts; what is left must still give the whole log.
    fn remove(&mut self, key: &str) {
        if self.objects.remove(key).is_none() {
            return;
        }
        self.happened(format!("deleted {key}"));
        let snapshot = self.newest_snapshot().unwrap_or_default();
        let missing = (snapshot + 1..=self.reference.seq())
            .find(|seq| !self.objects.contains_key(&format!("{COMMANDS}{seq:020}")));
        if let Some(seq) = missing {
            self.violated(format!(
                "the command at {seq} is gone, the newest snapshot is {snapshot}"
            ));
        }
    }
}
