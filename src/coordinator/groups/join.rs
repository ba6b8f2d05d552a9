//! JoinGroup: a client becomes a member, or a member rejoins for the next generation.
//!
//! The answer mostly waits until the generation begins; an unchanged follower of a stable group is
//! told the current one at once, so that a lost answer or a restart costs no rebalance.
//!
//! Version notes: from version 4 on a new dynamic member is first given an id and asked to join
//! with it (KIP-394): a client that never saw its answer leaves no member behind. From version 9 on
//! a static leader that comes back to an unchanged group is told not to assign again (KIP-814).

use super::super::shard::{Client, Response, Shard};
use super::super::{Outcome, Ticket, own};
use super::draft::{Draft, refused_join};
use super::{At, Due, Group, Member, State};
use crate::messages::join_group::{self, Request};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use bytes::Bytes;
use std::collections::BTreeSet;

/// From this version on a rebalance timeout is told; before, members rejoin within their session.
const REBALANCE_TIMEOUT_VERSION: i16 = 1;

const KNOWN_MEMBER_ID_VERSION: i16 = 4;

const SKIP_ASSIGNMENT_VERSION: i16 = 9;

/// The most ids of one group that were given away and that nobody joined with. Kafka has no limit.
const MAX_PENDING: usize = 10_000;

impl At<'_> {
    pub(in super::super) fn join(
        self,
        ticket: Ticket,
        client: &Client,
        mut request: Request,
    ) -> Outcome<Shard> {
        let refuse = |error| {
            let refused = refused_join(request.member_id.clone(), error);
            Outcome::answer(ticket, Response::JoinGroup(refused))
        };
        if request.group_id.is_empty() {
            return refuse(ErrorCode::InvalidGroupId);
        }
        if !self.config.session_timeout_ms.contains(&request.session_timeout_ms) {
            return refuse(ErrorCode::InvalidSessionTimeout);
        }
        let group = self.groups.get(&request.group_id);
        if group.is_none() && !request.member_id.is_empty() {
            return refuse(ErrorCode::UnknownMemberId);
        }
        if client.version < REBALANCE_TIMEOUT_VERSION {
            request.rebalance_timeout_ms = request.session_timeout_ms;
        }
        // Of two with one name the first counts.
        let mut names = BTreeSet::new();
        request.protocols.retain(|protocol| names.insert(protocol.name.clone()));
        let is_there = group.is_some();
        let created = || Group::new(own(&request.group_id), Some(self.now.wall));
        let mut draft = self.draft(group.cloned().unwrap_or_else(created));
        if !is_there {
            // Kept at once, so that a restart knows the group: a refused request makes one too.
            draft.keep();
        }
        draft.join(ticket, client, request);
        draft.finish()
    }
}

