/* Copies the commits of a worktree's submodules into the stores of the main repository. */
#include "git/submodules.h"

#include "base/limits.h"
#include "base/memory.h"
#include "format/json_write.h"
#include "git/git.h"
#include "git/repo.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUBMODULE_DEPTH = 32 }; /* folders below one another in `modules` */

struct keeping {
  const struct submodules_where *where;
  const struct repo *repo; /* the main one */
  json_t *kept;
  struct err *err;
};

/* A store, where its commits go, and what a person calls it. */
struct store_pair {
  const char *from, *to, *name;
  bool has_to;
};

/* --- files --- */

/* Returns what stands there itself, not behind a link; 0: nothing. */
static mode_t kind_of(const char *path, size_t n, const char *below) {
  struct stat st;
  struct buf name = {0};
  buf_append(&name, path, n);
  buf_puts(&name, below);
  bool found = lstat(buf_c(&name), &st) == 0;
  buf_deinit(&name);
  return found ? st.st_mode & S_IFMT : 0;
}

static bool has_folder(const char *path, const char *below) {
  return kind_of(path, strlen(path), below) == S_IFDIR;
}

/* Returns true if a link stands in this path below `above`, or where segue writes in the store at
 * its end. */
static bool leads_away(const char *above, const char *path) {
  static const char *const written[] = {"/objects", "/objects/pack", "/refs", "/refs/segue"};
  const char *at = path + strlen(above);
  bool found = false;
  while (!found && *at != '\0') {
    at += 1 + strcspn(at + 1, "/");
    found = kind_of(path, (size_t)(at - path), "") == S_IFLNK;
  }
  for (size_t i = 0; !found && i < ARRAY_LEN(written); i++)
    found = kind_of(path, strlen(path), written[i]) == S_IFLNK;
  return found;
}

/* --- one store --- */

/* Runs git in one store of the pair with the objects of both; what is new goes to the main one. */
static bool store_git(const struct store_pair *pair, bool in_main, struct str input,
                      struct git_answer *answer, struct err *err, const char *const *words) {
  buf_auto_t dir = {0}, own = {0}, others = {0};
  struct git_ask ask = {.folder = pair->from, .input = input};
  for (size_t i = 0; words[i] != NULL; i++)
    ask.words[i] = words[i];
  buf_printf(&dir, "GIT_DIR=%s", in_main ? pair->to : pair->from);
  buf_printf(&own, "GIT_OBJECT_DIRECTORY=%s/objects", pair->has_to ? pair->to : pair->from);
  buf_puts(&others, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\""); /* a colon would end it otherwise */
  for (const char *p = pair->from; *p != '\0'; p++) {
    if (*p == '"' || *p == '\\')
      buf_putc(&others, '\\');
    buf_putc(&others, *p);
  }
  buf_puts(&others, "/objects\"");
  const char *const extra[] = {buf_c(&dir), buf_c(&own), buf_c(&others), "GIT_NO_LAZY_FETCH=1",
                               "GIT_ALLOW_PROTOCOL=none"};
  memcpy(ask.extra, extra, sizeof extra);
  if (!git_now(&ask, answer, err))
    return false;
  if (answer->exit == 0)
    return true;
  buf_auto_t why = {0};
  git_complaint(answer, &why);
  return err_set(err, ERR_IO, "%.300s", buf_c(&why));
}

#define STORE_GIT(pair, in_main, input, answer, err, ...)                                          \
  store_git(pair, in_main, input, answer, err, (const char *const[]){__VA_ARGS__, NULL})

/* Lists what the refs of the main store have, as arguments that leave it out, and the highest
 * number of the session's refs there. */
static bool list_main(const struct keeping *k, const struct store_pair *pair, struct buf *without,
                      long *highest) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  char own[80];
  long number;
  print_into(own, sizeof own, "refs/segue/%.60s/", k->where->session);
  if (!pair->has_to)
    return true;
  if (!STORE_GIT(pair, true, STR(""), &answer, k->err, "for-each-ref",
                 "--format=%(objectname) %(refname)"))
    return false;
  for (struct str rest = buf_view(&answer.out); rest.n > 0;) {
    struct str ref = str_next_line(&rest), commit = str_cut(&ref, ' ');
    buf_printf(without, "^" STR_FMT "\n", STR_ARG(commit));
    if (str_drop(&ref, own) && str_to_long(ref, &number) && number > *highest)
      *highest = number;
  }
  return true;
}

