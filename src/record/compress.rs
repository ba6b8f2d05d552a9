//! Writing the codecs: bytes go in piece by piece, and are compressed in blocks.
//!
//! The formats are those of Kafka's producer, so that every client reads them: gzip; snappy in the
//! blocks of the `snappy-java` library; an LZ4 frame of independent blocks without checksums; a
//! zstd frame. Levels are KIP-390's.

use super::codec::{Codec, SNAPPY_JAVA_MAGIC};
use flate2::write::GzEncoder;
use lz4::block::CompressionMode;
use std::io::{Error, Result, Write};
use std::ops::RangeInclusive;

/// A codec and how hard it tries.
///
/// A level does what it does in Kafka's libraries: 9 of lz4 is the fast compressor, all others the
/// high one, which does not get better above 12. Of zstd 20 to 22 need far more memory than 19 when
/// the size is not known, so what is longer than 1 MiB gets 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    codec: Codec,
    level: i32,
}

impl Compression {
    pub const NONE: Self = Self { codec: Codec::None, level: 0 };

    /// `None` if Kafka does not take this level: the configs `compression.gzip.level` and so on.
    pub fn new(codec: Codec, level: i32) -> Option<Self> {
        let is_known = codec.levels().contains(&level) || level == codec.default_level();
        is_known.then_some(Self { codec, level })
    }

    pub fn codec(self) -> Codec {
        self.codec
    }

    pub fn level(self) -> i32 {
        self.level
    }
}

/// The codec at its default level.
impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        Self { codec, level: codec.default_level() }
    }
}

impl Codec {
    /// The levels that Kafka takes, besides the default. Snappy has none.
    pub fn levels(self) -> RangeInclusive<i32> {
        match self {
            Self::None | Self::Snappy => 0..=0,
            Self::Gzip => 1..=9,
            Self::Lz4 => 1..=17,
            Self::Zstd => -131_072..=22,
        }
    }

    pub fn default_level(self) -> i32 {
        match self {
            Self::None | Self::Snappy => 0,
            Self::Gzip => -1,
            Self::Lz4 => 9,
            Self::Zstd => 3,
        }
    }
}

/// The header of an LZ4 frame of independent blocks of 64 KiB, without any checksum of what is in
/// it; the last byte is the checksum of the header.
const LZ4_HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];

/// The bit of a block's length that says that the block is not compressed.
const LZ4_STORED: u32 = 1 << 31;

/// Behind the magic of `snappy-java`: its version, and the oldest that reads it.
const SNAPPY_JAVA_VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];

/// Higher levels take up to a gigabyte of memory when they do not know how much comes.
const ZSTD_MAX_STREAM_LEVEL: i32 = 19;

/// Compresses what is written to it, behind what was in its buffer before.
pub struct Compressor {
    format: Format,
    /// What was not compressed yet.
    block: Vec<u8>,
}

