//! A host of `kelp_storage` in Rust, which goes through the C table like any other, and completes
//! every operation later, on threads of its own.

use crate::cases;
use crate::client::{Client, Produced, Producer, batch, idempotent_batch};
use kelp::ffi::data::{KelpBytes, KelpStr};
use kelp::ffi::engine::*;
use kelp::ffi::host::KelpHost;
use kelp::ffi::operation::{KelpOp, kelp_op_alloc, kelp_op_complete};
use kelp::ffi::status::*;
use kelp::ffi::storage::*;
use kelp::protocol::wire::Uuid;
use kelp::record::batch::Batch;
use kelp::store::groups::Committed;
use kelp::store::memory::Memory;
use kelp::store::topics::{ConfigChanges, Topic, TopicChange};
use kelp::store::{PartitionId, Storage, StoreError};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tokio::runtime::Runtime;

const OK: i16 = 0;
const INIT_PRODUCER_ID: i16 = 22;
const CREATE_PARTITIONS: i16 = 37;
/// Commit, fetch and delete offsets, all of the classic protocol, and what administrators ask.
const GROUP_APIS: [i16; 10] = [8, 9, 11, 12, 13, 14, 15, 16, 42, 47];

/// The name of a coordinator's log, and a key in it.
type Key = (String, Vec<u8>);

/// Keeps the data as the engine's own memory store does, and counts what it is asked.
pub(crate) struct Host {
    data: Memory,
    /// Of all coordinators' logs: the last value of each key.
    records: Mutex<BTreeMap<Key, Vec<u8>>>,
    /// By log, group, topic and partition.
    offsets: Mutex<BTreeMap<(String, String, String, i32), Committed>>,
    bytes_read: AtomicU64,
    appends: AtomicU64,
    /// How often it was told that topics changed.
    told: Mutex<u64>,
    telling: Condvar,
    runtime: Runtime,
}

impl Host {
    pub(crate) fn new() -> Arc<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
        Arc::new(Self {
            data: Memory::default(),
            records: Mutex::default(),
            offsets: Mutex::default(),
            bytes_read: AtomicU64::new(0),
            appends: AtomicU64::new(0),
            told: Mutex::default(),
            telling: Condvar::new(),
            runtime: runtime.unwrap(),
        })
    }

    /// Looks again whenever it is told that topics changed, until it sees something.
    pub(crate) fn await_topics<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        let mut told = self.told.lock().unwrap();
        loop {
            let before = *told;
            drop(told);
            if let Some(seen) = look() {
                return seen;
            }
            told = self.told.lock().unwrap();
            told = self.telling.wait_while(told, |told| *told == before).unwrap();
        }
    }

    /// Appends behind the engine's back, as another process would.
    fn append_foreign(&self, topic: &str, base_offset: i64) {
        let topics = self.data.topics();
        let id = PartitionId { topic: topics.by_name(topic).unwrap().id, partition: 0 };
        let mut batch = Batch::split_off(&mut batch(b"foreign").into()).unwrap();
        batch.stamp(base_offset, 0);
        let appended = self.runtime.block_on(self.data.append(id, base_offset, vec![batch]));
        assert_eq!(appended, Ok(base_offset));
    }
}

/// What a host's table has besides topics and records.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Offers {
    Nothing,
    Coordinators,
    Groups,
}

/// An engine on a host, serving on a port.
pub(crate) struct Engine {
    pub(crate) engine: *mut KelpEngine,
    port: u16,
}

impl Engine {
    fn start(host: &Arc<Host>, offers: Offers) -> Self {
        Self::start_with(host, offers, c"")
    }

