/*
 * Batches to records and back, for a program that stores single records.
 *
 *   cc -o walk_batch walk_batch.c $(pkg-config --cflags --libs kelp)
 *   ./walk_batch          makes a batch of records, and prints those in it
 *   ./walk_batch FILE     prints the records in a segment of Kafka's log
 */
#include <kelp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kelp_bytes bytes_of(const char *text) {
  kelp_bytes bytes = {(const uint8_t *)text, text ? strlen(text) : 0};
  return bytes;
}

/* Prints bytes in quotes, or null. */
static void print_text(kelp_bytes bytes) {
  if (!bytes.ptr) {
    printf("null");
    return;
  }
  putchar('"');
  fwrite(bytes.ptr, 1, bytes.len, stdout);
  putchar('"');
}

static void print_record(const kelp_batch_record *record) {
  printf("%lld at %lld: ", (long long)record->offset, (long long)record->timestamp);
  print_text(record->key);
  printf(" = ");
  print_text(record->value);
  for (size_t i = 0; i < record->header_count; i++) {
    putchar(' ');
    fwrite(record->headers[i].key.ptr, 1, record->headers[i].key.len, stdout);
    putchar('=');
    print_text(record->headers[i].value);
  }
  putchar('\n');
}

/* Prints all records of the batches that lie one after the other. */
static kelp_status print_batches(kelp_bytes batches) {
  kelp_batch_reader *reader;
  kelp_status status = kelp_batch_reader_new(&batches, 1, &reader);
  if (status != KELP_OK) return status;
  const kelp_batch_fields *fields;
  while ((status = kelp_batch_reader_next_batch(reader, &fields)) == KELP_OK && fields) {
    /* Such as the end of a transaction: not for applications. */
    if (fields->attributes & KELP_BATCH_CONTROL) continue;
    const kelp_batch_record *record;
    while ((status = kelp_batch_reader_next_record(reader, &record)) == KELP_OK && record) {
      print_record(record);
    }
    if (status != KELP_OK) break;
  }
  kelp_batch_reader_free(reader);
  return status;
}

/* Makes one compressed batch of records. Its bytes belong to the builder. */
static kelp_status make_batch(kelp_batch_builder **builder, kelp_bytes *batch) {
  kelp_record_header trace[2] = {{bytes_of("trace"), bytes_of("7f")}, {bytes_of("flag"), bytes_of(NULL)}};
  kelp_batch_record records[3] = {
      {40, 1700000000040, bytes_of("user-1"), bytes_of("hello"), trace, 2},
      {41, 1700000000041, bytes_of(NULL), bytes_of(""), NULL, 0},
      {45, 1700000000045, bytes_of("user-1"), bytes_of(NULL), NULL, 0},
  };
  kelp_batch_fields fields = {0};
  fields.struct_size = sizeof fields;
  fields.base_offset = records[0].offset;
  fields.attributes = KELP_CODEC_LZ4;
  fields.leader_epoch = -1;
  kelp_status status = kelp_batch_builder_new(&fields, builder);
  /* KELP_MESSAGE_TOO_LARGE would say that the record begins another batch. */
  for (int i = 0; i < 3 && status == KELP_OK; i++) {
    status = kelp_batch_builder_append(*builder, &records[i]);
  }
  return status == KELP_OK ? kelp_batch_builder_finish(*builder, batch) : status;
}

/* All of a file, or NULL. */
static uint8_t *read_file(const char *path, size_t *len) {
  FILE *file = fopen(path, "rb");
  uint8_t *all = NULL;
  *len = 0;
  for (size_t got = 1; file && got;) {
    uint8_t *more = realloc(all, *len + 65536);
    if (!more) abort();
    all = more;
    got = fread(all + *len, 1, 65536, file);
    *len += got;
  }
  if (file) fclose(file);
  return all;
}

int main(int argc, char **argv) {
  kelp_batch_builder *builder = NULL;
  uint8_t *file = NULL;
  kelp_bytes batches = {0};
  kelp_status status = KELP_OK;
  if (argc > 1) {
    file = read_file(argv[1], &batches.len);
    batches.ptr = file;
    if (!file) status = KELP_NOT_FOUND;
  } else {
    status = make_batch(&builder, &batches);
  }
  if (status == KELP_OK) status = print_batches(batches);
  if (status != KELP_OK) fprintf(stderr, "status %d\n", (int)status);
  kelp_batch_builder_free(builder);
  free(file);
  return status != KELP_OK;
}