/* Appends the last commit of each line that only the worktree's store has. The reflog counts, for
 * a detached HEAD was somewhere else a moment ago. */
static bool list_tips(const struct keeping *k, const struct store_pair *pair, struct str without,
                      struct buf *tips) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!STORE_GIT(pair, false, without, &answer, k->err, "rev-list", "--children", "--all",
                 "--reflog", "--stdin", "--not", pair->has_to ? "--not" : "--remotes"))
    return false;
  if (answer.out.n >= LIMIT_TREE_LIST_BYTES / 2)
    return err_set(k->err, ERR_LIMIT, "it has too many commits");
  for (struct str rest = buf_view(&answer.out); rest.n > 0;) {
    struct str line = str_next_line(&rest);
    if (line.n > 0 && memchr(line.p, ' ', line.n) == NULL)
      buf_printf(tips, STR_FMT "\n", STR_ARG(line));
  }
  return true;
}

/* Makes a store as git's own `submodule update` would find it after a first checkout. */
static bool make_store(const struct keeping *k, struct store_pair *pair, struct str tips) {
  AUTO(git_answer_deinit) struct git_answer answer = {0}, set = {0};
  size_t hash = str_next_line(&tips).n;
  buf_auto_t config = {0};
  if (pair->has_to)
    return true;
  buf_printf(&config, "%s/config", pair->to);
  pair->has_to = true;
  return STORE_GIT(pair, true, STR(""), &answer, k->err, "init", "--quiet", "--bare",
                   hash == 64 ? "--object-format=sha256" : "--object-format=sha1", pair->to) &&
         STORE_GIT(pair, true, STR(""), &set, k->err, "config", "--file", buf_c(&config),
                   "core.bare", "false");
}

static bool write_refs(const struct keeping *k, const struct store_pair *pair, struct str tips,
                       long highest) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t refs = {0};
  json_auto_t *kept = json_array();
  while (tips.n > 0) {
    char ref[96], commit[72];
    struct str tip = str_next_line(&tips);
    print_into(ref, sizeof ref, "refs/segue/%.60s/%ld", k->where->session, ++highest);
    print_into(commit, sizeof commit, STR_FMT, STR_ARG(tip));
    buf_printf(&refs, "create %s %s\n", ref, commit);
    json_array_append_new(kept,
                          json_pack("{so ss ss}", "submodule", json_text(str_from(pair->name)),
                                    "ref", ref, "commit", commit));
  }
  bool ok = STORE_GIT(pair, true, buf_view(&refs), &answer, k->err, "update-ref", "--stdin");
  if (ok)
    json_array_extend(k->kept, kept);
  return ok;
}

static bool copy_store(const struct keeping *k, struct store_pair *pair) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t without = {0}, tips = {0}, pack = {0};
  long highest = 0;
  if (kind_of(pair->from, strlen(pair->from), "/objects") != S_IFDIR ||
      kind_of(pair->from, strlen(pair->from), "/objects/info/alternates") != 0)
    return err_set(k->err, ERR_INVALID, "its objects are somewhere else");
  if (leads_away(buf_c(&k->repo->common), pair->to))
    return err_set(k->err, ERR_INVALID, "a link leads away from there");
  pair->has_to = has_folder(pair->to, "/objects");
  if (!list_main(k, pair, &without, &highest) || !list_tips(k, pair, buf_view(&without), &tips))
    return false;
  if (tips.n == 0)
    return true;
  buf_str(&without, buf_view(&tips));
  buf_printf(&pack, "%s/objects/pack/pack", pair->to);
  return make_store(k, pair, buf_view(&tips)) &&
         STORE_GIT(pair, true, buf_view(&without), &answer, k->err, "pack-objects", "--quiet",
                   "--revs", "--non-empty", buf_c(&pack)) &&
         write_refs(k, pair, buf_view(&tips), highest);
}

/* --- all stores --- */

