/* Sessions on one loop: records before effects, many at once, stopping, cancelling, failing stores;
 * and that everything closes. Fault loops run in children: base/fault.h counts for a process. */

#include "base/file.h"
#include "host/host.h"
#include "support/folder.h"
#include "support/leave.h"
#include "support/log_ref.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SESSIONS = 20 };

struct fixture {
  uv_loop_t loop;
  struct store store;
  struct host host;
  struct provider_registry *registry;
  bool has_host;
  struct scenario scenario;
  char *dir;
  size_t fds_before;
};

/* All that a watcher saw of one session. */
struct seen {
  struct fixture *fixture;
  struct session *session;
  int records, judgments, finished, troubles;
  int waits, admitted; /* admission records */
  char last[32];       /* type of the last record */
  char trouble[512];   /* the last one */
  const char *stop_on; /* record type at which it is stopped, from a timer */
  bool cancel;         /* cancel instead */
  bool from_within;    /* at once instead, from the watcher's call */
  bool check_file;     /* each record is in the log when it is seen */
  uv_timer_t timer;
  bool armed;
};

static bool sync_now;        /* of the next host */
static const char *settings; /* of its providers; NULL: none */

static size_t count_fds(void) {
  size_t n = 0;
  DIR *dir = opendir("/proc/self/fd");
  while (readdir(dir) != NULL)
    n++;
  (void)closedir(dir);
  return n;
}

static void begin(struct fixture *f) {
  struct err err;
  assert_int_equal(uv_loop_init(&f->loop), 0);
  f->dir = folder_make();
  assert_true(store_open(&f->store, f->dir, &err));
  f->store.lock_wait_ms = LIMIT_LOCK_WAIT_MS;
  json_auto_t *own = settings ? json_loads(settings, 0, NULL) : NULL;
  f->registry = registry_new(own);
  if (!host_init(&f->host, &f->loop, &f->store, f->registry, &err))
    fail_msg("%s", err.text);
  f->has_host = true;
  f->host.sync_now = sync_now;
}

static void end(struct fixture *f) {
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  if (f->has_host)
    host_deinit(&f->host);
  registry_free(f->registry);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&f->loop), 0);
  if (f->scenario.replies)
    scenario_deinit(&f->scenario);
  folder_remove(f->dir);
}

static int setup(void **state) {
  struct fixture *f = calloc(1, sizeof *f);
  f->fds_before = count_fds();
  begin(f);
  *state = f;
  return 0;
}

static int setup_sync_now(void **state) {
  sync_now = true;
  int status = setup(state);
  sync_now = false;
  return status;
}

static int setup_one_place(void **state) {
  settings = "{\"script\": {\"concurrency\": 1}}";
  int status = setup(state);
  settings = NULL;
  return status;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  end(f);
  assert_int_equal(count_fds(), f->fds_before);
  free(f);
  return 0;
}

/* libuv's signal pipe is opened once and stays. */
static int warm_up(void **state) {
  uv_loop_t loop;
  (void)state;
  assert_int_equal(setenv("SEGUE_SHIM", SEGUE_BUILD_DIR "/segue-shim", 1), 0);
  return uv_loop_init(&loop) != 0 || uv_loop_close(&loop) != 0;
}

/* --- the workflow --- */

#define WORKFLOW                                                                                   \
  "{\"name\":\"w\",\"initial_movement\":\"run\",\"provider\":\"script\",\"movements\":["           \
  "{\"name\":\"run\",\"command\":[\"sh\",\"-c\",\"cat \\\"$0\\\"/*.ndjson; exit 3\",\"%s\"],"      \
  "\"rules\":[{\"condition\":\"when(exit == 3)\",\"next\":\"think\"}]},"                           \
  "{\"name\":\"think\",\"instruction\":\"think about it\",\"rules\":["                             \
  "{\"condition\":\"good\",\"next\":\"COMPLETE\"},{\"condition\":\"bad\",\"next\":\"ABORT\"}]}]}"

