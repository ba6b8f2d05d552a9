//! A coordinator to drive: requests in, answers out, time moved by hand.
//!
//! Whatever a test does, every step is checked for what must always hold: no request is answered
//! twice or forgotten, whatever waits has an end, and what is kept is what a restart finds.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod heartbeat;
#[cfg(test)]
mod join;
#[cfg(test)]
mod leave;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod offsets;
#[cfg(test)]
mod rebalance;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod static_members;
#[cfg(test)]
mod sync;
#[cfg(test)]
mod transitions;

use super::super::records::Record;
use super::super::shard::{Client, Config, Request, Response, Shard};
use super::super::{Machine, Millis, Now, Outcome, Ticket};
use super::{Due, Group, State, Timer};
use crate::config;
use crate::messages::{
    describe_groups, heartbeat as beat, join_group, leave_group, offset_commit, sync_group,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The group of most tests.
const GROUP: &str = "group";

/// What members ask for unless a test says otherwise.
const SESSION_MS: i32 = 10_000;
const REBALANCE_MS: i32 = 60_000;

/// Kafka's default of `group.initial.rebalance.delay.ms`.
const DELAY_MS: Millis = 3_000;

/// How long a new member may wait for its first generation, in Kafka.
const NEW_MEMBER_MS: Millis = 300_000;

/// The newest version of JoinGroup.
const NEWEST: i16 = 9;

struct Driver {
    shard: Shard,
    /// Sees only records, as a restarted coordinator does.
    replayed: Shard,
    now: Now,
    next: u64,
    open: BTreeSet<Ticket>,
    answers: BTreeMap<Ticket, Response>,
    /// What was kept, in order.
    records: Vec<Record>,
    generations: BTreeMap<Str, i32>,
}

/// A JoinGroup; by default the first one of a dynamic consumer.
#[derive(Clone)]
struct Join<'a> {
    group: &'a str,
    member: &'a str,
    instance: Option<&'a str>,
    version: i16,
    session_ms: i32,
    rebalance_ms: i32,
    kind: &'a str,
    protocols: &'a [(&'a str, &'a [u8])],
}

impl Default for Join<'_> {
    fn default() -> Self {
        Self {
            group: GROUP,
            member: "",
            instance: None,
            version: NEWEST,
            session_ms: SESSION_MS,
            rebalance_ms: REBALANCE_MS,
            kind: "consumer",
            protocols: &[("range", b"metadata")],
        }
    }
}

fn config() -> Config {
    Config::from(&config::Config::default())
}

impl Default for Driver {
    fn default() -> Self {
        Self::new(config())
    }
}

impl Driver {
    fn new(config: Config) -> Self {
        Self {
            shard: Shard::new(config.clone()),
            replayed: Shard::new(config),
            // Not zero, and the clocks differ: a mix-up would show.
            now: Now { monotonic: 5_000, wall: 1_700_000_000_000 },
            next: 0,
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            records: Vec::new(),
            generations: BTreeMap::new(),
        }
    }

