use crate::broker::Broker;
use kelp::messages::init_producer_id::{Request, Response};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use std::collections::HashSet;

fn ask(broker: &Broker, version: i16, request: &Request) -> (ErrorCode, i64, i16) {
    let answer: Response = broker.ask(ApiKey::InitProducerId, version, request);
    (answer.error_code, answer.producer_id, answer.producer_epoch)
}

fn idempotent() -> Request {
    Request { transactional_id: None, transaction_timeout_ms: 60_000, ..Request::default() }
}

#[test]
fn every_producer_gets_an_id_of_its_own() {
    let broker = Broker::start();
    let mut seen = HashSet::new();
    for version in 0..=5 {
        let (code, id, epoch) = ask(&broker, version, &idempotent());
        assert_eq!((code, epoch), (ErrorCode::None, 0), "version {version}");
        assert!(id >= 0 && seen.insert(id));
    }
    // Without a transactional id the timeout means nothing.
    let request = Request { transaction_timeout_ms: -1, ..idempotent() };
    assert_eq!(ask(&broker, 5, &request).0, ErrorCode::None);
}

#[test]
fn a_producer_that_has_an_id_gets_another() {
    let broker = Broker::start();
    let (_, first, _) = ask(&broker, 5, &idempotent());
    for (id, epoch) in [(first, 0), (first, 32_767), (1 << 40, 3), (-7, -7)] {
        let request = Request { producer_id: id, producer_epoch: epoch, ..idempotent() };
        let (code, producer_id, producer_epoch) = ask(&broker, 5, &request);
        assert_eq!((code, producer_epoch), (ErrorCode::None, 0));
        assert_ne!(producer_id, id);
    }
    for (id, epoch) in [(first, -1), (-1, 3)] {
        let request = Request { producer_id: id, producer_epoch: epoch, ..idempotent() };
        assert_eq!(ask(&broker, 5, &request), (ErrorCode::InvalidRequest, -1, -1));
    }
}

/// Kafka answers so while its coordinator is not up.
#[test]
fn there_are_no_transactions_yet() {
    let broker = Broker::start();
    let request = Request { transactional_id: Some("tx".into()), ..idempotent() };
    assert_eq!(ask(&broker, 5, &request), (ErrorCode::CoordinatorNotAvailable, -1, -1));
    let request = Request { transactional_id: Some("".into()), ..idempotent() };
    assert_eq!(ask(&broker, 5, &request), (ErrorCode::InvalidRequest, -1, -1));
}
