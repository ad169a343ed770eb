/* Remembers which parameters a model refused, so that no later call sends them again. */
#include "core/decide.h"

#include "base/limits.h"
#include "base/str.h"
#include "format/json_object.h"
#include "format/json_value.h"

static void refused_key(struct str provider, struct str model, struct buf *out) {
  buf_str(out, provider);
  buf_putc(out, '\n');
  buf_str(out, model);
}

const json_t *core_refused(const struct core *core, struct str provider, struct str model) {
  struct buf key = {0};
  if (json_object_size(core->refused) == 0)
    return NULL;
  refused_key(provider, model, &key);
  const json_t *names = json_object_get(core->refused, buf_c(&key));
  buf_deinit(&key);
  return names;
}

void core_refuse(struct core *core, const struct call *call, const json_t *name) {
  struct buf key = {0};
  const json_t *known;
  size_t i;
  refused_key(str_from(call->provider), str_from(call->model), &key);
  if (core->refused == NULL)
    core->refused = json_object();
  json_t *names = json_object_get(core->refused, buf_c(&key));
  if (names == NULL) {
    names = json_array();
    json_object_set_new(core->refused, buf_c(&key), names);
  }
  buf_deinit(&key);
  json_array_foreach(names, i, known) {
    if (json_same(known, name))
      return;
  }
  if (json_array_size(names) < LIMIT_REFUSED_COUNT)
    json_array_append(names, (json_t *)name);
}
