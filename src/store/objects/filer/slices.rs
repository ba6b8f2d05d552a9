//! A body of many slices, which are sent as they are.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes in parts, none of which is empty: read from the front, by vectored writes many at a time.
pub(super) struct Slices {
    parts: VecDeque<Bytes>,
    remaining: usize,
}

impl Slices {
    pub(super) fn new(parts: Vec<Bytes>) -> Self {
        let remaining = parts.iter().map(Bytes::len).sum();
        let mut parts = VecDeque::from(parts);
        parts.retain(|part| !part.is_empty());
        Self { parts, remaining }
    }
}

impl Buf for Slices {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.parts.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let pairs = into.iter_mut().zip(&self.parts);
        pairs.map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.remaining, "{count} of {} bytes", self.remaining);
        self.remaining -= count;
        let mut left = count;
        while let Some(front) = self.parts.front_mut().filter(|_| left > 0) {
            let taken = left.min(front.len());
            front.advance(taken);
            left -= taken;
            if front.is_empty() {
                self.parts.pop_front();
            }
        }
    }
}

/// `length` bytes of `parts` from `offset` on, without copying any.
pub(super) fn cut(parts: &[Bytes], mut offset: usize, mut length: usize) -> Vec<Bytes> {
    let mut rest = Vec::new();
    for part in parts {
        if offset >= part.len() {
            offset -= part.len();
            continue;
        }
        if length == 0 {
            break;
        }
        let part = part.slice(offset..part.len().min(offset + length));
        offset = 0;
        length -= part.len();
        rest.push(part);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Vec<Bytes> {
        ["ab", "", "cde", "f", ""].map(|text| Bytes::from_static(text.as_bytes())).to_vec()
    }

    #[test]
    fn a_cut_is_a_range_of_all_parts() {
        for offset in 0..=6 {
            for length in 0..=6 - offset {
                let got = cut(&parts(), offset, length).concat();
                assert_eq!(got, b"abcdef"[offset..offset + length], "{length} from {offset} on");
            }
        }
    }

    #[test]
    fn slices_are_read_in_a_row_in_any_steps() {
        for step in 1..=6 {
            let mut slices = Slices::new(parts());
            let mut read = Vec::new();
            while slices.has_remaining() {
                let mut vector = [IoSlice::new(&[]); 2];
                let count = slices.chunks_vectored(&mut vector);
                assert_eq!(&vector[0][..], slices.chunk());
                let shown: usize = vector[..count].iter().map(|slice| slice.len()).sum();
                let taken = step.min(shown);
                read.extend(vector[..count].iter().flat_map(|slice| slice.to_vec()).take(taken));
                slices.advance(taken);
            }
            assert_eq!(read, b"abcdef", "in steps of {step}");
            assert!(slices.chunk().is_empty());
        }
    }
}
