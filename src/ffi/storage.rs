//! `kelp_storage`: the table of a host that keeps a log of its own.

use super::data::{KelpBytes, KelpStr, Versioned};
use super::objects::operations;
use super::operation::{KelpOp, Operation};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::offset_of;

pub const KELP_OP_LOAD_TOPICS: u32 = 16;
pub const KELP_OP_CREATE_TOPIC: u32 = 17;
pub const KELP_OP_DELETE_TOPIC: u32 = 18;
pub const KELP_OP_OPEN_PARTITION: u32 = 19;
pub const KELP_OP_APPEND: u32 = 20;
pub const KELP_OP_READ: u32 = 21;
pub const KELP_OP_SET_LOG_START: u32 = 22;
pub const KELP_OP_SEEK_TIME: u32 = 23;
pub const KELP_OP_ALLOCATE_PRODUCER_IDS: u32 = 24;
pub const KELP_OP_APPEND_RECORDS: u32 = 25;
pub const KELP_OP_LOAD_RECORDS: u32 = 26;
pub const KELP_OP_COMMIT_OFFSETS: u32 = 27;
pub const KELP_OP_LOAD_OFFSETS: u32 = 28;
pub const KELP_OP_ALTER_TOPIC: u32 = 29;

/// A setting of a topic under its Kafka name, such as "retention.ms".
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpSetting {
    pub name: KelpStr,
    pub value: KelpStr,
}

/// A topic. Its id is never used for another one; its name may be, once it is deleted.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpTopic {
    pub id: [u8; 16],
    pub name: KelpStr,
    /// Only what was set for this topic.
    pub settings: *const KelpSetting,
    pub setting_count: usize,
    /// They are numbered from 0.
    pub partition_count: i32,
    /// 0
    pub reserved: u32,
}

/// One partition of a topic. The id is what counts, the name is there to read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpPartition {
    pub topic: KelpStr,
    pub topic_id: [u8; 16],
    pub index: i32,
    /// 0
    pub reserved: u32,
}

/// A record of a coordinator. The last one of a key counts; a tombstone deletes its key.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpRecord {
    pub key: KelpBytes,
    pub value: KelpBytes,
    /// 1: the record has no value, and the key is deleted. Else 0.
    pub is_tombstone: u32,
    /// 0
    pub reserved: u32,
}

/// The offset of a consumer group in a partition. Group, topic and partition are its key: the last
/// one counts, and a tombstone deletes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpOffset {
    pub group: KelpStr,
    pub topic: KelpStr,
    /// The topic that the offset is of; a later one may have its name. All zeros: not known.
    pub topic_id: [u8; 16],
    pub partition: i32,
    /// Of the last record that was read. -1: not known.
    pub leader_epoch: i32,
    /// The next record to be read.
    pub offset: i64,
    /// The client's own words; most often none.
    pub metadata: KelpStr,
    /// Milliseconds since 1970.
    pub commit_timestamp: i64,
    /// When it expires, in milliseconds since 1970. -1: as Kelp's settings say. To delete expired
    /// offsets is Kelp's work, by tombstones.
    pub expire_timestamp: i64,
    /// 1: the offset is deleted, and only the key counts. Else 0.
    pub is_tombstone: u32,
    /// 0
    pub reserved: u32,
}

/// Gives all topics: the first operation, asked once. Clients are served when it is completed,
/// so a host completes it when it can serve; it may take its time. A host that keeps coordinators'
/// records is then asked for those of the log "brokers", one that keeps groups also for those of
/// "groups", and clients are served after that.
///
/// Completed with KELP_OK. With any other status the engine's state is KELP_STATE_FAILED.
#[repr(C)]
pub struct KelpLoadTopics {
    pub op: KelpOp,
    /// out: the cluster's name, made when the storage was first used, the same for ever.
    pub cluster_id: KelpStr,
    /// out
    pub topics: *const KelpTopic,
    /// out
    pub topic_count: usize,
}

