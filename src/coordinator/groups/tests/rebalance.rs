//! How long a rebalance takes, and whom it waits for.

use super::*;

#[test]
fn an_empty_group_waits_for_further_members() {
    // Kafka's testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup.
    let mut driver = Driver::default();
    let (_, ticket) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS - 1);
    assert!(driver.is_parked(ticket));
    driver.pass(1);
    assert_eq!(driver.joined(ticket).generation_id, 1);
}

#[test]
fn the_wait_goes_on_when_new_members_come() {
    // Kafka's testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance.
    let mut driver = Driver::default();
    let (_, first) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS - 1);
    let (_, second) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS);
    assert!(driver.is_parked(first) && driver.is_parked(second));
    driver.pass(1);
    assert_eq!(driver.joined(first).generation_id, 1);
    assert_eq!(driver.joined(second).generation_id, 1);
}

#[test]
fn the_wait_ends_with_the_rebalance_timeout() {
    // Kafka's testDelayRebalanceUptoRebalanceTimeout: a member comes every second.
    let mut driver = Driver::default();
    let short = Join { rebalance_ms: 10_000, ..Join::default() };
    let (_, first) = driver.join_dynamic(&short);
    let began = driver.now.monotonic;
    while driver.is_parked(first) {
        driver.pass(1_000);
        driver.join_dynamic(&short);
    }
    // Two delays, and what is left of the timeout after each: 10 = 3 + 3 + 3 + 1.
    assert_eq!(driver.now.monotonic - began, 10_000);
}

#[test]
fn without_a_delay_the_first_member_has_its_generation_at_once() {
    let mut driver = Driver::new(Config { initial_rebalance_delay_ms: 0, ..config() });
    let (_, ticket) = driver.join_dynamic(&Join::default());
    driver.pass(0);
    assert_eq!(driver.joined(ticket).generation_id, 1);
}

#[test]
fn a_group_that_was_emptied_waits_again() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.leave(&[(&ids[0], None)]);
    let (_, ticket) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS - 1);
    assert!(driver.is_parked(ticket));
    driver.pass(1);
    assert_eq!(driver.joined(ticket).generation_id, 3, "the empty one was the second");
}

#[test]
fn a_group_with_members_waits_for_them_alone() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let (_, new) = driver.join_dynamic(&Join::default());
    driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.pass(1_000);
    assert!(driver.is_parked(new));
    driver.join(&Join { member: &ids[1], ..Join::default() });
    assert_eq!(driver.joined(new).generation_id, 2);
    assert_eq!(driver.group().member_count(), 3);
}

#[test]
fn dynamic_members_that_do_not_rejoin_in_time_are_dropped() {
    // Kafka's testCompleteJoinRemoveNotYetRejoinedDynamicMembers.
    let mut driver = Driver::default();
    let ids = driver.stable(3);
    let rejoined = driver.join(&Join { member: &ids[2], protocols: OTHER, ..Join::default() });
    for _ in 0..REBALANCE_MS / 5_000 - 1 {
        driver.pass(5_000);
        // Heartbeats are no way to rejoin.
        assert_eq!(driver.beat(1, &ids[0]), ErrorCode::RebalanceInProgress);
        assert_eq!(driver.beat(1, &ids[1]), ErrorCode::RebalanceInProgress);
        assert!(driver.is_parked(rejoined));
    }
    driver.pass(5_000);
    let joined = driver.joined(rejoined);
    assert_eq!((joined.generation_id, &joined.leader), (2, &ids[2]));
    assert_eq!(driver.member_ids(), [ids[2].clone()]);
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::UnknownMemberId);
}

const OTHER: &[(&str, &[u8])] = &[("range", b"other topics")];

#[test]
fn the_time_to_rejoin_is_that_of_the_slowest_member() {
    let mut driver = Driver::default();
    let quick = Join { rebalance_ms: 20_000, session_ms: 300_000, ..Join::default() };
    let slow = Join { rebalance_ms: 30_000, ..quick.clone() };
    let joining = [driver.join_dynamic(&quick), driver.join_dynamic(&slow)];
    driver.pass(DELAY_MS * 2);
    let ids = driver.leader_first(&joining);
    driver.assign(1, &ids[0], &ids);

    let new = driver.join_dynamic(&quick).1;
    driver.pass(29_999);
    assert!(driver.is_parked(new));
    driver.pass(1);
    assert_eq!(driver.joined(new).generation_id, 2);
}

#[test]
fn a_member_that_comes_after_the_end_of_a_rebalance_begins_another() {
    // The end of Kafka's testRebalanceCompletesBeforeMemberJoins.
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    let pending = driver.given_id(&Join::default());
    let waiting = driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.pass(Millis::from(SESSION_MS));
    assert_eq!(driver.joined(waiting).generation_id, 2);
    let late = driver.join_error(&Join { member: &pending, ..Join::default() });
    assert_eq!(late, ErrorCode::UnknownMemberId);
    let (_, new) = driver.join_dynamic(&Join::default());
    assert_eq!(driver.state(), "PreparingRebalance");
    driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.joined(new).generation_id, 3);
}

#[test]
fn a_cooperative_rebalance_is_two_generations() {
    // KIP-429: members keep what they have while they rejoin, and rejoin once more when the
    // leader took something from them. The broker takes no part but for its generations.
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    let (new, waiting) = driver.join_dynamic(&Join::default());
    // What the member has goes on being told while it rejoins.
    assert_eq!(&driver.describe().members[0].member_assignment[..], b"some");
    let first = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.joined(first).generation_id, 2);
    assert_eq!(driver.joined(waiting).generation_id, 2);
    driver.assign(2, &ids[0], &[ids[0].clone(), new.clone()]);
    // The first one gave something up: it leads, so its JoinGroup begins the second rebalance.
    let first = driver.join(&Join { member: &ids[0], protocols: OTHER, ..Join::default() });
    assert_eq!(driver.beat(2, &new), ErrorCode::RebalanceInProgress);
    assert_eq!(driver.may_commit(2, &new), Ok(()), "what was read before may be committed");
    let second = driver.join(&Join { member: &new, ..Join::default() });
    assert_eq!(driver.joined(first).generation_id, 3);
    assert_eq!(driver.joined(second).generation_id, 3);
}

#[test]
fn groups_do_not_touch_each_other() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let (_, other) = driver.join_dynamic(&Join { group: "group2", ..Join::default() });
    let (_, another) = driver.join_dynamic(&Join { group: "grou", ..Join::default() });
    driver.pass(DELAY_MS);
    assert_eq!(driver.joined(other).members.len(), 1);
    assert_eq!(driver.joined(another).members.len(), 1);
    ids.iter().for_each(|id| assert_eq!(driver.beat(1, id), ErrorCode::None));
    driver.pass(Millis::from(SESSION_MS) - 1);
    assert_eq!(driver.state(), "Stable");
    let others: Vec<_> = driver.groups().map(|group| (group.id().clone(), group.state())).collect();
    let expected = [("grou", State::CompletingRebalance), (GROUP, State::Stable)];
    assert_eq!(others[..2], expected.map(|(id, state)| (id.into(), state)));
}
