//! Kafka's wire language: primitive types, the `message!` macro, the one list of APIs, headers, error
//! codes.
//!
//! Source: the protocol guide of Apache Kafka 4.4 and KIP-482 (flexible versions, tagged fields).

pub mod api_key;
pub mod encoded;
pub mod error_code;
pub mod header;
pub(crate) mod message;
pub mod uuid;
pub mod wire;
