/* Parses expressions, from words to operators. */
#include "expr/expr.h"

#include "base/utf8.h"
#include "expr/node.h"
#include "schema/pattern.h"
#include "json/scan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- words: names, numbers, texts; and what was found instead --- */

enum { NUMBER_DIGITS_MAX = 15, INTEGER_DIGITS_MAX = 18, EXCERPT_BYTES = 120 };

/* Sets the error and returns NULL. */
__attribute__((format(printf, 4, 5))) static void *
expr_fail(struct expr_parser *p, enum expr_code code, size_t at, const char *format, ...) {
  va_list args;
  p->error->code = code;
  p->error->offset = at < p->n ? at : p->n;
  va_start(args, format);
  (void)vsnprintf(p->error->text, sizeof p->error->text, format, args);
  va_end(args);
  return NULL;
}

static struct expr *expr_node(struct expr_parser *p, enum node_kind kind, size_t at) {
  if (++p->nodes > EXPR_NODES_MAX)
    return expr_fail(p, EXPR_LIMIT, p->at,
                     "the expression has more than %d parts: split it into several %s",
                     EXPR_NODES_MAX, p->dialect == EXPR_WHEN ? "rules" : "invariants");
  struct expr *e = arena_alloc(p->arena, sizeof *e);
  e->kind = kind;
  e->dialect = p->dialect;
  e->at = at;
  return e;
}

/* Says that the text of a node ends here; NULL, after an error, stays NULL. */
static struct expr *end_source(const struct expr_parser *p, struct expr *e) {
  if (e)
    e->source = (struct str){p->text + e->at, p->at - e->at};
  return e;
}

/* Names and excerpts are views of the text. */

static void expr_skip_space(struct expr_parser *p) {
  while (p->at < p->n && jscan_one_of(" \t\r\n", p->text[p->at]))
    p->at++;
}

static bool expr_looking_at(const struct expr_parser *p, const char *word) {
  size_t n = strlen(word);
  return p->n - p->at >= n && memcmp(p->text + p->at, word, n) == 0;
}

/* After white space */
static bool expr_accept(struct expr_parser *p, const char *word) {
  expr_skip_space(p);
  if (!expr_looking_at(p, word))
    return false;
  p->at += strlen(word);
  return true;
}

static bool expr_name_byte(const struct expr_parser *p, char c, bool first) {
  unsigned char u = (unsigned char)c;
  return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == '_' || u >= 0x80 ||
         (!first && ((u >= '0' && u <= '9') || (u == '-' && p->dialect == EXPR_WHEN)));
}

/* Not as a part of a longer name */
static bool expr_accept_word(struct expr_parser *p, const char *word) {
  size_t from = p->at;
  if (!expr_accept(p, word) || (p->at < p->n && expr_name_byte(p, p->text[p->at], false))) {
    p->at = from;
    return false;
  }
  return true;
}

static struct str expr_take_name(struct expr_parser *p) {
  size_t from = p->at;
  while (p->at < p->n && expr_name_byte(p, p->text[p->at], p->at == from))
    p->at++;
  return (struct str){p->text + from, p->at - from};
}

/* Returns a piece of text, with a '?' for what is not a whole character or could control a
 * terminal. */
struct excerpt expr_excerpt(const char *text, size_t n) {
  struct excerpt out;
  size_t to = 0;
  for (size_t i = 0; i < n && to < EXCERPT_BYTES;) {
    size_t length = utf8_decode(text + i, n - i, NULL);
    unsigned char c = (unsigned char)text[i];
    bool control = length == 0 || c < 0x20 || c == 0x7f || (c == 0xc2 && (text[i + 1] & 0x60) == 0);
    if (control) {
      out.text[to++] = '?';
    } else {
      memcpy(out.text + to, text + i, length);
      to += length;
    }
    i += length ? length : 1;
  }
  out.text[to] = '\0';
  return out;
}

/* Returns what stands at the cursor, or "the end". */
static struct excerpt expr_found(const struct expr_parser *p) {
  size_t n = 0;
  if (p->at >= p->n)
    return (struct excerpt){"the end"};
  while (p->at + n < p->n && n < 20 && !jscan_one_of(" \t\r\n", p->text[p->at + n]))
    n++;
  return expr_excerpt(p->text + p->at, n ? n : 1);
}

/* Parses -?digits(.digits). Up to 15 digits such a decimal is exact as m / 10^k in one rounding,
 * and no locale is asked. */
