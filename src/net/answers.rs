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
                out.wait(work).await?.map_err(Closed::AcksZero)?;
                drop(request);
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
