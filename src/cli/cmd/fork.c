/* segue fork: another session that begins where one was, here or in the daemon. */
#include "host/fork.h"
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/json_io.h"
#include "cli/replies.h"
#include "cli/session_post.h"
#include "cli/session_ui.h"
#include "host/backends.h"
#include "host/paths.h"
#include "host/steer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"from", 0, "MOVEMENT[#N]", "begin with this run of it (default: the last one)", false},
    {"instruction", 'i', "FILE|-", "another instruction for that movement", false},
    BODY_STEER_OPTIONS,
    {"scenario", 's', "FILE", "replies of the script provider (default: the session's own)", false},
    {"cwd", 'C', "DIR", "where agents work (default: where the session's did)", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {"json", 0, NULL, "print the log records as they become durable", false},
    {"quiet", 'q', NULL, "print nothing but errors", false},
    {"daemon", 'd', NULL, "let the daemon run it; prints its id at once", false},
    {"socket", 'S', "PATH", "the daemon's control socket, with --daemon", false},
    {0},
};

/* --- flags --- */

static bool take_instruction(const struct cli_args *args, json_t *body, struct err *err) {
  const char *path = cli_value(args, "instruction");
  struct buf text = {0};
  if (path == NULL)
    return true;
  bool ok;
  if (strcmp(path, "-") == 0)
    ok = file_read_fd(STDIN_FILENO, "standard input", LIMIT_INLINE_TEXT_BYTES, &text, err);
  else
    ok = file_read(path, LIMIT_INLINE_TEXT_BYTES, &text, err);
  json_t *value = ok ? json_stringn(buf_c(&text), text.n) : NULL;
  if (ok && value == NULL)
    ok = err_set(err, ERR_USAGE, "%.300s is not UTF-8", path);
  if (ok)
    json_object_set_new(body, "instruction", value);
  buf_deinit(&text);
  return ok;
}

/* The flags as members of POST .../fork. */
static json_t *fork_body(const struct cli_args *args, struct err *err) {
  json_t *body = json_object();
  const char *cwd = cli_value(args, "cwd");
  bool ok = cli_value(args, "from") != NULL ||
            err_set(err, ERR_USAGE, "say where it begins: --from MOVEMENT, or MOVEMENT#N");
  ok = ok && body_text(args, body, "from", err) && take_instruction(args, body, err) &&
       body_steer(args, body, err) && (cwd == NULL || body_path(body, "cwd", "--cwd", cwd, err));
  if (ok)
    return body;
  json_decref(body);
  return NULL;
}

/* --- in the daemon --- */

static int fork_there(const struct cli_args *args, json_t *body) {
  const char *scenario = cli_value(args, "scenario");
  struct client_reply reply = {0};
  struct err err = {0};
  int status = STATUS_COMPLETE;
  bool ok = cli_value(args, "logs") == NULL ||
            err_set(&err, ERR_USAGE, "--daemon has its own folder of logs: leave out --logs");
  ok = ok && (scenario == NULL || body_path(body, "scenario", "--scenario", scenario, &err)) &&
       session_post(cli_value(args, "socket"), args->words[0], "fork", body, &reply, &err);
  if (!ok) {
    status = cli_fail("fork", &err);
  } else if (cli_flag(args, "json")) {
    json_io_print(reply.value, JSON_IO_COMPACT);
  } else if (!cli_flag(args, "quiet")) {
    cli_put_safe(stdout, session_post_id(&reply));
    putchar('\n');
  }
  client_reply_deinit(&reply);
  return status;
}

/* --- here --- */

/* All that is gathered before the session begins. */
struct forking {
  struct fork fork;
  struct steer steer;
  struct replies replies;
  const char **env;
  json_t *body;
};

