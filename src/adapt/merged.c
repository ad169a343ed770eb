/* Merges everything that applies to one place: follows references and allOf, and joins members of
 * the same name. */
#include "adapt/internal.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "schema/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- what all of adapt needs --- */

bool adapt_fail(struct adapter *a, enum adapt_status status, uint32_t entry, const char *keyword,
                const char *format, ...) {
  buf_auto_t place = {0};
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
  return false;
}

/* Puts a step of a JSON Pointer. */
void adapt_put_step(struct buf *out, const char *key) {
  buf_puts(out, "/");
  for (const char *p = key; *p; p++) {
    if (*p == '~' || *p == '/')
      buf_puts(out, *p == '~' ? "~0" : "~1");
    else
      buf_append(out, p, 1);
  }
}

void adapt_changed(struct adapter *a, uint32_t entry, const char *keyword, const char *member,
                   enum adapt_effect effect, const char *why) {
  struct adapted *out = a->out;
  buf_auto_t place = {0};
  uint32_t first = 1;
  if (adapter_stopped(a))
    return;
  buf_printf(&place, "%d%s ", (int)effect, keyword);
  size_t prefix = place.n;
  schema_entry_text(out->canonical, entry, &place);
  if (member) {
    buf_puts(&place, "/properties");
    adapt_put_step(&place, member);
  } else if (json_object_get(out->canonical->entries[entry].schema, keyword)) {
    buf_printf(&place, "/%s", keyword);
  }
  if (map_add(&a->changed, &out->arena, buf_view(&place), &first)) {
    const char *pointer = arena_strndup(&out->arena, place.p + prefix, place.n - prefix);
    out->changes =
        xgrow(out->changes, &out->change_capacity, out->change_count + 1, sizeof *out->changes);
    out->changes[out->change_count++] = (struct adapt_change){pointer, keyword, effect, why};
  }
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
  size_t size = 1;
  JSON_EACH(value, i, one) {
    if (size > most)
      break;
    size += adapt_size(one, most - size);
  }
  for (void *at = json_object_iter((json_t *)value); at && size <= most;
       at = json_object_iter_next((json_t *)value, at))
    size += adapt_size(json_object_iter_value(at), most - size);
  return size;
}

/* --- entries, sums and types --- */

enum { FLAT_MAX = 4096 }; /* subschemas that apply to one value */

/* The keywords of an entry under its draft and vocabularies; NULL: none. */
static unsigned adapt_draft_of(const struct adapter *a, uint32_t entry) {
  const struct schema *s = a->out->canonical;
  return s->resources[s->entries[entry].resource].dialect;
}

static const struct keyword *adapt_keyword_of(const struct adapter *a, uint32_t entry,
                                              const char *name) {
  const struct schema *s = a->out->canonical;
  const struct schema_resource *resource = &s->resources[s->entries[entry].resource];
  const struct keyword *keyword = schema_keyword_find(name, resource->dialect);
  uint32_t known = resource->vocabularies | VOCAB_ANNOTATION | VOCAB_CORE;
  return keyword && keyword->vocabulary & known ? keyword : NULL;
}

static const json_t *adapt_schema_at(const struct adapter *a, uint32_t entry) {
  return a->out->canonical->entries[entry].schema;
}

/* Returns the value of a keyword that the entry's draft knows; NULL if it has none. */
static const json_t *adapt_value_of(const struct adapter *a, uint32_t entry, const char *name) {
  const json_t *schema = adapt_schema_at(a, entry), *value = json_object_get(schema, name);
  if (!value || !adapt_keyword_of(a, entry, name))
    return NULL;
  /* Until 2019-09 a reference pushed everything beside it aside. */
  bool aside = adapt_draft_of(a, entry) == DIALECT_07 && strcmp(name, "$ref") != 0 &&
               json_is_string(json_object_get(schema, "$ref"));
  return aside ? NULL : value;
}

/* Makes room for one more of `size` bytes, in the arena. */
static void adapt_grow(struct adapter *a, void **items, size_t *capacity, size_t count,
                       size_t size) {
  if (count < *capacity)
    return;
  size_t wanted = *capacity ? *capacity * 2 : 4;
  void *bigger = arena_array(&a->out->arena, wanted, size);
  if (count)
    memcpy(bigger, *items, count * size);
  *items = bigger;
  *capacity = wanted;
}

