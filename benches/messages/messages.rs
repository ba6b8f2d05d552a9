//! Kelp's encoding and decoding beside the kafka-protocol crate's, and its check of a batch beside
//! the bare checksum, in one run.
//!
//! The machine may be busy with other things, and that changes from second to second. So the two are
//! measured in turns, and what counts is the median of the rounds' ratios.

use bytes::{Bytes, BytesMut};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use kelp::messages::{fetch, metadata, produce};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::wire::{Encoded, Reader, Records, Str, Uuid, Wire, Writer};
use kelp::record::batch::Batch;
use kelp::record::builder::{Builder, Fields};
use kelp::record::records::Record;
use kelp::record::validate::{Rules, TopicPartition, check};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

const BATCH_BYTES: usize = 16 * 1024;

/// What is measured, and how many times as fast as its peer Kelp must be in it.
struct Workload {
    name: String,
    wanted: f64,
    ours: Box<dyn Fn()>,
    theirs: Box<dyn Fn()>,
}

fn main() -> ExitCode {
    let mut criterion = Criterion::default().configure_from_args();
    let mut is_slow = false;
    let mut table = format!("{:<36}{:>12}{:>16}{:>8}\n", "", "kelp", "peer", "ratio");
    for Workload { name, wanted, ours, theirs } in workloads() {
        let mut group = criterion.benchmark_group(&name);
        group.warm_up_time(Duration::from_millis(100));
        group.measurement_time(Duration::from_millis(300));
        group.sample_size(10);
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let ours = measure(&mut group, BenchmarkId::new("kelp", round), &ours);
            let theirs = measure(&mut group, BenchmarkId::new("peer", round), &theirs);
            rounds.extend(ours.zip(theirs));
        }
        group.finish();
        if rounds.is_empty() {
            // An argument chose others.
            continue;
        }
        let ratio = median(rounds.iter().map(|(ours, theirs)| theirs / ours));
        let (ours, theirs) =
            (median(rounds.iter().map(|r| r.0)), median(rounds.iter().map(|r| r.1)));
        let verdict = if ratio < wanted { "  TOO SLOW" } else { "" };
        is_slow |= ratio < wanted;
        table += &format!("{name:<36}{ours:>9.0} ns{theirs:>13.0} ns{ratio:>8.2}{verdict}\n");
    }
    print!("\n{table}");
    if is_slow { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Nanoseconds for one call, in the fastest sample: what disturbs only adds to it. `None` if an
/// argument did not choose it.
fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    run: &dyn Fn(),
) -> Option<f64> {
    let mut fastest: Option<f64> = None;
    group.bench_function(id, |bencher| {
        bencher.iter_custom(|count| {
            let begin = Instant::now();
            (0..count).for_each(|_| run());
            let time = begin.elapsed();
            let each = time.as_nanos() as f64 / count as f64;
            fastest = Some(fastest.map_or(each, |fastest| fastest.min(each)));
            time
        });
    });
    fastest
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn workloads() -> Vec<Workload> {
    let mut all = Vec::new();
    for version in [8, 13] {
        for partitions in [1, 100] {
            let request = produce_request(partitions);
            let name = format!("decode Produce v{version} of {partitions}");
            all.push(decode::<_, theirs::ProduceRequest>(name, ApiKey::Produce, version, request));
        }
    }
    for version in [11, 17] {
        for (topics, partitions) in [(1, 1), (10, 10)] {
            let request = fetch_request(topics, partitions);
            let name = format!("decode Fetch v{version} of {topics}x{partitions}");
            all.push(decode::<_, theirs::FetchRequest>(name, ApiKey::Fetch, version, request));
        }
        let name = format!("encode Fetch v{version} of 10x10x16 KiB");
        let answer = fetch_response(10, 10);
        all.push(encode::<_, theirs::FetchResponse>(name, ApiKey::Fetch, version, answer, 8.0));
    }
    for version in [8, 13] {
        let name = format!("encode Metadata v{version} of 100x10");
        let answer = metadata_response(100, 10);
        let workload =
            encode::<_, theirs::MetadataResponse>(name, ApiKey::Metadata, version, answer, 1.0);
        all.push(workload);
    }
    all.push(check_of_batch());
    all
}

/// All that a batch is checked for, beside its checksum alone: 3 GB/s where that runs at 8.
fn check_of_batch() -> Workload {
    const RECORDS: i64 = 1000;
    const NOW_MS: i64 = 1_700_000_000_000;

    let mut builder = Builder::new(Fields::default());
    for offset in 0..RECORDS {
        let value = [offset as u8; 1024];
        let record =
            Record { offset, timestamp: NOW_MS, value: Some(&value), ..Record::default() };
        builder.append(&record).unwrap();
    }
    let batch = builder.finish().unwrap();
    let bytes = batch.to_bytes();
    let rules = Rules { max_message_bytes: bytes.len(), ..Rules::default() };
    Workload {
        name: format!("check {RECORDS} records of 1 KiB, crc32c"),
        wanted: 3.0 / 8.0,
        ours: Box::new(move || {
            let mut batch: Batch = black_box(&batch).clone();
            let partition = TopicPartition { topic: "clicks", partition: 0 };
            check(&mut batch, &rules, partition, NOW_MS).unwrap();
            drop(black_box(batch));
        }),
        theirs: Box::new(move || {
            black_box(crc32c::crc32c(black_box(&bytes)));
        }),
    }
}

fn decode<T: Wire + 'static, U: Decodable + 'static>(
    name: String,
    api: ApiKey,
    version: i16,
    message: T,
) -> Workload {
    let flexible = api.is_flexible(version);
    let bytes = Bytes::from(write(&message, version, flexible).concat());
    let same = bytes.clone();
    Workload {
        name,
        wanted: 1.0,
        ours: Box::new(move || {
            let message = T::read(&mut Reader::new(bytes.clone(), version, flexible));
            drop(black_box(message.unwrap()));
        }),
        theirs: Box::new(move || {
            drop(black_box(U::decode(&mut same.clone(), version).unwrap()));
        }),
    }
}

fn encode<T: Wire + 'static, U: Decodable + Encodable + 'static>(
    name: String,
    api: ApiKey,
    version: i16,
    message: T,
    wanted: f64,
) -> Workload {
    let flexible = api.is_flexible(version);
    let bytes = Bytes::from(write(&message, version, flexible).concat());
    let same = U::decode(&mut bytes.clone(), version).unwrap();
    Workload {
        name,
        wanted,
        ours: Box::new(move || drop(black_box(write(&message, version, flexible)))),
        theirs: Box::new(move || {
            let mut to = BytesMut::new();
            same.encode(&mut to, version).unwrap();
            drop(black_box(to.freeze()));
        }),
    }
}

fn write<T: Wire>(message: &T, version: i16, flexible: bool) -> Encoded {
    let mut writer = Writer::new(version, flexible);
    message.write(&mut writer);
    writer.finish()
}

fn topic(i: usize) -> Str {
    format!("a-topic-with-a-name-{i}").into()
}

fn id(i: usize) -> Uuid {
    Uuid((i as u128 + 1).to_be_bytes())
}

fn produce_request(partitions: i32) -> produce::Request {
    let partition =
        |index| produce::PartitionProduceData { index, records: Some(vec![7; BATCH_BYTES].into()) };
    let topic = produce::TopicProduceData {
        name: topic(0),
        topic_id: id(0),
        partition_data: (0..partitions).map(partition).collect(),
    };
    produce::Request { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

fn fetch_request(topics: usize, partitions: i32) -> fetch::Request {
    let partition = |partition| fetch::FetchPartition {
        partition,
        fetch_offset: 1_000_000,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = |i| fetch::FetchTopic {
        topic: topic(i),
        topic_id: id(i),
        partitions: (0..partitions).map(partition).collect(),
    };
    fetch::Request {
        max_wait_ms: 500,
        topics: (0..topics).map(topic).collect(),
        ..Default::default()
    }
}

fn fetch_response(topics: usize, partitions: i32) -> fetch::Response {
    let partition = |partition_index| fetch::PartitionData {
        partition_index,
        high_watermark: 1_000_000,
        records: Some(Records(vec![vec![7; BATCH_BYTES].into()])),
        ..Default::default()
    };
    let topic = |i| fetch::FetchableTopicResponse {
        topic: topic(i),
        topic_id: id(i),
        partitions: (0..partitions).map(partition).collect(),
    };
    fetch::Response { responses: (0..topics).map(topic).collect(), ..Default::default() }
}

fn metadata_response(topics: usize, partitions: i32) -> metadata::Response {
    let partition = |partition_index| metadata::MetadataResponsePartition {
        partition_index,
        leader_id: 1,
        replica_nodes: vec![1],
        isr_nodes: vec![1],
        ..Default::default()
    };
    let topic = |i| metadata::MetadataResponseTopic {
        name: Some(topic(i)),
        topic_id: id(i),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    let broker = metadata::MetadataResponseBroker {
        node_id: 1,
        host: "broker.example.org".into(),
        port: 9092,
        ..Default::default()
    };
    metadata::Response {
        brokers: vec![broker],
        topics: (0..topics).map(topic).collect(),
        ..Default::default()
    }
}