#define SCENARIO                                                                                   \
  "replies:\n"                                                                                     \
  "  - {movement: think, purpose: execute, text: thought, delay_ms: %d}\n"                         \
  "  - {movement: think, stage: structured_output, text: no idea}\n"                               \
  "  - {movement: think, stage: phase3_tag, text: '[THINK:1]'}\n"

static struct workflow *make_workflow(const struct fixture *f) {
  char text[2048];
  struct err err;
  print_into(text, sizeof text, WORKFLOW, f->dir);
  json_auto_t *doc = json_loads(text, 0, NULL);
  assert_non_null(doc);
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  return wf;
}

static void use_scenario(struct fixture *f, int delay_ms) {
  char text[1024];
  struct err err;
  if (f->scenario.replies)
    scenario_deinit(&f->scenario);
  print_into(text, sizeof text, SCENARIO, delay_ms);
  if (!scenario_parse(&f->scenario, "scenario.yaml", str_from(text), &err))
    fail_msg("%s", err.text);
}

/* --- watching --- */

static void on_timer_closed(uv_handle_t *handle) {
  struct seen *seen = handle->data;
  seen->armed = false;
}

static void stop_it(const struct seen *seen) {
  if (seen->cancel)
    host_cancel(seen->session, "not needed any more");
  else
    host_stop(seen->session, "interrupted", "SIGINT");
}

static void on_stop_timer(uv_timer_t *timer) {
  struct seen *seen = timer->data;
  stop_it(seen);
  uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void on_record(void *ctx, const struct record *record, struct str line) {
  struct seen *seen = ctx;
  const char *type = record->type_name.p;
  seen->records++;
  assert_int_equal(record->seq, seen->records);
  print_into(seen->last, sizeof seen->last, "%s", type);
  seen->judgments += strcmp(type, "judgment") == 0;
  if (strcmp(type, "admission") == 0) {
    const char *answer = record_text_c(record, MEMBER_ANSWER);
    if (strcmp(answer, "wait") == 0) {
      assert_string_equal(record_text_c(record, MEMBER_REASON), "concurrency");
      seen->waits++;
    }
    seen->admitted += strcmp(answer, "admitted") == 0;
  }
  if (seen->check_file) {
    buf_auto_t file = {0};
    struct err err;
    assert_true(line.n > 0 && line.p[line.n - 1] == '\n');
    assert_true(file_read(session_log_name(seen->session), 1u << 24, &file, &err));
    if (memmem(file.p, file.n, line.p, line.n) == NULL)
      fail_msg("record %d was shown before it was in the log", seen->records);
  }
  if (seen->stop_on && !seen->armed && strcmp(type, seen->stop_on) == 0) {
    seen->stop_on = NULL;
    if (seen->from_within) {
      stop_it(seen);
      return;
    }
    seen->armed = true;
    uv_timer_init(&seen->fixture->loop, &seen->timer);
    seen->timer.data = seen;
    uv_timer_start(&seen->timer, on_stop_timer, 0, 0);
  }
}

static void on_trouble(void *ctx, const char *message) {
  struct seen *seen = ctx;
  seen->troubles++;
  print_into(seen->trouble, sizeof seen->trouble, "%s", message);
}

static void on_finished(void *ctx, struct session *s) {
  struct seen *seen = ctx;
  assert_ptr_equal(s, seen->session);
  seen->finished++;
}

static const struct watcher watcher = {
    .record = on_record, .trouble = on_trouble, .finished = on_finished};

static void start(struct fixture *f, struct seen *seen) {
  struct workflow *wf = make_workflow(f);
  json_auto_t *config = json_pack("{ss sb}", "cwd", f->dir, "interactive", 0);
  struct err err;
  const struct session_params params = {.setup = {.cwd = f->dir, .scenario = &f->scenario},
                                        .workflow = wf,
                                        .task = STR("a task"),
                                        .config = config};
  seen->fixture = f;
  seen->session = host_start(&f->host, &params, &watcher, seen, &err);
  if (seen->session == NULL)
    fail_msg("%s", err.text);
  workflow_unref(wf);
}

static bool choose(void *ctx, const json_t *config, struct session_setup *out, struct err *err) {
  struct fixture *f = ctx;
  if (json_string_value(json_object_get(config, "cwd")) == NULL)
    return err_set(err, ERR_NOT_FOUND, "no cwd");
  *out = (struct session_setup){.cwd = f->dir, .scenario = &f->scenario};
  return true;
}

/* Opens a session and lets it go on; NULL: it cannot. */
static struct session *open_and_go(struct host *host, const struct store_ref *ref, setup_fn set_up,
                                   void *set_up_ctx, const char *reason, const struct watcher *who,
                                   void *ctx, struct err *err) {
  struct session *s = host_open(host, ref, who, ctx, err);
  if (s != NULL && !host_go(s, set_up, set_up_ctx, reason, NULL, err)) {
    session_free(s);
    return NULL;
  }
  return s;
}

/* Folds the log; records are counted on from there. */
static bool resume(struct fixture *f, struct seen *seen, const char *path, struct err *err) {
  seen->fixture = f;
  seen->session = open_and_go(&f->host, log_ref(path), choose, f, "user", &watcher, seen, err);
  if (seen->session == NULL)
    return false;
  seen->records = (int)session_recovered(seen->session);
  return true;
}

static void expect_complete(const struct seen *seen) {
  const struct core *core = session_core(seen->session);
  assert_null(session_broken(seen->session));
  assert_int_equal(core->status, SESSION_ENDED);
  assert_int_equal(core->outcome, END_COMPLETE);
  assert_int_equal(core->method_counts[STAGE_WHEN], 1);
  assert_int_equal(core->method_counts[STAGE_PHASE3_TAG], 1);
}

/* --- the gate --- */

/* Three sessions and one place: everybody gets through, who waited has it in the log. */
TEST_ON(struct fixture *f, setup_one_place, teardown, calls_wait_for_their_place) {
  struct seen seen[3] = {{0}};
  int waits = 0, admitted = 0;
  use_scenario(f, 30);
  for (int i = 0; i < 3; i++)
    start(f, &seen[i]);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int i = 0; i < 3; i++) {
    expect_complete(&seen[i]);
    waits += seen[i].waits;
    admitted += seen[i].admitted;
    session_free(seen[i].session);
  }
  assert_true(waits >= 2);
  assert_int_equal(admitted, waits);
}

