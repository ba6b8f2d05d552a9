//! What administrators see and delete.

use super::*;
use crate::messages::records::group_metadata::Key;
use crate::messages::{delete_groups, list_groups};

fn list(driver: &mut Driver, states: &[&str], types: &[&str]) -> Vec<list_groups::ListedGroup> {
    let ticket = driver.ask(Request::ListGroups(list_groups::Request {
        states_filter: states.iter().map(|state| (*state).into()).collect(),
        types_filter: types.iter().map(|kind| (*kind).into()).collect(),
    }));
    match &driver.answers[&ticket] {
        Response::ListGroups(groups) => groups.clone(),
        other => panic!("{other:?}"),
    }
}

fn names(groups: Vec<list_groups::ListedGroup>) -> Vec<Str> {
    groups.into_iter().map(|group| group.group_id).collect()
}

fn delete(driver: &mut Driver, group: &str) -> delete_groups::DeletableGroupResult {
    let ticket = driver.ask(Request::DeleteGroup(group.into()));
    match &driver.answers[&ticket] {
        Response::DeleteGroup(result) => result.clone(),
        other => panic!("{other:?}"),
    }
}

/// Somebody commits an offset without being a member.
fn commit_alone(driver: &mut Driver, group: &str) {
    use crate::messages::records::offset_commit::{Key, Value};
    let key = Key { group: group.into(), topic: "t".into(), partition: 0 };
    let value = Value { commit_timestamp: driver.now.wall, ..Value::default() };
    driver.shard.apply(Record::OffsetCommit { key, value: Some(value) });
}

#[test]
fn a_stable_group_is_described_with_all_its_members_have() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let described = driver.describe();
    assert_eq!((described.error_code, &*described.group_id), (ErrorCode::None, GROUP));
    assert_eq!(&*described.group_state, "Stable");
    assert_eq!((&*described.protocol_type, &*described.protocol_data), ("consumer", "range"));
    let mut members = described.members;
    members.sort_by_key(|member| member.member_id != ids[0]);
    let [first, _] = &members[..] else { panic!("{members:?}") };
    assert_eq!((&first.member_id, &first.group_instance_id), (&ids[0], &None));
    assert_eq!((&*first.client_id, &*first.client_host), ("client", "/127.0.0.1"));
    assert_eq!(&first.member_metadata[..], b"metadata");
    assert_eq!(&first.member_assignment[..], b"some");
}

#[test]
fn a_group_that_rebalances_is_described_without_a_protocol() {
    let mut driver = Driver::default();
    driver.joining(1);
    for state in ["PreparingRebalance", "CompletingRebalance"] {
        let described = driver.describe();
        assert_eq!(&*described.group_state, state);
        assert_eq!((&*described.protocol_type, &*described.protocol_data), ("consumer", ""));
        assert_eq!(described.members.len(), 1);
        assert_eq!(&described.members[0].member_metadata[..], b"");
        driver.pass(DELAY_MS);
    }
}

#[test]
fn a_group_that_is_not_there_is_dead() {
    let mut driver = Driver::default();
    for (version, error) in [(5, ErrorCode::None), (6, ErrorCode::GroupIdNotFound)] {
        let client = driver.client(version);
        let ticket = driver.ask(Request::DescribeGroup(client, "gone".into()));
        let Response::DescribeGroup(described) = &driver.answers[&ticket] else { panic!() };
        assert_eq!((&*described.group_id, &*described.group_state), ("gone", "Dead"));
        assert_eq!(described.error_code, error);
        assert_eq!(described.error_message.is_some(), error.is_error());
    }
}

#[test]
fn groups_are_listed_with_their_states_and_types() {
    let mut driver = Driver::default();
    assert_eq!(list(&mut driver, &[], &[]), []);
    driver.stable(1);
    commit_alone(&mut driver, "simple");
    let listed = |id: &str, protocol_type: &str, state: &str| list_groups::ListedGroup {
        group_id: id.into(),
        protocol_type: protocol_type.into(),
        group_state: state.into(),
        group_type: "classic".into(),
    };
    let all = [listed(GROUP, "consumer", "Stable"), listed("simple", "", "Empty")];
    assert_eq!(list(&mut driver, &[], &[]), all);
}

