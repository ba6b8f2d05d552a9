//! What is on the disk, and not only in the kernel's memory, if that is asked of a directory.

use super::Durability;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Disk {
    durability: Durability,
    /// Something that was written may never come to the disk.
    has_failed: AtomicBool,
}

impl Disk {
    pub(super) fn new(durability: Durability) -> Self {
        Self { durability, has_failed: AtomicBool::new(false) }
    }

    /// Whether anything waits for the disk.
    pub(super) fn is_waited_for(&self) -> bool {
        self.durability == Durability::Machine
    }

    /// Waits until the bytes of a file are on the disk. Once that failed it fails for good: the kernel
    /// may have dropped what it could not write, and would say next time that nothing is left to do.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        self.check(|| file.sync_data())
    }

    /// The same with the names in a folder.
    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.check(|| File::open(folder)?.sync_all())
    }

    fn check(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if !self.is_waited_for() {
            return Ok(());
        }
        if self.has_failed.load(Ordering::Acquire) {
            return Err(io::Error::other(
                "the disk failed before, and is not trusted until a restart",
            ));
        }
        sync().inspect_err(|_| self.has_failed.store(true, Ordering::Release))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    /// A file that no disk is behind: `fdatasync` fails with EINVAL.
    fn pipe() -> File {
        File::from(OwnedFd::from(io::pipe().unwrap().1))
    }

    #[test]
    fn what_failed_once_is_not_asked_again() {
        let file = tempfile::tempfile().unwrap();
        let disk = Disk::new(Durability::Machine);
        disk.sync(&file).unwrap();
        disk.sync(&pipe()).unwrap_err();
        disk.sync(&file).unwrap_err();
        disk.sync_folder(Path::new(".")).unwrap_err();
    }

    #[test]
    fn a_directory_that_survives_only_the_process_waits_for_nothing() {
        Disk::new(Durability::Process).sync(&pipe()).unwrap();
    }
}
