//! [`Objects`] in a local directory, held by one process at a time.
//!
//! ```text
//! DIR/lock           held while the process lives; its pid, for whoever is refused
//! DIR/objects/KEY    one file for each object, a folder for each part of a key
//! DIR/temporary/N    what is being written; what a crash left is removed at the next start
//! ```
//!
//! An object is written to a temporary file, which is then linked to its key: `link` looks and
//! inserts in one step, so a key has a whole object or none, whenever the process dies.
//!
//! Files are not kept open between reads: `open`, `fstat` and `close` cost about as much as the
//! copy of 4 KiB, and a kept one could answer for an object that was deleted and put anew.

use super::{ObjectError, Objects, Put, is_key};
use bytes::Bytes;
use std::collections::BinaryHeap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    objects: PathBuf,
    temporary: PathBuf,
    durability: Durability,
    /// Names of temporary files.
    count: AtomicU64,
    /// Never read: the lock goes with it.
    _lock: File,
}

impl Directory {
    /// Takes the directory for this process and makes it if there is none. Blocks.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, ObjectError> {
        let failed = |error: io::Error| ObjectError(format!("{}: {error}", path.display()));
        fs::create_dir_all(path).map_err(failed)?;
        let lock = hold(path)?;
        let inner = Inner {
            objects: path.join("objects"),
            temporary: path.join("temporary"),
            durability,
            count: AtomicU64::new(0),
            _lock: lock,
        };
        inner.prepare(path).map_err(failed)?;
        Ok(Self(Arc::new(inner)))
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
        self.run(move |inner| inner.list(&prefix, &after, limit)).await
    }

    async fn delete(&self, keys: Vec<String>) -> Result<(), ObjectError> {
        self.run(move |inner| inner.delete(&keys)).await
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
    fn prepare(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.objects)?;
        fs::create_dir_all(&self.temporary)?;
        for leftover in fs::read_dir(&self.temporary)? {
            fs::remove_file(leftover?.path())?;
        }
        self.sync_folder(path)
    }

    fn path(&self, key: &str) -> io::Result<PathBuf> {
        if !is_key(key) {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("no key: {key:?}")));
        }
        Ok(self.objects.join(key))
    }

    fn put_new(&self, key: &str, parts: &[Bytes]) -> io::Result<Put> {
        let path = self.path(key)?;
        let name = self.count.fetch_add(1, Ordering::Relaxed).to_string();
        let temporary = self.temporary.join(name);
        let put = self.write(&temporary, parts).and_then(|()| self.link(&temporary, &path));
        // A failure to remove it loses nothing, and the next start removes it.
        let _ = fs::remove_file(&temporary);
        put
    }

    fn write(&self, path: &Path, parts: &[Bytes]) -> io::Result<()> {
        let mut file = File::create_new(path)?;
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut slices = &mut slices[..];
        // Parts of no bytes would look like a disk that takes none.
        IoSlice::advance_slices(&mut slices, 0);
        while !slices.is_empty() {
            match file.write_vectored(slices) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut slices, written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.durability == Durability::Machine {
            file.sync_data()?;
        }
        Ok(())
    }

    fn link(&self, temporary: &Path, path: &Path) -> io::Result<Put> {
        let folder = path.parent().unwrap_or(&self.objects);
        let mut linked = fs::hard_link(temporary, path);
        if linked.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.create_folder(folder)?;
            linked = fs::hard_link(temporary, path);
        }
        let put = match linked {
            Ok(()) => Put::Created,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Put::Exists,
            Err(error) => return Err(error),
        };
        // Also when it exists: whoever put it may not have come so far, and the caller builds on it.
        self.sync_folder(folder)?;
        Ok(put)
    }

    /// Makes a folder and those above it, each known to the disk before anything is put in it.
    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound && folder != self.objects => {
                let Some(parent) = folder.parent() else { return Err(error) };
                self.create_folder(parent)?;
                self.create_folder(folder)
            }
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => folder.parent().map_or(Ok(()), |parent| self.sync_folder(parent)),
        }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Machine => File::open(folder)?.sync_all(),
        }
    }

    fn get(&self, key: &str, offset: u64, len: u64) -> io::Result<Option<Bytes>> {
        let file = match File::open(self.path(key)?) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        // By the size that there is, so that a caller may ask for more than fits into memory.
        let len = len.min(file.metadata()?.len().saturating_sub(offset));
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(Some(bytes.into()))
    }

    fn list(&self, prefix: &str, after: &str, limit: usize) -> io::Result<Vec<String>> {
        let folder = prefix.rfind('/').map_or("", |slash| &prefix[..=slash]);
        let mut walk = Walk { prefix, after, limit, keys: Vec::new() };
        // A prefix that leads out of the folder of objects is the prefix of no key.
        if limit > 0 && (folder.is_empty() || is_key(&folder[..folder.len() - 1])) {
            walk.visit(&self.objects.join(folder), folder)?;
        }
        Ok(walk.keys)
    }

    /// Goes on after a failure: each key that can go, goes.
    fn delete(&self, keys: &[String]) -> io::Result<()> {
        let mut done = Ok(());
        for key in keys {
            match self.path(key).and_then(fs::remove_file) {
                Err(error) if !is_absent(&error) => done = Err(error),
                _ => {}
            }
        }
        done
    }
}

/// Whether there is no such file, or no such folder for it.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A walk through folders in the order of keys.
struct Walk<'a> {
    prefix: &'a str,
    after: &'a str,
    limit: usize,
    keys: Vec<String>,
}

impl Walk<'_> {
    /// Takes the keys below the folder at `path`, all of which begin with `folder`.
    ///
    /// A folder may hold more names than fit into memory: each turn takes only as many as are
    /// still asked for. More turns are needed only where folders hold no wanted key.
    fn visit(&mut self, path: &Path, folder: &str) -> io::Result<()> {
        let mut last = String::new();
        loop {
            let room = self.limit - self.keys.len();
            let names = self.names(path, folder, &last, room)?;
            let more = names.len() == room;
            for name in names {
                match name.strip_suffix('/') {
                    Some(sub) => self.visit(&path.join(&sub[folder.len()..]), &name)?,
                    None => self.keys.push(name.clone()),
                }
                if self.keys.len() == self.limit {
                    return Ok(());
                }
                last = name;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// The first `room` wanted names in a folder that come after `last`. A folder's name ends
    /// with a slash, which gives it its place in the order of keys.
    fn names(&self, path: &Path, folder: &str, last: &str, room: usize) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut first = BinaryHeap::new();
        for entry in entries {
            let entry = entry?;
            // What is not UTF-8 is not ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
            let name = format!("{folder}{name}{slash}");
            if name.as_str() > last && self.wants(&name) {
                first.push(name);
                if first.len() > room {
                    first.pop();
                }
            }
        }
        Ok(first.into_sorted_vec())
    }

    fn wants(&self, name: &str) -> bool {
        let begun = name > self.after;
        if name.ends_with('/') {
            (begun || self.after.starts_with(name))
                && (name.starts_with(self.prefix) || self.prefix.starts_with(name))
        } else {
            begun && name.starts_with(self.prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::contract;
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
}
