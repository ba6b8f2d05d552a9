//! Memory for large reads and writes, which is used again.
//!
//! To get fresh memory from the kernel page by page takes longer than to fill it.

use bytes::Bytes;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut, Range};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a buffer begins is a multiple of it, and so is its length.
pub(super) const BLOCK: usize = 4096;

/// Lengths are rounded up, so that a buffer suits most of what is about as long.
const STEP: usize = 128 << 10;

/// What lies ready, all buffers together.
const MAX_BYTES: usize = 16 << 20;

/// What lies ready, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<VecDeque<Vec<u8>>>>);

/// It has what it was used for last in it, and goes back when it is dropped.
pub(super) struct Buffer {
    memory: Vec<u8>,
    range: Range<usize>,
    home: Buffers,
}

impl Buffers {
    /// A buffer of `bytes` bytes, rounded up to whole blocks.
    pub(super) fn take(&self, bytes: usize) -> Buffer {
        let len = bytes.next_multiple_of(STEP) + BLOCK;
        let ready = {
            let mut ready = self.lock();
            let place = ready.iter().rposition(|memory| memory.len() == len);
            place.and_then(|place| ready.remove(place))
        };
        let memory = ready.unwrap_or_else(|| vec![0; len]);
        let start = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
        let range = start..start + bytes.next_multiple_of(BLOCK);
        Buffer { memory, range, home: self.clone() }
    }

    /// Reads a range that the file has, by whole blocks.
    pub(super) fn read(&self, file: &File, offset: u64, len: usize) -> io::Result<Bytes> {
        let start = offset / BLOCK as u64 * BLOCK as u64;
        let skipped = (offset - start) as usize;
        let end = skipped + len;
        let mut buffer = self.take(end);
        let mut filled = 0;
        // The last block may be short.
        while filled < end {
            match file.read_at(&mut buffer[filled..], start + filled as u64) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.slice(skipped..end))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    /// Lends a part of it; it goes back when nobody has any of that.
    fn slice(self, range: Range<usize>) -> Bytes {
        Bytes::from_owner(self).slice(range)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut ready = self.home.lock();
        ready.push_back(std::mem::take(&mut self.memory));
        // What has waited longest is of a length that nobody asks for.
        let mut bytes: usize = ready.iter().map(Vec::len).sum();
        while bytes > MAX_BYTES
            && let Some(oldest) = ready.pop_front()
        {
            bytes -= oldest.len();
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(buffers: &Buffers) -> usize {
        buffers.lock().len()
    }

    #[test]
    fn a_buffer_is_whole_blocks() {
        for bytes in [0, 1, BLOCK, BLOCK + 1, STEP - 1, STEP + 1] {
            let buffer = Buffers::default().take(bytes);
            assert_eq!(buffer.len(), bytes.next_multiple_of(BLOCK));
            assert_eq!(buffer.as_ptr().align_offset(BLOCK), 0);
        }
    }

    #[test]
    fn memory_is_used_again_once_nobody_has_any_of_it() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take(STEP);
        let memory = buffer.as_ptr();
        buffer[..3].copy_from_slice(b"old");
        let bytes = buffer.slice(0..STEP);
        let slice = bytes.slice(1..3);
        drop(bytes);
        assert_ne!(buffers.take(STEP).as_ptr(), memory);
        assert_eq!((ready(&buffers), &slice[..]), (1, &b"ld"[..]));
        drop(slice);
        assert_eq!(ready(&buffers), 2);
        let both = [buffers.take(STEP - 1), buffers.take(STEP)];
        assert!(both.iter().any(|buffer| buffer.as_ptr() == memory));
        assert_eq!(ready(&buffers), 0);
    }

    #[test]
    fn no_more_lies_ready_than_is_allowed() {
        let buffers = Buffers::default();
        drop(buffers.take(MAX_BYTES));
        assert_eq!(ready(&buffers), 0);
        let all: Vec<_> = (0..2 * MAX_BYTES / STEP).map(|_| buffers.take(STEP)).collect();
        drop(all);
        assert_eq!(ready(&buffers), MAX_BYTES / (STEP + BLOCK));
        let other = buffers.take(2 * STEP);
        let memory = other.as_ptr();
        drop(other);
        assert_eq!(buffers.take(2 * STEP).as_ptr(), memory, "it came last");
    }
}
