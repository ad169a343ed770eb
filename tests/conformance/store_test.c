/* store_test - what every back end of the store promises, step by step: tests/data/store has the
 * cases, which run on each row of `backends`. A case is a list of "what is done = what comes of
 * it"; `fault` makes a call fail (base/fault.h). Each runs in a process of its own: faults are
 * counted for a whole process. */
#include "format/json_object.h"
#include "support/cases.h"
#include "support/leave.h"

#include "base/memory.h"
#include "os/tmpdir.h"
#include "store/reader.h"
#include "store/store.h"
#include "store/summary.h"
#include "store/worker.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

/* The store that a case works on. Logs have letters: session A is 0199000a-..., and so on. */
struct bed {
  struct store store;
  uv_loop_t loop;
  struct store_log *log;
  struct log_reader reader;
  bool reading;
  int held;
  char blob[SHA256_HEX];
  struct buf batch; /* of the last append */
  enum store_result appended;
  bool watching;
  unsigned heard[WORKER_OUTDATED + 1]; /* news of each kind, not yet looked at */
  char asked[32];                      /* what the last of them asks, and of which session */
  struct err err;
};

/* SEGUE_TEST_SERVER: the folder of a server's socket, with a database segue_template that has the
 * tables (tests/system/shared_conformance_test.py). */
static bool database_empty(void) {
  char command[512];
  print_into(command, sizeof command,
             "%s/psql -h %s -U postgres -d segue_template -qc 'TRUNCATE segue.worker, segue.seat, "
             "segue.session, segue.line, segue.blob, segue.blob_part, segue.chain'",
             getenv("SEGUE_TEST_PROGRAMS"), getenv("SEGUE_TEST_SERVER"));
  return system(command) == 0;
}

static char *database_make(struct err *err) {
  char url[512], folder[300] = "";
  if (!database_empty()) {
    err_set(err, ERR_IO, "the database cannot be emptied");
    return NULL;
  }
  for (const char *p = getenv("SEGUE_TEST_SERVER"); *p; p++)
    print_into(folder + strlen(folder), sizeof folder - strlen(folder), *p == '/' ? "%%2F" : "%c",
               *p);
  print_into(url, sizeof url, "postgres://postgres@%s/segue_template", folder);
  return xstrdup(url);
}

/* The next case empties it. */
static bool database_remove(const char *where, struct err *err) {
  (void)where;
  (void)err;
  return true;
}

static const struct {
  const char *name;
  char *(*make)(struct err *err); /* a fresh place for a store; free() it */
  bool (*remove)(const char *where, struct err *err);
} backends[] = {
    {"files", tmpdir_make, tmpdir_remove},
    {"postgres", database_make, database_remove},
};

static void id_of(char letter, char id[STORE_ID_BYTES]) {
  print_into(id, STORE_ID_BYTES, "0199000%c-0000-7000-8000-000000000000", letter | 0x20);
}

static void ref_of(const struct bed *b, const char *word, struct store_ref *ref) {
  char id[STORE_ID_BYTES];
  id_of(word[0], id);
  store_ref(&b->store, id, ref);
}

static const char *code_name(const struct err *err) {
  switch (err->code) {
  case ERR_NOT_FOUND:
    return "not found";
  case ERR_LOCKED:
    return "locked";
  case ERR_CORRUPT:
    return "corrupt";
  case ERR_FULL:
    return "full";
  case ERR_INVALID:
    return "invalid";
  case ERR_IO:
    return "io";
  case ERR_NONE:
  case ERR_USAGE:
  case ERR_FILE:
  case ERR_LIMIT:
    break;
  }
  return err->text;
}

static const char *result_name(enum store_result result) {
  static const char *const names[] = {"ok", "fenced", "conflict", "full", "io"};
  return names[result];
}

static const char *ok_or_code(const struct bed *b, bool ok) {
  return ok ? "ok" : code_name(&b->err);
}

/* --- steps: each says what came of it --- */

static void do_create(struct bed *b, const char *word, struct buf *out) {
  char id[STORE_ID_BYTES];
  id_of(word[0], id);
  struct store_log *log = store_create(&b->store, id, &b->err);
  if (log != NULL)
    b->log = log;
  buf_puts(out, ok_or_code(b, log != NULL));
}

static bool count_record(void *ctx, const json_t *record, struct err *err) {
  long *count = ctx;
  return json_integer_value(json_object_get(record, "seq")) == ++*count ||
         err_set(err, ERR_INVALID, "out of order");
}

