/* Takes sessions from the queue of a shared store and keeps them until they are attached.
 *
 * DESIGN. A claim returns the row and, if it is small, the log, so that attaching needs no further
 * request. Both stay valid as long as the lease does, since nobody else can write the log. If an
 * answer is lost, this worker holds sessions that it does not know of, and asks the store for them
 * later. */
#include "store/postgres/shared.h"

#include "base/fault.h"
#include "base/log.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIM_KEPT_MS = 30000 };

static void claim_free(struct base_claim *claim) {
  buf_deinit(&claim->log);
  free(claim);
}

static struct base_claim *claim_find(const struct pg_base *pg, const char *id) {
  LIST_EACH(struct base_claim, claim, in_base, &pg->claimed)
    if (strcmp(claim->id, id) == 0)
      return claim;
  return NULL;
}

/* --- attached sessions --- */

struct base_claim *shared_take_claim(struct pg_base *pg, const char *id) {
  (void)pthread_mutex_lock(&pg->lock);
  struct base_claim *claim = claim_find(pg, id);
  bool over = claim != NULL && claim->term != base_term(pg);
  if (over)
    list_remove(&pg->claimed, &claim->in_base);
  else if (claim != NULL)
    claim->attached = true;
  (void)pthread_mutex_unlock(&pg->lock);
  if (!over)
    return claim;
  claim_free(claim);
  return NULL;
}

