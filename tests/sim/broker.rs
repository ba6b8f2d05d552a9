//! A process that serves the log: one incarnation, with what the log's room does with it.

use crate::batches;
use crate::objects::{Disk, Process};
use crate::world::{Sent, World};
use kelp::store::objectlog::{ObjectLog, Options};
use kelp::store::producers::Producers;
use kelp::store::{PartitionId, State, Storage, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub struct Broker {
    pub log: Arc<ObjectLog>,
    dead: Arc<AtomicBool>,
    died: Notify,
    frozen: Arc<Mutex<Instant>>,
    leaders: Mutex<BTreeMap<PartitionId, Leader>>,
}

/// A partition as its leader knows it, with what is not committed yet.
struct Leader {
    generation: u64,
    epoch: i32,
    log_end_offset: i64,
    producers: Producers,
    pending: BTreeSet<Sent>,
}

/// An acknowledgement.
pub struct Ack {
    pub offset: i64,
    pub epoch: i32,
}

impl Broker {
    /// Starts a process that dies at the call number `lives`.
    pub fn start(world: &World, disk: &Disk, options: Options, lives: u64) -> Arc<Self> {
        let died = Arc::new(Notify::new());
        let frozen = Arc::new(Mutex::new(Instant::now()));
        let objects = Arc::new(Process {
            world: world.clone(),
            disk: disk.clone(),
            frozen: frozen.clone(),
            lives: AtomicU64::new(lives),
            died: died.clone(),
        });
        let log = ObjectLog::start(objects, options);
        let dead = Arc::new(AtomicBool::new(false));
        let (leaders, died_for_good) = (Mutex::default(), Notify::new());
        let broker = Arc::new(Self { log, dead, died: died_for_good, frozen, leaders });
        let (world, dying) = (world.clone(), broker.clone());
        tokio::spawn(async move {
            died.notified().await;
            let opening = *dying.log.state().borrow() == State::Opening;
            world.count(if opening { "a crash while opening" } else { "a crash while serving" });
            dying.kill();
        });
        broker
    }

    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.log.crash();
        self.died.notify_waiters();
    }

    /// Does work of the process, which ends with it.
    pub async fn run(&self, work: impl Future<Output = ()>) {
        let died = self.died.notified();
        if !self.is_dead() {
            tokio::select! {
                biased;
                () = died => {}
                () = work => {}
            }
        }
    }

    pub fn freeze(&self, for_ms: u64) {
        let until = Instant::now() + Duration::from_millis(for_ms);
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Serves, or comes to it.
    pub fn is_up(&self) -> bool {
        let state = self.log.state().borrow().clone();
        !self.is_dead() && matches!(state, State::Opening | State::Serving)
    }

    pub fn is_serving(&self) -> bool {
        !self.is_dead() && *self.log.state().borrow() == State::Serving
    }

    fn leaders(&self) -> MutexGuard<'_, BTreeMap<PartitionId, Leader>> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a batch, or answers for its first copy; `None` if the client shall come again.
    pub async fn produce(self: Arc<Self>, id: PartitionId, sent: Sent, number: u64) -> Option<Ack> {
        if !self.leaders().contains_key(&id) {
            let opened = self.log.open(id).await.ok()?;
            self.leaders().entry(id).or_insert(Leader {
                generation: number,
                epoch: opened.leader_epoch,
                log_end_offset: opened.log_end_offset,
                producers: opened.producers,
                pending: BTreeSet::new(),
            });
        }
        let (generation, epoch, appended) = {
            let mut leaders = self.leaders();
            let leader = leaders.get_mut(&id)?;
            if let Some(offset) = leader.offset_of(sent) {
                // A duplicate is answered when its first copy is committed.
                let known = !leader.pending.contains(&sent);
                return known.then_some(Ack { offset, epoch: leader.epoch });
            }
            if leader.next_sequence(sent.producer_id) != sent.base_sequence {
                return None;
            }
            let mut batch = batches::batch(sent);
            let base_offset = leader.log_end_offset;
            batch.stamp(base_offset, leader.epoch);
            leader.producers.apply(&batch.header);
            leader.log_end_offset = batch.header.next_offset();
            leader.pending.insert(sent);
            let appended = self.log.append(id, base_offset, vec![batch]);
            (leader.generation, leader.epoch, appended)
        };
        // The client may go away; the batch is in the log or not whoever waits.
        let broker = self.clone();
        let settled = tokio::spawn(async move {
            let done = appended.await;
            broker.settle(id, sent, generation, &done);
            done
        });
        let offset = settled.await.ok()?.ok()?;
        (!self.is_dead()).then_some(Ack { offset, epoch })
    }

    fn settle(&self, id: PartitionId, sent: Sent, generation: u64, done: &Result<i64, StoreError>) {
        let mut leaders = self.leaders();
        let Some(leader) = leaders.get_mut(&id).filter(|leader| leader.generation == generation)
        else {
            return;
        };
        match done {
            Ok(_) => drop(leader.pending.remove(&sent)),
            // What this leader believes is not what is stored: it opens anew.
            Err(_) => drop(leaders.remove(&id)),
        }
    }
}

impl Leader {
    fn offset_of(&self, sent: Sent) -> Option<i64> {
        let producer = self.producers.get(sent.producer_id)?;
        let same = producer.batches.iter().find(|batch| batch.base_sequence == sent.base_sequence);
        same.map(|batch| batch.base_offset)
    }

    fn next_sequence(&self, producer_id: i64) -> i32 {
        let last = self.producers.get(producer_id).and_then(|producer| producer.batches.back());
        last.map_or(0, |batch| batch.last_sequence + 1)
    }
}
