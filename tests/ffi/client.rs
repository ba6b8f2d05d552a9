//! A Kafka client of a few old, simple versions, written from the protocol's documentation: the
//! engine's own tables would not show a mistake in them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

pub(crate) struct Client {
    stream: TcpStream,
}

/// The answer to a produce.
#[derive(Debug, PartialEq)]
pub(crate) struct Produced {
    pub(crate) error_code: i16,
    pub(crate) base_offset: i64,
}

/// The answer to a fetch.
#[derive(Debug, PartialEq)]
pub(crate) struct Fetched {
    pub(crate) error_code: i16,
    pub(crate) high_watermark: i64,
    pub(crate) records: Vec<u8>,
}

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const OFFSET_COMMIT: i16 = 8;
const OFFSET_FETCH: i16 = 9;
const FIND_COORDINATOR: i16 = 10;
const JOIN_GROUP: i16 = 11;
const HEARTBEAT: i16 = 12;
const SYNC_GROUP: i16 = 14;
const API_VERSIONS: i16 = 18;
const CREATE_TOPICS: i16 = 19;
const DELETE_TOPICS: i16 = 20;
const DESCRIBE_CONFIGS: i16 = 32;
const CREATE_PARTITIONS: i16 = 37;
const INCREMENTAL_ALTER_CONFIGS: i16 = 44;
/// A resource that has configs.
const BROKER: u8 = 4;

const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;

/// The member of a group, or one who is none and only commits offsets.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    group: String,
    generation: i32,
    id: String,
}

impl Member {
    pub(crate) fn none_of(group: &str) -> Self {
        Self { group: group.to_owned(), generation: -1, id: String::new() }
    }

