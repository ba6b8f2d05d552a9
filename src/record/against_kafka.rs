//! Batches in every codec, against those that Kafka's own classes make and read:
//! `tests/messages/run.sh`.

use super::batch::{Batch, CODEC};
use super::builder::{Builder, Fields, recompress};
use super::codec::Codec;
use super::compress::Compression;
use super::testing::from_hex;
use super::unpacked::Unpacked;
use std::fmt::Write;
use std::path::Path;

/// As Kafka makes them, and levels that its batches do not have.
const COMPRESSIONS: [(Codec, &[i32]); 5] = [
    (Codec::None, &[0]),
    (Codec::Gzip, &[-1, 1, 9]),
    (Codec::Snappy, &[0]),
    (Codec::Lz4, &[1, 9, 12, 17]),
    (Codec::Zstd, &[-131_072, -5, 3, 22]),
];

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A field of a record as `KafkaBatches.java` has it.
fn field(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "-".to_string(),
        Some(bytes) if bytes.len() <= 100 => to_hex(bytes),
        Some(bytes) => format!("{}#{}", bytes.len(), crc32c::crc32c(bytes)),
    }
}

/// A batch as `KafkaBatches.java` has it.
fn describe(batch: &Batch) -> String {
    let header = batch.header;
    let codec = Codec::from_attributes(header.attributes).unwrap();
    let mut text = format!(
        "{},{},{},{},{},{},{},{},{},{},{},{},{}",
        header.base_offset,
        header.last_offset(),
        header.leader_epoch,
        codec.name(),
        header.max_timestamp,
        header.is_log_append_time(),
        header.is_transactional(),
        header.is_control(),
        header.delete_horizon_ms().map_or("-".to_string(), |horizon| horizon.to_string()),
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    );
    for record in &Unpacked::new(batch).unwrap() {
        let record = record.unwrap();
        let headers = record.headers.map(|(key, value)| {
            format!("{}={}", to_hex(key), value.map_or("-".to_string(), to_hex))
        });
        let headers = headers.collect::<Vec<_>>().join("|");
        let (key, value) = (field(record.key), field(record.value));
        write!(text, ";{},{},{key},{value},{headers}", record.offset, record.timestamp).unwrap();
    }
    text
}

/// The batch built from its records.
fn rebuilt(batch: &Batch) -> Batch {
    let header = batch.header;
    let mut builder = Builder::new(Fields {
        base_offset: header.base_offset,
        least_last_offset_delta: header.last_offset_delta,
        leader_epoch: header.leader_epoch,
        compression: Codec::from_attributes(header.attributes).unwrap().into(),
        log_append_time: header.is_log_append_time().then_some(header.max_timestamp),
        delete_horizon_ms: header.delete_horizon_ms(),
        is_transactional: header.is_transactional(),
        is_control: header.is_control(),
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        ..Fields::default()
    });
    for record in &Unpacked::new(batch).unwrap() {
        builder.append(&record.unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

#[test]
#[ignore = "tests/messages/run.sh has Kafka make the batches"]
fn batches_are_what_kafka_makes_and_reads() {
    let folder = std::env::var_os("KELP_MESSAGES").unwrap();
    let folder = Path::new(&folder);
    let mut ours = String::new();
    let mut give = |batch: &Batch| {
        writeln!(ours, "{} {}", to_hex(&batch.to_bytes()), describe(batch)).unwrap();
    };
    let theirs = std::fs::read_to_string(folder.join("kafka-batches.txt")).unwrap();
    let mut equal = 0;
    for line in theirs.lines() {
        let (bytes, description) = line.split_once(' ').unwrap();
        let batch = Batch::split_off(&mut from_hex(bytes)).unwrap();
        assert_eq!(batch.checksum(), batch.header.crc);
        assert_eq!(describe(&batch), description);
        let again = rebuilt(&batch);
        // Times of records that are not seen in a batch of LogAppendTime are lost.
        if batch.header.attributes & CODEC == 0 && !batch.header.is_log_append_time() {
            assert_eq!(again.to_bytes(), batch.to_bytes(), "{description}");
            equal += 1;
        }
        give(&again);
        // Once for each kind of batch.
        if batch.header.attributes & CODEC == 0 {
            for (codec, levels) in COMPRESSIONS {
                for level in levels {
                    let compression = Compression::new(codec, *level).unwrap();
                    give(&recompress(&batch, compression).unwrap());
                }
            }
        }
        if batch.header.attributes & CODEC != Codec::Zstd as i16 {
            give(&recompress(&batch, Codec::Zstd.into()).unwrap());
        }
    }
    assert!(equal > 0);
    println!(
        "{} batches of Kafka walked, {equal} of them built byte for byte",
        theirs.lines().count()
    );
    std::fs::write(folder.join("kelp-batches.txt"), ours).unwrap();
}
