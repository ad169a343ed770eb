/* Makes the root of an adapted schema and its definitions; keeps failures and changes. */
#include "adapt/internal.h"
#include "format/json_value.h"
#include "schema/run.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *adapt_status_name(enum adapt_status status) {
  switch (status) {
  case ADAPT_OK:
    return "ok";
  case ADAPT_INVALID_SCHEMA:
    return "invalid_schema";
  case ADAPT_UNSUPPORTED:
    return "unsupported";
  case ADAPT_LIMIT:
    return "limit";
  case ADAPT_TOO_COMPLEX:
    return "too_complex";
  }
  return "?";
}

const char *adapt_effect_name(enum adapt_effect effect) {
  switch (effect) {
  case ADAPT_REWRITTEN:
    return "rewritten";
  case ADAPT_DESCRIBED:
    return "described";
  case ADAPT_DROPPED:
    return "dropped";
  case ADAPT_NARROWED:
    return "narrowed";
  }
  return "?";
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
    if (*keyword) {
      buf_puts(&place, "/");
      buf_puts(&place, keyword);
    }
  }
  if (place.p)
    (void)snprintf(a->error->pointer, sizeof a->error->pointer, "%s", place.p);
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
    buf_puts(&place, "/properties/");
    for (const char *p = member; *p; p++) {
      if (*p == '~' || *p == '/')
        buf_puts(&place, *p == '~' ? "~0" : "~1");
      else
        buf_append(&place, p, 1);
    }
  } else {
    const json_t *schema = out->canonical->entries[entry].schema;
    if (json_object_get(schema, keyword)) {
      buf_puts(&place, "/");
      buf_puts(&place, keyword);
    }
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
  json_t *schema = json_object();
  adapt_put(schema, "type", json_string_nocheck("string"));
  adapt_put(schema, "description", json_string_nocheck("think here, before the answer"));
  return schema;
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
  json_t *schema = json_object(), *properties = json_object(), *required = json_array();
  a->out->wrap = type && !strcmp(type, "array") ? "items" : "value";
  if (a->opts->reasoning && strcmp(a->opts->reasoning, a->out->wrap) != 0) {
    a->out->lead = arena_strdup(&a->out->arena, a->opts->reasoning);
    adapt_put(properties, a->opts->reasoning, thoughts());
    json_array_append_new(required, json_string_nocheck(a->opts->reasoning));
  }
  adapt_put(properties, a->out->wrap, inner);
  json_array_append_new(required, json_string_nocheck(a->out->wrap));
  adapt_put(schema, "type", json_string_nocheck("object"));
  adapt_put(schema, "properties", properties);
  adapt_put(schema, "required", json_incref(required));
  adapt_put(schema, "additionalProperties", json_false());
  if (a->dialect->flags & ADAPT_ORDERING)
    adapt_put(schema, "propertyOrdering", json_incref(required));
  json_decref(required);
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
    (void)snprintf(a->error->pointer, sizeof a->error->pointer, "%s",
                   errors.count ? errors.items[0].pointer : "");
    a->error->keyword = errors.count ? errors.items[0].keyword : "";
  }
  schema_errors_deinit(&errors);
}

static void index_entries(struct adapter *a) {
  const struct schema *s = a->out->canonical;
  for (uint32_t i = 0; i < s->entry_count; i++) {
    const json_t *schema = s->entries[i].schema;
    if (json_is_object(schema))
      map_put(&a->entries, &a->out->arena, MAP_KEY(schema), i);
  }
}

static void adapt_run(struct adapter *a, const json_t *doc) {
  struct sum root = {0};
  struct built built = {NULL, PLAN_NONE};
  adapt_compile(a, doc);
  if (!adapter_stopped(a))
    index_entries(a);
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
