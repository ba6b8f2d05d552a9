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

use super::batch::Header;

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
    #[error("the records are not as many as their batch counts")]
    BadCount,
    #[error("the batch is not of magic 2, or its codec is unknown")]
    Unknown,
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
    /// Negative for null.
    pub key_bytes: i32,
    pub value_bytes: i32,
}

impl Skimmed {
    pub fn has_key(&self) -> bool {
        self.key_bytes >= 0
    }
}

/// Takes the next record off `source`. All lengths in it must add up.
#[inline]
pub fn skim<S: Source>(source: &mut S) -> Result<Skimmed> {
    let len = usize::try_from(varint(source)?).map_err(|_| Malformed::BadLength)?;
    let end = source.position() + len as u64;
    source.byte()?;
    let timestamp_delta = varlong(source)?;
    let offset_delta = varint(source)?;
    let key_bytes = skip_nullable(source, end)?;
    let value_bytes = skip_nullable(source, end)?;
    let headers = varint(source)?;
    if headers < 0 {
        return Err(Malformed::BadLength);
    }
    for _ in 0..headers {
        if skip_nullable(source, end)? < 0 {
            return Err(Malformed::BadLength);
        }
        skip_nullable(source, end)?;
    }
    if source.position() != end {
        return Err(Malformed::BadLength);
    }
    Ok(Skimmed { timestamp_delta, offset_delta, key_bytes, value_bytes })
}

/// Passes over a key or a value, and gives its length.
#[inline]
fn skip_nullable<S: Source>(source: &mut S, end: u64) -> Result<i32> {
    let bytes = varint(source)?;
    if let Ok(len) = usize::try_from(bytes) {
        if source.position() + len as u64 > end {
            return Err(Malformed::BadLength);
        }
        source.skip(len)?;
    }
    Ok(bytes)
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

/// One record, as it is read from a batch or given to one. Nothing of it is a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

/// Key and value of a header of a record.
pub type RecordHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// Walks records that are in memory and not compressed: as many as the header of their batch
/// counts, and nothing may be behind them. See [`Unpacked`](super::unpacked::Unpacked).
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: Header,
    bytes: Slice<'a>,
    left: i32,
}

/// How far a walk has come, so that it can go on later.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    at: usize,
    left: i32,
}

impl<'a> Records<'a> {
    pub fn new(header: &Header, bytes: &'a [u8]) -> Self {
        Self { header: *header, bytes: Slice::new(bytes), left: header.record_count }
    }

    /// Walks on from the place of another walk through the same records.
    pub fn from_place(header: &Header, bytes: &'a [u8], place: Place) -> Self {
        let Place { at, left } = place;
        Self { header: *header, bytes: Slice { bytes, at: at.min(bytes.len()) }, left }
    }

    pub fn place(&self) -> Place {
        Place { at: self.bytes.at, left: self.left }
    }

    fn read(&mut self) -> Result<Record<'a>> {
        let len = usize::try_from(varint(&mut self.bytes)?).map_err(|_| Malformed::BadLength)?;
        let mut record = Slice::new(self.bytes.take(len)?);
        record.byte()?;
        let timestamp_delta = varlong(&mut record)?;
        let offset_delta = i64::from(varint(&mut record)?);
        Ok(Record {
            offset: self.header.base_offset.wrapping_add(offset_delta),
            timestamp: self.header.timestamp_of(timestamp_delta),
            key: record.nullable()?,
            value: record.nullable()?,
            headers: Headers::read(record)?,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    /// After an error nothing more comes.
    fn next(&mut self) -> Option<Self::Item> {
        let is_at_end = self.bytes.at == self.bytes.bytes.len();
        if self.left == 0 && is_at_end {
            return None;
        }
        let record = match self.left > 0 && !is_at_end {
            true => self.read(),
            false => Err(Malformed::BadCount),
        };
        self.left = self.left.saturating_sub(1);
        if record.is_err() {
            (self.bytes.at, self.left) = (self.bytes.bytes.len(), 0);
        }
        Some(record)
    }
}

/// The headers of a record: a key may come more than once, a value may be null.
#[derive(Clone)]
pub struct Headers<'a>(Form<'a>);

#[derive(Clone)]
enum Form<'a> {
    /// As they are in a batch, behind their count; that they are well formed was checked.
    Encoded {
        bytes: Slice<'a>,
        count: u32,
    },
    Given(&'a [RecordHeader<'a>]),
}

impl<'a> Headers<'a> {
    pub fn new(headers: &'a [RecordHeader<'a>]) -> Self {
        Self(Form::Given(headers))
    }

    /// Takes what is left of a record. All lengths in it must add up.
    fn read(mut record: Slice<'a>) -> Result<Self> {
        let count = u32::try_from(varint(&mut record)?).map_err(|_| Malformed::BadLength)?;
        let bytes = Slice::new(&record.bytes[record.at..]);
        for _ in 0..count {
            read_header(&mut record)?;
        }
        match record.is_at_end()? {
            true => Ok(Self(Form::Encoded { bytes, count })),
            false => Err(Malformed::BadLength),
        }
    }

    /// Those to come, as a batch has them, if they came from one.
    pub(super) fn encoded(&self) -> Option<&'a [u8]> {
        match &self.0 {
            Form::Encoded { bytes, .. } => Some(&bytes.bytes[bytes.at..]),
            Form::Given(_) => None,
        }
    }
}

