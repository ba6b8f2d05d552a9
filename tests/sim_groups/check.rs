//! What must hold after every step.

use crate::assignor::{self, Partitions};
use crate::coordinator::{Kept, read};
use crate::topics::Partition;
use crate::world::LONGEST_REBALANCE_MS;
use crate::{Met, meet};
use kelp::coordinator::groups::Group;
use kelp::coordinator::records::Record;
use kelp::coordinator::shard::{Config, Request, Response, Shard};
use kelp::coordinator::{Machine, Ticket};
use kelp::messages::records::group_metadata;
use kelp::messages::{offset_commit, offset_delete, offset_fetch};
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::{Str, Uuid};
use std::collections::BTreeMap;

/// A group's offset of a partition of a topic.
type Key = (Str, Str, i32);

/// What an outcome changed: the new offset with its topic's id, or none.
type Changes = Vec<(Key, Option<(i64, Uuid)>)>;

/// A join waits as long as the initial delay may be prolonged, or members have to rejoin; a sync until
/// those are dropped that do not ask for their assignment. All of these end with the longest rebalance
/// timeout, and a bit later on a machine whose timers are late.
const LONGEST_WAIT_MS: i64 = LONGEST_REBALANCE_MS + 500;

pub(crate) struct Check {
    config: Config,
    /// Only the first counts: what comes after may follow from it.
    pub(crate) violation: Option<String>,
    /// Has applied the records, and nothing else.
    replayed: Shard,
    /// What was asked, when, and is not decided.
    open: BTreeMap<Ticket, (i64, Request)>,
    /// What is decided and not answered yet, and how often its group was deleted before.
    decided: BTreeMap<Ticket, (Request, u32)>,
    /// How much of the log an answer that went out may have seen.
    told: usize,
    /// The offsets as requests and answers say, by outcome that is in the log, and as they are now.
    history: Vec<Changes>,
    changes: Changes,
    offsets: BTreeMap<Key, (i64, Uuid)>,
    /// How often each group was deleted: its generations begin anew.
    deleted: BTreeMap<Str, u32>,
    /// The highest generation that this process of the coordinator told.
    generations: BTreeMap<Str, i32>,
    /// Whom each partition was given to, in each generation of a group's each life.
    owners: BTreeMap<(Str, u32, i32), BTreeMap<Partition, Str>>,
}

impl Check {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            replayed: Shard::new(config.clone()),
            config,
            violation: None,
            open: BTreeMap::new(),
            decided: BTreeMap::new(),
            told: 0,
            history: Vec::new(),
            changes: Changes::new(),
            offsets: BTreeMap::new(),
            deleted: BTreeMap::new(),
            generations: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    pub(crate) fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(crate) fn asked(&mut self, now: i64, ticket: Ticket, request: &Request) {
        self.open.insert(ticket, (now, request.clone()));
        if let Some((ticket, (asked, request))) = self.open.first_key_value()
            && now - asked > LONGEST_WAIT_MS
        {
            let text = format!("{ticket:?} waits since {asked}: {request:?}");
            self.violated(text);
        }
    }

    pub(crate) fn starts(&mut self) {
        self.generations.clear();
    }

    pub(crate) fn crashes(&mut self, kept: usize, log: &[Vec<Kept>]) {
        if kept < self.told {
            self.violated("what an answer told is not in the log any more".into());
        }
        self.open.clear();
        self.decided.clear();
        self.history.truncate(kept);
        self.offsets.clear();
        for (key, change) in self.history.iter().flatten() {
            put(&mut self.offsets, key, *change);
        }
        self.replayed = Shard::new(self.config.clone());
        for record in log.iter().flatten() {
            self.replayed.apply(read(record));
        }
    }

