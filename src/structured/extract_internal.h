/* Shared by extract*.c and tag.c only. One struct extract_pass lives for one call of extract(). */
#ifndef SEGUE_STRUCTURED_EXTRACT_INTERNAL_H
#define SEGUE_STRUCTURED_EXTRACT_INTERNAL_H

#include "extract.h"
#include "jscan.h"

/* a candidate that is kept; value is owned */
struct extract_slot {
  json_t *value;
  size_t offset, length;
  enum extract_stage stage;
  bool unwrapped;
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
  bool oom;

  bool fence_open;
  size_t fence_start;   /* first byte of the content of the last fence opened, SIZE_MAX without */
  size_t segment_start; /* after the last reasoning section */
  size_t segment_limit; /* where an unclosed reasoning section starts, else n */
  size_t inside_until;  /* candidates before this offset are pieces of a broken value */
  size_t inside_fail;   /* where that value broke */
  bool inside_unclosed; /* its end was not found: a fence ends it too */
  size_t repair_work;   /* steps that the repair stage may still take */
  bool reasoning_open;  /* ended inside a reasoning section */
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

/* extract_tag.c: reasoning sections.
 * At text[i], which is '<', '[' or 0xE2: an opener sets *closed to the offset after its closer, or
 * SIZE_MAX when it has none. A closer sets *closed to the offset after it. */
enum extract_tag { EXTRACT_TAG_NO, EXTRACT_TAG_OPENER, EXTRACT_TAG_CLOSER };
enum extract_tag extract_tag_at(const char *text, size_t n, size_t i, size_t *closed);
/* first byte from i on that may start a value, a tag or a fence; n when there is none */
size_t extract_next_mark(const char *text, size_t n, size_t i);

/* extract_look.c: what stands around a bracket */
bool extract_line_start(const struct extract_pass *p,
                        size_t i); /* only white space before it on its line */
bool extract_loose_member(const char *text, size_t n, size_t i);
bool extract_item_next(const struct extract_pass *p, size_t i);
bool extract_checkbox(const struct extract_pass *p, size_t i, size_t end);
bool extract_prose_between(const struct extract_pass *p, size_t from, size_t i);
bool extract_plainly_prose(const struct extract_pass *p, size_t i);

/* extract_pick.c: weighing candidates */
void extract_slot_drop(struct extract_slot *slot);
void extract_candidate(struct extract_pass *p, size_t start, size_t end, json_t *owned_value,
                       bool inside);
size_t extract_note_add(struct extract_pass *p, size_t start, size_t end, enum extract_stage stage,
                        const char *outcome, size_t error_offset);
enum extract_stage extract_stage_of(const struct extract_pass *p, size_t start, size_t end,
                                    bool fenced);
bool extract_root_ok(enum extract_want want, const json_t *v);
/* the value, or the last thing in it, that passes the check: a new reference, or NULL */
json_t *extract_unwrap(struct extract_pass *p, json_t *v, int depth);

/* extract_fix.c: the repair stage; true when it filled out->value */
bool extract_fix(struct extract_pass *p);

#endif
