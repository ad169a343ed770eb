/* error_rate.h - estimates from people's labels how often verdicts are wrong, and how often each
 * rule was the right one, with intervals (exact.h).
 *
 *   e = error_rate_new(aggregate, NULL)   whose filters count; its AGGREGATE_BY keys make groups
 *   agree_beside(e->agree, &store, &err), then agree_read(e->agree, &ref) for its logs
 *   error_rate_end(e, &err)               e->results: for each group one for each person
 *   error_rate_free(e)
 *
 * A label says of a turn which rule was right, so the verdict is wrong where that is another one.
 * Its predictions are the verdict itself and what a second judge says of it (segue rejudge): turns
 * of one rule of which the second judge says the same are one cell. Among verdicts of one rule the
 * first judge says nothing any more, and without a second one labels stand alone. Judgments that
 * needed no judge are left out, and those of persons. */
#ifndef SEGUE_AUDIT_ERROR_RATE_H
#define SEGUE_AUDIT_ERROR_RATE_H

#include "audit/agree.h"
#include "audit/exact.h"

struct error_rate_cell {
  size_t group;
  uint32_t rule;
  enum rejudged_says says;
  double population;
};

struct error_rate_tally { /* labels of one person in one cell */
  size_t cell, person;
  unsigned long labels;
  double n, squares, called[KAPPA_CATEGORIES]; /* sums of weights */
};

struct error_rate_rule {
  uint32_t rule;
  double named;       /* share of the judgments whose verdict it is */
  struct exact right; /* share of those for which it is right */
};

struct error_rate_result {
  size_t group;       /* of the aggregate's groups */
  const char *person; /* NULL: nobody labelled there */
  double judgments;
  unsigned long labels;
  struct exact wrong, alone; /* alone: from the labels without any prediction */
  struct error_rate_rule *rules;
  size_t rule_count;
  size_t next; /* cell in which a label tells most; SIZE_MAX: all are labelled */
  unsigned long next_labels;
};

struct error_rate {
  struct aggregate *aggregate; /* borrowed */
  struct agree *agree;
  const char *second_named;
  uint32_t second; /* name of the rejudging; DICTIONARY_NONE: there is none */
  bool has_second; /* it was looked for */
  struct error_rate_cell *cells;
  size_t cell_count;
  struct error_rate_tally *tallies;
  size_t tally_count;
  char **persons;
  size_t person_count;
  struct map map;
  struct arena arena;
  struct error_rate_result *results;
  size_t count;
  struct err err;
};

/* second: name of a rejudging; NULL: that with most verdicts. */
struct error_rate *error_rate_new(struct aggregate *aggregate, const char *second);
bool error_rate_end(struct error_rate *e, struct err *err) MUST_CHECK;
/* Appends the group's name, such as "movement=review, rule=1". */
void error_rate_group(const struct error_rate *e, const struct error_rate_result *r,
                      struct buf *out);
/* Appends what to label next, or that a second judge is missing. */
void error_rate_next(const struct error_rate *e, const struct error_rate_result *r,
                     struct buf *out);
json_t *error_rate_json(const struct error_rate *e, const struct error_rate_result *r);
void error_rate_free(struct error_rate *e); /* NULL is fine */

#endif
