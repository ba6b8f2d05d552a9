//! [`Objects`] in a local directory, held by one process at a time.
//!
//! ```text
//! DIR/lock      held while the process lives; its pid, for whoever is refused
//! DIR/packs/    small objects, many in a file
//! DIR/objects/  large ones, a file for each
//! ```
//!
//! As one process has the directory, its index of keys is in memory. It decides whether a key is
//! free, and holds only what is written.

mod buffers;
mod direct;
mod disk;
mod files;
mod packs;
mod spares;

use super::{ObjectError, Objects, Put, is_key};
use bytes::Bytes;
use disk::Disk;
use files::{Files, Opened, Token};
use packs::{Packs, Place};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError as TryMutexError};

/// What an object that was put survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it ends: the bytes are in the kernel's page cache. Kafka's
    /// default.
    Process,
    /// The loss of power too: each object is on the disk before it is answered.
    Machine,
}

pub struct Directory(Arc<Inner>);

struct Inner {
    location: String,
    files: Files,
    disk: Arc<Disk>,
    state: Mutex<State>,
    /// Held by who cleans packs.
    cleaning: Mutex<()>,
    /// Never read: the lock goes with it.
    _lock: File,
}

struct State {
    index: BTreeMap<String, At>,
    packs: Packs,
}

/// Where an object lies.
#[derive(Clone)]
enum At {
    File(Token),
    Pack(Place),
}

/// An object that stays as it is while this is held, also when its key goes.
enum Held {
    File { file: Opened, _token: Token },
    Pack { file: Arc<File>, place: Place },
}

/// Larger objects have a file each, so that several are written side by side. Beside the bytes of
/// such an object the cost of its file is small; where exactly the line is best was not measured.
const LARGE_BYTES: usize = 256 << 10;

/// An object of at most so many bytes is written by the thread that asks: that takes less than the way to another
/// thread and back.
const LITTLE_BYTES: usize = 32 << 10;

/// A pack of so many bytes gets no more objects.
const PACK_BYTES: u64 = 64 << 20;

impl Directory {
    /// Takes the directory for this process and makes it if there is none. Blocks.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, ObjectError> {
        Self::open_with(path, durability, PACK_BYTES)
    }

    fn open_with(
        path: &Path,
        durability: Durability,
        pack_bytes: u64,
    ) -> Result<Self, ObjectError> {
        let failed = |error: io::Error| ObjectError(format!("{}: {error}", path.display()));
        fs::create_dir_all(path).map_err(failed)?;
        let lock = hold(path)?;
        Ok(Self(Arc::new(Inner::open(path, durability, pack_bytes, lock).map_err(failed)?)))
    }

    /// Runs blocking work where it holds up nobody. It goes on if the caller stops waiting.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> io::Result<T> + Send + 'static,
    ) -> Result<T, ObjectError> {
        let inner = self.0.clone();
        match tokio::task::spawn_blocking(move || work(&inner)).await {
            Ok(done) => done.map_err(|error| ObjectError(error.to_string())),
            Err(stopped) => Err(ObjectError(stopped.to_string())),
        }
    }
}

#[async_trait::async_trait]
impl Objects for Directory {
    async fn put_new(&self, key: &str, parts: Vec<Bytes>) -> Result<Put, ObjectError> {
        if let Some(put) = self.0.put_at_once(key, &parts) {
            return put.map_err(|error| ObjectError(error.to_string()));
        }
        let key = key.to_owned();
        self.run(move |inner| inner.put_new(&key, &parts)).await
    }

    async fn get(&self, key: &str, offset: u64, len: u64) -> Result<Option<Bytes>, ObjectError> {
        let key = key.to_owned();
        self.run(move |inner| inner.get(&key, offset, len)).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, ObjectError> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        self.run(move |inner| Ok(inner.list(&prefix, &after, limit))).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.run(move |inner| inner.delete(&keys)).await
    }

    fn location(&self) -> String {
        self.0.location.clone()
    }

    /// Segments go past the page cache, and commits into files of others that are still in it: to keep
    /// those takes fresh memory for each byte.
    fn copies_cheaply(&self) -> bool {
        true
    }
}

