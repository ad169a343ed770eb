/* Loads the workflow of a request, or reuses a remembered one. */
#include "daemon/launch/internal.h"

#include "base/log.h"
#include "daemon/memo.h"
#include "host/preflight.h"
#include "workflow/facets.h"

/* Checks the form {kind: {name: text}}. */
static bool facets_fit(const struct launch_body *p, const json_t *facets) {
  const char *kind, *name;
  json_t *named, *text;
  if (facets == NULL)
    return true;
  if (!json_is_object(facets))
    return err_set(
        p->err, ERR_INVALID,
        "workflow.facets must be an object, such as {\"personas\": {\"coder\": \"...\"}}");
  const char *folders[FACET_KIND_COUNT + 1] = {0};
  for (size_t i = 0; i < FACET_KIND_COUNT; i++)
    folders[i] = facet_folder((enum facet_kind)i);
  if (!launch_members_known(p, facets, "workflow.facets.", folders))
    return false;
  json_object_foreach((json_t *)facets, kind, named) {
    if (!json_is_object(named))
      return err_set(p->err, ERR_INVALID, "workflow.facets.%s must be an object of name: text",
                     kind);
    json_object_foreach(named, name, text) {
      if (!json_is_string(text))
        return err_set(p->err, ERR_INVALID, "workflow.facets.%s.%.80s must be a text", kind, name);
    }
  }
  return true;
}

/* Hashes all bytes that the workflow is made of. The key is "" if it uses files as well. */
static void make_key(struct launch_body *p, const char *name, const json_t *text) {
  /* These words show parts that may be in a file or come with the request. */
  static const char *const words[] = {"schema", "call", "uses", "{{include:"};
  struct str bytes = {json_string_value(text), json_string_length(text)};
  struct buf all = {0};
  p->key[0] = '\0';
  if (p->anew || p->warnings != NULL || json_object_get(p->body, "inputs") != NULL)
    return;
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (str_has(bytes, words[i]))
      return;
  const json_t *chosen = json_object_get(p->l->config, "provider");
  buf_printf(&all, "%s\n%s\n", name, chosen ? json_string_value(chosen) : "");
  sha256_hex(all.p, all.n, bytes.p, bytes.n, p->key);
  buf_deinit(&all);
}

static bool inputs_fit(const struct launch_body *p) {
  const json_t *inputs = json_object_get(p->body, "inputs"), *value;
  const char *name;
  if (inputs != NULL && !json_is_object(inputs))
    return err_set(p->err, ERR_INVALID, "inputs must be an object of name: text");
  json_object_foreach((json_t *)inputs, name, value) {
    if (!json_is_string(value))
      return err_set(p->err, ERR_INVALID, "inputs.%.80s must be a text", name);
  }
  return true;
}

bool launch_take_workflow(struct launch_body *p) {
  static const char *const members[] = {"text", "name", "facets", NULL};
  const json_t *value = json_object_get(p->body, "workflow"), *text;
  const json_t *facets = json_object_get(value, "facets");
  const json_t *named = json_object_get(value, "name");
  const char *path, *name = json_string_value(named);
  struct launch *l = p->l;
  struct err_list unwanted = {0}, *warnings = p->warnings ? p->warnings : &unwanted;
  if (!launch_path_or_text(p, "workflow", &path, &text) || !inputs_fit(p))
    return false;
  if (named != NULL && name == NULL)
    return err_set(p->err, ERR_INVALID, "workflow.name must be a text");
  if (!launch_members_known(p, value, "workflow.", members) || !facets_fit(p, facets))
    return false;
  json_t *none = json_object();
  if (name == NULL)
    name = "workflow";
  if (facets == NULL)
    facets = none;
  l->facets = json_array();
  if (path == NULL && json_object_size(facets) == 0)
    make_key(p, name, text);
  if (p->key[0] != '\0' && (l->workflow = memo_find(l->generation->memo, p->key)) != NULL) {
    json_decref(none);
    p->remembered = true;
    return true;
  }
  const struct workflow_source source = {
      .path = path ? path : name,
      .text = path ? NULL : json_string_value(text),
      .n = path ? 0 : json_string_length(text),
      .facets = path ? NULL : facets,
      .facet_files = l->facets,
      .inputs = json_object_get(p->body, "inputs"),
      .starts = !p->lints,
  };
  l->workflow = preflight_load(source, l->setup.cwd, l->config, l->generation->registry, p->errors,
                               warnings, &p->marks);
  json_decref(none);
  err_list_deinit(&unwanted);
  if (l->workflow == NULL)
    return err_set(p->err, ERR_FILE, "the workflow has errors");
  l->workflow_path = path ? xstrdup(path) : NULL;
  return true;
}