static struct expr *expr_parse_number(struct expr_parser *p) {
  size_t from = p->at, digits = 0, fraction = 0;
  bool negative = p->text[p->at] == '-', point = false;
  json_int_t value = 0;
  double scale = 1;
  if (negative)
    p->at++;
  for (; p->at < p->n; p->at++) {
    char c = p->text[p->at];
    if (c == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9')
      break;
    if (++digits > (p->dialect == EXPR_WHEN ? NUMBER_DIGITS_MAX : INTEGER_DIGITS_MAX))
      return expr_fail(p, EXPR_SYNTAX, from, "a number has at most %zu digits: shorten it",
                       digits - 1);
    value = value * 10 + (c - '0');
    if (point) {
      fraction++;
      scale *= 10;
    }
  }
  if (digits == 0 || (point && fraction == 0) ||
      (p->at < p->n && expr_name_byte(p, p->text[p->at], true)))
    return expr_fail(p, EXPR_SYNTAX, from, "not a number: write digits, like 3, -1 or 0.5");
  if (point && digits > NUMBER_DIGITS_MAX)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "a number with a point has at most %d digits: shorten it", NUMBER_DIGITS_MAX);
  struct expr *e = expr_node(p, NODE_NUMBER, from);
  if (e == NULL)
    return NULL;
  value = negative ? -value : value;
  e->number = point ? number_real((double)value / scale) : number_integer(value);
  return e;
}

/* --- texts --- */

static int hex_value(const char *p) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = str_hex_digit(p[i]);
    if (digit < 0)
      return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* Reads the escape whose \ is at the cursor, to its last byte. Returns the length of what it stands
 * for, 0 on an error. */
static size_t parse_escape(struct expr_parser *p, char to[4]) {
  static const char from_escape[] = "\"\\'/ntrbf", meaning[] = "\"\\'/\n\t\r\b\f";
  size_t from = p->at;
  char c = from + 1 < p->n ? p->text[from + 1] : '\0';
  const char *at = c ? strchr(from_escape, c) : NULL;
  if (p->dialect == EXPR_WHEN) {
    if (c != '"' && c != '\\')
      return expr_fail(p, EXPR_SYNTAX, from,
                       "only \\\" and \\\\ are escapes in a string: write \\\\ for one \\") != NULL;
  } else if (c == 'u') {
    int unit = p->n - from > 5 ? hex_value(p->text + from + 2) : -1;
    unsigned cp = (unsigned)unit;
    if (unit < 0)
      return expr_fail(p, EXPR_SYNTAX, from, "\\u needs four hexadecimal digits") != NULL;
    p->at += 5;
    struct str rest = {p->text + p->at + 1, p->n - p->at - 1};
    if (rest.n > 5 && str_starts(rest, "\\u") &&
        utf8_join(cp, (uint32_t)hex_value(rest.p + 2), &cp))
      p->at += 6;
    return utf8_put(to, cp);
  }
  if (at == NULL)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "no such escape in a text: write \\\\ for one \\, or r\"...\" for a text "
                     "without escapes") != NULL;
  p->at++;
  to[0] = meaning[at - from_escape];
  return 1;
}

static bool expr_parse_string(struct expr_parser *p, struct str *out) {
  bool raw = p->text[p->at] == 'r';
  p->at += raw;
  size_t open = p->at++, n = 0;
  char quote = p->text[open], *to = arena_alloc(p->arena, p->n - open + 1);
  for (; p->at < p->n; p->at++) {
    char c = p->text[p->at];
    if (c == quote) {
      p->at++;
      *out = (struct str){to, n};
      return true;
    }
    if (c == '\\' && !raw) {
      size_t length = parse_escape(p, to + n);
      if (length == 0)
        return false;
      n += length;
    } else {
      to[n++] = c;
    }
  }
  return expr_fail(p, EXPR_SYNTAX, open, "the string has no closing %c: add it", quote) != NULL;
}

/* --- near names --- */

/* Returns the nearest of `names` (NULL-terminated), or NULL. */
static const char *expr_nearest(struct str word, const char *const *names) {
  const char *best = NULL;
  size_t best_distance = 0, distance;
  for (; *names; names++)
    if (str_near(word, str_from(*names), &distance) && (best == NULL || distance < best_distance)) {
      best = *names;
      best_distance = distance;
    }
  return best;
}

/* --- functions and their calls --- */

