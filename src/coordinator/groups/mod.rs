//! Classic consumer groups: who is a member, of which generation, with which assignment.
//!
//! ```text
//!                      a member joins                   all rejoined, or their time is up
//!   (none) ──▶ Empty ───────────────▶ PreparingRebalance ───────────────▶ CompletingRebalance
//!     ▲          ▲                      │      ▲    ▲                        │        │
//!     └──────────┤      nobody is left  │      │    │  a member joins,       │        │ the leader
//!      deleted   └──────────────────────┘      │    │  changes or goes       │        │ assigns
//!                                              │    └────────────────────────┘        ▼
//!                                              └─────────────────────────────────── Stable
//! ```
//!
//! Kept is one record a group: that it is there, the generation that became stable with its
//! assignments, that it became empty. All else (who joins, parked requests, timers) a restart
//! forgets: members then go on in the generation that was kept, or rejoin.

mod describe;
mod draft;
mod expire;
mod group;
mod heartbeat;
mod join;
mod leave;
mod member;
mod members;
mod offsets;
mod rebalance;
mod shared;
mod sync;
mod timers;

#[cfg(test)]
mod tests;

pub use group::{CONSUMER, Group, Initial, State};
pub use member::Member;
pub use timers::{Due, Timer};

use super::records::Record;
use super::shard::Config;
use super::{Millis, Now, own};
use crate::messages::records::group_metadata::{Key, Value};
use crate::protocol::wire::Str;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use timers::Timers;

/// A change of what a restart forgets: the new value of a group, or of a timer.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Group(Arc<Group>),
    Set(Timer, Millis),
    Cancel(Timer),
}

/// The groups of one shard.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_id: BTreeMap<Str, Arc<Group>>,
    timers: Timers,
}

/// The groups at a moment, to be asked.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub(super) groups: &'a Groups,
    pub(super) now: Now,
    pub(super) config: &'a Config,
}

/// The record that deletes a group.
pub fn tombstone(group: &Str) -> Record {
    Record::GroupMetadata { key: Key { group: group.clone() }, value: None }
}

impl Groups {
    pub fn at<'a>(&'a self, now: Now, config: &'a Config) -> At<'a> {
        At { groups: self, now, config }
    }

    pub fn get(&self, id: &str) -> Option<&Group> {
        self.by_id.get(id).map(Arc::as_ref)
    }

    /// All groups from one on, in the order of their names.
    pub fn from(&self, first: Bound<&Str>) -> impl Iterator<Item = &Group> {
        self.by_id.range((first.cloned(), Bound::Unbounded)).map(|(_, group)| &**group)
    }

    pub(super) fn is_last(&self, id: &Str) -> bool {
        self.by_id.last_key_value().is_none_or(|(last, _)| last <= id)
    }

    /// Whoever commits an offset without a group makes one, which has no members.
    pub(super) fn create_if_absent(&mut self, id: &Str) {
        if !self.by_id.contains_key(id) {
            let id = own(id);
            self.by_id.insert(id.clone(), Arc::new(Group::new(id, None)));
        }
    }

    pub(super) fn apply(&mut self, id: Str, value: Option<Value>) {
        match value {
            Some(value) => {
                let group = Group::from_value(own(&id), value);
                self.by_id.insert(group.id().clone(), Arc::new(group));
            }
            None => {
                self.by_id.remove(&id);
                self.timers.cancel_all(&id);
            }
        }
    }

    pub(super) fn note(&mut self, effect: Effect) {
        match effect {
            Effect::Group(group) => {
                self.by_id.insert(group.id().clone(), group);
            }
            Effect::Set(timer, at) => self.timers.set(timer, at),
            Effect::Cancel(timer) => self.timers.cancel(&timer),
        }
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.timers.first().map(|(at, _)| *at)
    }
}
