/* Books what calls use of the caps that all workers share. */
#include "store/caps.h"

#include "base/log.h"
#include "os/loop.h"
#include "store/postgres/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CAPS_UNITS = 4 }; /* of functions.sql, in the order of enum budget_unit */

struct caps_request {
  uv_work_t work;
  struct pg_base *pg;
  char session[STORE_ID_BYTES], word[STORE_ID_BYTES];
  uint64_t call, attempt;
  struct buf names, limits; /* arrays of SQL */
  int64_t used[BUDGET_UNITS];
  caps_fn done;
  void *ctx;
  char answer[BASE_WORD_BYTES];
};

static struct caps_request *caps_request_new(const struct store *store,
                                             const struct caps_call *call) {
  struct caps_request *r = xcalloc(1, sizeof *r);
  r->work.data = r;
  r->pg = base_of_store(store);
  r->call = (uint64_t)call->call;
  r->attempt = (uint64_t)call->attempt;
  print_into(r->session, sizeof r->session, "%s", call->session);
  (void)pthread_mutex_lock(&r->pg->lock);
  memcpy(r->word, r->pg->heartbeat.word, sizeof r->word);
  (void)pthread_mutex_unlock(&r->pg->lock);
  buf_putc(&r->names, '{');
  buf_putc(&r->limits, '{');
  for (size_t i = 0; i < call->count; i++) {
    base_put_label(&r->names, "", call->caps[i].name);
    for (int u = 0; u < CAPS_UNITS; u++)
      buf_printf(&r->limits, "%s%" PRId64, i + (size_t)u > 0 ? "," : "", call->caps[i].limit[u]);
  }
  buf_putc(&r->names, '}');
  buf_putc(&r->limits, '}');
  return r;
}

static void caps_free(struct caps_request *r) {
  buf_deinit(&r->names);
  buf_deinit(&r->limits);
  free(r);
}

static void caps_take_now(uv_work_t *work) {
  struct caps_request *r = work->data;
  char call[ARG_NUMBER_BYTES], attempt[ARG_NUMBER_BYTES];
  struct err err;
  const struct conn_arg args[] = {arg_text(r->word),          arg_text(r->session),
                                  arg_number(call, r->call),  arg_number(attempt, r->attempt),
                                  arg_text(buf_c(&r->names)), arg_text(buf_c(&r->limits))};
  (void)!base_ask_word(r->pg, "SELECT segue.spent_take($1, $2, $3, $4, $5, $6)", args,
                       ARRAY_LEN(args), r->answer, &err);
}

static void caps_was_taken(uv_work_t *work, int status) {
  struct caps_request *r = work->data;
  long at = 0, unit = 0;
  int64_t used = 0;
  (void)status;
  enum caps_answer answer = CAPS_UNKNOWN;
  if (strcmp(r->answer, "ok") == 0)
    answer = CAPS_TAKEN;
  else if (sscanf(r->answer, "%ld %ld %" SCNd64, &at, &unit, &used) == 3 && at > 0 && unit > 0)
    answer = CAPS_OVER;
  r->done(r->ctx, answer, (size_t)at - 1, (enum budget_unit)(unit - 1), used);
  caps_free(r);
}

void caps_take(const struct store *store, uv_loop_t *loop, const struct caps_call *call,
               caps_fn done, void *ctx) {
  struct caps_request *r = caps_request_new(store, call);
  r->done = done;
  r->ctx = ctx;
  loop_work(loop, &r->work, caps_take_now, caps_was_taken);
}

static void caps_add_now(uv_work_t *work) {
  struct caps_request *r = work->data;
  char numbers[5][ARG_NUMBER_BYTES];
  struct err err;
  const struct conn_arg args[] = {arg_text(r->word),
                                  arg_text(r->session),
                                  arg_number(numbers[0], r->call),
                                  arg_number(numbers[1], r->attempt),
                                  arg_text(buf_c(&r->names)),
                                  arg_number(numbers[2], (uint64_t)r->used[BUDGET_TOKENS]),
                                  arg_number(numbers[3], (uint64_t)r->used[BUDGET_COST]),
                                  arg_number(numbers[4], (uint64_t)r->used[BUDGET_TIME])};
  if (!base_ask_word(r->pg, "SELECT segue.spent_add($1, $2, $3, $4, $5, $6, $7, $8)", args,
                     ARRAY_LEN(args), r->answer, &err))
    log_warn("what call %" PRIu64 " of %s used is not booked in the store: %s", r->call, r->session,
             err.text);
}

static void caps_was_added(uv_work_t *work, int status) {
  (void)status;
  caps_free(work->data);
}

void caps_add(const struct store *store, uv_loop_t *loop, const struct caps_call *call,
              const int64_t used[BUDGET_UNITS]) {
  struct caps_request *r = caps_request_new(store, call);
  memcpy(r->used, used, sizeof r->used);
  loop_work(loop, &r->work, caps_add_now, caps_was_added);
}
