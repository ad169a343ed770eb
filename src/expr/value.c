/* Compares the values of expressions and puts them into words. */
#include "expr/eval.h"

#include "format/json_value.h"

#include <stdio.h>

enum { SHOWN_BYTES = 40 }; /* the most of a text in an error */

static struct value expr_bool(bool value) {
  return (struct value){.kind = VALUE_BOOL, .boolean = value};
}

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
    return expr_bool(json_is_true(json));
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

const char *expr_kind_name(const struct value *value) {
  switch (value->kind) {
  case VALUE_NULL:
    return "null";
  case VALUE_BOOL:
    return "true or false";
  case VALUE_NUMBER:
    return "a number";
  case VALUE_TEXT:
    return "a text";
  case VALUE_LIST:
    return "a list";
  case VALUE_OBJECT:
    return "an object";
  }
  return "nothing";
}

struct excerpt expr_described(const struct value *value) {
  struct excerpt out;
  struct buf number = {0};
  switch (value->kind) {
  case VALUE_TEXT: {
    struct excerpt text =
        expr_excerpt(value->text.p, value->text.n < SHOWN_BYTES ? value->text.n : SHOWN_BYTES);
    (void)snprintf(out.text, sizeof out.text, "the text \"%.80s%s\"", text.text,
                   value->text.n > SHOWN_BYTES ? "..." : "");
    return out;
  }
  case VALUE_BOOL:
    (void)snprintf(out.text, sizeof out.text, "%s", value->boolean ? "true" : "false");
    return out;
  case VALUE_NUMBER:
    number_text(&value->number, &number);
    (void)snprintf(out.text, sizeof out.text, "%.60s", buf_c(&number));
    buf_deinit(&number);
    return out;
  case VALUE_NULL:
  case VALUE_LIST:
  case VALUE_OBJECT:
    break;
  }
  (void)snprintf(out.text, sizeof out.text, "%s", expr_kind_name(value));
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
    schema_value_text(value->json, out);
    return;
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

static bool lists_equal(struct eval *x, const struct expr *at, const struct value *a,
                        const struct value *b, bool *equal) {
  *equal = a->n == b->n;
  if (*equal && a->json && b->json)
    return json_values_equal(x, at, a->json, b->json, equal);
  for (size_t i = 0; i < a->n && *equal; i++) {
    struct value one = expr_list_at(a, i), other = expr_list_at(b, i);
    if (!expr_equal(x, at, &one, &other, equal))
      return false;
  }
  return true;
}

bool expr_equal(struct eval *x, const struct expr *at, const struct value *a, const struct value *b,
                bool *equal) {
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
    *equal = a->text.n == b->text.n && memcmp(a->text.p, b->text.p, a->text.n) == 0;
    if (!*equal && x->dialect == EXPR_INVARIANT && expr_instant(a->text, &one) &&
        expr_instant(b->text, &other))
      *equal = expr_instant_compare(&one, &other) == 0;
    return expr_eval_work(x, at, a->text.n / 64);
  case VALUE_LIST:
    return lists_equal(x, at, a, b, equal);
  case VALUE_OBJECT:
    return json_values_equal(x, at, a->json, b->json, equal);
  }
  return true;
}

/* --- order --- */

static int order_of_texts(struct str a, struct str b) {
  struct instant one, other;
  if (expr_instant(a, &one) && expr_instant(b, &other))
    return expr_instant_compare(&one, &other);
  size_t n = a.n < b.n ? a.n : b.n;
  int order = n ? memcmp(a.p, b.p, n) : 0; /* UTF-8 is so in the order of code points */
  if (order == 0)
    return (a.n > b.n) - (a.n < b.n);
  return order < 0 ? -1 : 1;
}

bool expr_order(struct eval *x, const struct expr *at, const struct expr *left,
                const struct value *a, const struct expr *right, const struct value *b,
                int *order) {
  bool texts = x->dialect == EXPR_INVARIANT;
  if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER) {
    *order = number_compare(&a->number, &b->number);
    return true;
  }
  if (texts && a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
    *order = order_of_texts(a->text, b->text);
    return expr_eval_work(x, at, (a->text.n < b->text.n ? a->text.n : b->text.n) / 64);
  }
  bool left_fits = a->kind == VALUE_NUMBER || (texts && a->kind == VALUE_TEXT);
  const struct expr *bad = left_fits ? right : left;
  const struct value *value = left_fits ? b : a;
  struct excerpt shown = expr_excerpt(bad->source.p, bad->source.n);
  if (!texts)
    return expr_eval_fail(x, EXPR_WRONG_TYPE, bad, "%s is %s: < <= > >= compare numbers only",
                          shown.text, expr_kind_name(value));
  if (value->kind == VALUE_NULL)
    return expr_eval_fail(x, EXPR_NO_VALUE, bad, "%s is missing or null, which has no order",
                          shown.text);
  if (left_fits && (b->kind == VALUE_NUMBER || b->kind == VALUE_TEXT))
    return expr_eval_fail(x, EXPR_WRONG_TYPE, bad,
                          "%s and %s have no order: < <= > >= compare two numbers or two texts",
                          expr_described(a).text, expr_described(b).text);
  if (value->kind == VALUE_LIST)
    return expr_eval_fail(x, EXPR_WRONG_TYPE, bad,
                          "%s is a list: to compare each item write all(list, item > 0)",
                          shown.text);
  return expr_eval_fail(x, EXPR_WRONG_TYPE, bad,
                        "%s is %s: < <= > >= compare two numbers or two texts", shown.text,
                        expr_described(value).text);
}

/* --- membership --- */

bool expr_contains(struct eval *x, const struct expr *at, const struct expr *list,
                   const struct value *in, const struct value *what, bool *found) {
  struct excerpt shown = expr_excerpt(list->source.p, list->source.n);
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
    return expr_eval_fail(x, EXPR_WRONG_TYPE, list, "%s is %s: contains needs a list", shown.text,
                          expr_kind_name(in));
  if (in->kind == VALUE_NULL)
    return expr_eval_fail(x, EXPR_NO_VALUE, list, "%s is missing or null, which contains nothing",
                          shown.text);
  if ((in->kind != VALUE_TEXT && in->kind != VALUE_OBJECT) || what->kind != VALUE_TEXT)
    return expr_eval_fail(x, EXPR_WRONG_TYPE, list,
                          "%s is %s: in and contains look for a value in a list, a text in a text "
                          "or a name in an object",
                          shown.text, expr_described(in).text);
  if (in->kind == VALUE_OBJECT)
    *found = json_object_getn(in->json, what->text.p, what->text.n) != NULL;
  else
    *found = what->text.n == 0 || memmem(in->text.p, in->text.n, what->text.p, what->text.n);
  return expr_eval_work(x, at, in->kind == VALUE_TEXT ? in->text.n / 16 : 1);
}
