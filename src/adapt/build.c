/* Builds the schema of a place in the dialect, and the plan of its values. */
#include "adapt/internal.h"

#include "format/json_value.h"

#include <stdio.h>
#include <string.h>

enum {
  COMPARED_MAX = 1000, /* JSON values of an alternative that is looked for among the others */
  INLINE_MAX = 500,    /* JSON values of a definition that is copied to get its own description */
  NAME_BYTES_MAX = 56, /* the most of a definition's name */
  PRODUCT_MAX = 64     /* alternatives of one place, multiplied out */
};

uint32_t adapt_plan_new(struct adapter *a, enum plan_kind kind) {
  struct adapted *out = a->out;
  out->plans = xgrow(out->plans, &out->plan_capacity, out->plan_count + 1, sizeof *out->plans);
  out->plans[out->plan_count] = (struct adapt_plan){.kind = kind, .rest = PLAN_NONE};
  return (uint32_t)out->plan_count++;
}

/* --- alternatives --- */

static void plan_branches(struct adapter *a, uint32_t plan, const struct plan_branch *branches,
                          size_t count) {
  struct plan_branch *copy = arena_array(&a->out->arena, count, sizeof *copy);
  memcpy(copy, branches, count * sizeof *copy);
  for (size_t i = 0; i < count; i++)
    adapt_keep(a, copy[i].shape);
  a->out->plans[plan].branches = copy;
  a->out->plans[plan].count = (uint32_t)count;
}

/* Joins a list of schemas, which it takes. A single one stands for itself, and gets title and
 * description if it has none. */
static struct built sums_join(struct adapter *a, json_t *list, const struct plan_branch *branches,
                              const struct adapt_view *view, struct adapt_words *words) {
  size_t count = json_array_size(list);
  struct built built = {NULL, PLAN_NONE};
  bool same = true;
  if (count == 1) {
    json_t *only = json_array_get(list, 0);
    built = (struct built){json_clone_top(only), branches[0].plan};
    if (!json_object_get(only, "$ref") && !json_object_get(only, "description"))
      adapt_words_put(built.schema, view, words);
  } else if (count > 1) {
    for (size_t i = 0; i < count; i++)
      same = same && adapt_plan_same(a, branches[i].plan);
    built = (struct built){json_object(), adapt_plan_new(a, same ? PLAN_SAME : PLAN_UNION)};
    adapt_put(built.schema, "anyOf", json_incref(list));
    if (!same)
      plan_branches(a, built.plan, branches, count);
    adapt_words_put(built.schema, view, words);
  }
  buf_deinit(&words->text);
  json_decref(list);
  return built;
}

struct built adapt_union(struct adapter *a, const struct sum *sums, size_t count,
                         const struct adapt_view *view, struct adapt_words *words) {
  struct plan_branch branches[ADAPT_BRANCHES_MAX + 1];
  json_t *list = json_array();
  for (size_t i = 0; i < count && !adapter_stopped(a); i++) {
    struct built built = adapt_build(a, &sums[i]);
    size_t at = json_array_size(list), k = 0;
    if (!built.schema)
      continue;
    bool comparable =
        adapt_plan_same(a, built.plan) && adapt_size(built.schema, COMPARED_MAX) <= COMPARED_MAX;
    while (comparable && k < at && !json_same(json_array_get(list, k), built.schema))
      k++;
    if (!comparable || k == at) {
      branches[at] = (struct plan_branch){built.plan, sums[i], built.schema, NODE_NONE};
      json_array_append_new(list, json_incref(built.schema));
    }
    json_decref(built.schema);
  }
  return sums_join(a, list, branches, view, words);
}

static bool asks_for_nothing(const struct adapt_view *view) {
  return !view->typed && !view->word_count && !view->property_count && !view->pattern_count &&
         view->extra_open && view->items_open && !view->items_closed && !view->prefix_count &&
         !view->extra.count;
}

static void group_words(struct adapter *a, const struct view_group *group,
                        struct adapt_words *words) {
  const json_t *schema = a->out->canonical->entries[group->entry].schema;
  const struct keyword *keyword = schema_keyword_find(group->keyword, 7);
  struct view_word word = {(enum keyword_id)keyword->id, keyword,
                           json_object_get(schema, group->keyword), group->entry};
  if (word.id == K_ONE_OF && group->count == 1)
    return;
  const char *why = "an anyOf: which one applies is not enforced";
  if (word.id == K_ONE_OF)
    why = "an anyOf: that only one applies is not enforced";
  adapt_words_keyword(a, words, &word, why);
}

