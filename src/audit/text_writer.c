/* Writes lines that are indented, cut and safe for a terminal. */
#include "audit/text_writer.h"

#include "base/log.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A long text is cut to these lines: its head says what it is, its end how it came out. */
enum {
  HEAD_LINES = 16,
  TAIL_LINES = 6,
  INDENT = 2,
  MIN_COLUMNS = 40,
  MORE_COLUMNS = 24 /* room for saying how much was cut */
};

void writer_init(struct text_writer *writer, struct buf *out, bool full, size_t columns) {
  if (columns > 0 && columns < MIN_COLUMNS)
    columns = MIN_COLUMNS;
  *writer = (struct text_writer){.out = out, .full = full, .columns = columns};
}

/* Writes a line. depth 0: a title. */
static void put_formatted(struct text_writer *writer, int depth, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0);
static void put_formatted(struct text_writer *writer, int depth, const char *fmt, va_list ap) {
  char_auto_t *text = NULL;
  int n = vasprintf(&text, fmt, ap);
  if (n < 0)
    die("out of memory");
  struct str line = {text, (size_t)n};
  if (writer->sink == NULL) {
    buf_safe(writer->out, line, false);
    buf_putc(writer->out, '\n');
  } else if (depth == 0) {
    writer->sink->title(writer->sink->ctx, line);
  } else {
    writer->sink->line(writer->sink->ctx, depth, line);
  }
}

void writer_title(struct text_writer *writer, const char *fmt, ...) {
  va_list ap;
  if (writer->started && writer->sink == NULL)
    buf_putc(writer->out, '\n');
  writer->started = true;
  va_start(ap, fmt);
  put_formatted(writer, 0, fmt, ap);
  va_end(ap);
}

static void indent(struct text_writer *writer, int depth) {
  for (int i = 0; i < depth * INDENT; i++)
    buf_putc(writer->out, ' ');
}

void writer_line(struct text_writer *writer, int depth, const char *fmt, ...) {
  va_list ap;
  if (writer->sink == NULL)
    indent(writer, depth);
  va_start(ap, fmt);
  put_formatted(writer, depth, fmt, ap);
  va_end(ap);
}

static void put_gutter_line(struct text_writer *writer, char gutter, struct str line) {
  struct str shown = line;
  size_t room = writer->columns > 3 * INDENT + 2 ? writer->columns - 3 * INDENT - 2 : 0;
  indent(writer, 3);
  buf_putc(writer->out, gutter);
  if (line.n > 0)
    buf_putc(writer->out, ' ');
  if (!writer->full && room > 0 && line.n > room)
    shown.n = utf8_floor(line.p, room > 2 * MORE_COLUMNS ? room - MORE_COLUMNS : room / 2);
  buf_safe(writer->out, shown, false);
  if (shown.n < line.n)
    buf_printf(writer->out, "... (%zu bytes more)", line.n - shown.n);
  buf_putc(writer->out, '\n');
}

static void put_gutter(struct text_writer *writer, char gutter, struct str text) {
  while (text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  size_t lines = 0, i = 0;
  for (struct str rest = text; rest.p != NULL; lines++)
    (void)str_next_line(&rest);
  bool cut = !writer->full && lines > HEAD_LINES + TAIL_LINES + 1;
  for (struct str rest = text; rest.p != NULL; i++) {
    struct str line = str_next_line(&rest);
    if (!cut || i < HEAD_LINES || i >= lines - TAIL_LINES) {
      put_gutter_line(writer, gutter, line);
    } else if (i == HEAD_LINES) {
      indent(writer, 3);
      buf_printf(writer->out, "... %zu lines more (--full shows them)\n",
                 lines - HEAD_LINES - TAIL_LINES);
    }
  }
}

void writer_text_begin(struct text_writer *writer) {
  buf_clear(&writer->text);
  if (writer->sink != NULL)
    writer->sink->parts(writer->sink->ctx, true);
}

static void flush(struct text_writer *writer) {
  writer_text(writer, buf_view(&writer->text));
  buf_clear(&writer->text);
}

void writer_text_more(struct text_writer *writer, struct str text) {
  buf_str(&writer->text, text);
}

void writer_text_from(struct text_writer *writer, struct str origin, struct str text) {
  flush(writer);
  if (writer->sink != NULL) {
    writer->sink->text(writer->sink->ctx, origin, text);
    return;
  }
  indent(writer, 3);
  buf_puts(writer->out, "@ ");
  buf_safe(writer->out, origin, false);
  buf_putc(writer->out, '\n');
  if (text.n > 0)
    put_gutter(writer, ':', text);
}

void writer_text_end(struct text_writer *writer) {
  flush(writer);
  buf_deinit(&writer->text);
  if (writer->sink != NULL)
    writer->sink->parts(writer->sink->ctx, false);
}

const char *writer_mark_name(enum text_writer_mark mark) {
  static const char *const names[TEXT_WRITER_MARK_COUNT] = {"refused", "mention", "piece", "tag"};
  return names[mark];
}

void writer_mark_piece(struct text_writer *writer, struct str text, size_t offset, size_t length,
                       enum text_writer_mark what) {
  if (writer->sink != NULL && offset < text.n)
    writer->sink->mark(writer->sink->ctx, text, offset,
                       length > 0 && length < text.n - offset ? length : text.n - offset, what);
}

void writer_reading(struct text_writer *writer, bool begin) {
  if (writer->sink != NULL && writer->sink->reading != NULL)
    writer->sink->reading(writer->sink->ctx, begin);
}

void writer_text(struct text_writer *writer, struct str text) {
  if (text.n > 0 && writer->sink != NULL)
    writer->sink->text(writer->sink->ctx, STR(""), text);
  else if (text.n > 0)
    put_gutter(writer, '|', text);
}
