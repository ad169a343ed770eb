/* Looks at working trees through their steps, in the pool and with git, for all calls in them. */
#include "host/changes.h"

#include "base/limits.h"
#include "base/log.h"
#include "core/checks.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "git/tree.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/loop.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct changes_picture {
  unsigned refs;
  struct tree_picture *of;
};

enum changes_job { JOB_LOOK, JOB_COMPARE, JOB_LISTED, JOB_BLOBS };

/* A tree on its stand-in. Once git's index has other files, a new one takes its place for calls
 * that begin; those that run stay with this one. */
struct changes_tree {
  struct list_node in_trees; /* the host's */
  unsigned refs;
  bool replaced;              /* by another, or it failed: no call begins here */
  struct changes_tree *older; /* that it replaces, until the first look; or NULL */
  uv_loop_t *loop;
  struct process_table *processes;
  struct list *trees;
  char *cwd, *name, *session;
  char *own_folders[4];
  json_t *protect;
  struct tree *tree;
  struct list calls;   /* struct changes */
  struct list waiting; /* of those, for the next look */
  struct list served;  /* by the one under way */
  bool busy, looking;  /* looking: also until it has been compared */
  bool needed;         /* the look is needed though the tree is not current */
  bool is_current;     /* as of the last look's beginning */
  bool is_fresh;       /* segue itself has begun nothing since the last look that may write */
  enum changes_job job;
  enum tree_step step;                   /* the result of the last one */
  bool ok;                               /* the program ended with status 0 */
  struct buf output;                     /* output of the program */
  struct changes *at;                    /* the call that is being served */
  struct changes_picture *picture, *now; /* of the last look, and of the one under way */
  struct changes_picture *before;        /* what it is compared with for that call */
  uint64_t began_ms, took_ms, seen_ms;   /* of the last look, by clock_mono_ms */
};

struct changes {
  struct list_node in_tree; /* waiting or served */
  struct list_node in_calls;
  struct changes_tree *tree;
  const void *owner; /* its session */
  struct changes_seen *seen;
  struct changes_picture *before;
  bool busy;   /* between begin and on_ready, or end and on_done */
  bool ends;   /* its call is over */
  bool left;   /* another one tells what changed */
  bool shares; /* others of its session were at work meanwhile */
  bool failed, guarded;
  struct err problem;
  json_t *changed, *between;
  size_t more;
  void (*then)(void *ctx);
  void *ctx;
};

/* --- trees and pictures, counted --- */

static struct changes_picture *picture_keep(struct changes_picture *picture) {
  if (picture != NULL)
    picture->refs++;
  return picture;
}

static void picture_drop(struct changes_picture **picture) {
  if (*picture != NULL && --(*picture)->refs == 0) {
    tree_picture_free((*picture)->of);
    free(*picture);
  }
  *picture = NULL;
}

static void picture_set(struct changes_picture **place, struct changes_picture *picture) {
  picture_keep(picture);
  picture_drop(place);
  *place = picture;
}

static void changes_tree_drop(struct changes_tree *t) {
  if (t == NULL || --t->refs > 0)
    return;
  assert(!t->busy && t->waiting.count == 0 && t->served.count == 0);
  list_remove(t->trees, &t->in_trees);
  changes_tree_drop(t->older);
  picture_drop(&t->picture);
  tree_free(t->tree);
  for (size_t i = 0; i < ARRAY_LEN(t->own_folders); i++)
    free(t->own_folders[i]);
  json_decref(t->protect);
  buf_deinit(&t->output);
  free(t->session);
  free(t->name);
  free(t->cwd);
  free(t);
}

/* Returns true if the session saw this tree before the call: what differs is told. */
static bool changes_was_seen(const struct changes *c) {
  return c->seen != NULL && c->seen->tree == c->tree && c->seen->picture != NULL;
}

static void seen_set(struct changes_seen *seen, struct changes_tree *t,
                     struct changes_picture *picture) {
  picture_set(&seen->picture, picture);
  t->refs++;
  changes_tree_drop(seen->tree);
  seen->tree = t;
}

/* Gives the private folder a name that no tree of ours has, but that the same session would get
 * again after a crash. */
