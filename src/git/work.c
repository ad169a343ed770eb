/* Asks git where a session's work is, and keeps it from getting lost. */
#include "git/work.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"
#include "git/git.h"
#include "git/repo.h"
#include "git/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOVE_COUNT = 1000 }; /* entries of a reflog that are looked at */

/* One entry of HEAD's reflog: where HEAD came to, and how. */
struct move {
  struct str commit, tree, how; /* borrowed from the answer */
};

struct work_look {
  const struct work_where *where;
  struct work *w;
  const char *at;   /* where HEAD is asked for */
  const char *repo; /* where all else is */
  char name[300];   /* HEAD's, at `at` */
  char ref[BRANCH_BYTES + 16];
  struct git_answer log;
  struct move moves[MOVE_COUNT]; /* the newest is the first */
  size_t count;
  bool on_base;  /* HEAD descends from the session's start */
  json_t *loose; /* set of commits made there that neither HEAD nor the branch has */
};

const char *work_state_name(enum work_state state) {
  static const char *const names[] = {"on_branch", "ahead", "rewritten", "left_behind", "gone"};
  return names[state];
}

void work_deinit(struct work *w) {
  json_decref(w->others);
  json_decref(w->old);
  json_decref(w->kept);
  *w = (struct work){0};
}

static void look_free(struct work_look *l) {
  if (l == NULL)
    return;
  git_answer_deinit(&l->log);
  json_decref(l->loose);
  free(l);
}

/* --- what git says --- */

/* A log says where the session is, and anybody can have written one. */
static bool is_plausible(const struct work_where *where, struct err *err) {
  const char *base = where->base ? where->base : "", *branch = where->branch ? where->branch : "x";
  bool ok = base[strspn(base, "0123456789abcdef")] == '\0' && strlen(base) < COMMIT_BYTES &&
            where->session[strspn(where->session, "0123456789abcdef-")] == '\0';
  for (size_t i = 0; ok && branch[i] != '\0'; i++)
    ok = (unsigned char)branch[i] > ' ' && strchr("~^:?*[\\\x7f", branch[i]) == NULL;
  ok = ok && branch[0] != '\0' && strlen(branch) < BRANCH_BYTES && strstr(branch, "..") == NULL;
  return ok || err_set(err, ERR_INVALID, "session %.40s: its log names no branch and commit of it",
                       where->session);
}

/* Finds git's own folder, also of a bare repository. */
static void work_common(const struct work_look *l, struct buf *out) {
  AUTO(repo_deinit) struct repo repo = {0};
  char_auto_t *real = realpath(l->repo, NULL);
  bool found = real != NULL && repo_find(real, &repo);
  buf_puts(out, found ? buf_c(&repo.common) : l->repo);
}

