/* Remembers which calls failed. */
#include "daemon/recent_failures.h"

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "core/record.h"
#include "format/json_object.h"
#include "format/json_write.h"

#include <stdlib.h>
#include <string.h>

struct failed_call {
  int64_t at_ms;
  char provider[64], class[24], message[160];
};

static void recent_failure_put(char *out, size_t size, struct str text) {
  size_t n = text.n < size ? text.n : utf8_floor(text.p, size - 1);
  memcpy(out, text.p, n);
  out[n] = '\0';
}

void recent_failures_add(struct recent_failures *ts, struct str provider, struct str class,
                         struct str message, int64_t now_ms) {
  if (ts->ring == NULL)
    ts->ring = xcalloc(LIMIT_TROUBLE_COUNT, sizeof *ts->ring);
  struct failed_call *t = &ts->ring[ts->count++ % LIMIT_TROUBLE_COUNT];
  t->at_ms = now_ms;
  recent_failure_put(t->provider, sizeof t->provider, provider);
  recent_failure_put(t->class, sizeof t->class, class);
  recent_failure_put(t->message, sizeof t->message, message);
}

static json_t *recent_failure_json(const struct failed_call *t) {
  char at[RECORD_TIME_BYTES];
  json_t *out = json_object();
  record_time(t->at_ms, at);
  json_put(out, "class", json_text(str_from(t->class)));
  json_put(out, "message", json_text(str_from(t->message)));
  json_put(out, "at", json_string(at));
  return out;
}

void recent_failures_tell(const struct recent_failures *ts, struct str provider, int64_t now_ms,
                          json_t *object) {
  const struct failed_call *last = NULL;
  json_t *errors = json_object();
  size_t kept = ts->count < LIMIT_TROUBLE_COUNT ? ts->count : LIMIT_TROUBLE_COUNT;
  for (size_t i = 0; i < kept; i++) {
    const struct failed_call *t = &ts->ring[i];
    if (!str_eq_c(provider, t->provider) || now_ms - t->at_ms > LIMIT_TROUBLE_MS)
      continue;
    json_int_t n = json_integer_value(json_object_get(errors, t->class));
    json_object_set_new(errors, t->class, json_integer(n + 1));
    last = last == NULL || t->at_ms >= last->at_ms ? t : last;
  }
  json_put(object, "errors", errors);
  json_put(object, "last_error", last != NULL ? recent_failure_json(last) : json_null());
}

void recent_failures_deinit(struct recent_failures *ts) {
  free(ts->ring);
  *ts = (struct recent_failures){0};
}
