/* Reads what `opencode serve` says, live or in a recording: its events, and its answers to
 * POST /session/ID/message.
 *
 * Each value is one event ({"type", "properties"}), one answer ({"info", "parts"}) or another
 * body. A recording may hold several prompts: the last one is what the end is about. */
#include "provider/agent/opencode_internal.h"

#include "base/limits.h"
#include "base/log.h"
#include "os/clock.h"
#include "provider/agent/evidence.h"

#include <string.h>

struct str opencode_text(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return (struct str){json_string_value(value), json_string_length(value)};
}

/* --- errors --- */

void opencode_note_error(struct driver *d, const json_t *error) {
  const json_t *data = json_object_get(error, "data");
  json_int_t status = json_integer_value(json_object_get(data, "statusCode"));
  struct str message = opencode_text(data, "message"), name = opencode_text(error, "name");
  stream_kind(d, name);
  stream_trouble(d, status >= 400 && status < 600 ? (int)status : 0,
                 message.n > 0 ? message : name);
}

/* --- tokens: those of all messages of the call are added up --- */

static const char *const counts[] = {"input", "output", "cached", "reasoning"};

static json_int_t opencode_count_of(const json_t *object, const char *name) {
  json_int_t count = json_integer_value(json_object_get(object, name));
  return count > 0 && count < 1000000000000 ? count : 0;
}

static void note_usage(struct opencode *o, const json_t *info) {
  const json_t *tokens = json_object_get(info, "tokens"), *cache = json_object_get(tokens, "cache");
  const char *id = json_string_value(json_object_get(info, "id"));
  double cost = json_number_value(json_object_get(info, "cost"));
  if (!json_is_integer(json_object_get(tokens, "input")))
    return;
  json_t *usage = json_pack(
      "{s:I, s:I, s:I, s:I}", counts[0],
      opencode_count_of(tokens, "input") + opencode_count_of(cache, "read") +
          opencode_count_of(cache, "write"),
      counts[1], opencode_count_of(tokens, "output") + opencode_count_of(tokens, "reasoning"),
      counts[2], opencode_count_of(cache, "read"), counts[3],
      opencode_count_of(tokens, "reasoning"));
  if (cost > 0 && cost < 1e9) /* 0: it knows no price */
    json_object_set_new(usage, "cost_usd", json_real(cost));
  json_object_set_new(o->tokens, id ? id : "", usage);
}

static void opencode_say_usage(struct driver *d) {
  json_t *sum = json_object(), *usage;
  const char *id;
  double cost = 0;
  bool priced = true;
  json_object_foreach(opencode_of(d)->tokens, id, usage) {
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
      json_object_set_new(sum, counts[i],
                          json_integer(json_integer_value(json_object_get(sum, counts[i])) +
                                       json_integer_value(json_object_get(usage, counts[i]))));
    cost += json_number_value(json_object_get(usage, "cost_usd"));
    priced = priced && (json_object_get(usage, "cost_usd") != NULL ||
                        json_integer_value(json_object_get(usage, "output")) == 0);
  }
  if (json_integer_value(json_object_get(sum, "reasoning")) == 0)
    json_object_del(sum, "reasoning");
  if (priced && cost > 0)
    json_object_set_new(sum, "cost_usd", json_real(cost));
  stream_usage(d, sum);
}

/* --- events --- */

static void opencode_say_tool(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str name = opencode_text(part, "tool"), id = opencode_text(part, "callID");
  const char *state = json_string_value(json_object_get(json_object_get(part, "state"), "status"));
  const char *key = json_string_value(json_object_get(part, "id"));
  bool failed = state != NULL && strcmp(state, "error") == 0;
  bool ended = failed || (state != NULL && strcmp(state, "completed") == 0);
  const json_t *known = key ? json_object_get(o->parts, key) : NULL;
  if (key == NULL || json_is_true(known))
    return;
  const json_t *now = json_object_get(part, "state");
  const json_t *input = json_object_get(now, "input");
  bool told = json_is_false(known) || (known == NULL && tool_has_argument(input));
  if (known == NULL)
    stream_tool(d, &(struct tool_told){
                       .name = name, .id = id, .state = "start", .failed = -1, .input = input});
  const struct tool_told end = {.name = name,
                                .id = id,
                                .state = "end",
                                .failed = failed,
                                .input = told ? NULL : input,
                                .output = json_object_get(now, failed ? "error" : "output"),
                                .exit = json_object_get(json_object_get(now, "metadata"), "exit")};
  if (ended)
    stream_tool(d, &end);
  if (ended)
    json_object_set_new(o->parts, key, json_true());
  else
    json_object_set_new(o->parts, key, told ? json_false() : json_null());
}

