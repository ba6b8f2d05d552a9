//! A group as it will be: what an event makes of it, with what is kept, timed and answered.

use super::super::records::Record;
use super::super::shard::{Config, Response, Shard};
use super::super::{Millis, Now, Outcome, Ticket};
use super::{At, Due, Effect, Group, Member, Timer};
use crate::messages::records::group_metadata::Key;
use crate::messages::{join_group, sync_group};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Begun with a group as it is, changed step by step, and finished as an outcome.
pub(super) struct Draft<'a> {
    pub(super) group: Group,
    pub(super) now: Now,
    pub(super) config: &'a Config,
    /// Timers that were set, or cancelled.
    timers: BTreeMap<Due, Option<Millis>>,
    outcome: Outcome<Shard>,
}

impl<'a> At<'a> {
    pub(super) fn draft(&self, group: Group) -> Draft<'a> {
        Draft {
            group,
            now: self.now,
            config: self.config,
            timers: BTreeMap::new(),
            outcome: Outcome::default(),
        }
    }
}

impl Draft<'_> {
    pub(super) fn finish(self) -> Outcome<Shard> {
        let Self { group, timers, mut outcome, .. } = self;
        let id = group.id().clone();
        outcome.effects.push(Effect::Group(Arc::new(group)).into());
        outcome.effects.extend(timers.into_iter().map(|(what, at)| {
            let timer = Timer { group: id.clone(), what };
            let effect = match at {
                Some(at) => Effect::Set(timer, at),
                None => Effect::Cancel(timer),
            };
            effect.into()
        }));
        outcome
    }

    /// Keeps the group as it is now.
    pub(super) fn keep(&mut self) {
        let key = Key { group: self.group.id().clone() };
        let value = Some(self.group.to_value());
        self.outcome.records.push(Record::GroupMetadata { key, value });
    }

    pub(super) fn set(&mut self, timer: Due, delay: Millis) {
        self.timers.insert(timer, Some(self.now.monotonic.saturating_add(delay)));
    }

    pub(super) fn cancel(&mut self, timer: Due) {
        self.timers.insert(timer, None);
    }

    pub(super) fn has_touched(&self, timer: &Due) -> bool {
        self.timers.contains_key(timer)
    }

    /// A member's session begins anew.
    pub(super) fn begin_session(&mut self, id: &Str, timeout_ms: i32) {
        self.set(Due::Session(id.clone()), timeout_ms.into());
    }

    pub(super) fn answer_join(&mut self, ticket: Ticket, response: join_group::Response) {
        self.outcome.answers.push((ticket, Response::JoinGroup(response)));
    }

    pub(super) fn refuse_join(&mut self, ticket: Ticket, member: Str, error: ErrorCode) {
        self.answer_join(ticket, refused_join(member, error));
    }

    pub(super) fn answer_sync(&mut self, ticket: Ticket, response: sync_group::Response) {
        self.outcome.answers.push((ticket, Response::SyncGroup(response)));
    }

    pub(super) fn refuse_sync(&mut self, ticket: Ticket, error_code: ErrorCode) {
        self.answer_sync(ticket, sync_group::Response { error_code, ..Default::default() });
    }

    /// Parks a JoinGroup. One that the member sent before is answered, which Kafka leaves open: its
    /// client is mostly gone.
    pub(super) fn park_join(&mut self, id: &str, ticket: Ticket) {
        let mut before = None;
        self.group.change(id, |member| before = member.joining.replace(ticket));
        if let Some(before) = before {
            self.refuse_join(before, id.into(), ErrorCode::RebalanceInProgress);
        }
    }

    /// Parks a SyncGroup, and answers one that the member sent before.
    pub(super) fn park_sync(&mut self, id: &str, ticket: Ticket) {
        let mut before = None;
        self.group.change(id, |member| before = member.syncing.replace(ticket));
        if let Some(before) = before {
            self.refuse_sync(before, ErrorCode::RebalanceInProgress);
        }
    }

    /// Takes out a member, or an id that nobody joined with; what it waits for will not come.
    pub(super) fn remove(&mut self, id: &Str) {
        self.cancel(Due::Session(id.clone()));
        if let Some(removed) = self.group.remove(id) {
            self.refuse_parked(&removed, Str::new(), ErrorCode::UnknownMemberId);
        }
    }

    pub(super) fn refuse_parked(&mut self, member: &Member, told_id: Str, error: ErrorCode) {
        if let Some(ticket) = member.joining {
            self.refuse_join(ticket, told_id, error);
        }
        if let Some(ticket) = member.syncing {
            self.refuse_sync(ticket, error);
        }
    }
}

pub(super) fn refused_join(member_id: Str, error_code: ErrorCode) -> join_group::Response {
    join_group::Response {
        error_code,
        member_id,
        protocol_name: None,
        ..join_group::Response::default()
    }
}
