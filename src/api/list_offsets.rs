//! ListOffsets: finds the ends of partitions, or the first record of a time.
//!
//! Version notes: 0 answers with a list of offsets, newest first. In Kafka these were the starts
//! of the log's files; this log has none to show, so it is one that begins at the log start.
//!
//! Source: KIP-79, KIP-207, KIP-320, KIP-734; `ReplicaManager.fetchOffset` of Apache Kafka 4.4.

use super::{Context, Reply};
use crate::log::Log;
use crate::log::offsets::Place;
use crate::log::partition::{Bounds, Partition};
use crate::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopic, ListOffsetsTopicResponse,
    Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::StoreError;
use crate::store::topics::Topics;
use std::collections::HashSet;
use std::sync::Arc;

/// The timestamps that stand for something else, each with the first version that knows it.
const SPECIAL: [(i64, i16, Wanted); 6] = [
    (-1, 0, Wanted::Latest),
    (-2, 0, Wanted::Earliest),
    // KIP-734
    (-3, 7, Wanted::MaxTimestamp),
    // KIP-405: without tiers, the earliest local record is the earliest, and nothing is tiered.
    (-4, 8, Wanted::Earliest),
    // KIP-1005
    (-5, 9, Wanted::Nothing),
    // KIP-1023
    (-6, 11, Wanted::Nothing),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Latest,
    Earliest,
    MaxTimestamp,
    Nothing,
    Time(i64),
}

/// What is answered where there is no record to tell of.
const NOWHERE: Place = Place { offset: -1, timestamp: -1, leader_epoch: -1 };

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let broker = cx.broker.clone();
    let version = cx.api_version;
    Reply::Deferred(Box::pin(async move {
        let lookup = Lookup {
            log: &broker.log,
            topics: broker.storage.topics(),
            version,
            isolation_level: request.isolation_level,
            repeated: repeated(&request),
        };
        let mut response = Response::default();
        for topic in request.topics {
            response.topics.push(lookup.topic(topic).await);
        }
        response
    }))
}

/// Partitions that a request has more than once, which Kafka refuses.
fn repeated(request: &Request) -> HashSet<(Str, i32)> {
    let mut seen = HashSet::new();
    let all = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.clone(), partition.partition_index))
    });
    all.filter(|partition| !seen.insert(partition.clone())).collect()
}

/// One request's questions.
struct Lookup<'a> {
    log: &'a Log,
    topics: Arc<Topics>,
    version: i16,
    isolation_level: i8,
    repeated: HashSet<(Str, i32)>,
}

impl Lookup<'_> {
    async fn topic(&self, asked: ListOffsetsTopic) -> ListOffsetsTopicResponse {
        let mut answer = ListOffsetsTopicResponse {
            partitions: Vec::with_capacity(asked.partitions.len()),
            name: asked.name,
        };
        for asked in asked.partitions {
            let found = self.partition(&answer.name, &asked).await;
            let (error_code, place) = match &found {
                Ok(offsets) => (ErrorCode::None, offsets.newest),
                Err(code) => (*code, NOWHERE),
            };
            answer.partitions.push(ListOffsetsPartitionResponse {
                partition_index: asked.partition_index,
                error_code,
                old_style_offsets: found.map_or(Vec::new(), |offsets| offsets.old_style(&asked)),
                timestamp: place.timestamp,
                offset: place.offset,
                leader_epoch: place.leader_epoch,
            });
        }
        answer
    }

    async fn partition(
        &self,
        topic: &Str,
        asked: &ListOffsetsPartition,
    ) -> Result<Offsets, ErrorCode> {
        let index = asked.partition_index;
        if !self.repeated.is_empty() && self.repeated.contains(&(topic.clone(), index)) {
            return Err(ErrorCode::InvalidRequest);
        }
        let wanted = Wanted::from_timestamp(asked.timestamp, self.version)?;
        let id = self.topics.by_name(topic).and_then(|topic| topic.partition(index));
        let id = id.ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let partition = self.log.partition(id).await?;
        let bounds = partition.bounds(asked.current_leader_epoch)?;
        let end = match self.isolation_level {
            0 => bounds.high_watermark,
            1 => bounds.last_stable_offset,
            // Kafka has no error code of its own for a level that there isn't.
            _ => return Err(ErrorCode::UnknownServerError),
        };
        let newest = find(&partition, &bounds, end, wanted).await?;
        Ok(Offsets { newest: newest.unwrap_or(NOWHERE), start: bounds.log_start_offset, end })
    }
}

async fn find(
    partition: &Partition,
    bounds: &Bounds,
    end: i64,
    wanted: Wanted,
) -> Result<Option<Place>, StoreError> {
    let boundary = |offset, leader_epoch| Place { offset, leader_epoch, ..NOWHERE };
    match wanted {
        Wanted::Latest => Ok(Some(boundary(end, bounds.leader_epoch))),
        Wanted::Earliest => {
            let leader_epoch = partition.first_epoch(bounds).await?;
            Ok(Some(boundary(bounds.log_start_offset, leader_epoch)))
        }
        Wanted::MaxTimestamp => partition.find_max_time(bounds, end).await,
        Wanted::Time(timestamp) => partition.find_time(bounds, timestamp, end).await,
        Wanted::Nothing => Ok(None),
    }
}

impl Wanted {
    fn from_timestamp(timestamp: i64, version: i16) -> Result<Self, ErrorCode> {
        if timestamp >= 0 {
            return Ok(Self::Time(timestamp));
        }
        let known =
            |(special, first, _): &&(i64, i16, Self)| *special == timestamp && version >= *first;
        let special = SPECIAL.iter().find(known).ok_or(ErrorCode::UnsupportedVersion)?;
        Ok(special.2)
    }
}

/// What was found in a partition that has records from `start` to `end`.
struct Offsets {
    newest: Place,
    start: i64,
    end: i64,
}

impl Offsets {
    /// The answer of version 0: offsets up to the place that was found, newest first.
    fn old_style(&self, asked: &ListOffsetsPartition) -> Vec<i64> {
        let newest = if self.newest == NOWHERE { self.end } else { self.newest.offset };
        let mut offsets = vec![newest, self.start];
        offsets.dedup();
        offsets.truncate(usize::try_from(asked.max_num_offsets).unwrap_or(0));
        offsets
    }
}
