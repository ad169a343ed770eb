/* Merges everything that applies to one place: follows references and allOf, and joins members of
 * the same name. */
#include "adapt/internal.h"

#include <string.h>

enum { FLAT_MAX = 4096 }; /* subschemas that apply to one value */

unsigned adapt_draft_of(const struct adapter *a, uint32_t entry) {
  const struct schema *s = a->out->canonical;
  return s->resources[s->entries[entry].resource].dialect;
}

const struct keyword *adapt_keyword_of(const struct adapter *a, uint32_t entry, const char *name) {
  const struct schema *s = a->out->canonical;
  const struct schema_resource *resource = &s->resources[s->entries[entry].resource];
  const struct keyword *keyword = schema_keyword_find(name, resource->dialect);
  uint32_t known = resource->vocabularies | VOCAB_ANNOTATION | VOCAB_CORE;
  return keyword && keyword->vocabulary & known ? keyword : NULL;
}

const json_t *adapt_schema_at(const struct adapter *a, uint32_t entry) {
  return a->out->canonical->entries[entry].schema;
}

/* Returns the value of a keyword that the entry's draft knows; NULL if it has none. */
const json_t *adapt_value_of(const struct adapter *a, uint32_t entry, const char *name) {
  const json_t *schema = adapt_schema_at(a, entry);
  const json_t *value = json_object_get(schema, name);
  if (!value || !adapt_keyword_of(a, entry, name))
    return NULL;
  /* Until 2019-09 a reference pushed everything beside it aside. */
  bool aside = adapt_draft_of(a, entry) == DIALECT_07 && strcmp(name, "$ref") != 0 &&
               json_is_string(json_object_get(schema, "$ref"));
  return aside ? NULL : value;
}

void adapt_grow(struct adapter *a, void **items, size_t *capacity, size_t count, size_t size) {
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

static void annotations(struct adapter *a, uint32_t entry, struct adapt_view *view) {
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
  json_array_foreach((json_t *)adapt_value_of(a, entry, "allOf"), k, one) {
    if (!adapt_sum_schema(a, &view->flat, one))
      return false;
  }
  for (size_t i = 0; i < 2; i++) {
    list = adapt_value_of(a, entry, alternatives[i]);
    if (list && !group_add(a, view, alternatives[i], entry, json_array_size(list)))
      return false;
    json_array_foreach((json_t *)list, k, one) {
      if (!adapt_sum_schema(a, &view->groups[view->group_count - 1].branches[k], one))
        return false;
    }
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
    annotations(a, entry, view);
    if (!combinations(a, entry, view))
      return false;
    i = 0; /* one that was plain before may count in full now */
  }
  view->never = view->never || view->flat.never;
  adapt_gather_words(a, view);
  return adapt_gather_options(a, sum, view) && adapt_gather_properties(a, view) &&
         adapt_gather_extra(a, view) && adapt_gather_items(a, view);
}
