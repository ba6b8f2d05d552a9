//! The object log: topics and records kept in a store of [`Objects`](super::objects::Objects).

pub mod metadata;
