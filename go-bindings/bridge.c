#include "bridge.h"

#include "_cgo_export.h"

/* A handle is a small number. As a pointer on a stack of Go's it would be taken for a broken one,
 * so it is turned back into a number before Go sees it. */
#define CALLBACK(name, struct_name)                    \
  static void name(void *ctx, struct_name *op) {       \
    kelp_go_##name((uintptr_t)ctx, op);                \
  }

CALLBACK(put_new, kelp_put_new)
CALLBACK(get, kelp_get)
CALLBACK(list, kelp_list)
CALLBACK(delete_keys, kelp_delete)
CALLBACK(load_topics, kelp_load_topics)
CALLBACK(create_topic, kelp_create_topic)
CALLBACK(delete_topic, kelp_delete_topic)
CALLBACK(open_partition, kelp_open_partition)
CALLBACK(append, kelp_append)
CALLBACK(read_batches, kelp_read)
CALLBACK(set_log_start, kelp_set_log_start)
CALLBACK(seek_time, kelp_seek_time)
CALLBACK(allocate_producer_ids, kelp_allocate_producer_ids)
CALLBACK(append_records, kelp_append_records)
CALLBACK(load_records, kelp_load_records)
CALLBACK(commit_offsets, kelp_commit_offsets)
CALLBACK(load_offsets, kelp_load_offsets)
CALLBACK(alter_topic, kelp_alter_topic)

static void log_line(void *ctx, int32_t level, kelp_str target, kelp_str text) {
  kelp_go_log((uintptr_t)ctx, level, target, text);
}

static void state(void *ctx, int32_t number, kelp_str detail) {
  kelp_go_state((uintptr_t)ctx, number, detail);
}

static void topics_changed(void *ctx) {
  kelp_go_topics_changed((uintptr_t)ctx);
}

kelp_status kelp_go_new(uintptr_t handle, uint32_t offers, const char *properties,
                        uint32_t io_threads, kelp_engine **engine, char *error,
                        size_t error_capacity) {
  kelp_objects objects = {0};
  objects.struct_size = sizeof objects;
  objects.put_new = put_new;
  objects.get = get;
  objects.list = list;
  objects.delete_keys = delete_keys;

  kelp_storage storage = {0};
  storage.struct_size = sizeof storage;
  storage.load_topics = load_topics;
  storage.create_topic = create_topic;
  storage.delete_topic = delete_topic;
  storage.open_partition = open_partition;
  storage.append = append;
  storage.read = read_batches;
  storage.set_log_start = set_log_start;
  if (offers & KELP_GO_TIME_INDEX) storage.seek_time = seek_time;
  if (offers & KELP_GO_COORDINATORS) {
    storage.allocate_producer_ids = allocate_producer_ids;
    storage.append_records = append_records;
    storage.load_records = load_records;
  }
  if (offers & KELP_GO_GROUPS) {
    storage.commit_offsets = commit_offsets;
    storage.load_offsets = load_offsets;
  }
  if (offers & KELP_GO_ALTER_TOPICS) storage.alter_topic = alter_topic;

  kelp_host host = {0};
  host.struct_size = sizeof host;
  host.ctx = (void *)handle;
  if (offers & KELP_GO_OBJECTS) host.objects = &objects;
  if (offers & KELP_GO_STORAGE) host.storage = &storage;
  if (offers & KELP_GO_LOG) host.log = log_line;
  if (offers & KELP_GO_STATE) host.state = state;
  if (offers & KELP_GO_TOPICS_CHANGED) host.topics_changed = topics_changed;

  kelp_config config = {0};
  config.struct_size = sizeof config;
  config.io_threads = io_threads;
  config.properties = properties;
  return kelp_engine_new(&config, &host, engine, error, error_capacity);
}
