/* segue integrate: merges branches, one behind the other, into what is checked out here. */
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/trees/session_trees.h"
#include "os/fs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the merge under way --- */

/* Records the merge that segue integrate is doing in a file in git's folder, so that an
 * interrupted merge is found again and two never overlap. */

enum underway_state { UNDERWAY_NONE, UNDERWAY_MERGING, UNDERWAY_CONFLICT };

struct underway {
  const char *folder; /* borrowed */
  char *path, *git_dir;
  FILE *file;
  enum underway_state state;
  char tip[72]; /* for UNDERWAY_MERGING: the commit being merged */
};

static bool underway_open(struct underway *u, const char *folder, struct err *err) {
  *u = (struct underway){.folder = folder};
  u->git_dir = trees_line(folder, err, "rev-parse", "--absolute-git-dir", NULL);
  if (u->git_dir == NULL)
    return false;
  struct buf path = {0};
  buf_printf(&path, "%s/" GIT_SEGUE_MERGE, u->git_dir);
  u->path = buf_take(&path);
  u->file = fopen(u->path, "a+e");
  if (u->file == NULL)
    return err_set_errno(err, errno, "cannot write %.300s", u->path);
  if (!fs_lock(fileno(u->file))) {
    (void)fclose(u->file);
    u->file = NULL;
    return err_set(err, ERR_LOCKED, "another segue integrate is running in %.300s", folder);
  }
  char line[128] = "";
  rewind(u->file);
  if (fgets(line, sizeof line, u->file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "conflict") == 0)
      u->state = UNDERWAY_CONFLICT;
    else if (strncmp(line, LIT("merging ")) == 0)
      u->state = UNDERWAY_MERGING;
    print_into(u->tip, sizeof u->tip, "%.64s", u->state == UNDERWAY_MERGING ? line + 8 : "");
  }
  return true;
}

/* Records the state. tip: a commit, or NULL. */
static bool underway_say(struct underway *u, enum underway_state state, const char *tip,
                         struct err *err) {
  u->state = state;
  bool ok = ftruncate(fileno(u->file), 0) == 0;
  if (state == UNDERWAY_MERGING)
    ok = ok && fprintf(u->file, "merging %s\n", tip) > 0;
  else if (state == UNDERWAY_CONFLICT)
    ok = ok && fputs(GIT_SEGUE_MERGE_CONFLICT, u->file) >= 0;
  ok = ok && fflush(u->file) == 0 && fsync(fileno(u->file)) == 0;
  return ok || err_set_errno(err, errno, "cannot write %.300s", u->path);
}

/* Removes the files that the merge was to add: none of them existed before, or git would have
 * refused. */
static bool drop_added(const struct underway *u, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer added = {0};
  char_auto_t *top = trees_line(u->folder, err, "rev-parse", "--show-toplevel", NULL);
  if (top == NULL || !trees_git(u->folder, &added, err, "diff", "--name-only", "--no-renames",
                                "--diff-filter=A", "-z", "--no-ext-diff", "HEAD", u->tip, NULL)) {
    return false;
  }
  for (size_t at = 0; added.exit == 0 && at < added.out.n;) {
    const char *name = added.out.p + at;
    buf_auto_t path = {0};
    buf_printf(&path, "%s/%s", top, name);
    (void)unlink(buf_c(&path));
    at += strnlen(name, added.out.n - at) + 1;
  }
  return true;
}

/* Undoes the merge, only in a session's own worktree; elsewhere it refuses, since the changes may
 * be somebody's. */
static bool underway_undo(struct underway *u, struct err *err) {
  bool own = getenv("SEGUE_SESSION") != NULL && strstr(u->git_dir, "/worktrees/") != NULL;
  if (!own)
    return err_set(err, ERR_USAGE,
                   "a merge by segue integrate was interrupted in %.200s: undo it (git reset "
                   "--hard, if no change there is yours) and remove %.200s",
                   u->folder, u->path);
  git_drop_lock(u->git_dir, "index");
  git_drop_lock(u->git_dir, "HEAD");
  return trees_did(u->folder, err, "reset", "--hard", "--quiet", NULL) && drop_added(u, err) &&
         underway_say(u, UNDERWAY_NONE, NULL, err);
}

/* --- the command --- */

static const struct cli_option options[] = {
    {"cwd", 'C', "DIR", "a folder of the repository (default: here)", false},
    {0},
};

struct integration {
  char folder[PATH_MAX]; /* the top of the working tree */
  struct underway underway;
  struct git_answer files;
};

