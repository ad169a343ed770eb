/* Prints a line for each turn. */
#include "cli/turns.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "judge/stage.h"
#include "os/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* These are the columns of a turn's cells where there is room; on narrow terminals they shrink, and
 * the reason goes to a line of its own. */
enum {
  WIDTH_TURN = 3,
  WIDTH_INDENT = 2, /* for a group's children */
  WIDTH_MOVEMENT = 10,
  WIDTH_PROVIDER = 8,
  WIDTH_WHAT = 22,
  WIDTH_METHOD = 17,
  WIDTH_LINE = 78,  /* all of them together */
  WIDTH_USED = 26,  /* "12.3 s  12345 tokens  $0.1" */
  WIDTH_WIDE = 120, /* from here on nothing has to be cut */
  WIDTH_NAME = 24,  /* on such a terminal; a wider one gives half of the rest */
  WIDTH_NAME_MAX = 64,
  WIDTH_WHAT_MAX = 60,
  WIDTH_WHY_MIN = 24,
};

static enum colour method_colour(struct str method) {
  if (str_among(method, "structured_output when auto_select human"))
    return COLOUR_GREEN;
  if (str_among(method, "tag_fallback ai_judge"))
    return COLOUR_YELLOW;
  return COLOUR_RED;
}

static int turns_least(int a, int b) {
  return a < b ? a : b;
}

struct turns_look turns_look_of(int fd) {
  return (struct turns_look){
      .colours = cli_colours(fd), .terminal = isatty(fd) == 1, .columns = cli_columns(fd)};
}

/* Returns the room for a name; two such cells share what is left of a line. */
static int names_room(int columns) {
  if (columns >= WIDTH_WIDE)
    return turns_least(WIDTH_NAME + (columns - WIDTH_WIDE) / 2, WIDTH_NAME_MAX);
  return WIDTH_MOVEMENT + (columns > WIDTH_LINE ? (columns - WIDTH_LINE) / 2 : 0);
}

static int names_width(const struct turns_look *look) {
  int wanted = turns_least(look->names, WIDTH_NAME_MAX), room = names_room(look->columns);
  return wanted > WIDTH_MOVEMENT ? turns_least(wanted, room) : WIDTH_MOVEMENT;
}

static void put_painted(struct buf *b, const struct turns_look *look, enum colour colour,
                        struct str text, int columns) {
  buf_printf(b, "  %s", cli_paint(look->colours, colour));
  (void)cli_fit(b, text, columns);
  buf_puts(b, cli_paint(look->colours, COLOUR_NONE));
}

/* Prints the reason and what was used, after the method or, without room, below the line. */
static void print_rest(struct buf *b, const struct turn_line *line, const struct turns_look *look,
                       int used, bool beside) {
  buf_auto_t spent = {0};
  enum colour why = line->tried ? COLOUR_RED : COLOUR_DIM;
  int below = look->columns - WIDTH_TURN - 3, rest = look->columns - used - 2;
  if (line->judged) {
    const struct spend *s = &line->spends.all;
    view_put_time(&spent, line->duration_ms > 0 ? line->duration_ms : 0);
    if (s->input + s->output > 0)
      buf_printf(&spent, "  %lld tokens", (long long)(s->input + s->output));
    if (s->priced > 0)
      buf_printf(&spent, "  $%.4f", (double)s->cost_nano / 1e9);
  }
  int tail = (int)spent.n;
  if (beside)
    put_painted(b, look, why, buf_view(&line->why), rest - (tail > 0 ? tail + 2 : 0));
  bool fits = beside || !look->terminal || rest >= tail;
  bool tells = line->duration_ms >= 1000 || line->spends.all.input + line->spends.all.output > 0;
  if (fits && tail > 0)
    put_painted(b, look, COLOUR_DIM, buf_view(&spent), tail);
  if (look->terminal && line->why.n == 0 && line->reason.n > 0 && rest - tail - 4 >= WIDTH_WHY_MIN)
    put_painted(b, look, COLOUR_NONE, buf_view(&line->reason), rest - tail - 4);
  if (!beside && line->why.n > 0) {
    buf_puts(b, "\n    ");
    put_painted(b, look, why, buf_view(&line->why), below - (fits ? 0 : tail + 2));
  } else if (!fits && tells) {
    buf_puts(b, "\n    ");
  }
  if (!fits && tells)
    put_painted(b, look, COLOUR_DIM, buf_view(&spent), tail);
}

