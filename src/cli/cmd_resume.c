#include "base/log.h"
#include "cli/ask_told.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/json_io.h"
#include "cli/session_post.h"
#include "cli/session_ui.h"
#include "host/backends.h"
#include "store/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"scenario", 's', "FILE", "replies of the script provider (default: the session's own)", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {"json", 0, NULL, "print the log records as they become durable", false},
    {"quiet", 'q', NULL, "print nothing but errors", false},
    {"daemon", 'd', NULL, "let the daemon go on with it; prints its id at once", false},
    {"socket", 'S', "PATH", "the daemon's control socket, with --daemon", false},
    {0},
};

/* What the session ran with, found again from its first record. */
struct found {
  const char *scenario_option;
  struct scenario scenario;
  bool has_scenario;
  char cwd[1024];
  const char **env;
};

static bool find_scenario(struct found *f, const json_t *config, struct err *err) {
  const json_t *written = json_object_get(config, "scenario");
  const char *path = json_string_value(json_object_get(written, "path"));
  const char *sha256 = json_string_value(json_object_get(written, "sha256"));
  if (f->scenario_option)
    path = f->scenario_option;
  if (path == NULL)
    return true;
  if (!scenario_load(&f->scenario, path, err))
    return false;
  f->has_scenario = true;
  if (!f->scenario_option && sha256 && strcmp(sha256, f->scenario.sha256) != 0)
    return err_set(
        err, ERR_USAGE,
        "the scenario %.300s changed since the session began: its replies would be others; "
        "give --scenario to use it all the same",
        path);
  return true;
}

static bool choose(void *ctx, const json_t *config, struct session_setup *setup, struct err *err) {
  struct found *f = ctx;
  struct stat st;
  size_t i;
  json_t *name;
  const json_t *env = json_object_get(config, "env");
  const char *cwd = json_string_value(json_object_get(config, "cwd"));
  if (cwd == NULL || stat(cwd, &st) != 0 || !S_ISDIR(st.st_mode))
    return err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
  if (strlen(cwd) >= sizeof f->cwd)
    return err_set(err, ERR_USAGE, "the working directory %.100s... is too long: %zu bytes", cwd,
                   strlen(cwd));
  (void)snprintf(f->cwd, sizeof f->cwd, "%s", cwd);
  if (!find_scenario(f, config, err))
    return false;
  f->env = xcalloc(json_array_size(env) + 1, sizeof *f->env);
  json_array_foreach(env, i, name) {
    f->env[i] = json_string_value(name); /* lives with the session's config */
  }
  *setup = (struct session_setup){
      .cwd = f->cwd, .pass_env = f->env, .scenario = f->has_scenario ? &f->scenario : NULL};
  return true;
}

/* The first record; NULL when there is none to be read. */
static json_t *read_start(const char *path) {
  struct reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, path, &err))
    return NULL;
  json_t *record = reader_next(&r, &line) ? json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL) : NULL;
  reader_close(&r);
  return record;
}

static bool is_text(const json_t *value, const char *text) {
  const char *found = json_string_value(value);
  return found != NULL && strcmp(found, text) == 0;
}

/* The first record of `segue judge`, whose workflow is made and no file's: see cmd_judge. */
static bool is_of_judge(const json_t *start) {
  const json_t *workflow = json_object_get(start, "workflow");
  const json_t *movement = json_array_get(json_object_get(workflow, "movements"), 0);
  return start != NULL && json_object_get(start, "workflow_path") == NULL &&
         is_text(json_object_get(workflow, "name"), "judge") &&
         is_text(json_array_get(json_object_get(movement, "command"), 0), "given");
}

/* Did `segue judge` end before the text that it was given was in the log? Its place is a command that
 * is never run. */
static bool lacks_its_text(const char *path) {
  struct reader r;
  struct str line;
  struct err err;
  bool lacks = false;
  if (!reader_open(&r, path, &err))
    return false;
  for (bool first = true; (first || lacks) && reader_next(&r, &line); first = false) {
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    const json_t *type = json_object_get(record, "type");
    bool answers = is_text(type, "call_end") && json_object_get(record, "error") == NULL;
    lacks = first ? is_of_judge(record) : !answers && !is_text(type, "session_end");
    json_decref(record);
  }
  reader_close(&r);
  return lacks;
}

/* The turns that are in the log already: so that the closing line counts all of them. Of a session that
 * ended, its last record is what --json prints. */
static void feed_past(struct ui *ui, const char *path, uint64_t records, bool ended) {
  struct reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, path, &err))
    return;
  while (records-- > 0 && reader_next(&r, &line)) {
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record)
      (void)summary_feed_json(&ui->summary, record);
    json_decref(record);
    if (records == 0 && ended && ui->mode == UI_JSON)
      printf(STR_FMT "\n", STR_ARG(line));
  }
  reader_close(&r);
}

/* Of a question of `segue ask`, whose log stands now: what that command would have printed. A session
 * that stopped without a verdict has told why already. */
