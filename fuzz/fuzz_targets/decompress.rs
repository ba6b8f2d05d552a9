//! The decompressors, which must end at their limit whatever the bytes stand for.

#![no_main]

use kelp::record::codec::{Codec, Stream};
use kelp::record::records::{Malformed, Source, skim};
use libfuzzer_sys::{Corpus, fuzz_target};

const LIMIT: u64 = 256 << 10;

/// A window more may have been decompressed than the limit when it is seen.
const LONGEST: u64 = LIMIT + (16 << 10);

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some((codec, bytes)) = input.split_first() else { return Corpus::Reject };
    let Some(codec) = Codec::from_attributes((codec % 5).into()) else { unreachable!() };
    let stream = || Stream::with_limit(codec, bytes, LIMIT);
    let mut length = 0;
    let mut to_the_end = || {
        let mut stream = stream()?;
        while !stream.is_at_end()? {
            stream.skip(1)?;
            length = stream.position();
        }
        Ok(())
    };
    let outcome: Result<(), Malformed> = to_the_end();
    assert!(length <= LONGEST, "{length} bytes: {outcome:?}");
    if let Ok(mut stream) = stream() {
        while skim(&mut stream).is_ok() {}
        assert!(stream.position() <= LONGEST);
    }
    Corpus::Keep
});
