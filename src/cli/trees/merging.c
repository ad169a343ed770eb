/* Keeps the note of a merge under way, undoes one that was cut off, and checks results. */
#include "cli/trees/merging.h"

#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "host/config.h"
#include "host/run_program.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/orphans.h"
#include "provider/sandbox_policy.h"
#include "view/number_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHECK_LINES = 20 };

/* --- questions --- */

bool merging_has_marks(const char *path) {
  buf_auto_t text = {0};
  struct err err;
  if (!file_read(path, LIMIT_OUTPUT_BYTES, &text, &err))
    return false;
  struct str all = buf_view(&text);
  return (str_starts(all, "<<<<<<< ") || str_has(all, "\n<<<<<<< ")) && str_has(all, "\n>>>>>>> ");
}

char *merging_tree(const char *folder, const char *into, const char *tip, json_t *conflicts,
                   struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!git_run(folder, &answer, err, "merge-tree", "--write-tree", "--name-only", "-z",
               "--no-messages", into, tip, NULL))
    return NULL;
  if (answer.exit > 1) {
    (void)git_complain("git merge-tree", &answer, err);
    return NULL;
  }
  size_t end = strnlen(buf_c(&answer.out), answer.out.n);
  for (size_t at = end + 1; conflicts && at < answer.out.n && answer.out.p[at] != '\0';) {
    json_array_append_new(conflicts, json_io_string(answer.out.p + at));
    at += strnlen(answer.out.p + at, answer.out.n - at) + 1;
  }
  return xstrndup(buf_c(&answer.out), end);
}

/* Has the branch, or the target, all that a worktree left behind, and all that its HEAD has? */
static bool lacks_nothing(const struct work_where *where, const struct work *w, const char *target,
                          struct err *err) {
  char_auto_t *more = git_line(where->repo, err, "rev-list", "--max-count=1", w->head, w->lacks,
                               "--not", w->tip, target, NULL);
  return w->tip[0] != '\0' && more != NULL && more[0] == '\0';
}

bool merging_adopt(const struct work_where *where, const char *target, FILE *out, struct err *err) {
  AUTO(work_deinit) struct work w = {0};
  buf_auto_t text = {0};
  struct err first;
  if (!work_find(where, &w, err))
    return false;
  if (!work_adopt(where, &w, &first)) {
    if (w.state != WORK_LEFT_BEHIND || !lacks_nothing(where, &w, target, err))
      return err_set(err, first.code, "%.300s: %.700s", where->branch, first.text);
  } else if (w.state == WORK_AHEAD || w.state == WORK_REWRITTEN) {
    work_tell(where, &w, &text);
    cli_say(out, "%s\n", buf_c(&text));
  }
  JSON_EACH(w.others, i, other)
    cli_say(stderr, "segue: %s (%.10s) has more of its work, and is left alone\n",
            json_word_at(other, "branch"), json_word_at(other, "commit"));
  return true;
}

/* Returns the configuration for a check, see merging_check. NULL: it cannot be read. */
static json_t *check_config(const json_t *session_config, struct err *err) {
  const char *told = getenv(SANDBOX_POLICY_CHECK);
  struct config user;
  if (told != NULL && session_config == NULL)
    return json_loads(told, 0, NULL);
  if (!config_load(&user, err))
    return NULL;
  json_t *config = config_for_check(&user, session_config);
  config_deinit(&user);
  return config;
}

bool merging_check(const char *folder, const char *command, const json_t *config, int *exit,
                   struct buf *last, struct err *err) {
  const char *argv[] = {"sh", "-c", "exec sh -c \"$1\" 2>&1", "sh", command, NULL};
  json_auto_t *own = check_config(config, err);
  json_auto_t *held = sandbox_of_call(own, NULL, NULL, true);
  const struct run_program_spec spec = {
      .argv = argv, .folder = folder, .wall_ms = LIMIT_CALL_WALL_MS, .held = held, .config = own};
  if (own == NULL)
    return false;
  AUTO(run_program_result_deinit) struct run_program_result result = {0};
  if (!run_program_run(&spec, &result, err))
    return false;
  *exit = result.exit_status;
  struct str text = str_trim(buf_view(&result.out));
  const char *from = text.p + text.n;
  for (int lines = 0; from > text.p; from--)
    if (from[-1] == '\n' && ++lines == CHECK_LINES)
      break;
  if (text.n > 0)
    buf_safe(last, (struct str){from, (size_t)(text.p + text.n - from)}, true);
  if (result.denied.n > 0)
    buf_printf(last, "\n%s", buf_c(&result.denied));
  return true;
}

