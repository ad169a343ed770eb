/* Reads a rule's condition: a label, when(...), or both. */
#include "judge/rule.h"

#include "base/limits.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* --- all and any --- */

/* All("X"), any("X"): a rule of a movement with children about their verdicts.
 *
 *   all("X")        every child's label is X, and there is one
 *   all("X", "Y")   as many children as labels, the first X, the second Y
 *   any("X", "Y")   some child's label is one of them
 * A label may be quoted, with \" and \\, or bare. `error` is a child that failed, `none` a child
 * without a verdict. The rule becomes an expression over `parts`, so that the evaluator of when()
 * handles it too. The forms are those of takt 0.39.0. */

struct argument_reader {
  struct arena *arena;
  const char *start, *at, *end; /* the text between the parentheses */
  const char *name;
  struct all_any *out;
  struct err *err;
};

static bool all_any_fail(struct argument_reader *r, const char *what) {
  return err_set(r->err, ERR_INVALID, "%s(...) %s", r->name, what);
}

static void skip_spaces(struct argument_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
    r->at++;
}

static bool read_quoted(struct argument_reader *r, struct buf *label) {
  r->at++;
  while (r->at < r->end && *r->at != '"') {
    if (*r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '"' || r->at[1] == '\\'))
      r->at++;
    buf_putc(label, *r->at++);
  }
  if (r->at == r->end)
    return all_any_fail(r, "has a quote that stays open: close it");
  r->at++;
  return true;
}

/* Reads one label and the comma behind it. */
static bool read_argument(struct argument_reader *r) {
  struct buf label = {0};
  bool ok = true;
  if (r->out->count == LIMIT_GROUP_COUNT)
    return all_any_fail(r, "has too many labels");
  if (r->at < r->end && *r->at == '"') {
    ok = read_quoted(r, &label);
  } else {
    const char *from = r->at;
    while (r->at < r->end && *r->at != ',')
      r->at++;
    buf_str(&label, str_trim((struct str){from, (size_t)(r->at - from)}));
  }
  struct str text = str_trim(buf_view(&label));
  if (ok && text.n == 0)
    ok = all_any_fail(r, "has an empty place: write a label there, or remove the comma");
  if (ok)
    r->out->labels[r->out->count++] = arena_str(r->arena, text);
  buf_deinit(&label);
  skip_spaces(r);
  if (ok && r->at < r->end && *r->at != ',')
    ok = all_any_fail(r, "has words behind a quoted label: write a comma between two labels");
  return ok;
}

/* Reads `text`, all(...) or any(...) from its first byte to its last. *error_offset: the byte where
 * it went wrong. Labels are in the arena. */
static bool all_any_parse(struct arena *arena, struct str text, struct all_any *out,
                          size_t *error_offset, struct err *err) {
  assert(text.n > strlen("all(") && (str_starts(text, "all(") || str_starts(text, "any(")));
  *out = (struct all_any){.all = text.p[1] == 'l'};
  out->labels = arena_array(arena, LIMIT_GROUP_COUNT, sizeof *out->labels);
  struct argument_reader r = {.arena = arena,
                              .start = text.p,
                              .at = text.p + strlen("all("),
                              .end = text.p + text.n - 1,
                              .name = out->all ? "all" : "any",
                              .out = out,
                              .err = err};
  bool ok = *r.end == ')' || all_any_fail(&r, "has no closing ): close it");
  while (ok) {
    skip_spaces(&r);
    ok = read_argument(&r);
    if (r.at == r.end)
      break;
    r.at++; /* the comma */
  }
  *error_offset = (size_t)(r.at - r.start);
  return ok;
}

static void put_literal(struct str label, struct buf *out) {
  buf_putc(out, '"');
  for (size_t i = 0; i < label.n; i++) {
    if (label.p[i] == '"' || label.p[i] == '\\')
      buf_putc(out, '\\');
    buf_putc(out, label.p[i]);
  }
  buf_putc(out, '"');
}

/* Appends the expression over parts[].label that is true if the aggregate holds. */
static void all_any_expression(const struct all_any *a, struct buf *out) {
  assert(a->count > 0);
  if (a->all && a->count == 1) {
    buf_puts(out, "parts.length > 0 && !exists(parts, item.label != ");
    put_literal(a->labels[0], out);
    buf_putc(out, ')');
    return;
  }
  if (a->all)
    buf_printf(out, "parts.length == %zu", a->count);
  for (size_t i = 0; i < a->count; i++) {
    if (a->all)
      buf_printf(out, " && parts[%zu].label == ", i);
    else
      buf_printf(out, "%sexists(parts, item.label == ", i > 0 ? " || " : "");
    put_literal(a->labels[i], out);
    buf_puts(out, a->all ? "" : ")");
  }
}

