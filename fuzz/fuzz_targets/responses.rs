//! The decoder of every response, in every version.

#![no_main]

use bytes::Bytes;
use kelp::messages::fuzzing::{Kind, choose, round_trip};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((api, version, body)) = choose(input) else { return Corpus::Reject };
    round_trip(Kind::Response, api, version, Bytes::copy_from_slice(body));
    Corpus::Keep
});
