/* segue submit: gives a workflow to the daemon. */
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/forge/forge.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "cli/trust.h"
#include "core/record.h"
#include "daemon/client.h"
#include "daemon/launch.h"
#include "format/json_object.h"
#include "host/key_leak.h"
#include "host/paths.h"
#include "host/single_session.h"
#include "os/clock.h"
#include "store/worker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- to a shared store --- */

/* Submits to a shared store, where no daemon is needed: writes the first record, and a worker with
 * a free place takes the session. */

struct submitting {
  struct single_session solo;
  bool written;
  struct err err;
};

static void submitting_on_record(void *ctx, const struct record *record, struct str line) {
  struct submitting *s = ctx;
  (void)record;
  (void)line;
  s->written = true;
  single_session_finished(&s->solo);
}

static void submitting_on_finished(void *ctx, struct session *session) {
  struct submitting *s = ctx;
  if (session_broken(session) != NULL)
    s->err = *session_broken(session);
  single_session_finished(&s->solo);
}

static const struct watcher submitting_watcher = {.record = submitting_on_record,
                                                  .finished = submitting_on_finished};

static json_t *submitting_write(struct submitting *s, const struct launch *l, struct err *err) {
  const struct session_params params = {.setup = l->setup,
                                        .workflow = l->workflow,
                                        .workflow_path = l->workflow_path,
                                        .task = buf_view(&l->task),
                                        .task_blob = l->task_blob,
                                        .config = l->config,
                                        .facets = l->facets,
                                        .hold = true};
  s->solo.session = host_start(&s->solo.host, &params, &submitting_watcher, s, err);
  if (s->solo.session == NULL)
    return NULL;
  (void)single_session_run(&s->solo, NULL, NULL);
  if (!s->written) {
    *err = s->err;
    return NULL;
  }
  return json_pack("{ss ss ss}", "id", session_core(s->solo.session)->session, "status", "queued",
                   "log", session_log_name(s->solo.session));
}

/* Submits a session. body: as in POST /v1/sessions. Returns the session as far as it is known
 * ("id", "status", "log"), a new reference; NULL: err, or errors of the workflow. */
static json_t *submitting_send(const char *store, const json_t *body, struct err *err,
                               struct err_list *errors) {
  struct submitting s = {.written = false};
  struct launch l;
  json_t *told = NULL;
  struct generation *generation = generation_new(err);
  if (generation == NULL)
    return NULL;
  if (single_session_init_to_submit(&s.solo, store, generation->registry, err)) {
    struct launch_env env = {
        .generation = generation, .store = &s.solo.store, .workflows = s.solo.host.workflows};
    launch_init(&l, &env);
    if (launch_parse(&l, LAUNCH_SESSION, body, err, errors)) {
      launch_share(&l);
      told = submitting_write(&s, &l, err);
    }
    single_session_deinit(&s.solo);
    launch_deinit(&l);
  }
  generation_unref(generation);
  return told;
}

/* --- the command --- */

static bool set_task(const struct cli_args *args, json_t *body, struct err *err) {
  buf_auto_t task = {0};
  bool ok = setup_task(args, &task, err) && forge_task_take(args, &task, body, err);
  if (ok && !utf8_valid(buf_c(&task), task.n))
    ok = err_set(err, ERR_USAGE, "the task is not UTF-8");
  if (ok && cli_flag(args, "allow-secret"))
    json_object_set_new(body, "allow_secret", json_true());
  else if (ok) /* the daemon knows its own environment, not ours */
    ok = keys_check(NULL, buf_view(&task), NULL, "--allow-secret", err);
  if (ok && cli_flag(args, "interactive"))
    json_object_set_new(body, "interactive", json_true());
  if (ok)
    setup_task_typed(args, body);
  if (ok && task.n > 0)
    json_object_set_new(body, "task", json_stringn(task.p, task.n));
  return ok;
}

static bool set_inputs(const struct cli_args *args, const char *path, json_t *body,
                       struct err *err) {
  json_auto_t *inputs = json_object();
  bool ok = inputs_read(args, inputs, err);
  if (ok)
    inputs_ask(args, path, inputs);
  if (ok && json_object_size(inputs) > 0)
    json_object_set(body, "inputs", inputs);
  return ok;
}

