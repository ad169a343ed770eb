/* Reads the user's hidden tests, and runs them on a copy of a session's work. */
#include "host/hidden_tests.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/checks.h"
#include "core/movement_limits.h"
#include "core/sandbox_settings.h"
#include "evidence/base.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/serve.h"
#include "host/paths.h"
#include "host/session.h"
#include "host/test_reports.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/loop.h"
#include "os/tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- settings --- */

/* Makes ~/PATH absolute. */
static json_t *home_path(struct str path) {
  const char *home = getenv("HOME");
  bool tilde = path.n > 0 && path.p[0] == '~' && (path.n == 1 || path.p[1] == '/') && home != NULL;
  return tilde ? json_sprintf("%s%.*s", home, (int)path.n - 1, path.p + 1) : json_text(path);
}

static bool read_hidden_key(json_t *set, const char *path, const struct yaml_pair *pair,
                            struct err *err) {
  static const char *const keys[] = {"folder", "dir",     "command", "tests",
                                     "passed", "timeout", NULL};
  struct str key = pair->key->text, text = pair->value->text;
  const struct yaml_node *value = pair->value;
  const char *name = NULL;
  struct err why;
  for (size_t i = 0; keys[i] != NULL; i++)
    name = str_eq_c(key, keys[i]) ? keys[i] : name;
  if (name == NULL)
    return yaml_unknown(err, path, pair->key, "hidden_tests has no key", str_nearest(key, keys),
                        "use folder, dir, command, tests, passed and timeout");
  bool is_passed = strcmp(name, "passed") == 0;
  if (is_passed && (value->kind != YAML_INTEGER || value->integer < 1))
    return yaml_wrong(err, path, value, "passed must be a number of tests, 1 or more");
  if (!is_passed && (value->kind == YAML_LIST || value->kind == YAML_MAP || text.n == 0))
    return yaml_wrong(err, path, value, "%s must be one text", name);
  bool checked = true;
  if (strcmp(name, "tests") == 0)
    checked = limits_check_tests(text, &why);
  else if (strcmp(name, "timeout") == 0)
    checked = limits_check_duration(text, &why);
  if (!checked)
    return yaml_wrong(err, path, value, "%s", why.text);
  json_t *put = is_passed ? json_integer(value->integer) : json_text(text);
  if (strcmp(name, "dir") == 0 || strcmp(name, "folder") == 0) {
    json_decref(put);
    put = home_path(text);
    if (json_string_value(put)[0] != '/') {
      json_decref(put);
      return yaml_wrong(err, path, value, "%s must be an absolute path, or begin with ~/", name);
    }
  }
  json_object_set_new(set, name, put);
  return true;
}

static bool read_hidden_set(json_t *sets, const char *path, const struct yaml_node *node,
                            struct err *err) {
  json_t *set = json_object();
  json_array_append_new(sets, set);
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node, "hidden_tests must be a map with dir and command");
  for (size_t i = 0; i < node->count; i++)
    if (!read_hidden_key(set, path, &node->pairs[i], err))
      return false;
  return (json_at(set, "dir") != NULL && json_at(set, "command") != NULL) ||
         yaml_wrong(err, path, node, "hidden_tests needs dir and command");
}

json_t *hidden_tests_read(const char *path, const struct yaml_node *node, struct err *err) {
  json_t *sets = json_array();
  bool ok = true;
  if (node->kind != YAML_LIST)
    ok = read_hidden_set(sets, path, node, err);
  for (size_t i = 0; node->kind == YAML_LIST && i < node->count && ok; i++)
    ok = read_hidden_set(sets, path, node->items[i], err);
  if (ok)
    return sets;
  json_decref(sets);
  return NULL;
}

