//! The engine's life cycle for C.

use super::data::{Versioned, read_versioned};
use super::host::{
    Dispatchers, Host, KELP_STATE_ENDED, KELP_STATE_FAILED, KELP_STATE_FENCED, KELP_STATE_SERVING,
    KELP_STATE_STANDBY, KelpHost,
};
use super::host_storage::HostStorage;
use super::objects::HostObjects;
use super::status::{
    KELP_INVALID_ARGUMENT, KELP_IO, KELP_NULL_POINTER, KELP_STOPPED, KelpStatus, write_text,
};
use super::{guard, log, signals};
use crate::config::Config;
use crate::engine::topics::TopicSummary;
use crate::engine::{Backend, Engine, EngineError, ThreadOptions};
use crate::store::{Owner, State};
use std::ffi::{CStr, c_char};
use std::mem::size_of;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::dispatcher;

/// How the engine is to run. Zero and NULL are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpConfig {
    /// sizeof(kelp_config)
    pub struct_size: u32,
    /// Threads that serve sockets. 0: what the property num.io.threads says, or else one for each
    /// processor.
    pub io_threads: u32,
    /// Threads that call the host. 0: one.
    pub dispatch_threads: u32,
    /// 0
    pub reserved: u32,
    /// Kafka's server properties, one NAME=VALUE a line, NUL-terminated. A property that Kelp does
    /// not have is an error. Those that hosts mostly set: node.id, num.partitions,
    /// advertised.listeners (with listeners, which gives the names and ports but does not open
    /// them), auto.create.topics.enable, message.max.bytes, host.timeout.ms.
    pub properties: *const c_char,
}

// SAFETY: `repr(C)`, begins with its size, and all its fields may be zero.
unsafe impl Versioned for KelpConfig {
    const FIRST_SIZE: usize = size_of::<Self>();
}

/// More threads than any machine has a use for.
const THREADS_MAX: u32 = 4_096;

/// A Kafka broker. Its functions may be called from any thread, several at once, until it is
/// freed. None of them waits but `kelp_engine_stop` and `kelp_engine_free`.
pub struct KelpEngine {
    // Dropped in this order: nothing asks the host any more when the dispatchers end.
    engine: Engine,
    host: Arc<Host>,
    _dispatchers: Dispatchers,
}

/// Why a call failed, for C.
type Refusal = (KelpStatus, String);

impl KelpEngine {
    fn new(config: KelpConfig, callbacks: KelpHost) -> Result<Self, Refusal> {
        if config.io_threads > THREADS_MAX || config.dispatch_threads > THREADS_MAX {
            return Err((KELP_INVALID_ARGUMENT, format!("more than {THREADS_MAX} threads")));
        }
        let properties = read_properties(config.properties, config.io_threads)?;
        let timeout = u64::try_from(properties.host_timeout_ms).unwrap_or(0);
        let host = Host::new(callbacks, Duration::from_millis(timeout));
        let backend = backend(&host, &callbacks, properties.offsets_topic_num_partitions)?;
        let dispatchers = Dispatchers::start(&host, config.dispatch_threads.max(1) as usize)
            .map_err(|e| (KELP_IO, format!("no thread for the host: {e}")))?;
        let dispatch = host.log().clone();
        let on_start = move || {
            signals::block_asynchronous();
            log::install(&dispatch);
        };
        let options = ThreadOptions { on_thread_start: Some(Arc::new(on_start)) };
        let engine =
            dispatcher::with_default(host.log(), || Engine::new(properties, backend, options));
        let engine = engine.map_err(|error| (status(&error), error.to_string()))?;
        engine.spawn(tell_states(host.clone(), engine.state(), engine.ended()));
        if host.hears_of_topics() {
            let host = host.clone();
            engine.follow_topics(move || host.topics_changed());
        }
        Ok(Self { engine, host, _dispatchers: dispatchers })
    }

    fn metrics(&self) -> String {
        let mut text = self.engine.metrics();
        self.host.write_metrics(&mut text);
        text.finish()
    }

    /// All topics; `None` while the engine does not serve.
    pub(super) fn topics(&self) -> Option<Vec<TopicSummary>> {
        self.engine.topics()
    }

