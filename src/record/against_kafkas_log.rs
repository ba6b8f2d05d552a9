//! What Kafka's own log says to thousands of batches, and what we say: the file that
//! `tests/messages/run.sh` has it make.

use super::batch::{Batch, Header};
use super::codec::Codec;
use super::compress::Compression;
use super::records::Malformed;
use super::testing::from_hex;
use super::unpacked::Unpacked;
use super::validate::{Invalid, Rules, TopicPartition, check, only_batch};
use crate::protocol::error_code::ErrorCode;
use bytes::Bytes;
use std::collections::BTreeMap;

const NOW_MS: i64 = 1_800_000_000_000;
const PARTITION: TopicPartition = TopicPartition { topic: "clicks", partition: 3 };

/// One batch and what Kafka made of it.
struct Case {
    version: i16,
    configs: String,
    sent: Bytes,
    code: ErrorCode,
    base_offset: i64,
    message: String,
    records: Vec<(i32, String)>,
    stored: Bytes,
}

impl Case {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.strip_prefix("batch ")?.split(' ').collect();
        let [version, configs, sent, code, base_offset, message, records, stored] = words[..]
        else {
            panic!("not a case: {line}")
        };
        let record = |record: &str| {
            let (index, message) = record.split_once(':').unwrap();
            (index.parse().unwrap(), text(message))
        };
        Some(Self {
            version: version.parse().unwrap(),
            configs: configs.to_string(),
            sent: bytes(sent),
            code: ErrorCode::from_code(code.parse().unwrap()),
            base_offset: base_offset.parse().unwrap(),
            message: text(message),
            records: match records {
                "-" => Vec::new(),
                records => records.split(';').map(record).collect(),
            },
            stored: bytes(stored),
        })
    }

    fn rules(&self) -> Rules {
        let configs = self.configs.split(';').filter_map(|config| config.split_once('='));
        let configs: BTreeMap<&str, &str> = configs.collect();
        let number = |name: &str, default: i64| {
            configs.get(name).map_or(default, |value| value.parse().unwrap())
        };
        let codec = |codec: Codec, name: &str| {
            Compression::new(codec, number(name, codec.default_level().into()) as i32)
        };
        let defaults = Rules::default();
        Rules {
            max_message_bytes: number("max.message.bytes", defaults.max_message_bytes as i64)
                as usize,
            is_compacted: configs.get("cleanup.policy").is_some_and(|p| p.starts_with("compact")),
            is_append_time: configs.get("message.timestamp.type") == Some(&"LogAppendTime"),
            compression: match configs.get("compression.type") {
                Some(&"uncompressed") => Some(Compression::NONE),
                Some(&"gzip") => codec(Codec::Gzip, "compression.gzip.level"),
                Some(&"snappy") => Some(Codec::Snappy.into()),
                Some(&"lz4") => codec(Codec::Lz4, "compression.lz4.level"),
                Some(&"zstd") => codec(Codec::Zstd, "compression.zstd.level"),
                _ => None,
            },
            timestamp_before_max_ms: number(
                "message.timestamp.before.max.ms",
                defaults.timestamp_before_max_ms,
            ),
            timestamp_after_max_ms: number(
                "message.timestamp.after.max.ms",
                defaults.timestamp_after_max_ms,
            ),
            ..defaults
        }
    }

    /// What we make of it.
    fn outcome(&self) -> Result<Batch, Invalid> {
        let mut batch = only_batch(self.sent.clone(), self.version)?;
        check(&mut batch, &self.rules(), PARTITION, NOW_MS)?;
        batch.stamp(self.base_offset, 7);
        Ok(batch)
    }

    fn is_compressed(&self) -> bool {
        Header::read(&self.sent).is_some_and(|header| header.attributes & 7 != 0)
    }
}

fn bytes(hex: &str) -> Bytes {
    match hex {
        "-" => Bytes::new(),
        hex => from_hex(hex),
    }
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex).to_vec()).unwrap()
}

/// The records of a batch, as a consumer gets them.
fn records(batch: &Batch) -> Result<Vec<String>, Malformed> {
    let records = Unpacked::new(batch)?;
    records.iter().map(|record| record.map(|record| format!("{record:?}"))).collect()
}

/// How the two outcomes compare: a name for it, or what is wrong. Differences are those that the
/// module of the checks lists.
fn compare(case: &Case) -> Result<&'static str, String> {
    let kafkas = Batch::split_off(&mut case.stored.clone());
    let fails = case.code == ErrorCode::UnknownServerError;
    match (case.outcome(), kafkas) {
        (Ok(ours), Some(kafkas)) => compare_stored(&ours, &kafkas),
        (Err(ours), Some(_)) => match is_about_lengths(&ours) && case.is_compressed() {
            true => Ok("refused: lengths or bytes behind the last record, where Kafka looks away"),
            false => Err(format!("we refuse it: {ours:?}")),
        },
        (Ok(_), None) if fails => match &*case.message {
            "key is skipped in PartialDefaultRecord" => {
                Ok("stored with dense offsets, where Kafka has an UNKNOWN_SERVER_ERROR")
            }
            "Cannot write transactional messages without a valid producer ID"
            | "Invalid negative producer epoch" => {
                Ok("stored in another codec, where Kafka has an UNKNOWN_SERVER_ERROR")
            }
            why => Err(format!("Kafka fails at it: {why}")),
        },
        (Ok(_), None) => Err(format!("Kafka refuses it: {:?} {}", case.code, case.message)),
        (Err(ours), None) if fails => match ours.code {
            ErrorCode::InvalidRecord | ErrorCode::CorruptMessage => {
                Ok("refused with a code, where Kafka has an UNKNOWN_SERVER_ERROR")
            }
            code => Err(format!("Kafka fails at it: {}; we say {code:?}", case.message)),
        },
        (Err(ours), None) => compare_refused(&ours, case),
    }
}