/* Is the set for sessions of this folder, or of the project around it? */
static bool hidden_is_for(const json_t *set, const char *cwd) {
  const char *folder = json_string_value(json_at(set, "folder"));
  char project[PATHS_BYTES], real[PATH_MAX];
  if (folder == NULL)
    return true;
  if (cwd == NULL || realpath(folder, real) == NULL)
    return false;
  (void)paths_project(cwd, project);
  char_auto_t *here = realpath(cwd, NULL);
  return fs_below(project, real) != NULL || (here != NULL && fs_below(here, real) != NULL);
}

/* Has everything of the session run in a sandbox, or not at all. */
static void hold_all(json_t *sandbox, const json_t *dir) {
  static const char *const guard = "guard";
  struct str least = json_view(json_at(sandbox, "least"));
  if (least.n == 0 || str_eq_c(least, "off"))
    json_object_set_new(sandbox, "least", json_string(guard));
  if (json_is_string(json_at(sandbox, "commands")))
    json_object_del(sandbox, "commands");
  json_object_set_new(sandbox, "inherited",
                      json_pack("{ss ss}", "from", "hidden_tests", "level", guard));
  json_object_set_new(sandbox, "hidden_tests", json_pack("[O]", dir));
}

void hidden_tests_resolve(const json_t *sets, json_t *session_config) {
  json_t *sandbox = json_object_get(session_config, "sandbox");
  const char *cwd = json_string_value(json_at(session_config, "cwd"));
  json_t *secret = json_array();
  bool found = false;
  if (json_array_size(sets) > 0)
    (void)json_array_extend(secret, json_object_get(sandbox, "secret"));
  JSON_EACH(sets, i, set) {
    json_array_append(secret, json_object_get(set, "dir"));
    if (found || !hidden_is_for(set, cwd))
      continue;
    found = true;
    json_object_set(session_config, "hidden_tests", set);
    hold_all(sandbox, json_at(set, "dir"));
  }
  if (json_array_size(secret) > 0)
    json_object_set(sandbox, "secret", secret);
  json_decref(secret);
}

/* --- running --- */

struct hidden_run {
  struct session *session;
  void (*over)(struct session *s, struct event *ev);
  json_t *set;                       /* a reference */
  char *folder, *private_dir, *copy; /* copy: where the command runs */
  struct provider_env env;
  struct call_request request;
  json_t *words, *sandbox; /* of the request and the environment */
  char *variables[2];
  const char *argv[7];
  struct provider_run *run;
  int64_t started_ms;
  struct call_result result;
  json_t *said;
  bool cancelled;
};

static void hidden_problem(struct hidden_run *h, const char *problem) {
  json_decref(h->said);
  h->said = json_pack("{sb so}", "passes", 0, "problem", json_text(str_from(problem)));
}

/* Removes what killed programs have left: each folder begins with the number of its process. */
static void sweep_left(const char *state) {
  struct dirent **entries = NULL;
  int count = scandir(state, &entries, NULL, NULL);
  for (int i = 0; i < count; i++) {
    char path[PATHS_BYTES + 300];
    struct err ignored;
    long pid = strtol(entries[i]->d_name, NULL, 10);
    print_into(path, sizeof path, "%s/%.250s", state, entries[i]->d_name);
    if (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH && !tmpdir_remove(path, &ignored))
      log_warn("%s", ignored.text);
    free(entries[i]);
  }
  free(entries);
}

static bool make_hidden_place(struct hidden_run *h, struct err *err) {
  char state[PATHS_BYTES];
  if (!paths_state("hidden-tests", state, err))
    return false;
  sweep_left(state);
  buf_auto_t place = buf_of("%s/%ld-%s", state, (long)getpid(), h->session->core.session);
  buf_auto_t inner = buf_of("%s/tmp", buf_c(&place)), trees = buf_of("%s/trees", buf_c(&place));
  h->private_dir = buf_take(&place);
  if (!tmpdir_remove(h->private_dir, err))
    return false;
  return (mkdir(h->private_dir, 0700) == 0 && mkdir(buf_c(&inner), 0700) == 0 &&
          mkdir(buf_c(&trees), 0700) == 0) ||
         err_set_errno(err, errno, "cannot make %.300s", h->private_dir);
}

