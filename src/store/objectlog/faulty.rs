//! What must not be done, and only faults do: each breaks one rule of the journal.

use super::format;
use super::journal::{Inner, Journal};
use super::log::{FramePlace, Log};
use super::putting::{self, Resolved};
use super::state::Image;
use super::writing::{Group, Sent};
use crate::store::PartitionId;
use std::sync::MutexGuard;
use tokio::task::JoinSet;

impl Journal {
    /// Goes on behind the fence, as if it was not there.
    pub(super) fn send_behind(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        puts: &mut JoinSet<Resolved>,
        i: usize,
    ) {
        let Some(sent) = inner.sent.remove(i) else { return };
        let at = inner.next;
        inner.next = at.next();
        drop(inner);
        let frames = sent.object.commit.frames.into_iter().map(|placed| placed.frame).collect();
        self.send(puts, Group { at, frames, done: sent.done });
    }

    /// Gives a place that was sent other bytes.
    pub(super) fn regroup(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        puts: &mut JoinSet<putting::Resolved>,
        i: usize,
    ) {
        let sent = &mut inner.sent[i];
        let at = sent.at;
        let mut frames: Vec<_> =
            sent.object.commit.frames.drain(..).map(|placed| placed.frame).collect();
        let mut done = std::mem::take(&mut sent.done);
        if at.next() == inner.next {
            for submitted in std::mem::take(&mut inner.queue) {
                inner.queued_bytes -= submitted.bytes();
                frames.push(submitted.frame);
                done.push(Some(submitted.done));
            }
        }
        let object = format::encode_journal(at, self.nonce, frames);
        let (objects, key, parts) =
            (self.objects.clone(), self.keys.journal(at), object.parts.clone());
        puts.spawn(putting::put(objects, at, key, parts, self.options.faults));
        inner.sent[i] = Sent { object, at, done, won: false };
    }
}

impl Inner {
    /// A round takes what is still in flight.
    pub(super) fn tier_uncommitted(
        &mut self,
        image: &mut Image,
        frames: &mut Vec<(PartitionId, Vec<FramePlace>)>,
    ) {
        for sent in &self.sent {
            let mut ahead = Log::new(image.clone(), usize::MAX);
            ahead.take(sent.at, sent.object.bytes, sent.object.commit.clone());
            for (id, places) in ahead.frames() {
                for place in &places {
                    if let Some(block) = ahead.block(place) {
                        self.log.remember(place.place(), block);
                    }
                }
                match frames.iter_mut().find(|(known, _)| *known == id) {
                    Some((_, known)) => known.extend(places),
                    None => frames.push((id, places)),
                }
            }
            *image = ahead.image;
        }
    }
}

impl Sent {
    /// Answers before all lower places are won.
    pub(super) fn answer_early(&mut self) {
        let frames = std::mem::take(&mut self.object.commit.frames);
        self.answers_of(&frames);
        self.object.commit.frames = frames;
    }
}