static bool is_dir(const char *path) {
  struct stat st;
  return path != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool fork_prepare(struct forking *k, const struct cli_args *args,
                         const struct store_ref *ref, const struct config *user,
                         const struct provider_registry *registry, struct err *err) {
  const char *scenario = cli_value(args, "scenario");
  const json_t *instruction = json_object_get(k->body, "instruction");
  const char *cwd = json_string_value(json_object_get(k->body, "cwd"));
  if (!fork_read(&k->fork, ref, cli_value(args, "from"), err) ||
      !steer_parse_fork(&k->steer, k->body, registry, err))
    return false;
  if (scenario != NULL && !replies_take(&k->replies, scenario, k->steer.changed, err))
    return false;
  if (instruction != NULL &&
      !fork_set_instruction(
          &k->fork, (struct str){json_string_value(instruction), json_string_length(instruction)},
          user, registry, err))
    return false;
  if (!fork_settle(&k->fork, k->steer.changed, cwd, user, registry, k->replies.has, err) ||
      !replies_find(&k->replies, k->fork.config, err))
    return false;
  cwd = json_string_value(json_object_get(k->fork.config, "cwd"));
  return is_dir(cwd) ||
         err_set(err, ERR_NOT_FOUND, "the working directory %.300s is gone", cwd ? cwd : "");
}

static void say_where(const struct forking *k) {
  const struct core *core = &k->fork.core;
  struct str name = core->workflow->movements[core->next].name;
  struct buf text = {0};
  buf_safe(&text, name, false);
  fprintf(stderr,
          "segue fork: begins with %s, behind record %llu of %s; files and agents' conversations "
          "are as they are now, not as they were then\n",
          buf_c(&text), (unsigned long long)core->seq, core->session);
  buf_deinit(&text);
}

static int fork_begin(struct forking *k, const struct cli_args *args, const char *where,
                      const struct provider_registry *registry) {
  enum ui_mode mode = ui_mode_of(args);
  struct ui ui;
  struct err err = {0};
  if (!ui_init(&ui, "fork", mode, where, registry, &err)) {
    (void)cli_fail("fork", &err);
    return STATUS_FAILED;
  }
  struct session_params params = {
      .setup = {.cwd = json_string_value(json_object_get(k->fork.config, "cwd")),
                .pass_env = k->env,
                .scenario = replies_scenario(&k->replies)}};
  fork_params(&k->fork, &params);
  ui.solo.session = host_start(&ui.solo.host, &params, &ui.watcher, &ui, &err);
  if (ui.solo.session == NULL) {
    (void)cli_fail("fork", &err);
    ui_drop(&ui);
    return STATUS_FAILED;
  }
  if (mode == UI_LINES)
    say_where(k);
  paths_note_last(session_log_name(ui.solo.session));
  return ui_wait(&ui);
}

static int fork_here(const struct cli_args *args, json_t *body) {
  struct forking k = {.body = body};
  struct config user = {0};
  struct provider_registry *registry = NULL;
  struct err err = {0};
  struct store_ref ref;
  struct store store;
  int status;
  if (!find_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err))
    return cli_fail("fork", &err);
  store_of(&ref, &store);
  if (config_load(&user, &err) && (registry = backends_new(&user, &err)) != NULL &&
      fork_prepare(&k, args, &ref, &user, registry, &err)) {
    backends_warn(registry);
    k.env = user.env;
    status = fork_begin(&k, args, store.where, registry);
  } else {
    status = cli_fail("fork", &err);
  }
  replies_deinit(&k.replies);
  steer_deinit(&k.steer);
  fork_deinit(&k.fork);
  registry_free(registry);
  config_deinit(&user);
  return status;
}

static int fork_run(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_fork, argc, argv, 1, 1, &args, &status))
    return status;
  bool there = cli_flag(&args, "daemon");
  if (!there && cli_value(&args, "socket")) {
    (void)err_set(&err, ERR_USAGE, "--socket goes with --daemon");
    return cli_fail("fork", &err);
  }
  json_t *body = fork_body(&args, &err);
  if (body == NULL)
    return cli_fail("fork", &err);
  status = there ? fork_there(&args, body) : fork_here(&args, body);
  json_decref(body);
  return status;
}

const struct cli_command cmd_fork = {
    .name = "fork",
    .arguments = "ID|last|FILE --from MOVEMENT[#N] [options]",
    .summary = "begin another session where one was",
    .help =
        "A new session that begins with that movement as it stood when the old one entered it: its "
        "values,\n"
        "the last answer, how often each movement was entered, agents' conversations. All of that "
        "stands in\n"
        "its own log (record carried, with the parent's id, record and hash), so it needs the old "
        "one no\n"
        "more. Nothing before is called again, and the old session is not touched, ended or not.\n"
        "The working tree is not taken back, nor is what agents were told in their conversations.\n"
        "--max-movements counts the turns before, too. Exit statuses are those of segue run.",
    .options = options,
    .minor = true,
    .run = fork_run,
};
