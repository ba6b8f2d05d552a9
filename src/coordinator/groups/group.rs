//! One classic group: its members, and where its rebalance stands.

use super::super::{Millis, own};
use super::member::Member;
use super::members::Members;
use super::shared::Shared;
use crate::messages::join_group::JoinGroupRequestProtocol;
use crate::messages::records::consumer_protocol::Subscription;
use crate::messages::records::group_metadata::{MemberMetadata, Value};
use crate::messages::records::{Versioned, group_metadata};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Reader, Str, Wire};
use bytes::Buf;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The protocol type of Kafka's consumers.
pub const CONSUMER: &str = "consumer";

/// A group that does not exist is called dead; a group in here never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No members; perhaps some that were told to join with an id.
    Empty,
    /// Members join; those of the generation before rejoin.
    PreparingRebalance { initial: Option<Initial> },
    /// The generation has begun, and waits for the leader's assignment.
    CompletingRebalance,
    /// Members have their assignments.
    Stable,
}

/// The first rebalance of an empty group, which waits a while for further members. It waits on
/// while new ones come, up to the rebalance timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initial {
    pub delay_ms: Millis,
    pub remaining_ms: Millis,
    pub member_added: bool,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance { .. } => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// Copied for every change: what does not change is shared with the copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    id: Str,
    pub(super) state: State,
    /// By the wall clock. Groups from old records do not know it.
    pub(super) state_since: Option<Millis>,
    pub(super) protocol_type: Option<Str>,
    pub(super) protocol_name: Option<Str>,
    pub(super) generation: i32,
    pub(super) leader: Option<Str>,
    members: Members,
    /// Ids that were given to clients which did not join with them yet (KIP-394).
    pub(super) pending: Shared<()>,
    /// The topics of a consumer group. None if that is not known.
    subscribed_topics: Option<Arc<BTreeSet<Str>>>,
}

impl Group {
    pub(super) fn new(id: Str, state_since: Option<Millis>) -> Self {
        Self {
            id,
            state: State::Empty,
            state_since,
            protocol_type: None,
            protocol_name: None,
            generation: 0,
            leader: None,
            members: Members::default(),
            pending: Shared::default(),
            subscribed_topics: None,
        }
    }

