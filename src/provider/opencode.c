/* What `opencode serve` says: its events, and its answers to POST /session/ID/message. It reads
 * recordings only; nothing starts a server yet.
 *
 * Each value is one event ({"type", "properties"}), one answer ({"info", "parts"}) or another body. A
 * recording may hold several prompts: the last one is what the end is about. */
#include "provider/driver.h"

#include "base/limits.h"
#include "base/log.h"
#include "provider/stream_internal.h"

#include <stdlib.h>
#include <string.h>

struct opencode {
  char session[128];
  json_t *assistant; /* ids of the model's messages: the prompt is a message, too */
  json_t *parts;     /* what was told of each part: id -> bytes, or a tool's state */
  bool aborted;
};

static struct opencode *opencode_of(struct driver *d) {
  return d->own;
}

static struct str text_of(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return (struct str){json_string_value(value), json_string_length(value)};
}

/* --- errors and tokens --- */

static void note_error(struct driver *d, const json_t *error) {
  const json_t *data = json_object_get(error, "data");
  json_int_t status = json_integer_value(json_object_get(data, "statusCode"));
  struct str message = text_of(data, "message"), name = text_of(error, "name");
  stream_kind(d, name);
  stream_trouble(d, status >= 400 && status < 600 ? (int)status : 0,
                 message.n > 0 ? message : name);
}

static json_int_t count_of(const json_t *object, const char *name) {
  json_int_t count = json_integer_value(json_object_get(object, name));
  return count > 0 && count < 1000000000000 ? count : 0;
}

static void say_usage(struct driver *d, const json_t *tokens) {
  const json_t *cache = json_object_get(tokens, "cache");
  if (!json_is_integer(json_object_get(tokens, "input")))
    return;
  stream_usage(
      d, json_pack("{s:I, s:I, s:I}", "input",
                   count_of(tokens, "input") + count_of(cache, "read") + count_of(cache, "write"),
                   "output", count_of(tokens, "output") + count_of(tokens, "reasoning"), "cached",
                   count_of(cache, "read")));
}

/* --- events --- */

static void say_tool(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str name = text_of(part, "tool"), id = text_of(part, "callID");
  const char *state = json_string_value(json_object_get(json_object_get(part, "state"), "status"));
  const char *key = json_string_value(json_object_get(part, "id"));
  bool failed = state != NULL && strcmp(state, "error") == 0;
  bool ended = failed || (state != NULL && strcmp(state, "completed") == 0);
  const json_t *known = key ? json_object_get(o->parts, key) : NULL;
  if (key == NULL || json_is_true(known))
    return;
  if (known == NULL)
    stream_tool(d, name, id, "start", -1);
  if (ended)
    stream_tool(d, name, id, "end", failed);
  json_object_set_new(o->parts, key, json_boolean(ended));
}

/* A part as far as it has come; what was told of it stands in `parts`. */
static void say_part(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str type = text_of(part, "type"), text = text_of(part, "text");
  const char *message = json_string_value(json_object_get(part, "messageID"));
  const char *key = json_string_value(json_object_get(part, "id"));
  if (message == NULL || json_object_get(o->assistant, message) == NULL || key == NULL)
    return;
  if (str_eq_c(type, "tool")) {
    say_tool(d, part);
    return;
  }
  size_t told = (size_t)json_integer_value(json_object_get(o->parts, key));
  if (text.n <= told || (!str_eq_c(type, "text") && !str_eq_c(type, "reasoning")))
    return;
  struct str rest = {text.p + told, text.n - told};
  if (str_eq_c(type, "text"))
    stream_tell_piece(d, rest);
  else
    stream_tell(d, NEWS_THINKING, rest, NULL);
  json_object_set_new(o->parts, key, json_integer((json_int_t)text.n));
}

static void say_delta(struct driver *d, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  struct str delta = text_of(properties, "delta");
  const char *key = json_string_value(json_object_get(properties, "partID"));
  const char *message = json_string_value(json_object_get(properties, "messageID"));
  if (delta.n == 0 || key == NULL || message == NULL ||
      json_object_get(o->assistant, message) == NULL ||
      !str_eq_c(text_of(properties, "field"), "text"))
    return;
  json_int_t told = json_integer_value(json_object_get(o->parts, key));
  stream_tell_piece(d, delta);
  json_object_set_new(o->parts, key, json_integer(told + (json_int_t)delta.n));
}

static void say_status(struct driver *d, const json_t *status) {
  json_t *attempt = json_object_get(status, "attempt"), *data = json_object();
  if (json_is_integer(attempt))
    json_object_set(data, "attempt", attempt);
  if (str_eq_c(text_of(status, "type"), "retry"))
    stream_retry(d, data, text_of(status, "message"));
  else
    json_decref(data);
}

static void on_event(struct driver *d, struct str type, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  struct str session = text_of(properties, "sessionID");
  const json_t *info = json_object_get(properties, "info");
  const char *id = json_string_value(json_object_get(info, "id"));
  if (str_eq_c(type, "session.status")) /* of agents below it, too: they hold it up */
    say_status(d, json_object_get(properties, "status"));
  if (session.n > 0 && o->session[0] != '\0' && !str_eq_c(session, o->session))
    return;
  if (str_eq_c(type, "message.updated") && id != NULL &&
      str_eq_c(text_of(info, "role"), "assistant"))
    json_object_set_new(o->assistant, id, json_true());
  else if (str_eq_c(type, "message.part.updated"))
    say_part(d, json_object_get(properties, "part"));
  else if (str_eq_c(type, "message.part.delta"))
    say_delta(d, properties);
  else if (str_eq_c(type, "session.error"))
    note_error(d, json_object_get(properties, "error"));
}

