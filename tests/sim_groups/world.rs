//! Time, the network, and what goes wrong: one queue of events, so that a seed is always one run.

use crate::assignor::{COOPERATIVE, EAGER};
use crate::client::{Around, Client, Nature};
use crate::coordinator::{Coordinator, From};
use crate::topics::Topics;
use crate::wrong::Wrong;
use crate::{Met, meet, settled, tool};
use kelp::coordinator::shard::{Config, DeletedTopic, Request, Response};
use kelp::protocol::wire::{Str, Uuid};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::catch_unwind;

/// From here on nothing goes wrong any more.
const CALM_AT_MS: i64 = 180_000;

const SESSIONS_MS: [i32; 2] = [6_000, 10_000];
const REBALANCES_MS: [i32; 3] = [6_000, 9_000, 15_000];
pub(crate) const LONGEST_REBALANCE_MS: i64 = 15_000;
const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 20_000;
const INITIAL_DELAY_MS: i64 = 3_000;

/// Then sessions and new members of before are over, and each group has a leader, who notices that
/// the topics grow. One that came back as a static member does not know what was assigned before.
const GROWS_AT_MS: i64 = CALM_AT_MS + NEW_MEMBER_JOIN_TIMEOUT_MS + 2 * LONGEST_REBALANCE_MS;

/// Then every group is to be stable: a cooperative one needs two rebalances for that.
const SETTLED_AT_MS: i64 = GROWS_AT_MS + 2 * LONGEST_REBALANCE_MS;

/// Until then no group may rebalance again.
const END_MS: i64 = SETTLED_AT_MS + 3 * 10_000;

const TOPICS: [&str; 3] = ["a", "b", "c"];

enum Event {
    Arrives { from: From, request: Request, process: u32 },
    Returns { to: From, response: Response },
    Wakes { client: usize, process: u32 },
    Commits { process: u32 },
    Due { process: u32 },
    Starts,
    GoesWrong,
    Calm,
    Grows,
    Settled,
}

pub(crate) struct World {
    now: i64,
    rng: SmallRng,
    queue: BTreeMap<(i64, u64), Event>,
    events: u64,
    topics: Topics,
    coordinator: Coordinator,
    /// Counts the coordinator's processes: what was sent to one is lost with it.
    process: u32,
    /// When a `Due` is in the queue already.
    due_at: Option<i64>,
    clients: Vec<Client>,
    groups: Vec<Str>,
    offsets: i64,
    calm: bool,
    settled: Option<BTreeMap<Str, i32>>,
    pub(crate) met: Met,
    print: bool,
}

/// What came of a run.
pub(crate) struct Run {
    pub(crate) met: Met,
    pub(crate) violation: Option<String>,
    /// Equal for equal runs.
    pub(crate) events: u64,
}

pub(crate) fn run(seed: u64, wrong: Option<Wrong>, print: bool) -> Run {
    let mut world = World::new(seed, wrong, print);
    world.begin();
    while let Some(((at, _), event)) = world.queue.pop_first() {
        if at > END_MS || world.coordinator.check.violation.is_some() {
            break;
        }
        world.now = at;
        world.events += 1;
        world.happen(event);
    }
    world.end();
    let World { met, events, coordinator, .. } = world;
    Run { met, violation: coordinator.check.violation, events }
}

/// A panic is a failure like any other.
pub(crate) fn run_safely(seed: u64, wrong: Option<Wrong>) -> Run {
    catch_unwind(|| run(seed, wrong, false)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        let violation = Some(format!("a panic: {}", text.unwrap_or_default()));
        Run { met: Met::new(), violation, events: 0 }
    })
}