void merging_print(FILE *out, const struct buf *last) {
  for (struct str rest = buf_view(last); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    cli_say(out, "  " STR_FMT "\n", STR_ARG(line));
  }
}

/* --- locks of git's --- */

/* git closes a lock before it has done with it: so one that is at work counts, too. */
static bool merging_is_held(const struct stat *lock, const char *folder, bool any) {
  return orphan_at_work(folder, any ? "" : GIT_PROGRAM, lock);
}

void merging_await(const char *folder, bool any) {
  const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
  for (int i = 0; i < LIMIT_TERM_GRACE_MS / 20 && merging_is_held(NULL, folder, any); i++)
    (void)nanosleep(&pause, NULL);
}

/* Checks that no lock stands in the way of git. With `ours` one that nobody holds is removed: a
 * killed git of ours left it. */
static bool is_unlocked(const char *git_dir, const char *name, const char *folder, bool ours,
                        struct err *err) {
  buf_auto_t age = {0}, path = buf_of("%s/%s.lock", git_dir, name);
  struct stat st;
  if (lstat(buf_c(&path), &st) != 0)
    return true;
  view_put_age(&age, clock_real_ms() - (int64_t)st.st_mtim.tv_sec * 1000);
  if (merging_is_held(&st, folder, false))
    return err_set(err, ERR_LOCKED, "a git is at work in %.300s: it has had %.300s for %s", folder,
                   buf_c(&path), buf_c(&age));
  if (!ours)
    return err_set(err, ERR_LOCKED,
                   "a git that is gone left %.300s behind, %s ago: nobody holds it, so it may be "
                   "removed: rm '%.300s'",
                   buf_c(&path), buf_c(&age), buf_c(&path));
  git_drop_lock(git_dir, name);
  return true;
}

/* --- the note --- */

static void note_read(struct merging_note *n) {
  char line[1024] = "";
  rewind(n->file);
  if (fgets(line, sizeof line, n->file) == NULL)
    return;
  print_into(n->ref, sizeof n->ref, "HEAD");
  if (strcmp(line, GIT_SEGUE_MERGE_CONFLICT) == 0)
    n->state = MERGING_CONFLICT;
  else if (sscanf(line, "merging %71s %71s %511[^\n]", n->tip, n->from, n->ref) > 0)
    n->state = MERGING_BEGUN;
}

static bool has_tree(const struct merging_note *n) {
  return strcmp(n->folder, n->git_dir) != 0;
}

bool merging_open(struct merging_note *n, const char *folder, struct err *err) {
  *n = (struct merging_note){.folder = xstrdup(folder)};
  n->git_dir = git_line(folder, err, "rev-parse", "--absolute-git-dir", NULL);
  if (n->git_dir == NULL)
    return false;
  n->own = getenv("SEGUE_SESSION") != NULL && strstr(n->git_dir, "/worktrees/") != NULL;
  struct buf path = buf_of("%s/" GIT_SEGUE_MERGE, n->git_dir);
  n->path = buf_take(&path);
  bool again = true;
  while (again) { /* the one that had it may have removed it at its end */
    n->file = fopen(n->path, "a+e");
    if (n->file == NULL)
      return err_set_errno(err, errno, "cannot write %.300s", n->path);
    bool locked = fs_lock_within(fileno(n->file), 1000);
    again = locked && !fs_is_named(fileno(n->file), n->path, false);
    if (locked && !again)
      break;
    (void)fclose(n->file);
    n->file = NULL;
    if (!locked)
      return err_set(err, ERR_LOCKED, "another merge of segue is running in %.300s", folder);
  }
  note_read(n);
  return n->state == MERGING_BEGUN || !has_tree(n) ||
         is_unlocked(n->git_dir, "index", folder, false, err);
}

