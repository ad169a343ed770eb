/* Builds the schema for programs that take JSON Schema as it is, as the input of a tool: an object,
 * in one document. */
#include "adapt/internal.h"
#include "format/json_value.h"
#include "schema/run.h"

#include <stdio.h>
#include <string.h>

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

struct built adapt_whole(struct adapter *a) {
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
    (void)snprintf(name, sizeof name, "document_%zu", i + 1);
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
