/* number_format.h - appends numbers of the views as words: durations, costs, times. */
#ifndef SEGUE_VIEW_NUMBER_FORMAT_H
#define SEGUE_VIEW_NUMBER_FORMAT_H

#include "audit/verify.h"
#include "base/arena.h"
#include "base/buf.h"
#include "core/spend.h"

#include <jansson.h>

/* The end of a word that counts n things. */
#define PLURAL(n) ((n) == 1 ? "" : "s")

/* Returns when a record was written; 0: it does not say. */
int64_t view_time(const json_t *record);
/* Appends a duration: "8.0 s", "12 min 3 s", "2 h 5 min". */
void view_put_time(struct buf *out, int64_t ms);
/* Appends how long ago something was: "3 s", "12 min", "5 h", "9 days". */
void view_put_age(struct buf *out, int64_t ms);
/* Appends "2026-02-11 09:30:00 UTC"; "-" for 0. */
void view_put_when(struct buf *out, int64_t real_ms);
/* Appends "$0.0123", or "$0.0123+" if some calls have no known cost, "?" if none has; or
 * nothing. */
void view_put_cost(struct buf *out, const struct spend *s);
void view_put_dollars(struct buf *out, double cost, bool priced, bool unpriced);
/* Returns how many bytes of the text fit into max, in whole characters. */
size_t view_fitting(struct str text, size_t max);
/* Copies the text, or as much as fits into max bytes with "... (N bytes left out)". */
struct str view_cut(struct arena *arena, struct str text, size_t max);
/* Appends "verified: 73 records, complete, sealed", and more when the log is bad. */
void view_put_proof(struct buf *out, const struct verify_result *r);

#endif
