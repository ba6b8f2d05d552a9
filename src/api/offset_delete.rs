//! OffsetDelete: offsets of a group go, but not those of topics that its members subscribe to.

use super::groups::{answered, fill, reply};
use super::{Context, Reply};
use crate::coordinator::shard;
use crate::messages::offset_delete::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic, Request, Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::store::topics::Topics;

pub async fn handle(cx: &Context, mut request: Request) -> Reply<Response> {
    if request.group_id.is_empty() {
        return Reply::Ready(refused(ErrorCode::InvalidGroupId));
    }
    let known = cx.broker.topics();
    let topics = request.topics.iter_mut().map(|topic| refuse(&known, topic));
    let mut topics: Vec<_> = topics.collect();
    request.topics.retain(|topic| !topic.partitions.is_empty());
    let asked = cx.ask(&request.group_id.clone(), shard::Request::OffsetDelete(request));
    reply(asked, |answer| match answered!(OffsetDelete, answer) {
        Err(code) => refused(code),
        // A group that refuses says nothing of topics.
        Ok(response) if response.error_code.is_error() => response,
        Ok(response) => {
            let answers = response.topics.iter().flat_map(|topic| &topic.partitions);
            let answers = answers.map(|partition| partition.error_code);
            let holes = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
            fill(holes.map(|partition| &mut partition.error_code), answers);
            Response { topics, ..response }
        }
    })
}

fn refused(error_code: ErrorCode) -> Response {
    Response { error_code, ..Response::default() }
}

/// Takes the partitions that are not there out of a topic of the request. Gives the answer for the
/// topic: those that are there have no error yet.
fn refuse(topics: &Topics, topic: &mut OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic {
    let known = topics.by_name(&topic.name);
    let exists = |partition: &OffsetDeleteRequestPartition| {
        known.is_some_and(|known| known.partition(partition.partition_index).is_some())
    };
    let answer = |partition: &OffsetDeleteRequestPartition| OffsetDeleteResponsePartition {
        partition_index: partition.partition_index,
        error_code: match exists(partition) {
            true => ErrorCode::None,
            false => ErrorCode::UnknownTopicOrPartition,
        },
    };
    let partitions = topic.partitions.iter().map(answer).collect();
    topic.partitions.retain(exists);
    OffsetDeleteResponseTopic { name: topic.name.clone(), partitions }
}
