/* Warns of schemas that make a model invent values. */
#include "schema/schema_lint.h"

#include "format/json_object.h"
#include "format/json_value.h"
#include "schema/compiled.h"
#include "schema/validate.h"

#include <math.h>

enum {
  LINT_DEPTH = 64,
  REFERENCES_FOLLOWED = 16,
  LINT_NODES = 20000,
  LINT_PARTS = 100,
  LINT_LEVELS = 8
};

struct linting {
  const json_t *doc;
  struct schema_errors *warnings;
  unsigned nodes;
  int looks;      /* left for one schema, at what lies below it */
  bool bound;     /* some keyword limits a value */
  bool free_leaf; /* some value is not a boolean, null or an enum */
};

/* --- looking at one schema --- */

static const json_t *lint_resolve(struct linting *l, const json_t *schema) {
  for (int i = 0; i < REFERENCES_FOLLOWED; i++) {
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    if (ref == NULL || ref[0] != '#')
      return schema;
    const json_t *at = l->doc;
    for (const char *p = ref + 1; *p == '/' && at;) {
      buf_auto_t raw = {0}, key = {0};
      size_t n = strcspn(++p, "/");
      buf_percent_decoded(&raw, (struct str){p, n});
      for (size_t k = 0; k < raw.n; k++) {
        bool tilde = raw.p[k] == '~' && k + 1 < raw.n;
        char c = raw.p[k];
        if (tilde)
          c = raw.p[++k] == '1' ? '/' : '~';
        buf_append(&key, &c, 1);
      }
      at = json_object_getn(at, buf_c(&key), key.n);
      p += n;
    }
    if (at == NULL || (ref[1] != '\0' && ref[1] != '/'))
      return schema;
    schema = at;
  }
  return schema;
}

static bool has_type(const json_t *type, const char *name) {
  if (json_is_string(type))
    return !strcmp(json_string_value(type), name);
  for (size_t i = 0; i < json_array_size(type); i++)
    if (has_type(json_array_get(type, i), name))
      return true;
  return false;
}

/* Returns whether the value may be null, so that a model can say that it has none. */
static bool takes_null(struct linting *l, const json_t *schema, int levels) {
  static const char *const choices[] = {"anyOf", "oneOf"};
  const json_t *type, *options;
  if (levels == 0 || ++l->nodes > LINT_NODES)
    return true; /* too deep or too large to check: no warning */
  schema = lint_resolve(l, schema);
  if (!json_is_object(schema))
    return json_is_true(schema);
  type = json_object_get(schema, "type");
  if (type && !has_type(type, "null"))
    return json_is_true(json_object_get(schema, "nullable"));
  for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
    bool any = false;
    options = json_object_get(schema, choices[k]);
    for (size_t i = 0; i < json_array_size(options); i++)
      any = any || takes_null(l, json_array_get(options, i), levels - 1);
    if (options && !any)
      return false;
  }
  options = json_object_get(schema, "allOf");
  for (size_t i = 0; i < json_array_size(options); i++)
    if (!takes_null(l, json_array_get(options, i), levels - 1))
      return false;
  return true;
}

/* Returns true if the schema lists the few possible values itself. */
static bool is_choice(struct linting *l, const json_t *schema, int levels) {
  static const char *const choices[] = {"anyOf", "oneOf"};
  if (levels == 0 || ++l->nodes > LINT_NODES)
    return true;
  schema = lint_resolve(l, schema);
  if (json_object_get(schema, "enum") || json_object_get(schema, "const") ||
      json_object_get(schema, "default"))
    return true;
  for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
    const json_t *options = json_object_get(schema, choices[k]);
    size_t i = 0;
    while (i < json_array_size(options) && is_choice(l, json_array_get(options, i), levels - 1))
      i++;
    if (i > 0 && i == json_array_size(options))
      return true;
  }
  return false;
}

