/* Asks git what a session changed, for a person to look at. */
#include "daemon/difference.h"

#include "audit/book.h"
#include "base/log.h"
#include "host/worktree/trees.h"

#include <assert.h>
#include <stdlib.h>

struct difference_job {
  struct readings *rs;
  struct server_request *request; /* NULL: its client has left */
  struct store_ref ref;
  struct trees trees;
  struct git_ask ask; /* its arguments are borrowed from trees */
  struct git git;
  struct difference_ask how;
  size_t bytes; /* of what git told */
  uint64_t sound;
  struct err damage,
      unread; /* with a code: what the log lacks, why nothing is known of its trees */
};

static void difference_drop(void *what) {
  struct difference_job *job = what;
  git_deinit(&job->git);
  trees_deinit(&job->trees);
  free(job);
}

static void difference_over(struct difference_job *job, struct str diff, bool cut,
                            const char *why) {
  const struct difference difference = {.diff = diff,
                                        .cut = cut,
                                        .bytes = job->bytes,
                                        .more_files = job->trees.more_paths,
                                        .why = why,
                                        .sound = job->sound,
                                        .damage =
                                            job->damage.code != ERR_NONE ? job->damage.text : NULL};
  readings_end_more(job->rs);
  if (job->request != NULL)
    job->how.done(job->how.ctx, job->request, &difference);
  difference_drop(job);
}

static void difference_on_diff(void *ctx, struct git_answer *answer) {
  struct difference_job *job = ctx;
  struct buf diff = {0};
  size_t max = job->how.all ? LIMIT_TREE_DIFF_ALL_BYTES : LIMIT_TREE_DIFF_BYTES;
  bool cut = trees_take_diff(answer, job->how.from, max, &diff) || job->trees.more_paths;
  job->bytes = answer->exit == 0 ? answer->out.n : 0;
  difference_over(job, buf_view(&diff), cut, answer->ran ? NULL : buf_c(&answer->err));
  buf_deinit(&diff);
}

static void difference_on_drivers(void *ctx, struct git_answer *answer) {
  struct difference_job *job = ctx;
  struct err err;
  git_take_drivers(&job->git, answer);
  if (job->request == NULL || !answer->ran)
    difference_over(job, STR(""), false, buf_c(&answer->err));
  else if (!git_ask(&job->git, &job->ask, difference_on_diff, job, &err))
    difference_over(job, STR(""), false, err.text);
}

static void difference_on_gone(void *ctx) {
  struct difference_job *job = ctx;
  job->request = NULL;
  git_cancel(&job->git);
}

static void difference_ask(void *what, struct server_request *r) {
  struct difference_job *job = what;
  const struct git_ask drivers = {.folder = job->ask.folder, .words = {GIT_DRIVERS}};
  struct err err;
  job->request = r;
  readings_begin_more(job->rs);
  server_keep(r, difference_on_gone, job);
  if (job->unread.code != ERR_NONE)
    difference_over(job, STR(""), false, job->unread.text);
  else if (job->ask.words[0] == NULL)
    difference_over(job, STR(""), false, NULL);
  else if (job->git.processes == NULL)
    difference_over(job, STR(""), false, "no program can be run here");
  else if (!git_ask(&job->git, &drivers, difference_on_drivers, job, &err))
    difference_over(job, STR(""), false, err.text);
}

static void difference_check(struct difference_job *job) {
  struct book book;
  struct err ignored; /* who reads the trees says so */
  json_t *record;
  if (!book_open(&book, &job->ref, false, &ignored))
    return;
  while ((record = book_next(&book)) != NULL)
    json_decref(record);
  job->sound = book.records;
  if (book.state == BOOK_DAMAGED)
    job->damage = book.damage;
  book_close(&book);
}

static void difference_read(void *what, struct reading_answer *answer) {
  struct difference_job *job = what;
  answer->hand_on = difference_ask;
  if (job->how.checks)
    difference_check(job);
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

void difference_take(struct readings *rs, const struct difference_ask *ask,
                     struct server_request *r, const struct store_ref *ref) {
  assert(ask->done != NULL);
  struct difference_job *job = xcalloc(1, sizeof *job);
  job->rs = rs;
  job->ref = *ref;
  job->how = *ask;
  git_begin(&job->git, ask->processes);
  reading_take(rs, r, difference_read, difference_drop, job);
}
