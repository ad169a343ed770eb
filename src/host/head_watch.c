/* Reads where HEAD is before and after a call, and says what became of it. */
#include "host/head_watch.h"

#include "base/log.h"
#include "core/state.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "git/repo.h"
#include "git/run.h"
#include "git/serve.h"
#include "git/work.h"
#include "os/clock.h"
#include "os/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct watched_heads {
  bool is_repo, has_main;
  struct repo_head here, main;
  off_t moves;    /* size of HEAD's reflog */
  char *main_top; /* real path of the repository's own tree */
  struct stat main_index;
};

struct head_watch {
  char *folder;
  struct watched_heads before, after;
  bool ends, busy;
  int64_t began_ms; /* real time */
  char *session, *cwd, *path, *branch, *base, *known;
  json_t *seen, *told;
  void (*then)(void *ctx);
  void *ctx;
};

static void heads_read_main(struct repo *main, struct watched_heads *heads) {
  buf_auto_t index = buf_of("%s/index", buf_c(&main->git_dir));
  repo_read_head(main, &heads->main);
  heads->has_main = true;
  heads->main_top = realpath(buf_c(&main->top), NULL);
  if (lstat(buf_c(&index), &heads->main_index) != 0)
    heads->main_index = (struct stat){0};
  repo_deinit(main);
}

static void heads_read(const char *folder, struct watched_heads *heads) {
  struct repo repo, main;
  char *real = realpath(folder, NULL);
  *heads = (struct watched_heads){.is_repo = real != NULL && repo_find(real, &repo)};
  free(real);
  if (!heads->is_repo)
    return;
  buf_auto_t log = buf_of("%s/logs/HEAD", buf_c(&repo.git_dir));
  struct stat st;
  heads->moves = lstat(buf_c(&log), &st) == 0 ? st.st_size : 0;
  repo_read_head(&repo, &heads->here);
  if (repo_main(&repo, &main))
    heads_read_main(&main, heads);
  repo_deinit(&repo);
}

static json_t *heads_place(const struct repo_head *head) {
  json_t *branch = head->branch[0] ? json_text(str_from(head->branch)) : json_null();
  return json_pack("{so ss*}", "branch", branch, "commit", head->commit[0] ? head->commit : NULL);
}

static bool heads_same(const struct repo_head *a, const struct repo_head *b) {
  return strcmp(a->branch, b->branch) == 0 && strcmp(a->commit, b->commit) == 0;
}

/* Returns true if git programs of the call did more in that tree than look. NULL, which is too much
 * to read, counts as yes. */
static bool worked_there(const json_t *seen, const char *top) {
  static const char looks[] =
      "status diff describe grep log show blame rev-parse rev-list cat-file "
      "ls-files ls-tree for-each-ref merge-base config worktree";
  JSON_EACH(seen, i, pair) {
    struct str tree = json_view(json_array_get(pair, 0)), name = json_view(json_array_get(pair, 1));
    if (str_eq_c(tree, top) && !str_among(name, looks))
      return true;
  }
  return seen == NULL;
}

/* Tells what became of the repository's own tree, which is its user's. */
static void tell_main(json_t *told, const struct watched_heads *before,
                      const struct watched_heads *after, const json_t *seen) {
  const struct stat *was = &before->main_index, *is = &after->main_index;
  bool moved = !heads_same(&before->main, &after->main);
  bool index = was->st_ino != is->st_ino || was->st_size != is->st_size ||
               memcmp(&was->st_mtim, &is->st_mtim, sizeof is->st_mtim) != 0;
  if (!before->has_main || !after->has_main || after->main_top == NULL)
    return;
  bool own = (moved || index) && worked_there(seen, after->main_top);
  if (!moved && !own)
    return;
  json_object_set_new(told, "main", heads_place(&after->main));
  json_object_set_new(told, "main_was", heads_place(&before->main));
  if (own)
    json_object_set_new(told, "main_by_call", json_true());
}

/* The worktree is gone with its HEAD: tells what was committed meanwhile on branches that are
 * checked out nowhere. */
static void tell_astray(const struct head_watch *w, json_t *told) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  const char *was = w->before.here.commit;
  struct repo repo;
  struct err err;
  struct stat st;
  char_auto_t *real = w->path && was[0] ? realpath(w->cwd, NULL) : NULL;
  if (real == NULL || !repo_find(real, &repo))
    return;
  if (!git_run(real, &answer, &err, "for-each-ref", "--contains", w->base ? w->base : was,
               "--no-merged", was,
               "--format=%(if)%(worktreepath)%(then)%(else)%(objectname) %(refname)%(end)",
               "refs/heads", NULL))
    log_warn("%s", err.text);
  json_t *others = json_array();
  for (struct str rest = buf_view(&answer.out); rest.n > 0;) {
    struct str name = str_next_line(&rest), commit = str_cut(&name, ' ');
    buf_auto_t file = buf_of("%s/" STR_FMT, buf_c(&repo.common), STR_ARG(name));
    if (name.n == 0 || lstat(buf_c(&file), &st) != 0 ||
        (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000 < w->began_ms)
      continue;
    (void)str_drop(&name, "refs/heads/");
    json_array_append_new(others, json_pack("{so ss%}", "branch", json_text(name), "commit",
                                            commit.p, (int)commit.n));
  }
  if (json_array_size(others) > 0) {
    json_object_set_new(told, "work", json_string(work_state_name(WORK_LEFT_BEHIND)));
    json_object_set(told, "lacks", json_object_get(json_array_get(others, 0), "commit"));
    json_object_set(told, "others", others);
  }
  json_decref(others);
  repo_deinit(&repo);
}

