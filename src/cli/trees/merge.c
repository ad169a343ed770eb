/* segue merge: brings a session's branch into another one, or leaves everything as it was. */
#include "cli/cli.h"
#include "cli/forking.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "format/json_object.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"squash", 0, NULL, "merge as one commit, without the branch's own history", false},
    {"into", 0, "BRANCH", "what to merge into (default: what is checked out there)", false},
    {"resolve", 0, "MOVEMENT",
     "on a conflict, continue the workflow with this movement to resolve it", false},
    {"scenario", 's', "FILE", "with --resolve: replies of the script provider", false},
    {"quiet", 'q', NULL, "with --resolve: print nothing but errors", false},
    {"message", 'm', "TEXT", "the commit's message", false},
    {"yes", 'y', NULL, "do not ask whether another folder's session is meant", false},
    {"json", 0, NULL, "print a JSON object: the commit, or the files in conflict", false},
    {"logs", 'l', "DIR", "where session logs are", false},
    {0},
};

struct merging {
  const struct trees *t;
  const char *branch;
  char *into, *target; /* the branch, and the commit it is at */
  char ref[512];       /* its full name */
  char *place;         /* where it is checked out, or "" */
  char *tip, *tree, *commit;
  json_t *conflicts; /* files */
};

static bool find_target(struct merging *m, const char *into, struct err *err) {
  m->into = into ? xstrdup(into) : NULL;
  if (into == NULL)
    m->into = trees_line(m->t->cwd, err, "symbolic-ref", "--short", "--quiet", "HEAD", NULL);
  if (m->into == NULL)
    return err_set(err, ERR_USAGE, "no branch is checked out in %.300s: give --into BRANCH",
                   m->t->cwd);
  m->target = trees_tip(m->t->cwd, m->into, err);
  if (m->target == NULL)
    return err_set(err, ERR_NOT_FOUND, "there is no branch %.200s", m->into);
  if (!trees_is_settled(m->t, m->target, err))
    return false;
  m->tip = trees_tip(m->t->cwd, m->branch, err);
  if (m->tip == NULL)
    return err_set(err, ERR_NOT_FOUND, "its branch %.200s is gone", m->branch);
  print_into(m->ref, sizeof m->ref, "refs/heads/%.450s", m->into);
  m->place = trees_line(m->t->cwd, err, "for-each-ref", "--format=%(worktreepath)", m->ref, NULL);
  return m->place != NULL && (m->place[0] == '\0' || trees_is_clean(m->place, err));
}

/* Writes the merged tree without touching any folder, or lists the files in conflict. */
static bool merge_trees(struct merging *m, struct err *err) {
  AUTO(git_answer_deinit) struct git_answer answer = {0};
  if (!trees_git(m->t->cwd, &answer, err, "merge-tree", "--write-tree", "--name-only", "-z",
                 "--no-messages", m->target, m->tip, NULL))
    return false;
  bool ok = answer.exit <= 1;
  size_t at = strnlen(buf_c(&answer.out), answer.out.n);
  if (ok)
    m->tree = xstrndup(buf_c(&answer.out), at);
  if (answer.exit == 1) {
    m->conflicts = json_array();
    for (at++; at < answer.out.n && answer.out.p[at] != '\0';) {
      json_array_append_new(m->conflicts, json_io_string(answer.out.p + at));
      at += strnlen(answer.out.p + at, answer.out.n - at) + 1;
    }
  } else if (!ok) {
    (void)trees_complain("git merge-tree", &answer, err);
  }
  return ok;
}

