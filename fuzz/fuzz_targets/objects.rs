//! The decoders of everything that is read from a store of objects: journal, fence, checkpoint,
//! index of a segment, command and snapshot of the metadata, registration.

#![no_main]

use kelp::store::objectlog::fuzzing::object;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| object(input));
