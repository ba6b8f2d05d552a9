/*
 * libkelp: a Kafka broker as a library.
 *
 * A host process makes an engine, hands it sockets on which Kafka clients speak, and keeps what
 * they send in a storage of its own, which Kelp reaches through a table of callbacks.
 *
 *   static const kelp_objects objects = { sizeof objects, 0, put_new, get, list, delete_keys };
 *   kelp_host host = { 0 };
 *   host.struct_size = sizeof host;
 *   host.ctx = my_storage;
 *   host.objects = &objects;
 *
 *   char error[256];
 *   kelp_engine *engine;
 *   if (kelp_engine_new(NULL, &host, &engine, error, sizeof error) != KELP_OK)
 *     die(error);
 *   kelp_engine_listen(engine, "127.0.0.1:9092", NULL);
 *   ...
 *   kelp_engine_stop(engine, 10000);
 *   kelp_engine_free(engine);
 *
 * Storage. A host gives one of two tables: kelp_objects, four functions over a store of immutable
 * objects on which Kelp keeps its log; or kelp_storage, for a host that has a log of its own.
 *
 * Operations. A callback gets an operation: a struct that begins with a kelp_op and says what is
 * asked. The callback returns at once. The operation is completed once, with kelp_op_complete,
 * inside the callback or later from any thread; until then it and all it points to belong to Kelp
 * and stay as they are, also past kelp_engine_free. The answer is written into the struct's fields
 * that are marked "out"; bytes into memory of kelp_op_alloc, or they are lent with kelp_op_lend.
 * A host that does not complete an operation keeps its memory; after the property host.timeout.ms
 * (30 s) the clients are answered without it, but for an append, which stays under way.
 *
 * Memory. Nothing that one side allocated is freed by the other. What Kelp gives to a callback is
 * the host's to read until the callback returns, or, if it belongs to an operation, until that is
 * completed.
 *
 * Threads. Every function may be called from any thread. Kelp calls the host only on threads of
 * its own that do nothing else (kelp_config.dispatch_threads). They block SIGPIPE; the threads
 * that serve sockets block all asynchronous signals. Kelp writes to no file descriptor but the
 * sockets that it was given or opened. A process that has made an engine must not fork without
 * exec, and must not unload the library.
 *
 * Batches. A host that stores single records takes batches apart with kelp_batch_reader and puts
 * them together with kelp_batch_builder. Neither needs an engine.
 *
 * Versions. A struct that the host fills begins with struct_size, its sizeof in the host's header.
 * Fields are only added at the end, and zero is always their default, so that old hosts run with
 * new libraries; zero the structs first. Numbers are never used for anything else.
 */

#ifndef KELP_H
#define KELP_H

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface. It grows by one when structs or functions are added, and stays
 * compatible: a host that was built with a lower number runs with a newer library.
 */
#define KELP_ABI_VERSION 5

#define KELP_OK 0

/**
 * A pointer that must not be NULL was.
 */
#define KELP_NULL_POINTER -1

/**
 * The engine was stopped, or is about to be.
 */
#define KELP_STOPPED -2

/**
 * A bug in Kelp. The call failed; the process and all else go on.
 */
#define KELP_PANIC -3

/**
 * An argument cannot be used: a struct_size, a property, an address.
 */
#define KELP_INVALID_ARGUMENT -4

/**
 * The operating system refused a socket, a thread or memory.
 */
#define KELP_IO -5

/**
 * The time was not enough.
 */
#define KELP_TIMED_OUT -6

/**
 * The host's storage does not answer, or answers that something is broken. What the operation
 * should have changed may have been changed or not. The clients try again.
 */
#define KELP_UNAVAILABLE -7

/**
 * There is nothing under that name.
 */
#define KELP_NOT_FOUND -8

/**
 * There is something under that name already; nothing was changed.
 */
#define KELP_EXISTS -9

/**
 * The log ends elsewhere; nothing was appended.
 */
#define KELP_CONFLICT -10

/**
 * What is stored cannot be read.
 */
#define KELP_CORRUPT -11

/**
 * Kafka: the offset is below the log's start or above its end.
 */
#define KELP_OFFSET_OUT_OF_RANGE 1

/**
 * Kafka: no such topic or partition.
 */
#define KELP_UNKNOWN_TOPIC_OR_PARTITION 3

/**
 * Kafka: another process has the partition now; nothing was changed.
 */
#define KELP_NOT_LEADER_OR_FOLLOWER 6

/**
 * Kafka: the record or batch is longer than it may be.
 */
#define KELP_MESSAGE_TOO_LARGE 10

/**
 * Kafka: a topic of that name exists.
 */
#define KELP_TOPIC_ALREADY_EXISTS 36

#define KELP_OP_PUT_NEW 1

#define KELP_OP_GET 2

#define KELP_OP_LIST 3

#define KELP_OP_DELETE 4

/**
 * In a get: to the end of the object.
 */
#define KELP_TO_END UINT64_MAX

#define KELP_OP_LOAD_TOPICS 16

#define KELP_OP_CREATE_TOPIC 17

#define KELP_OP_DELETE_TOPIC 18

#define KELP_OP_OPEN_PARTITION 19

#define KELP_OP_APPEND 20

#define KELP_OP_READ 21

#define KELP_OP_SET_LOG_START 22

#define KELP_OP_SEEK_TIME 23

#define KELP_OP_ALLOCATE_PRODUCER_IDS 24

#define KELP_OP_APPEND_RECORDS 25

#define KELP_OP_LOAD_RECORDS 26

#define KELP_OP_COMMIT_OFFSETS 27