enum Format {
    None(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Snappy(Box<snap::raw::Encoder>, Vec<u8>),
    Lz4(CompressionMode, Vec<u8>),
    /// It is not known yet whether all comes in one block.
    ZstdFirst(i32, Vec<u8>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Compressor {
    pub fn new(compression: Compression, mut out: Vec<u8>) -> Self {
        let level = compression.level;
        let format = match compression.codec {
            Codec::None => Format::None(out),
            Codec::Gzip => {
                let level = u32::try_from(level).map(flate2::Compression::new);
                Format::Gzip(GzEncoder::new(out, level.unwrap_or_default()))
            }
            Codec::Snappy => {
                out.extend_from_slice(SNAPPY_JAVA_MAGIC);
                out.extend_from_slice(&SNAPPY_JAVA_VERSIONS);
                Format::Snappy(Box::new(snap::raw::Encoder::new()), out)
            }
            Codec::Lz4 => {
                out.extend_from_slice(&LZ4_HEADER);
                // As Kafka: the default is the fast compressor, all others are the high one.
                let mode = match level == Codec::Lz4.default_level() {
                    true => CompressionMode::DEFAULT,
                    false => CompressionMode::HIGHCOMPRESSION(level),
                };
                Format::Lz4(mode, out)
            }
            Codec::Zstd => Format::ZstdFirst(level, out),
        };
        Self { format, block: Vec::new() }
    }

    /// After an error nothing more can be written.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        if let Format::None(out) = &mut self.format {
            out.extend_from_slice(bytes);
            return Ok(());
        }
        let block_bytes = self.format.block_bytes();
        while !bytes.is_empty() {
            let room = block_bytes - self.block.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            if now.len() == block_bytes {
                self.format.block(now)?;
            } else {
                self.block.extend_from_slice(now);
                if self.block.len() == block_bytes {
                    self.format.block(&self.block)?;
                    self.block.clear();
                }
            }
            bytes = rest;
        }
        Ok(())
    }

    /// All that was in the buffer and was written.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        if let Format::ZstdFirst(level, out) = self.format {
            return zstd_at_once(level, out, &self.block);
        }
        if !self.block.is_empty() {
            self.format.block(&self.block)?;
        }
        match self.format {
            Format::None(out) | Format::Snappy(_, out) | Format::ZstdFirst(_, out) => Ok(out),
            Format::Gzip(encoder) => encoder.finish(),
            Format::Lz4(_, mut out) => {
                out.extend_from_slice(&[0; 4]);
                Ok(out)
            }
            Format::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Format {
    /// Where the format does not say, it is a size at which a call costs little.
    fn block_bytes(&self) -> usize {
        match self {
            Self::None(_) | Self::Gzip(_) => 16 << 10,
            Self::Snappy(..) => 32 << 10,
            Self::Lz4(..) => 64 << 10,
            Self::ZstdFirst(..) | Self::Zstd(_) => 1 << 20,
        }
    }

    fn block(&mut self, block: &[u8]) -> Result<()> {
        match self {
            Self::None(out) => out.write_all(block),
            Self::Gzip(encoder) => encoder.write_all(block),
            Self::Snappy(encoder, out) => snappy_block(encoder, block, out),
            Self::Lz4(mode, out) => lz4_block(*mode, block, out),
            Self::ZstdFirst(level, out) => {
                let level = (*level).min(ZSTD_MAX_STREAM_LEVEL);
                let mut encoder = zstd::Encoder::new(std::mem::take(out), level)?;
                encoder.write_all(block)?;
                *self = Self::Zstd(encoder);
                Ok(())
            }
            Self::Zstd(encoder) => encoder.write_all(block),
        }
    }
}

/// A compressor that knows how much comes takes no more memory than that is worth.
fn zstd_at_once(level: i32, out: Vec<u8>, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(out, level)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn snappy_block(encoder: &mut snap::raw::Encoder, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (length, at) = (out.len(), out.len() + 4);
    out.resize(at + snap::raw::max_compress_len(block.len()), 0);
    let written = encoder.compress(block, &mut out[at..]).map_err(Error::other)?;
    out.truncate(at + written);
    out[length..at].copy_from_slice(&(written as u32).to_be_bytes());
    Ok(())
}

fn lz4_block(mode: CompressionMode, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (length, at) = (out.len(), out.len() + 4);
    out.resize(at + lz4::block::compress_bound(block.len())?, 0);
    let written = lz4::block::compress_to_buffer(block, Some(mode), false, &mut out[at..])?;
    let mut says = written as u32;
    out.truncate(at + written);
    if written >= block.len() {
        out.truncate(at);
        out.extend_from_slice(block);
        says = block.len() as u32 | LZ4_STORED;
    }
    out[length..at].copy_from_slice(&says.to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::Stream;
    use crate::record::records::Source;
    use crate::record::testing::{FROM_KAFKA, from_kafka};

    const COMPRESSED: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    fn compressed(compression: Compression, pieces: &[&[u8]]) -> Vec<u8> {
        let mut to = Compressor::new(compression, b"before".to_vec());
        pieces.iter().for_each(|piece| to.write(piece).unwrap());
        let out = to.finish().unwrap();
        out.strip_prefix(b"before").unwrap().to_vec()
    }

    fn decompressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        let mut stream = Stream::new(codec, bytes).unwrap();
        let mut all = Vec::new();
        while !stream.is_at_end().unwrap() {
            all.extend_from_slice(stream.chunk().unwrap());
        }
        all
    }

    /// Words in no order that a codec could guess.
    fn text(bytes: usize) -> Vec<u8> {
        let mut state = 7_u32;
        let mut text = Vec::new();
        while text.len() < bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.extend_from_slice(format!("word {} ", state >> 20).as_bytes());
        }
        text.truncate(bytes);
        text
    }

    #[test]
    fn levels_are_those_that_kafka_takes() {
        // `CompressionType` of Kafka 4.4.
        let takes = |codec, level| Compression::new(codec, level).is_some();
        for (codec, least, most) in
            [(Codec::Gzip, 1, 9), (Codec::Lz4, 1, 17), (Codec::Zstd, -131_072, 22)]
        {
            assert!(takes(codec, least) && takes(codec, most), "{codec:?}");
            assert!(!takes(codec, least - 1) && !takes(codec, most + 1), "{codec:?}");
        }
        assert!(takes(Codec::Gzip, -1) && !takes(Codec::Gzip, -2));
        assert!(takes(Codec::Snappy, 0) && !takes(Codec::Snappy, 1));
        let defaults = [Codec::Gzip, Codec::Lz4, Codec::Zstd].map(|c| Compression::from(c).level());
        assert_eq!(defaults, [-1, 9, 3]);
    }

    #[test]
    fn a_higher_level_makes_less_of_the_same() {
        let text = text(200_000);
        let bytes = |codec, level| {
            let bytes = compressed(Compression::new(codec, level).unwrap(), &[&text]);
            assert!(decompressed(codec, &bytes) == text, "{codec:?} {level}");
            bytes.len()
        };
        assert!(bytes(Codec::Gzip, 9) < bytes(Codec::Gzip, 1));
        assert!(bytes(Codec::Gzip, -1) < bytes(Codec::Gzip, 1));
        assert!(bytes(Codec::Lz4, 17) < bytes(Codec::Lz4, 9), "9 is Kafka's name for fast");
        assert!(bytes(Codec::Lz4, 12) < bytes(Codec::Lz4, 1));
        assert!(bytes(Codec::Zstd, 22) < bytes(Codec::Zstd, 3));
        assert!(bytes(Codec::Zstd, 3) < bytes(Codec::Zstd, -1000));
    }

    #[test]
    fn the_pieces_that_are_written_do_not_matter() {
        // Longer than the largest block.
        let text = text((1 << 20) + 70_000);
        for codec in COMPRESSED {
            let whole = compressed(codec.into(), &[&text]);
            assert!(decompressed(codec, &whole) == text, "{codec:?}");
            for piece_bytes in [1000, 40_000] {
                let pieces: Vec<_> = text.chunks(piece_bytes).collect();
                assert!(decompressed(codec, &compressed(codec.into(), &pieces)) == text);
            }
            assert_eq!(decompressed(codec, &compressed(codec.into(), &[])), [0u8; 0], "{codec:?}");
        }
        let ultra = Compression::new(Codec::Zstd, 22).unwrap();
        assert!(decompressed(Codec::Zstd, &compressed(ultra, &[&text])) == text);
    }

    #[test]
    fn what_stands_around_the_blocks_is_what_kafka_writes() {
        let records = from_kafka(Codec::None).records();
        for (codec, around_bytes) in [(Codec::Snappy, 16), (Codec::Lz4, 7)] {
            let ours = compressed(codec.into(), &[&records]);
            let kafkas = from_kafka(codec).records();
            assert_eq!(ours[..around_bytes], kafkas[..around_bytes], "{codec:?}");
        }
        let lz4 = compressed(Codec::Lz4.into(), &[&records]);
        assert!(lz4.ends_with(&[0; 4]), "the end mark");
    }

    #[test]
    fn what_cannot_be_compressed_is_hardly_longer() {
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            // Xorshift: the same bytes in each run.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        let noise: Vec<u8> = noise.take(300_000).collect();
        for codec in COMPRESSED {
            let bytes = compressed(codec.into(), &[&noise]);
            assert!(bytes.len() < noise.len() + 200, "{codec:?}: {}", bytes.len());
            assert!(decompressed(codec, &bytes) == noise, "{codec:?}");
        }
    }

    #[test]
    fn the_numbers_of_codecs_are_those_in_the_attributes() {
        for (codec, _) in FROM_KAFKA {
            assert_eq!(Codec::from_attributes(codec as i16), Some(codec));
        }
    }
}