impl World {
    fn new(seed: u64, wrong: Option<Wrong>, print: bool) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let config = Config {
            initial_rebalance_delay_ms: if rng.random() { INITIAL_DELAY_MS } else { 0 },
            session_timeout_ms: 6_000..=30_000,
            max_size: if rng.random_ratio(1, 4) { 3 } else { 100 },
            new_member_join_timeout_ms: NEW_MEMBER_JOIN_TIMEOUT_MS,
            offset_metadata_max_bytes: 4096,
            offsets_retention_ms: 40_000,
            offsets_retention_check_interval_ms: 15_000,
        };
        Self {
            now: 0,
            rng,
            queue: BTreeMap::new(),
            events: 0,
            topics: Topics::default(),
            coordinator: Coordinator::new(config, wrong),
            process: 0,
            due_at: None,
            clients: Vec::new(),
            groups: Vec::new(),
            offsets: 0,
            calm: false,
            settled: None,
            met: Met::new(),
            print,
        }
    }

    fn begin(&mut self) {
        for name in TOPICS {
            let partitions = self.rng.random_range(1..6);
            self.topics.create(&name.into(), partitions);
        }
        for group in 0..self.rng.random_range(1..3) {
            let group = Str::from(format!("g{group}"));
            self.groups.push(group.clone());
            let cooperative = self.rng.random();
            for _ in 0..self.rng.random_range(1..6) {
                let nature = self.nature(&group, cooperative);
                let same = |other: &&Client| other.nature.is_same_instance(&nature);
                let topics = self.clients.iter().find(same).map(|other| other.topics.clone());
                let topics = topics.unwrap_or_else(|| self.wishes());
                self.clients.push(Client::new(nature, topics));
            }
        }
        self.up();
        for client in 0..self.clients.len() {
            let after = self.rng.random_range(0..5_000);
            self.clients[client].start();
            self.at(after, Event::Wakes { client, process: 1 });
        }
        let first = self.rng.random_range(1_000..10_000);
        self.at(first, Event::GoesWrong);
        self.at(CALM_AT_MS, Event::Calm);
        self.at(GROWS_AT_MS, Event::Grows);
        self.at(SETTLED_AT_MS, Event::Settled);
    }

    fn nature(&mut self, group: &Str, cooperative: bool) -> Nature {
        let rng = &mut self.rng;
        // Two places for one instance: a pod that is started twice.
        let instance =
            rng.random_ratio(1, 3).then(|| Str::from(format!("i{}", rng.random_range(0..2))));
        let protocols = match (cooperative, rng.random_range(0..3)) {
            (true, _) => vec![COOPERATIVE],
            (false, 0) => vec!["roundrobin", EAGER],
            (false, 1) => vec![EAGER, "roundrobin"],
            (false, _) => vec![EAGER],
        };
        Nature {
            group: group.clone(),
            // Before KIP-814 a static leader that comes back watches the topics no more.
            join_version: if instance.is_some() { 9 } else { rng.random_range(0..=9) },
            instance,
            protocols,
            session_ms: *SESSIONS_MS.choose(rng).expect("there are some"),
            rebalance_ms: *REBALANCES_MS.choose(rng).expect("there are some"),
        }
    }

    /// Some topics, at least one.
    fn wishes(&mut self) -> BTreeSet<Str> {
        let count = self.rng.random_range(1..=TOPICS.len());
        TOPICS.sample(&mut self.rng, count).map(|name| Str::from(*name)).collect()
    }

    fn at(&mut self, at: i64, event: Event) {
        let order = self.queue.len() as u64 + (self.events << 20);
        let mut key = (at, order);
        while self.queue.contains_key(&key) {
            key.1 += 1;
        }
        self.queue.insert(key, event);
    }

    fn after(&mut self, ms: std::ops::Range<i64>, event: Event) {
        let at = self.now + self.rng.random_range(ms);
        self.at(at, event);
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.print {
            println!("{:>7} ms  {}", self.now, what());
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { from, request, process } => {
                if process != self.process || !self.coordinator.is_up() {
                    return;
                }
                self.say(|| format!("{from:?} asks {request:?}"));
                self.coordinator.handle(self.now, from, request, &mut self.met);
                self.stepped();
            }
            Event::Returns { to, response } => self.returns(to, response),
            Event::Wakes { client, process } => self.wakes(client, process),
            Event::Commits { process } if process == self.process => {
                self.coordinator.commit(&mut self.rng);
                self.stepped();
            }
            Event::Due { process } if process == self.process => {
                self.due_at = None;
                self.coordinator.expire(self.now, &mut self.met);
                self.stepped();
            }
            Event::Commits { .. } | Event::Due { .. } => {}
            Event::Starts => self.up(),
            Event::GoesWrong => self.goes_wrong(),
            Event::Calm => self.calms(),
            Event::Grows => TOPICS.iter().for_each(|name| {
                self.topics.grow(&(*name).into());
            }),
            Event::Settled => self.settles(),
        }
    }

    /// The coordinator did something: what follows from it is put into the queue.
    fn stepped(&mut self) {
        for (to, response) in std::mem::take(&mut self.coordinator.sent) {
            self.say(|| format!("{to:?} is answered {response:?}"));
            if self.lost() {
                meet(&mut self.met, "an answer that is lost");
                continue;
            }
            let delay = self.delay();
            self.after(delay, Event::Returns { to, response });
        }
        if self.coordinator.has_uncommitted() {
            let process = self.process;
            self.after(1..30, Event::Commits { process });
        }
        let Some(at) = self.coordinator.deadline() else { return };
        let at = at.max(self.now);
        if self.due_at.is_none_or(|due| at < due) {
            self.due_at = Some(at);
            let late = self.rng.random_range(0..20);
            let process = self.process;
            self.at(at + late, Event::Due { process });
        }
    }

    fn lost(&mut self) -> bool {
        !self.calm && self.rng.random_ratio(1, 50)
    }

    fn delay(&mut self) -> std::ops::Range<i64> {
        match self.rng.random_range(0..30) {
            _ if self.calm => 1..5,
            0 => 1_000..7_000,
            1..5 => 50..500,
            _ => 1..20,
        }
    }

    fn send(&mut self, from: From, request: Request) {
        let process = self.process;
        if self.lost() {
            return meet(&mut self.met, "a request that is lost");
        }
        if !self.calm && self.rng.random_ratio(1, 50) {
            meet(&mut self.met, "a request that arrives twice");
            let delay = self.delay();
            let request = request.clone();
            self.after(delay, Event::Arrives { from, request, process });
        }
        let delay = self.delay();
        self.after(delay, Event::Arrives { from, request, process });
    }

    fn up(&mut self) {
        self.process += 1;
        self.due_at = None;
        self.say(|| "the coordinator starts".into());
        self.coordinator.start(self.now, &mut self.rng, &mut self.met);
        self.stepped();
    }

    fn down(&mut self) {
        self.say(|| "the coordinator crashes".into());
        if let Some(shard) = self.coordinator.shard() {
            for group in &self.groups {
                let kind = match shard.groups.get(group).map(|group| group.state().name()) {
                    Some("PreparingRebalance") => "a crash while members join",
                    Some("CompletingRebalance") => {
                        "a crash while a generation waits for its leader"
                    }
                    Some("Stable") => "a crash of a stable group",
                    _ => continue,
                };
                meet(&mut self.met, kind);
            }
        }
        self.coordinator.crash(&mut self.rng, &mut self.met);
        self.process += 1;
        self.after(50..8_000, Event::Starts);
    }

    /// Lets a client do something, and sends what it asks.
    fn with(&mut self, index: usize, act: impl FnOnce(&mut Client, &mut Around<'_>)) {
        let mut around = Around {
            now: self.now,
            rng: &mut self.rng,
            topics: &self.topics,
            met: &mut self.met,
            offsets: &mut self.offsets,
            sent: Vec::new(),
        };
        let client = &mut self.clients[index];
        act(client, &mut around);
        let (sent, process) = (around.sent, client.process);
        for (number, request) in sent {
            self.send(From { client: Some(index), process, number }, request);
        }
    }

    fn wakes(&mut self, index: usize, process: u32) {
        let client = &self.clients[index];
        if client.process != process || !client.alive {
            return;
        }
        self.with(index, Client::wake);
        // A process that stands still comes back as a zombie.
        let pause = if !self.calm && self.rng.random_ratio(1, 150) {
            meet(&mut self.met, "a client that stands still");
            5_000..25_000
        } else {
            200..600
        };
        let until = self.now + self.rng.random_range(pause);
        // Nobody stands still in the calm.
        let until = until.min(CALM_AT_MS.max(self.now + 600));
        self.at(until, Event::Wakes { client: index, process });
    }

    fn returns(&mut self, to: From, response: Response) {
        let Some(index) = to.client else { return };
        let client = &self.clients[index];
        if client.process == to.process && client.alive {
            self.with(index, |client, around| client.hear(around, to.number, response));
        }
    }

    fn goes_wrong(&mut self) {
        if self.calm {
            return;
        }
        let index = self.rng.random_range(0..self.clients.len());
        match self.rng.random_range(0..14) {
            0 | 1 if self.coordinator.is_up() => self.down(),
            2 | 3 => self.kill(index),
            4 => self.stop(index),
            5 | 6 => self.start(index),
            7 => {
                let name = self.topic();
                if self.topics.grow(&name) {
                    meet(&mut self.met, "a topic that grows");
                }
            }
            8 => self.delete_topic(),
            // A static member that comes back with another wish keeps what it had, in Kafka too.
            9 if self.clients[index].nature.instance.is_none() => {
                self.clients[index].topics = self.wishes();
            }
            _ => self.tool(),
        }
        self.after(300..6_000, Event::GoesWrong);
    }

    fn topic(&mut self) -> Str {
        Str::from(*TOPICS.choose(&mut self.rng).expect("there are some"))
    }

    fn kill(&mut self, index: usize) {
        if self.clients[index].alive {
            meet(&mut self.met, "a client that is killed");
            self.say(|| format!("client {index} is killed"));
            self.clients[index].alive = false;
        }
    }

    fn stop(&mut self, index: usize) {
        if self.clients[index].alive {
            self.with(index, Client::stop);
        }
    }

    fn start(&mut self, index: usize) {
        if !self.clients[index].alive {
            self.clients[index].start();
            let process = self.clients[index].process;
            self.say(|| format!("client {index} starts"));
            self.after(1..500, Event::Wakes { client: index, process });
        }
    }

    fn delete_topic(&mut self) {
        let name = self.topic();
        if let Some(topic) = self.topics.delete(&name) {
            meet(&mut self.met, "a topic that is deleted");
            let without_id = DeletedTopic { id: Uuid::ZERO, ..topic.clone() };
            self.ask(Request::TopicsDeleted(vec![topic, without_id]));
            let partitions = self.rng.random_range(1..6);
            self.topics.create(&name, partitions);
        }
    }

    fn ask(&mut self, request: Request) {
        self.send(From { client: None, process: 0, number: 0 }, request);
    }

    /// Somebody without a group asks something.
    fn tool(&mut self) {
        let group = self.groups.choose(&mut self.rng).expect("there are some").clone();
        let topic = self.topic();
        self.offsets += 1;
        let request = tool::request(&mut self.rng, &self.topics, group, topic, self.offsets);
        self.ask(request);
    }

    /// The last things that go wrong: some clients end for good, perhaps with the coordinator.
    fn calms(&mut self) {
        self.calm = true;
        self.say(|| "calm".into());
        if self.coordinator.is_up() && self.rng.random() {
            self.down();
        }
        if !self.coordinator.is_up() {
            self.queue.retain(|_, event| !matches!(event, Event::Starts));
            self.up();
        }
        let mut instances = BTreeSet::new();
        for index in 0..self.clients.len() {
            let Nature { group, instance, .. } = self.clients[index].nature.clone();
            // Of a pod that is started twice one stays.
            let twice = instance.is_some_and(|instance| !instances.insert((group, instance)));
            match self.rng.random_range(0..4) {
                _ if twice => self.clients[index].alive = false,
                0 => self.kill(index),
                1 => {}
                _ => self.start(index),
            }
        }
    }

    fn settles(&mut self) {
        self.settled = Some(self.check_settled());
    }

    fn end(&mut self) {
        if self.coordinator.check.violation.is_some() {
            return;
        }
        let last = self.check_settled();
        if self.settled.as_ref().is_some_and(|settled| *settled != last) {
            let text = format!("rebalances go on: {:?}, later {last:?}", self.settled);
            self.coordinator.check.violated(text);
        }
    }

    /// Every group is as it should be, and nobody waits. Gives the generations.
    fn check_settled(&mut self) -> BTreeMap<Str, i32> {
        let mut generations = BTreeMap::new();
        for group in self.groups.clone() {
            let shard = self.coordinator.shard().expect("it is up in the calm");
            match settled::check(shard, &self.clients, &self.topics, &group) {
                Ok(generation) => drop(generations.insert(group, generation)),
                Err(text) => self.coordinator.check.violated(format!("group {group}: {text}")),
            }
        }
        let waiting = self.coordinator.waiting();
        if waiting > 0 && !self.coordinator.has_uncommitted() {
            self.coordinator.check.violated(format!("{waiting} requests are forgotten"));
        }
        generations
    }
}