static void do_attach(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  struct store_mend mend = {.cut = word[1] != '\0'};
  long count = 0;
  ref_of(b, word, &ref);
  struct store_log *log = store_attach(&b->store, &ref, count_record, &count, &mend, &b->err);
  if (log == NULL) {
    buf_puts(out, code_name(&b->err));
    return;
  }
  b->log = log;
  buf_printf(out, "%ld records%s", count, mend.notification[0] ? ", torn" : "");
  if (mend.cut_bytes > 0)
    buf_printf(out, ", %d cut", (int)mend.cut_records);
}

static struct record *note(uint64_t seq) {
  json_auto_t *json = json_pack("{si sI ss ss ss}", "v", 1, "seq", (json_int_t)seq, "ts",
                                "2026-01-01T00:00:00.000Z", "type", "note", "text", "some words");
  if (seq == 1) {
    json_object_set_new(json, "type", json_string("session_start"));
    json_object_set_new(json, "config", json_pack("{sb}", "submitted", 1));
    json_object_set_new(json, "session", json_string("0199000a-0000-7000-8000-000000000000"));
  }
  struct record_draft d;
  record_read(&d, json);
  struct record *record = record_keep(&d);
  return record;
}

static void on_done(void *ctx, enum store_result result, struct str lines, const struct err *err) {
  struct bed *b = ctx;
  b->appended = result;
  buf_clear(&b->batch);
  buf_str(&b->batch, lines);
  if (err != NULL)
    b->err = *err;
}

static void say_append(const struct bed *b, struct buf *out) {
  buf_printf(out, "%s, seq %d", result_name(b->appended), (int)store_log_seq(b->log));
}

static void append(struct bed *b, const char *word, bool now, struct buf *out) {
  struct record *records[64];
  uint64_t seq = store_log_seq(b->log) + 1;
  size_t n = (size_t)strtol(word, NULL, 10);
  for (size_t i = 0; i < n; i++)
    records[i] = note(seq + i);
  if (now) {
    buf_auto_t lines = {0};
    struct err *err = NULL;
    enum store_result result = store_append_now(b->log, seq, records, n, &lines, &err);
    on_done(b, result, buf_view(&lines), err);
    free(err);
  } else {
    store_append(b->log, &b->loop, seq, records, n, on_done, b);
    uv_run(&b->loop, UV_RUN_DEFAULT);
  }
  for (size_t i = 0; i < n; i++)
    record_free(records[i]);
  say_append(b, out);
}

static void do_append(struct bed *b, const char *word, struct buf *out) {
  append(b, word, false, out);
}

static void do_append_now(struct bed *b, const char *word, struct buf *out) {
  append(b, word, true, out);
}

static void do_again(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  store_append_again(b->log, &b->loop, on_done, b);
  uv_run(&b->loop, UV_RUN_DEFAULT);
  say_append(b, out);
}

static void do_close(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  store_close(b->log);
  b->log = NULL;
  buf_puts(out, "ok");
}

static void do_settle(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  buf_puts(out, ok_or_code(b, store_log_settle(b->log, &b->err)));
}

static void do_read(struct bed *b, const char *word, struct buf *out) {
  json_auto_t *record = store_read(b->log, strtoull(word, NULL, 10), &b->err);
  if (record == NULL)
    buf_puts(out, code_name(&b->err));
  else
    buf_printf(out, "seq %d", (int)json_integer_value(json_object_get(record, "seq")));
}

static void do_open(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  ref_of(b, word, &ref);
  b->reading = reader_open(&b->reader, &ref, &b->err);
  buf_puts(out, ok_or_code(b, b->reading));
}

static void do_lines(struct bed *b, const char *word, struct buf *out) {
  struct str line;
  int n = 0;
  long first = 0;
  (void)word;
  while (reader_next(&b->reader, &line)) {
    json_auto_t *record = json_loadb(line.p, line.n, 0, NULL);
    if (n++ == 0)
      first = (long)json_integer_value(json_object_get(record, "seq"));
  }
  if (b->reader.error)
    buf_puts(out, "failed");
  else
    buf_printf(out, n ? "%d from %ld" : "none", n, first);
}

static void do_again_lines(struct bed *b, const char *word, struct buf *out) {
  if (reader_again(&b->reader))
    do_lines(b, word, out);
  else
    buf_puts(out, "gone");
}

/* Goes on behind a record. */
static void do_skip(struct bed *b, const char *word, struct buf *out) {
  struct reader_place place = {.seq = 1};
  reader_skip(&b->reader, &place, strtoull(word, NULL, 10), reader_bytes(&b->reader));
  reader_from(&b->reader, place.at);
  buf_printf(out, "at %d", (int)place.seq);
}

static void do_shut(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  reader_close(&b->reader);
  b->reading = false;
  buf_puts(out, "ok");
}