#define KELP_OP_LOAD_OFFSETS 28

#define KELP_OP_ALTER_TOPIC 29

/**
 * Something is broken and somebody should act.
 */
#define KELP_LOG_ERROR 1

/**
 * Something is wrong; Kelp goes on.
 */
#define KELP_LOG_WARN 2

/**
 * What an operator wants to know.
 */
#define KELP_LOG_INFO 3

#define KELP_LOG_DEBUG 4

#define KELP_LOG_TRACE 5

/**
 * Another process has the data and is alive; the detail says which.
 */
#define KELP_STATE_STANDBY 1

/**
 * Clients are served.
 */
#define KELP_STATE_SERVING 2

/**
 * Another process took the data over, for good; the detail says which. Clients are told where to
 * go for ten seconds; then comes KELP_STATE_ENDED.
 */
#define KELP_STATE_FENCED 3

/**
 * What is stored cannot be read, or the host's storage failed when it was opened; the detail says
 * why. Then comes KELP_STATE_ENDED.
 */
#define KELP_STATE_FAILED 4

/**
 * Nothing is served any more, as the engine was stopped, fenced, or failed. The host frees it.
 */
#define KELP_STATE_ENDED 5

/**
 * The codec of a batch: the lowest three bits of its attributes.
 */
#define KELP_BATCH_CODEC 7

#define KELP_CODEC_NONE 0

#define KELP_CODEC_GZIP 1

#define KELP_CODEC_SNAPPY 2

#define KELP_CODEC_LZ4 3

#define KELP_CODEC_ZSTD 4

/**
 * All records have the time `max_timestamp` instead of their own (KIP-32).
 */
#define KELP_BATCH_LOG_APPEND_TIME 8

/**
 * The records belong to a transaction of the producer.
 */
#define KELP_BATCH_TRANSACTIONAL 16

/**
 * The records are for brokers and consumers, such as the end of a transaction: applications do
 * not see them, but they have offsets.
 */
#define KELP_BATCH_CONTROL 32

/**
 * `delete_horizon_ms` is meant (KIP-534).
 */
#define KELP_BATCH_DELETE_HORIZON 64

/**
 * `producer_id`, `producer_epoch` and `base_sequence` are meant. Not a bit of Kafka's.
 */
#define KELP_BATCH_PRODUCER (1 << 16)

/**
 * Makes a batch of records. Opaque to C. One thread at a time may use it.
 */
typedef struct kelp_batch_builder kelp_batch_builder;

/**
 * Walks batches and their records. Opaque to C. One thread at a time may use it.
 */
typedef struct kelp_batch_reader kelp_batch_reader;

/**
 * A Kafka broker. Its functions may be called from any thread, several at once, until it is
 * freed. None of them waits but `kelp_engine_stop` and `kelp_engine_free`.
 */
typedef struct kelp_engine kelp_engine;

/**
 * The topics of one moment. Opaque to C. One thread at a time may use it.
 */
typedef struct kelp_topic_list kelp_topic_list;

/**
 * Text in UTF-8 that somebody else owns. Not NUL-terminated. NULL with length 0 is empty.
 */
typedef struct kelp_str {
  const char *ptr;
  size_t len;
} kelp_str;

/**
 * The head of every operation: each operation's struct begins with it, so a pointer to the
 * struct is a pointer to the head. The pointer is the token with which the host completes it.
 *
 * All that an operation points to belongs to Kelp and stays as it is until the host completes
 * the operation. What the host answers (the fields marked "out") may lie in memory of
 * `kelp_op_alloc` or `kelp_op_lend`, which is not copied, or anywhere else where it stays until
 * `kelp_op_complete` returns, which copies it.
 *
 * The calls for one operation may come from any thread, but not from two at the same time.
 */
typedef struct kelp_op {
  /**
   * Which operation this is the head of: KELP_OP_...
   */
  uint32_t kind;
  /**
   * After so many milliseconds nobody waits for the answer any more. 0: always somebody does.
   */
  uint32_t timeout_ms;
  /**
   * The host's own word, NULL at first. Kelp never touches it.
   */
  void *host;
  /**
   * out, optional: what went wrong, for Kelp's log, when the status is not KELP_OK.
   */
  struct kelp_str error;
  /**
   * Kelp's own. Not to be touched.
   */
  void *kelp;
} kelp_op;

/**
 * The result of a call or an operation: 0 is success, negative numbers are Kelp's, positive ones
 * are the error codes of Kafka's protocol. A number is never used for anything else.
 */
typedef int32_t kelp_status;

/**
 * How the engine is to run. Zero and NULL are the defaults.
 */
typedef struct kelp_config {
  /**
   * sizeof(kelp_config)
   */
  uint32_t struct_size;
  /**
   * Threads that serve sockets. 0: what the property num.io.threads says, or else one for each
   * processor.
   */
  uint32_t io_threads;
  /**
   * Threads that call the host. 0: one.
   */
  uint32_t dispatch_threads;
  /**
   * 0
   */
  uint32_t reserved;
  /**
   * Kafka's server properties, one NAME=VALUE a line, NUL-terminated. A property that Kelp does
   * not have is an error. Those that hosts mostly set: node.id, num.partitions,
   * advertised.listeners (with listeners, which gives the names and ports but does not open
   * them), auto.create.topics.enable, message.max.bytes, host.timeout.ms.
   */
  const char *properties;
} kelp_config;

/**
 * A setting of a topic under its Kafka name, such as "retention.ms".
 */
typedef struct kelp_setting {
  struct kelp_str name;
  struct kelp_str value;
} kelp_setting;

