/* Makes the root of an adapted schema and its definitions, within what a dialect takes, and turns
 * answers back. */
#include "adapt/adapt.h"

#include "adapt/internal.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "schema/validate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- dialects: what each provider takes of JSON Schema --- */

/* The rules come from the providers' documentation of structured outputs, and from the schema
 * transformers of their SDKs. */

#define NUMBERS                                                                                    \
  (KEEP(K_MINIMUM) | KEEP(K_MAXIMUM) | KEEP(K_EXCLUSIVE_MINIMUM) | KEEP(K_EXCLUSIVE_MAXIMUM))
#define LENGTHS (KEEP(K_MIN_LENGTH) | KEEP(K_MAX_LENGTH))
#define COUNTS  (KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS))

static const char formats_openai[] = "date-time time date duration email hostname ipv4 ipv6 uuid";
static const char formats_anthropic[] =
    "date-time time date duration email hostname uri ipv4 ipv6 uuid";
static const char formats_gemini[] = "date-time date time";
static const char formats_llamacpp[] = "date time date-time uuid";
static const char formats_vllm[] =
    "email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference uri-template "
    "json-pointer relative-json-pointer";
static const char formats_none[] = "";

#define OPENAI                                                                                     \
  .flags = ADAPT_ALL_REQUIRED | ADAPT_CLOSED | ADAPT_ROOT_OBJECT | ADAPT_TYPE_LIST,                \
  .keeps =                                                                                         \
      NUMBERS | COUNTS | KEEP(K_MULTIPLE_OF) | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST),   \
  .recursion = RECURSION_ANY, .formats = formats_openai,                                           \
  .limits = {.nesting = 10,                                                                        \
             .properties = 5000,                                                                   \
             .enum_values = 1000,                                                                  \
             .name_characters = 120000,                                                            \
             .long_enum_values = 250,                                                              \
             .long_enum_characters = 15000,                                                        \
             .schema_name = 64}

#define LLAMACPP                                                                                   \
  .flags = ADAPT_TYPE_LIST | ADAPT_FREE | ADAPT_GRAMMAR,                                           \
  .keeps = NUMBERS | LENGTHS | COUNTS | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST) |         \
           KEEP(K_ADDITIONAL_PROPERTIES) | KEEP(K_PREFIX_ITEMS),                                   \
  .recursion = RECURSION_ANY, .formats = formats_llamacpp, .limits = {.repetitions = 1999}

#define WHOLE(more)                                                                                \
  .flags = ADAPT_WHOLE | ADAPT_ROOT_OBJECT | ADAPT_TYPE_LIST | ADAPT_FREE | (more),                \
  .keeps = ~(uint64_t)0, .recursion = RECURSION_ANY, .formats = formats_none

static const struct adapt_dialect dialects[] = {
    {.name = "openai", OPENAI},
    {.name = "openai-chat", OPENAI},
    {.name = "codex", OPENAI}, /* hands its schema to OpenAI as it is */
    {.name = "openrouter", OPENAI},
    {.name = "anthropic",
     .flags = ADAPT_CLOSED | ADAPT_ROOT_OBJECT | ADAPT_ITEMS_0_1,
     .keeps = KEEP(K_MIN_ITEMS) | KEEP(K_FORMAT) | KEEP(K_CONST),
     .recursion = RECURSION_NONE,
     .formats = formats_anthropic,
     .limits = {.optional_properties = 24, .unions = 16}},
    {.name = "gemini",
     .flags = ADAPT_TYPE_LIST | ADAPT_ORDERING | ADAPT_ENUM_TEXTS,
     .keeps = KEEP(K_MINIMUM) | KEEP(K_MAXIMUM) | COUNTS | KEEP(K_FORMAT) |
              KEEP(K_ADDITIONAL_PROPERTIES),
     .recursion = RECURSION_OPTIONAL,
     .formats = formats_gemini},
    {.name = "ollama", LLAMACPP}, /* has llama.cpp's converter inside */
    {.name = "llamacpp", LLAMACPP},
    {.name = "lmstudio", LLAMACPP},
    {.name = "vllm",
     .flags = ADAPT_TYPE_LIST | ADAPT_FREE,
     .keeps = NUMBERS | LENGTHS | COUNTS | KEEP(K_PATTERN) | KEEP(K_FORMAT) | KEEP(K_CONST) |
              KEEP(K_ADDITIONAL_PROPERTIES) | KEEP(K_PREFIX_ITEMS),
     .recursion = RECURSION_ANY,
     .formats = formats_vllm},
    /* These three make it the input of a tool: an object. Claude Code drops a schema with a keyword
     * that draft 07 does not have. */
    {.name = "claude", WHOLE(ADAPT_DRAFT_07)},
    {.name = "qwen", WHOLE(0)},
    {.name = "opencode", WHOLE(0)},
};

const struct adapt_dialect *adapt_dialect_at(size_t index) {
  return index < sizeof dialects / sizeof *dialects ? &dialects[index] : NULL;
}

const struct adapt_dialect *adapt_dialect_find(const char *name) {
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
    if (!strcmp(dialects[i].name, name))
      return &dialects[i];
  return NULL;
}

/* --- the limits of a provider, checked before a schema is sent --- */

struct limits_place {
  const struct limits_place *up;
  const char *key; /* NULL: `index` */
  size_t index;
  const char *definition; /* the reference that led here; NULL: none */
};

struct measure {
  struct adapter *a;
  const struct dialect_limits *limits;
  const json_t *definitions;
  struct map levels; /* definition -> deepest level at which it was entered */
  struct arena arena;
  size_t properties, enum_values, characters, optional, unions;
};

