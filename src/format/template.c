#include "format/template.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_DEPTH = 16, NAME_BYTES = 512 }; /* the longest names are paths of values */

enum mark { MARK_NONE, MARK_VALUE, MARK_IF, MARK_UNLESS, MARK_END };

/* The mark at p, which is '{': its kind, its length in bytes and its variable. */
static enum mark read_mark(const char *p, size_t n, const struct template_var *vars, size_t *length,
                           const struct template_var **var) {
  enum mark mark = MARK_VALUE;
  size_t at = 1;
  if (n > 1 && (p[1] == '?' || p[1] == '!' || p[1] == '/')) {
    mark = p[1] == '?' ? MARK_IF : p[1] == '!' ? MARK_UNLESS : MARK_END;
    at = 2;
  }
  const char *close =
      n > at ? memchr(p + at, '}', n - at < NAME_BYTES ? n - at : NAME_BYTES) : NULL;
  if (close == NULL)
    return MARK_NONE;
  struct str name = {p + at, (size_t)(close - p) - at};
  if (name.n == 0)
    return MARK_NONE;
  for (; vars->name; vars++)
    if (vars->name[0] == name.p[0] && str_eq_c(name, vars->name)) {
      *length = (size_t)(close - p) + 1;
      *var = vars;
      return mark;
    }
  return MARK_NONE;
}

static bool opens(enum mark mark) {
  return mark == MARK_IF || mark == MARK_UNLESS;
}

/* Which sections are closed, a bit a byte of the text, set where the opening mark begins. Read from
 * the end: an opening mark takes the nearest closing one of its variable that is still free. */
static unsigned char *closed_sections(struct str text, const struct template_var *vars) {
  unsigned char *closed = xcalloc(text.n / 8 + 1, 1);
  size_t count = 0;
  while (vars[count].name)
    count++;
  size_t *closers = xcalloc(count, sizeof *closers);
  const char *brace;
  for (size_t i = text.n; i > 0 && (brace = memrchr(text.p, '{', i)) != NULL;) {
    size_t length;
    const struct template_var *var;
    i = (size_t)(brace - text.p);
    enum mark mark = read_mark(brace, text.n - i, vars, &length, &var);
    if (mark == MARK_END) {
      closers[var - vars]++;
    } else if (opens(mark) && closers[var - vars] > 0) {
      closers[var - vars]--;
      closed[i / 8] |= (unsigned char)(1u << i % 8);
    }
  }
  free(closers);
  return closed;
}

void template_render(struct str text, const struct template_var *vars, template_piece_fn fn,
                     void *ctx) {
  const struct template_var *open[TEMPLATE_DEPTH];
  bool shown[TEMPLATE_DEPTH];
  size_t depth = 0, hidden = 0, start = 0, i = 0;
  unsigned char *closed = NULL; /* until the first section */
  while (i < text.n) {
    size_t length = 0;
    const struct template_var *var = NULL;
    const char *brace = memchr(text.p + i, '{', text.n - i);
    if (brace == NULL)
      break;
    i = (size_t)(brace - text.p);
    enum mark mark = read_mark(brace, text.n - i, vars, &length, &var);
    if (opens(mark) && closed == NULL)
      closed = closed_sections(text, vars);
    if (opens(mark) && (depth == TEMPLATE_DEPTH || !(closed[i / 8] >> i % 8 & 1)))
      mark = MARK_NONE;
    size_t keep = depth; /* a closer ends what was opened inside it too */
    while (mark == MARK_END && keep > 0 && open[keep - 1] != var)
      keep--;
    if (mark == MARK_END && keep == 0)
      mark = MARK_NONE;
    if (mark == MARK_NONE) {
      i++;
      continue;
    }
    if (hidden == 0 && i > start)
      fn(ctx, (struct str){text.p + start, i - start}, NULL);
    if (mark == MARK_VALUE) {
      if (hidden == 0 && var->value.n > 0)
        fn(ctx, var->value, var);
    } else if (mark == MARK_END) {
      while (depth >= keep)
        hidden -= !shown[--depth];
    } else {
      shown[depth] = (mark == MARK_IF) == (var->value.n > 0);
      open[depth] = var;
      hidden += !shown[depth];
      depth++;
    }
    i += length;
    start = i;
  }
  if (hidden == 0 && text.n > start)
    fn(ctx, (struct str){text.p + start, text.n - start}, NULL);
  free(closed);
}

void template_names(struct str text, const char *prefix, void (*fn)(void *ctx, struct str name),
                    void *ctx) {
  size_t length = strlen(prefix);
  const char *end = text.p + text.n, *at = text.p;
  while (at < end && (at = memchr(at, '{', (size_t)(end - at))) != NULL) {
    at++;
    const char *name = at < end && (*at == '?' || *at == '!' || *at == '/') ? at + 1 : at;
    size_t left = (size_t)(end - name);
    if (left < length || memcmp(name, prefix, length) != 0)
      continue;
    const char *close = memchr(name, '}', left < NAME_BYTES ? left : NAME_BYTES);
    if (close != NULL)
      fn(ctx, (struct str){name, (size_t)(close - name)});
  }
}

bool template_uses(struct str text, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i + n + 2 <= text.n; i++)
    if (text.p[i] == '{' && text.p[i + n + 1] == '}' && memcmp(text.p + i + 1, name, n) == 0)
      return true;
  return false;
}