void turns_print(FILE *out, const struct turn_line *line, const struct turns_look *look) {
  const int columns = look->columns;
  assert(columns >= LIMIT_TERM_MIN_COLUMNS);
  buf_auto_t b = {0};
  const char *plain = cli_paint(look->colours, COLOUR_NONE);
  bool wide = columns >= WIDTH_WIDE;
  int name = names_width(look), spent = wide ? WIDTH_USED : 0;
  int name_max = wide ? names_room(columns) : name;
  int fixed = WIDTH_TURN + 1 + name + 1 + WIDTH_PROVIDER + 1 + 3 + name + 1 + WIDTH_METHOD;
  int what = wide ? WIDTH_WHAT : turns_least(WIDTH_WHAT, columns - fixed);
  int used = WIDTH_TURN + 1;
  buf_printf(&b, "%s%*ld%s ", cli_paint(look->colours, COLOUR_DIM), WIDTH_TURN, line->turn, plain);
  buf_puts(&b, cli_paint(look->colours, COLOUR_BOLD));
  int indent = line->is_child ? WIDTH_INDENT : 0;
  buf_printf(&b, "%*s", indent, "");
  used += 1 + indent + cli_cell(&b, buf_view(&line->movement), name - indent, name_max - indent);
  buf_printf(&b, "%s ", plain);
  if (what >= 0) { /* else too narrow: where it led matters more */
    used += cli_cell(&b, buf_view(&line->provider), WIDTH_PROVIDER, wide ? 16 : WIDTH_PROVIDER);
    if (what > 4) {
      buf_putc(&b, ' ');
      used += 1 + cli_cell(&b, buf_view(&line->what), what, wide ? WIDTH_WHAT_MAX : what);
    }
    buf_putc(&b, ' ');
    used++;
  }
  buf_printf(&b, "> %s", cli_paint(look->colours, COLOUR_CYAN));
  used += 2 + cli_cell(&b, buf_view(&line->leads_to), name, name_max);
  struct str method = judge_stage_words(buf_view(&line->method));
  buf_printf(&b, "%s %s", plain, cli_paint(look->colours, method_colour(buf_view(&line->method))));
  bool beside = line->why.n > 0 && columns - used - 1 - WIDTH_METHOD - 2 - spent >= WIDTH_WHY_MIN;
  used += 1 + cli_cell(&b, method, beside ? WIDTH_METHOD : 0, WIDTH_METHOD);
  buf_puts(&b, plain);
  print_rest(&b, line, look, used, beside);
  fprintf(out, "%s\n", b.p);
  fflush(out);
}

void turns_print_next(FILE *out, const struct turn_lines *s, const struct turn_line *line,
                      const struct turns_look *look) {
  for (struct turn_line *group = s->open; group != NULL && line->group > 0; group = group->next) {
    if (group->turn != line->group || group->headed)
      continue;
    buf_auto_t name = {0};
    group->headed = true;
    (void)cli_fit(&name, buf_view(&group->movement), look->columns - WIDTH_TURN - 2);
    fprintf(out, "%s%*ld%s %s%s%s:\n", cli_paint(look->colours, COLOUR_DIM), WIDTH_TURN,
            group->turn, cli_paint(look->colours, COLOUR_NONE),
            cli_paint(look->colours, COLOUR_BOLD), buf_c(&name),
            cli_paint(look->colours, COLOUR_NONE));
  }
  turns_print(out, line, look);
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
    {"needs_input", "NEEDS INPUT", STATUS_NEEDS_INPUT, COLOUR_MAGENTA},
    {"stopped", "STOPPED", STATUS_FAILED, COLOUR_YELLOW},
    {"running", "OPEN", STATUS_FAILED, COLOUR_YELLOW},
};

static size_t status_index(const struct turn_lines *s) {
  size_t i = 0;
  while (i + 1 < ARRAY_LEN(statuses) && strcmp(statuses[i].status, s->status) != 0)
    i++;
  return i;
}

int turns_status(const struct turn_lines *s) {
  return statuses[status_index(s)].exit;
}

