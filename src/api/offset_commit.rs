//! OffsetCommit: how far a group has read.
//!
//! Version notes: topics go by id from version 10 on.

use super::groups::{answered, fill, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::offset_commit::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::store::topics::{Topic, Topics};

/// The first version that names topics by id.
const IDS_SINCE: i16 = 10;

pub async fn handle(cx: &Context, mut request: Request) -> Reply<Response> {
    let topics = cx.broker.topics();
    let by_id = cx.api_version >= IDS_SINCE;
    let mut response = Response::default();
    for topic in &mut request.topics {
        let refused = refuse(&topics, topic, by_id);
        response.topics.push(refused);
    }
    request.topics.retain(|topic| !topic.partitions.is_empty());
    if request.topics.is_empty() {
        return Reply::Ready(response);
    }
    let group_id = request.group_id.clone();
    let asked = cx.ask(&group_id, shard::Request::OffsetCommit(cx.client(), request));
    reply(asked, |answer| {
        let holes = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        let holes = holes.map(|partition| &mut partition.error_code);
        match answered!(OffsetCommit, answer) {
            Ok(answer) => {
                let answers = answer.topics.iter().flat_map(|topic| &topic.partitions);
                fill(holes, answers.map(|partition| partition.error_code));
            }
            Err(code) => fill(holes, std::iter::repeat(code)),
        }
        response
    })
}

/// Takes the partitions that are not there out of a topic of the request, and names it as the
/// coordinator wants it. Gives the answer for the topic; those that are there have no error yet.
fn refuse(
    topics: &Topics,
    topic: &mut OffsetCommitRequestTopic,
    by_id: bool,
) -> OffsetCommitResponseTopic {
    let (known, unknown) = match by_id {
        true => (topics.by_id(topic.topic_id), ErrorCode::UnknownTopicId),
        false => (topics.by_name(&topic.name), ErrorCode::UnknownTopicOrPartition),
    };
    let code = |partition: &OffsetCommitRequestPartition| match known {
        None => unknown,
        Some(known) if known.partition(partition.partition_index).is_some() => ErrorCode::None,
        Some(_) => ErrorCode::UnknownTopicOrPartition,
    };
    let answer = |partition: &OffsetCommitRequestPartition| OffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: code(partition),
    };
    let partitions = topic.partitions.iter().map(answer).collect();
    topic.partitions.retain(|partition| !code(partition).is_error());
    let (name, topic_id) = (topic.name.clone(), topic.topic_id);
    if let Some(known) = known {
        name_both(topic, known);
    }
    OffsetCommitResponseTopic { name, topic_id, partitions }
}

fn name_both(topic: &mut OffsetCommitRequestTopic, known: &Topic) {
    topic.name = known.name.clone();
    topic.topic_id = known.id;
}
