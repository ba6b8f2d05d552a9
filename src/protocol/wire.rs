//! Kafka primitive types on the wire: how each Rust type is read and written.
//!
//! A `Reader` or `Writer` knows the API version and whether that version is flexible, so
//! `i32`, `Str`, `Bytes` and `Vec<T>` pick the right encoding by themselves and a message
//! table only has to say which fields exist in which versions.

use bytes::Bytes;
use bytestring::ByteString;

pub use super::encoded::Encoded;
pub use super::uuid::Uuid;

/// The peer sent bytes that are no message. Its connection is closed, as Kafka does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
// As wide as what stands in its place in a `Result`: such values are moved in whole words.
#[repr(u64)]
pub enum WireError {
    #[error("the message ends in the middle of a field")]
    Truncated,
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("null where the version forbids it")]
    NullNotAllowed,
    #[error("a length is negative or too large")]
    BadLength,
    #[error("more array elements in one message than the limit")]
    TooManyElements,
}

/// A string that shares the memory of the frame it was read from.
pub type Str = ByteString;

pub type Result<T, E = WireError> = std::result::Result<T, E>;

/// One value that has a wire form.
pub trait Wire: Sized {
    fn read(r: &mut Reader) -> Result<Self>;
    fn write(&self, w: &mut Writer);

    /// A value with something in every field, for tests.
    #[cfg(test)]
    fn sample() -> Self;

    /// Nullable form. Structs use a one-byte marker; strings, bytes and arrays override this
    /// with their own null length.
    fn read_nullable(r: &mut Reader) -> Result<Option<Self>> {
        if i8::read(r)? < 0 { Ok(None) } else { Self::read(r).map(Some) }
    }
    fn write_nullable(this: Option<&Self>, w: &mut Writer) {
        match this {
            None => (-1i8).write(w),
            Some(v) => {
                1i8.write(w);
                v.write(w);
            }
        }
    }

    /// Null has a length of its own, as in strings, bytes and arrays: no marker tells it.
    const NULL_IS_A_LENGTH: bool = false;

    /// The form as a tagged field. It differs for structs that may be null only: see `Option`.
    fn read_tagged(r: &mut Reader) -> Result<Self> {
        Self::read(r)
    }
    fn write_tagged(&self, w: &mut Writer) {
        self.write(w);
    }
}

/// Decodes one request or response body out of a frame, sharing the frame's memory.
pub struct Reader {
    frame: Bytes,
    /// The next byte, and the end of what may be read.
    at: usize,
    end: usize,
    pub version: i16,
    pub flexible: bool,
    /// How many more array elements this message may have.
    elements_left: usize,
}

/// Most array elements in one message, nested ones included. An element can be one byte on the
/// wire and a hundred in memory; a fetch of 10,000 partitions has 20,000.
const MAX_ELEMENTS: usize = 1_000_000;

/// Encodes a body. Large byte fields (records) are chained, not copied: see [`Encoded`].
pub struct Writer {
    buf: Vec<u8>,
    /// Byte fields to send without copying, each with its place in `buf`.
    chained: Vec<(usize, Bytes)>,
    codes: Codes,
    pub version: i16,
    pub flexible: bool,
}

/// The error codes that stand in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    /// How often it says that there is no error.
    pub none: u64,
    pub errors: Vec<i16>,
}

/// Byte fields at least this long are chained into the output instead of being copied.
const CHAIN_MIN: usize = 1024;

impl Reader {
    pub fn new(frame: Bytes, version: i16, flexible: bool) -> Self {
        let end = frame.len();
        Self { frame, at: 0, end, version, flexible, elements_left: MAX_ELEMENTS }
    }

    /// What is not yet read.
    #[inline]
    pub fn rest(&self) -> &[u8] {
        &self.frame[self.at..self.end]
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = *self.rest().first_chunk().ok_or(WireError::Truncated)?;
        self.at += N;
        Ok(bytes)
    }

    /// Goes over so many bytes, and gives the place where they begin.
    #[inline]
    fn skip(&mut self, len: usize) -> Result<usize> {
        if len > self.rest().len() {
            return Err(WireError::Truncated);
        }
        self.at += len;
        Ok(self.at - len)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<Bytes> {
        let begin = self.skip(len)?;
        Ok(self.frame.slice(begin..self.at))
    }

    #[inline]
    pub fn uvarint(&mut self) -> Result<u32> {
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = u8::read(self)?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::BadLength)
    }

    /// Length of a string, bytes or array field; `None` is null. `short` is the 16-bit form that
    /// strings use in inflexible versions.
    #[inline]
    fn len(&mut self, short: bool) -> Result<Option<usize>> {
        let len = match (self.flexible, short) {
            (true, _) => i64::from(self.uvarint()?) - 1,
            (false, true) => i64::from(i16::read(self)?),
            (false, false) => i64::from(i32::read(self)?),
        };
        match len {
            -1 => Ok(None),
            n if n < 0 => Err(WireError::BadLength),
            n => Ok(Some(n as usize)),
        }
    }

