#include "provider/provider.h"

#include <stdio.h>

static const struct provider_ops *const providers[] = {&provider_script, &provider_command};

const struct provider_ops *provider_find(struct str name) {
  for (size_t i = 0; i < ARRAY_LEN(providers); i++)
    if (str_eq_c(name, providers[i]->capability.name))
      return providers[i];
  return NULL;
}

const struct capability *provider_capabilities(void) {
  static struct capability table[ARRAY_LEN(providers) + 1]; /* filled once, then constant */
  for (size_t i = 0; i < ARRAY_LEN(providers); i++)
    table[i] = providers[i]->capability;
  return table;
}

static const char *bad_value(const char *name, const json_t *value) {
  json_int_t n = json_integer_value(value);
  if (str_eq_c(str_from(name), "temperature"))
    return json_is_number(value) && json_number_value(value) >= 0 && json_number_value(value) <= 2
               ? NULL
               : "a number from 0 to 2";
  if (str_eq_c(str_from(name), "seed"))
    return json_is_integer(value) ? NULL : "an integer";
  if (str_eq_c(str_from(name), "max_tokens"))
    return json_is_integer(value) && n > 0 ? NULL : "an integer above 0";
  return json_is_string(value) && json_string_length(value) > 0 ? NULL : "a word, such as high";
}

bool provider_check_options(const struct capability *capability, const json_t *options,
                            struct err *err) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)options, name, value) {
    unsigned bit = 0;
    for (unsigned i = 0; option_names[i]; i++)
      if (str_eq_c(str_from(name), option_names[i]))
        bit = 1u << i;
    if (bit == 0) {
      const char *near = str_nearest(str_from(name), option_names);
      return err_set(err, ERR_USAGE, "there is no option \"%s\": %s%s%s", name,
                     near ? "did you mean \"" : "use temperature, seed, max_tokens or effort",
                     near ? near : "", near ? "\"?" : "");
    }
    if ((capability->options & bit) == 0)
      return err_set(err, ERR_USAGE, "provider %s takes no %s: remove it", capability->name, name);
    const char *wanted = bad_value(name, value);
    if (wanted != NULL)
      return err_set(err, ERR_USAGE, "option %s must be %s", name, wanted);
  }
  return true;
}