/// Stores a topic. Its partitions are empty, with offset 0 the next one.
///
/// Completed with KELP_OK, or KELP_TOPIC_ALREADY_EXISTS: there is a topic of that name.
#[repr(C)]
pub struct KelpCreateTopic {
    pub op: KelpOp,
    pub topic: KelpTopic,
}

/// Stores a topic anew: with the settings and the partitions that it is to have. There are never fewer
/// partitions than before; those that come are empty.
///
/// There is never more than one of these under way. While one is not completed, who would change
/// topics too is told REQUEST_TIMED_OUT.
///
/// Completed with KELP_OK, or KELP_UNKNOWN_TOPIC_OR_PARTITION. With KELP_UNAVAILABLE the topic may be
/// as it was or as it was to be.
#[repr(C)]
pub struct KelpAlterTopic {
    pub op: KelpOp,
    pub topic: KelpTopic,
}

/// Deletes a topic with all its records.
///
/// Completed with KELP_OK, or KELP_UNKNOWN_TOPIC_OR_PARTITION.
#[repr(C)]
pub struct KelpDeleteTopic {
    pub op: KelpOp,
    pub topic: KelpStr,
    pub topic_id: [u8; 16],
}

/// Tells where a partition stands. Asked before a partition is first used, and again when an
/// append did not go as expected.
///
/// Completed with KELP_OK, KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
#[repr(C)]
pub struct KelpOpenPartition {
    pub op: KelpOp,
    pub partition: KelpPartition,
    /// out: the first offset that can be read.
    pub log_start_offset: i64,
    /// out: the offset that the next record gets.
    pub log_end_offset: i64,
    /// out: a number that grows, never falls, whenever another process or another start of this
    /// one becomes the one that appends. 0 will do for a log that does not outlive its process.
    pub leader_epoch: i32,
    /// 0
    pub reserved: u32,
}

/// Appends record batches at `expected_base_offset`, or nothing at all: when the log ends
/// elsewhere it is left as it is, and the answer is where. Success means that the batches are as
/// durable as an acknowledgement of this host says, and that a read shows them.
///
/// For one partition there is never more than one append under way; what comes in meanwhile makes
/// the next one, of at most 16 MiB if it has more than one batch. It is waited for as long as it takes: an append that is never completed holds up
/// its partition.
///
/// Completed with KELP_OK, KELP_CONFLICT, KELP_UNKNOWN_TOPIC_OR_PARTITION, or
/// KELP_NOT_LEADER_OR_FOLLOWER; in the last three nothing was appended. With KELP_UNAVAILABLE the
/// batches may be there or not; Kelp opens the partition again and looks.
#[repr(C)]
pub struct KelpAppend {
    pub op: KelpOp,
    pub partition: KelpPartition,
    pub expected_base_offset: i64,
    /// Where the log ends when all is appended.
    pub next_offset: i64,
    /// Batches of Kafka's format v2, one after the other, with their offsets. A batch may lie
    /// across several slices. They are stored as they are.
    pub slices: *const KelpBytes,
    pub slice_count: usize,
    /// Of all slices together.
    pub total_bytes: usize,
    /// out, with KELP_CONFLICT: where the log ends.
    pub log_end_offset: i64,
}

/// Reads whole batches, from the one that holds `offset` on: it may begin before. Nothing, if
/// `offset` is the log's end.
///
/// Completed with KELP_OK, KELP_OFFSET_OUT_OF_RANGE (below the log's start or above its end),
/// KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
#[repr(C)]
pub struct KelpRead {
    pub op: KelpOp,
    pub partition: KelpPartition,
    pub offset: i64,
    /// At most so many bytes.
    pub max_bytes: usize,
    /// 1: the first batch whole, also if it is longer than `max_bytes`. Else 0.
    pub at_least_one: u32,
    /// 0
    pub reserved: u32,
    /// out: slices in the order of the log, each of one or more whole batches; best in memory of
    /// `kelp_op_alloc` or `kelp_op_lend`.
    pub slices: *const KelpBytes,
    /// out
    pub slice_count: usize,
}

