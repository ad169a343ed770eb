/* Reads the YAML tree into the resolved document. */
#include "workflow/parse.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/run.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "judge/rule.h"
#include "schema/schema.h"
#include "schema/upgrade.h"
#include "structured/invariant.h"
#include "workflow/foreign_keys.h"
#include "workflow/schemas.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- errors --- */

const char *parse_file_of(const struct parse *p, const struct yaml_node *node) {
  return node->origin ? node->origin->file : p->file;
}

PRINTF_LIKE(4, 0)
static void add_at(struct err_list *list, const struct parse *p, const struct yaml_node *node,
                   const char *fmt, va_list ap) {
  struct err err = {0};
  char text[sizeof err.text];
  (void)vsnprintf(text, sizeof text, fmt, ap);
  err_set_at(&err, ERR_FILE, parse_file_of(p, node), node->line, node->column, "%s", text);
  err_list_add(list, &err);
}

void *parse_report(struct parse *p, const struct yaml_node *node, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  add_at(p->errors, p, node, fmt, ap);
  va_end(ap);
  return NULL;
}

/* Notes, once a key, a place of the file that loads and does not mean what it says. */
PRINTF_LIKE(4, 5)
static void parse_note_once(struct parse *p, const struct key *k, const struct yaml_node *node,
                            const char *fmt, ...) {
  for (size_t i = 0; i < p->noted_count; i++)
    if (strcmp(p->noted[i]->name, k->name) == 0)
      return;
  if (p->noted_count == ARRAY_LEN(p->noted))
    return;
  p->noted[p->noted_count++] = k;
  va_list ap;
  va_start(ap, fmt);
  add_at(p->notes, p, node, fmt, ap);
  va_end(ap);
}

/* Puts a text into the arena, as it is; empties the buffer. */
static const char *parse_kept(struct arena *arena, struct buf *text) {
  const char *copy = arena_strndup(arena, buf_c(text), text->n);
  buf_deinit(text);
  return copy;
}

const char *parse_shown(struct parse *p, struct str s) {
  struct buf b = {0};
  buf_safe(&b, (struct str){s.p, utf8_floor(s.p, s.n > 60 ? 60 : s.n)}, false);
  if (s.n > 60)
    buf_puts(&b, "...");
  return parse_kept(p->arena, &b);
}

/* Returns the words that a key takes, likewise. */
static const char *parse_words_shown(struct parse *p, const struct key *k) {
  struct buf b = {0};
  key_words(k, &b);
  return parse_kept(p->arena, &b);
}

/* --- values --- */

/* Returns a text of the file as JSON. */
static json_t *parse_text_json(struct str s) {
  if (!utf8_valid(s.p, s.n)) /* ten times as fast as json_stringn */
    BUG("the tree holds a text that is not UTF-8");
  json_t *v = json_stringn_nocheck(s.p, s.n);
  if (v == NULL)
    BUG("out of memory");
  return v;
}

/* Returns true if the node is a text, else reports how to make it one. */
static bool parse_want_text(struct parse *p, const char *what, const struct yaml_node *node) {
  if (node->kind == YAML_TEXT)
    return true;
  if (node->kind == YAML_NULL)
    REPORT(p, node, "%s has no value: write one or remove the key", what);
  else if (node->kind == YAML_MAP && node->count == 1 && node->pairs[0].value->kind == YAML_NULL)
    REPORT(p, node, "%s must be a text, and {%s} without quotes is a map: write \"{%s}\"", what,
           parse_shown(p, node->pairs[0].key->text), parse_shown(p, node->pairs[0].key->text));
  else if (node->kind == YAML_LIST || node->kind == YAML_MAP)
    REPORT(p, node, "%s must be a text, not %s", what, yaml_kind_name(node->kind));
  else
    REPORT(p, node, "%s must be a text, not %s: write \"%s\" in quotes", what,
           yaml_kind_name(node->kind), parse_shown(p, node->text));
  return false;
}

