//! What goes when a log is compacted.
//!
//! - A record goes if a later one has its key; one without a key goes.
//! - A tombstone goes if it is the last of its key too, but only some time after it was first met: that
//!   time is noted in its batch. All before it was rewritten by then, so nothing comes back.
//! - Batches of transactions and their markers stay as they are, and do not count: nobody can tell yet
//!   which were aborted.
//! - What cannot be read stays as it is.
//!
//! Source: `Cleaner.cleanInto`, `shouldRetainRecord` and `buildOffsetMapForSegment` of Apache
//! Kafka 4.4.

use super::offset_map::OffsetMap;
use crate::record::batch::{Batch, Header};
use crate::record::filter::{Left, filter};
use crate::record::records::Record;
use crate::record::unpacked::Unpacked;
use std::ops::Range;

/// Notes the keys of records in a range of offsets, until there is no room for one.
pub fn index(map: &mut OffsetMap, batches: &[Batch], range: Range<i64>) {
    for batch in batches.iter().filter(|batch| can_be_cleaned(&batch.header)) {
        let records = match Unpacked::new(batch) {
            Ok(records) => records,
            Err(error) => {
                let offset = batch.header.base_offset;
                tracing::warn!(offset, %error, "a batch that cannot be read is left as it is");
                continue;
            }
        };
        for record in records.iter().map_while(Result::ok) {
            let Some(key) = record.key.filter(|_| range.contains(&record.offset)) else { continue };
            if !map.put(key, record.offset) {
                return;
            }
        }
    }
}

/// What is known when a log is rewritten.
#[derive(Debug)]
pub struct Rules {
    pub map: OffsetMap,
    pub now_ms: i64,
    pub delete_retention_ms: i64,
}

impl Rules {
    /// What is left of batches.
    pub fn filter(&self, batches: Vec<Batch>) -> Vec<Batch> {
        batches.into_iter().filter_map(|batch| self.left(batch)).collect()
    }

    fn left(&self, batch: Batch) -> Option<Batch> {
        if !can_be_cleaned(&batch.header) {
            return Some(batch);
        }
        let horizon_ms = self.now_ms.saturating_add(self.delete_retention_ms);
        let tombstones_go =
            batch.header.delete_horizon_ms().is_some_and(|horizon| self.now_ms >= horizon);
        match filter(&batch, horizon_ms, |record| self.keeps(record, tombstones_go)) {
            Ok(Left::All) => Some(batch),
            Ok(Left::Some(left)) => Some(left),
            Ok(Left::Nothing) => None,
            Err(error) => {
                let offset = batch.header.base_offset;
                tracing::warn!(offset, %error, "a batch that cannot be read is left as it is");
                Some(batch)
            }
        }
    }

    fn keeps(&self, record: &Record<'_>, tombstones_go: bool) -> bool {
        if self.map.end_offset().is_none_or(|end| record.offset >= end) {
            return true;
        }
        let Some(key) = record.key else { return false };
        let is_last = self.map.last(key).is_none_or(|last| record.offset >= last);
        is_last && (record.value.is_some() || !tombstones_go)
    }
}

fn can_be_cleaned(header: &Header) -> bool {
    !header.is_control() && !header.is_transactional()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::builder::{Builder, Fields};
    use crate::record::codec::Codec;

    /// A batch of records, each a key with a value or none.
    fn batch(base_offset: i64, records: &[(Option<&str>, Option<&str>)]) -> Batch {
        let compression = Codec::Lz4.into();
        let mut builder = Builder::new(Fields { base_offset, compression, ..Fields::default() });
        for (offset, (key, value)) in (base_offset..).zip(records) {
            let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
            builder.append(&Record { offset, key, value, ..Record::default() }).unwrap();
        }
        builder.finish().unwrap()
    }

    fn keyed(base_offset: i64, keys: &[&str]) -> Batch {
        let records: Vec<_> = keys.iter().map(|key| (Some(*key), Some("v"))).collect();
        batch(base_offset, &records)
    }

    fn offsets(batches: &[Batch]) -> Vec<i64> {
        let records = |batch| Unpacked::new(batch).unwrap();
        let offsets = |batch| records(batch).iter().map(|r| r.unwrap().offset).collect::<Vec<_>>();
        batches.iter().flat_map(offsets).collect()
    }

    /// A pass at some time, with a day for tombstones.
    fn pass(log: Vec<Batch>, dirty: Range<i64>, now_ms: i64) -> Vec<Batch> {
        let mut map = OffsetMap::new(1 << 20, 100);
        index(&mut map, &log, dirty.clone());
        map.reach(dirty.end);
        Rules { map, now_ms, delete_retention_ms: 100 }.filter(log)
    }

    #[test]
    fn of_each_key_the_last_record_is_left() {
        let log = vec![keyed(0, &["a", "b", "a"]), keyed(3, &["c", "b"]), keyed(5, &["a", "d"])];
        assert_eq!(offsets(&pass(log.clone(), 0..7, 0)), [3, 4, 5, 6]);
        assert_eq!(offsets(&pass(log.clone(), 3..7, 0)), [3, 4, 5, 6], "what is clean goes too");
        assert_eq!(offsets(&pass(log, 0..5, 0)), [2, 3, 4, 5, 6], "what is behind the end stays");
    }

    #[test]
    fn a_record_without_a_key_goes() {
        let log = vec![batch(0, &[(None, Some("v")), (Some("a"), Some("v"))])];
        assert_eq!(offsets(&pass(log, 0..2, 0)), [1]);
    }

    #[test]
    fn a_tombstone_deletes_at_once_and_goes_itself_after_its_time() {
        let log =
            vec![keyed(0, &["a", "b"]), batch(2, &[(Some("a"), None), (Some("c"), Some("v"))])];
        let first = pass(log, 0..4, 1000);
        assert_eq!(offsets(&first), [1, 2, 3]);
        let second = pass(first.clone(), 0..4, 1099);
        assert_eq!(offsets(&second), [1, 2, 3], "its time has not come");
        assert_eq!(offsets(&pass(second, 0..4, 1100)), [1, 3]);
        let beyond = pass(first, 0..2, 5000);
        assert_eq!(offsets(&beyond), [1, 2, 3], "what the pass has not read stays");
    }

    #[test]
    fn batches_of_transactions_and_what_cannot_be_read_stay_and_do_not_count() {
        let mut transactional = keyed(0, &["a"]);
        transactional.header.attributes |= 1 << 4;
        let mut unreadable = keyed(1, &["a"]);
        unreadable.header.record_count = 9;
        let log = vec![transactional, unreadable, keyed(2, &["a", "a"])];
        let left = pass(log, 0..4, 0);
        let counts: Vec<_> = left.iter().map(|batch| batch.header.record_count).collect();
        assert_eq!(counts, [1, 9, 1]);
        assert_eq!(offsets(&left[2..]), [3]);
    }

    #[test]
    fn a_map_that_is_too_small_cleans_as_far_as_it_reaches() {
        let log = vec![keyed(0, &["a", "b", "a", "b", "c", "a"])];
        let mut map = OffsetMap::new(24 * 3, 100);
        index(&mut map, &log, 0..6);
        map.reach(6);
        assert_eq!(map.end_offset(), Some(4));
        let rules = Rules { map, now_ms: 0, delete_retention_ms: 0 };
        assert_eq!(offsets(&rules.filter(log)), [2, 3, 4, 5]);
    }
}
