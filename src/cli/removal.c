/* Removes sessions with everything that belongs to them. */
#include "cli/removal.h"

#include "cli/cli.h"
#include "cli/resolve_id.h"
#include "cli/trees/session_trees.h"
#include "store/heads.h"
#include "store/ledger.h"
#include "store/summary.h"

#include <stdlib.h>
#include <string.h>

/* Reads a log whose beginning is missing or bad. Returns false without an error if it is gone or
 * about to begin. */
static bool read_unread(struct summary *summary, const struct store_ref *ref, struct err *err) {
  struct store store;
  AUTO(heads_deinit) struct heads heads = {0};
  store_of(ref, &store);
  if (!heads_load(&heads, &store, NULL, err))
    return false;
  *err = (struct err){0};
  return summary_unread(summary, ref, &heads);
}

/* Returns true if the session may be removed, with the entry that its head gets in the ledger. On
 * false with err->code ERR_NONE it is skipped. */
static bool may_remove(const struct session_removal *r, const struct store_ref *ref,
                       struct ledger_entry *entry, struct err *err) {
  AUTO(summary_deinit) struct summary summary = {0};
  int64_t updated;
  *err = (struct err){0};
  if (store_is_owned(ref))
    return !r->old_only && err_set(err, ERR_LOCKED, "a process is running it: %s", ref->name);
  if (!summary_read(&summary, ref, err) && !read_unread(&summary, ref, err))
    return false;
  bool bad = strcmp(summary.status, "bad") == 0;
  bool running = strcmp(summary.status, "running") == 0;
  bool goes_on = running || summary_is_stopped(&summary);
  bool allowed = (!goes_on && !bad) || r->force || (r->stopped && !running && !bad);
  bool young =
      r->old_only && (!record_time_parse(summary.updated, &updated) || updated > r->since_ms);
  entry->seq = summary.seq;
  memcpy(entry->hash, summary.hash, sizeof entry->hash);
  if (!allowed && bad && !r->old_only)
    return err_set(err, ERR_USAGE,
                   "the log of %s is not what was written, see segue verify: give --force to "
                   "remove it",
                   entry->session);
  if (!allowed && !r->old_only)
    return err_set(err, ERR_USAGE, "%s could continue: give %s--force to remove it", entry->session,
                   running ? "" : "--stopped or ");
  return allowed && !young;
}

/* Removes the item's branch if something else holds its tip, too; each holder is one line of the
 * list, the branch included. */
static bool drop_branch(const struct trees *t, const struct tree_item *item) {
  struct err err;
  char_auto_t *tip = trees_tip(t->cwd, item->branch, &err);
  if (tip == NULL)
    return true; /* it is gone */
  char_auto_t *holders = git_line(t->cwd, &err, "for-each-ref", "--contains", tip, "--format=x",
                                  "refs/heads", "refs/remotes", "refs/tags", NULL);
  bool others = holders != NULL && strchr(holders, '\n') != NULL &&
                trees_keep_commits(t, item, true, &err); /* its reflog goes, too */
  if (others)
    (void)git_did(t->cwd, &err, "branch", "-D", "--quiet", "--", item->branch, NULL);
  return others;
}

/* Removes the session's worktrees, unless work would be lost; a branch whose commits are in no
 * other one stays. */
static bool remove_trees(const struct session_removal *r, const struct store_ref *ref,
                         struct err *err) {
  AUTO(trees_deinit) struct trees t = {0};
  struct err ignored;
  if (!trees_read(&t, ref, &ignored))
    return true;
  bool ok = (r->force || trees_may_go(&t, err)) && trees_keep_submodules(&t, r->force, err) &&
            trees_discard(&t, false, err);
  for (size_t i = 0; i < t.count && ok; i++)
    if (!drop_branch(&t, &t.items[i]))
      cli_say(stderr, "segue: its branch stays, because no other branch has its commits: %s\n",
              t.items[i].branch);
  return ok;
}

/* Writes the entry first, then removes the log: a crash in between leaves an extra log, never a
 * missing one. */
bool removal_take(struct session_removal *r, const struct store_ref *ref, struct err *err) {
  struct store store;
  struct ledger_entry entry = {.kind = LEDGER_REMOVED};
  store_of(ref, &store);
  store_ref_id(ref, entry.session);
  if (entry.session[0] == '\0')
    return err_set(err, ERR_USAGE, "%s is not a log in a folder of logs", ref->name);
  if (!may_remove(r, ref, &entry, err))
    return err->code == ERR_NONE;
  if (r->only_told) {
    puts(entry.session);
    r->removed++;
    return true;
  }
  if (!remove_trees(r, ref, err))
    return err->code == ERR_NONE;
  if (strlen(entry.hash) != SHA256_HEX - 1)
    memset(entry.hash, '0', SHA256_HEX - 1);
  if (!ledger_append(&store, &entry, 1, err))
    return false;
  store_blobs_named(ref, r->blobs);
  store_remove(ref);
  if (store_is_there(ref))
    return err_set(err, ERR_IO, "session %s is still there: are you allowed to remove it?",
                   entry.session);
  r->removed++;
  return true;
}

int removal_take_old(struct session_removal *r, const struct store *store, const char *age,
                     const char *command) {
  struct store_id *ids = NULL;
  size_t count = 0;
  struct err err = {0};
  int worst = STATUS_COMPLETE;
  r->old_only = true;
  if (!resolve_id_since(age, &r->since_ms, &err))
    return cli_refuse(command,
                      "--older-than %.60s: write how long ago (90m, 12h, 3d, 2w), or a date", age);
  if (store_exists(store) && !store_list(store, &ids, &count, &err))
    return cli_fail(command, &err);
  for (size_t i = 0; i < count; i++) {
    struct store_ref ref;
    store_ref(store, ids[i].id, &ref);
    if (!removal_take(r, &ref, &err))
      worst = cli_fail(command, &err);
  }
  free(ids);
  return worst;
}

int removal_sweep(struct session_removal *r, const struct store *store, const char *command) {
  struct err err = {0};
  size_t kept;
  if (!store_blobs_sweep(store, r->blobs, &kept, &err))
    return cli_fail(command, &err);
  if (kept > 0)
    fprintf(stderr, "segue %s: %zu blob%s: used recently\n", command, kept,
            kept == 1 ? " stays" : "s stay");
  return STATUS_COMPLETE;
}