    /// Runs a call with the host's log.
    fn call<T>(
        &self,
        call: impl FnOnce(&Engine) -> Result<T, EngineError>,
    ) -> Result<T, KelpStatus> {
        dispatcher::with_default(self.host.log(), || {
            call(&self.engine).map_err(|error| {
                tracing::warn!("{error}");
                status(&error)
            })
        })
    }
}

fn status(error: &EngineError) -> KelpStatus {
    match error {
        EngineError::Stopped => KELP_STOPPED,
        EngineError::Io(_) => KELP_IO,
    }
}

fn read_properties(text: *const c_char, io_threads: u32) -> Result<Config, Refusal> {
    let invalid = |reason: String| (KELP_INVALID_ARGUMENT, reason);
    let text = if text.is_null() {
        ""
    } else {
        // SAFETY: `kelp_config` says that the text has its NUL, and it is not kept.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_str().map_err(|_| invalid("the properties are not UTF-8".into()))?
    };
    let config = match io_threads {
        0 => Config::from_text(text),
        // Of two that name the same property, the later counts.
        count => Config::from_text(&format!("{text}\nnum.io.threads={count}")),
    };
    config.map_err(|error| invalid(error.to_string()))
}

/// The host's storage: exactly one of the two tables.
fn backend(host: &Arc<Host>, callbacks: &KelpHost, coordinators: i32) -> Result<Backend, Refusal> {
    let missing = |table: &str, name: &str| {
        (KELP_INVALID_ARGUMENT, format!("{table} lacks the function {name}"))
    };
    let wrong_size = |table: &str, status| {
        (status, format!("struct_size of {table} is wrong, or newer fields are set"))
    };
    match (callbacks.storage.is_null(), callbacks.objects.is_null()) {
        (true, false) => {
            // SAFETY: `kelp_host` says that the table is as long as its first field says.
            let table = unsafe { read_versioned(callbacks.objects) };
            let table = table.map_err(|status| wrong_size("kelp_objects", status))?;
            let objects = HostObjects::new(host, table);
            Ok(Backend::Objects(Arc::new(objects.map_err(|name| missing("kelp_objects", name))?)))
        }
        (false, true) => {
            // SAFETY: as above.
            let table = unsafe { read_versioned(callbacks.storage) };
            let table = table.map_err(|status| wrong_size("kelp_storage", status))?;
            let storage = HostStorage::new(host, table, coordinators);
            Ok(Backend::Storage(storage.map_err(|name| missing("kelp_storage", name))?))
        }
        _ => Err((
            KELP_INVALID_ARGUMENT,
            "exactly one of storage and objects must be set in kelp_host".into(),
        )),
    }
}

/// Tells the host of every state until the end.
async fn tell_states(
    host: Arc<Host>,
    mut states: watch::Receiver<State>,
    mut ended: watch::Receiver<bool>,
) {
    let of = |owner: &Owner| {
        let Owner { address, host, pid, .. } = owner;
        format!("{address} (process {pid} on {host})")
    };
    loop {
        let state = states.borrow_and_update().clone();
        match state {
            State::Opening => {}
            State::Standby(owner) => host.state(KELP_STATE_STANDBY, of(&owner)),
            State::Serving => host.state(KELP_STATE_SERVING, String::new()),
            State::Fenced(owner) => host.state(KELP_STATE_FENCED, of(&owner)),
            State::Failed(reason) => host.state(KELP_STATE_FAILED, reason),
        }
        tokio::select! {
            biased;
            Ok(()) = states.changed() => {}
            _ = ended.wait_for(|ended| *ended) => break,
        }
    }
    host.state(KELP_STATE_ENDED, String::new());
}