    /// How most requests of a member begin.
    fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_text(&mut body, &self.group);
        body.extend(self.generation.to_be_bytes());
        put_text(&mut body, &self.id);
        body
    }
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream }
    }

    /// The API keys that are offered.
    pub(crate) fn api_keys(&mut self) -> Vec<i16> {
        let answer = self.call(API_VERSIONS, 0, &[]);
        let mut answer = &answer[..];
        assert_eq!(i16::from_be_bytes(take(&mut answer)), 0);
        let count = i32::from_be_bytes(take(&mut answer));
        let mut key = || {
            let key = i16::from_be_bytes(take(&mut answer));
            let _versions: [u8; 4] = take(&mut answer);
            key
        };
        (0..count).map(|_| key()).collect()
    }

    /// Creates a topic of one partition; gives the error code.
    pub(crate) fn create_topic(&mut self, name: &str) -> i16 {
        let mut body = array_of_one();
        put_text(&mut body, name);
        body.extend(1i32.to_be_bytes());
        body.extend(1i16.to_be_bytes());
        body.extend([0; 8]); // no assignments, no configs
        body.extend(10_000i32.to_be_bytes());
        let answer = self.call(CREATE_TOPICS, 0, &body);
        let mut answer = &answer[4..];
        take_text(&mut answer);
        i16::from_be_bytes(take(&mut answer))
    }

    /// Deletes a topic; gives the error code.
    pub(crate) fn delete_topic(&mut self, name: &str) -> i16 {
        let mut body = array_of_one();
        put_text(&mut body, name);
        body.extend(10_000i32.to_be_bytes());
        let answer = self.call(DELETE_TOPICS, 0, &body);
        let mut answer = &answer[4..];
        take_text(&mut answer);
        i16::from_be_bytes(take(&mut answer))
    }

    /// Gives a topic so many partitions; gives the error code.
    pub(crate) fn create_partitions(&mut self, name: &str, count: i32) -> i16 {
        let mut body = array_of_one();
        put_text(&mut body, name);
        body.extend(count.to_be_bytes());
        body.extend((-1i32).to_be_bytes()); // no assignments
        body.extend(10_000i32.to_be_bytes());
        body.push(0);
        let answer = self.call(CREATE_PARTITIONS, 0, &body);
        let mut answer = &answer[8..]; // the throttle time and the count
        take_text(&mut answer);
        i16::from_be_bytes(take(&mut answer))
    }

    /// Sets a property of broker 1 while it runs; gives the error code.
    pub(crate) fn set_of_broker(&mut self, name: &str, value: &str) -> i16 {
        let mut body = array_of_one();
        body.push(BROKER);
        put_text(&mut body, "1");
        body.extend(array_of_one());
        put_text(&mut body, name);
        body.push(0); // SET
        put_text(&mut body, value);
        body.push(0);
        let answer = self.call(INCREMENTAL_ALTER_CONFIGS, 0, &body);
        let mut answer = &answer[8..]; // the throttle time and the count
        i16::from_be_bytes(take(&mut answer))
    }

    /// The value of a property of broker 1.
    pub(crate) fn of_broker(&mut self, name: &str) -> String {
        let mut body = array_of_one();
        body.push(BROKER);
        put_text(&mut body, "1");
        body.extend(array_of_one());
        put_text(&mut body, name);
        let answer = self.call(DESCRIBE_CONFIGS, 0, &body);
        let mut answer = &answer[8..]; // the throttle time and the count
        assert_eq!(i16::from_be_bytes(take(&mut answer)), 0);
        take_text(&mut answer); // no message
        let _type: [u8; 1] = take(&mut answer);
        take_text(&mut answer); // the broker
        let count: [u8; 4] = take(&mut answer);
        assert_eq!(i32::from_be_bytes(count), 1);
        assert_eq!(take_text(&mut answer), name);
        take_text(&mut answer)
    }

    /// Appends a batch to partition 0.
    pub(crate) fn produce(&mut self, topic: &str, batch: &[u8], timeout_ms: i32) -> Produced {
        self.send_produce(topic, batch, timeout_ms);
        self.produced()
    }

    /// Appends a batch many times, without waiting for an answer before the next.
    pub(crate) fn produce_many(&mut self, topic: &str, times: usize, batch: &[u8]) {
        (0..times).for_each(|_| self.send_produce(topic, batch, 10_000));
        for n in 0..times {
            let base_offset = n as i64;
            assert_eq!(self.produced(), Produced { error_code: 0, base_offset });
        }
    }

    fn send_produce(&mut self, topic: &str, batch: &[u8], timeout_ms: i32) {
        let mut body = (-1i16).to_be_bytes().to_vec(); // no transaction
        body.extend((-1i16).to_be_bytes()); // acks=all
        body.extend(timeout_ms.to_be_bytes());
        body.extend(array_of_one());
        put_text(&mut body, topic);
        body.extend(array_of_one());
        body.extend(0i32.to_be_bytes());
        body.extend(i32::try_from(batch.len()).unwrap().to_be_bytes());
        body.extend(batch);
        self.send(PRODUCE, 3, &body);
    }

    fn produced(&mut self) -> Produced {
        let answer = self.answer();
        let mut answer = partition_of(&answer);
        let error_code = i16::from_be_bytes(take(&mut answer));
        Produced { error_code, base_offset: i64::from_be_bytes(take(&mut answer)) }
    }

    /// Reads partition 0 from an offset on.
    pub(crate) fn fetch(&mut self, topic: &str, offset: i64) -> Fetched {
        self.send(FETCH, 6, &fetch_body(topic, offset));
        let answer = self.answer();
        let mut answer = partition_of(&answer[4..]);
        let error_code = i16::from_be_bytes(take(&mut answer));
        let high_watermark = i64::from_be_bytes(take(&mut answer));
        let _last_stable_and_log_start_offset: [u8; 16] = take(&mut answer);
        let aborted = i32::from_be_bytes(take(&mut answer));
        assert!(aborted <= 0, "there are no transactions");
        let len = i32::from_be_bytes(take(&mut answer));
        let records = answer[..usize::try_from(len).unwrap_or(0)].to_vec();
        Fetched { error_code, high_watermark, records }
    }

    /// Asks for records several times, and goes away when the first answer begins to come: first
    /// it says that it sends nothing more, then it resets. The broker, which waits for room to
    /// write, then does not learn of it by a read, but by its next write.
    pub(crate) fn fetch_and_reset(mut self, topic: &str) {
        for _ in 0..3 {
            self.send(FETCH, 6, &fetch_body(topic, 0));
        }
        self.stream.read_exact(&mut [0]).unwrap();
        self.stream.shutdown(Shutdown::Write).unwrap();
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// The error code of a FindCoordinator for a group.
    pub(crate) fn find_coordinator(&mut self, group: &str) -> i16 {
        let mut body = Vec::new();
        put_text(&mut body, group);
        let answer = self.call(FIND_COORDINATOR, 0, &body);
        i16::from_be_bytes(take(&mut &answer[..]))
    }

    /// Joins a group as its only member and leader, and assigns nothing.
    pub(crate) fn join(&mut self, group: &str) -> Member {
        self.try_join(group).expect("the coordinator lets it join")
    }

    /// Joins, or gives the error code of JoinGroup.
    pub(crate) fn try_join(&mut self, group: &str) -> Result<Member, i16> {
        let mut body = Vec::new();
        put_text(&mut body, group);
        body.extend(30_000i32.to_be_bytes()); // session timeout
        put_text(&mut body, ""); // a new member
        put_text(&mut body, "test");
        body.extend(array_of_one());
        put_text(&mut body, "protocol");
        body.extend(0i32.to_be_bytes()); // no metadata
        let answer = self.call_until_loaded(JOIN_GROUP, 0, &body, |answer| answer);
        let mut answer = &answer[..];
        match i16::from_be_bytes(take(&mut answer)) {
            0 => {}
            code => return Err(code),
        }
        let generation = i32::from_be_bytes(take(&mut answer));
        let (_protocol, leader) = (take_text(&mut answer), take_text(&mut answer));
        let member = Member { group: group.to_owned(), generation, id: take_text(&mut answer) };
        assert_eq!(member.id, leader);

        let mut body = member.body();
        body.extend(array_of_one());
        put_text(&mut body, &member.id);
        body.extend(0i32.to_be_bytes()); // no assignment
        let answer = self.call(SYNC_GROUP, 0, &body);
        assert_eq!(i16::from_be_bytes(take(&mut &answer[..])), 0);
        Ok(member)
    }

    /// The error code of a heartbeat.
    pub(crate) fn heartbeat(&mut self, member: &Member) -> i16 {
        let answer = self.call_until_loaded(HEARTBEAT, 0, &member.body(), |answer| answer);
        i16::from_be_bytes(take(&mut &answer[..]))
    }

    /// Commits an offset of partition 0, as a member or as no member of its group; gives the error
    /// code.
    pub(crate) fn commit(&mut self, member: &Member, topic: &str, offset: i64, words: &str) -> i16 {
        let mut body = member.body();
        body.extend((-1i64).to_be_bytes()); // kept as long as the broker says
        body.extend(array_of_one());
        put_text(&mut body, topic);
        body.extend(array_of_one());
        body.extend(0i32.to_be_bytes());
        body.extend(offset.to_be_bytes());
        put_text(&mut body, words);
        let answer = self.call_until_loaded(OFFSET_COMMIT, 2, &body, partition_of);
        i16::from_be_bytes(take(&mut partition_of(&answer)))
    }

    /// The committed offset of partition 0 and the words with it, or the error code.
    pub(crate) fn committed(&mut self, group: &str, topic: &str) -> Result<(i64, String), i16> {
        let mut body = Vec::new();
        put_text(&mut body, group);
        body.extend(array_of_one());
        put_text(&mut body, topic);
        body.extend(array_of_one());
        body.extend(0i32.to_be_bytes());
        fn code(answer: &[u8]) -> &[u8] {
            let mut answer = &partition_of(answer)[8..];
            take_text(&mut answer);
            answer
        }
        let answer = self.call_until_loaded(OFFSET_FETCH, 1, &body, code);
        let error_code = i16::from_be_bytes(take(&mut code(&answer)));
        let mut answer = partition_of(&answer);
        let committed = (i64::from_be_bytes(take(&mut answer)), take_text(&mut answer));
        if error_code == 0 { Ok(committed) } else { Err(error_code) }
    }

    /// Asks again, as clients do, while the coordinator reads what it kept. `code` finds the error
    /// code in an answer.
    fn call_until_loaded(
        &mut self,
        key: i16,
        version: i16,
        body: &[u8],
        code: fn(&[u8]) -> &[u8],
    ) -> Vec<u8> {
        loop {
            let answer = self.call(key, version, body);
            if i16::from_be_bytes(take(&mut code(&answer))) != COORDINATOR_LOAD_IN_PROGRESS {
                return answer;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn call(&mut self, key: i16, version: i16, body: &[u8]) -> Vec<u8> {
        self.send(key, version, body);
        self.answer()
    }

    fn send(&mut self, key: i16, version: i16, body: &[u8]) {
        let mut frame = Vec::new();
        frame.extend(i32::try_from(10 + body.len()).unwrap().to_be_bytes());
        frame.extend(key.to_be_bytes());
        frame.extend(version.to_be_bytes());
        frame.extend(7i32.to_be_bytes());
        frame.extend((-1i16).to_be_bytes()); // no client id
        frame.extend(body);
        self.stream.write_all(&frame).unwrap();
    }

    fn answer(&mut self) -> Vec<u8> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len).unwrap();
        let mut answer = vec![0; usize::try_from(i32::from_be_bytes(len)).unwrap()];
        self.stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..4], 7i32.to_be_bytes());
        answer.split_off(4)
    }
}

