/* text_writer.h - writes the lines of an explanation: titles, indented facts, and texts from a log
 * in a gutter, cut to a sensible size. Everything passes buf_safe: nothing written here can steer a
 * terminal.
 *
 *   a text of several parts: writer_text_begin, then writer_text_more and
 *       writer_text_from, writer_text_end
 * The gutter is `|` for a text in the record itself and `:` for one that it refers to. */
#ifndef SEGUE_AUDIT_TEXT_WRITER_H
#define SEGUE_AUDIT_TEXT_WRITER_H

#include "base/buf.h"

enum text_writer_mark {                      /* the later ones are shown where several hold */
                        TEXT_WRITER_REFUSED, /* looks like an answer, but is not one */
                        TEXT_WRITER_MENTION, /* a tag that is no evidence */
                        TEXT_WRITER_PIECE,   /* the piece that was taken */
                        TEXT_WRITER_TAG,     /* a tag that counts */
                        TEXT_WRITER_MARK_COUNT
};
const char *writer_mark_name(enum text_writer_mark mark); /* refused, mention, piece, tag */

/* A sink receives everything instead of `out`: raw texts, uncut. */
struct text_writer_sink {
  void (*title)(void *ctx, struct str text);
  void (*line)(void *ctx, int depth, struct str text);
  /* origin: where the text is, if the record only refers to it; otherwise empty. */
  void (*text)(void *ctx, struct str origin, struct str text);
  /* Begins and ends a prompt: the texts in between are its parts. */
  void (*parts)(void *ctx, bool begin);
  /* Begins and ends lines that say how a program read the last text; NULL is fine. */
  void (*reading)(void *ctx, bool begin);
  /* Marks a piece of the last text; what: enum text_writer_mark. */
  void (*mark)(void *ctx, struct str text, size_t offset, size_t length,
               enum text_writer_mark what);
  void *ctx;
};

struct text_writer {
  struct buf *out;
  const struct text_writer_sink *sink; /* or NULL */
  bool full;
  size_t columns;
  bool started;    /* titles after the first follow an empty line */
  struct buf text; /* text being gathered */
};

void writer_init(struct text_writer *writer, struct buf *out, bool full, size_t columns);
void writer_title(struct text_writer *writer, const char *fmt, ...)
    PRINTF_LIKE(2, 3); /* in the first column */
/* Writes a single line. depth: 1, 2, ... */
void writer_line(struct text_writer *writer, int depth, const char *fmt, ...) PRINTF_LIKE(3, 4);

void writer_reading(struct text_writer *writer, bool begin); /* for sinks */

void writer_text(struct text_writer *writer, struct str text);
void writer_text_begin(struct text_writer *writer);
void writer_text_more(struct text_writer *writer, struct str text); /* continues the text */
void writer_text_from(struct text_writer *writer, struct str origin, struct str text);
void writer_text_end(struct text_writer *writer);
/* Marks a piece for sinks; a terminal gets lines that name the byte. */
void writer_mark_piece(struct text_writer *writer, struct str text, size_t offset, size_t length,
                       enum text_writer_mark what);

#endif
