#include "judge/expr_node.h"

#include "base/limits.h"
#include "base/log.h"

#include <assert.h>

struct scope {
  const json_t *env, *item;
  struct err *err;
};

/* For messages: they are cut to fit, never inside a character. */
static struct str brief(struct str s) {
  return (struct str){s.p, utf8_floor(s.p, s.n > 160 ? 160 : s.n)};
}

static json_t *must(json_t *value) {
  if (value == NULL)
    BUG("out of memory");
  return value;
}

static json_t *share(const json_t *value) {
  return json_incref((json_t *)value); /* only the count changes */
}

static const char *type_name(const json_t *v) {
  switch (json_typeof(v)) {
  case JSON_OBJECT:
    return "an object";
  case JSON_ARRAY:
    return "a list";
  case JSON_STRING:
    return "a text";
  case JSON_INTEGER:
  case JSON_REAL:
    return "a number";
  case JSON_TRUE:
  case JSON_FALSE:
    return "true or false";
  case JSON_NULL:
    return "null";
  }
  return "nothing";
}

static json_int_t character_count(const char *p, size_t n) {
  json_int_t count = 0;
  for (size_t i = 0; i < n; i++)
    count += ((unsigned char)p[i] & 0xC0) != 0x80;
  return count;
}

static json_t *missing(const struct scope *s, const struct expr *ref, const struct ref_part *part) {
  if (part->is_index)
    (void)err_set(s->err, ERR_INVALID, STR_FMT " has no value: there is no [%zu]",
                  STR_ARG(brief(ref->text)), part->index);
  else
    (void)err_set(s->err, ERR_INVALID, STR_FMT " has no value: there is no " STR_FMT,
                  STR_ARG(brief(ref->text)), STR_ARG(brief(part->name)));
  return NULL;
}

/* One step of a reference, a new reference to the result; consumes `from`. */
static json_t *step(const struct scope *s, const struct expr *ref, const struct ref_part *part,
                    json_t *from) {
  json_t *to = NULL;
  bool is_length = !part->is_index && str_eq_c(part->name, "length");
  if (part->is_index) {
    to = json_is_array(from) ? json_incref(json_array_get(from, part->index)) : NULL;
  } else if (json_is_object(from)) {
    to = json_incref(json_object_getn(from, part->name.p, part->name.n));
  } else if (json_is_string(from) && is_length) {
    to = must(json_integer(character_count(json_string_value(from), json_string_length(from))));
  } else if (json_is_array(from) && is_length) {
    to = must(json_integer((json_int_t)json_array_size(from)));
  } else if (json_is_array(from)) {
    size_t i;
    json_t *member;
    to = must(json_array());
    json_array_foreach(from, i, member) {
      json_t *value = json_object_getn(member, part->name.p, part->name.n);
      if (value == NULL) { /* a member without the field: as missing as any other */
        json_decref(to);
        to = NULL;
        break;
      }
      if (json_array_append(to, value) != 0)
        BUG("out of memory");
    }
  }
  json_decref(from);
  return to ? to : missing(s, ref, part);
}

static json_t *ref_value(const struct scope *s, const struct expr *ref) {
  json_t *v;
  if (ref->on_item) {
    assert(s->item);
    v = share(s->item);
  } else {
    const json_t *root = json_object_getn(s->env, ref->ref[0].name.p, ref->ref[0].name.n);
    if (root == NULL)
      return missing(s, ref, &ref->ref[0]);
    v = share(root);
  }
  for (size_t i = 1; i < ref->ref_count && v; i++)
    v = step(s, ref, &ref->ref[i], v);
  return v;
}

/* New reference, or NULL with err set. */
static json_t *operand_value(const struct scope *s, const struct expr *e) {
  switch (e->kind) {
  case NODE_NULL:
    return json_null();
  case NODE_BOOL:
    return json_boolean(e->boolean);
  case NODE_INTEGER:
    return must(json_integer(e->integer));
  case NODE_REAL:
    return must(json_real(e->real));
  case NODE_STRING:
    return must(json_stringn_nocheck(e->text.p, e->text.n));
  case NODE_REF:
    return ref_value(s, e);
  case NODE_OR:
  case NODE_AND:
  case NODE_NOT:
  case NODE_COMPARE:
  case NODE_CONTAINS:
  case NODE_EXISTS:
    break;
  }
  BUG("not an operand: %d", (int)e->kind);
}

/* Exact for 64-bit integers and doubles alike where long double has 64 bits of mantissa. */
static long double number(const json_t *v) {
  return json_is_integer(v) ? (long double)json_integer_value(v) : (long double)json_real_value(v);
}

static bool equal(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b))
    return number(a) == number(b);
  return json_equal(a, b);
}

