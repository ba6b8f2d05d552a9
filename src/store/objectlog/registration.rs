//! Who has the data of a broker id, so that a second process stands by instead of taking it over.
//!
//! ```text
//!             nobody, or gone            renewed every 3 s          clean stop
//!   wait() ───────────────────▶ keep() ───────────────────▶ ... ───────────────▶ release()
//!     │  ▲
//!     ▼  │ silent for 9 s, or released
//!   stands by
//! ```
//!
//! A registration is the object `registration/<broker>/<count %020d>`: to renew it, the next count
//! is put and the one before is deleted. Who waits sees new counts come, by its own clock; the
//! clocks of two machines are never compared.
//!
//! Nothing here keeps data safe: that is done by the journal's fence, whatever a clock says. It
//! only keeps two processes from fencing each other in turns.

use super::format::{Kind, Malformed};
use super::metadata::format::{begin, end, finish, open, put_text, take_text};
use super::metadata::retry::Retry;
use crate::store::objects::{ObjectError, Objects, Put, last_key};
use crate::store::{Owner, Result, StoreError};
use bytes::{Buf, BufMut, Bytes};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

const RENEW_EVERY: Duration = Duration::from_secs(3);

/// A registrant that is silent for so long is taken for gone: three renewals.
const SILENCE: Duration = Duration::from_secs(9);

/// How often one that stands by looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Registration {
    objects: Arc<dyn Objects>,
    broker_id: i32,
    nonce: u64,
    owner: Owner,
    count: u64,
}

/// The newest registration, as one that stands by has seen it.
#[derive(Clone)]
struct Seen {
    key: String,
    count: u64,
    /// Nobody, if the object cannot be read: then only its silence says something.
    owner: Option<Owner>,
    /// When it was seen first, by this process' own clock.
    since: Instant,
}

