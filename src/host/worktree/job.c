/* Takes the making of a worktree, or a commit, through its steps, and tells the session. */
#include "host/worktree/internal.h"

#include "base/log.h"
#include "format/json_object.h"
#include "host/paths.h"
#include "provider/probe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const json_t *git_job_setting(const struct git_job *job, const char *name) {
  return core_worktree_setting(job->session->core.config, name);
}

bool git_job_complain(struct git_job *job, const char *what, const struct git_answer *answer) {
  struct buf text = {0};
  git_complaint(answer, &text);
  (void)err_set(&job->err, ERR_INVALID, "%.200s: %.280s", what, buf_c(&text));
  buf_deinit(&text);
  return false;
}

char *git_line_of(const struct git_answer *answer) {
  size_t n = answer->out.n;
  if (n > 0 && answer->out.p[n - 1] == '\n')
    n--;
  return xstrndup(buf_c(&answer->out), n);
}

void git_ask_set(struct git_ask *ask, const char *folder, const char *const *words) {
  size_t n = 0;
  ask->folder = folder;
  for (; words[n] != NULL; n++) {
    assert(n + 1 < GIT_WORDS);
    ask->words[n] = words[n];
  }
  ask->words[n] = NULL;
}

bool git_step_take_nothing(struct git_job *job, const struct git_answer *answer) {
  (void)job;
  (void)answer;
  return true;
}

bool git_step_ask_drivers(struct git_job *job, struct git_ask *ask) {
  job->git.programs = json_is_true(git_job_setting(job, "hooks"));
  WORDS(ask, job->source, GIT_DRIVERS);
  return !job->git.programs;
}

bool git_step_take_drivers(struct git_job *job, const struct git_answer *answer) {
  if (!answer->ran)
    return git_job_complain(job, "git cannot be run", answer);
  git_take_drivers(&job->git, answer);
  return true;
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
  bool makes = job->steps == git_make_steps, wanted = !job->cancelled;
  char message[LIMIT_ERROR_TEXT_BYTES];
  json_t *data = NULL;
  if (wanted && job->err.code == ERR_NONE)
    data = makes ? git_job_made(job) : git_job_committed(job);
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

/* Returns true if git met files that another session's git was just making, and gave up: the job
 * starts again from the list. */
static bool meets_another(struct git_job *job, const struct git_answer *answer) {
  enum { TRIES = 20 };
  if (job->cancelled || job->steps != git_make_steps || !answer->ran || answer->exit != 128 ||
      job->tries >= TRIES || strstr(buf_c(&answer->err), "/commondir") == NULL)
    return false;
  job->tries++;
  job->listed = false;
  free(job->path);
  job->path = NULL;
  job->at = GIT_LIST_STEP;
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
  job->steps = makes ? git_make_steps : git_commit_steps;
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

/* Checks that the session could do more than stop at once. */
static bool branch_is_free(const struct workflow *wf, const json_t *config, const struct repo *repo,
                           struct err *err) {
  struct buf branch = {0};
  bool taken = core_workspace_mode(wf, config) == WORKSPACE_WORKTREE &&
               core_branch_fixed(wf, config, &branch) && repo_has_branch(repo, buf_c(&branch));
  if (taken)
    (void)err_set(err, ERR_INVALID,
                  "the branch %.300s exists already: put {id} into branch:, or name another one",
                  buf_c(&branch));
  buf_deinit(&branch);
  return !taken;
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
  bool found = repo_find(real ? real : cwd, &repo), bare = !found && is_bare(cwd);
  if (bare)
    buf_puts(&repo.common, real ? real : cwd);
  free(real);
  bool ok = found || bare ||
            err_set(err, ERR_INVALID,
                    "%s needs a git repository, and %.300s is in none: git init, or "
                    "workspace: here",
                    key, cwd);
  ok = ok && branch_is_free(wf, config, &repo, err);
  repo_deinit(&repo);
  return ok;
}
