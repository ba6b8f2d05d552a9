//! The bytes of the metadata log's objects.
//!
//! ```text
//! header (see the object log's format) with the seq as its number, then
//!
//! command: number u64, kind u8, then
//!   1 create topic            topic
//!   2 delete topic            id 16 bytes
//!   3 allocate producer ids   count u32
//!   4 set cluster id          text
//!   5 alter topic             id 16 bytes, partitions i32 (0: as many as before), changes
//!   6 alter broker            text (empty: all brokers), changes
//!
//! snapshot: next producer id i64, forgotten u64, cluster id text (empty: none),
//!   processes u32, each: nonce u64, number u64, seq u64, outcome u8, first producer id i64
//!   topics u32, each a topic
//!   brokers u32, each: name text, configs (absent in snapshots from before brokers had any)
//!
//! topic: id 16 bytes, partitions i32, name text, configs
//! configs: u32, each: name text, value text
//! changes: u32, each: name text, is set u8, value text (empty: not set)
//! text: length u32, UTF-8
//! ```
//!
//! All numbers are big-endian. Decoders take any bytes: they answer an error, never panic, and
//! allocate no more than a small multiple of what they were given.

use super::image::{Change, Command, Image, Outcome, Process};
use crate::protocol::wire::Uuid;
use crate::store::objectlog::format::{self, HEADER_BYTES, Header, Kind, Malformed};
use crate::store::topics::{BrokerConfigs, ConfigChanges, Topic, TopicChange, Topics};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(in crate::store::objectlog) type Result<T> = std::result::Result<T, Malformed>;

pub fn encode_command(seq: u64, command: &Command) -> Bytes {
    let mut out = begin();
    out.put_u64(command.number);
    match &command.change {
        Change::CreateTopic(topic) => {
            out.put_u8(1);
            put_topic(&mut out, topic);
        }
        Change::DeleteTopic(id) => {
            out.put_u8(2);
            out.put_slice(&id.0);
        }
        Change::AllocateProducerIds(count) => {
            out.put_u8(3);
            out.put_u32(*count);
        }
        Change::SetClusterId(id) => {
            out.put_u8(4);
            put_text(&mut out, id);
        }
        Change::AlterTopic(id, TopicChange { partitions, configs }) => {
            out.put_u8(5);
            out.put_slice(&id.0);
            out.put_i32(partitions.unwrap_or_default());
            put_changes(&mut out, configs);
        }
        Change::AlterBroker(broker, changes) => {
            out.put_u8(6);
            put_text(&mut out, broker);
            put_changes(&mut out, changes);
        }
    }
    finish(out, Kind::Command, seq, command.nonce)
}

pub fn decode_command(seq: u64, object: &Bytes) -> Result<Command> {
    let (nonce, mut body) = open(Kind::Command, seq, object)?;
    let b = &mut body;
    let number = b.try_get_u64()?;
    let change = match b.try_get_u8()? {
        1 => Change::CreateTopic(take_topic(b)?),
        2 => Change::DeleteTopic(take_id(b)?),
        3 => Change::AllocateProducerIds(b.try_get_u32()?),
        4 => Change::SetClusterId(take_text(b)?),
        5 => {
            let (id, partitions) = (take_id(b)?, b.try_get_i32()?);
            let partitions = Some(partitions).filter(|count| *count != 0);
            Change::AlterTopic(id, TopicChange { partitions, configs: take_changes(b)? })
        }
        6 => Change::AlterBroker(take_text(b)?, take_changes(b)?),
        _ => return Err(Malformed("a command of an unknown kind")),
    };
    end(&body)?;
    Ok(Command { nonce, number, change })
}

