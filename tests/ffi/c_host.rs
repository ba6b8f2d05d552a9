//! Hosts in C, under AddressSanitizer and UndefinedBehaviorSanitizer.

use crate::client::{Client, Fetched, Produced, batch};
use crate::{build, cases};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const OK: i16 = 0;
const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const REQUEST_TIMED_OUT: i16 = 7;
const KAFKA_STORAGE_ERROR: i16 = 56;

/// `tests/ffi/host.c`, running.
pub(crate) struct Host {
    process: Child,
    answers: BufReader<ChildStdout>,
    port: u16,
}

impl Host {
    pub(crate) fn start(kind: &str, properties: &str) -> Self {
        Self::start_with(&[kind, properties])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let program = build::c_program("tests/ffi/host.c", "host", &build::SANITIZERS);
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let port = line(&mut answers).parse().unwrap();
        Self { process, answers, port }
    }

    pub(crate) fn say(&mut self, words: &str) {
        writeln!(self.process.stdin.as_ref().unwrap(), "{words}").unwrap();
        assert_eq!(line(&mut self.answers), "done");
    }

    /// A client, when the host serves.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// Ends the process; with a leak or another mistake it does not end well.
    pub(crate) fn ends_clean(mut self) {
        drop(self.process.stdin.take());
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

fn line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn takes_about(wanted: Duration, since: Instant) {
    let took = since.elapsed();
    assert!(took >= wanted / 2 && took < wanted + Duration::from_secs(8), "it took {took:?}");
}

#[test]
fn the_example_passes_the_cases_as_a_log() {
    cases::pass_on_the_example("storage");
}

#[test]
fn the_example_passes_the_cases_as_a_store_of_objects() {
    cases::pass_on_the_example("objects");
}

#[test]
fn what_is_produced_through_a_host_is_fetched() {
    for kind in ["storage", "objects"] {
        let host = Host::start(kind, "");
        let mut client = host.client();
        assert_eq!(client.create_topic("t"), OK);
        let (one, two) = (batch(b"one"), batch(b"two"));
        assert_eq!(client.produce("t", &one, 10_000), Produced { error_code: OK, base_offset: 0 });
        assert_eq!(client.produce("t", &two, 10_000), Produced { error_code: OK, base_offset: 1 });
        let Fetched { error_code, high_watermark, records } = client.fetch("t", 0);
        assert_eq!((error_code, high_watermark, records.len()), (OK, 2, one.len() + two.len()));
        // All but what a broker stamps: base offset and leader epoch.
        assert_eq!(records[16..one.len()], one[16..]);
        assert_eq!(records[one.len() + 16..], two[16..]);
        host.ends_clean();
    }
}

#[test]
fn an_append_that_comes_late_is_stored_though_its_client_was_answered() {
    let mut host = Host::start("storage", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    host.say("hold append");
    let start = Instant::now();
    assert_eq!(client.produce("t", &batch(b"late"), 500).error_code, REQUEST_TIMED_OUT);
    takes_about(Duration::from_millis(500), start);
    assert_eq!(client.fetch("t", 0).high_watermark, 0);

    host.say("work append");
    host.say("release");
    let next = client.produce("t", &batch(b"next"), 10_000);
    assert_eq!(next, Produced { error_code: OK, base_offset: 1 });
    assert_eq!(client.fetch("t", 0).high_watermark, 2);
    host.ends_clean();
}

#[test]
fn operations_may_be_completed_after_the_engine_is_freed() {
    let mut host = Host::start("storage", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    assert_eq!(client.produce("t", &batch(b"one"), 10_000).error_code, OK);
    host.say("hold append");
    host.say("hold read_batches");
    assert_eq!(client.produce("t", &batch(b"two"), 200).error_code, REQUEST_TIMED_OUT);
    let (port, fetching) = (
        host.port,
        thread::spawn(move || {
            let fetched = std::panic::catch_unwind(move || client.fetch("t", 0));
            assert!(fetched.is_err(), "the engine ends before it has an answer");
        }),
    );
    thread::sleep(Duration::from_millis(300)); // until the fetch is held
    let start = Instant::now();
    host.say("free");
    assert!(start.elapsed() < Duration::from_secs(15), "an uncompleted operation holds up nothing");
    fetching.join().unwrap();
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    // Completes both, with lent memory for the one, which comes back at once.
    host.say("release");
    host.ends_clean();
}

#[test]
fn objects_may_be_put_after_the_engine_is_freed() {
    let mut host = Host::start("objects", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    host.say("hold put_new");
    assert_eq!(client.produce("t", &batch(b"one"), 200).error_code, REQUEST_TIMED_OUT);
    host.say("free");
    host.say("release");
    host.ends_clean();
}

#[test]
fn an_engine_whose_storage_does_not_open_can_be_freed() {
    for (kind, first) in [("storage", "load_topics"), ("objects", "list")] {
        let mut host = Host::start_with(&[kind, "", first]);
        let mut client = host.client();
        let waiting = thread::spawn(move || {
            let answer = std::panic::catch_unwind(move || client.api_keys());
            assert!(answer.is_err(), "the engine ends before it has an answer");
        });
        thread::sleep(Duration::from_millis(200)); // until the request is there
        assert!(!waiting.is_finished(), "what comes before the storage is open waits");
        host.say("free");
        waiting.join().unwrap();
        host.say("release");
        host.ends_clean();
    }
}

#[test]
fn a_host_that_never_answers_costs_its_timeout_and_no_more() {
    let mut host = Host::start("storage", "host.timeout.ms=1000");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    assert_eq!(client.produce("t", &batch(b"one"), 10_000).error_code, OK);
    host.say("hold read_batches");
    let start = Instant::now();
    assert_eq!(client.fetch("t", 0).error_code, REQUEST_TIMED_OUT);
    takes_about(Duration::from_secs(1), start);
    host.say("hold create_topic");
    let start = Instant::now();
    assert_eq!(client.create_topic("late"), REQUEST_TIMED_OUT);
    takes_about(Duration::from_secs(1), start);

    // What comes late counts: the topic is there.
    host.say("work create_topic");
    host.say("work read_batches");
    host.say("release");
    assert_eq!(client.produce("late", &batch(b"one"), 10_000).error_code, OK);
    assert_eq!(client.fetch("t", 0).error_code, OK);
    host.say("hold append");
    assert_eq!(client.produce("t", &batch(b"lost"), 100).error_code, REQUEST_TIMED_OUT);
    host.ends_clean();
}

#[test]
fn a_host_that_fails_is_tried_again() {
    let mut host = Host::start("storage", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    for (status, code) in
        [(-7, KAFKA_STORAGE_ERROR), (-99, KAFKA_STORAGE_ERROR), (-6, REQUEST_TIMED_OUT)]
    {
        host.say(&format!("fail append {status}"));
        assert_eq!(client.produce("t", &batch(b"no"), 10_000).error_code, code, "{status}");
        host.say("work append");
        assert_eq!(client.produce("t", &batch(b"yes"), 10_000).error_code, OK, "{status}");
        host.say(&format!("fail read_batches {status}"));
        assert_eq!(client.fetch("t", 0).error_code, code, "{status}");
        host.say("work read_batches");
        assert_eq!(client.fetch("t", 0).error_code, OK, "{status}");
    }
    assert_eq!(client.fetch("t", 0).high_watermark, 3);
    host.say("fail append 6");
    assert_eq!(client.produce("t", &batch(b"no"), 10_000).error_code, NOT_LEADER_OR_FOLLOWER);
    host.say("work append");
    let back = client.produce("t", &batch(b"back"), 10_000);
    assert_eq!(back, Produced { error_code: OK, base_offset: 3 });
    host.ends_clean();
}

#[test]
fn objects_whose_outcome_is_unknown_are_looked_for_and_put_again() {
    let mut host = Host::start("objects", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    host.say("fail put_new -7");
    let producing = thread::spawn(move || client.produce("t", &batch(b"one"), 20_000));
    thread::sleep(Duration::from_millis(300));
    host.say("work put_new");
    assert_eq!(producing.join().unwrap(), Produced { error_code: OK, base_offset: 0 });
    host.ends_clean();
}

/// A vectored write to a connection that was reset raises SIGPIPE, whose default is to kill.
#[test]
fn a_client_that_resets_does_not_end_the_process() {
    let host = Host::start("storage", "");
    let mut client = host.client();
    assert_eq!(client.create_topic("t"), OK);
    // Several batches of more than a socket takes at once: the answer is written in pieces.
    let large = batch(&vec![b'x'; 900_000]);
    for _ in 0..16 {
        assert_eq!(client.produce("t", &large, 10_000).error_code, OK);
    }
    for _ in 0..20 {
        host.client().fetch_and_reset("t");
    }
    assert_eq!(client.fetch("t", 16).error_code, OK);
    host.ends_clean();
}
