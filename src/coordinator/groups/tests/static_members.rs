//! Members that keep their place over a restart of their process (KIP-345).

use super::*;

fn as_instance<'a>(instance: &'a str) -> Join<'a> {
    Join { instance: Some(instance), ..Join::default() }
}

const OTHER: &[(&str, &[u8])] = &[("range", b"other topics")];

#[test]
fn a_follower_that_starts_again_goes_on_without_a_rebalance() {
    // Kafka's testStaticMemberRejoinAsFollowerWithUnknownMemberId.
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    let (follower, instance) = if leader == ids[0] { (&ids[1], "two") } else { (&ids[0], "one") };
    let kept = driver.records.len();

    let ticket = driver.join(&as_instance(instance));
    let joined = driver.joined(ticket);
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::None, 1));
    assert_eq!((&joined.leader, joined.members.len()), (&leader, 0));
    assert!(joined.member_id != *follower && !joined.skip_assignment);
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert_eq!(driver.state(), "Stable");

    // The new id is kept, with the assignment of the old one.
    let [Record::GroupMetadata { value: Some(value), .. }] = &driver.records[kept..] else {
        panic!("one record")
    };
    let member = value.members.iter().find(|m| m.member_id == joined.member_id).unwrap();
    assert_eq!(&member.assignment[..], b"some");
    let synced = driver.sync(1, &joined.member_id, &[]);
    assert_eq!(&driver.synced(synced).assignment[..], b"some");
}

#[test]
fn a_leader_that_starts_again_is_told_to_skip_the_assignment() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    let instance = if leader == ids[0] { "one" } else { "two" };

    let ticket = driver.join(&as_instance(instance));
    let joined = driver.joined(ticket);
    assert_eq!((joined.leader == joined.member_id, joined.skip_assignment), (true, true));
    assert_eq!(joined.members.len(), 2);
    assert_eq!(driver.state(), "Stable");
    assert_eq!(driver.group().leader(), Some(&joined.member_id));
}

#[test]
fn before_version_9_a_leader_that_starts_again_takes_itself_for_a_follower() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    let instance = if leader == ids[0] { "one" } else { "two" };

    let ticket = driver.join(&Join { version: 8, ..as_instance(instance) });
    let joined = driver.joined(ticket);
    // It is told the id that it had.
    assert_eq!((&joined.leader, joined.members.len()), (&leader, 0));
    assert_ne!(joined.member_id, leader);
    assert!(!joined.skip_assignment);
    // But it leads: when it joins with the new id, all rejoin.
    driver.join(&Join { member: &joined.member_id, ..as_instance(instance) });
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn each_start_gives_another_id() {
    let mut driver = Driver::default();
    let mut seen = BTreeSet::from([driver.stable_static(&["one"]).remove(0)]);
    for _ in 0..3 {
        let ticket = driver.join(&as_instance("one"));
        assert!(seen.insert(driver.joined(ticket).member_id));
    }
    assert_eq!(driver.group().member_count(), 1);
}

#[test]
fn other_topics_under_the_same_protocol_need_no_rebalance() {
    // Kafka's ...ChangeOfProtocolWhileSelectProtocolUnchanged: the leader sees them next time.
    let mut driver = Driver::default();
    driver.stable_static(&["one", "two"]);
    let ticket = driver.join(&Join { protocols: OTHER, ..as_instance("two") });
    assert_eq!(driver.joined(ticket).generation_id, 1);
    assert_eq!(driver.state(), "Stable");
    let described = driver.describe();
    assert!(described.members.iter().any(|member| &member.member_metadata[..] == b"other topics"));
}

