//! The four codecs of record batches: records decompressed on the way, through a small window.
//!
//! Nothing is kept of what was passed, and what a batch may grow to has a limit; raw snappy alone
//! has no blocks and is decompressed in one piece, which is at most 22 times as long.

use super::batch::CODEC;
use super::records::{Malformed, Result, Source};
use std::io::Read;

/// What the records of a batch may grow to: a few kilobytes can stand for gigabytes.
pub const MAX_DECOMPRESSED_BYTES: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// The codec in a batch's attributes; `None` if the number stands for none.
    pub fn from_attributes(attributes: i16) -> Option<Self> {
        Some(match attributes & CODEC {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return None,
        })
    }

    /// Kafka's name, as in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Reads `bytes` as they were before they were compressed.
    pub fn decompress(self, bytes: &[u8]) -> Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::None => Box::new(bytes),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Self::Snappy => Box::new(snappy(bytes)?),
            Self::Lz4 => Box::new(lz4(bytes, bytes)?),
            Self::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
                Box::new(decoder.map_err(|_| Malformed::Undecodable)?)
            }
        })
    }
}

/// What is behind a decompressor, with a window over what comes next.
pub struct Stream<'a> {
    from: Box<dyn Read + 'a>,
    window: Box<[u8; WINDOW_BYTES]>,
    at: usize,
    end: usize,
    /// Bytes that were taken before those in the window.
    passed: u64,
    limit: u64,
}

const WINDOW_BYTES: usize = 16 << 10;

impl<'a> Stream<'a> {
    pub fn new(codec: Codec, bytes: &'a [u8]) -> Result<Self> {
        Self::with_limit(codec, bytes, MAX_DECOMPRESSED_BYTES)
    }

    /// Ends with an error when the records are longer than `limit`, and not much behind it.
    pub fn with_limit(codec: Codec, bytes: &'a [u8], limit: u64) -> Result<Self> {
        Ok(Self::from_reader(codec.decompress(bytes)?, limit))
    }

    /// Reads an LZ4 frame in a message of magic 0. KAFKA-3160: clients of that time put a wrong
    /// checksum into the frame's header, so it is not looked at.
    pub fn of_lz4_of_magic_0(bytes: &'a [u8], limit: u64) -> Result<Self> {
        let from = lz4_with_right_header(bytes).ok_or(Malformed::Undecodable)?;
        Ok(Self::from_reader(Box::new(lz4(bytes, from)?), limit))
    }

    fn from_reader(from: Box<dyn Read + 'a>, limit: u64) -> Self {
        Self { from, window: Box::new([0; WINDOW_BYTES]), at: 0, end: 0, passed: 0, limit }
    }

    /// Takes so many bytes and puts them behind those in `to`, which grows as they come.
    pub fn take(&mut self, bytes: usize, to: &mut Vec<u8>) -> Result<()> {
        let mut left = bytes;
        while left > 0 {
            if !self.fill()? {
                return Err(Malformed::Truncated);
            }
            let step = left.min(self.end - self.at);
            to.extend_from_slice(&self.window[self.at..][..step]);
            self.at += step;
            left -= step;
        }
        Ok(())
    }

    /// Moves the window on when all in it was taken; false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.at < self.end {
            return Ok(true);
        }
        self.passed += self.end as u64;
        (self.at, self.end) = (0, 0);
        if self.passed > self.limit {
            return Err(Malformed::TooLong);
        }
        self.end = self.from.read(&mut self.window[..]).map_err(|_| Malformed::Undecodable)?;
        Ok(self.end > 0)
    }
}

impl Stream<'_> {
    /// The bytes that come next, as many as there are at hand; none at the end.
    pub fn chunk(&mut self) -> Result<&[u8]> {
        self.fill()?;
        let at = std::mem::replace(&mut self.at, self.end);
        Ok(&self.window[at..self.end])
    }
}

impl Source for Stream<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8> {
        if self.at == self.end && !self.fill()? {
            return Err(Malformed::Truncated);
        }
        self.at += 1;
        Ok(self.window[self.at - 1])
    }

    fn skip(&mut self, bytes: usize) -> Result<()> {
        let mut left = bytes;
        while left > 0 {
            if !self.fill()? {
                return Err(Malformed::Truncated);
            }
            let step = left.min(self.end - self.at);
            self.at += step;
            left -= step;
        }
        Ok(())
    }

    #[inline]
    fn position(&self) -> u64 {
        self.passed + self.at as u64
    }

    fn is_at_end(&mut self) -> Result<bool> {
        self.fill().map(|more| !more)
    }
}

