/* Makes the root of an adapted schema and its definitions, within what a dialect takes. */
#include "adapt/internal.h"
#include "format/json_value.h"
#include "schema/validate.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- dialects: what each provider takes of JSON Schema --- */

/* The rules come from the providers' documentation of structured outputs, and from the schema
 * transformers of their SDKs. */

#define NUMBERS                                                                                    \
  (KEEP(K_MINIMUM) | KEEP(K_MAXIMUM) | KEEP(K_EXCLUSIVE_MINIMUM) | KEEP(K_EXCLUSIVE_MAXIMUM))
#define LENGTHS (KEEP(K_MIN_LENGTH) | KEEP(K_MAX_LENGTH))
#define COUNTS  (KEEP(K_MIN_ITEMS) | KEEP(K_MAX_ITEMS))

static const char *const formats_openai[] = {"date-time", "time", "date", "duration", "email",
                                             "hostname",  "ipv4", "ipv6", "uuid",     NULL};
static const char *const formats_anthropic[] = {"date-time", "time",     "date", "duration",
                                                "email",     "hostname", "uri",  "ipv4",
                                                "ipv6",      "uuid",     NULL};
static const char *const formats_gemini[] = {"date-time", "date", "time", NULL};
static const char *const formats_llamacpp[] = {"date", "time", "date-time", "uuid", NULL};
static const char *const formats_vllm[] = {"email",
                                           "date",
                                           "time",
                                           "date-time",
                                           "duration",
                                           "ipv4",
                                           "ipv6",
                                           "hostname",
                                           "uuid",
                                           "uri",
                                           "uri-reference",
                                           "uri-template",
                                           "json-pointer",
                                           "relative-json-pointer",
                                           NULL};
static const char *const formats_none[] = {NULL};

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

#define WHOLE                                                                                      \
  .flags = ADAPT_WHOLE | ADAPT_ROOT_OBJECT | ADAPT_TYPE_LIST | ADAPT_FREE, .keeps = ~(uint64_t)0,  \
  .recursion = RECURSION_ANY, .formats = formats_none

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
    {.name = "claude", WHOLE}, /* these three make it the input of a tool: an object */
    {.name = "qwen", WHOLE},
    {.name = "opencode", WHOLE},
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

/* Puts a step of a JSON Pointer. */
static void put_path_step(struct buf *out, const char *key) {
  buf_puts(out, "/");
  for (const char *p = key; *p; p++) {
    if (*p == '~' || *p == '/')
      buf_puts(out, *p == '~' ? "~0" : "~1");
    else
      buf_append(out, p, 1);
  }
}

static void pointer_of(const struct limits_place *place, struct buf *out) {
  if (!place || !place->up)
    return;
  pointer_of(place->up, out);
  if (place->key)
    put_path_step(out, place->key);
  else
    buf_printf(out, "/%zu", place->index);
}

static bool limits_over(struct measure *m, const struct limits_place *place, const char *limit,
                        const char *unit, size_t found, size_t allowed) {
  struct adapter *a = m->a;
  struct buf pointer = {0};
  if (allowed == 0 || found <= allowed || adapter_stopped(a))
    return false;
  adapt_fail(a, ADAPT_LIMIT, NODE_NONE, "", "%s takes at most %zu %s; here are %zu",
             a->dialect->name, allowed, unit, found);
  pointer_of(place, &pointer);
  print_into(a->error->pointer, sizeof a->error->pointer, "%s", buf_c(&pointer));
  buf_deinit(&pointer);
  a->error->limit = limit;
  a->error->found = found;
  a->error->allowed = allowed;
  return true;
}

static size_t limits_characters(const char *text) {
  return utf8_count(text, strlen(text));
}

static void count_enum(struct measure *m, const json_t *values, const struct limits_place *place) {
  size_t i, length = 0;
  const json_t *one;
  json_array_foreach((json_t *)values, i, one) {
    if (json_is_string(one))
      length += utf8_count(json_string_value(one), json_string_length(one));
  }
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
  size_t k;
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
    json_array_foreach((json_t *)json_object_get(schema, lists[i]), k, one) {
      const struct limits_place branch = {&branches, NULL, k, NULL};
      limits_count(m, one, &branch);
    }
    limits_count(m, json_object_get(schema, ones[i]), &item);
  }
}

