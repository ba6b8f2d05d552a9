//! `kelp_metrics` as a host calls it.

use crate::rust_host::{Engine, Host, Offers};
use kelp::ffi::engine::kelp_metrics;
use std::ffi::{CStr, c_char};
use std::ptr;

#[test]
fn a_host_gets_the_text_in_its_own_memory_cut_to_it() {
    let host = Host::new();
    let engine = Engine::start_with(&host, Offers::Groups, c"");
    assert_eq!(engine.client().create_topic("clicks"), 0);

    // SAFETY: the engine lives; without memory nothing is written.
    let length = unsafe { kelp_metrics(engine.engine, ptr::null_mut(), 0) };
    assert!(length > 1000);
    // The text may grow between the calls.
    let mut buffer = vec![b'?' as c_char; 2 * length];
    // SAFETY: the buffer is as long as said.
    let length = unsafe { kelp_metrics(engine.engine, buffer.as_mut_ptr(), buffer.len()) };
    // SAFETY: the text was written, with its NUL.
    let text = unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_str().unwrap();
    assert_eq!(text.len(), length);
    for line in [
        "kafka_network_requestmetrics_requests_total{request=\"CreateTopics\",version=\"0\"} 1",
        "kelp_state{state=\"serving\"} 1",
        "# TYPE kelp_host_operations gauge",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }

    let mut small = [b'?' as c_char; 10];
    // SAFETY: as above; the last byte of the buffer is not the callee's.
    let needed = unsafe { kelp_metrics(engine.engine, small.as_mut_ptr(), 9) };
    assert!(needed > 1000);
    assert_eq!((small[8], small[9]), (0, b'?' as c_char), "a NUL, and nothing behind it");
    // SAFETY: a NUL was written.
    let cut = unsafe { CStr::from_ptr(small.as_ptr()) }.to_str().unwrap();
    assert!(text.starts_with(cut) && cut.len() == 8);

    // SAFETY: no engine is allowed.
    assert_eq!(unsafe { kelp_metrics(ptr::null(), small.as_mut_ptr(), 9) }, 0);
}