/// The decoder is less strict than Java's readers, Kafka's own among them, and Kafka takes no frame
/// that these do not read: of the legacy format, of blocks that depend on earlier ones, or without
/// an end mark.
fn lz4<R: Read>(bytes: &[u8], from: R) -> Result<lz4_flex::frame::FrameDecoder<R>> {
    const INDEPENDENT_BLOCKS: u8 = 1 << 5;
    match bytes.get(LZ4_FLAGS_AT) {
        Some(flags)
            if bytes.starts_with(&LZ4_MAGIC)
                && flags & INDEPENDENT_BLOCKS != 0
                && has_end_mark(bytes, *flags) =>
        {
            Ok(lz4_flex::frame::FrameDecoder::new(from))
        }
        _ => Err(Malformed::Undecodable),
    }
}

/// Whether a block of length zero follows the others.
fn has_end_mark(bytes: &[u8], flags: u8) -> bool {
    const STORED: u32 = 1 << 31;
    let size_of = |bit: u8, bytes: usize| if flags & 1 << bit != 0 { bytes } else { 0 };
    let (block_checksum, content_size, dictionary_id) =
        (size_of(4, 4), size_of(3, 8), size_of(0, 4));
    // Magic, flags, block size; then the checksum of the header.
    let mut at = 6 + content_size + dictionary_id + 1;
    while let Some(len) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let len = u32::from_le_bytes(*len);
        if len == 0 {
            return true;
        }
        at += 4 + (len & !STORED) as usize + block_checksum;
    }
    false
}

pub(super) const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Where the flags of an LZ4 frame stand, the first byte that the checksum of its header covers.
const LZ4_FLAGS_AT: usize = 4;

/// The same frame, but for the last byte of its header.
fn lz4_with_right_header(frame: &[u8]) -> Option<impl Read + '_> {
    const CONTENT_SIZE: u8 = 1 << 3;
    let flags = frame.get(LZ4_FLAGS_AT)?;
    let checksum_at = if flags & CONTENT_SIZE == 0 { 6 } else { 14 };
    let (header, rest) = frame.split_at_checked(checksum_at)?;
    let checksum = twox_hash::XxHash32::oneshot(0, &header[LZ4_FLAGS_AT..]).to_be_bytes()[2];
    Some(header.chain(std::io::repeat(checksum).take(1)).chain(rest.get(1..)?))
}

/// Snappy comes raw, as librdkafka writes it, or in the blocks of the `snappy-java` library: a
/// header of 16 bytes, then for each block its length and raw snappy.
fn snappy(bytes: &[u8]) -> Result<Snappy<'_>> {
    match bytes.strip_prefix(SNAPPY_JAVA_MAGIC) {
        // The two versions that stand behind the magic have never changed.
        Some(rest) => {
            let blocks = rest.get(8..).ok_or(Malformed::Undecodable)?;
            Ok(Snappy { blocks, block: Vec::new(), at: 0 })
        }
        None => Ok(Snappy { blocks: &[], block: snappy_block(bytes)?, at: 0 }),
    }
}

pub(super) const SNAPPY_JAVA_MAGIC: &[u8] = b"\x82SNAPPY\0";

struct Snappy<'a> {
    blocks: &'a [u8],
    block: Vec<u8>,
    at: usize,
}

impl Read for Snappy<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let broken = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        while self.at == self.block.len() {
            let Some((len, rest)) = self.blocks.split_first_chunk() else {
                return if self.blocks.is_empty() { Ok(0) } else { Err(broken()) };
            };
            let len = u32::from_be_bytes(*len) as usize;
            let (block, rest) = rest.split_at_checked(len).ok_or_else(broken)?;
            self.block = snappy_block(block).map_err(|_| broken())?;
            (self.at, self.blocks) = (0, rest);
        }
        let step = out.len().min(self.block.len() - self.at);
        out[..step].copy_from_slice(&self.block[self.at..][..step]);
        self.at += step;
        Ok(step)
    }
}

