//! The bytes of a checkpoint: the whole state before one place in the journal.
//!
//! ```text
//! header (see format), then
//!  epoch u32, seq u64       the first place that is not in segments
//!  partitions u32, each:
//!    topic id 16 bytes, partition i32, log start i64, log end i64, clean end i64
//!    epochs u32, each: epoch i32, start offset i64
//!    producers u32, each: id i64, epoch i16, batches u8, each:
//!      base sequence i32, last sequence i32, base offset i64, last offset i64, max timestamp i64
//!    entries u32, each: base offset i64, end offset i64, segment's epoch u32 and count u64,
//!      index offset u64, index length u32, bytes u64, first timestamp i64, largest timestamp i64
//!  version 2: segments u32 that refer to the journal, each: epoch u32 and count u64, bytes u64 of the
//!    objects that it refers to, spans of them u32, each: epoch u32, first seq u64, end seq u64
//! ```

use super::format::{self, HEADER_BYTES, Header, Kind, Malformed};
use super::keys::{Name, Position};
use super::referring::{Referred, Span};
use super::state::{Entry, Image, Partition};
use crate::protocol::wire::Uuid;
use crate::store::producers::{BATCHES_KEPT, Producer, ProducerBatch, Producers};
use crate::store::{EpochStart, PartitionId};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn encode(name: Name, nonce: u64, image: &Image) -> Bytes {
    let mut out = BytesMut::new();
    out.put_bytes(0, HEADER_BYTES);
    out.put_u32(image.position.epoch.cast_unsigned());
    out.put_u64(image.position.seq);
    out.put_u32(image.partitions.len() as u32);
    for (id, partition) in &image.partitions {
        out.put_slice(&id.topic.0);
        out.put_i32(id.partition);
        put_partition(&mut out, partition);
    }
    let mut header = Header::named(Kind::Checkpoint, name, nonce);
    if put_referred(&mut out, image) {
        header.version = format::REFERRING;
    }
    let body = &out[HEADER_BYTES..];
    let header = header.encode(body);
    out[..HEADER_BYTES].copy_from_slice(&header);
    out.freeze()
}

/// What the segments refer to that an entry names; false if that is nothing.
fn put_referred(out: &mut BytesMut, image: &Image) -> bool {
    let named = image.names();
    let referred: Vec<_> = image.referred.iter().filter(|(name, _)| named.contains(name)).collect();
    if referred.is_empty() {
        return false;
    }
    out.put_u32(referred.len() as u32);
    for (name, Referred { bytes, objects }) in referred {
        out.put_u32(name.epoch.cast_unsigned());
        out.put_u64(name.count);
        out.put_u64(*bytes);
        out.put_u32(objects.spans().len() as u32);
        for Span { epoch, seqs } in objects.spans() {
            out.put_u32(epoch.cast_unsigned());
            out.put_u64(seqs.start);
            out.put_u64(seqs.end);
        }
    }
    true
}

fn put_partition(out: &mut BytesMut, partition: &Partition) {
    out.put_i64(partition.log_start_offset);
    out.put_i64(partition.log_end_offset);
    out.put_i64(partition.clean_end_offset);
    out.put_u32(partition.epochs.len() as u32);
    for epoch in &partition.epochs {
        out.put_i32(epoch.epoch);
        out.put_i64(epoch.start_offset);
    }
    out.put_u32(partition.producers.len() as u32);
    for (id, producer) in partition.producers.iter() {
        out.put_i64(id);
        out.put_i16(producer.epoch);
        out.put_u8(producer.batches.len() as u8);
        for batch in &producer.batches {
            out.put_i32(batch.base_sequence);
            out.put_i32(batch.last_sequence);
            out.put_i64(batch.base_offset);
            out.put_i64(batch.last_offset);
            out.put_i64(batch.max_timestamp);
        }
    }
    out.put_u32(partition.entries.len() as u32);
    for entry in partition.entries.iter() {
        out.put_i64(entry.base_offset);
        out.put_i64(entry.end_offset);
        out.put_u32(entry.name.epoch.cast_unsigned());
        out.put_u64(entry.name.count);
        out.put_u64(entry.index_offset);
        out.put_u32(entry.index_length);
        out.put_u64(entry.bytes);
        out.put_i64(entry.first_timestamp);
        out.put_i64(entry.max_timestamp);
    }
}

