/* Reads schemas and invariants, and reports what is wrong in them at its place in the file. */
#include "workflow/parse/part.h"

#include "schema/schema.h"
#include "structured/invariant.h"
#include "workflow/schemas.h"

#include <string.h>

/* Returns the node at a path like $.properties.a[0], or the nearest one above it. */
static const struct yaml_node *parse_node_at(const struct yaml_node *node, const char *pointer) {
  while (*pointer == '/') {
    size_t n = strcspn(++pointer, "/");
    const struct yaml_node *next = NULL;
    struct str part = {pointer, n};
    long index;
    for (size_t i = 0; node->kind == YAML_MAP && i < node->count; i++)
      if (str_eq(node->pairs[i].key->text, part))
        next = node->pairs[i].value;
    if (node->kind == YAML_LIST && str_to_long(part, &index) && index >= 0 &&
        (size_t)index < node->count)
      next = node->items[index];
    if (next == NULL)
      return node;
    node = next;
    pointer += n;
  }
  return node;
}

/* Checks that the document is a schema that says something. Otherwise reports every error at its
 * place in the file, or with the name of the schema's own file. */
static bool parse_check_schema(struct parse *p, const struct yaml_node *node, const json_t *doc) {
  struct schema_errors errors = {0};
  bool inlined = node->kind == YAML_MAP;
  if (!json_is_object(doc) || !schema_has_known_keyword(doc)) {
    REPORT(p, node, "%s%sit has no JSON Schema keyword: write type, properties, required, ...",
           inlined ? "" : parse_shown(p, node->text), inlined ? "" : ": ");
    return false;
  }
  struct schema *schema = schema_compile(doc, NULL, &errors, NULL);
  for (size_t i = 0; schema == NULL && i < errors.count; i++) {
    const struct yaml_node *at = inlined ? parse_node_at(node, errors.items[i].pointer) : node;
    REPORT(p, at, "%s%s%s: %s", inlined ? "" : parse_shown(p, node->text), inlined ? "" : ": ",
           errors.items[i].path, errors.items[i].message);
  }
  bool ok = schema != NULL;
  schema_free(schema);
  schema_errors_deinit(&errors);
  return ok;
}

json_t *parse_schema(struct parse *p, const struct key *k, const struct yaml_node *node) {
  json_t *doc = NULL;
  struct err err;
  if (node->kind == YAML_MAP) {
    doc = yaml_to_json(node);
  } else if (node->kind == YAML_LIST) {
    REPORT(p, node,
           "%s must be the name of a built-in schema, a path or the schema itself, not a list",
           k->name);
  } else if (!parse_want_text(p, k->name, node)) {
    return NULL;
  } else if (preset_is_name(node->text)) {
    doc = preset_schema(node->text);
    if (doc == NULL)
      REPORT(p, node,
             "there is no built-in schema %s: use %s, write a path such as schemas/%s.json, or the "
             "schema itself",
             parse_shown(p, node->text), preset_names(), parse_shown(p, node->text));
  } else {
    doc = schema_load_beneath(parse_facets_of(p, node).folder, node->text.p, &err);
    if (doc == NULL && err.line > 0)
      err_list_add(p->errors, &err);
    else if (doc == NULL)
      REPORT(p, node, "%s", err.text);
  }
  if (doc != NULL && parse_check_schema(p, node, doc))
    return doc;
  json_decref(doc);
  return NULL;
}

json_t *parse_invariants(struct parse *p, const struct key *k, const struct yaml_node *node) {
  struct schema_errors errors = {0};
  if (node->kind != YAML_LIST || node->count == 0) {
    REPORT(p, node,
           "%s must be a list of at least one expression, {command: [..]} or {ai: question}",
           k->name);
    return NULL;
  }
  json_t *list = yaml_to_json(node);
  struct invariants *invariants = invariants_compile(list, &errors, NULL);
  for (size_t i = 0; invariants == NULL && i < errors.count; i++)
    REPORT(p, parse_node_at(node, errors.items[i].pointer), "invariant %s: %s",
           errors.items[i].path, errors.items[i].message);
  if (!p->named_by_user && invariants_need(invariants, INVARIANT_COMMAND))
    REPORT(p, node,
           "command runs a program, which only a file that you name may do: give this file's path");
  bool ok = invariants != NULL;
  invariants_free(invariants);
  schema_errors_deinit(&errors);
  if (ok)
    return list;
  json_decref(list);
  return NULL;
}
