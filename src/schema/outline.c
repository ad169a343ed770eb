/* Gathers what a compiled schema says about one place. */
#include "schema/outline.h"

#include <assert.h>

bool walk_spend(struct walk *walk, int64_t work) {
  walk->work -= work;
  if (walk->work < 0 && walk->status == SCHEMA_OK)
    walk->status = SCHEMA_TOO_COMPLEX;
  return walk->status == SCHEMA_OK;
}

void walk_init(struct walk *walk, const struct schema *schema) {
  assert(schema && schema->node_count > 0);
  size_t entries = schema->entry_count ? schema->entry_count : 1;
  *walk = (struct walk){.schema = schema, .work = OUTLINE_WORK_MAX, .status = SCHEMA_OK};
  walk->origin = arena_alloc(&walk->arena, schema->node_count * sizeof *walk->origin);
  walk->seen = arena_alloc(&walk->arena, entries * sizeof *walk->seen);
  for (uint32_t i = 0; i < schema->node_count; i++)
    walk->origin[i] = schema->nodes[i].entry;
  for (uint32_t i = 0; i < schema->entry_count; i++) {
    uint32_t node = schema->entries[i].node;
    if (node != NODE_NONE && node != NODE_TRUE)
      walk->origin[node] = i;
  }
}

void walk_deinit(struct walk *walk) {
  map_deinit(&walk->places);
  arena_deinit(&walk->arena);
}

struct place outline_place(struct walk *walk, uint32_t node) {
  if (node == NODE_TRUE || node == NODE_NONE)
    return (struct place){NULL, 0};
  uint32_t *copy = arena_alloc(&walk->arena, sizeof *copy);
  *copy = node;
  return (struct place){copy, 1};
}

struct place outline_root(struct walk *walk) {
  return outline_place(walk, walk->schema->root);
}

struct place outline_join(struct walk *walk, struct place a, struct place b) {
  if (!a.count)
    return b;
  if (!b.count)
    return a;
  uint32_t *nodes = arena_alloc(&walk->arena, ((size_t)a.count + b.count) * sizeof *nodes);
  walk_spend(walk, a.count + b.count);
  memcpy(nodes, a.nodes, a.count * sizeof *nodes);
  memcpy(nodes + a.count, b.nodes, b.count * sizeof *nodes);
  return (struct place){nodes, a.count + b.count};
}

/* Follows a dynamic reference to the root's resource if that has the anchor, as when one schema
 * extends another; otherwise to where it is defined. */
static uint32_t reference_target(const struct schema *s, const struct op *op) {
  if (op->code == OP_DYNAMIC_REF && s->dynamic) {
    uint32_t resource = s->nodes[s->root].resource;
    uint32_t node = s->dynamic[op->index * s->resource_count + resource];
    if (node != NODE_NONE)
      return node;
  }
  return op->node;
}

struct gathering {
  struct walk *walk;
  uint32_t *nodes;
  size_t count, capacity, ops;
};

static bool gather_add(struct gathering *g, uint32_t node) {
  struct walk *walk = g->walk;
  if (node == NODE_TRUE || node == NODE_NONE)
    return true;
  uint32_t entry = walk->schema->nodes[node].entry;
  if (walk->seen[entry] == walk->clock)
    return true;
  walk->seen[entry] = walk->clock;
  if (!walk_spend(walk, 1))
    return false;
  g->nodes = xgrow(g->nodes, &g->capacity, g->count + 1, sizeof *g->nodes);
  g->nodes[g->count++] = node;
  return true;
}

