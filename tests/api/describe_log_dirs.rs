use crate::batch::Batch;
use crate::broker::Broker;
use kelp::messages::alter_replica_log_dirs as alter;
use kelp::messages::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsResult, Request, Response,
};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::store::objects::directory::{Directory, Durability};
use std::sync::Arc;

type Asked<'a> = &'a [(&'a str, &'a [i32])];

fn ask(broker: &Broker, version: i16, topics: Option<Asked>) -> DescribeLogDirsResult {
    let topic = |(name, partitions): &(&str, &[i32])| DescribableLogDirTopic {
        topic: (*name).into(),
        partitions: partitions.to_vec(),
    };
    let topics = topics.map(|topics| topics.iter().map(topic).collect());
    let answer: Response = broker.ask(ApiKey::DescribeLogDirs, version, &Request { topics });
    assert_eq!((answer.error_code, answer.results.len()), (ErrorCode::None, 1));
    let result = answer.results.into_iter().next().unwrap();
    assert_eq!(result.error_code, ErrorCode::None);
    assert_eq!((result.total_bytes, result.usable_bytes, result.is_cordoned), (-1, -1, false));
    result
}

/// Topics with the sizes of their partitions.
fn sizes(result: &DescribeLogDirsResult) -> Vec<(String, Vec<(i32, i64)>)> {
    let topics = result.topics.iter().map(|topic| {
        let sizes = topic.partitions.iter().map(|partition| {
            assert_eq!((partition.offset_lag, partition.is_future_key), (0, false));
            (partition.partition_index, partition.partition_size)
        });
        (topic.name.to_string(), sizes.collect())
    });
    topics.collect()
}

#[test]
fn partitions_are_as_large_as_their_batches() {
    let broker = Broker::start();
    broker.create("clicks", 2);
    broker.create("others", 1);
    let batch = Batch::of(&["a", "b"]);
    broker.produce("clicks", &batch);
    broker.produce("clicks", &batch);
    let bytes = 2 * batch.encode().len() as i64;
    let clicks = ("clicks".to_string(), vec![(0, bytes), (1, 0)]);
    let others = ("others".to_string(), vec![(0, 0)]);
    for version in 0..=5 {
        let all = sizes(&ask(&broker, version, None));
        assert_eq!(all, [clicks.clone(), others.clone()], "version {version}");
        // As Kafka, it leaves out what is not there.
        let asked: Asked = &[("clicks", &[0, 1, 2, -1, 0]), ("others", &[7]), ("nothing", &[0])];
        assert_eq!(sizes(&ask(&broker, version, Some(asked))), std::slice::from_ref(&clicks));
        assert!(ask(&broker, version, Some(&[])).topics.is_empty());
    }
}

#[test]
fn a_directory_is_the_log_directory_and_nothing_can_be_moved_elsewhere() {
    let at = tempfile::tempdir().unwrap();
    let objects = Directory::open(at.path(), Durability::Process).unwrap();
    let broker = Broker::sharing(Arc::new(objects), "");
    broker.create("clicks", 1);
    let path = at.path().display().to_string();
    assert_eq!(&*ask(&broker, 5, None).log_dir, path);

    let dir = |path: &str| alter::AlterReplicaLogDir {
        path: path.into(),
        topics: vec![
            alter::AlterReplicaLogDirTopic { name: "clicks".into(), partitions: vec![0, 7] },
            alter::AlterReplicaLogDirTopic { name: "nothing".into(), partitions: vec![0] },
        ],
    };
    let (elsewhere, unknown) = (ErrorCode::LogDirNotFound, ErrorCode::UnknownTopicOrPartition);
    let expected = [elsewhere, elsewhere, elsewhere, ErrorCode::None, unknown, unknown];
    for version in 0..=2 {
        let request = alter::Request { dirs: vec![dir("/elsewhere"), dir(&path)] };
        let answer: alter::Response = broker.ask(ApiKey::AlterReplicaLogDirs, version, &request);
        let codes = answer.results.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<_> = codes.map(|partition| partition.error_code).collect();
        assert_eq!(codes, expected, "version {version}");
    }
}