fn read_header<'a>(bytes: &mut Slice<'a>) -> Result<RecordHeader<'a>> {
    let key = bytes.nullable()?.ok_or(Malformed::BadLength)?;
    Ok((key, bytes.nullable()?))
}

impl<'a> Iterator for Headers<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Form::Encoded { bytes, count } => {
                *count = count.checked_sub(1)?;
                read_header(bytes).ok()
            }
            Form::Given(headers) => {
                let (first, rest) = headers.split_first()?;
                *headers = rest;
                Some(*first)
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Form::Encoded { count, .. } => *count as usize,
            Form::Given(headers) => headers.len(),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

impl Default for Headers<'_> {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl std::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl PartialEq for Headers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.clone().eq(other.clone())
    }
}

impl Eq for Headers<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::codec::Codec;
    use crate::record::testing::from_kafka;

    /// A walk through bytes that should be so many records.
    fn walk(record_count: i32, bytes: &[u8]) -> Records<'_> {
        let header = Header { record_count, ..from_kafka(Codec::None).header };
        Records::new(&header, bytes)
    }

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
        let batch = from_kafka(Codec::None);
        let bytes = batch.records();
        let records: Vec<_> = Records::new(&batch.header, &bytes).map(Result::unwrap).collect();
        let [first, second, third] = &records[..] else { panic!("{records:?}") };
        let time = batch.header.base_timestamp;
        assert_eq!((first.offset, first.timestamp), (0, time));
        assert_eq!(first.key, Some(&b"k1"[..]));
        assert_eq!(first.value, Some(&b"one one one one one one one one"[..]));
        assert!(bytes.as_ptr_range().contains(&first.value.unwrap().as_ptr()));
        assert_eq!(first.headers.len(), 2);
        let headers: Vec<_> = first.headers.clone().collect();
        assert_eq!(headers, [(&b"h"[..], Some(&b"1"[..])), (b"h", Some(b"2"))]);
        assert_eq!((second.offset, second.timestamp), (1, time + 14));
        assert_eq!((second.key, second.value), (Some(&b"k2"[..]), Some(&b"two"[..])));
        assert_eq!((third.offset, third.value, third.headers.len()), (2, None, 0));
        let skimmed = skim_all(&bytes).unwrap();
        let third = Skimmed { timestamp_delta: 14, offset_delta: 2, key_bytes: 2, value_bytes: -1 };
        assert_eq!(skimmed[2], third);
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
            assert!(skim_all(cut).is_err() && walk(1, cut).any(|r| r.is_err()), "{end}");
        }
        // A value that would reach into the next record.
        let reaching = [14, 0, 0, 0, 1, 4, b'v', 0, 14, 0, 0, 0, 1, 2, b'v', 0];
        assert_eq!(skim_all(&reaching), Err(Malformed::BadLength));
        assert_eq!(walk(2, &reaching).last(), Some(Err(Malformed::Truncated)));
    }

    #[test]
    fn a_negative_length_is_null_but_not_for_a_header_key_or_a_count() {
        // -2 is null for Kafka, too.
        assert_eq!(skim_all(&[12, 0, 0, 0, 3, 3, 0]).map(|r| r[0].has_key()), Ok(false));
        assert_eq!(skim_all(&[12, 0, 0, 0, 1, 1, 1]), Err(Malformed::BadLength));
        assert_eq!(skim_all(&[16, 0, 0, 0, 1, 1, 2, 1, 1]), Err(Malformed::BadLength));
        for bad in [&[16, 0, 0, 0, 1, 1, 2, 1, 1][..], &[12, 0, 0, 0, 1, 1, 1]] {
            let walked: Vec<_> = walk(1, bad).collect();
            assert_eq!(walked, [Err(Malformed::BadLength)]);
        }
    }

    #[test]
    fn a_walk_gives_as_many_records_as_the_batch_counts_or_an_error() {
        let one = [14, 0, 0, 0, 1, 2, b'v', 0];
        let outcome = |count, times: usize| {
            let bytes = one.repeat(times);
            let walked: Vec<_> = walk(count, &bytes).collect();
            (walked.len(), walked.last().cloned().and_then(Result::err))
        };
        assert_eq!(outcome(0, 0), (0, None));
        assert_eq!(outcome(2, 2), (2, None));
        assert_eq!(outcome(3, 2), (3, Some(Malformed::BadCount)));
        assert_eq!(outcome(1, 2), (2, Some(Malformed::BadCount)));
        assert_eq!(outcome(0, 1), (1, Some(Malformed::BadCount)));
        assert_eq!(outcome(-1, 1), (1, Some(Malformed::BadCount)));
        assert_eq!(outcome(i32::MIN, 0), (1, Some(Malformed::BadCount)));
    }

    #[test]
    fn a_walk_goes_on_from_its_place() {
        let batch = from_kafka(Codec::None);
        let bytes = batch.records();
        let whole: Vec<_> = Records::new(&batch.header, &bytes).collect();
        let mut place = Records::new(&batch.header, &bytes).place();
        for record in &whole {
            let mut walk = Records::from_place(&batch.header, &bytes, place);
            assert_eq!(walk.next().as_ref(), Some(record));
            place = walk.place();
        }
        assert_eq!(Records::from_place(&batch.header, &bytes, place).next(), None);
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
