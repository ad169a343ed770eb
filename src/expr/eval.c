/* Evaluates expressions: values, calls, references and operators. */
#include "expr/eval.h"

#include "format/json_value.h"
#include "schema/format.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* --- dates and date-times as instants (RFC 3339) --- */

struct instant {
  int64_t seconds;     /* since 1970-01-01T00:00:00Z */
  struct str fraction; /* digits after the point, without trailing zeros */
};

static bool read_clock(struct format_cursor *c, struct instant *out) {
  int hour, minute, second, away;
  if (!schema_cursor_digits(c, 2, &hour) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &minute) || !schema_cursor_char(c, ':') ||
      !schema_cursor_digits(c, 2, &second) || hour > 23 || minute > 59 || second > 60)
    return false;
  if (schema_cursor_char(c, '.')) {
    out->fraction.p = c->p;
    while (c->p < c->end && str_is_digit(*c->p))
      c->p++;
    out->fraction.n = (size_t)(c->p - out->fraction.p);
    if (out->fraction.n == 0)
      return false;
    while (out->fraction.n && out->fraction.p[out->fraction.n - 1] == '0')
      out->fraction.n--;
  }
  if (!schema_cursor_zone(c, &away))
    return false;
  out->seconds += (hour * 60 + minute + away) * 60 + second;
  return c->p == c->end;
}

static bool expr_instant(struct str text, struct instant *out) {
  static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  struct format_cursor c = {text.p, text.p + text.n};
  int year, month, day;
  if (text.n < 10 || !schema_cursor_digits(&c, 4, &year) || !schema_cursor_char(&c, '-') ||
      !schema_cursor_digits(&c, 2, &month) || !schema_cursor_char(&c, '-') ||
      !schema_cursor_digits(&c, 2, &day) || month < 1 || month > 12 || day < 1)
    return false;
  bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  if (day > days[month - 1] + (month == 2 && leap))
    return false;
  /* The days since 1970-01-01 of a proleptic Gregorian date; its year begins in March. */
  int64_t y = month <= 2 ? year - 1 : year;
  int64_t era = (y >= 0 ? y : y - 399) / 400, year_of_era = y - era * 400;
  int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  int64_t days_since =
      era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
  *out = (struct instant){.seconds = days_since * 86400};
  if (c.p == c.end)
    return true;
  if (!schema_cursor_char(&c, 'T') && !schema_cursor_char(&c, 't') && !schema_cursor_char(&c, ' '))
    return false;
  return read_clock(&c, out);
}

static int order_of_bytes(struct str a, struct str b) {
  size_t n = a.n < b.n ? a.n : b.n;
  int order = n ? memcmp(a.p, b.p, n) : 0;
  if (order == 0)
    return (a.n > b.n) - (a.n < b.n);
  return order < 0 ? -1 : 1;
}

static int expr_instant_compare(const struct instant *a, const struct instant *b) {
  if (a->seconds != b->seconds)
    return a->seconds < b->seconds ? -1 : 1;
  return order_of_bytes(a->fraction, b->fraction);
}

/* --- values: how they compare, and their words --- */

enum { SHOWN_BYTES = 40 }; /* the most of a text in an error */

struct value expr_value_of(const json_t *json) {
  struct value out = {.kind = VALUE_NULL};
  if (json == NULL)
    return out;
  switch (json_typeof(json)) {
  case JSON_OBJECT:
    out.kind = VALUE_OBJECT;
    out.json = json;
    break;
  case JSON_ARRAY:
    out.kind = VALUE_LIST;
    out.json = json;
    out.n = json_array_size(json);
    break;
  case JSON_STRING:
    out.kind = VALUE_TEXT;
    out.text = (struct str){json_string_value(json), json_string_length(json)};
    break;
  case JSON_INTEGER:
  case JSON_REAL:
    out.kind = VALUE_NUMBER;
    out.number = number_of_json(json);
    break;
  case JSON_TRUE:
  case JSON_FALSE:
    out.kind = VALUE_BOOL;
    out.boolean = json_is_true(json);
    break;
  case JSON_NULL:
    break;
  }
  return out;
}

struct value expr_list_at(const struct value *list, size_t i) {
  if (list->made)
    return list->made[i];
  return expr_value_of(list->picked ? list->picked[i] : json_array_get(list->json, i));
}

/* "a number", "a list", ... */
static const char *expr_kind_name(const struct value *value) {
  static const char *const names[] = {
      [VALUE_NULL] = "null",   [VALUE_BOOL] = "true or false", [VALUE_NUMBER] = "a number",
      [VALUE_TEXT] = "a text", [VALUE_LIST] = "a list",        [VALUE_OBJECT] = "an object"};
  return names[value->kind];
}

/* The text "5", true, a list */
static struct excerpt expr_described(const struct value *value) {
  struct excerpt out;
  buf_auto_t text = {0};
  if (value->kind == VALUE_TEXT) {
    out = expr_excerpt(value->text.p, value->text.n < SHOWN_BYTES ? value->text.n : SHOWN_BYTES);
    buf_printf(&text, "the text \"%.80s%s\"", out.text, value->text.n > SHOWN_BYTES ? "..." : "");
  } else if (value->kind == VALUE_BOOL) {
    buf_puts(&text, value->boolean ? "true" : "false");
  } else if (value->kind == VALUE_NUMBER) {
    number_text(&value->number, &text);
  } else {
    buf_puts(&text, expr_kind_name(value));
  }
  print_into(out.text, sizeof out.text, "%s", buf_c(&text));
  return out;
}

