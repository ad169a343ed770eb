/* Takes the base of a session, and runs its check on copies of trees. */
#include "host/evidence_job.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "core/checks.h"
#include "core/sandbox_settings.h"
#include "evidence/runs.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "git/run.h"
#include "git/serve.h"
#include "host/paths.h"
#include "os/loop.h"
#include "os/tmpdir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOB_FILES = 200, JOB_IGNORED = 20, JOB_LAST_BYTES = 1500 };
enum evidence_task { TASK_TAKE, TASK_BEFORE, TASK_LOOK };

struct evidence_job {
  struct session *session;
  evidence_over over;
  enum evidence_task task;
  long turn;
  bool cancelled;
  char *folder, *cwd, *private, *tree, *command, *kept; /* kept: a file, or NULL */
  const struct movement *check;
  json_t *sandbox, *links, *before, *last, *data;
  struct check_run now; /* the session's own */
  struct runs_spec spec;
  struct evidence_runs runs;
  bool cleans;            /* its private folder is no longer needed */
  bool begun, done, same; /* same: the work is what was looked at last */
  struct provider_env env;
  struct call_request request;
  struct provider_run *run;
  struct err err;
};

/* --- names --- */

/* The line that a check's command is for a shell. */
static char *command_line(const char *const *argv) {
  struct buf line = {0};
  bool shell = argv[0] != NULL && argv[1] != NULL && argv[2] != NULL &&
               strcmp(argv[1], "-c") == 0 && str_ends(str_from(argv[0]), "sh");
  if (shell)
    return xstrdup(argv[2]);
  for (size_t i = 0; argv[i] != NULL; i++)
    buf_printf(&line, "%s%s", i > 0 ? " " : "", argv[i]);
  return buf_take(&line);
}

static bool private_folder(const char *origin, struct buf *out, struct err *err) {
  char state[PATHS_BYTES];
  if (!paths_state("evidence", state, err))
    return false;
  buf_printf(out, "%s/%s", state, origin);
  return true;
}

/* --- files that git ignores --- */

/* Folders of dependencies: copies have them as links. */
static const char *const job_links[] = {"node_modules", ".venv", "venv"};

static bool is_linked(struct str path) {
  bool found = false;
  for (size_t i = 0; i < ARRAY_LEN(job_links) && !found; i++)
    found = protect_matches(str_from(job_links[i]), path);
  return found;
}

/* Returns path -> size, time and mode of each ignored file; NULL: there are too many. Of
 * dependencies an installer may write the same again: npm keeps times, pip does not. */
static json_t *ignored_files(const char *top) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err err;
  json_t *files = json_object();
  if (!git_run(top, &answer, &err, "ls-files", "-o", "-i", "--exclude-standard", "-z", NULL) ||
      answer.exit != 0 || answer.out.cut) {
    json_decref(files);
    return NULL;
  }
  for (size_t at = 0; at < answer.out.n;) {
    const char *name = answer.out.p + at;
    struct str path = {name, strnlen(name, answer.out.n - at)};
    buf_auto_t full = {0}, sign = {0};
    struct stat st;
    at += path.n + 1;
    buf_printf(&full, "%s/" STR_FMT, top, STR_ARG(path));
    if (check_files_is_cache(path) || lstat(buf_c(&full), &st) != 0)
      continue;
    struct timespec at_time = is_linked(path) ? st.st_mtim : st.st_ctim;
    if (is_linked(path) && !str_has(path, "node_modules/"))
      at_time = (struct timespec){0};
    buf_printf(&sign, "%lld %lld.%09ld %o", (long long)st.st_size, (long long)at_time.tv_sec,
               at_time.tv_nsec, (unsigned)st.st_mode);
    json_object_setn_new(files, path.p, path.n, json_text(buf_view(&sign)));
  }
  return files;
}

static void ignored_path(const struct evidence_job *job, struct buf *out) {
  buf_printf(out, "%s/ignored.json", job->private);
}

static bool sign_differs(const json_t *was, const json_t *now, const char *path) {
  const json_t *a = json_object_get(was, path), *b = json_object_get(now, path);
  return a == NULL || b == NULL || !json_same(a, b);
}

