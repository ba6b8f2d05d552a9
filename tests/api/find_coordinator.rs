use crate::broker::Broker;
use kelp::messages::find_coordinator::{Request, Response};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;

#[test]
fn there_is_no_coordinator_yet() {
    let broker = Broker::start();
    for version in 0..=3 {
        for key_type in [0, 1] {
            let asked = Request { key: "group".into(), key_type, ..Request::default() };
            let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
            assert_eq!(answer.error_code, ErrorCode::CoordinatorNotAvailable);
            assert_eq!((answer.node_id, &*answer.host, answer.port), (-1, "", -1));
            if version >= 1 {
                let message = answer.error_message.as_deref();
                assert_eq!(message, Some("The coordinator is not available."));
            }
        }
    }
}

#[test]
fn every_key_of_a_batch_is_answered() {
    let broker = Broker::start();
    for version in 4..=6 {
        let coordinator_keys = vec!["a".into(), "b".into(), "a".into()];
        let asked = Request { coordinator_keys, ..Request::default() };
        let answer: Response = broker.ask(ApiKey::FindCoordinator, version, &asked);
        let keys: Vec<&str> = answer.coordinators.iter().map(|found| &*found.key).collect();
        assert_eq!(keys, ["a", "b", "a"]);
        for found in &answer.coordinators {
            assert_eq!(found.error_code, ErrorCode::CoordinatorNotAvailable);
            assert_eq!((found.node_id, &*found.host, found.port), (-1, "", -1));
            assert_eq!(found.error_message.as_deref(), Some(""));
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
