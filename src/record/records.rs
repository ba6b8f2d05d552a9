//! The records of a batch, read in place.
//!
//! ```text
//! length           varint   of all that follows
//! attributes       i8       unused
//! timestamp delta  varlong  to the batch's base timestamp
//! offset delta     varint   to the batch's base offset
//! key              varint length, bytes; a negative length is null
//! value            varint length, bytes; a negative length is null
//! headers          varint count, then for each: key, value; a key is never null
//! ```
//!
//! Two readers: [`Records`] gives slices of bytes that are in memory; [`skim`] takes a record off
//! any [`Source`], also one that is decompressed on the way, and keeps nothing of it.

/// Why records cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the records end in the middle of one")]
    Truncated,
    #[error("a number in a record has too many bytes")]
    BadNumber,
    #[error("a field does not fit into its record")]
    BadLength,
    #[error("the records cannot be decompressed")]
    Undecodable,
    #[error("the records are too long when decompressed")]
    TooLong,
}

pub type Result<T, E = Malformed> = std::result::Result<T, E>;

/// Record bytes, one after the other.
pub trait Source {
    fn byte(&mut self) -> Result<u8>;

    /// Passes over bytes that nobody wants to see.
    fn skip(&mut self, bytes: usize) -> Result<()>;

    /// How many bytes were taken.
    fn position(&self) -> u64;

    fn is_at_end(&mut self) -> Result<bool>;
}

/// What a batch is checked for and searched for: a record without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skimmed {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub has_key: bool,
}

/// Takes the next record off `source`. All lengths in it must add up.
#[inline]
pub fn skim<S: Source>(source: &mut S) -> Result<Skimmed> {
    let len = usize::try_from(varint(source)?).map_err(|_| Malformed::BadLength)?;
    let end = source.position() + len as u64;
    source.byte()?;
    let timestamp_delta = varlong(source)?;
    let offset_delta = varint(source)?;
    let has_key = skip_nullable(source, end)?;
    skip_nullable(source, end)?;
    let headers = varint(source)?;
    if headers < 0 {
        return Err(Malformed::BadLength);
    }
    for _ in 0..headers {
        if !skip_nullable(source, end)? {
            return Err(Malformed::BadLength);
        }
        skip_nullable(source, end)?;
    }
    if source.position() != end {
        return Err(Malformed::BadLength);
    }
    Ok(Skimmed { timestamp_delta, offset_delta, has_key })
}

/// Passes over a key or a value; tells whether it is there.
#[inline]
fn skip_nullable<S: Source>(source: &mut S, end: u64) -> Result<bool> {
    let Ok(len) = usize::try_from(varint(source)?) else { return Ok(false) };
    if source.position() + len as u64 > end {
        return Err(Malformed::BadLength);
    }
    source.skip(len)?;
    Ok(true)
}

#[inline]
fn varint<S: Source>(source: &mut S) -> Result<i32> {
    let first = source.byte()?;
    if first < 0x80 {
        return Ok(zigzag(first.into()) as i32);
    }
    let value = rest_of_varint(source, first, 5)?;
    u32::try_from(value).map(|value| zigzag(value.into()) as i32).map_err(|_| Malformed::BadNumber)
}

#[inline]
fn varlong<S: Source>(source: &mut S) -> Result<i64> {
    let first = source.byte()?;
    if first < 0x80 {
        return Ok(zigzag(first.into()));
    }
    rest_of_varint(source, first, 10).map(zigzag)
}

fn rest_of_varint<S: Source>(source: &mut S, first: u8, max_bytes: u32) -> Result<u64> {
    let mut value = u64::from(first & 0x7f);
    for i in 1..max_bytes {
        let byte = source.byte()?;
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed::BadNumber)
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Bytes that are in memory.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Slice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).ok_or(Malformed::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    fn nullable(&mut self) -> Result<Option<&'a [u8]>> {
        match usize::try_from(varint(self)?) {
            Ok(len) => self.take(len).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl Source for Slice<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn skip(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes.len() - self.at {
            return Err(Malformed::Truncated);
        }
        self.at += bytes;
        Ok(())
    }

    #[inline]
    fn position(&self) -> u64 {
        self.at as u64
    }

    #[inline]
    fn is_at_end(&mut self) -> Result<bool> {
        Ok(self.at == self.bytes.len())
    }
}

/// One record; all of it is a slice of its batch.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

/// Walks records that are in memory and not compressed.
#[derive(Clone, Debug)]
pub struct Records<'a>(Slice<'a>);

impl<'a> Records<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Slice::new(bytes))
    }

    fn read(&mut self) -> Result<Record<'a>> {
        let len = usize::try_from(varint(&mut self.0)?).map_err(|_| Malformed::BadLength)?;
        let mut record = Slice::new(self.0.take(len)?);
        record.byte()?;
        let timestamp_delta = varlong(&mut record)?;
        let offset_delta = varint(&mut record)?;
        let (key, value) = (record.nullable()?, record.nullable()?);
        let left = u32::try_from(varint(&mut record)?).map_err(|_| Malformed::BadLength)?;
        let headers = Headers { bytes: record, left };
        Ok(Record { timestamp_delta, offset_delta, key, value, headers })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    /// After an error nothing more comes.
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.at == self.0.bytes.len() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.0.at = self.0.bytes.len();
        }
        Some(record)
    }
}

