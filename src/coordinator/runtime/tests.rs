//! A machine that counts, over a journal whose answers a test gives.

use super::journal::{Limits, Stored};
use super::*;
use crate::coordinator::{Outcome, Ticket};
use crate::protocol::error_code::ErrorCode::CoordinatorNotAvailable;
use crate::store::memory::Memory;
use crate::store::topics::Topic;
use crate::store::{BoxFuture, StoreError};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A sum of numbers. What is due tells everybody who waits.
#[derive(Default)]
struct Sum {
    sum: i64,
    waiting: Vec<Ticket>,
    due: Option<Millis>,
}

enum Ask {
    Add(i64),
    Read,
    /// Answered together with all others who wait, so much later.
    Wait(Millis),
    Panic(When),
}

#[derive(Clone, Copy, PartialEq)]
enum When {
    Handled,
    Noted,
}

enum Change {
    Wait(Ticket, Millis),
    Told,
    Panic,
}

impl Machine for Sum {
    type Request = Ask;
    type Response = i64;
    type Record = i64;
    type Effect = Change;

    fn handle(&self, now: Now, ticket: Ticket, request: Ask) -> Outcome<Self> {
        let mut outcome = Outcome::default();
        match request {
            Ask::Add(number) => {
                outcome.records.push(number);
                outcome.answers.push((ticket, self.sum + number));
            }
            Ask::Read => outcome.answers.push((ticket, self.sum)),
            Ask::Wait(millis) => {
                outcome.effects.push(Change::Wait(ticket, now.monotonic + millis));
            }
            Ask::Panic(When::Handled) => panic!("as the test wants it"),
            Ask::Panic(When::Noted) => outcome.effects.push(Change::Panic),
        }
        outcome
    }

    fn apply(&mut self, number: i64) {
        self.sum += number;
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::Wait(ticket, due) => {
                self.waiting.push(ticket);
                self.due = Some(self.due.map_or(due, |before| before.min(due)));
            }
            Change::Told => {
                self.waiting.clear();
                self.due = None;
            }
            Change::Panic => panic!("as the test wants it"),
        }
    }

    fn deadline(&self) -> Option<Millis> {
        self.due
    }

    fn expire(&self, now: Now) -> Outcome<Self> {
        assert!(self.due.is_some_and(|due| due <= now.monotonic), "nothing is due");
        let answers = self.waiting.iter().map(|ticket| (*ticket, self.sum)).collect();
        Outcome { effects: vec![Change::Told], answers, ..Outcome::default() }
    }

    fn loaded(&self, _now: Now) -> Outcome<Self> {
        Outcome::default()
    }
}

type Promise = oneshot::Sender<Result<(), ErrorCode>>;

/// What is stored, and promises that a test keeps or breaks.
#[derive(Default)]
struct Script {
    stored: Mutex<Vec<i64>>,
    under_way: Mutex<VecDeque<(Vec<i64>, Promise)>>,
    loads: AtomicUsize,
    refusals: Mutex<VecDeque<ErrorCode>>,
    failing_loads: Mutex<VecDeque<StoreError>>,
    /// One permit lets one load begin.
    gate: Option<Semaphore>,
}

impl Script {
    /// What becomes of the oldest append. `stores` is whether it is in the journal.
    fn resolve(&self, stores: bool, outcome: Result<(), ErrorCode>) {
        let (numbers, promise) = self.under_way.lock().unwrap().pop_front().unwrap();
        if stores {
            self.stored.lock().unwrap().extend(numbers);
        }
        let _ = promise.send(outcome);
    }

    fn store(&self) {
        self.resolve(true, Ok(()));
    }
}

struct Scripted(Arc<Script>);

#[async_trait::async_trait]
impl Journal<i64> for Scripted {
    async fn load(&self, show: &mut (dyn FnMut(i64) + Send)) -> Result<(), StoreError> {
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        if let Some(gate) = &self.0.gate {
            gate.acquire().await.unwrap().forget();
        }
        if let Some(error) = self.0.failing_loads.lock().unwrap().pop_front() {
            return Err(error);
        }
        assert!(self.0.under_way.lock().unwrap().is_empty(), "it is not known what is stored");
        self.0.stored.lock().unwrap().iter().for_each(|number| show(*number));
        Ok(())
    }

