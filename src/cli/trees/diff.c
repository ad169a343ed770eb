/* segue diff: what a session, or one of its movements, changed. */
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/json_io.h"
#include "cli/trees/trees.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"stat", 0, NULL, "only how many lines of which files", false},
    {"json", 0, NULL, "print the branch, its files and the diff as one JSON object", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {0},
};

struct diff_range {
  const char *folder; /* where git is asked */
  const char *from;
  char to[128]; /* "": the folder as it is */
  char parent[80];
};

/* The child with that name, or with its group's before it; the last one. */
static const struct tree_item *child_of(const struct trees *t, const char *movement) {
  const struct tree_item *found = NULL;
  for (size_t i = 0; i < t->count; i++)
    if (t->items[i].movement != NULL && strcmp(t->items[i].movement, movement) == 0)
      found = &t->items[i];
  return found;
}

static void use_item(const struct trees *t, const struct tree_item *item, struct diff_range *r) {
  bool there = trees_is_there(item->path);
  r->folder = there ? item->path : t->cwd;
  r->from = item->base;
  if (!there)
    (void)snprintf(r->to, sizeof r->to, "refs/heads/%.110s", item->branch);
}

/* The last commit of that movement. */
static bool use_movement(const struct trees *t, const char *movement, struct diff_range *r,
                         struct err *err) {
  const struct tree_item *child = child_of(t, movement);
  const json_t *entry;
  size_t i;
  if (child != NULL) {
    use_item(t, child, r);
    return true;
  }
  json_array_foreach(t->commits, i, entry) {
    const char *name = json_string_value(json_object_get(entry, "movement"));
    if (strcmp(name, movement) == 0)
      (void)snprintf(r->to, sizeof r->to, "%.64s",
                     json_string_value(json_object_get(entry, "commit")));
  }
  (void)snprintf(r->parent, sizeof r->parent, "%.64s^", r->to);
  r->folder = t->cwd;
  r->from = r->parent;
  return r->to[0] != '\0' ||
         err_set(err, ERR_NOT_FOUND,
                 "there is no commit of a movement %.80s in session %s: --commit movement makes "
                 "one after each",
                 movement, t->session);
}

/* It worked in its folder: from before its first commit to its last. */
static bool use_commits(const struct trees *t, struct diff_range *r, struct err *err) {
  size_t n = json_array_size(t->commits);
  if (n == 0)
    return trees_own(t, err) != NULL;
  (void)snprintf(r->parent, sizeof r->parent, "%.64s^",
                 json_string_value(json_object_get(json_array_get(t->commits, 0), "commit")));
  (void)snprintf(r->to, sizeof r->to, "%.64s",
                 json_string_value(json_object_get(json_array_get(t->commits, n - 1), "commit")));
  r->folder = t->cwd;
  r->from = r->parent;
  return true;
}

static bool diff_ask(const struct diff_range *r, const char *form, struct git_answer *answer,
                     struct err *err) {
  const char *colour =
      cli_colours(STDOUT_FILENO) && form[2] == 'p' ? "--color=always" : "--no-color";
  const char *to = r->to[0] ? r->to : "--";
  if (!trees_git(r->folder, answer, err, "diff", "--no-ext-diff", "--no-textconv", colour, form,
                 "--end-of-options", r->from, to, r->to[0] ? "--" : NULL, NULL))
    return false;
  if (answer->exit == 0 && !answer->out.cut)
    return true;
  struct buf why = {0};
  if (answer->out.cut)
    buf_puts(&why, "the diff is too large: use git there");
  else
    git_complaint(answer, &why);
  (void)err_set(err, ERR_INVALID, "%.300s: %.200s", r->folder, buf_c(&why));
  buf_deinit(&why);
  git_answer_deinit(answer);
  return false;
}

/* Files that git does not know yet are no part of its diff. */
static void say_untracked(const struct diff_range *r) {
  struct git_answer answer;
  struct err err;
  size_t n = 0;
  if (r->to[0] != '\0' || !trees_git(r->folder, &answer, &err, "ls-files", "--others",
                                     "--exclude-standard", "-z", NULL))
    return;
  for (size_t i = 0; i < answer.out.n; i++)
    n += answer.out.p[i] == '\0';
  if (n > 0)
    fprintf(stderr, "segue diff: and %zu new file%s that %s not committed: git -C %s status\n", n,
            n == 1 ? "" : "s", n == 1 ? "is" : "are", find_shown(r->folder));
  git_answer_deinit(&answer);
}

