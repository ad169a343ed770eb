#include "judge/expr.h"

#include "base/buf.h"
#include "base/limits.h"
#include "judge/expr_node.h"

#include <string.h>

static const char *const roots[] = {"exit", "iteration", "movement_iteration", "structured", NULL};

/* --- parsing: one function a grammar rule, NULL once an error is set --- */

struct parser {
  struct arena *arena;
  struct str text; /* a copy in the arena */
  size_t at;
  unsigned nodes, depth, items; /* items: how many exists() we are inside */
  size_t error_at;
  struct err *err;
};

static struct expr *parse_or(struct parser *p);

#define FAIL(p, where, ...)                                                                        \
  ((p)->error_at = (where), (void)err_set((p)->err, ERR_INVALID, __VA_ARGS__), NULL)

static struct expr *node_new(struct parser *p, enum node_kind kind) {
  if (++p->nodes > LIMIT_EXPR_NODE_COUNT)
    return FAIL(p, p->at, "the expression has more than %u parts: split it into several rules",
                LIMIT_EXPR_NODE_COUNT);
  struct expr *e = arena_alloc(p->arena, sizeof *e);
  e->kind = kind;
  return e;
}

static void skip_space(struct parser *p) {
  while (p->at < p->text.n && strchr(" \t\r\n", p->text.p[p->at]) != NULL &&
         p->text.p[p->at] != '\0')
    p->at++;
}

static bool looking_at(const struct parser *p, const char *word) {
  return str_starts((struct str){p->text.p + p->at, p->text.n - p->at}, word);
}

static bool accept(struct parser *p, const char *word) {
  skip_space(p);
  if (!looking_at(p, word))
    return false;
  p->at += strlen(word);
  return true;
}

static bool name_byte(char c, bool first) {
  unsigned char u = (unsigned char)c;
  return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u == '_' || u >= 0x80 ||
         (!first && ((u >= '0' && u <= '9') || u == '-'));
}

static struct str take_name(struct parser *p) {
  size_t from = p->at;
  while (p->at < p->text.n && name_byte(p->text.p[p->at], p->at == from))
    p->at++;
  return (struct str){p->text.p + from, p->at - from};
}

/* A short piece of the text for a message, safe to print. */
static const char *excerpt(struct parser *p, struct str s) {
  struct buf b = {0};
  buf_safe(&b, (struct str){s.p, utf8_floor(s.p, s.n > 40 ? 40 : s.n)}, false);
  const char *copy = arena_strndup(p->arena, buf_c(&b), b.n);
  buf_deinit(&b);
  return copy;
}

/* What stands at the cursor, as a word for "found ...". */
static const char *found(struct parser *p) {
  size_t from = p->at, n = 0;
  if (from >= p->text.n)
    return "the end";
  while (from + n < p->text.n && n < 20 && strchr(" \t\r\n", p->text.p[from + n]) == NULL)
    n++;
  return excerpt(p, (struct str){p->text.p + from, n ? n : 1});
}

static bool parse_string(struct parser *p, struct str *out) {
  size_t open = p->at++;
  char *to = arena_alloc(p->arena, p->text.n - open + 1);
  size_t n = 0;
  for (; p->at < p->text.n; p->at++) {
    char c = p->text.p[p->at];
    if (c == '"') {
      p->at++;
      *out = (struct str){to, n};
      return true;
    }
    if (c == '\\') {
      char escaped = p->at + 1 < p->text.n ? p->text.p[p->at + 1] : '\0';
      if (escaped != '"' && escaped != '\\')
        return FAIL(p, p->at,
                    "only \\\" and \\\\ are escapes in a string: write \\\\ for one \\") != NULL;
      p->at++;
      c = escaped;
    }
    to[n++] = c;
  }
  return FAIL(p, open, "the string has no closing \": add it") != NULL;
}

/* -?digits(.digits), at most 15 digits: such a decimal is exact as m / 10^k in one rounding, and
 * no locale is asked. */
