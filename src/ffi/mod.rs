//! The C ABI: life cycle, operations, buffers. The only room with `unsafe` code, and no protocol
//! logic. `include/kelp.h` is generated from it.
//!
//! ```text
//!  I/O threads                     queue        dispatcher thread            any thread of the host
//!  HostObjects::get ─▶ Host::submit ──▶ table.get(ctx, op) ─▶ host ─▶ … ─▶ kelp_op_complete(op)
//!        ▲                                                                        │
//!        └───────────────────────────── Answer ◀──────────────────────────────────┘
//! ```
//!
//! [`host`] has the queue's two ends, [`operation`] the memory of what is under way, [`objects`]
//! and [`storage`] the two tables of callbacks as the store's traits, [`engine`] the exports.
//! [`batch`] stands alone: what a host may do with record batches of its own.

#![allow(unsafe_code)]

pub mod allocator;
mod appends;
pub mod batch;
pub mod batch_builder;
pub mod batch_reader;
mod broker_settings;
pub mod data;
pub mod engine;
mod groups;
pub mod host;
mod host_storage;
mod host_topics;
pub mod log;
pub mod objects;
pub mod operation;
mod producer_state;
mod queue;
mod read;
mod records;
#[cfg(test)]
mod samples;
mod signals;
mod snapshots;
mod spans;
pub mod status;
pub mod storage;
pub mod topic_list;
pub mod version;

use status::{KELP_OK, KELP_PANIC, KelpStatus};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of an exported function. A panic becomes a status, because it must not unwind
/// into C.
fn guard(body: impl FnOnce() -> Result<(), KelpStatus>) -> KelpStatus {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => KELP_OK,
        Ok(Err(status)) => status,
        Err(_) => KELP_PANIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_cross_the_boundary() {
        assert_eq!(guard(|| panic!("bug")), KELP_PANIC);
    }
}