pub(super) fn decode(object: &Bytes) -> Result<(Header, Image), Malformed> {
    let (header, body) = format::open(object)?;
    if header.kind != Kind::Checkpoint {
        return Err(Malformed("it is no checkpoint"));
    }
    let mut b = &body[..];
    let mut image = Image {
        position: Position { epoch: epoch(&mut b)?, seq: b.try_get_u64()? },
        ..Image::default()
    };
    for _ in 0..b.try_get_u32()? {
        let mut topic = Uuid::ZERO;
        b.try_copy_to_slice(&mut topic.0)?;
        let id = PartitionId { topic, partition: b.try_get_i32()? };
        image.partitions.insert(id, take_partition(&mut b)?);
    }
    if header.version == format::REFERRING {
        image.referred = take_referred(&mut b, &image.names())?;
    }
    if b.has_remaining() {
        return Err(Malformed("a checkpoint that goes on"));
    }
    Ok((header, image))
}

fn take_partition(b: &mut &[u8]) -> Result<Partition, Malformed> {
    let mut partition = Partition {
        log_start_offset: b.try_get_i64()?,
        log_end_offset: b.try_get_i64()?,
        clean_end_offset: b.try_get_i64()?,
        ..Partition::default()
    };
    if !(0..=partition.log_end_offset).contains(&partition.log_start_offset) {
        return Err(Malformed("a log that begins behind its end"));
    }
    for _ in 0..b.try_get_u32()? {
        partition
            .epochs
            .push(EpochStart { epoch: b.try_get_i32()?, start_offset: b.try_get_i64()? });
    }
    take_producers(b, &mut partition.producers)?;
    let mut entries = Vec::new();
    for _ in 0..b.try_get_u32()? {
        let entry = Entry {
            base_offset: b.try_get_i64()?,
            end_offset: b.try_get_i64()?,
            name: Name { epoch: epoch(b)?, count: b.try_get_u64()? },
            index_offset: b.try_get_u64()?,
            index_length: b.try_get_u32()?,
            bytes: b.try_get_u64()?,
            first_timestamp: b.try_get_i64()?,
            max_timestamp: b.try_get_i64()?,
        };
        let before = entries.last().map_or(0, |last: &Entry| last.end_offset);
        if entry.base_offset < before || entry.end_offset <= entry.base_offset {
            return Err(Malformed("ranges that overlap"));
        }
        entries.push(entry);
    }
    partition.entries = entries.into();
    Ok(partition)
}

fn take_referred(
    b: &mut &[u8],
    named: &BTreeSet<Name>,
) -> Result<BTreeMap<Name, Referred>, Malformed> {
    let mut referred = BTreeMap::new();
    for _ in 0..b.try_get_u32()? {
        let name = Name { epoch: epoch(b)?, count: b.try_get_u64()? };
        let bytes = b.try_get_u64()?;
        let mut spans = Vec::new();
        for _ in 0..b.try_get_u32()? {
            let span = Span { epoch: epoch(b)?, seqs: b.try_get_u64()?..b.try_get_u64()? };
            if span.seqs.is_empty() {
                return Err(Malformed("a span of nothing"));
            }
            spans.push(span);
        }
        let objects = spans.iter().cloned().collect();
        let of = Referred { bytes, objects };
        let is_in_order = of.objects.spans() == spans && !spans.is_empty();
        if !is_in_order || !named.contains(&name) || referred.insert(name, of).is_some() {
            return Err(Malformed("a segment that refers to what cannot be"));
        }
    }
    Ok(referred)
}

fn take_producers(b: &mut &[u8], producers: &mut Producers) -> Result<(), Malformed> {
    for _ in 0..b.try_get_u32()? {
        let id = b.try_get_i64()?;
        let mut producer = Producer { epoch: b.try_get_i16()?, ..Producer::default() };
        let count = usize::from(b.try_get_u8()?);
        if count > BATCHES_KEPT {
            return Err(Malformed("a producer with too many batches"));
        }
        for _ in 0..count {
            producer.batches.push_back(ProducerBatch {
                base_sequence: b.try_get_i32()?,
                last_sequence: b.try_get_i32()?,
                base_offset: b.try_get_i64()?,
                last_offset: b.try_get_i64()?,
                max_timestamp: b.try_get_i64()?,
            });
        }
        producers.insert(id, producer);
    }
    Ok(())
}