static bool copy_work(struct hidden_run *h, struct err *err) {
  char tree[BASE_TREE_BYTES];
  struct base base = {0};
  buf_auto_t trees = buf_of("%s/trees", h->private_dir), copy = buf_of("%s/work", h->private_dir);
  bool ok = base_open(&base, h->folder, buf_c(&trees), err) && base_take_all(&base, tree, err) &&
            base_check_out(&base, tree, buf_c(&copy), err);
  if (ok && base.within[0] != '\0')
    buf_printf(&copy, "/%s", base.within);
  h->copy = buf_take(&copy);
  base_close(&base);
  return ok;
}

static void hidden_work(void *ctx) {
  struct hidden_run *h = ctx;
  const char *dir = json_string_value(json_at(h->set, "dir"));
  struct err err;
  if (access(dir, R_OK | X_OK) != 0)
    err_set_errno(&err, errno, "their folder cannot be read");
  else if (make_hidden_place(h, &err) && copy_work(h, &err))
    return;
  hidden_problem(h, err.text);
}

/* Whoever says how to count, or how many, wants as many as that, and none that failed. Otherwise
 * the exit status says all: a line for sh may run tests that are to fail. */
static bool hidden_counts_pass(const struct hidden_run *h, const json_t *tests) {
  const json_t *wanted = json_at(h->set, "passed");
  if (wanted == NULL && json_at(h->set, "tests") == NULL)
    return true;
  return json_at(tests, "none") == NULL && !checks_is_no_pass(tests) &&
         (wanted == NULL || json_int_at(tests, "passed") == json_integer_value(wanted));
}

static void hidden_count(struct hidden_run *h) {
  struct str spec = json_view(json_at(h->set, "tests"));
  struct call_result *r = &h->result;
  test_reports_count(spec.n > 0 ? spec : STR("auto"), h->copy, h->started_ms, r);
  bool none = json_at(r->tests, "none") != NULL;
  bool passes = r->exit == 0 && hidden_counts_pass(h, r->tests);
  h->said = json_pack("{sb si sI}", "passes", (int)passes, "exit", r->exit, "ms",
                      (json_int_t)(clock_real_ms() - h->started_ms));
  bool asked = json_at(h->set, "passed") != NULL || json_at(h->set, "tests") != NULL;
  if (asked && !none)
    json_object_set(h->said, "tests", r->tests);
  json_object_set(h->said, "wanted", json_object_get(h->set, "passed"));
}

static void hidden_end_work(void *ctx) {
  struct hidden_run *h = ctx;
  struct err err;
  if (h->result.has_exit && h->result.class == CLASS_NONE)
    hidden_count(h);
  else if (h->said == NULL)
    hidden_problem(h, h->result.message);
  if (h->private_dir != NULL && !tmpdir_remove(h->private_dir, &err))
    log_warn("%s", err.text);
}

static void hidden_free(struct hidden_run *h) {
  char *const texts[] = {h->folder, h->private_dir, h->copy, h->variables[0], h->variables[1]};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  json_decref(h->set);
  json_decref(h->words);
  json_decref(h->sandbox);
  json_decref(h->said);
  call_result_deinit(&h->result);
  free(h);
}

static void hidden_over(void *ctx) {
  struct hidden_run *h = ctx;
  struct session *s = h->session;
  struct event ev = {.kind = EVENT_HIDDEN, .news = h->said};
  s->hidden = NULL;
  h->over(s, h->cancelled ? NULL : &ev);
  hidden_free(h);
}

static void hidden_end(struct hidden_run *h) {
  loop_do(h->session->host->loop, hidden_end_work, hidden_over, h);
}

static void on_hidden_done(void *ctx, struct call_result *result) {
  struct hidden_run *h = ctx;
  h->run = NULL;
  h->result = *result;
  *result = (struct call_result){0};
  hidden_end(h);
}