static bool keep_below(const struct keeping *k, const char *from, const char *to, const char *name,
                       int depth);

static bool keep_store(const struct keeping *k, const char *from, const char *to, const char *name,
                       int depth) {
  struct store_pair pair = {.from = from, .to = to, .name = name};
  buf_auto_t inner_from = {0}, inner_to = {0};
  if (!copy_store(k, &pair))
    return err_wrap(k->err, "the commits of submodule %.100s cannot be copied to %.200s", name, to);
  buf_printf(&inner_from, "%s/modules", from);
  buf_printf(&inner_to, "%s/modules", to);
  return keep_below(k, buf_c(&inner_from), buf_c(&inner_to), name, depth);
}

/* Goes through a folder `modules`; a name with slashes has folders of its own there. */
static bool keep_below(const struct keeping *k, const char *from, const char *to, const char *name,
                       int depth) {
  if (!has_folder(from, ""))
    return true;
  DIR *dir = depth < SUBMODULE_DEPTH ? opendir(from) : NULL;
  if (dir == NULL)
    return err_set(k->err, ERR_IO, "submodules cannot be read: %.300s", from);
  bool ok = true;
  for (const struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
    buf_auto_t inner_from = {0}, inner_to = {0}, inner_name = {0};
    buf_printf(&inner_from, "%s/%s", from, entry->d_name);
    buf_printf(&inner_to, "%s/%s", to, entry->d_name);
    buf_printf(&inner_name, "%s%s%s", name, name[0] ? "/" : "", entry->d_name);
    if (str_among(str_from(entry->d_name), ". ..") || !has_folder(buf_c(&inner_from), ""))
      continue;
    bool store = kind_of(inner_from.p, inner_from.n, "/objects") != 0;
    ok = (store ? keep_store : keep_below)(k, buf_c(&inner_from), buf_c(&inner_to),
                                           buf_c(&inner_name), depth + 1);
  }
  (void)closedir(dir);
  return ok;
}

/* Keeps repositories that stand in the worktree itself and that its branch names: what is new in
 * git's raw list is `:MODE MODE HASH HASH STATUS`, NUL, the path, NUL. */
static bool keep_embedded(const struct keeping *k) {
  const struct submodules_where *w = k->where;
  const struct git_ask ask = {.folder = w->worktree,
                              .words = {"diff", "--cached", "--raw", "-z", "--no-renames",
                                        "--ignore-submodules=dirty", w->base}};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (w->base == NULL || !has_folder(w->worktree, ""))
    return true;
  if (!git_now(&ask, &answer, k->err))
    return false;
  bool ok = true;
  for (struct str rest = buf_view(&answer.out); ok && rest.n > 0;) {
    struct str change = str_cut(&rest, '\0'), path = str_cut(&rest, '\0');
    buf_auto_t from = {0}, to = {0}, name = {0};
    buf_str(&name, path);
    buf_printf(&from, "%s/%s/.git", w->worktree, buf_c(&name));
    buf_printf(&to, "%s/modules/%s", buf_c(&k->repo->common), buf_c(&name));
    if (change.n > 14 && memcmp(change.p + 8, LIT("160000")) == 0 && has_folder(buf_c(&from), ""))
      ok = keep_store(k, buf_c(&from), buf_c(&to), buf_c(&name), 0);
  }
  return ok;
}

bool submodules_keep(const struct submodules_where *where, json_t *kept, struct err *err) {
  struct repo repo;
  const struct keeping k = {.where = where, .repo = &repo, .kept = kept, .err = err};
  const char *last = strrchr(where->worktree, '/');
  buf_auto_t from = {0}, to = {0};
  char_auto_t *real = realpath(where->repo, NULL);
  if (last == NULL || real == NULL)
    return true;
  if (!repo_find(real, &repo))
    buf_puts(&repo.common, real); /* a bare one */
  buf_printf(&from, "%s/worktrees%s/modules", buf_c(&repo.common), last);
  buf_printf(&to, "%s/modules", buf_c(&repo.common));
  bool ok = keep_below(&k, buf_c(&from), buf_c(&to), "", 0) && keep_embedded(&k);
  repo_deinit(&repo);
  return ok;
}
