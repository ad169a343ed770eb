/* What a session costs beside the bare thing: durable logs against a loop that writes and syncs the
 * same bytes in the same groups; the size of a log against the texts that it must hold; the memory
 * of many sessions at once. Each measurement runs in a process of its own. */
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "format/json_pool.h"
#include "host/host.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  TURNS = 300,
  GROUPS = 2 * TURNS + 1, /* one a call, and the end */
  SESSIONS = 200,
  ANSWER_BYTES = 6000,
  SESSION_ANSWER_BYTES = 2000,
  REPLY_BYTES = 150
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Words that differ from turn to turn, about n bytes. */
static char *words(unsigned seed, size_t n) {
  static const char *const list[] = {"queue",   "index", "the",    "wrong",  "line",
                                     "of",      "test",  "and",    "mended", "checks",
                                     "pointer", "a",     "branch", "was",    "read"};
  struct buf b = {0};
  unsigned x = seed * 2654435761u + 1;
  while (b.n < n) {
    x = x * 1664525u + 1013904223u;
    buf_printf(&b, "%s%u ", list[(x >> 16) % ARRAY_LEN(list)], x >> 28);
  }
  return buf_take(&b);
}

static json_t *make_workflow(void) {
  return json_pack("{ss ss si s[{ss ss s[{ss ss} {ss ss}]}]}", "name", "bench", "provider",
                   "script", "max_movements", TURNS, "movements", "name", "work", "instruction",
                   "Go on with {task}.", "rules", "condition", "work is left", "next", "work",
                   "condition", "all is done", "next", "COMPLETE");
}

static json_t *make_replies(int turns, int delay_ms, size_t answer_bytes) {
  json_t *replies = json_array();
  for (int i = 0; i < turns; i++) {
    char *answer = words((unsigned)i, answer_bytes),
         *reason = words(1000u + (unsigned)i, REPLY_BYTES);
    struct buf judge = {0};
    buf_printf(&judge, "{\"reason\": \"%s\", \"step\": 1}", reason);
    json_array_append_new(replies, json_pack("{ss ss si}", "purpose", "execute", "text", answer,
                                             "delay_ms", delay_ms));
    json_array_append_new(replies, json_pack("{ss ss}", "purpose", "judge", "text", judge.p));
    free(answer);
    free(reason);
    buf_deinit(&judge);
  }
  return replies;
}

struct bench {
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct provider_registry *registry;
  struct workflow *workflow;
  struct scenario scenario;
  json_t *config;
  int finished;
  size_t groups[GROUPS]; /* bytes of each batch */
  size_t group_count, group_bytes;
  uint64_t log_bytes, distinct_bytes, whole_bytes, calls;
  struct session *session; /* of the round that counts texts */
  json_t *seen;
};

static void count_text(struct bench *b, struct str text) {
  char key[SHA256_HEX];
  if (text.n == 0)
    return;
  sha256_hex(text.p, text.n, NULL, 0, key);
  if (json_object_get(b->seen, key))
    return;
  json_object_set_new(b->seen, key, json_true());
  b->distinct_bytes += text.n;
}

/* Of the round that counts texts. */
static void count_record(struct bench *b, const struct record *record) {
  struct str part;
  count_text(b, record_text(record, MEMBER_TEXT));
  for (size_t i = 0; record_part(record, i, &part); i++)
    count_text(b, part);
  if (record->type == RECORD_CALL_START) {
    struct turn *turn;
    const struct call *call =
        core_call(session_core(b->session), (long)record_number(record, MEMBER_CALL), &turn);
    b->whole_bytes += call ? call->prompt.n : 0; /* no two of them are the same here */
  }
  if (record->type == RECORD_CALL_END)
    b->whole_bytes += record_text(record, MEMBER_TEXT).n;
}

static void on_record(void *ctx, const struct record *record, struct str line) {
  struct bench *b = ctx;
  b->group_bytes += line.n;
  if (b->seen) {
    b->log_bytes += line.n;
    count_record(b, record);
  }
  bool calls = record->type == RECORD_CALL_START;
  b->calls += calls;
  if (calls || record->type == RECORD_SESSION_END) { /* a batch ends so */
    assert(b->group_count < GROUPS);
    b->groups[b->group_count++] = b->group_bytes;
    b->group_bytes = 0;
  }
}