static void pointer_of(const struct limits_place *place, struct buf *out) {
  if (!place || !place->up)
    return;
  pointer_of(place->up, out);
  if (place->key)
    adapt_put_step(out, place->key);
  else
    buf_printf(out, "/%zu", place->index);
}

static bool limits_over(struct measure *m, const struct limits_place *place, const char *limit,
                        const char *unit, size_t found, size_t allowed) {
  struct adapter *a = m->a;
  buf_auto_t pointer = {0};
  if (allowed == 0 || found <= allowed || adapter_stopped(a))
    return false;
  adapt_fail(a, ADAPT_LIMIT, NODE_NONE, "", "%s takes at most %zu %s; here are %zu",
             a->dialect->name, allowed, unit, found);
  pointer_of(place, &pointer);
  print_into(a->error->pointer, sizeof a->error->pointer, "%s", buf_c(&pointer));
  a->error->limit = limit;
  a->error->found = found;
  a->error->allowed = allowed;
  return true;
}

static size_t limits_characters(const char *text) {
  return utf8_count(text, strlen(text));
}

static void count_enum(struct measure *m, const json_t *values, const struct limits_place *place) {
  size_t length = 0;
  JSON_EACH(values, i, one)
    if (json_is_string(one))
      length += utf8_count(json_string_value(one), json_string_length(one));
  m->enum_values += json_array_size(values);
  m->characters += length;
  limits_over(m, place, "enum_values", "enum values in all", m->enum_values,
              m->limits->enum_values);
  if (json_array_size(values) > m->limits->long_enum_values)
    limits_over(m, place, "long_enum_characters", "characters in an enum of so many values", length,
                m->limits->long_enum_characters);
}

static void count_properties(struct measure *m, const json_t *schema,
                             const struct limits_place *place) {
  const json_t *list = json_object_get(schema, "properties");
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at))
    m->characters += limits_characters(json_object_iter_key(at));
  m->properties += json_object_size(list);
  m->optional += json_object_size(list) - json_array_size(json_object_get(schema, "required"));
  limits_over(m, place, "properties", "properties in all", m->properties, m->limits->properties);
  limits_over(m, place, "optional_properties", "properties that are not required", m->optional,
              m->limits->optional_properties);
}

/* Counts every place once, definitions too. */
static void limits_count(struct measure *m, const json_t *schema, const struct limits_place *up) {
  static const char *const maps[] = {"properties", "$defs"};
  static const char *const lists[] = {"anyOf", "prefixItems"};
  static const char *const ones[] = {"items", "additionalProperties"};
  const json_t *one, *list;
  if (!json_is_object(schema) || adapter_stopped(m->a))
    return;
  if (json_is_array(json_object_get(schema, "type")) || json_object_get(schema, "anyOf"))
    m->unions++;
  limits_over(m, up, "unions", "places with several types or alternatives", m->unions,
              m->limits->unions);
  const struct limits_place values = {up, "enum", 0, NULL};
  if (json_object_get(schema, "enum"))
    count_enum(m, json_object_get(schema, "enum"), &values);
  one = json_object_get(schema, "const");
  if (json_is_string(one))
    m->characters += utf8_count(json_string_value(one), json_string_length(one));
  count_properties(m, schema, up);
  for (size_t i = 0; i < 2; i++) {
    const struct limits_place map = {up, maps[i], 0, NULL};
    list = json_object_get(schema, maps[i]);
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at)) {
      const struct limits_place member = {&map, json_object_iter_key(at), 0, NULL};
      if (i == 1)
        m->characters += limits_characters(member.key);
      limits_count(m, json_object_iter_value(at), &member);
    }
  }
  for (size_t i = 0; i < 2; i++) {
    const struct limits_place branches = {up, lists[i], 0, NULL}, item = {up, ones[i], 0, NULL};
    JSON_EACH(json_object_get(schema, lists[i]), k, part) {
      const struct limits_place branch = {&branches, NULL, k, NULL};
      limits_count(m, part, &branch);
    }
    limits_count(m, json_object_get(schema, ones[i]), &item);
  }
}

/* Measures objects and arrays inside each other, through references, each cycle once. */
static void nesting(struct measure *m, const json_t *schema, size_t level,
                    const struct limits_place *up) {
  const json_t *list = json_object_get(schema, "properties");
  const char *type = json_string_value(json_object_get(schema, "type"));
  const char *reference = json_string_value(json_object_get(schema, "$ref"));
  uint32_t known;
  if (!json_is_object(schema) || adapter_stopped(m->a))
    return;
  level += type && (!strcmp(type, "object") || !strcmp(type, "array"));
  if (limits_over(m, up, "nesting", "levels of objects and arrays", level, m->limits->nesting))
    return;
  const struct limits_place *active = up; /* where the reference is followed already */
  while (reference && active && (!active->definition || strcmp(active->definition, reference) != 0))
    active = active->up;
  if (reference && strlen(reference) > 8 && !active) {
    const char *name = reference + 8; /* "#/$defs/" */
    if (map_get(&m->levels, str_from(name), &known) && known > level)
      return;
    map_put(&m->levels, &m->arena, str_from(name), (uint32_t)level + 1);
    const struct limits_place target = {up, "$ref", 0, reference};
    nesting(m, json_object_get(m->definitions, name), level, &target);
  }
  const struct limits_place map = {up, "properties", 0, NULL}, branches = {up, "anyOf", 0, NULL};
  const struct limits_place item = {up, "items", 0, NULL},
                            rest = {up, "additionalProperties", 0, NULL};
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at)) {
    const struct limits_place member = {&map, json_object_iter_key(at), 0, NULL};
    nesting(m, json_object_iter_value(at), level, &member);
  }
  JSON_EACH(json_object_get(schema, "anyOf"), k, one) {
    const struct limits_place branch = {&branches, NULL, k, NULL};
    nesting(m, one, level, &branch);
  }
  nesting(m, json_object_get(schema, "items"), level, &item);
  nesting(m, json_object_get(schema, "additionalProperties"), level, &rest);
}

