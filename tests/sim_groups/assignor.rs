//! How a leader shares partitions out: all anew, or so that members keep what they have (KIP-429).

use crate::topics::{Partition, Topics};
use kelp::messages::records::consumer_protocol::{Assignment, Subscription, TopicPartition};
use kelp::protocol::wire::{Reader, Str, Wire, Writer};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const EAGER: &str = "range";
pub(crate) const COOPERATIVE: &str = "cooperative-sticky";

/// The version in which both are written.
const VERSION: i16 = 1;

pub(crate) type Partitions = BTreeSet<Partition>;

/// A member as its leader sees it.
pub(crate) struct Member {
    pub(crate) id: Str,
    pub(crate) topics: BTreeSet<Str>,
    pub(crate) owned: Partitions,
}

impl Member {
    pub(crate) fn read(id: Str, metadata: &bytes::Bytes) -> Self {
        let subscription: Subscription = decode(metadata);
        let topics = subscription.topics.into_iter().collect();
        Self { id, topics, owned: flatten(subscription.owned_partitions) }
    }
}

/// Every partition of a topic that somebody wants goes to one of those who want it.
pub(crate) fn assign(
    protocol: &str,
    members: &[Member],
    topics: &Topics,
) -> BTreeMap<Str, Partitions> {
    let sticky = protocol == COOPERATIVE;
    let none = |member: &Member| (member.id.clone(), Partitions::new());
    let mut shares: BTreeMap<Str, Partitions> = members.iter().map(none).collect();
    for partition in topics.partitions() {
        let wanting = || members.iter().filter(|member| member.topics.contains(&partition.0));
        let Some(least) = wanting().min_by_key(|member| shares[&member.id].len()) else { continue };
        // Of equal numbers who has it keeps it.
        let keeps = |member: &&Member| {
            member.owned.contains(&partition)
                && shares[&member.id].len() <= shares[&least.id].len() + 1
        };
        let new = wanting().filter(|_| sticky).find(keeps).unwrap_or(least);
        // What another has is given only when that one said that it let go.
        let held = members.iter().any(|m| m.id != new.id && m.owned.contains(&partition));
        if !(sticky && held) {
            shares.get_mut(&new.id).expect("it is a member").insert(partition);
        }
    }
    shares
}

pub(crate) fn subscription(topics: &BTreeSet<Str>, owned: &Partitions) -> bytes::Bytes {
    encode(&Subscription {
        topics: topics.iter().cloned().collect(),
        owned_partitions: group(owned),
        ..Subscription::default()
    })
}

pub(crate) fn assignment(partitions: &Partitions) -> bytes::Bytes {
    encode(&Assignment { assigned_partitions: group(partitions), ..Assignment::default() })
}

/// Nothing is an assignment too: of a member whom the leader did not know.
pub(crate) fn read_assignment(bytes: &bytes::Bytes) -> Partitions {
    if bytes.is_empty() {
        return Partitions::new();
    }
    flatten(decode::<Assignment>(bytes).assigned_partitions)
}

fn group(partitions: &Partitions) -> Vec<TopicPartition> {
    let mut topics: BTreeMap<&Str, Vec<i32>> = BTreeMap::new();
    partitions.iter().for_each(|(topic, index)| topics.entry(topic).or_default().push(*index));
    let topics = topics.into_iter();
    topics.map(|(topic, partitions)| TopicPartition { topic: topic.clone(), partitions }).collect()
}

fn flatten(topics: Vec<TopicPartition>) -> Partitions {
    let of_topic = |t: TopicPartition| t.partitions.into_iter().map(move |i| (t.topic.clone(), i));
    topics.into_iter().flat_map(of_topic).collect()
}

fn encode(message: &impl Wire) -> bytes::Bytes {
    let mut writer = Writer::new(VERSION, false);
    VERSION.write(&mut writer);
    message.write(&mut writer);
    writer.finish().concat().into()
}

fn decode<T: Wire>(bytes: &bytes::Bytes) -> T {
    let mut reader = Reader::new(bytes.slice(2..), VERSION, false);
    T::read(&mut reader).expect("what a client wrote")
}