static void on_finished(void *ctx, struct session *s) {
  struct bench *b = ctx;
  (void)s;
  b->finished++;
}

static const struct watcher watcher = {.record = on_record, .finished = on_finished};

/* Many sessions: as a daemon with nobody watching. */
static const struct watcher nobody = {.finished = on_finished};

static void bench_init(struct bench *b, const char *dir, int turns, int delay_ms) {
  struct err err;
  json_t *doc = make_workflow();
  *b = (struct bench){0};
  uv_loop_init(&b->loop);
  if (!store_open(&b->store, dir, &err) || !(b->registry = registry_new(NULL)) ||
      !host_init(&b->host, &b->loop, &b->store, b->registry, &err))
    die("%s", err.text);
  b->workflow = workflow_build(doc, &err);
  json_decref(doc);
  if (b->workflow == NULL)
    die("%s", err.text);
  json_t *replies =
      json_pack("{so}", "replies",
                make_replies(turns, delay_ms, delay_ms > 0 ? SESSION_ANSWER_BYTES : ANSWER_BYTES));
  char *text = json_dumps(replies, JSON_COMPACT);
  if (!scenario_parse(&b->scenario, "replies.json", str_from(text), &err))
    die("%s", err.text);
  json_decref(replies);
  free(text);
  b->config = json_pack("{ss sb}", "cwd", dir, "interactive", 0);
}

static struct session *bench_start(struct bench *b, const char *dir, const struct watcher *w) {
  struct err err;
  const struct session_params params = {.setup = {.cwd = dir, .scenario = &b->scenario},
                                        .workflow = b->workflow,
                                        .task = STR("the queue"),
                                        .config = b->config};
  struct session *s = host_start(&b->host, &params, w, b, &err);
  if (s == NULL)
    die("%s", err.text);
  return s;
}