void shared_end_claim(struct pg_base *pg, struct base_claim *claim) {
  if (claim == NULL)
    return;
  (void)pthread_mutex_lock(&pg->lock);
  list_remove(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  claim_free(claim);
}

bool shared_claimed_log(struct pg_base *pg, const char *id, struct buf *out) {
  struct err err;
  (void)pthread_mutex_lock(&pg->lock);
  const struct base_claim *claim = claim_find(pg, id);
  bool there = claim != NULL && claim->log.n > 0 && base_trusts(pg, claim->term, &err);
  if (there)
    buf_str(out, buf_view(&claim->log));
  (void)pthread_mutex_unlock(&pg->lock);
  return there;
}

/* --- sessions that nobody attached or knows of --- */

static void claim_back(struct pg_base *pg, const char *id, uint64_t fence) {
  struct base_leave leave = {.fence = fence};
  (void)snprintf(leave.id, sizeof leave.id, "%.36s", id);
  (void)shared_release(pg, &leave);
}

/* Gives the oldest one back if nobody attached it in time. */
static void claims_give_back(struct pg_base *pg) {
  uint64_t now = clock_boot_ms();
  struct base_claim *old = NULL;
  (void)pthread_mutex_lock(&pg->lock);
  if (pg->claimed.first != NULL)
    old = LIST_ITEM(pg->claimed.first, struct base_claim, in_base);
  if (old != NULL && (old->attached || old->at_ms + CLAIM_KEPT_MS >= now))
    old = NULL;
  if (old != NULL)
    list_remove(&pg->claimed, &old->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
  if (old == NULL)
    return;
  claim_back(pg, old->id, old->held.fence);
  claim_free(old);
}

static struct base_claim *claim_new(const char *id, uint64_t fence, unsigned term) {
  struct base_claim *claim = xcalloc(1, sizeof *claim);
  (void)snprintf(claim->id, sizeof claim->id, "%.36s", id);
  claim->held.fence = fence;
  claim->term = term;
  claim->at_ms = clock_boot_ms();
  return claim;
}

static void claim_keep(struct pg_base *pg, struct base_claim *claim, struct store_id *out) {
  memcpy(out->id, claim->id, STORE_ID_BYTES);
  (void)pthread_mutex_lock(&pg->lock);
  list_push_back(&pg->claimed, &claim->in_base);
  (void)pthread_mutex_unlock(&pg->lock);
}

static bool claim_known(struct pg_base *pg, const char *id) {
  bool known = shared_open_count(pg, id) > 0;
  (void)pthread_mutex_lock(&pg->lock);
  known = known || claim_find(pg, id) != NULL;
  LIST_EACH(struct base_leave, leave, in_base, &pg->leaving)
    known = known || strcmp(leave->id, id) == 0;
  (void)pthread_mutex_unlock(&pg->lock);
  return known;
}

/* Takes up sessions whose answer was lost, or gives them back if there is no room for them: while
 * this worker lives, nobody else can take them. */
static void claims_settle(struct pg_base *pg, size_t max, struct store_id *ids, size_t *count) {
  enum conn_failure failure;
  struct err err;
  const struct conn_arg args[] = {arg_text(pg->keeper.worker)};
  unsigned term = base_term(pg);
  if (!atomic_exchange(&pg->unsure, false))
    return;
  PGresult *answer = base_ask(pg,
                              "SELECT id, fence FROM segue.session WHERE state = 'held' AND "
                              "owner = $1 AND seq > 0 ORDER BY place",
                              args, 1, false, &failure, &err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n; i++) {
    const char *id = conn_text(answer, i, 0);
    uint64_t fence = conn_number(answer, i, 1);
    if (claim_known(pg, id))
      continue;
    if (*count < max)
      claim_keep(pg, claim_new(id, fence, term), &ids[(*count)++]);
    else
      claim_back(pg, id, fence);
  }
  conn_free(answer);
}

/* --- the queue --- */

/* All columns but the last are text: the answer is binary only because of the log. */
static const char claim_sql[] =
    "SELECT o_id::text, o_fence::text, o_seq::text, o_bytes::text, o_hash, o_deaths::text, "
    "o_died, o_asked, o_log FROM segue.claim($1, $2, $3, $4)";

static struct base_claim *claim_read(const PGresult *answer, int row, unsigned term) {
  struct base_claim *claim =
      claim_new(conn_text(answer, row, 0), conn_number(answer, row, 1), term);
  struct base_held *held = &claim->held;
  struct str log = conn_bytes(answer, row, 8);
  held->seq = conn_number(answer, row, 2);
  held->bytes = conn_number(answer, row, 3);
  held->deaths = (unsigned)conn_number(answer, row, 5);
  (void)snprintf(held->hash, sizeof held->hash, "%s", conn_text(answer, row, 4));
  (void)snprintf(held->died, sizeof held->died, "%s", conn_text(answer, row, 6));
  (void)snprintf(held->asked, sizeof held->asked, "%s", conn_text(answer, row, 7));
  if (log.n == held->bytes) /* otherwise it is older than the row */
    buf_str(&claim->log, log);
  return claim;
}

/* Asks once only: a second request would take further sessions. */
static PGresult *claim_ask(struct pg_base *pg, size_t max, struct err *err) {
  char most[24], bytes[24];
  enum conn_failure failure = CONN_FINE;
  struct buf paused = {0};
  (void)snprintf(most, sizeof most, "%zu", max);
  (void)snprintf(bytes, sizeof bytes, "%u", LIMIT_STORE_CLAIM_BYTES);
  base_put_paused(pg, &paused);
  const struct conn_arg args[] = {arg_text(pg->keeper.worker), arg_text(most),
                                  arg_text(buf_c(&paused)), arg_text(bytes)};
  struct conn *conn = base_take(pg, &failure, err);
  PGresult *answer = NULL;
  if (conn != NULL)
    answer =
        conn_ask(conn, claim_sql, LIMIT_STORE_ASK_MS, args, ARRAY_LEN(args), true, &failure, err);
  buf_deinit(&paused);
  if (answer != NULL && conn_rows(answer) > 0 && fault_fails("claim")) { /* a lost reply */
    conn_free(answer);
    conn_close(conn);
    answer = NULL;
    conn = NULL;
    (void)err_set(err, ERR_IO, "the store %s does not answer", pg->shown);
  }
  base_give(pg, conn);
  return answer;
}

bool worker_claim(struct store *store, size_t max, struct store_id *ids, size_t *count,
                  struct err *err) {
  struct pg_base *pg = shared_base(store, err);
  *count = 0;
  if (pg == NULL)
    return false;
  claims_give_back(pg);
  claims_settle(pg, max, ids, count);
  if (*count == max)
    return true;
  unsigned term = base_term(pg);
  PGresult *answer = claim_ask(pg, max - *count, err);
  if (answer == NULL)
    atomic_store(&pg->unsure, true);
  int n = answer ? conn_rows(answer) : 0;
  for (int i = 0; i < n && *count < max; i++)
    claim_keep(pg, claim_read(answer, i, term), &ids[(*count)++]);
  conn_free(answer);
  return answer != NULL || *count > 0;
}