void expr_value_text(const struct value *value, struct buf *out) {
  switch (value->kind) {
  case VALUE_NULL:
    buf_puts(out, "null");
    return;
  case VALUE_BOOL:
    buf_puts(out, value->boolean ? "true" : "false");
    return;
  case VALUE_NUMBER:
    number_text(&value->number, out);
    return;
  case VALUE_TEXT:
    schema_quote_text(value->text.p, value->text.n, out);
    return;
  case VALUE_OBJECT:
  case VALUE_LIST:
    break;
  }
  if (value->json) {
    schema_value_text(value->json, out);
    return;
  }
  size_t start = out->n;
  buf_puts(out, "[");
  for (size_t i = 0; i < value->n; i++) {
    struct value item = expr_list_at(value, i);
    buf_puts(out, i ? ", " : "");
    if (out->n - start > SCHEMA_MESSAGE_VALUE_BYTES) {
      buf_puts(out, "...");
      break;
    }
    expr_value_text(&item, out);
  }
  buf_puts(out, "]");
}

/* --- equality --- */

static bool json_values_equal(struct eval *x, const struct expr *at, const json_t *a,
                              const json_t *b, bool *equal) {
  *equal = x->dialect == EXPR_WHEN ? json_same(a, b) : schema_value_equal(a, b, &x->work);
  return expr_eval_work(x, at, 1);
}

static bool expr_equal(struct eval *x, const struct expr *at, const struct value *a,
                       const struct value *b, bool *equal) {
  struct instant one, other;
  *equal = false;
  if (!expr_eval_work(x, at, 1))
    return false;
  if (a->kind != b->kind)
    return true;
  switch (a->kind) {
  case VALUE_NULL:
    *equal = true;
    return true;
  case VALUE_BOOL:
    *equal = a->boolean == b->boolean;
    return true;
  case VALUE_NUMBER:
    *equal = number_compare(&a->number, &b->number) == 0;
    return true;
  case VALUE_TEXT:
    *equal = str_eq(a->text, b->text);
    if (!*equal && x->dialect == EXPR_INVARIANT && expr_instant(a->text, &one) &&
        expr_instant(b->text, &other))
      *equal = expr_instant_compare(&one, &other) == 0;
    return expr_eval_work(x, at, a->text.n / 64);
  case VALUE_LIST:
    *equal = a->n == b->n;
    if (*equal && a->json && b->json)
      return json_values_equal(x, at, a->json, b->json, equal);
    for (size_t i = 0; i < a->n && *equal; i++) {
      struct value item = expr_list_at(a, i), other_item = expr_list_at(b, i);
      if (!expr_equal(x, at, &item, &other_item, equal))
        return false;
    }
    return true;
  case VALUE_OBJECT:
    return json_values_equal(x, at, a->json, b->json, equal);
  }
  return true;
}

/* --- order --- */

__attribute__((format(printf, 4, 5))) static bool expr_eval_fail(struct eval *x,
                                                                 enum expr_code code,
                                                                 const struct expr *at,
                                                                 const char *format, ...) {
  va_list args;
  x->error->code = code;
  x->error->offset = at->at;
  va_start(args, format);
  (void)vsnprintf(x->error->text, sizeof x->error->text, format, args);
  va_end(args);
  return false;
}

/* Says that the value of a part does not fit: what it is, then what the format says. */
__attribute__((format(printf, 4, 5))) static bool
expr_unfit(struct eval *x, const struct expr *at, const struct value *v, const char *format, ...) {
  bool missing = v->kind == VALUE_NULL && x->dialect == EXPR_INVARIANT;
  struct excerpt shown = expr_described(v);
  va_list args;
  char end[EXPR_ERROR_BYTES];
  va_start(args, format);
  (void)vsnprintf(end, sizeof end, format, args);
  va_end(args);
  const char *what = x->dialect == EXPR_WHEN ? expr_kind_name(v) : shown.text;
  return expr_eval_fail(x, missing ? EXPR_NO_VALUE : EXPR_WRONG_TYPE, at, "%s is %s%s",
                        expr_excerpt(at->source.p, at->source.n).text,
                        missing ? "missing or null" : what, end);
}

/* `left` and `right` are for messages. *order is -1, 0 or 1. */
static bool expr_order(struct eval *x, const struct expr *at, const struct expr *left,
                       const struct value *a, const struct expr *right, const struct value *b,
                       int *order) {
  bool texts = x->dialect == EXPR_INVARIANT;
  if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER) {
    *order = number_compare(&a->number, &b->number);
    return true;
  }
  if (texts && a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
    struct instant one, other; /* UTF-8 is in the order of code points */
    bool instants = expr_instant(a->text, &one) && expr_instant(b->text, &other);
    *order = instants ? expr_instant_compare(&one, &other) : order_of_bytes(a->text, b->text);
    return expr_eval_work(x, at, (a->text.n < b->text.n ? a->text.n : b->text.n) / 64);
  }
  bool left_fits = a->kind == VALUE_NUMBER || (texts && a->kind == VALUE_TEXT);
  const struct expr *bad = left_fits ? right : left;
  const struct value *value = left_fits ? b : a;
  if (!texts)
    return expr_unfit(x, bad, value, ": < <= > >= compare numbers only");
  if (value->kind == VALUE_NULL)
    return expr_unfit(x, bad, value, ", which has no order");
  if (left_fits && (b->kind == VALUE_NUMBER || b->kind == VALUE_TEXT))
    return expr_eval_fail(x, EXPR_WRONG_TYPE, bad,
                          "%s and %s have no order: < <= > >= compare two numbers or two texts",
                          expr_described(a).text, expr_described(b).text);
  if (value->kind == VALUE_LIST)
    return expr_unfit(x, bad, value, ": to compare each item write all(list, item > 0)");
  return expr_unfit(x, bad, value, ": < <= > >= compare two numbers or two texts");
}

