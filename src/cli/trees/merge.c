/* segue merge: brings a session's branch into another one, or leaves everything as it was. */
#include "base/file.h"
#include "cli/cli.h"
#include "cli/forking.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/merging.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "host/paths.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct merging {
  const struct trees *t;
  const struct tree_item *own;
  const char *branch;
  char *into, *target; /* the branch, and the commit it is at */
  char ref[512];       /* its full name */
  char *place;         /* where it is checked out, or "" */
  char *tip, *tree, *commit;
  json_t *conflicts; /* files */
  bool squash, merged;
  const char *check; /* or NULL */
  bool checked, put_back;
  int exit;
  struct buf last; /* lines of the check */
  struct merging_note note;
};

/* Without --into the branch must be the one that was there when the session began: an agent, or
 * somebody else, may have switched it. */
static bool choose_target(struct merging *m, struct err *err) {
  const struct trees *t = m->t;
  *err = (struct err){0};
  m->into = git_line(t->cwd, err, "symbolic-ref", "--short", "--quiet", "HEAD", NULL);
  if (m->into == NULL && err->code == ERR_IO)
    return false;
  const char *on = m->into, *began = t->main;
  if (on == NULL)
    return err_set(err, ERR_USAGE, "no branch is checked out in %.300s: give --into %.200s", t->cwd,
                   began ? began : "BRANCH");
  if (!t->has_main || (began != NULL && strcmp(on, began) == 0))
    return true;
  if (began == NULL)
    return err_set(err, ERR_USAGE,
                   "no branch was checked out in %.300s when the session began, and now it is "
                   "%.200s: --into %.200s merges into that",
                   t->cwd, on, on);
  return err_set(err, ERR_USAGE,
                 "%.200s was checked out in %.200s when the session began, and now it is %.200s: "
                 "give --into %.100s or --into %.100s",
                 began, t->cwd, on, began, on);
}

/* Finds where the target is checked out: "" if nowhere, or only in a bare repository. Of a tree
 * whose repository lies apart from it, git names the repository. */
static bool merge_find_place(struct merging *m, struct err *err) {
  char index[1100];
  struct err ignored;
  print_into(m->ref, sizeof m->ref, "refs/heads/%.450s", m->into);
  char_auto_t *on = git_line(m->t->cwd, &ignored, "symbolic-ref", "--quiet", "HEAD", NULL);
  if (on != NULL && strcmp(on, m->ref) == 0)
    m->place = git_line(m->t->cwd, &ignored, "rev-parse", "--show-toplevel", NULL);
  if (m->place != NULL && m->place[0] != '\0')
    return true;
  free(m->place);
  m->place = git_line(m->t->cwd, err, "for-each-ref", "--format=%(worktreepath)", m->ref, NULL);
  if (m->place == NULL || m->place[0] == '\0')
    return m->place != NULL;
  if (!file_is_folder(m->place))
    return err_set(err, ERR_NOT_FOUND,
                   "%.200s is checked out in %.200s, which is gone: git worktree prune forgets it",
                   m->into, m->place);
  print_into(index, sizeof index, "%.1000s/.git", m->place);
  if (access(index, F_OK) == 0)
    return true;
  print_into(index, sizeof index, "%.1000s/index", m->place); /* it is a repository itself */
  if (access(index, F_OK) == 0)
    return err_set(err, ERR_USAGE,
                   "%.200s is checked out in a folder that git does not name, whose repository is "
                   "%.200s: it can only be merged into by git there",
                   m->into, m->place);
  m->place[0] = '\0';
  return true;
}

/* Makes of the target what it was, if a merge into it was cut off. */
static bool open_note(struct merging *m, struct err *err) {
  char_auto_t *common =
      git_line(m->t->cwd, err, "rev-parse", "--path-format=absolute", "--git-common-dir", NULL);
  if (common == NULL || !merging_open(&m->note, m->place[0] ? m->place : common, err))
    return false;
  return m->note.state != MERGING_BEGUN || merging_mend(&m->note, err);
}

static bool find_target(struct merging *m, const char *into, struct err *err) {
  m->into = into ? xstrdup(into) : NULL;
  if ((into == NULL && !choose_target(m, err)) || !merge_find_place(m, err) || !open_note(m, err))
    return false;
  m->target = trees_tip(m->t->cwd, m->into, err);
  if (m->target == NULL && err->code != ERR_IO)
    return err_set(err, ERR_NOT_FOUND, "there is no branch %.200s", m->into);
  return m->target != NULL && (m->place[0] == '\0' || trees_is_clean(m->place, err));
}

