//! LeaveGroup
use super::super::shard::{Client, Shard};
use super::super::{Outcome, Ticket};
use super::At;
use crate::messages::leave_group::Request;

impl At<'_> {
    pub(in super::super) fn leave(
        self,
        ticket: Ticket,
        client: &Client,
        request: Request,
    ) -> Outcome<Shard> {
        todo!("{ticket:?} {client:?} {request:?}")
    }
}
