use crate::broker::{Broker, header};
use bytes::BufMut;
use kelp::messages::api_versions::{ApiVersion, Request, Response};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::{Reader, Wire};

fn from(name: &str, version: &str) -> Request {
    Request {
        client_software_name: name.into(),
        client_software_version: version.into(),
        ..Request::default()
    }
}

#[test]
fn every_version_tells_what_is_served() {
    let broker = Broker::start();
    for version in 0..=5 {
        let answer: Response = broker.ask(ApiKey::ApiVersions, version, &from("rdkafka", "2.10.0"));
        assert_eq!(answer.error_code, ErrorCode::None);
        let keys: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
        // Which these are is said by docs/status.md, and tests/status.rs compares it.
        let served: Vec<i16> = ApiKey::SERVED.iter().map(|api| api.code()).collect();
        assert!(keys == served && keys.is_sorted(), "{keys:?}");
        // librdkafka turns compression off where Produce 0 is not offered.
        let produce = ApiVersion { api_key: 0, min_version: 0, max_version: 13 };
        assert_eq!(answer.api_keys[0], produce);
    }
}

#[test]
fn a_version_that_is_not_spoken_is_answered_in_version_0() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in [6, 99, -1] {
        let mut frame = header(18, version, 7);
        if version > 0 {
            // An empty set of tags, then what only the client understands.
            frame.put_slice(b"\0\x06probe\x041.0\0");
        }
        client.send_frame(&frame);
        let mut reader = Reader::new(client.receive_frame().unwrap(), 0, false);
        assert_eq!(i32::read(&mut reader), Ok(7));
        let answer = Response::read(&mut reader).unwrap();
        assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion);
        let own = ApiVersion { api_key: 18, min_version: 0, max_version: 5 };
        assert_eq!(answer.api_keys, [own]);
    }
    let answer: Response = client.call(ApiKey::ApiVersions, 3, &from("a", "1"));
    assert_eq!(answer.error_code, ErrorCode::None);
}

#[test]
fn a_client_must_have_a_plain_name_and_version() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for (name, version) in [("", ""), ("a b", "1"), ("-a", "1"), ("a", "1-")] {
        for api_version in [3, 4, 5] {
            let request = from(name, version);
            let answer: Response = client.call(ApiKey::ApiVersions, api_version, &request);
            assert_eq!(answer.error_code, ErrorCode::InvalidRequest, "{name:?} {version:?}");
            assert_eq!(answer.api_keys, []);
        }
    }
}

#[test]
fn a_client_that_looks_for_another_broker_is_told_to_start_anew() {
    let broker = Broker::start();
    let cluster = broker.engine.cluster_id();
    for (cluster_id, node_id, code) in [
        (None, -1, ErrorCode::None),
        (Some(&*cluster), 1, ErrorCode::None),
        (Some(&*cluster), 9, ErrorCode::RebootstrapRequired),
        (Some("wrong"), 1, ErrorCode::RebootstrapRequired),
        (Some(""), 1, ErrorCode::RebootstrapRequired),
        (Some(&*cluster), -1, ErrorCode::InvalidRequest),
        (None, 1, ErrorCode::InvalidRequest),
    ] {
        let cluster_id = cluster_id.map(Into::into);
        let request = Request { cluster_id, node_id, ..from("a", "1") };
        let answer: Response = broker.ask(ApiKey::ApiVersions, 5, &request);
        assert_eq!(answer.error_code, code, "{request:?}");
    }
}