/* New; NULL: err says why not. */
static struct work_look *look_new(const struct work_where *where, struct work *w, struct err *err) {
  *err = (struct err){0};
  if (!is_plausible(where, err))
    return NULL;
  struct work_look *l = xcalloc(1, sizeof *l);
  const char *path = where->worktree;
  bool there = file_is_folder(path);
  l->where = where;
  l->w = w;
  l->repo = file_is_folder(where->repo) || !there ? where->repo : path;
  l->at = there ? path : l->repo;
  print_into(l->name, sizeof l->name, "HEAD");
  if (path != NULL && !there) { /* git may still know where it stood */
    buf_auto_t common = {0}, name = {0};
    work_common(l, &common);
    repo_worktree_name(buf_c(&common), path, &name);
    if (name.n == 0) /* it was moved: git keeps the name */
      buf_puts(&name, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    print_into(l->name, sizeof l->name, "worktrees/%s/HEAD", buf_c(&name));
  }
  print_into(l->ref, sizeof l->ref, "refs/heads/%s", where->branch ? where->branch : "");
  return l;
}

/* Without an error if there is none. */
static bool read_head(struct work_look *l, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct work *w = l->w;
  if (!file_is_folder(l->at))
    return true;
  if (!git_run(l->at, &answer, err, "rev-parse", l->name, "--symbolic-full-name", l->name, NULL))
    return false;
  struct str rest = buf_view(&answer.out), head = str_next_line(&rest), on = str_trim(rest);
  if (answer.exit != 0)
    return true;
  print_into(w->head, sizeof w->head, STR_FMT, STR_ARG(head));
  if (str_drop(&on, "refs/heads/") && on.n < sizeof w->on)
    print_into(w->on, sizeof w->on, STR_FMT, STR_ARG(on));
  return true;
}

static bool read_tip(struct work_look *l, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct work *w = l->w;
  if (l->where->branch == NULL) {
    memcpy(w->tip, w->head, sizeof w->tip);
    return true;
  }
  if (!file_is_folder(l->repo))
    return true;
  if (!git_run(l->repo, &answer, err, "show-ref", "--verify", "--hash", l->ref, NULL))
    return false;
  struct str tip = str_trim(buf_view(&answer.out));
  if (answer.exit == 0)
    print_into(w->tip, sizeof w->tip, STR_FMT, STR_ARG(tip));
  return true;
}

static bool read_moves(struct work_look *l, struct err *err) {
  if ((l->where->worktree == NULL && l->where->known == NULL) || l->w->head[0] == '\0')
    return true;
  if (!git_run(l->at, &l->log, err, "log", "--walk-reflogs", "--max-count=1000",
               "--no-show-signature", "--no-color", "--format=%H %T %gs", l->name, "--", NULL))
    return false;
  if (l->log.exit != 0)
    return git_complain(l->at, &l->log, err);
  struct str rest = buf_view(&l->log.out);
  while (rest.n > 0 && l->count < MOVE_COUNT) {
    struct move *m = &l->moves[l->count++];
    m->how = str_next_line(&rest);
    m->commit = str_cut(&m->how, ' ');
    m->tree = str_cut(&m->how, ' ');
    m->how = m->how.p ? m->how : STR("");
  }
  return true;
}

/* Did that move make a commit? Others only lead to one that was there. */
static bool makes(const struct move *m) {
  static const char *const others[] = {"checkout:", "reset:", "Branch:"};
  bool made = !str_has(m->how, "Fast-forward") &&
              (!str_has(m->how, "rebase") || str_has(m->how, "(finish)"));
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    made = made && !str_starts(m->how, others[i]);
  return made;
}

/* Is it that part of a rebase, or of a pull --rebase? */
static bool is_rebase(const struct move *m, const char *part) {
  return str_has(m->how, "rebase") && str_has(m->how, part) && !str_starts(m->how, "commit");
}

/* An empty line would end the list. */
static void put_commit(struct buf *out, const char *sign, struct str commit) {
  if (commit.n > 0)
    buf_printf(out, "%s" STR_FMT "\n", sign, STR_ARG(commit));
}

/* Asks which of the commits, and of those before them, nothing holds that `commits` excludes with
 * ^ and, with `refs`, no ref beside the named one. Returns an array of those that are no other's
 * parent, new; `all`: a set that gets each, or NULL. NULL: git could not be run. */
static json_t *unheld(const struct work_look *l, const struct buf *commits, bool refs,
                      const char *beside, json_t *all, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  char exclude[BRANCH_BYTES + 32];
  struct git_ask ask = {.folder = l->repo,
                        .words = {"rev-list", "--topo-order", "--parents", "--ignore-missing",
                                  "--stdin", "--not", exclude, "--glob=refs/*", NULL},
                        .input = buf_view(commits)};
  print_into(exclude, sizeof exclude, "--exclude=%s", beside);
  if (!refs)
    ask.words[5] = NULL;
  if (!git_asked("git rev-list", &ask, &answer, err))
    return NULL;
  json_t *heads = json_array();
  json_auto_t *parents = json_object();
  struct str rest = buf_view(&answer.out);
  while (rest.n > 0) {
    struct str line = str_next_line(&rest), commit = str_cut(&line, ' ');
    if (json_object_getn(parents, commit.p, commit.n) == NULL)
      json_array_append_new(heads, json_stringn(commit.p, commit.n));
    if (all != NULL)
      json_object_setn_new(all, commit.p, commit.n, json_true());
    while (line.n > 0) {
      struct str parent = str_cut(&line, ' ');
      json_object_setn_new(parents, parent.p, parent.n, json_true());
    }
  }
  return heads;
}

/* Lists the branches that have one of the loose commits; of too many the oldest are asked for. */
static bool list_holders(const struct work_look *l, struct git_answer *answer, struct err *err) {
  enum { FIXED = 3, MOST = 30 };
  struct git_ask ask = {
      .folder = l->repo,
      .words = {"for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads"}};
  size_t count = json_object_size(l->loose), at = 0, words = FIXED;
  JSON_MEMBERS(l->loose, commit, value) {
    if (at++ + MOST < count)
      continue;
    ask.words[words++] = "--contains";
    ask.words[words++] = commit;
  }
  return git_now(&ask, answer, err);
}

static bool is_astray(const struct work_look *l, struct str commit) {
  return json_object_getn(l->loose, commit.p, commit.n) != NULL;
}

/* Finds what was made there and is not HEAD's or the branch's: `lost` gets what no ref holds, the
 * work's `others` the branches that hold some. */
static bool read_loose(struct work_look *l, json_t **lost, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t commits = {0};
  l->loose = json_object();
  *lost = NULL;
  const struct str held[] = {str_from(l->w->head), str_from(l->w->tip), str_from(l->where->base)};
  for (size_t i = 0; i < l->count; i++) {
    const struct str made = l->moves[i].commit;
    if (makes(&l->moves[i]) && !str_eq(made, held[0]) && !str_eq(made, held[2]))
      put_commit(&commits, "", made);
  }
  if (commits.n == 0)
    return true;
  for (size_t i = 0; i < ARRAY_LEN(held); i++)
    put_commit(&commits, "^", held[i]);
  json_auto_t *heads = unheld(l, &commits, false, "", l->loose, err);
  if (heads == NULL || json_array_size(heads) == 0)
    return heads != NULL;
  *lost = unheld(l, &commits, true, "", NULL, err);
  if (*lost == NULL || !list_holders(l, &answer, err))
    return false;
  struct str rest = buf_view(&answer.out);
  while (rest.n > 0) {
    struct str line = str_next_line(&rest), commit = str_cut(&line, ' ');
    json_array_append_new(l->w->others,
                          json_pack("{so ss%}", "branch", json_stringn(line.p, line.n), "commit",
                                    commit.p, (int)commit.n));
  }
  return true;
}

static bool descends(const struct work_look *l, const char *commit, const char *from, bool *yes,
                     struct err *err) {
  *yes = strcmp(commit, from) == 0;
  return *yes || from[0] == '\0' || git_descends(l->repo, commit, from, yes, err);
}

/* --- what it means --- */

/* Does HEAD's reflog say that the commit was amended or rebased, or that its files were committed
 * again (as after a soft reset)? That counts only if what it became is not lost in its turn. */
static bool reflog_has(const struct work_look *l, struct str commit) {
  struct str now = commit, tree = {0};
  for (size_t i = l->count; i-- > 0;) {
    const struct move *m = &l->moves[i];
    if (str_eq(m->commit, commit))
      tree = m->tree;
    else if (l->on_base && tree.n > 0 && str_eq(m->tree, tree) && !is_astray(l, m->commit))
      return true;
    if (i + 1 == l->count || !str_eq(m[1].commit, now))
      continue;
    if (str_starts(m->how, "commit (amend)"))
      now = m->commit;
    for (size_t k = i; is_rebase(m, "(start)") && k-- > 0;)
      if (is_rebase(&l->moves[k], "(finish)")) {
        now = l->moves[k].commit;
        break;
      }
  }
  return !str_eq(now, commit) && !is_astray(l, now);
}

/* Has HEAD the commit, and each one before it, in another form? */
static bool is_rewritten(const struct work_look *l, const char *commit, bool *yes,
                         struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  *yes = reflog_has(l, str_from(commit));
  if (*yes)
    return true;
  const char *base = l->where->base && l->where->base[0] ? l->where->base : NULL;
  if (!git_told(l->repo, &answer, err, "cherry", l->w->head, commit, base, NULL))
    return false;
  struct str all = buf_view(&answer.out);
  *yes = str_starts(all, "-") && !str_starts(all, "+") && !str_has(all, "\n+");
  return true;
}

/* After a reset that leaves the files alone, what the commit had is not committed, but there. */
static bool is_in_files(const struct work_look *l, const char *commit, bool *yes, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (*yes || (l->where->worktree != NULL && l->at == l->repo))
    return true;
  if (!git_run(l->at, &answer, err, "diff", "--quiet", "--no-ext-diff", commit, "--", NULL))
    return false;
  *yes = answer.exit == 0;
  return true;
}

/* Sets the state by the branch's tip and by what is lost. */
static bool judge_old(struct work_look *l, const json_t *lost, struct err *err) {
  struct work *w = l->w;
  const char *base = l->where->base ? l->where->base : "", *from = w->tip[0] ? w->tip : base;
  bool ahead = false, there;
  if (!descends(l, w->head, from, &ahead, err))
    return false;
  if (!ahead)
    json_array_append_new(w->old, json_string(from));
  json_array_extend(w->old, (json_t *)lost);
  if (json_array_size(w->old) > 0 && !descends(l, w->head, base, &l->on_base, err))
    return false;
  JSON_EACH(w->old, i, commit) {
    if (!is_rewritten(l, json_string_value(commit), &there, err) ||
        !is_in_files(l, json_string_value(commit), &there, err))
      return false;
    if (!there) {
      print_into(w->lacks, sizeof w->lacks, "%s", json_string_value(commit));
      w->state = WORK_LEFT_BEHIND;
      return json_array_clear(w->old) == 0;
    }
  }
  if (json_array_size(w->old) > 0)
    w->state = WORK_REWRITTEN;
  else
    w->state = strcmp(w->head, w->tip) == 0 ? WORK_ON_BRANCH : WORK_AHEAD;
  return true;
}

/* In the user's own tree: HEAD may go on from where it stood, or to another place, but it may not
 * lack what the session has made since its start. */
static bool judge_known(struct work_look *l, struct err *err) {
  struct work *w = l->w;
  const char *known = l->where->known, *base = l->where->base;
  bool there;
  if (known == NULL || base == NULL || strcmp(known, base) == 0)
    return true;
  if (!descends(l, w->head, known, &there, err))
    return false;
  if (there)
    return true;
  if (!read_moves(l, err) || !descends(l, w->head, base, &l->on_base, err) ||
      !is_rewritten(l, known, &there, err) || !is_in_files(l, known, &there, err))
    return false;
  w->state = there ? WORK_REWRITTEN : WORK_LEFT_BEHIND;
  print_into(w->lacks, sizeof w->lacks, "%s", there ? "" : known);
  return true;
}

/* A branch that the log names may have what no reflog tells any more: its worktree was removed. */
static bool read_astray(struct work_look *l, struct err *err) {
  struct work *w = l->w;
  JSON_EACH(l->where->astray, i, place) {
    AUTO(git_answer_deinit) struct git_answer answer = {0};
    const char *branch = json_word_at(place, "branch");
    buf_auto_t ref = buf_of("refs/heads/%s", branch);
    bool known = false;
    JSON_EACH(w->others, k, other)
      known = known || strcmp(json_word_at(other, "branch"), branch) == 0;
    if (known)
      continue;
    if (!git_run(l->repo, &answer, err, "rev-list", "--max-count=1", buf_c(&ref), "--not", l->ref,
                 w->head[0] ? w->head : l->ref, NULL))
      return false;
    struct str tip = str_trim(buf_view(&answer.out));
    if (answer.exit == 0 && tip.n > 0)
      json_array_append_new(w->others,
                            json_pack("{ss ss%}", "branch", branch, "commit", tip.p, (int)tip.n));
  }
  return true;
}

static bool find_state(struct work_look *l, struct err *err) {
  struct work *w = l->w;
  json_auto_t *lost = NULL;
  if (!read_head(l, err) || !read_tip(l, err))
    return false;
  w->state = w->tip[0] ? WORK_ON_BRANCH : WORK_GONE;
  if (w->head[0] != '\0' && l->where->worktree == NULL)
    return judge_known(l, err);
  if (w->head[0] == '\0' || l->where->branch == NULL)
    return read_astray(l, err);
  return read_moves(l, err) && read_loose(l, &lost, err) && judge_old(l, lost, err) &&
         read_astray(l, err);
}

enum { SUBMODULE_DEPTH = 8 }; /* deeper ones are taken for dirty */

static bool is_dirty(const char *folder, const json_t *left_out, unsigned depth);

static bool has_entries(const char *folder) {
  DIR *dir = opendir(folder);
  size_t n = 0;
  while (dir != NULL && n <= 2 && readdir(dir) != NULL)
    n++;
  if (dir != NULL)
    (void)closedir(dir);
  return n > 2; /* besides . and .. */
}

/* Asks each submodule on its own: git's status does not look into them (git.h). */
static bool has_dirty_submodule(const char *folder, unsigned depth) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err err;
  bool dirty = false;
  if (!git_run(folder, &answer, &err, "ls-files", "--stage", "-z", NULL))
    return true;
  for (size_t at = 0; !dirty && at < answer.out.n; at += strlen(answer.out.p + at) + 1) {
    const char *entry = answer.out.p + at, *path = strchr(entry, '\t');
    struct stat st;
    if (path == NULL || strncmp(entry, LIT("160000 ")) != 0)
      continue;
    buf_auto_t inner = buf_of("%s/%s", folder, path + 1), git = buf_of("%s/.git", buf_c(&inner));
    bool there = lstat(buf_c(&git), &st) == 0;
    dirty = there && (depth >= SUBMODULE_DEPTH || is_dirty(buf_c(&inner), NULL, depth + 1));
    dirty = dirty || (!there && has_entries(buf_c(&inner))); /* git does not see what is there */
  }
  return dirty;
}

