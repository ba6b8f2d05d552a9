//! Batches, and hosts under a test's hand.

use super::host::{Host, KelpHost};
use crate::record::batch::{Batch, HEADER_BYTES, LENGTH_OFFSET, MAGIC};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A batch of one record at an offset. The record itself is not looked at in this room.
pub(super) fn batch(offset: i64, records: &[u8]) -> Vec<u8> {
    producer_batch(offset, records, -1, -1, -1)
}

pub(super) fn producer_batch(
    offset: i64,
    records: &[u8],
    producer_id: i64,
    epoch: i16,
    sequence: i32,
) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes.extend_from_slice(records);
    let length = i32::try_from(bytes.len() - LENGTH_OFFSET).unwrap();
    bytes[..8].copy_from_slice(&offset.to_be_bytes());
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = MAGIC as u8;
    bytes[43..51].copy_from_slice(&producer_id.to_be_bytes());
    bytes[51..53].copy_from_slice(&epoch.to_be_bytes());
    bytes[53..57].copy_from_slice(&sequence.to_be_bytes());
    bytes[57..61].copy_from_slice(&1i32.to_be_bytes());
    bytes
}

pub(super) fn parsed(bytes: Vec<u8>) -> Batch {
    Batch::split_off(&mut bytes.into()).unwrap()
}

/// A host without dispatchers: who tests carries its tasks out. `kept` gets the operations.
pub(super) fn host(kept: &Kept) -> Arc<Host> {
    host_with(|callbacks| callbacks.ctx = ptr::from_ref(kept).cast_mut().cast())
}

pub(super) fn host_with(fill: impl FnOnce(&mut KelpHost)) -> Arc<Host> {
    let mut callbacks = KelpHost {
        struct_size: 0,
        log_level: 0,
        ctx: ptr::null_mut(),
        storage: ptr::null(),
        objects: ptr::null(),
        release: None,
        log: None,
        state: None,
        topics_changed: None,
    };
    fill(&mut callbacks);
    Host::new(callbacks, Duration::from_millis(100))
}

/// A callback that keeps the operation it gets where `ctx` of the host says.
pub(super) unsafe extern "C" fn keep<B>(ctx: *mut c_void, op: *mut B) {
    // SAFETY: `ctx` is the `Kept` that the host was made with, and outlives it.
    unsafe { &*ctx.cast::<Kept>() }.0.lock().unwrap().push_back(Op(op.cast()));
}

/// The operations that were delivered and not yet taken.
#[derive(Default)]
pub(super) struct Kept(Mutex<VecDeque<Op>>);

struct Op(*mut c_void);

// SAFETY: an operation may be used by any thread, one at a time.
unsafe impl Send for Op {}

impl Kept {
    /// The oldest, if there is one.
    pub(super) fn take<B>(&self) -> Option<*mut B> {
        self.0.lock().unwrap().pop_front().map(|op| op.0.cast())
    }
}