static bool gather_nodes(struct gathering *g, struct place place) {
  const struct schema *s = g->walk->schema;
  g->walk->clock++;
  for (uint32_t i = 0; i < place.count; i++)
    if (!gather_add(g, place.nodes[i]))
      return false;
  for (size_t i = 0; i < g->count; i++) { /* the list grows during the loop */
    const struct node *node = &s->nodes[g->nodes[i]];
    g->ops += node->count;
    for (uint32_t k = 0; k < node->count; k++) {
      const struct op *op = &s->ops[node->first + k];
      if ((op->code == OP_REF || op->code == OP_DYNAMIC_REF) &&
          !gather_add(g, reference_target(s, op)))
        return false;
      for (uint32_t m = 0; op->code == OP_ALL_OF && m < op->u.list->count; m++)
        if (!gather_add(g, op->u.list->nodes[m]))
          return false;
    }
  }
  return true;
}

/* --- fields --- */

static const struct property *declared(const struct object_op *o, const char *name, size_t length) {
  int64_t work = 0; /* nobody counts it here */
  const struct property *p = schema_find_property(o, name, length, &work);
  return p != NULL && p->node != NODE_NONE ? p : NULL;
}

static bool name_matches(struct walk *walk, const struct pattern *pattern, const char *name,
                         size_t length) {
  AUTO(pattern_scratch_deinit) struct pattern_scratch scratch = {0};
  enum pattern_result result = pattern_match(pattern, &scratch, name, length);
  walk_spend(walk, 1 + (int64_t)(scratch.cost / 16));
  return result == PATTERN_MATCH;
}

struct place outline_member(struct walk *walk, const struct outline *outline, const char *name,
                            size_t length) {
  struct place place = {NULL, 0};
  for (uint32_t i = 0; i < outline->op_count && walk->status == SCHEMA_OK; i++) {
    if (outline->ops[i]->code != OP_OBJECT)
      continue;
    const struct object_op *o = outline->ops[i]->u.object;
    const struct property *p = declared(o, name, length);
    bool found = p != NULL;
    if (p)
      place = outline_join(walk, place, outline_place(walk, p->node));
    for (uint32_t k = 0; k < o->pattern_count; k++)
      if (name_matches(walk, o->patterns[k].pattern, name, length)) {
        found = true;
        place = outline_join(walk, place, outline_place(walk, o->patterns[k].node));
      }
    if (!found)
      place = outline_join(walk, place, outline_place(walk, o->additional));
  }
  return place;
}

static bool add_field(struct walk *walk, struct outline *outline, struct map *names,
                      struct str name, bool is_declared, bool required) {
  uint32_t index = outline->field_count;
  if (!walk_spend(walk, 1))
    return false;
  if (map_add(names, &walk->arena, name, &index))
    outline->fields[outline->field_count++] =
        (struct outline_field){.name = name.p, .length = name.n};
  outline->fields[index].declared |= is_declared;
  outline->fields[index].required |= required;
  return true;
}

/* Adds what one object describes or, last, all that it names: what is only required comes behind
 * what another part describes, as in grammars and providers' schemas. */
static bool add_fields(struct walk *walk, struct outline *outline, struct map *names,
                       const struct object_op *o, bool last) {
  for (uint32_t i = 0; i < o->count; i++) {
    const struct property *p = &o->properties[i];
    if (p->node == NODE_NONE && !last)
      continue;
    if (!add_field(walk, outline, names, (struct str){p->name, p->length}, p->node != NODE_NONE,
                   p->required_bit != 0))
      return false;
  }
  for (uint32_t i = 0; i < o->required_rest_count && last; i++) {
    const struct enum_string *name = &o->required_rest[i];
    if (!add_field(walk, outline, names, (struct str){name->text, name->length}, false, true))
      return false;
  }
  return true;
}

