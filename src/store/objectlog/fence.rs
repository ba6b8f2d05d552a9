//! Fences: what an opener puts at the end of the journal, so that the owner before it finds its place taken.
//! [`format`](super::format) has their bytes.

use super::format::{Header, Kind, Malformed};
use super::keys::Position;
use crate::store::Owner;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Closes an epoch and opens another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub next_epoch: i32,
    pub owner: Owner,
}

impl Fence {
    /// The object at `at`.
    pub(super) fn encode(&self, at: Position, nonce: u64) -> Bytes {
        let mut body = BytesMut::new();
        body.put_u32(self.next_epoch.cast_unsigned());
        body.put_u32(self.owner.pid);
        body.put_u64(self.owner.started);
        put_text(&mut body, &self.owner.address);
        put_text(&mut body, &self.owner.host);
        let header = Header::at(Kind::Fence, at, nonce).encode(&body);
        [&header[..], &body[..]].concat().into()
    }

    pub(super) fn decode(mut body: Bytes) -> Result<Self, Malformed> {
        let next_epoch = body.try_get_u32()?;
        let next_epoch = i32::try_from(next_epoch).map_err(|_| Malformed("a negative epoch"))?;
        let (pid, started) = (body.try_get_u32()?, body.try_get_u64()?);
        let (address, host) = (take_text(&mut body)?, take_text(&mut body)?);
        Ok(Self { next_epoch, owner: Owner { address, host, pid, started } })
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    // Addresses and host names are far shorter; one that is not is cut, as it is only shown.
    let len = text.floor_char_boundary(usize::from(u16::MAX));
    out.put_u16(len as u16);
    out.put_slice(&text.as_bytes()[..len]);
}

fn take_text(body: &mut Bytes) -> Result<String, Malformed> {
    let len = usize::from(body.try_get_u16()?);
    if len > body.len() {
        return Err(Malformed("it ends early"));
    }
    String::from_utf8(body.split_to(len).into()).map_err(|_| Malformed("a text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objectlog::format::{Found, decode_journal};

    #[test]
    fn a_fence_names_the_next_epoch_and_its_owner() {
        let owner = Owner { address: "a:1".into(), host: "h".into(), pid: 7, started: 9 };
        let fence = Fence { next_epoch: 5, owner };
        let bytes = fence.encode(Position { epoch: 4, seq: 2 }, 1);
        let (header, Found::Fence(read)) = decode_journal(&bytes).unwrap() else {
            panic!("a fence")
        };
        assert_eq!((header.epoch, header.number), (4, 2));
        assert_eq!(read, fence);
    }
}