/**
 * A topic. Its id is never used for another one; its name may be, once it is deleted.
 */
typedef struct kelp_topic {
  uint8_t id[16];
  struct kelp_str name;
  /**
   * Only what was set for this topic.
   */
  const struct kelp_setting *settings;
  size_t setting_count;
  /**
   * They are numbered from 0.
   */
  int32_t partition_count;
  /**
   * 0
   */
  uint32_t reserved;
} kelp_topic;

/**
 * Gives all topics: the first operation, asked once. Clients are served when it is completed,
 * so a host completes it when it can serve; it may take its time. A host that keeps coordinators'
 * records is then asked for those of the log "brokers", one that keeps groups also for those of
 * "groups", and clients are served after that.
 *
 * Completed with KELP_OK. With any other status the engine's state is KELP_STATE_FAILED.
 */
typedef struct kelp_load_topics {
  struct kelp_op op;
  /**
   * out: the cluster's name, made when the storage was first used, the same for ever.
   */
  struct kelp_str cluster_id;
  /**
   * out
   */
  const struct kelp_topic *topics;
  /**
   * out
   */
  size_t topic_count;
} kelp_load_topics;

/**
 * Stores a topic. Its partitions are empty, with offset 0 the next one.
 *
 * Completed with KELP_OK, or KELP_TOPIC_ALREADY_EXISTS: there is a topic of that name.
 */
typedef struct kelp_create_topic {
  struct kelp_op op;
  struct kelp_topic topic;
} kelp_create_topic;

/**
 * Deletes a topic with all its records.
 *
 * Completed with KELP_OK, or KELP_UNKNOWN_TOPIC_OR_PARTITION.
 */
typedef struct kelp_delete_topic {
  struct kelp_op op;
  struct kelp_str topic;
  uint8_t topic_id[16];
} kelp_delete_topic;

/**
 * One partition of a topic. The id is what counts, the name is there to read.
 */
typedef struct kelp_partition {
  struct kelp_str topic;
  uint8_t topic_id[16];
  int32_t index;
  /**
   * 0
   */
  uint32_t reserved;
} kelp_partition;

/**
 * Tells where a partition stands. Asked before a partition is first used, and again when an
 * append did not go as expected.
 *
 * Completed with KELP_OK, KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
 */
typedef struct kelp_open_partition {
  struct kelp_op op;
  struct kelp_partition partition;
  /**
   * out: the first offset that can be read.
   */
  int64_t log_start_offset;
  /**
   * out: the offset that the next record gets.
   */
  int64_t log_end_offset;
  /**
   * out: a number that grows, never falls, whenever another process or another start of this
   * one becomes the one that appends. 0 will do for a log that does not outlive its process.
   */
  int32_t leader_epoch;
  /**
   * 0
   */
  uint32_t reserved;
} kelp_open_partition;

/**
 * Bytes that somebody else owns. NULL with length 0 is empty.
 */
typedef struct kelp_bytes {
  const uint8_t *ptr;
  size_t len;
} kelp_bytes;

/**
 * Appends record batches at `expected_base_offset`, or nothing at all: when the log ends
 * elsewhere it is left as it is, and the answer is where. Success means that the batches are as
 * durable as an acknowledgement of this host says, and that a read shows them.
 *
 * For one partition there is never more than one append under way; what comes in meanwhile makes
 * the next one, of at most 16 MiB if it has more than one batch. It is waited for as long as it takes: an append that is never completed holds up
 * its partition.
 *
 * Completed with KELP_OK, KELP_CONFLICT, KELP_UNKNOWN_TOPIC_OR_PARTITION, or
 * KELP_NOT_LEADER_OR_FOLLOWER; in the last three nothing was appended. With KELP_UNAVAILABLE the
 * batches may be there or not; Kelp opens the partition again and looks.
 */
typedef struct kelp_append {
  struct kelp_op op;
  struct kelp_partition partition;
  int64_t expected_base_offset;
  /**
   * Where the log ends when all is appended.
   */
  int64_t next_offset;
  /**
   * Batches of Kafka's format v2, one after the other, with their offsets. A batch may lie
   * across several slices. They are stored as they are.
   */
  const struct kelp_bytes *slices;
  size_t slice_count;
  /**
   * Of all slices together.
   */
  size_t total_bytes;
  /**
   * out, with KELP_CONFLICT: where the log ends.
   */
  int64_t log_end_offset;
} kelp_append;

/**
 * Reads whole batches, from the one that holds `offset` on: it may begin before. Nothing, if
 * `offset` is the log's end.
 *
 * Completed with KELP_OK, KELP_OFFSET_OUT_OF_RANGE (below the log's start or above its end),
 * KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
 */
typedef struct kelp_read {
  struct kelp_op op;
  struct kelp_partition partition;
  int64_t offset;
  /**
   * At most so many bytes.
   */
  size_t max_bytes;
  /**
   * 1: the first batch whole, also if it is longer than `max_bytes`. Else 0.
   */
  uint32_t at_least_one;
  /**
   * 0
   */
  uint32_t reserved;
  /**
   * out: slices in the order of the log, each of one or more whole batches; best in memory of
   * `kelp_op_alloc` or `kelp_op_lend`.
   */
  const struct kelp_bytes *slices;
  /**
   * out
   */
  size_t slice_count;
} kelp_read;

/**
 * Moves a partition's log start forward: what is below it can be read no more.
 *
 * Completed with KELP_OK, KELP_OFFSET_OUT_OF_RANGE (above the log's end),
 * KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
 */
