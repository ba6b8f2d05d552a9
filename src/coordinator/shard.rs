//! One partition of `__consumer_offsets`: the groups whose names lead to it, and their offsets.
//!
//! ```text
//!            ┌─▶ groups: members, generations, timers ─┐
//!  Request ──┤                                         ├─▶ Outcome ─▶ the partition's log
//!            └─▶ offsets: what was committed           ┘
//! ```
//!
//! A shard never waits for another one, so a group never waits for groups of other shards; and
//! within one, no call takes longer than its own group is large.

use super::groups::{self, Groups};
use super::offsets::Offsets;
use super::records::Record;
use super::{Machine, Millis, Now, Outcome, Ticket};
use crate::config;
use crate::messages::{
    delete_groups, describe_groups, heartbeat, join_group, leave_group, list_groups, offset_commit,
    offset_delete, offset_fetch, sync_group,
};

use crate::protocol::wire::{Str, Uuid};
use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;

/// Who asks, as far as the request itself does not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// What the client calls itself.
    pub id: Str,
    /// The client's address as Kafka writes it: `/127.0.0.1`.
    pub host: Str,
    /// The version of the request.
    pub version: i16,
    /// A random id that no other request has: a new member gets its name from it.
    pub unique: Uuid,
}

/// What a shard is asked. Requests that name several groups are asked for each one.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    JoinGroup(Client, join_group::Request),
    SyncGroup(sync_group::Request),
    Heartbeat(heartbeat::Request),
    LeaveGroup(Client, leave_group::Request),
    /// Topics have their names, in all versions.
    OffsetCommit(Client, offset_commit::Request),
    /// One group, in the form that version 8 brought; topics have their names. No topics are all.
    OffsetFetch(offset_fetch::OffsetFetchRequestGroup),
    OffsetDelete(offset_delete::Request),
    DescribeGroup(Client, Str),
    ListGroups(list_groups::Request),
    DeleteGroup(Str),
    TopicsDeleted(Vec<DeletedTopic>),
}

/// A topic that is no more. Its name may be one of a new topic already.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletedTopic {
    pub name: Str,
    /// Under which its offsets were committed: zero for those that were committed without one.
    pub id: Uuid,
}

/// What a shard answers, to the request of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    JoinGroup(join_group::Response),
    SyncGroup(sync_group::Response),
    Heartbeat(heartbeat::Response),
    LeaveGroup(leave_group::Response),
    OffsetCommit(offset_commit::Response),
    OffsetFetch(offset_fetch::OffsetFetchResponseGroup),
    OffsetDelete(offset_delete::Response),
    DescribeGroup(describe_groups::DescribedGroup),
    /// The groups of this shard that pass the filters.
    ListGroups(Vec<list_groups::ListedGroup>),
    DeleteGroup(delete_groups::DeletableGroupResult),
    TopicsDeleted,
}

/// A change of what a restart forgets.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Groups(groups::Effect),
    /// Offsets are looked through for expired ones at this time, from the group after this one on.
    CleanUp {
        at: Millis,
        after: Option<Str>,
    },
    /// Offsets of these topics are still to be deleted, from this time on.
    Forget {
        at: Millis,
        topics: Arc<BTreeSet<DeletedTopic>>,
    },
}

impl From<groups::Effect> for Effect {
    fn from(effect: groups::Effect) -> Self {
        Self::Groups(effect)
    }
}

/// The settings of groups and their offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long the first rebalance of an empty group waits for further members.
    pub initial_rebalance_delay_ms: Millis,
    pub session_timeout_ms: RangeInclusive<i32>,
    pub max_size: usize,
    /// How long a new member may wait for its first generation before it is given up (KIP-394).
    pub new_member_join_timeout_ms: Millis,
    pub offset_metadata_max_bytes: usize,
    pub offsets_retention_ms: Millis,
    pub offsets_retention_check_interval_ms: Millis,
}

