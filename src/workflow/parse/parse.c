/* Reads single values of the YAML tree into the resolved document. */
#include "workflow/parse/part.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "format/json_value.h"
#include "judge/rule.h"
#include "workflow/dialect.h"
#include "workflow/scope.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- errors --- */

PRINTF_LIKE(5, 0)
static void add_at(struct err_list *list, const char *file, int line, int column, const char *fmt,
                   va_list ap) {
  struct err err = {0};
  char text[sizeof err.text];
  (void)vsnprintf(text, sizeof text, fmt, ap);
  (void)err_set_at(&err, ERR_FILE, file, line, column, "%s", text);
  err_list_add(list, &err);
}

const char *parse_file_of(const struct parse *p, const struct yaml_node *node) {
  return node->origin ? node->origin->file : p->file;
}

void parse_report(struct parse *p, const struct yaml_node *node, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add_at(p->errors, parse_file_of(p, node), node->line, node->column, fmt, ap);
  va_end(ap);
}

void parse_note_once(struct parse *p, const struct key *k, const struct yaml_node *node,
                     const char *fmt, ...) {
  for (size_t i = 0; i < p->noted_count; i++)
    if (strcmp(p->noted[i]->name, k->name) == 0)
      return;
  if (p->noted_count == ARRAY_LEN(p->noted))
    return;
  p->noted[p->noted_count++] = k;
  va_list ap;
  va_start(ap, fmt);
  add_at(p->notes, parse_file_of(p, node), node->line, node->column, fmt, ap);
  va_end(ap);
}

const char *parse_shown(struct parse *p, struct str s) {
  struct buf b = {0};
  buf_safe(&b, (struct str){s.p, utf8_floor(s.p, s.n > 60 ? 60 : s.n)}, false);
  if (s.n > 60)
    buf_puts(&b, "...");
  const char *copy = arena_strndup(p->arena, buf_c(&b), b.n);
  buf_deinit(&b);
  return copy;
}

const char *parse_words_shown(struct parse *p, const struct key *k) {
  struct buf b = {0};
  key_words(k, &b);
  const char *copy = arena_strndup(p->arena, buf_c(&b), b.n);
  buf_deinit(&b);
  return copy;
}

/* --- values --- */

json_t *parse_text_json(struct str s) {
  if (!utf8_valid(s.p, s.n)) /* ten times as fast as json_stringn */
    BUG("the tree holds a text that is not UTF-8");
  json_t *v = json_stringn_nocheck(s.p, s.n);
  if (v == NULL)
    BUG("out of memory");
  return v;
}

bool parse_want_text(struct parse *p, const char *what, const struct yaml_node *node) {
  if (node->kind == YAML_TEXT)
    return true;
  if (node->kind == YAML_NULL)
    REPORT(p, node, "%s has no value: write one or remove the key", what);
  else if (node->kind == YAML_LIST || node->kind == YAML_MAP)
    REPORT(p, node, "%s must be a text, not %s", what, yaml_kind_name(node->kind));
  else
    REPORT(p, node, "%s must be a text, not %s: write \"%s\" in quotes", what,
           yaml_kind_name(node->kind), parse_shown(p, node->text));
  return false;
}

/* Returns true for a bare value that would be wrong in quotes too, such as `timeout: 90`: then
 * advice to quote it would not help. */
static bool is_wrong_either_way(const struct key *k, const struct yaml_node *node,
                                struct err *why) {
  bool bare = node->kind == YAML_INTEGER || node->kind == YAML_REAL || node->kind == YAML_BOOL;
  return bare && k->check != NULL && !k->check(node->text, why);
}

json_t *parse_text(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct err why;
  if (is_wrong_either_way(k, node, &why)) {
    REPORT(p, node, "%s %s", k->name, why.text);
    return NULL;
  }
  if (!parse_want_text(p, k->name, node))
    return NULL;
  if (k->type == KEY_TEXT)
    return parse_text_json(node->text);
  if (str_trim(node->text).n == 0)
    REPORT(p, node, "%s is empty: write a value", k->name);
  else if (str_has_control(node->text))
    REPORT(p, node, "%s must be one line without control characters", k->name);
  else if (k->type == KEY_NAME && node->text.n > LIMIT_NAME_BYTES)
    REPORT(p, node, "%s is longer than %u bytes: shorten it", k->name, LIMIT_NAME_BYTES);
  else if (k->check != NULL && !k->check(node->text, &why))
    REPORT(p, node, "%s %s", k->name, why.text);
  else
    return parse_text_json(node->text);
  return NULL;
}

