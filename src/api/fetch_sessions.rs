//! Fetch sessions: a client names its partitions once, then only what changes of them, and is told
//! only of those that have something new (KIP-227).
//!
//! ```text
//!        full fetch, epoch 0            incremental fetch, epoch n
//!  none ─────────────────────▶ open, 1 ────────────────────────────▶ open, n + 1
//! ```
//!
//! A session ends when a full fetch names it, when its last partition is forgotten, or when another
//! one needs its place. Nobody is hurt by that: its client opens another, or asks without one.
//!
//! Source: `FetchSession`, `FetchContext` and `FetchSessionCacheShard` of Apache Kafka 4.4, but for two things:
//! there is one shard, and no session of a follower, as nobody follows this broker.

use crate::messages::fetch::{
    FetchPartition, FetchTopic, FetchableTopicResponse, ForgottenTopic, PartitionData, Request,
    Response,
};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The epochs of full fetches: one that opens a session, and one that does not.
const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;

/// The session id that stands for none.
const NO_SESSION: i32 = 0;

/// A session that was used in this time keeps its place, and a younger one too.
const EVICTION: Duration = Duration::from_secs(120);

/// What all sessions may take in memory. Kafka bounds their number only, and a client may name
/// many partitions, of topics that do not exist too.
const MAX_BYTES: usize = 64 << 20;

/// About what a partition takes besides its topic's name.
const PARTITION_BYTES: usize = 250;

pub(super) struct FetchSessions(Mutex<Cache>);

/// What a request is to its session.
pub(super) enum Turn {
    /// It has none.
    Without,
    /// It opens this one when it is answered.
    Opens(Session),
    /// It goes on with one, whose epoch is this as long as no other request of it came.
    Continues { id: i32, session: Arc<Mutex<Session>>, epoch: i32 },
}

impl FetchSessions {
    pub(super) fn new(slots: i32) -> Self {
        Self(Mutex::new(Cache::new(slots.unsigned_abs() as usize, MAX_BYTES)))
    }

    /// Takes a request into its session: it asks for all partitions of that then, those first that
    /// brought nothing for longest.
    pub(super) fn begin(
        &self,
        request: &mut Request,
        uses_topic_ids: bool,
        now: Instant,
    ) -> Result<Turn, ErrorCode> {
        let id = request.session_id;
        if let epoch @ (INITIAL_EPOCH | FINAL_EPOCH) = request.session_epoch {
            if id != NO_SESSION {
                lock(&self.0).remove(id);
            }
            if epoch == FINAL_EPOCH {
                return Ok(Turn::Without);
            }
            let mut session = Session { uses_topic_ids, epoch: 1, ..Session::default() };
            session.update(&request.topics, &[]);
            request.topics = session.topics();
            return Ok(Turn::Opens(session));
        }
        let session = lock(&self.0).find(id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let mut open = lock(&session);
        open.check(request.session_epoch, uses_topic_ids)?;
        open.update(&request.topics, &request.forgotten_topics_data);
        // Always: an answer that is still waited for knows other partitions.
        open.epoch = next_epoch(open.epoch);
        if open.partitions.is_empty() {
            drop(open);
            lock(&self.0).remove(id);
            return Ok(Turn::Without);
        }
        request.topics = open.topics();
        let (epoch, size) = (open.epoch, open.size());
        drop(open);
        lock(&self.0).touch(id, size, now);
        Ok(Turn::Continues { id, session, epoch })
    }

    /// Takes an answer into the session of its request, and leaves in it what the client must be told.
    pub(super) fn finish(&self, turn: Turn, response: &mut Response, now: Instant) {
        match turn {
            Turn::Without => {}
            Turn::Opens(mut session) => {
                session.partitions.values_mut().zip(partitions(response)).for_each(
                    |(cached, data)| {
                        cached.high_watermark = data.high_watermark;
                        cached.log_start_offset = data.log_start_offset;
                    },
                );
                let random = || rand::random_range(1..=i32::MAX);
                response.session_id = lock(&self.0).open(session, now, random);
            }
            Turn::Continues { id, session, epoch } => {
                response.session_id = id;
                let mut session = lock(&session);
                if session.epoch == epoch {
                    session.keep_news(&mut response.responses);
                } else {
                    // The client did not wait for this answer, and sent something else.
                    response.error_code = ErrorCode::InvalidFetchSessionEpoch;
                    response.responses.clear();
                }
            }
        }
    }
}

fn partitions(response: &Response) -> impl Iterator<Item = &PartitionData> {
    response.responses.iter().flat_map(|topic| &topic.partitions)
}

/// Nothing panics under these locks, so what they guard is whole even if a thread died.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Epochs go from 1 to the largest and start again at 1: 0 opens a session.
fn next_epoch(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}

/// The partitions that a client reads, and what it knows of them.
#[derive(Default)]
pub(super) struct Session {
    uses_topic_ids: bool,
    /// What the next request has to say.
    epoch: i32,
    /// In the order in which they are served.
    partitions: BTreeMap<u64, Cached>,
    places: HashMap<Key, u64>,
    /// Larger than every place.
    next_place: u64,
    name_bytes: usize,
}

/// Topics have a name or an id, as the version of the requests says; the other one is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    topic: Str,
    topic_id: Uuid,
    partition: i32,
}

