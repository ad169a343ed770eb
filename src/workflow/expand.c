/* Flattens the calls of workflows: which movements there are, and where their rules lead. */
#include "workflow/expand.h"

#include "workflow/expand_part.h"
#include "workflow/parse/part.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- what calls what --- */

static const struct yaml_node *movements_of(const struct yaml_node *root) {
  const struct yaml_node *list = expand_get(&workflow_keys, root, "movements");
  return list != NULL && list->kind == YAML_LIST ? list : NULL;
}

static const struct yaml_node *find_movement(struct expand *e, const struct yaml_node *root,
                                             struct str name) {
  const struct yaml_node *list = movements_of(root);
  for (size_t i = 0; list != NULL && i < list->count; i++) {
    const struct yaml_node *own = expand_name(e, list->items[i]);
    if (own != NULL && own->kind == YAML_TEXT && str_eq(own->text, name))
      return list->items[i];
  }
  return NULL;
}

/* Returns the name of the movement that a file begins with, NULL if it has none. */
static const struct yaml_node *first_name(struct expand *e, const struct yaml_node *root) {
  const struct yaml_node *named = expand_get(&workflow_keys, root, "initial_movement");
  const struct yaml_node *list = movements_of(root);
  if (named != NULL && named->kind == YAML_TEXT)
    return named;
  return list != NULL && list->count > 0 ? expand_name(e, list->items[0]) : NULL;
}

bool expand_may_enter(struct expand *e, const struct instance *x, const struct yaml_node *node,
                      const struct called *c) {
  const struct yaml_node *first = NULL;
  assert(x != NULL);
  assert(c != NULL);
  for (const struct instance *at = x; at != NULL; at = at->user ? at->user : at->caller) {
    if (at->called->inode == c->inode && at->called->device == c->device) {
      if (first == NULL)
        REPORT(e->p, node, "%s calls itself here: a workflow cannot be part of itself", c->file);
      else
        REPORT(e->p, node, "%s calls itself: it came here through its line %d (%s)", c->file,
               first->line, parse_file_of(e->p, first));
      return false;
    }
    first = at->user ? at->used_at : at->call;
  }
  if (x->depth < LIMIT_CALL_DEPTH)
    return true;
  REPORT(e->p, node, "calls are nested deeper than %u: put some into one file", LIMIT_CALL_DEPTH);
  return false;
}

/* Sets up the file that a movement of `x` calls, in that movement's place. Returns false if an
 * error was reported. */
static bool expand_enter(struct expand *e, const struct instance *x,
                         const struct yaml_node *movement, struct instance *out) {
  const struct yaml_node *call = yaml_get(movement, "call"), *name = expand_name(e, movement);
  struct called *c = called_find(e, x, call, false);
  if (c == NULL || !expand_may_enter(e, x, call, c))
    return false;
  *out = (struct instance){.origin = {.base = {c->file}, .facets = c->facets, .scope = scope_none},
                           .called = c,
                           .caller = x,
                           .call = movement,
                           .depth = x->depth + 1};
  struct buf prefix = {0};
  buf_str(&prefix, x->origin.scope.prefix);
  if (name != NULL && name->kind == YAML_TEXT)
    buf_str(&prefix, expand_text(e, x, name));
  buf_putc(&prefix, '/');
  out->origin.scope.prefix = arena_str(e->p->arena, buf_view(&prefix));
  buf_deinit(&prefix);
  called_scope(e, x, movement, yaml_get(movement, "args"), c, &out->origin.scope);
  return true;
}

/* --- where rules lead --- */

static struct str target_of_exit(struct expand *e, const struct instance *x, struct str label,
                                 const struct yaml_node *rule);

static const struct yaml_node *rule_of_label(struct expand *e, const struct instance *x,
                                             struct str label) {
  const struct yaml_node *rules = yaml_get(x->call, "rules");
  for (size_t i = 0; rules != NULL && rules->kind == YAML_LIST && i < rules->count; i++) {
    const struct yaml_node *condition = yaml_get(rules->items[i], "condition");
    if (condition != NULL && condition->kind == YAML_TEXT &&
        str_eq(str_trim(expand_text(e, x->caller, condition)), label))
      return rules->items[i];
  }
  return NULL;
}

