//! CRC-32C of what is joined from parts whose checksums are known.
//!
//! A checksum is the remainder of the bytes, as a polynomial over GF(2): of `a` with `n` bytes behind it, it
//! is that of `a` times x⁸ⁿ, plus that of what is behind. (With ones before and behind, as CRC-32C has them,
//! the same holds: they cancel out.)

/// CRC-32C's polynomial. Bit 31 is of x⁰, bit 0 of x³¹; x³² is left out.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x⁸, x¹⁶, x³², …: one for each bit of a length in bytes.
const SHIFTS: [u32; usize::BITS as usize] = {
    let mut shifts = [1 << (31 - 8); usize::BITS as usize];
    let mut bit = 1;
    while bit < shifts.len() {
        shifts[bit] = multiply(shifts[bit - 1], shifts[bit - 1]);
        bit += 1;
    }
    shifts
};

/// The CRC-32C of bytes of which it is `first`, followed by so many of which it is `second`.
pub fn join(first: u32, second: u32, second_bytes: usize) -> u32 {
    let bits = (0..SHIFTS.len()).filter(|bit| second_bytes >> bit & 1 == 1);
    bits.fold(first, |sum, bit| multiply(SHIFTS[bit], sum)) ^ second
}

/// Modulo the polynomial.
const fn multiply(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    while a != 0 {
        if a >> 31 == 1 {
            product ^= b;
        }
        a <<= 1;
        b = b >> 1 ^ if b & 1 == 1 { POLYNOMIAL } else { 0 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use crc32c::crc32c;

    #[test]
    fn joined_checksums_are_those_of_the_joined_bytes() {
        let bytes: Vec<u8> = (0..70_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        for len in [0, 1, 2, 3, 61, 255, 256, 4_096, 65_535, 65_536, 70_000] {
            for cut in [0, 1, len / 3, len - len.min(1), len] {
                let (first, second) = bytes[..len].split_at(cut.min(len));
                let joined = join(crc32c(first), crc32c(second), second.len());
                assert_eq!(joined, crc32c(&bytes[..len]), "{cut} of {len}");
            }
        }
    }

    #[test]
    fn a_long_part_is_joined_as_by_the_crate() {
        for len in [1 << 20, (1 << 30) + 12_345, u32::MAX as usize] {
            let (first, second) = (0x1234_5678, 0x9abc_def0);
            assert_eq!(join(first, second, len), crc32c::crc32c_combine(first, second, len));
        }
    }
}
