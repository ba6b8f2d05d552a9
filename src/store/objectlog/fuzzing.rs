//! What `fuzz/` asks of the decoders of objects: that any bytes are decoded or refused, and that
//! what is decoded is written as it was understood.

use super::format::{self, Commit, Found, Header, Kind, Placed};
use super::keys::Name;
use super::metadata::format as metadata;
use super::segment::Index;
use super::state::Image;
use super::{checkpoint, registration};
use bytes::Bytes;

/// The first byte of `input` chooses what the rest is: the body of an object of some kind, which
/// gets the header and the checksum that a fuzzer would never guess, the index of a range in a
/// segment, or an object with its header.
pub fn object(input: &[u8]) {
    let Some((kind, body)) = input.split_first() else { return };
    let sealed = |kind| sealed(kind, body);
    match kind % 8 {
        0 => journal(&sealed(Kind::Journal)),
        1 => journal(&sealed(Kind::Fence)),
        2 => index(body),
        3 => {
            checkpoint(&sealed(Kind::Checkpoint));
            let head = Header::numbered(Kind::Checkpoint, NUMBER, NONCE);
            checkpoint(&sealed_as(Header { version: format::REFERRING, ..head }, body));
        }
        4 => command(&sealed(Kind::Command)),
        5 => snapshot(&sealed(Kind::Snapshot)),
        6 => registration(&sealed(Kind::Registration)),
        _ => {
            let object = Bytes::copy_from_slice(body);
            journal(&object);
            checkpoint(&object);
            command(&object);
            snapshot(&object);
            registration(&object);
        }
    }
}

const NUMBER: u64 = 9;

const NONCE: u64 = 6;

fn sealed(kind: Kind, body: &[u8]) -> Bytes {
    sealed_as(Header::numbered(kind, NUMBER, NONCE), body)
}

fn sealed_as(header: Header, body: &[u8]) -> Bytes {
    let header = header.encode(body);
    [&header[..], body].concat().into()
}

fn journal(object: &Bytes) {
    let Ok((header, found)) = format::decode_journal(object) else { return };
    match found {
        Found::Frames(commit) => {
            replay(&commit);
            let frames = commit.frames.into_iter().map(|placed| placed.frame).collect();
            let again = format::encode_journal(header.position(), header.nonce, frames);
            assert_eq!(again.parts.concat(), *object);
            assert_eq!(again.bytes, object.len() as u64);
        }
        Found::Fence(fence) => {
            let again = fence.encode(header.position(), header.nonce);
            let Ok((_, Found::Fence(read))) = format::decode_journal(&again) else {
                panic!("{fence:?} is not read back")
            };
            assert_eq!(read, fence);
        }
    }
}

/// The state that the frames lead to is one that a checkpoint can hold.
fn replay(commit: &Commit) {
    let mut image = Image::default();
    let mut stored = commit.stored.iter();
    for Placed { frame, offset, length } in &commit.frames {
        image.apply(frame);
        assert_eq!(*length, frame.len() as u64);
        let of_frame = stored.by_ref().take(frame.batches().len());
        assert_eq!(*length, of_frame.map(|batch| batch.len() as u64).sum::<u64>());
        assert!(*offset >= format::HEADER_BYTES as u64);
    }
    assert!(stored.next().is_none());
    let bytes = checkpoint::encode(Name::default(), NONCE, &image);
    assert_eq!(checkpoint::decode(&bytes).unwrap().1, image);
}

fn checkpoint(object: &Bytes) {
    let Ok((header, mut image)) = checkpoint::decode(object) else { return };
    let name = Name { epoch: header.epoch, count: header.number };
    let again = checkpoint::encode(name, header.nonce, &image);
    let (read, same) = checkpoint::decode(&again).unwrap();
    assert_eq!((read.epoch, read.number, read.nonce), (header.epoch, header.number, header.nonce));
    assert_eq!(same, image);
    image.partitions.values_mut().for_each(|p| drop(p.drop_entries(p.log_start_offset)));
}

fn command(object: &Bytes) {
    let Ok(command) = metadata::decode_command(NUMBER, object) else { return };
    let again = metadata::encode_command(NUMBER, &command);
    assert_eq!(metadata::decode_command(NUMBER, &again).as_ref(), Ok(&command));
    super::metadata::image::Image::default().apply(command);
}

fn snapshot(object: &Bytes) {
    let Ok(image) = metadata::decode_snapshot(NUMBER, object) else { return };
    let again = metadata::encode_snapshot(NONCE, &image);
    let read = metadata::decode_snapshot(NUMBER, &again).unwrap();
    assert_eq!(metadata::encode_snapshot(NONCE, &read), again);
}