static struct expr *parse_number(struct parser *p) {
  size_t from = p->at, digits = 0, fraction = 0;
  bool negative = p->text.p[p->at] == '-', point = false;
  long long value = 0;
  double scale = 1;
  if (negative)
    p->at++;
  for (; p->at < p->text.n; p->at++) {
    char c = p->text.p[p->at];
    if (c == '.' && !point && digits > 0) {
      point = true;
      continue;
    }
    if (c < '0' || c > '9')
      break;
    if (++digits > 15)
      return FAIL(p, from, "a number has at most 15 digits: shorten it");
    value = value * 10 + (c - '0');
    if (point) {
      fraction++;
      scale *= 10;
    }
  }
  if (digits == 0 || (point && fraction == 0) ||
      (p->at < p->text.n && name_byte(p->text.p[p->at], true)))
    return FAIL(p, from, "not a number: write digits, like 3, -1 or 0.5");
  struct expr *e = node_new(p, point ? NODE_REAL : NODE_INTEGER);
  if (e == NULL)
    return NULL;
  e->integer = negative ? -value : value;
  e->real = (double)e->integer / scale;
  return e;
}

static bool check_root(struct parser *p, const struct expr *e, size_t from) {
  struct str root = e->ref[0].name;
  if (e->on_item) {
    if (p->items == 0)
      return FAIL(p, from, "item means something only inside exists(list, item.x == ...)") != NULL;
    return true;
  }
  for (size_t i = 0; roots[i]; i++) {
    if (!str_eq_c(root, roots[i]))
      continue;
    if (str_eq_c(root, "structured")) {
      if (e->ref_count < 3 || e->ref[1].is_index)
        return FAIL(p, from, "%s names no field: write structured.MOVEMENT.FIELD",
                    excerpt(p, e->text)) != NULL;
    } else if (e->ref_count > 1) {
      return FAIL(p, from, "%s is a number and has no parts: write %s", roots[i], roots[i]) != NULL;
    }
    return true;
  }
  const char *near = str_nearest(root, roots);
  if (near)
    return FAIL(p, from, "no value is named %s: did you mean %s?", excerpt(p, root), near) != NULL;
  return FAIL(p, from,
              "no value is named %s: write exit, iteration, movement_iteration or "
              "structured.MOVEMENT.FIELD (texts in double quotes)",
              excerpt(p, root)) != NULL;
}

static bool parse_index(struct parser *p, struct ref_part *part) {
  size_t from = p->at++;
  skip_space(p);
  if (p->at < p->text.n && p->text.p[p->at] == '"') {
    if (!parse_string(p, &part->name))
      return false;
  } else {
    size_t digits = 0;
    part->is_index = true;
    for (; p->at < p->text.n && p->text.p[p->at] >= '0' && p->text.p[p->at] <= '9'; p->at++) {
      if (++digits > 9)
        return FAIL(p, from, "the index is too large") != NULL;
      part->index = part->index * 10 + (size_t)(p->text.p[p->at] - '0');
    }
    if (digits == 0)
      return FAIL(p, from, "write a number from 0 or a \"name\" between [ and ]") != NULL;
  }
  if (!accept(p, "]"))
    return FAIL(p, from, "[ has no closing ]: add it") != NULL;
  return true;
}

/* A reference whose first name starts at the cursor. */
static struct expr *parse_ref(struct parser *p) {
  size_t from = p->at, cap = 8;
  struct expr *e = node_new(p, NODE_REF);
  if (e == NULL)
    return NULL;
  e->ref = arena_array(p->arena, cap, sizeof *e->ref);
  e->ref[e->ref_count++].name = take_name(p);
  for (;;) {
    if (e->ref_count == cap) {
      if (cap >= LIMIT_EXPR_NODE_COUNT)
        return FAIL(p, from, "the reference has more than %zu parts: shorten it", cap);
      struct ref_part *wider = arena_array(p->arena, cap * 2, sizeof *wider);
      memcpy(wider, e->ref, cap * sizeof *wider);
      e->ref = wider;
      cap *= 2;
    }
    struct ref_part *part = &e->ref[e->ref_count];
    if (p->at < p->text.n && p->text.p[p->at] == '.') {
      p->at++;
      part->name = take_name(p);
      if (part->name.n == 0)
        return FAIL(p, p->at, "a name must follow the dot, found %s", found(p));
    } else if (p->at < p->text.n && p->text.p[p->at] == '[') {
      if (!parse_index(p, part))
        return NULL;
    } else {
      break;
    }
    e->ref_count++;
  }
  e->text = (struct str){p->text.p + from, p->at - from};
  e->on_item = str_eq_c(e->ref[0].name, "item");
  return check_root(p, e, from) ? e : NULL;
}

