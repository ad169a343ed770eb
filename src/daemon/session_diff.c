/* Asks git what a session changed, for a person to look at. */
#include "daemon/session_diff.h"

#include "audit/verified_reader.h"
#include "base/log.h"
#include "host/worktree_changes.h"

#include <assert.h>
#include <stdlib.h>

struct session_diff_job {
  struct read_jobs *rs;
  struct server_request *request; /* NULL: its client has left */
  struct store_ref ref;
  struct trees trees;
  struct git_ask ask; /* its arguments are borrowed from trees */
  struct git git;
  struct session_diff_ask how;
  size_t bytes; /* of what git told */
  uint64_t sound;
  struct err damage,
      unread; /* with a code: what the log lacks, why nothing is known of its trees */
};

static void session_diff_drop(void *what) {
  struct session_diff_job *job = what;
  git_deinit(&job->git);
  trees_deinit(&job->trees);
  free(job);
}

static void session_diff_over(struct session_diff_job *job, struct str diff, bool cut,
                              const char *why) {
  const char *damage = job->damage.code != ERR_NONE ? job->damage.text : NULL;
  const struct session_diff difference = {.diff = diff,
                                          .cut = cut,
                                          .bytes = job->bytes,
                                          .more_files = job->trees.more_paths,
                                          .why = why,
                                          .sound = job->sound,
                                          .damage = damage};
  read_jobs_end_more(job->rs);
  if (job->request != NULL)
    job->how.done(job->how.ctx, job->request, &difference);
  session_diff_drop(job);
}

static void session_diff_on_diff(void *ctx, struct git_answer *answer) {
  struct session_diff_job *job = ctx;
  struct buf diff = {0};
  size_t max = job->how.all ? LIMIT_TREE_DIFF_ALL_BYTES : LIMIT_TREE_DIFF_BYTES;
  bool cut = trees_take_diff(answer, job->how.from, max, &diff) || job->trees.more_paths;
  job->bytes = answer->exit == 0 ? answer->out.n : 0;
  session_diff_over(job, buf_view(&diff), cut, answer->ran ? NULL : buf_c(&answer->err));
  buf_deinit(&diff);
}

static void session_diff_on_drivers(void *ctx, struct git_answer *answer) {
  struct session_diff_job *job = ctx;
  struct err err;
  git_take_drivers(&job->git, answer);
  if (job->request == NULL || !answer->ran)
    session_diff_over(job, STR(""), false, buf_c(&answer->err));
  else if (!git_ask(&job->git, &job->ask, session_diff_on_diff, job, &err))
    session_diff_over(job, STR(""), false, err.text);
}

static void session_diff_on_gone(void *ctx) {
  struct session_diff_job *job = ctx;
  job->request = NULL;
  git_cancel(&job->git);
}

static void session_diff_ask(void *what, struct server_request *r) {
  struct session_diff_job *job = what;
  const struct git_ask drivers = {.folder = job->ask.folder, .words = {GIT_DRIVERS}};
  struct err err;
  job->request = r;
  read_jobs_begin_more(job->rs);
  server_keep(r, session_diff_on_gone, job);
  if (job->unread.code != ERR_NONE)
    session_diff_over(job, STR(""), false, job->unread.text);
  else if (job->ask.words[0] == NULL)
    session_diff_over(job, STR(""), false, NULL);
  else if (job->git.processes == NULL)
    session_diff_over(job, STR(""), false, "no program can be run here");
  else if (!git_ask(&job->git, &drivers, session_diff_on_drivers, job, &err))
    session_diff_over(job, STR(""), false, err.text);
}

static void session_diff_check(struct session_diff_job *job) {
  struct verified_reader book;
  struct err ignored; /* who reads the trees says so */
  json_t *record;
  if (!verified_open(&book, &job->ref, false, &ignored))
    return;
  while ((record = verified_next(&book)) != NULL)
    json_decref(record);
  job->sound = book.records;
  if (book.state == VERIFIED_DAMAGED)
    job->damage = book.damage;
  verified_close(&book);
}

static void session_diff_read(void *what, struct read_job_answer *answer) {
  struct session_diff_job *job = what;
  answer->hand_on = session_diff_ask;
  if (job->how.checks)
    session_diff_check(job);
  struct err err = {0};
  bool ok = trees_read(&job->trees, &job->ref, &err);
  if (ok && !trees_ask_diff(&job->trees, &job->ask))
    job->ask = (struct git_ask){0};
  if (ok)
    return;
  if (job->damage.code != ERR_NONE) { /* a page says that, and gives this as the reason */
    job->unread = err;
    return;
  }
  answer->err = err;
  answer->status = err.code == ERR_NOT_FOUND ? 404 : 500;
}

void session_diff_take(struct read_jobs *rs, const struct session_diff_ask *ask,
                       struct server_request *r, const struct store_ref *ref) {
  assert(ask->done != NULL);
  struct session_diff_job *job = xcalloc(1, sizeof *job);
  job->rs = rs;
  job->ref = *ref;
  job->how = *ask;
  git_begin(&job->git, ask->processes);
  read_job_take(rs, r, session_diff_read, session_diff_drop, job);
}
