//! The 128-bit ids of topics, directories and members.

use super::wire::{Reader, Result, Wire, Writer};

/// A topic id or another 128-bit id. All zeroes means "none".
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    pub const ZERO: Self = Self([0; 16]);

    /// A random (version 4) id whose text does not begin with a dash, as Kafka's: its tools would
    /// take it for an option.
    pub fn random() -> Self {
        loop {
            let mut id: [u8; 16] = rand::random();
            id[6] = id[6] & 0x0f | 0x40;
            id[8] = id[8] & 0x3f | 0x80;
            // The first six bits are the first letter of the text; 62 is the dash.
            if id[0] >> 2 != 62 {
                return Self(id);
            }
        }
    }
}

/// Kafka writes ids as unpadded URL-safe base64.
impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const LETTERS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = u128::from_be_bytes(self.0);
        // 22 letters of six bits are four bits more than an id has.
        (0..21).rev().try_for_each(|i| {
            let letter = LETTERS[(bits >> (6 * i + 2) & 63) as usize];
            std::fmt::Write::write_char(f, letter.into())
        })?;
        std::fmt::Write::write_char(f, LETTERS[(bits << 4 & 63) as usize].into())
    }
}

impl std::fmt::Debug for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Wire for Uuid {
    #[cfg(test)]
    fn sample() -> Self {
        Self([9; 16])
    }
    fn read(r: &mut Reader) -> Result<Self> {
        r.array().map(Self)
    }
    fn write(&self, w: &mut Writer) {
        w.put(&self.0);
    }
}