/* Lists the names that are never a label when a ( follows. */
static const char *const functions[] = {"when", "all", "any", "ai"};

/* Holds where a condition is read from, and where to say what is wrong with it. */
struct rule_reader {
  struct arena *arena;
  size_t *error_offset; /* or NULL */
  struct err *err;
};

PRINTF_LIKE(3, 4)
static bool rule_fail(const struct rule_reader *r, size_t at, const char *fmt, ...) {
  char text[sizeof r->err->text];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (r->error_offset)
    *r->error_offset = at;
  return err_set(r->err, ERR_INVALID, "%s", text);
}

/* Holds the result of a scan of the condition outside quotes and parentheses. */
struct rule_outline {
  size_t ands;      /* how many && at the top level */
  size_t first_and; /* offset of the first */
  size_t end_paren; /* offset of the ) that closes the first ( at offset open; 0 = none */
  bool unbalanced;  /* a quote or parenthesis stays open */
};

static struct rule_outline scan(struct str s) {
  struct rule_outline o = {0};
  size_t depth = 0;
  bool quoted = false, first_closed = false;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (quoted) {
      if (c == '\\')
        i++;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '(') {
      depth++;
    } else if (c == ')' && depth > 0) {
      if (--depth == 0 && !first_closed) {
        first_closed = true;
        o.end_paren = i;
      }
    } else if (c == '&' && depth == 0 && i + 1 < s.n && s.p[i + 1] == '&') {
      if (o.ands++ == 0)
        o.first_and = i;
      i++;
    }
  }
  o.unbalanced = quoted || depth > 0;
  return o;
}

static struct str part(struct str s, size_t from, size_t to) {
  return str_trim((struct str){s.p + from, to - from});
}

/* Returns the index in `functions` of the one that `s` begins with; -1 for a label. */
static int function_of(struct str s) {
  for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
    size_t n = strlen(functions[i]);
    if (str_starts(s, functions[i]) && s.n > n && s.p[n] == '(')
      return (int)i;
  }
  return -1;
}

static bool rule_check_label(const struct rule_reader *r, struct str label, size_t at) {
  if (label.n == 0)
    return rule_fail(r, at,
                     "no label stands before &&: write label && when(...), or when(...) alone");
  if (str_has_control(label))
    return rule_fail(r, at,
                     "a condition's label is one line without control characters: shorten it and "
                     "put the detail into appendix");
  struct str rest = label;
  if (str_starts(rest, "when")) {
    rest = str_trim((struct str){rest.p + 4, rest.n - 4});
    if (rest.n > 0 && rest.p[0] == '(')
      return rule_fail(r, at, "a space stands between when and (: write when(...)");
  } else if (label.n > 4 && strncasecmp(label.p, LIT("when(")) == 0)
    return rule_fail(r, at, "when is written in small letters: write when(...)");
  return true;
}

/* Refuses ai(...), which other dialects know, and says what to write instead. */
static bool refuse_ai(const struct rule_reader *r, size_t at) {
  return rule_fail(r, at,
                   "ai(...) is no form of a condition: write its text as the condition itself");
}

/* Parses `clause`, which is when(EXPR) from its first byte to its last. */
static bool parse_when(const struct rule_reader *r, struct str clause, size_t at,
                       struct rule *out) {
  struct rule_outline o = scan(clause);
  size_t open = strlen("when(");
  if (o.end_paren == 0 || o.unbalanced)
    return rule_fail(r, at, "when( has no closing ) or a quote in it stays open: close it");
  if (o.end_paren + 1 != clause.n)
    return rule_fail(
        r, at + o.end_paren + 1,
        "text follows when(...): only label && when(...) or when(...) alone is a condition");
  struct expr_error why;
  out->when_text = arena_str(r->arena, part(clause, open, o.end_paren));
  out->when = expr_parse(r->arena, clause.p + open, o.end_paren - open, EXPR_WHEN, &why);
  return out->when != NULL || rule_fail(r, at + open + why.offset, "%s", why.text);
}

/* Parses all(...) or any(...), alone or before && when(EXPR), as a when() rule over the
 * children. */