#[test]
fn another_protocol_has_all_rejoin() {
    let mut driver = Driver::default();
    let both: &[(&str, &[u8])] = &[("range", b""), ("sticky", b"")];
    let tickets = ["one", "two"].map(|instance| {
        let join = Join { protocols: both, ..as_instance(instance) };
        driver.join(&join)
    });
    driver.pass(DELAY_MS * 2);
    let ids = tickets.map(|ticket| driver.joined(ticket).member_id);
    let leader = driver.group().leader().cloned().unwrap();
    driver.assign(1, &leader, &ids);

    let sticky: &[(&str, &[u8])] = &[("sticky", b"")];
    let ticket = driver.join(&Join { protocols: sticky, ..as_instance("two") });
    assert!(driver.is_parked(ticket));
    assert_eq!(driver.state(), "PreparingRebalance");
    driver.join(&Join { member: &ids[0], protocols: both, ..as_instance("one") });
    assert_eq!(driver.joined(ticket).protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn who_still_has_the_old_id_is_fenced() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let ticket = driver.join(&as_instance("one"));
    let new = driver.joined(ticket).member_id;
    let fenced = ErrorCode::FencedInstanceId;

    assert_eq!(driver.beat_as(1, &ids[0], Some("one")), fenced);
    assert_eq!(driver.beat_as(1, &new, Some("one")), ErrorCode::None);
    assert_eq!(driver.join_error(&Join { member: &ids[0], ..as_instance("one") }), fenced);
    let request = sync_group::Request {
        group_instance_id: Some("one".into()),
        ..sync_request(1, &ids[0], &[])
    };
    let ticket = driver.ask(Request::SyncGroup(request));
    assert_eq!(driver.synced(ticket).error_code, fenced);
    assert_eq!(driver.leave(&[(&ids[0], Some("one"))]).members[0].error_code, fenced);
    // Without its instance nobody knows the old id.
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::UnknownMemberId);
    assert_eq!(driver.beat_as(1, &new, Some("three")), ErrorCode::UnknownMemberId);
    assert_eq!(driver.beat_as(1, &new, Some("two")), fenced);
}

#[test]
fn a_parked_join_of_the_old_process_is_fenced() {
    // Kafka's testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged.
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let old = driver.join(&Join { member: &ids[1], protocols: OTHER, ..as_instance("two") });
    assert!(driver.is_parked(old));
    let new = driver.join(&as_instance("two"));
    let fenced = driver.joined(old);
    assert_eq!(fenced.error_code, ErrorCode::FencedInstanceId);
    assert_eq!((&fenced.member_id, &*fenced.leader), (&ids[1], ""));
    assert_eq!((fenced.protocol_type, fenced.protocol_name), (None, None));
    driver.join(&Join { member: &ids[0], ..as_instance("one") });
    assert_eq!(driver.joined(new).generation_id, 2);
}

