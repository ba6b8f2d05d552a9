//! Batches put together. A builder copies what it is given.

use super::batch::{KelpBatchFields, KelpBatchRecord, KelpRecordHeader, array};
use super::data::{KelpBytes, read_versioned};
use super::guard;
use super::status::{
    KELP_CORRUPT, KELP_INVALID_ARGUMENT, KELP_IO, KELP_MESSAGE_TOO_LARGE, KELP_NULL_POINTER,
    KELP_PANIC, KelpStatus,
};
use crate::record::builder::{BuildError, Builder};
use crate::record::records::{Headers, Record, RecordHeader};
use bytes::Bytes;

/// Makes a batch of records. Opaque to C. One thread at a time may use it.
pub struct KelpBatchBuilder(Batching);

enum Batching {
    Open(Box<Builder>),
    Done(Bytes),
    Failed(KelpStatus),
}

/// Makes a builder of one batch in Kafka's format v2. Zero fields but `struct_size` make one without
/// compression and producer, from offset 0 on.
///
/// KELP_INVALID_ARGUMENT if there is an attribute, codec or level that is not known.
///
/// # Safety
///
/// `fields` is NULL or points to a struct that is as long as its first field says. `builder` is NULL
/// or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_builder_new(
    fields: *const KelpBatchFields,
    builder: *mut *mut KelpBatchBuilder,
) -> KelpStatus {
    guard(|| {
        // SAFETY: null is checked; otherwise the caller's struct is as long as it says.
        let fields = unsafe { read_versioned(fields) }?.for_builder();
        if builder.is_null() {
            return Err(KELP_NULL_POINTER);
        }
        let new = Builder::new(fields.ok_or(KELP_INVALID_ARGUMENT)?);
        let new = Box::new(KelpBatchBuilder(Batching::Open(Box::new(new))));
        // SAFETY: not null, and the caller's to write.
        unsafe { *builder = Box::into_raw(new) };
        Ok(())
    })
}

/// Adds a record: all of it is copied. Offsets go up from record to record, and none is below the
/// base offset.
///
/// KELP_MESSAGE_TOO_LARGE if the batch would be longer than it may be, KELP_INVALID_ARGUMENT if the
/// offset is not as said, or if the batch is finished: the record is not in the batch, and no more
/// is changed, so it may be the first one of the next batch.
///
/// # Safety
///
/// `builder` is NULL or was not freed, and no other thread uses it. `record` is NULL, or it and all
/// that it points to may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_builder_append(
    builder: *mut KelpBatchBuilder,
    record: *const KelpBatchRecord,
) -> KelpStatus {
    guard(|| {
        // SAFETY: null is checked; nobody else uses the builder, nobody changes the record.
        let (builder, record) = unsafe { (builder.as_mut(), record.as_ref()) };
        let (KelpBatchBuilder(state), record) =
            (builder.ok_or(KELP_NULL_POINTER)?, record.ok_or(KELP_NULL_POINTER)?);
        let Batching::Open(open) = state else { return Err(KELP_INVALID_ARGUMENT) };
        // SAFETY: the caller's arrays are as long as the record says, as are its fields.
        let (headers, key, value) = unsafe {
            let headers = array(record.headers, record.header_count)?;
            let headers: Result<Vec<_>, _> =
                headers.iter().map(|header| read_header(header)).collect();
            (headers?, read_nullable(&record.key)?, read_nullable(&record.value)?)
        };
        let KelpBatchRecord { offset, timestamp, .. } = *record;
        let headers = Headers::new(&headers);
        let appended = open.append(&Record { offset, timestamp, key, value, headers });
        appended.map_err(|error| {
            let status = status_of(&error);
            if matches!(error, BuildError::Codec(_)) {
                *state = Batching::Failed(status);
            }
            status
        })
    })
}

/// Ends the batch. `batch` gets its bytes, which are Kelp's until `kelp_batch_builder_free`. Asked
/// again, it gives the same.
///
/// KELP_INVALID_ARGUMENT if no record was added.
///
/// # Safety
///
/// `builder` is NULL or was not freed, and no other thread uses it. `batch` is NULL or may be written
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_builder_finish(
    builder: *mut KelpBatchBuilder,
    batch: *mut KelpBytes,
) -> KelpStatus {
    guard(|| {
        // SAFETY: null is checked; nobody else uses either.
        let (builder, batch) = unsafe { (builder.as_mut(), batch.as_mut()) };
        let (KelpBatchBuilder(state), batch) =
            (builder.ok_or(KELP_NULL_POINTER)?, batch.ok_or(KELP_NULL_POINTER)?);
        *batch = KelpBytes::EMPTY;
        *state = match std::mem::replace(state, Batching::Failed(KELP_PANIC)) {
            Batching::Open(open) => match open.finish_bytes() {
                Ok(bytes) => Batching::Done(bytes),
                Err(error) => Batching::Failed(status_of(&error)),
            },
            ended => ended,
        };
        match state {
            Batching::Done(bytes) => *batch = KelpBytes::of(bytes),
            Batching::Failed(status) => return Err(*status),
            Batching::Open(_) => unreachable!("it was ended"),
        }
        Ok(())
    })
}

/// Frees a builder, and the bytes that it gave.
///
/// # Safety
///
/// `builder` is NULL or was not freed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_batch_builder_free(builder: *mut KelpBatchBuilder) {
    guard(|| {
        if !builder.is_null() {
            // SAFETY: the pointer came from a box in `kelp_batch_builder_new`, and is given up.
            drop(unsafe { Box::from_raw(builder) });
        }
        Ok(())
    });
}

fn status_of(error: &BuildError) -> KelpStatus {
    match error {
        BuildError::Full => KELP_MESSAGE_TOO_LARGE,
        BuildError::BadOffset | BuildError::Empty => KELP_INVALID_ARGUMENT,
        BuildError::Malformed(_) => KELP_CORRUPT,
        BuildError::Codec(_) => KELP_IO,
    }
}

/// # Safety
///
/// As [`array`].
unsafe fn read_nullable<'a>(bytes: &KelpBytes) -> Result<Option<&'a [u8]>, KelpStatus> {
    // SAFETY: as promised.
    let read = unsafe { array(bytes.ptr, bytes.len) }?;
    Ok((!bytes.ptr.is_null()).then_some(read))
}

/// # Safety
///
/// As [`array`], for key and value.
unsafe fn read_header<'a>(header: &KelpRecordHeader) -> Result<RecordHeader<'a>, KelpStatus> {
    // SAFETY: as promised.
    unsafe { Ok((array(header.key.ptr, header.key.len)?, read_nullable(&header.value)?)) }
}