/* Reads HH:MM as the nearest such local time, so that for a late timer it has just passed. */
static bool clock_time(const char *text, int64_t now_ms, int64_t *out_ms) {
  enum { HALF_DAY_MS = 12 * 3600 * 1000 };
  unsigned hour, minute;
  char rest;
  time_t now = (time_t)(now_ms / 1000);
  struct tm day;
  if (sscanf(text, "%2u:%2u%c", &hour, &minute, &rest) != 2 || hour > 23 || minute > 59 ||
      localtime_r(&now, &day) == NULL)
    return false;
  day.tm_hour = (int)hour;
  day.tm_min = (int)minute;
  day.tm_sec = 0;
  day.tm_isdst = -1;
  *out_ms = (int64_t)mktime(&day) * 1000;
  if (*out_ms - now_ms > HALF_DAY_MS)
    day.tm_mday--;
  else if (now_ms - *out_ms > HALF_DAY_MS)
    day.tm_mday++;
  day.tm_isdst = -1;
  *out_ms = (int64_t)mktime(&day) * 1000;
  return true;
}

/* Reads which sessions it is to begin after. What `last` means depends on where one stands; the
 * rest is for whoever has the store. */
static bool set_after(const struct cli_args *args, json_t *body, struct err *err) {
  json_t *ids = NULL;
  const char *words;
  for (size_t i = 0; (words = cli_values(args, "after", i)) != NULL; i++)
    for (struct str rest = str_from(words), word = STR(","); word.n > 0;) {
      word = str_cut(&rest, ',');
      struct store_ref ref;
      char id[STORE_ID_BYTES];
      bool last = str_eq_c(word, "last");
      if (last &&
          !resolve_id_session("last", cli_store(args), cli_value(args, "socket"), &ref, err))
        return false;
      if (last)
        store_ref_id(&ref, id);
      if (ids == NULL)
        json_object_set_new(body, "after", ids = json_array());
      json_array_append_new(ids, last ? json_string(id) : json_stringn(word.p, word.n));
    }
  if (ids == NULL && cli_flag(args, "after-any-end"))
    return err_set(err, ERR_USAGE, "--after-any-end needs --after ID");
  if (cli_flag(args, "after-any-end"))
    json_object_set_new(body, "after_any_end", json_true());
  return true;
}

/* Reads when and how the session may start. Sets *late if its time has passed, so that nothing is
 * submitted. */
static bool set_turn(const struct cli_args *args, json_t *body, bool *late, struct err *err) {
  const char *last = cli_value(args, "not-after");
  int64_t last_ms, now_ms = clock_real_ms();
  char text[RECORD_TIME_BYTES];
  if (cli_value(args, "if-running") != NULL && cli_value(args, "unique") == NULL)
    return err_set(err, ERR_USAGE, "--if-running needs --unique KEY");
  if (!set_after(args, body, err))
    return false;
  if (!body_text(args, body, "unique", err) || !body_text(args, body, "if-running", err))
    return false;
  if (last == NULL)
    return true;
  if (!clock_time(last, now_ms, &last_ms) && !record_time_parse(last, &last_ms))
    return err_set(err, ERR_USAGE,
                   "--not-after %.40s must be a time of the day, such as 06:00, or one in UTC, "
                   "such as 2026-11-21T06:00:00.000Z",
                   last);
  record_time(last_ms, text);
  json_object_set_new(body, "not_after", json_string(text));
  *late = last_ms <= now_ms;
  return true;
}

static bool make_body(const struct cli_args *args, json_t *body, bool *late, struct err *err) {
  const char *cwd = cli_value_or(args, "cwd", "."), *scenario = cli_value(args, "scenario");
  char found[PATHS_BYTES];
  const char *path = paths_workflow(args->words[0], cwd, found, err);
  if (path != NULL && err->code != ERR_NONE)
    log_warn("%s", err->text);
  return path != NULL && body_path(body, "workflow", "WORKFLOW", path, err) &&
         body_path(body, "cwd", "--cwd", cwd, err) &&
         (scenario == NULL || body_path(body, "scenario", "--scenario", scenario, err)) &&
         body_text(args, body, "model", err) && body_providers(args, body, err) &&
         body_judge(args, body, err) && body_replace(args, body, err) &&
         setup_options(args, body, err) && setup_place(args, body, err) &&
         setup_on(args, body, err) && set_turn(args, body, late, err) &&
         set_task(args, body, err) && set_inputs(args, path, body, err) &&
         (*late || trust_submit(args, body, err));
}

