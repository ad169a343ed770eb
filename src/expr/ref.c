/* Parses operands: literals, references, lists and parentheses. */
#include "expr/node.h"

static void end_source(const struct expr_parser *p, struct expr *e) {
  e->source = (struct str){p->text + e->at, p->at - e->at};
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
                                      "structured", "votes",     "parts",     NULL};
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
                   "changed, files, tests, checks or "
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

static const struct function *find_function(struct expr_parser *p, struct str name, size_t at) {
  const struct function *function =
      p->dialect == EXPR_INVARIANT ? expr_function(name.p, name.n) : NULL;
  if (function)
    return function;
  struct excerpt shown = expr_excerpt(name.p, name.n);
  const char *near = expr_nearest(name, expr_function_names());
  if (p->dialect == EXPR_INVARIANT && str_eq_c(name, "not"))
    return expr_fail(p, EXPR_SYNTAX, at, "write ! for not, or x not in list");
  if (p->dialect == EXPR_WHEN)
    return expr_fail(p, EXPR_SYNTAX, at,
                     "no function is named %s: use contains(list, value), "
                     "exists(list, item.x == value) or is_date(text)",
                     shown.text);
  if (near)
    return expr_fail(p, EXPR_SYNTAX, at, "no function is named %s: did you mean %s?", shown.text,
                     near);
  return expr_fail(
      p, EXPR_SYNTAX, at,
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
        const struct function *function = find_function(p, name, from);
        e = function ? expr_parse_call(p, function, e->at, e) : NULL;
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
    end_source(p, e);
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
  end_source(p, e);
  e = parse_rest(p, e);
  if (e && p->dialect == EXPR_WHEN && e->start == REF_NAME && !check_when_root(p, e))
    return NULL;
  return e;
}

/* --- the rest of the operands --- */

static struct expr *parse_string(struct expr_parser *p) {
  struct expr *e = expr_node(p, NODE_STRING, p->at);
  if (e == NULL || !expr_parse_string(p, &e->string))
    return NULL;
  end_source(p, e);
  return e;
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
  end_source(p, e);
  return e;
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
    if (e) {
      e->boolean = str_eq_c(name, "true");
      end_source(p, e);
    }
    return e;
  }
  if (accept_call(p)) {
    const struct function *function = find_function(p, name, from);
    return function ? expr_parse_call(p, function, from, NULL) : NULL;
  }
  size_t behind = p->at;
  expr_skip_space(p);
  bool word_follows = p->at < p->n && expr_name_byte(p, p->text[p->at], true);
  p->at = behind;
  if (word_follows && p->dialect == EXPR_INVARIANT && str_eq_c(name, "not"))
    return expr_fail(p, EXPR_SYNTAX, from, "write ! for not, or x not in list");
  p->at = from;
  return parse_ref(p);
}

struct expr *expr_parse_operand(struct expr_parser *p) {
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
  else if ((c >= '0' && c <= '9') || (c == '-' && !invariant)) {
    e = expr_parse_number(p);
    if (e)
      end_source(p, e);
    return e;
  } else if (expr_name_byte(p, c, true))
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
