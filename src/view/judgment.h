/* judgment.h - tells one judgment in full, as a list of titles, lines and texts in reading order:
 * what explain.h tells, for writers other than a terminal.
 *
 *   open a book with `places`, read it to its end, find the turn (explain_find), then
 *   view_judgment_read(&told, &book, turn, text_max, referred_max, &err);
 *       view_judgment_deinit(&told)
 * Texts are raw and live in the arena. */
#ifndef SEGUE_VIEW_JUDGMENT_H
#define SEGUE_VIEW_JUDGMENT_H

#include "audit/text_writer.h"
#include "audit/verified_reader.h"
#include "base/arena.h"

enum view_piece_kind { VIEW_TITLE, VIEW_LINE, VIEW_TEXT };

struct view_mark { /* marked bytes of a text, and why */
  size_t offset, length;
  enum text_writer_mark what;
  struct view_mark *next;
};

struct view_piece {
  enum view_piece_kind kind;
  int depth;         /* a line's: 1, 2, ... */
  struct str origin; /* a text's first place, such as 33#/text; or empty */
  struct str text;
  size_t more_bytes;       /* bytes cut off its end */
  bool reading;            /* a line that says how a program read a reply */
  long part;               /* number in its prompt, from 1; 0: no part of a prompt */
  struct view_mark *marks; /* marks in the kept bytes; or NULL */
};

struct view_judgment {
  struct arena arena;
  struct view_piece *pieces;
  size_t count, room, text_max, referred_max;
  bool reading;     /* such lines follow */
  long parts;       /* parts so far of the prompt being told; 0: none is */
  json_t *judgment; /* the record; NULL: not judged yet */
};

/* text_max: bytes kept of a text; referred_max: the same for a text whose first place is
 * elsewhere. */
bool view_judgment_read(struct view_judgment *told, const struct verified_reader *book, long turn,
                        size_t text_max, size_t referred_max, struct err *err) MUST_CHECK;
/* Returns whether any of its texts was cut. */
bool view_judgment_is_cut(const struct view_judgment *told);
/* Returns {"judgment": the record or null, "told": [{"title", "pieces": [{"depth", "line"} or
 * {"text", "origin", "more_bytes", "part", "marks": [{"offset", "length", "what"}]}]}]}, a new
 * reference. */
json_t *view_judgment_json(const struct view_judgment *told);
void view_judgment_deinit(struct view_judgment *told);

#endif
