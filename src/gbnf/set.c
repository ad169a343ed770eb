/* Makes nonterminals: sets of schemas that one value must match. */
#include "gbnf/internal.h"

#include <assert.h>
#include <stdlib.h>

static int by_entry(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

struct gb_set gb_set_of(uint32_t *entries, size_t count) {
  struct gb_set set = {entries, 0, false};
  if (count)
    qsort(entries, count, sizeof *entries, by_entry);
  for (size_t i = 0; i < count; i++)
    if (!set.count || entries[set.count - 1] != entries[i])
      entries[set.count++] = entries[i];
  return set;
}

void gb_rule_name(char out[GB_NAME_BYTES], const char *name) {
  size_t n = 0;
  for (const char *p = name; *p && n < GB_NAME_BYTES - 10; p++) {
    bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    if (plain || (n && out[n - 1] != '-'))
      out[n++] = plain ? *p : '-';
  }
  while (n && out[n - 1] == '-')
    n--;
  out[n] = '\0';
  if (!n)
    memcpy(out, "item", 5);
}

const struct gb_node *gb_set_node(struct gb *g, const struct gb_set *set, const char *name) {
  assert(set->never || set->count == 0 || set->entries);
  char plain[GB_NAME_BYTES];
  uint32_t rule;
  if (set->never)
    return &gb_never;
  if (!set->count)
    return gb_primitive(g, "value");
  struct str text = {(const char *)set->entries, set->count * sizeof *set->entries};
  if (map_get(&g->sets, text, &rule))
    return gb_ref(g, rule);
  gb_rule_name(plain, name);
  if (!gb_rule_new(g, plain, NULL, &rule))
    return NULL;
  map_put(&g->sets, &g->arena, text, rule);
  g->jobs = xgrow(g->jobs, &g->job_capacity, g->job_count + 1, sizeof *g->jobs);
  g->jobs[g->job_count++] = (struct gb_job){*set, rule};
  return gb_ref(g, rule);
}

bool gb_matches(struct gb *g, const struct gb_set *set, const json_t *value) {
  const struct schema *s = g->compiler.schema;
  for (size_t i = 0; i < set->count; i++) {
    uint32_t node = s->entries[set->entries[i]].node;
    struct vm vm = {.schema = s, .work = SCHEMA_WORK_MAX / 20};
    if (node == NODE_NONE)
      continue;
    bool ok = schema_run_node(&vm, node, value, NULL);
    pattern_scratch_deinit(&vm.scratch);
    if (!gb_spend(g, (SCHEMA_WORK_MAX / 20 - vm.work) / 8 + 1))
      return false;
    if (vm.trouble != SCHEMA_OK || vm.work < 0)
      return gb_too_complex(g, "a value takes too much work to check");
    if (!ok)
      return false;
  }
  return true;
}

static bool unconstrained(const struct gb_shape *s) {
  return s->types == T_ALL && !s->integral && !s->minimum && !s->maximum && !s->min_length.value &&
         s->max_length.value == UINT64_MAX && !s->min_items.value &&
         s->max_items.value == UINT64_MAX && !s->min_members.value &&
         s->max_members.value == UINT64_MAX && !s->finite && !s->not_values && !s->patterns &&
         !s->formats && !s->items && !s->members && !s->required && !s->forbidden && !s->names &&
         !s->multiples && !s->unique && !s->contains;
}

static const struct gb_node *shape_node(struct gb *g, const struct gb_shape *shape,
                                        const char *name) {
  const struct gb_node *kids[8];
  size_t n = 0;
  if (unconstrained(shape))
    return gb_primitive(g, "value");
  if (shape->types & T_OBJECT)
    kids[n++] = gb_object(g, shape, name);
  if (shape->types & T_ARRAY)
    kids[n++] = gb_array(g, shape, name);
  if (shape->types & T_STRING)
    kids[n++] = gb_string(g, shape, name);
  if (shape->types & T_NUMBER)
    kids[n++] = gb_number(g, shape);
  if ((shape->types & (T_TRUE | T_FALSE)) == (T_TRUE | T_FALSE))
    kids[n++] = gb_primitive(g, "boolean");
  else if (shape->types & (T_TRUE | T_FALSE))
    kids[n++] = gb_word(g, shape->types & T_TRUE ? "true" : "false");
  if (shape->types & T_NULL)
    kids[n++] = gb_primitive(g, "null");
  return gb_list(g, GB_ALT, kids, n);
}

/* Makes all values of all shapes that the set as a whole accepts: no keyword is left to the
 * validator. */
static const struct gb_node *values_node(struct gb *g, const struct gb_set *set,
                                         const struct gb_shapes *shapes, size_t *done) {
  struct map seen = {0};
  size_t count = 0, room = 0;
  for (size_t i = 0; i < shapes->count; i++)
    room += shapes->items[i].finite ? gb_link_count(shapes->items[i].values) : 0;
  const struct gb_node **kids = gb_get(g, (room + 1) * sizeof *kids);
  for (size_t i = 0; kids && i < shapes->count; i++) {
    const struct gb_shape *shape = &shapes->items[i];
    *done += shape->finite;
    for (const struct gb_link *v = shape->finite ? shape->values : NULL; v; v = v->next) {
      uint32_t known = 1;
      if (!map_add(&seen, &g->arena, MAP_KEY(v->value), &known))
        continue;
      if (g->status == GBNF_OK && gb_matches(g, set, v->value))
        kids[count++] = gb_value_literal(g, v->value, shape->integral);
      if (g->status != GBNF_OK)
        break;
    }
  }
  map_deinit(&seen);
  return kids && g->status == GBNF_OK ? gb_list(g, GB_ALT, kids, count) : NULL;
}

static const struct gb_node *set_body(struct gb *g, const struct gb_set *set,
                                      const struct gb_shapes *shapes, const char *name) {
  size_t finite = 0, count = 0;
  const struct gb_node **kids = gb_get(g, (shapes->count + 1) * sizeof *kids);
  if (!kids)
    return NULL;
  kids[count++] = values_node(g, set, shapes, &finite);
  for (size_t i = 0; i < shapes->count && g->status == GBNF_OK; i++)
    if (!shapes->items[i].finite)
      kids[count++] = shape_node(g, &shapes->items[i], name);
  return g->status == GBNF_OK ? gb_list(g, GB_ALT, kids, count) : NULL;
}

bool gb_sets_build(struct gb *g) {
  struct gb_shapes shapes = {0};
  while (g->status == GBNF_OK && g->job_done < g->job_count) {
    struct gb_job job = g->jobs[g->job_done++];
    if (!gb_shapes_of(g, &job.set, &shapes))
      break;
    const struct gb_node *node = set_body(g, &job.set, &shapes, g->rules[job.rule].name);
    if (!node)
      break;
    g->rules[job.rule].node = node;
  }
  free(shapes.items);
  assert(g->status != GBNF_OK || g->job_done == g->job_count);
  return g->status == GBNF_OK;
}
