//! The expected answers are those of Apache Kafka 4.4 to the same requests.

use crate::broker::Broker;
use kelp::messages::describe_topic_partitions::{Cursor, Request, Response, TopicRequest};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

/// What is told of one topic: its name, code and partitions.
type Told = (String, ErrorCode, Vec<i32>);

/// What is answered, and where the next request goes on.
fn ask(
    broker: &Broker,
    names: &[&str],
    limit: i32,
    cursor: Option<(&str, i32)>,
) -> (Vec<Told>, Option<(String, i32)>) {
    let request = Request {
        topics: names.iter().map(|name| TopicRequest { name: (*name).into() }).collect(),
        response_partition_limit: limit,
        cursor: cursor
            .map(|(topic, partition_index)| Cursor { topic_name: topic.into(), partition_index }),
    };
    let answer: Response = broker.ask(ApiKey::DescribeTopicPartitions, 0, &request);
    let next = answer.next_cursor.map(|next| (next.topic_name.to_string(), next.partition_index));
    let topics = answer.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        (topic.name.unwrap_or_default().to_string(), topic.error_code, partitions.collect())
    });
    (topics.collect(), next)
}

fn told(name: &str, code: ErrorCode, partitions: &[i32]) -> Told {
    (name.to_string(), code, partitions.to_vec())
}

#[test]
fn topics_come_in_the_order_of_their_names_up_to_the_limit() {
    let broker = Broker::start();
    broker.create("t3", 3);
    let all = told("t3", ErrorCode::None, &[0, 1, 2]);
    let unknown = |name| told(name, ErrorCode::UnknownTopicOrPartition, &[]);
    let bad = told("bad name", ErrorCode::InvalidTopicException, &[]);
    let next = |name: &str, partition| Some((name.to_string(), partition));

    assert_eq!(ask(&broker, &[], 10, None), (vec![all.clone()], None));
    let two = told("t3", ErrorCode::None, &[0, 1]);
    assert_eq!(
        ask(&broker, &["nope", "bad name", "t3"], 2, None),
        (vec![bad, unknown("nope"), two], next("t3", 2))
    );
    assert_eq!(
        ask(&broker, &["a", "t3", "u"], 3, None),
        (vec![unknown("a"), all.clone()], next("u", 0))
    );
    let first = told("t3", ErrorCode::None, &[0]);
    assert_eq!(ask(&broker, &["t3"], -5, None), (vec![first], next("t3", 1)));
}

#[test]
fn the_cursor_is_where_it_goes_on() {
    let broker = Broker::start();
    broker.create("t3", 3);
    let second = told("t3", ErrorCode::None, &[1]);
    let next = Some(("t3".to_string(), 2));
    assert_eq!(ask(&broker, &["t3"], 1, Some(("t3", 1))), (vec![second], next));
    let none = told("t3", ErrorCode::None, &[]);
    assert_eq!(ask(&broker, &["t3"], 1, Some(("t3", 7))), (vec![none], None));

    let refused = told("t3", ErrorCode::InvalidRequest, &[]);
    for lost in [("zz", 0), ("t3", -1)] {
        assert_eq!(ask(&broker, &["t3"], 1, Some(lost)), (vec![refused.clone()], None));
    }
}

#[test]
fn no_answer_has_more_partitions_than_the_broker_wants() {
    let broker = Broker::with("max.request.partition.size.limit=2");
    broker.create("t3", 3);
    let two = told("t3", ErrorCode::None, &[0, 1]);
    assert_eq!(ask(&broker, &[], 2000, None), (vec![two], Some(("t3".to_string(), 2))));
}
