//! Which part of a log is compacted, and when.
//!
//! As in Kafka, what was written last stays as it is: parts are counted as the segments that Kafka
//! would have made of them by `segment.bytes` and `segment.ms`, and the last of these is active.
//!
//! Source: `LogCleanerManager.cleanableOffsets`, `maxCompactionDelay`, `LogToClean` and
//! `LogSegment.shouldRoll` of Apache Kafka 4.4.

use crate::config::Config;
use crate::config::definition::list;
use crate::config::topic::{Configs, integer, text};
use crate::store::layout::{Layout, Part};

/// What a topic's configs say of compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub delete_retention_ms: i64,
    min_lag_ms: i64,
    max_lag_ms: i64,
    min_dirty_ratio: f64,
    segment_bytes: u64,
    segment_ms: i64,
}

/// What of a log can be compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirty {
    pub base_offset: i64,
    pub end_offset: i64,
    /// How much of all that can be compacted it is.
    pub ratio: f64,
}

impl Policy {
    /// That of a topic; `None` if it is not compacted.
    pub fn of(configs: &Configs, broker: &Config) -> Option<Self> {
        let text = |name| text(name, configs, broker);
        let integer = |name| integer(name, configs, broker);
        let is_compacted = list(&text("cleanup.policy")).any(|policy| policy == "compact");
        is_compacted.then(|| Self {
            delete_retention_ms: integer("delete.retention.ms"),
            min_lag_ms: integer("min.compaction.lag.ms"),
            max_lag_ms: integer("max.compaction.lag.ms"),
            // It was checked to be a number.
            min_dirty_ratio: text("min.cleanable.dirty.ratio").parse().unwrap_or(0.5),
            segment_bytes: integer("segment.bytes").unsigned_abs(),
            segment_ms: integer("segment.ms"),
        })
    }

    /// What is to be compacted now, if anything.
    pub fn dirty(&self, layout: &Layout, now_ms: i64) -> Option<Dirty> {
        let base_offset = layout.clean_end_offset.max(layout.log_start_offset);
        let is_clean = |part: &&Part| part.end_offset <= base_offset;
        let clean_bytes: u64 = layout.parts.iter().take_while(is_clean).map(|p| p.bytes).sum();
        let behind: Vec<_> = layout.parts.iter().skip_while(is_clean).collect();
        let dirty = &behind[..self.count_cleanable(&behind, now_ms)];
        let end_offset = dirty.last()?.end_offset;
        let dirty_bytes: u64 = dirty.iter().map(|part| part.bytes).sum();

        let oldest = dirty.iter().map(|part| part.first_timestamp).filter(|time| *time > 0).min();
        let is_due = oldest.is_some_and(|time| now_ms > time.saturating_add(self.max_lag_ms));
        let ratio = dirty_bytes as f64 / (clean_bytes + dirty_bytes).max(1) as f64;
        let is_wanted = ratio > self.min_dirty_ratio || is_due;
        is_wanted.then_some(Dirty { base_offset, end_offset, ratio })
    }

