/* segue integrate: merges branches, one behind the other, into what is checked out here. */
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/trees/trees.h"
#include "cli/trees/underway.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"cwd", 'C', "DIR", "a folder of the repository (default: here)", false},
    {0},
};

struct integration {
  char folder[PATH_MAX];
  struct underway underway;
  struct git_answer files;
};

/* Looks for a line that begins like git's <<<<<<<, and one like >>>>>>>. */
static bool has_marks(const char *path) {
  struct buf text = {0};
  struct err err;
  bool marked = false;
  if (file_read(path, LIMIT_OUTPUT_BYTES, &text, &err)) {
    struct str all = buf_view(&text);
    bool opens = str_starts(all, "<<<<<<< ") || str_has(all, "\n<<<<<<< ");
    marked = opens && str_has(all, "\n>>>>>>> ");
  }
  buf_deinit(&text);
  return marked;
}

/* Finds the files that git considers in conflict, each followed by a NUL. */
static bool find_conflicts(struct integration *in, struct err *err) {
  git_answer_deinit(&in->files);
  return trees_git(in->folder, &in->files, err, "diff", "--name-only", "--diff-filter=U", "-z",
                   "--no-ext-diff", NULL);
}

/* Prints those files or, with `marked_only`, those with marks of git's in them. Returns how many
 * there were. */
static size_t put_conflicts(const struct integration *in, const char *top, bool marked_only) {
  size_t n = 0;
  for (size_t at = 0; at < in->files.out.n;) {
    const char *name = in->files.out.p + at;
    struct buf path = {0};
    buf_printf(&path, "%s/%s", top, name);
    if (!marked_only || has_marks(buf_c(&path))) {
      if (n++ == 0)
        puts("these files are in conflict:");
      fputs("  ", stdout);
      cli_put_safe(stdout, name);
      putchar('\n');
    }
    buf_deinit(&path);
    at += strnlen(name, in->files.out.n - at) + 1;
  }
  return n;
}

static bool commit_merge(struct integration *in, struct err *err) {
  char *staged = trees_line(in->folder, err, "add", "--all", ":/", NULL);
  bool ok = staged != NULL && trees_commit(in->folder, err, "--no-edit", NULL);
  free(staged);
  return ok && underway_say(&in->underway, UNDERWAY_NONE, NULL, err);
}

/* Commits a merge that stopped at a conflict. Returns STATUS_FAILED if the conflict is still
 * there. */
static int commit_resolved(struct integration *in, struct err *err) {
  char *top = trees_line(in->folder, err, "rev-parse", "--show-toplevel", NULL);
  int status = STATUS_USAGE;
  if (top != NULL && find_conflicts(in, err)) {
    if (put_conflicts(in, top, true) > 0)
      status = STATUS_FAILED;
    else if (commit_merge(in, err))
      status = STATUS_COMPLETE;
  }
  if (status == STATUS_COMPLETE)
    puts("the conflicts have been resolved and committed");
  free(top);
  return status;
}

/* Goes on with a merge of its own that is under way; one of somebody else's is left alone. */
static int finish_merge(struct integration *in, struct err *err) {
  struct underway *u = &in->underway;
  struct err none;
  char *head =
      trees_line(in->folder, &none, "rev-parse", "--verify", "--quiet", "MERGE_HEAD", NULL);
  bool merges = head != NULL;
  free(head);
  if (u->state == UNDERWAY_MERGING)
    return underway_undo(u, err) ? STATUS_COMPLETE : STATUS_USAGE;
  if (merges && u->state == UNDERWAY_CONFLICT)
    return commit_resolved(in, err);
  if (merges)
    (void)err_set(
        err, ERR_USAGE,
        "a merge is in progress in %.300s: finish it with git commit, or git merge --abort",
        in->folder);
  else if (underway_say(u, UNDERWAY_NONE, NULL, err)) /* somebody finished it in another way */
    return STATUS_COMPLETE;
  return STATUS_USAGE;
}

static int stop_at_conflict(struct integration *in, const char *branch, struct err *err) {
  char *top = trees_line(in->folder, err, "rev-parse", "--show-toplevel", NULL);
  if (top == NULL || !find_conflicts(in, err)) {
    free(top);
    return STATUS_USAGE;
  }
  fputs("not merged: ", stdout);
  cli_put_safe(stdout, branch);
  putchar('\n');
  (void)put_conflicts(in, top, false);
  puts("resolve them in these files, and leave no conflict markers; the merge is finished "
       "afterwards");
  free(top);
  return underway_say(&in->underway, UNDERWAY_CONFLICT, NULL, err) ? STATUS_FAILED : STATUS_USAGE;
}

