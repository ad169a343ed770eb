/* told.h - one judgment in full, as a list of titles, lines and texts in the order in which they
 * are read: what explain.h tells, for writers other than a terminal.
 *
 *   open a book with `places`, read it to its end, find the turn (explain_find), then
 *   view_told_read(&told, &book, turn, text_max, referred_max, &err); view_told_deinit(&told)
 * Texts are raw and live in the arena. */
#ifndef SEGUE_VIEW_TOLD_H
#define SEGUE_VIEW_TOLD_H

#include "audit/book.h"
#include "audit/pen.h"
#include "base/arena.h"

enum view_piece_kind { VIEW_TITLE, VIEW_LINE, VIEW_TEXT };

struct view_mark { /* bytes of a text, and why they are marked */
  size_t offset, length;
  enum pen_mark what;
  struct view_mark *next;
};

struct view_piece {
  enum view_piece_kind kind;
  int depth;         /* of a line: 1, 2, ... */
  struct str origin; /* of a text: where it stands first, such as 33#/text; or empty */
  struct str text;
  size_t more_bytes;       /* bytes that were cut off its end */
  long part;               /* of a prompt, from 1; 0: it stands for itself */
  struct view_mark *marks; /* in what is left of it; or NULL */
};

struct view_told {
  struct arena arena;
  struct view_piece *pieces;
  size_t count, room;
  size_t text_max, referred_max;
  long parts;       /* of the prompt that is being told; 0: none is */
  json_t *judgment; /* the record; NULL: not judged yet */
};

/* text_max: how many bytes of a text are kept; referred_max: of a text that is first found
 * elsewhere. */
bool view_told_read(struct view_told *told, const struct book *book, long turn, size_t text_max,
                    size_t referred_max, struct err *err) MUST_CHECK;
/* Was any of its texts cut? */
bool view_told_is_cut(const struct view_told *told);
/* {"judgment": the record or null, "told": [{"title", "pieces": [{"depth", "line"} or {"text",
 * "origin", "more_bytes", "part", "marks": [{"offset", "length", "what"}]}]}]}: a new reference. */
json_t *view_told_json(const struct view_told *told);
void view_told_deinit(struct view_told *told);

#endif