static bool is_dirty(const char *folder, const json_t *left_out, unsigned depth) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err err;
  if (!file_is_folder(folder))
    return false;
  if (!git_run(folder, &answer, &err, "status", "--porcelain", "-z", "--untracked-files=normal",
               NULL))
    return true;
  bool dirty = answer.exit != 0;
  for (size_t at = 0; !dirty && at < answer.out.n; at += strlen(answer.out.p + at) + 1) {
    struct str entry = str_from(answer.out.p + at);
    dirty = !str_drop(&entry, "?? ");
    if (str_ends(entry, "/")) /* a folder */
      entry.n--;
    bool known = false;
    JSON_EACH(left_out, k, name)
      known = known || str_eq(json_view(name), entry);
    dirty = dirty || !known;
  }
  return dirty || has_dirty_submodule(folder, depth);
}

bool work_is_dirty(const char *folder, const json_t *left_out) {
  return is_dirty(folder, left_out, 0);
}

bool work_find(const struct work_where *where, struct work *w, struct err *err) {
  *w = (struct work){.others = json_array(), .old = json_array(), .kept = json_array()};
  struct work_look *l = look_new(where, w, err);
  bool ok = l != NULL && find_state(l, err);
  if (ok && !where->commits_only)
    w->dirty = work_is_dirty(where->worktree ? where->worktree : where->repo, where->left_out);
  look_free(l);
  return ok;
}

