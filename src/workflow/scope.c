/* Replaces the names in a file's texts by what they mean where it is called. */
#include "workflow/scope.h"

#include "base/limits.h"

#include <assert.h>
#include <string.h>

static const char *const no_params[] = {NULL};
static const struct template_var no_values[] = {{{NULL, 0}, {NULL, 0}}};
const struct name_scope scope_none = {{"", 0}, no_params, no_values, no_values, false};

struct names_check {
  const struct name_scope *scope;
  struct err *err;
  bool ok;
};

bool scope_is_param(struct str s) {
  return s.n > 0 && s.n <= 64 && str_span(s, "_-") == s.n;
}

static void check_param(void *ctx, struct str name) {
  struct names_check *check = ctx;
  struct str own = {name.p + strlen(PROMPT_INPUT), name.n - strlen(PROMPT_INPUT)};
  if (!check->ok || !scope_is_param(own) || str_is_one(own, check->scope->params))
    return;
  const char *near = str_nearest(own, check->scope->params);
  check->ok = err_set(check->err, ERR_INVALID,
                      "{input:" STR_FMT "} names no param of this file: %s%s%s", STR_ARG(own),
                      near ? "did you mean {input:" : "declare it below params:", near ? near : "",
                      near ? "}?" : "");
}

struct scope_sink {
  struct buf *out;
  struct str prefix; /* for movements in references; empty: none is looked for */
};

/* Puts one piece: the file's own words with their names prefixed, a value as it is. */
static void put_piece(void *ctx, struct str piece, const struct template_var *var) {
  static const char *const named[] = {PROMPT_STRUCTURED, PROMPT_RESPONSE, PROMPT_BRANCHES};
  const struct scope_sink *sink = ctx;
  while (var == NULL && sink->prefix.n > 0 && piece.n > 0) {
    const char *brace = memchr(piece.p, '{', piece.n);
    if (brace == NULL)
      break;
    size_t n = (size_t)(brace - piece.p) + 1;
    n += n < piece.n && strchr("?!/", piece.p[n]) != NULL;
    struct str rest = {piece.p + n, piece.n - n};
    buf_append(sink->out, piece.p, n);
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
      if (!str_starts(rest, named[i]))
        continue;
      buf_puts(sink->out, named[i]);
      buf_str(sink->out, sink->prefix);
      rest = (struct str){rest.p + strlen(named[i]), rest.n - strlen(named[i])};
      break;
    }
    piece = rest;
  }
  buf_str(sink->out, piece);
}

bool scope_text(const struct name_scope *scope, enum scope_place place, struct str text,
                struct buf *out, struct err *err) {
  assert(place <= SCOPE_INSTRUCTION);
  if (scope == NULL) {
    buf_str(out, text);
    return true;
  }
  struct names_check check = {scope, err, true};
  template_names(text, PROMPT_INPUT, check_param, &check);
  if (!check.ok)
    return false;
  struct scope_sink sink = {out, place == SCOPE_TEXT ? STR("") : scope->prefix};
  if (scope->outside && place == SCOPE_INSTRUCTION)
    put_piece(&sink, text, NULL);
  else
    template_render(text, place == SCOPE_INSTRUCTION ? scope->templates : scope->texts, put_piece,
                    &sink);
  return true;
}

/* --- conditions --- */

/* Returns where the expression of when(...) begins, or the end. Labels in quotes are skipped, as
 * they stand in all(...) and any(...). */
static size_t when_start(struct str s) {
  bool quoted = false, quotes = str_starts(s, "all(") || str_starts(s, "any(");
  for (size_t i = 0; i < s.n; i++) {
    if (quoted && s.p[i] == '\\')
      i++;
    else if (quotes && s.p[i] == '"')
      quoted = !quoted;
    else if (!quoted && str_starts((struct str){s.p + i, s.n - i}, "when("))
      return i + strlen("when(");
  }
  return s.n;
}

/* Returns the length of a reference's root at `i`, with the dot or bracket after it; 0 if there is
 * none. */
static size_t root_at(struct str s, size_t i) {
  static const char *const roots[] = {"structured", "checks"};
  if (i > 0 && str_span((struct str){s.p + i - 1, 1}, "_-.") > 0)
    return 0;
  for (size_t k = 0; k < ARRAY_LEN(roots); k++) {
    size_t n = strlen(roots[k]);
    if (i + n < s.n && memcmp(s.p + i, roots[k], n) == 0 &&
        (s.p[i + n] == '.' || (s.p[i + n] == '[' && i + n + 1 < s.n && s.p[i + n + 1] == '"')))
      return n;
  }
  return 0;
}

/* Puts a reference's movement with the prefix: .NAME becomes ["PREFIXNAME"]. Returns the bytes
 * read. */
static size_t scope_put_movement(struct str s, struct str prefix, struct buf *out) {
  size_t n = str_span((struct str){s.p + 1, s.n - 1}, "_-");
  buf_puts(out, "[\"");
  buf_str(out, prefix);
  if (s.p[0] == '[')
    return 2; /* the name follows as it is */
  buf_append(out, s.p + 1, n);
  buf_puts(out, "\"]");
  return n + 1;
}

static void put_expression(struct str s, struct str prefix, struct buf *out) {
  bool quoted = false;
  for (size_t i = 0; i < s.n; i++) {
    size_t n = quoted ? 0 : root_at(s, i);
    if (n > 0) {
      buf_append(out, s.p + i, n);
      struct str rest = {s.p + i + n, s.n - i - n};
      quoted = rest.p[0] == '['; /* within the quotes of the name */
      i += n + scope_put_movement(rest, prefix, out) - 1;
      continue;
    }
    buf_putc(out, s.p[i]);
    if (quoted && s.p[i] == '\\' && i + 1 < s.n)
      buf_putc(out, s.p[++i]);
    else if (s.p[i] == '"')
      quoted = !quoted;
  }
}

