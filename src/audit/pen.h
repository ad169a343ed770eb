/* pen.h - lines of an explanation: titles, indented facts, and texts from a log in a gutter, cut to
 * a sensible size. Everything goes through buf_safe: nothing written here can steer a terminal.
 *
 *   a text of several parts: pen_text_begin, then pen_text_more and pen_text_from, pen_text_end
 * Gutter: `|` for what stands in the record itself, `:` for what it refers to. */
#ifndef SEGUE_AUDIT_PEN_H
#define SEGUE_AUDIT_PEN_H

#include "base/buf.h"

/* Takes what is written instead of `out`: raw texts, uncut. */
struct pen_sink {
  void (*title)(void *ctx, struct str text);
  void (*line)(void *ctx, int depth, struct str text);
  /* origin: where it stands, when the record only refers to it; else empty. */
  void (*text)(void *ctx, struct str origin, struct str text);
  void *ctx;
};

struct pen {
  struct buf *out;
  const struct pen_sink *sink; /* or NULL */
  bool full;
  size_t columns;
  bool started;    /* titles after the first have an empty line before them */
  struct buf text; /* while a text is gathered */
};

void pen_init(struct pen *pen, struct buf *out, bool full, size_t columns);
void pen_title(struct pen *pen, const char *fmt, ...) PRINTF_LIKE(2, 3); /* in the first column */
/* depth: 1, 2, ...; one line, whatever it holds. */
void pen_line(struct pen *pen, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);

void pen_text(struct pen *pen, struct str text);
void pen_text_begin(struct pen *pen);
void pen_text_more(struct pen *pen, struct str text); /* joins what was written before */
void pen_text_from(struct pen *pen, struct str origin, struct str text);
void pen_text_end(struct pen *pen);

#endif
