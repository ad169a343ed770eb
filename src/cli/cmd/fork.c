/* segue fork: begins another session where one was, here or in the daemon. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/forge/forge.h"
#include "cli/forking.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/session_post.h"
#include "cli/trees/session_trees.h"

#include <string.h>

/* --- flags --- */

static bool take_instruction(const struct cli_args *args, json_t *body, struct err *err) {
  const char *path = cli_value(args, "instruction");
  buf_auto_t text = {0};
  if (path == NULL)
    return true;
  bool ok = json_io_read(path, LIMIT_INLINE_TEXT_BYTES, &text, err);
  json_t *value = ok ? json_stringn(buf_c(&text), text.n) : NULL;
  if (ok && value == NULL)
    ok = err_set(err, ERR_USAGE, "%.300s is not UTF-8", path);
  if (ok)
    json_object_set_new(body, "instruction", value);
  return ok;
}

/* Turns the flags into members of POST .../fork. */
static bool fork_body(const struct cli_args *args, json_t *body, struct err *err) {
  const char *cwd = cli_value(args, "cwd");
  bool ok = cli_value(args, "from") != NULL ||
            err_set(err, ERR_USAGE, "say where to start: --from MOVEMENT, or MOVEMENT#N");
  return ok && body_text(args, body, "from", err) && take_instruction(args, body, err) &&
         body_steer(args, body, err) && (cwd == NULL || body_path(body, "cwd", "--cwd", cwd, err));
}

/* --- here --- */

static bool worked_on(const struct store_ref *ref, const char *branch) {
  AUTO(trees_deinit) struct trees t = {0};
  struct err err;
  if (!trees_read(&t, ref, &err))
    return false;
  const struct tree_item *own = trees_own(&t, &err);
  return own != NULL && strcmp(own->branch, branch) == 0;
}

/* Finds the newest session that worked on that branch. False: none did. */
static bool find_newest_of(const char *branch, const char *logs, struct store_ref *ref,
                           struct err *err) {
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  bool found = false;
  if (!resolve_id_store(logs, &store, err) ||
      (store_exists(&store) && !store_list(&store, &ids, &count, err)))
    return false;
  for (int named = 1; named >= 0 && !found; named--) /* first those whose id it holds */
    for (size_t i = 0; i < count && !found; i++)
      if ((strstr(branch, ids[i].id) != NULL) == (named == 1)) {
        store_ref(&store, ids[i].id, ref);
        found = worked_on(ref, branch);
      }
  free(ids);
  return found || err_set(err, ERR_NOT_FOUND, "no session worked on branch %.200s", branch);
}

/* Finds the session of a branch: the one in its name, or else any that worked on it. */
static bool find_by_branch(const struct cli_args *args, const char *branch, struct store_ref *ref,
                           struct err *err) {
  const char *word = args->word_count > 0 ? args->words[0] : NULL;
  AUTO(trees_deinit) struct trees t = {0};
  struct err why;
  if (word != NULL) {
    if (!resolve_id_session(word, cli_value(args, "logs"), NULL, ref, err) ||
        !trees_read(&t, ref, err))
      return false;
    const struct tree_item *own = trees_own(&t, err);
    bool is = own != NULL && strcmp(own->branch, branch) == 0;
    if (own != NULL && !is)
      err_set(err, ERR_USAGE, "the pull request is of branch %.200s, the session's is %.200s",
              branch, own->branch);
    return is;
  }
  return find_newest_of(branch, cli_value(args, "logs"), ref, &why) ||
         err_set(err, ERR_NOT_FOUND,
                 "no session here worked on the pull request's branch %.200s: start one with segue "
                 "run WORKFLOW --pr N",
                 branch);
}

/* Reads what is new at the forge, and finds where the session's work stands now. */
static bool take_pull_request(const struct cli_args *args, struct fork_wish *w,
                              struct store_ref *ref, struct forge_task *got, struct err *err) {
  if (!forge_task_read(got, cli_value_or(args, "cwd", "."), NULL, cli_value(args, "pr"), err))
    return false;
  const char *branch = json_string_value(got->item.head);
  if (branch == NULL)
    return err_set(err, ERR_INVALID, "the answer about the pull request names no branch");
  if (json_array_size(got->item.said) + json_array_size(got->item.red) == 0)
    return err_set(err, ERR_NOT_FOUND,
                   "pull request %ld has no comments and no failed checks: there is nothing to do",
                   got->item.number);
  if (!find_by_branch(args, branch, ref, err))
    return false;
  forge_quote(&got->item, &got->text);
  w->more = buf_view(&got->text);
  json_object_set_new(got->source, "ours", json_true());
  w->source = got->source;
  w->base = forge_task_base(got, branch);
  return true;
}

static int fork_here(const struct cli_args *args, json_t *body) {
  struct store_ref ref;
  AUTO(forge_task_deinit) struct forge_task got = {0};
  struct err err = {0};
  struct fork_wish w = {.command = "fork",
                        .ref = &ref,
                        .from = cli_value(args, "from"),
                        .body = body,
                        .scenario = cli_value(args, "scenario"),
                        .mode = ui_mode_of(args)};
  bool ok;
  if (cli_value(args, "pr") != NULL)
    ok = take_pull_request(args, &w, &ref, &got, &err);
  else
    ok = resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err);
  return ok ? forking_run(&w) : cli_fail("fork", &err);
}

static int fork_run(const struct cli_args *args) {
  struct err err = {0};
  bool there = cli_flag(args, "daemon"), pr = cli_value(args, "pr") != NULL;
  if (pr && there)
    err_set(&err, ERR_USAGE, "--pr only works for a fork in this terminal: leave out --daemon");
  else if (!pr && args->word_count == 0)
    err_set(&err, ERR_USAGE, "name the session, or give --pr N");
  if (err.code != ERR_NONE)
    return cli_fail("fork", &err);
  if (!there && cli_value(args, "socket"))
    return cli_refuse("fork", "--socket needs --daemon");
  json_auto_t *body = json_object();
  if (!fork_body(args, body, &err))
    return cli_fail("fork", &err);
  return there ? session_post_told(args, "fork", body) : fork_here(args, body);
}

const struct cli_command cmd_fork = {COMMAND_FORK, .run = fork_run};
