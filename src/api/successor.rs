//! Who leads now: told along with NOT_LEADER_OR_FOLLOWER, so that a client need not ask (KIP-951).

use super::Broker;
use crate::config::listeners::Address;
use crate::store::PartitionId;

/// The process that took the data over.
pub(super) struct Successor<'a> {
    broker: &'a Broker,
    pub(super) node_id: i32,
    pub(super) address: Address,
}

impl<'a> Successor<'a> {
    pub(super) fn of(broker: &'a Broker) -> Option<Self> {
        let address = Address::parse(&broker.successor()?.address)?;
        Some(Self { broker, node_id: broker.config.node_id, address })
    }

    /// An epoch that the successor has reached: the one after ours. A client only takes a leader
    /// whose epoch is larger than the one that it knows.
    pub(super) fn leader_epoch(&self, partition: PartitionId) -> Option<i32> {
        Some(self.broker.log.leader_epoch(partition)? + 1)
    }
}

/// A client that is told this does not check whether it talks to the leader it knows.
const UNKNOWN_EPOCH: i32 = -1;

/// The leader epoch that clients are told of a partition.
pub(super) fn leader_epoch(broker: &Broker, partition: PartitionId) -> i32 {
    // A successor has reached at least the epoch after ours.
    let ahead = i32::from(broker.successor().is_some());
    broker.log.leader_epoch(partition).map_or(UNKNOWN_EPOCH, |epoch| epoch + ahead)
}
