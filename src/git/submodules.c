/* Checks out the submodules of a worktree, and copies what was committed there into the stores of
 * the main repository. */
#include "git/submodules.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/memory.h"
#include "format/json_object.h"
#include "format/json_write.h"
#include "git/git.h"
#include "git/repo.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUBMODULE_DEPTH = 32 }; /* folders below one another in `modules` */

struct submodule_keeping {
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
  buf_auto_t name = {0};
  buf_append(&name, path, n);
  buf_puts(&name, below);
  return lstat(buf_c(&name), &st) == 0 ? st.st_mode & S_IFMT : 0;
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
  buf_auto_t own = {0}, others = {0};
  struct git_ask ask = {.input = input};
  git_ask_set(&ask, in_main ? pair->to : pair->from, words);
  if (strcmp(words[0], "init") == 0)
    ask.folder = "/";
  buf_printf(&own, "GIT_OBJECT_DIRECTORY=%s/objects", pair->has_to ? pair->to : pair->from);
  buf_puts(&others, "GIT_ALTERNATE_OBJECT_DIRECTORIES=\""); /* a colon would end it otherwise */
  for (const char *p = pair->from; *p != '\0'; p++) {
    if (*p == '"' || *p == '\\')
      buf_putc(&others, '\\');
    buf_putc(&others, *p);
  }
  buf_puts(&others, "/objects\"");
  ask.extra[0] = buf_c(&own);
  ask.extra[1] = buf_c(&others);
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

static json_t *kept_entry(const char *name, struct str ref, struct str commit) {
  return json_pack("{so so so}", "submodule", json_text(str_from(name)), "ref", json_text(ref),
                   "commit", json_text(commit));
}

/* Lists what the refs of the main store have, as arguments that leave it out, and the highest
 * number of the session's refs there. */
static bool list_main(const struct submodule_keeping *k, const struct store_pair *pair,
                      struct buf *without, long *highest) {
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
    if (!str_starts(ref, own))
      continue;
    json_array_append_new(k->kept, kept_entry(pair->name, ref, commit));
    if (str_drop(&ref, own) && str_to_long(ref, &number) && number > *highest)
      *highest = number;
  }
  return true;
}

/* Appends the last commit of each line that only the worktree's store has. The reflog counts, for
 * a detached HEAD was somewhere else a moment ago. */