/* --- membership --- */

static bool expr_contains(struct eval *x, const struct expr *at, const struct expr *list,
                          const struct value *in, const struct value *what, bool *found) {
  *found = false;
  if (in->kind == VALUE_LIST) {
    for (size_t i = 0; i < in->n && !*found; i++) {
      struct value item = expr_list_at(in, i);
      if (!expr_equal(x, at, &item, what, found))
        return false;
    }
    return true;
  }
  if (x->dialect == EXPR_WHEN)
    return expr_unfit(x, list, in, ": contains needs a list");
  if (in->kind == VALUE_NULL)
    return expr_unfit(x, list, in, ", which contains nothing");
  if ((in->kind != VALUE_TEXT && in->kind != VALUE_OBJECT) || what->kind != VALUE_TEXT)
    return expr_unfit(x, list, in,
                      ": in and contains look for a value in a list, a text in a text "
                      "or a name in an object");
  if (in->kind == VALUE_OBJECT)
    *found = json_object_getn(in->json, what->text.p, what->text.n) != NULL;
  else
    *found = what->text.n == 0 || memmem(in->text.p, in->text.n, what->text.p, what->text.n);
  return expr_eval_work(x, at, in->kind == VALUE_TEXT ? in->text.n / 16 : 1);
}

/* --- two equal items of a list ---
 *
 * By keys, so that it takes one pass; lists and objects are compared in pairs. */

/* Makes the key of an item: equal values have equal keys. Returns false if there is no key. */
static bool item_key(const struct value *v, struct buf *key) {
  struct instant instant;
  switch (v->kind) {
  case VALUE_TEXT:
    if (expr_instant(v->text, &instant)) {
      buf_printf(key, "i%lld.", (long long)instant.seconds);
      buf_append(key, instant.fraction.p, instant.fraction.n);
    } else {
      buf_puts(key, "t");
      buf_append(key, v->text.p, v->text.n);
    }
    return true;
  case VALUE_NUMBER:
    buf_puts(key, "n");
    number_text(&v->number, key);
    return true;
  case VALUE_NULL:
  case VALUE_BOOL:
    expr_value_text(v, key);
    return true;
  case VALUE_LIST:
  case VALUE_OBJECT:
    break;
  }
  return false;
}

struct seen {
  struct arena arena; /* keys */
  struct map map;
  struct value *items;
  size_t *pairwise; /* indices of lists and objects */
  size_t pairwise_count;
};

static bool item_look(struct eval *x, const struct expr *e, struct seen *seen, size_t i,
                      struct duplicate *out) {
  const struct value *v = &seen->items[i];
  buf_auto_t key = {0};
  uint32_t before;
  bool ok = true;
  if (item_key(v, &key)) {
    ok = expr_eval_work(x, e, 1 + key.n / 16);
    if (ok && map_get(&seen->map, buf_view(&key), &before))
      *out = (struct duplicate){true, before, i, *v};
    else if (ok)
      map_put(&seen->map, &seen->arena, buf_view(&key), (uint32_t)i);
    return ok;
  }
  for (size_t k = 0; ok && k < seen->pairwise_count && !out->found; k++) {
    ok = expr_equal(x, e, v, &seen->items[seen->pairwise[k]], &out->found);
    if (out->found)
      *out = (struct duplicate){true, seen->pairwise[k], i, *v};
  }
  seen->pairwise[seen->pairwise_count++] = i;
  return ok;
}

/* Evaluates the second argument of a call on items, on item i; without one, gives the item
 * itself. */
static bool expr_get_of_item(struct eval *x, const struct eval_frame *f, const struct expr *e,
                             const struct value *list, size_t i, struct value *out) {
  struct eval_frame inner = {.outer = f, .value = expr_list_at(list, i), .level = f->level + 1};
  x->failed_item[inner.level] = i;
  if (!expr_eval_work(x, e, 1))
    return false;
  if (e->parts->next)
    return expr_get(x, &inner, e->parts->next, out);
  *out = inner.value;
  return true;
}

bool expr_find_duplicate(struct eval *x, const struct eval_frame *f, const struct expr *e,
                         const struct value *list, struct duplicate *out) {
  struct seen seen = {.items = expr_eval_get(x, (list->n + 1) * sizeof *seen.items)};
  *out = (struct duplicate){0};
  if (seen.items)
    seen.pairwise = expr_eval_get(x, (list->n + 1) * sizeof *seen.pairwise);
  bool ok = seen.pairwise != NULL;
  for (size_t i = 0; ok && i < list->n && !out->found; i++)
    ok = expr_get_of_item(x, f, e, list, i, &seen.items[i]) && item_look(x, e, &seen, i, out);
  map_deinit(&seen.map);
  arena_deinit(&seen.arena);
  return ok;
}

