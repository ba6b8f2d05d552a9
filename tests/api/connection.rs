//! What a connection does with peers that are slow, wrong or gone.

use crate::batch::Batch;
use crate::broker::{Broker, Client, PATIENCE, header};
use bytes::{BufMut, Bytes, BytesMut};
use kelp::messages::{api_versions, describe_cluster, fetch, metadata};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use std::io::{Error, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// That the broker goes on serving others.
fn assert_serves(broker: &Broker) {
    let answer: describe_cluster::Response =
        broker.ask(ApiKey::DescribeCluster, 0, &describe_cluster::Request::default());
    assert_eq!(answer.error_code, ErrorCode::None);
}

/// What a new client sees that sends these bytes.
fn after_sending(broker: &Broker, bytes: &[u8]) -> Client {
    let mut client = broker.connect();
    client.stream.write_all(bytes).unwrap();
    client
}

fn framed(frame: &[u8]) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u32(frame.len() as u32);
    bytes.put_slice(frame);
    bytes.freeze()
}

#[test]
fn lengths_that_cannot_be_close_the_connection() {
    let broker = Broker::with("socket.request.max.bytes=1000");
    for length in [-1, i32::MIN, 1001, i32::MAX] {
        let mut client = after_sending(&broker, &length.to_be_bytes());
        assert!(client.is_closed(), "length {length}");
    }
    // As long as allowed, but garbage.
    assert!(after_sending(&broker, &framed(&[0xff; 1000])).is_closed());
    assert_serves(&broker);
}

#[test]
fn garbage_closes_the_connection() {
    let broker = Broker::start();
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n".to_vec(),
        framed(b"").to_vec(),
        framed(b"\0\x12\0").to_vec(),
        // Metadata whose array is longer than its frame.
        framed(&[&header(3, 1, 1)[..], &[0x7f, 0xff, 0xff, 0xff]].concat()).to_vec(),
    ] {
        assert!(after_sending(&broker, &bytes).is_closed(), "{bytes:?}");
    }
    assert_serves(&broker);
}

#[test]
fn what_stands_behind_a_body_is_ignored() {
    let broker = Broker::start();
    let mut client = after_sending(&broker, &framed(&[&header(18, 0, 9)[..], b"more"].concat()));
    let (id, answer): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
    assert_eq!((id, answer.error_code), (9, ErrorCode::None));
}

#[test]
fn what_is_not_offered_closes_the_connection() {
    let broker = Broker::start();
    for (api_key, version) in [(3, 14), (3, -1), (8, 0), (7, 0), (999, 0), (-1, 0)] {
        let mut client = after_sending(&broker, &framed(&header(api_key, version, 1)));
        assert!(client.is_closed(), "key {api_key} version {version}");
    }
    assert_serves(&broker);
}

#[test]
fn answers_before_garbage_are_given() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let good = client.frame(ApiKey::ApiVersions, 0, &api_versions::Request::default());
    let bytes = [&framed(&good)[..], &framed(b"garbage")].concat();
    client.stream.write_all(&bytes).unwrap();
    let (correlation_id, _): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
    assert_eq!(correlation_id, 1);
    assert!(client.is_closed());
}

#[test]
fn requests_come_in_any_pieces() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let mut bytes = BytesMut::new();
    for _ in 0..100 {
        let frame = client.frame(ApiKey::ApiVersions, 0, &api_versions::Request::default());
        bytes.put(framed(&frame));
    }
    let one_at_a_time = bytes.split_to(50);
    for byte in &one_at_a_time[..] {
        client.stream.write_all(&[*byte]).unwrap();
    }
    client.stream.write_all(&bytes).unwrap();
    for i in 1..=100 {
        let (id, _): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
        assert_eq!(id, i);
    }
}

#[test]
fn a_large_frame_is_read_whole() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let names = (0..20_000).map(|i| metadata::MetadataRequestTopic {
        name: Some(format!("a topic with a long name and the number {i}").into()),
        ..Default::default()
    });
    let asked = metadata::Request { topics: Some(names.collect()), ..Default::default() };
    for _ in 0..3 {
        let answer: metadata::Response = client.call(ApiKey::Metadata, 12, &asked);
        assert_eq!(answer.topics.len(), 20_000);
        assert_eq!(answer.topics[19_999].error_code, ErrorCode::InvalidTopicException);
    }
}

