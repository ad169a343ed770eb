/* Counts judgments for a client. */
#include "daemon/counts.h"

#include "audit/census.h"
#include "base/log.h"
#include "format/json_write.h"
#include "os/clock.h"
#include "store/select.h"

#include <stdlib.h>
#include <string.h>

const char *const counts_query[] = {"by",      "since",      "workflow",  "movement",
                                    "method",  "provider",   "model",     "worker",
                                    "outcome", "min_stages", "ambiguous", NULL};

struct counting {
  struct store store;
  struct census *census;
};

/* Reads the arguments. On false, err says which one is wrong. */
static bool counts_filters(const struct server_request *r, struct census *c, struct err *err) {
  const char *since = server_query(r, "since"), *least = server_query(r, "min_stages");
  const char *ambiguous = server_query(r, "ambiguous"), *by = server_query(r, "by");
  long n = 0;
  for (int i = 0; i < CENSUS_WORD_COUNT; i++)
    if (!census_filter(c, (enum census_word)i,
                       server_query(r, census_word_name((enum census_word)i)), err))
      return false;
  if (least != NULL && (!str_to_long(str_from(least), &n) || n < 1))
    return err_set(err, ERR_USAGE, "min_stages must be a number from 1");
  c->min_stages = n;
  if (ambiguous != NULL && strcmp(ambiguous, "true") != 0 && strcmp(ambiguous, "false") != 0)
    return err_set(err, ERR_USAGE, "ambiguous must be true or false");
  c->ambiguous = ambiguous != NULL && strcmp(ambiguous, "true") == 0;
  return (since == NULL || select_since(since, clock_real_ms(), &c->since_ms, err)) &&
         (by == NULL || census_by(c, by, err));
}

static void counts_put(struct buf *out, const char *before, json_t *value) {
  buf_puts(out, before);
  json_write(value, out);
  json_decref(value);
}

static void counts_work(void *ctx, struct reading_answer *answer) {
  struct counting *work = ctx;
  struct census *c = work->census;
  json_t *group;
  if (!census_read_store(c, &work->store, &answer->err)) {
    answer->status = 500;
    return;
  }
  census_sort(c);
  buf_puts(&answer->body, "{\"groups\":[");
  for (size_t i = 0; (group = census_group_json(c, i)) != NULL; i++)
    counts_put(&answer->body, i > 0 ? "," : "", group);
  counts_put(&answer->body, "],\"totals\":", census_totals_json(c));
  buf_putc(&answer->body, '}');
}

static void counts_drop(void *ctx) {
  struct counting *work = ctx;
  census_free(work->census);
  free(work);
}

void counts_take(struct readings *rs, struct server_request *r, const struct store *store) {
  struct err err = {0};
  struct census *c = census_new();
  if (!counts_filters(r, c, &err)) {
    census_free(c);
    server_problem(r, 400, NULL, "%s", err.text);
    return;
  }
  struct counting *work = xmalloc(sizeof *work);
  *work = (struct counting){*store, c};
  reading_take(rs, r, counts_work, counts_drop, work);
}
