/* Reads the path of a reference and looks its value up. */
#include "core/value_ref.h"

#include <string.h>

static void take_longer(struct str path, struct str name, struct prompt_ref *out) {
  if (name.n > out->movement.n && path.n >= name.n && memcmp(path.p, name.p, name.n) == 0 &&
      (path.n == name.n || path.p[name.n] == '.' || path.p[name.n] == '['))
    *out = (struct prompt_ref){{path.p, name.n}, {path.p + name.n, path.n - name.n}};
}

bool prompt_ref_parse(struct str path, const struct workflow *workflow, struct prompt_ref *out) {
  *out = (struct prompt_ref){{path.p, 0}, path};
  for (size_t i = 0; i < workflow->movement_count; i++)
    take_longer(path, workflow->movements[i].name, out);
  return out->movement.n > 0;
}

bool prompt_ref_split(struct str path, const char *const *movements, struct prompt_ref *out) {
  *out = (struct prompt_ref){{path.p, 0}, path};
  for (; *movements != NULL; movements++)
    take_longer(path, str_from(*movements), out);
  return out->movement.n > 0;
}

bool prompt_ref_next(struct str *rest, struct str *part, bool *is_index) {
  *is_index = rest->n > 0 && rest->p[0] == '[';
  if (*is_index) {
    const char *close = memchr(rest->p, ']', rest->n);
    if (close == NULL)
      return false;
    *part = (struct str){rest->p + 1, (size_t)(close - rest->p) - 1};
    *rest = (struct str){close + 1, rest->n - part->n - 2};
    long index;
    return str_to_long(*part, &index) && index >= 0;
  }
  if (rest->n < 2 || rest->p[0] != '.')
    return false;
  size_t n = 1;
  while (n < rest->n && rest->p[n] != '.' && rest->p[n] != '[')
    n++;
  *part = (struct str){rest->p + 1, n - 1};
  *rest = (struct str){rest->p + n, rest->n - n};
  return part->n > 0;
}

const json_t *prompt_ref_value(const struct prompt_ref *ref, const json_t *value) {
  struct str rest = ref->rest, part;
  bool is_index;
  while (rest.n > 0 && value != NULL) {
    long index = 0;
    if (!prompt_ref_next(&rest, &part, &is_index))
      return NULL;
    if (is_index && str_to_long(part, &index))
      value = json_array_get(value, (size_t)index);
    else
      value = json_object_getn(value, part.p, part.n);
  }
  return value;
}
