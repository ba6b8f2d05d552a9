//! How a client becomes a member, and who may.

use super::*;

#[test]
fn a_new_dynamic_member_is_given_an_id_and_joins_with_it() {
    let mut driver = Driver::default();
    let id = driver.given_id(&Join::default());
    // Kafka's form: the client's id and a UUID.
    let (name, uuid) = str::split_at(&id, "client-".len());
    assert_eq!((name, uuid.len()), ("client-", 36));
    assert_eq!(uuid.matches('-').count(), 4);
    assert_eq!((driver.state(), driver.group().member_count()), ("Empty", 0));

    let ticket = driver.join(&Join { member: &id, ..Join::default() });
    assert!(driver.is_parked(ticket));
    assert_eq!(driver.state(), "PreparingRebalance");
    assert_eq!(driver.member_ids(), [id]);
}

#[test]
fn before_version_4_a_new_member_joins_at_once() {
    for version in 0..4 {
        let mut driver = Driver::default();
        let ticket = driver.join(&Join { version, ..Join::default() });
        assert!(driver.is_parked(ticket));
        driver.pass(DELAY_MS);
        let joined = driver.joined(ticket);
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::None, 1));
        assert_eq!(joined.leader, joined.member_id);
    }
}

#[test]
fn in_version_0_members_rejoin_within_their_session() {
    let mut driver = Driver::default();
    driver.join(&Join { version: 0, rebalance_ms: -1, ..Join::default() });
    let member = driver.group().members().next().unwrap();
    assert_eq!(member.rebalance_timeout_ms, SESSION_MS);
}

#[test]
fn a_static_member_joins_at_once_and_is_named_after_its_instance() {
    let mut driver = Driver::default();
    let ticket = driver.join(&Join { instance: Some("pod-1"), ..Join::default() });
    assert!(driver.is_parked(ticket));
    let id = driver.member_ids().remove(0);
    assert!(id.starts_with("pod-1-"), "{id}");
    assert_eq!(driver.group().member_of_instance("pod-1"), Some(&id));
}

#[test]
fn the_leader_learns_of_all_members_and_a_follower_of_none() {
    let mut driver = Driver::default();
    let protocols: [(&str, &[u8]); 1] = [("range", b"one")];
    let first = driver.join_dynamic(&Join { protocols: &protocols, ..Join::default() });
    let second = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS * 2);

    // The first one that joined leads.
    let (leader, follower) = (driver.joined(first.1), driver.joined(second.1));
    assert_eq!((&leader.leader, &follower.leader), (&first.0, &first.0));
    assert_eq!((&leader.member_id, &follower.member_id), (&first.0, &second.0));
    let told: BTreeMap<_, _> =
        leader.members.iter().map(|member| (&member.member_id, &member.metadata[..])).collect();
    assert_eq!(told, BTreeMap::from([(&first.0, &b"one"[..]), (&second.0, b"metadata")]));
    assert_eq!(follower.members, []);
    for joined in [leader, follower] {
        assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::None, 1));
        assert_eq!(joined.protocol_type.as_deref(), Some("consumer"));
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert!(!joined.skip_assignment);
    }
}

#[test]
fn sessions_outside_of_the_limits_are_refused() {
    let mut driver = Driver::default();
    let mut ask = |session_ms| {
        let ticket = driver.join(&Join { session_ms, instance: Some("i"), ..Join::default() });
        driver.answers.get(&ticket).map(|_| driver.joined(ticket).error_code)
    };
    assert_eq!(ask(5_999), Some(ErrorCode::InvalidSessionTimeout));
    assert_eq!(ask(1_800_001), Some(ErrorCode::InvalidSessionTimeout));
    assert_eq!(ask(6_000), None);
}

#[test]
fn a_group_must_have_a_name() {
    let mut driver = Driver::default();
    let refused = driver.join(&Join { group: "", member: "m", ..Join::default() });
    let refused = driver.joined(refused);
    assert_eq!((refused.error_code, &*refused.member_id), (ErrorCode::InvalidGroupId, "m"));
}

#[test]
fn a_member_id_that_the_group_did_not_give_is_unknown() {
    let mut driver = Driver::default();
    let stranger = Join { member: "stranger", ..Join::default() };
    let ticket = driver.join(&stranger);
    let refused = driver.joined(ticket);
    assert_eq!(refused.error_code, ErrorCode::UnknownMemberId);
    assert_eq!(&*refused.member_id, "stranger");
    // KIP-559: an error tells no protocol.
    assert_eq!((refused.protocol_type, refused.protocol_name), (None, None));
    assert_eq!(driver.state(), "Dead", "no group comes of it");

    driver.stable(1);
    assert_eq!(driver.join_error(&stranger), ErrorCode::UnknownMemberId);
    let ids = driver.member_ids();
    driver.leave(&[(&ids[0], None)]);
    assert_eq!(driver.state(), "Empty");
    assert_eq!(driver.join_error(&stranger), ErrorCode::UnknownMemberId);
}

#[test]
fn an_empty_group_needs_a_protocol_type_and_a_protocol() {
    let mut driver = Driver::default();
    let no_type = Join { kind: "", ..Join::default() };
    assert_eq!(driver.join_error(&no_type), ErrorCode::InconsistentGroupProtocol);
    let no_protocol = Join { protocols: &[], ..Join::default() };
    assert_eq!(driver.join_error(&no_protocol), ErrorCode::InconsistentGroupProtocol);
}