/// Makes an engine, which opens the host's storage at once and tells by `state` of `kelp_host`
/// when it serves. Sockets may be handed over before: what clients send waits until the storage
/// is open, but while another process has the data their connections are closed.
///
/// Nothing of `config` and `host` is used after the call, but for what they point to as said
/// there. The storage callbacks may come before the call returns.
///
/// On failure `*engine` is NULL, and `error`, if it is not NULL, gets a text that says why, cut
/// to `error_capacity` bytes with its NUL.
///
/// # Safety
///
/// `config` is NULL (all defaults) or a filled struct, `host` is a filled struct, `engine` can be
/// written, `error` has room for `error_capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_new(
    config: *const KelpConfig,
    host: *const KelpHost,
    engine: *mut *mut KelpEngine,
    error: *mut c_char,
    error_capacity: usize,
) -> KelpStatus {
    guard(|| {
        if engine.is_null() {
            return Err(KELP_NULL_POINTER);
        }
        // SAFETY: the caller's place for the engine.
        unsafe { *engine = std::ptr::null_mut() };
        // SAFETY: the caller's structs are filled.
        let made = unsafe { read_arguments(config, host) }
            .and_then(|(config, callbacks)| KelpEngine::new(config, callbacks));
        match made {
            Ok(made) => {
                // SAFETY: as above.
                unsafe { *engine = Box::into_raw(Box::new(made)) };
                Ok(())
            }
            Err((status, text)) => {
                // SAFETY: the caller's buffer is as long as the caller says.
                unsafe { write_text(&text, error, error_capacity) };
                Err(status)
            }
        }
    })
}

/// # Safety
///
/// Both are null or as long as their first fields say.
unsafe fn read_arguments(
    config: *const KelpConfig,
    host: *const KelpHost,
) -> Result<(KelpConfig, KelpHost), Refusal> {
    let refused = |name: &str, status| {
        (status, format!("{name} is NULL, its struct_size is wrong, or newer fields are set"))
    };
    let config = if config.is_null() {
        KelpConfig {
            struct_size: 0,
            io_threads: 0,
            dispatch_threads: 0,
            reserved: 0,
            properties: std::ptr::null(),
        }
    } else {
        // SAFETY: the caller's promise.
        unsafe { read_versioned(config) }.map_err(|status| refused("kelp_config", status))?
    };
    // SAFETY: the caller's promise.
    let host = unsafe { read_versioned(host) }.map_err(|status| refused("kelp_host", status))?;
    Ok((config, host))
}

/// Serves one accepted client connection. Returns at once; the engine's own threads do the work.
///
/// Takes `fd` over, whatever the status: do not use or close it afterwards. From Go, duplicate the
/// descriptor inside `SyscallConn().Control`, then close the `net.Conn`, then hand it over.
///
/// KELP_STOPPED after `kelp_engine_stop`; KELP_IO if the descriptor is no connected socket.
///
/// # Safety
///
/// `engine` is NULL or was not freed. `fd` is an open stream socket that nothing else in the
/// process uses, or negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_serve(engine: *const KelpEngine, fd: i32) -> KelpStatus {
    guard(|| {
        // SAFETY: the caller gives up an open socket. Taken first, so that every path closes it.
        let socket = TcpStream::from(unsafe { take(fd) }?);
        // SAFETY: null is checked; otherwise it is a live engine, which is only used shared.
        let engine = unsafe { engine.as_ref() }.ok_or(KELP_NULL_POINTER)?;
        engine.call(|engine| engine.serve(socket))
    })
}

/// Accepts and serves the connections of a listening socket, until the engine stops.
///
/// Takes `fd` over, whatever the status, as `kelp_engine_serve` does.
///
/// # Safety
///
/// `engine` is NULL or was not freed. `fd` is an open listening socket that nothing else in the
/// process uses, or negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_serve_listener(
    engine: *const KelpEngine,
    fd: i32,
) -> KelpStatus {
    guard(|| {
        // SAFETY: as in `kelp_engine_serve`.
        let listener = TcpListener::from(unsafe { take(fd) }?);
        // SAFETY: as in `kelp_engine_serve`.
        let engine = unsafe { engine.as_ref() }.ok_or(KELP_NULL_POINTER)?;
        engine.call(|engine| engine.serve_listener(listener))
    })
}

/// Listens at `address`, "HOST:PORT", and serves the connections that come in. With port 0 the
/// operating system chooses; `*port`, if `port` is not NULL, gets the port that it is.
///
/// # Safety
///
/// `engine` is NULL or was not freed. `address` is NUL-terminated. `port` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_listen(
    engine: *const KelpEngine,
    address: *const c_char,
    port: *mut u16,
) -> KelpStatus {
    guard(|| {
        // SAFETY: as in `kelp_engine_serve`.
        let engine = unsafe { engine.as_ref() }.ok_or(KELP_NULL_POINTER)?;
        if address.is_null() {
            return Err(KELP_NULL_POINTER);
        }
        // SAFETY: the caller's text has its NUL.
        let address = unsafe { CStr::from_ptr(address) };
        let address = address.to_str().map_err(|_| KELP_INVALID_ARGUMENT)?;
        let bound = engine.call(|engine| engine.listen(address))?;
        // SAFETY: null is allowed; otherwise the caller's place for a port.
        if let Some(port) = unsafe { port.as_mut() } {
            *port = bound;
        }
        Ok(())
    })
}