fn fetch_body(topic: &str, offset: i64) -> Vec<u8> {
    let mut body = (-1i32).to_be_bytes().to_vec();
    body.extend(100i32.to_be_bytes()); // wait
    body.extend(1i32.to_be_bytes()); // for one byte
    body.extend((64i32 << 20).to_be_bytes());
    body.push(0); // what is not committed too
    body.extend(array_of_one());
    put_text(&mut body, topic);
    body.extend(array_of_one());
    body.extend(0i32.to_be_bytes());
    body.extend(offset.to_be_bytes());
    body.extend((-1i64).to_be_bytes()); // a follower's log start
    body.extend((64i32 << 20).to_be_bytes());
    body
}

/// What an answer for one partition of one topic, which begins with the array of topics, says
/// behind the partition's number.
fn partition_of(answer: &[u8]) -> &[u8] {
    let mut answer = &answer[4..];
    take_text(&mut answer);
    &answer[8..]
}

fn array_of_one() -> Vec<u8> {
    1i32.to_be_bytes().to_vec()
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    to.extend(i16::try_from(text.len()).unwrap().to_be_bytes());
    to.extend(text.as_bytes());
}

fn take_text(from: &mut &[u8]) -> String {
    let len = u16::from_be_bytes(take(from));
    let (text, rest) = from.split_at(usize::from(len));
    *from = rest;
    String::from_utf8(text.to_vec()).unwrap()
}