/* "ADDED\tREMOVED\tPATH\0": a - for bytes that are no text. */
static json_t *diff_files(const struct git_answer *numbers) {
  json_t *files = json_array();
  for (size_t at = 0; at < numbers->out.n;) {
    const char *entry = numbers->out.p + at;
    size_t n = strnlen(entry, numbers->out.n - at);
    long added = 0, removed = 0;
    const char *tab = memchr(entry, '\t', n), *path = tab ? strchr(tab + 1, '\t') : NULL;
    if (path != NULL) {
      bool text = sscanf(entry, "%ld\t%ld", &added, &removed) == 2;
      json_t *file = json_pack("{so}", "path", json_io_string(path + 1));
      json_object_set_new(file, "added", text ? json_integer(added) : json_null());
      json_object_set_new(file, "removed", text ? json_integer(removed) : json_null());
      json_array_append_new(files, file);
    }
    at += n + 1;
  }
  return files;
}

static bool print_diff_json(const struct trees *t, const struct diff_range *r, struct err *err) {
  struct git_answer numbers, whole;
  if (!diff_ask(r, "--numstat", &numbers, err))
    return false;
  git_answer_deinit(&numbers);
  if (!trees_git(r->folder, &numbers, err, "diff", "--no-ext-diff", "--no-renames", "--numstat",
                 "-z", "--end-of-options", r->from, r->to[0] ? r->to : "--", NULL))
    return false;
  bool ok = diff_ask(r, "--patch", &whole, err);
  if (ok) {
    json_t *value = json_pack("{ss so* ss so so}", "session", t->session, "path",
                              r->to[0] ? NULL : json_io_string(r->folder), "from", r->from, "files",
                              diff_files(&numbers), "diff", json_io_string(buf_c(&whole.out)));
    if (r->to[0])
      json_object_set_new(value, "to", json_string(r->to));
    json_io_print(value, JSON_IO_COMPACT);
    json_decref(value);
    git_answer_deinit(&whole);
  }
  git_answer_deinit(&numbers);
  return ok;
}

static bool print_diff(const struct diff_range *r, const char *form, struct err *err) {
  struct git_answer answer;
  if (!diff_ask(r, form, &answer, err))
    return false;
  if (isatty(STDOUT_FILENO) && !cli_colours(STDOUT_FILENO)) {
    struct buf safe = {0};
    buf_safe(&safe, buf_view(&answer.out), true);
    fwrite(buf_c(&safe), 1, safe.n, stdout);
    buf_deinit(&safe);
  } else {
    fwrite(buf_c(&answer.out), 1, answer.out.n, stdout);
  }
  git_answer_deinit(&answer);
  say_untracked(r);
  return true;
}

static int diff_run(int argc, char **argv) {
  struct cli_args args;
  struct store_ref ref;
  struct trees t = {0};
  struct diff_range r = {0};
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_diff, argc, argv, 1, 2, &args, &status))
    return status;
  cli_errors_as_json(cli_flag(&args, "json"));
  bool ok = find_session(args.words[0], cli_value(&args, "logs"), NULL, &ref, &err) &&
            trees_read(&t, &ref, &err);
  const struct tree_item *own = ok && args.word_count == 1 ? trees_own(&t, &err) : NULL;
  if (own != NULL)
    use_item(&t, own, &r);
  else if (ok && args.word_count == 2)
    ok = use_movement(&t, args.words[1], &r, &err);
  else if (ok)
    ok = use_commits(&t, &r, &err);
  if (ok && cli_flag(&args, "json"))
    ok = print_diff_json(&t, &r, &err);
  else if (ok)
    ok = print_diff(&r, cli_flag(&args, "stat") ? "--stat" : "--patch", &err);
  trees_deinit(&t);
  return ok ? STATUS_COMPLETE : cli_fail("diff", &err);
}

const struct cli_command cmd_diff = {
    .name = "diff",
    .arguments = "ID|last [MOVEMENT] [options]",
    .summary = "what a session changed in its worktree, or a movement by its commit",
    .help = "Without MOVEMENT: all from where its branch began, with what is not committed yet. Of "
            "a\n"
            "session that worked in its folder: its commits. MOVEMENT: its last commit (--commit\n"
            "movement), or a child's worktree. New files that are not committed are only counted.",
    .options = options,
    .run = diff_run,
};
