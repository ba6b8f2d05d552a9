//! How members learn what they are to read.

use super::*;

#[test]
fn followers_wait_for_the_leader_and_each_learns_its_own() {
    let mut driver = Driver::default();
    let ids = driver.completing(3);
    let first = driver.sync(1, &ids[1], &[]);
    let second = driver.sync(1, &ids[2], &[]);
    assert!(driver.is_parked(first) && driver.is_parked(second));

    let leader = driver.sync(1, &ids[0], &[(&ids[0], "a"), (&ids[1], "b"), (&ids[2], "c")]);
    for (ticket, assignment) in [(leader, "a"), (first, "b"), (second, "c")] {
        let synced = driver.synced(ticket);
        assert_eq!(
            (synced.error_code, &synced.assignment[..]),
            (ErrorCode::None, assignment.as_bytes())
        );
        assert_eq!(synced.protocol_type.as_deref(), Some("consumer"));
        assert_eq!(synced.protocol_name.as_deref(), Some("range"));
    }
    assert_eq!(driver.state(), "Stable");
}

#[test]
fn a_follower_after_the_leader_is_answered_at_once() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    driver.sync(1, &ids[0], &[(&ids[0], "a"), (&ids[1], "b")]);
    assert_eq!(driver.state(), "Stable");
    let follower = driver.sync(1, &ids[1], &[]);
    assert_eq!(&driver.synced(follower).assignment[..], b"b");
}

#[test]
fn who_the_leader_forgot_has_nothing() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    let stranger = Str::from_static("stranger");
    driver.sync(1, &ids[0], &[(&ids[0], "a"), (&stranger, "b")]);
    let follower = driver.sync(1, &ids[1], &[]);
    let synced = driver.synced(follower);
    assert_eq!((synced.error_code, &synced.assignment[..]), (ErrorCode::None, &b""[..]));
}

#[test]
fn the_assignments_are_kept_when_the_leader_gives_them() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    let before = driver.records.len();
    let entered = driver.now.wall;
    driver.pass(10);
    driver.sync(1, &ids[1], &[]);
    assert_eq!(driver.records.len(), before);
    driver.sync(1, &ids[0], &[(&ids[0], "a"), (&ids[1], "b")]);

    let [Record::GroupMetadata { key, value: Some(value) }] = &driver.records[before..] else {
        panic!("one record: {:?}", &driver.records[before..])
    };
    assert_eq!((&*key.group, value.generation), (GROUP, 1));
    assert_eq!((&*value.protocol_type, value.protocol.as_deref()), ("consumer", Some("range")));
    assert_eq!(value.leader.as_ref(), Some(&ids[0]));
    // As Kafka's: when the generation began, not when it became stable.
    assert!(value.current_state_timestamp <= entered);
    let mut kept: Vec<_> =
        value.members.iter().map(|m| (&m.member_id, &m.assignment[..])).collect();
    kept.sort_by_key(|(id, _)| **id != ids[0]);
    assert_eq!(kept, [(&ids[0], &b"a"[..]), (&ids[1], b"b")]);
    let member = &value.members[0];
    assert_eq!((&*member.client_id, &*member.client_host), ("client", "/127.0.0.1"));
    assert_eq!((member.session_timeout, member.rebalance_timeout), (SESSION_MS, REBALANCE_MS));
    assert_eq!(&member.subscription[..], b"metadata");
}

#[test]
fn strangers_old_generations_and_other_protocols_are_refused() {
    let mut driver = Driver::default();
    let sync_error = |driver: &mut Driver, request| {
        let ticket = driver.ask(Request::SyncGroup(request));
        driver.synced(ticket).error_code
    };
    let unknown = sync_request(1, "m", &[]);
    assert_eq!(sync_error(&mut driver, unknown.clone()), ErrorCode::UnknownMemberId);
    let unnamed = sync_group::Request { group_id: Str::new(), ..unknown.clone() };
    assert_eq!(sync_error(&mut driver, unnamed), ErrorCode::InvalidGroupId);

    let ids = driver.stable(1);
    assert_eq!(sync_error(&mut driver, unknown), ErrorCode::UnknownMemberId);
    for generation in [0, 2, -1] {
        let error = sync_error(&mut driver, sync_request(generation, &ids[0], &[]));
        assert_eq!(error, ErrorCode::IllegalGeneration);
    }
    let with = |kind: Option<&str>, name: Option<&str>| sync_group::Request {
        protocol_type: kind.map(Into::into),
        protocol_name: name.map(Into::into),
        ..sync_request(1, &ids[0], &[])
    };
    let inconsistent = ErrorCode::InconsistentGroupProtocol;
    assert_eq!(sync_error(&mut driver, with(Some("connect"), None)), inconsistent);
    assert_eq!(sync_error(&mut driver, with(None, Some("sticky"))), inconsistent);
    assert_eq!(sync_error(&mut driver, with(Some("consumer"), Some("range"))), ErrorCode::None);
    assert_eq!(sync_error(&mut driver, with(None, None)), ErrorCode::None);
}