/* Returns true for members that a model makes up itself: it always has something to say there. */
static bool is_own_words(const char *name) {
  static const char *const names[] = {
      "reason",   "reasoning",  "rationale",   "explanation", "justification", "analysis",
      "thought",  "thoughts",   "thinking",    "summary",     "answer",        "response",
      "reply",    "comment",    "comments",    "feedback",    "conclusion",    "verdict",
      "step",     "confidence", "probability", "certainty",   "likelihood",    "score",
      "rating",   "sentiment",  "category",    "label",       "message",       "question",
      "questions"};
  return str_index(str_from(name), names, ARRAY_LEN(names)) >= 0;
}

/* Returns "a text" and the like for a value that states a fact; NULL for other values. */
static const char *fact_of(struct linting *l, const json_t *schema) {
  const json_t *type;
  schema = lint_resolve(l, schema);
  type = json_object_get(schema, "type");
  if (has_type(type, "string"))
    return "a text";
  if (has_type(type, "number") || has_type(type, "integer"))
    return "a number";
  if (has_type(type, "array") && json_integer_value(json_object_get(schema, "minItems")) > 0)
    return "a list that is not empty";
  if (type == NULL && (json_object_get(schema, "anyOf") || json_object_get(schema, "oneOf")))
    return "a value";
  return NULL;
}

/* --- walking --- */

static void lint_warn(struct linting *l, const struct path_step *place, const char *keyword,
                      struct buf *message) {
  struct buf path = {0}, pointer = {0}, schema_path = {0};
  schema_path_text(place, &path);
  schema_pointer_text(place, &pointer);
  schema_pointer_text(place, &schema_path);
  schema_errors_add(l->warnings, buf_take(&path), buf_take(&pointer), buf_take(&schema_path),
                    keyword, buf_take(message));
}

static bool type_allows(const json_t *type, const json_t *value) {
  static const char *const names[] = {
      [JSON_OBJECT] = "object",  [JSON_ARRAY] = "array", [JSON_STRING] = "string",
      [JSON_INTEGER] = "number", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
      [JSON_FALSE] = "boolean",  [JSON_NULL] = "null"};
  return has_type(type, names[json_typeof(value)]) ||
         (has_type(type, "integer") && schema_value_is_integral(value));
}

static void warn_below(struct linting *l, const struct path_step *place, const char *key,
                       const char *keyword, struct buf *message) {
  const struct path_step at = {place, key, strlen(key)};
  lint_warn(l, &at, keyword, message);
}

/* Words that say something to a person or to other programs, and nothing to a validator. */
static bool lint_is_annotation(const char *key) {
  return strncmp(key, "x-", 2) == 0 ||
         str_among(str_from(key), "title description default examples example readOnly writeOnly "
                                  "deprecated discriminator xml externalDocs enumNames id");
}

static bool is_keyword(const char *key) {
  return schema_keyword_find(key, DIALECT_07 | DIALECT_2019 | DIALECT_2020) != NULL;
}

/* Keywords that are none, a letter away from one or of another dialect. */
static void lint_slips(struct linting *l, const json_t *schema, const struct path_step *place) {
  JSON_MEMBERS(schema, key, value) {
    struct buf message = {0};
    const char *near = NULL;
    if (is_keyword(key) || lint_is_annotation(key))
      continue;
    if (strcmp(key, "nullable") == 0)
      buf_puts(&message, "a word of OpenAPI, which this draft does not know: add \"null\" to type");
    else if ((near = schema_keyword_nearest(str_from(key))) != NULL)
      buf_printf(&message, "\"%.60s\" is no keyword: did you mean \"%s\"?", key, near);
    if (message.n > 0)
      warn_below(l, place, key, "unknown", &message);
    buf_deinit(&message);
  }
}

