/* The states of a session and where they lead; the queue, its order and its end; how often a log
 * that fails is opened again, and after which pauses. */
#include "base/limits.h"
#include "daemon/sessions.h"
#include "support/folder.h"
#include "support/leave.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char id[] = "01990000-0000-7000-8000-00000000aaaa";
static const char log_text[] =
    "{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_start\",\"session\":"
    "\"01990000-0000-7000-8000-00000000aaaa\",\"workflow\":{\"name\":\"w\"},\"config\":"
    "{\"submitted\":true}}\n";

enum { TRAIL = 32, PATIENCE_MS = 30000 };

struct fixture {
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct launch_env env;
  struct events events;
  struct sessions sessions;
  struct daemon_entry *entry; /* it waits in the queue */
  unsigned changes;
  enum entry_state trail[TRAIL]; /* of each change */
  char *dir;
};

static void on_changed(void *ctx, struct daemon_entry *e) {
  struct fixture *f = ctx;
  assert_true(f->changes < TRAIL);
  f->trail[f->changes++] = e->state;
}

/* recovers: a session waits in the store. */
static struct fixture *begin(bool recovers) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err = {0};
  f->dir = folder_make();
  if (recovers)
    folder_put(f->dir, "01990000-0000-7000-8000-00000000aaaa.ndjson", str_from(log_text));
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  assert_int_equal(setenv("XDG_CONFIG_HOME", f->dir, 1), 0);
  assert_int_equal(uv_loop_init(&f->loop), 0);
  assert_true(store_open(&f->store, f->dir, &err));
  f->env.store = &f->store;
  f->env.generation = generation_new(&err);
  if (f->env.generation == NULL)
    fail_msg("%s", err.text);
  assert_true(host_init(&f->host, &f->loop, &f->store, f->env.generation->registry, &err));
  f->env.workflows = f->host.workflows;
  events_init(&f->events, &f->loop);
  sessions_init(&f->sessions, &f->host, &f->env, &f->events, 0, on_changed, f);
  assert_int_equal(sessions_recover(&f->sessions, &err), recovers);
  f->entry = sessions_find(&f->sessions, id);
  return f;
}

static int setup(void **state) {
  struct fixture *f = begin(true);
  assert_non_null(f->entry);
  *state = f;
  return 0;
}

static int setup_empty(void **state) {
  *state = begin(false);
  return 0;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  sessions_close(&f->sessions);
  events_close(&f->events);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT); /* what it appends to the ledger is through */
  host_deinit(&f->host);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  generation_unref(f->env.generation);
  folder_remove(f->dir);
  free(f);
  return 0;
}

/* --- the table of states --- */

static const struct {
  enum entry_state from;
  const char *to;
} ways[] = {
    {ENTRY_STARTING, "HELD AFTER OVER FAILED"},
    {ENTRY_RESUMING, "QUEUED RUNNING BROKEN OVER"},
    {ENTRY_ANSWERING, "QUEUED RUNNING BROKEN OVER"},
    {ENTRY_HELD, "QUEUED RUNNING BROKEN OVER"},
    {ENTRY_QUEUED, "ANSWERING AFTER OPENING RUNNING BROKEN OVER"},
    {ENTRY_AFTER, "RESUMING ANSWERING QUEUED RUNNING BROKEN OVER"},
    {ENTRY_OPENING, "RESUMING ANSWERING QUEUED RUNNING BROKEN OVER"},
    {ENTRY_RUNNING, "QUEUED BROKEN OVER"},
    {ENTRY_BROKEN, "QUEUED RUNNING OVER"},
    {ENTRY_OVER, "RESUMING ANSWERING QUEUED OPENING RUNNING"},
    {ENTRY_FAILED, ""},
};

static const char *const state_names[] = {
#define ES_NAME(name, list, next) #name,
    ENTRY_STATES(ES_NAME)
#undef ES_NAME
};

/* Whether a session can go from one state to another: a child tries, and aborts if not. */
static bool can_go(struct daemon_entry *e, enum entry_state to) {
  static const struct rlimit none = {0};
  int status;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)signal(SIGABRT, SIG_DFL);
    (void)close(STDERR_FILENO);
    entry_set_state(e, to);
    leave(0);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return !WIFSIGNALED(status);
}

static bool is_word_of(const char *words, const char *word) {
  size_t n = strlen(word);
  for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
    if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
      return true;
  return false;
}

