//! The coordinator's process: a shard, its log, and the answers that wait for the log.
//!
//! It does what the runtime does, step by step and without threads: records get their place in the
//! log and are applied at once; an answer goes out when all that stood in the log then is
//! committed. A crash leaves what was committed, and perhaps some of what was not.

use crate::check::Check;
use crate::wrong::Wrong;
use crate::{Met, meet};
use bytes::Bytes;
use kelp::coordinator::groups::{Group, Groups, State};
use kelp::coordinator::records::Record;
use kelp::coordinator::shard::{Config, Request, Response, Shard};
use kelp::coordinator::{Machine, Now, Outcome, Ticket};
use kelp::protocol::wire::Uuid;
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct From {
    /// None is a tool, which does not stay.
    pub(crate) client: Option<usize>,
    pub(crate) process: u32,
    pub(crate) number: u64,
}

pub(crate) struct Coordinator {
    wrong: Option<Wrong>,
    config: Config,
    /// None while it is down.
    shard: Option<Shard>,
    /// When the process began: its monotonic clock counts from there.
    began: i64,
    /// What each outcome had to keep.
    log: Vec<Vec<Kept>>,
    committed: usize,
    held: Vec<Held>,
    /// Who has no answer yet, held ones included.
    asked: BTreeMap<Ticket, From>,
    tickets: u64,
    pub(crate) check: Check,
    /// Answers on their way out.
    pub(crate) sent: Vec<(From, Response)>,
}

/// A record as it stands in the log.
pub(crate) type Kept = (Bytes, Option<Bytes>);

pub(crate) fn read((key, value): &Kept) -> Record {
    Record::decode(Some(key), value.as_ref()).expect("what was written")
}

/// An answer that waits for the log.
struct Held {
    /// How many outcomes it has seen.
    seen: usize,
    ticket: Ticket,
    response: Response,
}

/// All clocks begin here.
const EPOCH_MS: i64 = 1_000_000_000_000;

impl Coordinator {
    pub(crate) fn new(config: Config, wrong: Option<Wrong>) -> Self {
        Self {
            wrong,
            check: Check::new(config.clone()),
            config,
            shard: None,
            began: 0,
            log: Vec::new(),
            committed: 0,
            held: Vec::new(),
            asked: BTreeMap::new(),
            tickets: 0,
            sent: Vec::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.shard.is_some()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.asked.len()
    }

    pub(crate) fn deadline(&self) -> Option<i64> {
        Some(self.shard.as_ref()?.deadline()? + self.began)
    }

    pub(crate) fn has_uncommitted(&self) -> bool {
        self.committed < self.log.len()
    }

    fn clock(&self, now: i64) -> Now {
        Now { monotonic: now - self.began, wall: EPOCH_MS + now }
    }

    /// A new process reads the log.
    pub(crate) fn start(&mut self, now: i64, rng: &mut SmallRng, met: &mut Met) {
        self.began = now - rng.random_range(0..1_000);
        let mut shard = Shard::new(self.config.clone());
        for record in self.log.iter().flatten() {
            shard.apply(read(record));
        }
        let outcome = shard.loaded(self.clock(now));
        self.shard = Some(shard);
        self.check.starts();
        if self.wrong != Some(Wrong::NothingAfterLoading) {
            self.take(outcome, met);
        }
    }

    /// The process dies. What it had not committed is kept or lost, from some outcome on.
    pub(crate) fn crash(&mut self, rng: &mut SmallRng, met: &mut Met) {
        self.shard = None;
        let kept = rng.random_range(self.committed..=self.log.len());
        if kept > self.committed {
            meet(met, "a crash that keeps what nobody was told of");
        }
        if kept < self.log.len() {
            meet(met, "a crash that loses what nobody was told of");
        }
        if !self.held.is_empty() {
            meet(met, "a crash with answers that wait for the log");
        }
        self.log.truncate(kept);
        if self.wrong == Some(Wrong::HalfAnOutcome) && self.committed < kept {
            let last = self.log.last_mut().expect("something was kept");
            last.truncate(last.len() / 2);
        }
        self.committed = kept;
        self.held.clear();
        if !self.asked.is_empty() {
            meet(met, "a crash with parked requests");
        }
        self.asked.clear();
        self.check.crashes(kept, &self.log);
    }

    pub(crate) fn handle(&mut self, now: i64, from: From, mut request: Request, met: &mut Met) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let unique = Uuid(u128::from(self.tickets).to_be_bytes());
        if let Request::JoinGroup(client, _)
        | Request::LeaveGroup(client, _)
        | Request::OffsetCommit(client, _)
        | Request::DescribeGroup(client, _) = &mut request
        {
            client.unique = unique;
            client.id = "c".into();
            client.host = "/127.0.0.1".into();
        }
        self.asked.insert(ticket, from);
        self.check.asked(now, ticket, &request);
        let clock = self.clock(now);
        let shard = self.shard.as_ref().expect("it is up");
        if let Some(wrong) = self.wrong {
            wrong.spoil_request(shard, &mut request);
        }
        let outcome = shard.handle(clock, ticket, request);
        if outcome.answers.iter().all(|(answered, _)| *answered != ticket) {
            meet(met, "a request that is parked");
        }
        self.take(outcome, met);
    }

