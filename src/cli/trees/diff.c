/* segue diff: shows what a session, or one of its movements, changed. */
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"

#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"stat", 0, NULL, "show only how many lines changed in which files", false},
    {"item", 0, "N", "for a movement with for_each: only this item", false},
    {"json", 0, NULL, "print one JSON object: the branch, its files and the diff", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {0},
};

struct diff_range {
  const char *folder; /* where git runs */
  const char *from;
  char to[128]; /* "": the folder as it is */
  char parent[80];
  const json_t *paths; /* only these files; NULL: all */
};

/* Returns true if the word names the item's movement. A child is also named by the half after the
 * dot, and a group with items by the half before it. */
static bool diff_names_child(const struct tree_item *item, const char *word) {
  size_t n = strlen(word);
  if (item->movement == NULL)
    return false;
  const char *dot = strchr(item->movement, '.');
  return strcmp(item->movement, word) == 0 || (dot != NULL && strcmp(dot + 1, word) == 0) ||
         (item->item > 0 && strncmp(item->movement, word, n) == 0 && item->movement[n] == '.');
}

/* Returns the last worktree of a child with that name; with `item` not 0, only that item's. */
static const struct tree_item *child_of(const struct trees *t, const char *movement, long item) {
  const struct tree_item *found = NULL;
  for (size_t i = 0; i < t->count; i++)
    if (diff_names_child(&t->items[i], movement) && (item == 0 || t->items[i].item == item))
      found = &t->items[i];
  return found;
}

/* Returns the number of the last item, 0 if it is no child of a for_each that has worktrees. */
static long last_item(const struct trees *t, const char *movement) {
  long last = 0;
  for (size_t i = 0; i < t->count; i++)
    if (diff_names_child(&t->items[i], movement) && t->items[i].item > last)
      last = t->items[i].item;
  return last;
}

static void use_item(const struct trees *t, const struct tree_item *item, struct diff_range *r) {
  bool there = trees_is_there(item->path);
  r->folder = there ? item->path : t->cwd;
  r->from = item->base;
  if (!there)
    print_into(r->to, sizeof r->to, "refs/heads/%.110s", item->branch);
}

/* Sets the range to the last commit of that movement. */
static bool use_movement(const struct trees *t, const char *movement, long item,
                         struct diff_range *r, struct err *err) {
  const struct tree_item *child = child_of(t, movement, item);
  const json_t *entry;
  size_t i;
  if (child != NULL) {
    use_item(t, child, r);
    return true;
  }
  if (item > 0)
    return err_set(err, ERR_NOT_FOUND, "item %ld of movement %.80s has no worktree in session %s",
                   item, movement, t->session);
  json_array_foreach(t->commits, i, entry) {
    const char *name = cli_text(entry, "movement");
    if (strcmp(name, movement) == 0)
      print_into(r->to, sizeof r->to, "%.64s", cli_text(entry, "commit"));
  }
  print_into(r->parent, sizeof r->parent, "%.64s^", r->to);
  r->folder = t->cwd;
  r->from = r->parent;
  return r->to[0] != '\0' ||
         err_set(err, ERR_NOT_FOUND,
                 "there is no commit of a movement %.80s in session %s: --commit movement makes "
                 "one after each",
                 movement, t->session);
}

/* Sets the range from before the session's first commit to its last: it worked in its own
 * folder. */
static bool use_commits(const struct trees *t, struct diff_range *r, struct err *err) {
  size_t n = json_array_size(t->commits);
  if (n == 0 && json_array_size(t->paths) > 0) { /* its changes are still in its folder */
    *r = (struct diff_range){.folder = t->cwd, .from = "HEAD", .paths = t->paths};
    return true;
  }
  if (n == 0)
    return trees_own(t, err) != NULL;
  print_into(r->parent, sizeof r->parent, "%.64s^",
             cli_text(json_array_get(t->commits, 0), "commit"));
  print_into(r->to, sizeof r->to, "%.64s", cli_text(json_array_get(t->commits, n - 1), "commit"));
  r->folder = t->cwd;
  r->from = r->parent;
  return true;
}

/* Asks git for the difference. `more` is a further option, or NULL. */
static bool diff_ask(const struct diff_range *r, const char *form, const char *more,
                     struct git_answer *answer, struct err *err) {
  bool coloured = cli_colours(STDOUT_FILENO) && strcmp(form, "--patch") == 0;
  struct git_ask ask = {.folder = r->folder,
                        .words = {"diff", "--no-ext-diff", "--no-textconv",
                                  coloured ? "--color=always" : "--no-color", form},
                        .extra = {"GIT_LITERAL_PATHSPECS=1"}};
  size_t n = 5, i;
  const json_t *path;
  if (more != NULL) {
    ask.words[n++] = "--no-renames";
    ask.words[n++] = more;
  }
  ask.words[n++] = "--end-of-options";
  ask.words[n++] = r->from;
  if (r->to[0])
    ask.words[n++] = r->to;
  ask.words[n++] = "--";
  json_array_foreach((json_t *)r->paths, i, path)
    ask.words[n++] = json_string_value(path);
  if (!git_now(&ask, answer, err))
    return false;
  if (answer->exit == 0 && !answer->out.cut)
    return true;
  if (!answer->out.cut)
    (void)trees_complain(r->folder, answer, err);
  else
    err_set(err, ERR_INVALID, "%.300s: the diff is too large: use git in the worktree", r->folder);
  git_answer_deinit(answer);
  return false;
}

