//! The names, types, defaults and limits of what can be set, as data.
//!
//! Names are Kafka's. A property that Kelp would ignore is an error, so that nobody believes in a
//! setting that does nothing; but for those that promise nothing, see `hints.rs`.

pub mod definition;
mod hints;
pub mod listeners;
pub mod server;
pub mod topic;

pub use server::Config;
