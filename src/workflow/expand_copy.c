/* Copies a file's movements into the place where it is called, with their full names, what params
 * say, and what fragments and the file itself give them. */
#include "workflow/expand_part.h"

#include "workflow/parse/part.h"

#include <string.h>

/* --- nodes --- */

static struct yaml_node *expand_node(struct expand *e, const struct yaml_node *like,
                                     const struct yaml_origin *origin) {
  struct yaml_node *copy = arena_alloc(e->p->arena, sizeof *copy);
  *copy = *like;
  copy->origin = origin;
  if (++e->node_count > LIMIT_YAML_NODE_COUNT && !e->full) {
    e->full = true;
    REPORT(e->p, like, "with all that it calls the workflow has over %u values: split it",
           LIMIT_YAML_NODE_COUNT);
  }
  return copy;
}

static void expand_set_text(struct expand *e, struct yaml_node *node, struct str text) {
  if (str_eq(node->text, text))
    return;
  node->text = arena_str(e->p->arena, text);
  node->text_shift = -1;
}

const struct yaml_node *expand_plain(struct expand *e, const struct yaml_origin *origin,
                                     const struct yaml_node *node) {
  struct yaml_node *copy = expand_node(e, node, origin);
  if (e->full || node->count == 0)
    return copy;
  if (node->kind == YAML_LIST)
    copy->items = arena_array(e->p->arena, node->count, sizeof *copy->items);
  else
    copy->pairs = arena_array(e->p->arena, node->count, sizeof *copy->pairs);
  for (size_t i = 0; i < node->count; i++) {
    if (node->kind == YAML_LIST) {
      copy->items[i] = expand_plain(e, origin, node->items[i]);
      continue;
    }
    copy->pairs[i].key = expand_node(e, node->pairs[i].key, origin);
    copy->pairs[i].value = expand_plain(e, origin, node->pairs[i].value);
  }
  return copy;
}

const struct yaml_node *expand_get(const struct key_set *set, const struct yaml_node *map,
                                   const char *key) {
  const struct key *wanted = key_find(set, str_from(key));
  for (size_t i = 0; map->kind == YAML_MAP && i < map->count; i++)
    if (key_find(set, map->pairs[i].key->text) == wanted)
      return map->pairs[i].value;
  return NULL;
}

/* --- texts --- */

static struct str put_names(struct expand *e, const struct instance *x, enum scope_place place,
                            const struct yaml_node *node) {
  struct buf text = {0};
  struct err err;
  struct str done = node->text;
  if (memchr(node->text.p, '{', node->text.n) == NULL)
    return done;
  if (scope_text(&x->origin.scope, place, node->text, &text, &err))
    done = arena_str(e->p->arena, buf_view(&text));
  else
    REPORT(e->p, node, "%s", err.text);
  buf_deinit(&text);
  return done;
}

struct str expand_text(struct expand *e, const struct instance *x, const struct yaml_node *node) {
  return put_names(e, x, SCOPE_TEXT, node);
}

/* Returns the name that something of `x` has in the flat workflow. */
static struct str put_prefix(struct expand *e, const struct instance *x, struct str name) {
  struct buf full = {0};
  buf_str(&full, x->origin.scope.prefix);
  buf_str(&full, name);
  struct str done = arena_str(e->p->arena, buf_view(&full));
  buf_deinit(&full);
  return done;
}

/* --- maps of known keys --- */

static const struct yaml_node *copy_map(struct expand *e, const struct instance *x,
                                        const struct key_set *set, const struct yaml_node *map);
static const struct yaml_node *copy_movement(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement, bool child);

