/* rows_internal.h - shared by the parts of rows.h: rows.c reads a log, rows_record.c takes what a
 * row needs from a record, and rows_judgment.c from a judgment's record. */
#ifndef SEGUE_AUDIT_ROWS_INTERNAL_H
#define SEGUE_AUDIT_ROWS_INTERNAL_H

#include "audit/rows.h"
#include "json/pull.h"

#include <string.h>

enum rows_taken {
  ROWS_TAKEN,
  ROWS_BAD,    /* not a record, though its hash is right */
  ROWS_BEYOND, /* a bound was met */
};

struct rows_head { /* members that all records have; texts are raw */
  int64_t v, seq;
  struct str ts, type;
  struct pull rest; /* the record after these members if they come first; else all of it */
};
bool rows_head(struct str line, struct rows_head *head);

#define IS(key, literal)                                                                           \
  ((key).n == sizeof(literal) - 1 && memcmp((key).p, literal, sizeof(literal) - 1) == 0)

/* Read the current value: a text as its number, a count within bounds, a time in ms. */
uint32_t rows_name(struct rows *rows, struct pull *at);
void rows_count(struct pull *at, int64_t *out);
void rows_long(struct pull *at, long *out);
int64_t rows_time_of(struct str raw);

/* Finds a call of an open turn; NULL: there is none. */
struct rows_call *rows_call_find(struct rows *rows, long turn, long call);
/* Forgets the calls of a turn that was judged. */
void rows_turn_forget(struct rows *rows, long turn);
/* Adds the movement's own calls: who worked, with which schema, at what cost. */
void rows_add_work(struct rows *rows, struct row *row);

/* Takes what a sound record says; judgments are in rows_judgment.c. */
enum rows_taken rows_judgment(struct rows *rows, struct pull *at, const struct rows_head *head);
enum rows_taken rows_take(struct rows *rows, const struct rows_head *head);
/* Keeps a row, or hands it out. Its stages are the last ones, from row->stage_first on. */
void rows_emit(struct rows *rows, struct row *row);

#endif
