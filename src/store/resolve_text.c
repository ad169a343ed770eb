/* Restores texts that a log stores only once. */
#include "store/resolve_text.h"

#include "format/json_object.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

bool resolve_text(const struct resolve *recall, const json_t *record, const char *key,
                  struct buf *out, struct err *err) {
  char blob_key[64];
  print_into(blob_key, sizeof blob_key, "%s_blob", key);
  const json_t *text = json_object_get(record, key);
  const char *blob = json_string_value(json_object_get(record, blob_key));
  if (blob != NULL) {
    buf_auto_t whole = {0};
    bool ok = store_blob_get(recall->store, blob, &whole, err);
    buf_append(out, buf_c(&whole), ok ? whole.n : 0);
    return ok;
  }
  if (!json_is_string(text))
    return err_set(err, ERR_CORRUPT, "the record has no text \"%s\"", key);
  buf_append(out, json_string_value(text), json_string_length(text));
  return true;
}

/* Takes one step into a value. Indexes are as in a JSON Pointer: digits without a leading zero. */
static const json_t *step_into(const json_t *value, struct str name) {
  long index;
  if (!json_is_array(value))
    return json_object_getn(value, name.p, name.n);
  bool plain = name.n > 0 && name.p[0] >= '0' && name.p[0] <= '9' &&
               (name.p[0] != '0' || name.n == 1) && str_to_long(name, &index);
  return plain ? json_array_get(value, (size_t)index) : NULL;
}

/* Finds the text of a place. Returns the record, for the caller to release, and the object or list
 * in it that holds the text, with the last step still to take. */
static json_t *go_to(const struct resolve *recall, const char *place, const json_t **holder,
                     const char **last, struct err *err) {
  char *pointer;
  bool numbered = place[0] >= '1' && place[0] <= '9';
  uint64_t seq = strtoull(place, &pointer, 10);
  if (!numbered || !str_starts(str_from(pointer), "#/")) {
    err_set(err, ERR_CORRUPT, "\"%.80s\" is not a place in a log", place);
    return NULL;
  }
  json_t *record = recall->record(recall->ctx, seq, err);
  *holder = record;
  *last = pointer + 2;
  for (const char *slash; *holder && (slash = strchr(*last, '/')) != NULL; *last = slash + 1)
    *holder = step_into(*holder, (struct str){*last, (size_t)(slash - *last)});
  return record;
}

bool resolve_has(const struct resolve *recall, const char *place, struct err *err) {
  const json_t *holder;
  const char *last;
  json_t *record = go_to(recall, place, &holder, &last, err);
  if (record == NULL)
    return false;
  bool ok = json_is_string(step_into(holder, str_from(last))) ||
            err_set(err, ERR_CORRUPT, "there is no text at %.80s", place);
  json_decref(record);
  return ok;
}

static bool resolve_place(const struct resolve *recall, const char *place, struct buf *out,
                          struct err *err) {
  const json_t *holder;
  const char *last;
  json_t *record = go_to(recall, place, &holder, &last, err);
  if (record == NULL)
    return false;
  const json_t *text = step_into(holder, str_from(last));
  bool ok = json_is_string(text) || err_set(err, ERR_CORRUPT, "there is no text at %.80s", place);
  if (ok && json_is_object(holder))
    ok = resolve_text(recall, holder, last, out, err);
  else if (ok)
    buf_append(out, json_string_value(text), json_string_length(text));
  json_decref(record);
  return ok;
}

bool resolve_parts(const struct resolve *recall, const json_t *parts, struct buf *out,
                   struct err *err) {
  JSON_EACH(parts, i, part) {
    const char *ref = json_string_value(json_object_get(part, "ref"));
    if (json_is_string(part))
      buf_append(out, json_string_value(part), json_string_length(part));
    else if (ref == NULL)
      return err_set(err, ERR_CORRUPT, "part %zu of the prompt is neither text nor reference", i);
    else if (!resolve_place(recall, ref, out, err))
      return false;
  }
  return true;
}