static char *name_for(const struct list *trees, const char *session) {
  struct buf name = {0};
  bool taken = true;
  for (unsigned n = 1; taken; n++) {
    buf_clear(&name);
    buf_printf(&name, "segue-%s-tree-%u", session, n);
    taken = false;
    LIST_EACH(struct changes_tree, t, in_trees, trees)
      taken |= strcmp(t->name, buf_c(&name)) == 0;
  }
  return buf_take(&name);
}

static struct changes_tree *changes_tree_new(const struct changes_spec *spec) {
  struct changes_tree *t = xcalloc(1, sizeof *t);
  t->refs = 1;
  t->loop = spec->loop;
  t->processes = spec->processes;
  t->trees = spec->trees;
  t->cwd = xstrdup(spec->cwd);
  t->session = xstrdup(spec->session);
  t->name = name_for(spec->trees, spec->session);
  t->protect = json_incref((json_t *)spec->protect);
  for (size_t i = 0; spec->own_folders[i] != NULL && i + 1 < ARRAY_LEN(t->own_folders); i++)
    t->own_folders[i] = xstrdup(spec->own_folders[i]);
  list_push_front(t->trees, &t->in_trees);
  return t;
}

static struct changes_tree *changes_tree_keep(struct changes_tree *t) {
  t->refs++;
  return t;
}

/* Returns a reference to the tree in which calls begin; NULL: there is none. */
static struct changes_tree *changes_tree_find(const struct list *trees, const char *cwd,
                                              const json_t *protect) {
  LIST_EACH(struct changes_tree, t, in_trees, trees)
    if (!t->replaced && strcmp(t->cwd, cwd) == 0 &&
        (t->protect == protect || json_same(t->protect, protect)))
      return changes_tree_keep(t);
  return NULL;
}

/* --- looks --- */

static void changes_on_work(void *ctx) {
  struct changes_tree *t = ctx;
  const struct tree_picture *last = t->picture != NULL ? t->picture->of : NULL;
  switch (t->job) {
  case JOB_LOOK:
    t->is_current = t->tree == NULL || tree_is_current(t->tree, last);
    if (t->tree == NULL)
      t->tree = tree_new(&(struct tree_spec){.dir = t->cwd,
                                             .name = t->name,
                                             .own_folders = (const char *const *)t->own_folders,
                                             .protect = t->protect,
                                             .older = t->older != NULL ? t->older->tree : NULL});
    t->step = t->is_current || t->needed ? tree_look(t->tree, last) : TREE_DONE;
    break;
  case JOB_COMPARE:
    t->step = tree_compare(t->tree, t->before->of, t->now->of);
    break;
  case JOB_LISTED:
    t->step = tree_listed(t->tree, buf_view(&t->output), t->ok);
    break;
  case JOB_BLOBS:
    t->step = tree_blobs(t->tree, buf_view(&t->output), t->ok);
    break;
  }
}

static void changes_after_work(void *ctx);

static void do_job(struct changes_tree *t, enum changes_job job) {
  t->job = job;
  loop_do(t->loop, changes_on_work, changes_after_work, t);
}

static void changes_go_on(struct changes_tree *t) {
  do_job(t, t->step == TREE_LIST ? JOB_LISTED : JOB_BLOBS);
}

static void on_git(void *ctx, struct process_result *result) {
  struct changes_tree *t = ctx;
  static const char unread[] = "could not open directory"; /* git goes on without it */
  const char *at = memmem(buf_c(&result->err), result->err.n, unread, strlen(unread));
  if (at != NULL && t->step == TREE_LIST)
    tree_lacks(t->tree, (struct str){at, strcspn(at, "\n")});
  t->ok = result->why == PROCESS_END_EXITED && result->exit_code == 0 &&
          (t->step == TREE_LIST || !result->out.cut);
  buf_deinit(&t->output);
  t->output = result->out;
  result->out = (struct buf){0};
  changes_go_on(t);
}

