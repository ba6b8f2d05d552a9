//! Large objects, a file for each.
//!
//! ```text
//! DIR/objects/KEY    the object; a folder for each part of a key
//! DIR/temporary/N    what is being written, and spares; what a crash left is removed at the next start
//! ```
//!
//! An object is written to a temporary file, which is then renamed to its key: the key has a whole object or none,
//! whenever the process dies. The file of a deleted object goes the way back, and the next one may be written over
//! it. Files are not kept open between reads: `open` and `close` cost little beside the
//! bytes of a large object.

use super::buffers::Buffers;
use super::direct::{DIRECT_BYTES, Direct};
use super::disk::Disk;
use super::packs::write_all;
use super::spares::{Spare, Spares};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Files {
    objects: PathBuf,
    temporary: PathBuf,
    disk: Arc<Disk>,
    /// Names of temporary files.
    count: AtomicU64,
    spares: Spares,
    direct: Direct,
    buffers: Buffers,
}

/// A disk takes as long for less, and memory for less is quickly had.
const LONG_BYTES: usize = 128 << 10;

/// What the index and all who read an object's file hold of it. Who has the last one may do with the file as he
/// likes.
pub(super) type Token = Arc<()>;

impl Files {
    /// Makes the folders, and tells `found` the keys that there are.
    pub(super) fn open(
        path: &Path,
        disk: Arc<Disk>,
        mut found: impl FnMut(String),
    ) -> io::Result<Self> {
        let (objects, temporary) = (path.join("objects"), path.join("temporary"));
        fs::create_dir_all(&objects)?;
        fs::create_dir_all(&temporary)?;
        for leftover in fs::read_dir(&temporary)? {
            fs::remove_file(leftover?.path())?;
        }
        walk(&disk, &objects, "", &mut found)?;
        let (count, spares) = Default::default();
        let buffers = Buffers::default();
        let direct = Direct::new(buffers.clone());
        Ok(Self { objects, temporary, disk, count, spares, direct, buffers })
    }