    fn ask(&mut self, request: Request) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        self.open.insert(ticket);
        let outcome = self.shard.handle(self.now, ticket, request);
        self.absorb(outcome);
        ticket
    }

    /// Lets time go by; what is due is done at its time.
    fn pass(&mut self, ms: Millis) {
        let end = self.now.monotonic + ms;
        let mut rounds = 0;
        while let Some(at) = self.shard.deadline().filter(|at| *at <= end) {
            let step = (at - self.now.monotonic).max(0);
            self.now.monotonic += step;
            self.now.wall += step;
            let outcome = self.shard.expire(self.now);
            self.absorb(outcome);
            rounds += 1;
            assert!(rounds < 100_000, "what was done is due no more");
        }
        self.now.wall += end - self.now.monotonic;
        self.now.monotonic = end;
    }

    /// A restart: the records are all that is left.
    fn restart(&mut self) {
        self.shard = Shard::new(self.shard.config().clone());
        for record in self.records.clone() {
            self.shard.apply(record);
        }
        self.open.clear();
        let outcome = self.shard.loaded(self.now);
        self.absorb(outcome);
    }

    fn absorb(&mut self, outcome: Outcome<Shard>) {
        for record in outcome.records {
            let (key, value) = record.encode();
            assert_eq!(Record::decode(Some(&key), value.as_ref()), Ok(record.clone()));
            self.shard.apply(record.clone());
            self.replayed.apply(record.clone());
            self.records.push(record);
        }
        outcome.effects.into_iter().for_each(|effect| self.shard.note(effect));
        for (ticket, answer) in outcome.answers {
            assert!(self.open.remove(&ticket), "answered twice, or never asked: {answer:?}");
            self.answers.insert(ticket, answer);
        }
        self.check();
    }

    fn check(&mut self) {
        let groups: Vec<Group> = self.groups().cloned().collect();
        let parked = groups.iter().flat_map(|group| group.members());
        let parked: Vec<_> = parked.flat_map(|member| [member.joining, member.syncing]).collect();
        let parked: BTreeSet<Ticket> = parked.into_iter().flatten().collect();
        assert_eq!(self.open, parked, "who is not answered is waited for");
        for group in &groups {
            self.check_group(group);
            let last = self.generations.insert(group.id().clone(), group.generation());
            assert!(last.unwrap_or(0) <= group.generation(), "generations go on");
        }
    }

    fn check_group(&self, group: &Group) {
        let is_set = |what: Due| {
            let timer = Timer { group: group.id().clone(), what };
            self.shard.groups.timers.is_set(&timer)
        };
        let has_members = group.member_count() > 0;
        match group.state() {
            State::Empty => assert!(!has_members),
            State::PreparingRebalance { .. } => assert!(is_set(Due::Join), "joining ends"),
            State::CompletingRebalance => assert!(has_members && is_set(Due::Sync)),
            State::Stable => {
                assert!(has_members);
                assert_eq!(is_set(Due::Sync), group.members().any(|member| member.owes_sync));
            }
        }
        assert_eq!(group.leader().is_some(), has_members);
        assert!(group.leader().is_none_or(|leader| group.member(leader).is_some()));
        for (id, ()) in group.pending.iter() {
            assert!(group.member(id).is_none() && is_set(Due::Session(id.clone())));
        }
        for member in group.members() {
            let waits = member.joining.is_some() || member.syncing.is_some();
            assert!(waits || is_set(Due::Session(member.id.clone())), "{} can end", member.id);
            let instance = member.instance_id.as_deref();
            let found = instance.and_then(|instance| group.member_of_instance(instance));
            assert_eq!(found, instance.map(|_| &member.id));
        }
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.shard.groups.from(std::ops::Bound::Unbounded)
    }

    fn group(&self) -> &Group {
        self.shard.groups.get(GROUP).expect("the group exists")
    }

    fn state(&self) -> &'static str {
        self.shard.groups.get(GROUP).map_or("Dead", |group| group.state().name())
    }

    fn member_ids(&self) -> Vec<Str> {
        self.group().members().map(|member| member.id.clone()).collect()
    }

    fn join(&mut self, join: &Join<'_>) -> Ticket {
        let protocols = join.protocols.iter().map(|(name, metadata)| {
            let metadata = Bytes::copy_from_slice(metadata);
            join_group::JoinGroupRequestProtocol { name: (*name).into(), metadata }
        });
        let request = join_group::Request {
            group_id: join.group.into(),
            session_timeout_ms: join.session_ms,
            rebalance_timeout_ms: join.rebalance_ms,
            member_id: join.member.into(),
            group_instance_id: join.instance.map(Into::into),
            protocol_type: join.kind.into(),
            protocols: protocols.collect(),
            reason: None,
        };
        let client = self.client(join.version);
        self.ask(Request::JoinGroup(client, request))
    }

    fn client(&self, version: i16) -> Client {
        let mut unique = [0xab; 16];
        unique[8..].copy_from_slice(&self.next.to_be_bytes());
        Client { id: "client".into(), host: "/127.0.0.1".into(), version, unique: Uuid(unique) }
    }

    /// The id that a new dynamic member is given.
    fn given_id(&mut self, join: &Join<'_>) -> Str {
        let ticket = self.join(join);
        let answer = self.joined(ticket);
        assert_eq!(answer.error_code, ErrorCode::MemberIdRequired);
        answer.member_id
    }

    /// A dynamic member joins in both steps; its request is parked or answered.
    fn join_dynamic(&mut self, join: &Join<'_>) -> (Str, Ticket) {
        let id = self.given_id(join);
        let ticket = self.join(&Join { member: &id, ..join.clone() });
        (id, ticket)
    }

    fn sync(&mut self, generation: i32, member: &str, assignments: &[(&Str, &str)]) -> Ticket {
        self.ask(Request::SyncGroup(sync_request(generation, member, assignments)))
    }

    fn beat(&mut self, generation: i32, member: &str) -> ErrorCode {
        self.beat_as(generation, member, None)
    }

    fn beat_as(&mut self, generation: i32, member: &str, instance: Option<&str>) -> ErrorCode {
        let ticket = self.ask(Request::Heartbeat(beat::Request {
            group_id: GROUP.into(),
            generation_id: generation,
            member_id: member.into(),
            group_instance_id: instance.map(Into::into),
        }));
        match &self.answers[&ticket] {
            Response::Heartbeat(response) => response.error_code,
            other => panic!("{other:?}"),
        }
    }

    /// Members leave, each by its id and instance.
    fn leave(&mut self, members: &[(&str, Option<&str>)]) -> leave_group::Response {
        let members = members.iter().map(|(id, instance)| leave_group::MemberIdentity {
            member_id: (*id).into(),
            group_instance_id: instance.map(Into::into),
            reason: Some("a test".into()),
        });
        let members = members.collect();
        self.leave_with(
            5,
            leave_group::Request { group_id: GROUP.into(), members, ..Default::default() },
        )
    }

    fn leave_with(&mut self, version: i16, request: leave_group::Request) -> leave_group::Response {
        let client = self.client(version);
        let ticket = self.ask(Request::LeaveGroup(client, request));
        match &self.answers[&ticket] {
            Response::LeaveGroup(response) => response.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn may_commit(&self, generation: i32, member: &str) -> Result<(), ErrorCode> {
        let request = offset_commit::Request {
            group_id: GROUP.into(),
            generation_id_or_member_epoch: generation,
            member_id: member.into(),
            ..Default::default()
        };
        let config = self.shard.config().clone();
        self.shard.groups.at(self.now, &config).may_commit(8, &request).map(drop)
    }

    fn describe(&mut self) -> describe_groups::DescribedGroup {
        let client = self.client(6);
        let ticket = self.ask(Request::DescribeGroup(client, GROUP.into()));
        match &self.answers[&ticket] {
            Response::DescribeGroup(described) => described.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn is_parked(&self, ticket: Ticket) -> bool {
        self.open.contains(&ticket)
    }

    fn joined(&self, ticket: Ticket) -> join_group::Response {
        match self.answers.get(&ticket) {
            Some(Response::JoinGroup(response)) => response.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn synced(&self, ticket: Ticket) -> sync_group::Response {
        match self.answers.get(&ticket) {
            Some(Response::SyncGroup(response)) => response.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn join_error(&mut self, join: &Join<'_>) -> ErrorCode {
        let ticket = self.join(join);
        self.joined(ticket).error_code
    }

    /// Dynamic members that wait for the first generation.
    fn joining(&mut self, count: usize) -> Vec<(Str, Ticket)> {
        (0..count).map(|_| self.join_dynamic(&Join::default())).collect()
    }

    /// Dynamic members of a first generation that waits for its leader, who comes first.
    fn completing(&mut self, count: usize) -> Vec<Str> {
        let joining = self.joining(count);
        self.pass(DELAY_MS * 2);
        self.leader_first(&joining)
    }

    /// The same for static members `one`, `two` and so on.
    fn completing_static(&mut self, instances: &[&str]) -> Vec<Str> {
        let join = |instance: &&str| {
            let join = Join { instance: Some(*instance), ..Join::default() };
            self.join(&join)
        };
        let tickets: Vec<Ticket> = instances.iter().map(join).collect();
        self.pass(DELAY_MS * 2);
        tickets.iter().map(|ticket| self.joined(*ticket).member_id).collect()
    }

    fn leader_first(&self, joining: &[(Str, Ticket)]) -> Vec<Str> {
        let leader = self.joined(joining[0].1).leader;
        let mut ids: Vec<Str> = joining.iter().map(|(id, _)| id.clone()).collect();
        ids.sort_by_key(|id| *id != leader);
        ids
    }

    /// The leader gives each member something, and all learn it.
    fn assign(&mut self, generation: i32, leader: &Str, members: &[Str]) {
        let given: Vec<(&Str, &str)> = members.iter().map(|id| (id, "some")).collect();
        let mut tickets = vec![self.sync(generation, leader, &given)];
        for member in members.iter().filter(|id| *id != leader) {
            tickets.push(self.sync(generation, member, &[]));
        }
        for ticket in tickets {
            assert_eq!(self.synced(ticket).error_code, ErrorCode::None);
        }
        assert_eq!(self.state(), "Stable");
    }

    /// Dynamic members of a stable first generation; the leader comes first.
    fn stable(&mut self, count: usize) -> Vec<Str> {
        let ids = self.completing(count);
        self.assign(1, &ids[0], &ids);
        ids
    }

    /// Static members of a stable first generation, in the order of their instances; the first one
    /// that joined leads.
    fn stable_static(&mut self, instances: &[&str]) -> Vec<Str> {
        let ids = self.completing_static(instances);
        let leader = self.group().leader().cloned().expect("it has a leader");
        self.assign(1, &leader, &ids);
        ids
    }
}

fn sync_request(generation: i32, member: &str, given: &[(&Str, &str)]) -> sync_group::Request {
    let assignments = given.iter().map(|(id, what)| sync_group::SyncGroupRequestAssignment {
        member_id: (*id).clone(),
        assignment: Bytes::copy_from_slice(what.as_bytes()),
    });
    sync_group::Request {
        group_id: GROUP.into(),
        generation_id: generation,
        member_id: member.into(),
        group_instance_id: None,
        protocol_type: None,
        protocol_name: None,
        assignments: assignments.collect(),
    }
}
