//! Message sets (magic 0 and 1): what clients older than Kafka 0.11 write and read.
//!
//! ```text
//! offset      i64   in a wrapper of magic 1: counted from the first message (KIP-31)
//! length      i32   of all that follows
//! crc32       u32   of all that follows
//! magic       i8    0 or 1
//! attributes  i8    codec 0–2, timestamp type 3 (magic 1)
//! timestamp   i64   magic 1 only (KIP-32)
//! key         i32 length, bytes; a negative length is null
//! value       i32 length, bytes; a negative length is null
//! ```
//!
//! A set is one message after the other. A compressed set is the value of one message, the
//! *wrapper*, which has the offset of the last one in it; a wrapper holds no wrappers.
//!
//! Source: `LegacyRecord`, `AbstractLegacyRecordBatch`, `MemoryRecordsBuilder` of Apache Kafka 3.9;
//! KIP-31, KIP-32, KAFKA-3160 (the checksum in the header of LZ4 frames).

use super::batch::{LENGTH_OFFSET, MAGIC};
use super::codec::{Codec, MAX_DECOMPRESSED_BYTES, Stream};
use super::compress::Compressor;
use super::records::{Malformed, Source};
use bytes::BufMut;
use std::io;

/// The time of a message that has none, as all of magic 0.
pub const NO_TIMESTAMP: i64 = -1;

/// The bit of the attributes that says LogAppendTime.
const LOG_APPEND_TIME: i8 = 1 << 3;

/// Where the length stands.
const LENGTH_AT: usize = 8;

/// Where what the checksum covers begins: behind it.
const CHECKED_FROM: usize = 16;

/// The shortest message of magic 0, behind its length.
const SHORTEST: i32 = 14;

/// Why a message set cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSet {
    /// The bytes are not those that somebody wrote.
    #[error("{0}")]
    Corrupt(&'static str),
    #[error("{0}")]
    Invalid(&'static str),
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

pub type Result<T, E = BadSet> = std::result::Result<T, E>;

/// One message; key and value are slices of its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub offset: i64,
    pub magic: i8,
    pub attributes: i8,
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

impl<'a> Message<'a> {
    /// Reads what is behind the length. Bytes behind the value are passed over, as Kafka does.
    fn read(offset: i64, bytes: &'a [u8]) -> Result<Self> {
        let (crc, checked) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
        let mut fields = Fields(checked);
        let [magic, attributes] = fields.take()?.map(|byte: u8| byte as i8);
        if !(0..=MAGIC).contains(&magic) {
            return Err(BadSet::Corrupt("unknown magic"));
        }
        if magic == MAGIC {
            return Err(BadSet::Invalid("a message set holds no batch"));
        }
        if crc32(checked) != u32::from_be_bytes(*crc) {
            return Err(BadSet::Corrupt("the checksum of a message is wrong"));
        }
        let timestamp = match magic {
            0 => NO_TIMESTAMP,
            _ => i64::from_be_bytes(fields.take()?),
        };
        let (key, value) = (fields.nullable()?, fields.nullable()?);
        Ok(Self { offset, magic, attributes, timestamp, key, value })
    }

    /// The codec of what is in a wrapper; `None` if the number stands for none.
    pub fn codec(&self) -> Option<Codec> {
        Codec::from_attributes(self.attributes.into())
    }

    /// KIP-32: whether the time is a broker's. A wrapper's is then the time of all in it.
    pub fn is_log_append_time(&self) -> bool {
        self.magic > 0 && self.attributes & LOG_APPEND_TIME != 0
    }

    /// The attributes of a message of this magic; magic 0 has no type of timestamps.
    pub fn attributes(magic: i8, codec: Codec, is_log_append_time: bool) -> i8 {
        let time = if magic > 0 && is_log_append_time { LOG_APPEND_TIME } else { 0 };
        codec as i8 | time
    }

    /// Puts the message behind those that are in `to`.
    pub fn write(&self, to: &mut Vec<u8>) {
        let begin = to.len();
        to.put_i64(self.offset);
        // Length and checksum come in the end.
        to.put_bytes(0, CHECKED_FROM - LENGTH_AT);
        to.put_i8(self.magic);
        to.put_i8(self.attributes);
        if self.magic > 0 {
            to.put_i64(self.timestamp);
        }
        for field in [self.key, self.value] {
            to.put_i32(field.map_or(-1, |bytes| bytes.len() as i32));
            to.put_slice(field.unwrap_or_default());
        }
        seal(&mut to[begin..]);
    }
}

/// Fills in what is known of a message when all of it is there.
fn seal(message: &mut [u8]) {
    let length = (message.len() - LENGTH_OFFSET) as u32;
    let crc = crc32(&message[CHECKED_FROM..]);
    message[LENGTH_AT..LENGTH_OFFSET].copy_from_slice(&length.to_be_bytes());
    message[LENGTH_OFFSET..CHECKED_FROM].copy_from_slice(&crc.to_be_bytes());
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The fields of a message that are not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::BadLength)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn nullable(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let Ok(len) = usize::try_from(i32::from_be_bytes(self.take()?)) else { return Ok(None) };
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed::BadLength)?;
        self.0 = rest;
        Ok(Some(taken))
    }
}

