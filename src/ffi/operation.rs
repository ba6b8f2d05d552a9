//! An operation: one question to the host, with the memory of question and answer.
//!
//! ```text
//!            submit                dispatcher               host, once
//!   (made) ─────────▶ queued ─────────────────▶ delivered ──────────────▶ completed, freed
//!                       └── the engine ends: completed by Kelp with KELP_STOPPED, freed
//! ```
//!
//! Its memory is its own and outlives the engine: a host that completes an operation late only
//! frees it. Who waited for the answer may be gone long before.

use super::data::{KelpBytes, KelpStr};
use super::host::Host;
use super::status::{
    Failure, KELP_INVALID_ARGUMENT, KELP_NULL_POINTER, KELP_OK, KELP_STOPPED, KelpStatus,
};
use bytes::Bytes;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use tracing::dispatcher;

/// The head of every operation: each operation's struct begins with it, so a pointer to the
/// struct is a pointer to the head. The pointer is the token with which the host completes it.
///
/// All that an operation points to belongs to Kelp and stays as it is until the host completes
/// the operation. What the host answers (the fields marked "out") may lie in memory of
/// `kelp_op_alloc` or `kelp_op_lend`, which is not copied, or anywhere else where it stays until
/// `kelp_op_complete` returns, which copies it.
///
/// The calls for one operation may come from any thread, but not from two at the same time.
#[repr(C)]
pub struct KelpOp {
    /// Which operation this is the head of: KELP_OP_...
    pub kind: u32,
    /// After so many milliseconds nobody waits for the answer any more. 0: always somebody does.
    pub timeout_ms: u32,
    /// The host's own word, NULL at first. Kelp never touches it.
    pub host: *mut c_void,
    /// out, optional: what went wrong, for Kelp's log, when the status is not KELP_OK.
    pub error: KelpStr,
    /// Kelp's own. Not to be touched.
    pub kelp: *mut c_void,
}

impl KelpOp {
    /// The head of an operation that was not submitted yet.
    pub(super) const NEW: Self = Self {
        kind: 0,
        timeout_ms: 0,
        host: ptr::null_mut(),
        error: KelpStr::EMPTY,
        kelp: ptr::null_mut(),
    };
}

/// The struct of one kind of operation.
///
/// # Safety
///
/// The struct is `repr(C)` and begins with a [`KelpOp`].
pub(super) unsafe trait Operation: 'static {
    const KIND: u32;
}

/// The host's function for one kind of operation.
pub(super) type Callback<B> = unsafe extern "C" fn(ctx: *mut c_void, op: *mut B);

type Finish = Box<dyn FnOnce(KelpStatus, Results) + Send>;

/// What Kelp keeps of an operation that the host does not see.
struct Ledger {
    host: Arc<Host>,
    memory: Memory,
    finish: Finish,
}

/// An operation that the host was not asked yet. Dropped, it is completed as stopped.
pub(super) struct Ticket {
    callback: Callback<KelpOp>,
    op: *mut KelpOp,
}

// SAFETY: an operation is used by one thread at a time, and all that it owns may be sent.
unsafe impl Send for Ticket {}

/// A pointer to an operation's struct, on its way through the host.
struct Body<B>(*mut B);

// SAFETY: as for `Ticket`.
unsafe impl<B> Send for Body<B> {}

