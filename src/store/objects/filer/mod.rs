//! Objects on a SeaweedFS filer, by its own API: for a broker without a host, or with one that is not Go.
//!
//! An object is an entry of the filer below a directory, and its key is the entry's path: the slashes of a key are
//! directories. A small object is the entry's own content; a larger one is a list of chunks on volume servers, written
//! before the entry is created. Creating the entry is what makes the object exist: the filer looks and inserts under
//! one lock, so of all who put the same new key exactly one wins.
//!
//! ```text
//! put_new ─▶ file ids (assigned in batches) ─▶ PUT chunks (in parallel) ─▶ CreateEntry, o_excl
//! get     ─▶ LookupDirectoryEntries (entry, places, tokens) ─▶ GET ranges of chunks
//! list    ─▶ ListEntries, directory by directory, in the order of keys
//! delete  ─▶ DeleteEntry, which also deletes the chunks
//! ```
//!
//! `go-bindings/weed/filerstore` does the same for the gateway in `weed`: what one has written the other reads.

mod calls;
mod file_ids;
mod list;
mod read;
mod rule;
mod slices;
#[cfg(test)]
mod tests;
mod upload;
mod volumes;

pub use calls::Address;

use super::{ObjectError, Objects, Put, is_key};
use bytes::Bytes;
use calls::Calls;
use file_ids::FileIds;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use messages::{
    CreateEntryRequest, DeleteEntryRequest, Entry, FileChunk, FilerError, FuseAttributes,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use upload::{NotUploaded, Upload};
use volumes::Volumes;

/// Made from `proto/filer.proto` by `build.rs`.
#[allow(unreachable_pub)]
mod messages {
    include!(concat!(env!("OUT_DIR"), "/filer_pb.rs"));
}

/// Content below this is kept in the entry itself. The filer writes such content again to its metadata log, at create
/// and at delete, so more is cheaper as a chunk: docs/performance.md has the figures.
const INLINE_BELOW: usize = 4 << 10;

/// For some 15 s after a master has started it assigns no file ids. Content of these sizes goes to the entry then, so
/// that the journal does not stand still: what is small always, what is larger until it is this much. The filer keeps
/// it in memory meanwhile, as its metadata log needs file ids too.
const SMALL_INLINE: usize = 64 << 10;
const INLINE_AT_MOST: usize = 512 << 10;
const INLINE_TOGETHER: usize = 64 << 20;

/// So long such content waits for a file id before that: a master that makes new volumes answers after 200 ms, for which
/// a commit that clients wait for does not wait.
const PATIENCE_FOR_ID: Duration = Duration::from_millis(10);

const CHUNK_BYTES: usize = 8 << 20;

/// The filer folds long lists of chunks into a manifest, which [`Objects::get`] does not read. It starts at 1,000
/// chunks of this size.
const MAX_OBJECT_BYTES: usize = 512 * CHUNK_BYTES;

/// How many chunks of one object, or entries of one delete, are under way at once.
const PARALLEL: usize = 4;

type Result<T, E = ObjectError> = std::result::Result<T, E>;

/// Where the objects are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The first that can be reached is used. Several must share one store that reads what was written.
    pub filers: Vec<Address>,
    /// The directory of the filers that holds everything, such as `/kelp`.
    pub directory: String,
    /// Limits each call.
    pub timeout: Duration,
}

impl Options {
    pub const DIRECTORY: &str = "/kelp";
    pub const TIMEOUT: Duration = Duration::from_secs(30);
}

/// A store of objects on a filer.
#[derive(Clone)]
pub struct Filer(Arc<Shared>);

struct Shared {
    /// Without a slash at its end.
    directory: String,
    timeout: Duration,
    calls: Arc<Calls>,
    volumes: Arc<Volumes>,
    ids: FileIds,
    /// Bytes in entries since a file id was there.
    inlined: AtomicUsize,
}

impl Filer {
    /// Waits until a filer answers, and refuses one on which records would not be safe.
    pub async fn open(options: Options) -> Result<Self> {
        let first = Self::new(&options)?;
        first.0.check().await?;
        // Connections belong to the runtime in which they were made, which need not be the engine's.
        Self::new(&options)
    }

