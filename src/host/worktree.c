/* Makes worktrees and commits, step by step, each a run of git. */
#include "host/worktree.h"

#include "base/log.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "host/git.h"
#include "host/paths.h"
#include "host/session.h"
#include "provider/probe.h"
#include "tree/repo.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct git_job {
  struct list_node in_session;
  struct session *session;
  long turn; /* the child's, or 0 */
  const struct git_step *steps;
  size_t at;
  unsigned tries;
  size_t item; /* of a step that is taken several times */
  struct git git;
  struct err err;
  char *source; /* where the session works without a worktree */
  char *branch, *base, *path, *prefix, *message, *session_id;
  struct repo repo; /* of source */
  bool listed, exists, has_branch, has_name, staged, found;
  char *commit, *head;
  long number; /* of the turn whose work is committed */
  bool again;  /* asked for before a crash, perhaps */
  bool cancelled;
};

/* `ask` fills what to run; false: nothing, go on. `take` reads the answer; false: err is set. */
struct git_step {
  bool (*ask)(struct git_job *job, struct git_ask *ask);
  bool (*take)(struct git_job *job, const struct git_answer *answer);
};

static const json_t *setting(const struct git_job *job, const char *name) {
  return core_worktree_setting(job->session->core.config, name);
}

static bool complain(struct git_job *job, const char *what, const struct git_answer *answer) {
  struct buf text = {0};
  git_complaint(answer, &text);
  (void)err_set(&job->err, ERR_INVALID, "%.200s: %.280s", what, buf_c(&text));
  buf_deinit(&text);
  return false;
}

/* The output without its one newline. */
static char *line_of(const struct git_answer *answer) {
  size_t n = answer->out.n;
  if (n > 0 && answer->out.p[n - 1] == '\n')
    n--;
  return xstrndup(buf_c(&answer->out), n);
}

static void set_words(struct git_ask *ask, const char *folder, const char *const *words) {
  size_t n = 0;
  ask->folder = folder;
  for (; words[n] != NULL; n++) {
    assert(n + 1 < GIT_WORDS);
    ask->words[n] = words[n];
  }
  ask->words[n] = NULL;
}
#define WORDS(ask, folder, ...) set_words(ask, folder, (const char *const[]){__VA_ARGS__, NULL})

static bool nothing_to_take(struct git_job *job, const struct git_answer *answer) {
  (void)job;
  (void)answer;
  return true;
}

/* --- both --- */

static bool ask_drivers(struct git_job *job, struct git_ask *ask) {
  job->git.programs = json_is_true(setting(job, "hooks"));
  WORDS(ask, job->source, GIT_DRIVERS);
  return !job->git.programs;
}

static bool take_drivers(struct git_job *job, const struct git_answer *answer) {
  if (!answer->ran)
    return complain(job, "git cannot be run", answer);
  git_take_drivers(&job->git, answer);
  return true;
}

/* --- a worktree --- */

static bool ask_base(struct git_job *job, struct git_ask *ask) {
  char *commit = NULL;
  if (asprintf(&commit, "%s^{commit}", job->base) < 0)
    BUG("out of memory");
  free(job->base);
  job->base = commit;
  WORDS(ask, job->source, "rev-parse", "--verify", "--quiet", "--end-of-options", job->base);
  return true;
}

static bool take_base(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit == 0) {
    free(job->base);
    job->base = line_of(answer);
    return true;
  }
  if (answer->err.n > 0)
    return complain(job, "workspace: worktree needs a git repository", answer);
  job->base[strlen(job->base) - strlen("^{commit}")] = '\0';
  if (strcmp(job->base, "HEAD") != 0)
    return err_set(&job->err, ERR_INVALID, "the base %.300s is no commit here", job->base);
  return err_set(&job->err, ERR_INVALID,
                 "a worktree begins at a commit, and the repository of %.300s has none yet: commit "
                 "something first",
                 job->source);
}

static bool ask_prefix(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "rev-parse", "--show-prefix");
  return true;
}

static bool take_prefix(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return complain(job, "git rev-parse --show-prefix", answer);
  job->prefix = line_of(answer);
  size_t n = strlen(job->prefix);
  if (n > 0 && job->prefix[n - 1] == '/')
    job->prefix[n - 1] = '\0';
  return true;
}