/* These do the same for keys of one type. */
static json_t *parse_text(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct err why;
  /* Advice to quote a bare value such as `timeout: 90` would not help: it is wrong either way. */
  bool bare = node->kind == YAML_INTEGER || node->kind == YAML_REAL || node->kind == YAML_BOOL;
  if (bare && k->check != NULL && !k->check(node->text, &why))
    return REPORT(p, node, "%s %s", k->name, why.text);
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

static bool is_key_word(const struct key *k, const struct yaml_node *node) {
  return k->words && node->kind == YAML_TEXT && str_is_one(node->text, k->words);
}

/* Returns advice for a text that has a number among other things, such as $5. */
static const char *number_inside(struct parse *p, const struct yaml_node *node) {
  char *end;
  const char *at =
      node->kind == YAML_TEXT ? node->text.p + strcspn(node->text.p, "0123456789") : "";
  double value = strtod(at, &end);
  return end != at ? arena_printf(p->arena, ": write %g", value) : "";
}

static json_t *parse_number(struct parse *p, const struct key *k, const struct yaml_node *node) {
  bool whole = k->type != KEY_NUMBER;
  const char *kind = whole ? "a whole number" : "a number";
  if (is_key_word(k, node))
    return parse_text_json(node->text);
  if ((node->kind == YAML_INTEGER || (!whole && node->kind == YAML_REAL)) && node->real >= k->min &&
      node->real <= k->max)
    return node->kind == YAML_INTEGER ? json_integer(node->integer) : json_real(node->real);
  if (k->words)
    REPORT(p, node, "%s must be %s from %.0f to %.0f, or %s", k->name, kind, k->min, k->max,
           parse_words_shown(p, k));
  else
    REPORT(p, node, "%s must be %s from %.0f to %.0f%s", k->name, kind, k->min, k->max,
           number_inside(p, node));
  return NULL;
}

static json_t *parse_condition(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct rule rule = {0};
  struct str label;
  struct err err;
  size_t offset = 0;
  if (!parse_want_text(p, k->name, node))
    return NULL;
  if (foreign_keys_plain_condition(p->arena, node->text, &label) &&
      rule_parse(p->arena, label, &rule, NULL, &err) && rule.label.n > 0) {
    p->foreign = true;
    parse_note_once(p, k, node,
                    "ai(\"...\") is read as the label in it: every label is judged, so write the "
                    "label alone");
    return parse_text_json(label);
  }
  if (rule_parse(p->arena, node->text, &rule, &offset, &err))
    return parse_text_json(str_trim(node->text));
  struct yaml_node place = *node;
  yaml_place(node, offset, &place.line, &place.column);
  return REPORT(p, &place, "%s", err.text);
}

/* Returns the facets of the node's own file. */
static struct facets parse_facets_of(const struct parse *p, const struct yaml_node *node) {
  const struct origin *origin = origin_of(node);
  struct facets facets = origin ? origin->facets : p->facets;
  facets.movement = p->facets.movement;
  facets.files = p->facets.files;
  return facets;
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
    /* A name of the facet's own section was read before, and its errors were reported there. */
    const struct yaml_node *section = facets.sections[k->facet];
    bool is_named = false;
    for (size_t i = 0; section && i < section->count; i++)
      is_named |= str_eq(section->pairs[i].key->text, node->text);
    if (!is_named)
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
  buf_auto_t text = {0};
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
  return v;
}

/* Reads one name, or a list of them. */
static json_t *parse_providers(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST)
    return parse_text(p, k, node);
  if (node->count == 0 || node->count > LIMIT_FALLBACK_COUNT)
    return REPORT(p, node, "%s must be a name, or a list of 1 to %u of them", k->name,
                  LIMIT_FALLBACK_COUNT);
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

/* Puts the first name of a list where a single name would be, and the rest into `fallback`. Takes
 * the value. */
static void parse_put_providers(json_t *object, const char *key, json_t *value) {
  if (!json_is_array(value)) {
    parse_put(object, key, value);
    return;
  }
  parse_put(object, key, json_incref(json_array_get(value, 0)));
  json_array_remove(value, 0);
  if (json_array_size(value) > 0)
    json_object_set(object, "fallback", value);
  json_decref(value);
}

/* Puts `fallback: own_tag` under a name of its own, since `fallback` holds providers. Takes it. */
static void parse_put_own_tag(json_t *object, json_t *value) {
  if (value != NULL)
    json_object_set_new(object, "own_tag", json_boolean(str_eq_c(json_view(value), "own_tag")));
  json_decref(value);
}

static json_t *parse_items(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind == YAML_TEXT)
    return parse_text(p, k, node);
  if (node->kind == YAML_LIST && node->count > 0 && node->count <= (size_t)k->max)
    return yaml_to_json(node);
  return REPORT(
      p, node,
      "%s must be a list of 1 to %.0f items, or the name of one that a movement makes: write "
      "MOVEMENT.FIELD",
      k->name, k->max);
}

static json_t *parse_outputs(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_MAP || node->count == 0 || node->count > LIMIT_PARAM_COUNT)
    return REPORT(p, node,
                  "%s must be a map of 1 to %u names: write NAME: \"{structured:MOVEMENT.FIELD}\"",
                  k->name, LIMIT_PARAM_COUNT);
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