void turns_print_end(FILE *out, const struct turn_lines *s, const char *path,
                     const struct turns_look *look) {
  assert(path != NULL);
  const bool colours = look->colours;
  const int columns = look->columns;
  buf_auto_t b = {0}, methods = {0};
  size_t i = status_index(s);
  json_auto_t *spent = turn_lines_spent(s);
  turn_lines_methods(s, &methods);
  buf_auto_t used_up = {0};
  spend_print(spent, &used_up);
  if (s->turns > 0) {
    buf_puts(&methods, methods.n > 0 ? "  " : "");
    view_put_time(&methods, turn_lines_duration(s));
  }
  if (methods.n > 0 && used_up.n > 0)
    buf_puts(&methods, "  ");
  buf_str(&methods, buf_view(&used_up));
  buf_printf(&b, "%s%s%s  %ld turn%s", cli_paint(colours, statuses[i].colour), statuses[i].shown,
             cli_paint(colours, COLOUR_NONE), s->turns, PLURAL(s->turns));
  buf_printf(&b, "%s%s", s->basis[0] ? "  " : "", s->basis);
  buf_puts(&b, methods.n > 0 ? "  " : "");
  buf_safe(&b, buf_view(&methods), false);
  int used = (int)(strlen(statuses[i].shown) + methods.n + strlen(path)) + 16;
  if (path[0]) /* whole, so that it can be copied; on a line of its own where there is no room */
    buf_puts(&b, used > columns ? "\n  " : "  ");
  buf_safe(&b, str_from(path), false);
  fprintf(out, "%s\n", b.p);
  json_t *said;
  json_array_foreach(s->said, i, said) {
    buf_clear(&used_up);
    turn_lines_put_said(said, &used_up);
    buf_clear(&b);
    buf_safe(&b, buf_view(&used_up), false);
    fprintf(out, "  %s\n", b.p);
  }
  if (s->message.n > 0) {
    buf_clear(&b);
    buf_safe(&b, buf_view(&s->stop_class), false);
    buf_puts(&b, b.n > 0 ? ": " : "");
    (void)cli_fit(&b, buf_view(&s->message), columns > 200 ? 2000 : columns * 3);
    fprintf(out, "  %s\n", b.p);
  }
}

/* Appends the live line of a turn on a terminal: spinner, movement, what runs, tool, tokens, how
 * long, and how long ago it was heard. No newline. now_ms: real time. */
static void turns_live(struct buf *out, const struct turn_line *line, unsigned tick, int64_t now_ms,
                       const struct turns_look *look) {
  assert(look->columns >= LIMIT_TERM_MIN_COLUMNS);
  static const char *const frames[] = {"|", "/", "-", "\\"};
  const struct spend *s = &line->spends.all;
  int64_t tokens = s->input + s->output + line->told_tokens, silent_ms = now_ms - line->heard_ms;
  buf_auto_t tail = {0}, text = {0};
  buf_puts(&tail, "  ");
  view_put_time(&tail, now_ms > line->started_ms ? now_ms - line->started_ms : 0);
  if (tokens > 0)
    buf_printf(&tail, "  %lld tokens", (long long)tokens);
  if (silent_ms >= LIMIT_LIVE_SILENT_MS && !line->away) {
    buf_puts(&tail, "  silent for ");
    view_put_time(&tail, silent_ms);
  }
  buf_str(&text, buf_view(&line->now));
  if (line->away && look->own)
    buf_puts(&text, LOOK_HOW_TO_LEAVE);
  if (line->tool.n > 0)
    buf_printf(&text, "%s%s", text.n > 0 ? "  " : "", buf_c(&line->tool));
  const int name = names_width(look);
  int used = WIDTH_TURN + 3 + name + 1;
  buf_printf(out, "%s%*ld%s %s%s%s ", cli_paint(look->colours, COLOUR_DIM), WIDTH_TURN, line->turn,
             cli_paint(look->colours, COLOUR_NONE), cli_paint(look->colours, COLOUR_CYAN),
             frames[tick % 4], cli_paint(look->colours, COLOUR_NONE));
  (void)cli_cell(out, buf_view(&line->movement), name, name);
  buf_putc(out, ' ');
  int rest = look->columns - used - (int)tail.n - 1;
  if (rest > 0)
    (void)cli_fit(out, buf_view(&text), rest);
  rest = look->columns - used - 1;
  (void)cli_fit(out, buf_view(&tail), rest);
}

