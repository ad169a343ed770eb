/* The queue of a shared store: what this daemon takes from it, and what the store tells of those
 * that it has.
 *
 * DESIGN. With files all that is unfinished is this daemon's; here the store has the queue, and a
 * session belongs to whoever claimed it, until it is let go of or its worker's lease is over. What
 * waits in memory is only what was just claimed or submitted here. */
#include "base/limits.h"
#include "base/log.h"
#include "daemon/sessions_internal.h"
#include "store/worker.h"

#include <string.h>

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
  }
}

bool sessions_share(struct sessions *ss, struct err *err) {
  ss->shared = true;
  return worker_watch(ss->env->store, ss->host->loop, sessions_on_news, ss, err);
}

void sessions_unshare(struct sessions *ss) {
  if (ss->shared)
    worker_unwatch(ss->env->store);
}

void sessions_claim(struct sessions *ss) {
  struct store_id ids[LIMIT_START_COUNT];
  struct err err = {0};
  size_t busy = sessions_running(ss) + sessions_queued(ss), count;
  if (ss->draining)
    return;
  size_t places = busy < ss->max_running ? ss->max_running - busy : 0; /* 0: only what is settled */
  if (!worker_claim(ss->env->store, places < LIMIT_START_COUNT ? places : LIMIT_START_COUNT, ids,
                    &count, &err))
    return; /* the store does not answer: the next look is soon */
  for (size_t i = 0; i < count; i++)
    sessions_take(ss, ids[i].id);
}