typedef struct kelp_set_log_start {
  struct kelp_op op;
  struct kelp_partition partition;
  int64_t offset;
  /**
   * out: the log start then; it was further on already if it is above `offset`.
   */
  int64_t log_start_offset;
} kelp_set_log_start;

/**
 * Finds an offset from which a search for the first record of `timestamp` or later may begin:
 * never above that record, the nearer the better.
 *
 * Completed with KELP_OK, KELP_UNKNOWN_TOPIC_OR_PARTITION, or KELP_NOT_LEADER_OR_FOLLOWER.
 */
typedef struct kelp_seek_time {
  struct kelp_op op;
  struct kelp_partition partition;
  /**
   * Milliseconds since 1970.
   */
  int64_t timestamp;
  /**
   * out
   */
  int64_t offset;
} kelp_seek_time;

/**
 * Takes producer ids that no process had or will have, from 0 on.
 *
 * Completed with KELP_OK.
 */
typedef struct kelp_allocate_producer_ids {
  struct kelp_op op;
  uint32_t count;
  /**
   * 0
   */
  uint32_t reserved;
  /**
   * out: the first; the others follow it.
   */
  int64_t first;
} kelp_allocate_producer_ids;

/**
 * A record of a coordinator. The last one of a key counts; a tombstone deletes its key.
 */
typedef struct kelp_record {
  struct kelp_bytes key;
  struct kelp_bytes value;
  /**
   * 1: the record has no value, and the key is deleted. Else 0.
   */
  uint32_t is_tombstone;
  /**
   * 0
   */
  uint32_t reserved;
} kelp_record;

/**
 * Stores records of a coordinator, all of them or none, behind those that were completed before.
 * A log comes into being with its first record.
 *
 * For the log of a group coordinator there is never more than one append or commit under way. It
 * is waited for as long as it takes: one that is never completed holds up the groups of that
 * coordinator.
 *
 * Completed with KELP_OK: they are durable. With any other status they may be there or not, but
 * what is not there then never will be.
 */
typedef struct kelp_append_records {
  struct kelp_op op;
  /**
   * The name of the coordinator's log: printable ASCII, at most 200 bytes.
   */
  struct kelp_str log;
  const struct kelp_record *records;
  size_t record_count;
} kelp_append_records;

/**
 * Gives the records of a coordinator's log, in the order in which they were stored, in as many
 * pieces as the host likes. For each key the last record is enough. A log without records is
 * empty, which is no error.
 *
 * Completed with KELP_OK.
 */
typedef struct kelp_load_records {
  struct kelp_op op;
  struct kelp_str log;
  /**
   * 0 for the first piece, then what `next_position` was.
   */
  uint64_t position;
  /**
   * out
   */
  const struct kelp_record *records;
  /**
   * out
   */
  size_t record_count;
  /**
   * out: where the next piece begins. 0: there is none.
   */
  uint64_t next_position;
} kelp_load_records;

/**
 * The offset of a consumer group in a partition. Group, topic and partition are its key: the last
 * one counts, and a tombstone deletes it.
 */
typedef struct kelp_offset {
  struct kelp_str group;
  struct kelp_str topic;
  /**
   * The topic that the offset is of; a later one may have its name. All zeros: not known.
   */
  uint8_t topic_id[16];
  int32_t partition;
  /**
   * Of the last record that was read. -1: not known.
   */
  int32_t leader_epoch;
  /**
   * The next record to be read.
   */
  int64_t offset;
  /**
   * The client's own words; most often none.
   */
  struct kelp_str metadata;
  /**
   * Milliseconds since 1970.
   */
  int64_t commit_timestamp;
  /**
   * When it expires, in milliseconds since 1970. -1: as Kelp's settings say. To delete expired
   * offsets is Kelp's work, by tombstones.
   */
  int64_t expire_timestamp;
  /**
   * 1: the offset is deleted, and only the key counts. Else 0.
   */
  uint32_t is_tombstone;
  /**
   * 0
   */
  uint32_t reserved;
} kelp_offset;

/**
 * Stores offsets of consumer groups, all of them or none, in their order and behind those that
 * were completed before.
 *
 * For one log there is never more than one commit or append under way; what comes in meanwhile
 * makes the next one. It is waited for as long as it takes: one that is never completed holds up the
 * groups of that log, whose clients are told COORDINATOR_NOT_AVAILABLE.
 *
 * Completed with KELP_OK: they are durable. With any other status they may be there or not, but
 * what is not there then never will be; Kelp loads the log and its offsets again.
 */
typedef struct kelp_commit_offsets {
  struct kelp_op op;
  /**
   * The log of the coordinator that has the groups. A group never changes its log, so a host
   * needs it only to find the offsets of a log together.
   */
  struct kelp_str log;
  const struct kelp_offset *offsets;
  size_t offset_count;
} kelp_commit_offsets;

/**
 * Gives the offsets that were committed with a log's name, in as many pieces as the host likes.
 * For each key the last one is enough. None at all is no error.
 *
 * Completed with KELP_OK.
 */
typedef struct kelp_load_offsets {
  struct kelp_op op;
  struct kelp_str log;
  /**
   * 0 for the first piece, then what `next_position` was.
   */
  uint64_t position;
  /**
   * out
   */
  const struct kelp_offset *offsets;
  /**
   * out
   */
  size_t offset_count;
  /**
   * out: where the next piece begins. 0: there is none.
   */
  uint64_t next_position;
} kelp_load_offsets;

/**
 * Stores a topic anew: with the settings and the partitions that it is to have. There are never fewer
 * partitions than before; those that come are empty.
 *
 * There is never more than one of these under way. While one is not completed, who would change
 * topics too is told REQUEST_TIMED_OUT.
 *
 * Completed with KELP_OK, or KELP_UNKNOWN_TOPIC_OR_PARTITION. With KELP_UNAVAILABLE the topic may be
 * as it was or as it was to be.
 */
