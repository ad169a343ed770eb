/* Opens sessions: reads their logs back, at once or in the pool.
 *
 * DESIGN. Work in the pool touches only the session that is being opened, which nobody else has
 * yet, and the cache of workflows, which has a lock. */
#include "host/host.h"

#include "base/log.h"
#include "core/apply.h"
#include "host/session.h"
#include "host/workflow_cache.h"
#include "os/loop.h"
#include "store/recall.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- prompts of recovered calls, read back from the log --- */

static json_t *read_back(void *ctx, uint64_t seq, struct err *err) {
  return store_read(ctx, seq, err);
}

/* Reads the prompts of calls from before the recovery back into memory: prepare and the provider
 * need them. */
bool session_recall(struct session *s, struct err *err) {
  const struct recall recall = {s->log, read_back, s->host->store};
  if (s->recalled)
    return true;
  s->recalled = true;
  for (struct turn *turn = s->core.turns; turn; turn = turn->next)
    for (struct call *call = turn->calls; call; call = call->next) {
      if (call->state == CALL_DONE)
        continue;
      json_t *record = store_read(s->log, call->prompt_seq, err);
      bool ok = record != NULL &&
                recall_parts(&recall, json_object_get(record, "prompt"), &call->prompt, err);
      json_decref(record);
      if (!ok)
        return err_wrap(err, "the prompt of call %ld cannot be read back", call->id);
    }
  return true;
}

struct folding {
  struct session *s;
  struct core_source source;
};

static bool fold_blob(void *ctx, const char *sha256, struct buf *out, struct err *err) {
  const struct session *s = ctx;
  return store_blob_get(s->host->store, sha256, out, err);
}

static bool fold_record(void *ctx, const json_t *record, struct err *err) {
  struct folding *f = ctx;
  struct core *core = &f->s->core;
  struct workflow_cache *cache = f->s->host->workflows;
  bool first = core->status == SESSION_NEW;
  struct workflow *known = first ? workflow_cache_find(cache, record) : NULL;
  bool ok = core_apply_json(core, record, known, &f->source, err);
  if (ok && first && known == NULL)
    workflow_cache_put(cache, record, core->workflow);
  workflow_unref(known);
  return ok;
}

/* Reads the log into the session, which has none yet. */
static bool open_read(struct session *s, const struct store_ref *ref, struct store_mend *mend,
                      struct err *err) {
  struct folding folding = {s, {.ctx = s, .blob = fold_blob}};
  s->log = store_attach(s->host->store, ref, fold_record, &folding, mend, err);
  return s->log != NULL;
}

static void open_over(struct session *s, const struct store_mend *mend) {
  s->recovered_seq = s->core.seq;
  s->may_have_leftovers = s->core.seq > 1;
  if (mend->notice[0])
    session_trouble(s, mend->notice);
  if (mend->cut_bytes > 0)
    session_head(s, LEDGER_CUT, &s->cut_head);
  if (mend->cut_bytes > 0)
    s->cut =
        json_pack("{sI sI ss ss}", "records", (json_int_t)mend->cut_records, "bytes",
                  (json_int_t)mend->cut_bytes, "sha256", mend->cut_sha256, "by", s->host->cut_by);
  session_set_life(s, s->core.status == SESSION_ENDED ? LIFE_FINISHED : LIFE_RUNNING);
}

struct session *host_open(struct host *host, const struct store_ref *ref,
                          const struct watcher *watcher, void *ctx, struct err *err) {
  struct session *s = session_new(host, watcher, ctx);
  struct store_mend mend = {.cut = host->cut_by != NULL};
  assert(host->store != NULL);
  if (!open_read(s, ref, &mend, err)) {
    session_free(s);
    return NULL;
  }
  open_over(s, &mend);
  return s;
}

/* --- in the pool --- */

struct opening {
  uv_work_t work;
  struct session *s;
  struct store_ref ref;
  struct store_mend mend;
  struct err err;
  bool ok;
  host_opened_fn opened;
};

static void opening_work(uv_work_t *work) {
  struct opening *o = work->data;
  struct err ignored; /* whoever goes on with it asks again, and is told */
  o->ok = open_read(o->s, &o->ref, &o->mend, &o->err);
  if (o->ok && o->s->core.status != SESSION_ENDED && !session_recall(o->s, &ignored))
    o->s->recalled = false;
}

static void opening_over(uv_work_t *work, int status) {
  struct opening *o = work->data;
  struct session *s = o->s;
  void *ctx = s->watcher_ctx;
  assert(status == 0);
  if (o->ok) {
    open_over(s, &o->mend);
  } else {
    session_free(s);
    s = NULL;
  }
  o->opened(ctx, s, &o->err);
  free(o);
}

void host_open_later(struct host *host, const struct store_ref *ref, const struct watcher *watcher,
                     void *ctx, host_opened_fn opened) {
  struct opening *o = xcalloc(1, sizeof *o);
  assert(host->store != NULL);
  o->s = session_new(host, watcher, ctx);
  o->ref = *ref;
  o->opened = opened;
  o->work.data = o;
  loop_work(host->loop, &o->work, opening_work, opening_over);
}
