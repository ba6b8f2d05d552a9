//! A store that keeps its promises to the letter, and makes everything else as hard as it can.
//!
//! Calls take their time, answers get lost, what was reported as failed lands later, puts land
//! twice, deletes act late, in any order, or never. A process may be frozen or cut off for a while,
//! and dies at one of its calls.

use crate::world::World;
use bytes::Bytes;
use kelp::store::objects::{ObjectError, Objects, Put};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

pub type Stored = BTreeMap<String, Bytes>;

#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<Stored>>);

impl Disk {
    pub fn lock(&self) -> MutexGuard<'_, Stored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_new(&self, key: &str, bytes: &Bytes) -> Put {
        let mut stored = self.lock();
        if stored.contains_key(key) {
            return Put::Exists;
        }
        stored.insert(key.into(), bytes.clone());
        Put::Created
    }
}

/// The store as one process sees it.
pub struct Process {
    pub world: World,
    pub disk: Disk,
    /// Until then nothing goes out and nothing comes in.
    pub frozen: Arc<Mutex<Instant>>,
    /// Its calls until it dies.
    pub lives: AtomicU64,
    pub died: Arc<Notify>,
}

impl Process {
    /// A point at which this process may die or stand still.
    async fn point(&self) {
        if self.lives.fetch_sub(1, Ordering::Relaxed) <= 1 && !self.world.is_calm() {
            self.lives.store(u64::MAX, Ordering::Relaxed);
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
        thaw(&self.frozen).await;
    }

    fn short(&self) -> Duration {
        let most = if self.world.is_calm() {
            3
        } else {
            *self.world.pick(&[2, 8, 40]).as_ref().unwrap_or(&2)
        };
        Duration::from_millis(self.world.below(most))
    }

    /// Whether a call fails before it does anything.
    fn fails(&self) -> bool {
        !self.world.is_calm() && self.world.one_in(40)
    }
}

async fn thaw(frozen: &Mutex<Instant>) {
    let until = *frozen.lock().unwrap_or_else(PoisonError::into_inner);
    if until > Instant::now() {
        sleep_until(until).await;
    }
}

fn lost(what: &str) -> ObjectError {
    ObjectError(format!("{what}: no answer"))
}

#[async_trait::async_trait]
impl Objects for Process {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        self.point().await;
        let (world, disk) = (self.world.clone(), self.disk.clone());
        let (key, bytes) = (key.to_owned(), Bytes::from(parts.concat()));
        let fate = if world.is_calm() { 1000 } else { world.below(200) };
        let (answer, answered) = oneshot::channel();
        let (request, frozen) = (self.short(), self.frozen.clone());
        // A call of its own: it goes on when the process dies.
        tokio::spawn(async move {
            sleep(request).await;
            // Half of the calls that are under way when a process is cut off stand still too.
            if world.one_in(2) {
                thaw(&frozen).await;
            }
            let put = match fate {
                0..3 => {
                    world.count("a put that never lands");
                    drop(answer);
                    return;
                }
                3..9 => {
                    world.count("a put that lands after it was said to have failed");
                    drop(answer);
                    // Often while its sender looks whether it landed.
                    let most = if world.one_in(2) { 60 } else { 4000 };
                    let late = world.below(most);
                    sleep(Duration::from_millis(late)).await;
                    note(&world, &disk, &key, &bytes);
                    disk.put_new(&key, &bytes);
                    return;
                }
                9..15 => {
                    world.count("a put whose answer is lost");
                    note(&world, &disk, &key, &bytes);
                    disk.put_new(&key, &bytes);
                    drop(answer);
                    return;
                }
                _ => {
                    note(&world, &disk, &key, &bytes);
                    disk.put_new(&key, &bytes)
                }
            };
            // The answer comes after the process is gone, or it is there.
            let _ = answer.send(put);
            if fate < 20 {
                world.count("a put that lands twice");
                let late = world.below(4000);
                sleep(Duration::from_millis(late)).await;
                disk.put_new(&key, &bytes);
            }
        });
        let answered = answered.await.map_err(|_| lost("put_new"));
        sleep(self.short()).await;
        self.point().await;
        answered
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        self.point().await;
        sleep(self.short()).await;
        if self.fails() {
            return Err(lost("get"));
        }
        let object = self.disk.lock().get(key).cloned();
        sleep(self.short()).await;
        self.point().await;
        Ok(object.map(|object| {
            let from = (offset as usize).min(object.len());
            let to = from.saturating_add(len as usize).min(object.len());
            object.slice(from..to)
        }))
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        self.point().await;
        let page = |stored: &Stored| -> Vec<String> {
            let keys = stored.keys().filter(|key| key.starts_with(prefix) && key.as_str() > after);
            keys.take(limit).cloned().collect()
        };
        // What lands during the call may be in the list or not.
        let early = page(&self.disk.lock());
        sleep(self.short()).await;
        if self.fails() {
            return Err(lost("list"));
        }
        let late = page(&self.disk.lock());
        sleep(self.short()).await;
        self.point().await;
        Ok(if self.world.one_in(2) { early } else { late })
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.point().await;
        for key in keys {
            let (world, disk) = (self.world.clone(), self.disk.clone());
            let late = match world.below(10) {
                0 if !world.is_calm() => {
                    world.count("a delete that never acts");
                    continue;
                }
                1..4 if !world.is_calm() => {
                    world.count("a delete that acts late");
                    Duration::from_millis(world.below(3000))
                }
                _ => self.short(),
            };
            tokio::spawn(async move {
                sleep(late).await;
                disk.lock().remove(&key);
            });
        }
        sleep(self.short()).await;
        self.point().await;
        if self.fails() { Err(lost("delete")) } else { Ok(()) }
    }
}

/// Counts what a put into the journal meets.
fn note(world: &World, disk: &Disk, key: &str, bytes: &Bytes) {
    const FENCE: u8 = 2;
    let kind = |object: &Bytes| object.get(7).copied();
    let there = disk.lock().get(key).cloned();
    if let (true, Some(there)) = (key.starts_with("journal/"), there) {
        world.count(match (kind(bytes) == Some(FENCE), kind(&there) == Some(FENCE)) {
            _ if there == bytes => "a put that finds itself",
            (true, true) => "a fence that finds a fence",
            (true, false) => "a fence that finds a commit",
            (false, true) => "a commit that finds a fence",
            (false, false) => "a commit that finds a commit",
        });
    }
}