bool adapt_sum_add(struct adapter *a, struct sum *sum, uint32_t entry, uint32_t flags) {
  size_t capacity = sum->capacity;
  void *items = sum->items;
  for (uint32_t i = 0; i < sum->count; i++)
    if (sum->items[i].entry == entry) {
      sum->items[i].flags &= flags | ITEM_SEEN; /* what counts in full counts in full */
      return true;
    }
  if (sum->count >= FLAT_MAX)
    return adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "too many subschemas apply to one value");
  adapt_grow(a, &items, &capacity, sum->count, sizeof *sum->items);
  sum->items = items;
  sum->capacity = (uint32_t)capacity;
  sum->items[sum->count++] = (struct item){entry, flags};
  return true;
}

bool adapt_sum_schema(struct adapter *a, struct sum *sum, const json_t *schema) {
  uint32_t entry;
  if (json_is_false(schema))
    sum->never = true;
  if (!json_is_object(schema))
    return true;
  if (!map_get(&a->entries, MAP_KEY(schema), &entry))
    return adapt_fail(a, ADAPT_UNSUPPORTED, NODE_NONE, "", "a subschema could not be found again");
  return adapt_sum_add(a, sum, entry, 0);
}

enum schema_status adapt_sum_check(const struct adapted *adapted, const struct sum *sum,
                                   const json_t *value) {
  if (sum->never)
    return SCHEMA_INVALID;
  for (uint32_t i = 0; i < sum->count; i++) {
    struct schema from = *adapted->canonical;
    from.root = from.entries[sum->items[i].entry].node;
    enum schema_status status =
        from.root == NODE_NONE ? SCHEMA_OK : schema_check(&from, value, NULL);
    if (status != SCHEMA_OK)
      return status;
  }
  return SCHEMA_OK;
}

bool adapt_sum_accepts(struct adapter *a, const struct sum *sum, const json_t *value) {
  enum schema_status status = adapt_sum_check(a->out, sum, value);
  if (status == SCHEMA_TOO_COMPLEX)
    adapt_fail(a, ADAPT_TOO_COMPLEX, sum->items[0].entry, "",
               "checking a value of the schema takes too much work");
  return status == SCHEMA_OK;
}

/* Adds to the sum what the entry's reference leads to. */
bool adapt_follow(struct adapter *a, uint32_t entry, const char *keyword, struct sum *sum) {
  const struct schema *s = a->out->canonical;
  uint32_t at = s->entries[entry].node, target = NODE_NONE;
  if (at == NODE_NONE)
    return adapt_fail(a, ADAPT_UNSUPPORTED, entry, keyword, "the reference was not resolved");
  const struct node *node = &s->nodes[at];
  if (node->entry != entry) { /* it was shortened to what it refers to, `true` has no entry */
    bool anything = node->entry == 0 && node->count == 0 && node->types == TYPE_ANY;
    target = anything ? NODE_NONE : node->entry;
  } else {
    for (uint32_t i = 0; i < node->count; i++) {
      const struct op *op = &s->ops[node->first + i];
      if (strcmp(op->keyword ? op->keyword : "", keyword) != 0)
        continue;
      if (op->code == OP_DYNAMIC_REF)
        for (size_t r = 0, found = 0; r < s->resource_count; r++)
          if (s->dynamic && s->dynamic[op->index * s->resource_count + r] != NODE_NONE &&
              found++ > 0)
            return adapt_fail(a, ADAPT_UNSUPPORTED, entry, keyword,
                              "%s leads to different places, depending on how it is reached",
                              keyword);
      if (op->code != OP_REF && op->code != OP_DYNAMIC_REF)
        continue;
      if (op->node == NODE_TRUE)
        return true;
      target = s->nodes[op->node].entry;
    }
  }
  if (target == NODE_NONE) /* to a schema that admits everything */
    return true;
  if (json_is_boolean(adapt_schema_at(a, target)))
    return adapt_sum_schema(a, sum, adapt_schema_at(a, target));
  return adapt_sum_add(a, sum, target, 0);
}