static void parse_section(struct parse *p, struct facets *facets, const struct key *k,
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

const struct yaml_node *parse_member(const struct yaml_node *map, const struct key *key) {
  for (size_t i = 0; map->kind == YAML_MAP && i < map->count; i++)
    if (key != NULL && key_is(key, map->pairs[i].key->text))
      return map->pairs[i].value;
  return NULL;
}

void parse_sections(struct parse *p, struct facets *facets, const struct yaml_node *root) {
  for (const struct key *k = workflow_keys.keys; k->name; k++) {
    const struct yaml_node *section = k->type == KEY_SECTION ? parse_member(root, k) : NULL;
    if (section != NULL)
      parse_section(p, facets, k, section);
  }
}

/* --- lists --- */

typedef json_t *item_reader(struct parse *p, const struct key *k, const struct yaml_node *item);

/* Reads each item of a list; those that are wrong are reported and left out. */
static json_t *parse_each_item(struct parse *p, const struct key *k, const struct yaml_node *node,
                               item_reader *read) {
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++)
    parse_append(list, read(p, k, node->items[i]));
  return list;
}

/* Does the same for a list of `least` to `most` items; what: what they are, and what to write. */
static json_t *parse_bounded_list(struct parse *p, const struct key *k,
                                  const struct yaml_node *node, size_t least, size_t most,
                                  const char *what, item_reader *read) {
  if (node->kind != YAML_LIST || node->count < least || node->count > most)
    return REPORT(p, node, "%s must be a list of %zu to %zu %s", k->name, least, most, what);
  return parse_each_item(p, k, node, read);
}

static json_t *parse_any_text(struct parse *p, const struct key *k, const struct yaml_node *item) {
  return parse_want_text(p, k->name, item) ? parse_text_json(item->text) : NULL;
}

static json_t *parse_argv(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (!p->named_by_user)
    REPORT(p, node,
           "command runs a program, which only a file that you name may do: give this file's path");
  if (node->kind == YAML_LIST && node->count > 0 && node->items[0]->kind == YAML_TEXT &&
      node->items[0]->text.n == 0)
    REPORT(p, node->items[0], "%s begins with an empty text: write the program", k->name);
  return parse_bounded_list(p, k, node, 1, LIMIT_ARGV_COUNT,
                            "texts: write [program, argument, ...]", parse_any_text);
}

static json_t *parse_choices(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (node->kind != YAML_LIST || node->count < 2 || node->count > (size_t)k->max)
    return REPORT(p, node,
                  "%s must be a list of 2 to %.0f answers: write [yes, no], or leave it out",
                  k->name, k->max);
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (!parse_want_text(p, k->name, item))
      continue;
    json_t *text = parse_text_json(item->text);
    if (str_trim(item->text).n == 0 || str_has_control(item->text) ||
        item->text.n > LIMIT_CHOICE_BYTES)
      REPORT(p, item, "a choice must be one line of 1 to %u bytes", LIMIT_CHOICE_BYTES);
    for (size_t j = 0; j < json_array_size(list); j++)
      if (json_same(text, json_array_get(list, j)))
        REPORT(p, item, "%s names %s twice: keep one", k->name, parse_shown(p, item->text));
    parse_append(list, text);
  }
  return list;
}

static json_t *parse_variable(struct parse *p, const struct key *k, const struct yaml_node *item) {
  if (item->kind == YAML_TEXT && !str_is_variable(item->text))
    REPORT(p, item, "%s takes names only: the value comes from the environment", k->name);
  return parse_any_text(p, k, item);
}

static json_t *parse_program(struct parse *p, const struct key *k, const struct yaml_node *item) {
  const char *fault = item->kind == YAML_TEXT ? run_fault(item->text) : NULL;
  if (fault != NULL)
    REPORT(p, item, "\"%.100s\" of %s %s", item->text.p, k->name, fault);
  return parse_any_text(p, k, item);
}

static json_t *parse_stages(struct parse *p, const struct key *k, const struct yaml_node *node) {
  assert(k->words != NULL);
  if (node->kind != YAML_LIST || node->count == 0)
    return REPORT(p, node, "%s must be a list of at least one of %s", k->name,
                  parse_words_shown(p, k));
  json_t *list = json_array();
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    const char *near = str_nearest(item->text, k->words);
    bool twice = false;
    for (size_t j = 0; j < i && is_key_word(k, item); j++)
      twice |= str_eq(node->items[j]->text, item->text);
    if (twice)
      REPORT(p, item, "the stage %s is listed twice: keep one", item->text.p);
    else if (is_key_word(k, item))
      parse_append(list, parse_text_json(item->text));
    else
      REPORT(p, item, "there is no stage %s to list: %s%s%s", parse_shown(p, item->text),
             near ? "did you mean " : "use ", near ? near : parse_words_shown(p, k),
             near ? "?" : "");
  }
  return list;
}