/* Notes that a piece of this message comes: the message before it is complete. */
static void talk(struct driver *d, struct str message) {
  struct opencode *o = opencode_of(d);
  if (message.n == 0 || str_eq(message, buf_view(&o->talking)))
    return;
  if (d->told.n > 0)
    stream_end_message(d, buf_view(&o->talking));
  buf_clear(&o->talking);
  buf_str(&o->talking, message);
}

static bool is_assistants(const struct opencode *o, struct str message) {
  return message.n > 0 && json_object_getn(o->assistant, message.p, message.n) != NULL;
}

static void opencode_say_piece(struct driver *d, const char *part, struct str message,
                               struct str piece) {
  talk(d, message);
  if (json_object_get(opencode_of(d)->thoughts, part) != NULL)
    stream_tell_thinking(d, piece);
  else
    stream_tell_piece(d, piece);
}

/* Tells a part as far as it has come. `parts` holds what was already told of it. */
static void say_part(struct driver *d, const json_t *part) {
  struct opencode *o = opencode_of(d);
  struct str type = opencode_text(part, "type"), text = opencode_text(part, "text");
  struct str message = opencode_text(part, "messageID");
  const char *key = json_string_value(json_object_get(part, "id"));
  if (!is_assistants(o, message) || key == NULL)
    return;
  if (str_eq_c(type, "tool")) {
    opencode_say_tool(d, part);
    return;
  }
  if (str_eq_c(type, "reasoning"))
    json_object_set_new(o->thoughts, key, json_true());
  size_t told = (size_t)json_integer_value(json_object_get(o->parts, key));
  if (text.n <= told || (!str_eq_c(type, "text") && !str_eq_c(type, "reasoning")))
    return;
  struct str rest = {text.p + told, text.n - told};
  opencode_say_piece(d, key, message, rest);
  json_object_set_new(o->parts, key, json_integer((json_int_t)text.n));
}

static void say_delta(struct driver *d, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  struct str delta = opencode_text(properties, "delta");
  struct str message = opencode_text(properties, "messageID");
  const char *key = json_string_value(json_object_get(properties, "partID"));
  if (delta.n == 0 || key == NULL || !is_assistants(o, message) ||
      !str_eq_c(opencode_text(properties, "field"), "text"))
    return;
  json_int_t told = json_integer_value(json_object_get(o->parts, key));
  opencode_say_piece(d, key, message, delta);
  json_object_set_new(o->parts, key, json_integer(told + (json_int_t)delta.n));
}

/* Returns the wait until `next`, a moment of the wall clock, in milliseconds. */
static int64_t delay_until(const json_t *next) {
  int64_t now_ms = clock_real_ms();
  json_int_t at = json_integer_value(next);
  return at > now_ms && at < INT64_MAX / 2 ? at - now_ms : 0;
}

static void opencode_say_retry(struct driver *d, const json_t *status) {
  json_t *attempt = json_object_get(status, "attempt"), *data = json_object();
  struct str reason = opencode_text(status, "message");
  int64_t delay = opencode_of(d)->live ? delay_until(json_object_get(status, "next")) : 0;
  if (json_is_integer(attempt))
    json_object_set(data, "attempt", attempt);
  if (delay > 0)
    json_object_set_new(data, "delay_ms", json_integer(delay));
  if (evidence_status(reason) > 0)
    json_object_set_new(data, "status", json_integer(evidence_status(reason)));
  stream_retry(d, data, reason);
  opencode_on_retry(d, json_integer_value(attempt), delay, reason);
}

static bool is_of_call(const struct opencode *o, struct str session) {
  return session.n == 0 || o->session[0] == '\0' || str_eq_c(session, o->session);
}

static void say_status(struct driver *d, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  const json_t *status = json_object_get(properties, "status");
  struct str type = opencode_text(status, "type");
  bool ours = is_of_call(o, opencode_text(properties, "sessionID"));
  if (str_eq_c(type, "retry")) /* also for agents below it: they hold it up */
    opencode_say_retry(d, status);
  else if (ours && str_eq_c(type, "busy"))
    o->idle = false;
  else if (ours && str_eq_c(type, "idle"))
    opencode_on_idle(d);
}

