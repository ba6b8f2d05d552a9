//! Small objects, one behind another in files that only grow.
//!
//! ```text
//! DIR/packs/N   N = 0000000000, 0000000001, …; objects are added to the last one
//!
//! entry:  header's checksum u32 │ body's checksum u32 │ kind u8 │ key's bytes u16 │ body's bytes u32 │ key │ body
//! ```
//!
//! A file for each object costs more than the object: its name, its inode, and on ext4 a look past
//! every inode that was lately freed. An entry costs one write.
//!
//! An entry is there when it is whole: what a crash left half written is the end of its pack. A
//! deletion is an entry too. Packs go in their order, the oldest first, when half of all bytes are of
//! deleted objects; what lives in the oldest is written again at the end. So a deletion is never
//! forgotten before the object is.

use super::disk::Disk;
use crate::store::objects::MAX_KEY_BYTES;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// How much of a pack is read at a time when its entries are looked through.
const SCAN_BYTES: usize = 64 << 10;

/// Where an object lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pack: u64,
    /// Of the object's first byte.
    offset: u64,
    len: u32,
    /// Of the whole entry.
    entry_bytes: u32,
}

pub(super) struct Packs {
    folder: PathBuf,
    disk: Arc<Disk>,
    /// A pack of so many bytes gets no more entries.
    pack_bytes: u64,
    packs: BTreeMap<u64, Pack>,
    /// Of all entries.
    bytes: u64,
    /// Of the entries of objects that are there.
    live_bytes: u64,
}

struct Pack {
    file: Arc<File>,
    /// Bytes of whole entries.
    bytes: u64,
    /// Something that is no entry may lie behind the entries.
    is_broken: bool,
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Object = 1,
    Deletion = 2,
}

struct Header {
    body_checksum: u32,
    kind: Kind,
    key_bytes: u16,
    body_bytes: u32,
}

impl Header {
    const BYTES: usize = 15;

    /// The header with its key behind it.
    fn encode(&self, key: &str) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(self.body_checksum.to_be_bytes());
        bytes.push(self.kind as u8);
        bytes.extend(self.key_bytes.to_be_bytes());
        bytes.extend(self.body_bytes.to_be_bytes());
        bytes.extend(key.as_bytes());
        let checksum = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// A header and its key, if `bytes` begin with them.
    fn decode(bytes: &[u8]) -> Option<(Self, &str)> {
        let (checksum, rest) = bytes.split_first_chunk()?;
        let (body_checksum, fields) = rest.split_first_chunk()?;
        let (&kind, fields) = fields.split_first()?;
        let (key_bytes, fields) = fields.split_first_chunk()?;
        let (body_bytes, fields) = fields.split_first_chunk()?;
        let header = Self {
            body_checksum: u32::from_be_bytes(*body_checksum),
            kind: match kind {
                1 => Kind::Object,
                2 => Kind::Deletion,
                _ => return None,
            },
            key_bytes: u16::from_be_bytes(*key_bytes),
            body_bytes: u32::from_be_bytes(*body_bytes),
        };
        let key = fields.get(..header.key_bytes.into())?;
        let is_whole =
            crc32c::crc32c(&rest[..Self::BYTES - 4 + key.len()]) == u32::from_be_bytes(*checksum);
        let key = std::str::from_utf8(key).ok()?;
        is_whole.then_some((header, key))
    }
}

/// An entry as it is found in a pack.
struct Entry {
    kind: Kind,
    key: String,
    place: Place,
    body_checksum: u32,
}

