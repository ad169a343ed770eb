/* Composes YAML into nodes that know their line and column. */
#include "format/yaml.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/json_object.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* --- plain scalars by the core schema, and places within them --- */

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

/* Reads [-+]?(.digits | digits(.digits*)?)([eE][-+]?digits)?. */
static bool parse_real(struct str s, double *out, bool *fits) {
  static const char digits[] = "0123456789";
  const char *p = s.p + (s.p[0] == '-' || s.p[0] == '+');
  size_t whole = strspn(p, digits), fraction = 0;
  p += whole;
  if (*p == '.') {
    fraction = strspn(p + 1, digits);
    p += 1 + fraction;
  }
  if (whole + fraction == 0)
    return false;
  if (*p == 'e' || *p == 'E') {
    p += 1 + (p[1] == '-' || p[1] == '+');
    if (!str_is_digit(*p))
      return false;
    p += strspn(p, digits);
  }
  *out = strtod(s.p, NULL);
  *fits = isfinite(*out);
  return *p == '\0';
}

/* Sets kind and value of a plain scalar from its text. NULL, or what is wrong with it (static). */
static const char *yaml_scalar_resolve(struct yaml_node *node) {
  static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
  static const char *const trues[] = {"true", "True", "TRUE", NULL};
  static const char *const falses[] = {"false", "False", "FALSE", NULL};
  static const char endless[] = ".inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF .nan .NaN .NAN";
  struct str s = node->text;
  bool fits = true;
  if (s.n > 0 && strchr("~nNtTfF.+-0123456789", s.p[0]) == NULL)
    return NULL; /* begins like none of them, as most texts do */
  if (str_is_one(s, nulls)) {
    node->kind = YAML_NULL;
  } else if (str_is_one(s, trues) || str_is_one(s, falses)) {
    node->kind = YAML_BOOL;
    node->boolean = str_is_one(s, trues);
  } else if (s.p[0] >= 'A') {
    return NULL; /* a number begins otherwise */
  } else if (str_among(s, endless)) {
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
  node->pairs = arena_array(r->arena, json_object_size(object), sizeof *node->pairs);
  JSON_MEMBERS(object, name, member) {
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
  node->items = arena_array(r->arena, json_array_size(list), sizeof *node->items);
  JSON_EACH(list, i, item) {
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

/* Returns the tree of a JSON text that jansson accepts, within yaml.h's limits; otherwise NULL. */
static const struct yaml_node *yaml_json_tree(struct arena *arena, struct str text,
                                              size_t max_bytes) {
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
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(&arena, file, text, max_bytes, &errors);
  json_t *v = NULL;
  if (errors.count > 0)
    *err = errors.items[0];
  else if (root)
    v = yaml_to_json(root);
  return v;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key) {
  for (size_t i = 0; map && map->kind == YAML_MAP && i < map->count; i++)
    if (str_eq_c(map->pairs[i].key->text, key))
      return map->pairs[i].value;
  return NULL;
}

bool yaml_wrong(struct err *err, const char *file, const struct yaml_node *at, const char *fmt,
                ...) {
  char text[sizeof err->text];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  return err_set_at(err, ERR_FILE, file, at->line, at->column, "%s", text);
}

bool yaml_unknown(struct err *err, const char *file, const struct yaml_node *key, const char *what,
                  const char *near, const char *all) {
  return yaml_wrong(err, file, key, "%s \"%.40s\": %s%s%s", what, key->text.p,
                    near ? "did you mean \"" : all, near ? near : "", near ? "\"?" : "");
}

const char *yaml_kind_name(enum yaml_kind kind) {
  static const char *const names[] = {
      [YAML_NULL] = "nothing",  [YAML_BOOL] = "true or false", [YAML_INTEGER] = "a number",
      [YAML_REAL] = "a number", [YAML_TEXT] = "a text",        [YAML_LIST] = "a list",
      [YAML_MAP] = "a map"};
  return names[kind];
}

void yaml_place(const struct yaml_node *node, size_t offset, int *line, int *column) {
  *line = node->line;
  *column = node->column;
  if (node->text_shift < 0)
    return;
  *column += node->text_shift;
  *column += (int)utf8_count(node->text.p, offset < node->text.n ? offset : node->text.n);
}

/* --- nodes --- */

enum { EXPANDED_BYTES = LIMIT_SCENARIO_BYTES }; /* of all texts, aliases expanded */
enum { FEW_KEYS = 16 };                         /* of a map: they are compared one by one */

struct composer {
  yaml_parser_t parser;
  struct arena *arena;
  const char *file;
  struct str text;
  struct err_list *errors;
  json_t *anchors; /* name -> index into anchored */
  const struct yaml_node **anchored;
  size_t anchored_count;
  size_t nodes, bytes; /* so far, aliases expanded */
};

static void yaml_report(struct composer *c, int line, int column, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

static void yaml_report(struct composer *c, int line, int column, const char *fmt, ...) {
  struct err err = {0};
  char text[sizeof err.text];
  va_list ap;
  va_start(ap, fmt);
  (void)vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  err_set_at(&err, ERR_FILE, c->file, line, column, "%s", text);
  err_list_add(c->errors, &err);
}

static int yaml_line_of(yaml_mark_t mark) {
  return (int)mark.line + 1;
}

static int column_of(yaml_mark_t mark) {
  return (int)mark.column + 1;
}

/* --- what is wrong with a text that libyaml refuses --- */

static void report_at_byte(struct composer *c, size_t offset, const char *what) {
  int line = 1;
  size_t start = 0;
  for (size_t i = 0; i < offset; i++)
    if (c->text.p[i] == '\n') {
      line++;
      start = i + 1;
    }
  yaml_report(c, line, (int)utf8_count(c->text.p + start, offset - start) + 1, "%s", what);
}

static struct str composer_line(const struct composer *c, int number) {
  struct str rest = c->text, line;
  do
    line = str_next_line(&rest);
  while (--number > 0 && rest.p != NULL);
  return line;
}

/* Returns the column of a tab in the white space that line `number` begins with, 0 if there is
 * none. */
static int leading_tab(const struct composer *c, int number) {
  struct str line = composer_line(c, number);
  for (size_t i = 0; i < line.n && (line.p[i] == ' ' || line.p[i] == '\t'); i++)
    if (line.p[i] == '\t')
      return (int)i + 1;
  return 0;
}

static int line_count(struct str text) {
  int count = 0;
  while (text.n > 0 &&
         text.p != NULL) { /* what follows the last newline counts if it is not empty */
    (void)str_next_line(&text);
    count++;
  }
  return count;
}

static bool report_control_character(struct composer *c) {
  for (size_t i = 0; i < c->text.n;) {
    uint32_t cp = 0;
    size_t n = utf8_decode(c->text.p + i, c->text.n - i, &cp);
    bool control = (cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r') || cp == 0x7F ||
                   (cp > 0x7F && cp < 0xA0 && cp != 0x85) || cp == 0xFEFF || cp == 0xFFFE ||
                   cp == 0xFFFF;
    if (control) {
      char what[96];
      print_into(what, sizeof what, "the control character U+%04X may not stand here: remove it",
                 cp);
      report_at_byte(c, i, what);
      return true;
    }
    i += n;
  }
  return false;
}

static size_t indent_of(struct str line) {
  size_t n = 0;
  while (n < line.n && line.p[n] == ' ')
    n++;
  return n;
}

/* Says what most people mean by a second colon in a line, and by a line that is indented too far.
 * Returns false for anything else. */
static bool report_second_value(struct composer *c, int line) {
  const yaml_parser_t *p = &c->parser;
  if (strncmp(p->problem, LIT("mapping values are not allowed")) != 0)
    return false;
  struct str text = composer_line(c, line);
  size_t at = p->problem_mark.column < text.n ? p->problem_mark.column : text.n, first = 0;
  while (first + 1 < at && !(text.p[first] == ':' && text.p[first + 1] == ' '))
    first++;
  if (first + 1 < at) {
    yaml_report(c, line, column_of(p->problem_mark),
                "a text that has \": \" in it needs quotes around it");
    return true;
  }
  int above = line - 1;
  while (above > 0 && str_trim(composer_line(c, above)).n == 0)
    above--;
  size_t own = indent_of(text), other = above > 0 ? indent_of(composer_line(c, above)) : own;
  if (own <= other)
    return false;
  yaml_report(c, line, (int)own + 1,
              "this line is indented further than the one above it, which has its value already: "
              "keys of one map stand below each other");
  return true;
}

static void report_parser_error(struct composer *c) {
  const yaml_parser_t *p = &c->parser;
  int line = yaml_line_of(p->problem_mark), tab;
  if (p->error == YAML_MEMORY_ERROR)
    BUG("out of memory");
  if (p->error == YAML_READER_ERROR && report_control_character(c))
    return;
  if ((tab = leading_tab(c, line)) > 0) {
    yaml_report(c, line, tab, "a tab stands in the indentation: YAML wants spaces only");
    return;
  }
  if (report_second_value(c, line))
    return;
  int last = line_count(c->text);
  if (line > last && (p->context == NULL || yaml_line_of(p->context_mark) > last))
    yaml_report(c, last, 1,
                "%s where the file ends: close what is open, or write the value that is missing",
                p->problem);
  else if (p->context != NULL && line > last) /* say what stays open instead */
    yaml_report(c, yaml_line_of(p->context_mark), column_of(p->context_mark),
                "%s, %s that begins here: close it", p->problem, p->context);
  else if (p->context != NULL && p->context_mark.line != p->problem_mark.line)
    yaml_report(c, line, column_of(p->problem_mark),
                "%s, %s that begins in line %d: check indentation, colons, quotes and brackets",
                p->problem, p->context, yaml_line_of(p->context_mark));
  else
    yaml_report(c, line, column_of(p->problem_mark),
                "%s%s%s: check indentation, colons, quotes and brackets", p->problem,
                p->context ? ", " : "", p->context ? p->context : "");
}

/* --- composing --- */

static bool next_event(struct composer *c, yaml_event_t *event) {
  if (yaml_parser_parse(&c->parser, event))
    return true;
  report_parser_error(c);
  return false;
}

static struct yaml_node *yaml_node_new(struct composer *c, enum yaml_kind kind, yaml_mark_t start) {
  struct yaml_node *node = arena_alloc(c->arena, sizeof *node);
  node->kind = kind;
  node->line = yaml_line_of(start);
  node->column = column_of(start);
  node->text = STR("");
  node->text_shift = -1;
  node->all_nodes = node->height = 1;
  return node;
}

static bool within_limits(struct composer *c, const yaml_event_t *event, size_t nodes,
                          size_t bytes) {
  int line = yaml_line_of(event->start_mark), column = column_of(event->start_mark);
  c->nodes += nodes;
  c->bytes += bytes;
  if (c->nodes > LIMIT_YAML_NODE_COUNT)
    yaml_report(c, line, column,
                "the file has more than %u values, aliases expanded: make it smaller",
                LIMIT_YAML_NODE_COUNT);
  else if (c->bytes > EXPANDED_BYTES)
    yaml_report(c, line, column,
                "the texts, aliases expanded, are more than %d bytes: use fewer aliases",
                EXPANDED_BYTES);
  else
    return true;
  return false;
}

/* Grows an array in the arena: it doubles, and the old one stays behind. */
static void *grown(struct composer *c, void *items, size_t count, size_t each) {
  if (count != 0 && (count < 4 || (count & (count - 1)) != 0))
    return items;
  void *wider = arena_array(c->arena, count < 4 ? 4 : count * 2, each);
  if (count > 0)
    memcpy(wider, items, count * each);
  return wider;
}

static void remember_anchor(struct composer *c, const yaml_char_t *name,
                            const struct yaml_node *node) {
  if (name == NULL)
    return;
  c->anchored = grown(c, c->anchored, c->anchored_count, sizeof(const struct yaml_node *));
  c->anchored[c->anchored_count] = node;
  if (json_object_set_new(c->anchors, (const char *)name,
                          json_integer((json_int_t)c->anchored_count)) != 0)
    BUG("out of memory");
  c->anchored_count++;
}

static const struct yaml_node *compose_alias(struct composer *c, const yaml_event_t *event,
                                             size_t depth) {
  const char *name = (const char *)event->data.alias.anchor;
  int line = yaml_line_of(event->start_mark), column = column_of(event->start_mark);
  const json_t *index = json_object_get(c->anchors, name);
  if (index == NULL) {
    yaml_report(c, line, column,
                "*%.80s refers to no anchor that stands complete before it: write &%.80s there",
                name, name);
    return NULL;
  }
  const struct yaml_node *node = c->anchored[json_integer_value(index)];
  if (depth + node->height - 1 > LIMIT_YAML_DEPTH) {
    yaml_report(c, line, column, "the value is nested more than %u deep: make it flatter",
                LIMIT_YAML_DEPTH);
    return NULL;
  }
  return within_limits(c, event, node->all_nodes, node->all_bytes) ? node : NULL;
}

static const struct yaml_node *compose_scalar(struct composer *c, const yaml_event_t *event) {
  struct yaml_node *node = yaml_node_new(c, YAML_TEXT, event->start_mark);
  struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
  const char *tag = (const char *)event->data.scalar.tag;
  bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (!within_limits(c, event, 1, text.n))
    return NULL;
  node->text = arena_str(c->arena, text);
  node->all_bytes = text.n;
  if (event->start_mark.line == event->end_mark.line) {
    /* The text stands as it is, without escapes, if it is as long as its place. */
    size_t width = event->end_mark.column - event->start_mark.column;
    size_t quotes = plain ? 0 : 2;
    if (width == utf8_count(text.p, text.n) + quotes)
      node->text_shift = plain ? 0 : 1;
  }
  if (memchr(text.p, '\0', text.n) != NULL) {
    yaml_report(c, node->line, node->column, "the text holds a NUL character: remove it");
  } else if (tag != NULL) {
    if (strcmp(tag, YAML_STR_TAG) != 0 && strcmp(tag, "!") != 0)
      yaml_report(c, node->line, node->column, "the tag %.80s is not used here: remove it", tag);
  } else if (plain) {
    const char *wrong = yaml_scalar_resolve(node);
    if (wrong)
      yaml_report(c, node->line, node->column, "%s", wrong);
  }
  return node;
}

static const struct yaml_node *yaml_compose(struct composer *c, yaml_event_t *event, size_t depth);

static void adopt(struct yaml_node *parent, const struct yaml_node *child) {
  parent->all_nodes += child->all_nodes;
  parent->all_bytes += child->all_bytes;
  if (child->height >= parent->height)
    parent->height = child->height + 1;
}

static bool compose_list(struct composer *c, struct yaml_node *list, size_t depth) {
  for (;;) {
    yaml_event_t event;
    if (!next_event(c, &event))
      return false;
    if (event.type == YAML_SEQUENCE_END_EVENT) {
      yaml_event_delete(&event);
      return true;
    }
    const struct yaml_node *item = yaml_compose(c, &event, depth + 1);
    if (item == NULL)
      return false;
    list->items = grown(c, list->items, list->count, sizeof *list->items);
    list->items[list->count++] = item;
    adopt(list, item);
  }
}

static void index_key(json_t *index, const struct yaml_node *key) {
  if (json_object_set_new(index, key->text.p, json_integer(key->line)) != 0)
    BUG("out of memory");
}

/* Returns the line of this key in the map, 0 if it is new. With many keys an index is made. */
static int line_of_key(const struct yaml_node *map, const struct yaml_node *key, json_t **index) {
  if (map->count < FEW_KEYS) {
    for (size_t i = 0; i < map->count; i++)
      if (str_eq(map->pairs[i].key->text, key->text))
        return map->pairs[i].key->line;
    return 0;
  }
  if (*index == NULL) {
    *index = json_object();
    for (size_t i = 0; i < map->count; i++)
      index_key(*index, map->pairs[i].key);
  }
  const json_t *first = json_object_get(*index, key->text.p);
  if (first == NULL)
    index_key(*index, key);
  return (int)json_integer_value(first);
}

/* Returns true if the pair may enter the map; reports why not. */
static bool yaml_check_key(struct composer *c, const struct yaml_node *map,
                           const struct yaml_node *key, json_t **index) {
  if (key->kind == YAML_LIST || key->kind == YAML_MAP) {
    yaml_report(c, key->line, key->column,
                "a key must be a text, not %s: quote it if it begins with { or [",
                yaml_kind_name(key->kind));
    return false;
  }
  if (key->text.n == 0) {
    yaml_report(c, key->line, key->column, "a key is empty: write a name before the colon");
    return false;
  }
  if (str_eq_c(key->text, "<<") && key->kind == YAML_TEXT && key->text_shift == 0) {
    yaml_report(c, key->line, key->column,
                "<< (merge) is not supported: write the keys out, or use an "
                "alias for a whole value");
    return false;
  }
  if (memchr(key->text.p, '\0', key->text.n) != NULL)
    return false; /* reported with the scalar */
  int first = line_of_key(map, key, index);
  if (first > 0)
    yaml_report(c, key->line, key->column,
                "the key %.80s appears twice (first in line %d): keep one", key->text.p, first);
  return first == 0;
}

static bool compose_map(struct composer *c, struct yaml_node *map, size_t depth) {
  json_auto_t *index = NULL; /* of its keys, see line_of_key */
  for (;;) {
    yaml_event_t event;
    if (!next_event(c, &event))
      return false;
    if (event.type == YAML_MAPPING_END_EVENT) {
      yaml_event_delete(&event);
      return true;
    }
    struct yaml_pair pair = {yaml_compose(c, &event, depth + 1), NULL};
    if (pair.key == NULL || !next_event(c, &event) ||
        (pair.value = yaml_compose(c, &event, depth + 1)) == NULL)
      return false;
    adopt(map, pair.key);
    adopt(map, pair.value);
    if (!yaml_check_key(c, map, pair.key, &index))
      continue;
    map->pairs = grown(c, map->pairs, map->count, sizeof *map->pairs);
    map->pairs[map->count++] = pair;
  }
}

static const struct yaml_node *compose_collection(struct composer *c, yaml_event_t *event,
                                                  size_t depth) {
  bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
  const yaml_char_t *tag = is_list ? event->data.sequence_start.tag : event->data.mapping_start.tag;
  const yaml_char_t *anchor =
      is_list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
  struct yaml_node *node = yaml_node_new(c, is_list ? YAML_LIST : YAML_MAP, event->start_mark);
  if (depth > LIMIT_YAML_DEPTH) {
    yaml_report(c, node->line, node->column,
                "the value is nested more than %u deep: make it flatter", LIMIT_YAML_DEPTH);
    return NULL;
  }
  if (tag != NULL && strcmp((const char *)tag, is_list ? YAML_SEQ_TAG : YAML_MAP_TAG) != 0)
    yaml_report(c, node->line, node->column, "the tag %.80s is not used here: remove it", tag);
  if (!within_limits(c, event, 1, 0) ||
      !(is_list ? compose_list(c, node, depth) : compose_map(c, node, depth)))
    return NULL;
  remember_anchor(c, anchor, node);
  return node;
}

/* Returns the node that `event` begins; deletes the event. */
static const struct yaml_node *yaml_compose(struct composer *c, yaml_event_t *event, size_t depth) {
  const struct yaml_node *node = NULL;
  if (event->type == YAML_ALIAS_EVENT) {
    node = compose_alias(c, event, depth);
  } else if (event->type == YAML_SCALAR_EVENT) {
    if ((node = compose_scalar(c, event)) != NULL)
      remember_anchor(c, event->data.scalar.anchor, node);
  } else {
    assert(event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT);
    node = compose_collection(c, event, depth);
  }
  yaml_event_delete(event);
  return node;
}

/* Reads the events around the one document. */
static const struct yaml_node *compose_document(struct composer *c) {
  const struct yaml_node *root = NULL;
  for (;;) {
    yaml_event_t event;
    if (!next_event(c, &event))
      return NULL;
    if (event.type == YAML_STREAM_END_EVENT) {
      yaml_event_delete(&event);
      if (root == NULL)
        yaml_report(c, 1, 1, "the file is empty: write at least one key and its value");
      return root;
    }
    if (event.type == YAML_DOCUMENT_START_EVENT && root != NULL) {
      yaml_report(c, yaml_line_of(event.start_mark), column_of(event.start_mark),
                  "a second document begins here: put it into a file of its own");
      yaml_event_delete(&event);
      return root;
    }
    if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT ||
        event.type == YAML_DOCUMENT_END_EVENT)
      yaml_event_delete(&event);
    else if ((root = yaml_compose(c, &event, 1)) == NULL)
      return NULL;
  }
}

static bool check_bytes(struct composer *c, size_t max_bytes) {
  const char *nul;
  if (c->text.n > max_bytes) {
    yaml_report(c, 1, 1, "the file is larger than %zu bytes: that cannot be meant", max_bytes);
    return false;
  }
  if (str_trim(c->text).n == 0) {
    yaml_report(c, 1, 1, "the file is empty: write at least one key and its value");
    return false;
  }
  if ((nul = memchr(c->text.p, '\0', c->text.n)) != NULL) {
    report_at_byte(c, (size_t)(nul - c->text.p),
                   "a NUL byte stands here, so this is not a text file: save it as UTF-8 text");
    return false;
  }
  if (utf8_valid(c->text.p, c->text.n))
    return true;
  size_t sound = 0, n;
  while ((n = utf8_decode(c->text.p + sound, c->text.n - sound, NULL)) > 0)
    sound += n;
  report_at_byte(c, sound, "the bytes here are not UTF-8: save the file as UTF-8");
  return false;
}

const struct yaml_node *yaml_parse(struct arena *arena, const char *file, struct str text,
                                   size_t max_bytes, struct err_list *errors) {
  assert(arena != NULL && errors != NULL);
  (void)str_drop(&text, "\xEF\xBB\xBF");
  AUTO(err_list_deinit) struct err_list mine = {0};
  struct composer c = {.arena = arena, .file = file, .text = text, .errors = &mine};
  const struct yaml_node *root = NULL;
  if (check_bytes(&c, max_bytes)) {
    if ((c.anchors = json_object()) == NULL || !yaml_parser_initialize(&c.parser))
      BUG("out of memory");
    yaml_parser_set_encoding(&c.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c.parser, (const unsigned char *)text.p, text.n);
    root = compose_document(&c);
    yaml_parser_delete(&c.parser);
    json_decref(c.anchors);
  }
  struct str body = str_trim(text);
  if (root == NULL && mine.count > 0 && body.n > 0 && (body.p[0] == '{' || body.p[0] == '[')) {
    const struct yaml_node *json = yaml_json_tree(arena, text, max_bytes);
    if (json)
      return json;
  }
  for (size_t i = 0; i < mine.count; i++)
    err_list_add(errors, &mine.items[i]);
  errors->dropped += mine.dropped;
  return root;
}