static bool choose_path(struct git_job *job) {
  char folder[PATHS_BYTES];
  const char *set = json_string_value(setting(job, "folder"));
  struct buf path = {0};
  if (set == NULL && !paths_state("worktrees", folder, &job->err))
    return false;
  buf_printf(&path, "%s/%s", set ? set : folder, job->session_id);
  if (job->turn > 0)
    buf_printf(&path, "-%ld", job->turn);
  job->path = buf_take(&path);
  const char *top = buf_c(&job->repo.top);
  bool inside = job->repo.top.n > 0 && strncmp(job->path, top, strlen(top)) == 0 &&
                job->path[strlen(top)] == '/';
  struct stat st;
  job->exists = lstat(job->path, &st) == 0;
  return !inside || err_set(&job->err, ERR_INVALID,
                            "the worktree would be in the repository's own tree: %.300s: name "
                            "another folder by workspace: {folder: DIR} in config.yaml",
                            job->path);
}

static bool ask_list(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "worktree", "list", "--porcelain", "-z");
  return true;
}

static bool take_list(struct git_job *job, const struct git_answer *answer) {
  static const char head[] = "worktree ";
  if (answer->exit != 0)
    return complain(job, "git worktree list", answer);
  if (!choose_path(job))
    return false;
  for (size_t at = 0; at < answer->out.n;) {
    const char *entry = answer->out.p + at;
    size_t n = strnlen(entry, answer->out.n - at);
    struct str text = {entry, n};
    if (str_starts(text, head) &&
        str_eq_c((struct str){entry + sizeof head - 1, n - (sizeof head - 1)}, job->path))
      job->listed = true;
    at += n + 1;
  }
  return true;
}

/* A crash left it: files first, so that git removes what it knows of them. */
static bool ask_remove_files(struct git_job *job, struct git_ask *ask) {
  ask->other = true;
  WORDS(ask, "/", "rm", "-rf", "--", job->path);
  return job->exists;
}

static bool ask_remove(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "worktree", "remove", "--force", "--force", job->path);
  return job->listed;
}

/* git that was killed leaves locks behind. In a worktree, and on a branch, of its own nobody is at
 * work but the session. */
static void drop_lock(const struct buf *folder, const char *name) {
  struct buf lock = {0};
  buf_printf(&lock, "%s/%s.lock", buf_c(folder), name);
  (void)unlink(buf_c(&lock));
  buf_deinit(&lock);
}

static void drop_branch_lock(const struct git_job *job, const struct repo *repo) {
  struct buf ref = {0};
  buf_printf(&ref, "refs/heads/%s", job->branch);
  if (job->again && strstr(job->branch, job->session_id) != NULL)
    drop_lock(&repo->common, buf_c(&ref));
  buf_deinit(&ref);
}

static bool ask_branch(struct git_job *job, struct git_ask *ask) {
  char *ref = NULL;
  if (asprintf(&ref, "refs/heads/%s", job->branch) < 0)
    BUG("out of memory");
  drop_branch_lock(job, &job->repo);
  free(job->head);
  job->head = ref;
  WORDS(ask, job->source, "rev-parse", "--verify", "--quiet", "--end-of-options", job->head);
  return true;
}

/* One with the session's own id is from before a crash. */
static bool take_branch(struct git_job *job, const struct git_answer *answer) {
  job->has_branch = answer->exit == 0;
  if (!job->has_branch)
    return true;
  if (strstr(job->branch, job->session_id) == NULL)
    return err_set(&job->err, ERR_INVALID,
                   "there is a branch %.300s already: put {id} into branch:, or name another one",
                   job->branch);
  free(job->base);
  job->base = line_of(answer);
  return true;
}

static bool ask_add(struct git_job *job, struct git_ask *ask) {
  if (job->has_branch)
    WORDS(ask, job->source, "worktree", "add", "--quiet", job->path, job->branch);
  else
    WORDS(ask, job->source, "worktree", "add", "--quiet", "--no-track", "-b", job->branch,
          job->path, job->base);
  return true;
}