static const struct function functions[] = {
    {"all", FN_ALL, 1, 2, true, true, true, "all(list, condition)"},
    {"every", FN_ALL, 1, 2, true, true, true, "all(list, condition)"},
    {"any", FN_ANY, 1, 2, true, true, true, "any(list, condition)"},
    {"exists", FN_ANY, 1, 2, true, true, true, "exists(list, condition)"},
    {"some", FN_ANY, 1, 2, true, true, true, "any(list, condition)"},
    {"none", FN_NO, 1, 2, true, true, true, "none(list, condition)"},
    {"one", FN_ONE, 1, 2, true, true, true, "one(list, condition)"},
    {"exists_one", FN_ONE, 1, 2, true, true, true, "one(list, condition)"},
    {"sum", FN_SUM, 1, 2, true, false, false, "sum(list) or sum(list, number of each)"},
    {"avg", FN_AVG, 1, 2, true, false, false, "avg(list) or avg(list, number of each)"},
    {"min", FN_MIN, 1, 2, true, false, false, "min(list) or min(list, value of each)"},
    {"max", FN_MAX, 1, 2, true, false, false, "max(list) or max(list, value of each)"},
    {"count", FN_COUNT, 1, 2, true, true, false, "count(list) or count(list, condition)"},
    {"length", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"size", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"len", FN_LENGTH, 1, 1, false, false, false, "length(text or list)"},
    {"contains", FN_CONTAINS, 2, 2, false, false, true, "contains(list, value)"},
    {"unique", FN_UNIQUE, 1, 2, true, false, true, "unique(list) or unique(list, value of each)"},
    {"filter", FN_FILTER, 2, 2, true, true, false, "filter(list, condition)"},
    {"map", FN_MAP, 2, 2, true, false, false, "map(list, expression)"},
    {"has", FN_HAS, 1, 1, false, false, true, "has(reference)"},
    {"default", FN_DEFAULT, 2, 2, false, false, true, "default(reference, otherwise)"},
    {"abs", FN_ABS, 1, 1, false, false, false, "abs(number)"},
    {"round", FN_ROUND, 1, 2, false, false, false, "round(number) or round(number, digits)"},
    {"floor", FN_FLOOR, 1, 1, false, false, false, "floor(number)"},
    {"ceil", FN_CEIL, 1, 1, false, false, false, "ceil(number)"},
    {"startsWith", FN_STARTS, 2, 2, false, false, true, "startsWith(text, start)"},
    {"starts_with", FN_STARTS, 2, 2, false, false, true, "startsWith(text, start)"},
    {"endsWith", FN_ENDS, 2, 2, false, false, true, "endsWith(text, end)"},
    {"ends_with", FN_ENDS, 2, 2, false, false, true, "endsWith(text, end)"},
    {"matches", FN_MATCHES, 2, 2, false, false, true, "matches(text, \"pattern\")"},
    {"is_date", FN_IS_DATE, 1, 1, false, false, true, "is_date(text)"},
    {"isDate", FN_IS_DATE, 1, 1, false, false, true, "is_date(text)"},
};

/* Returns NULL if there is none of that name. An alias gives the row of its canonical name. */
static const struct function *expr_function(struct str name) {
  for (size_t i = 0; i < ARRAY_LEN(functions); i++)
    if (str_eq_c(name, functions[i].name))
      return &functions[i];
  return NULL;
}

static void *too_deep(struct expr_parser *p) {
  return expr_fail(p, EXPR_LIMIT, p->at, "the expression is nested more than %d deep",
                   EXPR_DEPTH_MAX);
}

/* Takes a bare name and a comma after it: x in all(list, x, x.price > 0). */
static struct str take_variable(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  struct str name = expr_take_name(p);
  if (name.n > 0 && expr_accept(p, ","))
    return name;
  p->at = from;
  return (struct str){0};
}

static struct expr *expr_parse_or(struct expr_parser *p);
static struct expr *expr_parse_operand(struct expr_parser *p);
static bool expr_need_condition(struct expr_parser *p, const struct expr *e);

static struct expr *parse_item_argument(struct expr_parser *p, const struct function *function) {
  struct items_scope scope = {0};
  if (p->scope_count >= EXPR_DEPTH_MAX)
    return too_deep(p);
  if (p->dialect == EXPR_INVARIANT)
    scope.variable = take_variable(p);
  p->scopes[p->scope_count++] = scope;
  struct expr *e = expr_parse_or(p);
  p->scope_count--;
  return e && function->condition && !expr_need_condition(p, e) ? NULL : e;
}

static struct expr *parse_argument(struct expr_parser *p, const struct function *function,
                                   unsigned index) {
  if (function->on_items && index == 1)
    return parse_item_argument(p, function);
  expr_skip_space(p);
  size_t from = p->at;
  /* In when(...) an argument is a literal or a reference, and a list is a reference. */
  struct expr *e = p->dialect == EXPR_WHEN ? expr_parse_operand(p) : expr_parse_or(p);
  if (e && p->dialect == EXPR_WHEN && index == 0 && e->kind != NODE_REF)
    return expr_fail(p, EXPR_SYNTAX, from,
                     "%s needs a reference%s first, like structured.MOVEMENT.FIELD", function->name,
                     function->id == FN_IS_DATE ? "" : " to a list");
  return e;
}

/* Compiles a pattern for its errors; matching compiles it again, once in an evaluation. */
static bool call_check_pattern(struct expr_parser *p, const struct expr *argument) {
  struct pattern *pattern = NULL;
  struct pattern_error why;
  if (argument->kind != NODE_STRING)
    return expr_fail(p, EXPR_SYNTAX, argument->at,
                     "the pattern of matches must be a text written here, like r\"^[A-Z]+$\"") !=
           NULL;
  if (pattern_compile(argument->string.p, argument->string.n, &pattern, &why) != PATTERN_OK)
    return expr_fail(p, EXPR_SYNTAX, argument->at, "not a regular expression: %s at byte %zu of it",
                     why.text, why.offset) != NULL;
  pattern_free(pattern);
  return true;
}

