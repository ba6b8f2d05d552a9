//! The host: its table of callbacks, and the threads that call it.

use super::log::{self, KELP_LOG_TRACE};
use super::objects::KelpObjects;
use super::operation::{Callback, Operation, Outcome, Ticket};
use super::queue::{self, Notice, Queue, Task};
use super::status::Failure;
use super::storage::KelpStorage;
use super::{data::KelpStr, data::Versioned, signals};
use crate::metrics::{Text, names};
use std::ffi::c_void;
use std::io;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tracing::Dispatch;

/// Another process has the data and is alive; the detail says which.
pub const KELP_STATE_STANDBY: i32 = 1;
/// Clients are served.
pub const KELP_STATE_SERVING: i32 = 2;
/// Another process took the data over, for good; the detail says which. Clients are told where to
/// go for ten seconds; then comes KELP_STATE_ENDED.
pub const KELP_STATE_FENCED: i32 = 3;
/// What is stored cannot be read, or the host's storage failed when it was opened; the detail says
/// why. Then comes KELP_STATE_ENDED.
pub const KELP_STATE_FAILED: i32 = 4;
/// Nothing is served any more, as the engine was stopped, fenced, or failed. The host frees it.
pub const KELP_STATE_ENDED: i32 = 5;

/// What the host gives: its callbacks and where it keeps the data.
///
/// Exactly one of `storage` and `objects` is set. The struct and the tables are copied by
/// `kelp_engine_new`; `ctx` must stay valid until `kelp_engine_free` has returned and every
/// operation was completed.
///
/// Kelp calls the host only on its dispatcher threads, never on a thread that serves a socket. A
/// callback must return soon: what has to wait is done elsewhere, and completed then. A callback
/// may call every function of this header but `kelp_engine_stop` and `kelp_engine_free`. With
/// more than one dispatcher thread the callbacks of different operations may run at once; `log`,
/// `state` and `topics_changed` are always called by one thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpHost {
    /// sizeof(kelp_host)
    pub struct_size: u32,
    /// The least grave level that `log` is called for. 0: KELP_LOG_INFO.
    pub log_level: i32,
    /// Given to every callback.
    pub ctx: *mut c_void,
    /// A log of the host's own. NULL: `objects` is set.
    pub storage: *const KelpStorage,
    /// A store of objects, on which Kelp keeps its log. NULL: `storage` is set.
    pub objects: *const KelpObjects,
    /// optional: memory that was lent with `kelp_op_lend` is the host's again.
    pub release: Option<unsafe extern "C" fn(ctx: *mut c_void, lent: *mut c_void)>,
    /// optional: a line for the log. `target` is the part of Kelp that says it. Both are gone
    /// when the callback returns.
    pub log:
        Option<unsafe extern "C" fn(ctx: *mut c_void, level: i32, target: KelpStr, text: KelpStr)>,
    /// optional: the engine's state changed to one of KELP_STATE_... The detail is gone when the
    /// callback returns.
    pub state: Option<unsafe extern "C" fn(ctx: *mut c_void, state: i32, detail: KelpStr)>,
    /// optional: what `kelp_topic_list_new` gives may have changed: called when the engine begins to
    /// serve, and when topics, their settings, or those of the broker are changed. Several changes
    /// may come as one call. Since KELP_ABI_VERSION 5.
    pub topics_changed: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

// SAFETY: `repr(C)`, begins with its size, and all its fields may be zero.
unsafe impl Versioned for KelpHost {
    const FIRST_SIZE: usize = offset_of!(Self, topics_changed);
}

/// Operations that the host has not completed. More are refused, so that a host that completes
/// nothing costs a bounded amount of memory.
const OPERATIONS_MAX: usize = 16_384;

pub(super) struct Host {
    callbacks: KelpHost,
    queue: Arc<Queue>,
    dispatch: Dispatch,
    outstanding: AtomicUsize,
    /// How long who asks waits for the host.
    timeout: Duration,
}

