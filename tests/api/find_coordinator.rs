use crate::broker::Broker;
use crate::storage::Held;
use kelp::messages::api_versions;
use kelp::messages::find_coordinator::{Request, Response};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use std::sync::Arc;

#[test]
fn the_broker_coordinates_every_group() {
    let broker = Broker::start();
    let port = i32::from(broker.port);
    for version in 0..=3 {
        let asked = Request { key: "group".into(), ..Request::default() };
        let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
        assert_eq!(answer.error_code, ErrorCode::None, "version {version}");
        assert_eq!((answer.node_id, &*answer.host, answer.port), (1, "127.0.0.1", port));
        if version >= 1 {
            assert_eq!(answer.error_message.as_deref(), Some("NONE"));
        }
    }
    for version in 4..=6 {
        let coordinator_keys = vec!["a".into(), "".into(), "a".into()];
        let asked = Request { coordinator_keys, ..Request::default() };
        let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
        let keys: Vec<&str> = answer.coordinators.iter().map(|found| &*found.key).collect();
        assert_eq!(keys, ["a", "", "a"]);
        for found in &answer.coordinators {
            assert_eq!(found.error_code, ErrorCode::None);
            assert_eq!((found.node_id, &*found.host, found.port), (1, "127.0.0.1", port));
            assert_eq!(found.error_message.as_deref(), Some(""));
        }
    }
}

#[test]
fn a_host_that_keeps_no_groups_offers_none() {
    let broker = Broker::on(Arc::new(Held::without_groups()), "");
    let asked = api_versions::Request::default();
    let offered: api_versions::Response = broker.ask(ApiKey::ApiVersions, 0, &asked);
    let offers = |api: ApiKey| offered.api_keys.iter().any(|offered| offered.api_key == api.code());
    for api in [ApiKey::JoinGroup, ApiKey::OffsetCommit, ApiKey::OffsetFetch, ApiKey::ListGroups] {
        assert!(!offers(api), "{api:?}");
    }
    // librdkafka takes a broker without it for one that is too old for lz4.
    assert!(offers(ApiKey::FindCoordinator) && offers(ApiKey::InitProducerId));
    let asked = Request { key: "group".into(), ..Request::default() };
    let answer: Response = broker.ask(ApiKey::FindCoordinator, 3, &asked);
    assert_eq!(answer.error_code, ErrorCode::CoordinatorNotAvailable);
}

#[test]
fn transactions_have_no_coordinator_yet() {
    let broker = Broker::start();
    for version in 1..=6 {
        let coordinator_keys = vec!["id".into()];
        let asked = Request { key: "id".into(), key_type: 1, coordinator_keys };
        let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
        let (code, host, port) = match answer.coordinators.first() {
            Some(found) => (found.error_code, &found.host, found.port),
            None => (answer.error_code, &answer.host, answer.port),
        };
        assert_eq!((code, &**host, port), (ErrorCode::CoordinatorNotAvailable, "", -1));
        if version < 4 {
            let message = answer.error_message.as_deref();
            assert_eq!(message, Some("The coordinator is not available."));
        }
    }
}

#[test]
fn a_type_that_no_coordinator_has_is_invalid() {
    let broker = Broker::start();
    for (version, key_type) in [(1, 7), (3, 2), (4, 7), (5, 2), (6, 2)] {
        let coordinator_keys = vec!["x".into()];
        let asked = Request { key: "x".into(), key_type, coordinator_keys };
        let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
        let code = answer.coordinators.first().map_or(answer.error_code, |found| found.error_code);
        assert_eq!(code, ErrorCode::InvalidRequest, "version {version}, type {key_type}");
    }
}
