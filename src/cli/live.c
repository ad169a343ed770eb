/* Draws what is running below what is finished. */
#include "cli/live.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  buf_deinit(&out);
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

void live_draw(struct live *live, const struct summary *s) {
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
