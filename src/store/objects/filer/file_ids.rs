//! File ids of chunks, which are assigned ahead.

use super::calls::Calls;
use super::messages::AssignVolumeRequest;
use super::upload::NotUploaded;
use super::{ObjectError, Result, since_1970, split};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// One assignment costs as much as the upload of a small chunk, so ids come in batches: this many ids, or as many as are
/// good for these bytes. The master counts them as written.
const BATCH_IDS: u64 = 64;
const BATCH_BYTES: usize = 64 << 20;

/// What the master knows about a volume grows old.
const BATCH_AGE: Duration = Duration::from_secs(30);

/// A token that ends this soon may be too late when it arrives.
const TOKEN_MARGIN: Duration = Duration::from_secs(2);

/// Batches are kept for this many directories. The journal needs one.
const MAX_POOLS: usize = 64;

/// Where one chunk goes.
#[derive(Debug)]
pub(super) struct FileId {
    pub(super) batch: Arc<Batch>,
    /// What the entry says.
    pub(super) name: String,
    /// What the volume server is told: `ID_N` instead of the id N behind it, because the batch's token is for its first
    /// id.
    pub(super) upload_name: String,
}

/// A run of file ids on one volume.
#[derive(Debug)]
pub(super) struct Batch {
    first: Id,
    count: u64,
    /// HOST:PORT
    pub(super) server: String,
    /// Empty where none is asked for.
    pub(super) token: String,
    pub(super) fsync: bool,
    expires: Instant,
    /// One of the ids was not taken by the volume.
    pub(super) refused: AtomicBool,
}

/// Hands out ids. The filer's rule for a path decides on replication and fsync, so each directory has ids of its own.
pub(super) struct FileIds {
    calls: Arc<Calls>,
    timeout: Duration,
    pools: Mutex<HashMap<String, Arc<Mutex<Pool>>>>,
}

#[derive(Default)]
struct Pool {
    /// With the number of its ids that are taken.
    batch: Option<(Arc<Batch>, u64)>,
    pending: Option<Pending>,
}

/// A request for a batch. It goes on when those who wait for it have given up.
#[derive(Clone)]
struct Pending {
    started: Instant,
    outcome: watch::Receiver<Option<Result<()>>>,
}

impl FileIds {
    pub(super) fn new(calls: Arc<Calls>, timeout: Duration) -> Self {
        Self { calls, timeout, pools: Mutex::default() }
    }

    /// An id for a chunk of an object at `path`, or [`NotUploaded::NoFileId`] when the master has been asked for as
    /// long as `patience` and has not answered.
    pub(super) async fn take(
        &self,
        path: &str,
        collection: &'static str,
        size: usize,
        patience: Duration,
    ) -> Result<FileId, NotUploaded> {
        let pool = self.pool(split(path).0);
        loop {
            let mut pending = {
                let mut locked = lock(&pool);
                if let Some(id) = locked.take() {
                    return Ok(id);
                }
                let ask = || self.ask(&pool, path, collection, size);
                locked.pending.get_or_insert_with(ask).clone()
            };
            let answered = pending.outcome.wait_for(Option::is_some);
            match timeout_at(pending.started + patience, answered).await {
                Ok(Ok(outcome)) => {
                    if let Some(Err(error)) = &*outcome {
                        return Err(NotUploaded::Failed(error.clone()));
                    }
                }
                // The runtime ends.
                Ok(Err(closed)) => {
                    return Err(NotUploaded::Failed(ObjectError(closed.to_string())));
                }
                Err(_) => return Err(NotUploaded::NoFileId),
            }
        }
    }

    fn pool(&self, directory: &str) -> Arc<Mutex<Pool>> {
        let mut pools = lock(&self.pools);
        if let Some(pool) = pools.get(directory) {
            return pool.clone();
        }
        if pools.len() == MAX_POOLS {
            pools.clear();
        }
        pools.entry(directory.to_owned()).or_default().clone()
    }

    fn ask(
        &self,
        pool: &Arc<Mutex<Pool>>,
        path: &str,
        collection: &'static str,
        size: usize,
    ) -> Pending {
        let request = AssignVolumeRequest {
            count: (BATCH_BYTES / size.max(1)).clamp(1, BATCH_IDS as usize) as i32,
            collection: collection.into(),
            path: path.into(),
            expected_data_size: size as u64,
        };
        let (sender, outcome) = watch::channel(None);
        let (calls, pool, limit) = (self.calls.clone(), pool.clone(), self.timeout);
        tokio::spawn(async move {
            let late = |_| Err(ObjectError(format!("no answer within {limit:?}")));
            let assigned = timeout(limit, assign(&calls, &request)).await.unwrap_or_else(late);
            let mut pool = lock(&pool);
            pool.pending = None;
            let outcome = assigned.map(|batch| pool.batch = Some((Arc::new(batch), 0)));
            let named = |e| ObjectError(format!("file ids of collection {collection}: {e}"));
            sender.send_replace(Some(outcome.map_err(named)));
        });
        Pending { started: Instant::now(), outcome }
    }
}

