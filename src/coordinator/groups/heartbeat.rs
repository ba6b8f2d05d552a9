//! Heartbeat: a member is alive, and learns of a rebalance.

use super::super::shard::{Response, Shard};
use super::super::{Outcome, Ticket};
use super::{At, Due, Effect, Group, Member, State, Timer};
use crate::messages::heartbeat;
use crate::protocol::error_code::ErrorCode;

impl At<'_> {
    pub(in super::super) fn heartbeat(
        self,
        ticket: Ticket,
        request: &heartbeat::Request,
    ) -> Outcome<Shard> {
        let mut outcome = Outcome::default();
        let result = self.check_heartbeat(request).and_then(|(group, member)| {
            outcome.effects.push(self.heard(group, member).into());
            match group.state() {
                State::PreparingRebalance { .. } => Err(ErrorCode::RebalanceInProgress),
                _ => Ok(()),
            }
        });
        let response = heartbeat::Response { error_code: result.into(), ..Default::default() };
        outcome.answers.push((ticket, Response::Heartbeat(response)));
        outcome
    }

    fn check_heartbeat(
        &self,
        request: &heartbeat::Request,
    ) -> Result<(&Group, &Member), ErrorCode> {
        if request.group_id.is_empty() {
            return Err(ErrorCode::InvalidGroupId);
        }
        let group = self.groups.get(&request.group_id).ok_or(ErrorCode::UnknownMemberId)?;
        let instance = request.group_instance_id.as_ref();
        let member = group.check_member(&request.member_id, instance)?;
        if request.generation_id != group.generation() {
            return Err(ErrorCode::IllegalGeneration);
        }
        Ok((group, member))
    }

    /// A member was heard of: its session begins anew.
    pub(super) fn heard(&self, group: &Group, member: &Member) -> Effect {
        let what = Due::Session(member.id.clone());
        let at = self.now.monotonic.saturating_add(member.session_timeout_ms.into());
        Effect::Set(Timer { group: group.id().clone(), what }, at)
    }
}