void work_tell(const struct work_where *where, const struct work *w, struct buf *out) {
  const char *on = w->on[0] ? w->on : "a detached HEAD", *branch = where->branch;
  const char *at = where->worktree ? where->worktree : where->repo;
  switch (w->state) {
  case WORK_ON_BRANCH:
    buf_printf(out, "the work is on %s (%.10s)", branch ? branch : on, w->tip);
    break;
  case WORK_AHEAD:
  case WORK_REWRITTEN:
    buf_printf(out, "%s has the work of its worktree (%s, %.10s)", branch, on, w->head);
    JSON_EACH(w->kept, i, kept) {
      buf_printf(out, "%s%.10s as %s", i == 0 ? "; it was rewritten, and segue keeps " : ", ",
                 json_word_at(kept, "commit"), json_word_at(kept, "ref"));
    }
    break;
  case WORK_LEFT_BEHIND:
    buf_printf(out, "its worktree stands on %s (%.10s), which lacks %.10s of %s: ", on, w->head,
               w->lacks, branch);
    if (strcmp(w->lacks, w->tip) == 0)
      buf_printf(out, "git -C %s checkout %s goes back", at, branch);
    else
      buf_printf(out,
                 "git -C %s reset --hard %.10s goes back, git branch NAME %.10s keeps it aside", at,
                 w->lacks, w->lacks);
    break;
  case WORK_GONE:
    buf_printf(out, "its branch %s is gone, and so is its worktree", branch ? branch : "");
    break;
  }
}