/* The fields that the object keywords name, each once: there are at most as many as names. */
static bool find_fields(struct walk *walk, struct outline *outline) {
  size_t most = 0;
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_OBJECT)
      most += outline->ops[i]->u.object->count + outline->ops[i]->u.object->required_rest_count;
  outline->fields = arena_array(&walk->arena, most, sizeof *outline->fields);
  AUTO(map_deinit) struct map names = {0};
  bool ok = true;
  for (uint32_t i = 0; ok && i < 2 * outline->op_count; i++) {
    const struct op *op = outline->ops[i % outline->op_count];
    if (op->code == OP_OBJECT)
      ok = add_fields(walk, outline, &names, op->u.object, i >= outline->op_count);
  }
  for (uint32_t i = 0; ok && i < outline->field_count; i++) {
    struct outline_field *field = &outline->fields[i];
    field->place = outline_member(walk, outline, field->name, field->length);
  }
  return ok && walk->status == SCHEMA_OK;
}

/* --- the outline --- */

/* Returns the types that alternatives name. */
static unsigned forms_of(const struct schema *s, const struct op *op) {
  unsigned types = 0;
  if (op->code != OP_ANY_OF && op->code != OP_ONE_OF)
    return 0;
  for (uint32_t i = 0; i < op->u.list->count; i++) {
    uint32_t node = op->u.list->nodes[i];
    if (node < s->node_count && s->nodes[node].types != TYPE_ANY)
      types |= s->nodes[node].types;
  }
  return types;
}

bool outline_of(struct walk *walk, struct place place, struct outline *out) {
  assert(walk->schema && (place.count == 0 || place.nodes));
  struct gathering g = {.walk = walk};
  const struct schema *s = walk->schema;
  *out = (struct outline){.types = TYPE_ANY};
  if (walk->status != SCHEMA_OK)
    return false;
  bool ok = gather_nodes(&g, place) && walk_spend(walk, (int64_t)g.ops);
  uint32_t *nodes = NULL;
  if (ok) {
    nodes = arena_alloc(&walk->arena, g.count * sizeof *nodes);
    out->ops = arena_alloc(&walk->arena, g.ops * sizeof *out->ops);
  }
  for (size_t i = 0; ok && i < g.count; i++) {
    const struct node *node = &s->nodes[g.nodes[i]];
    nodes[i] = g.nodes[i];
    out->has_format |= json_is_string(outline_raw(walk, g.nodes[i], "format"));
    out->types &= node->types;
    for (uint32_t k = 0; k < node->count; k++) {
      const struct op *op = &s->ops[node->first + k];
      if (op->code == OP_FALSE)
        out->never = true;
      out->forms |= forms_of(s, op);
      if (op->code != OP_REF && op->code != OP_DYNAMIC_REF && op->code != OP_ALL_OF &&
          op->code != OP_FALSE)
        out->ops[out->op_count++] = op;
    }
  }
  if (ok)
    out->flat = (struct place){nodes, (uint32_t)g.count};
  free(g.nodes);
  out->never |= !(out->types & TYPE_ANY);
  return ok && find_fields(walk, out);
}

struct place outline_item(struct walk *walk, const struct outline *outline, size_t index) {
  struct place place = {NULL, 0};
  for (uint32_t i = 0; i < outline->op_count; i++) {
    if (outline->ops[i]->code != OP_ITEMS)
      continue;
    const struct items_op *o = outline->ops[i]->u.items;
    uint32_t node = index < o->prefix_count ? o->prefix[index] : o->rest;
    place = outline_join(walk, place, outline_place(walk, node));
  }
  return place;
}

uint32_t outline_prefix_count(const struct outline *outline) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < outline->op_count; i++)
    if (outline->ops[i]->code == OP_ITEMS && outline->ops[i]->u.items->prefix_count > most)
      most = outline->ops[i]->u.items->prefix_count;
  return most;
}

bool outline_accepts(struct walk *walk, struct place place, const json_t *value) {
  struct scope scope = {NULL, walk->schema->nodes[walk->schema->root].resource};
  struct vm vm = {.schema = walk->schema, .scope = &scope, .work = OUTLINE_CHECK_WORK};
  bool ok = walk->status == SCHEMA_OK;
  for (uint32_t i = 0; ok && i < place.count; i++)
    ok = schema_run_node(&vm, place.nodes[i], value, NULL);
  pattern_scratch_deinit(&vm.scratch);
  int64_t used = OUTLINE_CHECK_WORK - vm.work;
  return walk_spend(walk, used / 16 + 1) && ok && vm.trouble == SCHEMA_OK;
}