static enum expr_value eval_compare(const struct scope *s, const struct expr *e) {
  json_auto_t *left = operand_value(s, e->parts);
  json_auto_t *right = left ? operand_value(s, e->parts->next) : NULL;
  if (left == NULL || right == NULL)
    return EXPR_ERROR;
  if (e->op == OP_EQ || e->op == OP_NE)
    return equal(left, right) == (e->op == OP_EQ) ? EXPR_TRUE : EXPR_FALSE;
  if (!json_is_number(left) || !json_is_number(right)) {
    const struct expr *bad = json_is_number(left) ? e->parts->next : e->parts;
    (void)err_set(s->err, ERR_INVALID, STR_FMT " is %s: < <= > >= compare numbers only",
                  STR_ARG(brief(bad->text)), type_name(json_is_number(left) ? right : left));
    return EXPR_ERROR;
  }
  long double a = number(left), b = number(right);
  bool holds = e->op == OP_GE ? a >= b : e->op == OP_LE ? a <= b : e->op == OP_GT ? a > b : a < b;
  return holds ? EXPR_TRUE : EXPR_FALSE;
}

static enum expr_value eval(const struct scope *s, const struct expr *e);

static enum expr_value eval_list(const struct scope *s, const struct expr *e) {
  json_auto_t *list = ref_value(s, e->parts);
  if (list == NULL)
    return EXPR_ERROR;
  if (!json_is_array(list)) {
    (void)err_set(s->err, ERR_INVALID, STR_FMT " is %s: %s needs a list",
                  STR_ARG(brief(e->parts->text)), type_name(list),
                  e->kind == NODE_EXISTS ? "exists" : "contains");
    return EXPR_ERROR;
  }
  json_auto_t *wanted = NULL;
  if (e->kind == NODE_CONTAINS && (wanted = operand_value(s, e->parts->next)) == NULL)
    return EXPR_ERROR;
  size_t i;
  json_t *member;
  json_array_foreach(list, i, member) {
    enum expr_value v;
    if (e->kind == NODE_CONTAINS) {
      v = equal(member, wanted) ? EXPR_TRUE : EXPR_FALSE;
    } else {
      struct scope inner = {s->env, member, s->err};
      v = eval(&inner, e->parts->next);
    }
    if (v != EXPR_FALSE)
      return v;
  }
  return EXPR_FALSE;
}

static enum expr_value eval(const struct scope *s, const struct expr *e) {
  switch (e->kind) {
  case NODE_OR:
  case NODE_AND: {
    enum expr_value decides = e->kind == NODE_OR ? EXPR_TRUE : EXPR_FALSE;
    for (const struct expr *part = e->parts; part; part = part->next) {
      enum expr_value v = eval(s, part);
      if (v == EXPR_ERROR || v == decides)
        return v;
    }
    return decides == EXPR_TRUE ? EXPR_FALSE : EXPR_TRUE;
  }
  case NODE_NOT: {
    enum expr_value v = eval(s, e->parts);
    return v == EXPR_ERROR ? v : v == EXPR_TRUE ? EXPR_FALSE : EXPR_TRUE;
  }
  case NODE_BOOL:
    return e->boolean ? EXPR_TRUE : EXPR_FALSE;
  case NODE_REF: {
    json_auto_t *v = ref_value(s, e);
    if (v == NULL)
      return EXPR_ERROR;
    if (json_is_boolean(v))
      return json_is_true(v) ? EXPR_TRUE : EXPR_FALSE;
    (void)err_set(s->err, ERR_INVALID, STR_FMT " is %s, not true or false: compare it",
                  STR_ARG(brief(e->text)), type_name(v));
    return EXPR_ERROR;
  }
  case NODE_COMPARE:
    return eval_compare(s, e);
  case NODE_CONTAINS:
  case NODE_EXISTS:
    return eval_list(s, e);
  case NODE_NULL:
  case NODE_INTEGER:
  case NODE_REAL:
  case NODE_STRING:
    break; /* the parser lets none of these stand alone */
  }
  BUG("not a condition: %d", (int)e->kind);
}

enum expr_value expr_eval(const struct expr *expr, const json_t *env, struct err *err) {
  return eval(&(struct scope){env, NULL, err}, expr);
}

void expr_each_ref(const struct expr *expr, void (*fn)(void *ctx, const struct str *path, size_t n),
                   void *ctx) {
  if (expr->kind == NODE_REF && !expr->on_item) {
    struct str names[LIMIT_EXPR_NODE_COUNT];
    size_t n = 0;
    for (size_t i = 0; i < expr->ref_count; i++)
      if (!expr->ref[i].is_index)
        names[n++] = expr->ref[i].name;
    fn(ctx, names, n);
  }
  for (const struct expr *part = expr->parts; part; part = part->next)
    expr_each_ref(part, fn, ctx);
}
