/* select.h - which sessions of a store a list wants, checked in order of cost.
 *
 *   select_passes_over(&s, x, row)     by its row in the index alone: it is not wanted
 *   select_wants_brief(&s, &brief)     by both ends of its log
 *   select_wants_log(&s, &ref, row)    by all of it: who was called, how it was judged
 *
 * Its status is left to the caller, who may know more than the log says. */
#ifndef SEGUE_STORE_SELECT_H
#define SEGUE_STORE_SELECT_H

#include "store/brief.h"
#include "store/index.h"

struct select {
  const char *statuses; /* comma-separated; in all four NULL matches anything */
  int64_t since_ms;     /* real time; 0: any */
  const char *workflow, *method, *provider;
};

/* Reads `text`: "90m", "12h", "3d", "2w" before now, a date, or a time as in a log. */
bool select_since(const char *text, int64_t now_ms, int64_t *since_ms, struct err *err) MUST_CHECK;
/* Returns false if it has an unknown status or method. */
bool select_check(const struct select *s, struct err *err) MUST_CHECK;

bool select_is_set(const struct select *s); /* does it leave any session out? */
bool select_passes_over(const struct select *s, const struct index *x, const struct index_row *row);
bool select_wants_brief(const struct select *s, const struct brief *b);
/* Checks the whole log. row: its row of the index, or NULL to read the log. */
bool select_wants_log(const struct select *s, const struct store_ref *ref,
                      const struct index_row *row);

#endif
