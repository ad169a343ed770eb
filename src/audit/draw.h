/* draw.h - draws a random sample of judgments by strata, for people to label.
 *
 *   draw_init(&d, census, "method,movement", 50, "seed", &err)   applies the filters of
 *                                     `census`; "" for the keys: all are one stratum
 *   draw_read_store(&d, &store, &err)                  as often as needed
 *   draw_end(&d, &err)              d.turns[i], in random order; draw_stratum(&d, turn, &text)
 *   draw_deinit(&d)
 *
 * Every stratum gets an equal number as far as it has enough. Only a hash of seed, session and turn
 * picks them, so the same logs give the same sample, an unfinished sample can be continued, and an
 * added log changes little. Judgments that needed no judge are neither drawn nor counted in the
 * population. */
#ifndef SEGUE_AUDIT_DRAW_H
#define SEGUE_AUDIT_DRAW_H

#include "audit/census.h"

enum { DRAW_MOST = 1000 };

struct draw_turn {
  char session[STORE_ID_BYTES];
  long turn, rule; /* as recorded; rule 0: none */
  uint32_t movement, method;
  uint32_t stratum;
  uint64_t order;
};

struct draw_list { /* first judgments of a stratum, in hash order */
  struct draw_turn *items;
  size_t count, room;
};

struct draw {
  const struct census *census;
  const char *seed; /* borrowed */
  size_t want, memory, kept;
  struct tally_table strata; /* its groups count the populations */
  struct draw_list *lists;   /* one for each group */
  size_t list_count;
  struct rows rows;
  struct draw_turn *turns;
  size_t count;
  uint64_t unsound; /* number of unsound logs */
};

bool draw_init(struct draw *d, struct census *census, const char *by, size_t want, const char *seed,
               struct err *err) MUST_CHECK;
bool draw_read_store(struct draw *d, const struct store *store, struct err *err) MUST_CHECK;
bool draw_end(struct draw *d, struct err *err) MUST_CHECK;
/* Appends "method=ai_judge,movement=review" and returns how many judgments the stratum has. */
uint64_t draw_stratum(const struct draw *d, const struct draw_turn *turn, struct buf *out);
void draw_deinit(struct draw *d);

#endif