static bool take_add(struct git_job *job, const struct git_answer *answer) {
  return answer->exit == 0 || complain(job, "git worktree add", answer);
}

/* Both sides stand in the tree then, with git's marks where they meet: the session's first call
 * finds them there, and its commit is the merge. */
static bool ask_merge(struct git_job *job, struct git_ask *ask) {
  const json_t *merge = setting(job, "merge");
  if (merge == NULL || job->turn > 0)
    return false;
  WORDS(ask, job->path, "merge", "--no-commit", "--no-ff", "--quiet", "--no-verify", "--no-stat",
        json_string_value(merge));
  return true;
}

/* A movement that integrates may finish it, too. */
static void note_merge(const struct git_job *job) {
  struct repo repo;
  struct buf path = {0};
  if (!repo_find(job->path, &repo))
    return;
  buf_printf(&path, "%s/" GIT_SEGUE_MERGE, buf_c(&repo.git_dir));
  FILE *file = fopen(buf_c(&path), "we");
  if (file != NULL) {
    (void)fputs(GIT_SEGUE_MERGE_CONFLICT, file);
    (void)fclose(file);
  }
  buf_deinit(&path);
  repo_deinit(&repo);
}

static bool take_merge(struct git_job *job, const struct git_answer *answer) {
  bool conflict = answer->exit == 1 && answer->err.n == 0;
  if (answer->exit != 0 && !conflict)
    return complain(job, "git merge", answer);
  note_merge(job);
  return true;
}

static bool ask_submodules(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->path, "submodule", "update", "--init", "--recursive", "--quiet");
  return json_is_true(setting(job, "submodules"));
}

static bool take_submodules(struct git_job *job, const struct git_answer *answer) {
  return answer->exit == 0 || complain(job, "git submodule update", answer);
}

/* A file that git does not have, beside its copy. False: there is none. */
static bool file_paths(const struct git_job *job, const char *name, struct buf *from,
                       struct buf *to) {
  struct stat st;
  buf_printf(from, "%s/%s", job->repo.top.n > 0 ? buf_c(&job->repo.top) : job->source, name);
  buf_printf(to, "%s/%s", job->path, name);
  return lstat(buf_c(from), &st) == 0 && lstat(buf_c(to), &st) != 0;
}

/* Stays at its step until all are copied. */
static bool ask_copy(struct git_job *job, struct git_ask *ask) {
  const json_t *names = setting(job, "copy");
  for (; job->item < json_array_size(names); job->item++) {
    struct buf from = {0}, to = {0};
    bool wanted = file_paths(job, json_string_value(json_array_get(names, job->item)), &from, &to);
    free(job->commit);
    free(job->head);
    job->commit = buf_take(&from);
    job->head = buf_take(&to);
    if (!wanted)
      continue;
    ask->other = true;
    WORDS(ask, "/", "cp", "-a", "--", job->commit, job->head);
    return true;
  }
  return false;
}

static bool take_copy(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return complain(job, "workspace: copy", answer);
  job->item++;
  job->at--;
  return true;
}

static bool link_files(struct git_job *job, struct git_ask *ask) {
  const json_t *names = setting(job, "link"), *name;
  size_t i;
  (void)ask;
  json_array_foreach((json_t *)names, i, name) {
    struct buf from = {0}, to = {0};
    if (file_paths(job, json_string_value(name), &from, &to) &&
        symlink(buf_c(&from), buf_c(&to)) != 0)
      (void)err_set_errno(&job->err, errno, "workspace: link: %.200s", buf_c(&to));
    buf_deinit(&from);
    buf_deinit(&to);
  }
  return false;
}

static const struct git_step make_steps[] = {
    {ask_drivers, take_drivers},
    {ask_base, take_base},
    {ask_prefix, take_prefix},
    {ask_list, take_list},
    {ask_remove_files, nothing_to_take},
    {ask_remove, nothing_to_take},
    {ask_branch, take_branch},
    {ask_add, take_add},
    {ask_merge, take_merge},
    {ask_submodules, take_submodules},
    {ask_copy, take_copy},
    {link_files, NULL},
    {NULL, NULL},
};

/* Where calls work: the same folder below the top as the session's, also where git has no file of
 * it. */
