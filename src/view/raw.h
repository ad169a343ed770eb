/* raw.h - reads the raw records of a log, a page at a time, and single texts in them.
 *
 *   view_raws_read(&raws, &book, after, max, text_max, &err)     the records after `after`
 *   view_raws_deinit(&raws)
 *   view_excerpt_read(&e, &book, ref, offset, max, &err)         one text, or a piece of it
 *   view_excerpt_deinit(&e)
 * The book was read to its end, with places. Texts are raw and live in the arena, the first
 * text_max bytes of each line. Only what is shown is read. */
#ifndef SEGUE_VIEW_RAW_H
#define SEGUE_VIEW_RAW_H

#include "audit/verified_reader.h"
#include "base/arena.h"

struct view_raw {
  uint64_t seq;
  long turn; /* 0: belongs to the session */
  struct str type, ts, hash, line;
  size_t more_bytes; /* rest of the line, which is left out */
  bool unproven;
};

struct view_raws {
  struct arena arena;
  struct view_raw *items;
  size_t count;
  uint64_t next; /* `after` for the next page; 0: there is none */
};

bool view_raws_read(struct view_raws *raws, const struct verified_reader *book, uint64_t after,
                    size_t max, size_t text_max, struct err *err) MUST_CHECK;
void view_raws_deinit(struct view_raws *raws);

/* Returns {"records": [...], "next": N or null}: whole records, at least one, and no more once they
 * exceed max_bytes. */
json_t *view_raws_json(const struct verified_reader *book, uint64_t after, size_t max,
                       size_t max_bytes, struct err *err);
/* Returns {"call": N, "records": [...]}: all records of one call. */
json_t *view_call_json(const struct verified_reader *book, long call, size_t max_bytes,
                       struct err *err);
/* Holds a piece of the text at a place such as "12#/text", in the log or in a blob; "12": the raw
 * line of a record. It begins at the offset and has at most max bytes, in whole characters. */
struct view_excerpt {
  struct buf buf; /* holds the piece, and often more */
  struct str text;
  size_t offset, bytes; /* bytes: length of the whole text */
};
bool view_excerpt_read(struct view_excerpt *e, const struct verified_reader *book, const char *ref,
                       size_t offset, size_t max, struct err *err) MUST_CHECK;
void view_excerpt_deinit(struct view_excerpt *e);
/* Returns {"ref", "offset", "bytes", "text", "next"}: a piece of the text at a place such as
 * "12#/text". */
json_t *view_text_json(const struct verified_reader *book, const char *ref, size_t offset,
                       size_t max, struct err *err);

#endif