static struct expr *parse_operand(struct parser *p) {
  skip_space(p);
  if (p->at >= p->text.n)
    return FAIL(p, p->at,
                "a value is missing at the end: write a number, a \"text\", true, false, "
                "null or a reference");
  size_t from = p->at;
  char c = p->text.p[p->at];
  if (c == '"') {
    struct str text;
    struct expr *e = node_new(p, NODE_STRING);
    if (e == NULL || !parse_string(p, &text))
      return NULL;
    e->text = text;
    return e;
  }
  if (c == '\'')
    return FAIL(p, from, "texts stand in double quotes: write \"...\" instead of '...'");
  if (c == '-' || (c >= '0' && c <= '9'))
    return parse_number(p);
  if (!name_byte(c, true))
    return FAIL(p, from, "a value is expected here, found %s", found(p));
  struct str name = take_name(p);
  if (str_eq_c(name, "true") || str_eq_c(name, "false") || str_eq_c(name, "null")) {
    struct expr *e = node_new(p, str_eq_c(name, "null") ? NODE_NULL : NODE_BOOL);
    if (e)
      e->boolean = str_eq_c(name, "true");
    return e;
  }
  skip_space(p);
  if (looking_at(p, "("))
    return FAIL(p, from,
                "no function is named %s: use contains(list, value) or "
                "exists(list, item.x == value)",
                excerpt(p, name));
  p->at = from;
  return parse_ref(p);
}

/* The list of contains() and exists(): a reference and a comma. */
static struct expr *parse_list_ref(struct parser *p, const char *function) {
  skip_space(p);
  size_t from = p->at;
  struct expr *list = parse_operand(p);
  if (list == NULL)
    return NULL;
  if (list->kind != NODE_REF)
    return FAIL(p, from, "%s needs a reference to a list first, like structured.MOVEMENT.FIELD",
                function);
  if (!accept(p, ","))
    return FAIL(p, p->at, "%s needs a comma after the list, found %s", function, found(p));
  return list;
}

static struct expr *parse_function(struct parser *p, enum node_kind kind, const char *name) {
  size_t open = p->at;
  struct expr *e = node_new(p, kind);
  if (e == NULL || (e->parts = parse_list_ref(p, name)) == NULL)
    return NULL;
  if (kind == NODE_EXISTS) {
    p->items++;
    e->parts->next = parse_or(p);
    p->items--;
  } else {
    e->parts->next = parse_operand(p);
  }
  if (e->parts->next == NULL)
    return NULL;
  if (!accept(p, ")"))
    return FAIL(p, p->at < p->text.n ? p->at : open, "%s( has no closing ): found %s", name,
                found(p));
  return e;
}

static bool accept_op(struct parser *p, enum compare_op *op) {
  static const struct {
    const char *word;
    enum compare_op op;
  } ops[] = {{"==", OP_EQ}, {"!=", OP_NE}, {">=", OP_GE},
             {"<=", OP_LE}, {">", OP_GT},  {"<", OP_LT}};
  for (size_t i = 0; i < ARRAY_LEN(ops); i++)
    if (accept(p, ops[i].word)) {
      *op = ops[i].op;
      return true;
    }
  return false;
}

static bool is_number_or_ref(const struct expr *e) {
  return e->kind == NODE_INTEGER || e->kind == NODE_REAL || e->kind == NODE_REF;
}

