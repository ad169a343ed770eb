/* Speaks Anthropic Messages: POST /v1/messages. */
#include "provider/api/reply.h"

#include "base/limits.h"
#include "format/json_write.h"

#include <string.h>

/* The API requires a number. Thinking counts, too; what does not stream ends after ten minutes. */
enum { MAX_TOKENS_STREAM = 32000, MAX_TOKENS_WHOLE = 8192 };

void anthropic_headers(struct wire *wire, const char *version, struct str key) {
  wire_header(wire, "anthropic-version", str_from(version));
  if (key.n > 0 && strcmp(version, "2023-06-01") == 0)
    wire_header(wire, "x-api-key", key);
  else
    wire_bearer(wire, key); /* as the vendor's own libraries do */
}

/* Builds the messages so that the server caches the head for the next call that begins with it. */
static json_t *cached_messages(const struct ask *ask) {
  struct str head = {ask->prompt.p, ask->head_n};
  struct str rest = {ask->prompt.p + ask->head_n, ask->prompt.n - ask->head_n};
  return json_pack("[{ss s[{ss so s{ss}} {ss so}]}]", "role", "user", "content", "type", "text",
                   "text", json_text(head), "cache_control", "type", "ephemeral", "type", "text",
                   "text", json_text(rest));
}

static bool anthropic_build(const struct ask *ask, struct wire *wire, struct err *err) {
  const json_t *effort = json_object_get(ask->options, "effort");
  if (json_number_value(json_object_get(ask->options, "temperature")) > 1)
    return err_set(err, ERR_INVALID, "temperature of provider type anthropic goes from 0 to 1");
  json_t *body = json_object(), *output = json_object();
  json_object_set_new(body, "model", json_stringn(ask->model.p, ask->model.n));
  json_object_set_new(body, "max_tokens",
                      json_integer(ask->stream ? MAX_TOKENS_STREAM : MAX_TOKENS_WHOLE));
  ask_option(ask, "max_tokens", body, "max_tokens");
  if (ask->head_n >= LIMIT_CACHED_HEAD_BYTES)
    json_object_set_new(body, "messages", cached_messages(ask));
  else
    json_object_set_new(body, "messages", ask_messages(ask));
  ask_option(ask, "temperature", body, "temperature");
  if (effort != NULL)
    json_object_set(output, "effort", (json_t *)effort);
  if (ask_rung(ask, RUNG_NATIVE))
    json_object_set_new(output, "format",
                        json_pack("{ss sO}", "type", "json_schema", "schema", ask->schema));
  ask_put(body, "output_config", output);
  if (ask_rung(ask, RUNG_TOOL)) {
    json_object_set_new(body, "tools",
                        json_pack("[{ss ss sb sO}]", "name", ASK_TOOL, "description",
                                  "Gives the answer in its one allowed form.", "strict", 1,
                                  "input_schema", ask->schema));
    json_object_set_new(body, "tool_choice", json_pack("{ssss}", "type", "tool", "name", ASK_TOOL));
  }
  if (json_is_true(ask->think))
    json_object_set_new(body, "thinking", json_pack("{ss}", "type", "adaptive"));
  else if (json_is_false(ask->think))
    json_object_set_new(body, "thinking", json_pack("{ss}", "type", "disabled"));
  if (ask->stream)
    json_object_set_new(body, "stream", json_true());
  ask_extra(ask, body);
  buf_puts(&wire->path, "/v1/messages");
  anthropic_headers(wire, ask->version, ask->key);
  return wire_body(wire, ask, body);
}

/* Reads the use. A stream begins by reporting an output of a few tokens, which is not the answer's
 * count. */
static void anthropic_read_usage(struct reply *r, const json_t *usage, bool begins) {
  const json_t *fresh = json_object_get(usage, "input_tokens");
  const json_t *cached = json_object_get(usage, "cache_read_input_tokens");
  const json_t *written = json_object_get(usage, "cache_creation_input_tokens");
  const json_t *details = json_object_get(usage, "output_tokens_details");
  const json_t *counts[] = {fresh, cached, written};
  json_auto_t *input = fresh ? reply_sum(counts, ARRAY_LEN(counts)) : NULL;
  reply_usage(r, input, begins ? NULL : json_object_get(usage, "output_tokens"), cached,
              json_object_get(details, "thinking_tokens"), written);
}

static void read_stop(struct reply *r, const json_t *from) {
  const json_t *word = json_object_get(from, "stop_reason");
  if (json_is_string(word))
    reply_stop(r, word, CLASS_NONE);
}

static void anthropic_event(struct reply *r, const json_t *doc) {
  struct str kind = str_from(json_string_value(json_object_get(doc, "type")));
  if (str_eq_c(kind, "content_block_delta")) {
    const json_t *delta = json_object_get(doc, "delta");
    reply_text(r, json_object_get(delta, "text"));
    reply_thinking(r, json_object_get(delta, "thinking"));
    if (json_object_get(delta, "partial_json"))
      reply_tool(r, json_object_get(delta, "partial_json"));
  } else if (str_eq_c(kind, "message_start")) {
    anthropic_read_usage(r, json_object_get(json_object_get(doc, "message"), "usage"), true);
  } else if (str_eq_c(kind, "message_delta")) {
    anthropic_read_usage(r, json_object_get(doc, "usage"), false);
    read_stop(r, json_object_get(doc, "delta"));
  } else if (str_eq_c(kind, "message_stop") && r->over) {
    reply_close(r);
  } else if (str_eq_c(kind, "content_block_start")) {
    const json_t *block = json_object_get(doc, "content_block");
    reply_text(r, json_object_get(block, "text"));
    reply_thinking(r, json_object_get(block, "thinking"));
  }
}

static void anthropic_whole(struct reply *r, const json_t *doc) {
  const json_t *block;
  size_t i;
  json_array_foreach(json_object_get(doc, "content"), i, block) {
    reply_text(r, json_object_get(block, "text"));
    reply_thinking(r, json_object_get(block, "thinking"));
    if (json_object_get(block, "input"))
      reply_tool_value(r, json_object_get(block, "input"));
  }
  anthropic_read_usage(r, json_object_get(doc, "usage"), false);
  read_stop(r, doc);
}

const struct dialect dialect_anthropic = {
    .name = "anthropic",
    .rungs = RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL) | RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_TEMPERATURE | OPTION_MAX_TOKENS | OPTION_EFFORT,
    .judge_effort = "low",
    .model_needed = true,
    .needed = "max_tokens",
    .max_tokens = MAX_TOKENS_STREAM,
    .build = anthropic_build,
    .event = anthropic_event,
    .whole = anthropic_whole,
};