/* Runs git. A program that could not be started counts as one that failed. */
static void run_git(struct changes_tree *ct) {
  static const char *const copied[] = {"XDG_CONFIG_HOME", NULL};
  const struct tree *t = tree_asks(ct->tree);
  AUTO(arena_deinit) struct arena arena = {0};
  struct err err;
  const char *assignments[16];
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(t->env); i++)
    assignments[n++] = t->env[i];
  for (size_t i = 0; tree_environment[i] != NULL; i++)
    assignments[n++] = tree_environment[i];
  assert(n < ARRAY_LEN(assignments));
  assignments[n] = NULL;
  const char *const *envp = process_env_build(&arena, NULL, copied, assignments, &err);
  const struct process_spec spec = {.argv = t->argv,
                                    .cwd = t->top,
                                    .envp = envp,
                                    .stdin_bytes = t->ask.p,
                                    .stdin_n = ct->step == TREE_BLOBS ? t->ask.n : 0,
                                    .stdout_max = LIMIT_TREE_LIST_BYTES,
                                    .wall_ms = LIMIT_TREE_GIT_MS};
  bool started =
      envp != NULL && process_start(ct->processes, &spec, NULL, on_git, ct, &err) != NULL;
  if (started)
    return;
  ct->ok = false;
  buf_clear(&ct->output);
  changes_go_on(ct);
}

/* --- whom they serve --- */

/* Looks for all who wait, unless a look is under way. */
static void changes_tree_go(struct changes_tree *t) {
  if (t->busy || t->waiting.count == 0)
    return;
  t->refs++;
  t->busy = t->looking = true;
  t->needed = false;
  t->began_ms = clock_mono_ms();
  LIST_EACH(struct changes, c, in_tree, &t->waiting) {
    list_remove(&t->waiting, &c->in_tree);
    list_push_back(&t->served, &c->in_tree);
    t->needed |= c->ends || changes_was_seen(c);
  }
  do_job(t, JOB_LOOK);
}

/* Has the call begin in the tree that takes this one's place. */
static void move_on(struct changes_tree *t, struct changes *c) {
  t->replaced = true;
  c->tree = changes_tree_find(t->trees, t->cwd, t->protect);
  if (c->tree == NULL) {
    const struct changes_spec spec = {.loop = t->loop,
                                      .processes = t->processes,
                                      .trees = t->trees,
                                      .cwd = t->cwd,
                                      .session = t->session,
                                      .own_folders = (const char *const *)t->own_folders,
                                      .protect = t->protect};
    c->tree = changes_tree_new(&spec);
    c->tree->older = changes_tree_keep(t);
  }
  list_remove(&t->calls, &c->in_calls);
  list_push_back(&c->tree->calls, &c->in_calls);
  changes_tree_drop(t);
  list_push_back(&c->tree->waiting, &c->in_tree);
  changes_tree_go(c->tree);
}

/* Gives a call what this look means to it. */
static void tell_call(struct changes_tree *t, struct changes *c) {
  c->failed = t->step == TREE_FAILED;
  if (c->failed) {
    c->problem = t->tree->problem;
    t->replaced = true;
  } else if (!c->ends && (t->replaced || !t->is_current)) {
    move_on(t, c);
    return;
  } else {
    if (c->seen != NULL)
      seen_set(c->seen, t, t->now);
    if (!c->ends)
      picture_set(&c->before, t->now);
  }
  c->busy = false;
  c->then(c->ctx);
}

/* Returns what this look is compared with for the call; NULL: nothing. */
static struct changes_picture *earlier_of(const struct changes *c) {
  if (c->ends)
    return c->before;
  return changes_was_seen(c) ? c->seen->picture : NULL;
}

/* Takes a comparison over for the call, and for all that ask for the same. */
static void take_compared(struct changes_tree *t, struct changes *c) {
  struct tree *tree = t->tree;
  if (c->ends) {
    c->changed = json_incref(tree->changed);
    c->problem = tree->problem;
    c->guarded = tree->guarded;
    c->more = tree->more;
  } else {
    json_decref(c->between);
    c->between = json_incref(tree->changed);
  }
  tell_call(t, c);
}

static void tell_compared(struct changes_tree *t) {
  take_compared(t, t->at);
  LIST_EACH(struct changes, c, in_tree, &t->served)
    if (c->ends && c->before == t->before) {
      list_remove(&t->served, &c->in_tree);
      take_compared(t, c);
    }
  json_decref(t->tree->changed);
  t->tree->changed = NULL;
  picture_drop(&t->before);
}