/* --- calls: quantors, totals, functions --- */

static struct value number_value(struct number number) {
  return (struct value){.kind = VALUE_NUMBER, .number = number};
}

static struct value count_value(size_t n) {
  return number_value(number_integer((json_int_t)n));
}

static bool get_items(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  if (!expr_get(x, f, e->parts, out))
    return false;
  return out->kind == VALUE_LIST ||
         expr_unfit(x, e->parts, out, ": %s needs a list", e->function->name);
}

/* Reports a fault of item i: "items[].price is a text at item 2: sum needs numbers". */
static bool bad_item(struct eval *x, const struct expr *e, size_t i, const struct value *v,
                     const char *needs) {
  const struct expr *what = e->parts->next ? e->parts->next : e->parts;
  struct excerpt shown = expr_excerpt(what->source.p, what->source.n);
  x->failed_call = e->parts->next ? NULL : e;
  return expr_eval_fail(x, v->kind == VALUE_NULL ? EXPR_NO_VALUE : EXPR_WRONG_TYPE, what,
                        "%s is %s at item %zu: %s needs %s", shown.text,
                        v->kind == VALUE_NULL ? "missing or null" : expr_described(v).text, i,
                        e->function->name, needs);
}

static bool quantor(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  enum function_id id = e->function->id;
  struct value list, v;
  size_t held = 0;
  if (!get_items(x, f, e, &list))
    return false;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_BOOL)
      return bad_item(x, e, i, &v, "true or false");
    held += v.boolean;
    if ((id == FN_ANY && v.boolean) || (id == FN_NO && v.boolean) || (id == FN_ALL && !v.boolean))
      break; /* decided */
  }
  if (id == FN_COUNT)
    *out = count_value(held);
  else if (id == FN_ALL)
    out->boolean = held == list.n;
  else if (id == FN_ANY)
    out->boolean = held > 0;
  else
    out->boolean = held == (id == FN_ONE);
  return true;
}

static bool range_error(struct eval *x, const struct expr *e) {
  return expr_eval_fail(x, EXPR_NUMBER_RANGE, e, "%s is beyond what a number can be here",
                        expr_excerpt(e->source.p, e->source.n).text);
}

static bool total(struct eval *x, const struct eval_frame *f, const struct expr *e,
                  struct value *out) {
  struct number sum = number_integer(0), n;
  struct value list, v;
  if (!get_items(x, f, e, &list))
    return false;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_NUMBER)
      return bad_item(x, e, i, &v, "numbers");
    if (number_add(&sum, &v.number, &n) != NUMBER_OK)
      return range_error(x, e);
    sum = n;
  }
  *out = number_value(sum);
  if (e->function->id == FN_SUM)
    return true;
  if (list.n == 0) {
    out->kind = VALUE_NULL;
    return true;
  }
  n = number_integer((json_int_t)list.n);
  return number_divide(&sum, &n, &out->number) == NUMBER_OK || range_error(x, e);
}

static bool extreme(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  const struct expr *what = e->parts->next ? e->parts->next : e->parts;
  struct value list, v;
  int order = 0;
  if (!get_items(x, f, e, &list))
    return false;
  out->kind = VALUE_NULL;
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (v.kind != VALUE_NUMBER && v.kind != VALUE_TEXT)
      return bad_item(x, e, i, &v, "numbers or texts");
    if (i > 0 && v.kind != out->kind)
      return bad_item(x, e, i, &v, "all numbers or all texts");
    if (i > 0 && !expr_order(x, e, what, &v, what, out, &order))
      return false;
    if (i == 0 || (order != 0 && (order > 0) == (e->function->id == FN_MAX)))
      *out = v;
  }
  return true;
}

/* Makes a list: for filter, the items that fulfil the condition; for map, the expression on each
 * item. */
static bool derived(struct eval *x, const struct eval_frame *f, const struct expr *e,
                    struct value *out) {
  bool map = e->function->id == FN_MAP;
  struct value list, v, *made = NULL;
  const json_t **picked = NULL;
  if (!get_items(x, f, e, &list))
    return false;
  if (map || list.made)
    made = expr_eval_get(x, (list.n + 1) * sizeof *made);
  else
    picked = expr_eval_get(x, (list.n + 1) * sizeof *picked);
  if (made == NULL && picked == NULL)
    return false;
  *out = (struct value){.kind = VALUE_LIST, .picked = picked, .made = made};
  for (size_t i = 0; i < list.n; i++) {
    if (!expr_get_of_item(x, f, e, &list, i, &v))
      return false;
    if (!map && v.kind != VALUE_BOOL)
      return bad_item(x, e, i, &v, "true or false");
    if (!map && !v.boolean)
      continue;
    if (picked)
      picked[out->n++] = list.picked ? list.picked[i] : json_array_get(list.json, i);
    else
      made[out->n++] = map ? v : list.made[i];
  }
  return true;
}