/* Behind the ( */
static struct expr *expr_parse_call(struct expr_parser *p, const struct function *function,
                                    size_t at, struct expr *receiver) {
  size_t open = p->at;
  unsigned count = 0;
  struct expr *e = expr_node(p, NODE_CALL, at), **last = e ? &e->parts : NULL;
  if (e == NULL)
    return NULL;
  e->function = function;
  if (receiver) {
    *last = receiver;
    last = &receiver->next;
    count++;
  }
  expr_skip_space(p);
  bool ended = p->at < p->n && p->text[p->at] == ')' && p->dialect == EXPR_INVARIANT;
  for (; !ended && count < function->most; count++) {
    if ((*last = parse_argument(p, function, count)) == NULL)
      return NULL;
    last = &(*last)->next;
    if (count + 1u == function->most || !expr_accept(p, ","))
      ended = true;
  }
  if (p->dialect == EXPR_WHEN && count < 2 && function->id != FN_IS_DATE)
    return expr_fail(p, EXPR_SYNTAX, p->at, "%s needs a comma after the list, found %s",
                     function->name, expr_found(p).text);
  if (!expr_accept(p, ")")) {
    if (expr_looking_at(p, ","))
      return expr_fail(p, EXPR_SYNTAX, p->at, "%s takes no more: write %s", function->name,
                       function->needs);
    return expr_fail(p, EXPR_SYNTAX, p->at < p->n ? p->at : open, "%s( has no closing ): found %s",
                     function->name, expr_found(p).text);
  }
  if (count < function->least)
    return expr_fail(p, EXPR_SYNTAX, at, "%s needs more: write %s", function->name,
                     function->needs);
  if (function->id == FN_MATCHES && !call_check_pattern(p, e->parts->next))
    return NULL;
  return end_source(p, e);
}

/* --- references --- */

static struct ref_part *ref_add_part(struct expr_parser *p, struct expr *e) {
  if (e->ref_count >= EXPR_NODES_MAX)
    return expr_fail(p, EXPR_LIMIT, e->at, "the reference has more than %d parts: shorten it",
                     EXPR_NODES_MAX);
  if (e->ref_count == 0 || (e->ref_count & (e->ref_count - 1)) == 0) { /* full at powers of two */
    size_t room = e->ref_count ? e->ref_count * 2 : 1;
    struct ref_part *wider = arena_array(p->arena, room, sizeof *wider);
    if (e->ref_count)
      memcpy(wider, e->ref, e->ref_count * sizeof *wider);
    e->ref = wider;
  }
  return &e->ref[e->ref_count++];
}

static bool ref_add_name(struct expr_parser *p, struct expr *e, struct str name) {
  struct ref_part *part = ref_add_part(p, e);
  if (part)
    *part = (struct ref_part){PART_NAME, 0, name};
  return part != NULL;
}

/* Parses an index, from after the [. */
static bool parse_index(struct expr_parser *p, struct expr *e) {
  size_t from = p->at - 1, digits = 0;
  struct ref_part *part = ref_add_part(p, e);
  if (part == NULL)
    return false;
  expr_skip_space(p);
  bool invariant = p->dialect == EXPR_INVARIANT, negative = false;
  char c = p->at < p->n ? p->text[p->at] : '\0';
  if (c == '"' || (c == '\'' && invariant)) {
    part->kind = PART_NAME;
    if (!expr_parse_string(p, &part->name))
      return false;
  } else if (invariant && (c == ']' || c == '*')) {
    part->kind = PART_EACH;
    p->at += c == '*';
  } else {
    part->kind = PART_INDEX;
    negative = invariant && c == '-';
    p->at += negative;
    for (; p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
      if (++digits > 9)
        return expr_fail(p, EXPR_SYNTAX, from, "the index is too large") != NULL;
      part->index = part->index * 10 + (p->text[p->at] - '0');
    }
    if (digits == 0)
      return expr_fail(p, EXPR_SYNTAX, from, "write a number%s between [ and ]",
                       invariant ? ", a \"name\" or nothing" : " from 0 or a \"name\"") != NULL;
    part->index = negative ? -part->index : part->index;
  }
  if (!expr_accept(p, "]"))
    return expr_fail(p, EXPR_SYNTAX, from, "[ has no closing ]: add it") != NULL;
  return true;
}

/* Lists the roots with parts: how many there must be, and what to write instead. */
static const struct {
  const char *name;
  size_t least, most;
  const char *how;
} part_roots[] = {
    {"structured", 3, SIZE_MAX, "structured.MOVEMENT.FIELD"},
    {"files", 1, SIZE_MAX, "files.length or files.path"},
    {"tests", 2, 2, "tests.passed, tests.failed or tests.skipped"},
    {"checks", 3, 3, "checks.MOVEMENT.exit, .passed, .failed, .skipped, .turn or .stale"},
    {"votes", 2, 2, "votes.LABEL or votes[\"the label\"]"},
    {"parts", 1, SIZE_MAX, "parts.length or parts[0].label"},
};

static bool check_when_parts(struct expr_parser *p, const struct expr *e, const char *root) {
  for (size_t i = 0; i < ARRAY_LEN(part_roots); i++) {
    if (strcmp(root, part_roots[i].name) != 0)
      continue;
    if (e->ref_count >= part_roots[i].least && e->ref_count <= part_roots[i].most &&
        (part_roots[i].least < 2 || e->ref[1].kind != PART_INDEX))
      return true;
    return expr_fail(p, EXPR_SYNTAX, e->at, "%s names no field: write %s",
                     expr_excerpt(e->source.p, e->source.n).text, part_roots[i].how) != NULL;
  }
  return e->ref_count == 1 ||
         expr_fail(p, EXPR_SYNTAX, e->at, "%s is a number and has no parts: write %s", root,
                   root) != NULL;
}