/* --- refs --- */

/* Returns the number of the session's next ref; 0: git could not be run. */
static long next_ref(const struct work_look *l, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  char under[80];
  long last = 0, number;
  print_into(under, sizeof under, "refs/segue/%.36s/", l->where->session);
  if (!git_run(l->repo, &answer, err, "for-each-ref", "--format=%(refname:lstrip=3)", under, NULL))
    return 0;
  struct str rest = buf_view(&answer.out);
  while (rest.n > 0)
    if (str_to_long(str_next_line(&rest), &number) && number > last)
      last = number;
  return last + 1;
}

/* Gives each commit a ref, and moves the session's branch to HEAD if wanted, all in one step. */
static bool write_refs(const struct work_look *l, const json_t *commits, bool moves, json_t *kept,
                       struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t text = {0}, common = {0};
  json_auto_t *made = json_array();
  long number = json_array_size(commits) > 0 ? next_ref(l, err) : 1;
  if (number == 0)
    return false;
  work_common(l, &common);
  JSON_EACH(commits, i, commit) {
    char ref[96];
    print_into(ref, sizeof ref, "refs/segue/%.36s/%ld", l->where->session, number + (long)i);
    git_drop_dead_lock(l->repo, buf_c(&common), ref);
    buf_printf(&text, "create %s %s\n", ref, json_string_value(commit));
    json_array_append_new(made, json_pack("{ss sO}", "ref", ref, "commit", commit));
  }
  if (moves && strstr(l->ref, l->where->session) != NULL) /* nobody else's branch */
    git_drop_dead_lock(l->repo, buf_c(&common), l->ref);
  if (moves && l->w->tip[0])
    buf_printf(&text, "option no-deref\nupdate %s %s %s\n", l->ref, l->w->head, l->w->tip);
  else if (moves)
    buf_printf(&text, "create %s %s\n", l->ref, l->w->head);
  const struct git_ask ask = {.folder = l->repo,
                              .words = {"-c", "core.fsync=all", "update-ref", "--create-reflog",
                                        "-m", "segue: the work of its worktree", "--stdin", NULL},
                              .input = buf_view(&text)};
  if (text.n > 0 && !git_asked("git update-ref", &ask, &answer, err))
    return false;
  json_array_extend(kept, made);
  return true;
}