struct Cached {
    key: Key,
    fetch_offset: i64,
    max_bytes: i32,
    current_leader_epoch: i32,
    last_fetched_epoch: i32,
    /// What the client was told; -1 if nothing, or an error.
    high_watermark: i64,
    log_start_offset: i64,
}

/// How much of the cache a session takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    partitions: usize,
    bytes: usize,
}

impl Session {
    fn check(&self, epoch: i32, uses_topic_ids: bool) -> Result<(), ErrorCode> {
        if epoch != self.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if uses_topic_ids != self.uses_topic_ids {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        Ok(())
    }

    fn size(&self) -> Size {
        let partitions = self.partitions.len();
        Size { partitions, bytes: partitions * PARTITION_BYTES + self.name_bytes }
    }

    /// Takes in which partitions a request adds, changes and forgets.
    fn update(&mut self, topics: &[FetchTopic], forgotten: &[ForgottenTopic]) {
        for FetchTopic { topic, topic_id, partitions } in topics {
            // The request's name is a slice of its frame, which must not live on.
            let topic = Str::from(&**topic);
            for partition in partitions {
                let (topic, partition_index) = (topic.clone(), partition.partition);
                let key = Key { topic, topic_id: *topic_id, partition: partition_index };
                self.set(key, partition);
            }
        }
        for ForgottenTopic { topic, topic_id, partitions } in forgotten {
            for &partition in partitions {
                let key = Key { topic: topic.clone(), topic_id: *topic_id, partition };
                if let Some(place) = self.places.remove(&key) {
                    self.partitions.remove(&place);
                    self.name_bytes -= key.topic.len();
                }
            }
        }
    }

    fn set(&mut self, key: Key, wanted: &FetchPartition) {
        let place = self.places.get(&key).copied();
        let known = place.and_then(|place| self.partitions.get_mut(&place));
        if let Some(cached) = known {
            return cached.set(wanted);
        }
        let mut cached = Cached {
            key: key.clone(),
            fetch_offset: 0,
            max_bytes: 0,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            high_watermark: -1,
            log_start_offset: -1,
        };
        cached.set(wanted);
        self.name_bytes += key.topic.len();
        self.places.insert(key, self.next_place);
        self.partitions.insert(self.next_place, cached);
        self.next_place += 1;
    }

    /// All partitions as a request names them.
    fn topics(&self) -> Vec<FetchTopic> {
        let mut topics: Vec<FetchTopic> = Vec::new();
        for cached in self.partitions.values() {
            let Key { topic, topic_id, .. } = &cached.key;
            match topics.last_mut().filter(|t| (&t.topic, &t.topic_id) == (topic, topic_id)) {
                Some(last) => last.partitions.push(cached.wanted()),
                None => topics.push(FetchTopic {
                    topic: topic.clone(),
                    topic_id: *topic_id,
                    partitions: vec![cached.wanted()],
                }),
            }
        }
        topics
    }

    /// Leaves in an answer to all partitions those of which the client must be told. Who got records
    /// is served last from now on, so that a limit of the request starves nobody.
    fn keep_news(&mut self, topics: &mut Vec<FetchableTopicResponse>) {
        let mut all = self.partitions.iter_mut();
        let mut served = Vec::new();
        for topic in &mut *topics {
            topic.partitions.retain(|data| {
                let Some((place, cached)) = all.next() else {
                    unreachable!("the request asked for the partitions of its session");
                };
                if has_records(data) {
                    served.push(*place);
                }
                cached.is_news(data)
            });
        }
        topics.retain(|topic| !topic.partitions.is_empty());
        for place in served {
            if let Some(cached) = self.partitions.remove(&place) {
                self.places.insert(cached.key.clone(), self.next_place);
                self.partitions.insert(self.next_place, cached);
                self.next_place += 1;
            }
        }
    }
}

impl Cached {
    fn set(&mut self, wanted: &FetchPartition) {
        self.fetch_offset = wanted.fetch_offset;
        self.max_bytes = wanted.partition_max_bytes;
        self.current_leader_epoch = wanted.current_leader_epoch;
        self.last_fetched_epoch = wanted.last_fetched_epoch;
    }