bool scope_condition(const struct name_scope *scope, struct arena *arena, struct str condition,
                     struct str *out, struct err *err) {
  buf_auto_t text = {0}, done = {0};
  *out = condition;
  if (scope == NULL)
    return true;
  if (scope->outside && str_has(condition, "{" PROMPT_INPUT))
    return err_set(
        err, ERR_INVALID,
        "a condition cannot contain {input:...}, which comes from outside: write the label");
  if (!scope_text(scope, SCOPE_TEXT, condition, &text, err))
    return false;
  struct str all = str_trim(buf_view(&text));
  size_t start = scope->prefix.n > 0 ? when_start(all) : all.n;
  buf_append(&done, all.p, start);
  put_expression((struct str){all.p + start, all.n - start}, scope->prefix, &done);
  *out = arena_str(arena, buf_view(&done));
  return true;
}

/* --- facets --- */

struct include {
  const struct facets *facets;
  enum facet_kind kind;
  struct str open[LIMIT_INCLUDE_DEPTH]; /* KIND/NAME of those being included */
  size_t depth, bytes;
  struct err *err;
};

#define INCLUDE_OPEN "{{include:"

static bool put_included(struct include *in, struct str text, struct buf *out);

static bool include_one(struct include *in, struct str path, struct buf *out) {
  buf_auto_t text = {0};
  const char *slash = memchr(path.p, '/', path.n);
  if (slash == NULL)
    return err_set(in->err, ERR_INVALID,
                   "{{include:" STR_FMT "}}: write a kind and a name, such as "
                   "{{include:policies/small-changes}}",
                   STR_ARG(path));
  for (size_t i = 0; i < in->depth; i++)
    if (str_eq(in->open[i], path))
      return err_set(in->err, ERR_INVALID,
                     "{{include:" STR_FMT "}} leads back to itself: remove one include",
                     STR_ARG(path));
  if (in->depth == LIMIT_INCLUDE_DEPTH)
    return err_set(in->err, ERR_LIMIT, "includes are nested deeper than %u at " STR_FMT,
                   LIMIT_INCLUDE_DEPTH, STR_ARG(path));
  struct str kind = {path.p, (size_t)(slash - path.p)}, name = {slash + 1, path.n - kind.n - 1};
  bool ok = facet_include(in->facets, in->kind, kind, name, &text, in->err);
  in->open[in->depth++] = path;
  ok = ok && put_included(in, buf_view(&text), out);
  in->depth--;
  return ok;
}

static bool put_included(struct include *in, struct str text, struct buf *out) {
  while (text.n > 0) {
    const char *open = memmem(text.p, text.n, INCLUDE_OPEN, strlen(INCLUDE_OPEN));
    size_t n = open ? (size_t)(open - text.p) : text.n;
    buf_append(out, text.p, n);
    in->bytes += n;
    if (in->bytes > LIMIT_TASK_BYTES)
      return err_set(in->err, ERR_LIMIT, "a facet with its includes is larger than %u bytes",
                     LIMIT_TASK_BYTES);
    if (open == NULL)
      return true;
    struct str rest = {open + strlen(INCLUDE_OPEN), text.n - n - strlen(INCLUDE_OPEN)};
    const char *close =
        memmem(rest.p, rest.n < LIMIT_NAME_BYTES * 2 ? rest.n : LIMIT_NAME_BYTES * 2, LIT("}}"));
    if (close == NULL)
      return err_set(in->err, ERR_INVALID, "{{include: has no }} after it: add it");
    struct str path = str_trim((struct str){rest.p, (size_t)(close - rest.p)});
    if (!include_one(in, path, out))
      return false;
    text = (struct str){close + 2, rest.n - (size_t)(close - rest.p) - 2};
  }
  return true;
}

/* Returns the value of a text that is exactly one {input:NAME}, or NULL. */
static const struct template_var *whole_param(const struct template_var *vars, struct str text) {
  text = str_trim(text);
  if (text.n < 3 || text.p[0] != '{' || text.p[text.n - 1] != '}')
    return NULL;
  struct str name = {text.p + 1, text.n - 2};
  for (; vars->name.n > 0; vars++)
    if (str_eq(vars->name, name))
      return vars;
  return NULL;
}

bool scope_facet(const struct name_scope *scope, const struct facets *facets, enum facet_kind kind,
                 struct str value, struct buf *out, struct err *err) {
  buf_auto_t found = {0}, whole = {0};
  bool is_template = kind == FACET_INSTRUCTION || kind == FACET_OUTPUT_CONTRACT;
  enum scope_place place = is_template ? SCOPE_INSTRUCTION : SCOPE_TEXT;
  const struct template_var *text = NULL, *filled = NULL;
  if (scope != NULL && !(scope->outside && place == SCOPE_INSTRUCTION)) {
    text = whole_param(scope->texts, value);
    filled = whole_param(place == SCOPE_INSTRUCTION ? scope->templates : scope->texts, value);
  }
  if (text != NULL && !str_eq(text->value, filled->value)) { /* it holds text from outside */
    buf_str(out, filled->value);
    return true;
  }
  struct include in = {.facets = facets, .kind = kind, .err = err};
  bool ok = facet_resolve(facets, kind, text ? text->value : value, &found, err);
  if (ok && text != NULL && str_starts(text->value, buf_c(&found)))
    buf_str(out, buf_view(&found)); /* the caller's own words */
  else
    ok = ok && put_included(&in, buf_view(&found), &whole) &&
         scope_text(scope, place, buf_view(&whole), out, err);
  return ok;
}