/* Beside a reference draft 07 reads nothing else. */
static void lint_beside_ref(struct linting *l, const json_t *schema,
                            const struct path_step *place) {
  const char *draft = json_string_value(json_object_get(l->doc, "$schema"));
  if (draft == NULL || strstr(draft, "/draft-0") == NULL || !json_object_get(schema, "$ref"))
    return;
  JSON_MEMBERS(schema, key, value) {
    if (str_among(str_from(key), "$ref $id $schema $comment definitions") || !is_keyword(key))
      continue;
    struct buf message = {0};
    buf_puts(&message, "ignored beside $ref in draft 07: put both into an allOf");
    warn_below(l, place, key, "$ref", &message);
  }
}

static const struct {
  const char *least, *most, *types;
  bool strict;
} lint_bounds[] = {{"minimum", "maximum", "number integer", false},
                   {"minimum", "exclusiveMaximum", "number integer", true},
                   {"exclusiveMinimum", "maximum", "number integer", true},
                   {"exclusiveMinimum", "exclusiveMaximum", "number integer", true},
                   {"minLength", "maxLength", "string", false},
                   {"minItems", "maxItems", "array", false},
                   {"minContains", "maxContains", "array", false},
                   {"minProperties", "maxProperties", "object", false}};

/* Keeps of `into` what is in `other` too: types by their names, else values of an enum. */
static void intersect(json_t *into, const char *key, json_t *other, bool types) {
  json_auto_t *list = json_is_array(other) ? json_incref(other) : json_pack("[O]", other);
  json_t *known = json_object_get(into, key), *both = json_array();
  JSON_EACH(list, i, one) {
    bool in = known == NULL;
    JSON_EACH(known, k, value)
      in = in || json_same(value, one) ||
           (types && has_type(one, "integer") && has_type(value, "number"));
    if (in)
      json_array_append(both, one);
  }
  JSON_EACH(known, k, value)
    if (types && has_type(value, "integer") && has_type(list, "number") &&
        !has_type(both, "integer"))
      json_array_append(both, value);
  json_object_set_new(into, key, both);
}

/* Puts the tightest bounds of a schema, its allOf and what it refers to into one object. */
static void gather_bounds(struct linting *l, const json_t *schema, json_t *into, int *parts) {
  const json_t *target = lint_resolve(l, schema), *all = json_object_get(schema, "allOf");
  if (!json_is_object(schema) || --*parts < 0)
    return;
  if (target != schema)
    gather_bounds(l, target, into, parts);
  JSON_MEMBERS(schema, key, value) {
    if (strcmp(key, "type") == 0)
      intersect(into, key, value, true);
    json_auto_t *only = strcmp(key, "const") == 0 ? json_pack("[O]", value) : NULL;
    if (only != NULL || strcmp(key, "enum") == 0)
      intersect(into, "enum", only != NULL ? only : value, false);
    for (size_t i = 0; i < ARRAY_LEN(lint_bounds); i++) {
      bool least = strcmp(key, lint_bounds[i].least) == 0;
      const json_t *known = json_object_get(into, key);
      if ((!least && strcmp(key, lint_bounds[i].most) != 0) || !json_is_number(value))
        continue;
      int order = json_is_number(known) ? schema_value_compare(value, known) : 0;
      if (known == NULL || (least ? order > 0 : order < 0))
        json_object_set(into, key, value);
    }
  }
  JSON_EACH((json_t *)all, i, part)
    gather_bounds(l, part, into, parts);
}

static json_t *gathered_bounds(struct linting *l, const json_t *schema) {
  json_t *into = json_object();
  int parts = LINT_PARTS;
  gather_bounds(l, schema, into, &parts);
  return into;
}

/* Is there nothing between two bounds, for values of these types? */
static bool is_empty(const json_t *all, size_t bound, const json_t *types) {
  const json_t *a = json_object_get(all, lint_bounds[bound].least),
               *b = json_object_get(all, lint_bounds[bound].most);
  bool whole = json_array_size(types) > 0;
  JSON_EACH((json_t *)types, i, type) {
    if (!str_among(json_view(type), lint_bounds[bound].types))
      return false;
    whole = whole && !has_type(type, "number");
  }
  if (a == NULL || b == NULL)
    return false;
  return schema_value_compare(a, b) >= (lint_bounds[bound].strict ? 0 : 1) ||
         (whole && ceil(json_number_value(a)) > floor(json_number_value(b)));
}