impl Ticket {
    /// Makes an operation. `inputs` is what `body` points to; it is kept as long as the
    /// operation. `read` takes the answer out of the completed struct, `then` gets it.
    pub(super) fn new<B: Operation, A>(
        host: Arc<Host>,
        callback: Callback<B>,
        body: B,
        inputs: impl Send + 'static,
        timeout_ms: u32,
        read: impl FnOnce(&Outcome<'_, B>) -> Result<A, Failure> + Send + 'static,
        then: impl FnOnce(Result<A, Failure>) + Send + 'static,
    ) -> Self {
        let body = Body(Box::into_raw(Box::new(body)));
        let op = body.0.cast::<KelpOp>();
        let finish: Finish = Box::new(move |status, results| {
            let body = body;
            // SAFETY: the pointer came from a box, and this is its only end.
            let body = unsafe { Box::from_raw(body.0) };
            // SAFETY: the struct begins with its head.
            let text = unsafe { (*ptr::from_ref(&*body).cast::<KelpOp>()).error };
            then(read(&Outcome { body: &body, status, text, results }));
            drop(inputs);
        });
        let ledger = Ledger { memory: Memory::new(&host), host, finish };
        // SAFETY: the struct begins with its head, and nobody else knows it yet.
        unsafe {
            (*op).kind = B::KIND;
            (*op).timeout_ms = timeout_ms;
            (*op).kelp = Box::into_raw(Box::new(ledger)).cast();
        }
        // SAFETY: two functions that differ in what a pointer points to have the same ABI.
        let callback = unsafe { std::mem::transmute::<Callback<B>, Callback<KelpOp>>(callback) };
        Self { callback, op }
    }

    /// Hands the operation to the host.
    pub(super) fn deliver(self, ctx: *mut c_void) {
        let (callback, op) = (self.callback, self.op);
        std::mem::forget(self);
        // SAFETY: the host gave this function for operations of this kind; the operation is
        // whole, and from here on the host's.
        unsafe { callback(ctx, op) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // SAFETY: the host never saw the operation, so this is its only completion.
        unsafe { finish(self.op, KELP_STOPPED) }
    }
}

/// Ends an operation: its answer goes to who waits, its memory goes.
///
/// # Safety
///
/// `op` was not completed yet, and is not used again.
unsafe fn finish(op: *mut KelpOp, status: KelpStatus) {
    // SAFETY: a live operation has its ledger, which is taken back once.
    let ledger = unsafe { Box::from_raw((*op).kelp.cast::<Ledger>()) };
    let Ledger { host, memory, finish } = *ledger;
    host.completed();
    dispatcher::with_default(host.log(), || finish(status, memory.seal()));
}

/// A completed operation, as its answer is read.
pub(super) struct Outcome<'a, B> {
    pub(super) body: &'a B,
    pub(super) status: KelpStatus,
    text: KelpStr,
    results: Results,
}

/// Only for what the host wrote into the completed struct: that is valid until its call of
/// [`kelp_op_complete`] returns, which is where this runs.
impl<B> Outcome<'_, B> {
    /// The status as a failure: for every status that is no answer of this operation.
    pub(super) fn failure(&self) -> Failure {
        if self.status == KELP_STOPPED {
            return Failure::Stopped;
        }
        Failure::Status(self.status, self.text(self.text).unwrap_or_default())
    }

    /// `Ok` only if the host said so.
    pub(super) fn ok(&self) -> Result<(), Failure> {
        if self.status == KELP_OK { Ok(()) } else { Err(self.failure()) }
    }

    /// Bytes of the answer, without a copy where they are the operation's or lent.
    pub(super) fn bytes(&self, bytes: KelpBytes) -> Result<Bytes, Failure> {
        let slice = self.array(bytes.ptr, bytes.len)?;
        Ok(self.results.share(slice).unwrap_or_else(|| Bytes::copy_from_slice(slice)))
    }

    pub(super) fn text(&self, text: KelpStr) -> Result<String, Failure> {
        let bytes = text.as_bytes();
        let slice = self.array(bytes.ptr, bytes.len)?;
        let text = std::str::from_utf8(slice).map_err(|_| Failure::Malformed("not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(super) fn array<T: Copy>(&self, start: *const T, len: usize) -> Result<&[T], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        if start.is_null() || !start.is_aligned() {
            return Err(Failure::Malformed("a pointer is null or not aligned"));
        }
        if len.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
            return Err(Failure::Malformed("a length is impossible"));
        }
        // SAFETY: the pointer can be read and the length can be; that as many values are there
        // is the host's promise, see above.
        Ok(unsafe { std::slice::from_raw_parts(start, len) })
    }
}

/// The memory of an operation's answer while the host fills it.
struct Memory {
    host: Arc<Host>,
    buffers: Vec<Buffer>,
    lent: Vec<Lent>,
}

