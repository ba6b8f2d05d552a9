//! What a group does at a time, unless it happens before.

use super::super::Millis;
use crate::protocol::wire::Str;
use std::collections::{BTreeMap, BTreeSet};

/// Names a timer: setting it again moves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    pub group: Str,
    pub what: Due,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The generation begins without those who did not rejoin; or the first one of an empty group.
    Join,
    /// Who did not ask for an assignment is dropped.
    Sync,
    /// The member, or who was told to join with this id, was not heard of.
    Session(Str),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    at: BTreeMap<Timer, Millis>,
    in_order: BTreeSet<(Millis, Timer)>,
}

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, at: Millis) {
        self.cancel(&timer);
        self.in_order.insert((at, timer.clone()));
        self.at.insert(timer, at);
    }

    pub(super) fn cancel(&mut self, timer: &Timer) {
        if let Some((timer, at)) = self.at.remove_entry(timer) {
            self.in_order.remove(&(at, timer));
        }
    }

    pub(super) fn cancel_all(&mut self, group: &Str) {
        let timers: Vec<Timer> = self.of(group).map(|(timer, _)| timer.clone()).collect();
        timers.iter().for_each(|timer| self.cancel(timer));
    }

    #[cfg(test)]
    pub(super) fn is_set(&self, timer: &Timer) -> bool {
        self.at.contains_key(timer)
    }

    pub(super) fn first(&self) -> Option<&(Millis, Timer)> {
        self.in_order.first()
    }

    /// What is due in a group, in the order of time.
    pub(super) fn due(&self, group: &Str, now: Millis) -> Vec<Due> {
        let due = self.of(group).filter(|(_, at)| **at <= now);
        let mut due: Vec<_> = due.map(|(timer, at)| (*at, timer.what.clone())).collect();
        due.sort();
        due.into_iter().map(|(_, what)| what).collect()
    }

    fn of<'a>(&'a self, group: &'a Str) -> impl Iterator<Item = (&'a Timer, &'a Millis)> {
        let first = Timer { group: group.clone(), what: Due::Join };
        self.at.range(first..).take_while(move |(timer, _)| timer.group == *group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(group: &str, what: Due) -> Timer {
        Timer { group: group.into(), what }
    }

    #[test]
    fn a_timer_that_is_set_again_moves() {
        let mut timers = Timers::default();
        timers.set(timer("g", Due::Join), 5);
        timers.set(timer("g", Due::Join), 9);
        assert_eq!(timers.first(), Some(&(9, timer("g", Due::Join))));
        timers.cancel(&timer("g", Due::Join));
        assert_eq!(timers.first(), None);
    }

    #[test]
    fn what_is_due_in_a_group_comes_in_the_order_of_time() {
        let mut timers = Timers::default();
        timers.set(timer("g", Due::Join), 8);
        timers.set(timer("g", Due::Session("b".into())), 7);
        timers.set(timer("g", Due::Session("a".into())), 9);
        timers.set(timer("ga", Due::Sync), 1);
        timers.set(timer("f", Due::Sync), 1);
        assert_eq!(timers.due(&"g".into(), 8), [Due::Session("b".into()), Due::Join]);
        timers.cancel_all(&"g".into());
        assert_eq!(timers.due(&"g".into(), 10), []);
        assert_eq!(timers.due(&"ga".into(), 1), [Due::Sync]);
    }
}
