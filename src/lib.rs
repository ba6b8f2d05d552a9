//! Kelp: a Kafka broker as a library.

pub mod api;
pub mod messages;
pub mod protocol;
pub mod record;
pub mod store;