/// Offset and length, which stand before each message.
fn head(bytes: [u8; LENGTH_OFFSET]) -> Result<(i64, usize)> {
    let mut fields = Fields(&bytes);
    let offset = i64::from_be_bytes(fields.take()?);
    match i32::from_be_bytes(fields.take()?) {
        length @ SHORTEST.. => Ok((offset, length as usize)),
        _ => Err(BadSet::Corrupt("the length of a message is too small")),
    }
}

/// The messages of a set that is in memory, up to the first one that is not there to its end. After
/// an error nothing more comes.
#[derive(Clone, Debug)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    pub fn new(set: &'a [u8]) -> Self {
        Self(set)
    }

    /// Bytes of the messages to come.
    pub fn bytes_left(&self) -> usize {
        self.0.len()
    }

    fn read(&mut self) -> Result<Option<Message<'a>>> {
        let Some((bytes, rest)) = self.0.split_first_chunk() else { return Ok(None) };
        let (offset, length) = head(*bytes)?;
        let Some((message, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        self.0 = rest;
        Message::read(offset, message).map(Some)
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.read();
        if !matches!(message, Ok(Some(_))) {
            self.0 = &[];
        }
        message.transpose()
    }
}

/// The messages in a wrapper, decompressed on the way; in memory is one at a time.
pub struct Unwrapped<'a> {
    wrapper: Message<'a>,
    stream: Stream<'a>,
    message: Vec<u8>,
    last_offset: Option<i64>,
}

impl<'a> Unwrapped<'a> {
    pub fn new(wrapper: &Message<'a>) -> Result<Self> {
        Self::with_limit(wrapper, MAX_DECOMPRESSED_BYTES)
    }

    /// Ends with an error when the messages come to more bytes than `limit`.
    pub fn with_limit(wrapper: &Message<'a>, limit: u64) -> Result<Self> {
        let value = wrapper.value.ok_or(BadSet::Invalid("a compressed message set is null"))?;
        let stream = match (wrapper.codec(), wrapper.magic) {
            (None | Some(Codec::None), _) => return Err(BadSet::Invalid("unknown codec")),
            // KIP-110.
            (Some(Codec::Zstd), _) => return Err(BadSet::Invalid("message sets have no zstd")),
            (Some(Codec::Lz4), 0) => Stream::of_lz4_of_magic_0(value, limit)?,
            (Some(codec), _) => Stream::with_limit(codec, value, limit)?,
        };
        Ok(Self { wrapper: *wrapper, stream, message: Vec::new(), last_offset: None })
    }