/* A session that leaves while it waits takes nobody's place with it. */
TEST_ON(struct fixture *f, setup_one_place, teardown, a_session_that_waits_can_leave) {
  struct seen first = {0}, stopped = {.stop_on = "admission"},
              cancelled = {.stop_on = "admission", .cancel = true}, last = {0};
  use_scenario(f, 200);
  start(f, &first);
  start(f, &stopped);
  start(f, &cancelled);
  start(f, &last);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  expect_complete(&first);
  expect_complete(&last);
  assert_int_equal(session_core(stopped.session)->status, SESSION_STOPPED);
  assert_int_equal(session_core(cancelled.session)->outcome, END_CANCELLED);
  assert_int_equal(stopped.admitted + cancelled.admitted, 0);
  char path[STORE_PATH_BYTES];
  struct err err;
  print_into(path, sizeof path, "%s", session_log_name(stopped.session));
  session_free(first.session);
  session_free(stopped.session);
  session_free(cancelled.session);
  session_free(last.session);
  struct seen again = {0};
  assert_true(resume(f, &again, path, &err));
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  expect_complete(&again);
  session_free(again.session);
}

/* --- tests --- */

TEST_ON(struct fixture *f, setup, teardown, a_session_completes) {
  struct seen seen = {.check_file = true};
  use_scenario(f, 0);
  start(f, &seen);
  assert_int_equal(seen.records, 0); /* nothing before the loop runs */
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  assert_string_equal(seen.last, "session_end");
  assert_int_equal(seen.judgments, 2);
  assert_int_equal(seen.troubles, 0);
  expect_complete(&seen);
  session_free(seen.session);
}
TEST_AGAIN(setup_sync_now, teardown, a_session_completes)