static bool note_write(struct merging_note *n, struct err *err) {
  bool ok = ftruncate(fileno(n->file), 0) == 0;
  if (n->state == MERGING_CONFLICT)
    ok = ok && fputs(GIT_SEGUE_MERGE_CONFLICT, n->file) >= 0;
  else if (n->state != MERGING_NONE)
    ok = ok && fprintf(n->file, "merging %s %s %s\n", n->tip, n->from, n->ref) > 0;
  ok = ok && fflush(n->file) == 0 && fsync(fileno(n->file)) == 0;
  return ok || err_set_errno(err, errno, "cannot write %.300s", n->path);
}

bool merging_begin(struct merging_note *n, const char *tip, const char *ref, struct err *err) {
  char_auto_t *from = git_line(n->folder, err, "rev-parse", "--verify", "--quiet", ref, NULL);
  if (from == NULL)
    return false;
  n->state = MERGING_BEGUN;
  print_into(n->tip, sizeof n->tip, "%s", tip);
  print_into(n->from, sizeof n->from, "%s", from);
  print_into(n->ref, sizeof n->ref, "%s", ref);
  return note_write(n, err);
}

bool merging_end(struct merging_note *n, bool conflict, struct err *err) {
  n->state = conflict ? MERGING_CONFLICT : MERGING_NONE;
  return note_write(n, err);
}

void merging_close(struct merging_note *n) {
  if (n->file != NULL && n->state == MERGING_NONE)
    (void)unlink(n->path);
  if (n->file != NULL)
    (void)fclose(n->file);
  free(n->folder);
  free(n->path);
  free(n->git_dir);
  *n = (struct merging_note){0};
}

/* --- giving back what a killed git was about to change --- */

struct giving {
  const char *folder;
  struct git_answer raw; /* git diff-tree --raw */
  struct buf all, kept;  /* names, NUL each: all of them, and those that were there before */
  struct buf theirs;     /* '1' for each new one that stood there, which git left alone; else '0' */
};

static void giving_deinit(struct giving *g) {
  git_answer_deinit(&g->raw);
  buf_deinit(&g->all);
  buf_deinit(&g->kept);
  buf_deinit(&g->theirs);
}

struct giving_file {
  const char *name;
  char was[72], will[72]; /* blobs */
  char status, mode[8];   /* of the new one */
};

/* Reads the next file; false: that was the last one. */
static bool next_file(const struct giving *g, size_t *at, struct giving_file *f) {
  const struct buf *raw = &g->raw.out;
  if (*at >= raw->n ||
      sscanf(raw->p + *at, ":%*s %7s %71s %71s %c", f->mode, f->was, f->will, &f->status) != 4)
    return false;
  *at += strlen(raw->p + *at) + 1;
  f->name = raw->p + *at;
  *at += strlen(f->name) + 1;
  return true;
}