static void on_assistant(struct driver *d, const json_t *info) {
  struct opencode *o = opencode_of(d);
  const char *id = json_string_value(json_object_get(info, "id"));
  if (id == NULL || !str_eq_c(opencode_text(info, "role"), "assistant"))
    return;
  note_usage(o, info); /* agents below it cost, too */
  if (is_of_call(o, opencode_text(info, "sessionID")))
    json_object_set_new(o->assistant, id, json_true());
}

/* Returns true if there are more messages and parts than any work has. The answer tells their text
 * all the same. */
static bool is_full(const struct opencode *o) {
  return json_object_size(o->parts) + json_object_size(o->thoughts) +
             json_object_size(o->assistant) + json_object_size(o->tokens) >=
         LIMIT_AGENT_PART_COUNT;
}

static void opencode_on_event(struct driver *d, struct str type, const json_t *properties) {
  struct opencode *o = opencode_of(d);
  if (str_eq_c(type, "session.status"))
    say_status(d, properties);
  else if (str_eq_c(type, "permission.asked")) /* also from agents below it: they wait */
    opencode_on_permission(d, properties);
  else if (str_eq_c(type, "question.asked"))
    opencode_on_question(d, properties);
  else if (str_starts(type, "message.") && is_full(o))
    return;
  else if (str_eq_c(type, "message.updated"))
    on_assistant(d, json_object_get(properties, "info"));
  else if (!is_of_call(o, opencode_text(properties, "sessionID")))
    return;
  else if (str_eq_c(type, "message.part.updated"))
    say_part(d, json_object_get(properties, "part"));
  else if (str_eq_c(type, "message.part.delta"))
    say_delta(d, properties);
  else if (str_eq_c(type, "session.error"))
    opencode_note_error(d, json_object_get(properties, "error"));
  else if (str_eq_c(type, "session.idle"))
    opencode_on_idle(d);
}

/* --- answers --- */

static void on_message(struct driver *d, const json_t *info, const json_t *parts) {
  struct opencode *o = opencode_of(d);
  const json_t *error = json_object_get(info, "error");
  json_t *structured = json_object_get(info, "structured");
  struct str finish = opencode_text(info, "finish");
  struct buf text = {.max = LIMIT_OUTPUT_BYTES};
  if (o->aborted && finish.n == 0 && !json_is_object(error))
    return; /* what had come until then is no answer */
  for (size_t i = 0; i < json_array_size(parts); i++)
    if (str_eq_c(opencode_text(json_array_get(parts, i), "type"), "text"))
      buf_str(&text, opencode_text(json_array_get(parts, i), "text"));
  talk(d, opencode_text(info, "id"));
  if (text.n > 0)
    stream_tell_rest(d, buf_view(&text));
  buf_deinit(&text);
  stream_end_message(d, (struct str){0});
  note_usage(o, info);
  opencode_say_usage(d);
  if (structured != NULL && !json_is_null(structured)) {
    json_decref(d->structured);
    d->structured = json_incref(structured);
  }
  bool cut = str_eq_c(finish, "length");
  if (json_is_object(error)) {
    opencode_note_error(d, error);
  } else if (cut) {
    stream_trouble(d, 0, STR("the answer was cut by the model's limit of tokens"));
    d->trouble.class = CLASS_LENGTH;
  }
  stream_finish(d, json_is_object(error) || cut ? STREAM_END_ERROR : STREAM_END_OK);
}

void opencode_value(struct driver *d, const json_t *value) {
  struct str type = opencode_text(value, "type");
  const json_t *properties = json_object_get(value, "properties");
  const json_t *info = json_object_get(value, "info");
  bool over = d->end != STREAM_END_NONE;
  if (over && opencode_of(d)->live) /* a recording may go on with the next prompt */
    return;
  if (properties != NULL && type.n > 0 && !over)
    opencode_on_event(d, type, properties);
  else if (json_is_object(info) && json_is_array(json_object_get(value, "parts")))
    on_message(d, info, json_object_get(value, "parts"));
}

void opencode_enter(struct driver *d, struct str session) {
  struct opencode *o = opencode_of(d);
  if (session.n >= sizeof o->session)
    return;
  memcpy(o->session, session.p, session.n);
  o->session[session.n] = '\0';
  stream_session(d, session);
}