    /// How many of the first parts are neither in the active segment nor too young.
    fn count_cleanable(&self, parts: &[&Part], now_ms: i64) -> usize {
        let max_segment_ms = self.segment_ms.min(self.max_lag_ms);
        let (mut active, mut bytes, mut began) = (0, 0, i64::MAX);
        for (i, part) in parts.iter().enumerate() {
            let age = part.max_timestamp.saturating_sub(began);
            if i > active && (bytes + part.bytes > self.segment_bytes || age > max_segment_ms) {
                active = i;
            }
            if i == active {
                (bytes, began) = (0, part.first_timestamp);
            }
            bytes += part.bytes;
        }
        // A part that is longer than a segment alone: Kafka would have begun another one behind it.
        if bytes > self.segment_bytes {
            active = parts.len();
        }
        let is_old = |part: &&&Part| {
            let lag = now_ms.saturating_sub(part.max_timestamp);
            part.is_settled && (self.min_lag_ms == 0 || lag >= self.min_lag_ms)
        };
        parts[..active].iter().take_while(is_old).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn policy() -> Policy {
        Policy {
            delete_retention_ms: 0,
            min_lag_ms: 0,
            max_lag_ms: i64::MAX,
            min_dirty_ratio: 0.5,
            segment_bytes: 100,
            segment_ms: HOUR_MS,
        }
    }

    /// Parts of so many bytes, each of ten offsets and of one time.
    fn layout(clean_end_offset: i64, parts: &[(u64, i64)]) -> Layout {
        let part = |(base, (bytes, timestamp)): (usize, &(u64, i64))| Part {
            base_offset: 10 * base as i64,
            end_offset: 10 * base as i64 + 10,
            bytes: *bytes,
            first_timestamp: *timestamp,
            max_timestamp: *timestamp,
            is_settled: true,
        };
        let parts = parts.iter().enumerate().map(part).collect();
        Layout { clean_end_offset, parts, ..Layout::default() }
    }

    fn dirty(policy: &Policy, layout: &Layout) -> Option<(i64, i64)> {
        let dirty = policy.dirty(layout, 10 * HOUR_MS);
        dirty.map(|dirty| (dirty.base_offset, dirty.end_offset))
    }

    #[test]
    fn the_configs_and_their_defaults_are_kafkas() {
        let own = [("cleanup.policy".to_string(), "compact".to_string())];
        let policy = Policy::of(&own.into(), &Config::default());
        let expected = Policy {
            delete_retention_ms: 24 * HOUR_MS,
            min_lag_ms: 0,
            max_lag_ms: i64::MAX,
            min_dirty_ratio: 0.5,
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * HOUR_MS,
        };
        assert_eq!(policy, Some(expected));
        assert_eq!(Policy::of(&Configs::new(), &Config::default()), None);
    }

    #[test]
    fn the_active_segment_is_left_alone() {
        assert_eq!(dirty(&policy(), &layout(0, &[(60, 1), (40, 1)])), None);
        let two_segments = layout(0, &[(60, 1), (40, 1), (1, 1)]);
        assert_eq!(dirty(&policy(), &two_segments), Some((0, 20)));
        let by_time = layout(0, &[(1, 1), (1, HOUR_MS + 1), (1, HOUR_MS + 2), (1, 2 * HOUR_MS)]);
        assert_eq!(dirty(&policy(), &by_time), Some((0, 20)));
        let sooner = Policy { max_lag_ms: HOUR_MS / 2, ..policy() };
        assert_eq!(dirty(&sooner, &by_time), Some((0, 30)), "the largest lag ends segments too");
        assert_eq!(dirty(&policy(), &layout(0, &[(100, 1)])), None);
        let longer = layout(0, &[(101, 1)]);
        assert_eq!(dirty(&policy(), &longer), Some((0, 10)), "it would be several segments");
    }

    #[test]
    fn what_is_young_or_not_settled_waits() {
        let lag = Policy { min_lag_ms: HOUR_MS, ..policy() };
        let log = layout(0, &[(90, 1), (90, 9 * HOUR_MS + 1), (90, 1), (90, 1)]);
        assert_eq!(dirty(&lag, &log), Some((0, 10)));
        assert_eq!(dirty(&policy(), &log), Some((0, 30)));
        let mut unsettled = log;
        unsettled.parts[2].is_settled = false;
        assert_eq!(dirty(&policy(), &unsettled), Some((0, 20)));
    }

    #[test]
    fn enough_must_be_dirty_or_too_old() {
        let log = layout(10, &[(90, 1), (90, 1), (90, 1)]);
        assert_eq!(dirty(&policy(), &log), None, "half is not more than half");
        let log = layout(10, &[(80, 1), (90, 1), (90, 1)]);
        assert_eq!(dirty(&policy(), &log), Some((10, 20)));
        let log = layout(10, &[(900, 1), (90, HOUR_MS), (90, 2 * HOUR_MS)]);
        for (max_lag_ms, expected) in [(9 * HOUR_MS, None), (9 * HOUR_MS - 1, Some((10, 20)))] {
            assert_eq!(dirty(&Policy { max_lag_ms, ..policy() }, &log), expected);
        }
    }
}
