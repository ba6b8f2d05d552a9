//! A batch as a producer sends it: validated, walked as a reader does, and put together again from
//! its records.

#![no_main]

use bytes::Bytes;
use kelp::record::batch::{Batch, HEADER_BYTES, Header, LENGTH_OFFSET};
use kelp::record::builder::{BuildError, Builder, Fields, recompress};
use kelp::record::codec::Codec;
use kelp::record::records::Record;
use kelp::record::unpacked::Unpacked;
use kelp::record::validate::{Rules, TopicPartition, check, only_batch};
use libfuzzer_sys::{Corpus, fuzz_target};

const NOW_MS: i64 = 1_800_000_000_000;
const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 0 };

/// What is longer has nothing new, and makes inputs slow.
const LIMIT: u64 = 1 << 20;

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
    let is_good = check(&mut batch, &rules, PARTITION, NOW_MS).is_ok();
    if is_good {
        stored(&batch);
    }
    let codec = Codec::from_attributes(i16::from(how >> 1) % 5).expect("a known codec");
    let Ok(unpacked) = Unpacked::with_limit(&batch, LIMIT) else { return Corpus::Keep };
    let records: Result<Vec<Record<'_>>, _> = unpacked.iter().collect();
    assert!(records.is_ok() || !is_good, "{records:?}");
    if let Ok(records) = records {
        walk(&batch, &records, is_good);
        recode(&batch, &unpacked, codec);
        rebuild(&batch, &records, codec, is_good);
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

/// What was found good is stored as its header says.
fn stored(batch: &Batch) {
    let mut stored: Bytes = [&batch.head()[..], &batch.records()].concat().into();
    let again = Batch::split_off(&mut stored).expect("a whole batch");
    assert_eq!(again.header, batch.header);
    assert_eq!(again.checksum(), batch.header.crc);
}

/// There are as many records as the header counts, and headers as the records count.
fn walk(batch: &Batch, records: &[Record<'_>], is_good: bool) {
    assert_eq!(records.len(), batch.header.record_count as usize);
    for (count, record) in records.iter().enumerate() {
        assert!(record.offset == count as i64 || !is_good);
        assert_eq!(record.headers.clone().count(), record.headers.len());
    }
}

/// By another codec only codec, length and checksum differ.
fn recode(batch: &Batch, unpacked: &Unpacked, codec: Codec) {
    let recoded = recompress(batch, codec.into()).expect("what was read once");
    let Header { batch_length, crc, attributes, .. } = recoded.header;
    assert_eq!(Codec::from_attributes(attributes), Some(codec));
    assert_eq!(attributes & !7, batch.header.attributes & !7);
    assert_eq!(crc, recoded.checksum());
    let attributes = batch.header.attributes;
    assert_eq!(Header { batch_length, crc, attributes, ..recoded.header }, {
        Header { batch_length, crc, ..batch.header }
    });
    let again = Unpacked::with_limit(&recoded, LIMIT).expect("what was written");
    assert_eq!(again.bytes(), unpacked.bytes());
}

/// A builder makes a batch of the records, if their offsets rise, and they are read back from it.
fn rebuild(batch: &Batch, records: &[Record<'_>], codec: Codec, is_good: bool) {
    let header = batch.header;
    let mut builder = Builder::new(Fields {
        base_offset: header.base_offset,
        least_last_offset_delta: header.last_offset_delta,
        compression: codec.into(),
        log_append_time: header.is_log_append_time().then_some(header.max_timestamp),
        ..Fields::default()
    });
    let added = records.iter().try_for_each(|record| builder.append(record));
    let built = match added.and_then(|()| builder.finish()) {
        Ok(built) => built,
        Err(BuildError::BadOffset | BuildError::Empty) if !is_good => return,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(built.header.crc, built.checksum());
    let unpacked = Unpacked::with_limit(&built, 2 * LIMIT).expect("what was written");
    let again: Result<Vec<Record<'_>>, _> = unpacked.iter().collect();
    assert_eq!(again.as_deref(), Ok(records));
}
