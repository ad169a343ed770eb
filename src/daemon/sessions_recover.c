/* Takes up sessions that are in the store: those that a start finds unfinished, those that came
 * from the queue of a shared store, those that are asked about. */
#include "base/log.h"
#include "daemon/sessions_internal.h"
#include "os/leftover.h"
#include "store/index.h"

#include <stdlib.h>
#include <string.h>

struct recovery {
  struct sessions *ss;
  struct heads heads;
  bool loaded; /* the ledger, which takes its time: when the index does not know */
};

static const struct heads *recovery_heads(struct recovery *r) {
  struct err err;
  if (!r->loaded && !heads_load(&r->heads, r->ss->env->store, NULL, &err))
    log_warn("%s", err.text);
  r->loaded = true;
  return &r->heads;
}

/* It may wait long for its turn: what outlived the last daemon and its shims must not. */
static void recover_processes(const char *id) {
  size_t n = leftover_end(id);
  if (n > 0)
    log_warn("session %s: %zu process%s of its last run %s ended", id, n, n == 1 ? "" : "es",
             n == 1 ? "was" : "were");
}

static void recover_one(struct recovery *r, const char *id, const struct index_row *row) {
  struct store_ref ref;
  struct brief brief;
  struct err ignored;
  bool sealed = row != NULL && (row->flags & (INDEX_SEALED | INDEX_OVER)) != INDEX_OVER;
  bool asks = row != NULL && (row->flags & INDEX_ASKS);
  if (sealed && (row->flags & INDEX_OVER) && !(row->flags & INDEX_GOES_ON) && !asks)
    return;
  if (!sealed && heads_ended(recovery_heads(r), id))
    return;
  store_ref(r->ss->env->store, id, &ref);
  if (!brief_read(&brief, &ref, &ignored))
    return;
  if (!sealed)
    sealer_add_late(&r->ss->host->sealer, recovery_heads(r), &brief, false);
  deadlines_note(&r->ss->deadlines, id, &brief);
  if (!brief_goes_on(&brief)) {
    brief_deinit(&brief);
    return;
  }
  if (strcmp(brief.status, "running") == 0 && brief.seq > 1 && !store_is_owned(&ref))
    recover_processes(id);
  entry_new(r->ss, id, ENTRY_QUEUED)->brief = brief;
}

long sessions_recover(struct sessions *ss, struct err *err) {
  struct store_id *ids;
  size_t count;
  const struct store *store = ss->env->store;
  struct recovery r = {.ss = ss};
  if (store_is_address(store->where))
    return sessions_share(ss, err) ? 0 : -1;
  if (!store_list(store, &ids, &count, err))
    return -1;
  if (count > 0)
    session_ids_after(ss->host, ids[0].id);
  struct index *x = index_open(store);
  for (size_t i = count; i-- > 0;) /* the oldest first */
    recover_one(&r, ids[i].id, index_row(x, ids[i].id));
  index_close(x);
  free(ids);
  heads_deinit(&r.heads);
  sessions_soon(ss);
  return (long)ss->lists[ENTRY_QUEUED].count;
}

void sessions_take(struct sessions *ss, const char *id) {
  struct daemon_entry *e = sessions_find(ss, id);
  struct store_ref ref;
  struct err err;
  if (e != NULL && e->state != ENTRY_QUEUED && (e->state != ENTRY_OVER || e->session != NULL)) {
    e->claimed = true; /* what was lost with the lease goes first: sessions_free_dead */
    return;
  }
  if (e == NULL) {
    struct brief brief;
    store_ref(ss->env->store, id, &ref);
    if (!brief_read(&brief, &ref, &err)) /* why, is told when it is opened */
      brief = (struct brief){0};
    e = entry_new(ss, id, ENTRY_QUEUED);
    e->brief = brief;
  }
  e->taken = true;
  e->claimed = false;
  e->not_before_ms = 0;
  if (e->state == ENTRY_QUEUED)
    return;
  (void)entry_look(e);
  e->cancelled = false;
  entry_set_trouble(e, NULL);
  if (e->feed != NULL)
    feed_again(e->feed);
  entry_set_state(e, ENTRY_QUEUED);
}

struct daemon_entry *sessions_adopt(struct sessions *ss, const char *id, struct err *err) {
  struct brief brief;
  struct store_ref ref;
  store_ref(ss->env->store, id, &ref);
  if (!brief_read(&brief, &ref, err))
    return NULL;
  struct daemon_entry *e = entry_new(ss, id, ENTRY_OVER);
  e->brief = brief;
  ss->asking = ss->asking || brief.questions != NULL;
  sessions_soon(ss); /* there may be too many now */
  return e;
}
