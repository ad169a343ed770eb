#include "host/backends.h"

#include "host/admission.h"
#include "provider/api.h"

static bool known(const struct provider_registry *reg, const char *name, struct err *err) {
  struct buf names = {0};
  if (registry_find(reg, str_from(name)) != NULL)
    return true;
  registry_names(reg, &names);
  (void)err_set(err, ERR_INVALID,
                "config.yaml: fallback: there is no provider \"%.80s\": use one of %s", name,
                buf_c(&names));
  buf_deinit(&names);
  return false;
}

/* What can be said only when all backends are there. */
static bool check(const struct config *config, const struct provider_registry *reg,
                  struct err *err) {
  const struct provider *p;
  const char *from;
  json_t *list, *to;
  size_t i;
  for (i = 0; (p = registry_at(reg, i)) != NULL; i++)
    if (!admission_check(p, err))
      return err_wrap(err, "config.yaml");
  json_object_foreach(config->fallback, from, list) {
    if (!known(reg, from, err))
      return false;
    json_array_foreach(list, i, to) {
      if (!known(reg, json_string_value(to), err))
        return false;
    }
  }
  return true;
}

struct provider_registry *backends_new(const struct config *config, struct err *err) {
  struct provider_registry *reg = registry_new(config->providers);
  if (!api_register(reg, config->providers, err))
    (void)err_wrap(err, "config.yaml");
  else if (check(config, reg, err))
    return reg;
  registry_free(reg);
  return NULL;
}
