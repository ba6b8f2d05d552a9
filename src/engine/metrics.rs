//! What an engine tells of itself: what was counted, and how things stand at this moment.

use crate::api::Broker;
use crate::coordinator::groups::State as GroupState;
use crate::coordinator::shard::Shard;
use crate::metrics::{MAX_SERIES, Text, names};
use crate::net::Network;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use crate::store::State;
use std::ops::Bound;

pub(super) fn write(broker: &Broker, network: &Network) -> Text {
    let mut text = Text::default();
    write_state(broker, &mut text);
    network.write_metrics(&mut text);
    broker.metrics.write(&mut text, |code| ErrorCode::from_code(code).name());
    write_topics(broker, &mut text);
    let mut census = Census::default();
    broker.groups.show_all(|shard| census.add(shard));
    census.write(broker, &mut text);
    text
}

fn write_state(broker: &Broker, text: &mut Text) {
    let now = match &*broker.storage.state().borrow() {
        State::Opening => "opening",
        State::Standby(_) => "standby",
        State::Serving => "serving",
        State::Fenced(_) => "fenced",
        State::Failed(_) => "failed",
    };
    let mut series = text.family(&names::STATE);
    for state in ["opening", "standby", "serving", "fenced", "failed"] {
        series.add(&[&state], u8::from(state == now));
    }
}

fn write_topics(broker: &Broker, text: &mut Text) {
    let topics = broker.topics();
    let count = topics.iter().map(|topic| i64::from(topic.partitions)).sum::<i64>();
    text.single(&names::TOPICS, topics.len());
    text.single(&names::PARTITIONS, count);
    let ids = topics.iter().flat_map(|topic| {
        let ids = (0..topic.partitions).filter_map(|index| topic.partition(index));
        ids.map(move |id| (&topic.name, id))
    });
    let bounds: Vec<_> = ids
        .take(MAX_SERIES)
        .filter_map(|(name, id)| Some((name, id.partition, broker.log.bounds(id)?)))
        .collect();
    let left_out = usize::try_from(count).unwrap_or(0).saturating_sub(MAX_SERIES);
    let mut series = text.family(&names::LOG_START);
    bounds.iter().for_each(|(name, index, bounds)| series.add(&[name, index], bounds.start));
    series.leave_out(left_out);
    let mut series = text.family(&names::LOG_END);
    bounds.iter().for_each(|(name, index, bounds)| series.add(&[name, index], bounds.end));
    series.leave_out(left_out);
}

/// The groups and their offsets, copied while their shards are locked.
#[derive(Default)]
struct Census {
    preparing: usize,
    completing: usize,
    stable: usize,
    empty: usize,
    members: Vec<(Str, usize)>,
    offsets: Vec<Committed>,
    /// Offsets in all.
    offset_count: usize,
}

struct Committed {
    group: Str,
    topic: Str,
    topic_id: Uuid,
    partition: i32,
    offset: i64,
}

impl Census {
    fn add(&mut self, shard: &Shard) {
        for group in shard.groups.from(Bound::Unbounded) {
            match group.state() {
                GroupState::PreparingRebalance { .. } => self.preparing += 1,
                GroupState::CompletingRebalance => self.completing += 1,
                GroupState::Stable => self.stable += 1,
                GroupState::Empty => self.empty += 1,
            }
            if self.members.len() < MAX_SERIES {
                self.members.push((group.id().clone(), group.members().count()));
            }
        }
        for (group, topic, partition, value) in shard.offsets.iter() {
            self.offset_count += 1;
            if self.offsets.len() < MAX_SERIES {
                let (group, topic, topic_id) = (group.clone(), topic.clone(), value.topic_id);
                let offset = value.offset;
                self.offsets.push(Committed { group, topic, topic_id, partition, offset });
            }
        }
    }

    fn write(&self, broker: &Broker, text: &mut Text) {
        let count = self.preparing + self.completing + self.stable + self.empty;
        text.single(&names::GROUPS, count);
        text.single(&names::GROUPS_PREPARING, self.preparing);
        text.single(&names::GROUPS_COMPLETING, self.completing);
        text.single(&names::GROUPS_STABLE, self.stable);
        text.single(&names::GROUPS_EMPTY, self.empty);
        text.single(&names::OFFSETS, self.offset_count);
        let mut series = text.family(&names::MEMBERS);
        self.members.iter().for_each(|(group, members)| series.add(&[group], members));
        series.leave_out(count - self.members.len());
        let left_out = self.offset_count - self.offsets.len();
        let mut series = text.family(&names::GROUP_OFFSET);
        for Committed { group, topic, partition, offset, .. } in &self.offsets {
            series.add(&[group, topic, partition], offset);
        }
        series.leave_out(left_out);
        let mut series = text.family(&names::LAG);
        for committed in &self.offsets {
            let Committed { group, topic, partition, .. } = committed;
            if let Some(lag) = committed.lag(broker) {
                series.add(&[group, topic, partition], lag);
            }
        }
        series.leave_out(left_out);
    }
}

impl Committed {
    /// How much of the log is behind the offset; `None` if the topic is another one by now, or
    /// where it ends is not known.
    fn lag(&self, broker: &Broker) -> Option<i64> {
        let topics = broker.topics();
        let topic = topics.by_name(&self.topic)?;
        // Old clients and old records tell no ids.
        if self.topic_id != Uuid::ZERO && self.topic_id != topic.id {
            return None;
        }
        let bounds = broker.log.bounds(topic.partition(self.partition)?)?;
        Some(bounds.end.saturating_sub(self.offset).max(0))
    }
}