    /// An outcome, before anything of it is done.
    pub(crate) fn decides(
        &mut self,
        shard: &Shard,
        records: &[Record],
        answers: &[(Ticket, Response)],
        met: &mut Met,
    ) {
        for (ticket, response) in answers {
            let Some((_, request)) = self.open.remove(ticket) else {
                return self.violated(format!("{ticket:?} is answered twice: {response:?}"));
            };
            self.answered(shard, &request, response, met);
            let life = group_of(&request).and_then(|group| self.deleted.get(group)).copied();
            self.decided.insert(*ticket, (request, life.unwrap_or(0)));
        }
        for record in records {
            match record {
                Record::GroupMetadata { key, value: Some(value) } => self.kept(&key.group, value),
                Record::GroupMetadata { key, value: None } => {
                    meet(met, "a group that is deleted");
                    *self.deleted.entry(key.group.clone()).or_default() += 1;
                    self.generations.remove(&key.group);
                }
                Record::OffsetCommit { key, value: None } if answers.is_empty() => {
                    meet(met, "an offset that expires");
                    let key = (key.group.clone(), key.topic.clone(), key.partition);
                    self.changes.push((key, None));
                }
                Record::OffsetCommit { .. } => {}
            }
            self.replayed.apply(read(&record.encode()));
        }
    }

    /// An outcome, when it is done.
    pub(crate) fn decided(&mut self, log: usize, shard: &Shard) {
        let changes = std::mem::take(&mut self.changes);
        for (key, change) in &changes {
            put(&mut self.offsets, key, *change);
        }
        if self.history.len() < log {
            self.history.push(changes);
        }
        let mut kept = BTreeMap::new();
        let groups: Vec<Str> =
            shard.groups.from(std::ops::Bound::Unbounded).map(|g| g.id().clone()).collect();
        for group in groups.iter().chain(&[Str::from("simple")]) {
            for (topic, index, value) in shard.offsets.of(group) {
                kept.insert((group.clone(), topic.clone(), index), (value.offset, value.topic_id));
            }
        }
        if kept != self.offsets {
            self.violated(format!(
                "offsets are {kept:?}, but were committed as {:?}",
                self.offsets
            ));
        }
        if shard.offsets != self.replayed.offsets {
            self.violated("a replay gives other offsets".into());
        }
        for group in shard.groups.from(std::ops::Bound::Unbounded) {
            let same =
                self.replayed.groups.get(group.id()).is_some_and(|other| is_same(group, other));
            if !same {
                let other = self.replayed.groups.get(group.id());
                self.violated(format!("a replay gives {other:?}, not {group:?}"));
            }
        }
        let count = |shard: &Shard| shard.groups.from(std::ops::Bound::Unbounded).count();
        if count(shard) != count(&self.replayed) {
            self.violated("a replay gives other groups".into());
        }
    }

    fn answered(&mut self, shard: &Shard, request: &Request, response: &Response, met: &mut Met) {
        match (request, response) {
            (Request::JoinGroup(_, request), Response::JoinGroup(response)) => {
                if response.error_code == ErrorCode::None {
                    let group = shard.groups.get(&request.group_id);
                    let instance = request.group_instance_id.as_ref();
                    let had = instance.and_then(|instance| group?.member_of_instance(instance));
                    if had.is_some() && request.member_id.is_empty() {
                        meet(met, "a static member that comes back");
                    }
                    meet(
                        met,
                        if response.skip_assignment {
                            "a leader that need not assign"
                        } else {
                            "a member that joins"
                        },
                    );
                    self.generation(&request.group_id, response.generation_id);
                }
            }
            (Request::SyncGroup(request), Response::SyncGroup(response)) => {
                match response.error_code {
                    ErrorCode::None => self.generation(&request.group_id, request.generation_id),
                    ErrorCode::RebalanceInProgress => meet(met, "a sync that finds a rebalance"),
                    _ => {}
                }
            }
            (Request::OffsetCommit(_, request), Response::OffsetCommit(response)) => {
                self.commits(shard, request, response, met);
            }
            (Request::OffsetFetch(_), Response::OffsetFetch(response)) => self.fetches(response),
            (Request::OffsetDelete(request), Response::OffsetDelete(response)) => {
                self.deletes(request, response, met);
            }
            (Request::DeleteGroup(group), Response::DeleteGroup(result)) => match result.error_code
            {
                ErrorCode::None => self.forget(|key, _| key.0 == *group),
                ErrorCode::NonEmptyGroup => {
                    meet(met, "a group that is not deleted for its members")
                }
                _ => {}
            },
            (Request::TopicsDeleted(topics), Response::TopicsDeleted) => {
                let gone = topics.clone();
                self.forget(|key, id| {
                    gone.iter().any(|topic| topic.name == key.1 && topic.id == id)
                });
            }
            (Request::Heartbeat(_), Response::Heartbeat(response)) => {
                if response.error_code == ErrorCode::RebalanceInProgress {
                    meet(met, "a heartbeat that tells of a rebalance");
                }
            }
            (Request::LeaveGroup(..), Response::LeaveGroup(_))
            | (Request::ListGroups(_), Response::ListGroups(_)) => {}
            (request, response) => {
                self.violated(format!("{request:?} is answered {response:?}"));
            }
        }
    }

