//! The members of a group, with what is counted of them: so nobody has to look through all of them
//! because one did something.

use super::member::Member;
use super::shared::Shared;
use crate::protocol::wire::Str;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    by_id: Shared<Arc<Member>>,
    /// The member of each instance.
    instances: Shared<Str>,
    count: Count,
}

/// How many members are so.
#[derive(Clone, Debug, Default, PartialEq)]
struct Count {
    joining: usize,
    owing_sync: usize,
    /// By the name of a protocol that they support.
    supporting: Shared<usize>,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<&Arc<Member>> {
        self.by_id.get(id)
    }

    pub(super) fn of_instance(&self, instance: &str) -> Option<&Str> {
        self.instances.get(instance)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.by_id.iter().map(|(_, member)| member)
    }

    pub(super) fn first_id(&self) -> Option<&Str> {
        self.by_id.first_key()
    }

    /// How many have a JoinGroup that waits.
    pub(super) fn joining(&self) -> usize {
        self.count.joining
    }

    /// How many did not ask for their assignment yet.
    pub(super) fn owing_sync(&self) -> usize {
        self.count.owing_sync
    }

    pub(super) fn all_support(&self, protocol: &str) -> bool {
        self.is_empty() || self.count.supporting.get(protocol) == Some(&self.len())
    }

    pub(super) fn insert(&mut self, member: Arc<Member>) {
        self.remove(&member.id);
        self.count.add(&member);
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), member.id.clone());
        }
        self.by_id.insert(member.id.clone(), member);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Member>> {
        let removed = self.by_id.remove(id)?;
        self.count.take_off(&removed);
        if let Some(instance) = &removed.instance_id {
            self.instances.remove(instance);
        }
        Some(removed)
    }

    /// Changes a member, but not what it is called.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Member)) {
        let Some(member) = self.by_id.get_mut(id) else { return };
        self.count.take_off(member);
        change(Arc::make_mut(member));
        self.count.add(member);
    }

    /// Changes all members, but not what they are called.
    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Member)) {
        let mut count = Count::default();
        self.by_id.for_each_mut(|member| {
            change(Arc::make_mut(member));
            count.add(member);
        });
        self.count = count;
    }
}

impl Count {
    fn add(&mut self, member: &Member) {
        self.joining += usize::from(member.joining.is_some());
        self.owing_sync += usize::from(member.owes_sync);
        for protocol in &member.protocols {
            match self.supporting.get_mut(&protocol.name) {
                Some(count) => *count += 1,
                None => self.supporting.insert(protocol.name.clone(), 1),
            }
        }
    }

    fn take_off(&mut self, member: &Member) {
        self.joining -= usize::from(member.joining.is_some());
        self.owing_sync -= usize::from(member.owes_sync);
        for protocol in &member.protocols {
            match self.supporting.get_mut(&protocol.name) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.supporting.remove(&protocol.name)),
            }
        }
    }
}