/// Locks the directory, or says who has it.
fn hold(path: &Path) -> Result<File, ObjectError> {
    let path = path.join("lock");
    let failed = |error: io::Error| ObjectError(format!("{}: {error}", path.display()));
    // Not truncated on opening: the text belongs to who holds the lock.
    let mut options = File::options();
    let mut file =
        options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = if holder.is_empty() { "another process" } else { holder.trim_end() };
            return Err(ObjectError(format!("{} is held by {holder}", path.display())));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let holder = format!("process {}\n", std::process::id());
    file.set_len(0).and_then(|()| file.write_all(holder.as_bytes())).map_err(failed)?;
    Ok(file)
}

impl Inner {
    fn open(path: &Path, durability: Durability, pack_bytes: u64, lock: File) -> io::Result<Self> {
        let disk = Arc::new(Disk::new(durability));
        let mut index = BTreeMap::new();
        let mut packs = Packs::open(path.join("packs"), disk.clone(), pack_bytes, |key, place| {
            match place {
                Some(place) => index.insert(key.to_owned(), At::Pack(place)),
                None => index.remove(key),
            };
        })?;
        let files = Files::open(path, disk.clone(), |key| {
            index.insert(key, At::File(Token::default()));
        })?;
        disk.sync_folder(path)?;
        for at in index.values() {
            if let At::Pack(place) = at {
                packs.count(*place, true);
            }
        }
        let location = std::path::absolute(path)?.display().to_string();
        let state = Mutex::new(State { index, packs });
        Ok(Self { location, files, disk, state, cleaning: Mutex::default(), _lock: lock })
    }

    fn put_new(&self, key: &str, parts: &[Bytes]) -> io::Result<Put> {
        check(key)?;
        let len = parts.iter().map(Bytes::len).sum::<usize>();
        if len >= LARGE_BYTES {
            return self.put_large(key, parts);
        }
        let put = self.put_small(&mut self.state(), key, parts)?;
        self.synced(put)
    }

    /// Puts an object if nobody would notice how long that takes: it is little, nobody else writes, and
    /// the disk is not waited for.
    fn put_at_once(&self, key: &str, parts: &[Bytes]) -> Option<io::Result<Put>> {
        let len = parts.iter().map(Bytes::len).sum::<usize>();
        if len > LITTLE_BYTES || self.disk.is_waited_for() || !is_key(key) {
            return None;
        }
        let mut state = self.state.try_lock().ok()?;
        let put = self.put_small(&mut state, key, parts);
        Some(put.and_then(|put| self.synced(put)))
    }

    /// Gives what became of it, and the file in which it is if it was written.
    fn put_small(
        &self,
        state: &mut State,
        key: &str,
        parts: &[Bytes],
    ) -> io::Result<(Put, Option<Arc<File>>)> {
        let State { index, packs } = state;
        match index.entry(key.to_owned()) {
            Entry::Occupied(found) => self.exists(key, found.get(), packs).map(|put| (put, None)),
            Entry::Vacant(free) => {
                let (place, file) = packs.put(key, parts)?;
                free.insert(At::Pack(place));
                Ok((Put::Created, Some(file)))
            }
        }
    }

    fn synced(&self, (put, file): (Put, Option<Arc<File>>)) -> io::Result<Put> {
        file.map_or(Ok(()), |file| self.disk.sync(&file))?;
        Ok(put)
    }

    fn put_large(&self, key: &str, parts: &[Bytes]) -> io::Result<Put> {
        // Only who is first writes, unless two come at the same time.
        if let State { index, packs } = &*self.state()
            && let Some(at) = index.get(key)
        {
            return self.exists(key, at, packs);
        }
        let unnamed = self.files.write(parts)?;
        {
            let State { index, packs } = &mut *self.state();
            match index.entry(key.to_owned()) {
                Entry::Occupied(found) => return self.exists(key, found.get(), packs),
                Entry::Vacant(free) => {
                    self.files.name(unnamed, key)?;
                    free.insert(At::File(Token::default()));
                }
            }
        }
        self.files.sync_name(key)?;
        Ok(Put::Created)
    }