/* Finds what to merge: all that the session's worktree and its branch have. */
static bool find_work(struct merging *m, FILE *out, struct err *err) {
  const struct trees *t = m->t;
  if (!trees_is_settled(t, m->target, out, err))
    return false;
  m->tip = trees_tip(t->cwd, m->branch, err);
  if (m->tip == NULL && err->code != ERR_IO)
    return err_set(err, ERR_NOT_FOUND, "its branch %.200s is gone", m->branch);
  return m->tip != NULL && git_descends(t->cwd, m->target, m->tip, &m->merged, err);
}

/* A squashed merge leaves no line in the history: its trailer names what was merged, or there is
 * nothing left to bring. */
static bool find_squashed(struct merging *m, struct err *err) {
  char grep[128];
  print_into(grep, sizeof grep, "--grep=^Segue-Merged: %.72s$", m->tip);
  char_auto_t *made = git_line(m->t->cwd, err, "log", "-1", "--format=%H", "--basic-regexp", grep,
                               "--end-of-options", m->target, NULL);
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (made == NULL ||
      !git_run(m->t->cwd, &answer, err, "diff-tree", "--quiet", m->tree, m->target, NULL))
    return false;
  m->merged = made[0] != '\0' || answer.exit == 0;
  return true;
}

/* Writes the merged tree without touching any folder, or lists the files in conflict. */
static bool merge_trees(struct merging *m, struct err *err) {
  json_auto_t *conflicts = json_array();
  m->tree = merging_tree(m->t->cwd, m->target, m->tip, conflicts, err);
  if (m->tree != NULL && json_array_size(conflicts) > 0)
    m->conflicts = json_incref(conflicts);
  return m->tree != NULL && (!m->squash || m->conflicts != NULL || find_squashed(m, err));
}

static bool make_commit(struct merging *m, const char *message, struct err *err) {
  char made[800], merged[96] = "";
  struct git_ask ask = {.folder = m->t->cwd,
                        .words = {"commit-tree", m->tree, "-p", m->target, "-p", m->tip, NULL}};
  if (m->squash)
    ask.words[4] = NULL;
  if (m->squash)
    print_into(merged, sizeof merged, "Segue-Merged: %.72s\n", m->tip);
  trees_sign_as_nobody(&ask);
  print_into(made, sizeof made, "%s%.200s\n\nSegue-Session: %s\n%s",
             m->squash ? "" : "Merge of a session: ", m->t->task[0] ? m->t->task : m->branch,
             m->t->session, merged);
  ask.input = str_from(message ? message : made);
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!git_now(&ask, &answer, err))
    return false;
  struct str line = str_trim(buf_view(&answer.out));
  if (answer.exit == 0)
    m->commit = xstrndup(line.p, line.n);
  else
    err_set(err, ERR_INVALID, "git commit-tree: %.400s", buf_c(&answer.err));
  return m->commit != NULL;
}

/* Puts into the check's tree what git does not have, as for a session's worktree. */
static bool furnish(const struct merging *m, const char *path, struct err *err) {
  static const char *const settings[] = {"copy", "link"};
  char_auto_t *top = git_line(m->t->cwd, err, "rev-parse", "--show-toplevel", NULL);
  for (size_t k = 0; top != NULL && k < ARRAY_LEN(settings); k++)
    JSON_EACH(core_worktree_setting(m->t->config, settings[k]), i, name) {
      buf_auto_t from = buf_of("%s/%s", top, json_string_value(name));
      buf_auto_t to = buf_of("%s/%s", path, json_string_value(name));
      while (buf_c(&to)[to.n - 1] == '/') /* a link cannot be made there */
        to.p[--to.n] = '\0';
      const struct git_ask copy = {.folder = "/",
                                   .words = {"cp", "-a", "--", buf_c(&from), buf_c(&to), NULL},
                                   .other = true};
      AUTO(git_answer_deinit) struct git_answer answer = {0};
      if (access(buf_c(&from), F_OK) != 0 || access(buf_c(&to), F_OK) == 0)
        continue;
      if (k == 1 && symlink(buf_c(&from), buf_c(&to)) != 0)
        return err_set(err, ERR_IO, "cannot link %.300s", buf_c(&to));
      if (k == 0 && !git_now(&copy, &answer, err))
        return false;
    }
  return true;
}

static bool clear_tree(const struct merging *m, const char *path, struct err *err) {
  const struct git_ask ask = {
      .folder = "/", .words = {"rm", "-rf", "--", path, NULL}, .other = true};
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  struct err ignored;
  bool ok = git_now(&ask, &answer, err);
  if (ok) /* git may still know it */
    (void)git_did(m->t->cwd, &ignored, "worktree", "remove", "--force", "--force", path, NULL);
  return ok;
}

