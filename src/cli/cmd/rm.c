/* segue rm: removes logs of sessions, and says so in the ledger. */
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/trees/trees.h"
#include "host/paths.h"
#include "store/brief.h"
#include "store/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
    {"logs", 'l', "DIR", "where session logs are", false},
    {"store", 0, "URL", "a shared store instead: postgres://HOST/DATABASE", false},
    {"older-than", 0, "AGE", "all that ended longer ago than this: 30d, 12h", false},
    {"stopped", 0, NULL, "also sessions that stopped and could go on", false},
    {"force", 'f', NULL, "also sessions that could go on, and work that is not committed", false},
    {0},
};

struct session_removal {
  bool force, stopped;
  bool old_only;    /* what may not be removed is passed over */
  int64_t since_ms; /* what changed later stays */
  long removed;
  json_t *blobs; /* of removed logs: a set of names */
};

/* May it go? Its head goes to the ledger then. False with err->code ERR_NONE: it is passed over. */
static bool may_remove(const struct session_removal *r, const struct store_ref *ref,
                       struct ledger_entry *entry, struct err *err) {
  struct brief brief;
  int64_t updated;
  *err = (struct err){0};
  if (store_is_owned(ref))
    return !r->old_only && err_set(err, ERR_LOCKED, "a process runs it: %s", ref->name);
  if (!brief_read(&brief, ref, err))
    return false;
  bool running = strcmp(brief.status, "running") == 0;
  bool goes_on = running || brief_is_stopped(&brief);
  bool allowed = !goes_on || r->force || (r->stopped && !running);
  bool young =
      r->old_only && (!record_time_parse(brief.updated, &updated) || updated > r->since_ms);
  entry->seq = brief.seq;
  memcpy(entry->hash, brief.hash, sizeof entry->hash);
  brief_deinit(&brief);
  if (!allowed && !r->old_only)
    return err_set(err, ERR_USAGE, "%s can go on: give %s--force to remove it", entry->session,
                   running ? "" : "--stopped or ");
  return allowed && !young;
}

/* Its worktrees go too, unless there is work that would be lost; a branch whose commits are in no
 * other one stays. */
static bool remove_trees(const struct session_removal *r, const struct store_ref *ref,
                         struct err *err) {
  struct trees t;
  struct err ignored;
  if (!trees_read(&t, ref, &ignored))
    return true;
  bool ok = true;
  for (size_t i = 0; i < t.count && !r->force; i++)
    if (trees_is_dirty(t.items[i].path))
      ok = err_set(err, ERR_USAGE,
                   "%.300s has work that is not committed: commit it, or give "
                   "--force",
                   t.items[i].path);
  ok = ok && trees_discard(&t, false, err);
  for (size_t i = 0; i < t.count && ok; i++)
    if (!trees_drop_branch(&t, &t.items[i])) {
      fputs("segue rm: its branch stays, no other one has its commits: ", stderr);
      cli_put_safe(stderr, t.items[i].branch);
      fputc('\n', stderr);
    }
  trees_deinit(&t);
  return ok;
}

/* First the entry, then the log: a crash between leaves a log too many, never one that is
 * missing. */
static bool remove_session(struct session_removal *r, const struct store_ref *ref,
                           struct err *err) {
  struct store store;
  struct ledger_entry entry = {.kind = LEDGER_REMOVED};
  store_of(ref, &store);
  store_ref_id(ref, entry.session);
  if (entry.session[0] == '\0')
    return err_set(err, ERR_USAGE, "%s is not a log in a folder of logs", ref->name);
  if (!may_remove(r, ref, &entry, err) || !remove_trees(r, ref, err))
    return err->code == ERR_NONE;
  if (strlen(entry.hash) != SHA256_HEX - 1)
    memset(entry.hash, '0', SHA256_HEX - 1);
  if (!ledger_append(&store, &entry, 1, err))
    return false;
  store_blobs_named(ref, r->blobs);
  store_remove(ref);
  r->removed++;
  return true;
}

/* Those of removed logs that no other one names. */
static int sweep_blobs(struct session_removal *r, const struct store *store) {
  struct err err = {0};
  size_t kept;
  if (r->removed == 0)
    return STATUS_COMPLETE;
  if (!store_blobs_sweep(store, r->blobs, &kept, &err))
    return cli_fail("rm", &err);
  if (kept > 0)
    fprintf(stderr, "segue rm: %zu blob%s: used a moment ago\n", kept,
            kept == 1 ? " stays" : "s stay");
  return STATUS_COMPLETE;
}

static int remove_old(struct session_removal *r, const struct cli_args *args) {
  char where[PATHS_BYTES];
  struct store store;
  struct store_id *ids = NULL;
  size_t count = 0;
  struct err err = {0};
  int worst = STATUS_COMPLETE;
  if (!find_since(cli_value(args, "older-than"), &r->since_ms, &err) ||
      !paths_logs(cli_value(args, "logs"), where, &err))
    return cli_fail("rm", &err);
  store_at(&store, where);
  if (store_exists(&store) && !store_list(&store, &ids, &count, &err))
    return cli_fail("rm", &err);
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(&store, ids[i].id, &ref);
    if (!remove_session(r, &ref, &err))
      worst = cli_fail("rm", &err);
  }
  free(ids);
  int swept = sweep_blobs(r, &store);
  printf("%ld removed\n", r->removed);
  return swept == STATUS_COMPLETE ? worst : swept;
}

static int remove_named(struct session_removal *r, const char *word, const char *logs) {
  struct store_ref ref;
  struct store store;
  struct err err = {0};
  bool ok = find_session(word, logs, NULL, &ref, &err) && remove_session(r, &ref, &err);
  if (!ok)
    return cli_fail("rm", &err);
  store_of(&ref, &store);
  int status = sweep_blobs(r, &store);
  json_object_clear(r->blobs);
  return status;
}

static int rm_run(int argc, char **argv) {
  struct cli_args args;
  struct err err = {0};
  int status, worst = STATUS_COMPLETE;
  if (!cli_parse(&cmd_rm, argc, argv, 0, CLI_WORDS, &args, &status))
    return status;
  bool old = cli_value(&args, "older-than") != NULL;
  struct session_removal r = {
      .force = cli_flag(&args, "force"), .stopped = cli_flag(&args, "stopped"), .old_only = old};
  if (old == (args.word_count > 0)) {
    (void)err_set(&err, ERR_USAGE, "name sessions, or say --older-than AGE");
    return cli_fail("rm", &err);
  }
  r.blobs = json_object();
  if (old)
    worst = remove_old(&r, &args);
  for (size_t i = 0; i < args.word_count; i++) {
    int status_of = remove_named(&r, args.words[i], cli_value(&args, "logs"));
    worst = status_of == STATUS_COMPLETE ? worst : status_of;
  }
  json_decref(r.blobs);
  return worst;
}

const struct cli_command cmd_rm = {
    .name = "rm",
    .arguments = "ID... | --older-than AGE [options]",
    .summary = "remove sessions: log, worktrees, branches, with a word in the ledger",
    .help =
        "Never one that runs. A branch whose commits are in no other one stays, and is named;\n"
        "--older-than passes over what could go on, --stopped takes what stopped too. Blobs go\n"
        "that no other session names. A log that was removed in another way is missing when\n"
        "segue verify looks at its folder.",
    .options = options,
    .run = rm_run,
};