static bool check_when_root(struct expr_parser *p, const struct expr *e) {
  static const char *const roots[] = {"exit",       "last_exit", "iteration", "movement_iteration",
                                      "changed",    "files",     "tests",     "checks",
                                      "structured", "votes",     "parts",     "evidence",
                                      NULL};
  struct str root = e->ref[0].name;
  struct excerpt shown = expr_excerpt(root.p, root.n);
  for (size_t i = 0; roots[i]; i++)
    if (str_eq_c(root, roots[i]))
      return check_when_parts(p, e, roots[i]);
  const char *near = expr_nearest(root, roots);
  if (near)
    return expr_fail(p, EXPR_SYNTAX, e->at, "no value is named %s: did you mean %s?", shown.text,
                     near) != NULL;
  return expr_fail(p, EXPR_SYNTAX, e->at,
                   "no value is named %s: write exit, last_exit, iteration, movement_iteration, "
                   "changed, files, tests, evidence, checks or "
                   "structured.MOVEMENT.FIELD (texts in double quotes)",
                   shown.text) != NULL;
}

static bool accept_call(struct expr_parser *p) {
  size_t at = p->at;
  expr_skip_space(p);
  bool call = p->at < p->n && p->text[p->at] == '(';
  p->at = call ? p->at + 1 : at;
  return call;
}

/* Behind the ( of a call whose name stands at `name_at`; `at` is where the whole begins. */
static struct expr *parse_named_call(struct expr_parser *p, struct str name, size_t name_at,
                                     size_t at, struct expr *receiver) {
  static const char *const names[] = {
      "all",        "any",      "exists",  "none",    "one",      "sum",    "avg",
      "min",        "max",      "count",   "length",  "contains", "unique", "filter",
      "map",        "has",      "default", "abs",     "round",    "floor",  "ceil",
      "startsWith", "endsWith", "matches", "is_date", NULL};
  const struct function *function = p->dialect == EXPR_INVARIANT ? expr_function(name) : NULL;
  if (function)
    return expr_parse_call(p, function, at, receiver);
  struct excerpt shown = expr_excerpt(name.p, name.n);
  const char *near = expr_nearest(name, names);
  if (p->dialect == EXPR_INVARIANT && str_eq_c(name, "not"))
    return expr_fail(p, EXPR_SYNTAX, name_at, "write ! for not, or x not in list");
  if (p->dialect == EXPR_WHEN)
    return expr_fail(p, EXPR_SYNTAX, name_at,
                     "no function is named %s: use contains(list, value), "
                     "exists(list, item.x == value) or is_date(text)",
                     shown.text);
  if (near)
    return expr_fail(p, EXPR_SYNTAX, name_at, "no function is named %s: did you mean %s?",
                     shown.text, near);
  return expr_fail(
      p, EXPR_SYNTAX, name_at,
      "no function is named %s: there are all, any, none, one, sum, avg, min, max, "
      "count, length, contains, unique, filter, map, has, default, abs, round, floor, ceil, "
      "startsWith, endsWith, matches and is_date",
      shown.text);
}

/* Parses .name, [...] and .function(...) after an operand; `e` is NULL after an error. */
static struct expr *parse_rest(struct expr_parser *p, struct expr *e) {
  while (e && p->at < p->n) {
    bool index = p->text[p->at] == '[';
    if (!index && p->text[p->at] != '.')
      break;
    size_t from = ++p->at;
    struct str name = {0};
    if (!index) {
      name = expr_take_name(p);
      if (name.n == 0)
        return expr_fail(p, EXPR_SYNTAX, p->at, "a name must follow the dot, found %s",
                         expr_found(p).text);
      if (p->dialect == EXPR_INVARIANT && accept_call(p)) {
        e = parse_named_call(p, name, from, e->at, e);
        continue;
      }
    }
    if (e->kind != NODE_REF) {
      struct expr *outer = expr_node(p, NODE_REF, e->at);
      if (outer == NULL)
        return NULL;
      outer->start = REF_BASE;
      outer->parts = e;
      e = outer;
    }
    if (index ? !parse_index(p, e) : !ref_add_name(p, e, name))
      return NULL;
    (void)end_source(p, e);
  }
  return e;
}

/* Finds out what a first name refers to. */
static bool ref_resolve(struct expr_parser *p, struct expr *e, struct str name) {
  e->start = REF_VALUE;
  for (unsigned i = p->scope_count; i-- > 0;) {
    struct str variable = p->scopes[i].variable;
    if (variable.n == name.n && memcmp(variable.p, name.p, name.n) == 0) {
      e->level = i + 1;
      return true;
    }
  }
  if (str_eq_c(name, "item") && (p->scope_count > 0 || p->dialect == EXPR_WHEN)) {
    e->level = p->scope_count;
    if (p->scope_count == 0)
      return expr_fail(p, EXPR_SYNTAX, e->at,
                       "item means something only inside exists(list, item.x == ...)") != NULL;
    return true;
  }
  e->start = REF_NAME;
  e->maybe_whole = p->dialect == EXPR_INVARIANT && str_eq_c(name, "root");
  for (e->level = p->dialect == EXPR_WHEN ? 0 : p->scope_count; e->level > 0; e->level--)
    if (p->scopes[e->level - 1].variable.n == 0)
      break;
  return ref_add_name(p, e, name);
}