static int print_answer(const char *path, enum ui_mode mode, int status) {
  struct ask_told told = {0};
  struct reader r;
  struct str line;
  struct err err;
  if (!reader_open(&r, path, &err))
    return status;
  while (reader_next(&r, &line) && r.whole) {
    json_t *record = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
    if (record)
      ask_told_feed(&told, record);
    json_decref(record);
  }
  reader_close(&r);
  if (told.structured != NULL) {
    json_t *result = ask_told_result(&told, NULL);
    bool has_value = ask_told_has_value(result);
    status = has_value ? STATUS_COMPLETE : STATUS_FAILED;
    if (has_value && mode != UI_QUIET)
      json_io_print(json_object_get(result, "value"),
                    isatty(STDOUT_FILENO) == 1 ? JSON_IO_TERMINAL : JSON_IO_COMPACT);
    else if (!has_value)
      ask_told_complain("resume", result);
    json_decref(result);
  }
  ask_told_deinit(&told);
  return status;
}

/* Its turn comes as that of one that is submitted. */
static int resume_there(const struct cli_args *args) {
  struct client_reply reply = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  if (cli_value(args, "scenario") || cli_value(args, "logs")) {
    (void)err_set(&err, ERR_USAGE,
                  "--daemon goes on with what the session was submitted with: leave out --%s",
                  cli_value(args, "scenario") ? "scenario" : "logs");
    return cli_fail("resume", &err);
  }
  if (!session_post(cli_value(args, "socket"), args->words[0], "resume", &reply, &err)) {
    status = cli_fail("resume", &err);
  } else if (cli_flag(args, "json")) {
    json_io_print(reply.value, JSON_IO_COMPACT);
  } else if (!cli_flag(args, "quiet")) {
    cli_put_safe(stdout, session_post_id(&reply));
    putchar('\n');
  }
  client_reply_deinit(&reply);
  return status;
}

static int resume(int argc, char **argv) {
  struct cli_args args;
  struct ui ui;
  struct found found = {0};
  struct config user = {0};
  struct provider_registry *registry = NULL;
  struct err err = {0};
  char path[FIND_PATH_BYTES], folder[FIND_PATH_BYTES];
  int status;
  if (!cli_parse(&cmd_resume, argc, argv, 1, 1, &args, &status))
    return status;
  if (cli_flag(&args, "daemon"))
    return resume_there(&args);
  if (cli_value(&args, "socket")) {
    (void)err_set(&err, ERR_USAGE, "--socket goes with --daemon");
    return cli_fail("resume", &err);
  }
  const char *logs = cli_value(&args, "logs"), *word = args.words[0];
  found.scenario_option = cli_value(&args, "scenario");
  if (!find_session(word, logs, NULL, path, &err))
    return cli_fail("resume", &err);
  (void)snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash == NULL)
    (void)snprintf(folder, sizeof folder, ".");
  else
    *slash = '\0';
  enum ui_mode mode = cli_flag(&args, "json")    ? UI_JSON
                      : cli_flag(&args, "quiet") ? UI_QUIET
                                                 : UI_LINES;
  if (!config_load(&user, &err) || (registry = backends_new(&user, &err)) == NULL) {
    status = cli_fail("resume", &err);
    goto out;
  }
  backends_warn(registry);
  json_t *start = mode == UI_JSON ? NULL : read_start(path);
  bool asks = ask_told_is_of(start);
  json_decref(start);
  if (!ui_init(&ui, "resume", asks ? UI_QUIET : mode, folder, registry, &err)) {
    (void)cli_fail("resume", &err);
    status = STATUS_FAILED;
    goto out;
  }
  if (lacks_its_text(path)) {
    (void)err_set(&err, ERR_IO,
                  "the log ends before the text that was to be judged: judge it again");
    (void)cli_fail("resume", &err);
    ui_drop(&ui);
    status = STATUS_FAILED;
    goto out;
  }
  ui.solo.session =
      host_resume(&ui.solo.host, path, choose, &found, "user", &ui.watcher, &ui, &err);
  if (ui.solo.session == NULL) {
    status = cli_fail("resume", &err);
    ui_drop(&ui);
  } else {
    const struct core *core = session_core(ui.solo.session);
    bool ended = core->status == SESSION_ENDED;
    feed_past(&ui, path, session_recovered(ui.solo.session), ended);
    if (ended)
      ui_close(&ui);
    status = ui_wait(&ui);
    if (asks)
      status = print_answer(path, mode, status);
  }
  if (found.has_scenario)
    scenario_deinit(&found.scenario);
  free(found.env);
out:
  registry_free(registry);
  config_deinit(&user);
  return status;
}

const struct cli_command cmd_resume = {
    .name = "resume",
    .arguments = "ID|last|FILE [options]",
    .summary = "go on with a session that stopped or crashed",
    .help =
        "A call that was in flight is repeated as its next attempt; what is judged stays judged. "
        "Of a\n"
        "finished session the end is printed again (with --json its last record) and its exit "
        "status\n"
        "returned; of a question of segue ask, finished or not, what ask prints: the value. With\n"
        "--scenario, replies that were taken count by their position: add new ones at the end of "
        "the\n"
        "old list.\n"
        "This program runs the session itself, unless --daemon says otherwise: then the daemon "
        "that\n"
        "it was submitted to does, and segue show ID --follow shows it.",
    .options = options,
    .run = resume,
};
