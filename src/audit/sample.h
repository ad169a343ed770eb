/* sample.h - draws a random sample of judgments by strata, for people to label.
 *
 *   sample_init(&d, aggregate, "method,movement", 50, "seed", &err)   applies the filters of
 *                                     `aggregate`; "" for the keys: all are one stratum
 *   store_each(&store, &d, sample_read, &err)            as often as needed
 *   sample_end(&d, &err)              d.turns[i], in random order; sample_stratum(&d, turn, &text)
 *   sample_deinit(&d)
 *
 * Every stratum gets an equal number as far as it has enough. With a second judge (`again`, set
 * before the logs are read) a stratum is also what that judge says of the verdict, and those in
 * which it differs get more (exact_allot), so that few labels tell how often a verdict is wrong;
 * then there may be more strata than turns. Only a hash of seed, session and turn
 * picks them, so the same logs give the same sample, an unfinished sample can be continued, and an
 * added log changes little. Judgments that needed no judge are neither drawn nor counted in the
 * population. */
#ifndef SEGUE_AUDIT_SAMPLE_H
#define SEGUE_AUDIT_SAMPLE_H

#include "audit/aggregate.h"
#include "audit/rejudged.h"

enum { SAMPLE_MOST = 1000 };

struct sample_turn {
  char session[STORE_ID_BYTES];
  long turn, rule; /* as recorded; rule 0: none */
  uint32_t movement, method, stratum;
  uint64_t order;
};

struct sample_list { /* first judgments of a stratum, in hash order */
  struct sample_turn *items;
  size_t count, room;
  uint64_t population;
};

struct sample {
  const struct aggregate *aggregate;
  const char *seed;             /* borrowed */
  const struct rejudged *again; /* borrowed; or NULL */
  uint32_t second;              /* its name; DICTIONARY_NONE: there is none */
  size_t want, memory, kept;
  struct group_by_table strata;
  struct sample_list *lists; /* for each group one for each enum rejudged_says */
  size_t list_count;
  struct rows rows;
  struct sample_turn *turns;
  size_t count;
  uint64_t unsound; /* number of unsound logs */
};

bool sample_init(struct sample *d, struct aggregate *aggregate, const char *by, size_t want,
                 const char *seed, struct err *err) MUST_CHECK;
void sample_read(void *sample, const struct store_ref *ref);
bool sample_end(struct sample *d, struct err *err) MUST_CHECK;
/* Appends "method=ai_judge,movement=review" and returns how many judgments the stratum has. */
uint64_t sample_stratum(const struct sample *d, const struct sample_turn *turn, struct buf *out);
void sample_deinit(struct sample *d);

#endif