static bool length(struct eval *x, const struct expr *e, const struct value *v, struct value *out) {
  size_t n = v->n;
  switch (v->kind) {
  case VALUE_TEXT:
    n = utf8_count(v->text.p, v->text.n);
    break;
  case VALUE_OBJECT:
    n = json_object_size(v->json);
    break;
  case VALUE_LIST:
    break;
  case VALUE_NULL:
  case VALUE_BOOL:
  case VALUE_NUMBER:
    return expr_unfit(x, e->parts, v, ": it has no length");
  }
  *out = count_value(n);
  return expr_eval_work(x, e, v->kind == VALUE_TEXT ? v->text.n / 64 : 1);
}

static bool need(struct eval *x, const struct expr *e, const struct expr *what,
                 const struct value *v, enum value_kind kind) {
  const char *needs = kind == VALUE_NUMBER ? "a number" : "a text";
  return v->kind == kind || expr_unfit(x, what, v, ": %s needs %s", e->function->name, needs);
}

static bool rounded(struct eval *x, const struct expr *e, const struct value *v,
                    const struct value *digits, struct value *out) {
  enum { PLACES_MAX = 30 };
  enum number_rounding how = ROUND_HALF_AWAY;
  int places = 0;
  if (e->function->id == FN_FLOOR)
    how = ROUND_DOWN;
  else if (e->function->id == FN_CEIL)
    how = ROUND_UP;
  if (!need(x, e, e->parts, v, VALUE_NUMBER))
    return false;
  if (e->parts->next) {
    const struct number *n = &digits->number;
    if (!need(x, e, e->parts->next, digits, VALUE_NUMBER))
      return false;
    if (n->kind != NUMBER_INTEGER || n->integer < -PLACES_MAX || n->integer > PLACES_MAX)
      return expr_eval_fail(x, EXPR_WRONG_TYPE, e->parts->next,
                            "the digits of round are an integer from -%d to %d", PLACES_MAX,
                            PLACES_MAX);
    places = (int)n->integer;
  }
  *out = number_value(number_round(&v->number, places, how));
  return true;
}

static bool compiled(struct eval *x, const struct expr *e, const struct pattern **out) {
  const struct expr *text = e->parts->next;
  for (struct compiled_pattern *p = x->patterns; p; p = p->next)
    if (p->node == e) {
      *out = p->pattern;
      return true;
    }
  struct compiled_pattern *p = expr_eval_get(x, sizeof *p);
  if (p == NULL)
    return false;
  if (pattern_compile(text->string.p, text->string.n, &p->pattern, NULL) != PATTERN_OK)
    BUG("a pattern that was sound when parsed");
  p->node = e;
  p->next = x->patterns;
  x->patterns = p;
  *out = p->pattern;
  return true;
}

static bool text_matches(struct eval *x, const struct expr *e, const struct value *v,
                         struct value *out) {
  const struct pattern *pattern = NULL;
  if (!compiled(x, e, &pattern))
    return false;
  uint64_t before = x->scratch.cost;
  enum pattern_result result = pattern_match(pattern, &x->scratch, v->text.p, v->text.n);
  if (result == PATTERN_TOO_COMPLEX)
    return expr_eval_fail(x, EXPR_TOO_COMPLEX, e, "the pattern takes too many steps on this text");
  out->boolean = result == PATTERN_MATCH;
  return expr_eval_work(x, e, (size_t)((x->scratch.cost - before) / 2));
}

static bool on_texts(struct eval *x, const struct expr *e, const struct value *a,
                     const struct value *b, struct value *out) {
  struct str text = a->text, piece = b->text;
  if (!need(x, e, e->parts, a, VALUE_TEXT) || !need(x, e, e->parts->next, b, VALUE_TEXT))
    return false;
  if (e->function->id == FN_MATCHES)
    return text_matches(x, e, a, out);
  size_t from = e->function->id == FN_ENDS && text.n > piece.n ? text.n - piece.n : 0;
  out->boolean = text.n >= piece.n && memcmp(text.p + from, piece.p, piece.n) == 0;
  return expr_eval_work(x, e, piece.n / 64);
}

/* Calls functions of one or two values, which are evaluated first. */
static bool on_values(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  struct value a, b = {0};
  if (!expr_get(x, f, e->parts, &a))
    return false;
  if (e->function->id == FN_DEFAULT) {
    *out = a;
    return a.kind != VALUE_NULL || expr_get(x, f, e->parts->next, out);
  }
  if (e->parts->next && !expr_get(x, f, e->parts->next, &b))
    return false;
  switch ((int)e->function->id) {
  case FN_CONTAINS:
    return expr_contains(x, e, e->parts, &a, &b, &out->boolean);
  case FN_HAS:
    out->boolean = a.kind != VALUE_NULL;
    return true;
  case FN_LENGTH:
    return length(x, e, &a, out);
  case FN_ABS:
    if (!need(x, e, e->parts, &a, VALUE_NUMBER))
      return false;
    *out = number_value(number_magnitude(&a.number));
    return true;
  case FN_ROUND:
  case FN_FLOOR:
  case FN_CEIL:
    return rounded(x, e, &a, &b, out);
  case FN_STARTS:
  case FN_ENDS:
  case FN_MATCHES:
    return on_texts(x, e, &a, &b, out);
  case FN_IS_DATE: {
    struct instant instant;
    out->boolean = a.kind == VALUE_TEXT && expr_instant(a.text, &instant);
    return expr_eval_work(x, e, a.kind == VALUE_TEXT ? a.text.n / 64 : 1);
  }
  default: /* on items, which expr_get_call takes */
    return true;
  }
}

