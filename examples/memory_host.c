/*
 * A host in C: a Kafka broker that keeps everything in memory, until it ends.
 *
 *   cc -o memory_host memory_host.c $(pkg-config --cflags --libs kelp) -lpthread
 *   ./memory_host storage 127.0.0.1:9092     as a log of its own (kelp_storage)
 *   ./memory_host objects 127.0.0.1:9092     as a store of objects (kelp_objects)
 *
 * Nothing here has to wait, so every operation is completed inside of the callback that brings it.
 * What is read is lent, not copied: the bytes are counted, and freed when nobody has them.
 */
#define _POSIX_C_SOURCE 200809L

#include <kelp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ------------------------------------------------------------------------------------ */

static void *allocate(size_t size) {
  void *p = calloc(1, size ? size : 1);
  if (!p) abort();
  return p;
}

/* Makes room for one more element of `size` bytes behind `count` of them. */
static void *grow(void *array, size_t count, size_t size) {
  int full = count == 0 || (count & (count - 1)) == 0;
  if (!full) return array;
  array = realloc(array, (count ? 2 * count : 1) * size);
  if (!array) abort();
  return array;
}

/* Bytes that never change, with the number of those who have them. */
typedef struct blob {
  size_t owners;
  size_t len;
  uint8_t bytes[];
} blob;

static blob *blob_new(size_t len) {
  blob *b = allocate(sizeof *b + len);
  b->owners = 1;
  b->len = len;
  return b;
}

static blob *blob_join(const kelp_bytes *parts, size_t count, size_t total) {
  blob *b = blob_new(total);
  size_t at = 0;
  for (size_t i = 0; i < count; at += parts[i].len, i++) {
    if (parts[i].len) memcpy(b->bytes + at, parts[i].ptr, parts[i].len);
  }
  return b;
}

static void blob_drop(blob *b) {
  if (b && --b->owners == 0) free(b);
}

/* ---- The host's data, all under one lock ------------------------------------------------------- */

typedef struct object {
  char *key;
  blob *data;
} object;

typedef struct batch {
  int64_t base_offset, next_offset, max_timestamp;
  blob *data;
} batch;

typedef struct partition {
  int64_t log_start_offset, log_end_offset;
  batch *batches;
  size_t batch_count;
} partition;

typedef struct topic {
  uint8_t id[16];
  char *name;
  char **settings; /* name, value, name, value, ... */
  size_t setting_count;
  partition *partitions;
  int32_t partition_count;
} topic;

typedef struct record {
  char *log;
  blob *key, *value;
} record;

typedef struct offset {
  char *log, *group, *topic, *metadata;
  kelp_offset fields; /* but for its texts */
} offset;

typedef struct host {
  pthread_mutex_t lock;
  object *objects; /* in the order of their keys */
  size_t object_count;
  topic *topics;
  size_t topic_count;
  record *records;
  size_t record_count;
  offset *offsets;
  size_t offset_count;
  int64_t next_producer_id;
} host;

static char *copy_text(kelp_str text) {
  char *copy = allocate(text.len + 1);
  if (text.len) memcpy(copy, text.ptr, text.len);
  return copy;
}

static kelp_str text_of(const char *text) {
  kelp_str s = {text, strlen(text)};
  return s;
}

/* ---- Objects ----------------------------------------------------------------------------------- */

/* How `key` stands to `text`: as strcmp. */
static int compare(const char *key, kelp_str text) {
  size_t len = strlen(key);
  int order = text.len ? memcmp(key, text.ptr, len < text.len ? len : text.len) : 0;
  return order ? order : (len > text.len) - (len < text.len);
}