/// What Kafka has for `new_member_join_timeout_ms`; it is no setting there either.
const NEW_MEMBER_JOIN_TIMEOUT_MS: Millis = 5 * 60 * 1000;

impl From<&config::Config> for Config {
    fn from(config: &config::Config) -> Self {
        let session = config.group_min_session_timeout_ms..=config.group_max_session_timeout_ms;
        Self {
            initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms.into(),
            session_timeout_ms: session,
            max_size: usize::try_from(config.group_max_size).unwrap_or(0),
            new_member_join_timeout_ms: NEW_MEMBER_JOIN_TIMEOUT_MS,
            offset_metadata_max_bytes: usize::try_from(config.offset_metadata_max_bytes)
                .unwrap_or(0),
            offsets_retention_ms: Millis::from(config.offsets_retention_minutes) * 60 * 1000,
            offsets_retention_check_interval_ms: config.offsets_retention_check_interval_ms,
        }
    }
}

/// How many offsets are deleted at once, before others are let in.
const CLEAN_UP_RECORDS: usize = 1000;

/// How many groups one round of the clean-up looks through before it lets others in.
const CLEAN_UP_GROUPS: usize = 1000;

#[derive(Clone, Debug)]
pub struct Shard {
    pub groups: Groups,
    pub offsets: Offsets,
    config: Config,
    /// When the clean-up goes on, and after which group; none until the shard was loaded.
    clean_up: Option<(Millis, Option<Str>)>,
    /// The deleted topics that may have offsets, if there are any, and when the work on them goes on.
    forgetting: Option<(Millis, Arc<BTreeSet<DeletedTopic>>)>,
}

impl Shard {
    pub fn new(config: Config) -> Self {
        let (groups, offsets) = (Groups::default(), Offsets::default());
        Self { groups, offsets, config, clean_up: None, forgetting: None }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    fn delete_group(&self, ticket: Ticket, group_id: Str) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let deleted = self.groups.may_delete(&group_id);
        if deleted.is_ok() {
            self.delete_all(&group_id, &mut outcome);
        }
        let result = delete_groups::DeletableGroupResult {
            group_id,
            error_code: deleted.into(),
            ..Default::default()
        };
        outcome.answers.push((ticket, Response::DeleteGroup(result)));
        outcome
    }

    /// Deletes a group with all its offsets.
    fn delete_all(&self, group_id: &Str, outcome: &mut Outcome<Self>) {
        self.offsets.delete_all(group_id, &mut outcome.records);
        outcome.records.push(groups::tombstone(group_id));
    }

    fn delete_offsets(&self, ticket: Ticket, request: offset_delete::Request) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let response = match self.groups.may_delete_offsets(&request.group_id) {
            Ok(group) => self.offsets.delete(group, request, &mut outcome.records),
            Err(error_code) => offset_delete::Response { error_code, ..Default::default() },
        };
        outcome.answers.push((ticket, Response::OffsetDelete(response)));
        outcome
    }

    /// Deletes offsets of topics that are no more. A piece at a time: the rest is due at once.
    fn forget(&self, now: Now, topics: &Arc<BTreeSet<DeletedTopic>>) -> Outcome<Self> {
        let records = self.offsets.of_deleted(topics).take(CLEAN_UP_RECORDS).collect::<Vec<_>>();
        let is_done = records.len() < CLEAN_UP_RECORDS;
        let topics = if is_done { Arc::default() } else { topics.clone() };
        let effects = vec![Effect::Forget { at: now.monotonic, topics }];
        Outcome { records, effects, ..Outcome::default() }
    }

    /// Deletes expired offsets, and groups that have neither members nor offsets. A piece at a
    /// time: the rest is due at once.
    fn clean_up(&self, now: Now, after: Option<&Str>) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        let interval = self.config.offsets_retention_check_interval_ms;
        let mut next = (now.monotonic.saturating_add(interval), None);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (looked_at, group) in self.groups.from(from).enumerate() {
            let deleted_enough = outcome.records.len() >= CLEAN_UP_RECORDS;
            if deleted_enough || looked_at >= CLEAN_UP_GROUPS {
                break;
            }
            let rest = self.offsets.expire(group, now, &self.config, &mut outcome.records);
            if !rest && group.is_empty() {
                outcome.records.push(groups::tombstone(group.id()));
            }
            next = (now.monotonic, Some(group.id().clone()));
        }
        if next.1.as_ref().is_some_and(|last| self.groups.is_last(last)) {
            next = (now.monotonic.saturating_add(interval), None);
        }
        outcome.effects.push(Effect::CleanUp { at: next.0, after: next.1 });
        outcome
    }
}