impl Memory {
    fn new(host: &Arc<Host>) -> Self {
        Self { host: host.clone(), buffers: Vec::new(), lent: Vec::new() }
    }

    fn seal(self) -> Results {
        let buffers = self.buffers.into_iter().map(Bytes::from_owner);
        Results(buffers.chain(self.lent.into_iter().map(Bytes::from_owner)).collect())
    }
}

/// The memory of an answer that the host has given.
pub(super) struct Results(Vec<Bytes>);

impl Results {
    fn share(&self, slice: &[u8]) -> Option<Bytes> {
        let wanted = slice.as_ptr_range();
        let holds = |bytes: &&Bytes| {
            let have = bytes.as_ptr_range();
            have.start <= wanted.start && wanted.end <= have.end
        };
        self.0.iter().find(holds).map(|bytes| bytes.slice_ref(slice))
    }
}

/// Memory that the host fills. Zeroed: what it leaves out must not show what was there before.
struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

/// As for `malloc`: any type of C may stand there.
const ALIGNMENT: usize = 16;

// SAFETY: the buffer owns its memory.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(len: usize) -> Option<Self> {
        let layout = Layout::from_size_align(len.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, layout })
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the memory is as long as its layout, was zeroed, and is only read once the
        // host has completed the operation.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Memory of the host's, given back when nothing shows it any more.
struct Lent {
    start: *const u8,
    len: usize,
    token: *mut c_void,
    host: Arc<Host>,
}

// SAFETY: the host promised that its memory stays as it is until it is given back, and that any
// thread may read it; the token is only handed back.
unsafe impl Send for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.host.release(self.token);
    }
}

/// Allocates `len` zeroed bytes for the answer of an operation, aligned for any type. They are
/// the operation's: never freed by the host, and gone when it is completed. NULL if there is no
/// memory.
///
/// # Safety
///
/// `op` is NULL or an operation that was not completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_op_alloc(op: *mut KelpOp, len: usize) -> *mut c_void {
    let allocate = || {
        if op.is_null() {
            return None;
        }
        let buffer = Buffer::new(len)?;
        let start = buffer.start.as_ptr();
        // SAFETY: a live operation has its ledger, and its calls do not overlap.
        unsafe { &mut *(*op).kelp.cast::<Ledger>() }.memory.buffers.push(buffer);
        Some(start.cast())
    };
    catch_unwind(AssertUnwindSafe(allocate)).ok().flatten().unwrap_or(ptr::null_mut())
}

/// Lends memory of the host's for the answer of an operation: bytes of the answer that lie in it
/// are not copied. It must stay as it is until Kelp calls `release(ctx, lent)` of `kelp_host`,
/// once, on a dispatcher thread, or inside `kelp_op_complete` when the engine is gone already.
///
/// KELP_INVALID_ARGUMENT if the host has no `release`; nothing is lent then.
///
/// # Safety
///
/// `op` is NULL or an operation that was not completed; `len` bytes at `ptr` can be read by any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_op_lend(
    op: *mut KelpOp,
    ptr: *const c_void,
    len: usize,
    lent: *mut c_void,
) -> KelpStatus {
    super::guard(|| {
        if op.is_null() || ptr.is_null() {
            return Err(KELP_NULL_POINTER);
        }
        // SAFETY: a live operation has its ledger, and its calls do not overlap.
        let memory = unsafe { &mut (*(*op).kelp.cast::<Ledger>()).memory };
        if !memory.host.takes_back() || len > isize::MAX as usize {
            return Err(KELP_INVALID_ARGUMENT);
        }
        let host = memory.host.clone();
        memory.lent.push(Lent { start: ptr.cast(), len, token: lent, host });
        Ok(())
    })
}