static struct expr *parse_ref(struct expr_parser *p) {
  struct expr *e = expr_node(p, NODE_REF, p->at);
  if (e == NULL)
    return NULL;
  char c = p->text[p->at];
  if (c == '$' || c == '@') {
    p->at++;
    e->start = REF_VALUE;
    e->level = c == '@' ? p->scope_count : 0;
  } else {
    p->at += c == '.';
    if (!ref_resolve(p, e, expr_take_name(p)))
      return NULL;
  }
  e = parse_rest(p, end_source(p, e));
  if (e && p->dialect == EXPR_WHEN && e->start == REF_NAME && !check_when_root(p, e))
    return NULL;
  return e;
}

/* --- the rest of the operands --- */

static struct expr *parse_string(struct expr_parser *p) {
  struct expr *e = expr_node(p, NODE_STRING, p->at);
  if (e == NULL || !expr_parse_string(p, &e->string))
    return NULL;
  return end_source(p, e);
}

static struct expr *parse_list(struct expr_parser *p) {
  struct expr *e = expr_node(p, NODE_LIST, p->at), **last = e ? &e->parts : NULL;
  if (e == NULL)
    return NULL;
  p->at++;
  while (!expr_accept(p, "]")) {
    if (e->parts && !expr_accept(p, ","))
      return expr_fail(p, EXPR_SYNTAX, p->at < p->n ? p->at : e->at,
                       "the list has no closing ]: found %s", expr_found(p).text);
    if ((*last = expr_parse_or(p)) == NULL)
      return NULL;
    last = &(*last)->next;
  }
  return end_source(p, e);
}

static struct expr *parse_parentheses(struct expr_parser *p) {
  size_t from = p->at++;
  struct expr *e = expr_parse_or(p);
  if (e && !expr_accept(p, ")"))
    return expr_fail(p, EXPR_SYNTAX, from, "( has no closing ): add it");
  return e;
}

static struct expr *parse_word(struct expr_parser *p) {
  size_t from = p->at;
  struct str name = expr_take_name(p);
  if (str_eq_c(name, "true") || str_eq_c(name, "false") || str_eq_c(name, "null")) {
    struct expr *e = expr_node(p, str_eq_c(name, "null") ? NODE_NULL : NODE_BOOL, from);
    if (e)
      e->boolean = str_eq_c(name, "true");
    return end_source(p, e);
  }
  if (accept_call(p))
    return parse_named_call(p, name, from, from, NULL);
  size_t behind = p->at;
  expr_skip_space(p);
  bool word_follows = p->at < p->n && expr_name_byte(p, p->text[p->at], true);
  p->at = behind;
  if (word_follows && p->dialect == EXPR_INVARIANT && str_eq_c(name, "not"))
    return expr_fail(p, EXPR_SYNTAX, from, "write ! for not, or x not in list");
  p->at = from;
  return parse_ref(p);
}

/* literals, references, calls */
static struct expr *expr_parse_operand(struct expr_parser *p) {
  expr_skip_space(p);
  if (p->at >= p->n)
    return expr_fail(p, EXPR_SYNTAX, p->at,
                     "a value is missing at the end: write a number, a \"text\", true, false, "
                     "null or a reference");
  char c = p->text[p->at], after = p->text[p->at + 1];
  bool invariant = p->dialect == EXPR_INVARIANT;
  struct expr *e = NULL;
  if (c == '"' || (invariant && (c == '\'' || (c == 'r' && (after == '"' || after == '\'')))))
    e = parse_string(p);
  else if (c == '\'')
    return expr_fail(p, EXPR_SYNTAX, p->at,
                     "texts stand in double quotes: write \"...\" instead of '...'");
  else if ((c >= '0' && c <= '9') || (c == '-' && !invariant))
    return end_source(p, expr_parse_number(p));
  else if (expr_name_byte(p, c, true))
    e = parse_word(p);
  else if (invariant && c == '[')
    e = parse_list(p);
  else if (invariant && c == '(')
    e = parse_parentheses(p);
  else if (invariant && (c == '$' || c == '@' || (c == '.' && expr_name_byte(p, after, true))))
    e = parse_ref(p);
  else
    return expr_fail(p, EXPR_SYNTAX, p->at, "a value is expected here, found %s",
                     expr_found(p).text);
  return invariant ? parse_rest(p, e) : e;
}

/* --- operators: one function per grammar rule, NULL once an error is set --- */

