/* What the functions for batches answer to all that is wrong, and how long memory lives. */
#include <kelp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                            \
  do {                                                         \
    if (!(what)) {                                             \
      fprintf(stderr, "line %d: %s\n", __LINE__, #what);       \
      exit(1);                                                 \
    }                                                          \
  } while (0)

static kelp_bytes of(const char *text) {
  kelp_bytes bytes = {(const uint8_t *)text, text ? strlen(text) : 0};
  return bytes;
}

static int is(kelp_bytes bytes, const char *text) {
  return bytes.ptr && bytes.len == strlen(text) && memcmp(bytes.ptr, text, bytes.len) == 0;
}

static kelp_batch_fields from(int64_t base_offset, uint32_t attributes) {
  kelp_batch_fields fields;
  memset(&fields, 0, sizeof fields);
  fields.struct_size = sizeof fields;
  fields.base_offset = base_offset;
  fields.attributes = attributes;
  return fields;
}

static kelp_batch_record record_of(int64_t offset, const char *key, const char *value) {
  kelp_batch_record record = {offset, 1000 + offset, of(key), of(value), NULL, 0};
  return record;
}

/* A batch of two records, in memory of its own. */
static kelp_bytes batch_of(const kelp_batch_fields *fields) {
  kelp_batch_builder *builder;
  CHECK(kelp_batch_builder_new(fields, &builder) == KELP_OK);
  kelp_batch_record record = record_of(fields->base_offset, "key", "one");
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_OK);
  record = record_of(fields->base_offset + 1, NULL, "");
  kelp_record_header headers[2] = {{of("h"), of("1")}, {of(""), of(NULL)}};
  record.headers = headers;
  record.header_count = 2;
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_OK);
  kelp_bytes bytes, again;
  CHECK(kelp_batch_builder_finish(builder, &bytes) == KELP_OK);
  CHECK(kelp_batch_builder_finish(builder, &again) == KELP_OK);
  CHECK(again.ptr == bytes.ptr && again.len == bytes.len);
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_INVALID_ARGUMENT);
  uint8_t *own = malloc(bytes.len);
  CHECK(own);
  memcpy(own, bytes.ptr, bytes.len);
  kelp_bytes copy = {own, bytes.len};
  kelp_batch_builder_free(builder);
  return copy;
}

/* Reads the two records of batch_of. */
static void check_records(kelp_batch_reader *reader, int64_t base_offset) {
  const kelp_batch_record *record;
  CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK);
  CHECK(record && record->offset == base_offset && record->timestamp == 1000 + base_offset);
  CHECK(is(record->key, "key") && is(record->value, "one") && record->header_count == 0);
  CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK);
  CHECK(record && record->offset == base_offset + 1);
  CHECK(!record->key.ptr && is(record->value, "") && record->header_count == 2);
  CHECK(is(record->headers[0].key, "h") && is(record->headers[0].value, "1"));
  CHECK(is(record->headers[1].key, "") && !record->headers[1].value.ptr);
  for (int i = 0; i < 2; i++) {
    CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK && !record);
  }
}

static void batches_are_read_across_slices(void) {
  const uint32_t codecs[] = {KELP_CODEC_NONE, KELP_CODEC_GZIP, KELP_CODEC_SNAPPY, KELP_CODEC_LZ4, KELP_CODEC_ZSTD};
  for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
    kelp_batch_fields fields = from(50, codecs[i]);
    kelp_bytes batch = batch_of(&fields);
    for (size_t cut = 0; cut <= batch.len; cut++) {
      kelp_bytes slices[3] = {{batch.ptr, cut}, {batch.ptr + cut, batch.len - cut}, batch};
      kelp_batch_reader *reader;
      CHECK(kelp_batch_reader_new(slices, 3, &reader) == KELP_OK);
      memset(slices, 0xff, sizeof slices);
      const kelp_batch_fields *told;
      for (int n = 0; n < 2; n++) {
        CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && told);
        CHECK(told->struct_size == sizeof *told && told->attributes == codecs[i]);
        CHECK(told->base_offset == 50 && told->last_offset_delta == 1 && told->record_count == 2);
        CHECK(told->max_timestamp == 1051);
        check_records(reader, 50);
      }
      CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && !told);
      kelp_batch_reader_free(reader);
    }
    free((void *)batch.ptr);
  }
}

static void records_may_be_passed_over_and_not_copied(void) {
  kelp_batch_fields fields = from(50, 0);
  kelp_bytes batch = batch_of(&fields);
  kelp_bytes twice[2] = {batch, batch};
  kelp_batch_reader *reader;
  CHECK(kelp_batch_reader_new(twice, 2, &reader) == KELP_OK);
  const kelp_batch_fields *told;
  const kelp_batch_record *record;
  CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK && !record);
  CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && told);
  CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && told);
  CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK && record);
  CHECK(record->value.ptr > batch.ptr && record->value.ptr < batch.ptr + batch.len);
  kelp_batch_reader_free(reader);
  free((void *)batch.ptr);
}

