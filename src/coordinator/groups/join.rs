//! JoinGroup
use super::super::shard::{Client, Shard};
use super::super::{Outcome, Ticket};
use super::At;
use crate::messages::join_group::Request;

impl At<'_> {
    pub(in super::super) fn join(
        self,
        ticket: Ticket,
        client: &Client,
        request: Request,
    ) -> Outcome<Shard> {
        todo!("{ticket:?} {client:?} {request:?}")
    }
}