    /// The next message. Its offset is as it was written: relative, if the wrapper's magic is 1
    /// and its client knows KIP-31. Its time is the wrapper's, if that is a broker's.
    pub fn read(&mut self) -> Result<Option<Message<'_>>> {
        if self.stream.is_at_end()? {
            return self.end().map(|()| None);
        }
        self.message.clear();
        self.stream.take(LENGTH_OFFSET, &mut self.message)?;
        let bytes = self.message.first_chunk().ok_or(Malformed::Truncated)?;
        let (offset, length) = head(*bytes)?;
        self.message.clear();
        self.stream.take(length, &mut self.message)?;
        self.last_offset = Some(offset);

        let mut message = Message::read(offset, &self.message)?;
        if message.magic != self.wrapper.magic {
            return Err(BadSet::Invalid("a message has another magic than its wrapper"));
        }
        if message.codec() != Some(Codec::None) {
            return Err(BadSet::Invalid("a message in a wrapper is compressed"));
        }
        if self.wrapper.is_log_append_time() {
            message.timestamp = self.wrapper.timestamp;
        }
        Ok(Some(message))
    }

    /// Some versions of librdkafka leave the wrapper's offset zero.
    fn end(&self) -> Result<()> {
        let last_offset = self.last_offset.ok_or(BadSet::Invalid("a wrapper holds no message"))?;
        let Message { magic, offset, .. } = self.wrapper;
        match magic > 0 && offset != 0 && offset < last_offset {
            true => Err(BadSet::Invalid("the offset of a wrapper is before that of its last")),
            false => Ok(()),
        }
    }
}

/// Makes a wrapper of messages that come in the order of their offsets.
pub struct Wrapper {
    codec: Codec,
    /// Begins with the wrapper but for its length and checksum.
    to: Compressor,
    /// The message that is written just now.
    message: Vec<u8>,
    first_offset: Option<i64>,
    /// The wrapper, as far as its messages tell.
    wrapper: Message<'static>,
}

impl Wrapper {
    pub fn new(magic: i8, codec: Codec, is_log_append_time: bool) -> Self {
        let wrapper = Message {
            offset: 0,
            magic,
            attributes: Message::attributes(magic, codec, is_log_append_time),
            timestamp: NO_TIMESTAMP,
            key: None,
            value: Some(&[]),
        };
        let mut begin = Vec::new();
        wrapper.write(&mut begin);
        let to = Compressor::new(codec.into(), begin);
        Self { codec, to, message: Vec::new(), first_offset: None, wrapper }
    }

    pub fn append(&mut self, message: &Message<'_>) -> io::Result<()> {
        let first_offset = *self.first_offset.get_or_insert(message.offset);
        let offset = match self.wrapper.magic {
            0 => message.offset,
            _ => message.offset.wrapping_sub(first_offset),
        };
        self.message.clear();
        Message { offset, ..*message }.write(&mut self.message);
        self.wrapper.offset = message.offset;
        self.wrapper.timestamp = self.wrapper.timestamp.max(message.timestamp);
        self.to.write(&self.message)
    }

    /// The wrapper, which is a whole message set.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        let mut set = self.to.finish()?;
        let mut begin = Vec::new();
        self.wrapper.write(&mut begin);
        let value_at = begin.len();
        let length = (set.len() - value_at) as u32;
        begin[value_at - 4..].copy_from_slice(&length.to_be_bytes());
        set[..value_at].copy_from_slice(&begin);
        if (self.wrapper.magic, self.codec) == (0, Codec::Lz4) {
            // KAFKA-3160: old clients count the frame's magic in, and refuse the right checksum.
            set[value_at + LZ4_HEADER_CHECKSUM_AT] = LZ4_HEADER_CHECKSUM_OF_MAGIC_0;
        }
        seal(&mut set);
        Ok(set)
    }
}

/// Where the checksum of the header of an LZ4 frame stands that says neither size nor dictionary.
const LZ4_HEADER_CHECKSUM_AT: usize = 6;

/// What old clients compute for the header of our frames.
const LZ4_HEADER_CHECKSUM_OF_MAGIC_0: u8 = 0x1a;