static bool expr_get_call(struct eval *x, const struct eval_frame *f, const struct expr *e,
                          struct value *out) {
  switch ((int)e->function->id) {
  case FN_COUNT:
    if (e->parts->next == NULL) {
      struct value list;
      if (!get_items(x, f, e, &list))
        return false;
      *out = count_value(list.n);
      return true;
    }
    return quantor(x, f, e, out);
  case FN_ALL:
  case FN_ANY:
  case FN_NO:
  case FN_ONE:
    return quantor(x, f, e, out);
  case FN_SUM:
  case FN_AVG:
    return total(x, f, e, out);
  case FN_MIN:
  case FN_MAX:
    return extreme(x, f, e, out);
  case FN_UNIQUE: {
    struct value list;
    struct duplicate duplicate = {0};
    bool ok = get_items(x, f, e, &list) && expr_find_duplicate(x, f, e, &list, &duplicate);
    out->boolean = !duplicate.found;
    return ok;
  }
  case FN_FILTER:
  case FN_MAP:
    return derived(x, f, e, out);
  default:
    return on_values(x, f, e, out);
  }
}

/* --- references and operators --- */

void *expr_eval_get(struct eval *x, size_t bytes) {
  if (bytes > EXPR_MEMORY_MAX || (x->memory += bytes) > EXPR_MEMORY_MAX) {
    x->error->code = EXPR_TOO_COMPLEX;
    print_into(x->error->text, sizeof x->error->text,
               "the expression needs more than %d MiB of memory", EXPR_MEMORY_MAX >> 20);
    return NULL;
  }
  return arena_alloc(&x->arena, bytes);
}

bool expr_eval_work(struct eval *x, const struct expr *at, size_t steps) {
  if (steps < EXPR_WORK_MAX)
    x->work -= (int64_t)steps;
  else
    x->work = -1;
  return x->work >= 0 || expr_eval_fail(x, EXPR_TOO_COMPLEX, at,
                                        "the expression takes more than %d steps", EXPR_WORK_MAX);
}

const struct eval_frame *expr_frame(const struct eval_frame *f, unsigned level) {
  while (f->level > level)
    f = f->outer;
  assert(f->level == level); /* the parser knows no other */
  return f;
}

const struct eval_frame *expr_base(const struct eval_frame *f, const struct expr *e, size_t *from) {
  const struct eval_frame *base = expr_frame(f, e->level);
  *from = e->maybe_whole &&
          !(base->value.kind == VALUE_OBJECT && json_object_get(base->value.json, "root"));
  return *from ? expr_frame(f, 0) : base;
}

/* --- references --- */

struct ref_walk {
  struct eval *x;
  const struct expr *ref;
  struct value value;
  bool projected; /* the value is the items of a list so far, not a list that stands somewhere */
};

static bool missing(struct ref_walk *w, const struct ref_part *part) {
  struct excerpt source = expr_excerpt(w->ref->source.p, w->ref->source.n);
  if (w->x->dialect == EXPR_INVARIANT) {
    w->value = (struct value){.kind = VALUE_NULL};
    return true;
  }
  const json_t *why =
      w->value.kind == VALUE_OBJECT ? json_object_get(w->value.json, EXPR_WHY) : NULL;
  if (part == w->ref->ref && json_is_string(why) &&
      (str_eq_c(part->name, "changed") || str_eq_c(part->name, "files")))
    return expr_eval_fail(w->x, EXPR_UNKNOWN, w->ref, "it is not known which files changed: %s",
                          json_string_value(why));
  if (part->kind == PART_INDEX)
    return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref,
                          "%s has no value: there is no [%" JSON_INTEGER_FORMAT "]", source.text,
                          part->index);
  return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref, "%s has no value: there is no %s", source.text,
                        expr_excerpt(part->name.p, part->name.n).text);
}

/* These count and collect the members of a list, with lists among them opened. */
enum { OPEN_LEVELS = 64 };

static size_t count_opened(const json_t *json, int levels) {
  size_t n = 0;
  if (!json_is_array(json) || levels == 0)
    return 1;
  for (size_t i = 0; i < json_array_size(json); i++)
    n += count_opened(json_array_get(json, i), levels - 1);
  return n;
}

static void pick_opened(const json_t *json, int levels, const json_t **to, size_t *n) {
  if (!json_is_array(json) || levels == 0) {
    to[(*n)++] = json;
    return;
  }
  for (size_t i = 0; i < json_array_size(json); i++)
    pick_opened(json_array_get(json, i), levels - 1, to, n);
}

static const json_t *item_json(const struct value *list, size_t i) {
  return list->picked ? list->picked[i] : json_array_get(list->json, i);
}

