//! The decoders of what is kept in the logs of coordinators, of control records, and of what
//! consumers tell each other in JoinGroup and SyncGroup, in every version.

#![no_main]

use bytes::Bytes;
use kelp::coordinator::records::Record;
use kelp::messages::fuzzing::record_round_trip;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    record_round_trip(input);
    coordinator(input);
    Corpus::Keep
});

/// A record of `__consumer_offsets`: the length of the key, key, value.
fn coordinator(input: &[u8]) {
    let Some((length, bytes)) = input.split_first() else { return };
    let Some((key, value)) = bytes.split_at_checked((*length).into()) else { return };
    let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    let value = Some(&value).filter(|value| !value.is_empty());
    let Ok(record) = Record::decode(Some(&key), value) else { return };
    let (key, value) = record.encode();
    assert_eq!(Record::decode(Some(&key), value.as_ref()), Ok(record));
}
