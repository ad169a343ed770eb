/* Fills the names and sections of a template; what is put in is never read again. */
#include "format/template.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_DEPTH = 16, NAME_BYTES = 512 }; /* the longest names are paths of values */

enum kind { KIND_VALUE, KIND_IF, KIND_UNLESS, KIND_END };

struct mark {
  size_t at, length; /* of its braces, in bytes */
  uint32_t var;      /* its place among the variables */
  enum kind kind;
  bool closed; /* an opening mark: its section is closed */
};

struct template {
  struct str text;
  struct mark *items;
  size_t count, room;
};

static bool has_name(const struct template_var *var, struct str name) {
  return var->name.n == name.n && var->name.p[0] == name.p[0] &&
         memcmp(var->name.p, name.p, name.n) == 0;
}

/* Marks come in threes, and in the order of the variables more often than not: from `near` on. */
static const struct template_var *find_var(const struct template_var *vars,
                                           const struct template_var *near, struct str name) {
  for (const struct template_var *var = near; var->name.n > 0; var++)
    if (has_name(var, name))
      return var;
  for (const struct template_var *var = vars; var != near; var++)
    if (has_name(var, name))
      return var;
  return NULL;
}

/* Reads the mark at p, which is '{'; the variable before it was `near`. Returns false if it is
 * text. */
static bool read_mark(const char *p, size_t n, const struct template_var *vars, uint32_t near,
                      struct mark *mark) {
  size_t at = 1;
  mark->kind = KIND_VALUE;
  if (n > 1 && p[1] == '?')
    mark->kind = KIND_IF;
  else if (n > 1 && p[1] == '!')
    mark->kind = KIND_UNLESS;
  else if (n > 1 && p[1] == '/')
    mark->kind = KIND_END;
  if (mark->kind != KIND_VALUE)
    at = 2;
  const char *close = NULL;
  if (n > at)
    close = memchr(p + at, '}', n - at < NAME_BYTES ? n - at : NAME_BYTES);
  if (close == NULL || close == p + at)
    return false;
  const struct template_var *var =
      find_var(vars, vars + near, (struct str){p + at, (size_t)(close - p) - at});
  if (var == NULL)
    return false;
  mark->var = (uint32_t)(var - vars);
  mark->length = (size_t)(close - p) + 1;
  return true;
}

static bool opens(const struct mark *mark) {
  return mark->kind == KIND_IF || mark->kind == KIND_UNLESS;
}

/* Marks can begin within what looked like one: the search goes on behind the brace. */
static void find_marks(struct template *t, const struct template_var *vars) {
  const char *end = t->text.p + t->text.n, *brace = t->text.p;
  uint32_t near = 0;
  for (; brace < end && (brace = memchr(brace, '{', (size_t)(end - brace))) != NULL; brace++) {
    struct mark mark = {.at = (size_t)(brace - t->text.p)};
    if (!read_mark(brace, (size_t)(end - brace), vars, near, &mark))
      continue;
    near = mark.var;
    t->items = xgrow(t->items, &t->room, t->count + 1, sizeof *t->items);
    t->items[t->count++] = mark;
  }
}

/* Finds out which sections are closed, from the end: an opening mark takes the nearest closing one
 * of its variable that is still free. */
static void match_sections(struct template *t, const struct template_var *vars) {
  size_t count = 0, few[32] = {0}, *closers = few;
  while (vars[count].name.n > 0)
    count++;
  if (count > ARRAY_LEN(few))
    closers = xcalloc(count, sizeof *closers);
  for (size_t i = t->count; i > 0; i--) {
    struct mark *mark = &t->items[i - 1];
    size_t *free_closers = &closers[mark->var];
    if (mark->kind == KIND_END) {
      ++*free_closers;
    } else if (opens(mark) && *free_closers > 0) {
      --*free_closers;
      mark->closed = true;
    }
  }
  if (closers != few)
    free(closers);
}

struct template *template_parse(struct str text, const struct template_var *vars) {
  struct template *t = xcalloc(1, sizeof *t);
  t->text = text;
  find_marks(t, vars);
  match_sections(t, vars);
  return t;
}

void template_free(struct template *t) {
  if (t != NULL)
    free(t->items);
  free(t);
}

void template_put(const struct template *t, const struct template_var *vars, template_piece_fn fn,
                  void *ctx) {
  assert(t != NULL && fn != NULL);
  const struct template_var *open[TEMPLATE_DEPTH];
  struct str text = t->text;
  bool shown[TEMPLATE_DEPTH];
  size_t depth = 0, hidden = 0, start = 0;
  for (size_t i = 0; i < t->count; i++) {
    const struct mark *mark = &t->items[i];
    const struct template_var *var = &vars[mark->var];
    if (mark->at < start || (opens(mark) && (depth == TEMPLATE_DEPTH || !mark->closed)))
      continue;
    size_t keep = depth; /* a closer ends what was opened inside it too */
    while (mark->kind == KIND_END && keep > 0 && open[keep - 1] != var)
      keep--;
    if (mark->kind == KIND_END && keep == 0)
      continue;
    if (hidden == 0 && mark->at > start)
      fn(ctx, (struct str){text.p + start, mark->at - start}, NULL);
    if (mark->kind == KIND_VALUE) {
      if (hidden == 0 && var->value.n > 0)
        fn(ctx, var->value, var);
    } else if (mark->kind == KIND_END) {
      while (depth >= keep)
        hidden -= !shown[--depth];
    } else {
      shown[depth] = (mark->kind == KIND_IF) == (var->value.n > 0);
      open[depth] = var;
      hidden += !shown[depth];
      depth++;
    }
    start = mark->at + mark->length;
  }
  if (hidden == 0 && text.n > start)
    fn(ctx, (struct str){text.p + start, text.n - start}, NULL);
}

void template_render(struct str text, const struct template_var *vars, template_piece_fn fn,
                     void *ctx) {
  struct template *t = template_parse(text, vars);
  template_put(t, vars, fn, ctx);
  template_free(t);
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