/// Moves a partition's log start forward: what is below it can be read no more.
///
/// Completed with KELP_OK, KELP_OFFSET_OUT_OF_RANGE (above the log's end),
/// KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
#[repr(C)]
pub struct KelpSetLogStart {
    pub op: KelpOp,
    pub partition: KelpPartition,
    pub offset: i64,
    /// out: the log start then; it was further on already if it is above `offset`.
    pub log_start_offset: i64,
}

/// Finds an offset from which a search for the first record of `timestamp` or later may begin:
/// never above that record, the nearer the better.
///
/// Completed with KELP_OK, KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
#[repr(C)]
pub struct KelpSeekTime {
    pub op: KelpOp,
    pub partition: KelpPartition,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// out
    pub offset: i64,
}

/// Takes producer ids that no process had or will have, from 0 on.
///
/// Completed with KELP_OK.
#[repr(C)]
pub struct KelpAllocateProducerIds {
    pub op: KelpOp,
    pub count: u32,
    /// 0
    pub reserved: u32,
    /// out: the first; the others follow it.
    pub first: i64,
}

/// Stores records of a coordinator, all of them or none, behind those that were completed before.
/// A log comes into being with its first record.
///
/// For the log of a group coordinator there is never more than one append or commit under way. It
/// is waited for as long as it takes: one that is never completed holds up the groups of that
/// coordinator.
///
/// Completed with KELP_OK: they are durable. With any other status they may be there or not, but
/// what is not there then never will be.
#[repr(C)]
pub struct KelpAppendRecords {
    pub op: KelpOp,
    /// The name of the coordinator's log: printable ASCII, at most 200 bytes.
    pub log: KelpStr,
    pub records: *const KelpRecord,
    pub record_count: usize,
}

/// Gives the records of a coordinator's log, in the order in which they were stored, in as many
/// pieces as the host likes. For each key the last record is enough. A log without records is
/// empty, which is no error.
///
/// Completed with KELP_OK.
#[repr(C)]
pub struct KelpLoadRecords {
    pub op: KelpOp,
    pub log: KelpStr,
    /// 0 for the first piece, then what `next_position` was.
    pub position: u64,
    /// out
    pub records: *const KelpRecord,
    /// out
    pub record_count: usize,
    /// out: where the next piece begins. 0: there is none.
    pub next_position: u64,
}

/// Stores offsets of consumer groups, all of them or none, in their order and behind those that
/// were completed before.
///
/// For one log there is never more than one commit or append under way; what comes in meanwhile
/// makes the next one. It is waited for as long as it takes: one that is never completed holds up the
/// groups of that log, whose clients are told COORDINATOR_NOT_AVAILABLE.
///
/// Completed with KELP_OK: they are durable. With any other status they may be there or not, but
/// what is not there then never will be; Kelp loads the log and its offsets again.
#[repr(C)]
pub struct KelpCommitOffsets {
    pub op: KelpOp,
    /// The log of the coordinator that has the groups. A group never changes its log, so a host
    /// needs it only to find the offsets of a log together.
    pub log: KelpStr,
    pub offsets: *const KelpOffset,
    pub offset_count: usize,
}

/// Gives the offsets that were committed with a log's name, in as many pieces as the host likes.
/// For each key the last one is enough. None at all is no error.
///
/// Completed with KELP_OK.
#[repr(C)]
pub struct KelpLoadOffsets {
    pub op: KelpOp,
    pub log: KelpStr,
    /// 0 for the first piece, then what `next_position` was.
    pub position: u64,
    /// out
    pub offsets: *const KelpOffset,
    /// out
    pub offset_count: usize,
    /// out: where the next piece begins. 0: there is none.
    pub next_position: u64,
}