/* Writes and syncs the same bytes in the same groups, and nothing else. */
static double bare_loop(const char *dir, const size_t *groups, size_t count) {
  char path[512];
  size_t max = 0;
  for (size_t i = 0; i < count; i++)
    max = groups[i] > max ? groups[i] : max;
  char *bytes = xmalloc(max);
  memset(bytes, 'x', max);
  (void)snprintf(path, sizeof path, "%s/bare", dir);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  double start = now_s();
  for (size_t i = 0; i < count; i++)
    if (write(fd, bytes, groups[i]) != (ssize_t)groups[i] || fdatasync(fd) != 0)
      die("the bare loop cannot write");
  double took = now_s() - start;
  close(fd);
  unlink(path);
  free(bytes);
  return took;
}

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void turns_bench(const char *dir) {
  enum { ROUNDS = 16 }; /* the first one counts texts, and is not timed */
  double ratios[ROUNDS - 1], ours = 0, bare = 0, ours_cpu = 0, bare_cpu = 0;
  struct bench b;
  uint64_t syncs = 0;
  bench_init(&b, dir, TURNS, 0);
  b.host.sync_now = true; /* as segue run does */
  b.seen = json_object();
  for (int round = 0; round < ROUNDS; round++) {
    b.group_count = 0;
    b.calls = 0;
    double start = now_s(), start_cpu = cpu_s();
    struct session *s = bench_start(&b, dir, &watcher);
    b.session = b.seen ? s : NULL;
    uv_run(&b.loop, UV_RUN_DEFAULT);
    ours = now_s() - start;
    ours_cpu = cpu_s() - start_cpu;
    syncs = session_syncs(s);
    start_cpu = cpu_s();
    bare = bare_loop(dir, b.groups, b.group_count);
    bare_cpu = cpu_s() - start_cpu;
    if (round > 0)
      ratios[round - 1] = ours / bare;
    if (round == 0) {
      printf("log size / prompts and replies as sent and received: %.2f  (%llu / %llu bytes)\n",
             (double)b.log_bytes / (double)b.whole_bytes, (unsigned long long)b.log_bytes,
             (unsigned long long)b.whole_bytes);
      printf("log size / their distinct parts, each counted once: %.2f  (%llu bytes)\n",
             (double)b.log_bytes / (double)b.distinct_bytes, (unsigned long long)b.distinct_bytes);
      json_decref(b.seen);
      b.seen = NULL;
    }
    unlink(session_path(s));
    session_free(s);
    uv_run(&b.loop, UV_RUN_DEFAULT);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  qsort(ratios, ROUNDS - 1, sizeof *ratios, by_value);
  printf("%d judged turns, durable / bare loop: median %.2f, best %.2f, worst %.2f  (%.0f and %.0f "
         "ms)\n",
         TURNS, ratios[ROUNDS / 2 - 1], ratios[0], ratios[ROUNDS - 2], ours * 1e3, bare * 1e3);
  printf("processor time a call: %.1f us, of the bare loop %.1f us\n",
         ours_cpu * 1e6 / (double)b.calls, bare_cpu * 1e6 / (double)b.calls);
  printf("syncs %llu, calls %llu\n", (unsigned long long)syncs, (unsigned long long)b.calls);
}

static long resident_kib(void) {
  long pages = 0, ignored;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f == NULL || fscanf(f, "%ld %ld", &ignored, &pages) != 2)
    die("no /proc/self/statm");
  fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void single_bench(const char *dir) {
  struct bench b;
  struct rusage usage;
  bench_init(&b, dir, TURNS, 0);
  struct session *s = bench_start(&b, dir, &watcher);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  getrusage(RUSAGE_SELF, &usage);
  printf("peak resident of one run of %d turns: %ld KiB (limit 16384)\n", TURNS, usage.ru_maxrss);
  session_free(s);
}

static void on_check(uv_timer_t *timer) {
  uv_stop(timer->loop);
}

static void sessions_bench(const char *dir) {
  struct bench b;
  struct session *sessions[SESSIONS];
  uv_timer_t timer;
  bench_init(&b, dir, 1, 400);
  b.scenario.matchers[0].times = b.scenario.matchers[1].times = 0; /* without end */
  uv_timer_init(&b.loop, &timer); /* first one session, so that pools and caches exist */
  struct session *first = bench_start(&b, dir, &nobody);
  uv_timer_start(&timer, on_check, 600, 0);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  long base = resident_kib();
  for (int i = 0; i < SESSIONS; i++)
    sessions[i] = bench_start(&b, dir, &nobody);
  uv_timer_start(&timer, on_check, 2000, 0); /* each is in its fourth or fifth turn then */
  uv_run(&b.loop, UV_RUN_DEFAULT);
  long peak = resident_kib();
  printf("%d sessions at once, answers of %d bytes: base %ld KiB + %.1f KiB each (limit 32)\n",
         SESSIONS, SESSION_ANSWER_BYTES, base, (double)(peak - base) / SESSIONS);
  host_stop(first, "interrupted", "end of the benchmark");
  for (int i = 0; i < SESSIONS; i++)
    host_stop(sessions[i], "interrupted", "end of the benchmark");
  uv_close((uv_handle_t *)&timer, NULL);
  uv_run(&b.loop, UV_RUN_DEFAULT);
}

static void in_child(void (*fn)(const char *), const char *dir) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    fn(dir);
    fflush(stdout);
    _exit(0);
  }
  int status;
  if (waitpid(pid, &status, 0) != pid || status != 0)
    die("a measurement failed");
}

int main(int argc, char **argv) {               /* an argument: only the turns, for a profiler */
  const char *disk = getenv("SEGUE_BENCH_DIR"); /* another disk; in memory, what is left is ours */
  char dir[256], command[300];
  json_pool_use(); /* as the program does */
  setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 0);
  (void)snprintf(dir, sizeof dir, "%s/segue-bench-XXXXXX", disk ? disk : "/var/tmp");
  if (mkdtemp(dir) == NULL)
    die("no folder for the logs");
  if (argc > 1)
    turns_bench(dir);
  else
    in_child(turns_bench, dir);
  if (argc == 1) {
    in_child(single_bench, dir);
    in_child(sessions_bench, dir);
  }
  (void)argv;
  (void)snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command);
}
