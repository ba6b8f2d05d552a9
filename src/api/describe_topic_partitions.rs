//! DescribeTopicPartitions: topics in the order of their names, so many partitions at a time.
//!
//! The cursor of an answer is where the next request goes on (KIP-966).

use super::successor::leader_epoch;
use super::topics::{check_name, is_internal};
use super::{Broker, Context, TOPIC_OPERATIONS};
use crate::messages::describe_topic_partitions::{
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic, Request,
    Response, ResponseCursor,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::Str;
use crate::store::PartitionId;
use crate::store::topics::Topic;
use std::collections::BTreeSet;
use std::ops::Range;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let broker = &cx.broker;
    let topics = broker.topics();
    let cursor = request.cursor.unwrap_or_default();
    let from_cursor = |name: &Str| *name >= cursor.topic_name;
    let asks_for_all = request.topics.is_empty();
    let names: BTreeSet<Str> = match asks_for_all {
        true => topics.iter().map(|topic| topic.name.clone()).filter(from_cursor).collect(),
        false => {
            request.topics.iter().map(|topic| topic.name.clone()).filter(from_cursor).collect()
        }
    };
    let is_lost =
        !asks_for_all && !cursor.topic_name.is_empty() && !names.contains(&cursor.topic_name);
    if is_lost || cursor.partition_index < 0 {
        return refused(request.topics.into_iter().map(|topic| topic.name));
    }
    let most = broker.config.max_request_partition_size_limit;
    let mut room = request.response_partition_limit.clamp(1, most);
    let mut response = Response::default();
    for name in names {
        if room == 0 {
            response.next_cursor = Some(ResponseCursor { topic_name: name, partition_index: 0 });
            break;
        }
        let Some(topic) = topics.by_name(&name) else {
            if !asks_for_all {
                response.topics.push(unknown(name));
            }
            continue;
        };
        let first = if name == cursor.topic_name { cursor.partition_index } else { 0 };
        let end = topic.partitions.min(first.saturating_add(room));
        room -= (end - first).max(0);
        response.topics.push(describe(broker, topic, first..end));
        if end < topic.partitions {
            response.next_cursor = Some(ResponseCursor { topic_name: name, partition_index: end });
            break;
        }
    }
    response
}

/// What the whole request gets whose cursor is in none of its topics.
fn refused(names: impl Iterator<Item = Str>) -> Response {
    let topic = |name| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::InvalidRequest,
        name: Some(name),
        ..DescribeTopicPartitionsResponseTopic::default()
    };
    Response { topics: names.map(topic).collect(), ..Response::default() }
}

fn unknown(name: Str) -> DescribeTopicPartitionsResponseTopic {
    let problem = check_name(&name).err().map(|refusal| refusal.code);
    DescribeTopicPartitionsResponseTopic {
        error_code: problem.unwrap_or(ErrorCode::UnknownTopicOrPartition),
        is_internal: is_internal(&name),
        name: Some(name),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn describe(
    broker: &Broker,
    topic: &Topic,
    partitions: Range<i32>,
) -> DescribeTopicPartitionsResponseTopic {
    let leader = broker.config.node_id;
    let partition = |index| DescribeTopicPartitionsResponsePartition {
        partition_index: index,
        leader_id: leader,
        leader_epoch: leader_epoch(broker, PartitionId { topic: topic.id, partition: index }),
        replica_nodes: vec![leader],
        isr_nodes: vec![leader],
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        ..DescribeTopicPartitionsResponsePartition::default()
    };
    DescribeTopicPartitionsResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions: partitions.map(partition).collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}
