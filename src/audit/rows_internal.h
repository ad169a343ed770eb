/* rows_internal.h - what rows.c and rows_record.c share. */
#ifndef SEGUE_AUDIT_ROWS_INTERNAL_H
#define SEGUE_AUDIT_ROWS_INTERNAL_H

#include "audit/rows.h"

enum rows_taken {
  ROWS_TAKEN,
  ROWS_BAD,    /* it is no record, under a right hash */
  ROWS_BEYOND, /* a bound was met */
};

struct rows_head { /* what all records have; texts raw */
  int64_t v, seq;
  struct str ts, type;
};
bool rows_head(struct str line, struct rows_head *head);

/* Takes what a sound record says. */
enum rows_taken rows_take(struct rows *rows, struct str line, const struct rows_head *head);
/* Puts a row behind the others, or out. Its stages are the last ones, from row->stage_first on. */
void rows_emit(struct rows *rows, struct row *row);

#endif