/* --- answers --- */

static void on_message(struct driver *d, const json_t *info, const json_t *parts) {
  const json_t *error = json_object_get(info, "error");
  json_t *structured = json_object_get(info, "structured");
  struct buf text = {.max = LIMIT_OUTPUT_BYTES};
  for (size_t i = 0; i < json_array_size(parts); i++)
    if (str_eq_c(text_of(json_array_get(parts, i), "type"), "text"))
      buf_str(&text, text_of(json_array_get(parts, i), "text"));
  if (text.n > 0)
    stream_tell_rest(d, buf_view(&text));
  buf_deinit(&text);
  stream_end_message(d, (struct str){0});
  say_usage(d, json_object_get(info, "tokens"));
  if (structured != NULL && !json_is_null(structured)) {
    json_decref(d->structured);
    d->structured = json_incref(structured);
  }
  if (json_is_object(error))
    note_error(d, error);
  stream_finish(d, json_is_object(error) ? STREAM_END_ERROR : STREAM_END_OK);
}

static void opencode_value(struct driver *d, const json_t *value) {
  struct str type = text_of(value, "type");
  const json_t *properties = json_object_get(value, "properties");
  const json_t *info = json_object_get(value, "info");
  if (properties != NULL && type.n > 0 && d->end == STREAM_END_NONE)
    on_event(d, type, properties);
  else if (json_is_object(info) && json_is_array(json_object_get(value, "parts")))
    on_message(d, info, json_object_get(value, "parts"));
}

/* --- the driver --- */

static struct driver *opencode_open(const struct profile *profile, const struct agent_call *call,
                                    const struct driver_host *host) {
  struct driver *d = stream_open(profile, call, host);
  struct opencode *o = xcalloc(1, sizeof *o);
  d->own = o;
  d->value = opencode_value;
  d->is_text = d->ends_by_exit = d->text_of_all = false;
  o->assistant = json_object();
  o->parts = json_object();
  return d;
}

static void enter(struct driver *d, struct str session) {
  struct opencode *o = opencode_of(d);
  if (session.n >= sizeof o->session)
    return;
  memcpy(o->session, session.p, session.n);
  o->session[session.n] = '\0';
  stream_session(d, session);
}

/* The next prompt: nothing of the last one counts for it. */
static void begin(struct driver *d, struct str session, struct str body) {
  struct opencode *o = opencode_of(d);
  json_t *value = json_loadb(body.p ? body.p : "", body.n, JSON_ALLOW_NUL, NULL);
  d->end = STREAM_END_NONE;
  d->schema_asked = json_object_get(value, "format") != NULL;
  d->trouble.there = false;
  d->trouble.status = 0;
  d->trouble.class = CLASS_NONE;
  buf_clear(&d->trouble.kinds);
  buf_clear(&d->trouble.message);
  buf_clear(&d->told);
  buf_clear(&d->last);
  buf_clear(&d->retry);
  json_decref(d->structured);
  json_decref(d->usage);
  d->structured = d->usage = NULL;
  o->aborted = false;
  enter(d, session);
  json_decref(value);
}

/* Of a session whose prompt the recording may not show any more. */
static void abort_at(struct driver *d, struct str session) {
  struct opencode *o = opencode_of(d);
  if (!str_eq_c(session, o->session))
    d->end = STREAM_END_NONE;
  enter(d, session);
  o->aborted = true;
}

/* "POST /session/ID/message {...}" */
static void opencode_sent(struct driver *d, struct str line) {
  static const char post[] = "POST /session/";
  if (!str_starts(line, post))
    return;
  struct str rest = {line.p + sizeof post - 1, line.n - (sizeof post - 1)};
  const char *slash = memchr(rest.p, '/', rest.n);
  if (slash == NULL)
    return;
  struct str session = {rest.p, (size_t)(slash - rest.p)};
  struct str verb = {slash, rest.n - session.n};
  if (str_starts(verb, "/message "))
    begin(d, session, (struct str){verb.p + 9, verb.n - 9});
  else if (str_starts(verb, "/abort"))
    abort_at(d, session);
}

static void opencode_end(struct driver *d, const struct process_result *p, struct call_result *r) {
  struct opencode *o = opencode_of(d);
  stream_take_rest(d);
  if (d->schema_asked && r->enforced == NULL)
    r->enforced = "tool"; /* its own, StructuredOutput; it does not check the value */
  if (d->end == STREAM_END_NONE && o->aborted) {
    if (d->retry.n > 0) /* it was given up because it tried again and again */
      stream_trouble(d, 0, buf_view(&d->retry));
    else
      stream_trouble(d, 0, STR("cancelled"));
    d->trouble.class = d->retry.n > 0 ? CLASS_TIMEOUT : CLASS_CANCELLED;
    d->end = STREAM_END_ERROR;
  }
  stream_end(d, p, r);
}

static void opencode_close(struct driver *d) {
  struct opencode *o = opencode_of(d);
  json_decref(o->assistant);
  json_decref(o->parts);
  stream_close(d);
}

const struct driver_ops driver_opencode = {.name = "opencode",
                                           .transport = TRANSPORT_NATIVE,
                                           .replay_only = true,
                                           .open = opencode_open,
                                           .output = stream_output,
                                           .sent = opencode_sent,
                                           .end = opencode_end,
                                           .close = opencode_close};