/* Runs the check in a worktree of its own, so that nobody's tree is touched if it fails. What a
 * killed one left there goes first. */
static bool check_merge(struct merging *m, struct err *err) {
  char folder[PATHS_BYTES];
  buf_auto_t path = {0}, within = {0};
  if (!paths_state("checks", folder, err))
    return false;
  buf_printf(&path, "%s/%s", folder, m->t->session);
  buf_printf(&within, "%s%s", buf_c(&path), m->own->folder + strlen(m->own->path));
  merging_await(m->t->cwd, false);
  merging_await(buf_c(&path), true);
  bool ok = clear_tree(m, buf_c(&path), err) &&
            git_did(m->t->cwd, err, "worktree", "add", "--quiet", "--detach", buf_c(&path),
                    m->commit, NULL) &&
            furnish(m, buf_c(&path), err) &&
            merging_check(file_is_folder(buf_c(&within)) ? buf_c(&within) : buf_c(&path), m->check,
                          m->t->config, &m->exit, &m->last, err);
  struct err ignored;
  (void)clear_tree(m, buf_c(&path), &ignored);
  m->checked = ok;
  m->put_back = ok && m->exit != 0;
  return ok;
}

/* Is the merge where it belongs, as git has it now? */
static bool merge_verify(struct merging *m, struct err *err) {
  bool moved, holds = m->squash;
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!git_descends(m->t->cwd, m->ref, m->commit, &moved, err) ||
      (!holds && !git_descends(m->t->cwd, m->ref, m->tip, &holds, err)) ||
      !git_run(m->t->cwd, &answer, err, "diff-tree", "--quiet", m->tree, m->commit, NULL))
    return false;
  return (moved && holds && answer.exit == 0) ||
         err_set(err, ERR_INVALID, "%.200s is not at the merge: it was moved meanwhile", m->into);
}

/* Moves the branch in a single step of git: it stays where it was or ends at the merge. A git that
 * was ended is asked once more, from where it stood. */
static bool move_branch(struct merging *m, struct err *err) {
  bool ok = false;
  for (int tries = 0; !ok && tries < 2; tries++) {
    if (tries > 0 && (err->code != ERR_IO || !merging_mend(&m->note, err)))
      return false;
    ok = merging_begin(&m->note, m->commit, m->ref, err);
    if (ok && m->place[0] != '\0')
      ok = git_did(m->place, err, "merge", "--ff-only", "--quiet", "--no-verify",
                   "--no-verify-signatures", m->commit, NULL);
    else if (ok)
      ok = git_did(m->t->cwd, err, "update-ref", "-m", "segue merge", m->ref, m->commit, m->target,
                   NULL);
  }
  if (!ok)
    merging_give_up(&m->note);
  return ok && merge_verify(m, err) && merging_end(&m->note, false, err);
}

static int tell_conflicts(const struct merging *m, bool json) {
  if (json) {
    json_io_put(json_pack("{ss ss sO}", "session", m->t->session, "into", m->into, "conflicts",
                          m->conflicts));
    return STATUS_FAILED;
  }
  cli_say(stderr, "segue merge: nothing was changed; these files are in conflict with %s:\n",
          m->into);
  JSON_EACH(m->conflicts, i, file)
    cli_say(stderr, "  %s\n", json_string_value(file));
  return STATUS_FAILED;
}

static void tell_merged(const struct merging *m, bool json) {
  if (json) {
    const char *at = m->commit && !m->put_back ? m->commit : m->target;
    json_t *told = json_pack("{ss ss ss ss}", "session", m->t->session, "branch", m->branch, "into",
                             m->into, "commit", at);
    if (m->checked) {
      json_object_set_new(told, "checked",
                          json_pack("{ss si so}", "command", m->check, "exit", m->exit, "output",
                                    json_io_string(buf_c(&m->last))));
      json_object_set_new(told, "put_back", json_boolean(m->put_back));
    }
    json_io_put(told);
  } else if (m->put_back) {
    cli_say(stderr, "segue merge: %s is put back, %s is as it was: the check ended with %d:\n",
            m->branch, m->into, m->exit);
    merging_print(stderr, &m->last);
  } else if (m->commit != NULL) {
    cli_say(stdout, "%s is in %s: %.10s\n", m->branch, m->into, m->commit);
  } else {
    cli_say(stdout, "%s is already merged: %s\n", m->branch, m->into);
  }
}

static int merge_session(const struct cli_args *args, const struct trees *t,
                         const struct store_ref *ref, struct err *err);

