/* Defines the steps that commit what was done, and the data about the commit. */
#include "host/worktree/internal.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void drop_locks(const struct git_job *job) {
  struct repo repo;
  if (!job->again || job->path == NULL || !repo_find(job->path, &repo))
    return;
  git_drop_lock(&repo.git_dir, "index");
  git_drop_lock(&repo.git_dir, "HEAD");
  git_drop_branch_lock(job, &repo);
  repo_deinit(&repo);
}

static const char *commit_folder(const struct git_job *job) {
  return job->path ? job->path : job->source;
}

/* Asks for the last commit: ours may be there from before a crash. */
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
    return git_job_complain(job, "commit: needs a git repository", answer);
  job->found = answer->exit == 0 && str_eq_c(session, job->session_id) &&
               str_to_long(turn, &number) && number == job->number;
  if (job->found)
    job->commit = xstrndup(hash.p, hash.n);
  return true;
}

/* Stages everything except what was copied or linked into the tree. */
static bool ask_staging(struct git_job *job, struct git_ask *ask) {
  static const char *const names[] = {"copy", "link"};
  struct buf paths = {0};
  buf_append(&paths, ":(top)", sizeof ":(top)");
  for (size_t k = 0; job->path != NULL && k < ARRAY_LEN(names); k++) {
    const json_t *list = git_job_setting(job, names[k]), *name;
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
  return answer->exit == 0 || git_job_complain(job, "git add", answer);
}

static bool ask_staged(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, commit_folder(job), "diff", "--cached", "--quiet", "--no-ext-diff");
  return !job->found;
}

/* Returns true if a merge is in progress: its commit is made even if nothing has changed. */
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
  return answer->exit < 2 || git_job_complain(job, "git diff", answer);
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
  const char *author = json_string_value(git_job_setting(job, "author"));
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
  return answer->exit == 0 || git_job_complain(job, "git commit", answer);
}

static bool ask_head(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, commit_folder(job), "rev-parse", "--verify", "--quiet", "HEAD");
  return !job->found;
}

static bool take_head(struct git_job *job, const struct git_answer *answer) {
  free(job->head);
  job->head = answer->exit == 0 ? git_line_of(answer) : NULL;
  if (job->staged && job->head != NULL)
    job->commit = xstrdup(job->head);
  return true;
}

const struct git_step git_commit_steps[] = {
    {git_step_ask_drivers, git_step_take_drivers},
    {ask_last, take_last},
    {ask_staging, take_staging},
    {ask_staged, take_staged},
    {ask_identity, take_identity},
    {ask_commit_now, take_commit_now},
    {ask_head, take_head},
    {NULL, NULL},
};

json_t *git_job_committed(const struct git_job *job) {
  json_t *commit = job->commit ? json_string(job->commit) : json_null();
  return json_pack("{so ss*}", "commit", commit, "head", job->found ? job->commit : job->head);
}