static void limits_check_name(struct adapter *a) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  const char *name = a->opts->schema_name;
  size_t most = a->dialect->limits.schema_name;
  if (!name || !most)
    return;
  size_t n = strlen(name);
  if (n >= 1 && n <= most && strspn(name, allowed) == n)
    return;
  adapt_fail(a, ADAPT_LIMIT, NODE_NONE, "",
             "%s takes as a schema's name 1 to %zu letters, digits, _ and -", a->dialect->name,
             most);
  a->error->limit = "schema_name";
  a->error->found = n;
  a->error->allowed = most;
}

static bool adapt_limits_check(struct adapter *a) {
  struct measure m = {.a = a, .limits = &a->dialect->limits};
  const struct limits_place root = {0};
  m.definitions = json_object_get(a->out->schema, "$defs");
  limits_check_name(a);
  if (!(a->dialect->flags & ADAPT_WHOLE)) {
    limits_count(&m, a->out->schema, &root);
    limits_over(&m, &root, "name_characters", "characters of names and enum values in all",
                m.characters, m.limits->name_characters);
    if (m.limits->nesting)
      nesting(&m, a->out->schema, 0, &root);
  }
  map_deinit(&m.levels);
  arena_deinit(&m.arena);
  return !adapter_stopped(a);
}

/* --- the schema as it is, as the input of a tool: an object, in one document --- */

struct whole {
  struct adapter *a;
  bool moved; /* places are not where the references say: rewrite them */
  bool wrapped;
  bool lost, negates; /* draft 07: keywords are gone; some alternatives exclude each other */
};

/* Returns "#", or a place below $defs, then the place in its document, percent-encoded where a URI
 * needs it. */
static char *whole_place(struct whole *w, uint32_t entry, uint32_t document) {
  const struct schema *s = w->a->out->canonical;
  struct buf place = {0}, out = {0};
  const char *pointer;
  schema_entry_text(s, entry, &place);
  pointer = place.p;
  if (document && strchr(pointer, '#'))
    pointer = strchr(pointer, '#') + 1;
  if (document)
    buf_printf(&out, "#/$defs/document_%u", (unsigned)document + 1);
  else
    buf_puts(&out, w->wrapped ? "#/$defs/root" : "#");
  for (const char *p = pointer; *p; p++) {
    if ((unsigned char)*p > ' ' && (unsigned char)*p < 0x7f && !strchr("%\"<>\\^`{|}#", *p))
      buf_append(&out, p, 1);
    else
      buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*p);
  }
  buf_deinit(&place);
  return buf_take(&out);
}

static void reference_rewrite(struct whole *w, uint32_t entry, json_t *copy) {
  static const char *const names[] = {"$ref", "$dynamicRef", "$recursiveRef"};
  const struct schema *s = w->a->out->canonical;
  for (size_t i = 0; i < 3; i++) {
    struct sum target = {0};
    if (!json_is_string(json_object_get(copy, names[i])))
      continue;
    bool reached = s->entries[entry].node != NODE_NONE; /* else nothing ever applies it */
    if (reached && !adapt_follow(w->a, entry, names[i], &target))
      return;
    json_object_del(copy, names[i]);
    if (target.never)
      adapt_put(copy, "not", json_object());
    if (target.count == 0)
      continue;
    uint32_t to = target.items[0].entry;
    char_auto_t *text = whole_place(w, to, s->resources[s->entries[to].resource].document);
    if (text)
      adapt_put(copy, "$ref", json_string_nocheck(text));
  }
}

/* Moves what depends on a member into `dependencies`. */
static void draft_dependencies(struct whole *w, uint32_t entry, json_t *copy, const char *keyword) {
  json_t *from = json_object_get(copy, keyword), *to = json_object_get(copy, "dependencies");
  if (from == NULL)
    return;
  if (to == NULL)
    adapt_put(copy, "dependencies", to = json_object());
  JSON_MEMBERS(from, name, one) {
    const json_t *other = json_object_get(to, name);
    if (json_is_array(other) && json_is_array(one)) {
      json_array_extend(json_object_get(to, name), (json_t *)one);
    } else if (other != NULL) {
      const bool list = json_is_array(other);
      json_t *names = list ? json_pack("{sO}", "required", other) : json_incref((json_t *)other);
      json_object_set_new(to, name, json_pack("{s[oO]}", "allOf", names, one));
    } else {
      json_object_set(to, name, (json_t *)one);
    }
  }
  adapt_changed(w->a, entry, keyword, NULL, ADAPT_REWRITTEN, "as dependencies of draft 07");
  json_object_del(copy, keyword);
}