static void what_a_reader_tells_makes_the_same_batch(void) {
  kelp_batch_fields fields = from(50, KELP_BATCH_LOG_APPEND_TIME | KELP_BATCH_TRANSACTIONAL |
                                          KELP_BATCH_DELETE_HORIZON | KELP_BATCH_PRODUCER | KELP_CODEC_LZ4);
  fields.last_offset_delta = 9;
  fields.leader_epoch = 3;
  fields.producer_id = 4;
  fields.producer_epoch = 5;
  fields.base_sequence = 6;
  fields.max_timestamp = 7;
  fields.delete_horizon_ms = 8;
  kelp_bytes batch = batch_of(&fields);
  kelp_batch_reader *reader;
  CHECK(kelp_batch_reader_new(&batch, 1, &reader) == KELP_OK);
  const kelp_batch_fields *told;
  CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && told);
  CHECK(told->attributes == fields.attributes && told->last_offset_delta == 9);
  CHECK(told->leader_epoch == 3 && told->producer_id == 4 && told->producer_epoch == 5);
  CHECK(told->base_sequence == 6 && told->max_timestamp == 7 && told->delete_horizon_ms == 8);
  kelp_bytes again = batch_of(told);
  CHECK(again.len == batch.len && memcmp(again.ptr, batch.ptr, batch.len) == 0);
  const kelp_batch_record *record;
  CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK && record && record->timestamp == 7);
  kelp_batch_reader_free(reader);
  free((void *)batch.ptr);
  free((void *)again.ptr);
}

static void what_is_cut_or_changed_is_corrupt(void) {
  kelp_batch_fields fields = from(50, KELP_CODEC_GZIP);
  kelp_bytes batch = batch_of(&fields);
  uint8_t *changed = malloc(batch.len);
  CHECK(changed);
  const kelp_batch_fields *told;
  const kelp_batch_record *record;
  kelp_batch_reader *reader;
  for (size_t at = 0; at < batch.len; at++) {
    kelp_bytes cut = {changed, at};
    memcpy(changed, batch.ptr, batch.len);
    CHECK(kelp_batch_reader_new(&cut, 1, &reader) == KELP_OK);
    kelp_status status = kelp_batch_reader_next_batch(reader, &told);
    CHECK(status == (at ? KELP_CORRUPT : KELP_OK) && !told);
    CHECK(kelp_batch_reader_next_record(reader, &record) == KELP_OK && !record);
    kelp_batch_reader_free(reader);

    /* Base offset and leader epoch are not under the checksum. */
    if (at < 8 || (at >= 12 && at < 16)) continue;
    kelp_bytes whole = {changed, batch.len};
    changed[at] ^= 1;
    CHECK(kelp_batch_reader_new(&whole, 1, &reader) == KELP_OK);
    CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_CORRUPT && !told);
    kelp_batch_reader_free(reader);
  }
  free(changed);
  free((void *)batch.ptr);
}

static void a_builder_refuses_what_is_no_batch(void) {
  kelp_batch_builder *builder = NULL;
  kelp_batch_fields fields = from(50, 5);
  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_INVALID_ARGUMENT);
  fields = from(50, 1 << 7);
  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_INVALID_ARGUMENT);
  fields = from(50, KELP_CODEC_GZIP);
  fields.level = 10;
  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_INVALID_ARGUMENT);
  fields = from(50, 0);
  fields.struct_size = 8;
  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_INVALID_ARGUMENT);
  CHECK(kelp_batch_builder_new(NULL, &builder) == KELP_NULL_POINTER);

  fields = from(50, 0);
  fields.max_bytes = 61 + 8;
  CHECK(kelp_batch_builder_new(&fields, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_OK);
  kelp_batch_record record = record_of(49, NULL, "v");
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_INVALID_ARGUMENT);
  record = record_of(50, NULL, "vv");
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_MESSAGE_TOO_LARGE);
  record = record_of(50, NULL, "v");
  record.header_count = 1;
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_NULL_POINTER);
  record = record_of(50, NULL, "v");
  record.key.len = 1;
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_NULL_POINTER);
  record = record_of(50, NULL, "v");
  CHECK(kelp_batch_builder_append(builder, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_builder_append(NULL, &record) == KELP_NULL_POINTER);
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_OK);
  kelp_bytes batch;
  CHECK(kelp_batch_builder_finish(builder, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_builder_finish(NULL, &batch) == KELP_NULL_POINTER);
  CHECK(kelp_batch_builder_finish(builder, &batch) == KELP_OK && batch.len == 61 + 8);
  kelp_batch_builder_free(builder);

  CHECK(kelp_batch_builder_new(&fields, &builder) == KELP_OK);
  CHECK(kelp_batch_builder_finish(builder, &batch) == KELP_INVALID_ARGUMENT && !batch.ptr);
  CHECK(kelp_batch_builder_append(builder, &record) == KELP_INVALID_ARGUMENT);
  kelp_batch_builder_free(builder);
  kelp_batch_builder_free(NULL);
}

static void a_reader_refuses_null(void) {
  kelp_batch_reader *reader;
  const kelp_batch_fields *told;
  const kelp_batch_record *record;
  kelp_bytes null = {NULL, 1};
  CHECK(kelp_batch_reader_new(NULL, 1, &reader) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_new(&null, 1, &reader) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_new(NULL, 0, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_new(NULL, 0, &reader) == KELP_OK);
  CHECK(kelp_batch_reader_next_batch(NULL, &told) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_next_batch(reader, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_next_record(NULL, &record) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_next_record(reader, NULL) == KELP_NULL_POINTER);
  CHECK(kelp_batch_reader_next_batch(reader, &told) == KELP_OK && !told);
  kelp_batch_reader_free(reader);
  kelp_batch_reader_free(NULL);
}

int main(void) {
  batches_are_read_across_slices();
  records_may_be_passed_over_and_not_copied();
  what_a_reader_tells_makes_the_same_batch();
  what_is_cut_or_changed_is_corrupt();
  a_builder_refuses_what_is_no_batch();
  a_reader_refuses_null();
  return 0;
}