/* The place of the first key that is not before `key`. */
static size_t place_of(const host *h, kelp_str key) {
  size_t low = 0, high = h->object_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare(h->objects[middle].key, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

static object *find_object(const host *h, kelp_str key) {
  size_t place = place_of(h, key);
  int found = place < h->object_count && compare(h->objects[place].key, key) == 0;
  return found ? &h->objects[place] : NULL;
}

static void put_new(void *ctx, kelp_put_new *op) {
  host *h = ctx;
  kelp_status status = KELP_EXISTS;
  pthread_mutex_lock(&h->lock);
  if (!find_object(h, op->key)) {
    size_t place = place_of(h, op->key);
    h->objects = grow(h->objects, h->object_count, sizeof *h->objects);
    memmove(h->objects + place + 1, h->objects + place,
            (h->object_count++ - place) * sizeof *h->objects);
    h->objects[place].key = copy_text(op->key);
    h->objects[place].data = blob_join(op->parts, op->part_count, op->total_bytes);
    status = KELP_OK;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

/* Called with the lock: the bytes get one owner more, until `release`. */
static void lend(kelp_op *op, blob *b) {
  b->owners++;
  if (kelp_op_lend(op, b->bytes, b->len, b) != KELP_OK) b->owners--;
}

static void get(void *ctx, kelp_get *op) {
  host *h = ctx;
  kelp_status status = KELP_NOT_FOUND;
  pthread_mutex_lock(&h->lock);
  object *found = find_object(h, op->key);
  if (found) {
    size_t len = found->data->len;
    size_t from = op->offset < len ? (size_t)op->offset : len;
    lend(&op->op, found->data);
    op->data.ptr = found->data->bytes + from;
    op->data.len = op->length < len - from ? (size_t)op->length : len - from;
    status = KELP_OK;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

static int starts_with(const char *key, kelp_str prefix) {
  return prefix.len == 0 || strncmp(key, prefix.ptr, prefix.len) == 0;
}

static void list(void *ctx, kelp_list *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  size_t place = place_of(h, op->after.len ? op->after : op->prefix);
  size_t left = h->object_count - place;
  kelp_str *keys = kelp_op_alloc(&op->op, left * sizeof *keys);
  op->keys = keys;
  for (; keys && op->key_count < op->limit && place < h->object_count; place++) {
    const char *key = h->objects[place].key;
    if (op->after.len && compare(key, op->after) <= 0) continue;
    if (!starts_with(key, op->prefix)) {
      if (compare(key, op->prefix) > 0) break;
      continue;
    }
    keys[op->key_count++] = text_of(key);
  }
  /* Under the lock: the keys are copied before this returns. */
  kelp_op_complete(&op->op, keys ? KELP_OK : KELP_UNAVAILABLE);
  pthread_mutex_unlock(&h->lock);
}

static void delete_keys(void *ctx, kelp_delete *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  for (size_t i = 0; i < op->key_count; i++) {
    object *found = find_object(h, op->keys[i]);
    if (!found) continue;
    size_t behind = h->object_count-- - (size_t)(found - h->objects) - 1;
    free(found->key);
    blob_drop(found->data);
    memmove(found, found + 1, behind * sizeof *found);
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, KELP_OK);
}

/* ---- Topics ------------------------------------------------------------------------------------ */

static topic *find_topic(const host *h, const uint8_t id[16]) {
  for (size_t i = 0; i < h->topic_count; i++) {
    if (memcmp(h->topics[i].id, id, 16) == 0) return &h->topics[i];
  }
  return NULL;
}

static partition *find_partition(const host *h, const kelp_partition *p) {
  topic *t = find_topic(h, p->topic_id);
  return t && p->index >= 0 && p->index < t->partition_count ? &t->partitions[p->index] : NULL;
}

static void load_topics(void *ctx, kelp_load_topics *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  kelp_topic *topics = kelp_op_alloc(&op->op, h->topic_count * sizeof *topics);
  for (size_t i = 0; topics && i < h->topic_count; i++) {
    const topic *t = &h->topics[i];
    kelp_setting *settings = kelp_op_alloc(&op->op, t->setting_count * sizeof *settings);
    if (!settings) break;
    for (size_t s = 0; s < t->setting_count; s++) {
      settings[s].name = text_of(t->settings[2 * s]);
      settings[s].value = text_of(t->settings[2 * s + 1]);
    }
    memcpy(topics[i].id, t->id, 16);
    topics[i].name = text_of(t->name);
    topics[i].settings = settings;
    topics[i].setting_count = t->setting_count;
    topics[i].partition_count = t->partition_count;
    op->topic_count = i + 1;
  }
  op->topics = topics;
  op->cluster_id = text_of("memory");
  kelp_op_complete(&op->op, op->topic_count == h->topic_count ? KELP_OK : KELP_UNAVAILABLE);
  pthread_mutex_unlock(&h->lock);
}

static void store_settings(topic *t, const kelp_topic *from) {
  t->setting_count = from->setting_count;
  t->settings = allocate(2 * t->setting_count * sizeof *t->settings);
  for (size_t s = 0; s < t->setting_count; s++) {
    t->settings[2 * s] = copy_text(from->settings[s].name);
    t->settings[2 * s + 1] = copy_text(from->settings[s].value);
  }
}

static void drop_settings(topic *t) {
  for (size_t s = 0; s < 2 * t->setting_count; s++) free(t->settings[s]);
  free(t->settings);
}

static void create_topic(void *ctx, kelp_create_topic *op) {
  host *h = ctx;
  kelp_status status = KELP_OK;
  pthread_mutex_lock(&h->lock);
  for (size_t i = 0; i < h->topic_count; i++) {
    if (compare(h->topics[i].name, op->topic.name) == 0) status = KELP_TOPIC_ALREADY_EXISTS;
  }
  if (status == KELP_OK) {
    h->topics = grow(h->topics, h->topic_count, sizeof *h->topics);
    topic *t = &h->topics[h->topic_count++];
    memcpy(t->id, op->topic.id, 16);
    t->name = copy_text(op->topic.name);
    store_settings(t, &op->topic);
    t->partition_count = op->topic.partition_count;
    t->partitions = allocate((size_t)t->partition_count * sizeof *t->partitions);
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

static void drop_batches(partition *p, size_t count) {
  for (size_t i = 0; i < count; i++) blob_drop(p->batches[i].data);
  p->batch_count -= count;
  if (p->batch_count) memmove(p->batches, p->batches + count, p->batch_count * sizeof *p->batches);
}

static void topic_drop(topic *t) {
  for (int32_t i = 0; i < t->partition_count; i++) {
    drop_batches(&t->partitions[i], t->partitions[i].batch_count);
    free(t->partitions[i].batches);
  }
  drop_settings(t);
  free(t->partitions);
  free(t->name);
}

static void delete_topic(void *ctx, kelp_delete_topic *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  topic *t = find_topic(h, op->topic_id);
  if (t) {
    topic_drop(t);
    *t = h->topics[--h->topic_count];
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, t ? KELP_OK : KELP_UNKNOWN_TOPIC_OR_PARTITION);
}

static void alter_topic(void *ctx, kelp_alter_topic *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  topic *t = find_topic(h, op->topic.id);
  if (t) {
    drop_settings(t);
    store_settings(t, &op->topic);
    size_t count = (size_t)t->partition_count, wanted = (size_t)op->topic.partition_count;
    partition *partitions = allocate(wanted * sizeof *partitions);
    memcpy(partitions, t->partitions, count * sizeof *partitions);
    free(t->partitions);
    t->partitions = partitions;
    t->partition_count = op->topic.partition_count;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, t ? KELP_OK : KELP_UNKNOWN_TOPIC_OR_PARTITION);
}

/* ---- Records ----------------------------------------------------------------------------------- */

static void open_partition(void *ctx, kelp_open_partition *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  partition *p = find_partition(h, &op->partition);
  if (p) {
    op->log_start_offset = p->log_start_offset;
    op->log_end_offset = p->log_end_offset;
    op->leader_epoch = 0; /* this log does not outlive its process */
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, p ? KELP_OK : KELP_UNKNOWN_TOPIC_OR_PARTITION);
}

/* A number of a batch's header: big-endian. */
static int64_t number(const uint8_t *at, size_t bytes) {
  uint64_t n = 0;
  for (size_t i = 0; i < bytes; i++) n = n << 8 | at[i];
  return (int64_t)n;
}

/* Stores the batches that stand one behind the other in `all`. */
static void store_batches(partition *p, const blob *all) {
  for (size_t at = 0; at < all->len;) {
    const uint8_t *header = all->bytes + at;
    size_t len = 12 + (size_t)number(header + 8, 4);
    p->batches = grow(p->batches, p->batch_count, sizeof *p->batches);
    batch *b = &p->batches[p->batch_count++];
    b->base_offset = number(header, 8);
    b->next_offset = b->base_offset + number(header + 23, 4) + 1;
    b->max_timestamp = number(header + 35, 8);
    b->data = blob_new(len);
    memcpy(b->data->bytes, header, len);
    at += len;
  }
}

static void append(void *ctx, kelp_append *op) {
  host *h = ctx;
  kelp_status status = KELP_UNKNOWN_TOPIC_OR_PARTITION;
  pthread_mutex_lock(&h->lock);
  partition *p = find_partition(h, &op->partition);
  if (p && p->log_end_offset != op->expected_base_offset) {
    op->log_end_offset = p->log_end_offset;
    status = KELP_CONFLICT;
  } else if (p) {
    blob *all = blob_join(op->slices, op->slice_count, op->total_bytes);
    store_batches(p, all);
    blob_drop(all);
    p->log_end_offset = op->next_offset;
    status = KELP_OK;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

/* Lends the batches from the one that holds the offset on. */
static kelp_status read_from(const partition *p, kelp_read *op) {
  size_t first = 0, total = 0;
  while (first < p->batch_count && p->batches[first].next_offset <= op->offset) first++;
  kelp_bytes *slices = kelp_op_alloc(&op->op, (p->batch_count - first) * sizeof *slices);
  if (!slices) return KELP_UNAVAILABLE;
  for (size_t i = first; i < p->batch_count; i++) {
    blob *data = p->batches[i].data;
    total += data->len;
    if (total > op->max_bytes && !(op->at_least_one && i == first)) break;
    lend(&op->op, data);
    slices[op->slice_count].ptr = data->bytes;
    slices[op->slice_count++].len = data->len;
  }
  op->slices = slices;
  return KELP_OK;
}

static void read_batches(void *ctx, kelp_read *op) {
  host *h = ctx;
  kelp_status status = KELP_UNKNOWN_TOPIC_OR_PARTITION;
  pthread_mutex_lock(&h->lock);
  partition *p = find_partition(h, &op->partition);
  if (p) {
    int outside = op->offset < p->log_start_offset || op->offset > p->log_end_offset;
    status = outside ? KELP_OFFSET_OUT_OF_RANGE : read_from(p, op);
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

static void set_log_start(void *ctx, kelp_set_log_start *op) {
  host *h = ctx;
  kelp_status status = KELP_UNKNOWN_TOPIC_OR_PARTITION;
  pthread_mutex_lock(&h->lock);
  partition *p = find_partition(h, &op->partition);
  if (p && op->offset > p->log_end_offset) {
    status = KELP_OFFSET_OUT_OF_RANGE;
  } else if (p) {
    size_t gone = 0;
    if (op->offset > p->log_start_offset) p->log_start_offset = op->offset;
    while (gone < p->batch_count && p->batches[gone].next_offset <= p->log_start_offset) gone++;
    drop_batches(p, gone);
    op->log_start_offset = p->log_start_offset;
    status = KELP_OK;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, status);
}

static void seek_time(void *ctx, kelp_seek_time *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  partition *p = find_partition(h, &op->partition);
  if (p) {
    size_t i = 0;
    while (i < p->batch_count && p->batches[i].max_timestamp < op->timestamp) i++;
    op->offset = i < p->batch_count ? p->batches[i].base_offset : p->log_end_offset;
  }
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, p ? KELP_OK : KELP_UNKNOWN_TOPIC_OR_PARTITION);
}

/* ---- What coordinators keep -------------------------------------------------------------------- */

static void allocate_producer_ids(void *ctx, kelp_allocate_producer_ids *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  op->first = h->next_producer_id;
  h->next_producer_id += op->count;
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, KELP_OK);
}

static int is_key(const record *r, const kelp_str *log, const kelp_bytes *key) {
  return compare(r->log, *log) == 0 && r->key->len == key->len &&
         memcmp(r->key->bytes, key->ptr, key->len) == 0;
}

static void record_drop(record *r) {
  free(r->log);
  blob_drop(r->key);
  blob_drop(r->value);
}

/* The last record of a key counts, so an earlier one goes. */
static void store_record(host *h, kelp_str log, const kelp_record *new) {
  for (size_t i = 0; i < h->record_count; i++) {
    record *r = &h->records[i];
    if (!is_key(r, &log, &new->key)) continue;
    record_drop(r);
    memmove(r, r + 1, (--h->record_count - i) * sizeof *r);
    break;
  }
  if (new->is_tombstone) return;
  h->records = grow(h->records, h->record_count, sizeof *h->records);
  record *r = &h->records[h->record_count++];
  r->log = copy_text(log);
  r->key = blob_join(&new->key, 1, new->key.len);
  r->value = blob_join(&new->value, 1, new->value.len);
}

static void append_records(void *ctx, kelp_append_records *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  for (size_t i = 0; i < op->record_count; i++) store_record(h, op->log, &op->records[i]);
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, KELP_OK);
}

static void load_records(void *ctx, kelp_load_records *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  kelp_record *records = kelp_op_alloc(&op->op, h->record_count * sizeof *records);
  for (size_t i = 0; records && i < h->record_count; i++) {
    const record *r = &h->records[i];
    if (compare(r->log, op->log) != 0) continue;
    kelp_record *to = &records[op->record_count++];
    to->key.ptr = r->key->bytes;
    to->key.len = r->key->len;
    to->value.ptr = r->value->bytes;
    to->value.len = r->value->len;
  }
  op->records = records;
  /* Under the lock: what is not lent is copied before this returns. */
  kelp_op_complete(&op->op, records ? KELP_OK : KELP_UNAVAILABLE);
  pthread_mutex_unlock(&h->lock);
}

static void offset_drop(offset *o) {
  free(o->log);
  free(o->group);
  free(o->topic);
  free(o->metadata);
}

/* The last offset of a key counts, so an earlier one goes. */
static void store_offset(host *h, kelp_str log, const kelp_offset *new) {
  for (size_t i = 0; i < h->offset_count; i++) {
    offset *o = &h->offsets[i];
    if (o->fields.partition != new->partition || compare(o->group, new->group) != 0 ||
        compare(o->topic, new->topic) != 0) {
      continue;
    }
    offset_drop(o);
    *o = h->offsets[--h->offset_count];
    break;
  }
  if (new->is_tombstone) return;
  h->offsets = grow(h->offsets, h->offset_count, sizeof *h->offsets);
  offset *o = &h->offsets[h->offset_count++];
  o->fields = *new;
  o->log = copy_text(log);
  o->group = copy_text(new->group);
  o->topic = copy_text(new->topic);
  o->metadata = copy_text(new->metadata);
}

static void commit_offsets(void *ctx, kelp_commit_offsets *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  for (size_t i = 0; i < op->offset_count; i++) store_offset(h, op->log, &op->offsets[i]);
  pthread_mutex_unlock(&h->lock);
  kelp_op_complete(&op->op, KELP_OK);
}

static void load_offsets(void *ctx, kelp_load_offsets *op) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  kelp_offset *offsets = kelp_op_alloc(&op->op, h->offset_count * sizeof *offsets);
  for (size_t i = 0; offsets && i < h->offset_count; i++) {
    const offset *o = &h->offsets[i];
    if (compare(o->log, op->log) != 0) continue;
    kelp_offset *to = &offsets[op->offset_count++];
    *to = o->fields;
    to->group = text_of(o->group);
    to->topic = text_of(o->topic);
    to->metadata = text_of(o->metadata);
  }
  op->offsets = offsets;
  /* Under the lock: the texts are copied before this returns. */
  kelp_op_complete(&op->op, offsets ? KELP_OK : KELP_UNAVAILABLE);
  pthread_mutex_unlock(&h->lock);
}

/* ---- The engine -------------------------------------------------------------------------------- */

static void release(void *ctx, void *lent) {
  host *h = ctx;
  pthread_mutex_lock(&h->lock);
  blob_drop(lent);
  pthread_mutex_unlock(&h->lock);
}

static void log_line(void *ctx, int32_t level, kelp_str target, kelp_str text) {
  static const char *const names[] = {"?", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
  (void)ctx;
  fprintf(stderr, "%-5s %.*s: %.*s\n", names[level >= 1 && level <= 5 ? level : 0],
          (int)target.len, target.ptr, (int)text.len, text.ptr);
}

static void state_changed(void *ctx, int32_t state, kelp_str detail) {
  static const char *const names[] = {"?", "standby", "serving", "fenced", "failed", "ended"};
  (void)ctx;
  fprintf(stderr, "state: %s %.*s\n", names[state >= 1 && state <= 5 ? state : 0],
          (int)detail.len, detail.ptr);
}

static const kelp_objects memory_objects = {
    .struct_size = sizeof(kelp_objects),
    .put_new = put_new,
    .get = get,
    .list = list,
    .delete_keys = delete_keys,
};

static const kelp_storage memory_storage = {
    .struct_size = sizeof(kelp_storage),
    .load_topics = load_topics,
    .create_topic = create_topic,
    .delete_topic = delete_topic,
    .open_partition = open_partition,
    .append = append,
    .read = read_batches,
    .set_log_start = set_log_start,
    .seek_time = seek_time,
    .allocate_producer_ids = allocate_producer_ids,
    .append_records = append_records,
    .load_records = load_records,
    .commit_offsets = commit_offsets,
    .load_offsets = load_offsets,
    .alter_topic = alter_topic,
};

static void host_free(host *h) {
  for (size_t i = 0; i < h->object_count; i++) {
    free(h->objects[i].key);
    blob_drop(h->objects[i].data);
  }
  for (size_t i = 0; i < h->topic_count; i++) topic_drop(&h->topics[i]);
  for (size_t i = 0; i < h->record_count; i++) record_drop(&h->records[i]);
  for (size_t i = 0; i < h->offset_count; i++) offset_drop(&h->offsets[i]);
  free(h->objects);
  free(h->topics);
  free(h->records);
  free(h->offsets);
  pthread_mutex_destroy(&h->lock);
}

#ifndef MEMORY_HOST_WITHOUT_MAIN
int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s storage|objects HOST:PORT\n", argv[0]);
    return 2;
  }
  /* Blocked in this thread and all that it starts, and taken by sigwait below. */
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, NULL);

  host memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
  kelp_host callbacks = {
      .struct_size = sizeof callbacks,
      .ctx = &memory,
      .storage = strcmp(argv[1], "storage") == 0 ? &memory_storage : NULL,
      .objects = strcmp(argv[1], "objects") == 0 ? &memory_objects : NULL,
      .release = release,
      .log = log_line,
      .state = state_changed,
  };
  char error[256];
  kelp_engine *engine;
  if (kelp_engine_new(NULL, &callbacks, &engine, error, sizeof error) != KELP_OK) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  uint16_t port;
  if (kelp_engine_listen(engine, argv[2], &port) != KELP_OK) {
    fprintf(stderr, "cannot listen on %s\n", argv[2]);
    kelp_engine_free(engine);
    return 1;
  }
  printf("serving on port %d\n", port);
  fflush(stdout);

  int signal_number;
  sigwait(&ends, &signal_number);
  kelp_engine_stop(engine, 10000);
  kelp_engine_free(engine);
  host_free(&memory);
  return 0;
}
#endif