/* --- schemas and invariants --- */

/* Returns the node at a path like $.properties.a[0], or the nearest one above it. */
static const struct yaml_node *parse_node_at(const struct yaml_node *node, const char *pointer) {
  while (*pointer == '/') {
    size_t n = strcspn(++pointer, "/");
    const struct yaml_node *next = NULL;
    struct str part = {pointer, n};
    long index;
    for (size_t i = 0; node->kind == YAML_MAP && i < node->count; i++)
      if (str_eq(node->pairs[i].key->text, part))
        next = node->pairs[i].value;
    if (node->kind == YAML_LIST && str_to_long(part, &index) && index >= 0 &&
        (size_t)index < node->count)
      next = node->items[index];
    if (next == NULL)
      return node;
    node = next;
    pointer += n;
  }
  return node;
}

/* Checks that the document is a schema that says something. Otherwise reports every error at its
 * place in the file, or with the name of the schema's own file. */
static bool parse_check_schema(struct parse *p, const struct yaml_node *node, const json_t *doc) {
  struct schema_errors errors = {0};
  bool inlined = node->kind == YAML_MAP;
  if (!json_is_object(doc) || !schema_has_known_keyword(doc)) {
    REPORT(p, node, "%s%sit has no JSON Schema keyword: write type, properties, required, ...",
           inlined ? "" : parse_shown(p, node->text), inlined ? "" : ": ");
    return false;
  }
  struct schema *schema = schema_compile(doc, NULL, &errors, NULL);
  for (size_t i = 0; schema == NULL && i < errors.count; i++) {
    const struct yaml_node *at = inlined ? parse_node_at(node, errors.items[i].pointer) : node;
    REPORT(p, at, "%s%s%s: %s", inlined ? "" : parse_shown(p, node->text), inlined ? "" : ": ",
           errors.items[i].path, errors.items[i].message);
  }
  bool ok = schema != NULL;
  schema_free(schema);
  schema_errors_deinit(&errors);
  return ok;
}

static json_t *parse_schema(struct parse *p, const struct key *k, const struct yaml_node *node) {
  json_t *doc = NULL;
  struct err err;
  if (node->kind == YAML_MAP) {
    doc = yaml_to_json(node);
    schema_upgrade(doc);
  } else if (node->kind == YAML_LIST) {
    return REPORT(
        p, node,
        "%s must be the name of a built-in schema, a path or the schema itself, not a list",
        k->name);
  } else if (!parse_want_text(p, k->name, node)) {
    return NULL;
  } else if (preset_is_name(node->text)) {
    doc = preset_schema(node->text);
    if (doc == NULL)
      REPORT(p, node,
             "there is no built-in schema %s: use %s, write a path such as schemas/%s.json, or the "
             "schema itself",
             parse_shown(p, node->text), preset_names(), parse_shown(p, node->text));
  } else {
    doc = schema_load_beneath(parse_facets_of(p, node).folder, node->text.p, &err);
    if (doc == NULL && err.line > 0)
      err_list_add(p->errors, &err);
    else if (doc == NULL)
      REPORT(p, node, "%s", err.text);
  }
  if (doc != NULL && parse_check_schema(p, node, doc))
    return doc;
  json_decref(doc);
  return NULL;
}

static json_t *parse_invariants(struct parse *p, const struct key *k,
                                const struct yaml_node *node) {
  struct schema_errors errors = {0};
  if (node->kind != YAML_LIST || node->count == 0)
    return REPORT(p, node,
                  "%s must be a list of at least one expression, {command: [..]} or {ai: question}",
                  k->name);
  json_t *list = yaml_to_json(node);
  struct invariants *invariants = invariants_compile(list, &errors, NULL);
  for (size_t i = 0; invariants == NULL && i < errors.count; i++)
    REPORT(p, parse_node_at(node, errors.items[i].pointer), "invariant %s: %s",
           errors.items[i].path, errors.items[i].message);
  if (!p->named_by_user && invariants_need(invariants, INVARIANT_COMMAND))
    REPORT(p, node,
           "command runs a program, which only a file that you name may do: give this file's path");
  bool ok = invariants != NULL;
  invariants_free(invariants);
  schema_errors_deinit(&errors);
  if (ok)
    return list;
  json_decref(list);
  return NULL;
}

/* --- maps of keys --- */