impl Registration {
    /// Done when this process may open: at once if nobody is registered, if `take_over` says so, or
    /// if who is registered was a process of this host that is gone. Else when that one was silent
    /// for 9 s or has released its registration; `on_standby` is called once when that begins.
    ///
    /// While the store does not answer this goes on trying, for as long as the caller waits.
    pub async fn wait(
        objects: Arc<dyn Objects>,
        broker_id: i32,
        owner: Owner,
        take_over: bool,
        on_standby: impl Fn(Owner),
    ) -> Result<Self> {
        let mut this = Self { objects, broker_id, nonce: rand::random(), owner, count: 0 };
        let mut retry = Retry::new("the registration");
        let (mut seen, mut told) = (None, false);
        loop {
            match this.try_to_register(&mut seen, take_over).await {
                Ok(true) => return Ok(this),
                Ok(false) => {}
                Err(StoreError::Unavailable(error)) => retry.note(&error),
                Err(error) => return Err(error),
            }
            if let Some(seen) = seen.as_ref().filter(|_| !told) {
                told = true;
                on_standby(seen.owner.clone().unwrap_or_default());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Looks who is registered, and registers if that one is gone as far as can be seen.
    async fn try_to_register(&mut self, seen: &mut Option<Seen>, take_over: bool) -> Result<bool> {
        *seen = self.look(seen.as_ref()).await?;
        self.count = match seen {
            Some(seen) => seen.count,
            // The time is only a name that was not used before: a delete of an old registration
            // may act late.
            None => SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_millis() as u64),
        };
        let gone = |seen: &Seen| {
            seen.since.elapsed() >= SILENCE
                || seen.owner.as_ref().is_some_and(|owner| self.is_gone(owner))
        };
        if !take_over && !seen.as_ref().is_none_or(gone) {
            return Ok(false);
        }
        // Of several that waited, one creates the next count; the others find it.
        self.renew().await
    }

    /// Finds the newest registration; what was seen before is not read again.
    async fn look(&self, before: Option<&Seen>) -> Result<Option<Seen>> {
        loop {
            let Some((key, count)) = self.newest().await? else { return Ok(None) };
            if let Some(seen) = before.filter(|seen| seen.key == key) {
                return Ok(Some(seen.clone()));
            }
            match self.objects.get(&key, 0, u64::MAX).await? {
                Some(object) => {
                    let owner = decode(count, &object);
                    let owner = owner.inspect_err(|why| tracing::warn!("{key}: {}", why.0)).ok();
                    return Ok(Some(Seen { key, count, owner, since: Instant::now() }));
                }
                // Renewed or released since.
                None => sleep(LOOK_EVERY / 10).await,
            }
        }
    }

    /// Renews the registration every 3 s, until it is dropped.
    ///
    /// Also when another process has registered: until this one is fenced, it has the data.
    pub async fn keep(&mut self) {
        let mut retry = Retry::new("the renewal of the registration");
        let mut ticks = interval_at(Instant::now() + RENEW_EVERY, RENEW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.renew_behind_others().await {
                retry.note(&error.to_string());
            }
        }
    }

    /// Says that this process is done, so that the next one need not wait.
    pub async fn release(self) -> Result<()> {
        let mut keys = vec![self.key(self.count)];
        // A renewal may have been cut short; but the next one may be another process'.
        let next = self.key(self.count + 1);
        if self.objects.get(&next, 0, u64::MAX).await? == Some(self.encode(self.count + 1)) {
            keys.push(next);
        }
        Ok(self.objects.delete(keys).await?)
    }

    async fn renew_behind_others(&mut self) -> Result<()> {
        while !self.renew().await? {
            let newest = self.newest().await?;
            self.count = newest.map_or(self.count, |(_, count)| count);
        }
        Ok(())
    }

    /// Puts the next count and deletes those before it. False if another process has put it.
    async fn renew(&mut self) -> Result<bool> {
        let key = self.key(self.count + 1);
        let object = self.encode(self.count + 1);
        let mine = match self.objects.put_new(&key, vec![object.clone()]).await? {
            Put::Created => true,
            // Ours, if the answer to an earlier put of it was lost.
            Put::Exists => self.objects.get(&key, 0, u64::MAX).await? == Some(object),
        };
        if mine {
            self.count += 1;
            // What stays if this fails says nothing: only the newest counts.
            if let Err(error) = self.delete_older(&key).await {
                tracing::debug!(%error, "an old registration stays");
            }
        }
        Ok(mine)
    }

    async fn delete_older(&self, key: &str) -> Result<(), ObjectError> {
        let mut older = self.objects.list(&self.folder(), "", 100).await?;
        older.retain(|other| other.as_str() < key);
        self.objects.delete(older).await
    }

    async fn newest(&self) -> Result<Option<(String, u64)>> {
        let Some(key) = last_key(&*self.objects, &self.folder(), "").await? else {
            return Ok(None);
        };
        let count = key.strip_prefix(&self.folder()).and_then(|count| count.parse().ok());
        // Far below the end of the numbers, so that there always is a next one.
        match count.filter(|count| *count < u64::MAX / 2) {
            Some(count) => Ok(Some((key, count))),
            None => Err(StoreError::Corrupt(format!("{key} is no key of Kelp's"))),
        }
    }

    /// Whether this was a process of this host that has ended.
    fn is_gone(&self, owner: &Owner) -> bool {
        owner.host == self.owner.host
            && process_started(std::process::id()).is_some()
            && process_started(owner.pid) != Some(owner.started)
    }

    fn encode(&self, count: u64) -> Bytes {
        let mut out = begin();
        out.put_u32(self.owner.pid);
        out.put_u64(self.owner.started);
        put_text(&mut out, &self.owner.address);
        put_text(&mut out, &self.owner.host);
        finish(out, Kind::Registration, count, self.nonce)
    }

    fn folder(&self) -> String {
        format!("registration/{}/", self.broker_id)
    }

    fn key(&self, count: u64) -> String {
        format!("{}{count:020}", self.folder())
    }
}

pub(super) fn decode(count: u64, object: &Bytes) -> Result<Owner, Malformed> {
    let (_, mut body) = open(Kind::Registration, count, object)?;
    let b = &mut body;
    let (pid, started) = (b.try_get_u32()?, b.try_get_u64()?);
    let (address, host) = (take_text(b)?, take_text(b)?);
    end(&body)?;
    Ok(Owner { address, host, pid, started })
}

/// This process, as others are told of it. `address` is where clients find it.
pub fn this_process(address: String) -> Owner {
    let pid = std::process::id();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let started = process_started(pid).unwrap_or_default();
    Owner { address, host: host.trim_end().into(), pid, started }
}

/// When a process of this host started, in clock ticks since the host did; `None` if no such
/// process runs, or on a system that does not tell.
fn process_started(pid: u32) -> Option<u64> {
    /// Counted behind the state.
    const START_TIME: usize = 18;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the bracket may have spaces and brackets of its own.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // Ended, though nobody has waited for it yet.
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(START_TIME)?.parse().ok().filter(|_| !ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::memory::Memory;
    use std::process::Command;
    use std::sync::Mutex;
    use tokio::task::JoinHandle;

    const BROKER: i32 = 1;

    /// A process of another host, about which this one knows nothing.
    fn elsewhere(name: &str) -> Owner {
        Owner { address: format!("{name}:9092"), host: name.into(), pid: 1, started: 1 }
    }

    async fn register(objects: &Arc<Memory>, owner: &Owner) -> Registration {
        let nobody = |owner| panic!("stands by for {owner:?}");
        Registration::wait(objects.clone(), BROKER, owner.clone(), false, nobody).await.unwrap()
    }

    /// Who registers in the background; tells for whom it stood by, and after which time it may
    /// open.
    fn waiter(
        objects: &Arc<Memory>,
        name: &str,
    ) -> JoinHandle<(Registration, Vec<Owner>, Duration)> {
        let (objects, owner) = (objects.clone(), elsewhere(name));
        tokio::spawn(async move {
            let begun = Instant::now();
            let stood_by = Mutex::new(Vec::new());
            let on_standby = |owner| stood_by.lock().unwrap().push(owner);
            let waited = Registration::wait(objects, BROKER, owner, false, on_standby).await;
            (waited.unwrap(), stood_by.into_inner().unwrap(), begun.elapsed())
        })
    }

    async fn keys(objects: &Memory) -> Vec<String> {
        objects.list("registration/1/", "", 100).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_is_registered_it_opens_at_once() {
        let objects = Arc::new(Memory::default());
        let begun = Instant::now();
        register(&objects, &elsewhere("one")).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(keys(&objects).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_stands_by_while_the_other_renews_and_opens_when_that_is_silent() {
        let objects = Arc::new(Memory::default());
        let mut first = register(&objects, &elsewhere("one")).await;
        let waiting = waiter(&objects, "two");
        let renewing = tokio::time::timeout(Duration::from_secs(3_600), first.keep());
        assert!(renewing.await.is_err(), "it renews until it is dropped");
        assert!(!waiting.is_finished());
        assert_eq!(keys(&objects).await.len(), 1, "the ones before are deleted");

        let (_second, stood_by, waited) = waiting.await.unwrap();
        assert_eq!(stood_by, [elsewhere("one")], "told once");
        let silent = waited - Duration::from_secs(3_600);
        assert!(
            silent >= SILENCE - RENEW_EVERY && silent <= SILENCE + 2 * LOOK_EVERY,
            "{silent:?}"
        );
        assert_eq!(keys(&objects).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_registration_that_is_released_is_not_waited_for() {
        let objects = Arc::new(Memory::default());
        let first = register(&objects, &elsewhere("one")).await;
        let waiting = waiter(&objects, "two");
        sleep(Duration::from_secs(2)).await;
        first.release().await.unwrap();
        let (_second, _, waited) = waiting.await.unwrap();
        assert!(waited <= Duration::from_secs(3), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_that_stand_by_one_opens() {
        let objects = Arc::new(Memory::default());
        let _silent = register(&objects, &elsewhere("one")).await;
        let mut waiting: Vec<_> = (2..6).map(|i| waiter(&objects, &i.to_string())).collect();
        sleep(Duration::from_secs(12)).await;
        let (opened, rest): (Vec<_>, Vec<_>) = waiting.drain(..).partition(|w| w.is_finished());
        assert_eq!(opened.len(), 1);
        let (mut second, ..) = opened.into_iter().next().unwrap().await.unwrap();
        let _ = tokio::time::timeout(Duration::from_secs(60), second.keep()).await;
        assert!(rest.iter().all(|waiting| !waiting.is_finished()));
        rest.iter().for_each(JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn taking_over_waits_for_nobody_and_the_old_owner_goes_on_until_it_is_fenced() {
        let objects = Arc::new(Memory::default());
        let mut first = register(&objects, &elsewhere("one")).await;
        let start = first.count;
        let nobody = |owner| panic!("stands by for {owner:?}");
        let begun = Instant::now();
        let second = Registration::wait(objects.clone(), BROKER, elsewhere("two"), true, nobody);
        let mut second = second.await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);

        let minute = Duration::from_secs(60);
        let both = async { tokio::join!(first.keep(), second.keep()) };
        let _ = tokio::time::timeout(minute, both).await;
        assert!(first.count > start + 10 && second.count > start + 10);
        assert!(first.count.abs_diff(second.count) <= 1, "they count on behind each other");

        first.release().await.unwrap();
        assert_eq!(keys(&objects).await, [second.key(second.count)], "the other's stays");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_of_this_host_that_is_gone_is_not_waited_for() {
        let objects = Arc::new(Memory::default());
        let this = this_process("localhost:9092".into());
        assert_eq!(this.pid, std::process::id());
        assert!(this.started > 0 && !this.host.is_empty());

        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let started = process_started(child.id()).unwrap();
        let of_child = Owner { pid: child.id(), started, ..this.clone() };
        let registration = register(&objects, &of_child).await;
        assert!(!registration.is_gone(&of_child), "it lives");
        assert!(registration.is_gone(&Owner { started: started - 1, ..of_child.clone() }));
        assert!(!registration.is_gone(&Owner { host: "other".into(), pid: 0, ..of_child.clone() }));
        drop(registration);

        child.kill().unwrap();
        // Not waited for yet: it keeps its number, but it runs no more.
        while process_started(child.id()).is_some() {
            std::thread::yield_now();
        }
        register(&objects, &this).await;
        child.wait().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_registration_that_cannot_be_read_is_waited_for_but_not_for_ever() {
        let objects = Arc::new(Memory::default());
        let garbage = vec![Bytes::from_static(b"garbage")];
        objects.put_new("registration/1/00000000000000000009", garbage).await.unwrap();
        let (second, stood_by, waited) = waiter(&objects, "two").await.unwrap();
        assert_eq!(stood_by, [Owner::default()]);
        assert!(waited >= SILENCE);
        assert_eq!(second.count, 10);
    }

    #[test]
    fn any_bytes_are_an_owner_or_an_error() {
        let objects = Arc::new(Memory::default());
        let owner = elsewhere("one");
        let this = Registration { objects, broker_id: 1, nonce: 5, owner: owner.clone(), count: 0 };
        let object = this.encode(3);
        assert_eq!(decode(3, &object), Ok(owner));
        assert!(decode(4, &object).is_err());
        for i in 0..object.len() {
            assert!(decode(3, &object.slice(..i)).is_err());
        }
    }
}
