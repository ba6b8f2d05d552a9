//! The C ABI as a host sees it.

#![allow(unsafe_code)]

mod header;
