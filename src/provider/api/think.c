/* Splits a block of thinking off the head of a text. */
#include "provider/api/think.h"

#include "base/err.h"

#include <string.h>

static const char *const opens[] = {"<think>", "<thinking>"};
static const char *const closes[] = {"</think>", "</thinking>"};

static bool think_is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

enum fit { FIT_NO, FIT_PARTLY, FIT_WHOLE };

/* Returns whether `s` is a tag of the list, or the beginning of one. */
static enum fit think_fits(const char *const tags[2], const char *s, size_t n) {
  for (size_t i = 0; i < 2; i++)
    if (n <= strlen(tags[i]) && memcmp(s, tags[i], n) == 0)
      return n == strlen(tags[i]) ? FIT_WHOLE : FIT_PARTLY;
  return FIT_NO;
}

static void give_held(struct think *t, bool thinking, think_fn out, void *ctx) {
  if (t->held_n > 0)
    out(ctx, thinking, (struct str){t->held, t->held_n});
  t->held_n = 0;
}

/* Takes one byte while nothing is known yet. Returns false if it is plain text from `held` on. */
static void at_start(struct think *t, char c, think_fn out, void *ctx) {
  size_t spaces = 0;
  t->held[t->held_n++] = c;
  while (spaces < t->held_n && think_is_space(t->held[spaces]))
    spaces++;
  enum fit fit =
      spaces == t->held_n ? FIT_PARTLY : think_fits(opens, t->held + spaces, t->held_n - spaces);
  if (fit == FIT_WHOLE) {
    t->state = THINK_INSIDE;
    t->held_n = 0;
  } else if (fit == FIT_NO || t->held_n == sizeof t->held) {
    t->state = THINK_OUTSIDE;
    give_held(t, false, out, ctx);
  }
}

/* Takes the thinking at the head of `piece`; returns how much that was. */
static size_t think_inside(struct think *t, struct str piece, think_fn out, void *ctx) {
  size_t i = 0, from = 0;
  while (i < piece.n && t->state == THINK_INSIDE) {
    if (t->held_n == 0) {
      const char *lt = memchr(piece.p + i, '<', piece.n - i);
      size_t to = lt ? (size_t)(lt - piece.p) : piece.n;
      i = to;
      if (to > from)
        out(ctx, true, (struct str){piece.p + from, to - from});
      from = to;
      if (lt == NULL)
        break;
    }
    t->held[t->held_n++] = piece.p[i++];
    from = i;
    switch (think_fits(closes, t->held, t->held_n)) {
    case FIT_WHOLE:
      t->held_n = 0;
      t->state = THINK_AFTER;
      break;
    case FIT_PARTLY:
      break;
    case FIT_NO: /* the last byte may itself open a tag */
      t->held_n--;
      give_held(t, true, out, ctx);
      from = --i;
      if (piece.p[i] != '<') {
        out(ctx, true, (struct str){piece.p + i, 1});
        from = ++i;
      }
      break;
    }
  }
  return i;
}

void think_push(struct think *t, struct str piece, think_fn out, void *ctx) {
  size_t i = 0;
  while (i < piece.n) {
    switch (t->state) {
    case THINK_START:
      at_start(t, piece.p[i++], out, ctx);
      break;
    case THINK_INSIDE:
      i += think_inside(t, (struct str){piece.p + i, piece.n - i}, out, ctx);
      break;
    case THINK_AFTER:
      if (think_is_space(piece.p[i]))
        i++;
      else
        t->state = THINK_OUTSIDE;
      break;
    case THINK_OUTSIDE:
      out(ctx, false, (struct str){piece.p + i, piece.n - i});
      return;
    }
  }
}

void think_flush(struct think *t, think_fn out, void *ctx) {
  give_held(t, t->state == THINK_INSIDE, out, ctx);
}

size_t think_bare_end(struct str text) {
  for (size_t k = 0; k < ARRAY_LEN(closes); k++) {
    const char *end = text.n ? memmem(text.p, text.n, closes[k], strlen(closes[k])) : NULL;
    if (end == NULL)
      continue;
    size_t at = (size_t)(end - text.p);
    if (memmem(text.p, at, opens[k], strlen(opens[k])) != NULL)
      return 0;
    at += strlen(closes[k]);
    while (at < text.n && think_is_space(text.p[at]))
      at++;
    return at;
  }
  return 0;
}