/* Was the package of a dependency's file installed anew? Then its manifest differs, too. */
static bool is_installed(const json_t *was, const json_t *now, const char *path) {
  static const char modules[] = "node_modules/";
  const char *name = NULL;
  for (const char *at = path; (at = strstr(at, modules)) != NULL; name = at)
    at += sizeof modules - 1;
  if (name != NULL && name[0] == '.')
    return strncmp(name, ".bin/", 5) != 0; /* what tools keep there */
  if (name != NULL) {
    size_t n = strcspn(name, "/");
    n += name[0] == '@' && name[n] == '/' ? 1 + strcspn(name + n + 1, "/") : 0;
    buf_auto_t manifest = {0};
    buf_printf(&manifest, "%.*s/package.json", (int)(name - path + (long)n), path);
    return sign_differs(was, now, buf_c(&manifest));
  }
  JSON_MEMBERS(now, other, sign) {
    (void)sign;
    if (strstr(other, ".dist-info/") != NULL && sign_differs(was, now, other))
      return true;
  }
  return false;
}

/* Lists what changed of them since the base was taken; NULL: that is not known. Of dependencies
 * only files count that were there and were changed by no installer. */
static json_t *ignored_changes(const struct evidence_job *job, const char *top, bool *had) {
  buf_auto_t path = {0}, text = {0};
  struct err err;
  ignored_path(job, &path);
  json_auto_t *now = ignored_files(top), *was = NULL;
  if (file_read(buf_c(&path), LIMIT_REPORT_BYTES, &text, &err))
    was = json_loadb(buf_c(&text), text.n, 0, NULL);
  *had = false;
  if (now == NULL || was == NULL)
    return NULL;
  json_t *list = json_array();
  JSON_MEMBERS(now, name, sign) {
    const json_t *old = json_object_get(was, name);
    bool linked = is_linked(str_from(name));
    if (!json_same(sign, old) && !(linked && (old == NULL || is_installed(was, now, name))))
      json_array_append_new(list, json_string(name));
  }
  JSON_MEMBERS(was, gone, old) {
    (void)old;
    *had |= !is_linked(str_from(gone));
    if (json_object_get(now, gone) == NULL && !is_linked(str_from(gone)))
      json_array_append_new(list, json_string(gone));
  }
  return list;
}

static bool write_json_file(const char *path, const json_t *value) {
  buf_auto_t temporary = {0};
  buf_printf(&temporary, "%s.%ld", path, (long)getpid());
  bool ok = json_dump_file(value, buf_c(&temporary), JSON_COMPACT | JSON_SORT_KEYS) == 0 &&
            rename(buf_c(&temporary), path) == 0;
  if (!ok)
    (void)unlink(buf_c(&temporary));
  return ok;
}

/* --- in a pool thread: the base --- */

static void base_work(struct evidence_job *job) {
  struct base base = {0};
  struct err removal;
  char tree[BASE_TREE_BYTES] = "";
  buf_auto_t path = {0};
  if (!tmpdir_remove(job->private, &removal)) /* of an attempt that was cut off */
    log_warn("%s", removal.text);
  (void)mkdir(job->private, 0700);
  bool ok = base_open(&base, job->folder, job->private, &job->err);
  bool none = !ok && job->err.code == ERR_NOT_FOUND;
  ok = ok && base_take_all(&base, tree, &job->err);
  json_auto_t *ignored = ok ? ignored_files(buf_c(&base.repo.top)) : NULL;
  ignored_path(job, &path);
  if (ignored != NULL)
    (void)write_json_file(buf_c(&path), ignored);
  base_close(&base);
  job->data = json_object();
  if (ok)
    json_put(job->data, "tree", json_string(tree));
  else
    json_put(job->data, "problem", json_text(str_from(job->err.text)));
  if (none)
    json_put(job->data, "none", json_true());
}

/* --- in a pool thread: between two runs --- */

/* Folders of dependencies that git ignores are linked into copies, besides what worktrees link. */
static void add_links(struct evidence_job *job) {
  for (size_t i = 0; i < ARRAY_LEN(job_links); i++) {
    AUTO(git_answer_deinit) struct git_answer answer = {0};
    struct err err;
    buf_auto_t path = {0};
    buf_printf(&path, "%s/%s", buf_c(&job->runs.base.repo.top), job_links[i]);
    if (access(buf_c(&path), F_OK) == 0 &&
        git_run(buf_c(&job->runs.base.repo.top), &answer, &err, "check-ignore", "-q", job_links[i],
                NULL) &&
        answer.exit == 0)
      json_array_append_new(job->links, json_string(job_links[i]));
  }
}

