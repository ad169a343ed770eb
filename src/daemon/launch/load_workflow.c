/* Loads the workflow of a request. */
#include "daemon/launch/internal.h"

#include "base/log.h"
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