/* Returns where the caller continues when the file `x` returns `label`, as the caller's rule
 * says. */
static struct str target_of_exit(struct expand *e, const struct instance *x, struct str label,
                                 const struct yaml_node *rule) {
  if (x->caller == NULL)
    return str_eq_c(label, "ABORT") ? label : STR("COMPLETE");
  const struct yaml_node *taken = rule_of_label(e, x, label);
  if (taken != NULL)
    return expand_target(e, x->caller, taken);
  if (str_eq_c(label, "ABORT"))
    return target_of_exit(e, x->caller, label, rule);
  REPORT(e->p, x->call,
         "%s can return " STR_FMT " (line %d there), and no rule here has this condition: add one",
         x->called->file, STR_ARG(label), rule->line);
  return STR("COMPLETE");
}

static struct str returns_label(struct expand *e, const struct instance *x,
                                const struct yaml_node *node, const struct yaml_node *rule) {
  const struct yaml_node *list = x->called->returns;
  for (size_t i = 0; list != NULL && i < list->count; i++)
    if (str_eq(str_trim(list->items[i]->text), str_trim(node->text)))
      return target_of_exit(e, x, str_trim(node->text), rule);
  REPORT(e->p, node, "%s is not among what this workflow returns: write returns: [" STR_FMT "%s]",
         parse_shown(e->p, node->text), STR_ARG(str_trim(node->text)), list ? ", ..." : "");
  return STR("COMPLETE");
}

struct str expand_target(struct expand *e, const struct instance *x, const struct yaml_node *rule) {
  const struct yaml_node *next = yaml_get(rule, "next"), *back = yaml_get(rule, "return");
  if (back != NULL && back->kind == YAML_TEXT && next == NULL)
    return returns_label(e, x, back, rule);
  if (next == NULL || next->kind != YAML_TEXT)
    return STR("");
  if (str_eq_c(next->text, "COMPLETE") || str_eq_c(next->text, "ABORT"))
    return target_of_exit(e, x, next->text, rule);
  return expand_entry(e, x, next);
}

struct str expand_entry(struct expand *e, const struct instance *x, const struct yaml_node *name) {
  struct str own = expand_text(e, x, name);
  while (x->user != NULL) /* a fragment names the movements around it */
    x = x->user;
  const struct yaml_node *movement = find_movement(e, x->called->root, own);
  struct instance inner;
  struct buf full = {0};
  if (movement != NULL && yaml_get(movement, "call") != NULL &&
      expand_enter(e, x, movement, &inner)) {
    const struct yaml_node *first = first_name(e, inner.called->root);
    if (first != NULL && first->kind == YAML_TEXT)
      return expand_entry(e, &inner, first);
  }
  buf_str(&full, x->origin.scope.prefix);
  buf_str(&full, own);
  struct str done = arena_str(e->p->arena, buf_view(&full));
  buf_deinit(&full);
  return done;
}

/* --- movements --- */

struct flat {
  const struct yaml_node **items;
  size_t count, room;
};

static void flat_put(struct expand *e, struct flat *flat, const struct yaml_node *movement) {
  if (flat->count == flat->room) {
    size_t room = flat->room ? flat->room * 2 : 16;
    const struct yaml_node **wider = arena_array(e->p->arena, room, sizeof(struct yaml_node *));
    if (flat->count > 0)
      memcpy(wider, flat->items, flat->count * sizeof(struct yaml_node *));
    flat->items = wider;
    flat->room = room;
  }
  flat->items[flat->count++] = movement;
}

