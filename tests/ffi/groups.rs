//! Consumer groups whose offsets and records a host keeps.

use crate::c_host;
use crate::client::{Client, Member};
use crate::rust_host::{Engine, Host, Offers};
use std::time::{Duration, Instant};

const OK: i16 = 0;
const COORDINATOR_NOT_AVAILABLE: i16 = 15;
const NOT_COORDINATOR: i16 = 16;
const UNKNOWN_MEMBER_ID: i16 = 25;

fn client_with_topic(mut client: Client) -> Client {
    assert_eq!(client.create_topic("t"), OK);
    client
}

#[test]
fn a_group_and_its_offsets_are_there_after_a_restart() {
    let host = Host::new();
    let engine = Engine::start_with(
        &host,
        Offers::Groups,
        c"group.initial.rebalance.delay.ms=0\noffsets.topic.num.partitions=5",
    );
    let mut client = client_with_topic(engine.client());
    assert_eq!(client.find_coordinator("g"), OK);
    let member = client.join("g");
    assert_eq!(client.commit(&member, "t", 7, "seven"), OK);
    let none: Vec<_> = (0..20).map(|n| Member::none_of(&format!("simple-{n}"))).collect();
    for (n, none) in (0..).zip(&none) {
        assert_eq!(client.commit(none, "t", n, ""), OK);
    }
    assert_eq!(client.commit(&none[3], "t", 100, "later"), OK);
    engine.stop();
    drop(engine);

    // With another number of coordinators groups would be looked for at others.
    let other_number = c"offsets.topic.num.partitions=50";
    let engine = Engine::start_with(&host, Offers::Groups, other_number);
    let mut client = engine.client();
    assert_eq!(client.committed("g", "t"), Ok((7, "seven".to_owned())));
    assert_eq!(client.heartbeat(&member), OK);
    assert_eq!(client.commit(&member, "t", 8, ""), OK);
    assert_eq!(client.commit(&Member::none_of("g"), "t", 9, ""), UNKNOWN_MEMBER_ID);
    for n in 0..20 {
        let wanted = if n == 3 { (100, "later".to_owned()) } else { (n, String::new()) };
        assert_eq!(client.committed(&format!("simple-{n}"), "t"), Ok(wanted));
    }
}

#[test]
fn a_commit_that_the_host_never_completes_is_given_up_in_time() {
    let mut host = c_host::Host::start("storage", "offsets.commit.timeout.ms=500");
    let mut client = client_with_topic(host.client());
    let member = Member::none_of("g");
    assert_eq!(client.commit(&member, "t", 1, ""), OK);
    host.say("hold commit_offsets");
    let start = Instant::now();
    assert_eq!(client.commit(&member, "t", 2, ""), COORDINATOR_NOT_AVAILABLE);
    assert!(start.elapsed() >= Duration::from_millis(500));
    assert_eq!(client.commit(&member, "t", 3, ""), COORDINATOR_NOT_AVAILABLE);

    // What comes late is stored, in the order in which it was asked for.
    host.say("work commit_offsets");
    host.say("release");
    let committed = loop {
        match client.committed("g", "t") {
            Err(COORDINATOR_NOT_AVAILABLE) => {}
            committed => break committed,
        }
    };
    assert_eq!(committed, Ok((3, String::new())));
    assert_eq!(client.commit(&member, "t", 4, ""), OK);
    host.ends_clean();
}

#[test]
fn a_host_that_fails_to_keep_groups_is_asked_what_it_has() {
    let mut host = c_host::Host::start("storage", "group.initial.rebalance.delay.ms=0");
    let mut client = client_with_topic(host.client());
    let member = Member::none_of("g");
    assert_eq!(client.commit(&member, "t", 1, ""), OK);
    for status in [-7, -99, 3, 6] {
        host.say(&format!("fail commit_offsets {status}"));
        assert_eq!(client.commit(&member, "t", 2, ""), NOT_COORDINATOR, "{status}");
        assert_eq!(client.committed("g", "t"), Ok((1, String::new())), "{status}");
    }
    host.say("work commit_offsets");
    assert_eq!(client.commit(&member, "t", 3, ""), OK);

    host.say("fail append_records -7");
    assert_eq!(client.try_join("h"), Err(NOT_COORDINATOR));
    host.say("work append_records");
    let member = client.join("h");
    assert_eq!(client.heartbeat(&member), OK);
    host.ends_clean();
}