/* The work is what was looked at last: so is what it shows. */
static bool is_same_work(const struct evidence_job *job) {
  const char *tree = json_string_value(json_at(job->last, "tree"));
  return tree != NULL && strcmp(tree, job->runs.trees[RUNS_NOW]) == 0 &&
         json_at(job->last, "ignored") == NULL && !job->runs.facts.ignored_changed;
}

/* Puts in what is known. The session's own run counts only where a copy is known to do for the
 * check: it passed on a copy of the base, or there is nothing that a copy lacks. */
static void preset(struct evidence_job *job) {
  struct evidence_runs *r = &job->runs;
  bool had;
  json_auto_t *ignored = ignored_changes(job, buf_c(&r->base.repo.top), &had);
  if (job->before != NULL) {
    runs_read_run(json_at(job->before, "run"), &r->facts.runs[RUNS_BEFORE]);
    buf_set(&r->last[RUNS_BEFORE], json_view_at(job->before, "last"));
    r->facts.no_old_check = json_is_true(json_at(job->before, "no_old_check"));
    r->facts.lost |= json_is_true(json_at(job->before, "lost"));
  }
  const struct check_run *before = &r->facts.runs[RUNS_BEFORE];
  bool fits = before->end == CHECK_EXITED && before->exit == 0;
  r->facts.ignored_changed = ignored == NULL || json_array_size(ignored) > 0;
  if (fits || (!had && !r->facts.ignored_changed))
    r->facts.runs[RUNS_NOW] = job->now;
  JSON_EACH(ignored, i, path) {
    if (!is_linked(json_view(path)) || r->facts.lost)
      continue;
    r->facts.lost = true; /* copies have it as it is now */
    err_set(&r->problem, ERR_CORRUPT, "a dependency was changed, and by no installer: %.300s",
            json_string_value(path));
  }
  if (json_array_size(ignored) > 0)
    job->data = json_pack("{sO}", "ignored", ignored);
}

static void pool_work(void *ctx) {
  struct evidence_job *job = ctx;
  struct evidence_runs *r = &job->runs;
  enum runs_step step;
  if (job->task == TASK_TAKE) {
    base_work(job);
    return;
  }
  if (!job->begun)
    runs_begin(r, &job->spec);
  while ((step = runs_next(r)) == RUNS_PREPARE && !job->done) {
    job->done = !runs_prepare(r, &job->err);
    if (job->begun || job->done)
      continue;
    job->begun = true;
    add_links(job);
    if (job->task == TASK_LOOK && !r->facts.lost)
      preset(job);
    job->same = job->task == TASK_LOOK && !job->done && is_same_work(job);
    job->done |= job->same;
  }
  job->done |= step == RUNS_DONE;
}

/* --- results --- */

/* Returns how many were too many. */
static json_int_t cut_list(json_t *list, size_t most) {
  size_t n = json_array_size(list);
  while (json_array_size(list) > most)
    json_array_remove(list, json_array_size(list) - 1);
  return n > most ? (json_int_t)(n - most) : 0;
}

/* Those of the check stand first: a cut list still has them. */
static void order_files(json_t *data) {
  json_t *sorted = json_array();
  for (int check = 1; check >= 0; check--)
    JSON_EACH(json_at(data, "files"), i, file) {
      if ((json_at(file, "check") != NULL) == (check == 1))
        json_array_append(sorted, file);
    }
  json_put(data, "files", sorted);
  json_int_t more = cut_list(sorted, JOB_FILES);
  if (more > 0)
    json_put(data, "files_more", json_integer(more));
}

/* Signs what a person would allow: the check's changed files, or all, where it has none. */
static void put_contents(const struct evidence_runs *r, json_t *data) {
  buf_auto_t text = {0};
  char hex[SHA256_HEX];
  JSON_EACH(r->changes, i, file) {
    struct str path = json_view(json_at(file, "path"));
    const struct listed_file *now = listing_at(&r->now, path);
    if (!r->facts.check_changed || json_at(file, "check") != NULL)
      buf_printf(&text, STR_FMT " %s %s\n", STR_ARG(path), now ? now->mode : "",
                 now ? now->hash : "");
  }
  if (text.n == 0)
    return; /* there is nothing that could be the same again */
  sha256_hex(text.p, text.n, NULL, 0, hex);
  json_put(data, "contents", json_string(hex));
}

