/* repair_internal.h - shares the state of one repair among the files that read keys, strings,
 * numbers and arrays. */
#ifndef SEGUE_EXTRACT_REPAIR_INTERNAL_H
#define SEGUE_EXTRACT_REPAIR_INTERNAL_H

#include "base/buf.h"
#include "extract/repair.h"
#include "json/scan.h"

/* what the innermost container expects; decides what may follow a string */
enum repair_place { REPAIR_KEY, REPAIR_MEMBER, REPAIR_ITEM };

enum repair_quote {
  QUOTE_NONE,
  QUOTE_DOUBLE,
  QUOTE_SINGLE,
  QUOTE_TICK,
  QUOTE_CURLY2,
  QUOTE_CURLY1,
  QUOTE_ANGLE,
  QUOTE_CORNER,
  QUOTE_CORNER_END
};

struct repair {
  const char *t;
  size_t n; /* shrinks when a closing fence or another end is met */
  size_t i;
  char stack[JSCAN_DEPTH_MAX + 1]; /* '{' '[' '(' and 's' for a set in braces */
  size_t depth, work_left;
  bool zeros;      /* 007 is a number */
  bool said_only;  /* as in the job */
  size_t cut_at;   /* the end of the whole text; SIZE_MAX: something follows */
  bool unfinished; /* a number or literal was left out there */
  bool dropped;    /* one was */
  bool failed;
  struct repair_result *out;
  struct buf buf; /* content of the string just read */
  struct repair_span {
    size_t from, to;
  } * spans; /* parts that are in the value, or were declared noise */
  size_t span_count, span_room;
};

/* repair_string.c */
void repair_note(struct repair *r, const char *name, size_t offset);
void repair_keep(struct repair *r, size_t from, size_t to); /* [from, to) is accounted for */
bool repair_spend(struct repair *r, size_t bytes); /* false and failed when the work is used up */

/* looking ahead; none of them changes r->i */
size_t repair_space(const struct repair *r, size_t i); /* length of white space of any kind at i */
size_t repair_junk(struct repair *r, size_t i, bool note); /* after white space and comments */
enum repair_quote repair_quote_at(const struct repair *r, size_t i, size_t *len);
bool repair_closes(enum repair_quote open, enum repair_quote close);
bool repair_key_at(struct repair *r, size_t i);    /* a key and its colon */
bool repair_in(const struct repair *r, char kind); /* such a container is open */
bool repair_ellipsis_at(struct repair *r, size_t i, size_t *len);
bool repair_fence_at(const struct repair *r, size_t i);

/* Reads a string at r->i, which moves, into r->buf. */
bool repair_string(struct repair *r, enum repair_place place);
/* Reads string content into r->buf. */
void repair_decode(struct repair *r, size_t i, size_t end);

#endif
