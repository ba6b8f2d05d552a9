//! LeaveGroup: members go, by their ids or, for an administrator, by their instances.
//!
//! Version notes: before version 3 one member leaves, and its error is that of the answer.

use super::super::shard::{Client, Response, Shard};
use super::super::{Outcome, Ticket};
use super::At;
use super::draft::Draft;
use crate::messages::leave_group::{self, MemberIdentity, MemberResponse, Request};
use crate::protocol::error_code::ErrorCode;

/// From this version on several members may leave (KIP-345).
const BATCH_VERSION: i16 = 3;

impl At<'_> {
    pub(in super::super) fn leave(
        self,
        ticket: Ticket,
        client: &Client,
        request: Request,
    ) -> Outcome<Shard> {
        let Request { group_id, member_id, members } = request;
        let is_batch = client.version >= BATCH_VERSION;
        let one = || vec![MemberIdentity { member_id, ..Default::default() }];
        let members = if is_batch { members } else { one() };
        let (mut outcome, results) = match self.groups.get(&group_id) {
            Some(group) => {
                let mut draft = self.draft(group.clone());
                let results = draft.leave(members);
                (draft.finish(), Ok(results))
            }
            None if group_id.is_empty() => (Outcome::default(), Err(ErrorCode::InvalidGroupId)),
            None => {
                let unknown = |member| response(member, ErrorCode::UnknownMemberId);
                (Outcome::default(), Ok(members.into_iter().map(unknown).collect()))
            }
        };
        let answer = Response::LeaveGroup(answer(is_batch, results));
        outcome.answers.push((ticket, answer));
        outcome
    }
}

impl Draft<'_> {
    fn leave(&mut self, members: Vec<MemberIdentity>) -> Vec<MemberResponse> {
        let mut left = false;
        let mut results = Vec::with_capacity(members.len());
        for member in members {
            let result = self.leave_one(&member);
            left |= result.is_ok();
            results.push(response(member, result.into()));
        }
        if left && !self.group.is_empty() {
            self.rebalance();
        }
        results
    }

    fn leave_one(&mut self, member: &MemberIdentity) -> Result<(), ErrorCode> {
        let (id, instance) = (&member.member_id, member.group_instance_id.as_ref());
        if id.is_empty() {
            let member = instance.and_then(|instance| self.group.member_of_instance(instance));
            let id = member.ok_or(ErrorCode::UnknownMemberId)?.clone();
            self.remove(&id);
            return Ok(());
        }
        if !self.group.pending.contains(id) {
            self.group.check_member(id, instance)?;
        }
        self.remove(id);
        Ok(())
    }
}

fn response(member: MemberIdentity, error_code: ErrorCode) -> MemberResponse {
    let MemberIdentity { member_id, group_instance_id, .. } = member;
    MemberResponse { member_id, group_instance_id, error_code }
}

fn answer(
    is_batch: bool,
    results: Result<Vec<MemberResponse>, ErrorCode>,
) -> leave_group::Response {
    let (error_code, members) = match results {
        Err(error) => (error, Vec::new()),
        Ok(members) if is_batch => (ErrorCode::None, members),
        Ok(members) => (members.first().map_or(ErrorCode::None, |one| one.error_code), Vec::new()),
    };
    leave_group::Response { error_code, members, ..Default::default() }
}