/* Writes one subschema without keywords that draft 07 lacks. */
static void draft_07(struct whole *w, uint32_t entry, json_t *copy) {
  static const char notes[] = "title description default examples readOnly writeOnly deprecated "
                              "$defs definitions $ref";
  static const char *const lost[] = {"minContains", "maxContains", "unevaluatedItems",
                                     "unevaluatedProperties"};
  const struct schema *s = w->a->out->canonical;
  const struct schema_resource *resource = &s->resources[s->entries[entry].resource];
  unsigned dialect = resource->dialect;
  const json_t *least = json_object_get(copy, "minContains");
  if (json_object_get(copy, "prefixItems") != NULL && dialect == DIALECT_2020) {
    if (json_object_get(copy, "items") != NULL)
      json_object_set(copy, "additionalItems", json_object_get(copy, "items"));
    json_object_set(copy, "items", json_object_get(copy, "prefixItems"));
    adapt_changed(w->a, entry, "prefixItems", NULL, ADAPT_REWRITTEN, "as items of draft 07");
  }
  if (dialect != DIALECT_07) {
    draft_dependencies(w, entry, copy, "dependentRequired");
    draft_dependencies(w, entry, copy, "dependentSchemas");
    if (least && json_number_value(least) == 0 && json_object_del(copy, "contains") == 0) {
      adapt_changed(w->a, entry, "contains", NULL, ADAPT_DROPPED, "draft 07 wants at least one");
      w->lost = true;
    }
  }
  for (size_t i = 0; i < ARRAY_LEN(lost) && dialect != DIALECT_07; i++)
    if (json_object_get(copy, lost[i]) != NULL) {
      adapt_changed(w->a, entry, lost[i], NULL, ADAPT_DROPPED, "draft 07 has no such keyword");
      w->lost = true;
    }
  w->negates = w->negates || json_object_get(copy, "not") || json_object_get(copy, "if") ||
               json_object_get(copy, "oneOf");
  void *next;
  const char *key;
  json_t *value, *reference = json_incref(json_object_get(copy, "$ref"));
  bool alone = reference != NULL && dialect == DIALECT_07; /* nothing counts beside it */
  json_object_foreach_safe(copy, next, key, value) {
    const struct keyword *known = schema_keyword_find(key, DIALECT_07);
    bool reads = known && !alone && known->vocabulary & resource->vocabularies;
    if (!reads && !str_among(str_from(key), notes))
      json_object_del(copy, key);
  }
  if (reference != NULL && !alone && json_object_size(copy) > 1) { /* older clients heed no more */
    json_object_del(copy, "$ref");
    json_t *all = json_object_get(copy, "allOf");
    if (all == NULL)
      adapt_put(copy, "allOf", all = json_array());
    json_array_append_new(all, json_pack("{sO}", "$ref", reference));
  }
  json_decref(reference);
}

/* Rewrites `copy`, a deep copy of `value`, which belongs to the canonical schema. */
static void whole_rewrite(struct whole *w, const json_t *value, json_t *copy) {
  uint32_t entry;
  size_t i;
  if (adapter_stopped(w->a))
    return;
  for (i = 0; json_is_array(value) && i < json_array_size(value); i++)
    whole_rewrite(w, json_array_get(value, i), json_array_get(copy, i));
  for (void *at = json_object_iter((json_t *)value); at;
       at = json_object_iter_next((json_t *)value, at))
    whole_rewrite(w, json_object_iter_value(at), json_object_get(copy, json_object_iter_key(at)));
  if (!json_is_object(value) || !map_get(&w->a->entries, MAP_KEY(value), &entry))
    return;
  reference_rewrite(w, entry, copy);
  json_object_del(copy, "$id");
  json_object_del(copy, "$anchor");
  json_object_del(copy, "$dynamicAnchor");
  json_object_del(copy, "$recursiveAnchor");
  json_object_del(copy, "$schema");
  if (adapt_has(w->a, ADAPT_DRAFT_07))
    draft_07(w, entry, copy);
}

static bool plain_object(const json_t *root) {
  static const char *const no[] = {"$ref",  "$dynamicRef", "$recursiveRef", "anyOf",
                                   "oneOf", "allOf",       "enum",          "const"};
  const char *type = json_string_value(json_object_get(root, "type"));
  for (size_t i = 0; i < sizeof no / sizeof *no; i++)
    if (json_object_get(root, no[i]))
      return false;
  return type && !strcmp(type, "object");
}

static json_t *document_copy(struct whole *w, const json_t *root) {
  json_t *copy = json_clone(root);
  if (w->moved)
    whole_rewrite(w, root, copy);
  else
    json_object_del(copy, "$schema"); /* validators of other drafts refuse what they do not know */
  return copy;
}

/* The schema as it is. */
static struct built adapt_whole(struct adapter *a) {
  const struct schema *s = a->out->canonical;
  const json_t *root = s->documents[0].root;
  struct whole w = {.a = a, .wrapped = !plain_object(root)};
  struct built built = {NULL, adapt_plan_new(a, PLAN_SAME)};
  w.moved = w.wrapped || s->document_count > 1 || adapt_has(a, ADAPT_DRAFT_07);
  if (json_is_false(root))
    return built;
  json_t *copy = document_copy(&w, root), *others = json_object();
  for (size_t i = 1; i < s->document_count && !adapter_stopped(a); i++) {
    char name[32];
    print_into(name, sizeof name, "document_%zu", i + 1);
    adapt_put(others, name, document_copy(&w, s->documents[i].root));
  }
  if (w.wrapped) {
    adapt_put(others, "root", copy);
    built.schema = json_object();
    adapt_put(built.schema, "$ref", json_string_nocheck("#/$defs/root"));
    adapt_put(built.schema, "$defs", json_incref(others));
  } else {
    built.schema = copy;
    json_t *own = json_object_get(copy, "$defs");
    for (void *at = json_object_iter(others); at && own; at = json_object_iter_next(others, at))
      if (json_object_get(own, json_object_iter_key(at)))
        adapt_fail(a, ADAPT_UNSUPPORTED, 0, "$defs", "\"%s\" is needed for another document",
                   json_object_iter_key(at));
    if (own)
      json_object_update(own, others);
    else if (json_object_size(others))
      adapt_put(copy, "$defs", json_incref(others));
  }
  json_decref(others);
  /* A reference may lead to what is gone, and what is wider within `not` is narrower outside. */
  const struct schema_opts draft = {.default_draft = "http://json-schema.org/draft-07/schema#"};
  struct schema *made = NULL;
  if (adapt_has(a, ADAPT_DRAFT_07) && !adapter_stopped(a))
    made = schema_compile(built.schema, &draft, NULL, NULL);
  if (adapt_has(a, ADAPT_DRAFT_07) && (made == NULL || (w.lost && w.negates)))
    adapt_fail(a, ADAPT_UNSUPPORTED, 0, "$ref", "draft 07 cannot say it");
  schema_free(made);
  return built;
}