fn epoch(b: &mut &[u8]) -> Result<i32, Malformed> {
    i32::try_from(b.try_get_u32()?).map_err(|_| Malformed("a negative epoch"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::samples::{batches, frame, partition};

    fn image() -> Image {
        let mut image = Image { position: Position { epoch: 4, seq: 9 }, ..Image::default() };
        for (epoch, base) in [(1, 0), (3, 20)] {
            assert!(image.apply(&frame(epoch, batches(base, &[5, 5, 10]))));
        }
        let entry = |base_offset, end_offset| Entry {
            base_offset,
            end_offset,
            name: Name { epoch: 3, count: 8 },
            index_offset: 77,
            index_length: 99,
            bytes: 44,
            first_timestamp: 3,
            max_timestamp: 5,
        };
        let log = image.partitions.get_mut(&partition(0)).unwrap();
        log.clean_end_offset = 10;
        log.entries = vec![entry(0, 10), entry(20, 30)].into();
        image.partitions.insert(partition(9), Partition::default());
        image
    }

    /// The same with a segment that refers to the journal.
    fn referring() -> Image {
        let sizes = [((2, 9), 100), ((3, 0), 200), ((3, 1), 300), ((3, 5), 400)];
        let at = |((epoch, seq), bytes)| (Position { epoch, seq }, bytes);
        let of = Referred::from(BTreeMap::from_iter(sizes.map(at)));
        assert_eq!((of.bytes, of.objects.spans().len()), (1000, 3));
        Image { referred: [(Name { epoch: 3, count: 8 }, of)].into(), ..image() }
    }

    #[test]
    fn a_checkpoint_reads_back_whole() {
        let name = Name { epoch: 4, count: 2 };
        let bytes = encode(name, 6, &image());
        let (header, read) = decode(&bytes).unwrap();
        assert_eq!(header, Header::named(Kind::Checkpoint, name, 6));
        assert_eq!(read, image());

        let mut image = referring();
        let (header, read) = decode(&encode(name, 6, &image)).unwrap();
        assert_eq!((header.version, read), (format::REFERRING, image.clone()));
        // What left the list is still to be deleted, but of no concern to who opens.
        let of = image.referred[&Name { epoch: 3, count: 8 }].clone();
        image.referred.insert(Name { epoch: 3, count: 7 }, of);
        assert_eq!(decode(&encode(name, 6, &image)).unwrap().1, referring());
        image.partitions.clear();
        assert_eq!(decode(&encode(name, 6, &image)).unwrap().0.version, 1);
    }

    /// As it stands in `docs/object-log.md`: one of a store that never referred to anything.
    #[test]
    fn a_checkpoint_of_the_first_version_is_read() {
        let mut body = BytesMut::new();
        // The position, and one partition.
        body.put_u32(4);
        body.put_u64(9);
        body.put_u32(1);
        body.put_slice(&[7; 16]);
        body.put_i32(0);
        [5, 30, 10].into_iter().for_each(|offset| body.put_i64(offset));
        // One leader epoch, no producer, one entry.
        body.put_u32(1);
        body.put_i32(3);
        body.put_i64(0);
        body.put_u32(0);
        body.put_u32(1);
        body.put_i64(0);
        body.put_i64(30);
        body.put_u32(3);
        body.put_u64(8);
        body.put_u64(77);
        body.put_u32(99);
        body.put_u64(44);
        body.put_i64(3);
        body.put_i64(5);
        let mut object = BytesMut::from(&b"KELP\0\x01\0\x04"[..]);
        object.put_u32(4);
        object.put_u64(2);
        object.put_u64(6);
        object.put_u64(body.len() as u64);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&object), &body);
        object.put_u32(crc);
        object.put_slice(&body);
        let object = object.freeze();

        let (header, read) = decode(&object).unwrap();
        assert_eq!(read.position, Position { epoch: 4, seq: 9 });
        let log = &read.partitions[&partition(0)];
        assert_eq!((log.log_start_offset, log.log_end_offset, log.clean_end_offset), (5, 30, 10));
        assert_eq!(log.epochs, [EpochStart { epoch: 3, start_offset: 0 }]);
        let name = Name { epoch: 3, count: 8 };
        assert_eq!((log.entries[0].name, log.entries[0].index_offset), (name, 77));
        assert_eq!((log.entries[0].bytes, log.entries[0].max_timestamp), (44, 5));
        assert!(read.referred.is_empty());
        let again = encode(Name { epoch: 4, count: 2 }, header.nonce, &read);
        assert_eq!(again, object, "and so it is written as long as nothing is referred to");
    }

    #[test]
    fn cut_and_changed_bodies_are_refused_behind_a_right_checksum_and_never_panic() {
        let bytes = encode(Name::default(), 6, &referring());
        let body = &bytes[HEADER_BYTES..];
        let sealed = |body: &[u8]| -> Bytes {
            let mut header = Header::named(Kind::Checkpoint, Name::default(), 6);
            header.version = format::REFERRING;
            [&header.encode(body)[..], body].concat().into()
        };
        for len in 0..body.len() {
            assert!(decode(&sealed(&body[..len])).is_err(), "cut at {len}");
        }
        for at in 0..body.len() {
            let mut changed = body.to_vec();
            changed[at] = 0xff;
            let _ = decode(&sealed(&changed));
        }
    }
}
