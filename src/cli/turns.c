#include "cli/turns.h"

#include "cli/cli.h"

#include <string.h>

/* Columns of a turn's line; what is longer pushes the rest on, so that a pipe loses nothing. */
enum {
  WIDTH_TURN = 3,
  WIDTH_MOVEMENT = 10,
  WIDTH_PROVIDER = 8,
  WIDTH_WHAT = 22,
  WIDTH_NEXT = 10,
  WIDTH_METHOD = 17
};

static int pad(struct buf *out, int used, int width) {
  for (; used < width; used++)
    buf_putc(out, ' ');
  return used;
}

/* A cell of at least `width` columns, cut to `max`. Returns the columns used. */
static int cell(struct buf *out, struct str text, int width, int max) {
  return pad(out, cli_fit(out, text, max), width);
}

static enum colour method_colour(const char *method) {
  if (strcmp(method, "structured_output") == 0 || strcmp(method, "when") == 0 ||
      strcmp(method, "auto_select") == 0)
    return COLOUR_GREEN;
  return strcmp(method, "tag_fallback") == 0 || strcmp(method, "ai_judge") == 0 ? COLOUR_YELLOW
                                                                                : COLOUR_RED;
}

void turns_print(FILE *out, const struct turn_line *line, bool colours, int columns) {
  struct buf b = {0};
  const char *plain = cli_paint(colours, COLOUR_NONE);
  int used = 0, wide = columns > 120 ? columns : 200;
  buf_printf(&b, "%s%*ld%s ", cli_paint(colours, COLOUR_DIM), WIDTH_TURN, line->turn, plain);
  used += WIDTH_TURN + 1;
  buf_puts(&b, cli_paint(colours, COLOUR_BOLD));
  used += cell(&b, buf_view(&line->movement), WIDTH_MOVEMENT, 24);
  buf_printf(&b, "%s ", plain);
  used += 1 + cell(&b, buf_view(&line->provider), WIDTH_PROVIDER, 16);
  buf_putc(&b, ' ');
  used += 1 + cell(&b, buf_view(&line->what), WIDTH_WHAT, columns > 120 ? 60 : WIDTH_WHAT);
  buf_printf(&b, " > %s", cli_paint(colours, COLOUR_CYAN));
  used += 3 + cell(&b, buf_view(&line->leads_to), WIDTH_NEXT, 24);
  buf_printf(&b, "%s %s", plain, cli_paint(colours, method_colour(buf_c(&line->method))));
  used += 1 + cell(&b, buf_view(&line->method), line->why.n ? WIDTH_METHOD : 0, 24);
  buf_puts(&b, plain);
  if (line->why.n > 0) {
    int rest = columns - used - 2;
    buf_printf(&b, "  %s", cli_paint(colours, COLOUR_DIM));
    (void)cli_fit(&b, buf_view(&line->why), rest < 24 ? 24 : rest > wide ? wide : rest);
    buf_puts(&b, plain);
  }
  fprintf(out, "%s\n", b.p);
  fflush(out);
  buf_deinit(&b);
}

static const struct {
  const char *status, *shown;
  int exit;
  enum colour colour;
} statuses[] = {
    {"complete", "COMPLETE", STATUS_COMPLETE, COLOUR_GREEN},
    {"abort", "ABORT", STATUS_ABORT, COLOUR_RED},
    {"rule_no_match", "NO RULE MATCHED", STATUS_NO_RULE, COLOUR_RED},
    {"max_movements", "MAX MOVEMENTS", STATUS_MAX_MOVEMENTS, COLOUR_RED},
    {"cancelled", "CANCELLED", STATUS_CANCELLED, COLOUR_YELLOW},
    {"failed", "FAILED", STATUS_FAILED, COLOUR_RED},
    {"stopped", "STOPPED", STATUS_FAILED, COLOUR_YELLOW},
    {"running", "OPEN", STATUS_FAILED, COLOUR_YELLOW},
};

static size_t status_index(const struct summary *s) {
  size_t i = 0;
  while (i + 1 < ARRAY_LEN(statuses) && strcmp(statuses[i].status, s->status) != 0)
    i++;
  return i;
}

int turns_status(const struct summary *s) {
  return statuses[status_index(s)].exit;
}

void turns_print_end(FILE *out, const struct summary *s, const char *path, bool colours,
                     int columns) {
  struct buf b = {0}, methods = {0};
  size_t i = status_index(s);
  summary_methods(s, &methods);
  buf_printf(&b, "%s%s%s  %ld turn%s", cli_paint(colours, statuses[i].colour), statuses[i].shown,
             cli_paint(colours, COLOUR_NONE), s->turns, s->turns == 1 ? "" : "s");
  if (methods.n > 0)
    buf_printf(&b, "  %s", methods.p);
  if (path[0])
    buf_printf(&b, "  %s", path);
  fprintf(out, "%s\n", b.p);
  if (s->message.n > 0) {
    buf_clear(&b);
    (void)cli_fit(&b, buf_view(&s->message), columns > 200 ? 2000 : columns * 3);
    fprintf(out, "  %s%s%s%s\n", s->stop_class.n ? buf_c(&s->stop_class) : "",
            s->stop_class.n ? ": " : "", b.p, "");
  }
  buf_deinit(&methods);
  buf_deinit(&b);
}

void turns_live(struct buf *out, const struct summary *s, unsigned tick, double seconds,
                bool colours, int columns) {
  static const char *const frames[] = {"|", "/", "-", "\\"};
  struct buf activity = {0};
  int used = 0;
  buf_printf(out, "%s%*ld%s ", cli_paint(colours, COLOUR_DIM), WIDTH_TURN, s->turns,
             cli_paint(colours, COLOUR_NONE));
  used += WIDTH_TURN + 1;
  buf_printf(out, "%s%s%s ", cli_paint(colours, COLOUR_CYAN), frames[tick % 4],
             cli_paint(colours, COLOUR_NONE));
  used += 2;
  (void)cli_fit(&activity, buf_view(&s->activity), columns - used - 10);
  buf_printf(out, "%s  %.1fs", buf_c(&activity), seconds);
  buf_deinit(&activity);
}