    fn new(options: &Options) -> Result<Self> {
        let directory = options.directory.trim_matches('/');
        if directory.is_empty() {
            return Err(error("the directory of the objects cannot be the filer's root"));
        }
        let calls = Arc::new(Calls::new(&options.filers)?);
        Ok(Self(Arc::new(Shared {
            directory: format!("/{directory}"),
            timeout: options.timeout,
            calls: calls.clone(),
            volumes: Arc::new(Volumes::new()),
            ids: FileIds::new(calls, options.timeout),
            inlined: AtomicUsize::new(0),
        })))
    }
}

#[async_trait::async_trait]
impl Objects for Filer {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put> {
        self.0.in_time("put", key, self.0.put_new(key, parts)).await
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>> {
        self.0.in_time("get", key, self.0.get(key, offset, len)).await
    }

    async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<String>> {
        self.0.in_time("list", prefix, self.0.list(prefix, after, limit)).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<()> {
        let first = keys.first().cloned().unwrap_or_default();
        self.0.in_time("delete", &first, self.0.delete(keys)).await
    }
}

impl Shared {
    /// Limits an operation, and says which one failed.
    async fn in_time<T>(
        &self,
        what: &str,
        key: &str,
        operation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let late = |_| Err(ObjectError(format!("no answer within {:?}", self.timeout)));
        let done = timeout(self.timeout, operation).await.unwrap_or_else(late);
        done.map_err(|e| ObjectError(format!("{what} {key}: {e}")))
    }

    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put> {
        let path = self.path(key)?;
        let size = parts.iter().map(Bytes::len).sum();
        if size > MAX_OBJECT_BYTES {
            let text = format!("{size} bytes are more than the {MAX_OBJECT_BYTES} of an object");
            return Err(ObjectError(text));
        }
        if size < INLINE_BELOW {
            return self.create(&path, size, join(parts, size), vec![]).await;
        }
        let inlines = self.may_inline(size);
        let patience = if inlines { PATIENCE_FOR_ID } else { self.timeout };
        match self.upload(&path, &parts, size, patience).await {
            Ok(uploads) => {
                self.inlined.store(0, Ordering::Relaxed);
                self.create(&path, size, Bytes::new(), uploads).await
            }
            Err(NotUploaded::NoFileId) if inlines => {
                self.inlined.fetch_add(size, Ordering::Relaxed);
                self.create(&path, size, join(parts, size), vec![]).await
            }
            Err(why) => Err(ObjectError(why.to_string())),
        }
    }

    /// Whether content goes to the entry when there is no file id for it.
    fn may_inline(&self, size: usize) -> bool {
        let is_room = || self.inlined.load(Ordering::Relaxed) + size <= INLINE_TOGETHER;
        size <= SMALL_INLINE || size <= INLINE_AT_MOST && is_room()
    }

    /// Makes the entry of what is its content or was uploaded, unless the path exists.
    async fn create(
        &self,
        path: &str,
        size: usize,
        content: Bytes,
        uploads: Vec<Upload>,
    ) -> Result<Put> {
        let chunks = uploads.iter().map(|upload| upload.chunk.clone()).collect();
        let attributes = FuseAttributes { file_size: size as u64, ..attributes(0o660) };
        let entry = Entry { content, chunks, attributes: Some(attributes), ..Default::default() };
        match self.create_entry(path, entry).await? {
            Put::Created => Ok(Put::Created),
            Put::Exists => self.lost(path, uploads).await,
        }
    }

    /// An error says nothing about what happened.
    async fn create_entry(&self, path: &str, entry: Entry) -> Result<Put> {
        let (directory, name) = split(path);
        let request = CreateEntryRequest {
            directory: directory.into(),
            entry: Some(Entry { name: name.into(), ..entry }),
            o_excl: true,
            ..Default::default()
        };
        let response = self.calls.create_entry(&request).await?;
        if response.error_code == FilerError::EntryAlreadyExists as i32 {
            return Ok(Put::Exists);
        }
        if response.error_code != FilerError::Ok as i32 || !response.error.is_empty() {
            let text = format!("the filer says {}: {}", response.error_code, response.error);
            return Err(ObjectError(text));
        }
        Ok(Put::Created)
    }