TEST_ON(struct fixture *f, setup, teardown, many_run_at_once) {
  struct seen seen[SESSIONS] = {{0}};
  use_scenario(f, 5);
  for (int i = 0; i < SESSIONS; i++)
    start(f, &seen[i]);
  assert_int_equal(f->host.session_count, SESSIONS);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  for (int i = 0; i < SESSIONS; i++) {
    assert_int_equal(seen[i].finished, 1);
    expect_complete(&seen[i]);
    session_free(seen[i].session);
  }
  assert_int_equal(f->host.session_count, 0);
}
TEST_AGAIN(setup_sync_now, teardown, many_run_at_once)

/* The command prints the logs that are there: its own call_start is among them. */
TEST_ON(struct fixture *f, setup, teardown, a_start_is_in_the_log_first) {
  struct seen seen = {0};
  buf_auto_t log = {0};
  struct err err;
  use_scenario(f, 0);
  start(f, &seen);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_true(file_read(session_log_name(seen.session), 1u << 24, &log, &err));
  struct str rest = buf_view(&log);
  bool found = false;
  while (rest.p != NULL) {
    struct str line = str_next_line(&rest);
    json_auto_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const char *type = json_string_value(json_object_get(record, "type"));
    if (type && strcmp(type, "call_end") == 0 && json_object_get(record, "exit")) {
      const char *text = json_string_value(json_object_get(record, "text"));
      found = true;
      assert_non_null(strstr(text, "\"type\":\"call_start\""));
      assert_non_null(strstr(text, "\"purpose\":\"execute\""));
      assert_null(strstr(text, "\"type\":\"call_end\""));
    }
  }
  assert_true(found);
  session_free(seen.session);
}
TEST_AGAIN(setup_sync_now, teardown, a_start_is_in_the_log_first)

TEST_WITH(setup, teardown, a_stop_can_be_resumed) {
  static const char *const moments[] = {"session_start", "call_start", "call_end", "judgment"};
  struct fixture *f = *state;
  for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
    struct seen seen = {.stop_on = moments[i]};
    struct err err;
    char path[1200];
    use_scenario(f, 60 * 1000);
    start(f, &seen);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(seen.finished, 1);
    assert_string_equal(seen.last, "session_stop");
    assert_int_equal(session_core(seen.session)->status, SESSION_STOPPED);
    assert_true(str_eq_c(buf_view(&session_core(seen.session)->stop_reason), "interrupted"));
    assert_null(session_broken(seen.session));
    print_into(path, sizeof path, "%s", session_log_name(seen.session));

    struct seen second = {0}; /* it is owned until it is freed */
    assert_false(resume(f, &second, path, &err));
    assert_int_equal(err.code, ERR_LOCKED);
    session_free(seen.session);

    use_scenario(f, 0);
    if (!resume(f, &second, path, &err))
      fail_msg("%s: %s", moments[i], err.text);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(second.finished, 1);
    expect_complete(&second);
    session_free(second.session);

    struct seen third = {0}; /* a finished one comes back as it is */
    assert_true(resume(f, &third, path, &err));
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(third.finished, 0);
    expect_complete(&third);
    session_free(third.session);
  }
}
TEST_AGAIN(setup_sync_now, teardown, a_stop_can_be_resumed)

/* Whoever is shown a record may stop the session, whatever record it is. */
TEST_WITH(setup, teardown, a_watcher_may_stop_what_it_watches) {
  static const char *const types[] = {"session_start", "turn_start", "call_start", "call_end",
                                      "stage",         "judgment",   "turn_end",   "session_end"};
  struct fixture *f = *state;
  for (size_t i = 0; i < 2 * ARRAY_LEN(types); i++) {
    struct seen seen = {.stop_on = types[i / 2], .cancel = i % 2 != 0, .from_within = true};
    char path[600];
    use_scenario(f, 0);
    start(f, &seen);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    const struct core *core = session_core(seen.session);
    assert_null(session_broken(seen.session));
    assert_int_equal(seen.finished, 1);
    assert_true(core->status == SESSION_STOPPED || core->status == SESSION_ENDED);
    if (seen.cancel && strcmp(types[i / 2], "session_end") != 0 && core->outcome != END_COMPLETE)
      assert_int_equal(core->outcome, END_CANCELLED);
    bool stopped = core->status == SESSION_STOPPED;
    print_into(path, sizeof path, "%s", session_log_name(seen.session));
    session_free(seen.session);
    if (stopped) {
      struct seen again = {0};
      struct err err;
      if (!resume(f, &again, path, &err))
        fail_msg("%s: %s", types[i / 2], err.text);
      (void)uv_run(&f->loop, UV_RUN_DEFAULT);
      expect_complete(&again);
      session_free(again.session);
    }
  }
}
TEST_AGAIN(setup_sync_now, teardown, a_watcher_may_stop_what_it_watches)

