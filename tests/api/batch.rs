//! Record batches, and what the tests of the data plane send and read.

use crate::broker::Broker;
use bytes::{BufMut, Bytes, BytesMut};
use kelp::messages::{fetch, produce};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::wire::{Str, Uuid};
use kelp::record::batch::{Batch as Stored, Batches};
use kelp::record::unpacked::Unpacked;

/// A time in the past.
pub(crate) const T: i64 = 1_700_000_000_000;

#[derive(Clone)]
pub(crate) struct Batch {
    /// Values, each with its time behind [`T`].
    pub(crate) records: Vec<(i64, String)>,
    pub(crate) attributes: i16,
    /// Id, epoch and first sequence of an idempotent producer.
    pub(crate) producer: (i64, i16, i32),
}

impl Batch {
    pub(crate) fn of(values: &[&str]) -> Self {
        Self {
            records: values.iter().map(|value| (0, value.to_string())).collect(),
            attributes: 0,
            producer: (-1, -1, -1),
        }
    }

    pub(crate) fn at(times: &[i64]) -> Self {
        let records = times.iter().map(|time| (*time, "v".to_string())).collect();
        Self { records, ..Self::of(&[]) }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let first = self.records[0].0;
        let mut rest = BytesMut::new();
        rest.put_i16(self.attributes);
        rest.put_i32(self.records.len() as i32 - 1);
        rest.put_i64(T + first);
        rest.put_i64(T + self.records.iter().map(|(time, _)| *time).max().unwrap());
        rest.put_i64(self.producer.0);
        rest.put_i16(self.producer.1);
        rest.put_i32(self.producer.2);
        rest.put_i32(self.records.len() as i32);
        for (offset_delta, (time, value)) in self.records.iter().enumerate() {
            let mut record = BytesMut::new();
            record.put_u8(0);
            put_varint(&mut record, time - first);
            put_varint(&mut record, offset_delta as i64);
            put_varint(&mut record, -1);
            put_varint(&mut record, value.len() as i64);
            record.put_slice(value.as_bytes());
            put_varint(&mut record, 0);
            put_varint(&mut rest, record.len() as i64);
            rest.put_slice(&record);
        }
        let mut batch = BytesMut::new();
        batch.put_i64(0);
        batch.put_i32(9 + rest.len() as i32);
        batch.put_i32(-1);
        batch.put_i8(2);
        batch.put_u32(crc32c::crc32c(&rest));
        batch.put_slice(&rest);
        batch.freeze()
    }
}

fn put_varint(bytes: &mut BytesMut, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        bytes.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.put_u8(rest as u8);
}

/// `a` and `b` as message sets of magic 0 and 1, at offsets 0 and 1 and of the time [`T`]: Apache
/// Kafka 3.9.2 made them of a batch.
const SETS: [&str; 2] = [
    "00000000000000000000000f51df3a320000ffffffff0000000161\
     00000000000000010000000fc8d66b880000ffffffff0000000162",
    "00000000000000000000001742b4af0201000000018bcfe56800ffffffff0000000161\
     000000000000000100000017dbbdfeb801000000018bcfe56800ffffffff0000000162",
];

/// The message set of `a` and `b` of this magic.
pub(crate) fn message_set(magic: usize) -> Bytes {
    let digits: Vec<u32> = SETS[magic].chars().map(|c| c.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A request to append one batch to partition 0 of a topic.
pub(crate) fn produce(topic: &str, records: Bytes) -> produce::Request {
    produce::Request {
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![produce::TopicProduceData {
            name: Str::from(topic),
            topic_id: Uuid::ZERO,
            partition_data: vec![produce::PartitionProduceData {
                index: 0,
                records: Some(records),
            }],
        }],
        ..Default::default()
    }
}

/// A request for all from an offset of partition 0 on, without waiting.
pub(crate) fn fetch(topic: &str, offset: i64) -> fetch::Request {
    fetch::Request {
        max_bytes: 1 << 20,
        topics: vec![fetch::FetchTopic {
            topic: Str::from(topic),
            partitions: vec![fetch::FetchPartition {
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// The offsets and values in what a fetch brought.
pub(crate) fn read(data: &fetch::PartitionData) -> Vec<(i64, String)> {
    let slices = data.records.clone().unwrap().0;
    let mut all = Vec::new();
    for batch in Batches::new(slices) {
        assert_eq!(batch.checksum(), batch.header.crc);
        for record in &Unpacked::new(&batch).unwrap() {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
            all.push((record.offset, value));
        }
    }
    all
}

impl Broker {
    /// Appends one batch to partition 0.
    pub(crate) fn produce(&self, topic: &str, batch: &Batch) -> produce::PartitionProduceResponse {
        let request = produce(topic, batch.encode());
        let mut answer: produce::Response = self.ask(ApiKey::Produce, 12, &request);
        answer.responses.remove(0).partition_responses.remove(0)
    }

    /// The batches of partition 0.
    pub(crate) fn batches(&self, topic: &str) -> Vec<Stored> {
        let mut answer: fetch::Response = self.ask(ApiKey::Fetch, 12, &fetch(topic, 0));
        let records = answer.responses[0].partitions.remove(0).records;
        let batches: Vec<_> = Batches::new(records.unwrap().0).collect();
        assert!(batches.iter().all(|batch| batch.checksum() == batch.header.crc));
        batches
    }

    /// All that is visible in partition 0.
    pub(crate) fn records(&self, topic: &str) -> Vec<(i64, String)> {
        let answer: fetch::Response = self.ask(ApiKey::Fetch, 12, &fetch(topic, 0));
        read(&answer.responses[0].partitions[0])
    }

    pub(crate) fn topic_id(&self, name: &str) -> Uuid {
        use kelp::messages::metadata;
        let asked =
            metadata::MetadataRequestTopic { name: Some(name.into()), topic_id: Uuid::ZERO };
        let request = metadata::Request { topics: Some(vec![asked]), ..Default::default() };
        let answer: metadata::Response = self.ask(ApiKey::Metadata, 12, &request);
        answer.topics[0].topic_id
    }
}
