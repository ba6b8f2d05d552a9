//! Every event in every state, against the table that was written by hand.

use super::*;

const TABLE: &str = include_str!("../transitions.txt");

const STATES: [&str; 6] = ["Dead", "Empty", "Initial", "Preparing", "Completing", "Stable"];

const EVENTS: [&str; 17] = [
    "a new member joins",
    "an id is asked for",
    "A rejoins",
    "B rejoins",
    "B rejoins with other topics",
    "B starts again",
    "A assigns",
    "B asks for its assignment",
    "B sends a heartbeat",
    "B leaves",
    "both leave",
    "the session of A ends",
    "the session of B ends",
    "the time to join ends",
    "the time to sync ends",
    "the group is deleted",
    "the coordinator restarts",
];

const OTHER: &[(&str, &[u8])] = &[("range", b"other topics")];

/// A group in some state, with its members if it ever had any.
struct Scene {
    driver: Driver,
    a: Str,
    b: Str,
}

impl Scene {
    fn new(state: &str) -> Self {
        let mut driver = Driver::default();
        if state == "Dead" {
            return Self { driver, a: "client-a".into(), b: "b-1".into() };
        }
        let (a, _) = driver.join_dynamic(&Join::default());
        let b = driver.join(&Join { instance: Some("b"), ..Join::default() });
        let b = driver.group().members().find(|m| m.joining == Some(b)).unwrap().id.clone();
        let mut scene = Self { driver, a, b };
        scene.go_to(state);
        assert_eq!(scene.state(), state);
        assert!(scene.state() == "Empty" || scene.driver.group().is_leader(&scene.a));
        scene
    }

    fn go_to(&mut self, state: &str) {
        if state == "Initial" {
            return;
        }
        self.driver.pass(DELAY_MS * 2);
        if state == "Completing" {
            return;
        }
        let (a, b) = (self.a.clone(), self.b.clone());
        self.driver.assign(1, &a, &[a.clone(), b.clone()]);
        match state {
            "Preparing" => drop(self.driver.join(&Join { member: &a, ..Join::default() })),
            "Empty" => drop(self.driver.leave(&[(&a, None), (&b, None)])),
            _ => assert_eq!(state, "Stable"),
        }
    }

    fn state(&self) -> &'static str {
        match self.driver.shard.groups.get(GROUP).map(Group::state) {
            None => "Dead",
            Some(State::PreparingRebalance { initial: Some(_) }) => "Initial",
            Some(State::PreparingRebalance { initial: None }) => "Preparing",
            Some(State::CompletingRebalance) => "Completing",
            Some(state) => state.name(),
        }
    }

    /// Lets the event happen; what who asked was told.
    fn fire(&mut self, event: &str) -> String {
        let (a, b) = (self.a.clone(), self.b.clone());
        let generation = self.driver.shard.groups.get(GROUP).map_or(0, Group::generation);
        let rejoin_b = Join { member: &b, instance: Some("b"), ..Join::default() };
        let driver = &mut self.driver;
        let ticket = match event {
            "a new member joins" => driver.join(&Join { version: 3, ..Join::default() }),
            "an id is asked for" => driver.join(&Join::default()),
            "A rejoins" => driver.join(&Join { member: &a, ..Join::default() }),
            "B rejoins" => driver.join(&rejoin_b),
            "B rejoins with other topics" => driver.join(&Join { protocols: OTHER, ..rejoin_b }),
            "B starts again" => driver.join(&Join { instance: Some("b"), ..Join::default() }),
            "A assigns" => driver.sync(generation, &a, &[(&a, "some"), (&b, "some")]),
            "B asks for its assignment" => driver.sync(generation, &b, &[]),
            "B sends a heartbeat" => return format!("{:?}", driver.beat(generation, &b)),
            "B leaves" => return Self::left(&driver.leave(&[(&b, Some("b"))])),
            "both leave" => return Self::left(&driver.leave(&[(&a, None), (&b, None)])),
            "the session of A ends" => return self.end(Due::Session(a)),
            "the session of B ends" => return self.end(Due::Session(b)),
            "the time to join ends" => return self.end(Due::Join),
            "the time to sync ends" => return self.end(Due::Sync),
            "the group is deleted" => driver.ask(Request::DeleteGroup(GROUP.into())),
            "the coordinator restarts" => {
                driver.generations.clear();
                driver.restart();
                return "-".to_string();
            }
            other => panic!("{other} is no event"),
        };
        self.told(ticket)
    }

    /// Does now what was to be done later, if anything was.
    fn end(&mut self, what: Due) -> String {
        let timer = Timer { group: GROUP.into(), what };
        if self.driver.shard.groups.timers.is_set(&timer) {
            let now = self.driver.now.monotonic;
            self.driver.shard.note(super::super::Effect::Set(timer, now).into());
            self.driver.pass(0);
        }
        "-".to_string()
    }

    fn left(answer: &leave_group::Response) -> String {
        let first = answer.members[0].error_code;
        assert!(answer.members.iter().all(|member| member.error_code == first));
        format!("{first:?}")
    }

    fn told(&self, ticket: Ticket) -> String {
        let error = match self.driver.answers.get(&ticket) {
            None => return "waits".to_string(),
            Some(Response::JoinGroup(answer)) => answer.error_code,
            Some(Response::SyncGroup(answer)) => answer.error_code,
            Some(Response::DeleteGroup(answer)) => answer.error_code,
            Some(other) => panic!("{other:?}"),
        };
        format!("{error:?}")
    }
}

#[test]
fn the_code_does_what_the_table_says() {
    let mut wanted: BTreeSet<(&str, &str)> =
        STATES.iter().flat_map(|state| EVENTS.map(|event| (*state, event))).collect();
    let mut state = "";
    let mut problems = Vec::new();
    for line in TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(next) = line.strip_prefix("in ") {
            state = next;
            continue;
        }
        let (event, rest) = line.trim().split_once("  ").unwrap();
        let expected: Vec<&str> = rest.split_whitespace().collect();
        assert!(wanted.remove(&(state, event)), "{state}: {event} comes twice, or is unknown");
        let mut scene = Scene::new(state);
        let told = scene.fire(event);
        let found = [scene.state(), &told];
        if found[..] != expected[..] {
            problems.push(format!("{state}: {event}: {found:?}, not {expected:?}"));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(wanted.is_empty(), "not in the table: {wanted:?}");
}