static json_t *parse_number(struct parse *p, const struct key *k, const struct yaml_node *node) {
  bool whole = k->type != KEY_NUMBER;
  const char *kind = whole ? "a whole number" : "a number";
  for (size_t i = 0; k->words && k->words[i]; i++)
    if (node->kind == YAML_TEXT && str_eq_c(node->text, k->words[i]))
      return parse_text_json(node->text);
  if ((node->kind == YAML_INTEGER || (!whole && node->kind == YAML_REAL)) && node->real >= k->min &&
      node->real <= k->max)
    return node->kind == YAML_INTEGER ? json_integer(node->integer) : json_real(node->real);
  if (k->words)
    REPORT(p, node, "%s must be %s from %.0f to %.0f, or %s", k->name, kind, k->min, k->max,
           parse_words_shown(p, k));
  else
    REPORT(p, node, "%s must be %s from %.0f to %.0f", k->name, kind, k->min, k->max);
  return NULL;
}

static json_t *parse_bool(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind == YAML_BOOL)
    return json_boolean(node->boolean);
  REPORT(p, node, "%s must be true or false", k->name);
  return NULL;
}

static json_t *parse_choice(struct parse *p, const struct key *k, const struct yaml_node *node) {
  for (size_t i = 0; k->words[i]; i++)
    if (node->kind == YAML_TEXT && str_eq_c(node->text, k->words[i]))
      return parse_text_json(node->text);
  REPORT(p, node, "%s must be %s", k->name, parse_words_shown(p, k));
  return NULL;
}

static json_t *parse_condition(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct rule rule = {0};
  struct str label;
  struct err err;
  size_t offset = 0;
  if (!parse_want_text(p, k->name, node))
    return NULL;
  if (dialect_plain_condition(p->arena, node->text, &label) &&
      rule_parse(p->arena, label, &rule, NULL, &err) && rule.label.n > 0) {
    parse_note_once(p, k, node,
                    "ai(\"...\") is read as the label in it: every label is judged, so write the "
                    "label alone");
    return parse_text_json(label);
  }
  if (rule_parse(p->arena, node->text, &rule, &offset, &err))
    return parse_text_json(str_trim(node->text));
  struct yaml_node place = *node;
  yaml_place(node, offset, &place.line, &place.column);
  REPORT(p, &place, "%s", err.text);
  return NULL;
}

struct facets parse_facets_of(const struct parse *p, const struct yaml_node *node) {
  const struct origin *origin = origin_of(node);
  struct facets facets = origin ? origin->facets : p->facets;
  facets.movement = p->facets.movement;
  facets.files = p->facets.files;
  return facets;
}

/* Returns true if the name is of the facet's own section, which was read before and whose errors
 * were reported there. */
static bool is_in_section(const struct parse *p, const struct key *k,
                          const struct yaml_node *node) {
  const struct yaml_node *section = parse_facets_of(p, node).sections[k->facet];
  for (size_t i = 0; section && i < section->count; i++)
    if (str_eq(section->pairs[i].key->text, node->text))
      return true;
  return false;
}

static bool resolve_one(struct parse *p, const struct key *k, const struct yaml_node *node,
                        struct buf *out) {
  struct err err;
  size_t before = out->n;
  if (!parse_want_text(p, k->name, node))
    return false;
  if (str_trim(node->text).n == 0) {
    REPORT(p, node, "%s is empty: write a name, a path or a text, or remove the key", k->name);
    return false;
  }
  const struct facets facets = parse_facets_of(p, node);
  const struct origin *origin = origin_of(node);
  if (!scope_facet(origin ? &origin->scope : NULL, &facets, k->facet, node->text, out, &err)) {
    if (!is_in_section(p, k, node))
      REPORT(p, node, "%s", err.text);
    return false;
  }
  p->facet_bytes += out->n - before;
  if (p->facet_bytes <= LIMIT_TASK_BYTES)
    return true;
  REPORT(p, node, "the facets of this file are more than %u bytes together: shorten them",
         LIMIT_TASK_BYTES);
  return false;
}

static json_t *parse_facet(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct buf text = {0};
  json_t *v = NULL;
  bool ok = true;
  if (node->kind != YAML_LIST) {
    ok = resolve_one(p, k, node, &text);
  } else if (node->count == 0) {
    REPORT(p, node, "%s is an empty list: write a name, a path or a text", k->name);
    ok = false;
  } else {
    for (size_t i = 0; i < node->count && p->facet_bytes <= LIMIT_TASK_BYTES; i++) {
      if (i > 0)
        buf_puts(&text, "\n\n---\n\n");
      ok = resolve_one(p, k, node->items[i], &text) && ok;
    }
  }
  if (ok)
    v = parse_text_json(buf_view(&text));
  buf_deinit(&text);
  return v;
}

/* Reads one name, or a list of them. */
static json_t *parse_providers(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST)
    return parse_text(p, k, node);
  if (node->count == 0 || node->count > LIMIT_FALLBACK_COUNT) {
    REPORT(p, node, "%s must be a name, or a list of 1 to %u of them", k->name,
           LIMIT_FALLBACK_COUNT);
    return NULL;
  }
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    json_t *name = parse_text(p, k, node->items[i]);
    for (size_t j = 0; name && j < json_array_size(list); j++)
      if (json_same(name, json_array_get(list, j)))
        REPORT(p, node->items[i], "%s names %s twice: keep one", k->name, json_string_value(name));
    parse_append(list, name);
  }
  return list;
}