    /// A field that may be null in some versions of its message only.
    pub fn option<T: Wire>(&mut self, may_be_null: bool) -> Result<Option<T>> {
        if may_be_null { T::read_nullable(self) } else { T::read(self).map(Some) }
    }

    /// Walks the tagged fields that end every struct of a flexible version. Tags that `known`
    /// does not take are skipped.
    #[inline]
    pub fn tagged(&mut self, mut known: impl FnMut(u32, &mut Reader) -> Result<()>) -> Result<()> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let begin = self.skip(size)?;
            let (behind, end) = (self.at, self.end);
            (self.at, self.end) = (begin, behind);
            known(tag, self)?;
            (self.at, self.end) = (behind, end);
        }
        Ok(())
    }
}

impl Writer {
    pub fn new(version: i16, flexible: bool) -> Self {
        Self::into(Encoded::default(), version, flexible)
    }

    /// Writes into the memory of a message that is no longer needed.
    pub fn into(mut used: Encoded, version: i16, flexible: bool) -> Self {
        used.buf.clear();
        used.buf.reserve(256);
        used.chained.clear();
        let codes = Codes::default();
        Self { buf: used.buf, chained: used.chained, codes, version, flexible }
    }

    /// Notes an error code that is being written.
    #[inline]
    pub(super) fn note(&mut self, code: i16) {
        match code {
            0 => self.codes.none += 1,
            error => self.codes.errors.push(error),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    #[inline]
    pub fn uvarint(&mut self, value: u32) {
        match value {
            0..0x80 => self.buf.push(value as u8),
            _ => self.long_uvarint(value),
        }
    }

    #[inline(never)]
    fn long_uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buf.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buf.push(value as u8);
    }

    #[inline(always)]
    fn len(&mut self, len: Option<usize>, short: bool) {
        match (self.flexible, short) {
            (true, _) => self.uvarint(len.map_or(0, |n| n as u32 + 1)),
            (false, true) => len.map_or(-1, |n| n as i16).write(self),
            (false, false) => len.map_or(-1, |n| n as i32).write(self),
        }
    }

    fn bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < CHAIN_MIN {
            return self.put(bytes);
        }
        self.chained.push((self.buf.len(), bytes.clone()));
    }

    /// A field that may be null in some versions of its message only: null is the empty value in
    /// the others, so that an answer need not know which version it goes out in.
    pub fn option<T: Wire + Default>(&mut self, value: &Option<T>, may_be_null: bool) {
        match value {
            _ if may_be_null => T::write_nullable(value.as_ref(), self),
            Some(value) => value.write(self),
            None => T::default().write(self),
        }
    }

    /// One of the tagged fields that end a struct: its number, its length, its value. Most lengths take
    /// the one byte that is left for them; a longer one moves the value.
    pub fn tagged<T: Wire>(&mut self, tag: u32, value: &T) {
        self.uvarint(tag);
        let (begin, first_chained) = (self.buf.len(), self.chained.len());
        self.buf.push(0);
        value.write_tagged(self);
        let chained = self.chained[first_chained..].iter();
        let chained_bytes: usize = chained.map(|(_, bytes)| bytes.len()).sum();
        let len = self.buf.len() - (begin + 1) + chained_bytes;
        match len {
            0..0x80 => self.buf[begin] = len as u8,
            _ => {
                let value = self.buf.split_off(begin + 1);
                self.buf.truncate(begin);
                self.long_uvarint(len as u32);
                let moved = self.buf.len() - (begin + 1);
                self.chained[first_chained..].iter_mut().for_each(|(place, _)| *place += moved);
                self.put(&value);
            }
        }
    }

    pub fn finish(self) -> Encoded {
        self.finish_with_codes().0
    }

    /// The message, and the error codes in it.
    pub fn finish_with_codes(self) -> (Encoded, Codes) {
        (Encoded { buf: self.buf, chained: self.chained }, self.codes)
    }
}

macro_rules! fixed {
    ($($ty:ty)*) => {$(
        impl Wire for $ty {
            #[inline]
            fn read(r: &mut Reader) -> Result<Self> {
                r.array().map(<$ty>::from_be_bytes)
            }
            #[inline]
            fn write(&self, w: &mut Writer) {
                w.put(&self.to_be_bytes());
            }
            #[cfg(test)]
            fn sample() -> Self {
                7 as $ty
            }
        }
    )*};
}

fixed! { i8 u8 i16 u16 i32 u32 i64 f64 }

impl Wire for bool {
    #[cfg(test)]
    fn sample() -> Self {
        true
    }
    fn read(r: &mut Reader) -> Result<Self> {
        Ok(u8::read(r)? != 0)
    }
    fn write(&self, w: &mut Writer) {
        u8::from(*self).write(w);
    }
}