/// `nonce` is the writer's. The state is the same whoever writes it.
pub fn encode_snapshot(nonce: u64, image: &Image) -> Bytes {
    let mut out = begin();
    out.put_i64(image.next_producer_id);
    out.put_u64(image.forgotten);
    put_text(&mut out, image.cluster_id.as_deref().unwrap_or_default());
    out.put_u32(image.processes.len() as u32);
    for (nonce, last) in &image.processes {
        out.put_u64(*nonce);
        out.put_u64(last.number);
        out.put_u64(last.seq);
        let (outcome, first) = outcome_code(last.outcome);
        out.put_u8(outcome);
        out.put_i64(first);
    }
    out.put_u32(image.topics.len() as u32);
    for topic in image.topics.iter() {
        put_topic(&mut out, topic);
    }
    out.put_u32(image.broker_configs.len() as u32);
    for (broker, configs) in image.broker_configs.iter() {
        put_text(&mut out, broker);
        put_configs(&mut out, configs);
    }
    finish(out, Kind::Snapshot, image.seq, nonce)
}

pub fn decode_snapshot(seq: u64, object: &Bytes) -> Result<Image> {
    let (_, mut body) = open(Kind::Snapshot, seq, object)?;
    let b = &mut body;
    let mut image = Image { seq, next_producer_id: b.try_get_i64()?, ..Image::default() };
    image.forgotten = b.try_get_u64()?;
    image.cluster_id = Some(take_text(b)?).filter(|id| !id.is_empty());
    for _ in 0..b.try_get_u32()? {
        let nonce = b.try_get_u64()?;
        let (number, seq) = (b.try_get_u64()?, b.try_get_u64()?);
        let outcome = read_outcome(b.try_get_u8()?, b.try_get_i64()?)?;
        image.processes.insert(nonce, Process { number, seq, outcome });
    }
    let mut topics = Topics::default();
    for _ in 0..b.try_get_u32()? {
        topics.insert(take_topic(b)?);
    }
    image.topics = Arc::new(topics);
    if !b.is_empty() {
        let mut brokers = BrokerConfigs::new();
        for _ in 0..b.try_get_u32()? {
            brokers.insert(take_text(b)?, take_configs(b)?);
        }
        image.broker_configs = Arc::new(brokers);
    }
    end(&body)?;
    Ok(image)
}

fn outcome_code(outcome: Outcome) -> (u8, i64) {
    match outcome {
        Outcome::Done => (0, 0),
        Outcome::TopicExists => (1, 0),
        Outcome::UnknownTopic => (2, 0),
        Outcome::ProducerIds(first) => (3, first),
        Outcome::NoProducerIdsLeft => (4, 0),
        Outcome::NotMorePartitions => (5, 0),
    }
}

fn read_outcome(code: u8, first: i64) -> Result<Outcome> {
    match code {
        0 => Ok(Outcome::Done),
        1 => Ok(Outcome::TopicExists),
        2 => Ok(Outcome::UnknownTopic),
        3 => Ok(Outcome::ProducerIds(first)),
        4 => Ok(Outcome::NoProducerIdsLeft),
        5 => Ok(Outcome::NotMorePartitions),
        _ => Err(Malformed("an outcome that is not known")),
    }
}

fn put_topic(out: &mut BytesMut, topic: &Topic) {
    out.put_slice(&topic.id.0);
    out.put_i32(topic.partitions);
    put_text(out, &topic.name);
    put_configs(out, &topic.configs);
}

fn take_topic(b: &mut Bytes) -> Result<Topic> {
    let (id, partitions, name) = (take_id(b)?, b.try_get_i32()?, take_text(b)?.into());
    Ok(Topic { id, name, partitions, configs: take_configs(b)? })
}

fn put_configs(out: &mut BytesMut, configs: &BTreeMap<String, String>) {
    out.put_u32(configs.len() as u32);
    for (name, value) in configs {
        put_text(out, name);
        put_text(out, value);
    }
}

fn take_configs(b: &mut Bytes) -> Result<BTreeMap<String, String>> {
    let mut configs = BTreeMap::new();
    for _ in 0..b.try_get_u32()? {
        configs.insert(take_text(b)?, take_text(b)?);
    }
    Ok(configs)
}

fn put_changes(out: &mut BytesMut, changes: &ConfigChanges) {
    out.put_u32(changes.len() as u32);
    for (name, value) in changes {
        put_text(out, name);
        out.put_u8(value.is_some().into());
        put_text(out, value.as_deref().unwrap_or_default());
    }
}

