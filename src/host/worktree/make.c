/* Defines the steps that make a worktree, and the data about it. */
#include "host/worktree/internal.h"

#include "base/log.h"
#include "format/json_write.h"
#include "host/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    job->base = git_line_of(answer);
    return true;
  }
  if (answer->err.n > 0)
    return git_job_complain(job, "workspace: worktree needs a git repository", answer);
  job->base[strlen(job->base) - strlen("^{commit}")] = '\0';
  if (strcmp(job->base, "HEAD") != 0)
    return err_set(&job->err, ERR_INVALID, "the base %.300s is not a commit here", job->base);
  return err_set(&job->err, ERR_INVALID,
                 "a worktree starts at a commit, but the repository of %.300s has none yet: commit "
                 "something first",
                 job->source);
}

static bool ask_prefix(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "rev-parse", "--show-prefix");
  return true;
}

static bool take_prefix(struct git_job *job, const struct git_answer *answer) {
  if (answer->exit != 0)
    return git_job_complain(job, "git rev-parse --show-prefix", answer);
  job->prefix = git_line_of(answer);
  size_t n = strlen(job->prefix);
  if (n > 0 && job->prefix[n - 1] == '/')
    job->prefix[n - 1] = '\0';
  return true;
}

static bool choose_path(struct git_job *job) {
  char folder[PATHS_BYTES];
  const char *set = json_string_value(git_job_setting(job, "folder"));
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
                            "another folder with workspace: {folder: DIR} in config.yaml",
                            job->path);
}

static bool ask_list(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "worktree", "list", "--porcelain", "-z");
  return true;
}

static bool take_list(struct git_job *job, const struct git_answer *answer) {
  static const char head[] = "worktree ";
  if (answer->exit != 0)
    return git_job_complain(job, "git worktree list", answer);
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

/* Removes what a crash left: the files first, so that git then removes what it knows of them. */
static bool ask_remove_files(struct git_job *job, struct git_ask *ask) {
  ask->other = true;
  WORDS(ask, "/", "rm", "-rf", "--", job->path);
  return job->exists;
}

static bool ask_remove(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->source, "worktree", "remove", "--force", "--force", job->path);
  return job->listed;
}

void git_drop_lock(const struct buf *folder, const char *name) {
  struct buf lock = {0};
  buf_printf(&lock, "%s/%s.lock", buf_c(folder), name);
  (void)unlink(buf_c(&lock));
  buf_deinit(&lock);
}

void git_drop_branch_lock(const struct git_job *job, const struct repo *repo) {
  struct buf ref = {0};
  buf_printf(&ref, "refs/heads/%s", job->branch);
  if (job->again && strstr(job->branch, job->session_id) != NULL)
    git_drop_lock(&repo->common, buf_c(&ref));
  buf_deinit(&ref);
}

static bool ask_branch(struct git_job *job, struct git_ask *ask) {
  char *ref = NULL;
  if (asprintf(&ref, "refs/heads/%s", job->branch) < 0)
    BUG("out of memory");
  git_drop_branch_lock(job, &job->repo);
  free(job->head);
  job->head = ref;
  WORDS(ask, job->source, "rev-parse", "--verify", "--quiet", "--end-of-options", job->head);
  return true;
}

/* Takes an existing branch if its name has the session's own id: it is from before a crash. */
static bool take_branch(struct git_job *job, const struct git_answer *answer) {
  job->has_branch = answer->exit == 0;
  if (!job->has_branch)
    return true;
  if (strstr(job->branch, job->session_id) == NULL)
    return err_set(&job->err, ERR_INVALID,
                   "the branch %.300s exists already: put {id} into branch:, or name another one",
                   job->branch);
  free(job->base);
  job->base = git_line_of(answer);
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
  return answer->exit == 0 || git_job_complain(job, "git worktree add", answer);
}

/* Merges without a commit. The tree then has both sides, with git's marks where they conflict: the
 * session's first call finds them, and its commit is the merge. */
static bool ask_merge(struct git_job *job, struct git_ask *ask) {
  const json_t *merge = git_job_setting(job, "merge");
  if (merge == NULL || job->turn > 0)
    return false;
  WORDS(ask, job->path, "merge", "--no-commit", "--no-ff", "--quiet", "--no-verify", "--no-stat",
        json_string_value(merge));
  return true;
}

/* Leaves a note of the merge, so that a movement that integrates may finish it too. */
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
    return git_job_complain(job, "git merge", answer);
  note_merge(job);
  return true;
}

static bool ask_submodules(struct git_job *job, struct git_ask *ask) {
  WORDS(ask, job->path, "submodule", "update", "--init", "--recursive", "--quiet");
  return json_is_true(git_job_setting(job, "submodules"));
}

static bool take_submodules(struct git_job *job, const struct git_answer *answer) {
  return answer->exit == 0 || git_job_complain(job, "git submodule update", answer);
}

/* Sets the paths of a file that git does not have and of its copy. Returns false if there is
 * nothing to copy. */
static bool file_paths(const struct git_job *job, const char *name, struct buf *from,
                       struct buf *to) {
  struct stat st;
  buf_printf(from, "%s/%s", job->repo.top.n > 0 ? buf_c(&job->repo.top) : job->source, name);
  buf_printf(to, "%s/%s", job->path, name);
  return lstat(buf_c(from), &st) == 0 && lstat(buf_c(to), &st) != 0;
}

/* Copies one entry, and stays at its step until all are copied. */
static bool ask_copy(struct git_job *job, struct git_ask *ask) {
  const json_t *names = git_job_setting(job, "copy");
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
    return git_job_complain(job, "workspace: copy", answer);
  job->item++;
  job->at--;
  return true;
}

static bool link_files(struct git_job *job, struct git_ask *ask) {
  const json_t *names = git_job_setting(job, "link"), *name;
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

const struct git_step git_make_steps[] = {
    {git_step_ask_drivers, git_step_take_drivers},
    {ask_base, take_base},
    {ask_prefix, take_prefix},
    [GIT_LIST_STEP] = {ask_list, take_list},
    {ask_remove_files, git_step_take_nothing},
    {ask_remove, git_step_take_nothing},
    {ask_branch, take_branch},
    {ask_add, take_add},
    {ask_merge, take_merge},
    {ask_submodules, take_submodules},
    {ask_copy, take_copy},
    {link_files, NULL},
    {NULL, NULL},
};

json_t *git_job_made(struct git_job *job) {
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