operations! {
    KelpLoadTopics => KELP_OP_LOAD_TOPICS,
    KelpCreateTopic => KELP_OP_CREATE_TOPIC,
    KelpDeleteTopic => KELP_OP_DELETE_TOPIC,
    KelpOpenPartition => KELP_OP_OPEN_PARTITION,
    KelpAppend => KELP_OP_APPEND,
    KelpRead => KELP_OP_READ,
    KelpSetLogStart => KELP_OP_SET_LOG_START,
    KelpSeekTime => KELP_OP_SEEK_TIME,
    KelpAllocateProducerIds => KELP_OP_ALLOCATE_PRODUCER_IDS,
    KelpAppendRecords => KELP_OP_APPEND_RECORDS,
    KelpLoadRecords => KELP_OP_LOAD_RECORDS,
    KelpCommitOffsets => KELP_OP_COMMIT_OFFSETS,
    KelpLoadOffsets => KELP_OP_LOAD_OFFSETS,
    KelpAlterTopic => KELP_OP_ALTER_TOPIC,
}

/// A log of the host's own, for the records of all topics.
///
/// The functions for topics and records are needed. `seek_time` may be NULL: Kelp then searches
/// from the log's start.
///
/// `allocate_producer_ids`, `append_records` and `load_records` are the coordinators': all set or
/// all NULL. Without them there is no InitProducerId, and so no idempotent producer; producer state
/// is then read from the whole log whenever a partition is opened.
///
/// `commit_offsets` and `load_offsets` are for consumer groups: both set, together with the three
/// above, or both NULL. Without them no groups are offered.
///
/// `alter_topic` may be NULL: then topics stay as they were created, and neither more partitions nor
/// changes of settings are offered. With it and the coordinators' functions, settings of the broker can
/// be changed too: they are records of the log "brokers".
///
/// A host that gives its data to another engine, after `kelp_engine_free`, first completes what it
/// has of the former one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KelpStorage {
    /// sizeof(kelp_storage)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    pub load_topics: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpLoadTopics)>,
    pub create_topic: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpCreateTopic)>,
    pub delete_topic: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpDeleteTopic)>,
    pub open_partition: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpOpenPartition)>,
    pub append: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpAppend)>,
    pub read: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpRead)>,
    pub set_log_start: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpSetLogStart)>,
    pub seek_time: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpSeekTime)>,
    pub allocate_producer_ids:
        Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpAllocateProducerIds)>,
    pub append_records: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpAppendRecords)>,
    pub load_records: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpLoadRecords)>,
    /// Since KELP_ABI_VERSION 3.
    pub commit_offsets: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpCommitOffsets)>,
    /// Since KELP_ABI_VERSION 3.
    pub load_offsets: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpLoadOffsets)>,
    /// Since KELP_ABI_VERSION 4.
    pub alter_topic: Option<unsafe extern "C" fn(ctx: *mut c_void, op: *mut KelpAlterTopic)>,
}

// SAFETY: `repr(C)`, begins with its size, and all its fields may be zero.
unsafe impl Versioned for KelpStorage {
    const FIRST_SIZE: usize = offset_of!(Self, commit_offsets);
}

/// A topic's settings for the host, with the memory they point to.
pub(super) struct Settings(Vec<KelpSetting>, #[expect(dead_code)] BTreeMap<String, String>);

// SAFETY: the pointers lead into strings that are kept beside them and that nobody changes.
unsafe impl Send for Settings {}

impl Settings {
    pub(super) fn new(configs: &BTreeMap<String, String>) -> Self {
        let owned = configs.clone();
        let setting = |(name, value): (&String, &String)| KelpSetting {
            name: KelpStr::of(name),
            value: KelpStr::of(value),
        };
        Self(owned.iter().map(setting).collect(), owned)
    }

    /// Stays valid when `self` is moved.
    pub(super) fn as_slice(&self) -> &[KelpSetting] {
        &self.0
    }
}