typedef struct kelp_alter_topic {
  struct kelp_op op;
  struct kelp_topic topic;
} kelp_alter_topic;

/**
 * A log of the host's own, for the records of all topics.
 *
 * The functions for topics and records are needed. `seek_time` may be NULL: Kelp then searches
 * from the log's start.
 *
 * `allocate_producer_ids`, `append_records` and `load_records` are the coordinators': all set or
 * all NULL. Without them there is no InitProducerId, and so no idempotent producer; producer state
 * is then read from the whole log whenever a partition is opened.
 *
 * `commit_offsets` and `load_offsets` are for consumer groups: both set, together with the three
 * above, or both NULL. Without them no groups are offered.
 *
 * `alter_topic` may be NULL: then topics stay as they were created, and neither more partitions nor
 * changes of settings are offered. With it and the coordinators' functions, settings of the broker can
 * be changed too: they are records of the log "brokers".
 *
 * A host that gives its data to another engine, after `kelp_engine_free`, first completes what it
 * has of the former one.
 */
typedef struct kelp_storage {
  /**
   * sizeof(kelp_storage)
   */
  uint32_t struct_size;
  /**
   * 0
   */
  uint32_t reserved;
  void (*load_topics)(void *ctx, struct kelp_load_topics *op);
  void (*create_topic)(void *ctx, struct kelp_create_topic *op);
  void (*delete_topic)(void *ctx, struct kelp_delete_topic *op);
  void (*open_partition)(void *ctx, struct kelp_open_partition *op);
  void (*append)(void *ctx, struct kelp_append *op);
  void (*read)(void *ctx, struct kelp_read *op);
  void (*set_log_start)(void *ctx, struct kelp_set_log_start *op);
  void (*seek_time)(void *ctx, struct kelp_seek_time *op);
  void (*allocate_producer_ids)(void *ctx, struct kelp_allocate_producer_ids *op);
  void (*append_records)(void *ctx, struct kelp_append_records *op);
  void (*load_records)(void *ctx, struct kelp_load_records *op);
  /**
   * Since KELP_ABI_VERSION 3.
   */
  void (*commit_offsets)(void *ctx, struct kelp_commit_offsets *op);
  /**
   * Since KELP_ABI_VERSION 3.
   */
  void (*load_offsets)(void *ctx, struct kelp_load_offsets *op);
  /**
   * Since KELP_ABI_VERSION 4.
   */
  void (*alter_topic)(void *ctx, struct kelp_alter_topic *op);
} kelp_storage;

/**
 * Stores an object, unless the key has one: to look and to insert are one step, of which exactly
 * one wins when several put the same key. Success means that the object is durable.
 *
 * Completed with KELP_OK: created. KELP_EXISTS: the key has an object; nothing was changed.
 * KELP_UNAVAILABLE: unknown; Kelp looks what became of it and puts the same bytes again.
 */
typedef struct kelp_put_new {
  struct kelp_op op;
  /**
   * Printable ASCII, `/` between its parts, at most 200 bytes.
   */
  struct kelp_str key;
  /**
   * What the object holds: all parts, one after the other.
   */
  const struct kelp_bytes *parts;
  size_t part_count;
  /**
   * Of all parts together.
   */
  size_t total_bytes;
} kelp_put_new;

/**
 * Reads a range of an object. It sees every `put_new` that was completed before.
 *
 * Completed with KELP_OK, or KELP_NOT_FOUND: no such object.
 */
typedef struct kelp_get {
  struct kelp_op op;
  struct kelp_str key;
  uint64_t offset;
  /**
   * At most so many bytes; KELP_TO_END: all. A range past the object's end is cut.
   */
  uint64_t length;
  /**
   * out: the bytes, best in memory of `kelp_op_alloc` or `kelp_op_lend`.
   */
  struct kelp_bytes data;
} kelp_get;

/**
 * Lists keys in ascending order of their bytes. It shows every key whose `put_new` was completed
 * before, with KELP_OK or KELP_EXISTS, and that was not deleted.
 *
 * Completed with KELP_OK.
 */
typedef struct kelp_list {
  struct kelp_op op;
  /**
   * Only keys that begin with this.
   */
  struct kelp_str prefix;
  /**
   * Only keys that come behind this. Empty: from the first.
   */
  struct kelp_str after;
  /**
   * At most so many keys. Fewer mean that there are no more.
   */
  size_t limit;
  /**
   * out
   */
  const struct kelp_str *keys;
  /**
   * out
   */
  size_t key_count;
} kelp_list;

/**
 * Deletes objects. It may act late, partly and in any order; a key without an object is no
 * error.
 *
 * Completed with KELP_OK.
 */
typedef struct kelp_delete {
  struct kelp_op op;
  const struct kelp_str *keys;
  size_t key_count;
} kelp_delete;

/**
 * A store of immutable objects. All four functions are needed.
 *
 * The keys that Kelp uses: `journal/...`, `segment/...`, `checkpoint/...`, `metadata/...` and
 * others; a host keeps them apart from its own by a prefix, and may take the first part for a
 * folder.
 */
typedef struct kelp_objects {
  /**
   * sizeof(kelp_objects)
   */
  uint32_t struct_size;
  /**
   * 0
   */
  uint32_t reserved;
  void (*put_new)(void *ctx, struct kelp_put_new *op);
  void (*get)(void *ctx, struct kelp_get *op);
  void (*list)(void *ctx, struct kelp_list *op);
  void (*delete_keys)(void *ctx, struct kelp_delete *op);
} kelp_objects;