#[test]
fn a_parked_sync_of_the_old_process_is_fenced_and_all_rejoin() {
    // Kafka's testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance and
    // testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged.
    let mut driver = Driver::default();
    let ids = driver.completing_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    let (follower, instance) = if leader == ids[0] { (&ids[1], "two") } else { (&ids[0], "one") };
    let old = driver.sync(1, follower, &[]);
    let new = driver.join(&as_instance(instance));
    assert_eq!(driver.synced(old).error_code, ErrorCode::FencedInstanceId);
    assert!(driver.is_parked(new));
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn a_member_that_joins_twice_at_first_keeps_one_place() {
    let mut driver = Driver::default();
    let first = driver.join(&as_instance("one"));
    let second = driver.join(&as_instance("one"));
    assert_eq!(driver.joined(first).error_code, ErrorCode::FencedInstanceId);
    driver.pass(DELAY_MS);
    assert_eq!(driver.joined(second).error_code, ErrorCode::None);
    assert_eq!(driver.group().member_count(), 1);
}

#[test]
fn a_known_id_rejoins_as_any_member_does() {
    // Kafka's ...RejoinAsFollowerWithKnownMemberIdAndNoProtocolChange and ...MismatchedInstanceId.
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    let at = usize::from(leader == ids[0]);
    let instance = ["one", "two"][at];
    let ticket = driver.join(&Join { member: &ids[at], ..as_instance(instance) });
    assert_eq!(driver.joined(ticket).generation_id, 1);
    assert_eq!(driver.state(), "Stable");

    let mismatched = Join { member: &ids[at], ..as_instance(["one", "two"][1 - at]) };
    assert_eq!(driver.join_error(&mismatched), ErrorCode::FencedInstanceId);
    let unknown = Join { member: &ids[at], ..as_instance("three") };
    assert_eq!(driver.join_error(&unknown), ErrorCode::UnknownMemberId);

    let ticket = driver.join(&Join { member: &leader, ..as_instance(["one", "two"][1 - at]) });
    assert!(driver.is_parked(ticket), "the leader wants a rebalance");
}

#[test]
fn a_member_that_is_away_keeps_its_place_until_its_session_ends() {
    // Kafka's testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout.
    let mut driver = Driver::default();
    let long = |instance| Join { session_ms: 300_000, ..as_instance(instance) };
    let tickets = ["one", "two"].map(|instance| driver.join(&long(instance)));
    driver.pass(DELAY_MS * 2);
    let ids = tickets.map(|ticket| driver.joined(ticket).member_id);
    let leader = driver.group().leader().cloned().unwrap();
    driver.assign(1, &leader, &ids);

    // One more joins; one of the old ones does not rejoin in time, and stays.
    let new = driver.join(&long("three"));
    let rejoined = driver.join(&Join { member: &ids[0], ..long("one") });
    driver.pass(REBALANCE_MS.into());
    for ticket in [new, rejoined] {
        assert_eq!(driver.joined(ticket).generation_id, 2);
    }
    assert!(driver.group().member(&ids[1]).is_some());
    assert_eq!(driver.state(), "CompletingRebalance");
}

#[test]
fn a_leader_that_is_away_is_followed_by_one_that_rejoined() {
    // Kafka's testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout.
    let mut driver = Driver::default();
    let long = |instance| Join { session_ms: 300_000, ..as_instance(instance) };
    let tickets = ["one", "two"].map(|instance| driver.join(&long(instance)));
    driver.pass(DELAY_MS * 2);
    let ids = tickets.map(|ticket| driver.joined(ticket).member_id);
    let leader = driver.group().leader().cloned().unwrap();
    driver.assign(1, &leader, &ids);

    let at = usize::from(leader == ids[0]);
    let protocols = OTHER;
    let follower = Join { member: &ids[at], protocols, ..long(["one", "two"][at]) };
    let ticket = driver.join(&follower);
    driver.pass(REBALANCE_MS.into());
    let joined = driver.joined(ticket);
    assert_eq!((&joined.leader, joined.members.len()), (&ids[at], 2));
}

#[test]
fn when_no_one_rejoins_in_time_the_group_waits_on() {
    // Kafka's testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase.
    let mut driver = Driver::default();
    let long = |instance| Join { session_ms: 300_000, ..as_instance(instance) };
    let tickets = ["one", "two"].map(|instance| driver.join(&long(instance)));
    driver.pass(DELAY_MS * 2);
    let ids = tickets.map(|ticket| driver.joined(ticket).member_id);
    let leader = driver.group().leader().cloned().unwrap();
    driver.assign(1, &leader, &ids);

    let (dynamic, _) = driver.join_dynamic(&Join::default());
    driver.leave(&[(&dynamic, None)]);
    for _ in 0..2 {
        driver.pass(REBALANCE_MS.into());
        assert_eq!((driver.state(), driver.group().generation()), ("PreparingRebalance", 1));
    }
    let ticket = driver.join(&Join { member: &ids[0], ..long("one") });
    driver.pass(REBALANCE_MS.into());
    assert_eq!(driver.joined(ticket).generation_id, 2);
}

#[test]
fn a_rebalance_does_not_hang_on_a_static_member_that_is_gone() {
    // Kafka's testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember.
    let mut driver = Driver::default();
    let long = |instance| Join { session_ms: 300_000, ..as_instance(instance) };
    let tickets = ["one", "two"].map(|instance| driver.join(&long(instance)));
    driver.pass(DELAY_MS * 2);
    let ids = tickets.map(|ticket| driver.joined(ticket).member_id);
    let leader = driver.group().leader().cloned().unwrap();
    driver.assign(1, &leader, &ids);

    let (dynamic, ticket) = driver.join_dynamic(&Join::default());
    driver.pass(REBALANCE_MS.into());
    let joined = driver.joined(ticket);
    assert_eq!((joined.generation_id, &joined.leader), (2, &dynamic));
    // The static ones did not ask for their assignments either, and are given up.
    driver.sync(2, &dynamic, &[]);
    for _ in 0..REBALANCE_MS / 5_000 {
        driver.pass(5_000);
        driver.beat(2, &dynamic);
    }
    assert_eq!(driver.member_ids(), [dynamic]);
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn a_member_that_starts_again_before_it_synced_owes_only_its_own_sync() {
    // In Kafka the old id stays among those that a sync is awaited of, and a rebalance follows.
    let mut driver = Driver::default();
    let ids = driver.completing_static(&["one", "two"]);
    let leader = driver.group().leader().cloned().unwrap();
    driver.sync(1, &leader, &[(&ids[0], "some"), (&ids[1], "some")]);
    let at = usize::from(leader == ids[0]);
    let ticket = driver.join(&as_instance(["one", "two"][at]));
    let new = driver.joined(ticket).member_id;
    driver.sync(1, &new, &[]);
    for _ in 0..2 * REBALANCE_MS / 5_000 {
        driver.pass(5_000);
        driver.beat(1, &leader);
        driver.beat(1, &new);
    }
    assert_eq!((driver.state(), driver.group().generation()), ("Stable", 1));
}