TEST_ON(struct fixture *f, setup, teardown, a_cancel_is_final) {
  struct seen seen = {.stop_on = "judgment", .cancel = true};
  use_scenario(f, 60 * 1000);
  start(f, &seen);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  assert_string_equal(seen.last, "session_end");
  assert_int_equal(session_core(seen.session)->outcome, END_CANCELLED);
  session_free(seen.session);
}
TEST_AGAIN(setup_sync_now, teardown, a_cancel_is_final)

TEST_ON(struct fixture *f, setup, teardown, without_a_store_nothing_is_kept) {
  struct seen seen = {0};
  use_scenario(f, 0);
  f->host.store = NULL;
  start(f, &seen);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  expect_complete(&seen);
  assert_string_equal(session_log_name(seen.session), "");
  session_free(seen.session);
  f->host.store = &f->store;
}
TEST_AGAIN(setup_sync_now, teardown, without_a_store_nothing_is_kept)

TEST_ON(struct fixture *f, setup, teardown, a_given_answer_is_judged) {
  struct seen seen = {0};
  use_scenario(f, 0);
  f->host.store = NULL;
  start(f, &seen);
  host_answer(seen.session, STR("given")); /* of the command: it has no exit, so no rule fits */
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  assert_int_equal(session_core(seen.session)->status, SESSION_STOPPED);
  assert_int_equal(session_core(seen.session)->outcome, END_FAILED);
  session_free(seen.session);
  f->host.store = &f->store;
}

static bool refuse(void *ctx, const json_t *config, struct session_setup *out, struct err *err) {
  (void)ctx;
  (void)config;
  (void)out;
  return err_set(err, ERR_NOT_FOUND, "the working directory is gone");
}

TEST_ON(struct fixture *f, setup, teardown, a_resume_can_be_refused) {
  struct seen seen = {.stop_on = "call_start"};
  struct err err;
  char path[1200];
  use_scenario(f, 60 * 1000);
  start(f, &seen);
  (void)uv_run(&f->loop, UV_RUN_DEFAULT);
  print_into(path, sizeof path, "%s", session_log_name(seen.session));
  session_free(seen.session);
  assert_null(open_and_go(&f->host, log_ref(path), refuse, NULL, "user", &watcher, &seen, &err));
  assert_string_equal(err.text, "the working directory is gone");
  print_into(path, sizeof path, "%s/none.ndjson", f->dir);
  assert_null(open_and_go(&f->host, log_ref(path), choose, f, "user", &watcher, &seen, &err));
  assert_int_equal(err.code, ERR_NOT_FOUND);
}

TEST_ON(struct fixture *f, setup, teardown, a_host_without_sessions_closes) {
  assert_int_equal(f->host.session_count, 0);
}

TEST(ids_are_ordered_by_time) {
  struct host host = {0};
  char last[STORE_ID_BYTES] = "", now[STORE_ID_BYTES];
  for (int i = 0; i < 10000; i++) { /* more than a millisecond's counter holds */
    if (i == 5000)
      session_ids_after(&host, "0fffffff-0000-7fff-8000-000000000000"); /* the clock went back */
    session_id_new(&host, now);
    assert_int_equal(strlen(now), 36);
    assert_int_equal(now[14], '7');
    assert_non_null(strchr("89ab", now[19]));
    assert_true(strcmp(now, last) > 0);
    memcpy(last, now, sizeof last);
  }
}

/* --- stores that fail --- */

#ifdef SEGUE_FAULTS
enum { UNTOUCHED = 10, TOUCHED = 11 };