static json_t *made_of(struct git_job *job) {
  struct buf folder = {0};
  buf_puts(&folder, job->path);
  for (char *part = job->prefix; part != NULL && *part != '\0';) {
    char *slash = strchr(part, '/');
    size_t n = slash ? (size_t)(slash - part) : strlen(part);
    buf_putc(&folder, '/');
    buf_append(&folder, part, n);
    if (mkdir(buf_c(&folder), 0755) != 0 && errno != EEXIST)
      (void)err_set_errno(&job->err, errno, "cannot make %.300s", buf_c(&folder));
    part = slash ? slash + 1 : NULL;
  }
  json_t *data = json_pack("{ss ss so so}", "branch", job->branch, "base", job->base, "path",
                           json_text(str_from(job->path)), "folder", json_text(buf_view(&folder)));
  buf_deinit(&folder);
  return data;
}

/* --- a commit --- */

static void drop_locks(const struct git_job *job) {
  struct repo repo;
  if (!job->again || job->path == NULL || !repo_find(job->path, &repo))
    return;
  drop_lock(&repo.git_dir, "index");
  drop_lock(&repo.git_dir, "HEAD");
  drop_branch_lock(job, &repo);
  repo_deinit(&repo);
}

static const char *commit_folder(const struct git_job *job) {
  return job->path ? job->path : job->source;
}

/* The commit may be there, from before a crash. */
static bool ask_last(struct git_job *job, struct git_ask *ask) {
  drop_locks(job);
  WORDS(ask, commit_folder(job), "log", "-1",
        "--format=%H%n%(trailers:key=Segue-Session,valueonly,separator=%x20)%n"
        "%(trailers:key=Segue-Turn,valueonly,separator=%x20)");
  return true;
}

static bool take_last(struct git_job *job, const struct git_answer *answer) {
  struct str rest = buf_view(&answer->out), hash = str_next_line(&rest);
  struct str session = str_trim(str_next_line(&rest)), turn = str_trim(str_next_line(&rest));
  long number;
  if (answer->exit == 128 && answer->err.n > 0 && job->path == NULL &&
      strstr(buf_c(&answer->err), "not a git repository") != NULL)
    return complain(job, "commit: needs a git repository", answer);
  job->found = answer->exit == 0 && str_eq_c(session, job->session_id) &&
               str_to_long(turn, &number) && number == job->number;
  if (job->found)
    job->commit = xstrndup(hash.p, hash.n);
  return true;
}

/* All but what was copied or linked into it. */
static bool ask_staging(struct git_job *job, struct git_ask *ask) {
  static const char *const names[] = {"copy", "link"};
  struct buf paths = {0};
  buf_append(&paths, ":(top)", sizeof ":(top)");
  for (size_t k = 0; job->path != NULL && k < ARRAY_LEN(names); k++) {
    const json_t *list = setting(job, names[k]), *name;
    size_t i;
    json_array_foreach((json_t *)list, i, name) {
      buf_printf(&paths, ":(top,exclude,literal)%s", json_string_value(name));
      buf_putc(&paths, '\0');
    }
  }
  size_t n = paths.n;
  free(job->head);
  job->head = buf_take(&paths);
  ask->input = (struct str){job->head, n};
  WORDS(ask, commit_folder(job), "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul");
  return !job->found;
}

static bool take_staging(struct git_job *job, const struct git_answer *answer) {
  return answer->exit == 0 || complain(job, "git add", answer);
}

static bool ask_staged(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, commit_folder(job), "diff", "--cached", "--quiet", "--no-ext-diff");
  return !job->found;
}

/* A merge is a commit though it may change nothing. */
static bool is_merging(const struct git_job *job) {
  struct repo repo;
  struct buf head = {0};
  if (job->path == NULL || !repo_find(job->path, &repo))
    return false;
  buf_printf(&head, "%s/MERGE_HEAD", buf_c(&repo.git_dir));
  bool merging = access(buf_c(&head), F_OK) == 0;
  buf_deinit(&head);
  repo_deinit(&repo);
  return merging;
}

static bool take_staged(struct git_job *job, const struct git_answer *answer) {
  job->staged = answer->exit != 0 || is_merging(job);
  return answer->exit < 2 || complain(job, "git diff", answer);
}

