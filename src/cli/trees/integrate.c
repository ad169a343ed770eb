/* segue integrate: merges branches, one behind the other, into what is checked out here. */
#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/trees/merging.h"
#include "cli/trees/session_trees.h"
#include "git/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct integration {
  char folder[PATH_MAX]; /* the top of the working tree */
  struct merging_note note;
  struct git_answer files;
  const char *check; /* or NULL */
  bool json, begun;
  json_t *told; /* what --json prints: merged, checked, put_back, conflicts */
};

static void integrate_tell(const struct integration *in, const char *list, json_t *entry) {
  json_array_append_new(json_object_get(in->told, list), entry);
}

/* Finds the files that have entries of both sides in the index, each followed by a NUL. */
static bool find_conflicts(struct integration *in, struct err *err) {
  git_answer_deinit(&in->files);
  return git_run(in->folder, &in->files, err, "diff", "--name-only", "--diff-filter=U", "-z",
                 "--no-ext-diff", NULL);
}

/* Tells those files or, with `marked_only`, those with marks of git's in them. Returns how many
 * there were. */
static size_t integrate_tell_conflicts(const struct integration *in, bool marked_only) {
  size_t n = 0;
  for (size_t at = 0; at < in->files.out.n;) {
    const char *name = in->files.out.p + at;
    buf_auto_t path = buf_of("%s/%s", in->folder, name);
    if (!marked_only || merging_has_marks(buf_c(&path))) {
      if (n++ == 0 && !in->json)
        puts("these files are in conflict:");
      if (!in->json)
        cli_say(stdout, "  %s\n", name);
      integrate_tell(in, "conflicts", json_io_string(name));
    }
    at += strnlen(name, in->files.out.n - at) + 1;
  }
  return n;
}

/* Commits the merge as it is in the index. */
static bool commit_merge(struct integration *in, struct err *err) {
  struct git_ask ask = {.folder = in->folder,
                        .words = {"commit", "--quiet", "--no-verify", "--no-edit", NULL}};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  trees_sign_as_nobody(&ask);
  return git_asked("git commit", &ask, &answer, err);
}

/* Goes on with a merge of its own that is under way; one of somebody else's is left alone. */
static int finish_merge(struct integration *in, struct err *err) {
  struct merging_note *n = &in->note;
  AUTO(git_answer_deinit) struct git_answer head = {0};
  if (!git_run(in->folder, &head, err, "rev-parse", "--verify", "--quiet", "MERGE_HEAD", NULL))
    return STATUS_USAGE;
  bool merges = head.exit == 0;
  if (n->state == MERGING_BEGUN)
    return merging_mend(n, err) ? STATUS_COMPLETE : STATUS_USAGE;
  if (merges && n->state == MERGING_CONFLICT) {
    /* It stopped at a conflict, which may still be there. */
    if (!find_conflicts(in, err))
      return STATUS_USAGE;
    if (integrate_tell_conflicts(in, true) > 0)
      return STATUS_FAILED;
    /* New files are left out: they were copied into a worktree, or are nobody's business here. */
    if (!git_did(in->folder, err, "add", "--update", ":/", NULL) || !commit_merge(in, err) ||
        !merging_end(n, false, err))
      return STATUS_USAGE;
    if (!in->json)
      puts("the conflicts have been resolved and committed");
    return STATUS_COMPLETE;
  }
  if (merges)
    err_set(err, ERR_USAGE,
            "a merge is in progress in %.300s: finish it with git commit, or git merge --abort",
            in->folder);
  else if (merging_end(n, false, err)) /* somebody finished it in another way */
    return STATUS_COMPLETE;
  return STATUS_USAGE;
}

/* Finds the worktree of a session, ID, or of a child, ID-TURN, by its branch: that has the same
 * turn at its end, and the id in it or else is this session's. Returns its path, new; NULL: there
 * is none, or err says why that is not known. */
static char *worktree_of(const struct integration *in, const char *branch, char id[STORE_ID_BYTES],
                         struct err *err) {
  AUTO(git_answer_deinit) struct git_answer list = {0};
  const char *own = getenv("SEGUE_SESSION"), *from = branch, *turn;
  char name[2 * STORE_ID_BYTES];
  while (*from != '\0' && strspn(from, "0123456789abcdef-") < STORE_ID_BYTES - 1)
    from++;
  *err = (struct err){0};
  turn = strrchr(*from != '\0' ? from + STORE_ID_BYTES - 1 : branch, '-');
  if (*from == '\0' && (turn == NULL || own == NULL))
    return NULL;
  print_into(id, STORE_ID_BYTES, "%.*s", STORE_ID_BYTES - 1, *from != '\0' ? from : own);
  print_into(name, sizeof name, "/%s%.20s", id, turn ? turn : "");
  if (!git_run(in->folder, &list, err, "worktree", "list", "--porcelain", "-z", NULL))
    return NULL;
  for (size_t at = 0; at < list.out.n; at += strlen(list.out.p + at) + 1) {
    struct str entry = str_from(list.out.p + at);
    if (str_starts(entry, "worktree ") && str_ends(entry, name))
      return xstrdup(entry.p + strlen("worktree "));
  }
  return NULL;
}