static json_t *heads_tell(const struct head_watch *w) {
  const struct watched_heads *before = &w->before, *after = &w->after;
  const struct work_where where = {.session = w->session,
                                   .repo = w->cwd,
                                   .worktree = w->path,
                                   .branch = w->branch,
                                   .base = w->base,
                                   .known = w->known,
                                   .commits_only = true};
  AUTO(work_deinit) struct work work = {0};
  struct err err;
  if (!after->is_repo) { /* the folder is gone: what it did elsewhere counts all the same */
    json_t *main = heads_place(&before->here);
    tell_main(main, before, after, w->seen);
    tell_astray(w, main);
    if (json_object_size(main) > 2)
      return main;
    json_decref(main);
    return NULL;
  }
  json_t *told = heads_place(&after->here);
  if (w->known == NULL || !heads_same(&before->here, &after->here))
    json_object_set_new(told, "was", heads_place(&before->here));
  bool strays = w->path != NULL && strcmp(after->here.branch, w->branch) != 0;
  bool moves = before->moves != after->moves || !heads_same(&before->here, &after->here) ||
               (w->known != NULL && strcmp(after->here.commit, w->known) != 0);
  if ((strays || moves) && work_find(&where, &work, &err)) {
    if (work.state != WORK_ON_BRANCH && work.state != WORK_GONE)
      json_object_set_new(told, "work", json_string(work_state_name(work.state)));
    if (work.lacks[0] != '\0')
      json_object_set_new(told, "lacks", json_string(work.lacks));
    if (json_array_size(work.others) > 0 && !heads_same(&before->here, &after->here))
      json_object_set(told, "others", work.others);
  } else if (strays || moves) {
    log_warn("%s", err.text);
  }
  tell_main(told, before, after, w->seen);
  return told;
}

/* --- around a call --- */

static void watch_work(void *ctx) {
  struct head_watch *w = ctx;
  struct repo main;
  heads_read(w->folder, w->ends ? &w->after : &w->before);
  if (w->ends && !w->after.is_repo && w->before.main_top && repo_find(w->before.main_top, &main))
    heads_read_main(&main, &w->after);
  if (w->ends)
    w->told = heads_tell(w);
}

static void watch_after(void *ctx) {
  struct head_watch *w = ctx;
  w->busy = false;
  w->then(w->ctx);
}

struct head_watch *head_watch_begin(uv_loop_t *loop, const char *folder,
                                    void (*on_ready)(void *ctx), void *ctx) {
  struct head_watch *w = xcalloc(1, sizeof *w);
  *w = (struct head_watch){.folder = xstrdup(folder),
                           .busy = true,
                           .began_ms = clock_real_ms(),
                           .then = on_ready,
                           .ctx = ctx};
  loop_do(loop, watch_work, watch_after, w);
  return w;
}

void head_watch_end(struct head_watch *w, const struct core *core, const struct turn *turn,
                    const char *cwd, const json_t *seen, void (*on_done)(void *ctx)) {
  assert(!w->busy && !w->ends);
  const struct worktree *tree = turn ? core_worktree(core, turn->id) : NULL;
  if (tree == NULL || !tree->made)
    tree = &core->worktree;
  w->session = xstrdup(core->session);
  w->cwd = xstrdup(cwd);
  if (tree->made) {
    w->path = text_copy(tree->path);
    w->branch = text_copy(tree->branch);
  }
  w->base = text_copy(tree->base);
  w->known = text_copy(tree->head);
  w->seen = json_incref((json_t *)seen);
  w->then = on_done;
  w->ends = w->busy = true;
  git_serve_do(json_object_get(core->config, "sandbox"), watch_work, watch_after, w);
}

json_t *head_watch_take(struct head_watch *w) {
  json_t *told = w->told;
  w->told = NULL;
  return told;
}

void head_watch_free(struct head_watch *w) {
  if (w == NULL)
    return;
  assert(!w->busy);
  char *const texts[] = {w->folder, w->before.main_top, w->after.main_top, w->session, w->cwd,
                         w->path,   w->branch,          w->base,           w->known};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    free(texts[i]);
  json_decref(w->seen);
  json_decref(w->told);
  free(w);
}