/* A branch that is checked out elsewhere, too, would move under that folder's files. */
static bool is_free(const struct work_look *l, struct err *err) {
  if (strcmp(l->w->on, l->where->branch) == 0 || l->w->tip[0] == '\0')
    return true;
  char_auto_t *place =
      git_line(l->repo, err, "for-each-ref", "--format=%(worktreepath)", l->ref, NULL);
  return place != NULL &&
         (place[0] == '\0' ||
          err_set(err, ERR_USAGE, "%.200s is checked out in %.200s: it cannot follow its worktree",
                  l->where->branch, place));
}

bool work_adopt(const struct work_where *where, struct work *w, struct err *err) {
  if (w->state == WORK_ON_BRANCH)
    return true;
  if (w->state == WORK_LEFT_BEHIND || w->state == WORK_GONE) {
    buf_auto_t text = {0};
    work_tell(where, w, &text);
    return err_set(err, w->state == WORK_GONE ? ERR_NOT_FOUND : ERR_INVALID, "%.700s",
                   buf_c(&text));
  }
  if (where->worktree == NULL)
    return true;
  struct work_look *l = look_new(where, w, err);
  bool moves = strcmp(w->head, w->tip) != 0;
  bool ok = l != NULL && (!moves || is_free(l, err)) && write_refs(l, w->old, moves, w->kept, err);
  if (ok)
    memcpy(w->tip, w->head, sizeof w->tip);
  if (ok && moves && w->on[0] == '\0' && file_is_folder(where->worktree))
    ok = git_did(where->worktree, err, "symbolic-ref", "HEAD", l->ref, NULL);
  look_free(l);
  return ok;
}

