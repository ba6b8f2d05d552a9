//! `group.max.size`.

use super::*;

const MAX: usize = 2;

fn small() -> Driver {
    Driver::new(Config { max_size: MAX, ..config() })
}

const FULL: ErrorCode = ErrorCode::GroupMaxSizeReached;

#[test]
fn a_full_group_takes_no_one_more() {
    for version in [3, NEWEST] {
        let mut driver = small();
        let ids = driver.stable(MAX);
        let ticket = driver.join(&Join { version, ..Join::default() });
        let refused = driver.joined(ticket);
        assert_eq!((refused.error_code, &*refused.member_id), (FULL, ""));
        let static_one = Join { instance: Some("i"), ..Join::default() };
        assert_eq!(driver.join_error(&static_one), FULL);
        assert_eq!((driver.state(), driver.member_ids().len()), ("Stable", ids.len()));
    }
}

#[test]
fn ids_are_given_away_while_there_is_room_and_the_last_ones_are_refused() {
    // Kafka's testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember.
    let mut driver = small();
    let ids: Vec<Str> = (0..MAX + 1).map(|_| driver.given_id(&Join::default())).collect();
    let tickets: Vec<Ticket> =
        ids.iter().map(|id| driver.join(&Join { member: id, ..Join::default() })).collect();
    assert_eq!(driver.joined(tickets[MAX]).error_code, FULL);
    driver.pass(DELAY_MS * 2);
    assert!(tickets[..MAX].iter().all(|t| driver.joined(*t).error_code == ErrorCode::None));
    // The refused id is forgotten.
    let last = Join { member: &ids[MAX], ..Join::default() };
    assert_eq!(driver.join_error(&last), FULL);
}

#[test]
fn members_of_a_full_group_may_rejoin() {
    // Kafka's testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing.
    let mut driver = small();
    let ids = driver.stable(MAX);
    let first = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.state(), "PreparingRebalance");
    let again = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.joined(first).error_code, ErrorCode::RebalanceInProgress);
    let second = driver.join(&Join { member: &ids[1], ..Join::default() });
    assert_eq!(driver.joined(again).generation_id, 2);
    assert_eq!(driver.joined(second).generation_id, 2);
}

#[test]
fn of_a_group_that_is_too_large_after_a_restart_the_last_ones_go() {
    // Kafka's testOnLoadedExceedGroupMaxSizeTriggersRebalance and
    // testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize.
    let mut driver = Driver::default();
    let ids = driver.stable(MAX + 1);
    driver.shard = Shard::new(Config { max_size: MAX, ..config() });
    driver.restart();
    assert_eq!(driver.state(), "PreparingRebalance");
    let tickets: Vec<Ticket> =
        ids.iter().map(|id| driver.join(&Join { member: id, ..Join::default() })).collect();
    assert_eq!(driver.joined(tickets[MAX]).error_code, FULL);
    driver.pass(REBALANCE_MS.into());
    for ticket in &tickets[..MAX] {
        assert_eq!(driver.joined(*ticket).generation_id, 2);
    }
    assert_eq!(driver.group().member_count(), MAX);
}

#[test]
fn a_group_does_not_hold_on_to_requests_and_parts_of_the_log() {
    // A request of which all texts are slices, with much besides.
    let frame = Bytes::from([&[b'x'; 1000][..], b"groupconsumer"].concat());
    let text = |range: std::ops::Range<usize>| Str::try_from(frame.slice(range)).unwrap();
    let mut driver = Driver::default();
    let client = Client { id: text(0..5), ..driver.client(3) };
    let protocol =
        join_group::JoinGroupRequestProtocol { name: "range".into(), ..Default::default() };
    driver.ask(Request::JoinGroup(
        client,
        join_group::Request {
            group_id: text(1000..1005),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            group_instance_id: Some(text(0..3)),
            protocol_type: text(1005..1013),
            protocols: vec![protocol],
            ..Default::default()
        },
    ));
    driver.pass(DELAY_MS);
    assert_eq!(driver.group().member_count(), 1);
    assert!(frame.is_unique());
}

#[test]
fn ids_that_nobody_joins_with_have_a_limit() {
    let mut driver = Driver::default();
    let first = driver.given_id(&Join::default());
    let mut group = driver.group().clone();
    for id in (0..10_000).map(|i| Str::from(format!("id-{i}"))) {
        group.pending.insert(id.clone(), ());
        let timer = Timer { group: GROUP.into(), what: Due::Session(id) };
        driver.shard.note(super::super::Effect::Set(timer, Millis::MAX).into());
    }
    driver.shard.note(super::super::Effect::Group(group.into()).into());
    assert_eq!(driver.join_error(&Join::default()), ErrorCode::RebalanceInProgress);
    driver.join(&Join { member: &first, ..Join::default() });
    assert_eq!(driver.member_ids(), [first]);
}