static bool parse_aggregate(const struct rule_reader *r, const struct rule_outline *o, size_t lead,
                            struct rule *out) {
  struct str text = out->condition, left = part(text, 0, o->ands > 0 ? o->first_and : text.n);
  struct str guard = STR("");
  struct all_any *aggregate = arena_array(r->arena, 1, sizeof *aggregate);
  size_t at = 0;
  struct expr_error why;
  struct buf expression = {0};
  if (o->unbalanced || o->end_paren + 1 != left.n)
    return rule_fail(r, lead,
                     "%.3s( has no closing ), or text follows it: write %.3s(\"X\"), or "
                     "%.3s(\"X\") && when(...)",
                     text.p, text.p, text.p);
  if (o->ands > 0) {
    struct str right = part(text, o->first_and + 2, text.n);
    size_t right_at = lead + (right.n > 0 ? (size_t)(right.p - text.p) : o->first_and + 2);
    if (o->ands > 1 || function_of(right) != 0)
      return rule_fail(r, right_at,
                       "after && stands one when(...): write %.3s(...) && when(A && B)", text.p);
    if (!parse_when(r, right, right_at, out))
      return false;
    guard = out->when_text;
  }
  if (!all_any_parse(r->arena, left, aggregate, &at, r->err)) {
    if (r->error_offset)
      *r->error_offset = lead + at;
    return false;
  }
  buf_putc(&expression, '(');
  all_any_expression(aggregate, &expression);
  buf_putc(&expression, ')');
  if (guard.n > 0)
    buf_printf(&expression, " && (" STR_FMT ")", STR_ARG(guard));
  struct str whole = arena_str(r->arena, buf_view(&expression));
  buf_deinit(&expression);
  out->kind = RULE_WHEN;
  out->aggregate = aggregate;
  out->when_text = text;
  out->when = expr_parse(r->arena, whole.p, whole.n, EXPR_WHEN, &why);
  return out->when != NULL || rule_fail(r, lead, "%s", why.text);
}

bool rule_parse(struct arena *arena, struct str condition, struct rule *out, size_t *error_offset,
                struct err *err) {
  const struct rule_reader reader = {arena, error_offset, err}, *r = &reader;
  struct str text = str_trim(condition);
  size_t lead = text.n > 0 ? (size_t)(text.p - condition.p) : 0;
  if (text.n == 0)
    return rule_fail(r, 0, "the condition is empty: write a label like approved, or when(...)");
  text = arena_str(arena, text);
  struct rule_outline o = scan(text);
  int function = function_of(text);
  out->condition = text;
  out->label = out->when_text = STR("");
  out->when = NULL;
  out->aggregate = NULL;
  if (function > 0 && strcmp(functions[function], "ai") != 0)
    return parse_aggregate(r, &o, lead, out);
  if (o.ands == 0) {
    if (o.unbalanced && function < 0 && memmem(text.p, text.n, LIT("&&")) != NULL)
      return rule_fail(r, lead, "a quote or parenthesis stays open before &&: close it");
    if (function > 0)
      return refuse_ai(r, lead);
    if (function == 0) {
      out->kind = RULE_WHEN;
      return parse_when(r, text, lead, out);
    }
    out->kind = RULE_LABEL;
    out->label = text;
    return rule_check_label(r, text, lead);
  }
  struct str left = part(text, 0, o.first_and), right = part(text, o.first_and + 2, text.n);
  size_t right_at = lead + (right.n > 0 ? (size_t)(right.p - text.p) : o.first_and + 2);
  if (function > 0)
    return refuse_ai(r, lead);
  if (function == 0)
    return rule_fail(r, lead,
                     "the label goes first and && joins it with one when(...): write label && "
                     "when(...), or when(A && B)");
  if (!rule_check_label(r, left, lead))
    return false;
  if (o.ands > 1 || function_of(right) != 0)
    return rule_fail(r, right_at,
                     "after && stands one when(...): write label && when(A && B), or the word "
                     "\"and\" inside a label");
  out->kind = RULE_LABEL_WHEN;
  out->label = arena_str(arena, left);
  return parse_when(r, right, right_at, out);
}

struct str rule_vote(const struct rule *rule) {
  return rule->label.n > 0 ? rule->label : rule->condition;
}

void rule_tag(struct str movement, int number, struct buf *out) {
  buf_putc(out, '[');
  for (size_t i = 0; i < movement.n; i++) {
    char c = movement.p[i];
    buf_putc(out, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
  }
  char digits[STR_NUMBER_BYTES];
  (void)str_from_number(digits, number);
  buf_putc(out, ':');
  buf_puts(out, digits);
  buf_putc(out, ']');
}