/* Runs in a child, with a loop of its own. A session that breaks is resumed at once. */
static int run_with_fault(void) {
  struct fixture f = {0};
  struct seen seen = {0}, again = {0};
  struct err err;
  char path[1200];
  int status = UNTOUCHED;
  begin(&f);
  f.host.disk_full_wait_ms = 0; /* gives up at once */
  use_scenario(&f, 0);
  start(&f, &seen);
  (void)uv_run(&f.loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  print_into(path, sizeof path, "%s", session_log_name(seen.session));
  if (session_broken(seen.session) == NULL) {
    expect_complete(&seen);
    session_free(seen.session);
  } else {
    struct stat st;
    status = TOUCHED;
    assert_true(session_broken(seen.session)->text[0] != '\0');
    session_free(seen.session);
    assert_int_equal(stat(path, &st), 0);
    if (st.st_size > 0) { /* else it had not begun */
      if (!resume(&f, &again, path, &err))
        fail_msg("%s", err.text);
      (void)uv_run(&f.loop, UV_RUN_DEFAULT);
      expect_complete(&again);
      session_free(again.session);
    }
  }
  end(&f);
  return status;
}

static int in_child(const char *fault, int (*work)(void)) {
  int status;
  (void)fflush(NULL);
  assert_int_equal(setenv("SEGUE_FAULT", fault, 1), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0)
    leave(work());
  assert_int_equal(unsetenv("SEGUE_FAULT"), 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(a_failing_store_breaks_the_session) {
  static const struct {
    const char *call, *error;
  } faults[] = {{"write", ""}, {"write", ":ENOSPC"}, {"sync", ":ENOSPC"}};
  for (size_t i = 0; i < 2 * ARRAY_LEN(faults); i++) {
    int n = 0, status;
    sync_now = i % 2 == 1; /* the child inherits it */
    do {
      char fault[64];
      print_into(fault, sizeof fault, "fail:%s:%d%s", faults[i / 2].call, ++n, faults[i / 2].error);
      status = in_child(fault, run_with_fault);
      if (status != TOUCHED && status != UNTOUCHED)
        fail_msg("SEGUE_FAULT=%s: status %d", fault, status);
    } while (status == TOUCHED);
    assert_true(n > 5);
  }
  sync_now = false;
}

static int run_with_failed_sync(void) {
  return run_with_fault() == UNTOUCHED ? 0 : 1;
}

TEST(a_failed_sync_is_mended) {
  for (int n = 1; n <= 8; n++) {
    char fault[64];
    print_into(fault, sizeof fault, "fail:sync:%d", n);
    assert_int_equal(in_child(fault, run_with_failed_sync), 0);
  }
}

static int wait_for_space(void) {
  struct fixture f = {0};
  struct seen seen = {0};
  begin(&f);
  use_scenario(&f, 0);
  start(&f, &seen);
  (void)uv_run(&f.loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  assert_int_equal(seen.troubles, 2);
  assert_non_null(strstr(seen.trouble, "space again"));
  expect_complete(&seen);
  session_free(seen.session);
  end(&f);
  return 0;
}

TEST(a_full_disk_is_waited_for) {
  for (int i = 0; i < 2; i++) {
    sync_now = i == 1;
    assert_int_equal(in_child("fail:write:3:ENOSPC", wait_for_space), 0);
    assert_int_equal(in_child("fail:sync:3:ENOSPC", wait_for_space), 0);
  }
  sync_now = false;
}

static int stop_while_full(void) {
  struct fixture f = {0};
  struct seen seen = {.stop_on = "call_start"};
  begin(&f);
  use_scenario(&f, 0);
  start(&f, &seen);
  (void)uv_run(&f.loop, UV_RUN_DEFAULT);
  assert_int_equal(seen.finished, 1);
  assert_non_null(session_broken(seen.session));
  session_free(seen.session);
  end(&f);
  return 0;
}

TEST(a_stop_does_not_wait_for_space) {
  assert_int_equal(in_child("fail:write:2+:ENOSPC", stop_while_full), 0);
  sync_now = true;
  assert_int_equal(in_child("fail:write:2+:ENOSPC", stop_while_full), 0);
  sync_now = false;
}
#endif

TEST_GROUP(warm_up, NULL)