/* Says why no value has all that was gathered, and names the keyword; false: one may. */
static bool is_impossible(const json_t *all, const char **key, struct buf *message) {
  json_t *list = json_object_get(all, "enum");
  const json_t *types = json_object_get(all, "type");
  const char *with = NULL;
  for (size_t i = 0; i < ARRAY_LEN(lint_bounds) && with == NULL; i++) {
    if (!is_empty(all, i, types))
      continue;
    *key = lint_bounds[i].least;
    with = lint_bounds[i].most;
  }
  if (with == NULL && list != NULL) {
    json_auto_t *rest = json_clone_top(all);
    json_object_del(rest, "enum");
    struct schema *schema = schema_compile(rest, NULL, NULL, NULL);
    bool some = schema == NULL, typed = types == NULL;
    JSON_EACH(list, i, value) {
      some = some || schema_valid(schema, value);
      typed = typed || type_allows(types, value);
    }
    schema_free(schema);
    if (some)
      return false;
    *key = "enum";
    with = typed ? "the other keywords" : "type";
    if (json_array_size(list) == 0)
      with = "";
  } else if (with == NULL && types != NULL && json_array_size(types) == 0) {
    *key = "type";
    with = "";
  }
  if (with != NULL)
    buf_printf(message, "nothing can satisfy it%s%s", with[0] ? " together with " : "", with);
  return with != NULL;
}

static bool is_nothing(struct linting *l, const json_t *schema, int levels);

static bool all_nothing(struct linting *l, const json_t *list, int levels) {
  size_t n = 0;
  while (n < json_array_size(list) && is_nothing(l, json_array_get(list, n), levels))
    n++;
  return n > 0 && n == json_array_size(list);
}

/* Names the keyword by which the parts of a schema leave nothing: other schemas that nothing can
 * satisfy, or more members or items than there can be. NULL: something may be left. */
static const char *nothing_by(struct linting *l, const json_t *schema, int levels) {
  const json_t *not = json_object_get(schema, "not"), *items = json_object_get(schema, "items"),
               *properties = json_object_get(schema, "properties");
  size_t places = json_array_size(json_object_get(schema, "prefixItems"));
  bool closed = json_is_false(json_object_get(schema, "additionalProperties")) &&
                json_object_get(schema, "patternProperties") == NULL;
  if (json_is_true(not ) || (json_is_object(not ) && json_object_size(not ) == 0))
    return "not";
  if (all_nothing(l, json_object_get(schema, "anyOf"), levels))
    return "anyOf";
  const json_t *one = json_object_get(schema, "oneOf");
  size_t same = 1;
  while (same < json_array_size(one) &&
         json_same(json_array_get(one, 0), json_array_get(one, same)))
    same++;
  if (all_nothing(l, one, levels) || (same > 1 && same == json_array_size(one)))
    return "oneOf";
  if (closed && json_int_at(schema, "minProperties") > (json_int_t)json_object_size(properties))
    return "minProperties";
  if (json_int_at(schema, "minItems") > (json_int_t)places && !json_is_array(items) &&
      is_nothing(l, items, levels))
    return "minItems";
  const json_t *contains = json_object_get(schema, "contains");
  const json_t *least = json_object_get(schema, "minContains");
  json_auto_t *both =
      json_pack("{s[OO]}", "allOf", items ? items : json_true(), contains ? contains : json_true());
  if (contains != NULL && places == 0 && !json_is_array(items) &&
      (least == NULL || json_number_value(least) > 0) && is_nothing(l, both, levels))
    return "contains";
  JSON_EACH(json_object_get(schema, "required"), i, name) {
    const json_t *member = json_object_getn(properties, json_view(name).p, json_view(name).n);
    if (json_is_string(name) && is_nothing(l, member, levels))
      return "required";
  }
  return NULL;
}