TEST_ON(struct fixture *f, setup_empty, teardown, only_these_ways_are_open) {
  char name[STORE_ID_BYTES];
  assert_int_equal(ARRAY_LEN(ways), ARRAY_LEN(state_names));
  for (unsigned i = 0; i < ARRAY_LEN(ways); i++) {
    print_into(name, sizeof name, "01990000-0000-7000-8000-%012u", i);
    assert_int_equal(ways[i].from, i);
    struct daemon_entry *e = entry_new(&f->sessions, name, ways[i].from);
    for (unsigned to = 0; to < ARRAY_LEN(state_names); to++)
      if (can_go(e, (enum entry_state)to) != is_word_of(ways[i].to, state_names[to]))
        fail_msg("%s to %s", state_names[i], state_names[to]);
  }
}

TEST_ON(struct fixture *f, setup_empty, teardown, each_state_is_told) {
  static const struct {
    enum entry_state state;
    const char *status; /* "": as its log says */
    bool waits, live;
  } rows[] = {
      {ENTRY_STARTING, "queued", false, false},  {ENTRY_RESUMING, "queued", false, false},
      {ENTRY_ANSWERING, "queued", false, false}, {ENTRY_HELD, "queued", true, true},
      {ENTRY_QUEUED, "queued", true, true},      {ENTRY_AFTER, "waiting", false, true},
      {ENTRY_OPENING, "queued", false, true},    {ENTRY_RUNNING, "running", false, true},
      {ENTRY_BROKEN, "paused", false, true},     {ENTRY_OVER, "", false, false},
      {ENTRY_FAILED, "", false, false},
  };
  char name[STORE_ID_BYTES];
  for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
    print_into(name, sizeof name, "01990000-0000-7000-8000-%012u", i);
    struct daemon_entry *e = entry_new(&f->sessions, name, rows[i].state);
    assert_string_equal(entry_status(e), rows[i].status);
    assert_int_equal(entry_waits(e), rows[i].waits);
    assert_int_equal(entry_is_live(e), rows[i].live);
    assert_int_equal(entry_position(e) > 0, rows[i].waits);
  }
}

/* --- the queue --- */

enum { QUEUED = 200 };

static struct daemon_entry *number(struct fixture *f, unsigned n) {
  char name[STORE_ID_BYTES];
  print_into(name, sizeof name, "01990000-0000-7000-8000-%012u", n);
  return sessions_find(&f->sessions, name);
}

static void in_order(const struct fixture *f) {
  size_t position = 0;
  const char *last = "";
  LIST_EACH(struct daemon_entry, e, in_state, (struct list *)&f->sessions.lists[LIST_QUEUE]) {
    assert_int_equal(entry_position(e), ++position);
    assert_true(strcmp(last, e->id) < 0);
    last = e->id;
  }
  assert_int_equal(sessions_queued(&f->sessions), position);
  assert_int_equal(f->sessions.queue.count, position);
}

TEST_ON(struct fixture *f, setup_empty, teardown, the_queue_is_in_order_of_the_ids) {
  char name[STORE_ID_BYTES];
  for (unsigned i = 0; i < QUEUED; i++) { /* 77 and 200 have no common divisor */
    print_into(name, sizeof name, "01990000-0000-7000-8000-%012u", i * 77 % QUEUED);
    (void)entry_new(&f->sessions, name, i % 3 ? ENTRY_QUEUED : ENTRY_HELD);
  }
  in_order(f);
  assert_int_equal(sessions_queued(&f->sessions), QUEUED);
  for (unsigned n = 0; n < QUEUED; n += 2) { /* from anywhere; the first place is 1 */
    assert_int_equal(entry_position(number(f, n)), n / 2 + 1);
    entry_set_state(number(f, n), ENTRY_OVER);
    assert_int_equal(entry_position(number(f, n)), 0);
  }
  in_order(f);
  for (unsigned n = 0; n < QUEUED; n += 4) /* resumed: back to where they were */
    entry_set_state(number(f, n), ENTRY_QUEUED);
  in_order(f);
  for (unsigned n = 1; n < QUEUED; n += 2)
    if (number(f, n)->state == ENTRY_HELD)
      entry_set_state(number(f, n), ENTRY_QUEUED); /* it keeps its place */
  in_order(f);
  assert_int_equal(sessions_queued(&f->sessions), QUEUED / 2 + QUEUED / 4);
}

/* --- the ways that sessions take --- */

#define SUBMITTED                                                                                  \
  "{\"workflow\":{\"text\":\"name: w\\ninitial_movement: a\\nprovider: script\\nmovements:\\n- "   \
  "name: "                                                                                         \
  "a\\n  instruction: do it\\n  judge: {stages: [phase1_tag]}\\n  rules:\\n  - {condition: good, " \
  "next: COMPLETE}\\n  - {condition: bad, next: ABORT}\\n\"},\"task\":\"t\",\"cwd\":\"%s\","       \
  "\"scenario\":{\"text\":\"replies:\\n- {movement: a, purpose: execute, delay_ms: %d, text: "     \
  "'[A:1] {mark}'}\\n- {movement: a, purpose: execute, text: '[A:1] {mark}'}\\n\"}}"

