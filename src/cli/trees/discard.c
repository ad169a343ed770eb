/* segue discard: removes a session's worktrees and branches. */
#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"

#include <string.h>

static bool may_discard(const struct trees *t, bool force, struct err *err) {
  bool goes_on = str_among(str_from(t->status), "running stopped needs_input");
  if (t->count == 0)
    return trees_own(t, err) != NULL;
  if (t->owned)
    return err_set(err, ERR_LOCKED, "session %s is running: segue cancel it first", t->session);
  if (goes_on && !force)
    return err_set(err, ERR_USAGE, "session %s could continue: give --force to discard its work",
                   t->session);
  return force || trees_may_go(t, err);
}

/* Asks on the terminal; without one --yes must have been given. */
static bool discard_sure(const char *question, bool yes, struct err *err) {
  enum cli_said said = yes ? CLI_SAID_YES : cli_asks(question);
  return said == CLI_SAID_YES ||
         err_set(err, ERR_USAGE,
                 said == CLI_SAID_NO ? "nothing was done" : "there is nobody to ask: give --yes");
}

static int discard_run(const struct cli_args *args) {
  struct store_ref ref;
  AUTO(trees_deinit) struct trees t = {0};
  struct err err = {0};
  char question[512];
  bool ok = resolve_id_session(args->words[0], cli_value(args, "logs"), NULL, &ref, &err) &&
            trees_read(&t, &ref, &err) && resolve_id_sure(args, &ref, &err) &&
            may_discard(&t, cli_flag(args, "force"), &err);
  if (ok) {
    print_into(question, sizeof question,
               "remove %zu worktree%s of session %s and %s branch%s, with all commits there?",
               t.count, PLURAL(t.count), t.session, t.count == 1 ? "its" : "their",
               t.count == 1 ? "" : "es");
    ok = discard_sure(question, cli_flag(args, "yes"), &err) &&
         trees_keep_submodules(&t, cli_flag(args, "force"), &err) && trees_discard(&t, true, &err);
  }
  return cli_done("discard", ok, &err);
}

const struct cli_command cmd_discard = {COMMAND_DISCARD, .run = discard_run};