/* Looks for a line that begins like git's <<<<<<<, and one like >>>>>>>. */
static bool has_marks(const char *path) {
  buf_auto_t text = {0};
  struct err err;
  bool marked = false;
  if (file_read(path, LIMIT_OUTPUT_BYTES, &text, &err)) {
    struct str all = buf_view(&text);
    bool opens = str_starts(all, "<<<<<<< ") || str_has(all, "\n<<<<<<< ");
    marked = opens && str_has(all, "\n>>>>>>> ");
  }
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
static size_t put_conflicts(const struct integration *in, bool marked_only) {
  size_t n = 0;
  for (size_t at = 0; at < in->files.out.n;) {
    const char *name = in->files.out.p + at;
    buf_auto_t path = {0};
    buf_printf(&path, "%s/%s", in->folder, name);
    if (!marked_only || has_marks(buf_c(&path))) {
      if (n++ == 0)
        puts("these files are in conflict:");
      cli_say(stdout, "  %s\n", name);
    }
    at += strnlen(name, in->files.out.n - at) + 1;
  }
  return n;
}

/* Leaves out new files: what was copied into a worktree, or is nobody's business here. */
static bool commit_merge(struct integration *in, struct err *err) {
  struct git_ask ask = {.folder = in->folder,
                        .words = {"commit", "--quiet", "--no-verify", "--no-edit", NULL}};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!trees_did(in->folder, err, "add", "--update", ":/", NULL))
    return false;
  trees_sign_as_nobody(&ask);
  return git_now(&ask, &answer, err) &&
         (answer.exit == 0 || trees_complain("git commit", &answer, err)) &&
         underway_say(&in->underway, UNDERWAY_NONE, NULL, err);
}

/* Goes on with a merge of its own that is under way; one of somebody else's is left alone. */
static int finish_merge(struct integration *in, struct err *err) {
  struct underway *u = &in->underway;
  struct err none;
  bool merges =
      trees_did(in->folder, &none, "rev-parse", "--verify", "--quiet", "MERGE_HEAD", NULL);
  if (u->state == UNDERWAY_MERGING)
    return underway_undo(u, err) ? STATUS_COMPLETE : STATUS_USAGE;
  if (merges && u->state == UNDERWAY_CONFLICT) {
    /* It stopped at a conflict, which may still be there. */
    if (!find_conflicts(in, err))
      return STATUS_USAGE;
    if (put_conflicts(in, true) > 0)
      return STATUS_FAILED;
    if (!commit_merge(in, err))
      return STATUS_USAGE;
    puts("the conflicts have been resolved and committed");
    return STATUS_COMPLETE;
  }
  if (merges)
    err_set(err, ERR_USAGE,
            "a merge is in progress in %.300s: finish it with git commit, or git merge --abort",
            in->folder);
  else if (underway_say(u, UNDERWAY_NONE, NULL, err)) /* somebody finished it in another way */
    return STATUS_COMPLETE;
  return STATUS_USAGE;
}

/* Checks that a child's branch has what is in its worktree ID-TURN. The branch has the same turn at
 * its end, and the id in it or else is this session's. */
static bool has_its_work(const struct integration *in, const char *branch, struct err *err) {
  AUTO(work_deinit) struct work w = {0};
  char session[STORE_ID_BYTES], path[2 * STORE_ID_BYTES];
  const char *turn = strrchr(branch, '-'), *id = branch, *own = getenv("SEGUE_SESSION");
  while (*id != '\0' && strspn(id, "0123456789abcdef-") < STORE_ID_BYTES - 1)
    id++;
  if (turn == NULL || (*id == '\0' && own == NULL))
    return true;
  print_into(session, sizeof session, "%s", *id != '\0' ? id : own);
  print_into(path, sizeof path, "/%s%.20s", session, turn);
  const struct work_where where = {.session = session,
                                   .repo = in->folder,
                                   .worktree = path,
                                   .branch = branch,
                                   .commits_only = true};
  return work_find(&where, &w, err) && work_adopt(&where, &w, err);
}

/* Merges a commit into what is checked out there, as a merge with `branch` in its message. False:
 * git could not be run. */
static bool begin_merge(const char *folder, const char *commit, const char *branch,
                        struct git_answer *answer, struct err *err) {
  char message[512];
  struct git_ask ask = {.folder = folder,
                        .words = {"merge", "--no-ff", "--no-edit", "--no-verify",
                                  "--no-verify-signatures", "--quiet", "--no-stat", "-m", message,
                                  commit, NULL}};
  print_into(message, sizeof message, "Merge %.450s", branch);
  trees_sign_as_nobody(&ask);
  return git_now(&ask, answer, err);
}