static bool says_true(const struct expr *e) {
  if (e->kind == NODE_CALL)
    return e->function->says_true;
  return e->kind == NODE_OR || e->kind == NODE_AND || e->kind == NODE_NOT || e->kind == NODE_BOOL ||
         e->kind == NODE_REF || e->kind == NODE_COMPARE;
}

static bool expr_need_condition(struct expr_parser *p, const struct expr *e) {
  if (says_true(e))
    return true;
  return expr_fail(p, EXPR_SYNTAX, e->at,
                   "a number, text or null alone is neither true nor false: compare it, "
                   "like %s == 0",
                   p->dialect == EXPR_WHEN ? "exit" : "total") != NULL;
}

static struct expr *binary(struct expr_parser *p, enum node_kind kind, enum node_op op,
                           struct expr *left, struct expr *right) {
  struct expr *e = expr_node(p, kind, left->at);
  if (e == NULL)
    return NULL;
  e->op = op;
  e->parts = left;
  left->next = right;
  return end_source(p, e);
}

/* --- calculating --- */

static struct expr *parse_unary(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  if (p->dialect == EXPR_WHEN || !expr_looking_at(p, "-"))
    return expr_parse_operand(p);
  if (p->depth >= EXPR_DEPTH_MAX)
    return too_deep(p);
  p->at++;
  p->depth++;
  struct expr *inner = parse_unary(p), *e = inner ? expr_node(p, NODE_NEGATE, from) : NULL;
  p->depth--;
  if (e)
    e->parts = inner;
  return end_source(p, e);
}

static bool accept_calculation(struct expr_parser *p, const char *ops, enum node_op first,
                               enum node_op *op) {
  expr_skip_space(p);
  const char *at = p->at < p->n && p->text[p->at] ? strchr(ops, p->text[p->at]) : NULL;
  if (at == NULL || p->dialect == EXPR_WHEN)
    return false;
  *op = (enum node_op)(first + (at - ops));
  p->at++;
  return true;
}

/* Parses one or more `below` with one of `ops` in between, the left ones first. */
static struct expr *parse_calculation(struct expr_parser *p,
                                      struct expr *(*below)(struct expr_parser *), const char *ops,
                                      enum node_op first) {
  struct expr *left = below(p);
  enum node_op op;
  while (left && accept_calculation(p, ops, first, &op)) {
    struct expr *right = below(p);
    left = right ? binary(p, NODE_BINARY, op, left, right) : NULL;
  }
  return left;
}

static struct expr *parse_product(struct expr_parser *p) {
  return parse_calculation(p, parse_unary, "*/%", CALC_MULTIPLY);
}

static struct expr *expr_parse_sum(struct expr_parser *p) {
  return parse_calculation(p, parse_product, "+-", CALC_ADD);
}

/* --- comparing --- */

static bool accept_comparison(struct expr_parser *p, enum node_op *op) {
  static const struct {
    const char *word;
    enum node_op op;
  } ops[] = {{"==", CMP_EQ}, {"!=", CMP_NE}, {">=", CMP_GE},
             {"<=", CMP_LE}, {">", CMP_GT},  {"<", CMP_LT}};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (expr_accept(p, ops[i].word)) {
      *op = ops[i].op;
      return true;
    }
  if (p->dialect == EXPR_WHEN)
    return false;
  size_t from = p->at;
  *op = expr_accept_word(p, "not") ? CMP_NOT_IN : CMP_IN;
  if (expr_accept_word(p, "in"))
    return true;
  p->at = from;
  return false;
}

static bool has_order(const struct expr_parser *p, const struct expr *e) {
  if (e->kind == NODE_CALL)
    return !e->function->says_true;
  if (e->kind == NODE_STRING || e->kind == NODE_BINARY || e->kind == NODE_NEGATE)
    return p->dialect == EXPR_INVARIANT;
  return e->kind == NODE_NUMBER || e->kind == NODE_REF;
}

static struct expr *parse_compare(struct expr_parser *p) {
  enum node_op op;
  struct expr *left = expr_parse_sum(p);
  if (left == NULL)
    return NULL;
  expr_skip_space(p);
  size_t op_at = p->at;
  if (!accept_comparison(p, &op)) {
    if (expr_looking_at(p, "="))
      return expr_fail(p, EXPR_SYNTAX, op_at, "= does not compare: write ==");
    return p->dialect == EXPR_WHEN && !expr_need_condition(p, left) ? NULL : left;
  }
  if (expr_looking_at(p, "="))
    return expr_fail(p, EXPR_SYNTAX, op_at, "there is no operator with one more =: write == or !=");
  struct expr *right = expr_parse_sum(p);
  if (right == NULL)
    return NULL;
  if (op >= CMP_GE && op <= CMP_LT && (!has_order(p, left) || !has_order(p, right)))
    return expr_fail(p, EXPR_SYNTAX, has_order(p, left) ? right->at : left->at,
                     "< <= > >= compare %s: use == or != here",
                     p->dialect == EXPR_WHEN ? "numbers only" : "two numbers or two texts");
  return binary(p, NODE_COMPARE, op, left, right);
}

/* --- conditions --- */