static struct daemon_entry *submit(struct fixture *f, int delay_ms, struct err *err) {
  char text[2048];
  struct launch l;
  AUTO(err_list_deinit) struct err_list errors = {0};
  print_into(text, sizeof text, SUBMITTED, f->dir, delay_ms);
  json_auto_t *body = json_loads(text, 0, NULL);
  assert_non_null(body);
  launch_init(&l, &f->env);
  if (!launch_parse(&l, LAUNCH_SESSION, body, err, &errors))
    fail_msg("%s", errors.count > 0 ? errors.items[0].text : err->text);
  launch_share(&l);
  return sessions_submit(&f->sessions, &l, err);
}

/* Runs the loop until the session is there. */
static void reach(struct fixture *f, const struct daemon_entry *e, enum entry_state state) {
  uint64_t until = uv_now(&f->loop) + PATIENCE_MS;
  while (e->state != state || (state != ENTRY_RUNNING && e->session != NULL)) {
    if (uv_now(&f->loop) > until)
      fail_msg("%s, not %s", state_names[e->state], state_names[state]);
    (void)uv_run(&f->loop, UV_RUN_ONCE);
  }
}

static void let_run(struct fixture *f, size_t places) {
  f->sessions.max_running = places;
  sessions_soon(&f->sessions);
}

TEST_ON(struct fixture *f, setup_empty, teardown, from_a_submit_to_its_end) {
  struct err err = {0};
  struct daemon_entry *e = submit(f, 0, &err);
  assert_non_null(e);
  assert_int_equal(e->state, ENTRY_STARTING);
  assert_int_equal(entry_position(e), 0);
  assert_ptr_equal(sessions_find(&f->sessions, e->id), e);
  reach(f, e, ENTRY_QUEUED); /* no place is free: nothing of it stays in memory */
  assert_int_equal(f->changes, 1);
  assert_int_equal(f->trail[0], ENTRY_HELD);
  assert_int_equal(entry_position(e), 1);
  let_run(f, 1);
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "complete");
  assert_int_equal(f->trail[f->changes - 1], ENTRY_OVER);
}

TEST_ON(struct fixture *f, setup_empty, teardown, from_memory_without_its_log) {
  struct err err = {0};
  f->sessions.max_running = 1;
  struct daemon_entry *e = submit(f, 0, &err);
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "complete");
  assert_int_equal(f->trail[0], ENTRY_HELD);
}

TEST_ON(struct fixture *f, setup_empty, teardown, a_cancel_needs_no_place) {
  struct err err = {0};
  struct daemon_entry *e = submit(f, 0, &err);
  reach(f, e, ENTRY_QUEUED);
  assert_true(sessions_cancel(&f->sessions, e, &err));
  assert_int_equal(e->state, ENTRY_RUNNING);
  assert_int_equal(e->wish, WISH_CANCEL);
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "cancelled");
  assert_string_equal(entry_message(e), "cancelled by request");
  assert_false(sessions_cancel(&f->sessions, e, &err));
  assert_int_equal(err.code, ERR_INVALID);
}

/* It leaves before there is a record that could say so. */
TEST_ON(struct fixture *f, setup_empty, teardown, a_client_that_leaves_early) {
  struct err err = {0};
  struct daemon_entry *e = submit(f, 0, &err);
  sessions_leave(&f->sessions, e);
  assert_int_equal(e->state, ENTRY_STARTING);
  assert_int_equal(e->wish, WISH_LEAVE);
  let_run(f, 1);
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "cancelled");
  assert_string_equal(entry_message(e), "its client has left");
  sessions_leave(&f->sessions, e); /* it is over: this changes nothing */
  assert_int_equal(e->state, ENTRY_OVER);
}

struct asked {
  struct entry_ask ask;
  int done;
  enum err_code code;
};

static void on_asked(struct entry_ask *ask, struct daemon_entry *e, const struct err *err) {
  struct asked *asked = (struct asked *)ask;
  (void)e;
  asked->done++;
  asked->code = err != NULL ? err->code : ERR_NONE;
}