/* Prints the errors of the workflow as `segue run` does. */
static bool print_errors(const struct client_reply *reply) {
  const json_t *errors = json_object_get(reply->value, "errors");
  JSON_EACH(errors, i, item) {
    const char *file = cli_text(item, "file");
    const char *message = cli_text(item, "message");
    struct err err = {0};
    if (file != NULL)
      err_set_at(&err, ERR_FILE, file, (int)json_integer_value(json_object_get(item, "line")),
                 (int)json_integer_value(json_object_get(item, "column")), "%s",
                 message ? message : "");
    else
      err_set(&err, ERR_FILE, "%s", message ? message : "");
    (void)cli_fail("submit", &err);
  }
  return json_array_size(errors) > 0;
}

/* Does what `segue show --follow` does with the session's log. In a shared store it is no worker
 * any more, since it takes nothing and would be counted among those that may. */
static int submit_follow(const struct cli_args *args, const json_t *session) {
  const char *socket = cli_value(args, "socket");
  const char *name = json_string_value(json_object_get(session, socket ? "id" : "log"));
  char *argv[8] = {"show", "--follow", name ? strdup(name) : NULL};
  int argc = 3, status = STATUS_FAILED;
  if (!cli_flag(args, "follow"))
    argv[argc++] = "--quiet";
  else if (cli_flag(args, "json"))
    argv[argc++] = "--json";
  if (cli_flag(args, "verbose"))
    argv[argc++] = "--verbose";
  char_auto_t *asked = socket ? strdup(socket) : NULL;
  worker_leave_all();
  if (asked != NULL) {
    argv[argc++] = "--socket";
    argv[argc++] = asked;
  }
  if (argv[2] != NULL)
    status = cli_run(&cmd_show, argc, argv);
  free(argv[2]);
  return status;
}

static int submit_run(const struct cli_args *args) {
  AUTO(client_reply_deinit) struct client_reply reply = {0};
  struct err err = {0};
  json_auto_t *body = json_object();
  bool late = false, made = make_body(args, body, &late, &err);
  bool shared = cli_store(args) != NULL && cli_value(args, "socket") == NULL;
  if (made && shared && cli_value(args, "unique") != NULL)
    made = err_set(&err, ERR_USAGE, "--unique needs a daemon: give its --socket");
  if (made && late) {
    fprintf(stderr, "segue submit: it is past %s: nothing was submitted\n",
            cli_value(args, "not-after"));
    return STATUS_COMPLETE;
  }
  if (made && shared) {
    AUTO(err_list_deinit) struct err_list errors = {0};
    reply.value = submitting_send(cli_store(args), body, &err, &errors);
    for (size_t i = 0; i < errors.count; i++)
      (void)cli_fail("submit", &errors.items[i]);
    if (reply.value == NULL)
      return errors.count > 0 ? STATUS_USAGE : cli_fail("submit", &err);
  } else if (!made ||
             !client_ask(cli_value(args, "socket"), "POST", "/v1/sessions", body, &reply, &err)) {
    return cli_fail("submit", &err);
  }
  if (client_problem(&reply, &err))
    return print_errors(&reply) ? STATUS_USAGE : cli_fail("submit", &err);
  if (reply.status == 200)
    fprintf(stderr, "segue submit: %s is already running: nothing was submitted\n",
            cli_value(args, "unique"));
  if (json_is_string(json_object_get(reply.value, "log")))
    paths_note_last(cli_text(reply.value, "log"), cli_text(body, "cwd"));
  if (cli_flag(args, "json"))
    json_io_print(reply.value, JSON_IO_COMPACT);
  else if (!cli_flag(args, "follow"))
    cli_say(stdout, "%s\n", cli_word(reply.value, "id"));
  fflush(stdout);
  if (cli_flag(args, "follow") || cli_flag(args, "wait"))
    return submit_follow(args, reply.value);
  return STATUS_COMPLETE;
}

const struct cli_command cmd_submit = {COMMAND_SUBMIT, .run = submit_run};