#[test]
fn a_list_may_be_of_some_states_and_types() {
    let mut driver = Driver::default();
    driver.stable(1);
    commit_alone(&mut driver, "simple");
    let mut ids = |states: &[&str], types: &[&str]| names(list(&mut driver, states, types));
    assert_eq!(ids(&["Stable"], &[]), [GROUP]);
    assert_eq!(ids(&["stable", " EMPTY "], &[]), [GROUP, "simple"]);
    assert_eq!(ids(&["Dead"], &[]), [""; 0]);
    assert_eq!(ids(&[], &["Classic"]), [GROUP, "simple"]);
    assert_eq!(ids(&["Empty"], &["classic", "share"]), ["simple"]);
    assert_eq!(ids(&[], &["consumer"]), [""; 0]);
    assert_eq!(ids(&[], &["nonsense"]), [""; 0]);
}

#[test]
fn only_a_group_without_members_is_deleted() {
    let mut driver = Driver::default();
    assert_eq!(delete(&mut driver, GROUP).error_code, ErrorCode::GroupIdNotFound);
    let ids = driver.stable(1);
    let refused = delete(&mut driver, GROUP);
    assert_eq!((&*refused.group_id, refused.error_code), (GROUP, ErrorCode::NonEmptyGroup));
    driver.leave(&[(&ids[0], None)]);
    driver.given_id(&Join::default());

    assert_eq!(delete(&mut driver, GROUP).error_code, ErrorCode::None);
    assert_eq!(driver.records.last(), Some(&super::super::tombstone(&GROUP.into())));
    assert_eq!(driver.state(), "Dead");
    assert_eq!(delete(&mut driver, GROUP).error_code, ErrorCode::GroupIdNotFound);
    driver.pass(Millis::from(SESSION_MS));
}

#[test]
fn a_group_that_rebalances_is_not_deleted() {
    let mut driver = Driver::default();
    driver.joining(1);
    assert_eq!(delete(&mut driver, GROUP).error_code, ErrorCode::NonEmptyGroup);
    driver.pass(DELAY_MS);
    assert_eq!(delete(&mut driver, GROUP).error_code, ErrorCode::NonEmptyGroup);
}

#[test]
fn a_deleted_group_begins_anew() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    driver.leave(&[(&ids[0], None)]);
    delete(&mut driver, GROUP);
    driver.generations.clear();
    let (_, ticket) = driver.join_dynamic(&Join::default());
    driver.pass(DELAY_MS);
    assert_eq!(driver.joined(ticket).generation_id, 1);
}

/// Kafka's default of `offsets.retention.check.interval.ms`.
const CHECK_MS: Millis = 600_000;

#[test]
fn a_group_without_members_and_offsets_is_deleted_in_time() {
    // Kafka's testClassicGroupMaybeDelete.
    let mut driver = Driver::default();
    driver.restart();
    let ids = driver.stable(1);
    let beat_for = |driver: &mut Driver, ms: Millis| {
        (0..ms / 5_000).for_each(|_| {
            driver.pass(5_000);
            driver.beat(1, &ids[0]);
        });
    };
    beat_for(&mut driver, 2 * CHECK_MS);
    assert_eq!(driver.state(), "Stable");
    commit_alone(&mut driver, "simple");
    driver.leave(&[("", None), (&ids[0], None)]);
    driver.pass(CHECK_MS);
    assert_eq!(driver.state(), "Dead");
    assert_eq!(driver.records.last(), Some(&super::super::tombstone(&GROUP.into())));
    assert!(driver.shard.groups.get("simple").is_some(), "its offset is kept");
}

#[test]
fn many_groups_are_looked_through_in_pieces() {
    let mut driver = Driver::default();
    for i in 0..2_500 {
        let key = Key { group: format!("g{i:04}").into() };
        let value = Group::new(key.group.clone(), None).to_value();
        driver.records.push(Record::GroupMetadata { key, value: Some(value) });
    }
    driver.restart();
    let due = driver.shard.deadline().unwrap();
    driver.now.monotonic = due;
    let mut rounds = 0;
    while driver.shard.deadline().unwrap() <= due {
        let outcome = driver.shard.expire(driver.now);
        assert!(outcome.records.len() <= 1_000);
        driver.absorb(outcome);
        rounds += 1;
    }
    assert_eq!((driver.groups().count(), rounds), (0, 3));
    assert_eq!(driver.shard.deadline(), Some(due + CHECK_MS));
}