impl Wire for Str {
    const NULL_IS_A_LENGTH: bool = true;
    #[cfg(test)]
    fn sample() -> Self {
        Self::from_static("text")
    }
    fn read(r: &mut Reader) -> Result<Self> {
        Self::read_nullable(r)?.ok_or(WireError::NullNotAllowed)
    }
    fn write(&self, w: &mut Writer) {
        Self::write_nullable(Some(self), w);
    }
    fn read_nullable(r: &mut Reader) -> Result<Option<Self>> {
        let Some(len) = r.len(true)? else { return Ok(None) };
        // Kafka holds the compact form to the limit of the 16-bit one as well, so that what came in
        // by one version can go out by another.
        if len > i16::MAX as usize {
            return Err(WireError::BadLength);
        }
        Self::try_from(r.take(len)?).map(Some).map_err(|_| WireError::NotUtf8)
    }
    fn write_nullable(this: Option<&Self>, w: &mut Writer) {
        w.len(this.map(|s| s.len()), true);
        if let Some(s) = this {
            w.put(s.as_bytes());
        }
    }
}

impl Wire for Bytes {
    const NULL_IS_A_LENGTH: bool = true;
    #[cfg(test)]
    fn sample() -> Self {
        Bytes::from(vec![5; 2000])
    }
    fn read(r: &mut Reader) -> Result<Self> {
        Self::read_nullable(r)?.ok_or(WireError::NullNotAllowed)
    }
    fn write(&self, w: &mut Writer) {
        Self::write_nullable(Some(self), w);
    }
    fn read_nullable(r: &mut Reader) -> Result<Option<Self>> {
        match r.len(false)? {
            None => Ok(None),
            Some(len) => r.take(len).map(Some),
        }
    }
    fn write_nullable(this: Option<&Self>, w: &mut Writer) {
        w.len(this.map(Bytes::len), false);
        if let Some(bytes) = this {
            w.bytes(bytes);
        }
    }
}

/// The `records` field: batches as a list of slices, so that what is stored or cached in pieces
/// goes out in one vectored write without being joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records(pub Vec<Bytes>);

impl Records {
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }
}

impl Wire for Records {
    const NULL_IS_A_LENGTH: bool = true;
    #[cfg(test)]
    fn sample() -> Self {
        Self(vec![Bytes::sample()])
    }
    fn read(r: &mut Reader) -> Result<Self> {
        Bytes::read(r).map(|bytes| Self(vec![bytes]))
    }
    fn write(&self, w: &mut Writer) {
        Self::write_nullable(Some(self), w);
    }
    fn read_nullable(r: &mut Reader) -> Result<Option<Self>> {
        Ok(Bytes::read_nullable(r)?.map(|bytes| Self(vec![bytes])))
    }
    fn write_nullable(this: Option<&Self>, w: &mut Writer) {
        w.len(this.map(Self::len), false);
        this.into_iter().flat_map(|records| &records.0).for_each(|slice| w.bytes(slice));
    }
}

impl<T: Wire> Wire for Vec<T> {
    const NULL_IS_A_LENGTH: bool = true;
    #[cfg(test)]
    fn sample() -> Self {
        vec![T::sample(), T::sample()]
    }
    fn read(r: &mut Reader) -> Result<Self> {
        Self::read_nullable(r)?.ok_or(WireError::NullNotAllowed)
    }
    // Inline, and not by way of the nullable form: most arrays are short ones in a struct that comes
    // by the thousand.
    #[inline]
    fn write(&self, w: &mut Writer) {
        w.len(Some(self.len()), false);
        for item in self {
            item.write(w);
        }
    }
    fn read_nullable(r: &mut Reader) -> Result<Option<Self>> {
        let Some(len) = r.len(false)? else { return Ok(None) };
        // Every element takes at least one byte, so a larger count is a lie: refuse it before
        // allocating anything for it.
        if len > r.rest().len() {
            return Err(WireError::Truncated);
        }
        r.elements_left = r.elements_left.checked_sub(len).ok_or(WireError::TooManyElements)?;
        let mut items = Vec::with_capacity(len.min(4096));
        for _ in 0..len {
            items.push(T::read(r)?);
        }
        Ok(Some(items))
    }
    fn write_nullable(this: Option<&Self>, w: &mut Writer) {
        match this {
            None => w.len(None, false),
            Some(items) => items.write(w),
        }
    }
}

impl<T: Wire> Wire for Option<T> {
    #[cfg(test)]
    fn sample() -> Self {
        Some(T::sample())
    }
    fn read(r: &mut Reader) -> Result<Self> {
        T::read_nullable(r)
    }
    fn write(&self, w: &mut Writer) {
        T::write_nullable(self.as_ref(), w);
    }
    /// Kafka tells a tagged struct from null by 1 and 0, any other by 1 and -1.
    fn read_tagged(r: &mut Reader) -> Result<Self> {
        if T::NULL_IS_A_LENGTH {
            return T::read_nullable(r);
        }
        if r.uvarint()? == 0 { Ok(None) } else { T::read(r).map(Some) }
    }
    fn write_tagged(&self, w: &mut Writer) {
        match self {
            None if !T::NULL_IS_A_LENGTH => w.uvarint(0),
            value => value.write(w),
        }
    }
}