static void serve_all(struct changes_tree *t) {
  while (t->served.count > 0) {
    struct changes *c = LIST_FIRST(struct changes, in_tree, &t->served);
    struct changes_picture *earlier = earlier_of(c);
    list_remove(&t->served, &c->in_tree);
    if (t->now != NULL && earlier != NULL && earlier != t->now) {
      t->at = c;
      picture_set(&t->before, earlier);
      do_job(t, JOB_COMPARE);
      return;
    }
    tell_call(t, c);
  }
  if (t->now != NULL)
    picture_set(&t->picture, t->now);
  picture_drop(&t->now);
  t->busy = false;
  t->is_fresh = true;
  t->seen_ms = clock_mono_ms();
  changes_tree_go(t);
  changes_tree_drop(t);
}

static void changes_after_work(void *ctx) {
  struct changes_tree *t = ctx;
  if (t->step == TREE_LIST || t->step == TREE_BLOBS) {
    run_git(t);
    return;
  }
  buf_deinit(&t->output);
  if (!t->looking) {
    tell_compared(t);
  } else {
    t->looking = false;
    t->took_ms = clock_mono_ms() - t->began_ms;
    changes_tree_drop(t->older);
    t->older = NULL;
    struct tree_picture *picture = t->step == TREE_DONE ? tree_take(t->tree) : NULL;
    if (picture != NULL) {
      t->now = xcalloc(1, sizeof *t->now);
      *t->now = (struct changes_picture){1, picture};
    }
  }
  serve_all(t);
}

/* --- calls --- */

/* Returns true if hardly anything can have changed since the last look, and what it saw is told. */
static bool can_use_last(const struct changes_tree *t, const struct changes_seen *seen) {
  return !t->busy && !t->replaced && t->is_current && t->is_fresh && t->picture != NULL &&
         (seen == NULL || seen->picture == NULL || seen->picture == t->picture) &&
         clock_mono_ms() - t->seen_ms <= LIMIT_TREE_FRESH_MS;
}

/* Finds one of the same session that is at work in the same folder. `shares` notes of all of them,
 * and of c, that they overlap: nobody can tell whose changes are whose. */
static struct changes *beside(struct changes *c, const struct list *trees, const char *cwd,
                              bool shares) {
  struct changes *found = NULL;
  LIST_EACH(struct changes_tree, t, in_trees, trees)
    LIST_EACH(struct changes, other, in_calls, &t->calls) {
      if (other == c || other->owner != c->owner || other->ends || strcmp(t->cwd, cwd) != 0)
        continue;
      if (shares)
        c->shares = other->shares = true;
      found = other->before != NULL ? other : found;
    }
  return found;
}

struct changes *changes_begin(const struct changes_spec *spec, void (*on_ready)(void *ctx),
                              void *ctx) {
  struct changes *c = xcalloc(1, sizeof *c);
  c->then = on_ready;
  c->ctx = ctx;
  c->seen = spec->seen;
  c->owner = spec->owner;
  struct changes *running = beside(c, spec->trees, spec->cwd, true);
  struct changes_tree *t = spec->seen != NULL ? spec->seen->tree : NULL;
  t = running != NULL ? running->tree : t;
  t = t != NULL ? changes_tree_keep(t) : changes_tree_find(spec->trees, spec->cwd, spec->protect);
  c->tree = t = t != NULL ? t : changes_tree_new(spec);
  list_push_back(&t->calls, &c->in_calls);
  if (running != NULL) {
    c->before = picture_keep(running->before);
    return c;
  }
  if (spec->follows && can_use_last(t, c->seen)) {
    c->before = picture_keep(t->picture);
    return c;
  }
  c->busy = true;
  bool joins = t->looking && (t->needed || !changes_was_seen(c));
  list_push_back(joins ? &t->served : &t->waiting, &c->in_tree);
  changes_tree_go(t);
  return c;
}

bool changes_ready(const struct changes *c) {
  return !c->busy;
}

/* Returns true if the last look is so long ago that one more is no burden. */
static bool has_rested(const struct changes_tree *t) {
  uint64_t ago = clock_mono_ms() - t->seen_ms;
  return !t->busy && ago >= LIMIT_TREE_REST_MS && ago >= LIMIT_TREE_REST * t->took_ms;
}

bool changes_end(struct changes *c, void (*on_done)(void *ctx)) {
  struct changes_tree *t = c->tree;
  assert(!c->busy && changes_problem(c) == NULL);
  c->ends = true;
  c->left = beside(c, t->trees, t->cwd, false) != NULL && !has_rested(t);
  if (c->left)
    return false;
  c->then = on_done;
  c->busy = true;
  list_push_back(&t->waiting, &c->in_tree);
  changes_tree_go(t);
  return true;
}

