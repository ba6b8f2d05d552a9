//! Cuts what a client sends into frames: a length of four bytes, then as many bytes.
//!
//! A frame is read into memory of exactly its size, straight from the socket: of a large one at
//! most [`READ_AHEAD`] bytes are copied, which buys that small ones come several to a read.

use super::budget::{Budget, Held};
use super::idle::Activity;
use super::{Closed, Limits};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

const READ_AHEAD: usize = 4096;

const LENGTH_BYTES: usize = 4;

/// How long a frame may take that holds memory which others wait for, and how long more for each
/// MiB of it. Without this, a few clients that send half a frame would stop all others.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_PER_MIB: Duration = Duration::from_secs(1);

pub(super) struct Frames<'a, R> {
    reader: R,
    /// Bytes behind the last frame.
    ahead: BytesMut,
    limits: &'a Limits,
    budget: &'a Budget,
    activity: &'a Activity,
}

impl<'a, R: AsyncRead + Unpin> Frames<'a, R> {
    pub(super) fn new(
        reader: R,
        limits: &'a Limits,
        budget: &'a Budget,
        activity: &'a Activity,
    ) -> Self {
        Self { reader, ahead: BytesMut::with_capacity(READ_AHEAD), limits, budget, activity }
    }

    /// The next frame without its length, and its share of the engine's memory.
    pub(super) async fn next(&mut self) -> Result<(Bytes, Held), Closed> {
        let len = self.length().await?;
        let held = self.budget.take(len).await;
        let mut frame = BytesMut::with_capacity(len);
        let known = self.ahead.len().min(len);
        frame.put(self.ahead.split_to(known));
        let mut deadline = Instant::now() + PATIENCE + PATIENCE_PER_MIB * (len >> 20) as u32;
        while frame.len() < len {
            let missing = len - frame.len();
            let mut space = (&mut frame).limit(missing);
            match timeout_at(deadline, self.reader.read_buf(&mut space)).await {
                Ok(Ok(0)) => return Err(Closed::ByPeer),
                Ok(read) => {
                    read?;
                    self.activity.touch();
                }
                Err(_) if self.budget.is_exhausted() => return Err(Closed::Stalled),
                Err(_) => deadline = Instant::now() + PATIENCE_PER_MIB,
            }
        }
        Ok((frame.freeze(), held))
    }

    async fn length(&mut self) -> Result<usize, Closed> {
        while self.ahead.len() < LENGTH_BYTES {
            self.ahead.reserve(READ_AHEAD - self.ahead.len());
            if self.reader.read_buf(&mut self.ahead).await? == 0 {
                return Err(Closed::ByPeer);
            }
            self.activity.touch();
        }
        let len = self.ahead.split_to(LENGTH_BYTES).get_i32();
        match usize::try_from(len) {
            Ok(bytes) if bytes <= self.limits.max_request_bytes => Ok(bytes),
            _ => Err(Closed::BadLength(len)),
        }
    }
}
