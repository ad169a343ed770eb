/* Loads a schema by the name of a ready-made one, by its path, or as written in the file. */
#include "workflow/schemas.h"

#include "base/limits.h"
#include "base/resource.h"
#include "format/yaml.h"
#include "schema/upgrade.h"
#include "workflow/facets.h"

#include <stdio.h>
#include <string.h>

#define PRESETS "schemas/presets/"

const char *preset_invariant(struct str name) {
  return str_eq_c(name, "entities") ? "all(entities, start < end)" : NULL;
}

json_t *preset_schema(struct str name) {
  char key[128];
  if (name.n > 64)
    return NULL;
  print_into(key, sizeof key, PRESETS STR_FMT ".json", STR_ARG(name));
  const struct resource *r = resource_find(key);
  return r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
}

const char *preset_names(void) {
  static char names[512];
  size_t n = 0, prefix = strlen(PRESETS);
  if (names[0] != '\0')
    return names;
  for (const struct resource *r = resource_table; r->name; r++) {
    size_t length = strlen(r->name);
    if (strncmp(r->name, PRESETS, prefix) != 0 || length < prefix + 5 ||
        n + length - prefix > sizeof names)
      continue;
    n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", n ? ", " : "",
                          (int)(length - prefix - 5), r->name + prefix);
  }
  return names;
}

bool preset_is_name(struct str text) {
  return text.n > 0 && memchr(text.p, '/', text.n) == NULL && memchr(text.p, '.', text.n) == NULL;
}

json_t *schema_load_beneath(const char *folder, const char *path, struct err *err) {
  buf_auto_t text = {0};
  char shown[sizeof err->file];
  json_t *doc = NULL;
  print_into(shown, sizeof shown, "%s/%s", folder ? folder : ".", path);
  if (facet_read(folder, path, &text, err))
    doc = yaml_load(shown, buf_view(&text), LIMIT_FACET_BYTES, err);
  schema_upgrade(doc);
  return doc;
}