    fn generation(&mut self, group: &Str, generation: i32) {
        let last = self.generations.entry(group.clone()).or_insert(generation);
        let before = std::mem::replace(last, generation.max(*last));
        if generation < before {
            self.violated(format!("{group} goes back from generation {before} to {generation}"));
        }
    }

    fn commits(
        &mut self,
        shard: &Shard,
        request: &offset_commit::Request,
        response: &offset_commit::Response,
        met: &mut Met,
    ) {
        let partitions = |topic: &offset_commit::OffsetCommitRequestTopic| topic.partitions.clone();
        for (topic, answers) in request.topics.iter().zip(&response.topics) {
            for (partition, answer) in partitions(topic).into_iter().zip(&answers.partitions) {
                match answer.error_code {
                    ErrorCode::None => {
                        let key = (
                            request.group_id.clone(),
                            topic.name.clone(),
                            partition.partition_index,
                        );
                        // A record with a time of its own has no place for the topic's id.
                        let has_id = request.retention_time_ms == -1;
                        let id = if has_id { topic.topic_id } else { Uuid::ZERO };
                        let new = (partition.committed_offset, id);
                        self.changes.push((key, Some(new)));
                        self.may_commit(shard, request);
                    }
                    ErrorCode::RebalanceInProgress => meet(met, "a commit before the assignment"),
                    ErrorCode::IllegalGeneration => meet(met, "a commit of another generation"),
                    ErrorCode::UnknownMemberId => meet(met, "a commit of no member"),
                    ErrorCode::FencedInstanceId => meet(met, "a commit of a fenced member"),
                    _ => {}
                }
            }
        }
    }

    /// Who says to be a member must be one, of this generation.
    fn may_commit(&mut self, shard: &Shard, request: &offset_commit::Request) {
        let generation = request.generation_id_or_member_epoch;
        let group = shard.groups.get(&request.group_id);
        let allowed = match group {
            _ if generation < 0 => group.is_none_or(|group| group.member_count() == 0),
            None => false,
            Some(group) => {
                group.generation() == generation && group.member(&request.member_id).is_some()
            }
        };
        if !allowed {
            self.violated(format!("{request:?} is taken by {group:?}"));
        }
    }

    fn fetches(&mut self, response: &offset_fetch::OffsetFetchResponseGroup) {
        let group = &response.group_id;
        let mut told = BTreeMap::new();
        for topic in &response.topics {
            for partition in &topic.partitions {
                let key = (group.clone(), topic.name.clone(), partition.partition_index);
                told.insert(key, partition.committed_offset);
            }
        }
        let own = self.offsets.iter().filter(|(key, _)| key.0 == *group);
        let committed: BTreeMap<Key, i64> =
            own.map(|(key, (offset, _))| (key.clone(), *offset)).collect();
        if told != committed {
            self.violated(format!(
                "offsets are told as {told:?}, but were committed as {committed:?}"
            ));
        }
    }