static bool annotation_only(const struct adapter *a, uint32_t entry, const char *except) {
  const json_t *schema = adapt_schema_at(a, entry);
  for (void *at = json_object_iter((json_t *)schema); at;
       at = json_object_iter_next((json_t *)schema, at)) {
    const char *name = json_object_iter_key(at);
    const struct keyword *keyword = adapt_keyword_of(a, entry, name);
    if (keyword && strcmp(name, except) != 0 &&
        (keyword->vocabulary & (VOCAB_APPLICATOR | VOCAB_UNEVALUATED | VOCAB_VALIDATION) ||
         keyword->id == K_REF || keyword->id == K_DYNAMIC_REF || keyword->id == K_RECURSIVE_REF))
      return false;
  }
  return true;
}

static bool group_add(struct adapter *a, struct adapt_view *view, const char *keyword,
                      uint32_t entry, size_t branches) {
  if (branches > ADAPT_BRANCHES_MAX)
    return adapt_fail(a, ADAPT_TOO_COMPLEX, entry, keyword, "there are more than %d alternatives",
                      (int)ADAPT_BRANCHES_MAX);
  adapt_grow(a, (void **)&view->groups, &view->group_capacity, view->group_count,
             sizeof *view->groups);
  view->groups[view->group_count++] =
      (struct view_group){arena_array(&a->out->arena, branches, sizeof(struct sum)),
                          (uint32_t)branches, keyword, entry};
  return true;
}

/* Adds the subschemas of the entry that apply to the same value. */
static bool combinations(struct adapter *a, uint32_t entry, struct adapt_view *view) {
  const json_t *list, *one;
  static const struct {
    enum keyword_id id;
    const char *name;
  } references[] = {
      {K_REF, "$ref"}, {K_DYNAMIC_REF, "$dynamicRef"}, {K_RECURSIVE_REF, "$recursiveRef"}};
  static const char *const alternatives[] = {"anyOf", "oneOf"};
  static const char *const dependencies[] = {"dependentSchemas", "dependencies"};
  size_t k;
  for (size_t i = 0; i < sizeof references / sizeof *references; i++)
    if (adapt_value_of(a, entry, references[i].name) &&
        !adapt_follow(a, entry, references[i].name, &view->flat))
      return false;
  if (adapt_value_of(a, entry, "allOf"))
    adapt_changed(a, entry, "allOf", NULL, ADAPT_REWRITTEN, "its parts are merged");
  json_array_foreach((json_t *)adapt_value_of(a, entry, "allOf"), k, one)
    if (!adapt_sum_schema(a, &view->flat, one))
      return false;
  for (size_t i = 0; i < 2; i++) {
    list = adapt_value_of(a, entry, alternatives[i]);
    if (list && !group_add(a, view, alternatives[i], entry, json_array_size(list)))
      return false;
    json_array_foreach((json_t *)list, k, one)
      if (!adapt_sum_schema(a, &view->groups[view->group_count - 1].branches[k], one))
        return false;
  }
  const json_t *condition = adapt_value_of(a, entry, "if"),
               *then = adapt_value_of(a, entry, "then"),
               *otherwise = adapt_value_of(a, entry, "else");
  if (condition && (then || otherwise)) {
    if (!group_add(a, view, "if", entry, 2))
      return false;
    struct sum *branches = view->groups[view->group_count - 1].branches;
    if (!adapt_sum_schema(a, &branches[0], condition) || !adapt_sum_schema(a, &branches[0], then) ||
        !adapt_sum_schema(a, &branches[1], otherwise))
      return false;
  }
  for (size_t i = 0; i < 2; i++) {
    list = adapt_value_of(a, entry, dependencies[i]);
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at)) {
      one = json_object_iter_value(at);
      if (json_is_array(one) || json_is_true(one))
        continue;
      if (!group_add(a, view, dependencies[i], entry, 2) ||
          !adapt_sum_schema(a, &view->groups[view->group_count - 1].branches[1], one))
        return false;
    }
  }
  return true;
}

