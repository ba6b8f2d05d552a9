//! A broker in this process, and a client that speaks to it in frames.

use bytes::{BufMut, Bytes, BytesMut};
use kelp::config::Config;
use kelp::engine::{Backend, Engine, ThreadOptions};
use kelp::messages::{create_topics, find_coordinator, list_groups};
use kelp::protocol::api_key::ApiKey;
use kelp::protocol::error_code::ErrorCode;
use kelp::protocol::wire::{Reader, Str, Wire, Writer};
use kelp::store::Storage;
use kelp::store::memory::Memory;
use kelp::store::objects::Objects;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes, also on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Broker {
    pub(crate) engine: Engine,
    pub(crate) port: u16,
}

impl Broker {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// A broker with these properties.
    pub(crate) fn with(properties: &str) -> Self {
        Self::on(Arc::new(Memory::default()), properties)
    }

    pub(crate) fn on(storage: Arc<dyn Storage>, properties: &str) -> Self {
        Self::new(Backend::Storage(storage), properties)
    }

    /// A broker that shares a store of objects with others.
    pub(crate) fn sharing(objects: Arc<dyn Objects>, properties: &str) -> Self {
        Self::new(Backend::Objects(objects), properties)
    }

    /// A broker that deletes what is a week old.
    pub(crate) fn that_deletes(properties: &str) -> Self {
        Self::with_all(Backend::Storage(Arc::new(Memory::default())), properties)
    }

    fn new(backend: Backend, properties: &str) -> Self {
        // Tests write records of long ago.
        Self::with_all(backend, &format!("log.retention.ms=-1\n{properties}"))
    }

    fn with_all(backend: Backend, properties: &str) -> Self {
        let config = Config::from_text(&format!("num.io.threads=2\n{properties}")).unwrap();
        let engine = Engine::new(config, backend, ThreadOptions::default()).unwrap();
        let port = engine.listen("127.0.0.1:0").unwrap();
        Self { engine, port }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(TcpStream::connect(("127.0.0.1", self.port)).unwrap())
    }

    /// A client of its own for one question.
    pub(crate) fn ask<A: Wire>(&self, api: ApiKey, version: i16, request: &impl Wire) -> A {
        self.connect().call(api, version, request)
    }

    pub(crate) fn create(&self, name: &str, partitions: i32) {
        self.create_with(name, partitions, &[]);
    }

    pub(crate) fn create_with(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) {
        let config = |(name, value): &(&str, &str)| create_topics::CreatableTopicConfig {
            name: Str::from(*name),
            value: Some(Str::from(*value)),
        };
        let topic = create_topics::CreatableTopic {
            name: Str::from(name),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = create_topics::Request { topics: vec![topic], ..Default::default() };
        let answer: create_topics::Response = self.ask(ApiKey::CreateTopics, 7, &request);
        assert_eq!(answer.topics[0].error_code, ErrorCode::None, "{answer:?}");
    }

    /// Where the coordinator of a group is; its topic is there then, and all of it was read.
    pub(crate) fn find_coordinator(&self, group: &str) -> (String, i32) {
        let request = find_coordinator::Request { key: group.into(), ..Default::default() };
        let answer: find_coordinator::Response = self.ask(ApiKey::FindCoordinator, 3, &request);
        assert_eq!(answer.error_code, ErrorCode::None, "{answer:?}");
        // It may be another broker by now, which is no matter here.
        let _ = self.until_loaded(|broker| {
            let request = list_groups::Request::default();
            let answer: list_groups::Response = broker.ask(ApiKey::ListGroups, 0, &request);
            if answer.error_code.is_error() { Err(answer.error_code) } else { Ok(()) }
        });
        (answer.host.to_string(), answer.port)
    }

    /// Asks until the coordinator has read its records.
    pub(crate) fn until_loaded<T>(
        &self,
        ask: impl Fn(&Self) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        let begin = Instant::now();
        loop {
            match ask(self) {
                Err(ErrorCode::CoordinatorLoadInProgress) => {
                    assert!(begin.elapsed() < PATIENCE);
                    thread::yield_now();
                }
                answer => return answer,
            }
        }
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, correlation_id: 0 }
    }

    pub(crate) fn call<A: Wire>(&mut self, api: ApiKey, version: i16, request: &impl Wire) -> A {
        let sent = self.send(api, version, request);
        let (received, answer) = self.receive(api, version);
        assert_eq!(received, sent, "the answer is for another request");
        answer
    }

    /// Sends a request; gives its correlation id.
    pub(crate) fn send(&mut self, api: ApiKey, version: i16, request: &impl Wire) -> i32 {
        let frame = self.frame(api, version, request);
        self.send_frame(&frame);
        self.correlation_id
    }

    /// The next request, without its length.
    pub(crate) fn frame(&mut self, api: ApiKey, version: i16, request: &impl Wire) -> Bytes {
        self.correlation_id += 1;
        let flexible = api.is_flexible(version);
        let mut frame = header(api.code(), version, self.correlation_id);
        if flexible {
            frame.put_u8(0);
        }
        let mut writer = Writer::new(version, flexible);
        request.write(&mut writer);
        frame.put_slice(&writer.finish().concat());
        frame.freeze()
    }

    /// Sends bytes with their length before them.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        let mut bytes = BytesMut::new();
        bytes.put_u32(frame.len() as u32);
        bytes.put_slice(frame);
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next answer, and the correlation id in it.
    pub(crate) fn receive<A: Wire>(&mut self, api: ApiKey, version: i16) -> (i32, A) {
        let frame = self.receive_frame().expect("the broker closed the connection");
        let flexible = api.is_flexible(version);
        let mut reader = Reader::new(frame, version, flexible);
        let correlation_id = i32::read(&mut reader).unwrap();
        if flexible && api != ApiKey::ApiVersions {
            assert_eq!(u8::read(&mut reader), Ok(0), "no tagged fields in the header");
        }
        let answer = A::read(&mut reader).unwrap();
        assert!(reader.rest().is_empty(), "bytes behind the answer");
        (correlation_id, answer)
    }

    /// The next frame; `None` if the broker closed the connection.
    pub(crate) fn receive_frame(&mut self) -> Option<Bytes> {
        let mut length = [0; 4];
        if !self.fill(&mut length) {
            return None;
        }
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        assert!(self.fill(&mut frame), "the connection ends in the middle of an answer");
        Some(frame.into())
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.receive_frame().is_none()
    }

    fn fill(&mut self, buffer: &mut [u8]) -> bool {
        match self.stream.read_exact(buffer) {
            Ok(()) => true,
            Err(error) if is_close(&error) => false,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

/// A broker that closes with bytes unread resets the connection.
fn is_close(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)
}

/// A request header up to the client id.
pub(crate) fn header(api_key: i16, version: i16, correlation_id: i32) -> BytesMut {
    let mut header = BytesMut::new();
    header.put_i16(api_key);
    header.put_i16(version);
    header.put_i32(correlation_id);
    header.put_i16(4);
    header.put_slice(b"test");
    header
}