#[test]
fn a_member_needs_the_groups_type_and_a_protocol_that_all_have() {
    let mut driver = Driver::default();
    driver.stable(2);
    let other_type = Join { kind: "connect", ..Join::default() };
    assert_eq!(driver.join_error(&other_type), ErrorCode::InconsistentGroupProtocol);
    let other_protocol = Join { protocols: &[("sticky", b"")], ..Join::default() };
    assert_eq!(driver.join_error(&other_protocol), ErrorCode::InconsistentGroupProtocol);
    let none = Join { protocols: &[], ..Join::default() };
    assert_eq!(driver.join_error(&none), ErrorCode::InconsistentGroupProtocol);
    assert_eq!(driver.state(), "Stable");

    let both = Join { protocols: &[("sticky", b""), ("range", b"")], ..Join::default() };
    assert_eq!(driver.join_error(&both), ErrorCode::MemberIdRequired);
}

#[test]
fn an_emptied_group_takes_another_protocol_type() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.leave(&[(&ids[0], None)]);
    let connect: Join<'_> =
        Join { kind: "connect", protocols: &[("compatible", b"")], ..Join::default() };
    let (_, ticket) = driver.join_dynamic(&connect);
    driver.pass(DELAY_MS);
    let joined = driver.joined(ticket);
    assert_eq!(joined.protocol_type.as_deref(), Some("connect"));
    assert_eq!(joined.protocol_name.as_deref(), Some("compatible"));
}

#[test]
fn the_protocol_is_the_one_that_most_members_prefer_of_those_that_all_have() {
    let mut driver = Driver::default();
    let mut add = |protocols: &[(&str, &[u8])]| {
        driver.join(&Join { version: 3, protocols, ..Join::default() })
    };
    // From Kafka's testSelectProtocolChoosesCompatibleProtocol, and a vote.
    let only_first: &[u8] = b"1";
    add(&[("foo", only_first), ("roundrobin", b"2"), ("range", b"3")]);
    add(&[("range", b"4"), ("roundrobin", b"5")]);
    let last = add(&[("roundrobin", b"6"), ("range", b"7")]);
    driver.pass(DELAY_MS * 2);
    assert_eq!(driver.joined(last).protocol_name.as_deref(), Some("roundrobin"));
}

#[test]
fn an_id_that_was_given_away_is_not_for_a_static_member() {
    let mut driver = Driver::default();
    let id = driver.given_id(&Join::default());
    let error = driver.join_error(&Join { member: &id, instance: Some("i"), ..Join::default() });
    assert_eq!(error, ErrorCode::UnknownServerError);
}

#[test]
fn a_repeated_join_takes_the_place_of_the_one_before() {
    let mut driver = Driver::default();
    let (id, first) = driver.join_dynamic(&Join::default());
    let second = driver.join(&Join { member: &id, ..Join::default() });
    assert_eq!(driver.joined(first).error_code, ErrorCode::RebalanceInProgress);
    driver.pass(DELAY_MS);
    assert_eq!(driver.joined(second).error_code, ErrorCode::None);
    assert_eq!(driver.member_ids(), [id]);
}

#[test]
fn an_unchanged_follower_of_a_stable_group_is_told_its_generation_again() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let ticket = driver.join(&Join { member: &ids[1], ..Join::default() });
    let joined = driver.joined(ticket);
    assert_eq!((joined.error_code, joined.generation_id), (ErrorCode::None, 1));
    assert_eq!((&joined.leader, joined.members.len()), (&ids[0], 0));
    assert_eq!(driver.state(), "Stable");
}

#[test]
fn a_leader_that_rejoins_a_stable_group_wants_a_rebalance() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let leader = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert!(driver.is_parked(leader));
    assert_eq!(driver.state(), "PreparingRebalance");
    let follower = driver.join(&Join { member: &ids[1], ..Join::default() });
    assert_eq!(driver.joined(leader).generation_id, 2);
    assert_eq!(driver.joined(follower).generation_id, 2);
}

#[test]
fn a_follower_that_tells_something_else_causes_a_rebalance() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let protocols: [(&str, &[u8]); 1] = [("range", b"other topics")];
    let changed = Join { member: &ids[1], protocols: &protocols, ..Join::default() };
    let follower = driver.join(&changed);
    assert_eq!(driver.state(), "PreparingRebalance");
    let leader = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.joined(follower).error_code, ErrorCode::None);
    let told = driver.joined(leader).members;
    let told = told.into_iter().find(|member| member.member_id == ids[1]).unwrap();
    assert_eq!(&told.metadata[..], b"other topics");
}

#[test]
fn in_a_generation_that_waits_for_its_leader_an_unchanged_member_is_told_again() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    for (id, members) in [(&ids[0], 2), (&ids[1], 0)] {
        let ticket = driver.join(&Join { member: id, ..Join::default() });
        let joined = driver.joined(ticket);
        assert_eq!((joined.generation_id, joined.members.len()), (1, members));
    }
    assert_eq!(driver.state(), "CompletingRebalance");

    let protocols: [(&str, &[u8]); 1] = [("range", b"other topics")];
    driver.join(&Join { member: &ids[1], protocols: &protocols, ..Join::default() });
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn members_of_other_types_are_served_alike() {
    for (kind, protocol) in [("connect", "sessioned"), ("sr", "v0"), ("consumer", "stream")] {
        let mut driver = Driver::default();
        let join = Join { kind, protocols: &[(protocol, b"\0")], ..Join::default() };
        let (id, ticket) = driver.join_dynamic(&join);
        driver.pass(DELAY_MS);
        assert_eq!(driver.joined(ticket).protocol_name.as_deref(), Some(protocol));
        driver.assign(1, &id, std::slice::from_ref(&id));
        assert_eq!(&*driver.describe().protocol_type, kind);
    }
}