/* Finds a `$ref` without other constraints, perhaps alone in an allOf. */
static void find_reference(struct adapter *a, const struct sum *sum, struct adapt_view *view) {
  view->reference = NODE_NONE;
  if (sum->count != 1 || sum->items[0].flags & ITEM_PLAIN)
    return;
  uint32_t entry = sum->items[0].entry;
  const json_t *all = adapt_value_of(a, entry, "allOf");
  if (json_array_size(all) == 1 && annotation_only(a, entry, "allOf") &&
      json_is_object(json_array_get(all, 0))) {
    const json_t *only = json_array_get(all, 0);
    if (!map_get(&a->entries, MAP_KEY(only), &entry))
      return;
  }
  if (!adapt_value_of(a, entry, "$ref") ||
      (adapt_draft_of(a, entry) != DIALECT_07 && !annotation_only(a, entry, "$ref")))
    return;
  struct sum target = {0};
  if (adapt_follow(a, entry, "$ref", &target) && target.count == 1)
    view->reference = target.items[0].entry;
}

bool adapt_view_count(const struct adapt_view *view, enum keyword_id id, uint64_t *count) {
  for (size_t i = 0; i < view->word_count; i++)
    if (view->words[i].id == id) {
      const json_t *value = view->words[i].value;
      double real = json_number_value(value);
      *count = (uint64_t)1 << 50;
      if (json_is_integer(value))
        *count = (uint64_t)json_integer_value(value);
      else if (real < 1e15)
        *count = (uint64_t)real;
      return true;
    }
  return false;
}

/* --- keywords of the same kind, merged --- */

