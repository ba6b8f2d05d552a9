//! The names of the object log's objects.
//!
//! ```text
//! journal/<broker>/<epoch %010d>/<seq %020d>
//! segment/<broker>/<epoch %010d>-<count %010d>
//! checkpoint/<broker>/<epoch %010d>-<count %010d>
//! ```
//!
//! Numbers are padded so that the order of the keys is the order of what they name.

use super::faults::{Faults, Rule};

/// A place in the journal. Each epoch has a prefix of its own, with seqs from 0 on, and a place is
/// never used for anything else: a late put of an old owner finds its own place or its fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Position {
    pub epoch: i32,
    pub seq: u64,
}

impl Position {
    pub(super) fn next(self) -> Self {
        Self { seq: self.seq + 1, ..self }
    }
}

/// The name of a segment or checkpoint: the epoch of its writer and a count of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name {
    pub epoch: i32,
    pub count: u64,
}

/// Makes and reads the keys of one broker id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub broker_id: i32,
    pub faults: Faults,
}

impl Keys {
    pub(super) fn journal(&self, at: Position) -> String {
        let epoch = if self.faults.keep(Rule::OwnPrefix) { at.epoch } else { 0 };
        format!("{}{epoch:010}/{:020}", self.journals(), at.seq)
    }

    pub(super) fn journals(&self) -> String {
        format!("journal/{}/", self.broker_id)
    }

    pub(super) fn segment(&self, name: Name) -> String {
        format!("{}{:010}-{:010}", self.segments(), name.epoch, name.count)
    }

    pub(super) fn segments(&self) -> String {
        format!("segment/{}/", self.broker_id)
    }

    pub(super) fn checkpoint(&self, name: Name) -> String {
        format!("{}{:010}-{:010}", self.checkpoints(), name.epoch, name.count)
    }

    pub(super) fn checkpoints(&self) -> String {
        format!("checkpoint/{}/", self.broker_id)
    }
}

/// The name at the end of a segment's or checkpoint's key.
pub(super) fn name_of(key: &str) -> Option<Name> {
    let (epoch, count) = key.rsplit('/').next()?.split_once('-')?;
    Some(Name { epoch: epoch.parse().ok()?, count: count.parse().ok()? })
}

/// The place at the end of a journal object's key.
pub(super) fn position_of(key: &str) -> Option<Position> {
    let mut parts = key.rsplit('/');
    let (seq, epoch) = (parts.next()?, parts.next()?);
    Some(Position { epoch: epoch.parse().ok()?, seq: seq.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_what_they_name_and_read_back() {
        let keys = Keys { broker_id: 1, faults: Faults::default() };
        let at = |epoch, seq| Position { epoch, seq };
        assert_eq!(keys.journal(at(2, 10)), "journal/1/0000000002/00000000000000000010");
        assert!(keys.journal(at(2, 10)) > keys.journal(at(2, 9)));
        assert!(keys.journal(at(10, 0)) > keys.journal(at(9, 99)));
        assert_eq!(position_of(&keys.journal(at(2, 10))), Some(at(2, 10)));

        let name = Name { epoch: 3, count: 7 };
        assert_eq!(keys.segment(name), "segment/1/0000000003-0000000007");
        assert_eq!(name_of(&keys.checkpoint(name)), Some(name));
        assert_eq!(name_of("checkpoint/1/strange"), None);
        assert_eq!(position_of("strange"), None);
    }
}