/// Whether a batch is refused for what is no single record's fault.
fn is_about_lengths(refusal: &Invalid) -> bool {
    refusal.code == ErrorCode::InvalidRecord && refusal.records.is_empty()
}

fn compare_stored(ours: &Batch, kafkas: &Batch) -> Result<&'static str, String> {
    if ours.to_bytes() == kafkas.to_bytes() {
        return Ok("stored, all bytes equal");
    }
    let header = |batch: &Batch| Header {
        batch_length: 0,
        crc: 0,
        // Kafka begins anew with that of the first record.
        base_timestamp: 0,
        ..batch.header
    };
    if header(ours) != header(kafkas) {
        return Err(format!("{:?} is not {:?}", ours.header, kafkas.header));
    }
    let (our_records, kafkas_records) = (records(ours), records(kafkas));
    if our_records == kafkas_records {
        return match ours.header.attributes & 7 {
            0 => Ok("stored, records equal"),
            _ => Ok("stored, records equal when decompressed"),
        };
    }
    if !is_dense(kafkas) {
        return match is_dense(ours) {
            true => Ok("stored with dense offsets, where Kafka leaves others"),
            false => Err("our offsets are not dense".to_string()),
        };
    }
    // Kafka's class holds the keys of headers as text.
    let has_text = |batch: &Batch| {
        let records = Unpacked::new(batch).unwrap();
        let mut keys = records.iter().flat_map(|record| record.unwrap().headers);
        keys.all(|(key, _)| str::from_utf8(key).is_ok())
    };
    match has_text(ours) {
        false => Ok("stored with header keys that are no text, which Kafka changes"),
        true => Err(format!("{our_records:?} are not {kafkas_records:?}")),
    }
}

fn is_dense(batch: &Batch) -> bool {
    let records = Unpacked::new(batch).unwrap();
    let offsets = records.iter().map(|record| record.unwrap().offset);
    offsets.eq(batch.header.base_offset..=batch.header.last_offset())
}

fn compare_refused(ours: &Invalid, case: &Case) -> Result<&'static str, String> {
    if is_about_lengths(ours) && !case.records.is_empty() && case.is_compressed() {
        return Ok("refused for lengths, where Kafka sees only what else is wrong");
    }
    if ours.code != case.code {
        return Err(format!("{ours:?}, Kafka says {:?} {}", case.code, case.message));
    }
    // What Kafka calls a record depends on which of its classes read it, and so does a null.
    let plain = |text: &str| {
        text.replace("PartialDefaultRecord", "DefaultRecord").replace("=-1 bytes", "=0 bytes")
    };
    let kafkas: Vec<_> =
        case.records.iter().map(|(index, message)| (*index, plain(message))).collect();
    if ours.records != kafkas {
        return Err(format!("{:?} are not {kafkas:?}", ours.records));
    }
    match (ours.message == plain(&case.message), kafkas.is_empty()) {
        (true, true) => Ok("refused as a whole, with the same code and words"),
        (true, false) => Ok("refused for records, with the same code and words"),
        // No client sees Kafka's.
        (false, true) => Ok("refused as a whole, with the same code and other words"),
        (false, false) => Err(format!("{:?} is not {:?}", ours.message, case.message)),
    }
}

#[test]
#[ignore = "needs what tests/messages/run.sh makes"]
fn batches_are_taken_and_refused_as_kafka_does() {
    let folder = std::env::var("KELP_MESSAGES").unwrap();
    let file = std::fs::read_to_string(format!("{folder}/log.txt")).unwrap();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in file.lines().filter_map(Case::read) {
        match compare(&case) {
            Ok(kind) => *kinds.entry(kind).or_default() += 1,
            Err(why) => wrong.push(format!(
                "{} version {} compressed {}: {why}",
                case.configs,
                case.version,
                case.is_compressed()
            )),
        }
    }
    println!("batches: compared with what Apache Kafka 4.4's own log makes of them");
    kinds.iter().for_each(|(kind, count)| println!("  {count:5} {kind}"));
    wrong.iter().take(30).for_each(|why| println!("  WRONG {why}"));
    assert!(wrong.is_empty(), "{} batches", wrong.len());
    assert_eq!(kinds.len(), 13, "a kind was never met");
}