static unsigned type_bit(const char *name) {
  static const struct {
    const char *name;
    unsigned bits;
  } types[] = {{"null", T_NULL},    {"boolean", T_BOOLEAN}, {"object", T_OBJECT},
               {"array", T_ARRAY},  {"string", T_STRING},   {"integer", T_INTEGER},
               {"number", T_NUMBER}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (name && !strcmp(name, types[i].name))
      return types[i].bits;
  return 0;
}

static unsigned gather_types(const json_t *type) {
  unsigned bits = 0;
  if (json_is_string(type))
    return type_bit(json_string_value(type));
  JSON_EACH(type, i, one)
    bits |= type_bit(json_string_value(one));
  return bits;
}

unsigned adapt_type_of(const json_t *value) {
  static const unsigned types[] = {
      [JSON_NULL] = T_NULL,       [JSON_TRUE] = T_BOOLEAN, [JSON_FALSE] = T_BOOLEAN,
      [JSON_OBJECT] = T_OBJECT,   [JSON_ARRAY] = T_ARRAY,  [JSON_STRING] = T_STRING,
      [JSON_INTEGER] = T_INTEGER, [JSON_REAL] = T_REAL};
  if (json_is_real(value) && schema_value_is_integral(value))
    return T_INTEGER;
  return types[json_typeof(value)];
}

unsigned adapt_types_of(const json_t *values) {
  unsigned types = 0;
  JSON_EACH(values, i, one)
    types |= adapt_type_of(one);
  return types;
}

/* Returns the types that the keyword applies to, for places that name no type. */
unsigned adapt_keyword_types(enum keyword_id id) {
  static const struct {
    uint64_t ids;
    unsigned types;
  } about[] = {
      {KEEP(K_MULTIPLE_OF) | KEEP(K_MAXIMUM) | KEEP(K_EXCLUSIVE_MAXIMUM) | KEEP(K_MINIMUM) |
           KEEP(K_EXCLUSIVE_MINIMUM),
       T_NUMBER},
      {KEEP(K_MAX_LENGTH) | KEEP(K_MIN_LENGTH) | KEEP(K_PATTERN) | KEEP(K_FORMAT) |
           KEEP(K_CONTENT_ENCODING) | KEEP(K_CONTENT_MEDIA_TYPE) | KEEP(K_CONTENT_SCHEMA),
       T_STRING},
      {KEEP(K_MAX_ITEMS) | KEEP(K_MIN_ITEMS) | KEEP(K_UNIQUE_ITEMS) | KEEP(K_MAX_CONTAINS) |
           KEEP(K_MIN_CONTAINS) | KEEP(K_CONTAINS) | KEEP(K_PREFIX_ITEMS) | KEEP(K_ITEMS) |
           KEEP(K_ADDITIONAL_ITEMS) | KEEP(K_UNEVALUATED_ITEMS),
       T_ARRAY},
      {KEEP(K_MAX_PROPERTIES) | KEEP(K_MIN_PROPERTIES) | KEEP(K_REQUIRED) |
           KEEP(K_DEPENDENT_REQUIRED) | KEEP(K_DEPENDENT_SCHEMAS) | KEEP(K_DEPENDENCIES) |
           KEEP(K_PROPERTIES) | KEEP(K_PATTERN_PROPERTIES) | KEEP(K_ADDITIONAL_PROPERTIES) |
           KEEP(K_PROPERTY_NAMES) | KEEP(K_UNEVALUATED_PROPERTIES),
       T_OBJECT},
  };
  for (size_t i = 0; i < sizeof about / sizeof *about; i++)
    if (about[i].ids & KEEP(id))
      return about[i].types;
  return 0;
}

/* Keeps the tighter of two bounds of the same kind; other keywords may stand twice. */
static void word_add(struct adapter *a, struct adapt_view *view, const struct keyword *keyword,
                     const json_t *value, uint32_t entry) {
  const uint64_t lower = KEEP(K_MINIMUM) | KEEP(K_EXCLUSIVE_MINIMUM) | KEEP(K_MIN_LENGTH) |
                         KEEP(K_MIN_ITEMS) | KEEP(K_MIN_PROPERTIES);
  const uint64_t upper = KEEP(K_MAXIMUM) | KEEP(K_EXCLUSIVE_MAXIMUM) | KEEP(K_MAX_LENGTH) |
                         KEEP(K_MAX_ITEMS) | KEEP(K_MAX_PROPERTIES);
  if (keyword->id == K_PROPERTY_NAMES && schema_names_any(value))
    return;
  for (size_t i = 0; i < view->word_count; i++) {
    struct view_word *known = &view->words[i];
    if (known->id != keyword->id)
      continue;
    int order = KEEP(keyword->id) & (lower | upper) ? schema_value_compare(value, known->value) : 0;
    if ((order > 0 && KEEP(keyword->id) & lower) || (order < 0 && KEEP(keyword->id) & upper))
      *known = (struct view_word){keyword->id, keyword, value, entry};
    int64_t work = 10000;
    if (KEEP(keyword->id) & (lower | upper) || schema_value_equal(value, known->value, &work))
      return;
  }
  adapt_grow(a, (void **)&view->words, &view->word_capacity, view->word_count, sizeof *view->words);
  view->words[view->word_count++] = (struct view_word){keyword->id, keyword, value, entry};
}

/* Returns the index of the property, which is new or known. */
static size_t property_add(struct adapter *a, struct adapt_view *view, struct map *names,
                           const char *name, uint32_t entry) {
  uint32_t index = (uint32_t)view->property_count;
  if (!map_add(names, &a->out->arena, str_from(name), &index))
    return index;
  adapt_grow(a, (void **)&view->properties, &view->property_capacity, view->property_count,
             sizeof *view->properties);
  view->properties[view->property_count++] = (struct view_property){.name = name, .entry = entry};
  return index;
}

/* Holds the names that an entry's patternProperties are about, compiled once for all properties. */
struct name_patterns {
  struct pattern *compiled[ADAPT_BRANCHES_MAX];
  const json_t *schemas[ADAPT_BRANCHES_MAX];
  size_t count;
};

static bool patterns_compile(struct adapter *a, uint32_t entry, struct name_patterns *patterns) {
  const json_t *list = adapt_value_of(a, entry, "patternProperties");
  patterns->count = 0;
  if (json_object_size(list) > ADAPT_BRANCHES_MAX)
    return adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "patternProperties",
                      "there are more than %d patterns of names", (int)ADAPT_BRANCHES_MAX);
  for (void *at = json_object_iter((json_t *)list); at;
       at = json_object_iter_next((json_t *)list, at)) {
    const char *text = json_object_iter_key(at);
    if (pattern_compile(text, strlen(text), &patterns->compiled[patterns->count], NULL) ==
        PATTERN_OK)
      patterns->schemas[patterns->count++] = json_object_iter_value(at);
  }
  return true;
}

