//! Writes answers in the order of their requests, several at once when several are there.

use super::Closed;
use super::budget::{Held, Patience};
use super::idle::Activity;
use crate::dispatch::Answer;
use crate::log::read_memory::{ReadMemory, Share};
use crate::protocol::encoded::Spares;
use crate::protocol::error_code::ErrorCode;
use crate::store::BoxFuture;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::Poll;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// What goes out for one request, when its turn comes.
pub(super) enum Pending {
    /// The answer, and its share of what the engine and the connection may hold of unwritten answers.
    Ready(Answer, Share, Held),
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
    spares: &Spares,
    reads: &ReadMemory,
) -> Result<(), Closed> {
    let mut out = Outgoing::new(writer, activity, spares, reads);
    while let Some(next) = pending.recv().await {
        match next {
            Pending::Ready(answer, share, held) => out.push(answer, share, Some(held)),
            Pending::Deferred(answer, request) => {
                let answer = out.wait(answer).await?;
                drop(request);
                let share = reads.count(answer.len());
                out.push(answer, share, None);
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
    spares: &'a Spares,
    reads: &'a ReadMemory,
    unwritten: Unwritten,
    bytes: usize,
    /// Given back when all is written.
    held: Vec<Held>,
    share: Share,
}

#[derive(Default)]
struct Unwritten {
    answers: VecDeque<Answer>,
    /// How far the first one is written: slices, and bytes of the next slice.
    slices: usize,
    slice_bytes: usize,
}

impl<'a, W: AsyncWrite + Unpin> Outgoing<'a, W> {
    fn new(writer: W, activity: &'a Activity, spares: &'a Spares, reads: &'a ReadMemory) -> Self {
        let (unwritten, share) = (Unwritten::default(), reads.share());
        Self { writer, activity, spares, reads, unwritten, bytes: 0, held: Vec::new(), share }
    }

    fn push(&mut self, answer: Answer, share: Share, held: Option<Held>) {
        self.bytes += answer.len();
        self.unwritten.answers.push_back(answer);
        self.share.join(share);
        self.held.extend(held);
    }

    /// Waits for a future. What is there already does not wait with it.
    async fn wait<T>(&mut self, mut future: BoxFuture<'static, T>) -> Result<T, Closed> {
        if let Some(done) = poll_now(future.as_mut()).await {
            return Ok(done);
        }
        self.flush().await?;
        Ok(future.await)
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        let mut patience = Patience::for_bytes(self.bytes);
        while !self.unwritten.answers.is_empty() {
            let mut io = [IoSlice::new(&[]); MAX_SLICES];
            let count = self.unwritten.fill(&mut io);
            let written = self.writer.write_vectored(&io[..count]);
            let written = patience.wait(written, || self.reads.is_short()).await;
            let written = written.ok_or(Closed::Unread)??;
            if written == 0 {
                return Err(Closed::Broken(io::ErrorKind::WriteZero.into()));
            }
            self.activity.touch();
            self.unwritten.advance(written, self.spares);
        }
        self.bytes = 0;
        self.held.clear();
        self.share.keep(0);
        Ok(self.writer.flush().await?)
    }
}

impl Unwritten {
    /// Sets what is written next; gives how many slices that are.
    fn fill<'s>(&'s self, io: &mut [IoSlice<'s>]) -> usize {
        let first = self.answers.front().into_iter().flat_map(|first| {
            let next = &first.slice(self.slices)[self.slice_bytes..];
            let behind = (self.slices + 1..first.slices()).map(|index| first.slice(index));
            std::iter::once(next).chain(behind)
        });
        let others = self.answers.iter().skip(1);
        let others = others.flat_map(|other| (0..other.slices()).map(|index| other.slice(index)));
        let slices = first.chain(others).filter(|slice| !slice.is_empty());
        let places = io.iter_mut().zip(slices);
        places.map(|(place, slice)| *place = IoSlice::new(slice)).count()
    }

    /// Goes over so many bytes, and over what is empty behind them.
    fn advance(&mut self, mut written: usize, spares: &Spares) {
        while let Some(first) = self.answers.front() {
            let left = first.slice(self.slices).len() - self.slice_bytes;
            if written < left {
                self.slice_bytes += written;
                return;
            }
            written -= left;
            (self.slices, self.slice_bytes) = (self.slices + 1, 0);
            if self.slices == first.slices() {
                self.answers.pop_front().into_iter().for_each(|first| spares.give(first));
                self.slices = 0;
            }
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
    use crate::protocol::wire::{Records, Wire, Writer};
    use bytes::Bytes;
    use std::task::{Context, Waker};
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::sync::oneshot;

    /// Bytes that are written as they are.
    fn answer(slices: &[&[u8]]) -> Answer {
        let mut writer = Writer::new(0, false);
        Records(slices.iter().map(|slice| Bytes::copy_from_slice(slice)).collect())
            .write(&mut writer);
        writer.finish()
    }

    async fn ready(slice: &[u8]) -> Pending {
        Pending::Ready(answer(&[slice]), Share::default(), Budget::new(100).take(1).await)
    }

    #[tokio::test]
    async fn answers_before_one_that_waits_go_out_and_those_behind_it_do_not() {
        let (queue, pending) = mpsc::channel(10);
        let (later, waiting) = oneshot::channel::<Answer>();
        let waiting = Box::pin(async { waiting.await.unwrap() });
        queue.send(ready(b"first").await).await.unwrap();
        let held = Budget::new(100).take(1).await;
        queue.send(Pending::Deferred(waiting, held)).await.unwrap();
        queue.send(ready(b"third").await).await.unwrap();
        drop(queue);
        let (mut client, server) = duplex(1000);
        let (activity, reads) = (Activity::new(), ReadMemory::default());
        let spares = Spares::default();
        let mut writing = Box::pin(write_answers(server, pending, &activity, &spares, &reads));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(writing.as_mut().poll(&mut cx).is_pending());
        let mut read = [0; 9];
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"\0\0\0\x05first");

        later.send(answer(&[b"se", b"cond"])).unwrap();
        writing.await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"\0\0\0\x06second\0\0\0\x05third");
    }

    #[tokio::test]
    async fn answers_of_many_slices_go_out_whole_though_the_socket_takes_little() {
        let (queue, pending) = mpsc::channel(1000);
        // Some are copied, some empty, and most go out as they are.
        let slices: Vec<Vec<u8>> = (0..=255).map(|i: u8| vec![i; 10 * usize::from(i)]).collect();
        let slices: Vec<&[u8]> = slices.iter().map(Vec::as_slice).collect();
        let held = Budget::new(100).take(1).await;
        queue.send(Pending::Ready(answer(&slices), Share::default(), held)).await.unwrap();
        queue.send(ready(b"last").await).await.unwrap();
        drop(queue);
        let (mut client, server) = duplex(7);
        let (activity, reads) = (Activity::new(), ReadMemory::default());
        let mut read = Vec::new();
        let spares = Spares::default();
        let writing = write_answers(server, pending, &activity, &spares, &reads);
        let (written, _) = tokio::join!(writing, client.read_to_end(&mut read));
        written.unwrap();
        let expected = [&326_400_u32.to_be_bytes()[..], &slices.concat(), b"\0\0\0\x04last"];
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
        let (activity, reads) = (Activity::new(), ReadMemory::default());
        let closed = write_answers(server, pending, &activity, &Spares::default(), &reads)
            .await
            .unwrap_err();
        assert!(matches!(closed, Closed::AcksZero(ErrorCode::NotLeaderOrFollower)), "{closed:?}");
        let mut read = Vec::new();
        client.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"\0\0\0\x05first");
    }
}