#[test]
fn answers_come_in_the_order_of_requests_though_one_waits() {
    let broker = Broker::start();
    broker.create("clicks", 1);
    let mut client = broker.connect();
    let partition = fetch::FetchPartition {
        partition_max_bytes: 1000,
        current_leader_epoch: -1,
        ..Default::default()
    };
    let topic = fetch::FetchTopic {
        topic: "clicks".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let poll = fetch::Request {
        max_wait_ms: 60_000,
        min_bytes: 1,
        max_bytes: 1000,
        topics: vec![topic],
        ..Default::default()
    };
    let first = client.send(ApiKey::ApiVersions, 0, &api_versions::Request::default());
    let second = client.send(ApiKey::Fetch, 12, &poll);
    let third = client.send(ApiKey::ApiVersions, 0, &api_versions::Request::default());
    let (id, _): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
    assert_eq!(id, first);
    // Only now is there something to read: the first answer did not wait with the poll.
    broker.produce("clicks", &Batch::of(&["a"]));
    let (id, fetched): (i32, fetch::Response) = client.receive(ApiKey::Fetch, 12);
    assert_eq!((id, fetched.responses[0].partitions[0].error_code), (second, ErrorCode::None));
    let (id, _): (i32, api_versions::Response) = client.receive(ApiKey::ApiVersions, 0);
    assert_eq!(id, third);
}

#[test]
fn a_client_that_goes_away_in_the_middle_leaves_nothing_behind() {
    let broker = Broker::with("max.connections=1");
    let mut half = broker.connect();
    half.stream.write_all(&[0, 0, 0, 100, 0, 3]).unwrap();
    drop(half);
    let mut poll = connect_when_there_is_room(&broker);
    let waiting = fetch::Request { max_wait_ms: 60_000, min_bytes: 1, ..Default::default() };
    poll.send(ApiKey::Fetch, 12, &waiting);
    drop(poll);
    connect_when_there_is_room(&broker);
}

/// Connects until the broker does not close the connection at once.
fn connect_when_there_is_room(broker: &Broker) -> Client {
    let begin = Instant::now();
    loop {
        let mut client = broker.connect();
        let frame = client.frame(ApiKey::ApiVersions, 0, &api_versions::Request::default());
        let sent = client.stream.write_all(&framed(&frame));
        if sent.is_ok() && client.receive_frame().is_some() {
            return client;
        }
        assert!(begin.elapsed() < PATIENCE, "the connection before is still counted");
    }
}

#[test]
fn connections_beyond_the_limit_are_closed() {
    for limit in ["max.connections=2", "max.connections.per.ip=2"] {
        let broker = Broker::with(limit);
        let _first = connect_when_there_is_room(&broker);
        let _second = connect_when_there_is_room(&broker);
        assert!(broker.connect().is_closed(), "{limit}");
    }
}

#[test]
fn idle_connections_are_closed() {
    let broker = Broker::with("connections.max.idle.ms=4000");
    let begin = Instant::now();
    let mut silent = broker.connect();
    let mut half = after_sending(&broker, &[0, 0, 0, 100, 0, 3]);
    let mut busy = broker.connect();
    for client in [&mut silent, &mut half] {
        client.stream.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
        while let Err(error) = client.stream.read(&mut [0]) {
            assert!(is_late(&error) && begin.elapsed() < PATIENCE, "{error}");
            let request = api_versions::Request::default();
            let _: api_versions::Response = busy.call(ApiKey::ApiVersions, 0, &request);
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_stopped_and_then_closed() {
    let broker = Broker::with("connections.max.idle.ms=3000");
    let mut client = broker.connect();
    // Each answer is about as long as its request; what the sockets hold between them is small
    // beside all of these.
    let name = "x".repeat(30_000);
    let topic = metadata::MetadataRequestTopic { name: Some(name.into()), ..Default::default() };
    let asked = metadata::Request { topics: Some(vec![topic]), ..Default::default() };
    client.stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut sent = 0;
    let end = loop {
        let frame = client.frame(ApiKey::Metadata, 9, &asked);
        match client.stream.write_all(&framed(&frame)) {
            Ok(()) => sent += frame.len(),
            Err(error) => break error,
        }
        assert!(sent < 200 << 20, "the broker goes on reading");
    };
    assert!(is_late(&end), "{end}");
    assert_serves(&broker);
    let begin = Instant::now();
    while client.stream.write(&[0]).map_or_else(|error| is_late(&error), |_| true) {
        assert!(begin.elapsed() < PATIENCE, "the connection is still open");
    }
    assert_serves(&broker);
}

fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
