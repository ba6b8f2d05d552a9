//! DescribeGroups and ListGroups: what is told of groups.
//!
//! Version notes: a group that is not there is a dead one without an error before version 6 of
//! DescribeGroups (KIP-1043).

use super::super::shard::Client;
use super::{Group, Groups, Member, State};
use crate::messages::describe_groups::{DescribedGroup, DescribedGroupMember};
use crate::messages::list_groups::{ListedGroup, Request};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use std::ops::Bound;

const DEAD: &str = "Dead";

/// The only type of group there is in here.
const CLASSIC: &str = "classic";

/// From this version on DescribeGroups tells that a group is not there.
const NOT_FOUND_VERSION: i16 = 6;

impl Groups {
    pub(in super::super) fn describe(&self, client: &Client, id: Str) -> DescribedGroup {
        match self.get(&id) {
            Some(group) => described(group),
            None => not_found(client, id),
        }
    }

    pub(in super::super) fn list(&self, request: &Request) -> Vec<ListedGroup> {
        let groups = self.from(Bound::Unbounded).filter(|group| passes(group, request));
        groups.map(listed).collect()
    }
}

fn not_found(client: &Client, id: Str) -> DescribedGroup {
    let mut dead =
        DescribedGroup { group_id: id, group_state: DEAD.into(), ..DescribedGroup::default() };
    if client.version >= NOT_FOUND_VERSION {
        dead.error_code = ErrorCode::GroupIdNotFound;
        dead.error_message = Some(format!("Group {} not found.", dead.group_id).into());
    }
    dead
}

fn described(group: &Group) -> DescribedGroup {
    // While members join, there is no protocol that they agree on.
    let is_stable = group.state() == State::Stable;
    let protocol = group.protocol_name().filter(|_| is_stable);
    let member = |member: &Member| DescribedGroupMember {
        member_id: member.id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: member.metadata(protocol),
        member_assignment: member.assignment.clone(),
    };
    DescribedGroup {
        group_id: group.id().clone(),
        group_state: group.state().name().into(),
        protocol_type: group.protocol_type().cloned().unwrap_or_default(),
        protocol_data: protocol.cloned().unwrap_or_default(),
        members: group.members().map(member).collect(),
        ..Default::default()
    }
}

fn listed(group: &Group) -> ListedGroup {
    ListedGroup {
        group_id: group.id().clone(),
        protocol_type: group.protocol_type().cloned().unwrap_or_default(),
        group_state: group.state().name().into(),
        group_type: CLASSIC.into(),
    }
}

/// Filters do not care for the case of letters. No filter lets all through.
fn passes(group: &Group, request: &Request) -> bool {
    let is = |name: &'static str| move |wanted: &Str| wanted.eq_ignore_ascii_case(name);
    let states = &request.states_filter;
    let by_state = |wanted: &Str| wanted.trim().eq_ignore_ascii_case(group.state().name());
    let types = &request.types_filter;
    (states.is_empty() || states.iter().any(by_state))
        && (types.is_empty() || types.iter().any(is(CLASSIC)))
}