#[test]
fn an_error_tells_neither_protocol_nor_assignment() {
    let mut driver = Driver::default();
    driver.stable(1);
    let refused = driver.sync(1, "stranger", &[]);
    let expected =
        sync_group::Response { error_code: ErrorCode::UnknownMemberId, ..Default::default() };
    assert_eq!(driver.synced(refused), expected);
}

#[test]
fn while_members_join_there_is_nothing_to_learn() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    driver.join_dynamic(&Join::default());
    let ticket = driver.sync(1, &ids[0], &[]);
    assert_eq!(driver.synced(ticket).error_code, ErrorCode::RebalanceInProgress);
}

#[test]
fn a_rebalance_ends_the_wait_for_the_leader() {
    let mut driver = Driver::default();
    let ids = driver.completing(3);
    let waiting = driver.sync(1, &ids[1], &[]);
    let protocols: [(&str, &[u8]); 1] = [("range", b"other")];
    driver.join(&Join { member: &ids[2], protocols: &protocols, ..Join::default() });
    assert_eq!(driver.synced(waiting).error_code, ErrorCode::RebalanceInProgress);
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn a_leader_that_fails_before_it_assigns_is_followed_by_another() {
    // Kafka's testLeaderFailureInSyncGroup.
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    let waiting = driver.sync(1, &ids[1], &[]);
    driver.pass(SESSION_MS.into());
    assert_eq!(driver.synced(waiting).error_code, ErrorCode::RebalanceInProgress);
    assert_eq!(driver.member_ids(), [ids[1].clone()]);

    let rejoined = driver.join(&Join { member: &ids[1], ..Join::default() });
    let joined = driver.joined(rejoined);
    assert_eq!((joined.generation_id, &joined.leader), (2, &ids[1]));
    driver.assign(2, &ids[1], &[ids[1].clone()]);
}

#[test]
fn a_repeated_sync_takes_the_place_of_the_one_before() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    let first = driver.sync(1, &ids[1], &[]);
    let second = driver.sync(1, &ids[1], &[]);
    assert_eq!(driver.synced(first).error_code, ErrorCode::RebalanceInProgress);
    driver.sync(1, &ids[0], &[(&ids[1], "b")]);
    assert_eq!(&driver.synced(second).assignment[..], b"b");
}

#[test]
fn who_does_not_ask_for_its_assignment_is_dropped_after_the_rebalance_timeout() {
    // Kafka's testRebalanceTimesOutWhenSyncRequestIsNotReceived and its variants.
    for asks in [vec![], vec![0], vec![1, 2]] {
        let mut driver = Driver::default();
        let ids = driver.completing(3);
        for asking in &asks {
            driver.sync(1, &ids[*asking], &[]);
        }
        // All go on with heartbeats.
        for _ in 0..REBALANCE_MS / 5_000 {
            driver.pass(5_000);
            for id in &ids {
                driver.beat(1, id);
            }
        }
        let kept: BTreeSet<&Str> = asks.iter().map(|asking| &ids[*asking]).collect();
        let left = driver.member_ids();
        assert_eq!(left.iter().collect::<BTreeSet<_>>(), kept);
        let state = if asks.is_empty() { "Empty" } else { "PreparingRebalance" };
        assert_eq!(driver.state(), state);
    }
}

#[test]
fn once_all_have_asked_the_rebalance_timeout_is_no_more() {
    let mut driver = Driver::default();
    let ids = driver.stable(3);
    for _ in 0..2 * REBALANCE_MS / 5_000 {
        driver.pass(5_000);
        ids.iter().for_each(|id| assert_eq!(driver.beat(1, id), ErrorCode::None));
    }
    assert_eq!((driver.state(), driver.group().generation()), ("Stable", 1));
}