/* Adds what the entry asks of the property: by name, by patterns, or as one of the rest. */
static void property_part(struct adapter *a, uint32_t entry, const struct name_patterns *patterns,
                          struct view_property *property, struct pattern_scratch *scratch) {
  const json_t *named = json_object_get(adapt_value_of(a, entry, "properties"), property->name);
  const json_t *rest = adapt_value_of(a, entry, "additionalProperties");
  bool covered = named != NULL;
  if (named)
    adapt_sum_schema(a, &property->sum, named);
  for (size_t i = 0; i < patterns->count && !adapter_stopped(a); i++) {
    if (pattern_match(patterns->compiled[i], scratch, property->name, strlen(property->name)) ==
        PATTERN_MATCH) {
      covered = true;
      adapt_sum_schema(a, &property->sum, patterns->schemas[i]);
    }
  }
  if (!covered && rest)
    adapt_sum_schema(a, &property->sum, rest);
}

static bool adapt_gather_properties(struct adapter *a, struct adapt_view *view) {
  AUTO(map_deinit) struct map names = {0};
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  for (uint32_t i = 0; i < view->flat.count; i++) {
    uint32_t entry = view->flat.items[i].entry;
    const json_t *list = adapt_value_of(a, entry, "properties");
    for (void *at = json_object_iter((json_t *)list); at && !adapter_stopped(a);
         at = json_object_iter_next((json_t *)list, at))
      (void)property_add(a, view, &names, json_object_iter_key(at), entry);
  }
  for (uint32_t i = 0; i < view->flat.count; i++)
    JSON_EACH(adapt_value_of(a, view->flat.items[i].entry, "required"), k, one) {
      if (adapter_stopped(a) || !json_is_string(one))
        break;
      size_t index =
          property_add(a, view, &names, json_string_value(one), view->flat.items[i].entry);
      view->properties[index].required = true;
    }
  for (uint32_t i = 0; i < view->flat.count && view->property_count && !adapter_stopped(a); i++) {
    uint32_t entry = view->flat.items[i].entry;
    struct name_patterns patterns;
    if (patterns_compile(a, entry, &patterns))
      for (size_t k = 0; k < view->property_count && !adapter_stopped(a); k++)
        property_part(a, entry, &patterns, &view->properties[k], &scratch);
    for (size_t k = 0; k < patterns.count; k++)
      pattern_free(patterns.compiled[k]);
  }
  return !adapter_stopped(a);
}

/* Gathers properties that have no name in the schema. */
static bool adapt_gather_extra(struct adapter *a, struct adapt_view *view) {
  bool said = false;
  bool additional = false; /* then all that has no name is evaluated */
  size_t patterns = 0;
  view->extra_entry = view->flat.count ? view->flat.items[0].entry : 0;
  for (uint32_t i = 0; i < view->flat.count; i++) {
    patterns += json_object_size(adapt_value_of(a, view->flat.items[i].entry, "patternProperties"));
    const json_t *loose = adapt_value_of(a, view->flat.items[i].entry, "unevaluatedProperties");
    additional =
        additional || adapt_value_of(a, view->flat.items[i].entry, "additionalProperties") ||
        json_is_true(loose) || (loose && json_object_size(loose) == 0 && json_is_object(loose));
  }
  if (patterns > ADAPT_BRANCHES_MAX)
    return adapt_fail(a, ADAPT_TOO_COMPLEX, view->flat.items[0].entry, "patternProperties",
                      "there are more than %d patterns of names", (int)ADAPT_BRANCHES_MAX);
  view->patterns = arena_array(&a->out->arena, patterns + 1, sizeof *view->patterns);
  for (uint32_t i = 0; i < view->flat.count; i++) {
    uint32_t entry = view->flat.items[i].entry;
    const json_t *list = adapt_value_of(a, entry, "patternProperties");
    const json_t *rest = adapt_value_of(a, entry, "additionalProperties");
    const json_t *loose = adapt_value_of(a, entry, "unevaluatedProperties");
    for (void *at = json_object_iter((json_t *)list); at;
         at = json_object_iter_next((json_t *)list, at)) {
      if (!adapt_sum_schema(a, &view->patterns[view->pattern_count++], json_object_iter_value(at)))
        return false;
      view->extra_entry = entry;
    }
    bool own = rest != NULL;
    if (!additional && loose) {
      rest = loose;
      adapt_changed(a, entry, "unevaluatedProperties", NULL, ADAPT_NARROWED,
                    "what only another alternative names cannot be given");
    }
    if (json_is_false(rest)) {
      view->extra_closed = true;
      if (own && json_object_size(list) == 0)
        patterns = 0; /* no name that only matches a pattern elsewhere either */
    } else if (json_is_object(rest) && json_object_size(rest) > 0) {
      said = true;
      view->extra_entry = entry;
      if (!adapt_sum_schema(a, &view->extra, rest))
        return false;
    }
  }
  if (patterns == 0)
    view->pattern_count = 0;
  view->extra_open = !said && !view->extra_closed;
  return true;
}

