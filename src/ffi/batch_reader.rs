//! Batches taken apart. A reader lends out slices of what it was given.

use super::batch::{KelpBatchFields, KelpBatchRecord, KelpRecordHeader, array};
use super::data::KelpBytes;
use super::guard;
use super::status::{KELP_CORRUPT, KELP_NULL_POINTER, KelpStatus};
use crate::record::batch::{Batch, Batches, Header, MAGIC};
use crate::record::records::{Place, RecordHeader};
use crate::record::unpacked::Unpacked;
use bytes::Bytes;
use std::ptr;

/// Walks batches and their records. Opaque to C. One thread at a time may use it.
pub struct KelpBatchReader {
    batches: Batches,
    /// The batch that is being walked.
    records: Option<(Unpacked, Place)>,
    fields: KelpBatchFields,
    record: KelpBatchRecord,
    headers: Vec<KelpRecordHeader>,
}

impl KelpBatchReader {
    fn next_batch(&mut self) -> Result<*const KelpBatchFields, KelpStatus> {
        self.records = None;
        let Some(batch) = self.batches.next() else {
            return if self.batches.is_cut() { Err(KELP_CORRUPT) } else { Ok(ptr::null()) };
        };
        let is_good =
            |batch: &Batch| batch.header.magic == MAGIC && batch.checksum() == batch.header.crc;
        if !is_good(&batch) {
            return Err(KELP_CORRUPT);
        }
        let unpacked = Unpacked::new(&batch).map_err(|_| KELP_CORRUPT)?;
        let place = unpacked.iter().place();
        self.records = Some((unpacked, place));
        self.fields = KelpBatchFields::of(&batch.header);
        Ok(&raw const self.fields)
    }

    fn next_record(&mut self) -> Result<*const KelpBatchRecord, KelpStatus> {
        let Some((unpacked, place)) = &mut self.records else { return Ok(ptr::null()) };
        let mut walk = unpacked.iter_from(*place);
        let record = walk.next().transpose().map_err(|_| KELP_CORRUPT);
        *place = walk.place();
        let Some(record) = record? else { return Ok(ptr::null()) };
        let header = |(key, value): RecordHeader<'_>| KelpRecordHeader {
            key: nullable(Some(key)),
            value: nullable(value),
        };
        self.headers.clear();
        self.headers.extend(record.headers.map(header));
        self.record = KelpBatchRecord {
            offset: record.offset,
            timestamp: record.timestamp,
            key: nullable(record.key),
            value: nullable(record.value),
            headers: self.headers.as_ptr(),
            header_count: self.headers.len(),
        };
        Ok(&raw const self.record)
    }
}

/// Memory that a caller keeps as it is while a reader has it.
struct Lent {
    ptr: *const u8,
    len: usize,
}

// SAFETY: nobody changes the memory, so it may be read on any thread.
unsafe impl Send for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the caller keeps the memory until the reader, and so all that it made of this,
        // is freed. It is never made of NULL.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// Makes a reader of batches in Kafka's format v2 that lie one after the other in `slices`, as in a
/// kelp_append or in a segment of Kafka's log. A batch may lie across slices; it is copied then, if
/// not just its header of 61 bytes is in one and all of its records in the next.
///
/// The slices, not the array of them, stay as they are until the reader is freed.
///
/// # Safety
///
/// `slices` points to `slice_count` slices, each NULL with length 0, or memory of that length which
/// nobody changes or frees before the reader is freed. `reader` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_reader_new(
    slices: *const KelpBytes,
    slice_count: usize,
    reader: *mut *mut KelpBatchReader,
) -> KelpStatus {
    guard(|| {
        // SAFETY: the caller's array is that long.
        let slices = unsafe { array(slices, slice_count) }?;
        if reader.is_null() || slices.iter().any(|s| s.ptr.is_null() && s.len > 0) {
            return Err(KELP_NULL_POINTER);
        }
        let slices = slices.iter().filter(|slice| slice.len > 0);
        let lent = slices.map(|slice| Bytes::from_owner(Lent { ptr: slice.ptr, len: slice.len }));
        let new = Box::new(KelpBatchReader {
            batches: Batches::new(lent.collect()),
            records: None,
            fields: KelpBatchFields::of(&Header::default()),
            record: KelpBatchRecord {
                offset: 0,
                timestamp: 0,
                key: KelpBytes::EMPTY,
                value: KelpBytes::EMPTY,
                headers: ptr::null(),
                header_count: 0,
            },
            headers: Vec::new(),
        });
        // SAFETY: not null, and the caller's to write.
        unsafe { *reader = Box::into_raw(new) };
        Ok(())
    })
}