/* Parses a call in when(...), where it is a clause, never an operand. */
static struct expr *parse_when_call(struct expr_parser *p, bool *is_call) {
  size_t from = p->at;
  struct str name = expr_take_name(p);
  *is_call = str_among(name, "contains exists is_date") && expr_accept(p, "(");
  if (*is_call)
    return expr_parse_call(p, expr_function(name), from, NULL);
  p->at = from;
  return NULL;
}

static struct expr *parse_clause(struct expr_parser *p) {
  expr_skip_space(p);
  size_t from = p->at;
  if (p->depth >= EXPR_DEPTH_MAX)
    return expr_fail(p, EXPR_LIMIT, from,
                     "the expression is nested more than %d deep: split it into several %s",
                     EXPR_DEPTH_MAX, p->dialect == EXPR_WHEN ? "rules" : "invariants");
  p->depth++;
  bool call = false;
  struct expr *e = p->dialect == EXPR_WHEN ? parse_when_call(p, &call) : NULL;
  if (call) {
    /* it was parsed, or an error is set */
  } else if (p->dialect == EXPR_WHEN && expr_accept(p, "(")) {
    e = expr_parse_or(p);
    if (e && !expr_accept(p, ")"))
      e = expr_fail(p, EXPR_SYNTAX, from, "( has no closing ): add it");
  } else if (expr_accept(p, "!")) {
    e = expr_node(p, NODE_NOT, from);
    if (e && ((e->parts = parse_clause(p)) == NULL || !expr_need_condition(p, e->parts)))
      e = NULL;
    (void)end_source(p, e);
  } else {
    e = parse_compare(p);
  }
  p->depth--;
  return e;
}

/* Parses one or more `below` with `word` in between: a node of `kind` only if there are two. */
static struct expr *parse_chain(struct expr_parser *p, struct expr *(*below)(struct expr_parser *),
                                const char *word, enum node_kind kind) {
  struct expr *first = below(p), *last = first, *chain = NULL;
  while (last && expr_accept(p, word)) {
    if (chain == NULL) {
      if (!expr_need_condition(p, first) || (chain = expr_node(p, kind, first->at)) == NULL)
        return NULL;
      chain->parts = first;
    }
    last->next = below(p);
    last = last->next;
    if (last && !expr_need_condition(p, last))
      return NULL;
  }
  if (last == NULL || chain == NULL)
    return last;
  return end_source(p, chain);
}

static struct expr *parse_and(struct expr_parser *p) {
  return parse_chain(p, parse_clause, "&&", NODE_AND);
}

static struct expr *expr_parse_or(struct expr_parser *p) {
  return parse_chain(p, parse_and, "||", NODE_OR);
}

const struct expr *expr_parse(struct arena *arena, const char *text, size_t n,
                              enum expr_dialect dialect, struct expr_error *error) {
  assert(arena != NULL && text != NULL);
  assert(error != NULL);
  struct expr_parser p = {.arena = arena, .dialect = dialect, .error = error};
  *error = (struct expr_error){.code = EXPR_OK};
  if (n > EXPR_LENGTH_MAX)
    return expr_fail(&p, EXPR_LIMIT, 0, "the expression is longer than %d KiB",
                     EXPR_LENGTH_MAX / 1024);
  p.text = arena_strndup(arena, text, n);
  p.n = n;
  expr_skip_space(&p);
  if (p.at == p.n)
    return expr_fail(&p, EXPR_SYNTAX, 0, "the expression is empty: write a condition like %s",
                     p.dialect == EXPR_WHEN ? "exit == 0" : "total >= 0");
  p.at = 0;
  struct expr *e = expr_parse_or(&p);
  expr_skip_space(&p);
  if (e && p.at < p.n)
    return expr_fail(&p, EXPR_SYNTAX, p.at, "unexpected %s: put && or || between conditions",
                     expr_found(&p).text);
  return e && expr_need_condition(&p, e) ? e : NULL;
}

void expr_each_ref(const struct expr *expr, void (*fn)(void *ctx, const struct str *path, size_t n),
                   void *ctx) {
  assert(fn != NULL);
  if (expr->kind == NODE_REF && expr->start == REF_NAME && expr->level == 0) {
    struct str names[EXPR_NODES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < expr->ref_count; i++)
      if (expr->ref[i].kind == PART_NAME)
        names[n++] = expr->ref[i].name;
    fn(ctx, names, n);
  }
  for (const struct expr *part = expr->parts; part; part = part->next)
    expr_each_ref(part, fn, ctx);
}

void expr_each_condition(const struct expr *expr,
                         void (*fn)(void *ctx, const struct str *path, size_t n), void *ctx) {
  assert(fn != NULL);
  const struct expr *part = expr->parts;
  if (expr->kind == NODE_REF && expr->start != REF_BASE)
    expr_each_ref(expr, fn, ctx);
  else if (expr->kind == NODE_CALL && expr->function->condition && part->next != NULL)
    expr_each_condition(part->next, fn, ctx);
  else if (expr->kind == NODE_OR || expr->kind == NODE_AND || expr->kind == NODE_NOT)
    for (; part; part = part->next)
      expr_each_condition(part, fn, ctx);
}