/// Completes an operation: once, from any thread, inside the callback that brought it or later,
/// also after `kelp_engine_free`, which leaves nothing to do but to free it. Afterwards `op` and
/// all it pointed to are gone. The statuses that an operation may have stand at its struct; any
/// other one means KELP_UNAVAILABLE.
///
/// # Safety
///
/// `op` is NULL or an operation that was not completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_op_complete(op: *mut KelpOp, status: KelpStatus) -> KelpStatus {
    super::guard(|| {
        if op.is_null() {
            return Err(KELP_NULL_POINTER);
        }
        // SAFETY: the host completes an operation once.
        unsafe { finish(op, status) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::objects::KelpGet;
    use super::super::samples::{Kept, host, host_with, keep};
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    type Answer = Result<Bytes, Failure>;

    /// Submits a get whose answer comes out of the channel.
    fn ask(host: &Arc<Host>) -> Receiver<Answer> {
        let (sender, receiver) = channel();
        let body = KelpGet {
            op: KelpOp::NEW,
            key: KelpStr::EMPTY,
            offset: 0,
            length: 10,
            data: KelpBytes::EMPTY,
        };
        let read = |outcome: &Outcome<'_, KelpGet>| {
            outcome.ok()?;
            outcome.bytes(outcome.body.data)
        };
        let then = move |answer| drop(sender.send(answer));
        host.submit(keep::<KelpGet>, body, (), read, then);
        receiver
    }

    fn delivered(host: &Host, kept: &Kept) -> *mut KelpGet {
        host.carry_out_next();
        kept.take().expect("it was delivered")
    }

    #[test]
    fn memory_of_the_operation_is_not_copied_and_other_memory_is() {
        let kept = Kept::default();
        let host = host(&kept);
        let receiver = ask(&host);
        let op = delivered(&host, &kept);
        // SAFETY: the operation is live until it is completed.
        let given = unsafe {
            let given = kelp_op_alloc(op.cast(), 10).cast::<u8>();
            *given.add(3) = b'x';
            (*op).data = KelpBytes { ptr: given.add(2), len: 3 };
            kelp_op_complete(op.cast(), KELP_OK);
            given as usize
        };
        let answer = receiver.recv().unwrap().unwrap();
        assert_eq!((&answer[..], answer.as_ptr() as usize), (&b"\0x\0"[..], given + 2));

        let receiver = ask(&host);
        let op = delivered(&host, &kept);
        let own = *b"own";
        // SAFETY: as above; the bytes live longer than the call.
        unsafe {
            (*op).data = KelpBytes::of(&own);
            kelp_op_complete(op.cast(), KELP_OK);
        }
        let answer = receiver.recv().unwrap().unwrap();
        assert_eq!(&answer[..], b"own");
        assert_ne!(answer.as_ptr(), own.as_ptr());
    }

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn release(_: *mut c_void, lent: *mut c_void) {
        RELEASED.fetch_add(lent as usize, Ordering::SeqCst);
    }

    #[test]
    fn lent_memory_comes_back_once_when_nothing_shows_it() {
        let kept = Kept::default();
        let host = host_with(|callbacks| {
            callbacks.ctx = ptr::from_ref(&kept).cast_mut().cast();
            callbacks.release = Some(release);
        });
        let own = *b"0123456789";
        let lend = |op: *mut KelpGet| {
            // SAFETY: the operation is live until it is completed, and the bytes live longer
            // than all that shows them.
            unsafe {
                assert_eq!(kelp_op_lend(op.cast(), own.as_ptr().cast(), 10, 7 as _), KELP_OK);
                (*op).data = KelpBytes::of(&own[2..5]);
                kelp_op_complete(op.cast(), KELP_OK);
            }
        };
        let receiver = ask(&host);
        lend(delivered(&host, &kept));
        let answer = receiver.recv().unwrap().unwrap();
        assert_eq!((&answer[..], answer.as_ptr()), (&b"234"[..], own[2..].as_ptr()));
        let part = answer.slice(1..);
        drop(answer);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 0);
        drop(part);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 0, "a dispatcher calls the host");
        host.carry_out_next();
        assert_eq!(RELEASED.load(Ordering::SeqCst), 7);

        // Nobody waits, and the engine is gone.
        drop(ask(&host));
        let late = ask(&host);
        let op = (delivered(&host, &kept), delivered(&host, &kept));
        host.close();
        lend(op.1);
        assert_eq!(late.recv().unwrap().as_deref(), Ok(&b"234"[..]));
        assert_eq!(RELEASED.load(Ordering::SeqCst), 14);
        // SAFETY: completed once.
        unsafe { kelp_op_complete(op.0.cast(), KELP_OK) };
    }

    #[test]
    fn nothing_can_be_lent_without_a_way_back() {
        let kept = Kept::default();
        let host = host(&kept);
        let receiver = ask(&host);
        let op = delivered(&host, &kept);
        // SAFETY: the operation is live until it is completed.
        unsafe {
            let lent = kelp_op_lend(op.cast(), b"x".as_ptr().cast(), 1, ptr::null_mut());
            assert_eq!(lent, KELP_INVALID_ARGUMENT);
            kelp_op_complete(op.cast(), KELP_OK);
        }
        assert_eq!(receiver.recv().unwrap().as_deref(), Ok(&b""[..]));
    }

    #[test]
    fn an_answer_that_cannot_be_is_an_error() {
        let kept = Kept::default();
        let host = host(&kept);
        let impossible = [
            KelpBytes { ptr: ptr::null(), len: 1 },
            KelpBytes { ptr: b"x".as_ptr(), len: usize::MAX },
        ];
        for data in impossible {
            let receiver = ask(&host);
            let op = delivered(&host, &kept);
            // SAFETY: the operation is live until it is completed.
            unsafe {
                (*op).data = data;
                kelp_op_complete(op.cast(), KELP_OK);
            }
            assert!(matches!(receiver.recv().unwrap(), Err(Failure::Malformed(_))));
        }
    }

    #[test]
    fn a_failure_has_its_text() {
        let kept = Kept::default();
        let host = host(&kept);
        for (error, text) in [(KelpStr::of("disk full"), "disk full"), (KelpStr::EMPTY, "")] {
            let receiver = ask(&host);
            let op = delivered(&host, &kept);
            // SAFETY: the operation is live until it is completed.
            unsafe {
                (*op).op.error = error;
                kelp_op_complete(op.cast(), -99);
            }
            assert_eq!(receiver.recv().unwrap(), Err(Failure::Status(-99, text.into())));
        }
    }

    #[test]
    fn what_was_not_delivered_when_the_engine_ends_is_stopped() {
        let kept = Kept::default();
        let host = host(&kept);
        let before = ask(&host);
        host.close();
        assert_eq!(before.recv().unwrap(), Err(Failure::Stopped));
        assert_eq!(ask(&host).recv().unwrap(), Err(Failure::Stopped));
        assert!(kept.take::<KelpGet>().is_none());
    }

    #[test]
    fn a_host_that_completes_nothing_gets_a_bounded_number() {
        let kept = Kept::default();
        let host = host(&kept);
        let mut receivers = Vec::new();
        let refused = loop {
            let receiver = ask(&host);
            match receiver.try_recv() {
                Ok(answer) => break answer,
                Err(_) => receivers.push(receiver),
            }
        };
        assert_eq!(refused, Err(Failure::Full));
        let op = delivered(&host, &kept);
        // SAFETY: completed once.
        unsafe { kelp_op_complete(op.cast(), KELP_OK) };
        assert!(ask(&host).try_recv().is_err(), "there is room for one more");
        host.close();
        // What was delivered stays the host's; the rest is told.
        let told = receivers.iter().filter(|r| r.try_recv() == Ok(Err(Failure::Stopped))).count();
        assert_eq!(told, receivers.len() - 1);
    }

    #[test]
    fn a_panic_while_an_answer_is_taken_in_does_not_reach_the_host() {
        let kept = Kept::default();
        let host = host(&kept);
        let body = KelpGet {
            op: KelpOp::NEW,
            key: KelpStr::EMPTY,
            offset: 0,
            length: 10,
            data: KelpBytes::EMPTY,
        };
        host.submit(keep::<KelpGet>, body, (), |_| Ok(()), |_| panic!("a bug"));
        let op = delivered(&host, &kept);
        // SAFETY: completed once.
        let status = unsafe { kelp_op_complete(op.cast(), KELP_OK) };
        assert_eq!(status, super::super::status::KELP_PANIC);
    }
}
