//! How members stay, and what happens to those that are not heard of.

use super::*;

#[test]
fn a_heartbeat_tells_how_the_group_is() {
    let mut driver = Driver::default();
    assert_eq!(driver.beat(1, "m"), ErrorCode::UnknownMemberId);
    let ids = driver.completing(2);
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::None, "while the leader assigns");
    driver.assign(1, &ids[0], &ids);
    assert_eq!(driver.beat(1, &ids[1]), ErrorCode::None);
    assert_eq!(driver.beat(0, &ids[1]), ErrorCode::IllegalGeneration);
    assert_eq!(driver.beat(2, &ids[1]), ErrorCode::IllegalGeneration);
    assert_eq!(driver.beat(1, "stranger"), ErrorCode::UnknownMemberId);

    driver.join_dynamic(&Join::default());
    assert_eq!(driver.beat(1, &ids[1]), ErrorCode::RebalanceInProgress);
    driver.leave(&[(&ids[0], None), (&ids[1], None)]);
    assert_eq!(driver.beat(1, &ids[1]), ErrorCode::UnknownMemberId);
}

#[test]
fn an_emptied_group_knows_no_member() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.leave(&[(&ids[0], None)]);
    assert_eq!((driver.state(), driver.group().generation()), ("Empty", 2));
    assert_eq!(driver.beat(2, &ids[0]), ErrorCode::UnknownMemberId);
}

#[test]
fn a_group_must_have_a_name() {
    let mut driver = Driver::default();
    let ticket = driver.ask(Request::Heartbeat(beat::Request::default()));
    let Response::Heartbeat(response) = &driver.answers[&ticket] else { panic!() };
    assert_eq!(response.error_code, ErrorCode::InvalidGroupId);
}

#[test]
fn heartbeats_keep_a_member_and_silence_ends_its_session() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    for _ in 0..5 {
        driver.pass(Millis::from(SESSION_MS) - 1);
        assert_eq!(driver.beat(1, &ids[0]), ErrorCode::None);
    }
    driver.pass(Millis::from(SESSION_MS) - 1);
    assert_eq!(driver.state(), "Stable");
    driver.pass(1);
    assert_eq!(driver.state(), "Empty");
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::UnknownMemberId);
}

#[test]
fn a_commit_counts_as_a_heartbeat() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.pass(Millis::from(SESSION_MS) - 1);
    let config = driver.shard.config().clone();
    let request = offset_commit::Request {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: 1,
        member_id: ids[0].clone(),
        ..Default::default()
    };
    let effect = driver.shard.groups.at(driver.now, &config).may_commit(8, &request).unwrap();
    driver.shard.note(effect.unwrap().into());
    driver.pass(Millis::from(SESSION_MS) - 1);
    assert_eq!(driver.state(), "Stable");
}

#[test]
fn a_members_silence_has_the_others_rejoin() {
    let mut driver = Driver::default();
    let ids = driver.stable(3);
    driver.pass(Millis::from(SESSION_MS) - 1);
    ids[1..].iter().for_each(|id| assert_eq!(driver.beat(1, id), ErrorCode::None));
    driver.pass(1);
    assert_eq!(driver.state(), "PreparingRebalance");
    assert_eq!(driver.beat(1, &ids[1]), ErrorCode::RebalanceInProgress);
    let tickets = [&ids[1], &ids[2]].map(|id| driver.join(&Join { member: id, ..Join::default() }));
    let joined = tickets.map(|ticket| driver.joined(ticket));
    assert!(joined.iter().all(|joined| joined.generation_id == 2 && joined.leader != ids[0]));
}

#[test]
fn who_waits_for_the_others_needs_no_heartbeat() {
    // Kafka's testClassicGroupMemberSessionTimeoutDuringRebalance.
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let waiting = driver.join(&Join { member: &ids[0], ..Join::default() });
    // The other one is silent: its session ends long before the time to rejoin.
    driver.pass(Millis::from(SESSION_MS));
    assert_eq!(driver.joined(waiting).generation_id, 2);
    assert_eq!(driver.member_ids(), [ids[0].clone()]);
}

#[test]
fn a_session_of_a_member_that_joined_begins_with_the_generation() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.pass(Millis::from(SESSION_MS) - 1);
    driver.join(&Join { member: &ids[1], ..Join::default() });
    assert_eq!(driver.state(), "CompletingRebalance");
    driver.pass(Millis::from(SESSION_MS) - 1);
    assert_eq!(driver.group().member_count(), 2);
    driver.pass(1);
    assert_eq!(driver.state(), "Empty", "neither was heard of");
}

#[test]
fn an_id_that_nobody_joins_with_is_forgotten_after_a_session() {
    let mut driver = Driver::default();
    let id = driver.given_id(&Join::default());
    driver.pass(Millis::from(SESSION_MS));
    let error = driver.join_error(&Join { member: &id, ..Join::default() });
    assert_eq!(error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_rebalance_waits_for_ids_that_were_given_away() {
    // Kafka's testJoinGroupCompletionWhenPendingMemberJoins and ...TimesOut.
    for joins in [true, false] {
        let mut driver = Driver::default();
        let ids = driver.stable(1);
        let pending = driver.given_id(&Join::default());
        let member = driver.join(&Join { member: &ids[0], ..Join::default() });
        assert!(driver.is_parked(member));
        if joins {
            driver.join(&Join { member: &pending, ..Join::default() });
        } else {
            driver.pass(Millis::from(SESSION_MS));
        }
        assert_eq!(driver.joined(member).generation_id, 2);
        assert_eq!(driver.group().member_count(), if joins { 2 } else { 1 });
    }
}

#[test]
fn a_new_member_waits_five_minutes_for_its_first_generation() {
    // Kafka's testNewMemberTimeoutCompletion: its client may be gone, and cannot heartbeat.
    let mut driver = Driver::default();
    let patient = Join { rebalance_ms: 2 * NEW_MEMBER_MS as i32, ..Join::default() };
    let (id, first) = driver.join_dynamic(&patient);
    driver.pass(DELAY_MS);
    assert_eq!(driver.joined(first).generation_id, 1);
    driver.assign(1, &id, std::slice::from_ref(&id));

    let (new, ticket) = driver.join_dynamic(&patient);
    for _ in 0..NEW_MEMBER_MS / 5_000 {
        assert!(driver.is_parked(ticket));
        driver.pass(5_000);
        driver.beat(1, &id);
    }
    assert_eq!(driver.joined(ticket).error_code, ErrorCode::UnknownMemberId);
    assert!(driver.group().member(&new).is_none());
}

#[test]
fn after_its_first_generation_a_member_has_its_own_session() {
    let mut driver = Driver::default();
    let (id, _) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS);
    driver.pass(Millis::from(SESSION_MS));
    assert!(driver.group().member(&id).is_none());
}
