//! The list of topics as a host asks for it.

use crate::rust_host::{Engine, Host, Offers};
use kelp::ffi::status::{KELP_NULL_POINTER, KELP_OK, KELP_UNAVAILABLE};
use kelp::ffi::topic_list::*;
use std::{ptr, slice};

const DAY_MS: i64 = 86_400_000;

/// Name, partitions, retention.ms, whether internal; or the status of the call.
fn topics(engine: &Engine) -> Result<Vec<(String, i32, i64, u32)>, i32> {
    let mut list = ptr::null_mut();
    // SAFETY: the engine lives, and the list is freed when it is not used any more. What it gives is
    // copied before the next call.
    unsafe {
        let status = kelp_topic_list_new(engine.engine, &mut list);
        if status != KELP_OK {
            assert!(list.is_null());
            return Err(status);
        }
        let mut topics = Vec::new();
        while let Some(topic) = kelp_topic_list_next(list).as_ref() {
            let name = slice::from_raw_parts(topic.name.ptr.cast(), topic.name.len);
            let name = String::from_utf8(name.to_vec()).unwrap();
            topics.push((name, topic.partition_count, topic.retention_ms, topic.is_internal));
        }
        assert!(kelp_topic_list_next(list).is_null(), "the end stays the end");
        kelp_topic_list_free(list);
        Ok(topics)
    }
}

#[test]
fn a_host_is_told_of_every_change_and_finds_it_in_the_list() {
    let host = Host::new();
    let engine = Engine::start_with(&host, Offers::Groups, c"");
    let await_topics = |wanted: &[(&str, i32, i64, u32)]| {
        let wanted = wanted.iter().map(|(name, count, ms, internal)| {
            (name.to_string(), *count, *ms, *internal) //
        });
        let wanted: Vec<_> = wanted.collect();
        host.await_topics(|| topics(&engine).is_ok_and(|topics| topics == wanted).then_some(()));
    };
    await_topics(&[]);

    let mut client = engine.client();
    assert_eq!(client.create_topic("clicks"), 0);
    await_topics(&[("clicks", 1, 7 * DAY_MS, 0)]);
    assert_eq!(client.create_topic("a"), 0);
    await_topics(&[("a", 1, 7 * DAY_MS, 0), ("clicks", 1, 7 * DAY_MS, 0)]);
    assert_eq!(client.create_partitions("clicks", 3), 0);
    await_topics(&[("a", 1, 7 * DAY_MS, 0), ("clicks", 3, 7 * DAY_MS, 0)]);
    assert_eq!(client.delete_topic("a"), 0);
    await_topics(&[("clicks", 3, 7 * DAY_MS, 0)]);
    assert_eq!(client.set_of_broker("log.retention.ms", "5000"), 0);
    await_topics(&[("clicks", 3, 5000, 0)]);
    assert_eq!(client.set_of_broker("log.cleanup.policy", "compact"), 0);
    await_topics(&[("clicks", 3, -1, 0)]);
}

#[test]
fn an_engine_that_does_not_serve_has_no_list() {
    let host = Host::new();
    let engine = Engine::start_with(&host, Offers::Groups, c"");
    host.await_topics(|| topics(&engine).ok());
    engine.stop();
    assert_eq!(topics(&engine), Err(KELP_UNAVAILABLE));

    let mut list = ptr::null_mut();
    // SAFETY: all of these may be null.
    unsafe {
        assert_eq!(kelp_topic_list_new(ptr::null(), &mut list), KELP_NULL_POINTER);
        assert_eq!(kelp_topic_list_new(engine.engine, ptr::null_mut()), KELP_NULL_POINTER);
        assert!(kelp_topic_list_next(ptr::null_mut()).is_null());
        kelp_topic_list_free(ptr::null_mut());
    }
}