    /// Whoever put it may not have come so far as to make it durable, and the caller builds on it.
    fn exists(&self, key: &str, at: &At, packs: &Packs) -> io::Result<Put> {
        match at {
            At::File(_) => self.files.sync_name(key)?,
            At::Pack(place) => packs.file(*place).map_or(Ok(()), |file| self.disk.sync(&file))?,
        }
        Ok(Put::Exists)
    }

    fn get(&self, key: &str, offset: u64, len: u64) -> io::Result<Option<Bytes>> {
        check(key)?;
        match self.hold(key, len)? {
            None => Ok(None),
            Some(Held::File { file, .. }) => self.files.read(&file, offset, len).map(Some),
            Some(Held::Pack { file, place }) => packs::read(&file, place, offset, len).map(Some),
        }
    }

    fn hold(&self, key: &str, len: u64) -> io::Result<Option<Held>> {
        loop {
            let token = {
                let State { index, packs } = &*self.state();
                match index.get(key) {
                    None => return Ok(None),
                    Some(At::File(token)) => token.clone(),
                    Some(At::Pack(place)) => {
                        let held = |file| Held::Pack { file, place: *place };
                        return Ok(packs.file(*place).map(held));
                    }
                }
            };
            let file = self.files.open_object(key, len)?;
            // What was opened may be another object, which got the key meanwhile and has another token.
            if let Some(At::File(now)) = self.state().index.get(key)
                && Arc::ptr_eq(now, &token)
            {
                return Ok(file.map(|file| Held::File { file, _token: token }));
            }
        }
    }

    fn list(&self, prefix: &str, after: &str, limit: usize) -> Vec<String> {
        let from = match after < prefix {
            true => Bound::Included(prefix),
            false => Bound::Excluded(after),
        };
        let state = self.state();
        let keys = state.index.range::<str, _>((from, Bound::Unbounded)).map(|(key, _)| key);
        keys.take_while(|key| key.starts_with(prefix)).take(limit).cloned().collect()
    }

    /// Goes on after a failure: each key that can go, goes.
    fn delete(&self, keys: &[String]) -> io::Result<()> {
        let mut done = Ok(());
        let (mut packed, mut files) = (Vec::new(), Vec::new());
        {
            let State { index, packs } = &mut *self.state();
            for key in keys {
                if let Err(error) = check(key) {
                    done = Err(error);
                    continue;
                }
                match index.get(key) {
                    None => continue,
                    Some(At::Pack(place)) => packed.push((key.clone(), *place)),
                    Some(At::File(token)) => match self.files.unname(key, token.clone()) {
                        Ok(gone) => files.extend(gone),
                        Err(error) => {
                            done = Err(error);
                            continue;
                        }
                    },
                }
                index.remove(key);
            }
            done = packs.delete(&packed).and(done);
        }
        self.files.recycle(files).and(self.clean()).and(done)
    }

    /// Takes old packs away that hold little. What lives in them is written anew, an object at a time, so that puts
    /// wait for none of it.
    fn clean(&self) -> io::Result<()> {
        let _alone = match self.cleaning.try_lock() {
            Ok(alone) => alone,
            Err(TryMutexError::Poisoned(alone)) => alone.into_inner(),
            Err(TryMutexError::WouldBlock) => return Ok(()),
        };
        loop {
            let Some(cleaning) = self.state().packs.to_clean() else { return Ok(()) };
            let mut last = None;
            cleaning.objects(|key, place| {
                let is_here = |at: Option<&At>| matches!(at, Some(At::Pack(now)) if *now == place);
                if !is_here(self.state().index.get(key)) {
                    return Ok(());
                }
                let bytes = cleaning.read(place)?;
                let State { index, packs } = &mut *self.state();
                if is_here(index.get(key)) {
                    let (moved, file) = packs.put(key, &[bytes])?;
                    packs.count(place, false);
                    index.insert(key.to_owned(), At::Pack(moved));
                    last = Some(file);
                }
                Ok(())
            })?;
            last.map_or(Ok(()), |file| self.disk.sync(&file))?;
            self.state().packs.remove(&cleaning)?;
        }
    }