/// Goes to the next batch, whether or not all records of the one before were read. `fields` gets
/// what it says of itself, or NULL if there is none; Kelp's, until the next call of this function
/// or `kelp_batch_reader_free`.
///
/// A compressed batch is decompressed here, once, if it then has at most 256 MiB.
///
/// KELP_CORRUPT if the bytes that are left are no whole batch of format v2 with a right checksum,
/// or cannot be decompressed.
///
/// # Safety
///
/// `reader` is NULL or was not freed, and no other thread uses it. `fields` is NULL or may be
/// written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_reader_next_batch(
    reader: *mut KelpBatchReader,
    fields: *mut *const KelpBatchFields,
) -> KelpStatus {
    // SAFETY: as this function's caller promises.
    unsafe { step(reader, fields, KelpBatchReader::next_batch) }
}

/// Goes to the next record of the batch. `record` gets it, or NULL if there is none: then comes
/// `kelp_batch_reader_next_batch`, which is also the first call.
///
/// The struct and its array of headers are Kelp's, until the next call with this reader. What the
/// keys and values point to stays until the next batch: of a batch that is not compressed and was
/// not copied, it is the caller's own memory.
///
/// KELP_CORRUPT if the record's fields do not fit into it, or if the batch has more or fewer records
/// than it says.
///
/// # Safety
///
/// As for `kelp_batch_reader_next_batch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_reader_next_record(
    reader: *mut KelpBatchReader,
    record: *mut *const KelpBatchRecord,
) -> KelpStatus {
    // SAFETY: as this function's caller promises.
    unsafe { step(reader, record, KelpBatchReader::next_record) }
}

/// One step of a reader. What it came to is NULL when the step fails.
///
/// # Safety
///
/// As for `kelp_batch_reader_next_batch`.
unsafe fn step<T>(
    reader: *mut KelpBatchReader,
    out: *mut *const T,
    step: impl FnOnce(&mut KelpBatchReader) -> Result<*const T, KelpStatus>,
) -> KelpStatus {
    guard(|| {
        // SAFETY: null is checked; nobody else uses either.
        let (reader, out) = unsafe { (reader.as_mut(), out.as_mut()) };
        let (reader, out) = (reader.ok_or(KELP_NULL_POINTER)?, out.ok_or(KELP_NULL_POINTER)?);
        *out = ptr::null();
        *out = step(reader)?;
        Ok(())
    })
}

/// Frees a reader, and all that it gave.
///
/// # Safety
///
/// `reader` is NULL or was not freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_reader_free(reader: *mut KelpBatchReader) {
    guard(|| {
        if !reader.is_null() {
            // SAFETY: the pointer came from a box in `kelp_batch_reader_new`, and is given up.
            drop(unsafe { Box::from_raw(reader) });
        }
        Ok(())
    });
}

/// Only what is null has no place: here it differs from what is empty.
fn nullable(bytes: Option<&[u8]>) -> KelpBytes {
    bytes.map_or(KelpBytes::EMPTY, |bytes| KelpBytes { ptr: bytes.as_ptr(), len: bytes.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{FROM_KAFKA, from_kafka};

    #[test]
    fn the_batches_of_kafkas_producer_are_read_in_every_codec() {
        let batches = FROM_KAFKA.map(|(codec, _)| from_kafka(codec).to_bytes());
        let slices = batches.each_ref().map(|bytes| KelpBytes::of(bytes));
        let (mut reader, mut fields, mut record) = (ptr::null_mut(), ptr::null(), ptr::null());
        // SAFETY: the slices live as long as the reader, and what it gives is looked at before the
        // next call.
        unsafe {
            assert_eq!(kelp_batch_reader_new(slices.as_ptr(), slices.len(), &mut reader), 0);
            for (codec, _) in FROM_KAFKA {
                assert_eq!(kelp_batch_reader_next_batch(reader, &mut fields), 0);
                assert_eq!(*fields, KelpBatchFields::of(&from_kafka(codec).header));
                let mut values = Vec::new();
                while kelp_batch_reader_next_record(reader, &mut record) == 0 && !record.is_null() {
                    let KelpBytes { ptr, len } = (*record).value;
                    let value = (!ptr.is_null()).then(|| std::slice::from_raw_parts(ptr, len));
                    values.push((value.map(<[u8]>::to_vec), (*record).header_count));
                }
                let one = b"one one one one one one one one".to_vec();
                assert_eq!(values, [(Some(one), 2), (Some(b"two".to_vec()), 0), (None, 0)]);
            }
            kelp_batch_reader_free(reader);
        }
    }
}