    /// Writes an object that has no key yet.
    pub(super) fn write(&self, parts: &[Bytes]) -> io::Result<Unnamed> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let (unnamed, file) = match bytes < DIRECT_BYTES {
            true => self.write_cached(self.spares.take(bytes), parts, bytes)?,
            false => {
                let unnamed = self.unnamed();
                match self.direct.write(&unnamed.0, parts)? {
                    Some(file) => (unnamed, file),
                    None => self.write_cached(None, parts, bytes)?,
                }
            }
        };
        self.disk.sync(&file)?;
        Ok(unnamed)
    }

    fn write_cached(
        &self,
        spare: Option<Spare>,
        parts: &[Bytes],
        bytes: u64,
    ) -> io::Result<(Unnamed, File)> {
        let spare = spare.unwrap_or_else(|| Spare { bytes: 0, file: self.unnamed() });
        let file = File::options().write(true).create(true).truncate(false).open(&spare.file.0)?;
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        write_all(&file, &mut slices)?;
        if spare.bytes > bytes {
            file.set_len(bytes)?;
        }
        Ok((spare.file, file))
    }

    /// Gives an object its key, which has none.
    pub(super) fn name(&self, unnamed: Unnamed, key: &str) -> io::Result<()> {
        let path = self.objects.join(key);
        let mut renamed = fs::rename(&unnamed.0, &path);
        if renamed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.create_folder(path.parent().unwrap_or(&self.objects))?;
            renamed = fs::rename(&unnamed.0, &path);
        }
        renamed
    }

    /// Puts the name of an object on the disk, if that is asked of the directory.
    pub(super) fn sync_name(&self, key: &str) -> io::Result<()> {
        let path = self.objects.join(key);
        self.disk.sync_folder(path.parent().unwrap_or(&self.objects))
    }

    /// Opens an object of which `len` bytes will be read.
    pub(super) fn open_object(&self, key: &str, len: u64) -> io::Result<Option<Opened>> {
        let path = self.objects.join(key);
        let opened = || {
            let file = File::open(&path)?;
            let bytes = file.metadata()?.len();
            let is_direct = bytes >= DIRECT_BYTES && len >= LONG_BYTES as u64;
            let direct = if is_direct { self.direct.open(&path)? } else { None };
            Ok(Opened { file, bytes, direct })
        };
        match opened() {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a range of an object.
    pub(super) fn read(&self, opened: &Opened, offset: u64, len: u64) -> io::Result<Bytes> {
        // By the size that there is, so that a caller may ask for more than fits into memory.
        let len = len.min(opened.bytes.saturating_sub(offset));
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if len < LONG_BYTES {
            let mut bytes = vec![0; len];
            opened.file.read_exact_at(&mut bytes, offset)?;
            return Ok(bytes.into());
        }
        if let Some(direct) = &opened.direct
            && let Some(bytes) = self.direct.read(direct, offset, len)?
        {
            return Ok(bytes);
        }
        self.buffers.read(&opened.file, offset, len)
    }

    /// Takes its key from an object, which then goes when the value is dropped: to free the room of a large file
    /// takes a while.
    pub(super) fn unname(&self, key: &str, token: Token) -> io::Result<Option<Gone>> {
        let (path, file) = (self.objects.join(key), self.unnamed());
        match fs::rename(&path, &file.0) {
            Ok(()) => Ok(Some(Gone { path, file, token })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the files of objects that are gone, but for the largest, which live long. A file that somebody
    /// reads is not kept: who opened it before the object went must not see the next one's bytes.
    pub(super) fn recycle(&self, gone: Vec<Gone>) -> io::Result<()> {
        // Nor must a key that is there again because power was lost.
        let folders: BTreeSet<_> = gone.iter().filter_map(|gone| gone.path.parent()).collect();
        folders.into_iter().try_for_each(|folder| self.disk.sync_folder(folder))?;
        for Gone { file, token, .. } in gone {
            let bytes = fs::metadata(&file.0).map_or(u64::MAX, |metadata| metadata.len());
            if bytes < DIRECT_BYTES && Arc::into_inner(token).is_some() {
                self.spares.add(Spare { bytes, file });
            }
        }
        Ok(())
    }

    fn unnamed(&self) -> Unnamed {
        let name = self.count.fetch_add(1, Ordering::Relaxed).to_string();
        Unnamed(self.temporary.join(name))
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
            _ => folder.parent().map_or(Ok(()), |parent| self.disk.sync_folder(parent)),
        }
    }
}

/// An object without a key: it has none yet, or none any more. It is removed if it gets none.
pub(super) struct Unnamed(pub(super) PathBuf);

impl Drop for Unnamed {
    fn drop(&mut self) {
        // It is not there any more once it has its key. A failure loses nothing: the next start removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// An object's file.
pub(super) struct Opened {
    file: File,
    bytes: u64,
    /// The same file, past the page cache.
    direct: Option<File>,
}

/// An object that was deleted.
pub(super) struct Gone {
    /// Where it was.
    path: PathBuf,
    file: Unnamed,
    token: Token,
}

/// Tells the keys of all files below a folder. A process may have died before their names were on the
/// disk, and who finds an object builds on it.
fn walk(disk: &Disk, path: &Path, folder: &str, found: &mut impl FnMut(String)) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // What is not UTF-8 is not ours.
        let Ok(name) = entry.file_name().into_string() else { continue };
        match entry.file_type()?.is_dir() {
            true => walk(disk, &entry.path(), &format!("{folder}{name}/"), found)?,
            false => found(format!("{folder}{name}")),
        }
    }
    disk.sync_folder(path)
}

/// Whether there is no such file, or no such folder for it.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::super::Durability;
    use super::*;

    #[test]
    fn large_objects_are_kept_where_the_page_cache_cannot_be_passed() {
        const BYTES: usize = DIRECT_BYTES as usize + 1;
        let at = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::new(Durability::Process));
        let files = Files::open(at.path(), disk, |_| {}).unwrap();
        let whole: Bytes = (0..BYTES).map(|i| (i % 251) as u8).collect();
        let write = |key| {
            let parts = [whole.slice(..300_001), whole.slice(300_001..)];
            files.name(files.write(&parts).unwrap(), key).unwrap();
        };
        write("before");
        let before = files.open_object("before", u64::MAX).unwrap().unwrap();
        files.direct.is_refused.store(true, Ordering::Relaxed);
        write("after");
        let after = files.open_object("after", u64::MAX).unwrap().unwrap();
        assert!(after.direct.is_none());
        for opened in [before, after] {
            assert!(files.read(&opened, 0, u64::MAX).unwrap() == whole);
            let middle = files.read(&opened, 4097, 1_000_003).unwrap();
            assert!(middle == whole.slice(4097..1_004_100));
        }
    }
}
