/* Fills in the outputs of a workflow. */
#include "core/outputs.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/value_ref.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <string.h>

/* Returns the path of a text that is exactly one {structured:PATH}, or an empty one. */
static struct str single_reference(struct str text) {
  size_t n = strlen("{" PROMPT_STRUCTURED);
  text = str_trim(text);
  if (!str_starts(text, "{" PROMPT_STRUCTURED) ||
      memchr(text.p, '}', text.n) != text.p + text.n - 1)
    return STR("");
  return (struct str){text.p + n, text.n - n - 1};
}

static json_t *output_value(const struct prompt_view *view, struct str path) {
  struct prompt_ref ref;
  struct buf text = {0};
  if (!prompt_ref_parse(path, view->workflow, &ref))
    return json_null();
  const json_t *value =
      prompt_ref_value(&ref, json_object_getn(view->values, ref.movement.p, ref.movement.n));
  if (value == NULL)
    return json_null();
  json_write(value, &text);
  bool fits = text.n <= LIMIT_RETURN_BYTES;
  buf_deinit(&text);
  return fits ? json_incref((json_t *)value) : json_null();
}

static json_t *output_text(const struct prompt_view *view, struct str text) {
  struct prompt filled = {0};
  prompt_fill(view, text, &filled);
  struct str all = buf_view(&filled.bytes);
  if (all.n > LIMIT_RETURN_BYTES)
    all.n = utf8_floor(all.p, LIMIT_RETURN_BYTES);
  json_t *value = json_text(all);
  prompt_deinit(&filled);
  return value;
}

json_t *outputs_make(const struct prompt_view *view) {
  const json_t *wanted = view->workflow->outputs, *text;
  const char *name;
  size_t bytes = 0;
  if (wanted == NULL)
    return NULL;
  json_t *outputs = json_object();
  json_object_foreach((json_t *)wanted, name, text) {
    struct str path = single_reference(json_view(text));
    json_t *value = path.n > 0 ? output_value(view, path) : output_text(view, json_view(text));
    struct buf written = {0};
    json_write(value, &written);
    if (bytes + written.n > LIMIT_RETURNS_BYTES) {
      json_decref(value);
      value = json_null();
    } else {
      bytes += written.n;
    }
    buf_deinit(&written);
    json_object_set_new(outputs, name, value);
  }
  return outputs;
}
