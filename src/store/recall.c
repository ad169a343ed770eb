#include "store/recall.h"

#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool recall_text(const struct recall *recall, const json_t *record, const char *key,
                 struct buf *out, struct err *err) {
  char blob_key[64];
  (void)snprintf(blob_key, sizeof blob_key, "%s_blob", key);
  const json_t *text = json_object_get(record, key);
  const char *blob = json_string_value(json_object_get(record, blob_key));
  if (blob != NULL) {
    struct buf whole = {0};
    bool ok = store_blob_get(recall->dir, blob, &whole, err);
    buf_append(out, buf_c(&whole), ok ? whole.n : 0);
    buf_deinit(&whole);
    return ok;
  }
  if (!json_is_string(text))
    return err_set(err, ERR_CORRUPT, "the record has no text \"%s\"", key);
  buf_append(out, json_string_value(text), json_string_length(text));
  return true;
}

static const json_t *step_into(const json_t *value, const char *name) {
  return json_is_array(value) ? json_array_get(value, (size_t)strtoul(name, NULL, 10))
                              : json_object_get(value, name);
}

static bool recall_place(const struct recall *recall, const char *place, struct buf *out,
                         struct err *err) {
  char *pointer, name[64];
  uint64_t seq = strtoull(place, &pointer, 10);
  if (strncmp(pointer, "#/", 2) != 0)
    return err_set(err, ERR_CORRUPT, "\"%.80s\" is no place in a log", place);
  json_t *record = recall->record(recall->ctx, seq, err);
  if (record == NULL)
    return false;
  const json_t *holder = record;
  const char *at = pointer + 2;
  for (const char *slash; holder && (slash = strchr(at, '/')) != NULL; at = slash + 1) {
    (void)snprintf(name, sizeof name, "%.*s", (int)(slash - at), at);
    holder = step_into(holder, name);
  }
  bool ok;
  if (json_is_object(holder)) {
    ok = recall_text(recall, holder, at, out, err);
  } else {
    const json_t *text = step_into(holder, at);
    ok = json_is_string(text);
    if (ok)
      buf_append(out, json_string_value(text), json_string_length(text));
    else
      (void)err_set(err, ERR_CORRUPT, "there is no text at %.80s", place);
  }
  json_decref(record);
  return ok;
}

bool recall_parts(const struct recall *recall, const json_t *parts, struct buf *out,
                  struct err *err) {
  size_t i;
  json_t *part;
  json_array_foreach(parts, i, part) {
    const char *ref = json_string_value(json_object_get(part, "ref"));
    if (json_is_string(part))
      buf_append(out, json_string_value(part), json_string_length(part));
    else if (ref == NULL)
      return err_set(err, ERR_CORRUPT, "part %zu of the prompt is neither text nor reference", i);
    else if (!recall_place(recall, ref, out, err))
      return false;
  }
  return true;
}