impl Draft<'_> {
    fn join(&mut self, ticket: Ticket, client: &Client, request: Request) {
        if !self.has_room_for(&request.member_id) {
            self.remove(&request.member_id);
            return self.refuse_join(ticket, Str::new(), ErrorCode::GroupMaxSizeReached);
        }
        if !self.group.accepts(&request.protocol_type, &request.protocols) {
            let error = ErrorCode::InconsistentGroupProtocol;
            return self.refuse_join(ticket, request.member_id, error);
        }
        if request.member_id.is_empty() {
            self.join_as_new(ticket, client, request);
        } else {
            self.join_with_id(ticket, client, request);
        }
    }

    /// Whether the group may have one more. Of a group that rebalances, who rejoined counts.
    fn has_room_for(&self, id: &str) -> bool {
        let member = self.group.member(id);
        match self.group.state {
            State::Empty => true,
            State::PreparingRebalance { .. } => {
                member.is_some_and(|member| member.joining.is_some())
                    || self.group.joining_count() < self.config.max_size
            }
            State::CompletingRebalance | State::Stable => {
                member.is_some() || self.group.member_count() < self.config.max_size
            }
        }
    }

    fn join_as_new(&mut self, ticket: Ticket, client: &Client, request: Request) {
        let id = new_member_id(client, &request);
        let instance = request.group_instance_id.as_ref();
        if let Some(instance) = instance {
            match self.group.member_of_instance(instance).cloned() {
                Some(old) => self.replace_static(ticket, client, &old, id, request),
                None => self.add_member(ticket, client, id, request),
            }
        } else if client.version < KNOWN_MEMBER_ID_VERSION {
            self.add_member(ticket, client, id, request);
        } else if self.group.pending.len() >= MAX_PENDING {
            // The client tries again.
            self.refuse_join(ticket, Str::new(), ErrorCode::RebalanceInProgress);
        } else {
            self.group.pending.insert(id.clone(), ());
            self.begin_session(&id, request.session_timeout_ms);
            self.refuse_join(ticket, id, ErrorCode::MemberIdRequired);
        }
    }

    fn join_with_id(&mut self, ticket: Ticket, client: &Client, request: Request) {
        let id = request.member_id.clone();
        if self.group.pending.contains(&id) {
            if request.group_instance_id.is_some() {
                // Only dynamic members are given ids in advance.
                return self.refuse_join(ticket, Str::new(), ErrorCode::UnknownServerError);
            }
            return self.add_member(ticket, client, id, request);
        }
        let member = match self.group.check_member(&id, request.group_instance_id.as_ref()) {
            Ok(member) => member,
            Err(error) => return self.refuse_join(ticket, id, error),
        };
        let is_unchanged = member.protocols == request.protocols;
        let is_leader = self.group.is_leader(&id);
        match self.group.state {
            // The answer to the member's first request was lost.
            State::CompletingRebalance if is_unchanged => {
                self.answer_join(ticket, self.joined(&id, is_leader));
            }
            State::Stable if is_unchanged && !is_leader => {
                self.answer_join(ticket, self.joined(&id, false));
            }
            // A leader that rejoins wants to assign anew: it saw topics change.
            _ => {
                self.update_member(ticket, &id, request);
                self.rebalance();
            }
        }
    }

    fn add_member(&mut self, ticket: Ticket, client: &Client, id: Str, request: Request) {
        if let State::PreparingRebalance { initial: Some(initial) } = &mut self.group.state {
            initial.member_added = true;
        }
        let member = Member {
            id: own(&id),
            instance_id: request.group_instance_id.as_ref().map(own),
            client_id: own(&client.id),
            client_host: own(&client.host),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            protocols: request.protocols,
            assignment: Bytes::new(),
            joining: Some(ticket),
            syncing: None,
            owes_sync: false,
            is_new: true,
        };
        self.group.add(&request.protocol_type, member);
        self.set(Due::Session(own(&id)), self.config.new_member_join_timeout_ms);
        self.rebalance();
    }

    fn update_member(&mut self, ticket: Ticket, id: &Str, request: Request) {
        self.group.change(id, |member| {
            member.protocols = request.protocols;
            member.session_timeout_ms = request.session_timeout_ms;
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        });
        self.park_join(id, ticket);
    }

    /// A static member starts again: it takes its old place, and fences who still has the old id.
    fn replace_static(
        &mut self,
        ticket: Ticket,
        client: &Client,
        old: &Str,
        id: Str,
        request: Request,
    ) {
        let Some(member) = self.group.member(old).cloned() else { return };
        let old_leader = self.group.leader.clone().unwrap_or_default();
        self.refuse_parked(&member, old.clone(), ErrorCode::FencedInstanceId);
        self.group.rename(old, &id);
        self.group.change(&id, |member| {
            (member.joining, member.syncing) = (None, None);
            member.is_new = false;
        });
        self.cancel(Due::Session(old.clone()));
        self.begin_session(&id, member.session_timeout_ms);
        self.update_member(ticket, &id, request);
        match self.group.state {
            State::Stable if self.group.protocol_name == self.group.elect_protocol() => {
                self.go_on_as(ticket, client, id, old_leader);
            }
            _ => self.rebalance(),
        }
    }

    /// The group stays stable: the new id has the assignment of the old one, and this is kept.
    fn go_on_as(&mut self, ticket: Ticket, client: &Client, id: Str, old_leader: Str) {
        self.group.change(&id, |member| member.joining = None);
        self.group.learn_topics();
        self.keep();
        let is_leader = self.group.is_leader(&id);
        let response = if client.version >= SKIP_ASSIGNMENT_VERSION {
            let joined = self.joined(&id, is_leader);
            join_group::Response { skip_assignment: is_leader, ..joined }
        } else {
            // Who reads the old leader's id takes itself for a follower, and does not assign.
            join_group::Response { leader: old_leader, ..self.joined(&id, false) }
        };
        self.answer_join(ticket, response);
    }
}

/// Kafka's form: the instance, or what the client calls itself, and a random UUID.
fn new_member_id(client: &Client, request: &Request) -> Str {
    let name = request.group_instance_id.as_ref().unwrap_or(&client.id);
    let Uuid(bytes) = client.unique;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    format!("{name}-{a}-{b}-{c}-{d}-{e}").into()
}