/* Opens the items of a list as they stand in the JSON, each list among them `levels` times. */
static bool open_items(struct ref_walk *w, int levels) {
  const struct value list = w->value;
  size_t n = 0, at = 0;
  if (list.made)
    return expr_eval_fail(w->x, EXPR_WRONG_TYPE, w->ref, "[] and .name need a list of the value");
  for (size_t i = 0; i < list.n; i++)
    n += count_opened(item_json(&list, i), levels);
  if (!expr_eval_work(w->x, w->ref, n))
    return false;
  const json_t **to = expr_eval_get(w->x, (n + 1) * sizeof *to);
  if (to == NULL)
    return false;
  for (size_t i = 0; i < list.n; i++)
    pick_opened(item_json(&list, i), levels, to, &at);
  w->value = (struct value){.kind = VALUE_LIST, .picked = to, .n = n};
  return true;
}

/* Applies .name to each item of a list, with null where there is none. */
static bool project(struct ref_walk *w, const struct ref_part *part) {
  if (!open_items(w, w->x->dialect == EXPR_WHEN ? 0 : OPEN_LEVELS))
    return false;
  const json_t **to = (const json_t **)(uintptr_t)w->value.picked; /* ours, made just now */
  for (size_t i = 0; i < w->value.n; i++) {
    to[i] = json_object_getn(to[i], part->name.p, part->name.n);
    if (to[i] == NULL && w->x->dialect == EXPR_WHEN)
      return missing(w, part);
  }
  w->projected = true;
  return true;
}

static bool step_name(struct ref_walk *w, const struct ref_part *part) {
  const struct value v = w->value;
  bool length = str_eq_c(part->name, "length");
  if (v.kind == VALUE_OBJECT) {
    const json_t *member = json_object_getn(v.json, part->name.p, part->name.n);
    if (member == NULL)
      return missing(w, part);
    w->value = expr_value_of(member);
  } else if (v.kind == VALUE_TEXT && length) {
    w->value = count_value(utf8_count(v.text.p, v.text.n));
    return expr_eval_work(w->x, w->ref, v.text.n / 64);
  } else if (v.kind == VALUE_LIST && length) {
    w->value = count_value(v.n);
  } else if (v.kind == VALUE_LIST) {
    return project(w, part);
  } else {
    return missing(w, part);
  }
  return true;
}

static bool ref_step(struct ref_walk *w, const struct ref_part *part) {
  switch (part->kind) {
  case PART_NAME:
    return step_name(w, part);
  case PART_EACH: {
    struct excerpt source = expr_excerpt(w->ref->source.p, w->ref->source.n);
    if (w->value.kind == VALUE_NULL)
      return expr_eval_fail(w->x, EXPR_NO_VALUE, w->ref,
                            "%s: the list before [] is missing or null", source.text);
    if (w->value.kind != VALUE_LIST)
      return expr_eval_fail(w->x, EXPR_WRONG_TYPE, w->ref,
                            "%s: what stands before [] is %s, no list", source.text,
                            expr_described(&w->value).text);
    if (!w->projected) {
      w->projected = true;
      return true;
    }
    for (size_t i = 0; i < w->value.n; i++) {
      struct value item = expr_list_at(&w->value, i);
      if (item.kind != VALUE_LIST)
        return expr_eval_fail(
            w->x, item.kind == VALUE_NULL ? EXPR_NO_VALUE : EXPR_WRONG_TYPE, w->ref,
            "%s: what stands before the last [] is %s at item %zu, no list", source.text,
            item.kind == VALUE_NULL ? "missing or null" : expr_described(&item).text, i);
    }
    return open_items(w, 1);
  }
  case PART_INDEX:
    break;
  }
  const struct value v = w->value;
  json_int_t i = part->index < 0 ? (json_int_t)v.n + part->index : part->index;
  w->projected = false;
  if (v.kind != VALUE_LIST || i < 0 || (size_t)i >= v.n)
    return missing(w, part);
  w->value = expr_list_at(&v, (size_t)i);
  return true;
}

static bool expr_get_ref(struct eval *x, const struct eval_frame *f, const struct expr *e,
                         struct value *out) {
  struct ref_walk w = {.x = x, .ref = e};
  size_t i = 0;
  if (e->start == REF_BASE) {
    if (!expr_get(x, f, e->parts, &w.value))
      return false;
  } else {
    w.value = expr_base(f, e, &i)->value;
  }
  for (; i < e->ref_count; i++) {
    const struct ref_part *part = &e->ref[i];
    if (!expr_eval_work(x, e, 1) || !ref_step(&w, part))
      return false;
  }
  *out = w.value;
  return true;
}

/* --- operators --- */

static bool compare(struct eval *x, const struct eval_frame *f, const struct expr *e, bool *out) {
  const struct expr *left = e->parts, *right = left->next;
  struct value a, b;
  int order = 0;
  if (!expr_get(x, f, left, &a) || !expr_get(x, f, right, &b))
    return false;
  if (e->op == CMP_EQ || e->op == CMP_NE) {
    if (!expr_equal(x, e, &a, &b, out))
      return false;
    *out = *out == (e->op == CMP_EQ);
    return true;
  }
  if (e->op == CMP_IN || e->op == CMP_NOT_IN) {
    if (!expr_contains(x, e, right, &b, &a, out))
      return false;
    *out = *out == (e->op == CMP_IN);
    return true;
  }
  if (!expr_order(x, e, left, &a, right, &b, &order))
    return false;
  if (e->op == CMP_GE || e->op == CMP_LE)
    *out = order == 0 || (order > 0) == (e->op == CMP_GE);
  else
    *out = order != 0 && (order > 0) == (e->op == CMP_GT);
  return true;
}