/* Lists the keys of a set, once for each file. */
static bool list_keys(struct parse *p, const struct key_set *set, struct buf *all) {
  for (size_t i = 0; i < p->listed_count; i++)
    if (p->listed[i] == set)
      return false;
  if (p->listed_count < ARRAY_LEN(p->listed))
    p->listed[p->listed_count++] = set;
  for (const struct key *k = set->keys; k->name; k++)
    if (k->type != KEY_NOTED)
      buf_printf(all, "%s%s", all->n ? ", " : ": use ", k->name);
  return true;
}

static void report_unknown(struct parse *p, const struct key_set *set,
                           const struct yaml_node *key) {
  if (key_find(set, key->text) != NULL)
    return;
  const char *word = parse_shown(p, key->text), *near = key_nearest(set, key->text);
  const char *advice = foreign_keys_advice(set, key->text);
  buf_auto_t all = {0};
  if (advice)
    REPORT(p, key, "%s has no key %s: %s", set->what, word, advice);
  else if (near)
    REPORT(p, key, "%s has no key %s: did you mean %s?", set->what, word, near);
  else if (list_keys(p, set, &all))
    REPORT(p, key, "%s has no key %s%s", set->what, word, buf_c(&all));
  else
    REPORT(p, key, "%s has no key %s: remove it", set->what, word);
}

/* Returns the pair of a key or its alias; both together are an error. */
static const struct yaml_pair *pair_of(struct parse *p, const struct key *k,
                                       const struct yaml_node *node) {
  const struct yaml_pair *pair = NULL;
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key;
    if (!key_is(k, key->text))
      continue;
    if (pair == NULL)
      pair = &node->pairs[i];
    else
      REPORT(p, key, STR_FMT " is another name of " STR_FMT " (line %d): keep one",
             STR_ARG(key->text), STR_ARG(pair->key->text), pair->key->line);
  }
  return pair;
}

/* Reports the keys of a movement that are among `words`. */
static void refuse_keys(struct parse *p, const struct yaml_node *node, const char *words,
                        const char *before, const char *after) {
  for (size_t i = 0; i < node->count; i++)
    if (str_among(node->pairs[i].key->text, words))
      REPORT(p, node->pairs[i].key, "%s" STR_FMT "%s", before, STR_ARG(node->pairs[i].key->text),
             after);
}

/* Checks integrate: its program and what that reads are segue's. */
static void check_integrate(struct parse *p, const struct yaml_node *node) {
  const struct yaml_node *integrates = yaml_get(node, "integrate");
  if (integrates == NULL)
    return;
  if (p->in_group)
    REPORT(p, integrates, "a child of parallel cannot integrate: write it after its group");
  refuse_keys(p, node,
              "command provider model options persona policy knowledge ask tests instruction edit "
              "permission cwd structured_output gate parallel",
              "a movement with integrate merges branches: remove ", "");
}

/* Checks that names differ in more than ASCII case: tags fold it, so such names would share their
 * tags. */
