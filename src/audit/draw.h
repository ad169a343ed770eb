/* draw.h - a random sample of judgments by strata, for people to label.
 *
 *   draw_init(&d, census, "method,movement", 50, "seed", &err)   whose filters and names count;
 *                                     "" instead of keys: all are one stratum
 *   draw_read_store(&d, &store, &err)                  any number of times
 *   draw_end(&d, &err)              d.turns[i], in random order; draw_stratum(&d, turn, &text)
 *   draw_deinit(&d)
 *
 * Each stratum gets as many as any other, while it has that many. Which ones is a matter of a hash
 * of the seed, the session and the turn alone: the same logs give the same sample, so that one that
 * was left can be gone on with, and a log that is added changes little. Judgments that no judge was
 * needed for are not drawn and are no part of the population. */
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

struct draw_list { /* the first of a stratum, by their order */
  struct draw_turn *items;
  size_t count, room;
};

struct draw {
  const struct census *census;
  const char *seed; /* borrowed */
  size_t want, memory, kept;
  struct tally_table strata; /* its groups have the populations */
  struct draw_list *lists;   /* one a group */
  size_t list_count;
  struct rows rows;
  struct draw_turn *turns;
  size_t count;
  uint64_t unsound; /* logs */
};

bool draw_init(struct draw *d, struct census *census, const char *by, size_t want, const char *seed,
               struct err *err) MUST_CHECK;
bool draw_read_store(struct draw *d, const struct store *store, struct err *err) MUST_CHECK;
bool draw_end(struct draw *d, struct err *err) MUST_CHECK;
/* "method=ai_judge,movement=review", and how many judgments it has. Appends. */
uint64_t draw_stratum(const struct draw *d, const struct draw_turn *turn, struct buf *out);
void draw_deinit(struct draw *d);

#endif
