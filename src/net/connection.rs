//! One connection: requests are handled one after the other, answers go out in their order.
//!
//! ```text
//!            frames ─▶ dispatch ─▶ queue of answers ─▶ written, several at once
//!   reading half ┘                                 └ writing half
//! ```
//!
//! Both halves are one task. The reading half goes on when a handler returned, even if its answer
//! is still to come; so requests are pipelined, up to the length of the queue.

use super::answers::{Pending, write_answers};
use super::budget::Budget;
use super::frames::{Frames, buffer_bytes};
use super::idle::Activity;
use super::{Closed, Network, Phase};
use crate::api::{Connection, Reply};
use crate::dispatch::dispatch;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// How many requests of a connection may wait for their answers to go out.
const MAX_PIPELINED: usize = 256;

/// How many bytes of answers that are ready may wait, besides one answer: as long as a client does
/// not read them, its next requests are not handled.
const MAX_UNWRITTEN_BYTES: usize = 1024 * 1024;

/// Serves a connection to its end, and tells why it ended.
pub(super) async fn serve<R, W>(
    network: &Network,
    connection: &Arc<Connection>,
    reader: R,
    writer: W,
) -> Closed
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let activity = Activity::new();
    let idle = async {
        match network.limits.max_idle {
            Some(limit) => activity.idle_for(limit).await,
            None => std::future::pending().await,
        }
    };
    let (queue, answers) = mpsc::channel(MAX_PIPELINED);
    let frames = Frames::new(reader, &network.limits, &network.requests, &activity);
    let both = async {
        let mut reading = pin!(read_requests(network, connection, frames, queue));
        let reads = &network.broker.log.reads;
        let mut writing =
            pin!(write_answers(writer, answers, &activity, &connection.spares, reads));
        let closed = tokio::select! {
            biased;
            Err(closed) = &mut writing => return closed,
            closed = &mut reading => closed,
        };
        // Nobody reads the answers when the peer is gone; else what was taken in is answered.
        match closed {
            Closed::ByPeer | Closed::Broken(_) => closed,
            _ => writing.await.err().unwrap_or(closed),
        }
    };
    tokio::select! {
        biased;
        closed = both => closed,
        () = idle => Closed::Idle,
    }
}

/// Handles requests until there are no more or one ends the connection.
async fn read_requests<R: AsyncRead + Unpin>(
    network: &Network,
    connection: &Arc<Connection>,
    mut frames: Frames<'_, R>,
    queue: mpsc::Sender<Pending>,
) -> Closed {
    let unwritten = Budget::new(MAX_UNWRITTEN_BYTES);
    let mut stopping = pin!(network.reached(Phase::Draining));
    loop {
        let next = tokio::select! {
            biased;
            () = &mut stopping => return Closed::Stopping,
            next = frames.next() => next,
        };
        let (frame, request) = match next {
            Ok(next) => next,
            Err(closed) => return closed,
        };
        let buffer_bytes = buffer_bytes(frame.len());
        let pending = match dispatch(&network.broker, connection, frame, buffer_bytes).await {
            Ok(Reply::Ready(answer)) => {
                drop(request);
                let share = network.broker.log.reads.count(answer.len());
                let held = unwritten.take(answer.len()).await;
                Pending::Ready(answer, share, held)
            }
            Ok(Reply::Deferred(answer)) => Pending::Deferred(answer, request),
            Ok(Reply::Unanswered(work)) => Pending::Unanswered(work, request),
            Err(refused) => return Closed::Refused(refused),
        };
        if queue.send(pending).await.is_err() {
            // The writing half ended, and tells why.
            return std::future::pending().await;
        }
    }
}