/* Returns whether nothing can satisfy a schema. */
static bool is_nothing(struct linting *l, const json_t *schema, int levels) {
  if (!json_is_object(schema) || levels == 0 || --l->looks < 0)
    return json_is_false(schema);
  json_auto_t *all = gathered_bounds(l, schema);
  buf_auto_t unused = {0};
  const char *key;
  const json_t *target = lint_resolve(l, schema);
  bool some_nothing = target != schema && is_nothing(l, target, levels - 1);
  JSON_EACH(json_object_get(schema, "allOf"), i, part)
    some_nothing = some_nothing || is_nothing(l, part, levels - 1);
  return some_nothing || is_impossible(all, &key, &unused) ||
         nothing_by(l, schema, levels - 1) != NULL;
}

/* Tells what leaves nothing, also of all the parts of a schema together. What is wrong with one
 * part is told there. */
static void lint_impossible(struct linting *l, const json_t *schema,
                            const struct path_step *place) {
  const json_t *parts = json_object_get(schema, "allOf"), *target = lint_resolve(l, schema);
  json_auto_t *all = gathered_bounds(l, schema);
  buf_auto_t message = {0};
  const char *key = NULL;
  l->looks = LINT_PARTS;
  if (!is_impossible(all, &key, &message) && (key = nothing_by(l, schema, LINT_LEVELS)) != NULL)
    buf_puts(&message, "nothing can satisfy it");
  bool told = key == NULL || (target != schema && is_nothing(l, target, LINT_LEVELS));
  JSON_EACH((json_t *)parts, i, part)
    told = told || is_nothing(l, part, LINT_LEVELS);
  if (told)
    return;
  if (json_object_get(schema, "const") != NULL && strcmp(key, "enum") == 0)
    key = "const";
  if (json_object_get(schema, key) == NULL)
    key = parts != NULL ? "allOf" : "$ref";
  warn_below(l, place, key, "impossible", &message);
}

/* Returns true if members beyond `properties` are described or allowed by name. */
static bool has_other_members(const json_t *schema) {
  static const char *const others[] = {
      "patternProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if",
      "dependentSchemas"};
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    if (json_object_get(schema, others[i]) != NULL)
      return true;
  return json_is_object(json_object_get(schema, "additionalProperties"));
}

/* Required members that the schema does not describe. */
static void lint_undescribed(struct linting *l, const json_t *schema,
                             const struct path_step *place) {
  const json_t *properties = json_object_get(schema, "properties");
  const json_t *required = json_object_get(schema, "required");
  const struct path_step at = {place, "required", strlen("required")};
  if (!json_is_object(properties) || has_other_members(schema))
    return;
  for (size_t i = 0; i < json_array_size(required); i++) {
    const char *name = json_string_value(json_array_get(required, i));
    if (name == NULL || json_object_get(properties, name) != NULL)
      continue;
    const struct path_step item = {&at, NULL, i};
    struct buf message = {0};
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    buf_printf(&message, "\"%.60s\" is required and not among the properties%s", name,
               closed ? ": nothing can satisfy it" : "");
    lint_warn(l, &item, closed ? "impossible" : "required", &message);
  }
}

static void lint_required(struct linting *l, const json_t *schema, const struct path_step *place) {
  const json_t *properties = json_object_get(schema, "properties"),
               *required = json_object_get(schema, "required");
  const struct path_step members = {place, "properties", strlen("properties")};
  for (size_t i = 0; i < json_array_size(required); i++) {
    const char *name = json_string_value(json_array_get(required, i));
    size_t n = json_string_length(json_array_get(required, i));
    const json_t *member = name ? json_object_getn(properties, name, n) : NULL;
    const char *fact = member ? fact_of(l, member) : NULL;
    if (fact == NULL || is_own_words(name) || takes_null(l, member, LINT_DEPTH) ||
        is_choice(l, member, LINT_DEPTH))
      continue;
    const struct path_step at = {&members, name, n};
    struct buf message = {0};
    buf_printf(&message,
               "required and not nullable: a model that finds no such value must invent %s; "
               "make it nullable or optional",
               fact);
    lint_warn(l, &at, "required", &message);
  }
}