static void put_conflict_task(const struct merging *m, struct buf *out) {
  buf_puts(out, "The work on this task, on branch ");
  buf_safe(out, str_from(m->branch), false);
  buf_puts(out, ", is being merged with ");
  buf_safe(out, str_from(m->into), false);
  buf_puts(out, " in the working directory, and these files are in conflict:\n\n");
  JSON_EACH(m->conflicts, i, file) {
    buf_puts(out, "- ");
    buf_safe(out, json_view(file), false);
    buf_putc(out, '\n');
  }
  buf_puts(out,
           "\nBoth sides stand in them behind git's marks (<<<<<<<, =======, >>>>>>>); of a file "
           "that one side removed there are none. Resolve them so that what each side is for "
           "is kept, leave no marks, and do not commit.\n");
}

/* Lets the workflow resolve the conflicts in a new session's worktree, where both sides are merged
 * already; its result is then merged. */
static int resolve_merge(const struct cli_args *args, const struct merging *m,
                         const struct store_ref *ref) {
  buf_auto_t more = {0};
  AUTO(trees_deinit) struct trees made = {0};
  struct err err = {0};
  json_auto_t *body = json_object();
  put_conflict_task(m, &more);
  struct fork_wish w = {.command = "merge",
                        .ref = ref,
                        .from = cli_value(args, "resolve"),
                        .at_end = true,
                        .body = body,
                        .scenario = cli_value(args, "scenario"),
                        .mode =
                            cli_flag(args, "quiet") || cli_flag(args, "json") ? UI_QUIET : UI_LINES,
                        .more = buf_view(&more),
                        .base = m->tip,
                        .merge = m->target};
  int status = forking_run(&w);
  if (status == STATUS_COMPLETE && trees_read(&made, &w.made, &err))
    status = merge_session(args, &made, NULL, &err);
  else if (status == STATUS_COMPLETE)
    status = cli_fail("merge", &err);
  return status;
}

static void merging_free(struct merging *m) {
  char *const texts[] = {m->into, m->target, m->place, m->tip, m->tree, m->commit};
  merging_close(&m->note);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    free(texts[i]);
  json_decref(m->conflicts);
  buf_deinit(&m->last);
}

/* Merges a session's branch. `ref` is its log, for --resolve; if it is NULL, conflicts are not
 * resolved. */
static int merge_session(const struct cli_args *args, const struct trees *t,
                         const struct store_ref *ref, struct err *err) {
  struct merging m = {.t = t,
                      .own = trees_own(t, err),
                      .squash = cli_flag(args, "squash"),
                      .check = cli_value(args, "check")};
  bool json = cli_flag(args, "json");
  int status = STATUS_COMPLETE;
  m.branch = m.own ? m.own->branch : NULL;
  bool ok = m.own != NULL && find_target(&m, cli_value(args, "into"), err) &&
            trees_keep_submodules(t, false, err) && find_work(&m, json ? stderr : stdout, err) &&
            (m.merged || merge_trees(&m, err));
  bool resolve = ok && m.conflicts != NULL && ref != NULL && cli_value(args, "resolve") != NULL;
  if (resolve) /* the note is the next merge's */
    merging_close(&m.note);
  if (resolve)
    status = resolve_merge(args, &m, ref);
  else if (ok && m.conflicts != NULL)
    status = tell_conflicts(&m, json);
  else if (ok && !m.merged)
    ok = make_commit(&m, cli_value(args, "message"), err) &&
         (m.check == NULL || check_merge(&m, err)) && (m.put_back || move_branch(&m, err));
  if (ok && m.conflicts == NULL)
    tell_merged(&m, json);
  if (ok && m.put_back)
    status = STATUS_ABORT;
  merging_free(&m);
  return ok ? status : cli_fail_with(STATUS_USAGE, "merge", err);
}

static int merge_named(const struct cli_args *args, const char *word) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  struct err err = {0};
  if (!resolve_id_session(word, cli_value(args, "logs"), NULL, &ref, &err) ||
      !trees_read(&t, &ref, &err) || !resolve_id_sure(args, &ref, &err))
    return cli_fail_with(STATUS_USAGE, "merge", &err); /* 1 would mean a conflict */
  return merge_session(args, &t, &ref, &err);
}

/* A session that is in conflict or does not pass the check keeps the others out of nothing. */
static int merge_run(const struct cli_args *args) {
  int status = STATUS_COMPLETE;
  cli_errors_as_json(cli_flag(args, "json"));
  for (size_t i = 0; i < args->word_count; i++) {
    int one = merge_named(args, args->words[i]);
    status = status == STATUS_COMPLETE || one == STATUS_USAGE ? one : status;
  }
  return status;
}

const struct cli_command cmd_merge = {COMMAND_MERGE, .run = merge_run};
