//! A message set as an old producer sends it: made a batch, and that made sets for old consumers.

#![no_main]

use kelp::record::batch::Batch;
use kelp::record::codec::Codec;
use kelp::record::compress::Compressor;
use kelp::record::convert::{to_batch, to_message_set};
use kelp::record::message_set::{Message, Messages, Unwrapped};
use kelp::record::validate::{Rules, TopicPartition, check};
use libfuzzer_sys::{Corpus, fuzz_target};

const NOW_MS: i64 = 1_800_000_000_000;

const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 0 };

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((how, bytes)) = input.split_first() else { return Corpus::Reject };
    let Some(codec) = Codec::from_attributes((how & 7).into()) else { return Corpus::Reject };
    let mut set = bytes.to_vec();
    if how & 8 == 0 {
        seal(&mut set);
    }
    if how & 16 != 0 {
        set = wrap(&set, codec, (how >> 5 & 1) as i8);
    }
    let Ok(mut batch) = to_batch(&set, &Rules::default()) else { return Corpus::Keep };
    if check(&mut batch, &Rules::default(), PARTITION, NOW_MS).is_ok() {
        read_back(&batch, 0);
        read_back(&batch, 1);
    }
    Corpus::Keep
});

/// Gives each message the checksum that a fuzzer would never guess.
fn seal(mut set: &mut [u8]) {
    while let Some((head, rest)) = set.split_first_chunk_mut::<12>() {
        let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
        let Some((message, rest)) = rest.split_at_mut_checked(length as usize) else { return };
        if let Some((crc, checked)) = message.split_first_chunk_mut::<4>() {
            *crc = crc32fast::hash(checked).to_be_bytes();
        }
        set = rest;
    }
}

/// The bytes in a wrapper, whose own fields are good.
fn wrap(bytes: &[u8], codec: Codec, magic: i8) -> Vec<u8> {
    let mut value = Compressor::new(codec.into(), Vec::new());
    value.write(bytes).expect("written to memory");
    let value = value.finish().expect("written to memory");
    let attributes = Message::attributes(magic, codec, false);
    let mut set = Vec::new();
    let (offset, timestamp, key, value) = (0, 0, None, Some(&value[..]));
    Message { offset, magic, attributes, timestamp, key, value }.write(&mut set);
    set
}

/// A set that is made of a batch has all its records.
fn read_back(batch: &Batch, magic: i8) {
    let set = to_message_set(batch, magic, 0).expect("no zstd, and good");
    let mut count = 0;
    for message in Messages::new(&set) {
        let message = message.expect("a good message");
        if message.codec() == Some(Codec::None) {
            count += 1;
            continue;
        }
        let mut unwrapped = Unwrapped::new(&message).expect("a good wrapper");
        while unwrapped.read().expect("a good message").is_some() {
            count += 1;
        }
    }
    assert_eq!(count, batch.header.record_count);
}