static struct built build_groups(struct adapter *a, const struct adapt_view *view,
                                 struct adapt_words *words) {
  struct built none = {NULL, PLAN_NONE};
  struct sum sums[PRODUCT_MAX];
  size_t product = 1, groups = view->group_count;
  bool bare = asks_for_nothing(view);
  for (size_t g = 0; g < groups; g++) {
    const struct view_group *group = &view->groups[g];
    if (product * group->count > PRODUCT_MAX) {
      adapt_fail(a, ADAPT_TOO_COMPLEX, group->entry, group->keyword,
                 "more than %d combinations of alternatives", (int)PRODUCT_MAX);
      return none;
    }
    product *= group->count;
    if (strcmp(group->keyword, "anyOf") != 0)
      group_words(a, group, words);
  }
  memset(sums, 0, product * sizeof *sums);
  for (size_t i = 0; i < product; i++) {
    struct sum *sum = &sums[i];
    for (uint32_t k = 0; !bare && k < view->flat.count; k++)
      if (!adapt_sum_add(a, sum, view->flat.items[k].entry, ITEM_PLAIN))
        return none;
    for (size_t g = 0, rest = i; g < groups; rest /= view->groups[g].count, g++) {
      const struct sum *branch = &view->groups[g].branches[rest % view->groups[g].count];
      sum->never = sum->never || branch->never;
      for (uint32_t k = 0; k < branch->count; k++)
        if (!adapt_sum_add(a, sum, branch->items[k].entry, branch->items[k].flags))
          return none;
    }
  }
  return adapt_union(a, sums, product, view, words);
}

/* --- types --- */

/* Builds a place that takes any value. `own` says that the entry is the place itself, not the one
 * that holds it. */
static struct built any_value(struct adapter *a, uint32_t entry, bool own,
                              struct adapt_words *words) {
  static const char *const all[] = {"object", "array", "string", "number", "boolean", "null"};
  if (!adapt_has(a, ADAPT_FREE)) {
    adapt_words_add(words, "any JSON value, written as JSON text");
    adapt_changed(a, entry, own ? "type" : "", NULL, ADAPT_REWRITTEN, "any value, as JSON text");
    return (struct built){adapt_typed("string"), adapt_plan_new(a, PLAN_TEXT)};
  }
  json_t *schema = json_object(), *list = json_array();
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    json_array_append_new(list, json_string_nocheck(all[i]));
  adapt_put(schema, "type", list);
  return (struct built){schema, adapt_plan_new(a, PLAN_SAME)};
}

static void words_about(struct adapter *a, const struct adapt_view *view, unsigned types,
                        json_t *schema, struct adapt_words *words) {
  for (size_t i = 0; i < view->word_count && !adapter_stopped(a); i++)
    if (adapt_keyword_types(view->words[i].id) & types)
      adapt_keyword(a, schema, words, &view->words[i], types);
}

static struct built scalar_of(struct adapter *a, const struct adapt_view *view, unsigned types,
                              struct adapt_words *words) {
  json_t *schema = json_object();
  adapt_put_type(schema, types);
  words_about(a, view, types, schema, words);
  return (struct built){schema, adapt_plan_new(a, PLAN_SAME)};
}

/* Builds the types one by one, each with its own words. */
static struct built build_parts(struct adapter *a, const struct sum *sum,
                                const struct adapt_view *view, struct adapt_words *words) {
  unsigned scalars = view->types & (T_STRING | T_NUMBER | T_BOOLEAN), parts[5];
  struct plan_branch branches[5];
  json_t *list = json_array();
  size_t count = 0, built_count = 0;
  if (view->types & T_OBJECT)
    parts[count++] = T_OBJECT;
  if (view->types & T_ARRAY)
    parts[count++] = T_ARRAY;
  if (scalars && (adapt_has(a, ADAPT_TYPE_LIST) || adapt_single(scalars))) {
    parts[count++] = scalars;
  } else if (scalars) {
    const unsigned each[] = {T_STRING, scalars & T_NUMBER, T_BOOLEAN};
    for (size_t i = 0; i < 3; i++)
      if (scalars & each[i])
        parts[count++] = each[i];
  }
  for (size_t i = 0; i < count && !adapter_stopped(a); i++) {
    struct adapt_words own = {0};
    struct built built;
    if (parts[i] == T_OBJECT)
      built = adapt_object_of(a, view, &own);
    else if (parts[i] == T_ARRAY)
      built = adapt_array_of(a, view, &own);
    else
      built = scalar_of(a, view, parts[i], &own);
    if (!built.schema) {
      buf_deinit(&own.text);
      continue;
    }
    if (own.count || count > 1) {
      const struct adapt_view silent = {0};
      if (count == 1) {
        if (words->count && own.text.p)
          buf_puts(&words->text, "; ");
        if (own.text.p)
          buf_append(&words->text, own.text.p, own.text.n);
        words->count += own.count;
        buf_deinit(&own.text);
      } else {
        adapt_words_put(built.schema, &silent, &own);
      }
    }
    branches[built_count++] = (struct plan_branch){built.plan, *sum, built.schema, NODE_NONE};
    json_array_append_new(list, built.schema);
  }
  return sums_join(a, list, branches, view, words);
}