/* Checks that a condition of a call's rule is something that the file returns. */
static void expand_check_label(struct expand *e, const struct yaml_node *node, struct str label,
                               const struct called *c) {
  const char *names[LIMIT_RULE_COUNT + 3] = {"COMPLETE", "ABORT"};
  for (size_t i = 0; c->returns != NULL && i < c->returns->count; i++)
    names[i + 2] = c->returns->items[i]->text.p;
  for (size_t i = 0; names[i] != NULL; i++)
    if (str_eq(label, str_trim(str_from(names[i]))))
      return;
  const char *near = str_nearest(label, names);
  if (near != NULL)
    REPORT(e->p, node, "%s does not return %s: did you mean %s?", c->file, parse_shown(e->p, label),
           near);
  else
    REPORT(e->p, node,
           "%s does not return %s: it returns the labels in its returns, COMPLETE or ABORT",
           c->file, parse_shown(e->p, label));
}

/* Checks the rules of a movement that calls a file: they hold only labels and where they lead. */
static void check_call_rules(struct expand *e, const struct instance *x,
                             const struct yaml_node *movement, const struct called *c) {
  const struct yaml_node *rules = yaml_get(movement, "rules");
  if (rules == NULL || rules->kind != YAML_LIST) {
    REPORT(e->p, movement,
           "a movement with call has rules: a condition for COMPLETE, and for each "
           "label that %s returns",
           c->file);
    return;
  }
  for (size_t i = 0; i < rules->count; i++) {
    const struct yaml_node *rule = rules->items[i], *condition = yaml_get(rule, "condition");
    if (rule->kind != YAML_MAP || condition == NULL || condition->kind != YAML_TEXT) {
      REPORT(e->p, rule, "a rule of a call has only condition and next");
      continue;
    }
    for (size_t k = 0; k < rule->count; k++) {
      struct str key = rule->pairs[k].key->text;
      if (!str_eq_c(key, "condition") && !str_eq_c(key, "next") && !str_eq_c(key, "return"))
        REPORT(e->p, rule->pairs[k].key,
               "a rule of a call is decided by the workflow it calls: "
               "remove %s",
               parse_shown(e->p, key));
    }
    expand_check_label(e, condition, str_trim(expand_text(e, x, condition)), c);
    if (yaml_get(rule, "next") == NULL && yaml_get(rule, "return") == NULL)
      REPORT(e->p, rule, "a rule has no next: add next:");
  }
}

static void check_calling(struct expand *e, const struct instance *x,
                          const struct yaml_node *movement, const struct called *c) {
  static const char *const own[] = {"name", "description", "call", "args", "rules", NULL};
  for (size_t i = 0; i < movement->count; i++) {
    const struct yaml_node *key = movement->pairs[i].key;
    bool known = false;
    for (size_t k = 0; own[k]; k++)
      known = known || str_eq_c(key->text, own[k]);
    if (!known)
      REPORT(e->p, key, "a movement with call does no work of its own: write %s into %s",
             parse_shown(e->p, key->text), c->file);
  }
  const struct yaml_node *name = expand_name(e, movement);
  if (name == NULL || name->kind != YAML_TEXT || name->text.n == 0)
    REPORT(e->p, movement, "a movement has no name: add name:");
  check_call_rules(e, x, movement, c);
}

static void flatten(struct expand *e, const struct instance *x, struct flat *flat);

static void flatten_call(struct expand *e, const struct instance *x,
                         const struct yaml_node *movement, struct flat *flat) {
  struct instance *inner = arena_alloc(e->p->arena, sizeof *inner);
  if (++e->call_count > LIMIT_CALL_COUNT) {
    REPORT(e->p, movement,
           "more than %u calls, those of what is called among them: split the "
           "workflow",
           LIMIT_CALL_COUNT);
    e->full = true;
    return;
  }
  if (!expand_enter(e, x, movement, inner))
    return;
  struct called *c = (struct called *)inner->called;
  check_calling(e, x, movement, c);
  if (!c->checked) {
    c->checked = true;
    parse_called(e->p, c->root);
    for (const struct key *k = workflow_keys.keys; k->name; k++) {
      const struct yaml_node *section = expand_get(&workflow_keys, c->root, k->name);
      if (section != NULL && k->type == KEY_SECTION)
        parse_section(e->p, &c->facets, k, section);
    }
  }
  inner->origin.facets = c->facets;
  flatten(e, inner, flat);
}