/* Copies a value of no particular kind, with the texts in it, lists and maps included. */
static const struct yaml_node *copy_texts(struct expand *e, const struct instance *x,
                                          enum scope_place place, const struct yaml_node *node) {
  struct yaml_node *copy = expand_node(e, node, &x->origin.base);
  if (e->full)
    return copy;
  if (node->kind == YAML_TEXT)
    expand_set_text(e, copy, put_names(e, x, place, node));
  if (node->kind == YAML_LIST && node->count > 0)
    copy->items = arena_array(e->p->arena, node->count, sizeof *copy->items);
  if (node->kind == YAML_MAP && node->count > 0)
    copy->pairs = arena_array(e->p->arena, node->count, sizeof *copy->pairs);
  for (size_t i = 0; i < node->count && node->kind == YAML_LIST; i++)
    copy->items[i] = copy_texts(e, x, place, node->items[i]);
  for (size_t i = 0; i < node->count && node->kind == YAML_MAP; i++) {
    copy->pairs[i].key = expand_node(e, node->pairs[i].key, &x->origin.base);
    copy->pairs[i].value = copy_texts(e, x, place, node->pairs[i].value);
  }
  return copy;
}

static const struct yaml_node *copy_condition(struct expand *e, const struct instance *x,
                                              const struct yaml_node *node) {
  struct yaml_node *copy = expand_node(e, node, &x->origin.base);
  struct str text;
  struct err err;
  if (node->kind != YAML_TEXT)
    return copy;
  if (!scope_condition(&x->origin.scope, e->p->arena, node->text, &text, &err))
    REPORT(e->p, node, "%s", err.text);
  else
    expand_set_text(e, copy, text);
  return copy;
}

static const struct yaml_node *copy_list(struct expand *e, const struct instance *x,
                                         const struct key_set *set, const struct yaml_node *list) {
  struct yaml_node *copy = expand_node(e, list, &x->origin.base);
  if (e->full || list->kind != YAML_LIST || list->count == 0)
    return list->kind == YAML_LIST ? copy : expand_plain(e, &x->origin.base, list);
  copy->items = arena_array(e->p->arena, list->count, sizeof *copy->items);
  for (size_t i = 0; i < list->count; i++) {
    if (set == &movement_keys)
      copy->items[i] = copy_movement(e, x, list->items[i], true);
    else
      copy->items[i] = copy_map(e, x, set, list->items[i]);
  }
  return copy;
}

/* Copies a text that leads somewhere, as `next` of a rule does. */
static const struct yaml_node *copy_lead(struct expand *e, const struct instance *x,
                                         const struct yaml_node *node) {
  const struct yaml_node key = {.kind = YAML_TEXT, .text = STR("next")};
  struct yaml_pair pair = {&key, node};
  const struct yaml_node rule = {
      .kind = YAML_MAP, .line = node->line, .column = node->column, .count = 1, .pairs = &pair};
  struct yaml_node *copy = expand_node(e, node, &x->origin.base);
  expand_set_text(e, copy, expand_target(e, x, &rule));
  return copy;
}

static const struct yaml_node *copy_value(struct expand *e, const struct instance *x,
                                          const struct key *k, const struct yaml_node *node) {
  if (k == NULL || k->type == KEY_FACET || k->type == KEY_SECTION || k->type == KEY_NOTED ||
      (k->type == KEY_SCHEMA && node->kind == YAML_MAP))
    return expand_plain(e, &x->origin.base, node);
  if (k->type == KEY_SET)
    return copy_map(e, x, k->set, node);
  if (k->type == KEY_SET_LIST)
    return copy_list(e, x, k->set, node);
  if (k->type == KEY_CONDITION)
    return copy_condition(e, x, node);
  bool names = k->type == KEY_ITEMS || strcmp(k->name, "integrate") == 0;
  if (names && node->kind == YAML_TEXT) { /* names of movements of this file */
    struct yaml_node *copy = expand_node(e, node, &x->origin.base);
    expand_set_text(e, copy, put_prefix(e, x, expand_text(e, x, node)));
    return copy;
  }
  if (strcmp(k->name, "on_reject") == 0 && node->kind == YAML_TEXT)
    return copy_lead(e, x, node);
  enum scope_place place = SCOPE_TEXT;
  if (k->type == KEY_OUTPUTS || strcmp(k->name, "question") == 0) /* these are templates */
    place = SCOPE_INSTRUCTION;
  else if (strcmp(k->name, "cwd") == 0)
    place = SCOPE_PATH;
  return copy_texts(e, x, place, node);
}

