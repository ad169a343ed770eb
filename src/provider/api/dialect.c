/* Holds the table of dialects and the pieces of requests that several of them send. */
#include "provider/api/dialect.h"

#include "base/log.h"
#include "format/json_write.h"
#include "provider/api/rejected_parameter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_BYTES = 6000 }; /* most requests fit and are written without growing */

static const char *const rungs[RUNG_COUNT] = {"native", "grammar", "tool", "json", "prompt"};

const char *rung_name(enum rung rung) {
  assert(rung < RUNG_COUNT);
  return rungs[rung];
}

bool rung_from_name(struct str name, enum rung *out) {
  int i = str_index(name, rungs, RUNG_COUNT);
  if (i >= 0)
    *out = (enum rung)i;
  return i >= 0;
}

enum rung rung_at_or_below(unsigned bits, enum rung from) {
  int i = (int)from;
  while (i < RUNG_COUNT && (bits & RUNG_BIT(i)) == 0)
    i++;
  return (enum rung)i;
}

void wire_header(struct wire *wire, const char *name, struct str value) {
  size_t i = 0, name_n = strlen(name);
  while (wire->headers[i])
    i++;
  assert(i < WIRE_HEADERS);
  char *line = xmalloc(name_n + 2 + value.n + 1);
  memcpy(line, name, name_n);
  memcpy(line + name_n, LIT(": "));
  memcpy(line + name_n + 2, value.p, value.n);
  line[name_n + 2 + value.n] = '\0';
  wire->headers[i] = line;
}

void wire_encoded(struct buf *out, struct str text) {
  while (text.n > 0) {
    size_t n = str_span(text, "-._~");
    buf_append(out, text.p, n);
    if (n < text.n)
      buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.p[n++]);
    text = (struct str){text.p + n, text.n - n};
  }
}

void wire_bearer(struct wire *wire, struct str key) {
  buf_auto_t value = {0};
  if (key.n == 0)
    return;
  buf_puts(&value, "Bearer ");
  buf_str(&value, key);
  wire_header(wire, "Authorization", buf_view(&value));
  explicit_bzero(value.p, value.n);
}

void wire_key(struct wire *wire, unsigned quirks, struct str key) {
  if (!(quirks & QUIRK_API_KEY))
    wire_bearer(wire, key);
  else if (key.n > 0)
    wire_header(wire, "api-key", key);
}

bool ask_lacks(const struct ask *ask, const char *name) {
  const json_t *one;
  size_t i;
  json_array_foreach((json_t *)ask->without, i, one)
    if (strcmp(json_string_value(one), name) == 0)
      return true;
  return false;
}

bool wire_body(struct wire *wire, const struct ask *ask, json_t *owned_body) {
  const json_t *name;
  size_t i;
  json_array_foreach((json_t *)ask->without, i, name)
    rejected_parameter_leave_out(owned_body, json_string_value(name));
  buf_reserve(&wire->body, BODY_BYTES);
  json_write(owned_body, &wire->body);
  json_decref(owned_body);
  return true;
}

void wire_deinit(struct wire *wire) {
  buf_deinit(&wire->path);
  buf_deinit(&wire->body);
  for (size_t i = 0; wire->headers[i]; i++) {
    explicit_bzero(wire->headers[i], strlen(wire->headers[i]));
    free(wire->headers[i]);
    wire->headers[i] = NULL;
  }
}

void ask_option(const struct ask *ask, const char *option, json_t *body, const char *key) {
  json_t *value = json_object_get(ask->options, option);
  if (value != NULL)
    json_object_set(body, key, value);
}

void ask_extra(const struct ask *ask, json_t *body) {
  if (ask->extra != NULL)
    json_object_update_missing(body, (json_t *)ask->extra);
}

void ask_put(json_t *body, const char *key, json_t *owned) {
  if (json_object_size(owned) > 0)
    json_object_set(body, key, owned);
  json_decref(owned);
}

json_t *ask_messages(const struct ask *ask) {
  return json_pack("[{ss so}]", "role", "user", "content", json_text(ask->prompt));
}

size_t ask_shared_head(const struct call_request *request, struct str prompt) {
  static const char mark[] = "\n----- ";
  enum { FENCE = sizeof mark - 1 + 16 };
  const char *first = NULL;
  if (request->purpose == PURPOSE_JUDGE)
    first = memmem(prompt.p, prompt.n, mark, sizeof mark - 1);
  if (first == NULL || (size_t)(prompt.p + prompt.n - first) < 2 * FENCE)
    return 0;
  const char *from = first + FENCE;
  const char *second = memmem(from, (size_t)(prompt.p + prompt.n - from), first, FENCE);
  return second != NULL ? (size_t)(second + FENCE - prompt.p) : 0;
}
