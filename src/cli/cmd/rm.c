/* segue rm: removes logs of sessions, and says so in the ledger. */
#include "cli/cli.h"
#include "cli/removal.h"
#include "cli/resolve_id.h"

static const struct cli_option options[] = {
    CLI_STORE_OPTIONS("where session logs are"),
    {"older-than", 0, "AGE", "remove all that ended longer ago than this: 30d, 12h", false},
    {"stopped", 0, NULL, "also remove sessions that stopped and could continue", false},
    {"force", 'f', NULL,
     "also remove sessions that could continue, and work that nothing else holds", false},
    {0},
};

static int remove_old(struct session_removal *r, const struct cli_args *args) {
  struct store store;
  struct err err = {0};
  if (!resolve_id_store(cli_value(args, "logs"), &store, &err))
    return cli_fail("rm", &err);
  int worst = removal_take_old(r, &store, cli_value(args, "older-than"), "rm");
  int swept = removal_sweep(r, &store, "rm");
  printf("%ld removed\n", r->removed);
  return swept == STATUS_COMPLETE ? worst : swept;
}

static int remove_named(struct session_removal *r, const char *word, const char *logs) {
  struct store_ref ref;
  struct store store;
  struct err err = {0};
  bool ok = resolve_id_session(word, logs, NULL, &ref, &err) && removal_take(r, &ref, &err);
  if (!ok)
    return cli_fail("rm", &err);
  store_of(&ref, &store);
  int status = removal_sweep(r, &store, "rm");
  json_object_clear(r->blobs);
  return status;
}

static int rm_run(const struct cli_args *args) {
  int worst = STATUS_COMPLETE;
  bool old = cli_value(args, "older-than") != NULL;
  struct session_removal r = {
      .force = cli_flag(args, "force"), .stopped = cli_flag(args, "stopped"), .old_only = old};
  if (old == (args->word_count > 0))
    return cli_refuse("rm", "name sessions, or give --older-than AGE");
  r.blobs = json_object();
  if (old)
    worst = remove_old(&r, args);
  for (size_t i = 0; i < args->word_count; i++) {
    int status_of = remove_named(&r, args->words[i], cli_value(args, "logs"));
    worst = status_of == STATUS_COMPLETE ? worst : status_of;
  }
  json_decref(r.blobs);
  return worst;
}

const struct cli_command cmd_rm = {
    .name = "rm",
    .arguments = "ID... | --older-than AGE [options]",
    .words = {0, CLI_WORDS},
    .summary = "remove sessions: logs, worktrees and branches; the ledger keeps a note",
    .help = "Never removes a running session, nor, without --force, a worktree with uncommitted "
            "work. A branch with commits that are in no other branch is kept, and named; other "
            "commits get a ref (segue worktrees --refs). --older-than skips sessions that could "
            "continue; --stopped "
            "includes those that stopped. Blobs that no other session refers to are removed too. "
            "If a log is deleted in any other way, segue verify reports it as missing.",
    .options = options,
    .run = rm_run,
};
