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

    /// What is due, in the order of time, up to where it is another group's.
    pub(super) fn due(&self, now: Millis) -> impl Iterator<Item = &Timer> {
        let due = self.in_order.iter().take_while(move |(at, _)| *at <= now);
        let group = self.first().map(|(_, first)| &first.group);
        due.map(|(_, timer)| timer).take_while(move |timer| Some(&timer.group) == group)
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
    fn what_is_due_comes_in_the_order_of_time_and_for_one_group() {
        let mut timers = Timers::default();
        timers.set(timer("g", Due::Join), 8);
        timers.set(timer("g", Due::Session("b".into())), 7);
        timers.set(timer("g", Due::Session("a".into())), 10);
        timers.set(timer("ga", Due::Sync), 9);
        timers.set(timer("f", Due::Sync), 12);
        let due = |timers: &Timers, now| timers.due(now).cloned().collect::<Vec<_>>();
        assert_eq!(due(&timers, 6), []);
        let first = [timer("g", Due::Session("b".into())), timer("g", Due::Join)];
        assert_eq!(due(&timers, 8), first);
        assert_eq!(due(&timers, 20), first);
        timers.cancel_all(&"g".into());
        assert_eq!(due(&timers, 20), [timer("ga", Due::Sync)]);
    }
}