static json_t *look_result(struct evidence_job *job) {
  struct evidence_runs *r = &job->runs;
  if (job->same) {
    json_t *again = json_clone(job->last);
    json_object_del(again, "goes");
    return again;
  }
  if (job->err.code != ERR_NONE) {
    r->evidence = EVIDENCE_UNKNOWN;
    r->problem = job->err;
  }
  /* It passes where it is, and not in a copy, now or before: nothing of that is comparable. */
  const struct check_run *now = &r->facts.runs[RUNS_NOW], *old = &r->facts.runs[RUNS_OLD_CHECK];
  const struct check_run *before = &r->facts.runs[RUNS_BEFORE];
  bool fits = (before->end == CHECK_EXITED && before->exit == 0) ||
              (now->end == CHECK_EXITED && now->exit == 0) ||
              (old->end == CHECK_EXITED && old->exit == 0);
  if (!fits && now->end == CHECK_EXITED)
    r->evidence = EVIDENCE_UNKNOWN;
  json_t *data = runs_result(r), *ignored = json_incref(json_at(job->data, "ignored"));
  json_put(data, "tree", json_string(r->trees[RUNS_NOW]));
  json_put(data, "check_changed", json_boolean(r->facts.check_changed));
  put_contents(r, data);
  order_files(data);
  (void)cut_list(ignored, JOB_IGNORED);
  json_put(data, "ignored", ignored);
  struct str last = buf_view(&r->last[evidence_old_check(&r->facts)]);
  if (r->evidence == EVIDENCE_OLD_CHECK_FAILS && last.n > 0) {
    size_t from = last.n > JOB_LAST_BYTES ? last.n - JOB_LAST_BYTES : 0;
    json_put(data, "last", json_text((struct str){last.p + from, last.n - from}));
  }
  return data;
}

static json_t *before_result(struct evidence_job *job) {
  const struct evidence_runs *r = &job->runs;
  struct str last = buf_view(&r->last[RUNS_BEFORE]);
  json_t *data = json_pack("{so sb sb}", "run", runs_run_json(&r->facts.runs[RUNS_BEFORE]),
                           "no_old_check", (int)r->facts.no_old_check, "lost", (int)r->facts.lost);
  if (last.n > JOB_LAST_BYTES)
    last = (struct str){last.p + last.n - JOB_LAST_BYTES, JOB_LAST_BYTES};
  if (r->facts.runs[RUNS_BEFORE].exit != 0)
    json_put_text(data, "last", last);
  if (job->err.code != ERR_NONE)
    json_put(data, "problem", json_text(str_from(job->err.text)));
  else if (job->kept != NULL && r->facts.runs[RUNS_BEFORE].end == CHECK_EXITED)
    (void)write_json_file(job->kept, data);
  return data;
}

/* --- on the loop --- */

static void clean_work(void *ctx) {
  const struct evidence_job *job = ctx;
  struct err err;
  if (!tmpdir_remove(job->private, &err))
    log_warn("%s", err.text);
}

static void job_end(void *ctx) {
  struct evidence_job *job = ctx;
  struct session *s = job->session;
  if (job->cleans) {
    job->cleans = false;
    loop_do(s->host->loop, clean_work, job_end, job);
    return;
  }
  bool wanted = !job->cancelled;
  json_auto_t *data = job->data;
  struct event ev = {.kind = EVENT_EVIDENCE, .call = job->turn, .news = data};
  evidence_over over = job->over;
  char *const texts[] = {job->folder, job->cwd, job->private, job->tree, job->command, job->kept};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  json_decref(job->sandbox);
  json_decref(job->links);
  json_decref(job->before);
  json_decref(job->last);
  free(job);
  s->evidence = NULL;
  over(s, wanted ? &ev : NULL);
}

static void close_work(void *ctx) {
  struct evidence_job *job = ctx;
  json_t *data = job->task == TASK_LOOK ? look_result(job) : before_result(job);
  json_decref(job->data);
  job->data = data;
  runs_deinit(&job->runs);
}

static void check_copy(struct evidence_job *job);

static void pool_after(void *ctx) {
  struct evidence_job *job = ctx;
  const json_t *sandbox = json_object_get(job->session->core.config, "sandbox");
  if (job->task == TASK_TAKE)
    job_end(job);
  else if (job->done || job->cancelled)
    git_serve_do(sandbox, close_work, job_end, job);
  else
    check_copy(job);
}

static void work_on(struct evidence_job *job) {
  git_serve_do(json_object_get(job->session->core.config, "sandbox"), pool_work, pool_after, job);
}

