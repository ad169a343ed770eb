/* segue heads: prints the last record of each session that stopped or ended, to be kept
 * elsewhere. */
#include "store/heads.h"
#include "cli/cli.h"
#include "cli/json_io.h"
#include "cli/resolve_id.h"

#include <string.h>

static int heads_run(const struct cli_args *args) {
  struct store store;
  AUTO(heads_deinit) struct heads heads = {0};
  struct err err = {0};
  if (!resolve_id_store(cli_value(args, "logs"), &store, &err) ||
      !heads_load(&heads, &store, NULL, &err))
    return cli_fail("heads", &err);
  if (heads.end.damaged) {
    err_set(&err, ERR_CORRUPT, "the ledger is damaged at entry %llu: segue verify %s",
            (unsigned long long)heads.end.entries + 1, store.where);
    return cli_fail("heads", &err);
  }
  for (size_t i = 0; i < heads.count; i++) {
    const struct ledger_entry *entry = &heads.items[i];
    bool last = i + 1 == heads.count || strcmp(entry[1].session, entry->session) != 0;
    if (last && entry->kind != LEDGER_REMOVED)
      json_io_put(json_pack("{ss sI ss}", "session", entry->session, "seq", (json_int_t)entry->seq,
                            "hash", entry->hash));
  }
  json_io_put(
      json_pack("{sI ss}", "ledger", (json_int_t)heads.end.entries, "hash", heads.end.hash));
  return STATUS_COMPLETE;
}

const struct cli_command cmd_heads = {COMMAND_HEADS, .run = heads_run};