/* --- the live part --- */

void live_init(struct live *live, const struct turns_look *look, bool verbose) {
  const char *term = getenv("TERM");
  *live = (struct live){.look = look, .verbose = verbose};
  live->on = look->terminal && term != NULL && strcmp(term, "dumb") != 0;
}

void live_deinit(struct live *live) {
  buf_deinit(&live->words);
}

static void live_erase(struct live *live, struct buf *out) {
  if (live->rows > 1)
    buf_printf(out, "\033[%dA", live->rows - 1);
  if (live->rows > 0)
    buf_puts(out, "\r\033[J");
  live->rows = 0;
}

static void live_flush(struct buf *out) {
  if (out->n > 0)
    (void)fwrite(out->p, 1, out->n, stdout);
  (void)fflush(stdout);
  buf_deinit(out);
}

void live_clear(struct live *live) {
  struct buf out = {0};
  live_erase(live, &out);
  if (out.n > 0)
    live_flush(&out);
}

static void live_put_words(const struct live *live, struct buf *out, struct str text) {
  buf_printf(out, "    %s", cli_paint(live->look->colours, COLOUR_DIM));
  (void)cli_fit(out, text, live->look->columns - 5);
  buf_puts(out, cli_paint(live->look->colours, COLOUR_NONE));
}

/* Puts the open turns, oldest first. */
static void live_put_turns(struct live *live, struct buf *out, const struct turn_line *line,
                           unsigned left) {
  if (line == NULL || left == 0)
    return;
  live_put_turns(live, out, line->next, left - 1);
  if (live->rows++ > 0)
    buf_putc(out, '\n');
  turns_live(out, line, live->tick, clock_real_ms(), live->look);
}

void live_draw(struct live *live, const struct turn_lines *s) {
  struct buf out = {0};
  if (!live->on || (s->open == NULL && live->rows == 0))
    return;
  live_erase(live, &out);
  live->tick++;
  if (live->words.n > 0 && s->open != NULL) {
    live_put_words(live, &out, buf_view(&live->words));
    live->rows++;
  }
  live_put_turns(live, &out, s->open, LIMIT_LIVE_LINES);
  live_flush(&out);
}

/* Returns how much of a text fits on a line: up to its last blank, if it has one. */
static size_t live_fitting(const struct live *live, struct str text) {
  size_t most = (size_t)(live->look->columns - 6), at = most;
  if (text.n <= most)
    return text.n;
  while (at > most / 2 && text.p[at] != ' ')
    at--;
  at = text.p[at] == ' ' ? at + 1 : utf8_floor(text.p, most);
  return at > 0 ? at : most;
}

static void live_print_line(struct live *live, struct buf *out, struct str line) {
  while (line.n > 0) {
    size_t n = live_fitting(live, line);
    live_put_words(live, out, (struct str){line.p, n});
    buf_putc(out, '\n');
    line = (struct str){line.p + n, line.n - n};
  }
}

void live_text_over(struct live *live) {
  struct buf out = {0};
  if (live->words.n == 0)
    return;
  live_erase(live, &out);
  live_print_line(live, &out, str_trim(buf_view(&live->words)));
  live_flush(&out);
  buf_deinit(&live->words);
}

void live_text(struct live *live, long call, struct str text) {
  struct buf out = {0};
  if (!live->on || !live->verbose)
    return;
  if (live->call != call)
    live_text_over(live);
  live->call = call;
  buf_str(&live->words, text);
  struct str rest = buf_view(&live->words);
  bool longer = rest.n > LIMIT_LIVE_TEXT_BYTES || (int)rest.n > live->look->columns * 2;
  const char *end = rest.n > 0 ? memrchr(rest.p, '\n', rest.n) : NULL;
  if (end == NULL && !longer)
    return;
  size_t whole = end != NULL ? (size_t)(end - rest.p) + 1 : live_fitting(live, rest);
  live_erase(live, &out);
  for (struct str lines = {rest.p, whole}; lines.p != NULL && lines.n > 0;)
    live_print_line(live, &out, str_next_line(&lines));
  live_flush(&out);
  memmove(live->words.p, live->words.p + whole, live->words.n - whole);
  live->words.n -= whole;
  live->words.p[live->words.n] = '\0';
}