static bool ask_identity(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, commit_folder(job), "config", "user.email");
  return job->staged;
}

static bool take_identity(struct git_job *job, const struct git_answer *answer) {
  job->has_name = answer->exit == 0;
  return true;
}

static bool ask_commit_now(struct git_job *job, struct git_ask *ask) {
  static const char *const nobody[] = {"GIT_AUTHOR_NAME=segue", "GIT_AUTHOR_EMAIL=segue@localhost",
                                       "GIT_COMMITTER_NAME=segue",
                                       "GIT_COMMITTER_EMAIL=segue@localhost"};
  const char *author = json_string_value(setting(job, "author"));
  struct buf by = {0};
  size_t n;
  ask->input = str_from(job->message);
  WORDS(ask, commit_folder(job), "commit", "--quiet", "--cleanup=verbatim", "--file=-",
        "--no-status", job->git.programs ? "--verify" : "--no-verify");
  for (n = 0; ask->words[n] != NULL; n++)
    ;
  if (author != NULL) {
    buf_printf(&by, "--author=%s", author);
    free(job->prefix);
    job->prefix = buf_take(&by);
    ask->words[n] = job->prefix;
  }
  for (n = 0; !job->has_name && n < ARRAY_LEN(nobody); n++)
    ask->extra[n] = nobody[n];
  return job->staged;
}

static bool take_commit_now(struct git_job *job, const struct git_answer *answer) {
  return answer->exit == 0 || complain(job, "git commit", answer);
}

static bool ask_head(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, commit_folder(job), "rev-parse", "--verify", "--quiet", "HEAD");
  return !job->found;
}

static bool take_head(struct git_job *job, const struct git_answer *answer) {
  free(job->head);
  job->head = answer->exit == 0 ? line_of(answer) : NULL;
  if (job->staged && job->head != NULL)
    job->commit = xstrdup(job->head);
  return true;
}

static const struct git_step commit_steps[] = {
    {ask_drivers, take_drivers},   {ask_last, take_last},
    {ask_staging, take_staging},   {ask_staged, take_staged},
    {ask_identity, take_identity}, {ask_commit_now, take_commit_now},
    {ask_head, take_head},         {NULL, NULL},
};

static json_t *committed_of(const struct git_job *job) {
  json_t *commit = job->commit ? json_string(job->commit) : json_null();
  return json_pack("{so ss*}", "commit", commit, "head", job->found ? job->commit : job->head);
}

/* --- the job --- */

static void job_free(struct git_job *job) {
  list_remove(&job->session->jobs, &job->in_session);
  git_deinit(&job->git);
  repo_deinit(&job->repo);
  char *const texts[] = {job->source,  job->branch,     job->base,   job->path, job->prefix,
                         job->message, job->session_id, job->commit, job->head};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  free(job);
}

static void job_over(struct git_job *job) {
  struct session *s = job->session;
  bool makes = job->steps == make_steps, wanted = !job->cancelled;
  char message[LIMIT_ERROR_TEXT_BYTES];
  json_t *data = NULL;
  if (wanted && job->err.code == ERR_NONE)
    data = makes ? made_of(job) : committed_of(job);
  (void)snprintf(message, sizeof message, "%.511s", job->err.text);
  struct event ev = {.kind = EVENT_WORKTREE,
                     .call = job->turn,
                     .news = data,
                     .message = job->err.code == ERR_NONE ? NULL : message};
  s->delivering++;
  job_free(job);
  if (wanted)
    session_event(s, &ev);
  s->delivering--;
  json_decref(data);
  session_maybe_finish(s);
}

static void job_next(struct git_job *job);

/* git reads what another session's git is making at this moment, and gives up: it is asked again,
 * from the list on. */
static bool meets_another(struct git_job *job, const struct git_answer *answer) {
  enum { LIST_STEP = 3, TRIES = 20 };
  if (job->cancelled || job->steps != make_steps || !answer->ran || answer->exit != 128 ||
      job->tries >= TRIES || strstr(buf_c(&answer->err), "/commondir") == NULL)
    return false;
  assert(make_steps[LIST_STEP].ask == ask_list);
  job->tries++;
  job->listed = false;
  free(job->path);
  job->path = NULL;
  job->at = LIST_STEP;
  return true;
}

