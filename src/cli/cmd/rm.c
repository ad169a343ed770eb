/* segue rm: removes logs of sessions, and says so in the ledger. */
#include "cli/cli.h"
#include "cli/find.h"
#include "store/brief.h"
#include "store/ledger.h"

#include <stdio.h>
#include <string.h>

static const struct cli_option options[] = {
    {"logs", 'l', "DIR", "where session logs are", false},
    {"force", 'f', NULL, "also sessions that could go on", false},
    {0},
};

/* First the entry, then the log: a crash between leaves a log too many, never one that is
 * missing. */
static bool remove_session(const struct store_ref *ref, bool force, struct err *err) {
  struct brief brief;
  struct store store;
  struct ledger_entry entry = {.kind = LEDGER_REMOVED};
  store_of(ref, &store);
  store_ref_id(ref, entry.session);
  if (entry.session[0] == '\0')
    return err_set(err, ERR_USAGE, "%s is not a log in a folder of logs", ref->name);
  if (store_is_owned(ref))
    return err_set(err, ERR_LOCKED, "a process runs it: %s", ref->name);
  if (!brief_read(&brief, ref, err))
    return false;
  bool over = strcmp(brief.status, "running") != 0 && strcmp(brief.status, "stopped") != 0;
  entry.seq = brief.seq;
  memcpy(entry.hash, brief.hash, sizeof entry.hash);
  brief_deinit(&brief);
  if (!over && !force)
    return err_set(err, ERR_USAGE, "%s can go on: give --force to remove it", entry.session);
  if (strlen(entry.hash) != SHA256_HEX - 1)
    memset(entry.hash, '0', SHA256_HEX - 1);
  if (!ledger_append(&store, &entry, 1, err))
    return false;
  store_remove(ref);
  return true;
}

static int rm_run(int argc, char **argv) {
  struct cli_args args;
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_rm, argc, argv, 1, CLI_WORDS, &args, &status))
    return status;
  for (size_t i = 0; i < args.word_count; i++) {
    struct store_ref ref;
    struct err err = {0};
    if (find_session(args.words[i], cli_value(&args, "logs"), NULL, &ref, &err) &&
        remove_session(&ref, cli_flag(&args, "force"), &err))
      continue;
    worst = cli_fail("rm", &err);
  }
  return worst;
}

const struct cli_command cmd_rm = {
    .name = "rm",
    .arguments = "ID... [options]",
    .summary = "remove logs of sessions, and say so in the ledger",
    .help = "Blobs stay: other sessions may name them. A log that was removed in another way is\n"
            "missing when segue verify looks at its folder.",
    .options = options,
    .run = rm_run,
    .minor = true,
};
