/* filter.h - which sessions of a store a list wants, checked in order of cost.
 *
 *   filter_wants_summary(&s, &brief)     by both ends of its log
 *   filter_wants_log(&s, &ref)         by all of it: who was called, how it was judged
 *
 * The index says first which logs need not be looked at (index.h, `passed_over`). The
 * status is left to the caller, who may know more than the log says. */
#ifndef SEGUE_STORE_FILTER_H
#define SEGUE_STORE_FILTER_H

#include "store/summary.h"

struct filter {
  const char *statuses; /* comma-separated; in all four NULL matches anything */
  int64_t since_ms;     /* real time; 0: any */
  const char *workflow, *method, *provider;
};

/* Reads `text`: "90m", "12h", "3d", "2w" before now, a date, or a time as in a log. */
bool filter_since(const char *text, int64_t now_ms, int64_t *since_ms, struct err *err) MUST_CHECK;
/* Returns false if it has an unknown status or method. */
bool filter_check(const struct filter *s, struct err *err) MUST_CHECK;

bool filter_is_set(const struct filter *s); /* does it leave any session out? */
bool filter_wants_summary(const struct filter *s, const struct summary *b);
bool filter_wants_log(const struct filter *s, const struct store_ref *ref);

/* Adds the providers that the log's calls went to, and the methods that decided its judgments, each
 * once and on a line of its own. Returns false if the log was not read to its end. */
bool filter_read_names(const struct store_ref *ref, struct buf *providers, struct buf *methods);

#endif