/* --- the root and its definitions; failures and changes --- */

const char *adapt_status_name(enum adapt_status status) {
  static const char *const names[] = {[ADAPT_OK] = "ok",
                                      [ADAPT_INVALID_SCHEMA] = "invalid_schema",
                                      [ADAPT_UNSUPPORTED] = "unsupported",
                                      [ADAPT_LIMIT] = "limit",
                                      [ADAPT_TOO_COMPLEX] = "too_complex"};
  return names[status];
}

const char *adapt_effect_name(enum adapt_effect effect) {
  static const char *const names[] = {[ADAPT_REWRITTEN] = "rewritten",
                                      [ADAPT_DESCRIBED] = "described",
                                      [ADAPT_DROPPED] = "dropped",
                                      [ADAPT_NARROWED] = "narrowed"};
  return names[effect];
}

/* --- the root --- */

static json_t *thoughts(void) {
  return json_pack("{ss ss}", "type", "string", "description", "think here, before the answer");
}

/* Returns the list of names with `first` in front; takes `names`. */
static json_t *name_first(json_t *names, const char *first, bool add) {
  json_t *out = json_array();
  bool found = false;
  JSON_EACH(names, i, one)
    found = found || !strcmp(json_string_value(one), first);
  if (found || add)
    json_array_append_new(out, json_string_nocheck(first));
  JSON_EACH(names, i, one)
    if (strcmp(json_string_value(one), first) != 0)
      json_array_append_new(out, json_incref(one));
  json_decref(names);
  return out;
}

static void plan_lead(struct adapter *a, uint32_t *root, const char *name) {
  struct adapt_plan plan = a->out->plans[*root];
  struct plan_member *members = arena_array(&a->out->arena, plan.count + 1, sizeof *members);
  uint32_t index = adapt_plan_new(a, PLAN_OBJECT);
  if (plan.kind != PLAN_OBJECT)
    plan = (struct adapt_plan){.rest = PLAN_NONE};
  members[0] = (struct plan_member){.name = name, .plan = PLAN_NONE, .added = true};
  if (plan.count)
    memcpy(members + 1, plan.members, plan.count * sizeof *members);
  plan.kind = PLAN_OBJECT;
  plan.members = members;
  plan.count++;
  a->out->plans[index] = plan;
  *root = index;
}

/* Puts the property for reasoning first. `schema` is the root's own copy. */
static void lead(struct adapter *a, json_t *schema, uint32_t *plan) {
  const char *name = a->opts->reasoning;
  json_t *old = json_object_get(schema, "properties"), *known = json_object_get(old, name);
  json_t *properties = json_object();
  adapt_put(properties, name, known ? json_incref(known) : thoughts());
  for (void *at = json_object_iter(old); at; at = json_object_iter_next(old, at))
    if (strcmp(json_object_iter_key(at), name) != 0)
      adapt_put(properties, json_object_iter_key(at), json_incref(json_object_iter_value(at)));
  adapt_put(schema, "properties", properties);
  json_t *required = json_object_get(schema, "required");
  if (required || !known)
    adapt_put(schema, "required", name_first(json_incref(required), name, !known));
  json_t *ordering = json_object_get(schema, "propertyOrdering");
  if (ordering)
    adapt_put(schema, "propertyOrdering", name_first(json_incref(ordering), name, !known));
  if (!known)
    plan_lead(a, plan, arena_strdup(&a->out->arena, name));
}

/* Wraps a root that is not an object in one; takes `inner`. */
static json_t *wrap(struct adapter *a, json_t *inner) {
  const char *type = json_string_value(json_object_get(inner, "type"));
  json_t *properties = json_object(), *required = json_array();
  a->out->wrap = type && !strcmp(type, "array") ? "items" : "value";
  if (a->opts->reasoning && strcmp(a->opts->reasoning, a->out->wrap) != 0) {
    a->out->lead = arena_strdup(&a->out->arena, a->opts->reasoning);
    adapt_put(properties, a->opts->reasoning, thoughts());
    json_array_append_new(required, json_string_nocheck(a->opts->reasoning));
  }
  adapt_put(properties, a->out->wrap, inner);
  json_array_append_new(required, json_string_nocheck(a->out->wrap));
  json_t *schema = adapt_closed_object(a, properties, required);
  adapt_changed(a, 0, "type", NULL, ADAPT_REWRITTEN, "the root as a member of an object");
  return schema;
}