/* Finds the schemas of an entry's items, by draft: `list` is for the first ones, `rest` for those
 * after. */
static void items_of(const struct adapter *a, uint32_t entry, const json_t **list,
                     const json_t **rest) {
  *list = adapt_value_of(a, entry, "prefixItems");
  *rest = adapt_value_of(a, entry, "items");
  if (json_is_array(*rest)) {
    *list = *rest;
    *rest = adapt_value_of(a, entry, "additionalItems");
  }
}

/* Returns unevaluatedItems, where no part says what the items are. */
static const json_t *loose_items(const struct adapter *a, const struct adapt_view *view) {
  const json_t *list, *rest, *loose = NULL;
  for (uint32_t i = 0; i < view->flat.count; i++) {
    uint32_t entry = view->flat.items[i].entry;
    items_of(a, entry, &list, &rest);
    if (rest || adapt_value_of(a, entry, "contains"))
      return NULL;
    if (!loose)
      loose = adapt_value_of(a, entry, "unevaluatedItems");
  }
  return loose;
}

static void items_rest(struct adapt_view *view, const json_t *rest) {
  if (rest && !json_is_true(rest) && !(json_is_object(rest) && json_object_size(rest) == 0))
    view->items_open = false;
  if (json_is_false(rest))
    view->items_closed = true;
}

static bool adapt_gather_items(struct adapter *a, struct adapt_view *view) {
  const json_t *list, *rest;
  size_t most = 0;
  view->items_open = true;
  for (uint32_t i = 0; i < view->flat.count; i++) {
    items_of(a, view->flat.items[i].entry, &list, &rest);
    if (json_array_size(list) > most) {
      most = json_array_size(list);
      view->prefix_entry = view->flat.items[i].entry;
    }
    items_rest(view, rest);
    if (!json_is_false(rest) && !adapt_sum_schema(a, &view->items, rest))
      return false;
  }
  const json_t *loose = loose_items(a, view);
  items_rest(view, loose);
  if (!json_is_false(loose) && !adapt_sum_schema(a, &view->items, loose))
    return false;
  view->prefix = arena_array(&a->out->arena, most + 1, sizeof *view->prefix);
  view->prefix_count = (uint32_t)most;
  for (uint32_t i = 0; i < view->flat.count; i++) {
    items_of(a, view->flat.items[i].entry, &list, &rest);
    for (size_t k = 0; k < most; k++)
      if (!adapt_sum_schema(a, &view->prefix[k],
                            k < json_array_size(list) ? json_array_get(list, k) : rest))
        return false;
  }
  return true;
}