/// Stops the engine in good order: it accepts nothing more, answers what is in flight, lets the
/// storage carry out what was submitted, and closes all connections. Waits for that, but not much
/// longer than `drain_ms` milliseconds; then everything is closed all the same.
///
/// The host must go on completing operations meanwhile. Not to be called from a callback.
///
/// # Safety
///
/// `engine` is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_stop(engine: *const KelpEngine, drain_ms: u32) -> KelpStatus {
    guard(|| {
        // SAFETY: as in `kelp_engine_serve`.
        let engine = unsafe { engine.as_ref() }.ok_or(KELP_NULL_POINTER)?;
        engine.call(|engine| {
            engine.stop(Duration::from_millis(drain_ms.into()));
            Ok(())
        })
    })
}

/// Frees an engine; one that was not stopped is stopped without waiting for anything in flight.
///
/// When it returns, the host is called no more (but for `release`, see `kelp_op_lend`).
/// Operations that the host has not completed stay valid until it does. Not to be called from a
/// callback.
///
/// # Safety
///
/// `engine` is NULL, or was not freed and is not used by any other call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_free(engine: *mut KelpEngine) {
    guard(|| {
        if !engine.is_null() {
            // SAFETY: the pointer came from a box in `kelp_engine_new`, and is given up.
            drop(unsafe { Box::from_raw(engine) });
        }
        Ok(())
    });
}

/// Writes what the engine counts and how it stands into `buffer`, as text in the format of
/// Prometheus (version 0.0.4), with a NUL behind it; `docs/metrics.md` lists the metrics. What does
/// not fit in `capacity` bytes is cut off. Returns how long the whole text is without its NUL, as
/// `snprintf` does; 0 if `engine` is NULL.
///
/// Since KELP_ABI_VERSION 4; the name of before is kelp_engine_metrics.
///
/// The text is a copy: it is the caller's, like its memory. It is made anew by each call, and may
/// grow from one to the next; so a result that is not below `capacity` asks for another call with
/// more room. Asked once, with room for some 64 KiB and a hundred bytes for each partition and for
/// each offset that a group has committed, it mostly fits; no metric has more than 10,000 series.
///
/// From any thread, also from a callback. It waits for no storage and no client.
///
/// # Safety
///
/// `engine` is NULL or was not freed. `buffer` has room for `capacity` bytes, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_metrics(
    engine: *const KelpEngine,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    let mut len = 0;
    guard(|| {
        // SAFETY: as in `kelp_engine_serve`.
        let engine = unsafe { engine.as_ref() }.ok_or(KELP_NULL_POINTER)?;
        let text = engine.metrics();
        len = text.len();
        // SAFETY: the caller's buffer is as long as the caller says.
        unsafe { write_text(&text, buffer, capacity) };
        Ok(())
    });
    len
}

/// The name that `kelp_metrics` had first.
///
/// # Safety
///
/// As `kelp_metrics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kelp_engine_metrics(
    engine: *const KelpEngine,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    // SAFETY: the caller's promises are the same.
    unsafe { kelp_metrics(engine, buffer, capacity) }
}

/// # Safety
///
/// `fd` is negative, or open and nobody else's.
unsafe fn take(fd: i32) -> Result<OwnedFd, KelpStatus> {
    if fd < 0 {
        return Err(KELP_INVALID_ARGUMENT);
    }
    // SAFETY: the caller gives it up.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::ptr;

    #[test]
    fn a_refused_socket_is_closed() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // SAFETY: a null engine is allowed, and `ours` is given up.
        let status = unsafe { kelp_engine_serve(ptr::null(), ours.into_raw_fd()) };
        assert_eq!(status, KELP_NULL_POINTER);
        assert_eq!(theirs.read(&mut [0]).unwrap(), 0, "the peer sees the close");
    }
}