fn snappy_block(bytes: &[u8]) -> Result<Vec<u8>> {
    // Three bytes of raw snappy stand for at most 64, so a longer claim is a lie: it is refused
    // before anything is allocated for it.
    let len = snap::raw::decompress_len(bytes).map_err(|_| Malformed::Undecodable)?;
    if len / 22 > bytes.len() {
        return Err(Malformed::Undecodable);
    }
    if len as u64 > MAX_DECOMPRESSED_BYTES {
        return Err(Malformed::TooLong);
    }
    snap::raw::Decoder::new().decompress_vec(bytes).map_err(|_| Malformed::Undecodable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::skim;
    use crate::record::testing::{FROM_KAFKA, from_kafka, gzip};
    use std::io::Write;

    fn decompressed(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut stream = Stream::new(codec, bytes)?;
        let mut all = Vec::new();
        while !stream.is_at_end()? {
            all.push(stream.byte()?);
        }
        Ok(all)
    }

    #[test]
    #[ignore = "writes the seeds of fuzz/"]
    fn seeds() {
        let put = |target: &str, codec: Codec, bytes: &[u8]| {
            let folder = format!("{}/fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
            std::fs::create_dir_all(&folder).unwrap();
            let input = [&[codec as u8], bytes].concat();
            std::fs::write(format!("{folder}/{codec:?}"), input).unwrap();
        };
        for (codec, _) in FROM_KAFKA {
            let batch = from_kafka(codec);
            put("batch", codec, &[&batch.head()[..], &batch.records()].concat());
            put("decompress", codec, &batch.records());
        }
    }

    fn lz4(bytes: &[u8], mode: lz4_flex::frame::BlockMode) -> Vec<u8> {
        let info = lz4_flex::frame::FrameInfo::new().block_mode(mode);
        let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_kafkas_producer_compressed_is_read_back() {
        for (codec, _) in FROM_KAFKA {
            let batch = from_kafka(codec);
            assert_eq!(Codec::from_attributes(batch.header.attributes), Some(codec));
            let bytes = batch.records();
            let mut stream = Stream::new(codec, &bytes).unwrap();
            let deltas: Vec<_> = (0..3).map(|_| skim(&mut stream).unwrap().offset_delta).collect();
            assert_eq!((deltas, stream.is_at_end()), (vec![0, 1, 2], Ok(true)), "{codec:?}");
        }
    }

    #[test]
    fn more_than_the_window_is_read_in_every_form() {
        let long: Vec<u8> = (0..200_000_u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        let raw_snappy = snap::raw::Encoder::new().compress_vec(&long).unwrap();
        let blocks = long.chunks(32 << 10).flat_map(|block| {
            let block = snap::raw::Encoder::new().compress_vec(block).unwrap();
            [&(block.len() as u32).to_be_bytes()[..], &block].concat()
        });
        let header = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".iter().copied();
        let framed_snappy: Vec<u8> = header.chain(blocks).collect();
        let zstd = zstd::encode_all(&long[..], 0).unwrap();
        let lz4 = lz4(&long, lz4_flex::frame::BlockMode::Independent);
        for (codec, bytes) in [
            (Codec::Gzip, gzip(&long)),
            // Several members are one stream.
            (Codec::Gzip, [gzip(&long[..999]), gzip(&long[999..])].concat()),
            (Codec::Snappy, raw_snappy),
            (Codec::Snappy, framed_snappy),
            (Codec::Lz4, lz4),
            (Codec::Zstd, zstd),
        ] {
            assert!(decompressed(codec, &bytes).unwrap() == long, "{codec:?}");
            let cut = decompressed(codec, &bytes[..bytes.len() / 2]);
            assert_eq!(cut.err(), Some(Malformed::Undecodable), "{codec:?}");
            let mut stream = Stream::new(codec, &bytes).unwrap();
            stream.skip(long.len()).unwrap();
            assert_eq!((stream.position(), stream.byte()), (800_000, Err(Malformed::Truncated)));
        }
    }

    #[test]
    fn garbage_is_refused() {
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            for garbage in [&b"garbage!!"[..], &[0xff; 100], b"\x82SNAPPY\0"] {
                assert_eq!(decompressed(codec, garbage), Err(Malformed::Undecodable), "{codec:?}");
            }
        }
        let linked = lz4(b"linked", lz4_flex::frame::BlockMode::Linked);
        assert_eq!(decompressed(Codec::Lz4, &linked), Err(Malformed::Undecodable));
        // A block of 41 bytes, whose length looks like the flags of a frame of today.
        let mut legacy = vec![0x02, 0x21, 0x4c, 0x18, 41, 0, 0, 0, 0xf0, 24];
        legacy.extend_from_slice(&[0; 39]);
        let decoder = lz4_flex::frame::FrameDecoder::new(&legacy[..]);
        assert_eq!(decoder.bytes().count(), 39, "a decoder that takes it");
        assert_eq!(decompressed(Codec::Lz4, &legacy), Err(Malformed::Undecodable));
        let mut endless = lz4(&[7; 100_000], lz4_flex::frame::BlockMode::Independent);
        assert_eq!(decompressed(Codec::Lz4, &endless), Ok(vec![7; 100_000]));
        for _ in 0..4 {
            endless.pop();
            assert_eq!(decompressed(Codec::Lz4, &endless), Err(Malformed::Undecodable));
        }
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        let bomb = gzip(&[0; 100_000]);
        let mut stream = Stream::with_limit(Codec::Gzip, &bomb, 50_000).unwrap();
        assert_eq!(stream.skip(usize::MAX), Err(Malformed::TooLong));
        assert!(stream.position() < 50_000 + 2 * WINDOW_BYTES as u64);
        // Raw snappy that says it has 4 GiB.
        let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
        assert_eq!(decompressed(Codec::Snappy, &claim), Err(Malformed::Undecodable));
    }
}
