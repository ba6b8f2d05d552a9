//! What a coordinator knows after a restart.

use super::*;
use crate::messages::records::group_metadata::{Key, MemberMetadata, Value};

#[test]
fn members_go_on_in_the_generation_that_was_kept() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let before = driver.describe();
    driver.restart();
    assert_eq!(driver.describe(), before);
    assert_eq!(driver.group().leader(), Some(&ids[0]));
    ids.iter().for_each(|id| assert_eq!(driver.beat(1, id), ErrorCode::None));
    assert_eq!(driver.may_commit(1, &ids[1]), Ok(()));
    let ticket = driver.sync(1, &ids[1], &[]);
    assert_eq!(&driver.synced(ticket).assignment[..], b"some");
}

#[test]
fn sessions_begin_anew_with_the_restart() {
    // Kafka's testOnLoadedSchedulesClassicGroupMemberHeartbeats.
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    driver.pass(Millis::from(SESSION_MS) - 1);
    driver.restart();
    driver.pass(Millis::from(SESSION_MS) - 1);
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::None);
    driver.pass(1);
    assert_eq!(driver.member_ids(), [ids[0].clone()]);
}

#[test]
fn a_rebalance_that_was_under_way_is_forgotten() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let (new, _) = driver.join_dynamic(&Join::default());
    driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.restart();
    assert_eq!((driver.state(), driver.group().member_count()), ("Stable", 2));
    // Who was new begins again; who is known rejoins.
    let error = driver.join_error(&Join { member: &new, ..Join::default() });
    assert_eq!(error, ErrorCode::UnknownMemberId);
    let ticket = driver.join(&Join { member: &ids[1], ..Join::default() });
    assert_eq!(driver.joined(ticket).generation_id, 1);
}

#[test]
fn a_generation_that_was_not_assigned_is_forgotten_with_its_members() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    driver.generations.clear();
    driver.restart();
    assert_eq!((driver.state(), driver.group().generation()), ("Empty", 0));
    let ticket = driver.sync(1, &ids[0], &[]);
    assert_eq!(driver.synced(ticket).error_code, ErrorCode::UnknownMemberId);
    assert_eq!(driver.beat(1, &ids[0]), ErrorCode::UnknownMemberId);
}

#[test]
fn a_static_member_has_its_place_after_a_restart() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two"]);
    driver.restart();
    assert_eq!(driver.group().member_of_instance("two"), Some(&ids[1]));
    let ticket = driver.join(&Join { instance: Some("two"), ..Join::default() });
    let new = driver.joined(ticket).member_id;
    driver.restart();
    assert_eq!(driver.group().member_of_instance("two"), Some(&new));
    assert_eq!(driver.beat_as(1, &ids[1], Some("two")), ErrorCode::FencedInstanceId);
    assert_eq!(driver.beat_as(1, &new, Some("two")), ErrorCode::None);
}

#[test]
fn empty_groups_and_deleted_ones_are_found_so() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.leave(&[(&ids[0], None)]);
    driver.restart();
    assert_eq!((driver.state(), driver.group().generation()), ("Empty", 2));
    assert_eq!(driver.group().protocol_type().map(|kind| &**kind), Some("consumer"));
    driver.ask(Request::DeleteGroup(GROUP.into()));
    driver.restart();
    assert_eq!(driver.state(), "Dead");
}

#[test]
fn a_group_is_kept_when_it_is_first_heard_of() {
    // Kafka's testGenerateRecordsOnNewClassicGroup.
    let mut driver = Driver::default();
    driver.given_id(&Join::default());
    let value = Value {
        protocol: None,
        leader: None,
        current_state_timestamp: driver.now.wall,
        ..Value::default()
    };
    let key = Key { group: GROUP.into() };
    assert_eq!(driver.records, [Record::GroupMetadata { key, value: Some(value) }]);
}

#[test]
fn groups_of_older_brokers_are_understood() {
    // Version 0 had neither a rebalance timeout nor a timestamp (Kafka's defaults are -1).
    let member = MemberMetadata {
        member_id: "m".into(),
        session_timeout: SESSION_MS,
        rebalance_timeout: -1,
        ..MemberMetadata::default()
    };
    let value = Value {
        protocol_type: "consumer".into(),
        generation: 7,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        current_state_timestamp: -1,
        members: vec![member],
    };
    let record = Record::GroupMetadata { key: Key { group: GROUP.into() }, value: Some(value) };
    let mut driver = Driver { records: vec![record], ..Driver::default() };
    driver.restart();
    assert_eq!((driver.state(), driver.group().generation()), ("Stable", 7));
    assert_eq!(driver.group().members().next().unwrap().rebalance_timeout_ms, SESSION_MS);
    // Its timestamp is not known: the offset's own counts once it is empty.
    driver.pass(Millis::from(SESSION_MS));
    assert_eq!(driver.group().retained_since(5), Some(driver.now.wall));
}

#[test]
fn every_group_that_is_stable_is_found_as_it_was() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two", "three"]);
    driver.join(&Join { instance: Some("two"), ..Join::default() });
    driver.leave(&[("", Some("three"))]);
    let rejoining: Vec<_> = ["one", "two"]
        .map(|instance| {
            let id = driver.group().member_of_instance(instance).unwrap().clone();
            driver.join(&Join { member: &id, instance: Some(instance), ..Join::default() });
            id
        })
        .into();
    let leader = driver.group().leader().cloned().unwrap();
    assert!(ids.contains(&leader) || rejoining.contains(&leader));
    driver.assign(2, &leader, &rejoining);

    let replayed = driver.replayed.groups.get(GROUP).unwrap();
    let live = driver.group();
    assert_eq!(replayed.to_value().members, live.to_value().members);
    assert_eq!((replayed.generation(), replayed.state()), (live.generation(), live.state()));
    assert_eq!(replayed.leader(), live.leader());
}