/* Is what stands there what the merge brings, or its beginning, or one with git's marks? */
static bool is_gits_own(const struct giving *g, const struct giving_file *f, const char *path,
                        const struct stat *st, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t have = {0}, name = {0};
  char link[PATH_MAX];
  buf_printf(&name, "--path=%s", f->name);
  if (!S_ISREG(st->st_mode) && !S_ISLNK(st->st_mode))
    return true; /* a folder: git removes no other's */
  ssize_t n = S_ISLNK(st->st_mode) ? readlink(path, link, sizeof link) : -1;
  if (n >= 0)
    buf_append(&have, link, (size_t)n);
  if (n < 0 && !file_read(path, LIMIT_TREE_LIST_BYTES, &have, err))
    return false;
  const char *const blobs[] = {f->will, f->was};
  for (size_t i = 0; i < ARRAY_LEN(blobs); i++) {
    git_answer_deinit(&answer);
    if (strspn(blobs[i], "0") == strlen(blobs[i]))
      continue;
    if (!git_run(g->folder, &answer, err, "cat-file", "--filters", buf_c(&name), blobs[i], NULL))
      return false;
    if (answer.exit == 0 && have.n <= answer.out.n &&
        memcmp(buf_c(&have), buf_c(&answer.out), have.n) == 0 && (i == 0 || have.n == answer.out.n))
      return true;
  }
  return merging_has_marks(path) ||
         err_set(err, ERR_USAGE,
                 "a merge by segue was cut off in %.200s, and %.200s is neither as it was nor as "
                 "the merge makes it: undo that (git checkout HEAD -- FILE) or move it away",
                 g->folder, f->name);
}

/* Has each file as it stands hashed by one git; false: err. The answer has a line for each of
 * those that are files and have no line end in their names. */
static bool hash_files(const struct giving *g, struct git_answer *answer, struct err *err) {
  struct giving_file f;
  buf_auto_t names = {0};
  struct stat st;
  for (size_t at = 0; next_file(g, &at, &f);) {
    char path[PATH_MAX];
    print_into(path, sizeof path, "%s/%s", g->folder, f.name);
    if (strchr(f.name, '\n') == NULL && lstat(path, &st) == 0 && S_ISREG(st.st_mode))
      buf_printf(&names, "%s\n", f.name);
  }
  const struct git_ask ask = {.folder = g->folder,
                              .words = {"hash-object", "--stdin-paths", NULL},
                              .input = buf_view(&names)};
  return git_asked("git hash-object", &ask, answer, err);
}

/* Sorts the files, and checks that nothing there is somebody's. */
static bool look_at_files(struct giving *g, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer hashes = {0};
  struct giving_file f;
  struct stat st;
  if (!hash_files(g, &hashes, err))
    return false;
  struct str rest = buf_view(&hashes.out);
  for (size_t at = 0; next_file(g, &at, &f);) {
    char path[PATH_MAX];
    print_into(path, sizeof path, "%s/%s", g->folder, f.name);
    bool there = lstat(path, &st) == 0;
    struct str hash = {0};
    if (strchr(f.name, '\n') == NULL && there && S_ISREG(st.st_mode))
      hash = str_trim(str_next_line(&rest));
    struct err why = {0};
    bool ours = !there || str_eq_c(hash, f.will) || str_eq_c(hash, f.was) ||
                is_gits_own(g, &f, path, &st, &why);
    if (!ours && (f.status != 'A' || why.code != ERR_USAGE)) {
      *err = why;
      return false;
    }
    buf_putc(&g->theirs, ours ? '0' : '1');
    if (strcmp(f.mode, "160000") == 0)
      continue; /* a submodule's folder is its own */
    buf_printf(&g->all, "%s%c", f.name, '\0');
    if (f.status != 'A')
      buf_printf(&g->kept, "%s%c", f.name, '\0');
  }
  return true;
}

static void remove_added(const struct giving *g) {
  struct giving_file f;
  for (size_t at = 0, i = 0; next_file(g, &at, &f); i++) {
    char path[PATH_MAX];
    print_into(path, sizeof path, "%s/%s", g->folder, f.name);
    if (f.status != 'A' || g->theirs.p[i] == '1' || unlink(path) != 0)
      continue;
    char *slash = strrchr(path, '/');
    while (slash != NULL && slash > path + strlen(g->folder)) {
      *slash = '\0';
      if (rmdir(path) != 0)
        break;
      slash = strrchr(path, '/');
    }
  }
}

/* Lists the files that `tree` has otherwise than HEAD. */
static bool list_files(struct giving *g, const char *tree, struct err *err) {
  return git_told(g->folder, &g->raw, err, "diff-tree", "-r", "--raw", "--no-renames",
                  "--no-abbrev", "-z", "HEAD", tree, NULL);
}

