//! Who may commit, delete and keep offsets.

use super::*;

/// A consumer's metadata (KIP-429's version 1): the topics, no user data, no partitions.
fn subscription(topics: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0, 1];
    bytes.extend((topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend((topic.len() as i16).to_be_bytes());
        bytes.extend(topic.as_bytes());
    }
    bytes.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    bytes
}

/// Consumers of these topics, stable.
fn consumers(metadata: &[&[u8]]) -> (Driver, Vec<Str>) {
    let mut driver = Driver::default();
    let joining: Vec<_> = metadata
        .iter()
        .map(|metadata| {
            driver.join_dynamic(&Join { protocols: &[("range", metadata)], ..Join::default() })
        })
        .collect();
    driver.pass(DELAY_MS * 2);
    let ids = driver.leader_first(&joining);
    driver.assign(1, &ids[0], &ids);
    (driver, ids)
}

#[test]
fn members_commit_in_their_generation_but_not_while_the_leader_assigns() {
    let mut driver = Driver::default();
    let ids = driver.completing(2);
    assert_eq!(driver.may_commit(1, &ids[0]), Err(ErrorCode::RebalanceInProgress));
    driver.assign(1, &ids[0], &ids);
    assert_eq!(driver.may_commit(1, &ids[0]), Ok(()));
    assert_eq!(driver.may_commit(0, &ids[0]), Err(ErrorCode::IllegalGeneration));
    assert_eq!(driver.may_commit(2, &ids[0]), Err(ErrorCode::IllegalGeneration));
    assert_eq!(driver.may_commit(1, "stranger"), Err(ErrorCode::UnknownMemberId));
    // Of what they read before a rebalance they may commit as long as it lasts.
    driver.join_dynamic(&Join::default());
    assert_eq!(driver.may_commit(1, &ids[1]), Ok(()));
}

#[test]
fn without_a_group_only_simple_consumers_commit() {
    let driver = Driver::default();
    assert_eq!(driver.may_commit(-1, ""), Ok(()));
    let config = config();
    let at = driver.shard.groups.at(driver.now, &config);
    let request = offset_commit::Request {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: 1,
        ..Default::default()
    };
    assert_eq!(at.may_commit(8, &request), Err(ErrorCode::IllegalGeneration));
    assert_eq!(at.may_commit(9, &request), Err(ErrorCode::GroupIdNotFound));
}

#[test]
fn a_group_with_members_takes_no_offsets_of_others() {
    let mut driver = Driver::default();
    let ids = driver.stable(1);
    assert_eq!(driver.may_commit(-1, ""), Err(ErrorCode::UnknownMemberId));
    assert_eq!(driver.may_commit(-1, &ids[0]), Err(ErrorCode::IllegalGeneration));
    driver.leave(&[(&ids[0], None)]);
    assert_eq!(driver.may_commit(-1, ""), Ok(()), "an administrator resets them");
    assert_eq!(driver.may_commit(-1, "m"), Ok(()));
    assert_eq!(driver.may_commit(2, &ids[0]), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn a_static_member_with_an_old_id_may_not_commit() {
    let mut driver = Driver::default();
    let ids = driver.stable_static(&["one"]);
    driver.join(&Join { instance: Some("one"), ..Join::default() });
    let request = offset_commit::Request {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: 1,
        member_id: ids[0].clone(),
        group_instance_id: Some("one".into()),
        ..Default::default()
    };
    let config = config();
    let result = driver.shard.groups.at(driver.now, &config).may_commit(8, &request);
    assert_eq!(result, Err(ErrorCode::FencedInstanceId));
}

#[test]
fn a_group_of_consumers_is_subscribed_to_what_its_members_say() {
    let (first, second) = (subscription(&["a", "b"]), subscription(&["c"]));
    let (mut driver, ids) = consumers(&[&first, &second]);
    let topics = |driver: &Driver| ["a", "b", "c", "d"].map(|t| driver.group().is_subscribed_to(t));
    assert_eq!(topics(&driver), [true, true, true, false]);
    driver.restart();
    assert_eq!(topics(&driver), [true, true, true, false]);
    driver.leave(&[(&ids[0], None), (&ids[1], None)]);
    assert_eq!(topics(&driver), [false; 4]);
}

#[test]
fn consumers_that_cannot_be_read_are_subscribed_to_everything() {
    for garbage in [&b""[..], b"\0", &[0, 1, 0, 0, 0, 9], &[0, 1, 0x7f, 0xff, 0xff, 0xff]] {
        let (driver, _) = consumers(&[garbage]);
        assert!(driver.group().is_subscribed_to("any"));
        assert_eq!(driver.group().retained_since(5), None);
    }
}

#[test]
fn other_types_are_subscribed_to_nothing() {
    let mut driver = Driver::default();
    let join = Join { kind: "connect", ..Join::default() };
    let (id, _) = driver.join_dynamic(&join);
    driver.pass(DELAY_MS);
    driver.assign(1, &id, std::slice::from_ref(&id));
    assert!(!driver.group().is_subscribed_to("any"));
    // But nobody knows what they need: nothing is deleted while they are there.
    let refused = driver.shard.groups.may_delete_offsets(GROUP).map(drop);
    assert_eq!(refused, Err(ErrorCode::NonEmptyGroup));
    assert_eq!(driver.group().retained_since(5), None);
    driver.leave(&[(&id, None)]);
    assert!(driver.shard.groups.may_delete_offsets(GROUP).is_ok());
}

#[test]
fn offsets_of_consumers_and_of_empty_groups_may_be_deleted() {
    let mut driver = Driver::default();
    let missing = driver.shard.groups.may_delete_offsets(GROUP).map(drop);
    assert_eq!(missing, Err(ErrorCode::GroupIdNotFound));
    driver.stable(1);
    assert!(driver.shard.groups.may_delete_offsets(GROUP).is_ok());
}

#[test]
fn retention_counts_from_when_nobody_needs_an_offset() {
    // KIP-211; Kafka's testOffsetExpirationCondition.
    let topics = subscription(&["a"]);
    let (mut driver, ids) = consumers(&[&topics]);
    assert_eq!(driver.group().retained_since(5), Some(5), "of a topic it is not subscribed to");
    let (new, _) = driver.join_dynamic(&Join::default());
    assert_eq!(driver.group().retained_since(5), None, "while it rebalances");
    driver.pass(77);
    driver.leave(&[(&ids[0], None), (&new, None)]);
    let emptied = driver.now.wall;
    driver.pass(1_000);
    assert_eq!(driver.group().retained_since(5), Some(emptied));
    driver.restart();
    assert_eq!(driver.group().retained_since(5), Some(emptied));

    let simple = Group::new("simple".into(), None);
    assert_eq!(simple.retained_since(5), Some(5));
}

#[test]
fn the_topics_of_a_static_member_that_came_back_count_at_once() {
    let mut driver = Driver::default();
    let (old, new) = (subscription(&["a"]), subscription(&["b"]));
    let ticket = driver.join(&Join {
        instance: Some("one"),
        protocols: &[("range", &old)],
        ..Join::default()
    });
    driver.pass(DELAY_MS);
    let id = driver.joined(ticket).member_id;
    driver.assign(1, &id, std::slice::from_ref(&id));
    driver.join(&Join { instance: Some("one"), protocols: &[("range", &new)], ..Join::default() });
    let topics = |driver: &Driver| ["a", "b"].map(|t| driver.group().is_subscribed_to(t));
    assert_eq!(topics(&driver), [false, true]);
    driver.restart();
    assert_eq!(topics(&driver), [false, true]);
}
