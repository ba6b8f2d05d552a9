//! Messages as they go out, and their memory when they have gone.

use bytes::Bytes;
use std::sync::{Mutex, PoisonError};

/// A message as it goes out: bytes, and between them slices that were not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    pub(super) buf: Vec<u8>,
    /// Each with its place in `buf`, in their order.
    pub(super) chained: Vec<(usize, Bytes)>,
}

impl Encoded {
    pub fn len(&self) -> usize {
        self.buf.len() + self.chained.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slices there are; some may be empty.
    pub fn slices(&self) -> usize {
        2 * self.chained.len() + 1
    }

    /// One of the slices, for a vectored write.
    pub fn slice(&self, index: usize) -> &[u8] {
        let place = |i: usize| self.chained.get(i).map_or(self.buf.len(), |(place, _)| *place);
        match (index / 2, index % 2) {
            (0, 0) => &self.buf[..place(0)],
            (i, 0) => &self.buf[place(i - 1)..place(i)],
            (i, _) => &self.chained[i].1,
        }
    }

    pub fn concat(&self) -> Vec<u8> {
        let slices: Vec<&[u8]> = (0..self.slices()).map(|index| self.slice(index)).collect();
        slices.concat()
    }

    /// All of it in one slice.
    pub fn whole(&mut self) -> &[u8] {
        if !self.chained.is_empty() {
            self.buf = self.concat();
            self.chained.clear();
        }
        &self.buf
    }

    /// Writes over the first bytes.
    pub(super) fn overwrite<const N: usize>(&mut self, bytes: [u8; N]) {
        self.buf[..N].copy_from_slice(&bytes);
    }
}

/// The memory of messages that are written, for the next ones: of one connection, or of one journal.
#[derive(Debug, Default)]
pub struct Spares(Mutex<Vec<Encoded>>);

/// How many are kept, and how large: for one or two small answers at a time. An idle connection
/// shall not hold on to much.
const MAX_SPARES: usize = 2;
const MAX_SPARE_BYTES: usize = 4096;
const MAX_SPARE_SLICES: usize = 16;

impl Spares {
    /// One that was given, or an empty one.
    pub fn take(&self) -> Encoded {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub fn give(&self, mut used: Encoded) {
        let is_small =
            used.buf.capacity() <= MAX_SPARE_BYTES && used.chained.capacity() <= MAX_SPARE_SLICES;
        // What it holds of others' memory is given back now.
        used.chained.clear();
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_small && spares.len() < MAX_SPARES {
            spares.push(used);
        }
    }
}