static json_t *definitions(struct adapter *a) {
  json_t *all = json_object();
  for (size_t i = 0; i < a->unit_count && !adapter_stopped(a); i++) {
    const struct unit *unit = &a->units[i];
    if (unit->name && unit->state == UNIT_DONE)
      adapt_put(all, unit->name, json_incref(unit->schema));
    else if (unit->name)
      adapt_fail(a, ADAPT_UNSUPPORTED, unit->sum.items[unit->sum.count - 1].entry, "$ref",
                 "nothing can match what the reference leads to");
  }
  return all;
}

static void finish_root(struct adapter *a, struct built built) {
  bool whole = a->dialect->flags & ADAPT_WHOLE;
  json_auto_t *all = whole ? json_incref(json_object_get(built.schema, "$defs")) : definitions(a);
  const json_t *inner = built.schema;
  const char *reference = json_string_value(json_object_get(inner, "$ref"));
  /* A root that is just a reference is followed, so that its target can be the root. */
  for (int i = 0; reference && i < 16 && !whole; i++) {
    inner = json_object_get(all, reference + sizeof "#/$defs/" - 1);
    reference = json_string_value(json_object_get(inner, "$ref"));
  }
  json_t *root = json_clone_top(inner);
  const char *type = json_string_value(json_object_get(root, "type"));
  bool is_object = type && !strcmp(type, "object") && !json_object_get(root, "anyOf");
  if (whole && json_object_get(inner, "$ref"))
    json_object_del(root, "$defs");
  a->out->root = built.plan;
  if ((a->dialect->flags & ADAPT_ROOT_OBJECT || a->opts->reasoning) && !is_object) {
    json_decref(root);
    root = json_clone_top(built.schema);
    if (whole)
      json_object_del(root, "$defs");
    root = wrap(a, root);
  } else if (a->opts->reasoning && !adapter_stopped(a)) {
    lead(a, root, &a->out->root);
  }
  if (json_object_size(all) && !(whole && json_object_get(root, "$defs")))
    adapt_put(root, "$defs", json_incref(all));
  json_decref(built.schema);
  a->out->schema = root;
}

/* --- telling branches apart --- */

/* Returns the number in "/anyOf/12" below the root, SIZE_MAX if the entry is none of these. */
static size_t branch_index(const struct schema *shapes, size_t entry) {
  static const char under[] = "/anyOf/";
  const struct schema_entry *e = &shapes->entries[entry];
  if (entry == 0 || e->parent != 0 || strncmp(e->suffix, under, sizeof under - 1) != 0)
    return SIZE_MAX;
  const char *digits = e->suffix + sizeof under - 1;
  return digits[strspn(digits, "0123456789")] ? SIZE_MAX : strtoul(digits, NULL, 10);
}

static bool adapt_shapes_compile(struct adapter *a) {
  struct adapted *out = a->out;
  json_t *all = json_array(), *doc = json_object(), *definitions;
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++)
      json_array_append(all, out->plans[i].branches[k].shape);
  bool any = json_array_size(all) > 0;
  adapt_put(doc, "anyOf", all);
  definitions = json_object_get(out->schema, "$defs");
  if (definitions)
    adapt_put(doc, "$defs", json_incref(definitions));
  if (any && !adapter_stopped(a)) {
    out->shapes = schema_compile(doc, NULL, NULL, NULL);
    if (!out->shapes)
      adapt_fail(a, ADAPT_TOO_COMPLEX, NODE_NONE, "", "the alternatives are too many");
  }
  json_decref(doc);
  if (!any || adapter_stopped(a))
    return !adapter_stopped(a);
  const struct schema *shapes = out->shapes;
  size_t branches = 0, next = 0;
  for (size_t i = 0; i < shapes->entry_count; i++)
    branches += branch_index(shapes, i) != SIZE_MAX;
  uint32_t *nodes = xmalloc(branches * sizeof *nodes);
  for (size_t i = 0; i < shapes->entry_count; i++) {
    size_t index = branch_index(shapes, i);
    if (index < branches)
      nodes[index] = shapes->entries[i].node;
  }
  for (size_t i = 0; i < out->plan_count; i++)
    for (uint32_t k = 0; out->plans[i].kind == PLAN_UNION && k < out->plans[i].count; k++, next++)
      out->plans[i].branches[k].node = next < branches ? nodes[next] : NODE_NONE;
  free(nodes);
  return true;
}

/* --- the whole --- */

static void adapt_run(struct adapter *a, const json_t *doc) {
  struct sum root = {0};
  struct built built = {NULL, PLAN_NONE};
  const struct schema_opts opts = {.registry = a->opts->registry,
                                   .default_draft = a->opts->default_draft};
  AUTO(schema_errors_deinit) struct schema_errors errors = {0};
  enum schema_status status;
  const struct schema *s = a->out->canonical = schema_compile(doc, &opts, &errors, &status);
  if (!s) {
    adapt_fail(a, status == SCHEMA_TOO_COMPLEX ? ADAPT_TOO_COMPLEX : ADAPT_INVALID_SCHEMA,
               NODE_NONE, "", "%s", errors.count ? errors.items[0].message : "not a schema");
    print_into(a->error->pointer, sizeof a->error->pointer, "%s",
               errors.count ? errors.items[0].pointer : "");
    a->error->keyword = errors.count ? errors.items[0].keyword : "";
    return;
  }
  for (uint32_t i = 0; i < s->entry_count; i++)
    if (json_is_object(s->entries[i].schema))
      map_put(&a->entries, &a->out->arena, MAP_KEY(s->entries[i].schema), i);
  if (a->dialect->flags & ADAPT_WHOLE)
    built = adapt_whole(a);
  else if (adapt_sum_schema(a, &root, a->out->canonical->documents[0].root))
    built = adapt_build(a, &root);
  if (!built.schema && !adapter_stopped(a))
    adapt_fail(a, ADAPT_UNSUPPORTED, 0, "", "nothing can match the schema");
  if (adapter_stopped(a)) {
    json_decref(built.schema);
    return;
  }
  finish_root(a, built);
  if (!adapter_stopped(a) && adapt_limits_check(a))
    adapt_shapes_compile(a);
}