static bool list_tips(const struct submodule_keeping *k, const struct store_pair *pair,
                      struct str without, struct buf *tips) {
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

/* Returns the address that the user's own clone has for a submodule of the first level, new. What
 * is relative there only git can resolve: `git submodule sync`. */
static char *own_address(const struct submodule_keeping *k, const struct store_pair *pair) {
  const char *const files[][2] = {{buf_c(&k->repo->common), "config"},
                                  {buf_c(&k->repo->top), ".gitmodules"}};
  char *address = NULL;
  buf_auto_t key = buf_of("submodule.%s.url", pair->name);
  for (size_t i = 0; address == NULL && i < ARRAY_LEN(files); i++) {
    buf_auto_t file = {0};
    AUTO(git_answer_deinit) struct git_answer answer = {0};
    buf_printf(&file, "%s/%s", files[i][0], files[i][1]);
    if (STORE_GIT(pair, false, STR(""), &answer, k->err, "config", "--file", buf_c(&file),
                  buf_c(&key)) &&
        buf_c(&answer.out)[0] != '.')
      address = xstrndup(answer.out.p, strcspn(answer.out.p, "\n"));
  }
  *k->err = (struct err){0};
  return address;
}

/* Makes a store as git's own `submodule update` would find it after a first checkout. */
static bool make_store(const struct submodule_keeping *k, struct store_pair *pair,
                       struct str tips) {
  if (pair->has_to)
    return true;
  char_auto_t *address = own_address(k, pair);
  size_t hash = str_next_line(&tips).n;
  buf_auto_t config = {0};
  const char *const settings[][2] = {{"core.bare", "false"},
                                     {"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
                                     {"remote.origin.url", address}};
  AUTO(git_answer_deinit) struct git_answer made = {0};
  pair->has_to = true;
  bool ok = STORE_GIT(pair, true, STR(""), &made, k->err, "init", "--quiet", "--bare",
                      hash == 64 ? "--object-format=sha256" : "--object-format=sha1", pair->to);
  buf_printf(&config, "%s/config", pair->to);
  for (size_t i = 0; ok && i < ARRAY_LEN(settings) - (address == NULL ? 2 : 0); i++) {
    AUTO(git_answer_deinit) struct git_answer answer = {0};
    ok = STORE_GIT(pair, true, STR(""), &answer, k->err, "config", "--file", buf_c(&config),
                   settings[i][0], settings[i][1]);
  }
  return ok;
}

/* A new store's history ends where that of the worktree's does, if it was not fetched whole. */
static bool copy_shallow(const struct submodule_keeping *k, const struct store_pair *pair) {
  buf_auto_t from = buf_of("%s/shallow", pair->from), to = buf_of("%s/shallow", pair->to);
  buf_auto_t ends = {0};
  return kind_of(from.p, from.n, "") != S_IFREG || kind_of(to.p, to.n, "") != 0 ||
         (file_read(buf_c(&from), LIMIT_TREE_LIST_BYTES, &ends, k->err) &&
          file_write_new(buf_c(&to), buf_view(&ends), k->err));
}

static bool write_kept_refs(const struct submodule_keeping *k, const struct store_pair *pair,
                            struct str tips, long highest) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  buf_auto_t refs = {0};
  json_auto_t *kept = json_array();
  while (tips.n > 0) {
    char ref[96];
    struct str tip = str_next_line(&tips);
    print_into(ref, sizeof ref, "refs/segue/%.60s/%ld", k->where->session, ++highest);
    git_drop_dead_lock(pair->to, pair->to, ref);
    buf_printf(&refs, "create %s " STR_FMT "\n", ref, STR_ARG(tip));
    json_array_append_new(kept, kept_entry(pair->name, str_from(ref), tip));
  }
  return STORE_GIT(pair, true, buf_view(&refs), &answer, k->err, "update-ref", "--create-reflog",
                   "--stdin") &&
         json_array_extend(k->kept, kept) == 0;
}

static bool copy_store(const struct submodule_keeping *k, struct store_pair *pair) {
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
  bool is_new = without.n == 0;
  buf_str(&without, buf_view(&tips));
  buf_printf(&pack, "%s/objects/pack/pack", pair->to);
  return make_store(k, pair, buf_view(&tips)) && (!is_new || copy_shallow(k, pair)) &&
         STORE_GIT(pair, true, buf_view(&without), &answer, k->err, "pack-objects", "--quiet",
                   "--revs", "--non-empty", buf_c(&pack)) &&
         write_kept_refs(k, pair, buf_view(&tips), highest);
}

/* --- all stores --- */

static bool keep_below(const struct submodule_keeping *k, const char *from, const char *to,
                       const char *name, int depth);

static bool keep_store(const struct submodule_keeping *k, const char *from, const char *to,
                       const char *name, int depth) {
  struct store_pair pair = {.from = from, .to = to, .name = name};
  buf_auto_t inner_from = {0}, inner_to = {0};
  if (!copy_store(k, &pair))
    return err_wrap(k->err, "the commits of submodule %.100s cannot be copied to %.200s", name, to);
  buf_printf(&inner_from, "%s/modules", from);
  buf_printf(&inner_to, "%s/modules", to);
  return keep_below(k, buf_c(&inner_from), buf_c(&inner_to), name, depth);
}

/* Goes through a folder `modules`; a name with slashes has folders of its own there. */
static bool keep_below(const struct submodule_keeping *k, const char *from, const char *to,
                       const char *name, int depth) {
  if (!has_folder(from, ""))
    return true;
  DIR *dir = depth < SUBMODULE_DEPTH ? opendir(from) : NULL;
  if (dir == NULL)
    return err_set(k->err, ERR_IO, "submodules cannot be read: %.300s", from);
  bool ok = true;
  for (const struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
    buf_auto_t inner_from = buf_of("%s/%s", from, entry->d_name);
    buf_auto_t inner_to = buf_of("%s/%s", to, entry->d_name);
    buf_auto_t inner_name = buf_of("%s%s%s", name, name[0] ? "/" : "", entry->d_name);
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
static bool keep_embedded(const struct submodule_keeping *k) {
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
  const struct submodule_keeping k = {.where = where, .repo = &repo, .kept = kept, .err = err};
  buf_auto_t from = {0}, to = {0}, name = {0};
  char_auto_t *real = realpath(where->repo, NULL);
  if (real == NULL)
    return true;
  if (!repo_find(real, &repo))
    buf_puts(&repo.common, real); /* a bare one */
  repo_worktree_name(buf_c(&repo.common), where->worktree, &name);
  buf_printf(&from, "%s/worktrees/%s/modules", buf_c(&repo.common), buf_c(&name));
  buf_printf(&to, "%s/modules", buf_c(&repo.common));
  bool ok = keep_below(&k, buf_c(&from), buf_c(&to), "", 0) && keep_embedded(&k);
  repo_deinit(&repo);
  return ok;
}

static void list_stores(const char *folder, const char *name, int depth, json_t *stores) {
  bool store = name[0] != '\0' && has_folder(folder, "") && has_folder(folder, "/objects") &&
               !leads_away(folder, folder);
  buf_auto_t below = buf_of("%s%s", folder, store ? "/modules" : "");
  bool more = depth < SUBMODULE_DEPTH && has_folder(folder, "") && has_folder(buf_c(&below), "");
  DIR *dir = more ? opendir(buf_c(&below)) : NULL;
  if (store)
    json_array_append_new(
        stores, json_pack("[oo]", json_text(str_from(name)), json_text(str_from(folder))));
  for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    buf_auto_t path = buf_of("%s/%s", buf_c(&below), entry->d_name);
    buf_auto_t inner = buf_of("%s%s%s", name, name[0] ? "/" : "", entry->d_name);
    if (!str_among(str_from(entry->d_name), ". .."))
      list_stores(buf_c(&path), buf_c(&inner), depth + 1, stores);
  }
  if (dir != NULL)
    (void)closedir(dir);
}

json_t *submodules_stores(const char *repo) {
  struct repo own;
  json_t *stores = json_array();
  if (!repo_find(repo, &own))
    buf_puts(&own.common, repo);
  buf_puts(&own.common, "/modules");
  list_stores(buf_c(&own.common), "", 0, stores);
  repo_deinit(&own);
  return stores;
}

/* --- checking out --- */

/* A level is a tree with submodules, and where a repository has their stores below its folder. */
struct submodules {
  char *source, *base;
  struct repo repo; /* of the source */
  bool trusted;
  enum { ASK_TRUST, ASK_ADDRESSES, ASK_NAMES, ASK_LOCAL, ASK_REST } phase;
  json_t *levels; /* array of [tree, stores] */
  size_t at;
  json_t *addresses, *paths; /* of this level: by name */
  json_t *local, *rest;      /* settings for what is in a store here, and for what is not */
  size_t tries;              /* stores that lacked a commit */
  bool more, far;            /* there are further stores; some submodules are in none */
  struct buf config;         /* the file that has their addresses */
};

struct submodules *submodules_check_out(const char *source, const char *worktree,
                                        const char *base) {
  struct submodules *s = xcalloc(1, sizeof *s);
  char_auto_t *real = realpath(source, NULL);
  s->source = xstrdup(source);
  s->base = text_copy(base);
  s->phase = base ? ASK_TRUST : ASK_ADDRESSES;
  s->levels = json_pack("[[os]]", json_text(str_from(worktree)), "modules");
  if (!repo_find(real ? real : source, &s->repo))
    buf_puts(&s->repo.common, real ? real : source);
  return s;
}

void submodules_free(struct submodules *s) {
  if (s == NULL)
    return;
  json_t *const values[] = {s->levels, s->addresses, s->paths, s->local, s->rest};
  for (size_t i = 0; i < ARRAY_LEN(values); i++)
    json_decref(values[i]);
  repo_deinit(&s->repo);
  buf_deinit(&s->config);
  free(s->source);
  free(s->base);
  free(s);
}

static const char *level_text(const struct submodules *s, size_t which) {
  return json_string_value(json_array_get(json_array_get(s->levels, s->at), which));
}

/* Takes the store at this path if it is one, and tells whether it is the one wanted. */
static bool take_store(struct submodules *s, const char *folder, const char *name, json_t *stores) {
  buf_auto_t path = buf_of("%s/%s/%s", folder, level_text(s, 1), name);
  if (has_folder(buf_c(&path), "/objects") && !leads_away(buf_c(&s->repo.common), buf_c(&path)))
    json_array_append_new(stores, json_text(buf_view(&path)));
  s->more |= json_array_size(stores) == s->tries + 2;
  return json_array_size(stores) == s->tries + 2;
}

/* Lists the stores of a submodule on this machine, one more than there were tries. */
static json_t *find_stores(struct submodules *s, const char *name) {
  json_t *stores = json_array();
  buf_auto_t folder = {0};
  const char *own = buf_c(&s->repo.git_dir), *common = buf_c(&s->repo.common);
  bool over = (own[0] != '\0' && strcmp(own, common) != 0 && take_store(s, own, name, stores)) ||
              take_store(s, common, name, stores);
  buf_printf(&folder, "%s/worktrees", common);
  size_t n = folder.n;
  DIR *dir = over ? NULL : opendir(buf_c(&folder));
  for (const struct dirent *entry; dir != NULL && !over && (entry = readdir(dir)) != NULL;) {
    folder.n = n;
    buf_printf(&folder, "/%s", entry->d_name);
    over = entry->d_name[0] != '.' && strcmp(buf_c(&folder), own) != 0 &&
           take_store(s, buf_c(&folder), name, stores);
  }
  if (dir != NULL)
    (void)closedir(dir);
  return stores;
}

static void add_setting(json_t *settings, const char *before, const char *name, const char *after,
                        const char *value) {
  buf_auto_t key = buf_of("%s%s%s", before, name, after);
  json_array_append_new(settings,
                        json_pack("[oo]", json_text(buf_view(&key)), json_text(str_from(value))));
}

/* Sets what git is told in both runs: each leaves to the other what is not its own. */
static void choose_sources(struct submodules *s) {
  json_decref(s->local);
  json_decref(s->rest);
  s->local = json_pack("[[ss]]", "submodule.active", ".");
  s->rest = json_pack("[[ss]]", "submodule.active", ".");
  s->more = s->far = false;
  JSON_MEMBERS(s->paths, name, path) {
    json_auto_t *stores = find_stores(s, name);
    size_t count = json_array_size(stores), nth = s->tries < count ? s->tries : count - 1;
    const char *address = json_string_value(json_object_get(s->addresses, name));
    add_setting(count > 0 ? s->rest : s->local, "submodule.", name, ".update", "none");
    s->far |= count == 0;
    if (address == NULL)
      address = json_string_value(json_array_get(stores, 0));
    if (address != NULL)
      add_setting(count > 0 ? s->local : s->rest, "submodule.", name, ".url", address);
    /* git takes the longest address that fits: each has its own, so that none fits another */
    if (count > 0)
      add_setting(s->local, "url.", json_string_value(json_array_get(stores, nth)), ".insteadOf",
                  address);
  }
}

bool submodules_next(struct submodules *s, struct git_ask *ask) {
  const char *tree = level_text(s, 0), *stores = level_text(s, 1);
  if (tree == NULL)
    return false;
  switch (s->phase) {
  case ASK_TRUST:
    GIT_ASK_SET(ask, s->source, "merge-base", "--is-ancestor", s->base, "HEAD");
    break;
  case ASK_ADDRESSES:
    buf_clear(&s->config);
    buf_printf(&s->config, "%s/%.*sconfig", buf_c(&s->repo.common),
               (int)(strlen(stores) - strlen("modules")), stores);
    GIT_ASK_SET(ask, tree, "config", "--null", "--file", buf_c(&s->config), "--get-regexp",
                "^submodule\\..*\\.url$");
    break;
  case ASK_NAMES:
    GIT_ASK_SET(ask, tree, "config", "--null", "--blob", ":.gitmodules", "--get-regexp",
                "^submodule\\..*\\.path$");
    break;
  case ASK_LOCAL:
  case ASK_REST:
    GIT_ASK_SET(ask, tree, "submodule", "--quiet", "update", "--init");
    ask->settings = s->phase == ASK_LOCAL ? s->local : s->rest;
    if (s->phase == ASK_LOCAL)
      ask->extra[0] = "GIT_ALLOW_PROTOCOL=file";
    break;
  }
  return true;
}

/* Reads a list of `submodule.NAME.KEY`, newline, value, NUL. False: a name is not UTF-8. */
static bool take_named(json_t **list, struct str rest, const char *end) {
  json_decref(*list);
  *list = json_object();
  while (rest.n > 0) {
    struct str value = str_cut(&rest, '\0'), key = str_cut(&value, '\n');
    if (!str_drop(&key, "submodule.") || !str_ends(key, end))
      continue;
    key.n -= strlen(end);
    json_t *text = json_stringn(value.p, value.n);
    if (text == NULL || json_object_setn_new(*list, key.p, key.n, text) != 0)
      return false;
  }
  return true;
}

/* Returns whether git takes it as the name of a folder below `modules`. */
static bool is_sound_name(const char *name) {
  for (struct str rest = str_from(name); rest.n > 0;)
    if (str_among(str_cut(&rest, '/'), ". .."))
      return false;
  return name[0] != '\0';
}

/* Goes to the next level: those of the submodules that are there now come after all of this one. */
static void end_level(struct submodules *s) {
  JSON_MEMBERS(s->paths, name, path) {
    buf_auto_t tree = buf_of("%s/%s", level_text(s, 0), json_string_value(path));
    buf_auto_t stores = buf_of("%s/%s/modules", level_text(s, 1), name);
    if (kind_of(tree.p, tree.n, "/.git") == S_IFREG &&
        json_array_size(s->levels) < LIMIT_SUBMODULE_COUNT)
      json_array_append_new(
          s->levels, json_pack("[oo]", json_text(buf_view(&tree)), json_text(buf_view(&stores))));
  }
  s->at++;
  s->tries = 0;
  s->phase = ASK_ADDRESSES;
}

bool submodules_take(struct submodules *s, const struct git_answer *answer, struct err *err) {
  bool done = answer->exit == 0, ok = true;
  switch (s->phase) {
  case ASK_TRUST:
    s->trusted = done;
    s->phase = ASK_ADDRESSES;
    return true;
  case ASK_ADDRESSES:
    s->phase = ASK_NAMES;
    (void)take_named(&s->addresses, done ? buf_view(&answer->out) : STR(""), ".url");
    return true;
  case ASK_NAMES:
    s->phase = ASK_LOCAL;
    ok = take_named(&s->paths, done ? buf_view(&answer->out) : STR(""), ".path");
    JSON_MEMBERS(s->paths, name, path)
      ok = ok && is_sound_name(name);
    if (!ok)
      return err_set(err, ERR_INVALID, "a submodule of %.300s has no name that can be used",
                     level_text(s, 0));
    choose_sources(s);
    if (json_object_size(s->paths) == 0)
      end_level(s);
    return true;
  case ASK_LOCAL:
  case ASK_REST:
    break;
  }
  if (!done && s->phase == ASK_LOCAL && s->more && s->tries < LIMIT_SUBMODULE_TRIES) {
    s->tries++;
    choose_sources(s);
    return true;
  }
  if (!done) {
    buf_auto_t why = {0};
    git_complaint(answer, &why);
    return err_set(err, ERR_INVALID, "git submodule update: %.400s", buf_c(&why));
  }
  if (s->phase == ASK_LOCAL && s->trusted && s->far)
    s->phase = ASK_REST;
  else
    end_level(s);
  return true;
}