/* Has the branch take over what its child left elsewhere. */
static bool integrate_take_work(const struct integration *in, const char *branch, struct err *err) {
  char id[STORE_ID_BYTES] = "";
  char_auto_t *path = worktree_of(in, branch, id, err);
  if (path == NULL)
    return err->code == ERR_NONE;
  char_auto_t *base = file_is_folder(path) ? git_line(path, err, "rev-parse", "HEAD", NULL) : NULL;
  char_auto_t *shared = base ? git_line(in->folder, err, "merge-base", "HEAD", base, NULL) : NULL;
  if (err->code == ERR_IO)
    return false;
  const struct work_where where = {.session = id,
                                   .repo = in->folder,
                                   .worktree = path,
                                   .branch = branch,
                                   .base = shared,
                                   .commits_only = true};
  return merging_adopt(&where, "HEAD", in->json ? stderr : stdout, err);
}

/* Merges a commit into what is checked out there, as a merge with `branch` in its message. False:
 * git could not be run. */
static bool begin_merge(const struct integration *in, const char *commit, const char *branch,
                        struct git_answer *answer, struct err *err) {
  char message[512];
  struct git_ask ask = {.folder = in->folder,
                        .words = {"merge", "--no-ff", in->check ? "--no-commit" : "--commit",
                                  "--no-edit", "--no-verify", "--no-verify-signatures", "--quiet",
                                  "--no-stat", "-m", message, commit, NULL}};
  print_into(message, sizeof message, "Merge %.450s", branch);
  trees_sign_as_nobody(&ask);
  return git_now(&ask, answer, err);
}

/* Runs the check on what was merged and is not committed yet: HEAD moves only if it passes. */
static int check_merged(struct integration *in, const char *branch, struct err *err) {
  buf_auto_t last = {0};
  int exit;
  if (!merging_check(in->folder, in->check, NULL, &exit, &last, err)) {
    merging_give_up(&in->note);
    return STATUS_USAGE;
  }
  integrate_tell(in, "checked", json_pack("{ss si}", "branch", branch, "exit", exit));
  if (exit == 0 && in->note.own && /* what a check changed is no part of the merge */
      !git_did(in->folder, err, "checkout-index", "--force", "--all", "--quiet", NULL))
    return STATUS_USAGE;
  if (exit == 0)
    return commit_merge(in, err) ? STATUS_COMPLETE : STATUS_USAGE;
  if (!merging_mend(&in->note, err))
    return STATUS_USAGE;
  integrate_tell(in, "put_back",
                 json_pack("{ss si so}", "branch", branch, "exit", exit, "output",
                           json_io_string(buf_c(&last))));
  if (!in->json)
    cli_say(stdout, "put back: %s, the check ended with %d:\n", branch, exit);
  if (!in->json)
    merging_print(stdout, &last);
  return STATUS_ABORT;
}

/* Tells a merge that git did not finish: as a conflict only if the index has one. */
static int stop_merge(struct integration *in, const char *branch, const struct git_answer *answer,
                      struct err *err) {
  if (!find_conflicts(in, err))
    return STATUS_USAGE;
  if (in->files.out.n == 0) {
    (void)git_complain(branch, answer, err);
    merging_give_up(&in->note);
    return STATUS_USAGE;
  }
  if (!in->json)
    cli_say(stdout, "not merged: %s\n", branch);
  (void)integrate_tell_conflicts(in, false);
  if (!in->json)
    puts("resolve them in these files, and leave no conflict markers; the merge is finished "
         "afterwards");
  return merging_end(&in->note, true, err) ? STATUS_FAILED : STATUS_USAGE;
}