/* Gathers the values of the first enum or const that everything accepts. */
static bool adapt_gather_options(struct adapter *a, const struct sum *sum,
                                 struct adapt_view *view) {
  json_auto_t *values = json_array();
  const json_t *options = NULL;
  for (uint32_t i = 0; i < view->flat.count && !options; i++) {
    view->option_entry = view->flat.items[i].entry;
    options = adapt_value_of(a, view->option_entry, "const");
    view->option_is_const = options != NULL;
    if (!options)
      options = adapt_value_of(a, view->option_entry, "enum");
  }
  if (options && view->option_is_const) {
    if (adapt_sum_accepts(a, sum, options))
      json_array_append_new(values, json_incref((json_t *)options));
  } else {
    JSON_EACH(options, k, one)
      if (adapt_sum_accepts(a, sum, one))
        json_array_append_new(values, json_incref((json_t *)one));
  }
  if (options) {
    json_array_append(a->out->kept, values);
    view->options = values;
    view->types &= adapt_types_of(values);
    view->typed = true;
  }
  return !adapter_stopped(a);
}

/* From view->flat into the rest of the view, in this order */
static void adapt_gather_words(struct adapter *a, struct adapt_view *view) {
  const uint64_t own = KEEP(K_PROPERTIES) | KEEP(K_PATTERN_PROPERTIES) |
                       KEEP(K_ADDITIONAL_PROPERTIES) | KEEP(K_REQUIRED) | KEEP(K_PREFIX_ITEMS) |
                       KEEP(K_ITEMS) | KEEP(K_ADDITIONAL_ITEMS) | KEEP(K_TYPE) | KEEP(K_ENUM) |
                       KEEP(K_CONST) | KEEP(K_ANY_OF) | KEEP(K_ONE_OF) | KEEP(K_ALL_OF) |
                       KEEP(K_IF) | KEEP(K_THEN) | KEEP(K_ELSE) | KEEP(K_DEPENDENT_SCHEMAS);
  unsigned about = 0;
  view->types = T_ALL;
  for (uint32_t i = 0; i < view->flat.count; i++) {
    uint32_t entry = view->flat.items[i].entry;
    const json_t *schema = adapt_schema_at(a, entry);
    if (adapt_draft_of(a, entry) == DIALECT_07 && json_object_get(schema, "$ref"))
      continue;
    for (void *at = json_object_iter((json_t *)schema); at;
         at = json_object_iter_next((json_t *)schema, at)) {
      const struct keyword *keyword = adapt_keyword_of(a, entry, json_object_iter_key(at));
      if (!keyword)
        continue;
      about |= adapt_keyword_types(keyword->id);
      if (keyword->id == K_TYPE) {
        view->types &= gather_types(json_object_iter_value(at));
        view->typed = true;
      } else if (!(own & KEEP(keyword->id)) && keyword->vocabulary != VOCAB_CORE) {
        word_add(a, view, keyword, json_object_iter_value(at), entry);
      }
    }
  }
  if (!view->typed && about)
    view->types = about;
}

/* --- views --- */

bool adapt_view(struct adapter *a, const struct sum *sum, struct adapt_view *view) {
  *view = (struct adapt_view){.never = sum->never};
  find_reference(a, sum, view);
  for (uint32_t i = 0; i < sum->count; i++)
    if (!adapt_sum_add(a, &view->flat, sum->items[i].entry, sum->items[i].flags))
      return false;
  for (uint32_t i = 0; i < view->flat.count;) {
    struct item *item = &view->flat.items[i++];
    if (item->flags & (ITEM_PLAIN | ITEM_SEEN))
      continue;
    item->flags |= ITEM_SEEN;
    uint32_t entry = item->entry;
    const json_t *schema = adapt_schema_at(a, entry);
    const char *title = json_string_value(json_object_get(schema, "title"));
    const char *description = json_string_value(json_object_get(schema, "description"));
    const json_t *value = json_object_get(schema, "default");
    const json_t *examples = json_object_get(schema, "examples");
    if (title && !view->title)
      view->title = title;
    if (description && !view->description)
      view->description = description;
    if (value && !view->default_value)
      view->default_value = value;
    if (json_is_array(examples) && !view->examples)
      view->examples = examples;
    if (!combinations(a, entry, view))
      return false;
    i = 0; /* one that was plain before may count in full now */
  }
  view->never = view->never || view->flat.never;
  adapt_gather_words(a, view);
  return adapt_gather_options(a, sum, view) && adapt_gather_properties(a, view) &&
         adapt_gather_extra(a, view) && adapt_gather_items(a, view);
}