static void on_copy_checked(void *ctx, struct call_result *result) {
  struct evidence_job *job = ctx;
  enum check_end end = result->has_exit ? CHECK_EXITED : CHECK_NOT_STARTED;
  job->run = NULL;
  if (result->class == CLASS_TIMEOUT)
    end = CHECK_TOO_SLOW;
  buf_putc(&result->text.bytes, '\n');
  buf_str(&result->text.bytes, buf_view(&result->error_text.bytes));
  job->cancelled |= result->class == CLASS_CANCELLED;
  runs_ended(&job->runs, end, result->exit, buf_view(&result->text.bytes),
             (uint64_t)result->duration_ms, end == CHECK_NOT_STARTED ? result->message : NULL);
  call_result_deinit(result);
  work_on(job);
}

/* Runs the check in the copy as its session would, but for the folder. */
static void check_copy(struct evidence_job *job) {
  const struct session *s = job->session;
  const struct movement *m = job->check;
  const struct provider_sink sink = {.done = on_copy_checked, .ctx = job};
  job->env = s->env;
  job->env.cwd = job->runs.cwd;
  job->env.secrets = json_object_get(s->core.config, "secrets");
  job->env.sandbox = json_object_get(s->core.config, "sandbox");
  job->env.links = job->links;
  job->env.own_folders = s->own_folders;
  job->request = (struct call_request){.session = s->core.session,
                                       .turn = job->turn,
                                       .call = -1000 - job->turn,
                                       .attempt = 1,
                                       .movement = m->name,
                                       .argv = m->argv,
                                       .edit = m->writes,
                                       .permission = m->permission,
                                       .timeout_ms = (uint64_t)m->timeout_ms,
                                       .stall_ms = (uint64_t)m->stall_ms,
                                       .secrets = m->secrets,
                                       .sandbox = job->sandbox};
  job->run = provider_command.ops->start(&provider_command, &job->env, &job->request, &sink);
}

/* Notes how the session's own run of the check ended. */
static void note_now(struct evidence_job *job, const struct turn *turn) {
  const struct call *call = turn_last_own_call(turn);
  buf_auto_t text = {0};
  job->now = (struct check_run){.end = CHECK_EXITED, .exit = turn->exit};
  buf_str(&text, buf_view(&turn->text));
  buf_putc(&text, '\n');
  if (call != NULL)
    buf_str(&text, buf_view(&call->error_text));
  if (job->spec.format == TESTS_NONE || job->spec.format == TESTS_AUTO) {
    counts_find(buf_view(&text), &job->now.counts);
    return;
  }
  bool counted = json_at(turn->tests, "passed") != NULL;
  job->now.counts =
      (struct check_counts){.kind = counted ? COUNTS_MEASURED : COUNTS_NONE,
                            .format = job->spec.format,
                            .tests = {.passed = (long)json_int_at(turn->tests, "passed"),
                                      .failed = (long)json_int_at(turn->tests, "failed"),
                                      .skipped = (long)json_int_at(turn->tests, "skipped")}};
}

/* Finds the file that keeps the result on the base, and reads it. */
static json_t *kept_result(struct evidence_job *job) {
  char state[PATHS_BYTES], hex[SHA256_HEX];
  struct err err;
  buf_auto_t key = {0}, text = {0}, path = {0};
  char_auto_t *sandbox =
      job->sandbox ? json_dump_text(job->sandbox, JSON_SORT_KEYS | JSON_COMPACT) : xstrdup("");
  if (!paths_state("evidence-runs", state, &err))
    return NULL;
  char_auto_t *real = realpath(job->cwd, NULL);
  AUTO(repo_deinit) struct repo repo = {0};
  if (real == NULL || !repo_find(real, &repo))
    return NULL;
  buf_printf(&key, "1\n%s\n%s\n%s\n%s\n", job->tree, real + repo.top.n, job->command, sandbox);
  sha256_hex(key.p, key.n, NULL, 0, hex);
  buf_printf(&path, "%s/%s", state, hex);
  job->kept = buf_take(&path);
  if (!file_read(job->kept, LIMIT_REPORT_BYTES, &text, &err))
    return NULL;
  return json_loadb(buf_c(&text), text.n, 0, NULL);
}

