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
