/* segue rm: removes logs of sessions, and says so in the ledger. */
#include "cli/cli.h"
#include "cli/removal.h"
#include "cli/resolve_id.h"

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

const struct cli_command cmd_rm = {COMMAND_RM, .run = rm_run};