static void on_answer(void *ctx, struct git_answer *answer) {
  struct git_job *job = ctx;
  bool ok = !job->cancelled;
  if (meets_another(job, answer)) {
    job_next(job);
    return;
  }
  if (ok && !answer->ran)
    ok = err_set(&job->err, ERR_IO, "%.400s", buf_c(&answer->err));
  ok = ok && job->steps[job->at].take(job, answer);
  job->at++;
  if (ok)
    job_next(job);
  else
    job_over(job);
}

static void job_next(struct git_job *job) {
  for (; job->err.code == ERR_NONE && job->steps[job->at].ask != NULL; job->at++) {
    struct git_ask ask = {0};
    if (!job->steps[job->at].ask(job, &ask))
      continue;
    if (git_ask(&job->git, &ask, on_answer, job, &job->err))
      return;
  }
  job_over(job);
}

static char *copy_or_null(const char *text) {
  return text ? xstrdup(text) : NULL;
}

void session_start_worktree(struct session *s, long turn) {
  const struct worktree *w = core_worktree(&s->core, turn);
  if (w == NULL || w->asked == WORKTREE_IDLE || session_is_leaving(s) ||
      s->core.status != SESSION_RUNNING)
    return;
  struct git_job *job = xcalloc(1, sizeof *job);
  bool makes = w->asked == WORKTREE_MAKING, inner = turn > 0 && s->core.worktree.made;
  job->session = s;
  job->turn = turn;
  job->steps = makes ? make_steps : commit_steps;
  job->source = xstrdup(inner ? s->core.worktree.folder : s->env.cwd);
  job->session_id = xstrdup(s->core.session);
  job->branch = copy_or_null(w->branch);
  job->base = copy_or_null(makes ? w->base : NULL);
  job->path = copy_or_null(makes ? NULL : w->path);
  job->message = copy_or_null(w->message);
  job->number = w->committing;
  job->again = s->recovered_seq > 0;
  char *real = realpath(job->source, NULL);
  (void)repo_find(real ? real : job->source, &job->repo);
  free(real);
  git_begin(&job->git, s->host->processes);
  list_push_back(&s->jobs, &job->in_session);
  job_next(job);
}

void session_cancel_worktrees(struct session *s) {
  LIST_EACH(struct git_job, job, in_session, &s->jobs) {
    job->cancelled = true;
    git_cancel(&job->git);
  }
}

/* --- before a start --- */

static bool has_file(const char *folder, const char *name) {
  struct buf path = {0};
  buf_printf(&path, "%s/%s", folder, name);
  bool found = access(buf_c(&path), F_OK) == 0;
  buf_deinit(&path);
  return found;
}

static bool is_bare(const char *folder) {
  return has_file(folder, "HEAD") && has_file(folder, "objects") && has_file(folder, "refs");
}

bool worktree_check(const json_t *config, const struct workflow *wf, struct err *err) {
  const char *cwd = json_string_value(json_at(config, "cwd"));
  bool wanted = core_workspace_mode(wf, config) == WORKSPACE_WORKTREE;
  const char *key = "workspace: worktree";
  struct repo repo;
  for (size_t i = 0; !wanted && i < wf->movement_count; i++)
    wanted = wf->movements[i].own_worktree;
  if (!wanted && core_commit_when(wf, config) != COMMIT_OFF) {
    wanted = true;
    key = "commit";
  }
  if (!wanted || cwd == NULL)
    return true;
  char git[PATHS_BYTES];
  if (!probe_find_program("git", git, sizeof git))
    return err_set(err, ERR_NOT_FOUND, "%s needs git, which is not in PATH: install it", key);
  char *real = realpath(cwd, NULL);
  bool found = repo_find(real ? real : cwd, &repo);
  if (found)
    repo_deinit(&repo);
  found = found || is_bare(cwd);
  free(real);
  return found || err_set(err, ERR_INVALID,
                          "%s needs a git repository, and %.300s is in none: git init, or "
                          "workspace: here",
                          key, cwd);
}
