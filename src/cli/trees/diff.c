/* segue diff: shows what a session, or one of its movements, changed. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "format/json_object.h"

#include <string.h>
#include <unistd.h>

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

/* Where the folder is gone, git may still know where it stood. */
static void use_item(const struct trees *t, const struct tree_item *item, struct tree_diff *d) {
  AUTO(work_deinit) struct work w = {0};
  struct work_where where;
  struct err ignored;
  trees_where(t, item, &where);
  where.commits_only = true;
  tree_diff_of(d, t, item);
  if (d->to[0] != '\0' && work_find(&where, &w, &ignored) && w.state == WORK_AHEAD)
    print_into(d->to, sizeof d->to, "%s", w.head);
}

/* Sets the range to the last commit of that movement. */
static bool use_movement(const struct trees *t, const char *movement, long item,
                         struct tree_diff *d, struct err *err) {
  const struct tree_item *child = child_of(t, movement, item);
  if (child != NULL) {
    use_item(t, child, d);
    return true;
  }
  if (item > 0)
    return err_set(err, ERR_NOT_FOUND, "item %ld of movement %.80s has no worktree in session %s",
                   item, movement, t->session);
  JSON_EACH(t->commits, i, entry) {
    const char *name = cli_text(entry, "movement");
    if (strcmp(name, movement) == 0)
      print_into(d->to, sizeof d->to, "%.64s", cli_text(entry, "commit"));
  }
  print_into(d->from, sizeof d->from, "%.64s^", d->to);
  d->folder = t->cwd;
  return d->to[0] != '\0' ||
         err_set(err, ERR_NOT_FOUND,
                 "there is no commit of a movement %.80s in session %s: --commit movement makes "
                 "one after each",
                 movement, t->session);
}

static bool use_whole(const struct trees *t, struct tree_diff *d, struct err *err) {
  struct err none;
  const struct tree_item *own = trees_own(t, &none);
  if (own == NULL || file_is_folder(own->path))
    return tree_diff_begin(d, t, err) || (err->code == ERR_NONE && trees_own(t, err) != NULL);
  use_item(t, own, d);
  return true;
}

/* Says why git has no difference. */
static bool diff_fails(const struct tree_diff *d, const struct git_answer *answer,
                       struct err *err) {
  struct err ignored;
  if (answer->out.cut)
    return err_set(err, ERR_INVALID, "%.300s: the diff is too large: use git in the worktree",
                   d->folder);
  if (strcmp(d->from, "HEAD") == 0 &&
      git_did(d->folder, &ignored, "rev-parse", "--git-dir", NULL) &&
      !git_did(d->folder, &ignored, "rev-parse", "--verify", "--quiet", "HEAD", NULL))
    return err_set(err, ERR_NOT_FOUND,
                   "there is no commit yet in %.300s: git status names its files", d->folder);
  return git_complain(d->folder, answer, err);
}

/* Asks git for the difference. `more` is a further option, or NULL. */
static bool diff_ask(struct tree_diff *d, const char *form, const char *more,
                     struct git_answer *answer, struct err *err) {
  bool coloured = cli_colours(STDOUT_FILENO) && strcmp(form, "--patch") == 0;
  const char *const words[] = {coloured ? "--color=always" : "--no-color", form,
                               more ? "--no-renames" : NULL, more, NULL};
  if (!tree_diff_now(d, words, answer, err))
    return false;
  if (answer->exit == 0 && !answer->out.cut)
    return true;
  (void)diff_fails(d, answer, err);
  git_answer_deinit(answer);
  return false;
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
static json_t *diff_json(const struct trees *t, struct tree_diff *d, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer numbers = {0}, whole = {0};
  json_t *value = NULL;
  if (!diff_ask(d, "--numstat", "-z", &numbers, err))
    return NULL;
  if (diff_ask(d, "--patch", NULL, &whole, err)) {
    value = json_pack("{ss so* ss so so}", "session", t->session, "path",
                      d->to[0] ? NULL : json_io_string(d->folder), "from", d->from, "files",
                      diff_files(&numbers), "diff", json_io_string(buf_c(&whole.out)));
    if (d->to[0])
      json_object_set_new(value, "to", json_string(d->to));
  }
  return value;
}

static bool print_diff(struct tree_diff *d, const char *form, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!diff_ask(d, form, NULL, &answer, err))
    return false;
  if (isatty(STDOUT_FILENO) && !cli_colours(STDOUT_FILENO)) {
    buf_auto_t safe = {0};
    buf_safe(&safe, buf_view(&answer.out), true);
    fwrite(buf_c(&safe), 1, safe.n, stdout);
  } else {
    fwrite(buf_c(&answer.out), 1, answer.out.n, stdout);
  }
  if (d->more)
    fprintf(stderr, "segue diff: there are more new files than it shows: git -C %s status\n",
            resolve_id_shown(d->folder));
  return true;
}

/* Prints the items' differences, in the order of the list. */
static bool print_items(const struct trees *t, const char *movement, const char *form, bool json,
                        struct err *err) {
  json_auto_t *items = json_array();
  bool ok = true;
  for (long item = 1, last = last_item(t, movement); ok && item <= last; item++) {
    const struct tree_item *child = child_of(t, movement, item);
    AUTO(tree_diff_deinit) struct tree_diff d = {0};
    if (child == NULL)
      continue;
    use_item(t, child, &d);
    json_t *value = json ? diff_json(t, &d, err) : NULL;
    if (value != NULL) {
      json_object_set_new(value, "item", json_integer(item));
      json_array_append_new(items, value);
    } else if (!json) {
      printf("== %s, item %ld: %s\n", movement, item, child->branch);
    }
    ok = json ? value != NULL : print_diff(&d, form, err);
  }
  if (ok && json)
    json_io_put(
        json_pack("{ss ss sO}", "session", t->session, "movement", movement, "items", items));
  return ok;
}

static int diff_run(const struct cli_args *args) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  AUTO(tree_diff_deinit) struct tree_diff d = {0};
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
  bool all = ok && args->word_count == 2 && item == 0 && last_item(&t, args->words[1]) > 0;
  if (ok && args->word_count == 2 && !all)
    ok = use_movement(&t, args->words[1], item, &d, &err);
  else if (ok && !all)
    ok = use_whole(&t, &d, &err);
  json_t *value = NULL;
  if (ok && all)
    ok = print_items(&t, args->words[1], form, json, &err);
  else if (ok && json)
    ok = (value = diff_json(&t, &d, &err)) != NULL;
  else if (ok)
    ok = print_diff(&d, form, &err);
  if (value != NULL)
    json_io_put(value);
  return cli_done("diff", ok, &err);
}

const struct cli_command cmd_diff = {COMMAND_DIFF, .run = diff_run};
