//! Coordinators: groups and their offsets, as pure state machines.
//!
//! ```text
//!             handle, expire                     records: appended, then applied
//!  request ───────────────────▶ Outcome ─────┬─▶ effects: noted
//!  deadline                                  └─▶ answers: sent when all they saw is committed
//! ```
//!
//! A machine decides without changing anything; its state changes only by records, which are kept,
//! and by effects, which a restart forgets. So the state is always what a replay of the records
//! gives. Whoever asks is named by a ticket: an answer may come at once, or in the outcome of
//! somebody else's request or of a deadline (a JoinGroup waits for the other members).

pub mod groups;
pub mod offsets;
pub mod records;
pub mod runtime;
pub mod shard;

use crate::protocol::wire::Str;

/// Milliseconds.
pub type Millis = i64;

/// What the clocks say. Deadlines go by the monotonic one, what is kept by the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub monotonic: Millis,
    pub wall: Millis,
}

/// Names the one who asked, until it is answered. Never used twice in a machine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A copy to keep: the text may share the memory of a whole request, or of a part of the log.
fn own(text: &Str) -> Str {
    Str::from(&**text)
}

/// A state machine: the same calls in the same order give the same state and answers.
pub trait Machine {
    type Request;
    type Response;
    type Record;
    type Effect;

    /// Decides. Never changes state.
    fn handle(&self, now: Now, ticket: Ticket, request: Self::Request) -> Outcome<Self>;

    /// The only change of state; also how state is rebuilt.
    fn apply(&mut self, record: Self::Record);

    /// The only change of what a restart forgets (last heartbeat, parked tickets). Effects are noted after
    /// the records of their outcome were applied, and never in a replay.
    fn note(&mut self, effect: Self::Effect);

    /// When [`Machine::expire`] has something to do, on the monotonic clock.
    fn deadline(&self) -> Option<Millis>;

    /// Does what is due, or a part of it: what is left is due still, and does not wait for others.
    fn expire(&self, now: Now) -> Outcome<Self>;

    /// What is to be done when all records were replayed: members get the time of a session to be heard of.
    fn loaded(&self, now: Now) -> Outcome<Self>;
}

/// What a machine decided.
pub struct Outcome<M: Machine + ?Sized> {
    /// Kept together or not at all.
    pub records: Vec<M::Record>,
    pub effects: Vec<M::Effect>,
    /// Answers to this request or to ones that wait.
    pub answers: Vec<(Ticket, M::Response)>,
}

impl<M: Machine + ?Sized> Default for Outcome<M> {
    fn default() -> Self {
        Self { records: Vec::new(), effects: Vec::new(), answers: Vec::new() }
    }
}

impl<M: Machine + ?Sized> Outcome<M> {
    /// Nothing changes; the one who asked is answered.
    pub fn answer(ticket: Ticket, response: M::Response) -> Self {
        Self { answers: vec![(ticket, response)], ..Self::default() }
    }
}