static void lint_walk(struct linting *l, const json_t *schema, const struct path_step *place,
                      int levels);

static void walk_below(struct linting *l, const json_t *schema, const struct path_step *place,
                       int levels) {
  static const char *const of_names[] = {"properties", "patternProperties", "$defs", "definitions",
                                         "dependentSchemas"};
  static const char *const of_lists[] = {"prefixItems", "anyOf", "oneOf", "allOf"};
  static const char *const single[] = {"items", "additionalProperties", "contains", "then", "else"};
  for (size_t k = 0; k < sizeof of_names / sizeof *of_names; k++) {
    const struct path_step at = {place, of_names[k], strlen(of_names[k])};
    json_t *members = json_object_get(schema, of_names[k]);
    for (void *it = json_object_iter(members); it; it = json_object_iter_next(members, it)) {
      const struct path_step member = {&at, json_object_iter_key(it), json_object_iter_key_len(it)};
      lint_walk(l, json_object_iter_value(it), &member, levels);
    }
  }
  for (size_t k = 0; k < sizeof of_lists / sizeof *of_lists; k++) {
    const struct path_step at = {place, of_lists[k], strlen(of_lists[k])};
    const json_t *list = json_object_get(schema, of_lists[k]);
    for (size_t i = 0; i < json_array_size(list); i++) {
      const struct path_step member = {&at, NULL, i};
      lint_walk(l, json_array_get(list, i), &member, levels);
    }
  }
  for (size_t k = 0; k < sizeof single / sizeof *single; k++) {
    const struct path_step at = {place, single[k], strlen(single[k])};
    const json_t *one = json_object_get(schema, single[k]);
    if (json_is_object(one))
      lint_walk(l, one, &at, levels);
  }
}

static void look_for_bounds(struct linting *l, const json_t *schema) {
  static const char bounds[] =
      "enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength "
      "maxLength pattern minItems maxItems uniqueItems contains minProperties maxProperties";
  const json_t *type = json_object_get(schema, "type");
  JSON_MEMBERS(schema, key, value)
    l->bound = l->bound || str_among(str_from(key), bounds);
  l->free_leaf = l->free_leaf || has_type(type, "string") || has_type(type, "number") ||
                 has_type(type, "integer") || has_type(type, "array");
}

static void lint_walk(struct linting *l, const json_t *schema, const struct path_step *place,
                      int levels) {
  if (!json_is_object(schema) || levels == 0 || ++l->nodes > LINT_NODES)
    return;
  look_for_bounds(l, schema);
  lint_slips(l, schema, place);
  lint_beside_ref(l, schema, place);
  lint_impossible(l, schema, place);
  lint_undescribed(l, schema, place);
  lint_required(l, schema, place);
  walk_below(l, schema, place, levels - 1);
}

void schema_lint(const json_t *doc, bool has_invariants, struct schema_errors *warnings) {
  struct linting l = {.doc = doc, .warnings = warnings};
  lint_walk(&l, doc, NULL, LINT_DEPTH);
  if (!l.bound && l.free_leaf && !has_invariants) {
    struct buf message = {0};
    buf_puts(&message, "no enum, bound or invariant: anything of the right types passes; "
                       "bound what can be wrong");
    lint_warn(&l, NULL, "unbounded", &message);
  }
}

bool schema_says_nothing(const json_t *doc, struct schema_errors *errors) {
  struct linting l = {.doc = doc, .warnings = errors};
  struct buf message = {0};
  JSON_MEMBERS((json_t *)doc, key, value)
    if (is_keyword(key) || lint_is_annotation(key))
      return false;
  if (json_object_size(doc) == 0)
    return false;
  buf_puts(&message, "it has no keyword of JSON Schema: write type, properties, required, ...");
  lint_warn(&l, NULL, "", &message);
  return true;
}
