//! What a host reads is checked before anybody relies on it.

use super::status::Failure;
use crate::record::batch::Header;
use bytes::Bytes;

/// Checks what the host read, and cuts it to whole batches of at most `max_bytes`.
pub(super) fn whole_batches(
    slices: Vec<Bytes>,
    offset: i64,
    max_bytes: usize,
    at_least_one: bool,
) -> Result<Vec<Bytes>, Failure> {
    let (mut kept, mut total, mut next_offset) = (Vec::new(), 0, offset);
    for slice in slices {
        let mut end = 0;
        while end < slice.len() {
            let header = Header::read(&slice[end..]);
            let header = header.ok_or(Failure::Malformed("a batch is cut"))?;
            let len = header.whole_bytes().filter(|len| *len <= slice.len() - end);
            let len = len.ok_or(Failure::Malformed("a batch is cut"))?;
            if header.last_offset() < next_offset {
                return Err(Failure::Malformed("a batch is not in its place"));
            }
            if total + len > max_bytes && !(total == 0 && at_least_one) {
                kept.push(slice.slice(..end));
                return Ok(kept);
            }
            (end, total, next_offset) = (end + len, total + len, header.next_offset());
        }
        kept.push(slice);
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::super::samples::batch;
    use super::*;
    use bytes::BytesMut;

    /// Three batches of one record each, at the offsets 5, 6 and 7.
    fn log() -> [Bytes; 3] {
        [5, 6, 7].map(|offset| Bytes::from(batch(offset, b"value")))
    }

    fn joined(batches: &[Bytes]) -> Bytes {
        let mut all = BytesMut::new();
        batches.iter().for_each(|batch| all.extend_from_slice(batch));
        all.freeze()
    }

    #[test]
    fn more_than_was_asked_for_is_cut_to_whole_batches() {
        let log = log();
        let len = log[0].len();
        let read = |slices: &[Bytes], max_bytes, at_least_one| {
            whole_batches(slices.to_vec(), 5, max_bytes, at_least_one)
        };
        assert_eq!(read(&log, 3 * len, false), Ok(log.to_vec()));
        let two = read(&[joined(&log)], 3 * len - 1, false).unwrap();
        assert_eq!(joined(&two), joined(&log[..2]));
        assert_eq!(joined(&read(&log, len - 1, true).unwrap()), log[0]);
        assert_eq!(joined(&read(&log, len - 1, false).unwrap()), Bytes::new());
    }

    #[test]
    fn batches_that_are_cut_or_not_in_their_place_are_not_believed() {
        let [five, six, seven] = log();
        let read = |slices: &[&Bytes], offset| {
            whole_batches(slices.iter().copied().cloned().collect(), offset, usize::MAX, true)
        };
        assert!(read(&[&five, &six, &seven], 5).is_ok());
        assert!(read(&[&five, &seven], 5).is_ok(), "a compacted log has holes");
        assert!(read(&[&five], 6).is_err(), "it ends below the offset");
        assert!(read(&[&six, &five], 5).is_err(), "backwards");
        assert!(read(&[&five, &five], 5).is_err(), "twice");
        assert!(read(&[&five.slice(..five.len() - 1)], 5).is_err());
        assert!(read(&[&five, &six.slice(..10)], 5).is_err());
        for length in [-1, 0, 48] {
            let mut bad = five.to_vec();
            bad[8..12].copy_from_slice(&i32::to_be_bytes(length));
            assert!(read(&[&Bytes::from(bad)], 5).is_err(), "{length}");
        }
        let mut last = five.to_vec();
        last[..8].copy_from_slice(&i64::MAX.to_be_bytes());
        assert!(read(&[&Bytes::from(last)], 5).is_ok(), "the last offset that there is");
    }
}