/* Returns the first entry or, for a `true`, which has no place of its own, the schema that holds
 * it. */
static uint32_t first_entry(const struct adapter *a, const struct adapt_view *view) {
  return view->flat.count ? view->flat.items[0].entry : a->place;
}

static struct built build_types(struct adapter *a, const struct sum *sum,
                                const struct adapt_view *view, struct adapt_words *words) {
  struct built built = {NULL, PLAN_NONE};
  for (size_t i = 0; i < view->word_count; i++) /* about values of any type */
    if (!adapt_keyword_types(view->words[i].id))
      adapt_words_keyword(a, words, &view->words[i], "the keyword is not supported");
  if (view->types == T_ALL &&
      (!view->typed || (view->word_count == 0 && !view->property_count && view->items_open &&
                        !view->items_closed && !view->prefix_count && view->extra_open))) {
    built = any_value(a, first_entry(a, view), view->flat.count > 0, words);
    adapt_words_put(built.schema, view, words);
    return built;
  }
  if (!view->typed)
    adapt_changed(a, first_entry(a, view), "type", NULL, ADAPT_NARROWED,
                  "no type is given: taken to be what the keywords are about");
  if (view->types & ~(unsigned)T_NULL)
    built = build_parts(a, sum, view, words);
  if (view->types & T_NULL && !adapter_stopped(a)) {
    bool only = !built.schema;
    built.schema = adapt_nullable(a, built.schema);
    if (only) {
      built.plan = adapt_plan_new(a, PLAN_SAME);
      adapt_words_put(built.schema, view, words);
    }
  }
  buf_deinit(&words->text);
  return built;
}

/* --- places --- */

/* Returns a new name of letters, digits, '_' and '-'. */
static const char *name_new(struct adapter *a, uint32_t entry) {
  const struct schema *s = a->out->canonical;
  const char *suffix = s->entries[entry].suffix, *last = strrchr(suffix, '/');
  char name[NAME_BYTES_MAX + 16];
  size_t n = 0;
  uint32_t taken = 1;
  for (const char *p = last ? last + 1 : ""; *p && n < NAME_BYTES_MAX; p++) {
    bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z');
    name[n++] = plain || *p == '-' ? *p : '_';
  }
  if (n == 0)
    n = (size_t)snprintf(name, sizeof name, "root");
  name[n] = '\0';
  for (unsigned i = 2; !map_add(&a->names, &a->out->arena, str_from(name), &taken); i++)
    snprintf(name + n, sizeof name - n, "_%u", i);
  return arena_strdup(&a->out->arena, name);
}

static json_t *reference_to(struct adapter *a, uint32_t unit) {
  char reference[NAME_BYTES_MAX + 32];
  json_t *schema = json_object();
  if (!a->units[unit].name) {
    const struct sum *sum = &a->units[unit].sum;
    a->units[unit].name = name_new(a, sum->count ? sum->items[sum->count - 1].entry : 0);
  }
  snprintf(reference, sizeof reference, "#/$defs/%s", a->units[unit].name);
  adapt_put(schema, "$ref", json_string_nocheck(reference));
  return schema;
}

static uint32_t unit_of(struct adapter *a, const struct sum *sum);

/* Builds a place that is a reference: it stays one unless it adds something of its own. */
static struct built build_reference(struct adapter *a, const struct adapt_view *view,
                                    struct adapt_words *words) {
  struct sum target = {0};
  struct built built = {NULL, PLAN_NONE};
  if (!adapt_sum_add(a, &target, view->reference, 0))
    return built;
  uint32_t index = unit_of(a, &target);
  if (index == UINT32_MAX || a->units[index].state == UNIT_NEVER)
    return built;
  built.plan = a->units[index].plan;
  bool done = a->units[index].state == UNIT_DONE;
  if (done && json_object_get(a->units[index].schema, "$ref")) {
    built.schema = json_incref(a->units[index].schema);
  } else if (done && (view->description || view->default_value) &&
             a->units[index].size <= INLINE_MAX) {
    built.schema = json_clone_top(a->units[index].schema);
    const char *below = json_string_value(json_object_get(built.schema, "description"));
    struct adapt_view own = *view;
    if (!own.description)
      own.description = below;
    adapt_words_put(built.schema, &own, words);
  } else {
    built.schema = reference_to(a, index);
  }
  return built;
}

