/* Reads plain YAML scalars by the core schema, and finds places within them. */
#include "format/yaml_scalar.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool yaml_scalar_is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_one_of(struct str s, const char *const *words) {
  for (; *words; words++)
    if (str_eq_c(s, *words))
      return true;
  return false;
}

/* Reads [-+]?digits, 0o... or 0x...: true if the text has the form; *fits if it is an int64,
 * too. */
static bool parse_integer(struct str s, long long *out, bool *fits) {
  int base = 10;
  const char *digits = "0123456789";
  size_t from = 0;
  if (str_starts(s, "0o") || str_starts(s, "0x")) {
    base = s.p[1] == 'o' ? 8 : 16;
    digits = base == 8 ? "01234567" : "0123456789abcdefABCDEF";
    from = 2;
  } else if (s.p[0] == '-' || s.p[0] == '+') {
    from = 1;
  }
  if (from == s.n)
    return false;
  for (size_t i = from; i < s.n; i++)
    if (strchr(digits, s.p[i]) == NULL)
      return false;
  errno = 0;
  *out = strtoll(base == 10 ? s.p : s.p + 2, NULL, base);
  *fits = errno == 0;
  return true;
}

/* Reads [-+]?(.digits | digits(.digits*)?)([eE][-+]?digits)?, rewritten as JSON, so that no locale
 * has a say in what the point is. */
static bool parse_real(struct str s, double *out, bool *fits) {
  char json[512];
  size_t n = 0, i = 0, whole = 0, fraction = 0, exponent = 0;
  if (s.n + 4 > sizeof json)
    return false;
  if (s.p[i] == '-')
    json[n++] = '-';
  if (s.p[i] == '-' || s.p[i] == '+')
    i++;
  while (i < s.n && s.p[i] == '0') { /* JSON takes no leading zeros */
    i++;
    whole++;
  }
  if (i >= s.n || !yaml_scalar_is_digit(s.p[i]))
    json[n++] = '0';
  for (; i < s.n && yaml_scalar_is_digit(s.p[i]); i++, whole++)
    json[n++] = s.p[i];
  if (i < s.n && s.p[i] == '.') {
    i++;
    json[n++] = '.';
    for (; i < s.n && yaml_scalar_is_digit(s.p[i]); i++, fraction++)
      json[n++] = s.p[i];
    if (fraction == 0)
      json[n++] = '0';
  }
  if (whole + fraction == 0)
    return false;
  if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
    json[n++] = s.p[i++];
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
      json[n++] = s.p[i++];
    for (; i < s.n && yaml_scalar_is_digit(s.p[i]); i++, exponent++)
      json[n++] = s.p[i];
    if (exponent == 0)
      return false;
  }
  if (i < s.n)
    return false;
  json_auto_t *v = json_loadb(json, n, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
  *fits = v != NULL;
  *out = json_real_value(v);
  return true;
}

const char *yaml_scalar_resolve(struct yaml_node *node) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const trues[] = {"true", "True", "TRUE", NULL};
  static const char *const falses[] = {"false", "False", "FALSE", NULL};
  static const char *const endless[] = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
                                        "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
                                        ".NaN",  ".NAN",  NULL};
  struct str s = node->text;
  bool fits = true;
  if (s.n > 0 && strchr("~nNtTfF.+-0123456789", s.p[0]) == NULL)
    return NULL; /* begins like none of them, as most texts do */
  if (is_one_of(s, nulls)) {
    node->kind = YAML_NULL;
  } else if (is_one_of(s, trues) || is_one_of(s, falses)) {
    node->kind = YAML_BOOL;
    node->boolean = is_one_of(s, trues);
  } else if (s.p[0] >= 'A') {
    return NULL; /* a number begins otherwise */
  } else if (is_one_of(s, endless)) {
    return "not a finite number: quote it if it is a text";
  } else if (parse_integer(s, &node->integer, &fits)) {
    node->kind = YAML_INTEGER;
    node->real = (double)node->integer;
  } else if (parse_real(s, &node->real, &fits)) {
    node->kind = YAML_REAL;
  }
  return fits ? NULL : "the number is too large: quote it if it is a text";
}

/* --- from JSON --- */

struct reader {
  struct arena *arena;
  size_t nodes;
};

static const struct yaml_node *read_json(struct reader *r, const json_t *v, size_t depth);

static bool read_members(struct reader *r, struct yaml_node *node, const json_t *object,
                         size_t depth) {
  const char *name;
  json_t *member;
  node->pairs = arena_array(r->arena, json_object_size(object), sizeof *node->pairs);
  json_object_foreach((json_t *)object, name, member) {
    struct yaml_node *key = arena_alloc(r->arena, sizeof *key);
    *key = (struct yaml_node){.kind = YAML_TEXT, .line = 1, .column = 1, .text_shift = -1};
    key->text = arena_str(r->arena, str_from(name));
    struct yaml_pair pair = {key, read_json(r, member, depth + 1)};
    if (pair.value == NULL || *name == '\0')
      return false;
    node->pairs[node->count++] = pair;
  }
  return true;
}

