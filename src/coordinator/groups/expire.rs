//! What time does to groups: members that are not heard of go, rebalances end.

use super::super::Outcome;
use super::super::shard::Shard;
use super::draft::Draft;
use super::{At, Due, State, Timer};
use crate::protocol::wire::Str;
use std::ops::Bound;

impl At<'_> {
    /// Does what is due in the group that comes first.
    pub(in super::super) fn expire(self) -> Outcome<Shard> {
        let mut due = self.groups.timers.due(self.now.monotonic).peekable();
        let Some(first) = due.peek() else { return Outcome::default() };
        let Some(group) = self.groups.get(&first.group) else {
            unreachable!("a group takes its timers with it")
        };
        let mut draft = self.draft(group.clone());
        for Timer { what, .. } in due {
            // What was due may have been moved by what was due before it.
            if !draft.has_touched(what) {
                draft.cancel(what.clone());
                draft.expire(what.clone());
            }
        }
        draft.finish()
    }

    /// Members were not heard of while nobody listened: they have the time of a session from now.
    pub(in super::super) fn loaded(self) -> Outcome<Shard> {
        let mut outcome = Outcome::default();
        for group in self.groups.from(Bound::Unbounded) {
            let heard = group.members().map(|member| self.heard(group, member).into());
            outcome.effects.extend(heard);
            if group.member_count() > self.config.max_size {
                // The limit was lowered. Who rejoins too late is refused.
                let mut draft = self.draft(group.clone());
                draft.prepare_rebalance();
                outcome.effects.extend(draft.finish().effects);
            }
        }
        outcome
    }
}

impl Draft<'_> {
    fn expire(&mut self, timer: Due) {
        match timer {
            Due::Join => self.end_joining(),
            Due::Sync => self.end_syncing(),
            Due::Session(id) => self.end_session(&id),
        }
    }

    /// Who did not ask for its assignment is given up: it would block what it was assigned.
    fn end_syncing(&mut self) {
        let owing = self.group.members().filter(|member| member.owes_sync);
        let owing: Vec<Str> = owing.map(|member| member.id.clone()).collect();
        owing.iter().for_each(|id| self.remove(id));
        if !owing.is_empty() {
            self.prepare_rebalance();
        }
    }

    fn end_session(&mut self, id: &Str) {
        let member = self.group.member(id);
        if member.is_some_and(|member| member.needs_no_heartbeat()) {
            // Its session begins anew when its request is answered.
            return;
        }
        let was_member = member.is_some();
        self.remove(id);
        match self.group.state {
            State::PreparingRebalance { .. } if self.group.all_joined() => self.begin_generation(),
            State::CompletingRebalance | State::Stable if was_member => self.prepare_rebalance(),
            _ => {}
        }
    }
}
