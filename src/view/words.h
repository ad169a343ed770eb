/* words.h - numbers of the views in words: durations, costs, times. They append. */
#ifndef SEGUE_VIEW_WORDS_H
#define SEGUE_VIEW_WORDS_H

#include "audit/verify.h"
#include "base/arena.h"
#include "base/buf.h"
#include "core/spend.h"

/* "8.0 s", "12 min 3 s", "2 h 5 min". */
void view_put_time(struct buf *out, int64_t ms);
/* "3 s", "12 min", "5 h", "9 days": how long ago something was. */
void view_put_age(struct buf *out, int64_t ms);
/* "2026-02-11 09:30:00 UTC"; "-" of 0. */
void view_put_when(struct buf *out, int64_t real_ms);
/* "$0.0123", "$0.0123+" with calls of which it is not known, "?" where it is of none; "". */
void view_put_cost(struct buf *out, const struct spend *s);
void view_put_dollars(struct buf *out, double cost, bool priced, bool unpriced);
/* How many bytes of the text fit into max, in whole characters. */
size_t view_fitting(struct str text, size_t max);
/* Appends the text, or as much as fits into max bytes and "... (N bytes left out)". */
struct str view_cut(struct arena *arena, struct str text, size_t max);
/* "verified: 73 records, complete, sealed"; what follows when it is bad. */
void view_put_proof(struct buf *out, const struct verify_result *r);

#endif