impl Machine for Shard {
    type Request = Request;
    type Response = Response;
    type Record = Record;
    type Effect = Effect;

    fn handle(&self, now: Now, ticket: Ticket, request: Request) -> Outcome<Self> {
        let groups = self.groups.at(now, &self.config);
        match request {
            Request::JoinGroup(client, request) => groups.join(ticket, &client, request),
            Request::SyncGroup(request) => groups.sync(ticket, request),
            Request::Heartbeat(request) => groups.heartbeat(ticket, &request),
            Request::LeaveGroup(client, request) => groups.leave(ticket, &client, request),
            Request::OffsetCommit(client, request) => {
                self.offsets.commit(groups, ticket, &client, request)
            }
            Request::OffsetFetch(request) => {
                let response = self.offsets.fetch(request);
                Outcome::answer(ticket, Response::OffsetFetch(response))
            }
            Request::OffsetDelete(request) => self.delete_offsets(ticket, request),
            Request::DescribeGroup(client, group) => {
                let described = self.groups.describe(&client, group);
                Outcome::answer(ticket, Response::DescribeGroup(described))
            }
            Request::ListGroups(request) => {
                Outcome::answer(ticket, Response::ListGroups(self.groups.list(&request)))
            }
            Request::DeleteGroup(group) => self.delete_group(ticket, group),
            Request::TopicsDeleted(topics) => {
                let before = self.forgetting.iter().flat_map(|(_, topics)| topics.iter().cloned());
                let outcome = self.forget(now, &Arc::new(before.chain(topics).collect()));
                Outcome { answers: vec![(ticket, Response::TopicsDeleted)], ..outcome }
            }
        }
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::OffsetCommit { key, value } => {
                if value.is_some() {
                    self.groups.create_if_absent(&key.group);
                }
                self.offsets.apply(key, value);
            }
            Record::GroupMetadata { key, value } => self.groups.apply(key.group, value),
        }
    }

    fn note(&mut self, effect: Effect) {
        match effect {
            Effect::Groups(effect) => self.groups.note(effect),
            Effect::CleanUp { at, after } => self.clean_up = Some((at, after)),
            Effect::Forget { at, topics } => {
                self.forgetting = (!topics.is_empty()).then_some((at, topics));
            }
        }
    }

    fn deadline(&self) -> Option<Millis> {
        let clean_up = self.clean_up.as_ref().map(|(at, _)| *at);
        let forgetting = self.forgetting.as_ref().map(|(at, _)| *at);
        self.groups.deadline().into_iter().chain(clean_up).chain(forgetting).min()
    }

    fn expire(&self, now: Now) -> Outcome<Self> {
        if self.groups.deadline().is_some_and(|at| at <= now.monotonic) {
            return self.groups.at(now, &self.config).expire();
        }
        if let Some((at, topics)) = &self.forgetting
            && *at <= now.monotonic
        {
            return self.forget(now, topics);
        }
        match &self.clean_up {
            Some((at, after)) if *at <= now.monotonic => self.clean_up(now, after.as_ref()),
            _ => Outcome::default(),
        }
    }

    fn loaded(&self, now: Now) -> Outcome<Self> {
        let mut outcome = self.groups.at(now, &self.config).loaded();
        let at = now.monotonic.saturating_add(self.config.offsets_retention_check_interval_ms);
        outcome.effects.push(Effect::CleanUp { at, after: None });
        outcome
    }
}
