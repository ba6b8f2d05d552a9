//! How members go.

use super::*;
use crate::messages::leave_group::MemberResponse;

fn told(member_id: &str, instance: Option<&str>, error_code: ErrorCode) -> MemberResponse {
    let group_instance_id = instance.map(Into::into);
    MemberResponse { member_id: member_id.into(), group_instance_id, error_code }
}

#[test]
fn the_last_member_leaves_an_empty_group_behind() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    let answer = driver.leave(&[(&ids[0], None)]);
    assert_eq!(answer.error_code, ErrorCode::None);
    assert_eq!(answer.members, [told(&ids[0], None, ErrorCode::None)]);
    assert_eq!((driver.state(), driver.group().generation()), ("Empty", 2));
    let Some(Record::GroupMetadata { value: Some(value), .. }) = driver.records.last() else {
        panic!("that it is empty is kept")
    };
    assert_eq!((value.generation, &value.protocol, &value.leader), (2, &None, &None));
    assert_eq!((&*value.protocol_type, value.members.len()), ("consumer", 0));
    assert_eq!(value.current_state_timestamp, driver.now.wall);
}

#[test]
fn the_others_rejoin_when_one_leaves() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    driver.leave(&[(&ids[0], None)]);
    assert_eq!(driver.state(), "PreparingRebalance");
    let ticket = driver.join(&Join { member: &ids[1], ..Join::default() });
    let joined = driver.joined(ticket);
    assert_eq!((joined.generation_id, &joined.leader), (2, &ids[1]));
}

#[test]
fn the_last_one_that_a_rebalance_waited_for_may_leave() {
    let mut driver = Driver::default();
    let ids = driver.stable(2);
    let waiting = driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.leave(&[(&ids[1], None)]);
    assert_eq!(driver.joined(waiting).generation_id, 2);
}

#[test]
fn before_version_3_the_answer_has_the_error_of_the_one_that_leaves() {
    let mut driver = Driver::default();
    let request = |id: &str| leave_group::Request {
        group_id: GROUP.into(),
        member_id: id.into(),
        ..Default::default()
    };
    let unknown = driver.leave_with(2, request("m"));
    assert_eq!(unknown.error_code, ErrorCode::UnknownMemberId, "there is no such group");
    let ids = driver.stable(1);
    for (id, error) in [("m", ErrorCode::UnknownMemberId), (&*ids[0], ErrorCode::None)] {
        let answer = driver.leave_with(2, request(id));
        assert_eq!((answer.error_code, answer.members.len()), (error, 0));
    }
    assert_eq!(driver.state(), "Empty");
}

#[test]
fn in_a_group_that_does_not_exist_nobody_is_known() {
    let mut driver = Driver::default();
    let answer = driver.leave(&[("m", None), ("", Some("i"))]);
    assert_eq!(answer.error_code, ErrorCode::None);
    let unknown = ErrorCode::UnknownMemberId;
    assert_eq!(answer.members, [told("m", None, unknown), told("", Some("i"), unknown)]);
    let unnamed = driver.leave_with(5, leave_group::Request::default());
    assert_eq!(unnamed.error_code, ErrorCode::InvalidGroupId);
}

#[test]
fn members_leave_together_and_each_has_its_own_error() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one", "two", "three"]);
    let answer = driver.leave(&[
        (&ids[0], Some("one")),
        // By the instance alone, as administrators do.
        ("", Some("two")),
        ("", Some("four")),
        ("stranger", None),
        (&ids[0], Some("three")),
        ("", None),
    ]);
    let unknown = ErrorCode::UnknownMemberId;
    assert_eq!(
        answer.members,
        [
            told(&ids[0], Some("one"), ErrorCode::None),
            told("", Some("two"), ErrorCode::None),
            told("", Some("four"), unknown),
            told("stranger", None, unknown),
            told(&ids[0], Some("three"), ErrorCode::FencedInstanceId),
            told("", None, unknown),
        ]
    );
    assert_eq!(driver.member_ids(), [ids[2].clone()]);
    assert_eq!(driver.state(), "PreparingRebalance");
}

#[test]
fn nobody_who_leaves_is_nothing_that_happens() {
    let mut driver = Driver::default();
    driver.stable(2);
    driver.leave(&[("stranger", None)]);
    assert_eq!((driver.state(), driver.group().generation()), ("Stable", 1));
}

#[test]
fn who_was_given_an_id_may_leave_with_it() {
    let mut driver = Driver::default();
    let id = driver.given_id(&Join::default());
    let answer = driver.leave(&[(&id, None)]);
    assert_eq!(answer.members, [told(&id, None, ErrorCode::None)]);
    let error = driver.join_error(&Join { member: &id, ..Join::default() });
    assert_eq!(error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_rebalance_ends_when_the_pending_member_leaves() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    let pending = driver.given_id(&Join::default());
    let waiting = driver.join(&Join { member: &ids[0], ..Join::default() });
    driver.leave(&[(&pending, None)]);
    assert_eq!(driver.joined(waiting).generation_id, 2);
}

#[test]
fn what_a_leaving_member_waits_for_is_answered() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    let syncing = driver.sync(1, &ids[1], &[]);
    driver.leave(&[(&ids[1], None)]);
    assert_eq!(driver.synced(syncing).error_code, ErrorCode::UnknownMemberId);

    let joining = driver.join(&Join { member: &ids[0], ..Join::default() });
    assert_eq!(driver.joined(joining).generation_id, 2);
    driver.given_id(&Join::default());
    let protocols: [(&str, &[u8]); 1] = [("range", b"other")];
    let joining = driver.join(&Join { member: &ids[0], protocols: &protocols, ..Join::default() });
    assert!(driver.is_parked(joining));
    driver.leave(&[(&ids[0], None)]);
    assert_eq!(driver.joined(joining).error_code, ErrorCode::UnknownMemberId);
}
