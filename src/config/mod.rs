//! The names, types, defaults and limits of what can be set, as data.
//!
//! Names are Kafka's. Only what has an effect is accepted: a property that Kelp would ignore is
//! an error, so that nobody believes in a setting that does nothing.

pub mod definition;
pub mod listeners;
pub mod server;
pub mod topic;

pub use server::Config;