static bool make_commit(struct merging *m, bool squash, const char *message, struct err *err) {
  char made[640];
  struct git_ask ask = {.folder = m->t->cwd,
                        .words = {"commit-tree", m->tree, "-p", m->target, "-p", m->tip, NULL}};
  if (squash)
    ask.words[4] = NULL;
  trees_sign_as_nobody(&ask);
  print_into(made, sizeof made, "%s%.200s\n\nSegue-Session: %s\n",
             squash ? "" : "Merge of a session: ", m->t->task[0] ? m->t->task : m->branch,
             m->t->session);
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

static bool is_in(const struct merging *m, const char *commit, const char *target) {
  struct err err;
  return trees_did(m->t->cwd, &err, "merge-base", "--is-ancestor", commit, target, NULL);
}

/* Moves the branch in a single step of git: it stays where it was or ends at the merge. */
static bool move_branch(const struct merging *m, struct err *err) {
  bool ok;
  if (m->place[0] != '\0')
    ok = trees_did(m->place, err, "merge", "--ff-only", "--quiet", "--no-verify", m->commit, NULL);
  else
    ok = trees_did(m->t->cwd, err, "update-ref", "-m", "segue merge", m->ref, m->commit, m->target,
                   NULL);
  return ok &&
         (is_in(m, m->commit, m->ref) ||
          err_set(err, ERR_IO, "%.200s is not at the merge: it was moved meanwhile", m->into));
}

static int tell_conflicts(const struct merging *m, bool json) {
  const json_t *file;
  size_t i;
  if (json) {
    json_io_put(json_pack("{ss ss sO}", "session", m->t->session, "into", m->into, "conflicts",
                          m->conflicts));
    return STATUS_FAILED;
  }
  cli_say(stderr, "segue merge: nothing was changed; these files are in conflict with %s:\n",
          m->into);
  json_array_foreach(m->conflicts, i, file)
    cli_say(stderr, "  %s\n", json_string_value(file));
  return STATUS_FAILED;
}

static void tell_merged(const struct merging *m, bool json) {
  if (json) {
    json_io_put(json_pack("{ss ss ss ss}", "session", m->t->session, "branch", m->branch, "into",
                          m->into, "commit", m->commit ? m->commit : m->target));
    return;
  }
  if (m->commit != NULL)
    cli_say(stdout, "%s is in %s: %.10s\n", m->branch, m->into, m->commit);
  else
    cli_say(stdout, "%s is already merged: %s\n", m->branch, m->into);
}

static int merge_session(const struct cli_args *args, const struct trees *t,
                         const struct store_ref *ref, struct err *err);

static void put_conflict_task(const struct merging *m, struct buf *out) {
  const json_t *file;
  size_t i;
  buf_puts(out, "The work on this task, on branch ");
  buf_safe(out, str_from(m->branch), false);
  buf_puts(out, ", is being merged with ");
  buf_safe(out, str_from(m->into), false);
  buf_puts(out, " in the working directory, and these files are in conflict:\n\n");
  json_array_foreach(m->conflicts, i, file) {
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

/* Merges a session's branch. `ref` is its log, for --resolve; if it is NULL, conflicts are not
 * resolved. */
static int merge_session(const struct cli_args *args, const struct trees *t,
                         const struct store_ref *ref, struct err *err) {
  struct merging m = {.t = t};
  bool json = cli_flag(args, "json");
  const struct tree_item *own = trees_own(t, err);
  int status = STATUS_COMPLETE;
  m.branch = own ? own->branch : NULL;
  bool ok = own != NULL && find_target(&m, cli_value(args, "into"), err) &&
            trees_keep_submodules(t, false, err);
  bool merged = ok && is_in(&m, m.tip, m.target);
  ok = ok && (merged || merge_trees(&m, err));
  if (ok && m.conflicts != NULL && ref != NULL && cli_value(args, "resolve") != NULL)
    status = resolve_merge(args, &m, ref);
  else if (ok && m.conflicts != NULL)
    status = tell_conflicts(&m, json);
  else if (ok && !merged)
    ok = make_commit(&m, cli_flag(args, "squash"), cli_value(args, "message"), err) &&
         move_branch(&m, err);
  if (ok && m.conflicts == NULL)
    tell_merged(&m, json);
  char *const texts[] = {m.into, m.target, m.place, m.tip, m.tree, m.commit};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    free(texts[i]);
  json_decref(m.conflicts);
  return ok ? status : cli_fail("merge", err);
}

static int merge_run(const struct cli_args *args) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  struct err err = {0};
  cli_errors_as_json(cli_flag(args, "json"));
  if (!resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err) ||
      !trees_read(&t, &ref, &err) || !resolve_id_sure(args, &ref, &err))
    return cli_fail("merge", &err);
  return merge_session(args, &t, &ref, &err);
}

const struct cli_command cmd_merge = {
    .name = "merge",
    .arguments = "ID|last [--squash] [--into BRANCH]",
    .words = {1, 1},
    .summary = "merge a session's branch into another one",
    .help =
        "The merge is worked out outside of any working tree first. In a conflict nothing is "
        "changed and the files are named (exit 1); with --resolve, a new session continues "
        "with MOVEMENT in a worktree where both sides are merged, and its branch is merged "
        "once it completes. If BRANCH is checked out somewhere, that folder is updated; it "
        "must have no uncommitted changes. If the branch lacks commits of the session's worktree "
        "(its agent left or renamed the branch), nothing is merged either: both are named, with "
        "the command that mends it (exit 2). The session's branch stays; segue discard ID "
        "removes it together with its worktree.",
    .options = options,
    .run = merge_run,
};
