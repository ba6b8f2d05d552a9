//! SyncGroup
use super::super::shard::Shard;
use super::super::{Outcome, Ticket};
use super::At;
use crate::messages::sync_group::Request;

impl At<'_> {
    pub(in super::super) fn sync(self, ticket: Ticket, request: Request) -> Outcome<Shard> {
        todo!("{ticket:?} {request:?}")
    }
}