    fn wanted(&self) -> FetchPartition {
        FetchPartition {
            partition: self.key.partition,
            fetch_offset: self.fetch_offset,
            partition_max_bytes: self.max_bytes,
            current_leader_epoch: self.current_leader_epoch,
            last_fetched_epoch: self.last_fetched_epoch,
            ..FetchPartition::default()
        }
    }

    /// Whether the client must be told, and what it knows then.
    fn is_news(&mut self, data: &PartitionData) -> bool {
        let told = (self.high_watermark, self.log_start_offset);
        self.high_watermark = data.high_watermark;
        self.log_start_offset = data.log_start_offset;
        if data.error_code.is_error() {
            // When it is over, the client is told too.
            self.high_watermark = -1;
            return true;
        }
        let is_moved = told != (data.high_watermark, data.log_start_offset);
        let is_elsewhere = data.preferred_read_replica >= 0 || data.diverging_epoch.epoch >= 0;
        has_records(data) || is_moved || is_elsewhere
    }
}

fn has_records(data: &PartitionData) -> bool {
    data.records.as_ref().is_some_and(|records| !records.is_empty())
}

/// All sessions that are open, at most so many and so large.
struct Cache {
    slots: usize,
    max_bytes: usize,
    bytes: usize,
    sessions: HashMap<i32, Slot>,
    by_last_use: BTreeSet<(Instant, i32)>,
    /// Sessions that are old enough to give way, by their number of partitions: those with fewer
    /// are worth less.
    by_worth: BTreeSet<(usize, i32)>,
}

struct Slot {
    session: Arc<Mutex<Session>>,
    opened: Instant,
    used: Instant,
    size: Size,
}

impl Cache {
    fn new(slots: usize, max_bytes: usize) -> Self {
        let (by_last_use, by_worth) = (BTreeSet::new(), BTreeSet::new());
        Self { slots, max_bytes, bytes: 0, sessions: HashMap::new(), by_last_use, by_worth }
    }

    fn find(&self, id: i32) -> Option<Arc<Mutex<Session>>> {
        self.sessions.get(&id).map(|slot| slot.session.clone())
    }

    /// Opens a session under one of the ids that are given, or does not: then the client goes on without.
    fn open(&mut self, session: Session, now: Instant, mut ids: impl FnMut() -> i32) -> i32 {
        let size = session.size();
        if size.bytes > self.max_bytes {
            return NO_SESSION;
        }
        while self.sessions.len() >= self.slots || self.bytes + size.bytes > self.max_bytes {
            let Some(evicted) = self.to_evict(size.partitions, now) else { return NO_SESSION };
            self.remove(evicted);
        }
        let mut id = ids();
        while self.sessions.contains_key(&id) {
            id = ids();
        }
        let session = Arc::new(Mutex::new(session));
        let slot = Slot { session, opened: now, used: now, size: Size::default() };
        self.sessions.insert(id, slot);
        self.touch(id, size, now);
        id
    }

