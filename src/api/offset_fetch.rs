//! OffsetFetch: how far groups have read.
//!
//! Version notes: no topics are all, from version 2 on; before that, an error of the group is told
//! for each partition. Several groups from version 8 on; topics go by id from version 10 on.

use super::groups::answered;
use super::{Context, Reply};
use crate::coordinator::runtime::Asked;
use crate::coordinator::shard;
use crate::messages::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Uuid;
use crate::store::topics::Topics;
use std::sync::Arc;

/// The first version with an error for the whole group.
const GROUP_ERROR_SINCE: i16 = 2;
/// The first version with several groups.
const GROUPS_SINCE: i16 = 8;
/// The first version that names topics by id.
const IDS_SINCE: i16 = 10;

/// The offset of a partition that has none.
const NO_OFFSET: i64 = -1;

pub async fn handle(cx: &Context, request: Request) -> Reply<Response> {
    let version = cx.api_version;
    let topics = cx.broker.topics();
    let groups = match version {
        GROUPS_SINCE.. => request.groups,
        _ => vec![only_group(request)],
    };
    let mut asked: Vec<_> =
        groups.into_iter().map(|group| Fetch::ask(cx, &topics, group)).collect();
    Reply::Deferred(Box::pin(async move {
        if version >= GROUPS_SINCE {
            let mut groups = Vec::with_capacity(asked.len());
            for fetch in asked {
                groups.push(fetch.answer().await);
            }
            return Response { groups, ..Response::default() };
        }
        match asked.pop() {
            Some(fetch) => of_one_group(fetch.answer().await, version),
            None => unreachable!("these versions have one group"),
        }
    }))
}

/// The group of a version that has but one.
fn only_group(request: Request) -> OffsetFetchRequestGroup {
    let topics = request.topics.map(|topics| {
        let topic = |topic: OffsetFetchRequestTopic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..OffsetFetchRequestTopics::default()
        };
        topics.into_iter().map(topic).collect()
    });
    OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }
}

fn of_one_group(group: OffsetFetchResponseGroup, version: i16) -> Response {
    let group_error = match version {
        GROUP_ERROR_SINCE.. => ErrorCode::None,
        _ => group.error_code,
    };
    let partition = |partition: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: if group_error.is_error() { group_error } else { partition.error_code },
    };
    let topic = |topic: OffsetFetchResponseTopics| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    };
    let topics = group.topics.into_iter().map(topic).collect();
    Response { topics, error_code: group.error_code, ..Response::default() }
}

/// One group of a request, while its coordinator is asked.
struct Fetch {
    asked: Asked<shard::Response>,
    group: OffsetFetchRequestGroup,
    version: i16,
    /// Topics by their ids, if the request names them so.
    ids: Option<Arc<Topics>>,
}

impl Fetch {
    fn ask(cx: &Context, topics: &Arc<Topics>, group: OffsetFetchRequestGroup) -> Self {
        let version = cx.api_version;
        let ids = (version >= IDS_SINCE).then(|| topics.clone());
        let mut wanted = group.clone();
        if let (Some(ids), Some(topics)) = (&ids, &mut wanted.topics) {
            topics.retain_mut(|topic| match ids.by_id(topic.topic_id) {
                Some(known) => {
                    topic.name = known.name.clone();
                    true
                }
                None => false,
            });
        }
        let asked = cx.ask(&group.group_id, shard::Request::OffsetFetch(wanted));
        Self { asked, group, version, ids }
    }

    async fn answer(self) -> OffsetFetchResponseGroup {
        let Self { asked, group, version, ids } = self;
        let mut answer = match answered!(OffsetFetch, asked.await) {
            Ok(answer) => answer,
            Err(error_code) => {
                let group_id = group.group_id.clone();
                OffsetFetchResponseGroup { group_id, error_code, ..Default::default() }
            }
        };
        if answer.error_code.is_error() {
            answer.topics.clear();
            if version < GROUP_ERROR_SINCE {
                let topics = group.topics.into_iter().flatten();
                answer.topics = topics.map(|topic| nothing(topic, answer.error_code)).collect();
            }
        } else if let Some(ids) = ids {
            go_by_id(&mut answer, group, &ids);
        }
        answer
    }
}

/// Names the topics of an answer by their ids, and adds those that are not there.
fn go_by_id(answer: &mut OffsetFetchResponseGroup, group: OffsetFetchRequestGroup, ids: &Topics) {
    for topic in &mut answer.topics {
        topic.topic_id = ids.by_name(&topic.name).map_or(Uuid::ZERO, |known| known.id);
    }
    // Offsets may outlive their topic, which has no id then.
    answer.topics.retain(|topic| topic.topic_id != Uuid::ZERO);
    let unknown = group.topics.into_iter().flatten();
    let unknown = unknown.filter(|topic| ids.by_id(topic.topic_id).is_none());
    answer.topics.extend(unknown.map(|topic| nothing(topic, ErrorCode::UnknownTopicId)));
}

fn nothing(topic: OffsetFetchRequestTopics, error_code: ErrorCode) -> OffsetFetchResponseTopics {
    let partition = |partition_index| OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: NO_OFFSET,
        error_code,
        ..Default::default()
    };
    OffsetFetchResponseTopics {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.into_iter().map(partition).collect(),
    }
}