static struct yaml_node *named(struct expand *e, const struct yaml_node *like, const char *word) {
  struct yaml_node *node = expand_node(e, like, like->origin);
  node->kind = YAML_TEXT;
  expand_set_text(e, node, str_from(word));
  return node;
}

/* Sets `next` of the copied rule, whichever key the file uses for it. */
static void copy_target(struct expand *e, const struct instance *x, const struct yaml_node *rule,
                        struct yaml_node *copy) {
  const struct yaml_node *next = yaml_get(rule, "next"), *back = yaml_get(rule, "return");
  for (size_t i = 0; i < copy->count; i++) {
    bool is_next = str_eq_c(copy->pairs[i].key->text, "next");
    if (!is_next && !str_eq_c(copy->pairs[i].key->text, "return"))
      continue;
    if (next != NULL && back != NULL && !is_next)
      REPORT(e->p, copy->pairs[i].key, "a rule leads somewhere or returns: remove next or return");
    if (copy->pairs[i].value->kind != YAML_TEXT)
      continue;
    struct yaml_node *to = named(e, copy->pairs[i].value, "");
    expand_set_text(e, to, expand_target(e, x, rule));
    copy->pairs[i].key = named(e, copy->pairs[i].key, "next");
    copy->pairs[i].value = to;
  }
  if (next != NULL && back != NULL)
    copy->count = 0; /* the error was reported */
}

static const struct yaml_node *copy_map(struct expand *e, const struct instance *x,
                                        const struct key_set *set, const struct yaml_node *map) {
  if (map->kind != YAML_MAP)
    return expand_plain(e, &x->origin.base, map);
  struct yaml_node *copy = expand_node(e, map, &x->origin.base);
  if (e->full || map->count == 0)
    return copy;
  copy->pairs = arena_array(e->p->arena, map->count, sizeof *copy->pairs);
  for (size_t i = 0; i < map->count; i++) {
    const struct yaml_node *key = map->pairs[i].key;
    copy->pairs[i].key = expand_node(e, key, &x->origin.base);
    copy->pairs[i].value = copy_value(e, x, key_find(set, key->text), map->pairs[i].value);
  }
  if (set == &rule_keys)
    copy_target(e, x, map, copy);
  return copy;
}

/* --- movements --- */

const struct yaml_node *expand_name(struct expand *e, const struct yaml_node *movement) {
  const struct yaml_node *name = yaml_get(movement, "name"), *uses = yaml_get(movement, "uses");
  if (name != NULL || uses == NULL || uses->kind != YAML_TEXT)
    return name;
  struct str last = uses->text;
  const char *slash = memrchr(last.p, '/', last.n);
  if (slash != NULL)
    last = (struct str){slash + 1, last.n - (size_t)(slash - last.p) - 1};
  const char *dot = memrchr(last.p, '.', last.n);
  if (dot != NULL)
    last.n = (size_t)(dot - last.p);
  struct yaml_node *made = expand_node(e, uses, uses->origin);
  expand_set_text(e, made, last);
  return made;
}

/* Adds a pair at the end, or in place of the one with that key. */
static void put_pair(struct expand *e, struct yaml_node *map, const struct yaml_node *key,
                     const struct yaml_node *value) {
  for (size_t i = 0; i < map->count; i++)
    if (str_eq(map->pairs[i].key->text, key->text)) {
      map->pairs[i].value = value;
      return;
    }
  struct yaml_pair *wider = arena_array(e->p->arena, map->count + 1, sizeof *wider);
  if (map->count > 0)
    memcpy(wider, map->pairs, map->count * sizeof *wider);
  wider[map->count++] = (struct yaml_pair){key, value};
  map->pairs = wider;
}

static void drop_pair(struct yaml_node *map, const char *key) {
  size_t kept = 0;
  for (size_t i = 0; i < map->count; i++)
    if (!str_eq_c(map->pairs[i].key->text, key))
      map->pairs[kept++] = map->pairs[i];
  map->count = kept;
}

/* Lays `over` on top of `under`, both of them our own copies: maps key by key, everything else as a
 * whole. */