TEST_ON(struct fixture *f, setup_empty, teardown, a_resume_puts_it_back) {
  struct err err = {0};
  struct asked asked = {.ask.done = on_asked};
  f->sessions.max_running = 1;
  struct daemon_entry *e = submit(f, PATIENCE_MS, &err);
  reach(f, e, ENTRY_RUNNING);
  assert_int_equal(sessions_running(&f->sessions), 1);
  host_stop(e->session, "interrupted", "SIGINT");
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "stopped");
  f->sessions.max_running = 0;
  sessions_resume(&f->sessions, e, &asked.ask);
  assert_int_equal(asked.done, 1);
  assert_int_equal(asked.code, ERR_NONE);
  assert_int_equal(e->state, ENTRY_RESUMING); /* the next daemon must know it, too */
  assert_int_equal(e->wish, WISH_RESUME);
  reach(f, e, ENTRY_QUEUED);
  assert_int_equal(entry_position(e), 1);
  assert_true(sessions_cancel(&f->sessions, e, &err)); /* the later wish counts */
  assert_int_equal(e->wish, WISH_CANCEL);
  reach(f, e, ENTRY_OVER);
  assert_string_equal(entry_status(e), "cancelled");
  sessions_resume(&f->sessions, e, &asked.ask);
  assert_int_equal(asked.done, 2);
  assert_int_equal(asked.code, ERR_INVALID);
  entry_ask_deinit(&asked.ask);
}

/* In a child: faults are read once for a process. */
TEST(a_first_record_that_fails) {
  int status;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    (void)setenv("SEGUE_FAULT", "fail:write:2", 1); /* the first one is its scenario */
    struct fixture *f = begin(false);
    struct err err = {0};
    struct daemon_entry *e = submit(f, 0, &err);
    char name[STORE_ID_BYTES];
    memcpy(name, e->id, sizeof name);
    while (f->changes == 0)
      (void)uv_run(&f->loop, UV_RUN_ONCE);
    bool failed = f->trail[0] == ENTRY_FAILED;
    for (int i = 0; i < 100 && sessions_find(&f->sessions, name) != NULL; i++)
      (void)uv_run(&f->loop, UV_RUN_ONCE);
    struct store_ref ref;
    uint64_t bytes;
    store_ref(&f->store, name, &ref);
    bool gone = sessions_find(&f->sessions, name) == NULL && !store_bytes(&ref, &bytes);
    folder_remove(f->dir);
    leave(failed && gone ? 0 : 1);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- logs that fail --- */

static bool fails(const struct fixture *f, enum err_code code) {
  struct err err;
  err_set(&err, code, "the disk");
  return entry_mend_later(f->entry, &err);
}

TEST_ON(struct fixture *f, setup, teardown, pauses_grow_to_the_last_try) {
  for (unsigned i = 0; i < LIMIT_MEND_COUNT; i++) {
    uint64_t wait_ms = (uint64_t)LIMIT_MEND_MS << i;
    uint64_t now = uv_now(&f->loop);
    assert_true(fails(f, i % 2 ? ERR_FULL : ERR_IO));
    assert_int_equal(f->entry->state, ENTRY_BROKEN);
    assert_int_equal(f->entry->not_before_ms - now,
                     wait_ms < LIMIT_MEND_MAX_MS ? wait_ms : LIMIT_MEND_MAX_MS);
    assert_int_equal(f->changes, i + 1);
  }
  assert_false(fails(f, ERR_IO));
  f->entry->summary.turns++; /* it came further: all tries again */
  assert_true(fails(f, ERR_IO));
}

TEST_ON(struct fixture *f, setup, teardown, a_person_has_a_try_more) {
  for (unsigned i = 0; i < LIMIT_MEND_COUNT; i++)
    assert_true(fails(f, ERR_IO));
  entry_mend_soon(f->entry);
  assert_int_equal(f->entry->not_before_ms, 0);
  assert_true(fails(f, ERR_IO));
  assert_false(fails(f, ERR_IO));
}

TEST_ON(struct fixture *f, setup, teardown, only_the_disk_is_waited_for) {
  assert_false(fails(f, ERR_CORRUPT));
  assert_false(fails(f, ERR_LOCKED));
  f->sessions.draining = true;
  assert_false(fails(f, ERR_IO));
  f->sessions.draining = false;
  f->entry->summary.seq = 0; /* it had not begun: nothing is lost */
  assert_false(fails(f, ERR_IO));
  assert_int_equal(f->changes, 0);
}

TEST_ON(struct fixture *f, setup, teardown, the_queue_has_an_end) {
  struct launch launch = {0};
  struct err err = {0};
  struct list *queue = &f->sessions.lists[LIST_QUEUE];
  size_t count = queue->count;
  queue->count = LIMIT_QUEUE_COUNT;
  assert_null(sessions_submit(&f->sessions, &launch, &err));
  assert_int_equal(err.code, ERR_LIMIT);
  queue->count = count;
}
