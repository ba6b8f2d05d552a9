//! Whether a batch of an idempotent producer is the next one, one that is there already, or wrong.
//!
//! Source: KIP-98, KIP-360; `ProducerAppendInfo`, `ProducerStateEntry` and
//! `UnifiedLog.analyzeAndValidateProducerState` of Apache Kafka 4.4.

use crate::protocol::error_code::ErrorCode;
use crate::record::batch::Header;
use crate::store::producers::{Producer, ProducerBatch, Producers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The batch is appended.
    Next,
    /// The batch is one of the last five: it is not appended, but answered as it was.
    Duplicate(ProducerBatch),
}

/// `producer_epoch` of a producer of which nothing is known.
const NO_PRODUCER_EPOCH: i16 = -1;

/// Judges a batch that would be appended behind all that `producers` knows.
pub fn judge(producers: &Producers, batch: &Header) -> Result<Verdict, ErrorCode> {
    if !batch.is_idempotent() {
        return Ok(Verdict::Next);
    }
    let known = producers.get(batch.producer_id);
    if let Some(duplicate) = known.and_then(|producer| find(producer, batch)) {
        return Ok(Verdict::Duplicate(duplicate));
    }
    let epoch = known.map_or(NO_PRODUCER_EPOCH, |producer| producer.epoch);
    if batch.producer_epoch < epoch {
        // Since Kafka 2.7 not PRODUCER_FENCED: the client may abort and go on.
        return Err(ErrorCode::InvalidProducerEpoch);
    }
    // KIP-360: a producer whose state is gone may go on with any sequence number. Otherwise a new
    // epoch starts at 0, and the same one goes on where it was.
    let is_in_order = match known {
        _ if epoch == NO_PRODUCER_EPOCH => true,
        Some(producer) if batch.producer_epoch == epoch => {
            batch.base_sequence == next_sequence(producer)
        }
        _ => batch.base_sequence == 0,
    };
    if is_in_order { Ok(Verdict::Next) } else { Err(ErrorCode::OutOfOrderSequenceNumber) }
}

fn find(producer: &Producer, batch: &Header) -> Option<ProducerBatch> {
    if producer.epoch != batch.producer_epoch {
        return None;
    }
    let same = |kept: &&ProducerBatch| {
        kept.base_sequence == batch.base_sequence && kept.last_sequence == batch.last_sequence()
    };
    producer.batches.iter().find(same).copied()
}

/// Sequences go from 0 to `i32::MAX` and start again.
fn next_sequence(producer: &Producer) -> i32 {
    producer.batches.back().map_or(0, |last| last.last_sequence.wrapping_add(1) & i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::Draft;
    use ErrorCode::{InvalidProducerEpoch, OutOfOrderSequenceNumber};

    const MAX: i32 = i32::MAX;

    /// A log in which one producer's batches are judged and appended.
    #[derive(Default)]
    struct Log {
        producers: Producers,
        end: i64,
    }

    impl Log {
        /// What a batch of `count` records is answered: its offset, if it is good.
        fn produce(&mut self, epoch: i16, sequence: i32, count: usize) -> Result<i64, ErrorCode> {
            let draft = Draft::of(&vec!["a"; count]).from_producer(7, epoch, sequence);
            let mut batch = draft.batch();
            match judge(&self.producers, &batch.header)? {
                Verdict::Duplicate(of) => Ok(of.base_offset),
                Verdict::Next => {
                    batch.stamp(self.end, 0);
                    self.end = batch.header.next_offset();
                    self.producers.apply(&batch.header);
                    Ok(batch.header.base_offset)
                }
            }
        }
    }

    // All answers below are those of Apache Kafka 4.4 to the same batches.

    #[test]
    fn an_unknown_producer_may_begin_anywhere_and_goes_on_from_there() {
        let mut log = Log::default();
        assert_eq!(log.produce(0, 5, 1), Ok(0));
        assert_eq!(log.produce(0, 6, 1), Ok(1));
        assert_eq!(log.produce(0, 8, 1), Err(OutOfOrderSequenceNumber));
        assert_eq!(log.produce(0, 5, 1), Ok(0));
        assert_eq!(log.produce(0, 4, 1), Err(OutOfOrderSequenceNumber));
        assert_eq!(log.end, 2);
    }

    #[test]
    fn a_new_epoch_starts_at_zero_and_ends_the_old_one() {
        let mut log = Log::default();
        assert_eq!(log.produce(3, 0, 1), Ok(0));
        assert_eq!(log.produce(3, 1, 1), Ok(1));
        assert_eq!(log.produce(2, 0, 1), Err(InvalidProducerEpoch));
        assert_eq!(log.produce(2, 2, 1), Err(InvalidProducerEpoch));
        assert_eq!(log.produce(4, 2, 1), Err(OutOfOrderSequenceNumber));
        assert_eq!(log.produce(4, 0, 1), Ok(2));
        assert_eq!(log.produce(4, 0, 1), Ok(2));
        assert_eq!(log.produce(3, 0, 1), Err(InvalidProducerEpoch));
        assert_eq!(log.produce(4, 1, 1), Ok(3));
        assert_eq!(log.end, 4);
    }

    #[test]
    fn the_last_five_batches_are_known_and_only_as_they_were() {
        let mut log = Log::default();
        for i in 0..7 {
            assert_eq!(log.produce(0, 2 * i, 2), Ok(2 * i64::from(i)));
        }
        for i in 0..7 {
            let known = if i < 2 { Err(OutOfOrderSequenceNumber) } else { Ok(2 * i64::from(i)) };
            assert_eq!(log.produce(0, 2 * i, 2), known);
        }
        for (sequence, count) in [(8, 4), (12, 1), (13, 1), (13, 2)] {
            assert_eq!(log.produce(0, sequence, count), Err(OutOfOrderSequenceNumber));
        }
        assert_eq!(log.produce(0, 14, 1), Ok(14));
    }

    #[test]
    fn sequences_wrap_to_zero_between_batches_and_inside_of_one() {
        let mut log = Log::default();
        assert_eq!(log.produce(0, MAX, 1), Ok(0));
        assert_eq!(log.produce(0, 0, 1), Ok(1));

        let mut log = Log::default();
        assert_eq!(log.produce(0, MAX - 1, 4), Ok(0));
        assert_eq!(log.produce(0, 2, 1), Ok(4));
        assert_eq!(log.produce(0, MAX - 1, 4), Ok(0));
    }

    #[test]
    fn an_epoch_of_minus_one_is_none() {
        let mut log = Log::default();
        assert_eq!(log.produce(-1, 0, 1), Ok(0));
        assert_eq!(log.produce(-1, 1, 1), Ok(1));
        assert_eq!(log.produce(-1, 5, 1), Ok(2));
        assert_eq!(log.produce(-2, 0, 1), Err(InvalidProducerEpoch));
        assert_eq!(log.produce(-1, 0, 1), Ok(0));
    }

    #[test]
    fn a_batch_without_a_producer_is_always_next() {
        let mut log = Log::default();
        log.produce(0, 0, 1).unwrap();
        let plain = Draft::of(&["a"]).batch();
        assert_eq!(judge(&log.producers, &plain.header), Ok(Verdict::Next));
    }
}