static void parse_map_check_names(struct parse *p, const struct yaml_node *movements) {
  json_auto_t *seen = json_object();
  for (size_t i = 0; movements->kind == YAML_LIST && i < movements->count; i++) {
    const struct yaml_node *name = yaml_get(movements->items[i], "name");
    char upper[LIMIT_NAME_BYTES + 1];
    if (name == NULL || name->kind != YAML_TEXT || name->text.n == 0 ||
        name->text.n > LIMIT_NAME_BYTES || str_has_control(name->text))
      continue;
    for (size_t k = 0; k <= name->text.n; k++) {
      char c = name->text.p[k];
      upper[k] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    const json_t *first = json_object_get(seen, upper);
    if (strcmp(upper, "COMPLETE") == 0 || strcmp(upper, "ABORT") == 0)
      REPORT(p, name, "%s is an end, not a movement: write another name", upper);
    else if (first)
      REPORT(p, name, "the name %s is taken (line %d; capitals do not count): write another name",
             parse_shown(p, name->text), (int)json_integer_value(first));
    else
      parse_put(seen, upper, json_integer(name->line));
  }
}

/* Checks parallel: a group does no work of its own, and its children have no children. */
static void check_group(struct parse *p, const struct yaml_node *node) {
  static const char *const of_groups[] = {"for_each", "concurrency", "stop_on"};
  const struct yaml_node *children = yaml_get(node, "parallel");
  for (size_t i = 0; children == NULL && i < ARRAY_LEN(of_groups); i++)
    if (yaml_get(node, of_groups[i]) != NULL)
      REPORT(p, yaml_get(node, of_groups[i]), "%s is for a movement with parallel: %s",
             of_groups[i],
             i == 0 ? "write the movement that runs for each item into parallel" : "remove it");
  if (children == NULL)
    return;
  if (yaml_get(node, "for_each") != NULL && children->count != 1)
    REPORT(p, children, "for_each runs one child for each item: write one into parallel, not %zu",
           children->count);
  if (p->in_group)
    REPORT(p, children, "a child of parallel cannot have children: put them all into one list");
  refuse_keys(p, node,
              "command provider model options persona policy knowledge instruction "
              "instruction_template bare_prompt edit session session_key structured_output report "
              "output_contracts ask on_error",
              "a movement with parallel does no work of its own: write ", " into its children");
  parse_map_check_names(p, children);
}

static void parse_check_next(struct parse *p, const struct yaml_node *rules) {
  for (size_t i = 0; rules && rules->kind == YAML_LIST && i < rules->count; i++) {
    const struct yaml_node *rule = rules->items[i], *next = yaml_get(rule, "next");
    const struct yaml_node *asks = yaml_get(rule, "requires_user_input");
    if (rule->kind != YAML_MAP)
      continue;
    if (next != NULL && p->in_group)
      REPORT(p, next, "a child's rule leads nowhere: the group's rules say where to go next");
    else if (next == NULL && !p->in_group && !(asks != NULL && asks->boolean))
      REPORT(p, rule, "a rule has no next: add next:");
  }
}

/* Checks appendices: two rules that one tag or number of a judge cannot tell apart must have the
 * same. */
static void check_appendices(struct parse *p, const struct yaml_node *rules) {
  if (rules == NULL || rules->kind != YAML_LIST || rules->count > LIMIT_RULE_COUNT)
    return;
  struct rule *parsed = arena_array(p->arena, rules->count, sizeof *parsed);
  for (size_t i = 0; i < rules->count; i++) {
    const struct yaml_node *condition = yaml_get(rules->items[i], "condition");
    const struct yaml_node *appendix = yaml_get(rules->items[i], "appendix");
    struct err err;
    if (condition == NULL || condition->kind != YAML_TEXT ||
        !rule_parse(p->arena, condition->text, &parsed[i], NULL, &err))
      parsed[i].label = STR("");
    parsed[i].appendix = appendix && appendix->kind == YAML_TEXT ? appendix->text : STR("");
    for (size_t k = 0; k < i && parsed[i].label.n > 0; k++)
      if (str_eq(parsed[k].label, parsed[i].label) &&
          !str_eq(parsed[k].appendix, parsed[i].appendix)) {
        REPORT(p, appendix ? appendix : condition,
               "rules %zu and %zu have the label %s but not the same appendix: a judge sees them "
               "as one, so write the same in both",
               k + 1, i + 1, parse_shown(p, parsed[i].label));
        break;
      }
  }
}

static json_t *parse_value(struct parse *p, const struct key *k, const struct yaml_node *node);

static json_t *parse_set(struct parse *p, const struct key_set *set, const struct yaml_node *node) {
  if (node->kind != YAML_MAP)
    return REPORT(p, node, "%s must be a map of keys and values, not %s", set->what,
                  yaml_kind_name(node->kind));
  json_t *object = json_object();
  const struct str outer = p->facets.movement;
  if (set == &movement_keys) {
    const struct yaml_node *name = yaml_get(node, "name");
    p->facets.movement = name && name->kind == YAML_TEXT ? name->text : STR("");
  }
  for (size_t i = 0; i < node->count; i++)
    report_unknown(p, set, node->pairs[i].key);
  for (const struct key *k = set->keys; k->name; k++) {
    const struct yaml_pair *pair = pair_of(p, k, node);
    if (pair == NULL) {
      if (k->required)
        REPORT(p, node, "%s has no %s: add %s:", set->what, k->name, k->name);
      continue;
    }
    if (k->type == KEY_NOTED)
      parse_note_once(p, k, pair->key, "%s is ignored: %s", k->name, k->description);
    if (k->older && str_eq_c(pair->key->text, k->older))
      parse_note_once(p, k, pair->key, "%s is read as %s", k->older, k->name);
    p->foreign = p->foreign || k->type == KEY_NOTED || !str_eq_c(pair->key->text, k->name);
    bool was_in_group = p->in_group;
    p->in_group = was_in_group || (set == &movement_keys && k->set == set);
    json_t *value = parse_value(p, k, pair->value);
    p->in_group = was_in_group;
    if (k->type == KEY_PROVIDERS)
      parse_put_providers(object, k->name, value);
    else if (set == &judge_keys && strcmp(k->name, "fallback") == 0)
      parse_put_own_tag(object, value);
    else
      parse_put(object, k->name, value);
  }
  if (set == &workflow_keys)
    parse_check_next(p, yaml_get(node, "global_rules"));
  if (set == &loop_judge_keys || set == &movement_keys) {
    parse_check_next(p, yaml_get(node, "rules"));
    check_appendices(p, yaml_get(node, "rules"));
  }
  if (set == &movement_keys) {
    p->facets.movement = outer;
    const struct yaml_node *tools = yaml_get(node, "allowed_tools");
    json_auto_t *names = tools && tools->kind == YAML_LIST ? yaml_to_json(tools) : NULL;
    foreign_keys_take_tools(names, object);
    if (yaml_get(node, "command") != NULL)
      refuse_keys(p, node, "provider model persona policy knowledge output_contracts",
                  "a command movement takes no ", ": remove it");
    check_integrate(p, node);
    if (yaml_get(node, "ask") != NULL)
      refuse_keys(p, node,
                  "command tests provider model options persona policy knowledge instruction edit "
                  "permission run session secrets session_key approve structured_output",
                  "a movement with ask does no work of its own: remove ", "");
    check_group(p, node);
  }
  return object;
}

static json_t *parse_set_item(struct parse *p, const struct key *k, const struct yaml_node *item) {
  return parse_set(p, k->set, item);
}

static json_t *parse_set_list(struct parse *p, const struct key *k, const struct yaml_node *node) {
  assert(k->set != NULL);
  assert(k->max > 0);
  if (k->or_member != NULL && node->kind == YAML_TEXT)
    return json_pack("[{so}]", k->or_member,
                     parse_value(p, key_find(k->set, str_from(k->or_member)), node));
  if (node->kind != YAML_LIST || node->count == 0)
    return REPORT(p, node, "%s must be a list of at least one: write - and %s's keys below it",
                  k->name, k->set->what);
  if (node->count > (size_t)k->max)
    return REPORT(p, node->items[(size_t)k->max],
                  "%s has more than %.0f entries: split the workflow", k->name, k->max);
  return parse_each_item(p, k, node, parse_set_item);
}

/* Reads a report: its file's name, LABEL: FILE, or a map of its keys. */
static json_t *parse_report_item(struct parse *p, const struct key *k,
                                 const struct yaml_node *item) {
  const struct key *name = key_find(k->set, STR("name")), *label = key_find(k->set, STR("label"));
  bool pair = item->kind == YAML_MAP && item->count == 1 &&
              key_find(k->set, item->pairs[0].key->text) == NULL;
  if (item->kind != YAML_TEXT && !pair)
    return parse_set(p, k->set, item);
  json_t *report = json_object();
  parse_put(report, "name", parse_value(p, name, pair ? item->pairs[0].value : item));
  if (pair)
    parse_put(report, "label", parse_value(p, label, item->pairs[0].key));
  return report;
}

/* --- any value --- */

/* Returns the value of a key as a new reference; NULL if it is wrong, which was reported. */
static json_t *parse_value(struct parse *p, const struct key *k, const struct yaml_node *node) {
  if (k->or_null && node->kind == YAML_NULL)
    return json_null();
  switch (k->type) {
  case KEY_NAME:
  case KEY_LINE:
  case KEY_TEXT:
    return parse_text(p, k, node);
  case KEY_BOOL:
    if (node->kind == YAML_BOOL)
      return json_boolean(node->boolean);
    return REPORT(p, node, "%s must be true or false", k->name);
  case KEY_INTEGER:
  case KEY_NUMBER:
  case KEY_COUNT:
    return parse_number(p, k, node);
  case KEY_CHOICE:
    if (is_key_word(k, node))
      return parse_text_json(node->text);
    return REPORT(p, node, "%s must be %s", k->name, parse_words_shown(p, k));
  case KEY_CONDITION:
    return parse_condition(p, k, node);
  case KEY_FACET:
    return parse_facet(p, k, node);
  case KEY_PROVIDERS:
    return parse_providers(p, k, node);
  case KEY_NOTED:   /* see parse_set */
  case KEY_SECTION: /* read before the rest, see parse_workflow */
  case KEY_PARAMS:  /* these three too, see expand.h */
  case KEY_ARGS:
  case KEY_LABELS:
    return NULL;
  case KEY_OUTPUTS:
    return parse_outputs(p, k, node);
  case KEY_ARGV:
    return parse_argv(p, k, node);
  case KEY_CHOICES:
    return parse_choices(p, k, node);
  case KEY_NAMES:
    return parse_bounded_list(p, k, node, (size_t)k->min, (size_t)k->max, "movements' names",
                              parse_text);
  case KEY_TEXTS:
    return parse_bounded_list(p, k, node, 1, (size_t)k->max, "texts", parse_any_text);
  case KEY_VARIABLES:
    return parse_bounded_list(p, k, node, 1, LIMIT_SECRET_COUNT,
                              "names of variables, such as [DEPLOY_TOKEN]", parse_variable);
  case KEY_PANEL:
    if (is_key_word(k, node))
      return parse_text_json(node->text);
    return parse_bounded_list(p, k, node, 2, (size_t)k->max,
                              "providers, or none: a panel of one is no panel", parse_text);
  case KEY_RUN:
    return parse_bounded_list(p, k, node, 1, (size_t)k->max, "programs: write [make, npm test]",
                              parse_program);
  case KEY_STAGES:
    return parse_stages(p, k, node);
  case KEY_SCHEMA:
    return parse_schema(p, k, node);
  case KEY_ITEMS:
    return parse_items(p, k, node);
  case KEY_INVARIANTS:
    return parse_invariants(p, k, node);
  case KEY_REPORTS:
    return parse_bounded_list(p, k, node, 1, (size_t)k->max,
                              "reports: write - name: plan.md below it", parse_report_item);
  case KEY_SET:
    if (k->or_true && node->kind == YAML_BOOL && node->boolean)
      return json_object();
    if (k->or_member != NULL && node->kind != YAML_MAP)
      return json_pack("{so}", k->or_member,
                       parse_value(p, key_find(k->set, str_from(k->or_member)), node));
    return parse_set(p, k->set, node);
  case KEY_SET_LIST:
    return parse_set_list(p, k, node);
  }
  BUG("no such type of key: %d", (int)k->type);
}

/* --- the whole --- */

/* Lets the children of a group that may change the same files run one after the other, as a file of
 * another runner, which lets them run at once, can be read without losing work. */
static void order_editors(struct parse *p, const struct yaml_node *movements, const json_t *doc) {
  JSON_EACH(json_object_get(doc, "movements"), i, group) {
    size_t editors = 0;
    JSON_EACH(json_object_get(group, "parallel"), k, child) {
      const json_t *workspace = json_object_get(child, "workspace");
      editors += foreign_keys_may_edit(child) && !str_eq_c(json_view(workspace), "worktree");
    }
    if (editors < 2 || json_int_at(group, "concurrency") == 1)
      continue;
    parse_put((json_t *)group, "concurrency", json_integer(1));
    parse_note_once(p, key_find(&movement_keys, STR("concurrency")), movements->items[i],
                    "%zu children of %s may change the same files: they run one after the other "
                    "(concurrency: 1)",
                    editors, json_string_value(json_object_get(group, "name")));
  }
}

/* Makes an agent's own tag decide where no judge can be read, as the other runner does, unless the
 * file says who does. */
static void decide_by_own_tags(json_t *doc) {
  if (json_at(doc, "judge") == NULL)
    json_object_set_new(doc, "judge", json_object());
  json_t *judge = json_object_get(doc, "judge");
  if (json_at(judge, "own_tag") == NULL)
    json_object_set_new(judge, "own_tag", json_true());
}

json_t *parse_workflow(struct parse *p, const struct yaml_node *root) {
  const struct yaml_node *movements =
      parse_member(root, key_find(&workflow_keys, STR("movements")));
  parse_sections(p, &p->facets, root);
  if (movements != NULL)
    parse_map_check_names(p, movements);
  json_t *doc = parse_set(p, &workflow_keys, root);
  if (p->errors->count == 0 && (p->foreign || strstr(p->file, ".takt/") != NULL)) {
    decide_by_own_tags(doc);
    order_editors(p, movements, doc);
  }
  return doc;
}

void parse_called(struct parse *p, const struct yaml_node *root) {
  for (size_t i = 0; i < root->count; i++)
    report_unknown(p, &workflow_keys, root->pairs[i].key);
  for (const struct key *k = workflow_keys.keys; k->name; k++) {
    const struct yaml_pair *pair = pair_of(p, k, root);
    if (pair == NULL && k->required)
      REPORT(p, root, "%s has no %s: add %s:", workflow_keys.what, k->name, k->name);
    if (pair == NULL)
      continue;
    if (k->type != KEY_SET_LIST)
      json_decref(parse_value(p, k, pair->value));
    else if (pair->value->kind != YAML_LIST || pair->value->count == 0)
      REPORT(p, pair->value, "%s must be a list of at least one", k->name);
    else
      parse_map_check_names(p, pair->value);
  }
}
