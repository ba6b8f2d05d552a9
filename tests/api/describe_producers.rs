use crate::batch::{Batch, T};
use crate::broker::Broker;
use kelp::messages::describe_producers::{
    PartitionResponse, ProducerState, Request, Response, TopicRequest,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

fn ask(broker: &Broker, topics: &[(&str, &[i32])]) -> Vec<(String, Vec<PartitionResponse>)> {
    let topic = |(name, partitions): &(&str, &[i32])| TopicRequest {
        name: (*name).into(),
        partition_indexes: partitions.to_vec(),
    };
    let request = Request { topics: topics.iter().map(topic).collect() };
    let answer: Response = broker.ask(ApiKey::DescribeProducers, 0, &request);
    answer.topics.into_iter().map(|topic| (topic.name.to_string(), topic.partitions)).collect()
}

/// The producers of partition 0: id, epoch, last sequence and last time behind [`T`].
fn producers(broker: &Broker) -> Vec<(i64, i32, i32, i64)> {
    let partition = ask(broker, &[("clicks", &[0])]).remove(0).1.remove(0);
    assert_eq!((partition.error_code, partition.error_message), (ErrorCode::None, None));
    let state = |producer: &ProducerState| {
        let of_transactions = (producer.coordinator_epoch, producer.current_txn_start_offset);
        assert_eq!(of_transactions, (-1, -1));
        let ProducerState { producer_id, producer_epoch, last_sequence, last_timestamp, .. } =
            *producer;
        (producer_id, producer_epoch, last_sequence, last_timestamp - T)
    };
    partition.active_producers.iter().map(state).collect()
}

#[test]
fn a_producer_is_described_by_its_last_batch() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    broker.produce("clicks", &Batch::of(&["of nobody"]));
    assert_eq!(producers(&broker), []);
    let produce = |producer, times: &[i64], described: &[_]| {
        let batch = Batch { producer, ..Batch::at(times) };
        assert_eq!(broker.produce("clicks", &batch).error_code, ErrorCode::None);
        assert_eq!(producers(&broker), described);
    };
    produce((7, 0, 0), &[5000, 4000], &[(7, 0, 1, 5000)]);
    produce((7, 0, 2), &[1000], &[(7, 0, 2, 1000)]);
    produce((7, 3, 0), &[6000], &[(7, 3, 0, 6000)]);
    produce((8, 0, 0), &[1], &[(7, 3, 0, 6000), (8, 0, 0, 1)]);
}

#[test]
fn each_question_has_its_answer() {
    let broker = Broker::start();
    broker.create("clicks", 2);
    let answers = ask(
        &broker,
        &[("clicks", &[1, 0, 2, -1, 0]), ("others", &[0, 3]), ("a b", &[0]), ("clicks", &[])],
    );
    let of = |name: &str, partitions: &[(i32, ErrorCode, Option<&str>)]| {
        let response = |&(partition_index, error_code, message): &(i32, _, Option<&str>)| {
            let error_message = message.map(Into::into);
            PartitionResponse { partition_index, error_code, error_message, ..Default::default() }
        };
        (name.to_string(), partitions.iter().map(response).collect::<Vec<_>>())
    };
    let (none, unknown) = (ErrorCode::None, ErrorCode::UnknownTopicOrPartition);
    let not_hosted = Some("This server does not host this topic-partition.");
    let invalid = "Topic name is invalid: 'a b' contains one or more characters other than ASCII \
                   alphanumerics, '.', '_' and '-'";
    assert_eq!(
        answers,
        [
            of(
                "clicks",
                &[
                    (1, none, None),
                    (0, none, None),
                    (2, unknown, None),
                    (-1, unknown, None),
                    (0, none, None)
                ]
            ),
            of("others", &[(0, unknown, not_hosted), (3, unknown, not_hosted)]),
            of("a b", &[(0, ErrorCode::InvalidTopicException, Some(invalid))]),
            of("clicks", &[]),
        ]
    );
}