static bool ask_of_names(const struct giving *g, const char *const *words, const struct buf *names,
                         struct err *err) {
  struct git_ask ask = {.input = buf_view(names), .extra = {"GIT_LITERAL_PATHSPECS=1"}};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  git_ask_set(&ask, g->folder, words);
  return names->n == 0 || git_asked(words[0], &ask, &answer, err);
}

/* Gives all files back as HEAD has them that were on their way to `tree`. */
static bool give_back(const char *folder, const char *tree, struct err *err) {
  static const char *const reset[] = {"reset", "--quiet", "--pathspec-from-file=-",
                                      "--pathspec-file-nul", NULL};
  static const char *const checkout[] = {"checkout-index", "--force", "--quiet", "-z",
                                         "--stdin",        NULL};
  struct giving g = {.folder = folder};
  bool ok = list_files(&g, tree, err) && look_at_files(&g, err);
  if (ok)
    remove_added(&g);
  ok = ok && ask_of_names(&g, reset, &g.all, err) && ask_of_names(&g, checkout, &g.kept, err);
  giving_deinit(&g);
  return ok;
}

/* --- undoing --- */

/* Undoes it in a session's own worktree, where all that is not committed is the merge's. */
static bool undo_own(const struct merging_note *n, struct err *err) {
  struct giving g = {.folder = n->folder};
  bool ok = git_did(n->folder, err, "reset", "--hard", "--quiet", NULL) &&
            list_files(&g, n->tip, err) && look_at_files(&g, err);
  if (ok)
    remove_added(&g);
  giving_deinit(&g);
  return ok;
}

/* Undoes it where others work, too, unless it was finished. git forgets that it was merging, but
 * for a merge of somebody else's. */
static bool undo_careful(const struct merging_note *n, const char *head, struct err *err) {
  struct err ignored;
  if (n->from[0] == '\0' || strcmp(head, n->from) == 0) {
    char_auto_t *tree = merging_tree(n->folder, head, n->tip, NULL, err);
    if (tree == NULL || !give_back(n->folder, tree, err))
      return false;
  }
  char_auto_t *merges =
      git_line(n->folder, &ignored, "rev-parse", "--verify", "--quiet", "MERGE_HEAD", NULL);
  if (merges == NULL || strcmp(merges, n->tip) == 0)
    (void)git_did(n->folder, &ignored, "merge", "--quit", NULL);
  return true;
}

static bool are_unlocked(const struct merging_note *n, struct err *err) {
  static const char *const names[] = {"index", "HEAD", "ORIG_HEAD", "AUTO_MERGE"};
  bool ok = true;
  for (size_t i = 0; ok && i < ARRAY_LEN(names); i++)
    ok = is_unlocked(n->git_dir, names[i], n->folder, true, err);
  return ok;
}

bool merging_mend(struct merging_note *n, struct err *err) {
  struct err ignored;
  merging_await(n->folder, false);
  char_auto_t *on = git_line(n->folder, &ignored, "symbolic-ref", "--quiet", "HEAD", NULL);
  char_auto_t *head = git_line(n->folder, err, "rev-parse", "--verify", "--quiet", "HEAD", NULL);
  char_auto_t *common =
      git_line(n->folder, err, "rev-parse", "--path-format=absolute", "--git-common-dir", NULL);
  bool here =
      has_tree(n) && (strcmp(n->ref, "HEAD") == 0 || (on != NULL && strcmp(n->ref, on) == 0));
  const char *ref = here ? on : n->ref;
  if (head == NULL || common == NULL)
    return false;
  if ((ref != NULL && !is_unlocked(common, ref, n->folder, true, err)) ||
      (here && !are_unlocked(n, err)))
    return false;
  if (here && !(n->own ? undo_own(n, err) : undo_careful(n, head, err)))
    return false;
  return merging_end(n, false, err);
}

void merging_give_up(struct merging_note *n) {
  struct err ignored;
  bool done = n->state != MERGING_BEGUN || merging_mend(n, &ignored);
  (void)done;
}