fn take_changes(b: &mut Bytes) -> Result<ConfigChanges> {
    let mut changes = ConfigChanges::new();
    for _ in 0..b.try_get_u32()? {
        let (name, is_set, value) = (take_text(b)?, b.try_get_u8()?, take_text(b)?);
        changes.insert(name, (is_set != 0).then_some(value));
    }
    Ok(changes)
}

pub(in crate::store::objectlog) fn put_text(out: &mut BytesMut, text: &str) {
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
}

pub(in crate::store::objectlog) fn take_text(b: &mut Bytes) -> Result<String> {
    let len = b.try_get_u32()? as usize;
    if len > b.len() {
        return Err(Malformed("it ends early"));
    }
    String::from_utf8(b.split_to(len).into()).map_err(|_| Malformed("a text that is not UTF-8"))
}

fn take_id(b: &mut Bytes) -> Result<Uuid> {
    let mut id = Uuid::ZERO;
    b.try_copy_to_slice(&mut id.0)?;
    Ok(id)
}

/// A buffer with room for the header.
pub(in crate::store::objectlog) fn begin() -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_BYTES + 256);
    out.put_bytes(0, HEADER_BYTES);
    out
}

pub(in crate::store::objectlog) fn finish(
    mut object: BytesMut,
    kind: Kind,
    number: u64,
    nonce: u64,
) -> Bytes {
    let body = &object[HEADER_BYTES..];
    let header = Header::numbered(kind, number, nonce).encode(body);
    object[..HEADER_BYTES].copy_from_slice(&header);
    object.freeze()
}

/// Takes an object apart that must be of this kind and number: the writer's nonce and the body.
pub(in crate::store::objectlog) fn open(
    kind: Kind,
    number: u64,
    object: &Bytes,
) -> Result<(u64, Bytes)> {
    let (header, body) = format::open(object)?;
    if header != Header::numbered(kind, number, header.nonce) {
        return Err(Malformed("it belongs to another key"));
    }
    Ok((header.nonce, body))
}