// SAFETY: `kelp_host` says that callbacks and `ctx` are used from all of Kelp's threads; the
// tables' pointers are not followed after `kelp_engine_new`.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    pub(super) fn new(callbacks: KelpHost, timeout: Duration) -> Arc<Self> {
        let queue = Arc::new(Queue::default());
        // Without a callback no line is worth its text.
        let level = callbacks.log.map_or(-1, |_| callbacks.log_level.clamp(0, KELP_LOG_TRACE));
        let dispatch = log::to_host(queue.clone(), level);
        Arc::new(Self { callbacks, queue, dispatch, outstanding: AtomicUsize::new(0), timeout })
    }

    /// Where Kelp's own threads and calls log to.
    pub(super) fn log(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Submits an operation; `then` gets its answer, on whatever thread completes it, however
    /// late that is.
    pub(super) fn submit<B: Operation, A>(
        self: &Arc<Self>,
        callback: Callback<B>,
        body: B,
        inputs: impl Send + 'static,
        read: impl FnOnce(&Outcome<'_, B>) -> Result<A, Failure> + Send + 'static,
        then: impl FnOnce(Result<A, Failure>) + Send + 'static,
    ) {
        self.queue_up(callback, body, inputs, 0, read, then);
    }

    /// Submits an operation, now; the future waits for its answer, but not for ever.
    pub(super) fn ask<B: Operation, A: Send + 'static>(
        self: &Arc<Self>,
        callback: Callback<B>,
        body: B,
        inputs: impl Send + 'static,
        read: impl FnOnce(&Outcome<'_, B>) -> Result<A, Failure> + Send + 'static,
    ) -> impl Future<Output = Result<A, Failure>> {
        let (sender, receiver) = oneshot::channel();
        let timeout_ms = u32::try_from(self.timeout.as_millis()).unwrap_or(u32::MAX);
        // Nobody may wait any more: then the answer goes nowhere.
        let then = |answer| drop(sender.send(answer));
        self.queue_up(callback, body, inputs, timeout_ms, read, then);
        self.wait(receiver)
    }

    /// Waits for an answer as long as the host may take.
    pub(super) async fn wait<A>(
        &self,
        answer: oneshot::Receiver<Result<A, Failure>>,
    ) -> Result<A, Failure> {
        match tokio::time::timeout(self.timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Failure::Stopped),
            Err(_) => Err(Failure::TimedOut),
        }
    }

    /// Waits for a turn, as long as the host may take.
    pub(super) async fn turn(
        &self,
        turns: &Arc<tokio::sync::Mutex<()>>,
    ) -> Result<OwnedMutexGuard<()>, Failure> {
        let turn = tokio::time::timeout(self.timeout, turns.clone().lock_owned()).await;
        turn.map_err(|_| Failure::TimedOut)
    }

    fn queue_up<B: Operation, A>(
        self: &Arc<Self>,
        callback: Callback<B>,
        body: B,
        inputs: impl Send + 'static,
        timeout_ms: u32,
        read: impl FnOnce(&Outcome<'_, B>) -> Result<A, Failure> + Send + 'static,
        then: impl FnOnce(Result<A, Failure>) + Send + 'static,
    ) {
        if self.outstanding.fetch_add(1, Ordering::Relaxed) >= OPERATIONS_MAX {
            self.completed();
            return then(Err(Failure::Full));
        }
        let ticket = Ticket::new(self.clone(), callback, body, inputs, timeout_ms, read, then);
        // A refused ticket is dropped here, which completes it.
        drop(self.queue.push(Task::Ask(ticket)));
    }

    pub(super) fn completed(&self) {
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn write_metrics(&self, text: &mut Text) {
        text.single(&names::HOST_OPERATIONS, self.outstanding.load(Ordering::Relaxed));
    }

    pub(super) fn takes_back(&self) -> bool {
        self.callbacks.release.is_some()
    }

    /// Gives lent memory back: on a dispatcher, or here when there is none any more.
    pub(super) fn release(&self, token: *mut c_void) {
        if let Err(task) = self.queue.push(Task::Release(queue::Lent(token))) {
            self.carry_out(task);
        }
    }

    pub(super) fn state(&self, state: i32, detail: String) {
        self.queue.notice(Notice::State { state, detail });
    }

    pub(super) fn hears_of_topics(&self) -> bool {
        self.callbacks.topics_changed.is_some()
    }

    pub(super) fn topics_changed(&self) {
        self.queue.notice(Notice::TopicsChanged);
    }

    /// Does a dispatcher's next piece of work.
    #[cfg(test)]
    pub(super) fn carry_out_next(&self) {
        let Some(task) = self.queue.next(true) else { panic!("the queue is closed") };
        self.carry_out(task);
    }

    /// What the last dispatcher does at its end.
    #[cfg(test)]
    pub(super) fn close(&self) {
        self.queue.close();
    }

    fn carry_out(&self, task: Task) {
        let KelpHost { ctx, release, log, state, topics_changed, .. } = self.callbacks;
        match task {
            Task::Ask(ticket) => ticket.deliver(ctx),
            Task::Release(queue::Lent(token)) => {
                if let Some(release) = release {
                    // SAFETY: the host's own function and context; the token is given back once.
                    unsafe { release(ctx, token) }
                }
            }
            Task::Notice(Notice::Log { level, target, text }) => {
                if let Some(log) = log {
                    // SAFETY: the host's own function and context; the texts outlive the call.
                    unsafe { log(ctx, level, KelpStr::of(&target), KelpStr::of(&text)) }
                }
            }
            Task::Notice(Notice::State { state: number, detail }) => {
                if let Some(state) = state {
                    // SAFETY: as above.
                    unsafe { state(ctx, number, KelpStr::of(&detail)) }
                }
            }
            Task::Notice(Notice::TopicsChanged) => {
                if let Some(topics_changed) = topics_changed {
                    // SAFETY: the host's own function and context.
                    unsafe { topics_changed(ctx) }
                }
            }
        }
    }
}

/// The threads that call the host.
pub(super) struct Dispatchers {
    host: Arc<Host>,
    threads: Vec<JoinHandle<()>>,
}

impl Dispatchers {
    pub(super) fn start(host: &Arc<Host>, count: usize) -> io::Result<Self> {
        let mut dispatchers = Self { host: host.clone(), threads: Vec::with_capacity(count) };
        for n in 0..count {
            let host = host.clone();
            let run = move || {
                signals::block_sigpipe();
                log::install(&host.dispatch);
                while let Some(task) = host.queue.next(n == 0) {
                    host.carry_out(task);
                }
            };
            let thread = thread::Builder::new().name(format!("kelp-dispatch-{n}")).spawn(run)?;
            dispatchers.threads.push(thread);
        }
        Ok(dispatchers)
    }
}

impl Drop for Dispatchers {
    /// After this the host is called no more, but to take back what it lent to operations that it
    /// completes late.
    fn drop(&mut self) {
        self.host.queue.close();
        for thread in self.threads.drain(..) {
            // A dispatcher runs no code that panics: the host's cannot unwind.
            let _ = thread.join();
        }
    }
}