static int merge_branch(struct integration *in, const char *branch, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!has_its_work(in, branch, err))
    return STATUS_USAGE;
  char_auto_t *tip = trees_tip(in->folder, branch, err);
  if (tip == NULL && err->code != ERR_IO) /* else git could not be run */
    err_set(err, ERR_NOT_FOUND, "there is no branch %.300s", branch);
  if (tip == NULL)
    return STATUS_USAGE;
  bool merged = underway_say(&in->underway, UNDERWAY_MERGING, tip, err) &&
                begin_merge(in->folder, tip, branch, &answer, err);
  if (!merged)
    return STATUS_USAGE;
  bool stopped = answer.exit != 0;
  if (!stopped) {
    cli_say(stdout, "merged: %s\n", branch);
  } else {
    (void)trees_complain(branch, &answer, err);
  }
  bool conflict = stopped && answer.exit == 1 && answer.err.n == 0;
  if (conflict) {
    if (!find_conflicts(in, err))
      return STATUS_USAGE;
    cli_say(stdout, "not merged: %s\n", branch);
    (void)put_conflicts(in, false);
    puts("resolve them in these files, and leave no conflict markers; the merge is finished "
         "afterwards");
    return underway_say(&in->underway, UNDERWAY_CONFLICT, NULL, err) ? STATUS_FAILED : STATUS_USAGE;
  }
  struct err ignored;
  bool said = underway_say(&in->underway, UNDERWAY_NONE, NULL, stopped ? &ignored : err);
  return stopped || !said ? STATUS_USAGE : STATUS_COMPLETE;
}

/* Merges the branches named as words or, without any, one from each line of standard input. */
static int merge_all(struct integration *in, const struct cli_args *args, struct err *err) {
  buf_auto_t text = {0};
  int status = STATUS_COMPLETE;
  size_t n = args->word_count;
  if (n == 0 && isatty(STDIN_FILENO)) {
    err_set(err, ERR_USAGE, "name branches, or write them to standard input, one per line");
    return STATUS_USAGE;
  }
  if (n == 0 && !file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, &text, err))
    status = STATUS_USAGE;
  for (size_t i = 0; i < n && status == STATUS_COMPLETE; i++)
    status = merge_branch(in, args->words[i], err);
  struct str rest = buf_view(&text);
  while (n == 0 && status == STATUS_COMPLETE && rest.n > 0) {
    struct str line = str_trim(str_next_line(&rest));
    char_auto_t *branch = xstrndup(line.p, line.n);
    if (line.n > 0)
      status = merge_branch(in, branch, err);
  }
  if (n == 0 && status == STATUS_COMPLETE && text.n == 0)
    puts("there is nothing to merge");
  return status;
}

static int integrate_run(const struct cli_args *args) {
  struct integration in = {0};
  struct err err = {0};
  int status;
  const char *cwd = cli_value_or(args, "cwd", ".");
  bool found = realpath(cwd, in.folder) != NULL || err_set_errno(&err, errno, "%.300s", cwd);
  char_auto_t *top =
      found ? trees_line(in.folder, &err, "rev-parse", "--show-toplevel", NULL) : NULL;
  print_into(in.folder, sizeof in.folder, "%s", top ? top : "");
  bool opened = top != NULL && underway_open(&in.underway, in.folder, &err);
  status = opened ? finish_merge(&in, &err) : STATUS_USAGE;
  if (status == STATUS_COMPLETE && !trees_is_clean(in.folder, &err))
    status = STATUS_USAGE;
  if (status == STATUS_COMPLETE)
    status = merge_all(&in, args, &err);
  git_answer_deinit(&in.files);
  struct underway *u = &in.underway;
  if (u->file != NULL && u->state == UNDERWAY_NONE)
    (void)unlink(u->path);
  if (u->file != NULL)
    (void)fclose(u->file);
  free(u->path);
  free(u->git_dir);
  if (status == STATUS_USAGE)
    (void)cli_fail("integrate", &err); /* whose 1 would mean a conflict */
  return status;
}

const struct cli_command cmd_integrate = {
    .name = "integrate",
    .arguments = "[BRANCH...]",
    .words = {0, CLI_WORDS},
    .summary = "merge branches one after the other into what is checked out here",
    .help =
        "Without BRANCH it reads one branch a line from standard input. Movements with "
        "integrate: run this command.\n"
        "Exit: 0 all were merged; 1 there is a conflict: the files are named, and hold git's "
        "conflict marks; resolve them and run it again, and it commits the merge and goes on; 2 "
        "for everything else: a folder with uncommitted changes, or a child whose worktree has "
        "commits that its branch lacks.",
    .options = options,
    .run = integrate_run,
};