impl Packs {
    /// Reads what there is; tells `found` the place of each object and `None` for each deleted one, in the order
    /// in which they were put.
    pub(super) fn open(
        folder: PathBuf,
        disk: Arc<Disk>,
        pack_bytes: u64,
        mut found: impl FnMut(&str, Option<Place>),
    ) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let mut all =
            Self { folder, disk, pack_bytes, packs: BTreeMap::new(), bytes: 0, live_bytes: 0 };
        for &number in &numbers {
            let file = Arc::new(File::options().read(true).append(true).open(all.path(number))?);
            let mut entries = Entries::new(number, file.clone())?;
            while let Some(entry) = entries.next()? {
                // The end of a process can only have cut the last entry short.
                let may_be_half = Some(&number) == numbers.last() || all.disk.is_waited_for();
                if may_be_half && !entry.is_whole(&file)? {
                    break;
                }
                all.bytes += u64::from(entry.place.entry_bytes);
                match entry.kind {
                    Kind::Object => found(&entry.key, Some(entry.place)),
                    Kind::Deletion => found(&entry.key, None),
                }
                entries.taken = entries.position;
            }
            // A process may have died before that, and who finds an object builds on it.
            all.disk.sync(&file)?;
            let (bytes, is_broken) = (entries.taken, entries.taken < entries.end);
            if is_broken {
                tracing::info!(pack = number, bytes, "a pack ends in the middle of an entry");
            }
            all.packs.insert(number, Pack { file, bytes, is_broken });
        }
        Ok(all)
    }

    /// Counts an object as there, or as gone.
    pub(super) fn count(&mut self, place: Place, is_there: bool) {
        let bytes = u64::from(place.entry_bytes);
        self.live_bytes = if is_there { self.live_bytes + bytes } else { self.live_bytes - bytes };
    }

    /// Adds an object. It is durable once the file that comes along is synchronized, if that is asked of the
    /// directory.
    pub(super) fn put(&mut self, key: &str, parts: &[Bytes]) -> io::Result<(Place, Arc<File>)> {
        let body_checksum = parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part));
        let len = parts.iter().map(Bytes::len).sum::<usize>();
        let body_bytes = u32::try_from(len).map_err(io::Error::other)?;
        let header =
            Header { body_checksum, kind: Kind::Object, key_bytes: bytes_of(key)?, body_bytes };
        let head = header.encode(key);
        let entry_bytes = u32::try_from(head.len() + len).map_err(io::Error::other)?;
        let (pack, at, file) = self.append(&head, parts)?;
        let head_bytes = head.len() as u64;
        let place = Place { pack, offset: at + head_bytes, len: body_bytes, entry_bytes };
        self.count(place, true);
        Ok((place, file))
    }

    /// Notes that objects are gone, of which `places` were theirs.
    pub(super) fn delete(&mut self, keys: &[(String, Place)]) -> io::Result<()> {
        let mut entries = Vec::new();
        for (key, place) in keys {
            let header = Header {
                body_checksum: 0,
                kind: Kind::Deletion,
                key_bytes: bytes_of(key)?,
                body_bytes: 0,
            };
            entries.extend(header.encode(key));
            self.count(*place, false);
        }
        match entries.is_empty() {
            true => Ok(()),
            false => self.append(&entries, &[]).map(drop),
        }
    }

    /// Writes behind the last entry; gives the pack, where that was, and the pack's file.
    fn append(&mut self, head: &[u8], parts: &[Bytes]) -> io::Result<(u64, u64, Arc<File>)> {
        let (number, pack) = self.last()?;
        let at = pack.bytes;
        let mut slices = vec![IoSlice::new(head)];
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        let len = head.len() + parts.iter().map(Bytes::len).sum::<usize>();
        if let Err(error) = write_all(&pack.file, &mut slices) {
            // So that a disk that is full for long does not end with a file for each try.
            pack.is_broken = pack.file.set_len(at).is_err();
            return Err(error);
        }
        pack.bytes += len as u64;
        let file = pack.file.clone();
        self.bytes += len as u64;
        Ok((number, at, file))
    }

    /// The pack that takes entries.
    fn last(&mut self) -> io::Result<(u64, &mut Pack)> {
        let last = self.packs.last_key_value();
        let takes = |pack: &Pack| !pack.is_broken && pack.bytes < self.pack_bytes;
        let number = match last {
            Some((&number, pack)) if takes(pack) => number,
            _ => {
                let number = last.map_or(0, |(number, _)| number + 1);
                let file = File::options()
                    .read(true)
                    .append(true)
                    .create_new(true)
                    .open(self.path(number))?;
                self.disk.sync_folder(&self.folder)?;
                self.packs
                    .insert(number, Pack { file: Arc::new(file), bytes: 0, is_broken: false });
                number
            }
        };
        match self.packs.get_mut(&number) {
            Some(pack) => Ok((number, pack)),
            None => unreachable!("it was found or made"),
        }
    }

    /// The file of an object that is there, to be read without the lock.
    pub(super) fn file(&self, place: Place) -> Option<Arc<File>> {
        self.packs.get(&place.pack).map(|pack| pack.file.clone())
    }

    /// The oldest pack, if it is time that it goes.
    pub(super) fn to_clean(&self) -> Option<Cleaning> {
        let (&number, pack) = self.packs.first_key_value()?;
        let is_last = self.packs.len() == 1;
        let has_waste = self.bytes > 2 * self.live_bytes + self.pack_bytes;
        (has_waste && !is_last).then(|| Cleaning {
            number,
            file: pack.file.clone(),
            end: pack.bytes,
        })
    }

    /// Takes a pack away of which nothing lives.
    pub(super) fn remove(&mut self, cleaning: &Cleaning) -> io::Result<()> {
        fs::remove_file(self.path(cleaning.number))?;
        if let Some(pack) = self.packs.remove(&cleaning.number) {
            self.bytes -= pack.bytes;
        }
        Ok(())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:010}"))
    }
}