    fn append(&self, numbers: &[i64], _limits: Limits) -> Result<Stored, ErrorCode> {
        if let Some(refusal) = self.0.refusals.lock().unwrap().pop_front() {
            return Err(refusal);
        }
        let (promise, promised) = oneshot::channel();
        self.0.under_way.lock().unwrap().push_back((numbers.to_vec(), promise));
        let stored: BoxFuture<'static, _> = Box::pin(async { promised.await.unwrap() });
        Ok(stored)
    }
}

/// The machines of a topic with one partition.
struct Fixture {
    runtime: Runtime<Sum>,
    script: Arc<Script>,
    memory: Arc<Memory>,
}

const TOPIC: &str = "__sums";

/// A machine with this sum has missed something.
const MISSED: i64 = 77;
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

impl Fixture {
    async fn new(script: Script) -> Self {
        let script = Arc::new(script);
        let journals = script.clone();
        let kind = Kind {
            machine: Box::new(Sum::default),
            first: Box::new(|sum| (sum.sum == MISSED).then_some(Ask::Add(1_000))),
            journal: Box::new(move |_| Box::new(Scripted(journals.clone()))),
            write_timeout: WRITE_TIMEOUT,
            clock: Clock::default(),
            loads: Semaphore::new(1),
        };
        let memory = Arc::new(Memory::default());
        let runtime = Runtime::new(Home::Topic(TOPIC), kind, memory.clone());
        let f = Self { runtime, script, memory };
        f.create_topic().await;
        f
    }

    /// One whose machine is loaded.
    async fn loaded() -> Self {
        let f = Self::new(Script::default()).await;
        f.until_loaded().await;
        f
    }

    async fn create_topic(&self) -> Uuid {
        let id = Uuid::random();
        let topic = Topic { id, name: TOPIC.into(), partitions: 1, ..Topic::default() };
        self.memory.create_topic(topic).await.unwrap();
        id
    }

    async fn until_loaded(&self) {
        while self.ask(Ask::Read).now() == Some(Err(CoordinatorLoadInProgress)) {
            tokio::task::yield_now().await;
        }
    }

    fn ask(&self, ask: Ask) -> Asked<i64> {
        self.runtime.ask("key", ask)
    }

