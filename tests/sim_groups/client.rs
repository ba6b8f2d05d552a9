//! A consumer, as Kafka's clients behave: what it asks, and what it makes of the answers.
//!
//! ```text
//!               JoinGroup            answered            SyncGroup answered
//!   Unjoined ─────────────▶ Joining ──────────▶ Syncing ───────────────────▶ Stable
//!      ▲                       │                   │                           │
//!      └───────────────────────┴───────────────────┴───────────────────────────┘
//!        an error, no answer in time, a heartbeat that says "rebalance", another wish
//! ```

use crate::assignor::{self, COOPERATIVE, Member, Partitions};
use crate::topics::{Partition, Topics};
use crate::{Met, meet};
use kelp::coordinator::shard::{Client as Asker, Request, Response};
use kelp::messages::{heartbeat, join_group, leave_group, offset_commit, offset_fetch, sync_group};
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::Str;
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;

const HEARTBEAT_EVERY_MS: i64 = 2_000;
const REQUEST_TIMEOUT_MS: i64 = 5_000;
const BACKOFF_MS: i64 = 200;

/// What a client is for its whole life, through all its processes.
#[derive(Clone)]
pub(crate) struct Nature {
    pub(crate) group: Str,
    pub(crate) instance: Option<Str>,
    /// What it prefers comes first.
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) join_version: i16,
    pub(crate) session_ms: i32,
    pub(crate) rebalance_ms: i32,
}

impl Nature {
    pub(crate) fn is_same_instance(&self, other: &Self) -> bool {
        self.instance.is_some() && (&self.group, &self.instance) == (&other.group, &other.instance)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Unjoined { until: i64 },
    Joining,
    Syncing,
    Stable,
}

/// A request without an answer.
#[derive(Clone, Copy)]
struct Sent {
    number: u64,
    until: i64,
}

pub(crate) struct Client {
    pub(crate) nature: Nature,
    /// Counts its processes.
    pub(crate) process: u32,
    pub(crate) alive: bool,
    pub(crate) topics: BTreeSet<Str>,
    /// What it said last that it wants.
    said: BTreeSet<Str>,
    pub(crate) stage: Stage,
    pub(crate) member_id: Str,
    pub(crate) generation: i32,
    pub(crate) owned: Partitions,
    /// When it last heard that it is a member.
    heard: i64,
    leads: Option<Led>,
    joining: Option<Sent>,
    heartbeat: Option<Sent>,
    heartbeat_at: i64,
    numbers: u64,
}

/// What a leader knew when it shared out.
struct Led {
    topics: BTreeSet<Str>,
    partitions: Partitions,
}

/// What surrounds a client.
pub(crate) struct Around<'a> {
    pub(crate) now: i64,
    pub(crate) rng: &'a mut SmallRng,
    pub(crate) topics: &'a Topics,
    pub(crate) met: &'a mut Met,
    /// No offset is committed twice, so that each tells where it comes from.
    pub(crate) offsets: &'a mut i64,
    /// What it sends, with a number that comes back with the answer.
    pub(crate) sent: Vec<(u64, Request)>,
}

impl Client {
    pub(crate) fn new(nature: Nature, topics: BTreeSet<Str>) -> Self {
        Self {
            nature,
            process: 0,
            alive: false,
            topics,
            said: BTreeSet::new(),
            stage: Stage::Unjoined { until: 0 },
            member_id: Str::new(),
            generation: -1,
            owned: Partitions::new(),
            heard: 0,
            leads: None,
            joining: None,
            heartbeat: None,
            heartbeat_at: 0,
            numbers: 0,
        }
    }

    /// A new process: it knows nothing of the one before.
    pub(crate) fn start(&mut self) {
        let topics = std::mem::take(&mut self.topics);
        let fresh = Self::new(self.nature.clone(), topics);
        *self = Self { process: self.process + 1, alive: true, ..fresh };
    }

    /// It ends well: a dynamic member says so, a static one comes back.
    pub(crate) fn stop(&mut self, around: &mut Around<'_>) {
        self.alive = false;
        if self.nature.instance.is_none() && !self.member_id.is_empty() {
            meet(around.met, "a member that leaves");
            let member = leave_group::MemberIdentity {
                member_id: self.member_id.clone(),
                ..Default::default()
            };
            let request = leave_group::Request {
                group_id: self.nature.group.clone(),
                members: vec![member],
                ..Default::default()
            };
            self.send(around, Request::LeaveGroup(asker(5), request));
        }
    }