fn registration(object: &Bytes) {
    let Ok(owner) = registration::decode(NUMBER, object) else { return };
    assert!(owner.host.len() + owner.address.len() < object.len());
}

/// The rest is an index without its checksum.
fn index(body: &[u8]) {
    let crc = crc32c::crc32c(body).to_be_bytes();
    let bytes = [body, &crc].concat();
    let Ok(index) = Index::decode(&bytes) else { return };
    assert_eq!(index.encode(), bytes);
    for offset in [i64::MIN, index.base_offset, index.end_offset, i64::MAX] {
        let chunk = index.chunk_of(offset);
        let row = index.row(chunk);
        assert!(row.contains(&chunk));
        let _ = index.batches(&index.chunks[row], &Bytes::copy_from_slice(body));
        assert!(index.chunks[chunk].base_offset < index.end_of(chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fence::Fence;
    use super::super::keys::Position;
    use super::super::log::FramePlace;
    use super::super::metadata::image::{Change, Command};
    use super::super::samples::{batches, flat, frame, partition};
    use super::super::segment::Builder;
    use super::*;
    use crate::protocol::wire::Uuid;
    use crate::store::Owner;
    use crate::store::topics::Topic;
    use std::fs;

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        let put = |name: &str, kind: u8, bytes: &[u8]| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/objects");
            fs::create_dir_all(folder).unwrap();
            let input = [&[kind], bytes].concat();
            object(&input);
            fs::write(format!("{folder}/{name}"), input).unwrap();
        };
        let body = |object: &Bytes| object.slice(format::HEADER_BYTES..);
        let at = Header::numbered(Kind::Journal, NUMBER, NONCE).position();

        let frames = || vec![frame(1, batches(0, &[2])), frame(2, batches(2, &[1, 3]))];
        let journal = format::encode_journal(at, NONCE, frames());
        let whole = flat(&journal.parts);
        put("journal", 0, &body(&whole));
        put("whole", 7, &whole);

        let owner = Owner { address: "a:1".into(), host: "a".into(), pid: 5, started: 6 };
        let fence = Fence { next_epoch: 2, owner };
        put("fence", 1, &body(&fence.encode(at, NONCE)));

        let mut builder = Builder::new(Name::default(), NONCE, 0);
        builder.add(partition(0), &journal.commit.stored);
        let segment = builder.finish();
        let index = segment.parts.last().unwrap();
        put("index", 2, &index[..index.len() - 4]);

        let of_object = &journal.commit.frames[0];
        let frame = FramePlace {
            base_offset: 0,
            end_offset: 2,
            max_timestamp: 0,
            at: Position { epoch: 1, seq: 0 },
            offset: of_object.offset,
            length: of_object.length,
            first: 0,
            count: 1,
        };
        let mut builder = Builder::new(Name::default(), NONCE, 0);
        builder.refer(partition(0), &frame, whole.len() as u64, &journal.commit.stored[..1]);
        let referring = builder.finish();
        let index = referring.parts.last().unwrap();
        put("index-referring", 2, &index[..index.len() - 4]);

        let mut image = Image::default();
        frames().iter().for_each(|frame| assert!(image.apply(frame)));
        let log = image.partitions.get_mut(&partition(0)).unwrap();
        let entries = segment.entries.into_iter().map(|(_, entry)| entry);
        log.entries = entries.collect::<Vec<_>>().into();
        put("checkpoint", 3, &body(&checkpoint::encode(Name::default(), NONCE, &image)));
        let referring = referring.referring.unwrap();
        image.referred.insert(referring.name, referring.referred);
        put("checkpoint-referring", 3, &body(&checkpoint::encode(Name::default(), NONCE, &image)));

        let configs = [("cleanup.policy".to_string(), "compact".to_string())].into();
        let topic = Topic { id: Uuid([3; 16]), name: "t".into(), partitions: 2, configs };
        let changes = [
            ("create", Change::CreateTopic(topic)),
            ("delete", Change::DeleteTopic(Uuid([3; 16]))),
            ("allocate", Change::AllocateProducerIds(7)),
            ("cluster", Change::SetClusterId("c".into())),
        ];
        let mut state = super::super::metadata::image::Image::default();
        for (name, change) in changes {
            let command = Command { nonce: NONCE, number: state.seq + 1, change };
            put(name, 4, &body(&metadata::encode_command(NUMBER, &command)));
            if name != "delete" {
                state.apply(command);
            }
        }
        put("snapshot", 5, &body(&metadata::encode_snapshot(NONCE, &state)));
        // A registration is a fence without the epoch, with longer lengths before its texts.
        let texts = [&[0, 0, 0, 3][..], b"a:1", &[0, 0, 0, 1], b"a"].concat();
        put("registration", 6, &[&[0; 12], &texts[..]].concat());
    }
}