static void do_owned(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  ref_of(b, word, &ref);
  bool owned = store_is_owned(&ref);
  if (b->reading && reader_is_owned(&b->reader) != owned)
    buf_puts(out, "the reader says otherwise: ");
  buf_puts(out, owned ? "yes" : "no");
}

static void do_list(struct bed *b, const char *word, struct buf *out) {
  struct store_id *ids;
  size_t count;
  (void)word;
  if (!store_list(&b->store, &ids, &count, &b->err)) {
    buf_puts(out, code_name(&b->err));
    return;
  }
  for (size_t i = 0; i < count; i++)
    buf_putc(out, (char)(ids[i].id[7] & ~0x20));
  if (count == 0)
    buf_puts(out, "none");
  free(ids);
}

static void do_find(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  char id[STORE_ID_BYTES];
  if (!store_find(&b->store, word, &ref, &b->err)) {
    buf_puts(out, code_name(&b->err));
    return;
  }
  struct store of;
  store_of(&ref, &of);
  store_ref_id(&ref, id);
  buf_putc(out, (char)(id[7] & ~0x20));
  if (strcmp(of.where, b->store.where) != 0 || !store_is_there(&ref))
    buf_puts(out, ", of another store");
}

static void do_brief(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  struct summary summary;
  uint64_t bytes = 0;
  ref_of(b, word, &ref);
  if (!summary_read(&summary, &ref, &b->err)) {
    buf_puts(out, code_name(&b->err));
    return;
  }
  buf_printf(out, "%s, seq %d", summary_status(&summary), (int)summary.seq);
  if (!store_bytes(&ref, &bytes) || bytes != summary.bytes)
    buf_puts(out, ", with a piece behind");
  summary_deinit(&summary);
}

static void do_remove(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  ref_of(b, word, &ref);
  store_remove(&ref);
  buf_puts(out, store_is_there(&ref) ? "there" : "ok");
}

static void do_hold(struct bed *b, const char *word, struct buf *out) {
  int held = store_hold(&b->store, word, &b->err);
  if (held >= 0 && b->held < 0)
    b->held = held;
  buf_puts(out, ok_or_code(b, held >= 0));
}

static void do_yield(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  store_yield(b->held);
  b->held = -1;
  buf_puts(out, "ok");
}

static void do_held(struct bed *b, const char *word, struct buf *out) {
  buf_puts(out, store_is_held(&b->store, word) ? "yes" : "no");
}

static void do_put(struct bed *b, const char *word, struct buf *out) {
  buf_puts(out, ok_or_code(b, store_blob_put(&b->store, str_from(word), b->blob, &b->err)));
}

static void do_get(struct bed *b, const char *word, struct buf *out) {
  bool ok = store_blob_get(&b->store, word[0] ? word : b->blob, out, &b->err);
  if (!ok) {
    buf_clear(out);
    buf_puts(out, code_name(&b->err));
  }
}

/* Asks for a cancel, as from another machine. */
static void do_ask(struct bed *b, const char *word, struct buf *out) {
  struct store_ref ref;
  char state[16] = "";
  ref_of(b, word, &ref);
  buf_puts(out, worker_ask(&ref, "cancel", state, &b->err) ? state : code_name(&b->err));
}

static void do_asked(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  const char *asked = worker_asked(b->log);
  buf_puts(out, asked[0] ? asked : "nothing");
}

static void do_claim(struct bed *b, const char *word, struct buf *out) {
  struct store_id ids[8];
  size_t count, max = (size_t)strtol(word, NULL, 10);
  if (!worker_claim(&b->store, max, ids, &count, &b->err)) {
    buf_puts(out, code_name(&b->err));
    return;
  }
  for (size_t i = 0; i < count; i++)
    buf_putc(out, (char)(ids[i].id[7] & ~0x20));
  if (count == 0)
    buf_puts(out, "none");
}

static void on_told(void *ctx, enum worker_news news, const char *id, const char *what) {
  struct bed *b = ctx;
  b->heard[news]++;
  if (news == WORKER_ASKED)
    print_into(b->asked, sizeof b->asked, "%.15s %c", what, id[7] & ~0x20);
  uv_stop(&b->loop);
}

static void do_watch(struct bed *b, const char *word, struct buf *out) {
  (void)word;
  b->watching = worker_watch(&b->store, &b->loop, on_told, b, &b->err);
  buf_puts(out, ok_or_code(b, b->watching));
}

static void on_late(uv_timer_t *timer) {
  bool *late = timer->data;
  *late = true;
}

