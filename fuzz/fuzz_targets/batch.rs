//! A batch as a producer sends it: validated, and then walked as a reader does.

#![no_main]

use bytes::Bytes;
use kelp::record::batch::{Batch, HEADER_BYTES, LENGTH_OFFSET};
use kelp::record::unpacked::Unpacked;
use kelp::record::validate::{Rules, check, only_batch};
use libfuzzer_sys::{Corpus, fuzz_target};

const NOW_MS: i64 = 1_800_000_000_000;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((how, bytes)) = input.split_first() else { return Corpus::Reject };
    let mut bytes = bytes.to_vec();
    if how & 1 == 0 {
        seal(&mut bytes);
    }
    let Ok(mut batch) = only_batch(bytes.into(), i16::from(15 - (how >> 4))) else {
        return Corpus::Keep;
    };
    let rules = Rules { is_compacted: how & 2 != 0, ..Rules::default() };
    if check(&mut batch, &rules, NOW_MS).is_ok() {
        walk(&batch);
    }
    Corpus::Keep
});

/// Gives the bytes the length, magic and checksum that a fuzzer would never guess.
fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let length = (bytes.len() - LENGTH_OFFSET) as u32;
    bytes[..8].fill(0);
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    let crc = Batch::split_off(&mut Bytes::copy_from_slice(bytes)).map(|batch| batch.checksum());
    bytes[17..21].copy_from_slice(&crc.unwrap_or_default().to_be_bytes());
}

/// What was found good has the records that its header counts, and is stored as it says.
fn walk(batch: &Batch) {
    let mut stored: Bytes = [&batch.head()[..], &batch.records()].concat().into();
    let again = Batch::split_off(&mut stored).expect("a whole batch");
    assert_eq!(again.header, batch.header);
    assert_eq!(again.checksum(), batch.header.crc);

    let unpacked = Unpacked::with_limit(batch, 16 << 20).expect("what was read once");
    let mut count = 0;
    for record in &unpacked {
        let record = record.expect("a good record");
        assert_eq!(record.offset, count);
        count += 1;
    }
    assert_eq!(count, i64::from(batch.header.record_count));
}
