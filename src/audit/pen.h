/* pen.h - writes the lines of an explanation: titles, indented facts, and texts from a log in a
 * gutter, cut to a sensible size. Everything passes buf_safe: nothing written here can steer a
 * terminal.
 *
 *   a text of several parts: pen_text_begin, then pen_text_more and pen_text_from, pen_text_end
 * The gutter is `|` for a text in the record itself and `:` for one that it refers to. */
#ifndef SEGUE_AUDIT_PEN_H
#define SEGUE_AUDIT_PEN_H

#include "base/buf.h"

enum pen_mark {              /* the later ones are shown where several hold */
                PEN_REFUSED, /* looks like an answer, but is not one */
                PEN_MENTION, /* a tag that is no evidence */
                PEN_PIECE,   /* the piece that was taken */
                PEN_TAG,     /* a tag that counts */
                PEN_MARK_COUNT
};
const char *pen_mark_name(enum pen_mark mark); /* refused, mention, piece, tag */

/* A sink receives everything instead of `out`: raw texts, uncut. */
struct pen_sink {
  void (*title)(void *ctx, struct str text);
  void (*line)(void *ctx, int depth, struct str text);
  /* origin: where the text is, if the record only refers to it; otherwise empty. */
  void (*text)(void *ctx, struct str origin, struct str text);
  /* Begins and ends a prompt: the texts in between are its parts. */
  void (*parts)(void *ctx, bool begin);
  /* Marks a piece of the last text; what: enum pen_mark. */
  void (*mark)(void *ctx, struct str text, size_t offset, size_t length, enum pen_mark what);
  void *ctx;
};

struct pen {
  struct buf *out;
  const struct pen_sink *sink; /* or NULL */
  bool full;
  size_t columns;
  bool started;    /* titles after the first follow an empty line */
  struct buf text; /* text being gathered */
};

void pen_init(struct pen *pen, struct buf *out, bool full, size_t columns);
void pen_title(struct pen *pen, const char *fmt, ...) PRINTF_LIKE(2, 3); /* in the first column */
/* Writes a single line. depth: 1, 2, ... */
void pen_line(struct pen *pen, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);

void pen_text(struct pen *pen, struct str text);
void pen_text_begin(struct pen *pen);
void pen_text_more(struct pen *pen, struct str text); /* continues the text */
void pen_text_from(struct pen *pen, struct str origin, struct str text);
void pen_text_end(struct pen *pen);
/* Marks a piece for sinks; a terminal gets lines that name the byte. */
void pen_mark_piece(struct pen *pen, struct str text, size_t offset, size_t length,
                    enum pen_mark what);

#endif