static struct expr *parse_compare(struct parser *p) {
  enum compare_op op;
  skip_space(p);
  size_t left_at = p->at;
  struct expr *left = parse_operand(p);
  if (left == NULL)
    return NULL;
  skip_space(p);
  size_t op_at = p->at;
  if (!accept_op(p, &op)) {
    if (looking_at(p, "="))
      return FAIL(p, op_at, "= does not compare: write ==");
    if (left->kind != NODE_REF && left->kind != NODE_BOOL)
      return FAIL(p, left_at,
                  "a number, text or null alone is neither true nor false: compare it, "
                  "like exit == 0");
    return left;
  }
  if (looking_at(p, "="))
    return FAIL(p, op_at, "there is no operator with one more =: write == or !=");
  skip_space(p);
  size_t right_at = p->at;
  struct expr *right = parse_operand(p);
  if (right == NULL)
    return NULL;
  if (op != OP_EQ && op != OP_NE && (!is_number_or_ref(left) || !is_number_or_ref(right)))
    return FAIL(p, is_number_or_ref(left) ? right_at : left_at,
                "< <= > >= compare numbers only: use == or != here");
  struct expr *e = node_new(p, NODE_COMPARE);
  if (e == NULL)
    return NULL;
  e->op = op;
  e->parts = left;
  left->next = right;
  return e;
}

static struct expr *parse_clause(struct parser *p) {
  skip_space(p);
  size_t from = p->at;
  if (p->depth >= LIMIT_EXPR_DEPTH)
    return FAIL(p, from, "the expression is nested more than %u deep: split it into several rules",
                LIMIT_EXPR_DEPTH);
  p->depth++;
  struct expr *e;
  struct str name = take_name(p);
  skip_space(p);
  bool call = p->at < p->text.n && p->text.p[p->at] == '(';
  if (call && (str_eq_c(name, "contains") || str_eq_c(name, "exists"))) {
    p->at++;
    e = str_eq_c(name, "exists") ? parse_function(p, NODE_EXISTS, "exists")
                                 : parse_function(p, NODE_CONTAINS, "contains");
  } else {
    p->at = from;
    if (accept(p, "(")) {
      e = parse_or(p);
      if (e && !accept(p, ")"))
        e = FAIL(p, from, "( has no closing ): add it");
    } else if (accept(p, "!")) {
      e = node_new(p, NODE_NOT);
      if (e && (e->parts = parse_clause(p)) == NULL)
        e = NULL;
    } else {
      e = parse_compare(p);
    }
  }
  p->depth--;
  return e;
}

/* One or more `below` with `word` between: a node of `kind` only where there are two. */
static struct expr *parse_chain(struct parser *p, struct expr *(*below)(struct parser *),
                                const char *word, enum node_kind kind) {
  struct expr *first = below(p), *last = first;
  struct expr *chain = NULL;
  while (last && accept(p, word)) {
    if (chain == NULL) {
      if ((chain = node_new(p, kind)) == NULL)
        return NULL;
      chain->parts = first;
    }
    last->next = below(p);
    last = last->next;
  }
  if (last == NULL)
    return NULL;
  return chain ? chain : first;
}

static struct expr *parse_and(struct parser *p) {
  return parse_chain(p, parse_clause, "&&", NODE_AND);
}

static struct expr *parse_or(struct parser *p) {
  return parse_chain(p, parse_and, "||", NODE_OR);
}

struct expr *expr_parse(struct arena *arena, struct str text, size_t *error_offset,
                        struct err *err) {
  struct parser p = {.arena = arena, .text = arena_str(arena, text), .err = err};
  struct expr *e;
  if (str_trim(text).n == 0) {
    e = FAIL(&p, 0, "the expression is empty: write a condition like exit == 0");
  } else {
    e = parse_or(&p);
    skip_space(&p);
    if (e && p.at < p.text.n)
      e = FAIL(&p, p.at, "unexpected %s: put && or || between conditions", found(&p));
  }
  if (e == NULL && error_offset)
    *error_offset = p.error_at < text.n ? p.error_at : text.n;
  return e;
}