/* Makes the sandbox: what commands of the session have, or guard, but without network, and only the
 * copy can be written. False: there is none here. */
static bool hold_tests(struct hidden_run *h) {
  const json_t *config = h->session->core.config, *own = json_object_get(config, "sandbox");
  const json_t *by = json_object_get(json_object_get(own, "mechanisms"), "guard");
  h->words = sandbox_of_call(config, NULL, NULL, true);
  if (h->words == NULL || str_eq_c(json_view(json_at(h->words, "level")), "off")) {
    json_decref(h->words);
    h->words = json_pack("{ss sO*}", "level", "guard", "mechanism", by);
  }
  json_object_set_new(h->words, "network", json_string("none"));
  h->sandbox = own ? json_clone_top(own) : json_object();
  json_object_del(h->sandbox, "hidden_tests");
  json_object_del(h->sandbox, "commands");
  json_object_set_new(h->sandbox, "write", json_pack("[s]", h->private_dir));
  json_object_set_new(h->sandbox, "caches", json_false());
  json_t *reads = json_array();
  (void)json_array_extend(reads, json_object_get(own, "read"));
  json_array_append(reads, json_object_get(h->set, "dir"));
  json_object_set_new(h->sandbox, "read", reads);
  return json_at(h->words, "mechanism") != NULL;
}

static void hidden_copied(void *ctx) {
  struct hidden_run *h = ctx;
  struct session *s = h->session;
  const struct provider_sink sink = {.done = on_hidden_done, .ctx = h};
  if (h->said == NULL && !h->cancelled && !hold_tests(h))
    hidden_problem(h, "no sandbox can hold them here");
  if (h->said != NULL || h->cancelled) {
    hidden_end(h);
    return;
  }
  buf_auto_t dir = buf_of("HIDDEN=%s", json_string_value(json_at(h->set, "dir")));
  buf_auto_t tmp = buf_of("TMPDIR=%s/tmp", h->private_dir);
  h->variables[0] = buf_take(&dir);
  h->variables[1] = buf_take(&tmp);
  const char *command = json_string_value(json_at(h->set, "command"));
  const char *const argv[] = {"env", h->variables[0], h->variables[1], "sh", "-c", command, NULL};
  memcpy(h->argv, argv, sizeof argv);
  h->env = s->env;
  h->env.cwd = h->copy;
  h->env.links = NULL;
  h->env.sandbox = h->sandbox;
  h->env.own_folders = s->own_folders;
  uint64_t ms = (uint64_t)limits_duration_ms(json_view(json_at(h->set, "timeout")), LIMIT_SETUP_MS);
  h->request = (struct call_request){.session = s->core.session,
                                     .call = -1,
                                     .attempt = 1,
                                     .argv = h->argv,
                                     .edit = true,
                                     .timeout_ms = ms,
                                     .stall_ms = ms,
                                     .gates = true,
                                     .sandbox = h->words};
  h->started_ms = clock_real_ms();
  h->run = provider_command.ops->start(&provider_command, &h->env, &h->request, &sink);
}

void hidden_tests_start(struct session *s, void (*over)(struct session *s, struct event *ev)) {
  if (s->hidden != NULL)
    return;
  struct hidden_run *h = xcalloc(1, sizeof *h);
  const struct worktree *own = &s->core.worktree;
  const char *folder = own->made ? own->folder : s->env.cwd;
  *h = (struct hidden_run){.session = s,
                           .over = over,
                           .set = json_incref(json_at(s->core.config, "hidden_tests")),
                           .folder = folder ? xstrdup(folder) : NULL};
  s->hidden = h;
  git_serve_do(json_object_get(s->core.config, "sandbox"), hidden_work, hidden_copied, h);
}

void hidden_tests_cancel(struct session *s) {
  if (s->hidden == NULL)
    return;
  s->hidden->cancelled = true;
  if (s->hidden->run != NULL)
    provider_command.ops->cancel(s->hidden->run);
}
