/* append_probe - batches of 3 lines of 500 bytes to many logs of one store at once.
 * usage: append_probe WHERE LOGS BATCHES [SECONDS]
 * Prints batches a second, and the median and p99 of one in milliseconds. With SECONDS its lease is
 * 3 s, it holds the logs for so long, and prints the seconds that it was there. */
#include "bench.h"
#include "core/record.h"
#include "os/loop.h"
#include "store/store.h"
#include "store/worker.h"

enum { LINES = 3, LINE_BYTES = 500, LOGS_MAX = 1024 };

struct writer {
  struct store_log *log;
  char id[STORE_ID_BYTES];
  double begun;
};

static struct {
  struct writer writers[LOGS_MAX];
  uv_loop_t loop;
  long left, done;
  double *took_s;
} probe;

static struct record *note(uint64_t seq, const char *id) {
  char text[LINE_BYTES - 180];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  json_t *json = json_pack("{si sI ss ss ss ss}", "v", 1, "seq", (json_int_t)seq, "ts",
                           "2026-01-01T00:00:00.000Z", "type", seq == 1 ? "session_start" : "note",
                           "session", id, "text", text);
  struct record_draft d;
  record_read(&d, json);
  struct record *record = record_keep(&d);
  json_decref(json);
  return record;
}

static void write_next(struct writer *w);

static void on_done(void *ctx, enum store_result result, struct str lines, const struct err *err) {
  struct writer *w = ctx;
  (void)lines;
  bench_try(result == STORE_OK, err);
  probe.took_s[probe.done++] = bench_now_s() - w->begun;
  write_next(w);
}

static void write_next(struct writer *w) {
  struct record *records[LINES];
  uint64_t seq = store_log_seq(w->log) + 1;
  if (probe.left == 0)
    return;
  probe.left--;
  for (size_t i = 0; i < LINES; i++)
    records[i] = note(seq + i, w->id);
  w->begun = bench_now_s();
  store_append(w->log, &probe.loop, seq, records, LINES, on_done, w);
  for (size_t i = 0; i < LINES; i++)
    record_free(records[i]);
}

int main(int argc, char **argv) {
  struct store store;
  struct err err;
  double here_s = bench_now_s();
  if (argc != 4 && argc != 5)
    die("usage: append_probe WHERE LOGS BATCHES [SECONDS]");
  long logs = strtol(argv[2], NULL, 10), batches = strtol(argv[3], NULL, 10);
  long hold_s = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
  const struct worker_options options = {.lease_ms = hold_s > 0 ? 3000 : 30000};
  bench_must(logs > 0 && logs <= LOGS_MAX && batches > 0, "LOGS, BATCHES");
  bench_try(worker_be(&options, &err) && store_open(&store, argv[1], &err) &&
                loop_init(&probe.loop, &err),
            &err);
  probe.took_s = xcalloc((size_t)batches, sizeof *probe.took_s);
  probe.left = batches;
  for (long i = 0; i < logs; i++) {
    struct writer *w = &probe.writers[i];
    (void)snprintf(w->id, sizeof w->id, "0199000a-0000-7000-8000-%012x", (unsigned)i);
    w->log = store_create(&store, w->id, &err);
    bench_try(w->log != NULL, &err);
  }
  double begin = bench_now_s();
  for (long i = 0; i < logs; i++)
    write_next(&probe.writers[i]);
  (void)uv_run(&probe.loop, UV_RUN_DEFAULT);
  double all_s = bench_now_s() - begin;
  printf("%.1f %.3f %.3f ", (double)batches / all_s,
         bench_quantile(probe.took_s, (size_t)batches, 0.5) * 1e3,
         bench_quantile(probe.took_s, (size_t)batches, 0.99) * 1e3);
  (void)sleep((unsigned)hold_s); /* its lease is a thread's */
  for (long i = 0; i < logs; i++)
    store_close(probe.writers[i].log);
  printf("%.1f\n", bench_now_s() - here_s);
  worker_leave_all();
  return 0;
}
