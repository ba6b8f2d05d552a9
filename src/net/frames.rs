//! Cuts what a client sends into frames: a length of four bytes, then as many bytes.
//!
//! A frame is read into its place straight from the socket: of a large one at most [`READ_AHEAD`]
//! bytes are copied, which buys that small ones come several to a read.

use super::budget::{Budget, Held, Patience, Requests};
use super::idle::Activity;
use super::{Closed, Limits};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const READ_AHEAD: usize = 4096;

/// A large frame gets memory of exactly its size. Others are cut from a buffer of so many bytes that
/// the connection keeps: it is used again when all frames in it are gone.
const KEPT_BYTES: usize = 32 * 1024;

const LENGTH_BYTES: usize = 4;

pub(super) struct Frames<'a, R> {
    reader: R,
    /// Bytes behind the last frame.
    ahead: BytesMut,
    /// What is not yet used of the buffer of small frames.
    kept: BytesMut,
    limits: &'a Limits,
    requests: &'a Requests,
    activity: &'a Activity,
}

impl<'a, R: AsyncRead + Unpin> Frames<'a, R> {
    pub(super) fn new(
        reader: R,
        limits: &'a Limits,
        requests: &'a Requests,
        activity: &'a Activity,
    ) -> Self {
        let ahead = BytesMut::with_capacity(READ_AHEAD);
        Self { reader, ahead, kept: BytesMut::new(), limits, requests, activity }
    }

    /// The next frame without its length, and its share of the engine's memory.
    pub(super) async fn next(&mut self) -> Result<(Bytes, Held), Closed> {
        let len = self.length().await?;
        let budget = self.budget(len);
        let held = budget.take(len).await;
        let mut frame = self.room(len);
        let known = self.ahead.len().min(len);
        frame.put(self.ahead.split_to(known));
        let mut patience = Patience::for_bytes(len);
        while frame.len() < len {
            let missing = len - frame.len();
            let mut space = (&mut frame).limit(missing);
            let read = self.reader.read_buf(&mut space);
            let read = patience.wait(read, || budget.is_exhausted()).await;
            if read.ok_or(Closed::Stalled)?? == 0 {
                return Err(Closed::ByPeer);
            }
            self.activity.touch();
        }
        Ok((frame.freeze(), held))
    }

    fn budget(&self, len: usize) -> &'a Budget {
        if len > KEPT_BYTES { &self.requests.large } else { &self.requests.small }
    }

    /// Memory for a frame.
    fn room(&mut self, len: usize) -> BytesMut {
        if len > KEPT_BYTES {
            return BytesMut::with_capacity(len);
        }
        if !self.kept.try_reclaim(len) {
            self.kept = BytesMut::with_capacity(KEPT_BYTES);
        }
        let behind = self.kept.split_off(len);
        std::mem::replace(&mut self.kept, behind)
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

/// How long the buffer is that holds a frame of so many bytes.
pub(super) fn buffer_bytes(frame_bytes: usize) -> usize {
    frame_bytes.max(KEPT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::budget::PATIENCE;
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncWriteExt, duplex};
    use tokio::time::Instant;

    const LIMITS: Limits = Limits { max_request_bytes: 10_000, max_idle: None };

    /// A client sends half of a frame that needs all of the memory, and then nothing. Gives why and
    /// after how long its connection ends.
    async fn half_a_frame(requests: &Requests) -> (Closed, Duration) {
        let (mut client, server) = duplex(10_000);
        client.write_all(&10_000_i32.to_be_bytes()).await.unwrap();
        client.write_all(&[7; 5_000]).await.unwrap();
        let activity = Activity::new();
        let begin = Instant::now();
        let closed = Frames::new(server, &LIMITS, requests, &activity).next().await;
        (closed.unwrap_err(), begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_frame_keeps_its_memory_only_while_nobody_else_waits() {
        let requests = Requests::new(10_000);
        let waits_later = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(requests.small.take(1).await);
        };
        let ((closed, after), ()) = tokio::join!(half_a_frame(&requests), waits_later);
        assert!(matches!(closed, Closed::Stalled), "{closed:?}");
        assert!(after >= Duration::from_secs(60), "until then it was left alone: {after:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn others_wait_for_the_memory_of_half_a_frame_as_long_as_it_may_take() {
        let requests = Requests::new(10_000);
        let waits = async {
            tokio::task::yield_now().await;
            let begin = Instant::now();
            drop(requests.small.take(1).await);
            begin.elapsed()
        };
        let ((closed, _), waited) = tokio::join!(half_a_frame(&requests), waits);
        assert!(matches!(closed, Closed::Stalled), "{closed:?}");
        assert_eq!(waited, PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_holds_its_memory_until_it_is_handled() {
        let requests = Requests::new(10);
        let (mut client, server) = duplex(100);
        client.write_all(b"\0\0\0\x08one-two-\0\0\0\x05three").await.unwrap();
        let activity = Activity::new();
        let mut frames = Frames::new(server, &LIMITS, &requests, &activity);
        let (first, held) = frames.next().await.unwrap();
        assert_eq!(&first[..], b"one-two-");
        let no_room = tokio::time::timeout(PATIENCE, frames.next()).await;
        assert!(no_room.is_err(), "the second frame is not read");
        drop(held);
    }
}
