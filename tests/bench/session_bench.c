/* Measures what a session costs beside the bare thing: durable logs against a loop that writes and
 * syncs the same bytes in the same groups; the size of a log against the texts that it must hold;
 * the memory of many sessions at once. Each measurement runs in a process of its own. */
#include "bench.h"
#include "format/json_object.h"
#include "host/host.h"

#include <assert.h>
#include <fcntl.h>

enum {
  TURNS = 300,
  GROUPS = 2 * TURNS + 1, /* one a call, and the end */
  SESSIONS = 200,
  POOL_SESSIONS = 16,
  ANSWER_BYTES = 6000,
  SESSION_ANSWER_BYTES = 2000,
  REPLY_BYTES = 150
};

/* A text of about n bytes that differs from turn to turn. */
static char *words(unsigned seed, size_t n) {
  struct buf b = {0};
  for (unsigned x = seed * 2654435761u + 1; b.n < n; x = x * 1664525u + 1013904223u)
    buf_printf(&b, "%s%u ", (x >> 16) % 2 ? "the queue " : "of a test ", x >> 28);
  return buf_take(&b);
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
  size_t groups[GROUPS]; /* bytes of each batch */
  size_t group_count, group_bytes;
  uint64_t log_bytes, whole_bytes, calls;
  struct session *session; /* the one that runs, where texts are counted */
  const char *dir;
  uint64_t syncs;  /* of the last session */
  double cpu_s[2]; /* of the last of each side */
  bool counts;
};

static void on_record(void *ctx, const struct record *record, struct str line) {
  struct bench *b = ctx;
  struct turn *turn;
  b->group_bytes += line.n;
  b->calls += record->type == RECORD_CALL_START;
  if (b->counts)
    b->log_bytes += line.n;
  if (b->counts && record->type == RECORD_CALL_START) {
    const struct call *call =
        core_call(session_core(b->session), (long)record_number(record, MEMBER_CALL), &turn);
    b->whole_bytes += call ? call->prompt.n : 0; /* no two of them are the same here */
  }
  if (b->counts && record->type == RECORD_CALL_END)
    b->whole_bytes += record_text(record, MEMBER_TEXT).n;
  if (record->type == RECORD_CALL_START || record->type == RECORD_SESSION_END) { /* ends a batch */
    assert(b->group_count < GROUPS);
    b->groups[b->group_count++] = b->group_bytes;
    b->group_bytes = 0;
  }
}

static const struct watcher watcher = {.record = on_record};

static void bench_init(struct bench *b, const char *dir, int turns, int delay_ms) {
  struct err err;
  json_t *doc = json_pack("{ss ss si s[{ss ss s[{ss ss} {ss ss}]}]}", "name", "bench", "provider",
                          "script", "max_movements", TURNS, "movements", "name", "work",
                          "instruction", "Go on with {task}.", "rules", "condition", "work is left",
                          "next", "work", "condition", "all is done", "next", "COMPLETE");
  *b = (struct bench){.dir = dir};
  uv_loop_init(&b->loop);
  bench_try(store_open(&b->store, dir, &err) && (b->registry = registry_new(NULL)) &&
                host_init(&b->host, &b->loop, &b->store, b->registry, &err) &&
                (b->workflow = workflow_build(doc, &err)),
            &err);
  json_decref(doc);
  json_t *replies =
      json_pack("{so}", "replies",
                make_replies(turns, delay_ms, delay_ms > 0 ? SESSION_ANSWER_BYTES : ANSWER_BYTES));
  char *text = json_dumps(replies, JSON_COMPACT);
  bench_try(scenario_parse(&b->scenario, "replies.json", str_from(text), &err), &err);
  json_decref(replies);
  free(text);
  b->config = json_pack("{ss sb}", "cwd", dir, "interactive", 0);
}

/* Without a watcher it is as in a daemon where nobody watches. */
static struct session *bench_start(struct bench *b, const struct watcher *w) {
  struct err err;
  const struct session_params params = {.setup = {.cwd = b->dir, .scenario = &b->scenario},
                                        .workflow = b->workflow,
                                        .task = STR("the queue"),
                                        .config = b->config};
  struct session *s = host_start(&b->host, &params, w, b, &err);
  bench_try(s != NULL, &err);
  return s;
}