/* Adds the commits that a reflog leads to. It is read as a file: of a HEAD without a commit git
 * shows none. */
static void put_reflog(const char *file, struct buf *commits) {
  buf_auto_t text = {0};
  struct err none;
  if (!file_read(file, LIMIT_REPO_INDEX_BYTES, &text, &none))
    return;
  for (struct str rest = buf_view(&text); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    (void)str_cut(&line, ' '); /* what it led away from */
    struct str commit = str_cut(&line, ' ');
    for (size_t i = 0; i < commit.n; i++)
      if (commit.p[i] != '0') { /* else it was deleted */
        put_commit(commits, "", commit);
        break;
      }
  }
}

/* Adds those of the worktree's HEAD and, if that goes, of the branch. */
static void put_reflogs(const struct work_look *l, struct buf *commits) {
  AUTO(repo_deinit) struct repo repo = {0};
  buf_auto_t common = {0}, file = {0};
  work_common(l, &common);
  if (l->where->branch != NULL)
    buf_printf(&file, "%s/logs/%s", buf_c(&common), l->ref);
  put_reflog(buf_c(&file), commits);
  buf_clear(&file);
  char_auto_t *real = realpath(l->at, NULL);
  if (strcmp(l->name, "HEAD") != 0)
    buf_printf(&file, "%s/%.*s/logs/HEAD", buf_c(&common), (int)strlen(l->name) - 5, l->name);
  else if (real != NULL && repo_find(real, &repo))
    buf_printf(&file, "%s/logs/HEAD", buf_c(&repo.git_dir));
  put_reflog(buf_c(&file), commits);
}

bool work_keep(const struct work_where *where, const struct work *w, json_t *kept,
               struct err *err) {
  buf_auto_t commits = {0};
  json_auto_t *heads = NULL;
  struct work copy = *w;
  struct work_look *l = look_new(where, &copy, err);
  if (l == NULL)
    return false;
  put_reflogs(l, &commits);
  put_commit(&commits, "", str_from(w->head));
  put_commit(&commits, "", str_from(where->branch ? w->tip : ""));
  heads = unheld(l, &commits, true, where->branch ? l->ref : "", NULL, err);
  bool ok = heads != NULL && write_refs(l, heads, false, kept, err);
  look_free(l);
  return ok;
}