    /// It looks at its clock and does what is due.
    pub(crate) fn wake(&mut self, around: &mut Around<'_>) {
        let now = around.now;
        if self.joining.is_some_and(|sent| now >= sent.until) {
            meet(around.met, "a join or sync that is not answered in time");
            self.rejoin(now);
        }
        if self.heartbeat.is_some_and(|sent| now >= sent.until) {
            self.heartbeat = None;
        }
        match self.stage {
            Stage::Unjoined { until } if now >= until => self.join(around),
            Stage::Unjoined { .. } | Stage::Joining => {}
            Stage::Syncing => {
                self.beat(around);
                if around.rng.random_ratio(1, 8) {
                    self.commit(around);
                }
            }
            Stage::Stable => {
                if now - self.heard >= self.nature.session_ms.into() {
                    meet(around.met, "a client that gives up its session");
                    return self.lose(now, false);
                }
                self.beat(around);
                if self.has_another_wish(around) {
                    return self.rejoin(now);
                }
                if around.rng.random_ratio(1, 8) {
                    self.commit(around);
                }
            }
        }
    }

    /// A leader whose topics changed, or a member that wants other topics than it said.
    fn has_another_wish(&self, around: &mut Around<'_>) -> bool {
        if self.said != self.topics {
            meet(around.met, "a member that wants other topics");
            return true;
        }
        let Some(led) = &self.leads else { return false };
        let changed = led.partitions != of_topics(around.topics, &led.topics);
        if changed {
            meet(around.met, "a leader whose topics changed");
        }
        changed
    }

    fn is_cooperative(&self) -> bool {
        self.nature.protocols[0] == COOPERATIVE
    }

    /// Joins anew, as the member that it is.
    fn rejoin(&mut self, now: i64) {
        if !self.is_cooperative() {
            self.owned.clear();
        }
        self.joining = None;
        self.stage = Stage::Unjoined { until: now };
    }

    /// Is no member any more, or not of this generation.
    fn lose(&mut self, now: i64, keeps_id: bool) {
        self.owned.clear();
        self.generation = -1;
        if !keeps_id {
            self.member_id = Str::new();
        }
        self.joining = None;
        self.stage = Stage::Unjoined { until: now };
    }

    fn join(&mut self, around: &mut Around<'_>) {
        self.said = self.topics.clone();
        let metadata = assignor::subscription(&self.topics, &self.owned);
        let protocol = |name: &&str| join_group::JoinGroupRequestProtocol {
            name: Str::from(*name),
            metadata: metadata.clone(),
        };
        let request = join_group::Request {
            group_id: self.nature.group.clone(),
            session_timeout_ms: self.nature.session_ms,
            rebalance_timeout_ms: if self.nature.join_version == 0 {
                -1
            } else {
                self.nature.rebalance_ms
            },
            member_id: self.member_id.clone(),
            group_instance_id: self.nature.instance.clone(),
            protocol_type: "consumer".into(),
            protocols: self.nature.protocols.iter().map(protocol).collect(),
            reason: None,
        };
        let number =
            self.send(around, Request::JoinGroup(asker(self.nature.join_version), request));
        let until = around.now + i64::from(self.nature.rebalance_ms) + REQUEST_TIMEOUT_MS;
        self.joining = Some(Sent { number, until });
        self.stage = Stage::Joining;
    }

    fn beat(&mut self, around: &mut Around<'_>) {
        if self.heartbeat.is_some() || around.now < self.heartbeat_at {
            return;
        }
        let request = heartbeat::Request {
            group_id: self.nature.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.nature.instance.clone(),
        };
        let number = self.send(around, Request::Heartbeat(request));
        self.heartbeat = Some(Sent { number, until: around.now + REQUEST_TIMEOUT_MS });
        self.heartbeat_at = around.now + HEARTBEAT_EVERY_MS;
    }

    fn commit(&mut self, around: &mut Around<'_>) {
        let exist: Vec<&Partition> = self.owned.iter().filter(|p| around.topics.has(p)).collect();
        if exist.is_empty() {
            return;
        }
        let (topic, index) = exist[around.rng.random_range(0..exist.len())].clone();
        *around.offsets += 1;
        let partition = offset_commit::OffsetCommitRequestPartition {
            partition_index: index,
            committed_offset: *around.offsets,
            ..Default::default()
        };
        let topic = offset_commit::OffsetCommitRequestTopic {
            topic_id: around.topics.id(&topic).expect("it exists"),
            name: topic,
            partitions: vec![partition],
        };
        let request = offset_commit::Request {
            group_id: self.nature.group.clone(),
            generation_id_or_member_epoch: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.nature.instance.clone(),
            topics: vec![topic],
            ..Default::default()
        };
        let version = if around.rng.random() { 9 } else { 8 };
        self.send(around, Request::OffsetCommit(asker(version), request));
    }

    fn fetch(&mut self, around: &mut Around<'_>) {
        let request = offset_fetch::OffsetFetchRequestGroup {
            group_id: self.nature.group.clone(),
            topics: None,
            ..Default::default()
        };
        self.send(around, Request::OffsetFetch(request));
    }

    fn send(&mut self, around: &mut Around<'_>, request: Request) -> u64 {
        self.numbers += 1;
        around.sent.push((self.numbers, request));
        self.numbers
    }