    /// Answers for a key that exists already: makes sure that a list shows it, and deletes the chunks that were
    /// uploaded in vain.
    async fn lost(&self, path: &str, uploads: Vec<Upload>) -> Result<Put> {
        let directories = ancestors(path);
        let paths: Vec<&str> = [path].into_iter().chain(directories.iter().copied()).collect();
        let found = self.look_up(&paths).await?;
        for (directory, entry) in directories.iter().zip(&found.entries[1..]) {
            // The filer inserts an entry before its directories. Had it died in between, the entry would exist and no
            // list would show it.
            if entry.is_none() {
                let attributes = Some(attributes(DIRECTORY_BIT | 0o770));
                let entry = Entry { is_directory: true, attributes, ..Default::default() };
                self.create_entry(directory, entry).await?;
            }
        }
        match &found.entries[0] {
            // Deleted since. What it was is not known, so its chunks may be these, and they stay.
            None => Ok(Put::Exists),
            Some(winner) if winner.is_directory => {
                Err(error("it is a directory: no key can be the beginning of another one's path"))
            }
            Some(winner) if !uploads.is_empty() && is_of(winner, &uploads) => Ok(Put::Created),
            Some(_) => {
                self.discard(uploads);
                Ok(Put::Exists)
            }
        }
    }

    async fn delete(&self, keys: Vec<String>) -> Result<()> {
        let deletes = stream::iter(keys).map(|key| self.delete_one(key));
        deletes.buffer_unordered(PARALLEL).try_collect().await
    }

    async fn delete_one(&self, key: String) -> Result<()> {
        let path = self.path(&key)?;
        let (directory, name) = split(&path);
        let (directory, name) = (directory.into(), name.into());
        let request = DeleteEntryRequest { directory, name, is_delete_data: true };
        let response = self.calls.delete_entry(&request).await?;
        match response.error.is_empty() {
            true => Ok(()),
            false => Err(ObjectError(format!("{path}: {}", response.error))),
        }
    }

    /// Where the object of a key is on the filer.
    fn path(&self, key: &str) -> Result<String> {
        match is_key(key) {
            true => Ok(format!("{}/{key}", self.directory)),
            false => Err(error("this is no key")),
        }
    }

    /// Separates the journal, of which much is deleted soon and most goes by its age, from what is rewritten and stays.
    fn collection(&self, path: &str) -> &'static str {
        let key = path.strip_prefix(&self.directory).unwrap_or(path);
        if key.starts_with("/journal/") { "kelp-journal" } else { "kelp" }
    }
}

/// Go's `os.ModeDir`, which is how the filer knows a directory.
const DIRECTORY_BIT: u32 = 1 << 31;

fn attributes(file_mode: u32) -> FuseAttributes {
    let now = since_1970();
    FuseAttributes {
        mtime: now.as_secs() as i64,
        mtime_ns: now.subsec_nanos() as i32,
        crtime: now.as_secs() as i64,
        file_mode,
        ..Default::default()
    }
}

fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// Whether an entry is what was made of these uploads.
fn is_of(entry: &Entry, uploads: &[Upload]) -> bool {
    let ids = |chunk: &FileChunk| chunk.file_id.clone();
    entry.chunks.iter().map(ids).eq(uploads.iter().map(|upload| ids(&upload.chunk)))
}

/// The directory and the name of a path.
fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => ("/", path),
    }
}

/// The directories above a path but the root, nearest first.
fn ancestors(path: &str) -> Vec<&str> {
    let directories = std::iter::successors(Some(path), |path| Some(split(path).0));
    directories.skip(1).take_while(|directory| *directory != "/").collect()
}

fn join(parts: Vec<Bytes>, size: usize) -> Bytes {
    match <[Bytes; 1]>::try_from(parts) {
        Ok([whole]) => whole,
        Err(parts) => {
            let mut whole = Vec::with_capacity(size);
            parts.iter().for_each(|part| whole.extend_from_slice(part));
            whole.into()
        }
    }
}

fn error(text: &str) -> ObjectError {
    ObjectError(text.into())
}