/**
 * What the host gives: its callbacks and where it keeps the data.
 *
 * Exactly one of `storage` and `objects` is set. The struct and the tables are copied by
 * `kelp_engine_new`; `ctx` must stay valid until `kelp_engine_free` has returned and every
 * operation was completed.
 *
 * Kelp calls the host only on its dispatcher threads, never on a thread that serves a socket. A
 * callback must return soon: what has to wait is done elsewhere, and completed then. A callback
 * may call every function of this header but `kelp_engine_stop` and `kelp_engine_free`. With
 * more than one dispatcher thread the callbacks of different operations may run at once; `log`,
 * `state` and `topics_changed` are always called by one thread.
 */
typedef struct kelp_host {
  /**
   * sizeof(kelp_host)
   */
  uint32_t struct_size;
  /**
   * The least grave level that `log` is called for. 0: KELP_LOG_INFO.
   */
  int32_t log_level;
  /**
   * Given to every callback.
   */
  void *ctx;
  /**
   * A log of the host's own. NULL: `objects` is set.
   */
  const struct kelp_storage *storage;
  /**
   * A store of objects, on which Kelp keeps its log. NULL: `storage` is set.
   */
  const struct kelp_objects *objects;
  /**
   * optional: memory that was lent with `kelp_op_lend` is the host's again.
   */
  void (*release)(void *ctx, void *lent);
  /**
   * optional: a line for the log. `target` is the part of Kelp that says it. Both are gone
   * when the callback returns.
   */
  void (*log)(void *ctx, int32_t level, struct kelp_str target, struct kelp_str text);
  /**
   * optional: the engine's state changed to one of KELP_STATE_... The detail is gone when the
   * callback returns.
   */
  void (*state)(void *ctx, int32_t state, struct kelp_str detail);
  /**
   * optional: what `kelp_topic_list_new` gives may have changed: called when the engine begins to
   * serve, and when topics, their settings, or those of the broker are changed. Several changes
   * may come as one call. Since KELP_ABI_VERSION 5.
   */
  void (*topics_changed)(void *ctx);
} kelp_host;

/**
 * A topic, and what its settings and the broker's come to.
 */
typedef struct kelp_topic_summary {
  uint8_t id[16];
  struct kelp_str name;
  /**
   * How long records are kept, in milliseconds: what retention.ms is for the topic. -1: none go
   * by their age.
   */
  int64_t retention_ms;
  int32_t partition_count;
  /**
   * 1: Kafka's own, such as __consumer_offsets, which holds the state of coordinators.
   */
  uint32_t is_internal;
} kelp_topic_summary;

/**
 * What a batch says of itself besides its records. A reader tells it, a builder is given it; what
 * a reader told may be given to a builder as it is.
 */
typedef struct kelp_batch_fields {
  /**
   * sizeof(kelp_batch_fields)
   */
  uint32_t struct_size;
  /**
   * A codec and KELP_BATCH_… bits.
   */
  uint32_t attributes;
  int64_t base_offset;
  /**
   * From the base offset to the last offset of the batch. It may be more than that of the last
   * record, when compaction has taken records away. A builder that is given less takes the
   * offset of the last record.
   */
  int32_t last_offset_delta;
  /**
   * -1: none
   */
  int32_t leader_epoch;
  int64_t producer_id;
  /**
   * The sequence number of the first offset.
   */
  int32_t base_sequence;
  int16_t producer_epoch;
  /**
   * 0
   */
  uint16_t reserved;
  /**
   * With KELP_BATCH_LOG_APPEND_TIME the time of all records, in milliseconds since 1970. Else
   * the largest time of a record: a builder does not look at it.
   */
  int64_t max_timestamp;
  /**
   * When tombstones and markers of transactions may go.
   */
  int64_t delete_horizon_ms;
  /**
   * How many records there are: a builder does not look at it.
   */
  int32_t record_count;
  /**
   * How hard the codec tries, in Kafka's levels: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.
   * 0: the codec's default, and what a reader tells.
   */
  int32_t level;
  /**
   * A builder takes no record with which the batch would be longer, counted before compression.
   * 0: 2 GiB, which is the most that a batch can have, and what a reader tells.
   */
  uint64_t max_bytes;
} kelp_batch_fields;

/**
 * A header of a record. Keys may come more than once.
 */
typedef struct kelp_record_header {
  struct kelp_bytes key;
  /**
   * As the value of a record: null if its pointer is NULL.
   */
  struct kelp_bytes value;
} kelp_record_header;

/**
 * One record. Kafka's format is fixed, and so is this struct.
 */
typedef struct kelp_batch_record {
  int64_t offset;
  /**
   * In milliseconds since 1970; -1: none.
   */
  int64_t timestamp;
  /**
   * A null key has the pointer NULL; an empty one has another pointer, and the length 0.
   */
  struct kelp_bytes key;
  /**
   * As the key. A null value is a tombstone.
   */
  struct kelp_bytes value;
  const struct kelp_record_header *headers;
  size_t header_count;
} kelp_batch_record;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The interface version of the library that is linked: KELP_ABI_VERSION of its own header. A
 * host that uses what a version brought checks that this is not lower.
 */
uint32_t kelp_abi_version(void);

/**
 * The version of the library as text, such as "0.1.0". Static memory, never freed.
 */
const char *kelp_version(void);

/**
 * Allocates `len` zeroed bytes for the answer of an operation, aligned for any type. They are
 * the operation's: never freed by the host, and gone when it is completed. NULL if there is no
 * memory.
 *
 * Requires:
 *
 * `op` is NULL or an operation that was not completed.
 */
