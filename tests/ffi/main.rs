//! The C ABI as a host sees it.

#![allow(unsafe_code)]

mod batches;
mod build;
mod c_host;
mod cases;
mod client;
mod groups;
mod header;
mod layout;
mod metrics;
mod rust_host;
mod topics;