/// Walks the headers of a record: a key may come more than once, a value may be null.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    bytes: Slice<'a>,
    left: u32,
}

impl<'a> Headers<'a> {
    fn read(&mut self) -> Result<(&'a [u8], Option<&'a [u8]>)> {
        let key = self.bytes.nullable()?.ok_or(Malformed::BadLength)?;
        Ok((key, self.bytes.nullable()?))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Result<(&'a [u8], Option<&'a [u8]>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let header = self.read();
        if header.is_err() {
            self.left = 0;
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::Codec;
    use crate::record::testing::from_kafka;

    fn skim_all(bytes: &[u8]) -> Result<Vec<Skimmed>> {
        let mut source = Slice::new(bytes);
        let mut records = Vec::new();
        while !source.is_at_end()? {
            records.push(skim(&mut source)?);
        }
        Ok(records)
    }

    #[test]
    fn the_fields_of_records_are_slices_of_their_batch() {
        let bytes = from_kafka(Codec::None).records();
        let records: Vec<_> = Records::new(&bytes).map(Result::unwrap).collect();
        let fields: Vec<_> = records
            .iter()
            .map(|r| (r.timestamp_delta, r.offset_delta, r.key, r.value, r.headers.clone().count()))
            .collect();
        assert_eq!(
            fields,
            [
                (0, 0, Some(&b"k1"[..]), Some(&b"one one one one one one one one"[..]), 2),
                (14, 1, Some(b"k2"), Some(b"two"), 0),
                (14, 2, Some(b"k3"), None, 0),
            ]
        );
        let headers: Vec<_> = records[0].headers.clone().map(Result::unwrap).collect();
        assert_eq!(headers, [(&b"h"[..], Some(&b"1"[..])), (b"h", Some(b"2"))]);
        let skimmed = skim_all(&bytes).unwrap();
        assert_eq!(skimmed[2], Skimmed { timestamp_delta: 14, offset_delta: 2, has_key: true });
        assert_eq!(skimmed.len(), 3);
    }

    #[test]
    fn lengths_that_do_not_add_up_are_refused() {
        // One record: attributes, deltas 0 and 0, null key, value "v", no headers.
        let body = [0, 0, 0, 1, 2, b'v', 0];
        let with_length = |length: u8| [&[2 * length][..], &body].concat();
        assert_eq!(skim_all(&with_length(7)).map(|records| records.len()), Ok(1));
        assert_eq!(skim_all(&with_length(0)), Err(Malformed::BadLength));
        assert_eq!(skim_all(&with_length(6)), Err(Malformed::BadLength));
        assert_eq!(skim_all(&with_length(8)), Err(Malformed::BadLength));
        assert_eq!(skim_all(&[1]), Err(Malformed::BadLength), "a negative length");
        for end in 1..8 {
            let cut = &with_length(7)[..end];
            assert!(skim_all(cut).is_err() && Records::new(cut).any(|r| r.is_err()), "{end}");
        }
        // A value that would reach into the next record.
        let reaching = [14, 0, 0, 0, 1, 4, b'v', 0, 14, 0, 0, 0, 1, 2, b'v', 0];
        assert_eq!(skim_all(&reaching), Err(Malformed::BadLength));
    }

    #[test]
    fn a_negative_length_is_null_but_not_for_a_header_key_or_a_count() {
        // -2 is null for Kafka, too.
        assert_eq!(skim_all(&[12, 0, 0, 0, 3, 3, 0]).map(|r| r[0].has_key), Ok(false));
        assert_eq!(skim_all(&[12, 0, 0, 0, 1, 1, 1]), Err(Malformed::BadLength));
        assert_eq!(skim_all(&[16, 0, 0, 0, 1, 1, 2, 1, 1]), Err(Malformed::BadLength));
        let headers = Records::new(&[16, 0, 0, 0, 1, 1, 2, 1, 1]).next().unwrap().unwrap().headers;
        assert_eq!(headers.map(|header| header.is_err()).collect::<Vec<_>>(), [true]);
    }

    #[test]
    fn numbers_have_at_most_five_or_ten_bytes() {
        let max = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(varint(&mut Slice::new(&max)), Ok(i32::MIN));
        assert_eq!(varint(&mut Slice::new(&[0xff; 5])), Err(Malformed::BadNumber));
        assert_eq!(
            varint(&mut Slice::new(&[0xfe, 0xff, 0xff, 0xff, 0x1f])),
            Err(Malformed::BadNumber)
        );
        let mut max = [0xff; 10];
        max[9] = 1;
        assert_eq!(varlong(&mut Slice::new(&max)), Ok(i64::MIN));
        assert_eq!(varlong(&mut Slice::new(&[0xff; 11])), Err(Malformed::BadNumber));
    }
}