void *kelp_op_alloc(struct kelp_op *op, size_t len);

/**
 * Lends memory of the host's for the answer of an operation: bytes of the answer that lie in it
 * are not copied. It must stay as it is until Kelp calls `release(ctx, lent)` of `kelp_host`,
 * once, on a dispatcher thread, or inside `kelp_op_complete` when the engine is gone already.
 *
 * KELP_INVALID_ARGUMENT if the host has no `release`; nothing is lent then.
 *
 * Requires:
 *
 * `op` is NULL or an operation that was not completed; `len` bytes at `ptr` can be read by any
 * thread.
 */
kelp_status kelp_op_lend(struct kelp_op *op, const void *ptr, size_t len, void *lent);

/**
 * Completes an operation: once, from any thread, inside the callback that brought it or later,
 * also after `kelp_engine_free`, which leaves nothing to do but to free it. Afterwards `op` and
 * all it pointed to are gone. The statuses that an operation may have stand at its struct; any
 * other one means KELP_UNAVAILABLE.
 *
 * Requires:
 *
 * `op` is NULL or an operation that was not completed.
 */
kelp_status kelp_op_complete(struct kelp_op *op, kelp_status status);

/**
 * Makes an engine, which opens the host's storage at once and tells by `state` of `kelp_host`
 * when it serves. Sockets may be handed over before: what clients send waits until the storage
 * is open, but while another process has the data their connections are closed.
 *
 * Nothing of `config` and `host` is used after the call, but for what they point to as said
 * there. The storage callbacks may come before the call returns.
 *
 * On failure `*engine` is NULL, and `error`, if it is not NULL, gets a text that says why, cut
 * to `error_capacity` bytes with its NUL.
 *
 * Requires:
 *
 * `config` is NULL (all defaults) or a filled struct, `host` is a filled struct, `engine` can be
 * written, `error` has room for `error_capacity` bytes.
 */
kelp_status kelp_engine_new(const struct kelp_config *config,
                            const struct kelp_host *host,
                            struct kelp_engine **engine,
                            char *error,
                            size_t error_capacity);

/**
 * Serves one accepted client connection. Returns at once; the engine's own threads do the work.
 *
 * Takes `fd` over, whatever the status: do not use or close it afterwards. From Go, duplicate the
 * descriptor inside `SyscallConn().Control`, then close the `net.Conn`, then hand it over.
 *
 * KELP_STOPPED after `kelp_engine_stop`; KELP_IO if the descriptor is no connected socket.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed. `fd` is an open stream socket that nothing else in the
 * process uses, or negative.
 */
kelp_status kelp_engine_serve(const struct kelp_engine *engine, int32_t fd);

/**
 * Accepts and serves the connections of a listening socket, until the engine stops.
 *
 * Takes `fd` over, whatever the status, as `kelp_engine_serve` does.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed. `fd` is an open listening socket that nothing else in the
 * process uses, or negative.
 */
kelp_status kelp_engine_serve_listener(const struct kelp_engine *engine, int32_t fd);

/**
 * Listens at `address`, "HOST:PORT", and serves the connections that come in. With port 0 the
 * operating system chooses; `*port`, if `port` is not NULL, gets the port that it is.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed. `address` is NUL-terminated. `port` is NULL or can be
 * written.
 */
kelp_status kelp_engine_listen(const struct kelp_engine *engine,
                               const char *address,
                               uint16_t *port);

/**
 * Stops the engine in good order: it accepts nothing more, answers what is in flight, lets the
 * storage carry out what was submitted, and closes all connections. Waits for that, but not much
 * longer than `drain_ms` milliseconds; then everything is closed all the same.
 *
 * The host must go on completing operations meanwhile. Not to be called from a callback.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed.
 */
kelp_status kelp_engine_stop(const struct kelp_engine *engine, uint32_t drain_ms);

/**
 * Frees an engine; one that was not stopped is stopped without waiting for anything in flight.
 *
 * When it returns, the host is called no more (but for `release`, see `kelp_op_lend`).
 * Operations that the host has not completed stay valid until it does. Not to be called from a
 * callback.
 *
 * Requires:
 *
 * `engine` is NULL, or was not freed and is not used by any other call.
 */
void kelp_engine_free(struct kelp_engine *engine);

/**
 * Writes what the engine counts and how it stands into `buffer`, as text in the format of
 * Prometheus (version 0.0.4), with a NUL behind it; `docs/metrics.md` lists the metrics. What does
 * not fit in `capacity` bytes is cut off. Returns how long the whole text is without its NUL, as
 * `snprintf` does; 0 if `engine` is NULL.
 *
 * Since KELP_ABI_VERSION 4; the name of before is kelp_engine_metrics.
 *
 * The text is a copy: it is the caller's, like its memory. It is made anew by each call, and may
 * grow from one to the next; so a result that is not below `capacity` asks for another call with
 * more room. Asked once, with room for some 64 KiB and a hundred bytes for each partition and for
 * each offset that a group has committed, it mostly fits; no metric has more than 10,000 series.
 *
 * From any thread, also from a callback. It waits for no storage and no client.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed. `buffer` has room for `capacity` bytes, or is NULL.
 */
size_t kelp_metrics(const struct kelp_engine *engine, char *buffer, size_t capacity);

/**
 * The name that `kelp_metrics` had first.
 *
 * Requires:
 *
 * As `kelp_metrics`.
 */
size_t kelp_engine_metrics(const struct kelp_engine *engine, char *buffer, size_t capacity);