static const struct yaml_node *lay_over(struct expand *e, const struct yaml_node *under,
                                        const struct yaml_node *over) {
  if (under->kind != YAML_MAP || over->kind != YAML_MAP)
    return over;
  struct yaml_node *both = expand_node(e, over, over->origin);
  both->count = 0;
  both->pairs = NULL;
  for (size_t i = 0; i < under->count; i++)
    put_pair(e, both, under->pairs[i].key, under->pairs[i].value);
  for (size_t i = 0; i < over->count; i++) {
    const struct yaml_node *below = NULL;
    for (size_t k = 0; k < under->count; k++)
      if (str_eq(under->pairs[k].key->text, over->pairs[i].key->text))
        below = under->pairs[k].value;
    put_pair(e, both, over->pairs[i].key,
             below ? lay_over(e, below, over->pairs[i].value) : over->pairs[i].value);
  }
  return both;
}

/* Copies the fragment's map where `movement` of `x` uses it; NULL if an error was reported. */
static const struct yaml_node *copy_fragment(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement) {
  const struct yaml_node *uses = yaml_get(movement, "uses");
  struct called *c = called_find(e, x, uses, true);
  if (c == NULL || !expand_may_enter(e, x, uses, c))
    return NULL;
  struct instance *fragment = arena_alloc(e->p->arena, sizeof *fragment);
  *fragment = *x;
  fragment->origin.base.file = c->file;
  fragment->origin.facets = c->facets;
  fragment->origin.scope.outside = false;
  called_scope(e, x, movement, yaml_get(movement, "with"), c, &fragment->origin.scope);
  struct called *own = arena_alloc(e->p->arena, sizeof *own); /* paths start at its folder */
  *own = *c;
  own->root = x->called->root; /* names are those of the movements around it */
  own->returns = x->called->returns;
  fragment->called = own;
  fragment->is_fragment = true;
  fragment->user = x;
  fragment->used_at = movement;
  fragment->depth = x->depth + 1;
  struct yaml_node *root = expand_node(e, c->root, c->root->origin);
  root->pairs = arena_array(e->p->arena, c->root->count + 1, sizeof *root->pairs);
  if (c->root->count > 0)
    memcpy(root->pairs, c->root->pairs, c->root->count * sizeof *root->pairs);
  drop_pair(root, "params");
  drop_pair(root, "name");
  return copy_movement(e, fragment, root, true);
}

/* Finds the key in the nearest of `x` and its callers, except the session's own file. */
static const struct yaml_node *inherited(const struct instance *x, const char *key,
                                         const struct instance **from) {
  for (; x->caller != NULL; x = x->caller) {
    const struct yaml_node *value = expand_get(&workflow_keys, x->called->root, key);
    *from = x;
    if (value != NULL)
      return value;
  }
  return NULL;
}

static void inherit_one(struct expand *e, const struct instance *x, struct yaml_node *movement,
                        const char *key) {
  const struct instance *from;
  const struct yaml_node *value = inherited(x, key, &from);
  if (value != NULL && yaml_get(movement, key) == NULL)
    put_pair(e, movement, named(e, value, key),
             copy_value(e, from, key_find(&workflow_keys, str_from(key)), value));
}

/* Lets a movement inherit provider and model. A model belongs to the provider it is written
 * with. */
static void inherit_provider(struct expand *e, const struct instance *x,
                             struct yaml_node *movement) {
  const struct instance *from = NULL, *model_from = NULL;
  const struct yaml_node *provider = inherited(x, "provider", &from);
  const struct yaml_node *model = inherited(x, "model", &model_from);
  bool own_provider = yaml_get(movement, "provider") != NULL;
  if (model != NULL && !own_provider && (provider == NULL || from->depth <= model_from->depth))
    inherit_one(e, x, movement, "model");
  inherit_one(e, x, movement, "provider");
}

