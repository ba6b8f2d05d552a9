//! What committed offsets have to do with the members of a group.

use super::{At, Effect, Group, Groups, State};
use crate::messages::offset_commit;
use crate::protocol::error_code::ErrorCode;

impl Groups {
    /// That a group may be deleted, with all its offsets.
    pub(in super::super) fn may_delete(&self, id: &str) -> Result<(), ErrorCode> {
        let group = self.get(id).ok_or(ErrorCode::GroupIdNotFound)?;
        if group.is_empty() { Ok(()) } else { Err(ErrorCode::NonEmptyGroup) }
    }

    /// The group, if some of its offsets may be deleted: those of topics that a group of consumers
    /// is not subscribed to, but none while members are there whose topics nobody knows.
    pub(in super::super) fn may_delete_offsets(&self, id: &str) -> Result<&Group, ErrorCode> {
        let group = self.get(id).ok_or(ErrorCode::GroupIdNotFound)?;
        if !group.is_empty() && !group.uses_consumer_protocol() {
            return Err(ErrorCode::NonEmptyGroup);
        }
        Ok(group)
    }
}

/// From this version on OffsetCommit tells that the group is not there (KIP-848).
const GROUP_ID_NOT_FOUND_VERSION: i16 = 9;

impl At<'_> {
    /// That a member may commit offsets now. A commit counts as a heartbeat: the effect says so.
    pub(in super::super) fn may_commit(
        self,
        version: i16,
        request: &offset_commit::Request,
    ) -> Result<Option<Effect>, ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        let Some(group) = self.groups.get(&request.group_id) else {
            return match generation {
                // A simple consumer, which has partitions of its own choice.
                ..0 => Ok(None),
                _ if version >= GROUP_ID_NOT_FOUND_VERSION => Err(ErrorCode::GroupIdNotFound),
                _ => Err(ErrorCode::IllegalGeneration),
            };
        };
        if generation < 0 && group.is_empty() {
            return Ok(None);
        }
        let instance = request.group_instance_id.as_ref();
        if generation < 0 && request.member_id.is_empty() && instance.is_none() {
            // An admin tool or simple consumer would overwrite what members commit.
            return Err(ErrorCode::UnknownMemberId);
        }
        let member = group.check_member(&request.member_id, instance)?;
        if generation != group.generation() {
            return Err(ErrorCode::IllegalGeneration);
        }
        match group.state() {
            State::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(Some(self.heard(group, member))),
        }
    }
}