struct adapted *adapt(const json_t *doc, const struct adapt_dialect *dialect,
                      const struct adapt_opts *opts, struct adapt_error *error) {
  static const struct adapt_opts plain = {0};
  struct adapt_error own;
  struct adapter a = {.dialect = dialect, .opts = opts ? opts : &plain};
  assert(dialect != NULL);
  a.error = error ? error : &own;
  *a.error = (struct adapt_error){.keyword = ""};
  a.out = xmalloc(sizeof *a.out);
  *a.out = (struct adapted){.dialect = dialect, .kept = json_array()};
  adapt_run(&a, doc);
  for (size_t i = 0; i < a.unit_count; i++)
    json_decref(a.units[i].schema);
  free(a.units);
  map_deinit(&a.entries);
  map_deinit(&a.known);
  map_deinit(&a.names);
  map_deinit(&a.changed);
  if (!adapter_stopped(&a))
    return a.out;
  adapted_free(a.out);
  return NULL;
}

void adapted_free(struct adapted *adapted) {
  if (!adapted)
    return;
  schema_free(adapted->canonical);
  schema_free(adapted->shapes);
  json_decref(adapted->schema);
  json_decref(adapted->kept);
  free(adapted->plans);
  free(adapted->changes);
  arena_deinit(&adapted->arena);
  free(adapted);
}

const json_t *adapted_schema(const struct adapted *adapted) {
  assert(adapted != NULL);
  return adapted->schema;
}

size_t adapted_change_count(const struct adapted *adapted) {
  return adapted->change_count;
}

const struct adapt_change *adapted_change_at(const struct adapted *adapted, size_t index) {
  return index < adapted->change_count ? &adapted->changes[index] : NULL;
}

/* --- answers back: values from the dialect's shape into the canonical one, following the plans
 * --- */

struct turning { /* one value being turned */
  const struct adapted *adapted;
  long work;
  unsigned depth;
  enum adapt_status status;
};

static json_t *turn_back(struct turning *t, uint32_t plan, const json_t *value);

static bool stopped(const struct turning *t) {
  return t->status != ADAPT_OK;
}

static json_t *turn_keep(const json_t *value) {
  return json_incref((json_t *)value);
}

/* Appends the items of a list to `out`, which it returns. */
static json_t *items_back(struct turning *t, uint32_t plan, const json_t *value, json_t *out) {
  JSON_EACH(value, i, one) {
    if (stopped(t))
      break;
    json_array_append_new(out, turn_back(t, plan, one));
  }
  return out;
}

static const struct plan_member *member_of(const struct adapt_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (!strcmp(plan->members[i].name, name))
      return &plan->members[i];
  return NULL;
}

/* Puts a member; one whose name is taken gets U+0000 behind it. */
static void plan_put(json_t *out, const char *name, json_t *value) {
  size_t n = strlen(name) + (json_object_get(out, name) != NULL);
  json_object_setn_new_nocheck(out, name, n, value);
}

/* Turns pairs into an object. Returns false if it is no list of pairs. */
static bool pairs_back(struct turning *t, uint32_t plan, const json_t *pairs, json_t *out) {
  if (!json_is_array(pairs))
    return false;
  JSON_EACH(pairs, i, pair) {
    if (!json_is_string(json_object_get(pair, "key")) || !json_object_get(pair, "value"))
      return false;
    const char *key = json_string_value(json_object_get(pair, "key"));
    if (strlen(key) != json_string_length(json_object_get(pair, "key")))
      return false;
  }
  JSON_EACH(pairs, i, pair) {
    if (stopped(t))
      break;
    plan_put(out, json_string_value(json_object_get(pair, "key")),
             turn_back(t, plan, json_object_get(pair, "value")));
  }
  return true;
}

static json_t *object_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *out = json_object();
  for (void *at = json_object_iter((json_t *)value); at && !stopped(t);
       at = json_object_iter_next((json_t *)value, at)) {
    const char *name = json_object_iter_key(at);
    const json_t *one = json_object_iter_value(at);
    const struct plan_member *member = member_of(plan, name);
    if (member && (member->added || (member->null_absent && json_is_null(one))))
      continue;
    if (!member && plan->extra && !strcmp(name, plan->extra) && pairs_back(t, plan->rest, one, out))
      continue;
    if (member)
      plan_put(out, name, turn_back(t, member->plan, one));
    else if (plan->rest != PLAN_NONE && !plan->extra)
      adapt_put(out, name, turn_back(t, plan->rest, one));
    else
      plan_put(out, name, turn_keep(one));
  }
  return out;
}