    fn deletes(
        &mut self,
        request: &offset_delete::Request,
        response: &offset_delete::Response,
        met: &mut Met,
    ) {
        for topic in &response.topics {
            for partition in &topic.partitions {
                let key = (request.group_id.clone(), topic.name.clone(), partition.partition_index);
                match partition.error_code {
                    ErrorCode::None if self.offsets.contains_key(&key) => {
                        meet(met, "an offset that is deleted");
                        self.changes.push((key, None));
                    }
                    ErrorCode::GroupSubscribedToTopic => {
                        meet(met, "an offset that is not deleted as it is read");
                    }
                    _ => {}
                }
            }
        }
    }

    fn forget(&mut self, is_gone: impl Fn(&Key, Uuid) -> bool) {
        let gone = self.offsets.iter().filter(|(key, (_, id))| is_gone(key, *id));
        let gone: Changes = gone.map(|(key, _)| (key.clone(), None)).collect();
        self.changes.extend(gone);
    }

    /// What is kept of a group gives no partition to two members, and is of no generation before.
    fn kept(&mut self, group: &Str, value: &group_metadata::Value) {
        let before = self.replayed.groups.get(group).map_or(0, Group::generation);
        if value.generation < before {
            let generation = value.generation;
            self.violated(format!("{group} is kept in generation {generation} after {before}"));
        }
        let mut owned = Partitions::new();
        for member in &value.members {
            for partition in assignor::read_assignment(&member.assignment) {
                if !owned.insert(partition.clone()) {
                    self.violated(format!("{group} keeps two owners of {partition:?}"));
                }
            }
        }
    }

    /// An answer goes out, which has seen so much of the log.
    pub(crate) fn answers(&mut self, ticket: Ticket, response: &Response, seen: usize) {
        self.told = self.told.max(seen);
        let Some((request, life)) = self.decided.remove(&ticket) else { return };
        let (Request::SyncGroup(request), Response::SyncGroup(response)) = (request, response)
        else {
            return;
        };
        if response.error_code != ErrorCode::None {
            return;
        }
        // A static member keeps its assignment under a new id.
        let member = request.group_instance_id.unwrap_or(request.member_id);
        let key = (request.group_id, life, request.generation_id);
        let owners = self.owners.entry(key.clone()).or_default();
        for partition in assignor::read_assignment(&response.assignment) {
            let owner = owners.entry(partition.clone()).or_insert_with(|| member.clone()).clone();
            if owner != member {
                return self
                    .violated(format!("{partition:?} belongs to {owner} and {member} in {key:?}"));
            }
        }
    }
}

fn put(offsets: &mut BTreeMap<Key, (i64, Uuid)>, key: &Key, change: Option<(i64, Uuid)>) {
    match change {
        Some(offset) => drop(offsets.insert(key.clone(), offset)),
        None => drop(offsets.remove(key)),
    }
}

fn group_of(request: &Request) -> Option<&Str> {
    match request {
        Request::SyncGroup(request) => Some(&request.group_id),
        _ => None,
    }
}

/// A stable or empty group is what was kept of it; one that rebalances goes on from there.
fn is_same(group: &Group, replayed: &Group) -> bool {
    let members = |group: &Group| {
        let of =
            group.members().map(|m| (m.id.clone(), m.instance_id.clone(), m.assignment.clone()));
        of.collect::<Vec<_>>()
    };
    match group.state().name() {
        "Stable" => {
            group.generation() == replayed.generation()
                && group.leader() == replayed.leader()
                && group.protocol_name() == replayed.protocol_name()
                && group.protocol_type() == replayed.protocol_type()
                && members(group) == members(replayed)
        }
        _ => group.generation() >= replayed.generation(),
    }
}
