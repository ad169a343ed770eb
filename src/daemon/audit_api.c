/* Counts judgments for a client. */
#include "daemon/audit_api.h"

#include "audit/aggregate.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/filter.h"

#include <stdlib.h>
#include <string.h>

const char *const audit_api_query[] = {"by",      "since",      "workflow",  "movement",
                                       "method",  "provider",   "model",     "worker",
                                       "outcome", "min_stages", "ambiguous", NULL};

struct counting {
  struct store store;
  struct aggregate *aggregate;
};

/* Reads the arguments. On false, err says which one is wrong. */
static bool audit_api_filters(const struct server_request *r, struct aggregate *c,
                              struct err *err) {
  const char *since = server_query(r, "since"), *least = server_query(r, "min_stages");
  const char *ambiguous = server_query(r, "ambiguous"), *by = server_query(r, "by");
  long n = 0;
  for (int i = 0; i < AGGREGATE_WORD_COUNT; i++)
    if (!aggregate_filter(c, (enum aggregate_word)i,
                          server_query(r, aggregate_word_name((enum aggregate_word)i)), err))
      return false;
  if (least != NULL && (!str_to_long(str_from(least), &n) || n < 1))
    return err_set(err, ERR_USAGE, "min_stages must be a number from 1");
  c->min_stages = n;
  if (ambiguous != NULL && strcmp(ambiguous, "true") != 0 && strcmp(ambiguous, "false") != 0)
    return err_set(err, ERR_USAGE, "ambiguous must be true or false");
  c->ambiguous = ambiguous != NULL && strcmp(ambiguous, "true") == 0;
  return (since == NULL || filter_since(since, clock_real_ms(), &c->since_ms, err)) &&
         (by == NULL || aggregate_by(c, by, err));
}

static void audit_api_put(struct buf *out, const char *before, json_t *value) {
  buf_puts(out, before);
  json_write(value, out);
  json_decref(value);
}

static void audit_api_work(void *ctx, struct read_job_answer *answer) {
  struct counting *work = ctx;
  struct aggregate *c = work->aggregate;
  json_t *group;
  if (!aggregate_read_store(c, &work->store, &answer->err)) {
    answer->status = 500;
    return;
  }
  aggregate_sort(c);
  buf_puts(&answer->body, "{\"groups\":[");
  for (size_t i = 0; (group = aggregate_group_json(c, i)) != NULL; i++)
    audit_api_put(&answer->body, i > 0 ? "," : "", group);
  audit_api_put(&answer->body, "],\"totals\":", aggregate_totals_json(c));
  buf_putc(&answer->body, '}');
}

static void audit_api_drop(void *ctx) {
  struct counting *work = ctx;
  aggregate_free(work->aggregate);
  free(work);
}

void audit_api_take(struct read_jobs *rs, struct server_request *r, const struct store *store) {
  struct err err = {0};
  struct aggregate *c = aggregate_new();
  if (!audit_api_filters(r, c, &err)) {
    aggregate_free(c);
    server_problem(r, 400, NULL, "%s", err.text);
    return;
  }
  struct counting *work = xmalloc(sizeof *work);
  *work = (struct counting){*store, c};
  read_job_take(rs, r, audit_api_work, audit_api_drop, work);
}