fn take<const N: usize>(from: &mut &[u8]) -> [u8; N] {
    let (first, rest) = from.split_first_chunk().expect("the answer goes on");
    *from = rest;
    *first
}

/// An idempotent producer.
#[derive(Clone, Copy)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

/// A record batch (magic 2) of one record without a key.
pub(crate) fn batch(value: &[u8]) -> Vec<u8> {
    idempotent_batch(value, Producer { id: -1, epoch: -1 }, -1)
}

pub(crate) fn idempotent_batch(value: &[u8], producer: Producer, sequence: i32) -> Vec<u8> {
    let mut record = vec![0, 0, 0]; // attributes, timestamp delta, offset delta
    put_varint(&mut record, -1); // no key
    put_varint(&mut record, value.len() as i64);
    record.extend(value);
    record.push(0); // no headers
    let mut checked = vec![0; 2]; // attributes
    checked.extend(0i32.to_be_bytes()); // last offset delta
    checked.extend(1_000i64.to_be_bytes());
    checked.extend(1_000i64.to_be_bytes());
    checked.extend(producer.id.to_be_bytes());
    checked.extend(producer.epoch.to_be_bytes());
    checked.extend(sequence.to_be_bytes());
    checked.extend(1i32.to_be_bytes());
    put_varint(&mut checked, record.len() as i64);
    checked.extend(record);
    let mut batch = vec![0; 8]; // base offset
    batch.extend(i32::try_from(4 + 1 + 4 + checked.len()).unwrap().to_be_bytes());
    batch.extend((-1i32).to_be_bytes()); // leader epoch
    batch.push(2); // magic
    batch.extend(crc32c::crc32c(&checked).to_be_bytes());
    batch.extend(checked);
    batch
}

fn put_varint(to: &mut Vec<u8>, value: i64) {
    let mut zigzag = (value << 1 ^ value >> 63) as u64;
    while zigzag >= 0x80 {
        to.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    to.push(zigzag as u8);
}