const char *changes_problem(const struct changes *c) {
  return c->failed ? c->problem.text : NULL;
}

static void put_note(struct call_result *result, const char *what, const char *more) {
  size_t n = strlen(result->note);
  print_into(result->note + n, sizeof result->note - n, "%s%s%.100s", n > 0 ? "; " : "", what,
             more);
}

void changes_unknown(struct call_result *result, const char *problem) {
  put_note(result, "it is not known which files changed: ", problem);
  print_into(result->files_unknown, sizeof result->files_unknown, "%s", problem);
}

/* Returns as many files as a record may have; if there are more, those that protect_needs first. */
static json_t *files_told(const json_t *all, const struct workflow *wf) {
  json_t *told = json_array();
  size_t n = json_array_size(all);
  for (int pass = 0; pass < 2; pass++)
    JSON_EACH(all, i, file) {
      bool first = n <= LIMIT_TREE_TOLD || protect_needs(wf, json_view(json_at(file, "path")));
      if (first == (pass == 0) && json_array_size(told) < LIMIT_TREE_TOLD)
        json_array_append(told, (json_t *)file);
    }
  return told;
}

void changes_take(struct changes *c, const struct workflow *wf, struct call_result *result) {
  if (c == NULL)
    return;
  assert(!c->busy);
  size_t between = json_array_size(c->between);
  if (between > 0) {
    json_decref(result->files_between);
    result->files_between = files_told(c->between, wf);
  }
  if (between > LIMIT_TREE_TOLD)
    put_note(result, "more files than named changed between the calls", "");
  result->files_shared = c->left || (c->shares && json_array_size(c->changed) > 0);
  if (c->problem.code != ERR_NONE)
    changes_unknown(result, c->problem.text);
  if (c->changed == NULL)
    return;
  json_decref(result->files);
  result->files = files_told(c->changed, wf);
  result->files_more = json_array_size(c->changed) - json_array_size(result->files) + c->more;
  result->protected_seen = c->problem.code != ERR_NONE && c->guarded && wf->protect != NULL;
}

void changes_free(struct changes *c) {
  if (c == NULL)
    return;
  assert(!c->busy);
  picture_drop(&c->before);
  list_remove(&c->tree->calls, &c->in_calls);
  changes_tree_drop(c->tree);
  json_decref(c->changed);
  json_decref(c->between);
  free(c);
}

void changes_expect(const struct list *trees) {
  LIST_EACH(struct changes_tree, t, in_trees, trees)
    t->is_fresh = false;
}

void changes_forget(struct changes_seen *seen) {
  picture_drop(&seen->picture);
  changes_tree_drop(seen->tree);
  *seen = (struct changes_seen){0};
}

/* --- segue's own folder in a workspace --- */

static void own_folder_look(int above, const char *name, struct buf *seen) {
  struct stat st;
  if (seen->n > LIMIT_OWN_FOLDER_BYTES || fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
    return;
  bool is_folder = S_ISDIR(st.st_mode); /* its time changes with what is in it */
  struct timespec at = is_folder ? (struct timespec){0} : st.st_ctim;
  buf_printf(seen, "%s/%ju %o %jd.%ld\n", name, (uintmax_t)st.st_ino, st.st_mode,
             (intmax_t)at.tv_sec, at.tv_nsec);
  int fd = is_folder ? openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  const struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      own_folder_look(fd, entry->d_name, seen);
  buf_putc(seen, '\n');
  if (dir != NULL)
    closedir(dir);
}

char *changes_own_folder(const char *top) {
  struct buf seen = {0};
  int fd = fs_open_folder(top);
  if (fd >= 0)
    own_folder_look(fd, ".segue", &seen);
  fs_close(fd);
  return buf_take(&seen);
}

void changes_own_tell(const char *top, const char *before, struct call_result *result) {
  char_auto_t *now = before ? changes_own_folder(top) : NULL;
  bool differs = before != NULL && strcmp(now, before) != 0;
  JSON_EACH(result->files, i, file)
    differs &= !str_starts(json_view_at(file, "path"), ".segue/");
  if (differs && result->files == NULL)
    result->files = json_array();
  if (differs)
    json_array_insert_new(result->files, 0, json_pack("{ss}", "path", ".segue"));
}