static void flatten(struct expand *e, const struct instance *x, struct flat *flat) {
  const struct yaml_node *list = movements_of(x->called->root);
  for (size_t i = 0; list != NULL && i < list->count && !e->full; i++) {
    const struct yaml_node *movement = list->items[i];
    if (movement->kind == YAML_MAP && yaml_get(movement, "call") != NULL) {
      flatten_call(e, x, movement, flat);
      continue;
    }
    if (flat->count > LIMIT_MOVEMENT_COUNT) { /* the parser reports it */
      e->full = true;
      return;
    }
    flat_put(e, flat, expand_movement(e, x, movement));
  }
}

/* --- the file itself --- */

static bool names_key(const struct yaml_node *map, const char *a, const char *b) {
  return yaml_get(map, a) != NULL || yaml_get(map, b) != NULL;
}

static bool movement_is_made(const struct yaml_node *movement) {
  const struct yaml_node *children = yaml_get(movement, "parallel"),
                         *rules = yaml_get(movement, "rules");
  if (names_key(movement, "call", "uses") || names_key(movement, "args", "with"))
    return true;
  for (size_t i = 0; rules != NULL && rules->kind == YAML_LIST && i < rules->count; i++)
    if (yaml_get(rules->items[i], "return") != NULL)
      return true;
  for (size_t i = 0; children != NULL && children->kind == YAML_LIST && i < children->count; i++)
    if (movement_is_made(children->items[i]))
      return true;
  return false;
}

static bool is_made(const struct yaml_node *root) {
  const struct yaml_node *list = movements_of(root);
  if (names_key(root, "params", "returns"))
    return true;
  for (size_t i = 0; list != NULL && i < list->count; i++)
    if (movement_is_made(list->items[i]))
      return true;
  return false;
}

static void expand_begin(struct expand *e, struct parse *p, const struct yaml_node *root,
                         struct called *own) {
  *e = (struct expand){.p = p};
  struct stat st;
  *own = (struct called){.file = p->file, .root = root, .facets = p->facets};
  if (p->facets.folder != NULL && stat(p->file, &st) == 0) {
    own->device = st.st_dev;
    own->inode = st.st_ino;
  }
  called_declare(e, own);
}

const struct yaml_node *expand_workflow(struct parse *p, const struct yaml_node *root,
                                        json_t **inputs) {
  struct expand e;
  struct flat flat = {0};
  assert(root != NULL);
  assert(p->arena != NULL);
  *inputs = NULL;
  if (root->kind != YAML_MAP || (!is_made(root) && json_object_size(p->inputs) == 0))
    return root;
  struct called *own = arena_alloc(p->arena, sizeof *own);
  struct instance *x = arena_alloc(p->arena, sizeof *x);
  expand_begin(&e, p, root, own);
  *x = (struct instance){.called = own,
                         .origin = {.base = {p->file}, .facets = p->facets, .scope = scope_none}};
  x->origin.scope.outside = true;
  *inputs = called_inputs(&e, own, &x->origin.scope);
  for (const struct key *k = workflow_keys.keys; k->name; k++) {
    const struct yaml_node *section = expand_get(&workflow_keys, root, k->name);
    if (section != NULL && k->type == KEY_SECTION)
      parse_section(p, &x->origin.facets, k, section);
  }
  own->facets = x->origin.facets;
  if (movements_of(root) == NULL)
    return root;
  flatten(&e, x, &flat);
  return expand_root(&e, x, flat.items, flat.count);
}

json_t *expand_params(struct parse *p, const struct yaml_node *root) {
  struct expand e;
  struct called own;
  json_t *list = json_array();
  expand_begin(&e, p, root, &own);
  for (size_t i = 0; i < own.param_count; i++) {
    const struct param *param = &own.params[i];
    json_t *entry = json_object();
    parse_put(entry, "name", json_stringn(param->name.p, param->name.n));
    if (param->description.n > 0)
      parse_put(entry, "description", json_stringn(param->description.p, param->description.n));
    if (param->value != NULL)
      parse_put(entry, "default", json_stringn(param->value->text.p, param->value->text.n));
    parse_append(list, entry);
  }
  return list;
}