static void inherit(struct expand *e, const struct instance *x, struct yaml_node *movement) {
  const struct yaml_node *judge = yaml_get(movement, "judge");
  bool is_group = yaml_get(movement, "parallel") != NULL;
  bool is_asked = yaml_get(movement, "ask") != NULL;
  if (!is_group && !is_asked && yaml_get(movement, "command") == NULL) {
    inherit_provider(e, x, movement);
    inherit_one(e, x, movement, "options");
  }
  for (const struct instance *at = x; at->caller != NULL; at = at->caller) {
    const struct yaml_node *own = expand_get(&workflow_keys, at->called->root, "judge");
    if (own == NULL || own->kind != YAML_MAP)
      continue;
    const struct yaml_node *copy = copy_map(e, at, &judge_keys, own);
    judge = judge ? lay_over(e, copy, judge) : copy;
  }
  if (judge != NULL && x->caller != NULL)
    put_pair(e, movement, named(e, judge, "judge"), judge);
}

/* Copies a movement. What a fragment inherits is left to the movement that uses it. */
static const struct yaml_node *copy_movement(struct expand *e, const struct instance *x,
                                             const struct yaml_node *movement, bool child) {
  if (movement->kind != YAML_MAP)
    return expand_plain(e, &x->origin.base, movement);
  const struct yaml_node *name = expand_name(e, movement), *call = yaml_get(movement, "call");
  const struct yaml_node *own = copy_map(e, x, &movement_keys, movement);
  struct yaml_node *copy = expand_node(e, own, own->origin);
  if (call != NULL)
    REPORT(e->p, call,
           "a child of parallel or a fragment cannot call a workflow: call it from a movement of "
           "its own");
  if (yaml_get(movement, "uses") != NULL) {
    const struct yaml_node *fragment = copy_fragment(e, x, movement);
    drop_pair(copy, "uses");
    drop_pair(copy, "with");
    if (fragment != NULL) {
      const struct yaml_node *both = lay_over(e, fragment, copy);
      copy = expand_node(e, both, both->origin);
    }
  }
  if (name != NULL && name->kind == YAML_TEXT) {
    struct yaml_node *full = expand_node(e, name, &x->origin.base);
    struct str own_name = expand_text(e, x, name);
    expand_set_text(e, full, child ? own_name : put_prefix(e, x, own_name));
    put_pair(e, copy, named(e, name, "name"), full);
  }
  const struct yaml_node *key = yaml_get(movement, "session_key");
  if (key != NULL && key->kind == YAML_TEXT) {
    struct yaml_node *full = expand_node(e, key, &x->origin.base);
    expand_set_text(e, full, put_prefix(e, x, expand_text(e, x, key)));
    put_pair(e, copy, named(e, key, "session_key"), full);
  }
  if (!x->is_fragment)
    inherit(e, x, copy);
  return copy;
}

const struct yaml_node *expand_movement(struct expand *e, const struct instance *x,
                                        const struct yaml_node *movement) {
  return copy_movement(e, x, movement, false);
}

const struct yaml_node *expand_root(struct expand *e, const struct instance *x,
                                    const struct yaml_node **movements, size_t count) {
  const struct yaml_node *root = x->called->root;
  struct yaml_node *copy = expand_node(e, root, &x->origin.base);
  copy->pairs = arena_array(e->p->arena, root->count, sizeof *copy->pairs);
  for (size_t i = 0; i < root->count; i++) {
    const struct yaml_node *value = root->pairs[i].value;
    const struct key *k = key_find(&workflow_keys, root->pairs[i].key->text);
    copy->pairs[i].key = expand_node(e, root->pairs[i].key, &x->origin.base);
    if (k != NULL && k->type == KEY_SET_LIST && value->kind == YAML_LIST) {
      struct yaml_node *list = expand_node(e, value, &x->origin.base);
      list->items = movements;
      list->count = count;
      copy->pairs[i].value = list;
      continue;
    }
    copy->pairs[i].value = copy_value(e, x, k, value);
    if (k != NULL && strcmp(k->name, "initial_movement") == 0 && value->kind == YAML_TEXT) {
      struct yaml_node *first = expand_node(e, value, &x->origin.base);
      expand_set_text(e, first, expand_entry(e, x, value));
      copy->pairs[i].value = first;
    }
  }
  drop_pair(copy, "params");
  drop_pair(copy, "returns");
  return copy;
}