pub(in crate::store::objectlog) fn end(rest: &Bytes) -> Result<()> {
    if rest.is_empty() { Ok(()) } else { Err(Malformed("bytes are left over")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> Topic {
        let configs = [("cleanup.policy", "compact"), ("retention.ms", "-1")];
        let configs = configs.map(|(name, value)| (name.to_string(), value.to_string()));
        Topic { id: Uuid([3; 16]), name: "clicks".into(), partitions: 12, configs: configs.into() }
    }

    fn config_changes() -> ConfigChanges {
        [("retention.ms".into(), None), ("segment.ms".into(), Some("60000".into()))].into()
    }

    fn commands() -> Vec<Command> {
        let changes = [
            Change::CreateTopic(topic()),
            Change::DeleteTopic(Uuid([9; 16])),
            Change::AllocateProducerIds(1_000),
            Change::SetClusterId("some-cluster".into()),
            Change::AlterTopic(
                Uuid([3; 16]),
                TopicChange { partitions: Some(13), configs: config_changes() },
            ),
            Change::AlterTopic(Uuid([3; 16]), TopicChange::default()),
            Change::AlterBroker("1".into(), config_changes()),
        ];
        changes.map(|change| Command { nonce: u64::MAX, number: 5, change }).to_vec()
    }

    /// The state after some commands, with a process of each outcome.
    fn image() -> Image {
        let mut image = Image { forgotten: 3, ..Image::default() };
        commands().into_iter().zip(1..).for_each(|(command, nonce)| {
            image.apply(Command { nonce, ..command });
        });
        image.apply(Command { nonce: 9, number: 1, change: Change::CreateTopic(topic()) });
        image
    }

    /// An object with another body, its header right.
    fn with_body(object: &Bytes, body: &[u8]) -> Bytes {
        let (header, ..) = Header::read(object).unwrap();
        let header = header.encode(body);
        [&header, body].concat().into()
    }

    #[test]
    fn a_command_comes_back_as_it_was() {
        for command in commands() {
            let object = encode_command(17, &command);
            assert_eq!(decode_command(17, &object), Ok(command));
        }
    }

    #[test]
    fn a_snapshot_comes_back_as_it_was() {
        let image = image();
        let back = decode_snapshot(image.seq, &encode_snapshot(1, &image)).unwrap();
        assert_eq!(back.processes, image.processes);
        assert_eq!((back.seq, back.forgotten), (8, 3));
        assert_eq!(back.cluster_id.as_deref(), Some("some-cluster"));
        assert_eq!(back.next_producer_id, 1_000);
        assert!(back.topics.iter().eq(image.topics.iter()));
        assert_eq!(back.topics.by_id(Uuid([3; 16])).unwrap().configs.len(), 2);
        assert_eq!(back.broker_configs, image.broker_configs);
        assert_eq!(back.broker_configs["1"]["segment.ms"], "60000");
    }

    /// Before brokers had any, a snapshot ended behind the topics.
    #[test]
    fn a_snapshot_without_configs_of_brokers_is_read() {
        let mut image = image();
        image.broker_configs = Arc::default();
        let object = encode_snapshot(1, &image);
        let body = &object[HEADER_BYTES..object.len() - 4];
        let back = decode_snapshot(image.seq, &with_body(&object, body)).unwrap();
        assert!(back.topics.iter().eq(image.topics.iter()));
        assert!(back.broker_configs.is_empty());
    }

    /// The bytes are kept in stores for years: this fails if they change under the same version.
    #[test]
    fn the_format_is_what_it_was() {
        let delete = Command { nonce: 2, number: 3, change: Change::DeleteTopic(Uuid([0xab; 16])) };
        let object = encode_command(1, &delete);
        let expected = [
            &b"KELP"[..],
            &[0, 1, 0, 5, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 0, 0, 0, 0, 25],
            &object[36..40],
            &[0, 0, 0, 0, 0, 0, 0, 3, 2],
            &[0xab; 16],
        ];
        assert_eq!(object, expected.concat());
    }

    #[test]
    fn an_object_that_was_damaged_or_moved_is_refused() {
        let command = encode_command(17, &commands()[0]);
        let image = image();
        let (snapshot, seq) = (encode_snapshot(1, &image), image.seq);
        for object in [&command, &snapshot] {
            for i in 0..object.len() {
                let mut damaged = object.to_vec();
                damaged[i] ^= 1;
                for wrong in [damaged.into(), object.slice(..i)] {
                    assert!(decode_command(17, &wrong).is_err(), "byte {i}");
                    assert!(decode_snapshot(seq, &wrong).is_err(), "byte {i}");
                }
            }
        }
        let moved = Err(Malformed("it belongs to another key"));
        assert_eq!(decode_command(18, &command), moved);
        assert_eq!(decode_command(seq, &snapshot), moved);
    }

    /// Every byte of a body set to every extreme, and every cut, with a checksum that is right.
    #[test]
    fn no_body_makes_a_decoder_panic_or_allocate_much() {
        let image = image();
        let (snapshot, seq) = (encode_snapshot(1, &image), image.seq);
        // Where one that had no configs of brokers ended.
        let topics_end = snapshot.len() - HEADER_BYTES - 4 - brokers_bytes(&image);
        let objects = commands().into_iter().map(|command| encode_command(17, &command));
        for object in objects.chain([snapshot.clone()]) {
            let body = object.slice(HEADER_BYTES..);
            for i in 0..body.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut changed = body.to_vec();
                    changed[i] = byte;
                    let changed = with_body(&object, &changed);
                    let _ = (decode_command(17, &changed), decode_snapshot(seq, &changed));
                }
                let cut = with_body(&object, &body[..i]);
                assert!(decode_command(17, &cut).is_err(), "cut at {i}");
                let whole = object == snapshot && i == topics_end;
                assert_eq!(decode_snapshot(seq, &cut).is_ok(), whole, "cut at {i}");
            }
        }
    }

    fn brokers_bytes(image: &Image) -> usize {
        let mut out = BytesMut::new();
        for (broker, configs) in image.broker_configs.iter() {
            put_text(&mut out, broker);
            put_configs(&mut out, configs);
        }
        out.len()
    }
}