static void evidence_use(struct evidence_job *job, size_t movement) {
  const struct core *core = &job->session->core;
  const struct movement *m = job->check = &core->workflow->movements[movement];
  struct str path = {0};
  job->command = command_line(m->argv);
  job->sandbox = sandbox_of_call(core->config, m, NULL, true);
  job->links = json_array();
  const json_t *links = core_worktree_setting(core->config, "link");
  if (links != NULL)
    json_array_extend(job->links, (json_t *)links);
  job->spec = (struct runs_spec){.folder = job->cwd,
                                 .private_dir = job->private,
                                 .command = job->command,
                                 .from_tree = job->tree,
                                 .add = json_at(m->check_files, "add"),
                                 .leave = json_at(m->check_files, "not"),
                                 .links = job->links,
                                 .base_only = job->task == TASK_BEFORE};
  if (m->tests.n > 0 && test_format_parse(m->tests, &job->spec.format, &path))
    job->spec.report = path.p;
}

static void choose_task(struct evidence_job *job) {
  const struct core *core = &job->session->core;
  const struct turn *turn = job->turn > 0 ? core_turn(core, job->turn) : NULL;
  job->task = turn != NULL ? TASK_LOOK : TASK_TAKE;
  if (turn == NULL && core->evidence.run > 0)
    job->task = TASK_BEFORE;
  if (job->task == TASK_TAKE)
    return;
  size_t movement = turn ? turn->movement : (size_t)core->evidence.run - 1;
  const struct movement *m = &core->workflow->movements[movement];
  const struct call *call = turn ? turn_last_own_call(turn) : NULL;
  struct str below = call && call->cwd ? str_from(call->cwd) : m->cwd;
  struct buf cwd = {0};
  buf_printf(&cwd, "%s%s" STR_FMT, job->folder, below.n > 0 ? "/" : "", STR_ARG(below));
  job->cwd = buf_take(&cwd);
  job->tree = xstrdup(core->evidence.tree);
  evidence_use(job, movement);
  if (turn == NULL)
    return;
  note_now(job, turn);
  job->last = json_incref(core->evidence.last);
  if (core->evidence.last_movement != turn->movement) {
    json_decref(job->last);
    job->last = NULL;
  }
  const struct movement *first =
      core->evidence.run > 0 ? &core->workflow->movements[core->evidence.run - 1] : NULL;
  char_auto_t *line = first ? command_line(first->argv) : NULL;
  if (line != NULL && strcmp(line, job->command) == 0 && str_eq(first->cwd, m->cwd))
    job->before = json_incref(core->evidence.before);
}

static void pool_nothing(void *ctx) {
  (void)ctx;
}

static struct evidence_job *evidence_job_new(struct session *s, long turn, evidence_over over) {
  const struct core *core = &s->core;
  struct evidence_job *job = xcalloc(1, sizeof *job);
  struct buf private = {0};
  const char *folder = core->worktree.made ? core->worktree.folder : s->env.cwd;
  *job = (struct evidence_job){.session = s, .over = over, .turn = turn};
  job->folder = xstrdup(folder ? folder : "/");
  s->evidence = job;
  if (!private_folder(core->evidence.origin ? core->evidence.origin : core->session, &private,
                      &job->err))
    log_warn("%s", job->err.text);
  job->private = buf_take(&private);
  return job;
}

void evidence_start(struct session *s, long turn, evidence_over over) {
  if (s->core.status != SESSION_RUNNING || s->evidence != NULL)
    return;
  struct evidence_job *job = evidence_job_new(s, turn, over);
  choose_task(job);
  if (job->task == TASK_BEFORE)
    job->data = kept_result(job);
  if (job->data != NULL) /* from the loop, as always */
    git_serve_do(NULL, pool_nothing, job_end, job);
  else
    work_on(job);
}

void evidence_clean(struct session *s, evidence_over over) {
  const struct core *core = &s->core;
  bool own = core->evidence.origin == NULL || strcmp(core->evidence.origin, core->session) == 0;
  if (core->status != SESSION_ENDED || !core->evidence.asked || core->evidence.off || !own)
    return;
  if (s->evidence == NULL) {
    evidence_job_new(s, 0, over)->cancelled = true;
    loop_do(s->host->loop, clean_work, job_end, s->evidence);
  } else {
    s->evidence->cleans = true;
  }
}

void evidence_cancel(struct session *s) {
  struct evidence_job *job = s->evidence;
  if (job == NULL)
    return;
  job->cancelled = true;
  if (job->run != NULL)
    provider_command.ops->cancel(job->run);
}