static int merge_branch(struct integration *in, const char *branch, struct err *err) {
  char ref[512];
  struct git_answer answer;
  (void)snprintf(ref, sizeof ref, "refs/heads/%.450s", branch);
  char *tip = trees_line(in->folder, err, "rev-parse", "--verify", "--quiet", "--end-of-options",
                         ref, NULL);
  if (tip == NULL) {
    (void)err_set(err, ERR_NOT_FOUND, "there is no branch %.300s", branch);
    return STATUS_USAGE;
  }
  bool merged = underway_say(&in->underway, UNDERWAY_MERGING, tip, err) &&
                trees_merge(in->folder, tip, branch, &answer, err) == 0;
  free(tip);
  if (!merged)
    return STATUS_USAGE;
  bool stopped = answer.exit != 0;
  if (!stopped) {
    fputs("merged: ", stdout);
    cli_put_safe(stdout, branch);
    putchar('\n');
  } else {
    struct buf why = {0};
    git_complaint(&answer, &why);
    (void)err_set(err, ERR_INVALID, "%.200s: %.280s", branch, buf_c(&why));
    buf_deinit(&why);
  }
  bool conflict = stopped && answer.exit == 1 && answer.err.n == 0;
  git_answer_deinit(&answer);
  if (conflict)
    return stop_at_conflict(in, branch, err);
  struct err ignored;
  bool said = underway_say(&in->underway, UNDERWAY_NONE, NULL, stopped ? &ignored : err);
  return stopped || !said ? STATUS_USAGE : STATUS_COMPLETE;
}

static bool is_clean(const struct integration *in, struct err *err) {
  struct git_answer answer;
  if (!trees_git(in->folder, &answer, err, "status", "--porcelain", "--untracked-files=no", NULL))
    return false;
  bool known = answer.exit == 0, clean = known && answer.out.n == 0;
  struct buf why = {0};
  git_complaint(&answer, &why);
  if (!known)
    (void)err_set(err, ERR_INVALID, "%.300s: %.200s", in->folder, buf_c(&why));
  else if (!clean)
    (void)err_set(err, ERR_USAGE,
                  "%.300s has uncommitted changes: commit or stash them first; in a workflow, "
                  "commit: movement does that",
                  in->folder);
  buf_deinit(&why);
  git_answer_deinit(&answer);
  return clean;
}

/* Merges the branches named as words or, without any, one from each line of standard input. */
static int merge_all(struct integration *in, const struct cli_args *args, struct err *err) {
  struct buf text = {0};
  int status = STATUS_COMPLETE;
  size_t n = args->word_count;
  if (n == 0 && isatty(STDIN_FILENO)) {
    (void)err_set(err, ERR_USAGE, "name branches, or write them to standard input, one per line");
    return STATUS_USAGE;
  }
  if (n == 0 && !file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, &text, err))
    status = STATUS_USAGE;
  for (size_t i = 0; i < n && status == STATUS_COMPLETE; i++)
    status = merge_branch(in, args->words[i], err);
  struct str rest = buf_view(&text);
  while (n == 0 && status == STATUS_COMPLETE && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    char *branch = xstrndup(line.p, line.n);
    if (line.n > 0)
      status = merge_branch(in, branch, err);
    free(branch);
  }
  if (n == 0 && status == STATUS_COMPLETE && text.n == 0)
    puts("there is nothing to merge");
  buf_deinit(&text);
  return status;
}

static int integrate_run(int argc, char **argv) {
  struct cli_args args;
  struct integration in = {0};
  struct err err = {0};
  int status;
  if (!cli_parse(&cmd_integrate, argc, argv, 0, CLI_WORDS, &args, &status))
    return status;
  const char *cwd = cli_value(&args, "cwd");
  if (realpath(cwd ? cwd : ".", in.folder) == NULL) {
    (void)err_set_errno(&err, errno, "%.300s", cwd ? cwd : ".");
    return cli_fail("integrate", &err);
  }
  bool opened = underway_open(&in.underway, in.folder, &err);
  status = opened ? finish_merge(&in, &err) : STATUS_USAGE;
  if (status == STATUS_COMPLETE && !is_clean(&in, &err))
    status = STATUS_USAGE;
  if (status == STATUS_COMPLETE)
    status = merge_all(&in, &args, &err);
  git_answer_deinit(&in.files);
  underway_close(&in.underway);
  return status == STATUS_USAGE ? cli_fail("integrate", &err) : status;
}

const struct cli_command cmd_integrate = {
    .name = "integrate",
    .arguments = "[BRANCH...]",
    .summary = "merge branches one after the other into what is checked out here",
    .help = "Without BRANCH it reads one branch a line from standard input. Movements with "
            "integrate: run this command.\n"
            "Exit: 0 all were merged; 1 there is a conflict: the files are named, and hold git's "
            "conflict marks; resolve them and run it again, and it commits the merge and goes on. "
            "A folder with uncommitted changes is refused (exit 2).",
    .options = options,
    .run = integrate_run,
};
