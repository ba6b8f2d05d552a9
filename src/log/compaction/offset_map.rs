//! The last offset of each key, in as much memory as it is given.
//!
//! Keys are there as hashes of 128 bits with a secret, so that no two that differ are taken for one,
//! whoever chose them.
//!
//! Source: `SkimpyOffsetMap` of Apache Kafka 4.4, which has MD5 instead.

use std::hash::{BuildHasher, RandomState};

#[derive(Debug)]
pub struct OffsetMap {
    slots: Vec<Slot>,
    used: usize,
    most: usize,
    hashers: [RandomState; 2],
    /// The last key was put, or all that is wanted was seen, up to here.
    end_offset: Option<i64>,
    is_full: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: [u64; 2],
    /// Negative: nobody is here.
    offset: i64,
}

const EMPTY: Slot = Slot { key: [0; 2], offset: -1 };

/// Of so many slots only so many are used, as searches would become long.
const LOAD: (u64, u64) = (9, 10);

impl OffsetMap {
    /// For so many keys, if they fit into so many bytes; for one at least.
    pub fn new(bytes: u64, keys: u64) -> Self {
        let slots = (bytes / size_of::<Slot>() as u64).max(2);
        let slots = slots.min(keys.saturating_mul(LOAD.1) / LOAD.0 + 2);
        Self {
            slots: vec![EMPTY; slots as usize],
            used: 0,
            most: (slots * LOAD.0 / LOAD.1).max(1) as usize,
            hashers: [RandomState::new(), RandomState::new()],
            end_offset: None,
            is_full: false,
        }
    }

    /// Notes a record. False if there is no room for its key: the map ends before it then.
    pub fn put(&mut self, key: &[u8], offset: i64) -> bool {
        if self.is_full {
            return false;
        }
        let hash = self.hash(key);
        let at = self.find(hash);
        let is_new = self.slots[at].offset < 0;
        if is_new && self.used == self.most {
            self.is_full = true;
            return false;
        }
        self.used += usize::from(is_new);
        self.slots[at] = Slot { key: hash, offset };
        self.end_offset = Some(offset.saturating_add(1));
        true
    }

    /// The offset of the last record with this key.
    pub fn last(&self, key: &[u8]) -> Option<i64> {
        let slot = self.slots[self.find(self.hash(key))];
        (slot.offset >= 0).then_some(slot.offset)
    }

    /// All up to an offset was seen, if there was room for it.
    pub fn reach(&mut self, end_offset: i64) {
        if !self.is_full {
            self.end_offset = Some(end_offset);
        }
    }

    /// What is behind it the map does not know; `None` if it knows nothing.
    pub fn end_offset(&self) -> Option<i64> {
        self.end_offset
    }

    pub fn is_full(&self) -> bool {
        self.is_full
    }

    pub fn len(&self) -> usize {
        self.used
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        [self.hashers[0].hash_one(key), self.hashers[1].hash_one(key)]
    }

    /// The slot of a key, or the one that it would have.
    fn find(&self, key: [u64; 2]) -> usize {
        let mut at = (key[0] % self.slots.len() as u64) as usize;
        while self.slots[at].offset >= 0 && self.slots[at].key != key {
            at = (at + 1) % self.slots.len();
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_offset_of_each_key_is_known() {
        let mut map = OffsetMap::new(1 << 20, 1000);
        for offset in 0..1000 {
            assert!(map.put(format!("key-{}", offset % 300).as_bytes(), offset));
        }
        for key in 0..300 {
            let last = (0..1000).rev().find(|offset| offset % 300 == key);
            assert_eq!(map.last(format!("key-{key}").as_bytes()), last);
        }
        assert_eq!(map.last(b"another"), None);
        assert_eq!((map.len(), map.end_offset()), (300, Some(1000)));
        map.reach(1500);
        assert_eq!(map.end_offset(), Some(1500));
    }

    #[test]
    fn a_full_map_ends_before_the_first_key_for_which_there_is_no_room() {
        let mut map = OffsetMap::new(24 * 10, u64::MAX);
        let put = (0..100).take_while(|offset| map.put(&[*offset], (*offset).into())).count();
        assert_eq!(put, 9);
        assert_eq!((map.end_offset(), map.is_full()), (Some(9), true));
        assert!(!map.put(&[0], 50), "not even one that is there: what is between is not known");
        map.reach(100);
        assert_eq!((map.end_offset(), map.last(&[0])), (Some(9), Some(0)));
    }

    #[test]
    fn there_is_room_for_one_key_at_least_and_no_more_memory_than_needed() {
        let mut map = OffsetMap::new(0, 1 << 40);
        assert!(map.put(b"a", 1) && map.put(b"a", 2) && !map.put(b"b", 3));
        assert!(OffsetMap::new(128 << 20, 10).slots.len() < 20);
    }
}
