/* metrics.h - counts what the daemon's sessions do, in the form that Prometheus reads (text format
 * 0.0.4, https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 *   metrics_record(&m, owner, record)    each durable record of a session; owner: whose it is
 *   metrics_forget(&m, owner)            its session is gone from memory
 *   metrics_print(&m, &sessions, &out)   counters so far, and the present state
 *   metrics_deinit(&m)
 *
 * Counters begin at the daemon's start. Labels are providers, methods, stages, outcomes, classes
 * and states only: never a session, a model or a text, so their number is bounded; beyond
 * LIMIT_METRIC_SERIES_COUNT they become "other". */
#ifndef SEGUE_DAEMON_METRICS_H
#define SEGUE_DAEMON_METRICS_H

#include "base/str.h"
#include "core/record.h"
#include "daemon/sessions.h"

#include <jansson.h>
#include <stdint.h>

struct failed_call;
struct recent_failures {
  struct failed_call *ring;
  size_t count; /* ever */
};
void recent_failures_tell(const struct recent_failures *ts, struct str provider, int64_t now_ms,
                          json_t *object);

enum metric {
  METRIC_JUDGMENTS,
  METRIC_STAGES,
  METRIC_CALLS,
  METRIC_CALL_SECONDS,
  METRIC_TOKENS,
  METRIC_COST,
  METRIC_WAITS,
  METRIC_ENDS,
  METRIC_COUNT
};

struct metric_series {
  char *labels; /* as printed: provider="x",class="none" */
  double value;
};

struct metrics_call;
struct metrics {
  struct {
    struct metric_series *items;
    size_t count;
  } counters[METRIC_COUNT];
  struct metrics_call *calls; /* under way */
  size_t call_count;
  struct recent_failures troubles;
};

void metrics_record(struct metrics *m, const void *owner, const struct record *record);
void metrics_forget(struct metrics *m, const void *owner);
void metrics_print(const struct metrics *m, const struct sessions *ss, struct buf *out);
void metrics_deinit(struct metrics *m);

#endif
