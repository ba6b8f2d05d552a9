//! Writes answers in the order of their requests, several at once when several are there.

use super::Closed;
use super::budget::Held;
use super::idle::Activity;
use crate::dispatch::Answer;
use crate::protocol::error_code::ErrorCode;
use crate::store::BoxFuture;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::Poll;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// What goes out for one request, when its turn comes.
pub(super) enum Pending {
    /// The answer, and its share of what the connection may hold of unwritten answers.
    Ready(Answer, Held),
    /// The answer to come, and the memory of the request it is for.
    Deferred(BoxFuture<'static, Answer>, Held),
    /// Nothing, but if it fails the connection is closed.
    Unanswered(BoxFuture<'static, Result<(), ErrorCode>>, Held),
}

/// Enough for one write: more would only wait in the socket.
const BATCH_BYTES: usize = 256 * 1024;

/// Slices in one vectored write.
const MAX_SLICES: usize = 64;

/// Writes what comes until nothing more comes.
pub(super) async fn write_answers<W: AsyncWrite + Unpin>(
    writer: W,
    mut pending: mpsc::Receiver<Pending>,
    activity: &Activity,
) -> Result<(), Closed> {
    let mut out = Outgoing::new(writer, activity);
    while let Some(next) = pending.recv().await {
        match next {
            Pending::Ready(answer, held) => out.push(answer, Some(held)),
            Pending::Deferred(answer, request) => {
                let answer = out.wait(answer).await?;
                drop(request);
                out.push(answer, None);
            }
            Pending::Unanswered(work, request) => {
                let done = out.wait(work).await?;
                drop(request);
                if let Err(code) = done {
                    out.flush().await?;
                    return Err(Closed::AcksZero(code));
                }
            }
        }
        if pending.is_empty() || out.bytes >= BATCH_BYTES {
            out.flush().await?;
        }
    }
    out.flush().await?;
    Ok(())
}

struct Outgoing<'a, W> {
    writer: W,
    activity: &'a Activity,
    slices: VecDeque<Bytes>,
    bytes: usize,
    /// Given back when all is written.
    held: Vec<Held>,
    /// Where the lengths of frames are cut from.
    lengths: BytesMut,
}

impl<'a, W: AsyncWrite + Unpin> Outgoing<'a, W> {
    fn new(writer: W, activity: &'a Activity) -> Self {
        let (slices, held) = (VecDeque::new(), Vec::new());
        Self { writer, activity, slices, bytes: 0, held, lengths: BytesMut::new() }
    }

    fn push(&mut self, answer: Answer, held: Option<Held>) {
        let len: usize = answer.iter().map(Bytes::len).sum();
        self.lengths.put_u32(len as u32);
        self.slices.push_back(self.lengths.split().freeze());
        self.slices.extend(answer.into_iter().filter(|slice| !slice.is_empty()));
        self.bytes += len;
        self.held.extend(held);
    }

    /// Waits for a future. What is there already does not wait with it.
    async fn wait<T>(&mut self, mut future: BoxFuture<'static, T>) -> io::Result<T> {
        if let Some(done) = poll_now(future.as_mut()).await {
            return Ok(done);
        }
        self.flush().await?;
        Ok(future.await)
    }

    async fn flush(&mut self) -> io::Result<()> {
        while !self.slices.is_empty() {
            let mut io = [IoSlice::new(&[]); MAX_SLICES];
            let count = self.slices.len().min(MAX_SLICES);
            for (io, slice) in io.iter_mut().zip(&self.slices) {
                *io = IoSlice::new(slice);
            }
            let written = self.writer.write_vectored(&io[..count]).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.activity.touch();
            self.advance(written);
        }
        self.bytes = 0;
        self.held.clear();
        self.writer.flush().await
    }

    fn advance(&mut self, mut written: usize) {
        while written > 0 {
            let Some(first) = self.slices.front_mut() else { return };
            if written < first.len() {
                return first.advance(written);
            }
            written -= first.len();
            self.slices.pop_front();
        }
    }
}

/// What a future gives now; `None` if it has to wait.
async fn poll_now<T>(mut future: Pin<&mut (dyn Future<Output = T> + Send)>) -> Option<T> {
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;
    use std::task::{Context, Waker};
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::sync::oneshot;

    async fn ready(answer: &'static [u8]) -> Pending {
        Pending::Ready(vec![Bytes::from_static(answer)], Budget::new(100).take(1).await)
    }

    #[tokio::test]
    async fn answers_before_one_that_waits_go_out_and_those_behind_it_do_not() {
        let (queue, pending) = mpsc::channel(10);
        let (answer, waiting) = oneshot::channel::<Answer>();
        let waiting = Box::pin(async { waiting.await.unwrap() });
        queue.send(ready(b"first").await).await.unwrap();
        let held = Budget::new(100).take(1).await;
        queue.send(Pending::Deferred(waiting, held)).await.unwrap();
        queue.send(ready(b"third").await).await.unwrap();
        drop(queue);
        let (mut client, server) = duplex(1000);
        let activity = Activity::new();
        let mut writing = Box::pin(write_answers(server, pending, &activity));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(writing.as_mut().poll(&mut cx).is_pending());
        let mut read = [0; 9];
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"\0\0\0\x05first");

        let second = ["se", "cond"].map(|part| Bytes::from_static(part.as_bytes()));
        answer.send(second.to_vec()).unwrap();
        writing.await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"\0\0\0\x06second\0\0\0\x05third");
    }

    #[tokio::test]
    async fn answers_of_many_slices_go_out_whole_though_the_socket_takes_little() {
        let (queue, pending) = mpsc::channel(1000);
        let slices: Answer = (0..=255).map(|i| Bytes::from(vec![i; 100])).collect();
        let held = Budget::new(100).take(1).await;
        queue.send(Pending::Ready(slices.clone(), held)).await.unwrap();
        queue.send(ready(b"last").await).await.unwrap();
        drop(queue);
        let (mut client, server) = duplex(7);
        let activity = Activity::new();
        let mut read = Vec::new();
        let (written, _) =
            tokio::join!(write_answers(server, pending, &activity), client.read_to_end(&mut read));
        written.unwrap();
        let expected = [&25_600_u32.to_be_bytes()[..], &slices.concat(), b"\0\0\0\x04last"];
        assert_eq!(read, expected.concat());
    }

    #[tokio::test]
    async fn a_failed_produce_with_acks_0_ends_the_connection_behind_the_answers_before_it() {
        let (queue, pending) = mpsc::channel(10);
        queue.send(ready(b"first").await).await.unwrap();
        for outcome in [Ok(()), Err(ErrorCode::NotLeaderOrFollower)] {
            let held = Budget::new(100).take(1).await;
            let work = Box::pin(std::future::ready(outcome));
            queue.send(Pending::Unanswered(work, held)).await.unwrap();
        }
        queue.send(ready(b"never").await).await.unwrap();
        let (mut client, server) = duplex(1000);
        let activity = Activity::new();
        let closed = write_answers(server, pending, &activity).await.unwrap_err();
        assert!(matches!(closed, Closed::AcksZero(ErrorCode::NotLeaderOrFollower)), "{closed:?}");
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"\0\0\0\x05first");
    }
}