static bool texts_join(struct eval *x, const struct value *a, const struct value *b,
                       struct value *out) {
  char *to = expr_eval_get(x, a->text.n + b->text.n + 1);
  if (to == NULL)
    return false;
  memcpy(to, a->text.p, a->text.n);
  memcpy(to + a->text.n, b->text.p, b->text.n);
  *out = (struct value){.kind = VALUE_TEXT, .text = {to, a->text.n + b->text.n}};
  return true;
}

static bool need_number(struct eval *x, const struct expr *e, const struct value *v,
                        const char *what) {
  if (v->kind == VALUE_LIST)
    return expr_unfit(x, e, v,
                      ": %s needs a number; to calculate with each item write sum(list, a %s b)",
                      what, what);
  return v->kind == VALUE_NUMBER || expr_unfit(x, e, v, ": %s needs a number", what);
}

static bool calculate(struct eval *x, const struct eval_frame *f, const struct expr *e,
                      struct value *out) {
  static const struct {
    const char *sign;
    enum number_status (*apply)(const struct number *, const struct number *, struct number *);
  } ops[] = {{"+", number_add},
             {"-", number_subtract},
             {"*", number_multiply},
             {"/", number_divide},
             {"%", number_remainder}};
  const struct expr *left = e->parts, *right = left->next;
  struct value a, b;
  if (!expr_get(x, f, left, &a) || !expr_get(x, f, right, &b))
    return false;
  if (e->op == CALC_ADD && a.kind == VALUE_TEXT && b.kind == VALUE_TEXT)
    return texts_join(x, &a, &b, out);
  const char *sign = ops[e->op - CALC_ADD].sign;
  if (!need_number(x, left, &a, sign) || !need_number(x, right, &b, sign))
    return false;
  out->kind = VALUE_NUMBER;
  enum number_status status = ops[e->op - CALC_ADD].apply(&a.number, &b.number, &out->number);
  if (status == NUMBER_BY_ZERO)
    return expr_eval_fail(x, EXPR_DIVISION_BY_ZERO, right, "division by zero: %s is 0",
                          expr_excerpt(right->source.p, right->source.n).text);
  return status == NUMBER_OK || range_error(x, e);
}

static bool get_list(struct eval *x, const struct eval_frame *f, const struct expr *e,
                     struct value *out) {
  size_t n = 0;
  for (const struct expr *part = e->parts; part; part = part->next)
    n++;
  struct value *made = expr_eval_get(x, (n + 1) * sizeof *made);
  if (made == NULL)
    return false;
  *out = (struct value){.kind = VALUE_LIST, .made = made};
  for (const struct expr *part = e->parts; part; part = part->next)
    if (!expr_get(x, f, part, &made[out->n++]))
      return false;
  return true;
}

bool expr_get_condition(struct eval *x, const struct eval_frame *f, const struct expr *e,
                        bool *out) {
  struct value v;
  if (!expr_get(x, f, e, &v))
    return false;
  *out = v.boolean;
  if (v.kind == VALUE_BOOL)
    return true;
  if (v.kind == VALUE_NULL && x->dialect == EXPR_INVARIANT)
    return expr_unfit(x, e, &v, ", not true or false");
  return expr_unfit(x, e, &v, ", not true or false: compare it");
}

static bool logic(struct eval *x, const struct eval_frame *f, const struct expr *e, bool *out) {
  if (e->kind == NODE_NOT) {
    bool holds;
    if (!expr_get_condition(x, f, e->parts, &holds))
      return false;
    *out = !holds;
    return true;
  }
  bool decides = e->kind == NODE_OR;
  for (const struct expr *part = e->parts; part; part = part->next)
    if (!expr_get_condition(x, f, part, out))
      return false;
    else if (*out == decides)
      return true;
  return true;
}

bool expr_get(struct eval *x, const struct eval_frame *f, const struct expr *e, struct value *out) {
  if (!expr_eval_work(x, e, 1))
    return false;
  *out = (struct value){.kind = VALUE_BOOL};
  switch (e->kind) {
  case NODE_OR:
  case NODE_AND:
  case NODE_NOT:
    return logic(x, f, e, &out->boolean);
  case NODE_COMPARE:
    return compare(x, f, e, &out->boolean);
  case NODE_BOOL:
    out->boolean = e->boolean;
    return true;
  case NODE_NULL:
    out->kind = VALUE_NULL;
    return true;
  case NODE_NUMBER:
    out->kind = VALUE_NUMBER;
    out->number = e->number;
    return true;
  case NODE_STRING:
    out->kind = VALUE_TEXT;
    out->text = e->string;
    return true;
  case NODE_LIST:
    return get_list(x, f, e, out);
  case NODE_REF:
    return expr_get_ref(x, f, e, out);
  case NODE_BINARY:
    return calculate(x, f, e, out);
  case NODE_NEGATE: {
    struct value v;
    if (!expr_get(x, f, e->parts, &v) || !need_number(x, e->parts, &v, "-"))
      return false;
    out->kind = VALUE_NUMBER;
    out->number = number_negate(&v.number);
    return true;
  }
  case NODE_CALL:
    return expr_get_call(x, f, e, out);
  }
  return true;
}

/* --- one evaluation --- */
