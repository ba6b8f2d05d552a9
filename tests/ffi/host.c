/*
 * The example's host under a test's control: operations are held back or fail as lines of the
 * standard input say. Each line is answered with a line when it is done.
 *
 *   hold NAME        operations of that kind are kept, uncompleted
 *   fail NAME STATUS they are completed with that status
 *   work NAME        they are carried out again
 *   release          all that were kept are carried out
 *   free             the engine is stopped and freed
 *
 * At the end of the input the process ends, with all memory freed.
 *
 *   host storage|objects [PROPERTIES [NAME]]     NAME is held from the start
 */
#define MEMORY_HOST_WITHOUT_MAIN
#include "../../examples/memory_host.c"

enum { WORK, HOLD, FAIL };

typedef struct kind {
  const char *name;
  int what;
  kelp_status status;
} kind;

typedef struct held {
  void (*run)(void *ctx, void *op);
  void *op;
} held;

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static held *kept;
static size_t kept_count;

/* Whether the operation is dealt with already. */
static int intercept(const kind *k, kelp_op *op, void (*run)(void *, void *)) {
  pthread_mutex_lock(&control);
  int what = k->what;
  kelp_status status = k->status;
  if (what == HOLD) {
    kept = grow(kept, kept_count, sizeof *kept);
    kept[kept_count].run = run;
    kept[kept_count++].op = op;
  }
  pthread_mutex_unlock(&control);
  if (what == FAIL) {
    op->error = text_of("the test says so");
    kelp_op_complete(op, status);
  }
  return what != WORK;
}

#define CONTROLLED(function, type)                                     \
  static kind kind_##function = {#function, WORK, KELP_OK};            \
  static void run_##function(void *ctx, void *op) { function(ctx, op); } \
  static void test_##function(void *ctx, type *op) {                   \
    if (!intercept(&kind_##function, &op->op, run_##function)) function(ctx, op); \
  }

CONTROLLED(put_new, kelp_put_new)
CONTROLLED(get, kelp_get)
CONTROLLED(list, kelp_list)
CONTROLLED(delete_keys, kelp_delete)
CONTROLLED(load_topics, kelp_load_topics)
CONTROLLED(create_topic, kelp_create_topic)
CONTROLLED(open_partition, kelp_open_partition)
CONTROLLED(append, kelp_append)
CONTROLLED(read_batches, kelp_read)
CONTROLLED(append_records, kelp_append_records)
CONTROLLED(commit_offsets, kelp_commit_offsets)

static kind *const kinds[] = {
    &kind_put_new,     &kind_get,          &kind_list,           &kind_delete_keys, &kind_load_topics,
    &kind_create_topic, &kind_open_partition, &kind_append,       &kind_read_batches,
    &kind_append_records, &kind_commit_offsets,
};

static void release_all(host *memory) {
  pthread_mutex_lock(&control);
  held *all = kept;
  size_t count = kept_count;
  kept = NULL;
  kept_count = 0;
  pthread_mutex_unlock(&control);
  for (size_t i = 0; i < count; i++) all[i].run(memory, all[i].op);
  free(all);
}

static void set(const char *name, int what, kelp_status status) {
  pthread_mutex_lock(&control);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kinds[i]->name, name) != 0) continue;
    kinds[i]->what = what;
    kinds[i]->status = status;
  }
  pthread_mutex_unlock(&control);
}

int main(int argc, char **argv) {
  kelp_storage storage = memory_storage;
  storage.load_topics = test_load_topics;
  storage.create_topic = test_create_topic;
  storage.open_partition = test_open_partition;
  storage.append = test_append;
  storage.read = test_read_batches;
  storage.append_records = test_append_records;
  storage.commit_offsets = test_commit_offsets;
  kelp_objects objects = memory_objects;
  objects.put_new = test_put_new;
  objects.get = test_get;
  objects.list = test_list;
  objects.delete_keys = test_delete_keys;

  if (argc > 3) set(argv[3], HOLD, KELP_OK);
  host memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
  kelp_host callbacks = {
      .struct_size = sizeof callbacks,
      .ctx = &memory,
      .storage = strcmp(argv[1], "storage") == 0 ? &storage : NULL,
      .objects = strcmp(argv[1], "objects") == 0 ? &objects : NULL,
      .release = release,
      .log = log_line,
      .state = state_changed,
  };
  kelp_config config = {
      .struct_size = sizeof config,
      .io_threads = 2,
      .properties = argc > 2 ? argv[2] : NULL,
  };
  char error[256];
  kelp_engine *engine;
  uint16_t port;
  if (kelp_engine_new(&config, &callbacks, &engine, error, sizeof error) != KELP_OK ||
      kelp_engine_listen(engine, "127.0.0.1:0", &port) != KELP_OK) {
    return 1;
  }
  printf("%d\n", port);
  fflush(stdout);

  char line[128], word[32], name[32];
  while (fgets(line, sizeof line, stdin)) {
    int status = 0;
    int words = sscanf(line, "%31s %31s %d", word, name, &status);
    if (words == 2 && strcmp(word, "hold") == 0) set(name, HOLD, KELP_OK);
    if (words == 2 && strcmp(word, "work") == 0) set(name, WORK, KELP_OK);
    if (words == 3 && strcmp(word, "fail") == 0) set(name, FAIL, status);
    if (strcmp(word, "release") == 0) release_all(&memory);
    if (strcmp(word, "free") == 0) {
      kelp_engine_stop(engine, 200);
      kelp_engine_free(engine);
      engine = NULL;
    }
    printf("done\n");
    fflush(stdout);
  }
  kelp_engine_free(engine);
  release_all(&memory);
  host_free(&memory);
  return 0;
}