static json_t *tuple_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *out = json_array();
  uint32_t count = plan->count;
  const json_t *rest = plan->extra ? json_object_get(value, plan->extra) : NULL;
  for (; count > 0; count--) { /* the last ones may have been left out */
    const struct plan_member *last = &plan->members[count - 1];
    const json_t *item = json_object_get(value, last->name);
    if (json_array_size(rest) > 0 || (item && !(last->null_absent && json_is_null(item))))
      break;
  }
  for (uint32_t i = 0; i < count && !stopped(t); i++) {
    const json_t *item = json_object_get(value, plan->members[i].name);
    json_array_append_new(out, item ? turn_back(t, plan->members[i].plan, item) : json_null());
  }
  return items_back(t, plan->rest, rest, out);
}

static json_t *text_back(const json_t *value) {
  json_error_t error;
  json_t *out = json_loadb(json_string_value(value), json_string_length(value),
                           JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
  if (out == NULL && json_error_code(&error) == json_error_duplicate_key) {
    out = json_object();
    json_object_setn_new_nocheck(out, "", 1, turn_keep(value));
  }
  return out ? out : turn_keep(value);
}

static json_t *enum_back(const struct adapt_plan *plan, const json_t *value) {
  JSON_EACH(plan->texts, i, one) {
    size_t length;
    char_auto_t *text = adapt_json_text(one, &length);
    bool same =
        length == json_string_length(value) && memcmp(text, json_string_value(value), length) == 0;
    if (same)
      return json_clone(one);
  }
  return turn_keep(value);
}

/* Returns true if the branch holds. If the check itself failed, that sticks. */
static bool branch_holds(struct turning *t, enum schema_status status) {
  if (status == SCHEMA_TOO_COMPLEX && !stopped(t))
    t->status = ADAPT_TOO_COMPLEX;
  return status == SCHEMA_OK;
}

static bool shape_fits(struct turning *t, const struct plan_branch *branch, const json_t *value) {
  if (!t->adapted->shapes || branch->node == NODE_NONE)
    return false;
  struct schema from = *t->adapted->shapes;
  from.root = branch->node;
  return branch_holds(t, schema_check(&from, value, NULL));
}

/* Picks the first branch that has the value's shape and gives something its part of the canonical
 * schema accepts; else the first with its shape; else one whose result is accepted. */
static json_t *union_back(struct turning *t, const struct adapt_plan *plan, const json_t *value) {
  json_t *first = NULL;
  uint32_t fitting = 0, last = 0;
  for (uint32_t i = 0; i < plan->count; i++)
    if (shape_fits(t, &plan->branches[i], value)) {
      fitting++;
      last = i;
    }
  if (fitting == 1)
    return turn_back(t, plan->branches[last].plan, value);
  for (uint32_t i = 0; i < plan->count && !stopped(t); i++) {
    const struct plan_branch *branch = &plan->branches[i];
    if (fitting && !shape_fits(t, branch, value))
      continue;
    json_t *back = turn_back(t, branch->plan, value);
    if (back && branch_holds(t, adapt_sum_check(t->adapted, &branch->sum, back))) {
      json_decref(first);
      return back;
    }
    if (!first && fitting)
      first = back;
    else
      json_decref(back);
  }
  return first ? first : turn_keep(value);
}

static json_t *turn_back(struct turning *t, uint32_t index, const json_t *value) {
  if (index == PLAN_NONE)
    return turn_keep(value);
  const struct adapt_plan *plan = &t->adapted->plans[index];
  json_t *out = NULL;
  if (!stopped(t) && (t->work-- <= 0 || t->depth > 2 * ADAPT_ANSWER_DEPTH_MAX))
    t->status = ADAPT_TOO_COMPLEX;
  if (stopped(t))
    return NULL;
  t->depth++;
  switch (plan->kind) {
  case PLAN_OPEN:
  case PLAN_SAME:
    out = turn_keep(value);
    break;
  case PLAN_OBJECT:
    out = json_is_object(value) ? object_back(t, plan, value) : turn_keep(value);
    break;
  case PLAN_ARRAY:
    out = json_is_array(value) ? items_back(t, plan->rest, value, json_array()) : turn_keep(value);
    break;
  case PLAN_PAIRS:
    out = json_object();
    if (!pairs_back(t, plan->rest, value, out)) {
      json_decref(out);
      out = turn_keep(value);
    }
    break;
  case PLAN_TUPLE:
    out = json_is_object(value) ? tuple_back(t, plan, value) : turn_keep(value);
    break;
  case PLAN_TEXT:
    out = json_is_string(value) ? text_back(value) : turn_keep(value);
    break;
  case PLAN_ENUM:
    out = json_is_string(value) ? enum_back(plan, value) : turn_keep(value);
    break;
  case PLAN_UNION:
    out = union_back(t, plan, value);
    break;
  }
  t->depth--;
  return out;
}

enum adapt_status adapt_reverse(const struct adapted *adapted, const json_t *answer,
                                json_t **value) {
  assert(adapted != NULL && value != NULL);
  struct turning t = {adapted, ADAPT_WORK_MAX, 0, ADAPT_OK};
  json_auto_t *made = NULL;
  assert(answer != NULL);
  /* The object that was put around the root is removed; an answer without it is left alone. */
  const json_t *inner = adapted->wrap ? json_object_get(answer, adapted->wrap) : NULL;
  size_t own = adapted->lead && json_object_get(answer, adapted->lead) ? 2 : 1;
  bool is_wrapped = inner && json_object_size(answer) == own;
  if (schema_value_too_deep(answer, ADAPT_ANSWER_DEPTH_MAX))
    t.status = ADAPT_TOO_COMPLEX;
  else
    made = turn_back(&t, adapted->root, is_wrapped ? inner : answer);
  *value = stopped(&t) ? NULL : json_incref(made);
  return stopped(&t) ? t.status : ADAPT_OK;
}
