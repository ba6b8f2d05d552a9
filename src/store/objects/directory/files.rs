//! Large objects, a file for each.
//!
//! ```text
//! DIR/objects/KEY    the object; a folder for each part of a key
//! DIR/temporary/N    what is being written; what a crash left is removed at the next start
//! ```
//!
//! An object is written to a temporary file, which is then renamed to its key: the key has a whole object or none,
//! whenever the process dies. Files are not kept open between reads: `open` and `close` cost little beside the
//! bytes of a large object.

use super::disk::Disk;
use super::packs::write_all;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Files {
    objects: PathBuf,
    temporary: PathBuf,
    disk: Arc<Disk>,
    /// Names of temporary files.
    count: AtomicU64,
}

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
        Ok(Self { objects, temporary, disk, count: AtomicU64::new(0) })
    }

    /// Writes an object that has no key yet.
    pub(super) fn write(&self, parts: &[Bytes]) -> io::Result<Unnamed> {
        let unnamed = self.unnamed();
        let file = File::create_new(&unnamed.0)?;
        let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        write_all(&file, &mut slices)?;
        self.disk.sync(&file)?;
        Ok(unnamed)
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

    pub(super) fn read(&self, key: &str, offset: u64, len: u64) -> io::Result<Option<Bytes>> {
        let mut file = match File::open(self.objects.join(key)) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        // By the size that there is, so that a caller may ask for more than fits into memory.
        let len = len.min(file.metadata()?.len().saturating_sub(offset));
        let mut bytes = Vec::with_capacity(usize::try_from(len).map_err(io::Error::other)?);
        file.seek(SeekFrom::Start(offset))?;
        file.take(len).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == len {
            true => Ok(Some(bytes.into())),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Takes its key from an object, which then goes when the value is dropped: to free the room of a large file
    /// takes a while.
    pub(super) fn unname(&self, key: &str) -> io::Result<Option<Unnamed>> {
        let unnamed = self.unnamed();
        match fs::rename(self.objects.join(key), &unnamed.0) {
            Ok(()) => Ok(Some(unnamed)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
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
pub(super) struct Unnamed(PathBuf);

impl Drop for Unnamed {
    fn drop(&mut self) {
        // It is not there any more once it has its key. A failure loses nothing: the next start removes it.
        let _ = fs::remove_file(&self.0);
    }
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