    fn loads(&self) -> usize {
        self.script.loads.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn every_answer_waits_for_what_it_saw_and_no_longer() {
    let f = Fixture::loaded().await;
    assert_eq!(f.ask(Ask::Read).now(), Some(Ok(0)), "nothing is under way");
    let mut first = f.ask(Ask::Add(1));
    let mut second = f.ask(Ask::Add(2));
    let mut read = f.ask(Ask::Read);
    f.script.store();
    assert_eq!((&mut first).await, Ok(1));
    assert_eq!((second.now(), read.now()), (None, None));
    f.script.store();
    assert_eq!(((&mut second).await, (&mut read).await), (Ok(3), Ok(3)));
    assert_eq!(f.ask(Ask::Read).now(), Some(Ok(3)));
}

#[tokio::test(start_paused = true)]
async fn an_append_with_an_unknown_outcome_ends_all_that_saw_it_and_the_machine_is_built_anew() {
    for stores in [false, true] {
        let f = Fixture::loaded().await;
        let first = f.ask(Ask::Add(1));
        f.script.store();
        assert_eq!(first.await, Ok(1));
        let lost = f.ask(Ask::Add(10));
        let later = f.ask(Ask::Add(100));
        let read = f.ask(Ask::Read);
        let waiting = f.ask(Ask::Wait(60_000));
        f.script.resolve(stores, Err(ErrorCode::KafkaStorageError));
        for asked in [lost, later, read, waiting] {
            assert_eq!(asked.await, Err(NotCoordinator));
        }
        // What was appended behind it has no outcome yet: it must be known before the replay.
        assert_eq!(f.ask(Ask::Read).await, Err(CoordinatorLoadInProgress));
        assert_eq!(f.loads(), 1);
        f.script.store();
        f.until_loaded().await;
        assert_eq!(f.ask(Ask::Read).await, Ok(if stores { 111 } else { 101 }));
    }
}

#[tokio::test]
async fn whoever_lost_the_journal_serves_no_more() {
    for error in [ErrorCode::NotLeaderOrFollower, ErrorCode::UnknownTopicOrPartition] {
        let f = Fixture::loaded().await;
        let (lost, waiting) = (f.ask(Ask::Add(1)), f.ask(Ask::Wait(60_000)));
        f.script.resolve(false, Err(error));
        assert_eq!((lost.await, waiting.await), (Err(NotCoordinator), Err(NotCoordinator)));
        assert_eq!(f.ask(Ask::Read).await, Err(NotCoordinator));
        assert_eq!(f.loads(), 1);
    }
}

#[tokio::test]
async fn what_the_journal_refuses_did_not_happen() {
    let f = Fixture::loaded().await;
    f.script.refusals.lock().unwrap().push_back(ErrorCode::UnknownServerError);
    assert_eq!(f.ask(Ask::Add(1)).now(), Some(Err(ErrorCode::UnknownServerError)));
    assert_eq!(f.ask(Ask::Read).now(), Some(Ok(0)));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_kept_to_the_millisecond_also_if_it_gets_earlier() {
    let f = Fixture::loaded().await;
    let begin = Instant::now();
    let late = f.ask(Ask::Wait(60_000));
    // The shard's task sleeps for the later one.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let early = f.ask(Ask::Wait(7_000));
    assert_eq!((early.await, late.await), (Ok(0), Ok(0)));
    let elapsed = begin.elapsed().as_millis();
    assert!((8_000..8_010).contains(&elapsed), "{elapsed}");
}

#[tokio::test(start_paused = true)]
async fn answers_do_not_wait_longer_for_the_store_than_they_may() {
    let f = Fixture::loaded().await;
    let begin = Instant::now();
    let first = f.ask(Ask::Add(1));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let second = f.ask(Ask::Add(2));
    assert_eq!(first.await, Err(CoordinatorNotAvailable));
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert_eq!(second.await, Err(CoordinatorNotAvailable));
    assert_eq!(begin.elapsed().as_secs(), 7);
    // It is not undone: the store takes its time, but it does what it was told.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(f.ask(Ask::Read).await, Err(CoordinatorNotAvailable));
    f.script.store();
    f.script.store();
    let third = f.ask(Ask::Add(3));
    tokio::time::sleep(Duration::from_secs(1)).await;
    f.script.store();
    assert_eq!(third.await, Ok(6));
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_it_decides_harms_only_who_asked() {
    let f = Fixture::loaded().await;
    let waiting = f.ask(Ask::Wait(1_000));
    let refused = f.ask(Ask::Panic(When::Handled)).now();
    assert_eq!(refused, Some(Err(ErrorCode::UnknownServerError)));
    assert_eq!((waiting.await, f.loads()), (Ok(0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_panics_while_it_changes_is_built_anew() {
    let f = Fixture::loaded().await;
    let (added, waiting) = (f.ask(Ask::Add(1)), f.ask(Ask::Wait(60_000)));
    let panicked = f.ask(Ask::Panic(When::Noted));
    for asked in [added, waiting, panicked] {
        assert_eq!(asked.await, Err(NotCoordinator));
    }
    f.script.store();
    f.until_loaded().await;
    assert_eq!((f.ask(Ask::Read).await, f.loads()), (Ok(1), 2));
}

#[tokio::test(start_paused = true)]
async fn who_comes_while_the_journal_is_read_is_told_to_come_again() {
    let script = Script { gate: Some(Semaphore::new(0)), ..Script::default() };
    script.stored.lock().unwrap().extend([1, 2]);
    let away = StoreError::Unavailable("as the test wants it".into());
    script.failing_loads.lock().unwrap().push_back(away);
    let f = Fixture::new(script).await;
    assert_eq!(f.ask(Ask::Read).await, Err(CoordinatorLoadInProgress));
    f.script.gate.as_ref().unwrap().add_permits(2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((f.ask(Ask::Read).await, f.loads()), (Ok(3), 2));
}

#[tokio::test]
async fn without_a_topic_there_is_no_coordinator_and_with_a_new_one_there_is_a_new_one() {
    let f = Fixture::new(Script::default()).await;
    f.until_loaded().await;
    let waiting = f.ask(Ask::Wait(60_000));
    let old = f.memory.topics().by_name(TOPIC).unwrap().id;
    f.memory.delete_topic(old).await.unwrap();
    f.runtime.refresh();
    assert_eq!(waiting.await, Err(NotCoordinator));
    assert_eq!(f.ask(Ask::Read).await, Err(NotCoordinator));
    assert_eq!(f.runtime.ask_all(|| Ask::Read).unwrap().len(), 0);
    f.create_topic().await;
    f.until_loaded().await;
    assert_eq!((f.ask(Ask::Read).await, f.loads()), (Ok(0), 2));
}

#[tokio::test]
async fn what_is_stored_while_the_machine_ends_is_answered() {
    let f = Fixture::loaded().await;
    let asked = f.ask(Ask::Add(1));
    // Now the shard's task waits for the store. It learns of both at once.
    tokio::task::yield_now().await;
    f.script.store();
    f.runtime.end();
    assert_eq!(asked.await, Ok(1));
}

#[tokio::test]
async fn at_the_end_what_is_under_way_is_answered_and_the_others_are_sent_away() {
    let f = Fixture::loaded().await;
    let waiting = f.ask(Ask::Wait(60_000));
    let stored = [f.ask(Ask::Add(1)), f.ask(Ask::Add(2)), f.ask(Ask::Read)];
    let lost = f.ask(Ask::Add(3));
    f.runtime.end();
    assert_eq!(waiting.await, Err(NotCoordinator));
    assert_eq!(f.ask(Ask::Read).await, Err(NotCoordinator));
    assert!(f.runtime.ask_all(|| Ask::Read).is_err());
    f.script.store();
    f.script.store();
    f.script.resolve(false, Err(ErrorCode::NotLeaderOrFollower));
    for (asked, answer) in stored.into_iter().zip([1, 3, 3]) {
        assert_eq!(asked.await, Ok(answer));
    }
    assert_eq!(lost.await, Err(NotCoordinator));
}

#[tokio::test]
async fn who_is_told_while_it_loads_does_it_then() {
    let script = Script { gate: Some(Semaphore::new(0)), ..Script::default() };
    let f = Fixture::new(script).await;
    f.runtime.tell_all(|| Ask::Add(1));
    f.script.gate.as_ref().unwrap().add_permits(1);
    while f.script.under_way.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    f.script.store();
    f.until_loaded().await;
    assert_eq!(f.ask(Ask::Read).await, Ok(1));
}

#[tokio::test]
async fn what_a_machine_missed_it_is_told_before_all_else() {
    let script = Script { gate: Some(Semaphore::new(0)), ..Script::default() };
    script.stored.lock().unwrap().push(MISSED);
    let f = Fixture::new(script).await;
    f.runtime.tell_all(|| Ask::Add(1));
    f.script.gate.as_ref().unwrap().add_permits(1);
    while f.script.under_way.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(f.script.under_way.lock().unwrap()[0].0, [1_000]);
    f.script.store();
    f.script.store();
    assert_eq!(f.ask(Ask::Read).await, Ok(MISSED + 1_001));
}

#[test]
fn a_key_is_in_the_partition_in_which_kafka_has_it() {
    // `Math.abs("…".hashCode()) % 50` of Java, `Utils.abs` for the smallest number.
    for (key, partition) in
        [("", 0), ("a", 47), ("polygenelubricants", 0), ("gruppe-ß", 43), ("😀", 49)]
    {
        assert_eq!(partition_of(key, 50), partition, "{key}");
    }
}