    /// Nothing panics under the lock, so what it guards is whole even if a thread died.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(key: &str) -> io::Result<()> {
    match is_key(key) {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, format!("no key: {key:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::contract;
    use std::os::unix::fs::MetadataExt;
    use tempfile::{TempDir, tempdir};

    fn open(at: &TempDir, durability: Durability) -> Directory {
        Directory::open(at.path(), durability).unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_directory_keeps_the_contract() {
        for durability in [Durability::Process, Durability::Machine] {
            let at = tempdir().unwrap();
            contract::holds(Arc::new(open(&at, durability))).await;
        }
    }

    #[tokio::test]
    async fn objects_are_there_after_a_restart_and_leftovers_are_not() {
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        directory.put_new("a/b", vec![Bytes::from_static(b"one")]).await.unwrap();
        drop(directory);
        fs::write(at.path().join("temporary/0"), "half").unwrap();

        let directory = open(&at, Durability::Process);
        assert_eq!(fs::read_dir(at.path().join("temporary")).unwrap().count(), 0);
        assert_eq!(directory.list("", "", 10).await.unwrap(), ["a/b"]);
        assert_eq!(directory.get("a/b", 0, 9).await.unwrap(), Some(Bytes::from_static(b"one")));
    }

    #[tokio::test]
    async fn a_put_leaves_no_temporary_file() {
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        for put in [Put::Created, Put::Exists] {
            assert_eq!(directory.put_new("a", vec![Bytes::from_static(b"x")]).await, Ok(put));
        }
        assert_eq!(fs::read_dir(at.path().join("temporary")).unwrap().count(), 0);
    }

    #[test]
    fn a_second_holder_is_refused_and_told_who_has_it() {
        let at = tempdir().unwrap();
        let first = open(&at, Durability::Process);
        let Err(refused) = Directory::open(at.path(), Durability::Process) else {
            panic!("two hold the directory");
        };
        let holder = format!("is held by process {}", std::process::id());
        assert!(refused.0.ends_with(&holder), "{refused}");
        drop(first);
        open(&at, Durability::Process);
    }

    #[tokio::test]
    async fn a_key_does_not_lead_out_of_the_directory() {
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        for key in ["../lock", "/etc/hosts", "a/../../lock", "", "a//b", "a/", ".", "ä"] {
            directory.put_new(key, vec![]).await.unwrap_err();
            directory.get(key, 0, 1).await.unwrap_err();
            directory.delete(vec![key.into()]).await.unwrap_err();
        }
        for prefix in ["../", "/", "a/../../", "//"] {
            assert_eq!(directory.list(prefix, "", 9).await.unwrap(), Vec::<String>::new());
        }
        assert!(at.path().join("lock").exists());
    }

    #[tokio::test]
    async fn an_empty_folder_hides_no_key_behind_it() {
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        for empty in ["a", "b", "c"] {
            fs::create_dir(at.path().join("objects").join(empty)).unwrap();
        }
        directory.put_new("d", vec![]).await.unwrap();
        assert_eq!(directory.list("", "", 1).await.unwrap(), ["d"]);
    }

    /// An object of its own size, told from others by its first bytes.
    fn object(name: &str, len: usize) -> Vec<Bytes> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(len, b'.');
        vec![bytes.into()]
    }

    async fn put(directory: &Directory, key: &str, len: usize) {
        assert_eq!(directory.put_new(key, object(key, len)).await, Ok(Put::Created));
    }

    async fn assert_has(directory: &Directory, key: &str, len: usize) {
        let found = directory.get(key, 0, u64::MAX).await.unwrap();
        assert!(found == Some(object(key, len).concat().into()), "{key}");
        assert_eq!(directory.put_new(key, object("other", 9)).await, Ok(Put::Exists));
        assert_eq!(directory.put_new(key, object("other", LARGE_BYTES)).await, Ok(Put::Exists));
    }

    /// Which file an object is in, whatever its name.
    fn inode(at: &TempDir, key: &str) -> u64 {
        fs::metadata(at.path().join("objects").join(key)).unwrap().ino()
    }

    fn temporary(at: &TempDir) -> usize {
        fs::read_dir(at.path().join("temporary")).unwrap().count()
    }

    #[tokio::test]
    async fn an_object_is_written_over_the_file_of_a_deleted_one() {
        for durability in [Durability::Process, Durability::Machine] {
            let at = tempdir().unwrap();
            let directory = open(&at, durability);
            put(&directory, "a/0", 3 * LARGE_BYTES).await;
            let file = inode(&at, "a/0");
            let sizes = [3, 2, 4, 4, 2].map(|times| times * LARGE_BYTES + 7);
            for (number, size) in sizes.into_iter().enumerate() {
                directory.delete(vec![format!("a/{number}")]).await.unwrap();
                assert_eq!(directory.get(&format!("a/{number}"), 0, 9).await, Ok(None));
                assert_eq!(temporary(&at), 1, "a spare");
                let key = format!("a/{}", number + 1);
                put(&directory, &key, size).await;
                assert_eq!((inode(&at, &key), temporary(&at)), (file, 0));
                assert_has(&directory, &key, size).await;
            }
            directory.delete(vec![format!("a/{}", sizes.len())]).await.unwrap();
            drop(directory);
            assert_eq!(temporary(&at), 0, "who needs it no more removes it");
        }
    }

    #[tokio::test]
    async fn who_began_to_read_an_object_sees_no_other_ones_bytes() {
        const SIZE: usize = 2 * LARGE_BYTES;
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        put(&directory, "old", SIZE).await;
        let old = directory.0.hold("old", u64::MAX).unwrap();
        directory.delete(vec!["old".into()]).await.unwrap();
        put(&directory, "new", SIZE).await;
        // The same key again, with other bytes.
        directory.put_new("old", object("again", SIZE)).await.unwrap();
        let again = directory.0.hold("old", u64::MAX).unwrap();
        directory.delete(vec!["old".into(), "new".into()]).await.unwrap();
        put(&directory, "newer", SIZE).await;
        for (held, name) in [(old, "old"), (again, "again")] {
            let Some(Held::File { file, .. }) = held else { panic!("it was there") };
            let bytes = directory.0.files.read(&file, 0, u64::MAX).unwrap();
            assert!(bytes == object(name, SIZE).concat(), "{name}");
        }
        assert_has(&directory, "newer", SIZE).await;
        assert_eq!(temporary(&at), 0, "of three files two were read, and one is used");
    }

    #[tokio::test]
    async fn objects_that_go_past_the_page_cache_are_read_back_in_any_range() {
        const DIRECT: usize = direct::DIRECT_BYTES as usize;
        let at = tempdir().unwrap();
        let mut directory = open(&at, Durability::Process);
        // Each byte tells its place, in a period that divides no block size.
        let whole: Bytes = (0..DIRECT + 8192).map(|i| (i % 251) as u8).collect();
        let sizes = [DIRECT - 1, DIRECT, DIRECT + 1, DIRECT + 4095, DIRECT + 4096, DIRECT + 4097];
        for durability in [Durability::Process, Durability::Machine] {
            drop(directory);
            directory = open(&at, durability);
            for size in sizes {
                let ends = [0, 1, 300_001, 2 << 20, DIRECT - 1, size];
                let parts = ends.windows(2).map(|range| whole.slice(range[0]..range[1])).collect();
                let key = format!("{durability:?}/{size}");
                assert_eq!(directory.put_new(&key, parts).await, Ok(Put::Created));
            }
        }
        assert_eq!(temporary(&at), 0);
        for key in directory.list("", "", 99).await.unwrap() {
            let size: usize = key.rsplit('/').next().unwrap().parse().unwrap();
            let starts = [0, 1, 4095, 4096, 1_000_003, size - 4097, size - 1, size, size + 1];
            for (start, len) in starts.into_iter().flat_map(|start| {
                [0, 1, 4096, 131_071, 131_072, 1_048_577, size].map(|len| (start, len))
            }) {
                let found = directory.get(&key, start as u64, len as u64).await.unwrap().unwrap();
                let expected = whole.slice(start.min(size)..(start + len).min(size));
                assert!(found == expected, "{key}: {len} from {start}");
            }
        }
    }

    #[tokio::test]
    async fn the_files_of_the_largest_objects_are_not_used_again() {
        const DIRECT: usize = direct::DIRECT_BYTES as usize;
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        for key in ["a", "b"] {
            put(&directory, key, DIRECT).await;
            directory.delete(vec![key.into()]).await.unwrap();
            assert_eq!(temporary(&at), 0);
        }
        put(&directory, "c", DIRECT - 1).await;
        directory.delete(vec!["c".into()]).await.unwrap();
        put(&directory, "d", DIRECT).await;
        assert_eq!(temporary(&at), 1, "the spare is for smaller ones");
    }

    fn packs(at: &TempDir) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(at.path().join("packs")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    #[tokio::test]
    async fn objects_of_all_sizes_are_there_after_a_restart_and_deleted_ones_are_not() {
        let at = tempdir().unwrap();
        let sizes = [0, 1, LARGE_BYTES - 1, LARGE_BYTES, 3 * LARGE_BYTES];
        let key = |size: usize| format!("a/{size}");
        let directory = open(&at, Durability::Process);
        for size in sizes {
            put(&directory, &key(size), size.max(key(size).len())).await;
            put(&directory, &format!("{}/gone", size + 1), size).await;
        }
        let gone = sizes.map(|size| format!("{}/gone", size + 1));
        directory.delete(gone.to_vec()).await.unwrap();
        drop(directory);
        for _ in 0..2 {
            let directory = open(&at, Durability::Process);
            for size in sizes {
                assert_has(&directory, &key(size), size.max(key(size).len())).await;
            }
            assert_eq!(directory.list("", "", 99).await.unwrap().len(), sizes.len());
            for key in &gone {
                assert_eq!(directory.get(key, 0, 9).await, Ok(None));
            }
        }
    }

    #[tokio::test]
    async fn what_a_crash_left_half_written_is_not_there_and_hides_nothing() {
        let at = tempdir().unwrap();
        let directory = open(&at, Durability::Process);
        put(&directory, "before", 100).await;
        let [pack] = &packs(&at)[..] else { panic!("one pack") };
        let before = fs::metadata(pack).unwrap().len();
        put(&directory, "cut", 100).await;
        drop(directory);
        let whole = fs::read(pack).unwrap();
        let zeros = [&whole[..whole.len() - 50], &[0; 50]].concat();
        let cuts = (before as usize..whole.len()).map(|len| whole[..len].to_vec());
        for cut in cuts.chain([zeros, [&whole[..before as usize], &[0; 4096]].concat()]) {
            fs::write(pack, &cut).unwrap();
            let directory = open(&at, Durability::Process);
            assert_has(&directory, "before", 100).await;
            assert_eq!(directory.get("cut", 0, 9).await, Ok(None));
            put(&directory, "cut", 80).await;
            drop(directory);
            let directory = open(&at, Durability::Process);
            assert_has(&directory, "before", 100).await;
            assert_has(&directory, "cut", 80).await;
            drop(directory);
            packs(&at)[1..].iter().for_each(|pack| fs::remove_file(pack).unwrap());
        }
    }

    #[tokio::test]
    async fn packs_of_deleted_objects_go_and_what_lives_stays() {
        const PACK: u64 = 10_000;
        let at = tempdir().unwrap();
        let reopen = || Directory::open_with(at.path(), Durability::Process, PACK).unwrap();
        let mut directory = reopen();
        for number in 0..500 {
            if number % 100 == 50 {
                drop(directory);
                directory = reopen();
            }
            if number % 100 == 0 {
                put(&directory, &format!("stays/{number}"), 700).await;
            }
            put(&directory, &format!("goes/{number}"), 1000).await;
            if number >= 5 {
                directory.delete(vec![format!("goes/{}", number - 5)]).await.unwrap();
            }
        }
        let live = 5 * 1000 + 5 * 700;
        let bytes: u64 = packs(&at).iter().map(|pack| fs::metadata(pack).unwrap().len()).sum();
        assert!(bytes < 2 * (live + 1000) + 2 * PACK, "{bytes} bytes for {live}");
        drop(directory);
        let directory = reopen();
        let keys = directory.list("", "", 99).await.unwrap();
        let stay = (0..5).map(|number| format!("stays/{}", 100 * number));
        let expected: Vec<_> =
            (495..500).map(|number| format!("goes/{number}")).chain(stay).collect();
        assert_eq!(keys, expected);
        for key in keys {
            let len = if key.starts_with("stays") { 700 } else { 1000 };
            assert_has(&directory, &key, len).await;
        }
    }
}