/* Says how many files git does not know yet: its diff leaves them out. */
static void say_untracked(const struct diff_range *r) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err err;
  size_t n = 0;
  if (r->to[0] != '\0' || !trees_git(r->folder, &answer, &err, "ls-files", "--others",
                                     "--exclude-standard", "-z", NULL))
    return;
  for (size_t i = 0; i < answer.out.n; i++)
    n += answer.out.p[i] == '\0';
  if (n > 0)
    fprintf(stderr, "segue diff: and %zu new file%s that %s not committed: git -C %s status\n", n,
            PLURAL(n), n == 1 ? "is" : "are", resolve_id_shown(r->folder));
}

/* Reads git's "ADDED\tREMOVED\tPATH\0", with - for a file that is not text. */
static json_t *diff_files(const struct git_answer *numbers) {
  json_t *files = json_array();
  for (size_t at = 0; at < numbers->out.n;) {
    const char *entry = numbers->out.p + at;
    size_t n = strnlen(entry, numbers->out.n - at);
    long added = 0, removed = 0;
    const char *tab = memchr(entry, '\t', n), *path = tab ? strchr(tab + 1, '\t') : NULL;
    if (path != NULL) {
      bool text = sscanf(entry, "%ld\t%ld", &added, &removed) == 2;
      json_array_append_new(files,
                            json_pack("{so so so}", "path", json_io_string(path + 1), "added",
                                      text ? json_integer(added) : json_null(), "removed",
                                      text ? json_integer(removed) : json_null()));
    }
    at += n + 1;
  }
  return files;
}

/* Returns the difference as JSON, NULL with err set. */
static json_t *diff_json(const struct trees *t, const struct diff_range *r, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer numbers = {0}, whole = {0};
  json_t *value = NULL;
  if (!diff_ask(r, "--numstat", "-z", &numbers, err))
    return NULL;
  if (diff_ask(r, "--patch", NULL, &whole, err)) {
    value = json_pack("{ss so* ss so so}", "session", t->session, "path",
                      r->to[0] ? NULL : json_io_string(r->folder), "from", r->from, "files",
                      diff_files(&numbers), "diff", json_io_string(buf_c(&whole.out)));
    if (r->to[0])
      json_object_set_new(value, "to", json_string(r->to));
  }
  return value;
}

static bool print_diff(const struct diff_range *r, const char *form, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!diff_ask(r, form, NULL, &answer, err))
    return false;
  if (isatty(STDOUT_FILENO) && !cli_colours(STDOUT_FILENO)) {
    buf_auto_t safe = {0};
    buf_safe(&safe, buf_view(&answer.out), true);
    fwrite(buf_c(&safe), 1, safe.n, stdout);
  } else {
    fwrite(buf_c(&answer.out), 1, answer.out.n, stdout);
  }
  say_untracked(r);
  return true;
}

/* Prints the items' differences, in the order of the list. */
static bool print_items(const struct trees *t, const char *movement, const char *form, bool json,
                        struct err *err) {
  json_auto_t *items = json_array();
  bool ok = true;
  for (long item = 1, last = last_item(t, movement); ok && item <= last; item++) {
    const struct tree_item *child = child_of(t, movement, item);
    struct diff_range r = {0};
    if (child == NULL)
      continue;
    use_item(t, child, &r);
    json_t *value = json ? diff_json(t, &r, err) : NULL;
    if (value != NULL) {
      json_object_set_new(value, "item", json_integer(item));
      json_array_append_new(items, value);
    } else if (!json) {
      printf("== %s, item %ld: %s\n", movement, item, child->branch);
    }
    ok = json ? value != NULL : print_diff(&r, form, err);
  }
  if (ok && json)
    json_io_put(
        json_pack("{ss ss sO}", "session", t->session, "movement", movement, "items", items));
  return ok;
}

static int diff_run(const struct cli_args *args) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  struct diff_range r = {0};
  struct err err = {0};
  long item = 0;
  bool json = cli_flag(args, "json");
  const char *form = cli_flag(args, "stat") ? "--stat" : "--patch";
  cli_errors_as_json(json);
  const char *number = cli_value(args, "item");
  bool ok = number == NULL ||
            (args->word_count == 2 && str_to_long(str_from(number), &item) && item >= 1);
  if (!ok)
    err_set(&err, ERR_USAGE, "--item must be the number of an item, after its MOVEMENT");
  ok = ok && resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err) &&
       trees_read(&t, &ref, &err);
  const struct tree_item *own = ok && args->word_count == 1 ? trees_own(&t, &err) : NULL;
  bool all = ok && args->word_count == 2 && item == 0 && last_item(&t, args->words[1]) > 0;
  if (own != NULL)
    use_item(&t, own, &r);
  else if (ok && args->word_count == 2 && !all)
    ok = use_movement(&t, args->words[1], item, &r, &err);
  else if (ok && !all)
    ok = use_commits(&t, &r, &err);
  json_t *value = NULL;
  if (ok && all)
    ok = print_items(&t, args->words[1], form, json, &err);
  else if (ok && json)
    ok = (value = diff_json(&t, &r, &err)) != NULL;
  else if (ok)
    ok = print_diff(&r, form, &err);
  if (value != NULL)
    json_io_put(value);
  return cli_done("diff", ok, &err);
}

const struct cli_command cmd_diff = {
    .name = "diff",
    .arguments = "ID|last [MOVEMENT] [options]",
    .words = {1, 2},
    .summary = "show what a session changed in its worktree, or a movement in its commit",
    .help = "Without MOVEMENT: all changes since its branch began, including uncommitted ones. "
            "For a session that worked directly in its folder: its commits, or else the files "
            "that it changed, compared with the commit that is checked out. With MOVEMENT: that "
            "movement's last commit (--commit movement), or a child's worktree; with for_each "
            "each item's, in list order. New files that are not committed are only counted.",
    .options = options,
    .run = diff_run,
};