    pub(crate) fn hear(&mut self, around: &mut Around<'_>, number: u64, response: Response) {
        let is = |sent: Option<Sent>| sent.is_some_and(|sent| sent.number == number);
        match response {
            Response::JoinGroup(response) if is(self.joining) => {
                self.joining = None;
                self.joined(around, response);
            }
            Response::SyncGroup(response) if is(self.joining) => {
                self.joining = None;
                self.synced(around, response);
            }
            Response::JoinGroup(_) | Response::SyncGroup(_) => {
                meet(around.met, "an answer that comes too late");
            }
            Response::Heartbeat(response) if is(self.heartbeat) => {
                self.heartbeat = None;
                match response.error_code {
                    ErrorCode::None => self.heard = around.now,
                    ErrorCode::RebalanceInProgress => {
                        self.heard = around.now;
                        if self.stage == Stage::Stable {
                            self.commit(around);
                            self.rejoin(around.now);
                        }
                    }
                    error => self.failed(around, error),
                }
            }
            Response::OffsetCommit(response) => {
                let error = response.topics[0].partitions[0].error_code;
                if matches!(error, ErrorCode::FencedInstanceId) {
                    self.failed(around, error);
                }
            }
            _ => {}
        }
    }

    fn joined(&mut self, around: &mut Around<'_>, response: join_group::Response) {
        match response.error_code {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                meet(around.met, "a member that gets its id first");
                self.member_id = response.member_id;
                self.stage = Stage::Unjoined { until: around.now };
                return;
            }
            error => return self.failed(around, error),
        }
        self.member_id = response.member_id;
        self.generation = response.generation_id;
        self.heard = around.now;
        let protocol = response.protocol_name.clone().unwrap_or_default();
        let leads = response.leader == self.member_id;
        let members =
            response.members.iter().map(|m| Member::read(m.member_id.clone(), &m.metadata));
        let members: Vec<_> = members.collect();
        self.leads = leads.then(|| {
            let topics: BTreeSet<Str> = members.iter().flat_map(|m| m.topics.clone()).collect();
            Led { partitions: of_topics(around.topics, &topics), topics }
        });
        let shares = if response.skip_assignment || members.is_empty() {
            Default::default()
        } else {
            assignor::assign(&protocol, &members, around.topics)
        };
        let assignments = shares.into_iter().map(|(member_id, share)| {
            let assignment = assignor::assignment(&share);
            sync_group::SyncGroupRequestAssignment { member_id, assignment }
        });
        let request = sync_group::Request {
            group_id: self.nature.group.clone(),
            generation_id: self.generation,
            member_id: self.member_id.clone(),
            group_instance_id: self.nature.instance.clone(),
            protocol_type: response.protocol_type,
            protocol_name: response.protocol_name,
            assignments: assignments.collect(),
        };
        let number = self.send(around, Request::SyncGroup(request));
        let until = around.now + i64::from(self.nature.rebalance_ms) + REQUEST_TIMEOUT_MS;
        self.joining = Some(Sent { number, until });
        self.stage = Stage::Syncing;
    }

    fn synced(&mut self, around: &mut Around<'_>, response: sync_group::Response) {
        if response.error_code != ErrorCode::None {
            return self.failed(around, response.error_code);
        }
        let assigned = assignor::read_assignment(&response.assignment);
        let lets_go = self.owned.difference(&assigned).next().is_some();
        self.owned = assigned;
        self.heard = around.now;
        self.stage = Stage::Stable;
        self.fetch(around);
        if self.is_cooperative() && lets_go {
            meet(around.met, "a member that lets go and joins again");
            self.rejoin(around.now);
        }
    }

    fn failed(&mut self, around: &mut Around<'_>, error: ErrorCode) {
        let now = around.now;
        match error {
            ErrorCode::UnknownMemberId => self.lose(now + BACKOFF_MS, false),
            ErrorCode::IllegalGeneration => self.lose(now + BACKOFF_MS, true),
            ErrorCode::RebalanceInProgress => self.rejoin(now),
            ErrorCode::FencedInstanceId => {
                meet(around.met, "a static member that is fenced");
                self.alive = false;
            }
            ErrorCode::GroupMaxSizeReached => {
                meet(around.met, "a group that is full");
                self.alive = false;
            }
            // Of a member that was read from the log only the protocol of its generation is known.
            ErrorCode::InconsistentGroupProtocol => {
                meet(around.met, "a member without the protocol of the others");
                self.alive = false;
            }
            error => panic!("a client is told {error:?}"),
        }
    }
}

fn of_topics(topics: &Topics, wanted: &BTreeSet<Str>) -> Partitions {
    topics.partitions().filter(|(topic, _)| wanted.contains(topic)).collect()
}

/// The rest is filled in where the request arrives: each arrival has an id of its own.
pub(crate) fn asker(version: i16) -> Asker {
    Asker { version, ..Asker::default() }
}