/**
 * Makes a list of all topics as they are now, in the order of their names.
 *
 * It waits for no storage and no client. From any thread, also from a callback; `topics_changed`
 * of kelp_host tells when it is worth to ask again. Since KELP_ABI_VERSION 5.
 *
 * KELP_UNAVAILABLE while the engine does not serve: before its storage is open, while another
 * process has the data, and after it was stopped, fenced, or failed.
 *
 * Requires:
 *
 * `engine` is NULL or was not freed. `list` is NULL or may be written to.
 */
kelp_status kelp_topic_list_new(const struct kelp_engine *engine, struct kelp_topic_list **list);

/**
 * Goes to the next topic; the first call goes to the first. NULL behind the last, or if `list` is
 * NULL. The topic and its name are Kelp's, until the next call of this function or
 * `kelp_topic_list_free`.
 *
 * Requires:
 *
 * `list` is NULL or was not freed, and no other thread uses it.
 */
const struct kelp_topic_summary *kelp_topic_list_next(struct kelp_topic_list *list);

/**
 * Frees a list, and all that it gave. The engine may be gone already.
 *
 * Requires:
 *
 * `list` is NULL or was not freed, and is not used any more.
 */
void kelp_topic_list_free(struct kelp_topic_list *list);

/**
 * Makes a reader of batches in Kafka's format v2 that lie one after the other in `slices`, as in a
 * kelp_append or in a segment of Kafka's log. A batch may lie across slices; it is copied then, if
 * not just its header of 61 bytes is in one and all of its records in the next.
 *
 * The slices, not the array of them, stay as they are until the reader is freed.
 *
 * Requires:
 *
 * `slices` points to `slice_count` slices, each NULL with length 0, or memory of that length which
 * nobody changes or frees before the reader is freed. `reader` is NULL or may be written to.
 */
kelp_status kelp_batch_reader_new(const struct kelp_bytes *slices,
                                  size_t slice_count,
                                  struct kelp_batch_reader **reader);

/**
 * Goes to the next batch, whether or not all records of the one before were read. `fields` gets
 * what it says of itself, or NULL if there is none; Kelp's, until the next call of this function
 * or `kelp_batch_reader_free`.
 *
 * A compressed batch is decompressed here, once, if it then has at most 256 MiB.
 *
 * KELP_CORRUPT if the bytes that are left are no whole batch of format v2 with a right checksum,
 * or cannot be decompressed.
 *
 * Requires:
 *
 * `reader` is NULL or was not freed, and no other thread uses it. `fields` is NULL or may be
 * written to.
 */
kelp_status kelp_batch_reader_next_batch(struct kelp_batch_reader *reader,
                                         const struct kelp_batch_fields **fields);

/**
 * Goes to the next record of the batch. `record` gets it, or NULL if there is none: then comes
 * `kelp_batch_reader_next_batch`, which is also the first call.
 *
 * The struct and its array of headers are Kelp's, until the next call with this reader. What the
 * keys and values point to stays until the next batch: of a batch that is not compressed and was
 * not copied, it is the caller's own memory.
 *
 * KELP_CORRUPT if the record's fields do not fit into it, or if the batch has more or fewer records
 * than it says.
 *
 * Requires:
 *
 * As for `kelp_batch_reader_next_batch`.
 */
kelp_status kelp_batch_reader_next_record(struct kelp_batch_reader *reader,
                                          const struct kelp_batch_record **record);

/**
 * Frees a reader, and all that it gave.
 *
 * Requires:
 *
 * `reader` is NULL or was not freed, and is not used any more.
 */
void kelp_batch_reader_free(struct kelp_batch_reader *reader);

/**
 * Makes a builder of one batch in Kafka's format v2. Zero fields but `struct_size` make one without
 * compression and producer, from offset 0 on.
 *
 * KELP_INVALID_ARGUMENT if there is an attribute, codec or level that is not known.
 *
 * Requires:
 *
 * `fields` is NULL or points to a struct that is as long as its first field says. `builder` is NULL
 * or may be written to.
 */
kelp_status kelp_batch_builder_new(const struct kelp_batch_fields *fields,
                                   struct kelp_batch_builder **builder);

/**
 * Adds a record: all of it is copied. Offsets go up from record to record, and none is below the
 * base offset.
 *
 * KELP_MESSAGE_TOO_LARGE if the batch would be longer than it may be, KELP_INVALID_ARGUMENT if the
 * offset is not as said, or if the batch is finished: the record is not in the batch, and no more
 * is changed, so it may be the first one of the next batch.
 *
 * Requires:
 *
 * `builder` is NULL or was not freed, and no other thread uses it. `record` is NULL, or it and all
 * that it points to may be read.
 */
kelp_status kelp_batch_builder_append(struct kelp_batch_builder *builder,
                                      const struct kelp_batch_record *record);

/**
 * Ends the batch. `batch` gets its bytes, which are Kelp's until `kelp_batch_builder_free`. Asked
 * again, it gives the same.
 *
 * KELP_INVALID_ARGUMENT if no record was added.
 *
 * Requires:
 *
 * `builder` is NULL or was not freed, and no other thread uses it. `batch` is NULL or may be written
 * to.
 */
kelp_status kelp_batch_builder_finish(struct kelp_batch_builder *builder,
                                      struct kelp_bytes *batch);

/**
 * Frees a builder, and the bytes that it gave.
 *
 * Requires:
 *
 * `builder` is NULL or was not freed, and is not used any more.
 */
void kelp_batch_builder_free(struct kelp_batch_builder *builder);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KELP_H */