async fn assign(calls: &Calls, request: &AssignVolumeRequest) -> Result<Batch> {
    let response = calls.assign_volume(request).await?;
    if !response.error.is_empty() {
        return Err(ObjectError(response.error));
    }
    let first = Id::parse(&response.file_id);
    let first = first.ok_or_else(|| ObjectError(format!("{:?} is none", response.file_id)))?;
    let expires = token_lasts(&response.auth).map_or(BATCH_AGE, |lasts| lasts.min(BATCH_AGE));
    Ok(Batch {
        first,
        count: u64::try_from(response.count).unwrap_or_default().max(1),
        server: response.location.unwrap_or_default().url,
        token: response.auth,
        fsync: response.fsync,
        expires: Instant::now() + expires,
        refused: AtomicBool::new(false),
    })
}

impl Pool {
    fn take(&mut self) -> Option<FileId> {
        let (batch, taken) = self.batch.as_mut()?;
        let used = *taken == batch.count
            || batch.refused.load(Ordering::Relaxed)
            || Instant::now() > batch.expires;
        if used {
            return None;
        }
        let (batch, n) = (batch.clone(), *taken);
        *taken += 1;
        let name = Id { key: batch.first.key.wrapping_add(n), ..batch.first }.to_string();
        let upload_name = match n {
            0 => name.clone(),
            n => format!("{}_{n}", batch.first),
        };
        Some(FileId { batch, name, upload_name })
    }
}

/// How long a token of the master may still be used. `None`: for ever, or there is no token. Only the volume server can
/// check the signature; a token that is no token it will refuse.
fn token_lasts(token: &str) -> Option<Duration> {
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    let end = Duration::from_secs(claims["exp"].as_u64()?);
    Some(end.saturating_sub(since_1970() + TOKEN_MARGIN))
}

/// A file id: `VOLUME,KEYCOOKIE` in hexadecimal digits, eight of them the cookie's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Id {
    volume: u32,
    key: u64,
    cookie: u32,
}

impl Id {
    fn parse(text: &str) -> Option<Self> {
        let (volume, rest) = text.split_once(',')?;
        let (key, cookie) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        Some(Self {
            volume: volume.parse().ok()?,
            key: u64::from_str_radix(key, 16).ok()?,
            cookie: u32::from_str_radix(cookie, 16).ok()?,
        })
    }
}

impl fmt::Display for Id {
    /// With whole bytes of the key, and none that are zero in front, as SeaweedFS writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = 2 * (8 - self.key.leading_zeros() as usize / 8);
        write!(f, "{},", self.volume)?;
        if digits > 0 {
            write!(f, "{:0digits$x}", self.key)?;
        }
        write!(f, "{:08x}", self.cookie)
    }
}

/// What is under these locks is whole at every step, so a panic spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_ids_are_written_as_seaweedfs_writes_them() {
        for text in
            ["3,01637037d6", "1,028aec652de5", "7,0100000000000000000000ff", "12,ff000000ab"]
        {
            assert_eq!(Id::parse(text).unwrap().to_string(), text);
        }
        let id = Id { volume: 5, key: 0xff, cookie: 1 };
        assert_eq!(Id { key: id.key + 1, ..id }.to_string(), "5,010000000001");
        for text in ["", "3", "3,", "3,637037d6", "3,zz637037d6", "x,01637037d6", "3,0é37037d6"] {
            assert_eq!(Id::parse(text), None, "{text:?}");
        }
    }

    fn token(claims: &str) -> String {
        format!("e30.{}.sig", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_lasts_until_shortly_before_its_end() {
        let exp = since_1970().as_secs() + 1_000;
        let lasts = token_lasts(&token(&format!("{{\"fid\":\"3,01\",\"exp\":{exp}}}"))).unwrap();
        assert!(lasts <= Duration::from_secs(998) && lasts > Duration::from_secs(900));
        assert_eq!(token_lasts(&token("{\"exp\":1}")), Some(Duration::ZERO));
        for none in ["", "a.b", "a.!.c", &token("{}"), &token("[]")] {
            assert_eq!(token_lasts(none), None, "{none}");
        }
    }

    #[test]
    fn ids_of_a_batch_are_used_once() {
        let batch = Batch {
            first: Id { volume: 3, key: 0xfe, cookie: 0x0102 },
            count: 3,
            server: String::new(),
            token: String::new(),
            fsync: false,
            expires: Instant::now() + BATCH_AGE,
            refused: AtomicBool::new(false),
        };
        let mut pool = Pool { batch: Some((Arc::new(batch), 0)), pending: None };
        let mut take = || pool.take().map(|id| (id.name, id.upload_name));
        let id = |name: &str, upload: &str| Some((name.to_string(), upload.to_string()));
        assert_eq!(take(), id("3,fe00000102", "3,fe00000102"));
        assert_eq!(take(), id("3,ff00000102", "3,fe00000102_1"));
        assert_eq!(take(), id("3,010000000102", "3,fe00000102_2"));
        assert_eq!(take(), None);
    }
}
