/* internal.h - shared by the files of this room: one struct extract_pass lives for one call. */
#ifndef SEGUE_EXTRACT_INTERNAL_H
#define SEGUE_EXTRACT_INTERNAL_H

#include "extract/extract.h"
#include "json/scan.h"

/* a candidate that is kept; value is owned */
struct extract_slot {
  json_t *value;
  size_t offset, length;
  enum extract_stage stage;
  bool unwrapped, duplicate_key;
  int nearness;
  size_t note; /* index in notes, SIZE_MAX without */
};

/* a place that is not strict JSON but may be repaired */
struct extract_region {
  size_t start,
      limit;   /* limit: where the reasoning section after it starts, SIZE_MAX until known */
  size_t fail; /* offset at which the strict scan gave up */
  bool fenced; /* inside a code fence */
  bool sure;   /* looked like JSON: a member was seen */
  enum jscan_code code;
};

struct extract_pass {
  const char *text;
  size_t n;
  size_t trim_start, trim_end; /* text without the white space around it */
  const struct extract_opts *opts;
  struct extract_result *out;
  struct jscan js;

  bool fence_open;
  size_t fence_start;   /* first byte of the content of the last fence opened, SIZE_MAX without */
  size_t segment_start; /* after the last reasoning section */
  size_t segment_limit; /* where an unclosed reasoning section starts, else n */
  size_t inside_until;  /* candidates before this offset are pieces of a broken value */
  size_t inside_start;  /* where that value starts */
  size_t inside_fail;   /* where that value broke */
  bool inside_fenced;   /* it starts inside a fence */
  bool inside_unclosed; /* its end was not found: a fence ends it too */
  bool broken_seen;     /* there was a broken value: its end may have been misread */
  bool other_seen;      /* another value passed too, or was refused */
  size_t gap_start;     /* after the last sound value or reasoning section */
  bool gap_broken;      /* a broken value starts in the gap */
  bool draft_seen;      /* a valid value was refused because of what follows it */
  size_t draft_offset;
  size_t piece_work;   /* bytes that may still be looked at for the ends of broken pieces */
  size_t repair_work;  /* steps that the repair stage may still take */
  bool reasoning_open; /* ended inside a reasoning section */
  bool echo_seen;

  struct extract_slot valid; /* last that passes the check */
  struct extract_slot plain; /* last not empty (no check) */
  struct extract_slot empty; /* last empty one (no check) */
  struct extract_slot near;  /* nearest that fails the check */
  bool empty_refused;        /* the check has seen an empty object in prose and refused it */
  bool wrong_root_seen;
  size_t wrong_root_offset;

  struct extract_region regions[EXTRACT_REGIONS_MAX]; /* ring */
  size_t region_count;       /* ever added; the newest is at (count - 1) % MAX */
  enum jscan_code hard_code; /* depth or number range met at top level, else OK */
  size_t hard_offset;
};

/* At text[i], which is '<', '[' or 0xE2: an opener sets *closed to the offset after its closer, or
 * SIZE_MAX when it has none. A closer sets *closed to the offset after it. */
enum extract_tag { EXTRACT_TAG_NO, EXTRACT_TAG_OPENER, EXTRACT_TAG_CLOSER };
enum extract_tag extract_tag_at(const char *text, size_t n, size_t i, size_t *closed);

/* length of the white space at i, with what copying adds to it: BOM, ZWSP, NBSP; 0 for none */
size_t extract_space(const char *text, size_t n, size_t i);

/* Is a key of the answer in [from, to), as a member has it? */
bool extract_key_between(const struct extract_pass *p, size_t from, size_t to, bool in_piece);
/* Returns whether [from, to) has a closer that nothing opened there. */
bool extract_stray_closer(const struct extract_pass *p, size_t from, size_t to);

/* weighing candidates */
size_t extract_note_add(struct extract_pass *p, size_t start, size_t end, enum extract_stage stage,
                        const char *outcome, size_t error_offset);
enum extract_stage extract_stage_of(const struct extract_pass *p, size_t start, size_t end,
                                    bool fenced);
bool extract_root_ok(enum extract_want want, const json_t *v);
/* Finds the last thing in v that passes the check, or holds a key of the answer and does not
 * pass. */
enum extract_within { EXTRACT_WITHIN_NOTHING, EXTRACT_WITHIN_REFUSED, EXTRACT_WITHIN_VALID };
enum extract_within extract_unwrap(struct extract_pass *p, json_t *v, json_t **owned_found);

/* extract/repair_select.c: the repair stage; true when it filled out->value */
bool extract_fix(struct extract_pass *p);

#endif
