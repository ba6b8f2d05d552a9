//! SyncGroup: the leader says who has what, and every member learns what it has.

use super::super::shard::{Response, Shard};
use super::super::{Outcome, Ticket};
use super::draft::Draft;
use super::{At, Due, Group, State};
use crate::messages::sync_group::{self, Request};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;

impl At<'_> {
    pub(in super::super) fn sync(self, ticket: Ticket, request: Request) -> Outcome<Shard> {
        match self.check_sync(&request) {
            Ok(group) => {
                let mut draft = self.draft(group.clone());
                draft.sync(ticket, request);
                draft.finish()
            }
            Err(error_code) => {
                let response = sync_group::Response { error_code, ..Default::default() };
                Outcome::answer(ticket, Response::SyncGroup(response))
            }
        }
    }

    fn check_sync(&self, request: &Request) -> Result<&Group, ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = self.groups.get(&request.group_id).ok_or(ErrorCode::UnknownMemberId)?;
        group.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != group.generation() {
            return Err(ErrorCode::IllegalGeneration);
        }
        // What either does not say is not compared (KIP-559).
        let differ = |told: &Option<Str>, own: &Option<Str>| {
            told.as_ref().zip(own.as_ref()).is_some_and(|(told, own)| told != own)
        };
        if differ(&request.protocol_type, &group.protocol_type)
            || differ(&request.protocol_name, &group.protocol_name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match group.state() {
            State::PreparingRebalance { .. } => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(group),
        }
    }
}

impl Draft<'_> {
    fn sync(&mut self, ticket: Ticket, request: Request) {
        let id = request.member_id;
        self.group.change(&id, |member| member.owes_sync = false);
        if self.group.all_synced() {
            self.cancel(Due::Sync);
        }
        if self.group.state == State::Stable {
            if let Some(member) = self.group.member(&id) {
                self.answer_sync(ticket, self.assigned(member));
            }
            return;
        }
        self.park_sync(&id, ticket);
        if self.group.is_leader(&id) {
            let assignments = request.assignments.into_iter();
            self.assign(assignments.map(|told| (told.member_id, told.assignment)).collect());
        }
    }
}