static bool active(const struct limits_place *place, const char *definition) {
  for (; place; place = place->up)
    if (place->definition && !strcmp(place->definition, definition))
      return true;
  return false;
}

/* Measures objects and arrays inside each other, through references, each cycle once. */
static void nesting(struct measure *m, const json_t *schema, size_t level,
                    const struct limits_place *up) {
  const json_t *one, *list = json_object_get(schema, "properties");
  const char *type = json_string_value(json_object_get(schema, "type"));
  const char *reference = json_string_value(json_object_get(schema, "$ref"));
  size_t k;
  uint32_t known;
  if (!json_is_object(schema) || adapter_stopped(m->a))
    return;
  level += type && (!strcmp(type, "object") || !strcmp(type, "array"));
  if (limits_over(m, up, "nesting", "levels of objects and arrays", level, m->limits->nesting))
    return;
  if (reference && strlen(reference) > 8 && !active(up, reference)) {
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
  json_array_foreach((json_t *)json_object_get(schema, "anyOf"), k, one) {
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
    char *text = whole_place(w, to, s->resources[s->entries[to].resource].document);
    if (text)
      adapt_put(copy, "$ref", json_string_nocheck(text));
    free(text);
  }
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
  w.moved = w.wrapped || s->document_count > 1;
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

/* --- what the builders stand on --- */

bool adapt_fail(struct adapter *a, enum adapt_status status, uint32_t entry, const char *keyword,
                const char *format, ...) {
  struct buf place = {0};
  va_list args;
  if (adapter_stopped(a))
    return false;
  a->status = status;
  *a->error = (struct adapt_error){.status = status, .keyword = keyword};
  va_start(args, format);
  (void)vsnprintf(a->error->message, sizeof a->error->message, format, args);
  va_end(args);
  if (entry != NODE_NONE) {
    schema_entry_text(a->out->canonical, entry, &place);
    if (*keyword)
      buf_printf(&place, "/%s", keyword);
  }
  if (place.p)
    print_into(a->error->pointer, sizeof a->error->pointer, "%s", place.p);
  buf_deinit(&place);
  return false;
}

void adapt_changed(struct adapter *a, uint32_t entry, const char *keyword, const char *member,
                   enum adapt_effect effect, const char *why) {
  struct adapted *out = a->out;
  struct buf place = {0};
  uint32_t first = 1;
  if (adapter_stopped(a))
    return;
  buf_printf(&place, "%d%s ", (int)effect, keyword);
  size_t prefix = place.n;
  schema_entry_text(out->canonical, entry, &place);
  if (member) {
    buf_puts(&place, "/properties");
    put_path_step(&place, member);
  } else if (json_object_get(out->canonical->entries[entry].schema, keyword)) {
    buf_printf(&place, "/%s", keyword);
  }
  if (map_add(&a->changed, &out->arena, buf_view(&place), &first)) {
    const char *pointer = arena_strndup(&out->arena, place.p + prefix, place.n - prefix);
    out->changes =
        xgrow(out->changes, &out->change_capacity, out->change_count + 1, sizeof *out->changes);
    out->changes[out->change_count++] = (struct adapt_change){pointer, keyword, effect, why};
  }
  buf_deinit(&place);
}

void adapt_put(json_t *object, const char *key, json_t *value) {
  json_object_set_new_nocheck(object, key, value);
}

json_t *adapt_closed_object(const struct adapter *a, json_t *properties, json_t *required) {
  json_t *ordering = adapt_has(a, ADAPT_ORDERING) ? json_clone_top(required) : NULL;
  return json_pack("{ss so so sb so*}", "type", "object", "properties", properties, "required",
                   required, "additionalProperties", 0, "propertyOrdering", ordering);
}

char *adapt_json_text(const json_t *value, size_t *length) {
  const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
  *length = json_dumpb(value, NULL, 0, flags);
  char *text = xmalloc(*length + 1);
  json_dumpb(value, text, *length, flags);
  text[*length] = '\0';
  return text;
}

size_t adapt_size(const json_t *value, size_t most) {
  size_t size = 1, i;
  const json_t *one;
  json_array_foreach((json_t *)value, i, one) {
    if (size > most)
      break;
    size += adapt_size(one, most - size);
  }
  for (void *at = json_object_iter((json_t *)value); at && size <= most;
       at = json_object_iter_next((json_t *)value, at))
    size += adapt_size(json_object_iter_value(at), most - size);
  return size;
}

void adapt_keep(struct adapter *a, json_t *value) {
  json_array_append(a->out->kept, value);
}

/* --- the root --- */

static bool is_object(const json_t *schema) {
  const char *type = json_string_value(json_object_get(schema, "type"));
  return type && !strcmp(type, "object") && !json_object_get(schema, "anyOf");
}

static json_t *thoughts(void) {
  return json_pack("{ss ss}", "type", "string", "description", "think here, before the answer");
}

/* Returns the list of names with `first` in front; takes `names`. */
static json_t *name_first(json_t *names, const char *first, bool add) {
  json_t *out = json_array(), *one;
  size_t i;
  bool found = false;
  json_array_foreach(names, i, one) {
    found = found || !strcmp(json_string_value(one), first);
  }
  if (found || add)
    json_array_append_new(out, json_string_nocheck(first));
  json_array_foreach(names, i, one) {
    if (strcmp(json_string_value(one), first) != 0)
      json_array_append_new(out, json_incref(one));
  }
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

/* Follows a root that is just a reference, so that its target can be the root. */
static const json_t *definition_of(const json_t *schema, const json_t *all) {
  const char *reference = json_string_value(json_object_get(schema, "$ref"));
  for (int i = 0; reference && i < 16; i++) {
    schema = json_object_get(all, reference + sizeof "#/$defs/" - 1);
    reference = json_string_value(json_object_get(schema, "$ref"));
  }
  return schema;
}

static void finish_root(struct adapter *a, struct built built) {
  bool whole = a->dialect->flags & ADAPT_WHOLE;
  json_t *all = whole ? json_incref(json_object_get(built.schema, "$defs")) : definitions(a);
  const json_t *inner = whole ? built.schema : definition_of(built.schema, all);
  json_t *root = json_clone_top(inner);
  if (whole && json_object_get(inner, "$ref"))
    json_object_del(root, "$defs");
  a->out->root = built.plan;
  if ((a->dialect->flags & ADAPT_ROOT_OBJECT || a->opts->reasoning) && !is_object(root)) {
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
  json_decref(all);
  json_decref(built.schema);
  a->out->schema = root;
}

/* --- the whole --- */

static void adapt_compile(struct adapter *a, const json_t *doc) {
  const struct schema_opts opts = {.registry = a->opts->registry,
                                   .default_draft = a->opts->default_draft};
  struct schema_errors errors = {0};
  enum schema_status status;
  a->out->canonical = schema_compile(doc, &opts, &errors, &status);
  if (!a->out->canonical) {
    adapt_fail(a, status == SCHEMA_TOO_COMPLEX ? ADAPT_TOO_COMPLEX : ADAPT_INVALID_SCHEMA,
               NODE_NONE, "", "%s", errors.count ? errors.items[0].message : "not a schema");
    print_into(a->error->pointer, sizeof a->error->pointer, "%s",
               errors.count ? errors.items[0].pointer : "");
    a->error->keyword = errors.count ? errors.items[0].keyword : "";
  }
  schema_errors_deinit(&errors);
}

static void adapt_run(struct adapter *a, const json_t *doc) {
  struct sum root = {0};
  struct built built = {NULL, PLAN_NONE};
  adapt_compile(a, doc);
  if (!adapter_stopped(a)) {
    const struct schema *s = a->out->canonical;
    for (uint32_t i = 0; i < s->entry_count; i++) {
      const json_t *schema = s->entries[i].schema;
      if (json_is_object(schema))
        map_put(&a->entries, &a->out->arena, MAP_KEY(schema), i);
    }
  }
  if (adapter_stopped(a))
    return;
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