static struct built build_view(struct adapter *a, const struct sum *sum) {
  struct built built = {NULL, PLAN_NONE};
  struct adapt_view view;
  struct adapt_words words = {0};
  if (!adapt_view(a, sum, &view) || view.never)
    return built;
  if (view.reference != NODE_NONE)
    built = build_reference(a, &view, &words);
  else if (view.options)
    built = json_array_size(view.options) ? adapt_options_of(a, &view, &words) : built;
  else if (view.group_count)
    built = build_groups(a, &view, &words);
  else
    built = build_types(a, sum, &view, &words);
  buf_deinit(&words.text);
  return built;
}

static struct str sum_key(const struct sum *sum) {
  return (struct str){sum->count ? (const char *)sum->items : "", sum->count * sizeof *sum->items};
}

static bool unit_open(struct adapter *a, const struct sum *sum, uint32_t *index) {
  if (a->unit_count >= ADAPT_UNITS_MAX)
    return adapt_fail(a, ADAPT_TOO_COMPLEX, NODE_NONE, "", "too many subschemas");
  a->units = xgrow(a->units, &a->unit_capacity, a->unit_count + 1, sizeof *a->units);
  map_put(&a->known, &a->out->arena, sum_key(sum), (uint32_t)a->unit_count);
  uint32_t plan = adapt_plan_new(a, PLAN_OPEN);
  *index = (uint32_t)a->unit_count++;
  a->units[*index] =
      (struct unit){.sum = *sum, .state = UNIT_OPEN, .plan = plan, .descents = a->descents};
  return true;
}

/* Returns the unit of the sum and builds it if need be; UINT32_MAX after a failure. */
static uint32_t unit_of(struct adapter *a, const struct sum *sum) {
  uint32_t index, entry = sum->count ? sum->items[sum->count - 1].entry : NODE_NONE;
  if (adapter_stopped(a))
    return UINT32_MAX;
  if (map_get(&a->known, sum_key(sum), &index)) {
    struct unit *unit = &a->units[index];
    a->size += unit->size;
    if (a->size > ADAPT_SIZE_MAX)
      adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "the adapted schema would be too large");
    if (unit->state != UNIT_OPEN)
      return adapter_stopped(a) ? UINT32_MAX : index;
    a->recursions++;
    if (unit->descents == a->descents)
      adapt_fail(a, ADAPT_UNSUPPORTED, a->place, "$ref", "the schema refers to itself in place");
    else if (a->dialect->recursion == RECURSION_NONE)
      adapt_fail(a, ADAPT_UNSUPPORTED, a->place, "$ref",
                 "the schema refers to itself, and %s takes no recursive schemas",
                 a->dialect->name);
    return adapter_stopped(a) ? UINT32_MAX : index;
  }
  if (a->depth >= ADAPT_DEPTH_MAX) {
    adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "subschemas are nested more than %d levels deep",
               (int)ADAPT_DEPTH_MAX);
    return UINT32_MAX;
  }
  if (!unit_open(a, sum, &index))
    return UINT32_MAX;
  uint32_t place = a->place;
  if (sum->count)
    a->place = sum->items[0].entry;
  a->depth++;
  struct built built = build_view(a, sum);
  a->depth--;
  a->place = place;
  struct unit *unit = &a->units[index]; /* they may have moved */
  unit->schema = built.schema;
  unit->state = built.schema ? UNIT_DONE : UNIT_NEVER;
  if (adapter_stopped(a))
    return UINT32_MAX;
  unit->size = adapt_size(built.schema, ADAPT_SIZE_MAX);
  if (unit->size > ADAPT_SIZE_MAX) {
    adapt_fail(a, ADAPT_TOO_COMPLEX, entry, "", "the adapted schema would be too large");
    return UINT32_MAX;
  }
  if (built.plan != PLAN_NONE && a->out->plans[built.plan].kind == PLAN_OPEN)
    unit->plan = built.plan; /* that of a place further up */
  else if (built.plan != PLAN_NONE)
    a->out->plans[unit->plan] = a->out->plans[built.plan];
  return index;
}

struct built adapt_build(struct adapter *a, const struct sum *sum) {
  struct built built = {NULL, PLAN_NONE};
  if (sum->never)
    return built;
  uint32_t index = unit_of(a, sum);
  if (index == UINT32_MAX || a->units[index].state == UNIT_NEVER)
    return built;
  built.plan = a->units[index].plan;
  if (a->units[index].state == UNIT_OPEN)
    built.schema = reference_to(a, index);
  else
    built.schema = json_incref(a->units[index].schema);
  return built;
}
