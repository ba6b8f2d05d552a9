//! The records of a batch, decompressed if they must be, to be walked any number of times.
//!
//! ```
//! use kelp::record::builder::{Builder, Fields};
//! use kelp::record::records::Record;
//! use kelp::record::unpacked::Unpacked;
//!
//! let mut builder = Builder::new(Fields { base_offset: 7, ..Fields::default() });
//! builder.append(&Record { offset: 7, value: Some(b"hello"), ..Record::default() })?;
//! let batch = builder.finish()?;
//!
//! let records = Unpacked::new(&batch)?;
//! for record in &records {
//!     let record = record?;
//!     assert_eq!((record.offset, record.value), (7, Some(&b"hello"[..])));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::batch::{Batch, Header, MAGIC};
use super::codec::{Codec, MAX_DECOMPRESSED_BYTES, Stream};
use super::records::{Malformed, Place, Records, Result, Source};
use bytes::Bytes;

/// The records of one batch. Uncompressed ones share its memory.
#[derive(Clone, Debug)]
pub struct Unpacked {
    header: Header,
    records: Bytes,
}

impl Unpacked {
    /// Refuses what is longer than [`MAX_DECOMPRESSED_BYTES`]. The checksum is not looked at: who
    /// does not know where a batch comes from compares [`Batch::checksum`] with the header's.
    pub fn new(batch: &Batch) -> Result<Self> {
        Self::with_limit(batch, MAX_DECOMPRESSED_BYTES)
    }

    /// Refuses what is longer than `limit` when it is decompressed.
    pub fn with_limit(batch: &Batch, limit: u64) -> Result<Self> {
        let header = batch.header;
        let codec = Codec::from_attributes(header.attributes);
        let records = match codec.filter(|_| header.magic == MAGIC).ok_or(Malformed::Unknown)? {
            Codec::None => batch.records(),
            codec => decompressed(codec, &batch.records(), limit)?.into(),
        };
        Ok(Self { header, records })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The records, as they are when they are not compressed.
    pub fn bytes(&self) -> &Bytes {
        &self.records
    }

    pub fn iter(&self) -> Records<'_> {
        Records::new(&self.header, &self.records)
    }

    /// Walks on from where a walk through these records was.
    pub fn iter_from(&self, place: Place) -> Records<'_> {
        Records::from_place(&self.header, &self.records, place)
    }
}

impl<'a> IntoIterator for &'a Unpacked {
    type Item = <Records<'a> as Iterator>::Item;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

fn decompressed(codec: Codec, bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let mut stream = Stream::with_limit(codec, bytes, limit)?;
    let mut all = Vec::new();
    while !stream.is_at_end()? {
        all.extend_from_slice(stream.chunk()?);
    }
    match all.len() as u64 > limit {
        true => Err(Malformed::TooLong),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Draft, FROM_KAFKA, from_kafka};

    #[test]
    fn the_records_of_kafkas_batches_are_the_same_in_every_codec() {
        for (codec, _) in FROM_KAFKA {
            let batch = from_kafka(codec);
            let unpacked = Unpacked::new(&batch).unwrap();
            let values: Vec<_> = unpacked.iter().map(|record| record.unwrap().value).collect();
            let one = "one one one one one one one one";
            assert_eq!(values, [Some(one.as_bytes()), Some(b"two"), None], "{codec:?}");
        }
    }

    #[test]
    fn uncompressed_records_are_not_copied() {
        let batch = from_kafka(Codec::None);
        assert_eq!(Unpacked::new(&batch).unwrap().bytes().as_ptr(), batch.records().as_ptr());
    }

    #[test]
    fn what_a_batch_may_grow_to_has_a_limit() {
        let batch = from_kafka(Codec::Gzip);
        let bytes = Unpacked::new(&batch).unwrap().bytes().len() as u64;
        assert!(Unpacked::with_limit(&batch, bytes).is_ok());
        let outcome = Unpacked::with_limit(&batch, bytes - 1);
        assert_eq!(outcome.map(|_| ()), Err(Malformed::TooLong));
    }

    #[test]
    fn what_is_no_batch_that_we_know_is_refused() {
        let unknown = Draft { attributes: 7, ..Draft::of(&["a"]) }.batch();
        assert_eq!(Unpacked::new(&unknown).map(|_| ()), Err(Malformed::Unknown));
        let mut message_set = Draft::of(&["a"]).batch();
        message_set.header.magic = 1;
        assert_eq!(Unpacked::new(&message_set).map(|_| ()), Err(Malformed::Unknown));
        let garbage = Draft { attributes: 4, payload: Some(vec![7; 50]), ..Draft::of(&["a"]) };
        let outcome = Unpacked::new(&garbage.batch()).map(|_| ());
        assert_eq!(outcome, Err(Malformed::Undecodable));
    }
}
