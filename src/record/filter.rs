//! Taking records out of a batch, as compaction does.
//!
//! What is left keeps its offsets, timestamps and headers, and the batch keeps its first and last
//! offset, producer, sequence, leader epoch, codec and timestamp type.
//!
//! Source: KIP-534 (the delete horizon); `MemoryRecords.filterTo` and
//! `DefaultRecordBatch.writeEmptyHeader` of Apache Kafka 4.4.

use super::batch::{Batch, CODEC, DELETE_HORIZON, HEADER_BYTES, Header};
use super::builder::{BuildError, Builder, Fields, whole};
use super::codec::Codec;
use super::records::{Malformed, Record};
use super::unpacked::Unpacked;

/// What is left of a batch.
#[derive(Debug)]
pub enum Left {
    /// The batch as it was.
    All,
    Some(Batch),
    Nothing,
}

/// Takes out what is not to be kept. A batch in which a tombstone is left gets `horizon_ms` as the
/// time from which on that may go, if it has none yet.
pub fn filter(
    batch: &Batch,
    horizon_ms: i64,
    mut keep: impl FnMut(&Record<'_>) -> bool,
) -> Result<Left, BuildError> {
    let unpacked = Unpacked::new(batch)?;
    let (mut left, mut all, mut has_tombstone) = (Vec::new(), true, false);
    for record in &unpacked {
        let record = record?;
        if keep(&record) {
            has_tombstone |= record.value.is_none();
            left.push(record);
        } else {
            all = false;
        }
    }
    if left.is_empty() {
        return Ok(Left::Nothing);
    }
    let horizon = batch.header.delete_horizon_ms();
    let gets_horizon = has_tombstone && horizon.is_none();
    if all && !gets_horizon {
        return Ok(Left::All);
    }
    let horizon = if gets_horizon { Some(horizon_ms) } else { horizon };
    let mut builder = Builder::new(fields(&batch.header, horizon)?);
    for record in &left {
        builder.append(record)?;
    }
    builder.finish().map(Left::Some)
}

fn fields(header: &Header, delete_horizon_ms: Option<i64>) -> Result<Fields, Malformed> {
    let codec = Codec::from_attributes(header.attributes).ok_or(Malformed::Unknown)?;
    Ok(Fields {
        base_offset: header.base_offset,
        least_last_offset_delta: header.last_offset_delta,
        leader_epoch: header.leader_epoch,
        compression: codec.into(),
        log_append_time: header.is_log_append_time().then_some(header.max_timestamp),
        delete_horizon_ms,
        is_transactional: header.is_transactional(),
        is_control: header.is_control(),
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        ..Fields::default()
    })
}

/// The batch without records: it says which offsets there were, and whose.
pub fn emptied(header: &Header) -> Batch {
    let header = Header {
        attributes: header.attributes & !(CODEC | DELETE_HORIZON),
        base_timestamp: -1,
        record_count: 0,
        ..*header
    };
    let sealed = Batch::seal(header, vec![0; HEADER_BYTES]);
    whole(sealed.unwrap_or_else(|| unreachable!("a header is not too long")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{FROM_KAFKA, from_kafka};

    /// What is left of a batch of which records with these numbers are kept.
    fn kept(batch: &Batch, numbers: &[i64]) -> Left {
        let first = batch.header.base_offset;
        filter(batch, 5_000, |record| numbers.contains(&(record.offset - first))).unwrap()
    }

    /// Of Kafka's producer: three records, the last of which is a tombstone.
    fn batch_at(codec: Codec, offset: i64) -> Batch {
        let mut batch = from_kafka(codec);
        batch.stamp(offset, 7);
        batch
    }

    fn records(batch: &Batch) -> Vec<String> {
        let records = Unpacked::new(batch).unwrap();
        records.iter().map(|record| format!("{:?}", record.unwrap())).collect()
    }

    #[test]
    fn what_is_left_is_as_it_was_in_every_codec() {
        for (codec, _) in FROM_KAFKA {
            let batch = batch_at(codec, 100);
            let all = records(&batch);
            let Left::Some(left) = kept(&batch, &[1]) else { panic!("one record is left") };
            assert_eq!(records(&left), all[1..2], "{codec:?}");
            let (old, new) = (batch.header, left.header);
            assert_eq!((new.base_offset, new.last_offset()), (100, old.last_offset()));
            assert_eq!((new.leader_epoch, new.attributes), (7, old.attributes));
            let producer = |h: Header| (h.producer_id, h.producer_epoch, h.base_sequence);
            assert_eq!(producer(new), producer(old));
            assert_eq!((new.record_count, new.crc), (1, left.checksum()));
            assert_eq!(new.last_sequence(), old.last_sequence());
        }
    }

    #[test]
    fn a_tombstone_gets_the_time_at_which_it_may_go_once() {
        let batch = batch_at(Codec::Gzip, 0);
        let keep_all = |_: &Record<'_>| true;
        let Left::Some(first) = filter(&batch, 5_000, keep_all).unwrap() else {
            panic!("it has a tombstone")
        };
        assert_eq!(first.header.delete_horizon_ms(), Some(5_000));
        assert_eq!(first.header.max_timestamp, batch.header.max_timestamp);
        assert_eq!(records(&first), records(&batch), "timestamps are as they were");
        assert!(matches!(filter(&first, 9_000, keep_all), Ok(Left::All)));
        let Left::Some(later) = kept(&first, &[0]) else { panic!("one record is left") };
        assert_eq!(later.header.delete_horizon_ms(), Some(5_000));
    }

    #[test]
    fn a_batch_without_a_tombstone_that_keeps_all_is_not_touched() {
        let batch = batch_at(Codec::None, 0);
        let Left::Some(two) = kept(&batch, &[0, 1]) else { panic!("two are left") };
        assert_eq!(records(&two), records(&batch)[..2]);
        assert!(matches!(kept(&two, &[0, 1]), Left::All));
        assert!(matches!(kept(&batch, &[]), Left::Nothing));
    }

    #[test]
    fn an_empty_batch_tells_its_offsets_and_its_producer() {
        let mut batch = batch_at(Codec::Zstd, 40);
        batch.header.attributes |= DELETE_HORIZON;
        let empty = emptied(&batch.header);
        let (old, new) = (batch.header, empty.header);
        assert_eq!((new.base_offset, new.last_offset()), (40, old.last_offset()));
        assert_eq!((new.record_count, new.attributes, new.base_timestamp), (0, 0, -1));
        assert_eq!((new.max_timestamp, new.producer_id), (old.max_timestamp, old.producer_id));
        assert_eq!((empty.len(), new.crc), (HEADER_BYTES, empty.checksum()));
        assert_eq!(records(&empty), Vec::<String>::new());
    }
}
