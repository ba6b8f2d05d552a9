//! Files of deleted objects, kept for the next ones.
//!
//! To write over a file that is in the page cache costs a fraction of a new one: its pages and its place
//! on the disk are there.

use super::files::Unnamed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All spares together: what one round of tiering deletes, and what comes in meanwhile.
const MAX_BYTES: u64 = 256 << 20;

/// By length, the shortest first.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Spare>>);

pub(super) struct Spare {
    pub bytes: u64,
    pub file: Unnamed,
}

impl Spares {
    /// Keeps a file, or removes it if there are enough.
    pub(super) fn add(&self, spare: Spare) {
        let mut spares = self.lock();
        let kept: u64 = spares.iter().map(|spare| spare.bytes).sum();
        if kept + spare.bytes <= MAX_BYTES {
            let place = spares.partition_point(|other| other.bytes < spare.bytes);
            spares.insert(place, spare);
        }
    }

    /// The file that an object of so many bytes is best written over: the shortest that holds it, unless most
    /// of that would be cut off and lost.
    pub(super) fn take(&self, bytes: u64) -> Option<Spare> {
        let mut spares = self.lock();
        let longer = spares.partition_point(|spare| spare.bytes < bytes);
        let fits = spares.get(longer).is_some_and(|spare| spare.bytes <= 2 * bytes);
        let place = if fits { longer } else { longer.checked_sub(1)? };
        Some(spares.remove(place))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use tempfile::{TempDir, tempdir};

    fn spare(at: &TempDir, name: &str, bytes: u64) -> Spare {
        let path = at.path().join(name);
        File::create_new(&path).unwrap().set_len(bytes).unwrap();
        Spare { bytes, file: Unnamed(path) }
    }

    #[test]
    fn the_shortest_that_fits_is_taken_but_none_of_more_than_double() {
        let at = tempdir().unwrap();
        let spares = Spares::default();
        for bytes in [40, 10, 30, 20] {
            spares.add(spare(&at, &bytes.to_string(), bytes));
        }
        let take = |bytes| spares.take(bytes).map(|spare| spare.bytes);
        assert_eq!(take(4), None);
        assert_eq!(take(21), Some(30));
        assert_eq!(take(21), Some(40));
        assert_eq!(take(21), Some(20));
        assert_eq!(take(5), Some(10));
        assert_eq!(take(5), None);
    }

    #[test]
    fn what_is_too_much_is_removed_and_so_are_all_at_the_end() {
        let at = tempdir().unwrap();
        let files = || fs::read_dir(at.path()).unwrap().count();
        let spares = Spares::default();
        spares.add(spare(&at, "half", MAX_BYTES / 2));
        spares.add(spare(&at, "more", MAX_BYTES / 2 + 1));
        spares.add(spare(&at, "rest", MAX_BYTES / 2));
        spares.add(spare(&at, "byte", 1));
        assert_eq!(files(), 2);
        drop(spares);
        assert_eq!(files(), 0);
    }
}
