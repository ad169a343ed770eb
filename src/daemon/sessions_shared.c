/* The queue of a shared store: what this daemon takes from it, and what the store tells of those
 * that it has.
 *
 * DESIGN. With files all that is unfinished is this daemon's; here the store has the queue, and a
 * session belongs to whoever claimed it, until it is let go of or its worker's lease is over. What
 * waits in memory is only what was just claimed or submitted here. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/sessions_internal.h"
#include "os/loop.h"
#include "store/worker.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct sessions_claim {
  uv_work_t work;
  bool asks, answered;
  bool told; /* there may be something; also while it is asked */
  bool more; /* the last answer was not its end */
  size_t places, count;
  struct store_id ids[LIMIT_START_COUNT];
};

static void lose_list(struct sessions *ss, enum entry_state state, const char *why) {
  LIST_EACH(struct daemon_entry, e, in_state, &ss->lists[state])
    if (e->session != NULL)
      host_lost(e->session, why);
}

/* Others may go on with all that was held: nothing more is done for it here. */
static void lose_all(struct sessions *ss) {
  static const char why[] = "the lease of this worker ran out: others go on with its sessions";
  log_warn("%s", why);
  lose_list(ss, ENTRY_RUNNING, why);
  lose_list(ss, ENTRY_QUEUED, why);
  lose_list(ss, ENTRY_WRITING, why);
  lose_list(ss, ENTRY_BROKEN, why);
}

static void shared_on_asked(struct sessions *ss, const char *id, const char *what) {
  struct err err = {0};
  struct daemon_entry *e = sessions_find(ss, id);
  if (e == NULL || strcmp(what, "cancel") != 0 || e->cancelled || !entry_is_live(e))
    return;
  if (!sessions_cancel(ss, e, &err))
    log_warn("session %s cannot be cancelled: %s", id, err.text);
}

static void sessions_on_news(void *ctx, enum worker_news news, const char *id, const char *what) {
  struct sessions *ss = ctx;
  switch (news) {
  case WORKER_READY:
    ss->claim->told = true;
    sessions_soon(ss);
    break;
  case WORKER_ASKED:
    shared_on_asked(ss, id, what);
    break;
  case WORKER_SEATS:
    gate_seats(&ss->host->gate);
    break;
  case WORKER_LOST:
    lose_all(ss);
    break;
  case WORKER_OUTDATED:
    log_warn("the tables of the store have version %s now, which this program does not know: it "
             "lets what runs come to rest and ends. Start the newer segue",
             what);
    (void)uv_kill(uv_os_getpid(), SIGTERM); /* as if a person had said so */
    break;
  }
}

bool sessions_share(struct sessions *ss, struct err *err) {
  ss->shared = true;
  ss->claim = xcalloc(1, sizeof *ss->claim);
  ss->claim->work.data = ss;
  ss->claim->told = true;
  return worker_watch(ss->env->store, ss->host->loop, sessions_on_news, ss, err);
}

void sessions_unshare(struct sessions *ss) {
  if (ss->shared)
    worker_unwatch(ss->env->store);
  free(ss->claim); /* nothing is asked: sessions_busy said so */
  ss->claim = NULL;
}

/* --- the queue --- */

static void claim_work(uv_work_t *work) {
  const struct sessions *ss = work->data;
  struct sessions_claim *claim = ss->claim;
  struct err err = {0};
  claim->answered = worker_claim(ss->env->store, claim->places, claim->ids, &claim->count, &err);
}

static void claim_over(uv_work_t *work, int status) {
  struct sessions *ss = work->data;
  struct sessions_claim *claim = ss->claim;
  assert(status == 0);
  claim->asks = false;
  if (!claim->answered || claim->count < claim->places)
    claim->more = false; /* its end; the store tells when there is more */
  for (size_t i = 0; i < claim->count && !ss->draining;
       i++) /* else they are let go of at the end */
    sessions_take(ss, claim->ids[i].id);
  if (claim->count > 0 || claim->told)
    sessions_soon(ss);
}

void sessions_claim(struct sessions *ss) {
  struct sessions_claim *claim = ss->claim;
  size_t busy = sessions_running(ss) + sessions_queued(ss);
  size_t places = busy < ss->max_running ? ss->max_running - busy : 0;
  claim->more = claim->more || claim->told;
  if (ss->draining || claim->asks || !(claim->told || (claim->more && places > 0)))
    return;
  claim->told = false; /* with no place free only what is settled */
  claim->places = places < LIMIT_START_COUNT ? places : LIMIT_START_COUNT;
  claim->asks = true;
  loop_work(ss->host->loop, &claim->work, claim_work, claim_over);
}

bool sessions_claims(const struct sessions *ss) {
  return ss->claim != NULL && ss->claim->asks;
}
