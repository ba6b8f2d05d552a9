//! The steps of a rebalance, from one state to the next.
//!
//! Source: KIP-134 (the delay of the first rebalance), KIP-394 (members that never join), KIP-345
//! (static members that are away keep their place until their session ends).

use super::draft::Draft;
use super::{Due, Initial, Member, State};
use crate::messages::{join_group, sync_group};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use bytes::Bytes;
use std::collections::BTreeMap;

impl Draft<'_> {
    /// Something changed about the members: begins a rebalance, or ends the joining of one.
    pub(super) fn rebalance(&mut self) {
        match self.group.state {
            State::PreparingRebalance { .. } => self.try_begin_generation(),
            _ => self.prepare_rebalance(),
        }
    }

    /// Empty, CompletingRebalance, Stable → PreparingRebalance.
    pub(super) fn prepare_rebalance(&mut self) {
        if self.group.state == State::CompletingRebalance {
            self.group.change_all(|member| member.assignment = Bytes::new());
            self.answer_syncs(Err(ErrorCode::RebalanceInProgress));
        }
        if !self.group.all_synced() {
            self.group.change_all(|member| member.owes_sync = false);
        }
        self.cancel(Due::Sync);
        if self.group.is_empty() {
            let delay_ms = self.config.initial_rebalance_delay_ms;
            let remaining_ms = (self.group.rebalance_timeout_ms() - delay_ms).max(0);
            let initial = Initial { delay_ms, remaining_ms, member_added: false };
            self.enter(State::PreparingRebalance { initial: Some(initial) });
            self.set(Due::Join, delay_ms);
            return;
        }
        self.enter(State::PreparingRebalance { initial: None });
        if self.group.all_joined() {
            self.begin_generation();
        } else {
            self.set(Due::Join, self.group.rebalance_timeout_ms());
        }
    }

    /// Ends the joining if all members are back. The first rebalance waits for its delay.
    pub(super) fn try_begin_generation(&mut self) {
        let state = self.group.state;
        if state == (State::PreparingRebalance { initial: None }) && self.group.all_joined() {
            self.begin_generation();
        }
    }

    /// The time for joining is up. The first rebalance goes on while new members come.
    pub(super) fn end_joining(&mut self) {
        let State::PreparingRebalance { initial } = self.group.state else { return };
        match initial {
            Some(initial) if initial.member_added && initial.remaining_ms > 0 => {
                let delay_ms = self.config.initial_rebalance_delay_ms.min(initial.remaining_ms);
                let remaining_ms = (initial.remaining_ms - initial.delay_ms).max(0);
                let initial = Initial { delay_ms, remaining_ms, member_added: false };
                self.group.state = State::PreparingRebalance { initial: Some(initial) };
                self.set(Due::Join, delay_ms);
            }
            _ => self.begin_generation(),
        }
    }

    /// PreparingRebalance → CompletingRebalance, or Empty if nobody is left.
    pub(super) fn begin_generation(&mut self) {
        self.cancel(Due::Join);
        let is_late = |member: &&Member| member.joining.is_none() && !member.is_static();
        let late: Vec<Str> =
            self.group.members().filter(is_late).map(|member| member.id.clone()).collect();
        late.iter().for_each(|id| self.remove(id));
        if self.group.member_count() == 0 {
            return self.become_empty();
        }
        if !self.elect_leader() {
            // Only static members, and none is back: they have until their sessions end.
            return self.set(Due::Join, self.group.rebalance_timeout_ms());
        }
        self.next_generation();
        self.group.protocol_name = self.group.elect_protocol();
        self.group.learn_topics();
        self.enter(State::CompletingRebalance);
        let members: Vec<Str> = self.group.members().map(|member| member.id.clone()).collect();
        for id in &members {
            self.tell_generation(id);
        }
        self.set(Due::Sync, self.group.rebalance_timeout_ms());
    }

    fn become_empty(&mut self) {
        self.next_generation();
        self.group.protocol_name = None;
        self.group.learn_topics();
        self.enter(State::Empty);
        self.keep();
    }

    fn next_generation(&mut self) {
        self.group.generation = self.group.generation.checked_add(1).unwrap_or(0);
    }

    /// A leader that did not rejoin is followed by a member that did; whether there is one.
    fn elect_leader(&mut self) -> bool {
        let has_joined = |id: &Str| self.group.member(id).is_some_and(|m| m.joining.is_some());
        if self.group.leader.as_ref().is_some_and(has_joined) {
            return true;
        }
        let joined = self.group.members().find(|member| member.joining.is_some());
        let Some(id) = joined.map(|member| member.id.clone()) else { return false };
        self.group.leader = Some(id);
        true
    }

    /// A member learns that it is in the new generation: it has to ask for its assignment now.
    fn tell_generation(&mut self, id: &Str) {
        let response = self.joined(id, self.group.is_leader(id));
        let (mut ticket, mut session) = (None, 0);
        self.group.change(id, |member| {
            ticket = member.joining.take();
            session = member.session_timeout_ms;
            member.is_new = false;
            member.owes_sync = true;
        });
        self.begin_session(id, session);
        if let Some(ticket) = ticket {
            self.answer_join(ticket, response);
        }
    }

    /// What a member is told when it joined this generation. Who is to assign learns of all.
    pub(super) fn joined(&self, id: &Str, with_members: bool) -> join_group::Response {
        let group = &self.group;
        let protocol = group.protocol_name.as_ref();
        let member = |member: &Member| join_group::JoinGroupResponseMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: member.metadata(protocol),
        };
        join_group::Response {
            generation_id: group.generation,
            protocol_type: group.protocol_type.clone(),
            protocol_name: protocol.cloned(),
            leader: group.leader.clone().unwrap_or_default(),
            member_id: id.clone(),
            members: group.members().filter(|_| with_members).map(member).collect(),
            ..Default::default()
        }
    }

    /// CompletingRebalance → Stable: the leader says who has what. Who it forgot has nothing.
    pub(super) fn assign(&mut self, mut assignments: BTreeMap<Str, Bytes>) {
        self.group.change_all(|member| {
            member.assignment = assignments.remove(&member.id).unwrap_or_default();
        });
        self.keep();
        self.answer_syncs(Ok(()));
        self.enter(State::Stable);
    }

    /// Answers every parked SyncGroup; the sessions of who was answered begin anew.
    fn answer_syncs(&mut self, result: Result<(), ErrorCode>) {
        let parked = self.group.members().filter(|member| member.syncing.is_some());
        let parked: Vec<Str> = parked.map(|member| member.id.clone()).collect();
        for id in &parked {
            let mut ticket = None;
            self.group.change(id, |member| ticket = member.syncing.take());
            let (Some(ticket), Some(member)) = (ticket, self.group.member(id)) else { continue };
            let (session_timeout_ms, assigned) = (member.session_timeout_ms, self.assigned(member));
            self.begin_session(id, session_timeout_ms);
            match result {
                Ok(()) => self.answer_sync(ticket, assigned),
                Err(error) => self.refuse_sync(ticket, error),
            }
        }
    }

    pub(super) fn assigned(&self, member: &Member) -> sync_group::Response {
        sync_group::Response {
            protocol_type: self.group.protocol_type.clone(),
            protocol_name: self.group.protocol_name.clone(),
            assignment: member.assignment.clone(),
            ..Default::default()
        }
    }

    fn enter(&mut self, state: State) {
        self.group.state = state;
        self.group.state_since = Some(self.now.wall);
    }
}