/// A pack whose living objects are to be written anew.
pub(super) struct Cleaning {
    number: u64,
    file: Arc<File>,
    end: u64,
}

impl Cleaning {
    /// Gives each object that was put into the pack to `each`, in order, with its place.
    pub(super) fn objects(
        &self,
        mut each: impl FnMut(&str, Place) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut entries = Entries::new(self.number, self.file.clone())?;
        entries.end = self.end;
        while let Some(entry) = entries.next()? {
            if entry.kind == Kind::Object {
                each(&entry.key, entry.place)?;
            }
        }
        Ok(())
    }

    pub(super) fn read(&self, place: Place) -> io::Result<Bytes> {
        read(&self.file, place, 0, u64::MAX)
    }
}

/// Reads a range of an object.
pub(super) fn read(file: &File, place: Place, offset: u64, len: u64) -> io::Result<Bytes> {
    let len = len.min(u64::from(place.len).saturating_sub(offset));
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    if len > 0 {
        file.read_exact_at(&mut bytes, place.offset + offset)?;
    }
    Ok(bytes.into())
}

/// The entries of a pack, up to the first that is none.
struct Entries {
    pack: u64,
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    buffer_at: u64,
    position: u64,
    end: u64,
    /// Up to where entries were taken for whole.
    taken: u64,
}

impl Entries {
    fn new(pack: u64, file: Arc<File>) -> io::Result<Self> {
        let end = file.metadata()?.len();
        Ok(Self { pack, file, buffer: Vec::new(), buffer_at: 0, position: 0, end, taken: 0 })
    }

    fn next(&mut self) -> io::Result<Option<Entry>> {
        let (pack, position, end) = (self.pack, self.position, self.end);
        let longest = (Header::BYTES + MAX_KEY_BYTES) as u64;
        let bytes = self.bytes(end.saturating_sub(position).min(longest) as usize)?;
        let Some((header, key)) = Header::decode(bytes) else { return Ok(None) };
        let head_bytes = (Header::BYTES + key.len()) as u64;
        let entry_bytes = head_bytes + u64::from(header.body_bytes);
        if position + entry_bytes > end {
            return Ok(None);
        }
        let place = Place {
            pack,
            offset: position + head_bytes,
            len: header.body_bytes,
            entry_bytes: u32::try_from(entry_bytes).map_err(io::Error::other)?,
        };
        let Header { kind, body_checksum, .. } = header;
        let entry = Entry { kind, key: key.to_owned(), place, body_checksum };
        self.position += entry_bytes;
        Ok(Some(entry))
    }

    /// The `len` bytes at the position.
    fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        let buffered = self.buffer_at..self.buffer_at + self.buffer.len() as u64;
        if !(buffered.start <= self.position && self.position + len as u64 <= buffered.end) {
            let rest = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
            self.buffer.resize(SCAN_BYTES.min(rest), 0);
            self.file.read_exact_at(&mut self.buffer, self.position)?;
            self.buffer_at = self.position;
        }
        let start = (self.position - self.buffer_at) as usize;
        Ok(&self.buffer[start..start + len])
    }
}

impl Entry {
    fn is_whole(&self, file: &File) -> io::Result<bool> {
        Ok(crc32c::crc32c(&read(file, self.place, 0, u64::MAX)?) == self.body_checksum)
    }
}

fn bytes_of(key: &str) -> io::Result<u16> {
    u16::try_from(key.len()).map_err(io::Error::other)
}

/// Writes all of the slices where the file ends.
pub(super) fn write_all(mut file: &File, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut slices = slices;
    // Slices of no bytes would look like a disk that takes none.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
