//! Committed offsets: which offset each group has for each partition.

use super::Outcome;
use super::groups::{At, Group};
use super::records::Record;
use super::shard::{Client, Config, DeletedTopic, Shard};
use super::{Now, Ticket};
use crate::messages::records::offset_commit::{Key, Value};
use crate::messages::{offset_commit, offset_delete, offset_fetch};
use crate::protocol::wire::Str;

/// The offsets of a shard's groups. Nothing is kept yet.
#[derive(Clone, Debug, Default)]
pub struct Offsets {}

impl Offsets {
    /// Takes offsets, if the group lets the member commit now.
    pub(super) fn commit(
        &self,
        groups: At<'_>,
        ticket: Ticket,
        client: &Client,
        request: offset_commit::Request,
    ) -> Outcome<Shard> {
        unimplemented!("{groups:?} {ticket:?} {client:?} {request:?}")
    }

    /// What a group has committed. Of a group that does not exist, nothing.
    pub(super) fn fetch(
        &self,
        exists: bool,
        request: offset_fetch::OffsetFetchRequestGroup,
    ) -> offset_fetch::OffsetFetchResponseGroup {
        unimplemented!("{exists} {request:?}")
    }

    /// Deletes some offsets of a group, but not those of topics it is subscribed to.
    pub(super) fn delete(
        &self,
        group: &Group,
        request: offset_delete::Request,
        records: &mut Vec<Record>,
    ) -> offset_delete::Response {
        unimplemented!("{group:?} {request:?} {records:?}")
    }

    /// Deletes all offsets of a group.
    pub(super) fn delete_all(&self, group: &Str, records: &mut Vec<Record>) {
        let _ = (group, records);
    }

    /// Deletes the offsets of topics that are no more.
    pub(super) fn topics_deleted(&self, topics: &[DeletedTopic]) -> Vec<Record> {
        let _ = topics;
        Vec::new()
    }

    /// Deletes the expired offsets of a group; whether it has others left.
    pub(super) fn expire(
        &self,
        group: &Group,
        now: Now,
        config: &Config,
        records: &mut Vec<Record>,
    ) -> bool {
        let _ = (group, now, config, records);
        false
    }

    pub(super) fn apply(&mut self, key: Key, value: Option<Value>) {
        let _ = (key, value);
    }
}
