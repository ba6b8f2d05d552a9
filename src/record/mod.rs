//! Record batches, and message sets of old clients: bytes in, bytes out. No storage, no waiting.
//!
//! Source: the "Message Format" pages of Kafka's documentation, KIP-32, KIP-98, KIP-110.

pub mod batch;
pub mod builder;
pub mod checksum;
pub mod codec;
pub mod compress;
pub mod convert;
pub mod filter;
pub mod message_set;
pub mod records;
pub mod unpacked;
pub mod validate;

#[cfg(test)]
mod against_kafka;
#[cfg(test)]
mod against_kafkas_log;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
pub mod testing_sets;
