//! Kelp: a Kafka broker as a library.
//!
//! It speaks Kafka's protocol on sockets which a host process hands it, and keeps every topic,
//! record and offset in the host's storage.
//!
//! ```text
//! net ─▶ dispatch ─▶ api/<name> ─▶ coordinator, log ─▶ store (traits) ◀─ the host
//! ```
//!
//! The rooms, from top to bottom; each may use only those below it (`tests/tidy.rs` keeps this):
//!
//! - [`ffi`] is the C ABI: life cycle, operations, and the host's tables as stores.
//! - [`engine`] builds the runtime and the parts, and owns their end. Begin here.
//! - [`net`] turns bytes into frames and back: connections, limits, memory.
//! - [`dispatch`] is the one place that sees every request: header, version, handler, answer.
//! - [`api`] has one handler for each API, in a file named as its message.
//! - [`coordinator`] decides for groups and their offsets: pure state machines.
//! - [`log`] has Kafka's log semantics: append, idempotence, fetch, waiting, look-up by time.
//! - [`store`] is the seam to storage: topics, partitions, offsets and bytes.
//! - [`record`] knows record batches: bytes in, bytes out.
//! - [`messages`] has one table for each API: its fields in every version.
//! - [`protocol`] has the primitive types, the macro behind the tables and the one list of APIs.
//! - [`metrics`] has what an engine counts, and the text that tells it.
//! - [`config`] has the names, types, defaults and limits of settings, as data.

pub mod api;
pub mod config;
pub mod coordinator;
pub mod dispatch;
pub mod engine;
pub mod ffi;
pub mod log;
pub mod messages;
pub mod metrics;
pub mod net;
pub mod protocol;
pub mod record;
pub mod store;
