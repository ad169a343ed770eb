/* Writes lines that are indented, cut and safe for a terminal. */
#include "audit/pen.h"

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

void pen_init(struct pen *pen, struct buf *out, bool full, size_t columns) {
  if (columns > 0 && columns < MIN_COLUMNS)
    columns = MIN_COLUMNS;
  *pen = (struct pen){.out = out, .full = full, .columns = columns};
}

/* Writes a line. depth 0: a title. */
static void put_formatted(struct pen *pen, int depth, const char *fmt, va_list ap)
    PRINTF_LIKE(3, 0);
static void put_formatted(struct pen *pen, int depth, const char *fmt, va_list ap) {
  char *text = NULL;
  int n = vasprintf(&text, fmt, ap);
  if (n < 0)
    die("out of memory");
  struct str line = {text, (size_t)n};
  if (pen->sink == NULL) {
    buf_safe(pen->out, line, false);
    buf_putc(pen->out, '\n');
  } else if (depth == 0) {
    pen->sink->title(pen->sink->ctx, line);
  } else {
    pen->sink->line(pen->sink->ctx, depth, line);
  }
  free(text);
}

void pen_title(struct pen *pen, const char *fmt, ...) {
  va_list ap;
  if (pen->started && pen->sink == NULL)
    buf_putc(pen->out, '\n');
  pen->started = true;
  va_start(ap, fmt);
  put_formatted(pen, 0, fmt, ap);
  va_end(ap);
}

static void indent(struct pen *pen, int depth) {
  for (int i = 0; i < depth * INDENT; i++)
    buf_putc(pen->out, ' ');
}

void pen_line(struct pen *pen, int depth, const char *fmt, ...) {
  va_list ap;
  if (pen->sink == NULL)
    indent(pen, depth);
  va_start(ap, fmt);
  put_formatted(pen, depth, fmt, ap);
  va_end(ap);
}

static void put_gutter_line(struct pen *pen, char gutter, struct str line) {
  struct str shown = line;
  size_t room = pen->columns > 3 * INDENT + 2 ? pen->columns - 3 * INDENT - 2 : 0;
  indent(pen, 3);
  buf_putc(pen->out, gutter);
  if (line.n > 0)
    buf_putc(pen->out, ' ');
  if (!pen->full && room > 0 && line.n > room)
    shown.n = utf8_floor(line.p, room > 2 * MORE_COLUMNS ? room - MORE_COLUMNS : room / 2);
  buf_safe(pen->out, shown, false);
  if (shown.n < line.n)
    buf_printf(pen->out, "... (%zu bytes more)", line.n - shown.n);
  buf_putc(pen->out, '\n');
}

static size_t count_lines(struct str text) {
  size_t n = 0;
  for (struct str rest = text; rest.p != NULL; n++)
    (void)str_next_line(&rest);
  return n;
}

static void put_gutter(struct pen *pen, char gutter, struct str text) {
  while (text.n > 0 && text.p[text.n - 1] == '\n')
    text.n--;
  size_t lines = count_lines(text), i = 0;
  bool cut = !pen->full && lines > HEAD_LINES + TAIL_LINES + 1;
  for (struct str rest = text; rest.p != NULL; i++) {
    struct str line = str_next_line(&rest);
    if (!cut || i < HEAD_LINES || i >= lines - TAIL_LINES) {
      put_gutter_line(pen, gutter, line);
    } else if (i == HEAD_LINES) {
      indent(pen, 3);
      buf_printf(pen->out, "... %zu lines more (--full shows them)\n",
                 lines - HEAD_LINES - TAIL_LINES);
    }
  }
}

void pen_text_begin(struct pen *pen) {
  buf_clear(&pen->text);
  if (pen->sink != NULL)
    pen->sink->parts(pen->sink->ctx, true);
}

static void flush(struct pen *pen) {
  pen_text(pen, buf_view(&pen->text));
  buf_clear(&pen->text);
}

void pen_text_more(struct pen *pen, struct str text) {
  buf_str(&pen->text, text);
}

void pen_text_from(struct pen *pen, struct str origin, struct str text) {
  flush(pen);
  if (pen->sink != NULL) {
    pen->sink->text(pen->sink->ctx, origin, text);
    return;
  }
  indent(pen, 3);
  buf_puts(pen->out, "@ ");
  buf_safe(pen->out, origin, false);
  buf_putc(pen->out, '\n');
  if (text.n > 0)
    put_gutter(pen, ':', text);
}

void pen_text_end(struct pen *pen) {
  flush(pen);
  buf_deinit(&pen->text);
  if (pen->sink != NULL)
    pen->sink->parts(pen->sink->ctx, false);
}

const char *pen_mark_name(enum pen_mark mark) {
  static const char *const names[PEN_MARK_COUNT] = {"refused", "mention", "piece", "tag"};
  return names[mark];
}

void pen_mark_piece(struct pen *pen, struct str text, size_t offset, size_t length,
                    enum pen_mark what) {
  if (pen->sink != NULL && offset < text.n)
    pen->sink->mark(pen->sink->ctx, text, offset,
                    length > 0 && length < text.n - offset ? length : text.n - offset, what);
}

void pen_text(struct pen *pen, struct str text) {
  if (text.n > 0 && pen->sink != NULL)
    pen->sink->text(pen->sink->ctx, STR(""), text);
  else if (text.n > 0)
    put_gutter(pen, '|', text);
}