static bool read_items(struct reader *r, struct yaml_node *node, const json_t *list, size_t depth) {
  size_t i;
  json_t *item;
  node->items = arena_array(r->arena, json_array_size(list), sizeof *node->items);
  json_array_foreach(list, i, item) {
    if ((node->items[node->count] = read_json(r, item, depth + 1)) == NULL)
      return false;
    node->count++;
  }
  return true;
}

static const struct yaml_node *read_json(struct reader *r, const json_t *v, size_t depth) {
  static const enum yaml_kind kinds[] = {
      [JSON_OBJECT] = YAML_MAP,      [JSON_ARRAY] = YAML_LIST, [JSON_STRING] = YAML_TEXT,
      [JSON_INTEGER] = YAML_INTEGER, [JSON_REAL] = YAML_REAL,  [JSON_TRUE] = YAML_BOOL,
      [JSON_FALSE] = YAML_BOOL,      [JSON_NULL] = YAML_NULL};
  if (++r->nodes > LIMIT_YAML_NODE_COUNT || depth > LIMIT_YAML_DEPTH)
    return NULL;
  struct yaml_node *node = arena_alloc(r->arena, sizeof *node);
  *node = (struct yaml_node){.kind = kinds[json_typeof(v)], .line = 1, .column = 1};
  node->text = STR("");
  node->text_shift = -1;
  node->boolean = json_is_true(v);
  node->integer = json_integer_value(v);
  node->real = json_number_value(v);
  if (json_is_string(v))
    node->text = arena_str(r->arena, (struct str){json_string_value(v), json_string_length(v)});
  if (json_is_object(v) && !read_members(r, node, v, depth))
    return NULL;
  if (json_is_array(v) && !read_items(r, node, v, depth))
    return NULL;
  return node;
}

const struct yaml_node *yaml_json_tree(struct arena *arena, struct str text, size_t max_bytes) {
  if (text.n > max_bytes)
    return NULL;
  json_auto_t *v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
  struct reader r = {.arena = arena};
  return v ? read_json(&r, v, 1) : NULL;
}

/* --- trees to JSON, and small helpers --- */

static json_t *must(json_t *v) {
  if (v == NULL)
    BUG("out of memory");
  return v;
}

json_t *yaml_to_json(const struct yaml_node *node) {
  assert(node != NULL);
  json_t *v = NULL;
  switch (node->kind) {
  case YAML_NULL:
    return json_null();
  case YAML_BOOL:
    return json_boolean(node->boolean);
  case YAML_INTEGER:
    return must(json_integer(node->integer));
  case YAML_REAL:
    return must(json_real(node->real));
  case YAML_TEXT:
    return must(json_stringn(node->text.p, node->text.n));
  case YAML_LIST:
    v = must(json_array());
    for (size_t i = 0; i < node->count; i++)
      if (json_array_append_new(v, yaml_to_json(node->items[i])) != 0)
        BUG("out of memory");
    return v;
  case YAML_MAP:
    v = must(json_object());
    for (size_t i = 0; i < node->count; i++)
      if (json_object_set_new(v, node->pairs[i].key->text.p, yaml_to_json(node->pairs[i].value)) !=
          0)
        BUG("out of memory");
    return v;
  }
  BUG("no such kind: %d", (int)node->kind);
}

json_t *yaml_load(const char *file, struct str text, size_t max_bytes, struct err *err) {
  struct arena arena = {0};
  struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(&arena, file, text, max_bytes, &errors);
  json_t *v = NULL;
  if (errors.count > 0)
    *err = errors.items[0];
  else if (root)
    v = yaml_to_json(root);
  err_list_deinit(&errors);
  arena_deinit(&arena);
  return v;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key) {
  for (size_t i = 0; map && map->kind == YAML_MAP && i < map->count; i++)
    if (str_eq_c(map->pairs[i].key->text, key))
      return map->pairs[i].value;
  return NULL;
}

const char *yaml_kind_name(enum yaml_kind kind) {
  switch (kind) {
  case YAML_NULL:
    return "nothing";
  case YAML_BOOL:
    return "true or false";
  case YAML_INTEGER:
  case YAML_REAL:
    return "a number";
  case YAML_TEXT:
    return "a text";
  case YAML_LIST:
    return "a list";
  case YAML_MAP:
    return "a map";
  }
  return "something else";
}

void yaml_place(const struct yaml_node *node, size_t offset, int *line, int *column) {
  *line = node->line;
  *column = node->column;
  if (node->text_shift < 0)
    return;
  *column += node->text_shift;
  *column += (int)utf8_count(node->text.p, offset < node->text.n ? offset : node->text.n);
}
