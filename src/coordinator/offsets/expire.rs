//! The end of what is old: `offsets.retention.minutes` (KIP-211).

use super::Offsets;
use super::delete::tombstone;
use crate::coordinator::groups::Group;
use crate::coordinator::records::{NO_EXPIRY, Record};
use crate::coordinator::shard::Config;
use crate::coordinator::{Millis, Now};
use crate::messages::records::offset_commit::Value;

impl Offsets {
    /// Deletes the expired offsets of a group; whether it has others left.
    pub(in super::super) fn expire(
        &self,
        group: &Group,
        now: Now,
        config: &Config,
        records: &mut Vec<Record>,
    ) -> bool {
        let mut has_others = false;
        for (topic, index, value) in self.of(group.id()) {
            let since = group.retained_since(value.commit_timestamp);
            let is_old = since
                .is_some_and(|since| is_old(value, since, now.wall, config.offsets_retention_ms));
            if is_old && !group.is_subscribed_to(topic) {
                records.push(tombstone(group.id(), topic, index));
            } else {
                has_others = true;
            }
        }
        has_others
    }
}

/// A commit of the versions 2 to 4 may say itself how long it counts, from the commit on.
fn is_old(value: &Value, since: Millis, now: Millis, retention_ms: Millis) -> bool {
    match value.expire_timestamp {
        NO_EXPIRY => now.saturating_sub(since) >= retention_ms,
        expires => now >= expires,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::coordinator::shard::Shard;
    use crate::coordinator::{Machine, groups};
    use crate::messages::offset_commit::Request;
    use crate::protocol::wire::Str;

    /// Offsets of partition 0 of both topics that were committed [`NOW`], and what becomes of the
    /// group then.
    fn with_offsets(group: impl IntoIterator<Item = Record>) -> Shard {
        let mut shard = shard();
        for topic in ["bar", "other"] {
            take(&mut shard, NOW, commit_of(topic, BAR, vec![Default::default()]));
        }
        group.into_iter().for_each(|record| shard.apply(record));
        shard
    }

    fn gone(topics: &[&'static str]) -> Vec<Record> {
        topics.iter().map(|topic| tombstone(&"foo".into(), &(*topic).into(), 0)).collect()
    }

    fn group_gone() -> Record {
        groups::tombstone(&Str::from("foo"))
    }

    #[test]
    fn offsets_of_a_simple_group_are_old_some_time_after_their_commit() {
        let mut shard = with_offsets([]);
        let later = Now { wall: NOW.wall + 500, ..NOW };
        take(&mut shard, later, commit_of("other", BAR, vec![Default::default()]));
        let old = NOW.wall + RETENTION_MS;
        assert_eq!(clean_up(&mut shard, old - 1), []);
        assert_eq!(clean_up(&mut shard, old), gone(&["bar"]));
        assert_eq!(clean_up(&mut shard, old + 499), []);
        // The group goes with its last offset.
        let last = [gone(&["other"]), vec![group_gone()]].concat();
        assert_eq!(clean_up(&mut shard, old + 500), last);
        assert!(shard.groups.get("foo").is_none());
    }

    #[test]
    fn a_group_that_became_empty_keeps_its_offsets_from_then_on() {
        let mut shard = with_offsets([empty(NOW.wall + 7_000)]);
        let old = NOW.wall + 7_000 + RETENTION_MS;
        assert_eq!(clean_up(&mut shard, old - 1), []);
        let all = [gone(&["bar", "other"]), vec![group_gone()]].concat();
        assert_eq!(clean_up(&mut shard, old), all);
    }

    #[test]
    fn where_nobody_knows_since_when_a_group_is_empty_the_commit_counts() {
        let mut shard = with_offsets([empty(-1)]);
        assert_eq!(clean_up(&mut shard, NOW.wall + RETENTION_MS - 1), []);
        assert_eq!(clean_up(&mut shard, NOW.wall + RETENTION_MS).len(), 3);
    }

    #[test]
    fn what_consumers_read_does_not_get_old_but_what_they_left_does() {
        let mut shard = with_offsets([stable("consumer")]);
        assert_eq!(clean_up(&mut shard, NOW.wall + RETENTION_MS - 1), []);
        assert_eq!(clean_up(&mut shard, NOW.wall + RETENTION_MS), gone(&["other"]));
        assert_eq!(clean_up(&mut shard, i64::MAX), []);
    }

    #[test]
    fn nothing_gets_old_while_nobody_knows_what_members_read() {
        let mut shard = with_offsets([stable("connect")]);
        assert_eq!(clean_up(&mut shard, i64::MAX), []);

        let Record::GroupMetadata { value: Some(mut value), .. } = stable("consumer") else {
            unreachable!("it is the record of a group")
        };
        value.members[0].subscription = bytes::Bytes::from_static(&[0]);
        let mut shard = with_offsets([group(value)]);
        assert_eq!(clean_up(&mut shard, i64::MAX), []);
    }

    #[test]
    fn a_time_of_its_own_goes_before_the_brokers_retention() {
        for retention_time_ms in [1_000, 2 * RETENTION_MS] {
            let mut shard = shard();
            take_version(&mut shard, 4, NOW, Request { retention_time_ms, ..commit() });
            // Also when the group is empty only since later.
            shard.apply(empty(NOW.wall + 500));
            assert_eq!(clean_up(&mut shard, NOW.wall + retention_time_ms - 1), []);
            let all = [gone(&["bar"]), vec![group_gone()]].concat();
            assert_eq!(clean_up(&mut shard, NOW.wall + retention_time_ms), all);
        }
    }

    #[test]
    fn an_empty_group_without_offsets_goes() {
        let mut shard = with([empty(NOW.wall)]);
        assert_eq!(clean_up(&mut shard, NOW.wall), [group_gone()]);
        let mut shard = with([stable("consumer")]);
        assert_eq!(clean_up(&mut shard, i64::MAX), []);
    }

    #[test]
    fn the_next_look_is_an_interval_later() {
        let mut shard = with_offsets([]);
        clean_up(&mut shard, NOW.wall);
        assert_eq!(shard.deadline(), Some(NOW.monotonic + 600_000));
        clean_up(&mut shard, i64::MAX);
        assert_eq!(shard.deadline(), Some(NOW.monotonic + 600_000));
    }
}