    /// Does what is due. Whatever is done, less is due after it: a timer that is late is not lost.
    pub(crate) fn expire(&mut self, now: i64, met: &mut Met) {
        let clock = self.clock(now);
        for _ in 0..1_000 {
            let shard = self.shard.as_ref().expect("it is up");
            if shard.deadline().is_none_or(|at| at > clock.monotonic) {
                return;
            }
            let before = shard.groups.clone();
            let outcome = shard.expire(clock);
            self.take(outcome, met);
            let after = &self.shard.as_ref().expect("it is up").groups;
            before.from(Bound::Unbounded).for_each(|group| expired(group, after, met));
        }
        self.check.violated("a deadline stays though all that is due was done".into());
    }

    /// The log is committed up to an outcome, and who waited for that hears.
    pub(crate) fn commit(&mut self, rng: &mut SmallRng) {
        self.committed = rng.random_range(self.committed..=self.log.len());
        self.release();
    }

    fn take(&mut self, mut outcome: Outcome<Shard>, met: &mut Met) {
        if let Some(wrong) = self.wrong {
            wrong.spoil(&mut outcome);
        }
        let Outcome { mut records, effects, answers } = outcome;
        let shard = self.shard.as_mut().expect("it is up");
        self.check.decides(shard, &records, &answers, met);
        records.iter().for_each(|record| shard.apply(record.clone()));
        if self.wrong == Some(Wrong::NeverWrites) {
            records.clear();
        }
        effects.into_iter().for_each(|effect| shard.note(effect));
        if !records.is_empty() {
            self.log.push(records.iter().map(Record::encode).collect());
        }
        let seen = self.log.len();
        self.check.decided(seen, shard);
        let held = answers.into_iter().map(|(ticket, response)| Held { seen, ticket, response });
        self.held.extend(held);
        self.release();
    }

    /// Sends the answers that have waited long enough.
    fn release(&mut self) {
        let early = self.wrong == Some(Wrong::AnswersBeforeCommit);
        let held = std::mem::take(&mut self.held);
        for answer in held {
            if answer.seen > self.committed && !early {
                self.held.push(answer);
                continue;
            }
            let Held { seen, ticket, response } = answer;
            self.check.answers(ticket, &response, seen);
            if let Some(from) = self.asked.remove(&ticket) {
                self.sent.push((from, response));
            }
        }
    }

    pub(crate) fn shard(&self) -> Option<&Shard> {
        self.shard.as_ref()
    }
}

/// What the time that went by did to a group.
fn expired(before: &Group, groups: &Groups, met: &mut Met) {
    let Some(after) = groups.get(before.id()) else { return };
    if after.is_empty() && !before.is_empty() {
        meet(met, "a group that becomes empty");
    }
    for member in before.members().filter(|member| after.member(&member.id).is_none()) {
        let kind = match before.state() {
            State::PreparingRebalance { .. } if after.state() != before.state() => {
                "a member that does not join again in time"
            }
            _ if member.owes_sync => "a member that does not ask for its assignment",
            _ => "a member whose session ends",
        };
        meet(met, kind);
    }
}
