/* Prints a line for each turn. */
#include "cli/turns.h"

#include "base/limits.h"
#include "cli/cli.h"

#include <assert.h>
#include <string.h>

/* Columns of a turn's cells where there is room; on narrow terminals they shrink, and the reason
 * goes to a line of its own. */
enum {
  WIDTH_TURN = 3,
  WIDTH_MOVEMENT = 10,
  WIDTH_PROVIDER = 8,
  WIDTH_WHAT = 22,
  WIDTH_NEXT = 10,
  WIDTH_METHOD = 17,
  WIDTH_WIDE = 120, /* from here on nothing needs to be cut short */
  WIDTH_NAME_MAX = 24,
  WIDTH_WHAT_MAX = 60,
  WIDTH_WHY_MIN = 24,
};

void turns_put_time(struct buf *out, int64_t ms) {
  long long s = ms / 1000;
  if (ms < 100000)
    buf_printf(out, "%.1f s", (double)ms / 1000);
  else if (s < 3600)
    buf_printf(out, "%lld min %lld s", s / 60, s % 60);
  else
    buf_printf(out, "%lld h %lld min", s / 3600, s / 60 % 60);
}

static int pad(struct buf *out, int used, int width) {
  for (; used < width; used++)
    buf_putc(out, ' ');
  return used;
}

/* A cell of at least `width` columns, cut to `max`. Returns the columns used. */
static int turns_cell(struct buf *out, struct str text, int width, int max) {
  return pad(out, cli_fit(out, text, max), width);
}

static enum colour method_colour(const char *method) {
  if (strcmp(method, "structured_output") == 0 || strcmp(method, "when") == 0 ||
      strcmp(method, "auto_select") == 0 || strcmp(method, "human") == 0)
    return COLOUR_GREEN;
  if (strcmp(method, "tag_fallback") == 0 || strcmp(method, "ai_judge") == 0)
    return COLOUR_YELLOW;
  return COLOUR_RED;
}

static int turns_least(int a, int b) {
  return a < b ? a : b;
}

/* The reason behind the method, or under the line where there is no room for it. */
static void print_why(struct buf *b, const struct turn_line *line, bool colours, int columns,
                      int used) {
  int rest = columns - used - 2;
  if (line->why.n == 0)
    return;
  if (rest < WIDTH_WHY_MIN) {
    buf_puts(b, "\n    ");
    rest = columns - WIDTH_TURN - 3;
  }
  buf_printf(b, "  %s", cli_paint(colours, COLOUR_DIM));
  (void)cli_fit(b, buf_view(&line->why), rest);
  buf_puts(b, cli_paint(colours, COLOUR_NONE));
}

void turns_print(FILE *out, const struct turn_line *line, bool colours, int columns) {
  assert(columns >= LIMIT_TERM_MIN_COLUMNS);
  struct buf b = {0};
  const char *plain = cli_paint(colours, COLOUR_NONE);
  bool wide = columns >= WIDTH_WIDE;
  int name_max = wide ? WIDTH_NAME_MAX : WIDTH_MOVEMENT;
  int fixed =
      WIDTH_TURN + 1 + WIDTH_MOVEMENT + 1 + WIDTH_PROVIDER + 1 + 3 + WIDTH_NEXT + 1 + WIDTH_METHOD;
  int what = wide ? WIDTH_WHAT : turns_least(WIDTH_WHAT, columns - fixed);
  int used = WIDTH_TURN + 1;
  buf_printf(&b, "%s%*ld%s ", cli_paint(colours, COLOUR_DIM), WIDTH_TURN, line->turn, plain);
  buf_puts(&b, cli_paint(colours, COLOUR_BOLD));
  used += 1 + turns_cell(&b, buf_view(&line->movement), turns_least(WIDTH_MOVEMENT, name_max),
                         name_max);
  buf_printf(&b, "%s ", plain);
  if (what >= 0) { /* else a very narrow terminal: where it led matters more */
    used += turns_cell(&b, buf_view(&line->provider), WIDTH_PROVIDER, wide ? 16 : WIDTH_PROVIDER);
    if (what > 4) {
      buf_putc(&b, ' ');
      used += 1 + turns_cell(&b, buf_view(&line->what), what, wide ? WIDTH_WHAT_MAX : what);
    }
    buf_putc(&b, ' ');
    used++;
  }
  buf_printf(&b, "> %s", cli_paint(colours, COLOUR_CYAN));
  used += 2 + turns_cell(&b, buf_view(&line->leads_to), WIDTH_NEXT, name_max);
  buf_printf(&b, "%s %s", plain, cli_paint(colours, method_colour(buf_c(&line->method))));
  bool beside = line->why.n > 0 && columns - used - 1 - WIDTH_METHOD - 2 >= WIDTH_WHY_MIN;
  used += 1 + turns_cell(&b, buf_view(&line->method), beside ? WIDTH_METHOD : 0, WIDTH_METHOD);
  buf_puts(&b, plain);
  print_why(&b, line, colours, columns, beside ? used : columns);
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
  assert(path != NULL);
  struct buf b = {0}, methods = {0};
  size_t i = status_index(s);
  json_t *spent = summary_spent(s);
  summary_methods(s, &methods);
  struct buf used_up = {0};
  spend_print(spent, &used_up);
  if (methods.n > 0 && used_up.n > 0)
    buf_puts(&methods, "  ");
  buf_str(&methods, buf_view(&used_up));
  buf_deinit(&used_up);
  json_decref(spent);
  buf_printf(&b, "%s%s%s  %ld turn%s", cli_paint(colours, statuses[i].colour), statuses[i].shown,
             cli_paint(colours, COLOUR_NONE), s->turns, s->turns == 1 ? "" : "s");
  buf_puts(&b, methods.n > 0 ? "  " : "");
  buf_safe(&b, buf_view(&methods), false);
  int used = (int)(strlen(statuses[i].shown) + methods.n + strlen(path)) + 16;
  if (path[0]) /* whole, so that it can be copied; on a line of its own where there is no room */
    buf_puts(&b, used > columns ? "\n  " : "  ");
  buf_safe(&b, str_from(path), false);
  fprintf(out, "%s\n", b.p);
  if (s->message.n > 0) {
    buf_clear(&b);
    buf_safe(&b, buf_view(&s->stop_class), false);
    buf_puts(&b, b.n > 0 ? ": " : "");
    (void)cli_fit(&b, buf_view(&s->message), columns > 200 ? 2000 : columns * 3);
    fprintf(out, "  %s\n", b.p);
  }
  buf_deinit(&methods);
  buf_deinit(&b);
}

void turns_live(struct buf *out, const struct summary *s, unsigned tick, double seconds,
                bool colours, int columns) {
  assert(columns >= LIMIT_TERM_MIN_COLUMNS);
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
