//! The four codecs of record batches: records decompressed on the way, through a small window.
//!
//! Nothing is kept of what was passed, and what a batch may grow to has a limit; raw snappy alone
//! has no blocks and is decompressed in one piece, which is at most 22 times as long.

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
        Some(match attributes & 7 {
            0 => Self::None,
            1 => Self::Gzip,
            2 => Self::Snappy,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return None,
        })
    }

    /// Reads `bytes` as they were before they were compressed.
    pub fn decompress(self, bytes: &[u8]) -> Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::None => Box::new(bytes),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
            Self::Snappy => Box::new(snappy(bytes)?),
            Self::Lz4 => Box::new(lz4(bytes)?),
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
}

const WINDOW_BYTES: usize = 16 << 10;

impl<'a> Stream<'a> {
    pub fn new(codec: Codec, bytes: &'a [u8]) -> Result<Self> {
        let from = codec.decompress(bytes)?;
        Ok(Self { from, window: Box::new([0; WINDOW_BYTES]), at: 0, end: 0, passed: 0 })
    }

    /// Moves the window on when all in it was taken; false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.at < self.end {
            return Ok(true);
        }
        self.passed += self.end as u64;
        (self.at, self.end) = (0, 0);
        if self.passed > MAX_DECOMPRESSED_BYTES {
            return Err(Malformed::TooLong);
        }
        self.end = self.from.read(&mut self.window[..]).map_err(|_| Malformed::Undecodable)?;
        Ok(self.end > 0)
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

/// Java's readers, Kafka's own among them, cannot read blocks that depend on earlier ones, so
/// Kafka takes no such frame.
fn lz4(bytes: &[u8]) -> Result<lz4_flex::frame::FrameDecoder<&[u8]>> {
    const INDEPENDENT_BLOCKS: u8 = 1 << 5;
    match bytes.get(4) {
        Some(flags) if flags & INDEPENDENT_BLOCKS != 0 => {
            Ok(lz4_flex::frame::FrameDecoder::new(bytes))
        }
        _ => Err(Malformed::Undecodable),
    }
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

const SNAPPY_JAVA_MAGIC: &[u8] = b"\x82SNAPPY\0";

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
