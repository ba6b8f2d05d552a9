//! Bytes between memory and the disk that do not go through the page cache.
//!
//! What is written once, kept for long and perhaps read once pays for the page cache with more time of
//! the processor than for anything else. `O_DIRECT` does without; it wants whole blocks, in memory and
//! in the file.

use super::buffers::{BLOCK, Buffers};
use bytes::Bytes;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Objects of so many bytes are worth it: segments are, commits of the journal are smaller.
pub(super) const DIRECT_BYTES: u64 = 8 << 20;

/// How much is written at a time.
const BUFFER_BYTES: usize = 2 << 20;

pub(super) struct Direct {
    /// The file system cannot do it.
    pub(super) is_refused: AtomicBool,
    buffers: Buffers,
}

impl Direct {
    pub(super) fn new(buffers: Buffers) -> Self {
        Self { is_refused: AtomicBool::new(false), buffers }
    }

    /// Writes an object to a new file, unless the file system cannot.
    pub(super) fn write(&self, path: &Path, parts: &[Bytes]) -> io::Result<Option<File>> {
        self.unless_refused(|| {
            let mut options = File::options();
            let options = options.write(true).create(true).truncate(true);
            let file = options.custom_flags(libc::O_DIRECT).open(path)?;
            write_parts(&file, parts, &mut self.buffers.take(BUFFER_BYTES))?;
            Ok(file)
        })
    }

    /// Opens an object that may lie in the page cache or not.
    pub(super) fn open(&self, path: &Path) -> io::Result<Option<File>> {
        self.unless_refused(|| File::options().read(true).custom_flags(libc::O_DIRECT).open(path))
    }

    /// Reads a range that the file has, which this opened.
    pub(super) fn read(&self, file: &File, offset: u64, len: usize) -> io::Result<Option<Bytes>> {
        self.unless_refused(|| self.buffers.read(file, offset, len))
    }

    /// Gives nothing if the file system cannot do it, and does not try again.
    fn unless_refused<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<Option<T>> {
        if self.is_refused.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match work() {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                self.is_refused.store(true, Ordering::Relaxed);
                tracing::info!("this file system has no O_DIRECT: all goes through its page cache");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Writes whole blocks, and cuts off what the last one has too much.
fn write_parts(mut file: &File, parts: &[Bytes], buffer: &mut [u8]) -> io::Result<()> {
    let (mut filled, mut bytes) = (0, 0);
    for part in parts {
        let mut rest = &part[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(buffer.len() - filled));
            buffer[filled..filled + now.len()].copy_from_slice(now);
            (filled, rest) = (filled + now.len(), later);
            if filled == buffer.len() {
                file.write_all(buffer)?;
                (filled, bytes) = (0, bytes + buffer.len() as u64);
            }
        }
    }
    let blocks = filled.next_multiple_of(BLOCK);
    buffer[filled..blocks].fill(0);
    file.write_all(&buffer[..blocks])?;
    match filled == blocks {
        true => Ok(()),
        false => file.set_len(bytes + filled as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::tempdir;

    /// Parts of odd lengths, whose bytes tell their places in a period that divides no block size.
    fn parts(bytes: usize) -> Vec<Bytes> {
        let whole: Bytes = (0..bytes).map(|i| (i % 251) as u8).collect();
        let ends = [0, 1, 1, 4096, 100_000, 3_000_001, bytes].map(|end| end.min(bytes));
        ends.windows(2).map(|range| whole.slice(range[0]..range[1])).collect()
    }

    #[test]
    fn a_file_has_all_bytes_and_no_more() {
        let at = tempdir().unwrap();
        let direct = Direct::new(Buffers::default());
        let blocks = [0, 1, 2, BUFFER_BYTES / BLOCK, 2 * BUFFER_BYTES / BLOCK].map(|n| n * BLOCK);
        for bytes in blocks.into_iter().flat_map(|n| [n.saturating_sub(1), n, n + 1, n + 511]) {
            let (path, parts) = (at.path().join(bytes.to_string()), parts(bytes));
            // Some file systems refuse; then there is nothing to see.
            if direct.write(&path, &parts).unwrap().is_some() {
                assert!(fs::read(&path).unwrap() == parts.concat(), "{bytes} bytes");
            }
        }
    }

    #[test]
    fn a_file_system_that_refuses_is_not_asked_again() {
        let direct = Direct::new(Buffers::default());
        let refuse = || Err(io::Error::from(ErrorKind::InvalidInput));
        assert!(direct.unless_refused::<()>(refuse).unwrap().is_none());
        let path = tempdir().unwrap().path().join("none");
        assert!(direct.write(&path, &parts(BLOCK)).unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn other_errors_are_told() {
        let direct = Direct::new(Buffers::default());
        direct.write(Path::new("/no/such/folder"), &parts(BLOCK)).unwrap_err();
        assert!(!direct.is_refused.load(Ordering::Relaxed));
    }
}