bool outline_is_false(const struct walk *walk, struct place place) {
  for (uint32_t i = 0; i < place.count; i++) {
    const struct node *node = &walk->schema->nodes[place.nodes[i]];
    if (node->count && walk->schema->ops[node->first].code == OP_FALSE)
      return true;
  }
  return false;
}

static unsigned types_of(const json_t *values) {
  unsigned types = 0;
  for (size_t i = 0, n = json_array_size(values); i < n; i++)
    types |= 1u << json_typeof(json_array_get(values, i));
  return types;
}

unsigned outline_hint(const struct outline *outline) {
  unsigned hint = outline->has_format ? 1 << JSON_STRING : 0, fixed = TYPE_ANY;
  bool is_fixed = false;
  for (uint32_t i = 0; i < outline->op_count; i++) {
    const struct op *op = outline->ops[i];
    if (op->code == OP_ENUM) {
      bool constant = !strcmp(op->keyword, "const");
      fixed &= constant ? 1u << json_typeof(op->u.options->all) : types_of(op->u.options->all);
      is_fixed = true;
    } else if (op->applies != TYPE_ANY) {
      hint |= op->applies;
    }
  }
  if (is_fixed)
    return fixed & outline->types;
  /* A keyword for one type does not narrow alternatives that name others. */
  return outline->forms & ~hint ? 0 : hint & outline->types;
}

const json_t *outline_raw(const struct walk *walk, uint32_t node, const char *keyword) {
  const struct schema *s = walk->schema;
  const json_t *value = json_object_get(s->entries[walk->origin[node]].schema, keyword);
  return value ? value : json_object_get(s->entries[s->nodes[node].entry].schema, keyword);
}

static const char *filled(const json_t *text) {
  const char *string = json_string_value(text);
  return string && *string ? string : NULL;
}

const char *outline_description(const struct walk *walk, struct place place,
                                const struct outline *outline) {
  static const char *const keywords[] = {"description", "title"};
  for (size_t k = 0; k < sizeof keywords / sizeof *keywords; k++) {
    for (uint32_t i = 0; i < place.count; i++) {
      const char *text = filled(outline_raw(walk, place.nodes[i], keywords[k]));
      if (text)
        return text;
    }
    for (uint32_t i = 0; i < outline->flat.count; i++) {
      const char *text = filled(outline_raw(walk, outline->flat.nodes[i], keywords[k]));
      if (text)
        return text;
    }
  }
  return NULL;
}

const char *outline_own_description(const struct walk *walk, struct place place) {
  const struct schema *s = walk->schema;
  for (uint32_t i = 0; i < place.count; i++) {
    uint32_t at = walk->origin[place.nodes[i]];
    const char *text = filled(json_object_get(s->entries[at].schema, "description"));
    if (text && at != s->nodes[place.nodes[i]].entry)
      return text;
  }
  return NULL;
}

struct place outline_target(struct walk *walk, struct place place) {
  struct place target = {NULL, 0};
  for (uint32_t i = 0; i < place.count; i++)
    target = outline_join(
        walk, target,
        outline_place(walk, walk->schema->entries[walk->schema->nodes[place.nodes[i]].entry].node));
  return target;
}

uint32_t outline_identity(struct walk *walk, struct place place) {
  buf_auto_t key = {0};
  uint32_t id = walk->places.count;
  if (!place.count || !walk_spend(walk, place.count))
    return NODE_NONE;
  for (uint32_t i = 0; i < place.count; i++)
    buf_append(&key, (const char *)&walk->schema->nodes[place.nodes[i]].entry, sizeof(uint32_t));
  map_add(&walk->places, &walk->arena, buf_view(&key), &id);
  return id;
}