    pub fn id(&self) -> &Str {
        &self.id
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn generation(&self) -> i32 {
        self.generation
    }

    pub fn leader(&self) -> Option<&Str> {
        self.leader.as_ref()
    }

    pub fn protocol_type(&self) -> Option<&Str> {
        self.protocol_type.as_ref()
    }

    pub fn protocol_name(&self) -> Option<&Str> {
        self.protocol_name.as_ref()
    }

    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(Arc::as_ref)
    }

    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id).map(Arc::as_ref)
    }

    pub fn member_of_instance(&self, instance: &str) -> Option<&Str> {
        self.members.of_instance(instance)
    }

    pub fn is_empty(&self) -> bool {
        self.state == State::Empty
    }

    pub fn is_leader(&self, member: &str) -> bool {
        self.leader.as_ref().is_some_and(|leader| leader == member)
    }

    pub fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_ref().is_some_and(|kind| kind == CONSUMER)
    }

    /// Whether a member may read the topic. Of consumers whose topics are not known, any.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    /// From when on the retention of an offset counts that was committed at this time, by the wall
    /// clock. None: it does not expire now (KIP-211).
    pub fn retained_since(&self, committed: Millis) -> Option<Millis> {
        match (self.state, &self.protocol_type) {
            // Simple consumers, which only keep offsets here.
            (_, None) => Some(committed),
            (State::Empty, _) => Some(self.state_since.unwrap_or(committed)),
            (State::Stable, _) if self.uses_consumer_protocol() => {
                self.subscribed_topics.as_ref().map(|_| committed)
            }
            _ => None,
        }
    }

    /// That a request comes from a member, and from the one that has the instance now.
    pub fn check_member(&self, id: &str, instance: Option<&Str>) -> Result<&Member, ErrorCode> {
        if let Some(instance) = instance {
            let current = self.member_of_instance(instance).ok_or(ErrorCode::UnknownMemberId)?;
            if current != id {
                return Err(ErrorCode::FencedInstanceId);
            }
        }
        self.member(id).ok_or(ErrorCode::UnknownMemberId)
    }

    /// Whether somebody may join with these protocols: an empty group takes any, others need one
    /// that all their members have.
    pub(super) fn accepts(&self, kind: &str, protocols: &[JoinGroupRequestProtocol]) -> bool {
        if self.is_empty() {
            return !kind.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_ref().is_some_and(|own| own == kind)
            && protocols.iter().any(|protocol| self.members.all_support(&protocol.name))
    }

    /// The protocol with the most votes: each member votes for its first one that all have. The
    /// names decide between equals.
    pub(super) fn elect_protocol(&self) -> Option<Str> {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        let first = self.members().next()?;
        let names = first.protocols.iter().map(|protocol| &protocol.name);
        let for_all = |name: &&Str| self.members.all_support(name);
        let candidates: BTreeSet<&Str> = names.filter(for_all).collect();
        for member in self.members() {
            let mut names = member.protocols.iter().map(|protocol| &protocol.name);
            if let Some(vote) = names.find(|name| candidates.contains(name)) {
                *votes.entry(vote).or_default() += 1;
            }
        }
        // Of equal counts `max_by_key` takes the last.
        votes.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| name.clone())
    }

    /// How long members may take to rejoin: as long as the slowest asked for.
    pub(super) fn rebalance_timeout_ms(&self) -> Millis {
        self.members().map(|member| member.rebalance_timeout_ms.max(0)).max().unwrap_or(0).into()
    }

    pub(super) fn all_joined(&self) -> bool {
        self.pending.is_empty() && self.members.joining() == self.members.len()
    }

    pub(super) fn joining_count(&self) -> usize {
        self.members.joining()
    }

    /// Whether all members of the generation asked for their assignments.
    pub(super) fn all_synced(&self) -> bool {
        self.members.owing_sync() == 0
    }

    pub(super) fn add(&mut self, kind: &Str, member: Member) {
        if self.members.is_empty() {
            self.protocol_type = Some(own(kind));
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.pending.remove(&member.id);
        self.members.insert(Arc::new(member));
    }

    /// Takes out a member, or an id that nobody joined with.
    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Member>> {
        self.pending.remove(id);
        let removed = self.members.remove(id)?;
        if self.is_leader(id) {
            self.leader = self.members.first_id().cloned();
        }
        Some(removed)
    }

    /// Gives the place of a static member, with all it has, to a new id.
    pub(super) fn rename(&mut self, old: &str, new: &Str) {
        let Some(mut member) = self.members.remove(old) else { return };
        Arc::make_mut(&mut member).id = new.clone();
        if self.is_leader(old) {
            self.leader = Some(new.clone());
        }
        self.members.insert(member);
    }

    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Member)) {
        self.members.change(id, change);
    }

    pub(super) fn change_all(&mut self, change: impl FnMut(&mut Member)) {
        self.members.change_all(change);
    }

    /// Reads the topics that consumers told under the protocol of the generation. Whatever version
    /// they told it in begins like version 0, so that later ones need no change here.
    pub(super) fn learn_topics(&mut self) {
        self.subscribed_topics = self.read_topics().map(Arc::new);
    }

    fn read_topics(&self) -> Option<BTreeSet<Str>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        let mut topics = BTreeSet::new();
        for member in self.members() {
            let mut metadata = member.metadata(Some(self.protocol_name.as_ref()?));
            metadata.try_get_i16().ok()?;
            let mut reader = Reader::new(metadata, 0, Subscription::FLEXIBLE.contains(&0));
            topics.extend(Subscription::read(&mut reader).ok()?.topics);
        }
        Some(topics)
    }

    /// What is kept of the group, with these assignments.
    pub(super) fn to_value(&self) -> Value {
        let members = self.members().map(|member| MemberMetadata {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(self.protocol_name.as_ref()),
            assignment: member.assignment.clone(),
        });
        Value {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol_name.clone(),
            leader: self.leader.clone(),
            current_state_timestamp: self.state_since.unwrap_or(UNKNOWN_TIMESTAMP),
            members: members.collect(),
        }
    }

    /// The group as it was kept.
    pub(super) fn from_value(id: Str, value: group_metadata::Value) -> Self {
        let since = value.current_state_timestamp;
        let mut group = Self::new(id, (since != UNKNOWN_TIMESTAMP).then_some(since));
        group.generation = value.generation;
        group.protocol_name = value.protocol;
        group.leader = value.leader;
        if !value.protocol_type.is_empty() {
            group.protocol_type = Some(value.protocol_type.clone());
        }
        for kept in value.members {
            let member = from_kept(kept, group.protocol_name.as_ref());
            group.add(&value.protocol_type, member);
            group.state = State::Stable;
        }
        group.learn_topics();
        group
    }
}

/// What `current_state_timestamp` is when it is not known.
const UNKNOWN_TIMESTAMP: i64 = -1;

fn from_kept(kept: MemberMetadata, protocol: Option<&Str>) -> Member {
    let protocols = protocol
        .map(|name| JoinGroupRequestProtocol { name: name.clone(), metadata: kept.subscription });
    let session_timeout_ms = kept.session_timeout;
    // Version 0 had no rebalance timeout: members had to rejoin within their session.
    let none = kept.rebalance_timeout == -1;
    Member {
        id: kept.member_id,
        instance_id: kept.group_instance_id,
        client_id: kept.client_id,
        client_host: kept.client_host,
        session_timeout_ms,
        rebalance_timeout_ms: if none { session_timeout_ms } else { kept.rebalance_timeout },
        protocols: protocols.into_iter().collect(),
        assignment: kept.assignment,
        joining: None,
        syncing: None,
        owes_sync: false,
        is_new: false,
    }
}