void parse_put_providers(json_t *object, const char *key, json_t *value) {
  if (!json_is_array(value) || json_array_size(value) == 0) {
    parse_put(object, key, json_is_array(value) ? NULL : value);
    if (json_is_array(value))
      json_decref(value);
    return;
  }
  parse_put(object, key, json_incref(json_array_get(value, 0)));
  json_array_remove(value, 0);
  if (json_array_size(value) > 0)
    parse_put(object, "fallback", value);
  else
    json_decref(value);
}

static json_t *parse_items(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind == YAML_TEXT)
    return parse_text(p, k, node);
  if (node->kind == YAML_LIST && node->count > 0 && node->count <= (size_t)k->max)
    return yaml_to_json(node);
  REPORT(p, node,
         "%s must be a list of 1 to %.0f items, or the name of one that a movement makes: write "
         "MOVEMENT.FIELD",
         k->name, k->max);
  return NULL;
}

static json_t *parse_outputs(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_MAP || node->count == 0 || node->count > LIMIT_PARAM_COUNT) {
    REPORT(p, node,
           "%s must be a map of 1 to %u names: write NAME: \"{structured:MOVEMENT.FIELD}\"",
           k->name, LIMIT_PARAM_COUNT);
    return NULL;
  }
  json_t *map = json_object();
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *name = node->pairs[i].key, *value = node->pairs[i].value;
    if (name->text.n == 0 || name->text.n > LIMIT_NAME_BYTES || str_has_control(name->text))
      REPORT(p, name, "the name of an output is one line of at most %u bytes", LIMIT_NAME_BYTES);
    else if (parse_want_text(p, k->name, value))
      parse_put(map, name->text.p, parse_text_json(value->text));
  }
  return map;
}

void parse_section(struct parse *p, struct facets *facets, const struct key *k,
                   const struct yaml_node *node) {
  if (node->kind != YAML_MAP) {
    REPORT(p, node, "%s must be a map: write name: path or text below it", k->name);
    return;
  }
  bool ok = true;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *value = node->pairs[i].value;
    struct buf text = {0};
    struct err err;
    bool is_text = parse_want_text(p, k->name, value);
    if (is_text && !facet_resolve(facets, k->facet, value->text, &text, &err))
      REPORT(p, value, "%s", err.text); /* also if no movement names it */
    buf_deinit(&text);
    ok = ok && is_text;
  }
  if (ok)
    facets->sections[k->facet] = node;
}

/* --- any value --- */

json_t *parse_value(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (k->or_null && node->kind == YAML_NULL)
    return json_null();
  switch (k->type) {
  case KEY_NAME:
  case KEY_LINE:
  case KEY_TEXT:
    return parse_text(p, k, node);
  case KEY_BOOL:
    return parse_bool(p, k, node);
  case KEY_INTEGER:
  case KEY_NUMBER:
  case KEY_COUNT:
    return parse_number(p, k, node);
  case KEY_CHOICE:
    return parse_choice(p, k, node);
  case KEY_CONDITION:
    return parse_condition(p, k, node);
  case KEY_FACET:
    return parse_facet(p, k, node);
  case KEY_PROVIDERS:
    return parse_providers(p, k, node);
  case KEY_NOTED:
    return NULL; /* see parse_set */
  case KEY_SECTION:
    return NULL; /* read before the rest, see parse_workflow */
  case KEY_PARAMS:
  case KEY_ARGS:
  case KEY_LABELS:
    return NULL; /* read before the rest, see expand.h */
  case KEY_OUTPUTS:
    return parse_outputs(p, k, node);
  case KEY_ARGV:
    return parse_argv(p, k, node);
  case KEY_CHOICES:
    return parse_choices(p, k, node);
  case KEY_NAMES:
    return parse_names(p, k, node);
  case KEY_TEXTS:
    return parse_texts(p, k, node);
  case KEY_VARIABLES:
    return parse_variables(p, k, node);
  case KEY_PANEL:
    return parse_panel(p, k, node);
  case KEY_RUN:
    return parse_run(p, k, node);
  case KEY_STAGES:
    return parse_stages(p, k, node);
  case KEY_SCHEMA:
    return parse_schema(p, k, node);
  case KEY_ITEMS:
    return parse_items(p, k, node);
  case KEY_INVARIANTS:
    return parse_invariants(p, k, node);
  case KEY_REPORTS:
    return parse_reports(p, k, node);
  case KEY_SET:
    if (k->or_true && node->kind == YAML_BOOL && node->boolean)
      return json_object();
    return parse_set(p, k->set, node);
  case KEY_SET_LIST:
    return parse_set_list(p, k, node);
  }
  BUG("no such type of key: %d", (int)k->type);
}