    pub(crate) fn start_with(host: &Arc<Host>, offers: Offers, properties: &CStr) -> Self {
        let table = table(offers);
        let config = KelpConfig {
            struct_size: size_of::<KelpConfig>() as u32,
            io_threads: 2,
            dispatch_threads: 0,
            reserved: 0,
            properties: properties.as_ptr(),
        };
        let callbacks = KelpHost {
            struct_size: size_of::<KelpHost>() as u32,
            log_level: 0,
            ctx: Arc::as_ptr(host).cast_mut().cast(),
            storage: &table,
            objects: ptr::null(),
            release: None,
            log: None,
            state: None,
            topics_changed: Some(topics_changed),
        };
        let mut engine = ptr::null_mut();
        let (mut error, mut port) = ([0 as c_char; 256], 0);
        // SAFETY: the structs are filled, the buffer is as long as said, and the host outlives
        // the engine.
        unsafe {
            let made = kelp_engine_new(&config, &callbacks, &mut engine, error.as_mut_ptr(), 256);
            assert_eq!(made, KELP_OK, "{:?}", CStr::from_ptr(error.as_ptr()));
            let listening = kelp_engine_listen(engine, c"127.0.0.1:0".as_ptr(), &mut port);
            assert_eq!(listening, KELP_OK);
        }
        Self { engine, port }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub(crate) fn stop(&self) {
        // SAFETY: the engine is freed only when this value is dropped.
        assert_eq!(unsafe { kelp_engine_stop(self.engine, 5_000) }, KELP_OK);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: made by `kelp_engine_new`, and not used any more.
        unsafe { kelp_engine_free(self.engine) };
    }
}

unsafe extern "C" fn topics_changed(ctx: *mut c_void) {
    // SAFETY: `ctx` is the host, which outlives the engine.
    let host = unsafe { &*ctx.cast::<Host>() };
    *host.told.lock().unwrap() += 1;
    host.telling.notify_all();
}

fn table(offers: Offers) -> KelpStorage {
    let (coordinators, groups) = (offers >= Offers::Coordinators, offers >= Offers::Groups);
    KelpStorage {
        struct_size: size_of::<KelpStorage>() as u32,
        reserved: 0,
        load_topics: Some(load_topics),
        create_topic: Some(create_topic),
        delete_topic: Some(delete_topic),
        open_partition: Some(open_partition),
        append: Some(append),
        read: Some(read),
        set_log_start: Some(set_log_start),
        seek_time: None,
        allocate_producer_ids: if coordinators { Some(allocate_producer_ids) } else { None },
        append_records: if coordinators { Some(append_records) } else { None },
        load_records: if coordinators { Some(load_records) } else { None },
        commit_offsets: if groups { Some(commit_offsets) } else { None },
        load_offsets: if groups { Some(load_offsets) } else { None },
        alter_topic: if groups { Some(alter_topic) } else { None },
    }
}

/// An operation on its way to another thread.
struct Op<T>(*mut T);

// SAFETY: an operation may be used by any thread, one at a time.
unsafe impl<T> Send for Op<T> {}

/// Answers an operation on one of the host's threads.
fn later<T: 'static, F>(ctx: *mut c_void, op: *mut T, answer: F)
where
    F: AsyncFnOnce(&Host, &mut T) -> Result<(), StoreError> + Send + 'static,
{
    // SAFETY: the context is the host, which outlives its engines.
    let host = unsafe { &*ctx.cast::<Host>() };
    let op = Op(op);
    host.runtime.handle().spawn_blocking(move || {
        let op = op;
        // SAFETY: the operation is this host's until it is completed, which is the last use.
        let answer = host.runtime.handle().block_on(answer(host, unsafe { &mut *op.0 }));
        let status = answer.err().map_or(KELP_OK, |error| match error {
            StoreError::Conflict { .. } => KELP_CONFLICT,
            StoreError::OffsetOutOfRange => KELP_OFFSET_OUT_OF_RANGE,
            StoreError::UnknownPartition => KELP_UNKNOWN_TOPIC_OR_PARTITION,
            StoreError::TopicExists => KELP_TOPIC_ALREADY_EXISTS,
            _ => KELP_UNAVAILABLE,
        });
        // SAFETY: every struct of an operation begins with its head; completed once.
        unsafe { kelp_op_complete(op.0.cast::<KelpOp>(), status) };
    });
}

fn id(partition: &KelpPartition) -> PartitionId {
    PartitionId { topic: Uuid(partition.topic_id), partition: partition.index }
}

fn bytes<'a>(bytes: KelpBytes) -> &'a [u8] {
    // SAFETY: the engine's bytes are there until the operation is completed.
    unsafe { slice(bytes.ptr, bytes.len) }
}

fn text(text: KelpStr) -> String {
    let bytes = bytes(KelpBytes { ptr: text.ptr.cast(), len: text.len });
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// # Safety
///
/// `len` values stand at `start`, if there are any.
unsafe fn slice<'a, T>(start: *const T, len: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start, len) } }
}

/// Copies an array into the operation's memory.
fn give<T: Copy>(op: &mut KelpOp, values: &[T]) -> *const T {
    // SAFETY: the operation is live, and the memory is as long as the values.
    unsafe {
        let to = kelp_op_alloc(op, size_of_val(values)).cast::<T>();
        assert!(to.is_aligned() && !to.is_null());
        ptr::copy_nonoverlapping(values.as_ptr(), to, values.len());
        to
    }
}

fn give_bytes(op: &mut KelpOp, bytes: &[u8]) -> KelpBytes {
    KelpBytes { ptr: give(op, bytes), len: bytes.len() }
}

fn give_text(op: &mut KelpOp, text: &str) -> KelpStr {
    KelpStr { ptr: give(op, text.as_bytes()).cast(), len: text.len() }
}

unsafe extern "C" fn load_topics(ctx: *mut c_void, op: *mut KelpLoadTopics) {
    later(ctx, op, async |host, op| {
        let topics: Vec<_> = host.data.topics().iter().cloned().collect();
        let topics: Vec<_> = topics
            .iter()
            .map(|topic| {
                let setting = |(name, value): (&String, &String)| KelpSetting {
                    name: give_text(&mut op.op, name),
                    value: give_text(&mut op.op, value),
                };
                let settings: Vec<_> = topic.configs.iter().map(setting).collect();
                KelpTopic {
                    id: topic.id.0,
                    name: give_text(&mut op.op, &topic.name),
                    settings: give(&mut op.op, &settings),
                    setting_count: settings.len(),
                    partition_count: topic.partitions,
                    reserved: 0,
                }
            })
            .collect();
        op.cluster_id = give_text(&mut op.op, "mock");
        (op.topics, op.topic_count) = (give(&mut op.op, &topics), topics.len());
        Ok(())
    });
}

unsafe extern "C" fn create_topic(ctx: *mut c_void, op: *mut KelpCreateTopic) {
    later(ctx, op, async |host, op| host.data.create_topic(topic(&op.topic)).await);
}

unsafe extern "C" fn alter_topic(ctx: *mut c_void, op: *mut KelpAlterTopic) {
    later(ctx, op, async |host, op| {
        let Topic { id, partitions, configs, .. } = topic(&op.topic);
        let topics = host.data.topics();
        let before = topics.by_id(id).ok_or(StoreError::UnknownPartition)?;
        let mut changes: ConfigChanges = before.configs.keys().map(|k| (k.clone(), None)).collect();
        changes.extend(configs.into_iter().map(|(name, value)| (name, Some(value))));
        let partitions = Some(partitions).filter(|count| *count != before.partitions);
        host.data.alter_topic(id, TopicChange { partitions, configs: changes }).await
    });
}

fn topic(topic: &KelpTopic) -> Topic {
    // SAFETY: the engine's array is there until the operation is completed.
    let settings = unsafe { slice(topic.settings, topic.setting_count) };
    Topic {
        id: Uuid(topic.id),
        name: text(topic.name).into(),
        partitions: topic.partition_count,
        configs: settings.iter().map(|s| (text(s.name), text(s.value))).collect(),
    }
}

unsafe extern "C" fn delete_topic(ctx: *mut c_void, op: *mut KelpDeleteTopic) {
    later(ctx, op, async |host, op| host.data.delete_topic(Uuid(op.topic_id)).await);
}

unsafe extern "C" fn open_partition(ctx: *mut c_void, op: *mut KelpOpenPartition) {
    later(ctx, op, async |host, op| {
        let opened = host.data.open(id(&op.partition)).await?;
        op.log_start_offset = opened.log_start_offset;
        op.log_end_offset = opened.log_end_offset;
        op.leader_epoch = opened.leader_epoch;
        Ok(())
    });
}

unsafe extern "C" fn append(ctx: *mut c_void, op: *mut KelpAppend) {
    later(ctx, op, async |host, op| {
        host.appends.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the engine's array is there until the operation is completed.
        let slices = unsafe { slice(op.slices, op.slice_count) };
        let all: Vec<u8> = slices.iter().flat_map(|slice| bytes(*slice)).copied().collect();
        assert_eq!(all.len(), op.total_bytes);
        let (mut all, mut batches) = (all.into(), Vec::new());
        while let Some(batch) = Batch::split_off(&mut all) {
            batches.push(batch);
        }
        assert!(all.is_empty(), "whole batches");
        assert_eq!(batches.last().map(|b| b.header.next_offset()), Some(op.next_offset));
        let appended = host.data.append(id(&op.partition), op.expected_base_offset, batches).await;
        if let Err(StoreError::Conflict { log_end_offset }) = appended {
            op.log_end_offset = log_end_offset;
        }
        appended.map(|_| ())
    });
}

unsafe extern "C" fn read(ctx: *mut c_void, op: *mut KelpRead) {
    later(ctx, op, async |host, op| {
        let id = id(&op.partition);
        let slices = host.data.read(id, op.offset, op.max_bytes, op.at_least_one != 0).await?;
        let slices: Vec<_> = slices.iter().map(|slice| give_bytes(&mut op.op, slice)).collect();
        let len: usize = slices.iter().map(|slice| slice.len).sum();
        host.bytes_read.fetch_add(len as u64, Ordering::Relaxed);
        (op.slices, op.slice_count) = (give(&mut op.op, &slices), slices.len());
        Ok(())
    });
}

unsafe extern "C" fn set_log_start(ctx: *mut c_void, op: *mut KelpSetLogStart) {
    later(ctx, op, async |host, op| {
        op.log_start_offset = host.data.set_log_start(id(&op.partition), op.offset).await?;
        Ok(())
    });
}

unsafe extern "C" fn allocate_producer_ids(ctx: *mut c_void, op: *mut KelpAllocateProducerIds) {
    later(ctx, op, async |host, op| {
        op.first = host.data.allocate_producer_ids(op.count).await?.start;
        Ok(())
    });
}

unsafe extern "C" fn append_records(ctx: *mut c_void, op: *mut KelpAppendRecords) {
    later(ctx, op, async |host, op| {
        // SAFETY: the engine's array is there until the operation is completed.
        for record in unsafe { slice(op.records, op.record_count) } {
            let key = (text(op.log), bytes(record.key).to_vec());
            let mut records = host.records.lock().unwrap();
            match record.is_tombstone {
                0 => records.insert(key, bytes(record.value).to_vec()),
                _ => records.remove(&key),
            };
        }
        Ok(())
    });
}

/// One record at a time.
unsafe extern "C" fn load_records(ctx: *mut c_void, op: *mut KelpLoadRecords) {
    later(ctx, op, async |host, op| {
        let log = text(op.log);
        let records = host.records.lock().unwrap();
        let mut of_log = records.iter().filter(|((name, _), _)| *name == log);
        let Some(((_, key), value)) = of_log.nth(op.position as usize) else { return Ok(()) };
        let (key, value) = (give_bytes(&mut op.op, key), give_bytes(&mut op.op, value));
        let record = KelpRecord { key, value, is_tombstone: 0, reserved: 0 };
        (op.records, op.record_count) = (give(&mut op.op, &[record]), 1);
        op.next_position = op.position + 1;
        Ok(())
    });
}

unsafe extern "C" fn commit_offsets(ctx: *mut c_void, op: *mut KelpCommitOffsets) {
    later(ctx, op, async |host, op| {
        let mut offsets = host.offsets.lock().unwrap();
        // SAFETY: the engine's array is there until the operation is completed.
        for offset in unsafe { slice(op.offsets, op.offset_count) } {
            let (group, topic) = (text(offset.group), text(offset.topic));
            let key = (text(op.log), group, topic, offset.partition);
            let committed = Committed {
                offset: offset.offset,
                leader_epoch: offset.leader_epoch,
                metadata: text(offset.metadata).into(),
                commit_timestamp: offset.commit_timestamp,
                expire_timestamp: offset.expire_timestamp,
                topic_id: Uuid(offset.topic_id),
            };
            match offset.is_tombstone {
                0 => offsets.insert(key, committed),
                _ => offsets.remove(&key),
            };
        }
        Ok(())
    });
}

/// One offset at a time.
unsafe extern "C" fn load_offsets(ctx: *mut c_void, op: *mut KelpLoadOffsets) {
    later(ctx, op, async |host, op| {
        let log = text(op.log);
        let offsets = host.offsets.lock().unwrap();
        let mut of_log = offsets.iter().filter(|((name, ..), _)| *name == log);
        let Some(((_, group, topic, partition), committed)) = of_log.nth(op.position as usize)
        else {
            return Ok(());
        };
        let offset = KelpOffset {
            group: give_text(&mut op.op, group),
            topic: give_text(&mut op.op, topic),
            topic_id: committed.topic_id.0,
            partition: *partition,
            leader_epoch: committed.leader_epoch,
            offset: committed.offset,
            metadata: give_text(&mut op.op, &committed.metadata),
            commit_timestamp: committed.commit_timestamp,
            expire_timestamp: committed.expire_timestamp,
            is_tombstone: 0,
            reserved: 0,
        };
        (op.offsets, op.offset_count) = (give(&mut op.op, &[offset]), 1);
        op.next_position = op.position + 1;
        Ok(())
    });
}

#[test]
fn it_passes_the_cases() {
    let host = Host::new();
    cases::pass(Engine::start(&host, Offers::Groups).port);
}

#[test]
fn a_host_is_offered_to_clients_as_what_it_keeps() {
    let host = Host::new();
    let offered = |offers| {
        let keys = Engine::start(&host, offers).client().api_keys();
        let apis = [INIT_PRODUCER_ID, CREATE_PARTITIONS].map(|key| keys.contains(&key));
        (apis, GROUP_APIS.map(|key| keys.contains(&key)))
    };
    assert_eq!(offered(Offers::Groups), ([true, true], [true; 10]));
    assert_eq!(offered(Offers::Coordinators), ([true, false], [false; 10]));
    assert_eq!(offered(Offers::Nothing), ([false, false], [false; 10]));
}

#[test]
fn more_partitions_outlive_an_engine() {
    let host = Host::new();
    {
        let engine = Engine::start(&host, Offers::Groups);
        let mut client = engine.client();
        assert_eq!(client.create_topic("t"), OK);
        assert_eq!(client.create_partitions("t", 2), OK);
    }
    let engine = Engine::start(&host, Offers::Groups);
    let mut client = engine.client();
    const INVALID_PARTITIONS: i16 = 37;
    assert_eq!(client.create_partitions("t", 2), INVALID_PARTITIONS, "it has them");
    assert_eq!(client.create_partitions("t", 3), OK);
}

#[test]
fn what_was_set_of_the_broker_outlives_an_engine() {
    const MAX: &str = "message.max.bytes";
    let host = Host::new();
    {
        let engine = Engine::start(&host, Offers::Groups);
        let mut client = engine.client();
        assert_eq!(client.set_of_broker(MAX, "3000"), OK);
        assert_eq!(client.set_of_broker("log.cleanup.policy", "compact"), OK);
        assert_eq!(client.of_broker(MAX), "3000");
    }
    let engine = Engine::start(&host, Offers::Groups);
    let mut client = engine.client();
    assert_eq!(client.of_broker(MAX), "3000");
    assert_eq!(client.of_broker("log.cleanup.policy"), "compact");
}

#[test]
fn batches_go_behind_what_another_process_appended() {
    let host = Host::new();
    let engine = Engine::start(&host, Offers::Groups);
    let mut client = engine.client();
    assert_eq!(client.create_topic("t"), OK);
    assert_eq!(client.produce("t", &batch(b"one"), 10_000).base_offset, 0);
    host.append_foreign("t", 1);
    let behind = client.produce("t", &batch(b"two"), 10_000);
    assert_eq!(behind, Produced { error_code: OK, base_offset: 2 });
    assert_eq!(client.fetch("t", 0).high_watermark, 3);
}

/// A producer's batch that comes again after a restart is answered with its first place.
fn a_retry_is_known_after_a_restart(offers: Offers) -> u64 {
    let host = Host::new();
    let producer = Producer { id: 7, epoch: 0 };
    let large = vec![b'x'; 100_000];
    {
        let engine = Engine::start(&host, offers);
        let mut client = engine.client();
        assert_eq!(client.create_topic("t"), OK);
        for sequence in 0..20 {
            let batch = idempotent_batch(&large, producer, sequence);
            let produced = client.produce("t", &batch, 10_000);
            assert_eq!(produced, Produced { error_code: OK, base_offset: sequence.into() });
        }
        engine.stop();
    }
    let engine = Engine::start(&host, offers);
    let again = idempotent_batch(&large, producer, 18);
    let produced = engine.client().produce("t", &again, 10_000);
    assert_eq!(produced, Produced { error_code: OK, base_offset: 18 });
    host.bytes_read.load(Ordering::Relaxed)
}

#[test]
fn producer_state_is_read_from_the_snapshot_and_else_from_the_log() {
    assert_eq!(a_retry_is_known_after_a_restart(Offers::Coordinators), 0);
    assert!(a_retry_is_known_after_a_restart(Offers::Nothing) > 20 * 100_000);
}

#[test]
fn what_comes_in_during_an_append_goes_with_the_next_one() {
    let host = Host::new();
    let engine = Engine::start(&host, Offers::Groups);
    let mut client = engine.client();
    assert_eq!(client.create_topic("t"), OK);
    client.produce_many("t", 200, &batch(b"one"));
    assert_eq!(client.fetch("t", 0).high_watermark, 200);
    let appends = host.appends.load(Ordering::Relaxed);
    assert!(appends < 200, "{appends} appends for 200 batches");
}