/* Waits for news of that kind, and forgets what came before them. */
static void do_hear(struct bed *b, const char *word, struct buf *out) {
  enum worker_news news = strcmp(word, "asked") == 0 ? WORKER_ASKED : WORKER_READY;
  bool late = false;
  uv_timer_t timer;
  (void)uv_timer_init(&b->loop, &timer);
  timer.data = &late;
  (void)uv_timer_start(&timer, on_late, 30000, 0);
  while (b->heard[news] == 0 && !late)
    uv_run(&b->loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&timer, NULL);
  uv_run(&b->loop, UV_RUN_NOWAIT);
  if (late)
    buf_puts(out, "nothing");
  else
    buf_puts(out, news == WORKER_ASKED ? b->asked : "ok");
  b->heard[news] = 0;
}

static const struct {
  const char *name;
  void (*run)(struct bed *b, const char *word, struct buf *out);
} steps[] = {
    {"create", do_create}, {"attach", do_attach}, {"append", do_append}, {"now", do_append_now},
    {"again", do_again},   {"close", do_close},   {"settle", do_settle}, {"read", do_read},
    {"open", do_open},     {"lines", do_lines},   {"skip", do_skip},     {"more", do_again_lines},
    {"shut", do_shut},     {"owned", do_owned},   {"list", do_list},     {"find", do_find},
    {"brief", do_brief},   {"remove", do_remove}, {"hold", do_hold},     {"yield", do_yield},
    {"held", do_held},     {"put", do_put},       {"get", do_get},       {"ask", do_ask},
    {"asked", do_asked},   {"claim", do_claim},   {"watch", do_watch},   {"hear", do_hear},
};

/* "append 3 = ok, seq 3" */
static void run_step(struct bed *b, const char *step) {
  char verb[16] = "", word[80] = "";
  const char *wanted = strstr(step, " = ");
  buf_auto_t got = {0};
  size_t i = 0;
  if (wanted == NULL || sscanf(step, "%15[a-z] %79[^= ]", verb, word) < 1) {
    complain("\"%s\" is no step", step);
    return;
  }
  while (i < ARRAY_LEN(steps) && strcmp(steps[i].name, verb) != 0)
    i++;
  if (i == ARRAY_LEN(steps)) {
    complain("there is no step %s", verb);
    return;
  }
  steps[i].run(b, word, &got);
  if (strcmp(buf_c(&got), wanted + 3) != 0)
    complain("%s: got \"%s\" (%s)", step, buf_c(&got), b->err.text);
}

static void run_steps(const json_t *c, const char *where) {
  struct bed b = {.held = -1};
  const char *fault = json_string_value(json_object_get(c, "fault"));
  (void)uv_loop_init(&b.loop);
  if (!store_open(&b.store, where, &b.err)) {
    complain("%s", b.err.text);
    return;
  }
  JSON_EACH(json_object_get(c, "before"), i, step)
    run_step(&b, json_string_value(step));
  if (fault != NULL)
    (void)setenv("SEGUE_FAULT", fault, 1);
  JSON_EACH(json_object_get(c, "steps"), i, step)
    run_step(&b, json_string_value(step));
  if (b.reading)
    reader_close(&b.reader);
  store_close(b.log);
  store_yield(b.held);
  if (b.watching)
    worker_unwatch(&b.store);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  worker_leave_all();
  buf_deinit(&b.batch);
  (void)uv_loop_close(&b.loop);
}

static size_t backend;

static void run_case(const json_t *c) {
  static const char *const known[] = {"name", "before", "steps", "fault", "only", NULL};
  const char *only = json_string_value(json_object_get(c, "only"));
  struct err err;
  int ends[2], status;
  char text[4096];
  size_t n = 0;
  ssize_t got;
  check_keys(c, known);
  if (only != NULL && strcmp(only, backends[backend].name) != 0)
    return;
  char_auto_t *where = backends[backend].make(&err);
  assert_non_null(where);
  assert_int_equal(pipe(ends), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    buf_deinit(&complaints);
    run_steps(c, where);
    bool told = write(ends[1], buf_c(&complaints), complaints.n) == (ssize_t)complaints.n;
    leave(told ? 0 : 1);
  }
  close(ends[1]);
  while (n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0)
    n += (size_t)got;
  close(ends[0]);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (n > 0)
    buf_append(&complaints, text, n);
  if (status != 0)
    complain("it ended with status %d", status);
  assert_true(backends[backend].remove(where, &err));
}

TEST(every_back_end_keeps_its_promises) {
  bool server = getenv("SEGUE_TEST_SERVER") != NULL;
  for (backend = 0; backend < (server ? ARRAY_LEN(backends) : 1); backend++) {
    print_message("%s: ", backends[backend].name);
    cases_run("store", 25, run_case);
  }
  if (!server)
    print_message("postgres: skipped, no server (system/shared_conformance_test has one)\n");
}