/* One file of the bare loop: the same bytes in the same groups, written and synced. */
struct bare {
  uv_work_t work;
  uv_loop_t *loop; /* NULL: on the calling thread */
  int fd;
  const size_t *groups;
  size_t at, count;
  const char *bytes;
};

static void bare_write(uv_work_t *work) {
  const struct bare *b = work->data;
  ssize_t n = (ssize_t)b->groups[b->at];
  bench_must(write(b->fd, b->bytes, (size_t)n) == n && fdatasync(b->fd) == 0, "the bare loop");
}

static void bare_next(uv_work_t *work, int status) {
  struct bare *b = work->data;
  (void)status;
  if (++b->at < b->count)
    uv_queue_work(b->loop, &b->work, bare_write, bare_next);
}

/* Seconds of so many files at once through the loop's pool, or of one without a loop. */
static double bare_loop(const struct bench *b, uv_loop_t *loop, int files) {
  struct bare bare[POOL_SESSIONS];
  static char bytes[1 << 20];
  char path[512];
  assert(b->group_count > 0 && b->groups[0] <= sizeof bytes);
  (void)snprintf(path, sizeof path, "%s/bare", b->dir);
  double start = bench_now_s();
  for (int i = 0; i < files; i++) {
    bare[i] =
        (struct bare){.loop = loop, .groups = b->groups, .count = b->group_count, .bytes = bytes};
    bare[i].fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    unlink(path);
    bare[i].work.data = &bare[i];
    if (loop != NULL)
      uv_queue_work(loop, &bare[i].work, bare_write, bare_next);
    for (; loop == NULL && bare[i].at < bare[i].count; bare[i].at++)
      bare_write(&bare[i].work);
  }
  if (loop != NULL)
    uv_run(loop, UV_RUN_DEFAULT);
  double took = bench_now_s() - start;
  for (int i = 0; i < files; i++)
    close(bare[i].fd);
  return took;
}

/* Side 0 is the bare loop, side 1 a session; the first one counts texts. */
static double one_or_bare(void *ctx, int side) {
  struct bench *b = ctx;
  double start = bench_now_s(), start_cpu = bench_cpu_s(RUSAGE_SELF);
  if (side == 0) {
    double took = bare_loop(b, NULL, 1);
    b->cpu_s[0] = bench_cpu_s(RUSAGE_SELF) - start_cpu;
    return took;
  }
  b->group_count = 0;
  b->calls = 0;
  struct session *s = b->session = bench_start(b, &watcher);
  uv_run(&b->loop, UV_RUN_DEFAULT);
  double took = bench_now_s() - start;
  b->cpu_s[1] = bench_cpu_s(RUSAGE_SELF) - start_cpu;
  b->syncs = session_syncs(s);
  if (b->counts)
    printf("log size / prompts and replies as sent and received: %.2f  (%llu / %llu bytes)\n"
           "resident after one run of %d turns: %ld KiB (limit 16384)\n",
           (double)b->log_bytes / (double)b->whole_bytes, (unsigned long long)b->log_bytes,
           (unsigned long long)b->whole_bytes, TURNS, bench_kib(getpid(), "status", "VmHWM:"));
  b->counts = false;
  unlink(session_log_name(s));
  session_free(s);
  uv_run(&b->loop, UV_RUN_DEFAULT);
  return took;
}

static double turns_bench(const void *dir) {
  struct bench b;
  bench_init(&b, dir, TURNS, 0);
  b.host.sync_now = true; /* as segue run does */
  b.counts = true;
  const struct bench_pair p = bench_pairs(15, one_or_bare, &b);
  printf("%d judged turns, durable / bare loop: median %.2f, best %.2f, worst %.2f  (%.0f and %.0f "
         "ms)\n",
         TURNS, 1 / p.ratio, 1 / p.high, 1 / p.low, p.side[1] * 1e3, p.side[0] * 1e3);
  printf("syncs %llu, calls %llu; processor time a call: %.1f us, of the bare loop %.1f us\n",
         (unsigned long long)b.syncs, (unsigned long long)b.calls,
         b.cpu_s[1] * 1e6 / (double)b.calls, b.cpu_s[0] * 1e6 / (double)b.calls);
  return 0;
}