    /// A session that has to give way to one of so many partitions: an unused one, or one that is not
    /// young and has fewer.
    fn to_evict(&self, partitions: usize, now: Instant) -> Option<i32> {
        let (used, id) = *self.by_last_use.first()?;
        if now - used > EVICTION {
            return Some(id);
        }
        self.by_worth.first().filter(|(worth, _)| *worth < partitions).map(|(_, id)| *id)
    }

    /// Notes that a session was used, and how large it is now. One that became too large goes: its
    /// client is told at its next fetch.
    fn touch(&mut self, id: i32, size: Size, now: Instant) {
        let Some(slot) = self.sessions.get_mut(&id) else { return };
        self.by_last_use.remove(&(slot.used, id));
        self.by_worth.remove(&(slot.size.partitions, id));
        self.bytes = self.bytes - slot.size.bytes + size.bytes;
        (slot.used, slot.size) = (now, size);
        self.by_last_use.insert((now, id));
        if now - slot.opened > EVICTION {
            self.by_worth.insert((size.partitions, id));
        }
        if self.bytes > self.max_bytes {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: i32) {
        if let Some(slot) = self.sessions.remove(&id) {
            self.by_last_use.remove(&(slot.used, id));
            self.by_worth.remove(&(slot.size.partitions, id));
            self.bytes -= slot.size.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::wire::Records;
    use bytes::Bytes;

    /// Sessions, and what the partitions of the topic `clicks` hold.
    struct Fixture {
        sessions: FetchSessions,
        now: Instant,
        data: BTreeMap<i32, PartitionData>,
    }

    /// What came back: the error, the session, the partitions in their order.
    type Told = (ErrorCode, i32, Vec<i32>);

    impl Fixture {
        fn new() -> Self {
            let (sessions, now) = (FetchSessions::new(10), Instant::now());
            Self { sessions, now, data: BTreeMap::new() }
        }

        fn begin(&self, mut request: Request) -> Result<(Turn, Request), ErrorCode> {
            let turn = self.sessions.begin(&mut request, false, self.now)?;
            Ok((turn, request))
        }

        fn finish(&self, turn: Turn, request: &Request) -> Told {
            let data = |wanted: &FetchPartition| {
                let data = self.data.get(&wanted.partition).cloned().unwrap_or_default();
                PartitionData { partition_index: wanted.partition, ..data }
            };
            let topic = |topic: &FetchTopic| FetchableTopicResponse {
                partitions: topic.partitions.iter().map(data).collect(),
                ..FetchableTopicResponse::default()
            };
            let responses = request.topics.iter().map(topic).collect();
            let mut response = Response { responses, ..Response::default() };
            self.sessions.finish(turn, &mut response, self.now);
            let told = partitions(&response).map(|data| data.partition_index).collect();
            (response.error_code, response.session_id, told)
        }

        fn fetch(&self, id: i32, epoch: i32, partitions: &[i32]) -> Told {
            match self.begin(request(id, epoch, partitions)) {
                Ok((turn, request)) => self.finish(turn, &request),
                Err(code) => (code, 0, vec![]),
            }
        }

        fn forget(&self, id: i32, epoch: i32, partitions: &[i32]) -> Told {
            let topic = Str::from("clicks");
            let gone =
                ForgottenTopic { topic, partitions: partitions.to_vec(), ..Default::default() };
            let forgotten_topics_data = vec![gone];
            let request = Request { forgotten_topics_data, ..request(id, epoch, &[]) };
            let (turn, request) = self.begin(request).unwrap();
            self.finish(turn, &request)
        }

        fn open(&self, partitions: &[i32]) -> i32 {
            let (code, id, told) = self.fetch(0, 0, partitions);
            assert_eq!((code, &told[..]), (ErrorCode::None, partitions));
            assert!(id > 0);
            id
        }

        /// From now on a partition has so many records, and gives some of them.
        fn put(&mut self, partition: i32, high_watermark: i64) {
            let records = Some(Records(vec![Bytes::from_static(b"batch")]));
            let data = PartitionData { high_watermark, records, ..PartitionData::default() };
            self.data.insert(partition, data);
        }

        /// From now on all that a partition has was read.
        fn read(&mut self, partition: i32) {
            self.data.get_mut(&partition).unwrap().records = None;
        }
    }

    fn request(session_id: i32, session_epoch: i32, partitions: &[i32]) -> Request {
        let wanted = |partition: &i32| FetchPartition {
            partition: *partition,
            fetch_offset: i64::from(session_epoch),
            ..FetchPartition::default()
        };
        let topic = FetchTopic {
            topic: Str::from("clicks"),
            partitions: partitions.iter().map(wanted).collect(),
            ..FetchTopic::default()
        };
        let topics = if partitions.is_empty() { vec![] } else { vec![topic] };
        Request { session_id, session_epoch, topics, ..Request::default() }
    }

    fn told(id: i32, partitions: &[i32]) -> Told {
        (ErrorCode::None, id, partitions.to_vec())
    }

    fn refused(code: ErrorCode) -> Told {
        (code, 0, vec![])
    }

    #[test]
    fn requests_of_a_session_come_one_after_the_other() {
        let f = Fixture::new();
        let id = f.open(&[0, 1]);
        assert_eq!(f.fetch(id, 1, &[]), told(id, &[]));
        let wrong = refused(ErrorCode::InvalidFetchSessionEpoch);
        assert_eq!(f.fetch(id, 1, &[]), wrong);
        assert_eq!(f.fetch(id, 3, &[]), wrong);
        assert_eq!(f.fetch(id, 2, &[]), told(id, &[]));
        let unknown = refused(ErrorCode::FetchSessionIdNotFound);
        assert_eq!(f.fetch(id ^ 1, 3, &[]), unknown);
        assert_eq!(f.fetch(0, 3, &[]), unknown);
        assert_eq!(f.fetch(0, -2, &[]), unknown);
        let mut by_id = request(id, 3, &[]);
        let refused = f.sessions.begin(&mut by_id, true, f.now).err();
        assert_eq!(refused, Some(ErrorCode::FetchSessionTopicIdError));
        assert_eq!(f.fetch(id, 3, &[]), told(id, &[]), "nothing that was refused counts");
        assert_eq!([next_epoch(1), next_epoch(i32::MAX)], [2, 1]);
    }

    #[test]
    fn a_full_fetch_ends_the_session_that_it_names() {
        let f = Fixture::new();
        let id = f.open(&[0]);
        assert_eq!(f.fetch(id, -1, &[0, 1]), told(0, &[0, 1]));
        assert_eq!(f.fetch(id, 1, &[]), refused(ErrorCode::FetchSessionIdNotFound));
        let id = f.open(&[0]);
        let (_, next, _) = f.fetch(id, 0, &[0]);
        assert_eq!(f.fetch(id, 1, &[]), refused(ErrorCode::FetchSessionIdNotFound));
        assert_eq!(f.fetch(next, 1, &[]), told(next, &[]));
    }

    #[test]
    fn a_client_is_told_of_what_has_something_new() {
        let mut f = Fixture::new();
        let id = f.open(&[0, 1, 2]);
        f.put(1, 5);
        assert_eq!(f.fetch(id, 1, &[]), told(id, &[1]));
        // It did not say that it read them.
        assert_eq!(f.fetch(id, 2, &[]), told(id, &[1]));
        f.read(1);
        assert_eq!(f.fetch(id, 3, &[1]), told(id, &[]));
        f.data.get_mut(&1).unwrap().high_watermark = 6;
        assert_eq!(f.fetch(id, 4, &[]), told(id, &[1]));
        f.data.get_mut(&1).unwrap().log_start_offset = 2;
        assert_eq!(f.fetch(id, 5, &[]), told(id, &[1]));
        assert_eq!(f.fetch(id, 6, &[]), told(id, &[]));
        // An error as long as there is one, and its end.
        f.data.get_mut(&1).unwrap().error_code = ErrorCode::NotLeaderOrFollower;
        assert_eq!(f.fetch(id, 7, &[]), told(id, &[1]));
        assert_eq!(f.fetch(id, 8, &[]), told(id, &[1]));
        f.data.get_mut(&1).unwrap().error_code = ErrorCode::None;
        assert_eq!(f.fetch(id, 9, &[]), told(id, &[1]));
        assert_eq!(f.fetch(id, 10, &[]), told(id, &[]));
    }

    #[test]
    fn partitions_are_added_changed_and_forgotten() {
        let f = Fixture::new();
        let id = f.open(&[0, 1]);
        // A new one is always told of: the client knows nothing of it.
        assert_eq!(f.fetch(id, 1, &[2, 0]), told(id, &[2]));
        let (_, asked) = f.begin(request(id, 2, &[1])).unwrap();
        let asked = asked.topics[0].partitions.iter().map(|p| (p.partition, p.fetch_offset));
        assert_eq!(asked.collect::<Vec<_>>(), [(0, 1), (1, 2), (2, 1)]);
        assert_eq!(f.forget(id, 3, &[0, 7]), told(id, &[]));
        let (_, asked) = f.begin(request(id, 4, &[])).unwrap();
        assert_eq!(asked.topics[0].partitions.len(), 2);
        assert_eq!(f.forget(id, 5, &[1, 2]), told(0, &[]));
        assert_eq!(f.fetch(id, 6, &[]), refused(ErrorCode::FetchSessionIdNotFound));
        let cache = lock(&f.sessions.0);
        assert_eq!((cache.bytes, cache.by_last_use.len()), (0, 0));
    }

    #[test]
    fn who_got_records_is_served_last_the_next_time() {
        let mut f = Fixture::new();
        let id = f.open(&[0, 1, 2, 3]);
        f.put(0, 5);
        f.put(2, 5);
        assert_eq!(f.fetch(id, 1, &[]), told(id, &[0, 2]));
        assert_eq!(f.fetch(id, 2, &[]), told(id, &[0, 2]));
        f.put(1, 5);
        assert_eq!(f.fetch(id, 3, &[]), told(id, &[1, 0, 2]));
        f.read(0);
        f.put(3, 5);
        assert_eq!(f.fetch(id, 4, &[]), told(id, &[3, 1, 2]));
        assert_eq!(f.fetch(id, 5, &[]), told(id, &[3, 1, 2]));
    }

    #[test]
    fn an_answer_that_came_too_late_changes_nothing() {
        let mut f = Fixture::new();
        let id = f.open(&[0, 1]);
        let (late, request_of_late) = f.begin(request(id, 1, &[])).unwrap();
        f.put(1, 5);
        assert_eq!(f.fetch(id, 2, &[]), told(id, &[1]));
        let answer = f.finish(late, &request_of_late);
        assert_eq!(answer, (ErrorCode::InvalidFetchSessionEpoch, id, vec![]));
        f.read(1);
        assert_eq!(f.fetch(id, 3, &[]), told(id, &[]));
    }

    #[test]
    fn an_answer_that_finds_no_partition_in_its_session_came_too_late() {
        let f = Fixture::new();
        let id = f.open(&[0]);
        let (late, request_of_late) = f.begin(request(id, 1, &[])).unwrap();
        assert_eq!(f.forget(id, 2, &[0]), told(0, &[]));
        let answer = f.finish(late, &request_of_late);
        assert_eq!(answer, (ErrorCode::InvalidFetchSessionEpoch, id, vec![]));
    }

    #[test]
    fn a_partition_that_is_named_twice_is_one_and_the_last_word_counts() {
        let f = Fixture::new();
        let mut twice = request(0, 0, &[0, 1, 0]);
        twice.topics[0].partitions[2].fetch_offset = 7;
        let (turn, asked) = f.begin(twice).unwrap();
        let offsets: Vec<_> = asked.topics[0].partitions.iter().map(|p| p.fetch_offset).collect();
        assert_eq!(offsets, [7, 0]);
        assert_eq!(f.finish(turn, &asked).2, [0, 1]);
    }

    fn session(partitions: i32) -> Session {
        let mut session = Session::default();
        let partitions: Vec<i32> = (0..partitions).collect();
        session.update(&request(0, 0, &partitions).topics, &[]);
        session
    }

    /// `FetchSessionTest.testSessionCache` of Apache Kafka: an eviction time is 100 there.
    #[test]
    fn an_unused_session_gives_way_and_then_a_small_one_that_is_not_young() {
        let begin = Instant::now();
        let at = |time: u32| begin + EVICTION * time / 100;
        let mut next_id = 0;
        let mut ids = || {
            next_id += 1;
            next_id
        };
        let mut cache = Cache::new(3, MAX_BYTES);
        let mut open =
            |cache: &mut Cache, time, size| cache.open(session(size), at(time), &mut ids);
        let touch = |cache: &mut Cache, id: i32, time| {
            let size = cache.sessions[&id].size;
            cache.touch(id, size, at(time));
        };
        let has = |cache: &Cache| {
            let mut ids: Vec<i32> = cache.sessions.keys().copied().collect();
            ids.sort_unstable();
            ids
        };
        let opened = [(0, 10), (10, 20), (20, 30)].map(|(time, size)| open(&mut cache, time, size));
        assert_eq!(opened, [1, 2, 3]);
        assert_eq!(open(&mut cache, 30, 40), NO_SESSION);
        assert_eq!(open(&mut cache, 40, 5), NO_SESSION);
        assert_eq!(has(&cache), [1, 2, 3]);
        touch(&mut cache, 1, 200);
        assert_eq!(open(&mut cache, 210, 11), 4);
        assert_eq!(has(&cache), [1, 3, 4]);
        touch(&mut cache, 1, 400);
        touch(&mut cache, 3, 390);
        touch(&mut cache, 4, 400);
        assert_eq!(open(&mut cache, 410, 50), 5);
        assert_eq!(has(&cache), [3, 4, 5]);
        assert_eq!(open(&mut cache, 410, 5), NO_SESSION);
        assert_eq!(open(&mut cache, 410, 11), NO_SESSION, "as many are not more");
        assert_eq!((cache.by_last_use.len(), cache.by_worth.len()), (3, 2));
    }

    #[test]
    fn sessions_take_only_so_much_memory() {
        let now = Instant::now();
        let ten = session(10).size().bytes;
        let mut cache = Cache::new(100, 2 * ten);
        assert_eq!(cache.open(session(21), now, || 9), NO_SESSION);
        assert_eq!(cache.open(session(10), now, || 1), 1);
        assert_eq!(cache.open(session(9), now, || 2), 2);
        assert_eq!(cache.open(session(2), now, || 3), NO_SESSION);
        // One that grows beyond the limit ends.
        cache.touch(2, session(10).size(), now);
        assert_eq!(cache.sessions.len(), 2);
        cache.touch(2, session(11).size(), now);
        assert_eq!((cache.sessions.len(), cache.bytes), (1, ten));
        assert!(ten > 10 * (size_of::<Cached>() + size_of::<Key>()));
        assert_eq!(Cache::new(0, MAX_BYTES).open(session(1), now, || 1), NO_SESSION);
    }

    #[test]
    fn a_name_does_not_keep_its_frame() {
        let frame = Bytes::from("clicks".repeat(1000));
        let topic = Str::try_from(frame.slice(..6)).unwrap();
        let mut request = request(0, 0, &[0, 1]);
        request.topics[0].topic = topic;
        let mut session = Session::default();
        session.update(&request.topics, &[]);
        drop(request);
        assert!(frame.is_unique());
        assert_eq!(session.topics()[0].partitions.len(), 2);
    }
}