static int merge_branch(struct integration *in, const char *branch, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  bool holds;
  if (!integrate_take_work(in, branch, err))
    return STATUS_USAGE;
  char_auto_t *tip = trees_tip(in->folder, branch, err);
  if (tip == NULL && err->code != ERR_IO) /* else git could not be run */
    err_set(err, ERR_NOT_FOUND, "there is no branch %.300s", branch);
  if (tip == NULL || !git_descends(in->folder, "HEAD", tip, &holds, err))
    return STATUS_USAGE;
  if (!holds) {
    if (!merging_begin(&in->note, tip, "HEAD", err) || !begin_merge(in, tip, branch, &answer, err))
      return STATUS_USAGE;
    if (answer.exit != 0)
      return stop_merge(in, branch, &answer, err);
    int status = in->check ? check_merged(in, branch, err) : STATUS_COMPLETE;
    if (status != STATUS_COMPLETE)
      return status;
    if (!git_descends(in->folder, "HEAD", tip, &holds, err))
      return STATUS_USAGE;
    if (!holds) {
      err_set(err, ERR_INVALID, "git merged %.300s, but its commit %.10s is not in HEAD", branch,
              tip);
      return STATUS_USAGE;
    }
    if (!merging_end(&in->note, false, err))
      return STATUS_USAGE;
  }
  integrate_tell(in, "merged", json_io_string(branch));
  if (!in->json)
    cli_say(stdout, "merged: %s\n", branch);
  return STATUS_COMPLETE;
}

/* A git that was ended is the machine's fault: it is asked once more, from where it stood. */
static int merge_branch_surely(struct integration *in, const char *branch, struct err *err) {
  int status = merge_branch(in, branch, err);
  if (status != STATUS_USAGE || err->code != ERR_IO)
    return status;
  struct err first = *err;
  *err = (struct err){0};
  if (in->note.state != MERGING_NONE && !merging_mend(&in->note, err))
    return STATUS_USAGE;
  cli_say(stderr, "segue integrate: %s: %s; once more\n", branch, first.text);
  return merge_branch(in, branch, err);
}

/* Merges the branches named as words or, without any, one from each line of standard input. */
static int merge_all(struct integration *in, const struct cli_args *args, struct str lines,
                     struct err *err) {
  int status = STATUS_COMPLETE, worst = STATUS_COMPLETE;
  for (size_t i = 0; i < args->word_count || (args->word_count == 0 && lines.n > 0); i++) {
    struct str line = args->word_count > 0 ? str_from(args->words[i]) : str_next_line(&lines);
    if (args->word_count == 0)
      line = str_trim(line);
    char_auto_t *branch = xstrndup(line.p, line.n);
    status = line.n > 0 ? merge_branch_surely(in, branch, err) : STATUS_COMPLETE;
    if (status == STATUS_FAILED || status == STATUS_USAGE)
      return status;
    worst = status != STATUS_COMPLETE ? status : worst;
  }
  return worst;
}

/* Opens the repository, finishes or undoes what is under way, and merges. */
static int integrate_here(struct integration *in, const struct cli_args *args, struct str lines,
                          struct err *err) {
  char_auto_t *top = git_line(in->folder, err, "rev-parse", "--show-toplevel", NULL);
  if (top != NULL)
    print_into(in->folder, sizeof in->folder, "%s", top);
  if (top == NULL || !merging_open(&in->note, in->folder, err))
    return STATUS_USAGE;
  int status = finish_merge(in, err);
  if (status == STATUS_COMPLETE && !trees_is_clean(in->folder, err))
    status = STATUS_USAGE;
  in->begun = status == STATUS_COMPLETE;
  return in->begun ? merge_all(in, args, lines, err) : status;
}

static int integrate_run(const struct cli_args *args) {
  struct integration in = {.check = cli_value(args, "check"), .json = cli_flag(args, "json")};
  struct err err = {0};
  buf_auto_t text = {0};
  int status = STATUS_USAGE;
  const char *cwd = cli_value_or(args, "cwd", ".");
  cli_errors_as_json(in.json);
  in.told = json_pack("{s[] s[] s[] s[]}", "merged", "checked", "put_back", "conflicts");
  bool ok = realpath(cwd, in.folder) != NULL || err_set_errno(&err, errno, "%.300s", cwd);
  if (ok && args->word_count == 0 && isatty(STDIN_FILENO))
    ok = err_set(&err, ERR_USAGE, "name branches, or write them to standard input, one per line");
  if (ok && args->word_count == 0)
    ok = file_read_fd(STDIN_FILENO, "standard input", LIMIT_TASK_BYTES, &text, &err);
  for (int tries = 0; ok && tries < 2 && !in.begun; tries++) { /* git may have been ended */
    merging_close(&in.note);
    status = integrate_here(&in, args, buf_view(&text), &err);
    if (status != STATUS_USAGE || err.code != ERR_IO)
      break;
  }
  if (status == STATUS_COMPLETE && args->word_count == 0 && text.n == 0 && !in.json)
    puts("there is nothing to merge");
  git_answer_deinit(&in.files);
  merging_close(&in.note);
  if (in.json && status != STATUS_USAGE)
    json_io_put(in.told);
  else
    json_decref(in.told);
  if (status == STATUS_USAGE)
    (void)cli_fail("integrate", &err); /* whose 1 would mean a conflict */
  return status;
}

const struct cli_command cmd_integrate = {COMMAND_INTEGRATE, .run = integrate_run};
