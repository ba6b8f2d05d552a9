//! One member of a classic group.

use super::super::Ticket;
use crate::messages::join_group::JoinGroupRequestProtocol;
use crate::protocol::wire::Str;
use bytes::Bytes;

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub id: Str,
    /// What makes the member a static one (KIP-345).
    pub instance_id: Option<Str>,
    pub client_id: Str,
    pub client_host: Str,
    pub session_timeout_ms: i32,
    pub rebalance_timeout_ms: i32,
    /// In the order of the member's preference.
    pub protocols: Vec<JoinGroupRequestProtocol>,
    pub assignment: Bytes,
    /// The JoinGroup that waits for the generation to begin.
    pub joining: Option<Ticket>,
    /// The SyncGroup that waits for the leader's assignment.
    pub syncing: Option<Ticket>,
    /// The generation has begun, and the member has not asked for its assignment yet.
    pub owes_sync: bool,
    /// No generation with this member has begun yet.
    pub is_new: bool,
}

impl Member {
    pub fn is_static(&self) -> bool {
        self.instance_id.is_some()
    }

    /// What the member says under a protocol; nothing under one it does not have.
    pub fn metadata(&self, protocol: Option<&Str>) -> Bytes {
        let found = self.protocols.iter().find(|own| Some(&own.name) == protocol);
        found.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    /// While its request is parked, a member cannot heartbeat. But a new one, whose client may be
    /// gone, is not waited for without end (KIP-394).
    pub(super) fn needs_no_heartbeat(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some())
    }
}