static double many_or_bare(void *ctx, int side) {
  struct bench *b = ctx;
  struct session *sessions[POOL_SESSIONS];
  if (side == 0)
    return bare_loop(b, &b->loop, POOL_SESSIONS);
  double start = bench_now_s();
  for (int i = 0; i < POOL_SESSIONS; i++)
    sessions[i] = bench_start(b, NULL);
  uv_run(&b->loop, UV_RUN_DEFAULT);
  double took = bench_now_s() - start;
  for (int i = 0; i < POOL_SESSIONS; i++)
    session_free(sessions[i]);
  return took;
}

/* As a daemon does: the appends of several sessions go through the pool. */
static double pool_bench(const void *dir) {
  struct bench b;
  bench_init(&b, dir, TURNS, 0);
  struct session *first = bench_start(&b, &watcher); /* notes what is written at once */
  uv_run(&b.loop, UV_RUN_DEFAULT);
  session_free(first);
  b.scenario.matchers[0].times = b.scenario.matchers[1].times = 0; /* without end */
  const struct bench_pair p = bench_pairs(5, many_or_bare, &b);
  printf("turns/s of %d sessions at once, against the bare loop: %.2f (goal 0.80; %.0f turns/s)\n",
         POOL_SESSIONS, p.ratio, POOL_SESSIONS * TURNS / p.side[1]);
  return 0;
}

static void on_check(uv_timer_t *timer) {
  uv_stop(timer->loop);
}

static double sessions_bench(const void *dir) {
  struct bench b;
  struct session *sessions[SESSIONS];
  uv_timer_t timer;
  bench_init(&b, dir, 1, 400);
  b.scenario.matchers[0].times = b.scenario.matchers[1].times = 0; /* without end */
  uv_timer_init(&b.loop, &timer); /* first one session, so that pools and caches exist */
  struct session *first = bench_start(&b, NULL);
  uv_timer_start(&timer, on_check, 600, 0);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  long base = bench_kib(getpid(), "status", "VmRSS:");
  for (int i = 0; i < SESSIONS; i++)
    sessions[i] = bench_start(&b, NULL);
  uv_timer_start(&timer, on_check, 2000, 0); /* each is in its fourth or fifth turn then */
  uv_run(&b.loop, UV_RUN_DEFAULT);
  long peak = bench_kib(getpid(), "status", "VmRSS:");
  printf("%d sessions at once, answers of %d bytes: base %ld KiB + %.1f KiB each (limit 32)\n",
         SESSIONS, SESSION_ANSWER_BYTES, base, (double)(peak - base) / SESSIONS);
  host_stop(first, "interrupted", "end of the benchmark");
  for (int i = 0; i < SESSIONS; i++)
    host_stop(sessions[i], "interrupted", "end of the benchmark");
  uv_close((uv_handle_t *)&timer, NULL);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  return 0;
}

int main(int argc, char **argv) {               /* an argument: only the turns, for a profiler */
  const char *disk = getenv("SEGUE_BENCH_DIR"); /* another disk; in memory, what is left is ours */
  char dir[256], threads[16];
  (void)argv;
  setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 0);
  (void)snprintf(threads, sizeof threads, "%u", store_pool_threads(false));
  setenv("UV_THREADPOOL_SIZE", threads, 1);
  bench_folder(dir, sizeof dir, disk ? disk : "/var/tmp");
  if (argc > 1) {
    (void)turns_bench(dir);
  } else {
    (void)bench_apart(turns_bench, dir);
    (void)bench_apart(sessions_bench, dir);
    (void)bench_apart(pool_bench, dir);
  }
  bench_remove(dir);
  return 0;
}
