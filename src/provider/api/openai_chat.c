/* Speaks OpenAI Chat Completions, as many servers do: POST /chat/completions below a base URL
 * that ends in /v1. What differs between them are quirks of the preset. */
#include "format/json_write.h"
#include "provider/api/reply.h"

static void chat_set_schema(const struct ask *ask, json_t *body) {
  json_t *format = NULL;
  bool vllm = ask->quirks & QUIRK_STRUCTURED_OUTPUTS;
  if (ask_rung(ask, RUNG_NATIVE) && vllm)
    json_object_set_new(body, "structured_outputs", json_pack("{sO}", "json", ask->schema));
  else if (ask_rung(ask, RUNG_NATIVE))
    format = json_pack("{ss s{ss sb sO}}", "type", "json_schema", "json_schema", "name", ASK_TOOL,
                       "strict", 1, "schema", ask->schema);
  else if (ask_rung(ask, RUNG_JSON))
    format = json_pack("{ss}", "type", "json_object");
  else if (ask_rung(ask, RUNG_GRAMMAR) && vllm)
    json_object_set_new(body, "structured_outputs",
                        json_pack("{ss%}", "grammar", ask->grammar.p, ask->grammar.n));
  else if (ask_rung(ask, RUNG_GRAMMAR))
    json_object_set_new(body, "grammar", json_stringn(ask->grammar.p, ask->grammar.n));
  if (format != NULL)
    json_object_set_new(body, "response_format", format);
  if (ask_rung(ask, RUNG_TOOL)) {
    json_object_set_new(body, "tools",
                        json_pack("[{ss s{ss ss sb sO}}]", "type", "function", "function", "name",
                                  ASK_TOOL, "description",
                                  "Gives the answer in its one allowed form.", "strict", 1,
                                  "parameters", ask->schema));
    json_object_set_new(body, "tool_choice",
                        json_pack("{ss s{ss}}", "type", "function", "function", "name", ASK_TOOL));
  }
}

static bool chat_build(const struct ask *ask, struct wire *wire, struct err *err) {
  (void)err;
  json_t *body = json_object();
  if (ask->model.n > 0)
    json_object_set_new(body, "model", json_stringn(ask->model.p, ask->model.n));
  json_object_set_new(body, "messages", ask_messages(ask));
  ask_option(ask, "temperature", body, "temperature");
  ask_option(ask, "seed", body, ask->quirks & QUIRK_RANDOM_SEED ? "random_seed" : "seed");
  /* The new name serves where the old one is refused. */
  bool newer = (ask->quirks & QUIRK_MAX_COMPLETION_TOKENS) || ask_lacks(ask, "max_tokens");
  ask_option(ask, "max_tokens", body, newer ? "max_completion_tokens" : "max_tokens");
  if (ask->quirks & QUIRK_CACHE_KEY && ask->family.n > 0)
    json_object_set_new(body, "prompt_cache_key", json_stringn(ask->family.p, ask->family.n));
  chat_set_schema(ask, body);
  const json_t *effort = json_object_get(ask->options, "effort");
  json_auto_t *none = json_string("none");
  if (effort == NULL && json_is_string(ask->think))
    effort = ask->think;
  bool own = ask->quirks & (QUIRK_TEMPLATE_KWARGS | QUIRK_REASONING_OBJECT | QUIRK_THINKING_OBJECT);
  if (json_is_false(ask->think)) /* the word of most APIs; where it is refused, it is left out */
    effort = own ? NULL : none;
  if (json_is_boolean(ask->think) && (ask->quirks & QUIRK_THINKING_OBJECT))
    json_object_set_new(
        body, "thinking",
        json_pack("{ss}", "type", json_is_true(ask->think) ? "enabled" : "disabled"));
  if (effort != NULL && (ask->quirks & QUIRK_REASONING_OBJECT))
    json_object_set_new(body, "reasoning", json_pack("{sO}", "effort", effort));
  else if (effort != NULL)
    json_object_set(body, "reasoning_effort", (json_t *)effort);
  else if (json_is_boolean(ask->think) && (ask->quirks & QUIRK_REASONING_OBJECT))
    json_object_set_new(body, "reasoning",
                        json_pack("{sb}", "enabled", (int)json_is_true(ask->think)));
  /* A grammar rules the reasoning, too: one without a place for it lets nobody think. */
  const json_t *level = json_is_string(ask->think) ? ask->think : NULL;
  if ((ask->quirks & QUIRK_TEMPLATE_KWARGS) && (ask->think || ask_rung(ask, RUNG_GRAMMAR)))
    json_object_set_new(body, "chat_template_kwargs",
                        json_pack("{sb sO*}", "enable_thinking",
                                  (int)(ask->think && !json_is_false(ask->think)),
                                  "reasoning_effort", level));
  if (ask->schema != NULL && ask->rung != RUNG_PROMPT && (ask->quirks & QUIRK_REQUIRE_PARAMETERS))
    json_object_set_new(body, "provider", json_pack("{sb}", "require_parameters", 1));
  if (ask->stream) {
    json_object_set_new(body, "stream", json_true());
    if (!(ask->quirks & QUIRK_NO_USAGE_OPTION))
      json_object_set_new(body, "stream_options", json_pack("{sb}", "include_usage", 1));
  }
  ask_extra(ask, body);
  buf_puts(&wire->path, "/chat/completions");
  wire_key(wire, ask->quirks, ask->key);
  return wire_body(wire, ask, body);
}

static void chat_read(struct reply *r, const json_t *doc) {
  const json_t *choice = json_array_get(json_object_get(doc, "choices"), 0);
  const json_t *usage = json_object_get(doc, "usage"), *delta = json_object_get(choice, "delta");
  const json_t *stop = json_object_get(choice, "finish_reason");
  const json_t *error = json_object_get(choice, "error"); /* OpenRouter */
  /* Reads `delta` of a stream or `message` of a document. */
  const json_t *message = delta ? delta : json_object_get(choice, "message");
  const json_t *call, *part, *content = json_object_get(message, "content");
  size_t i;
  reply_thinking(r, json_object_get(message, "reasoning_content"));
  if (!json_is_string(json_object_get(message, "reasoning_content")))
    reply_thinking(r, json_object_get(message, "reasoning"));
  reply_text(r, content);
  json_array_foreach((json_t *)content, i, part)
    reply_text(r, json_object_get(part, "text"));
  reply_refusal(r, json_object_get(message, "refusal"));
  json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    reply_tool(r, json_object_get(json_object_get(call, "function"), "arguments"));
  const json_t *read = json_object_get(usage, "prompt_tokens_details");
  reply_usage(
      r, json_object_get(usage, "prompt_tokens"), json_object_get(usage, "completion_tokens"),
      json_object_get(read, "cached_tokens"),
      json_object_get(json_object_get(usage, "completion_tokens_details"), "reasoning_tokens"),
      json_object_get(read, "cache_write_tokens"));
  reply_cost(r, json_object_get(usage, "cost")); /* OpenRouter */
  if (json_is_object(error))
    reply_error(r, choice);
  else if (json_is_string(stop))
    reply_stop(r, stop, r->refusal.n > 0 ? CLASS_REFUSED : CLASS_NONE);
}

const struct dialect dialect_openai_chat = {
    .name = "openai-chat",
    .rungs =
        RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL) | RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_ALL,
    .judge_effort = "low",
    .local = true,
    .model_needed = true,
    .build = chat_build,
    .event = chat_read,
    .whole = chat_read,
};

/* --- llama.cpp's server: POST /v1/chat/completions with a grammar of our own; or with
 * QUIRK_GENERATE the raw /completion, which applies no chat template --- */

static bool build_completion(const struct ask *ask, struct wire *wire) {
  json_t *body = json_object();
  json_object_set_new(body, "prompt", json_text(ask->prompt));
  ask_option(ask, "temperature", body, "temperature");
  ask_option(ask, "seed", body, "seed");
  ask_option(ask, "max_tokens", body, "n_predict");
  if (ask_rung(ask, RUNG_NATIVE)) /* with a grammar as well the server answers 400 */
    json_object_set(body, "json_schema", (json_t *)ask->schema);
  else if (ask_rung(ask, RUNG_GRAMMAR))
    json_object_set_new(body, "grammar", json_stringn(ask->grammar.p, ask->grammar.n));
  else if (ask_rung(ask, RUNG_JSON))
    json_object_set_new(body, "json_schema", json_pack("{ss}", "type", "object"));
  if (ask->stream)
    json_object_set_new(body, "stream", json_true());
  ask_extra(ask, body);
  buf_puts(&wire->path, "/completion");
  wire_bearer(wire, ask->key);
  return wire_body(wire, ask, body);
}

static bool llamacpp_build(const struct ask *ask, struct wire *wire, struct err *err) {
  if (ask->quirks & QUIRK_GENERATE)
    return build_completion(ask, wire);
  buf_puts(&wire->path, "/v1");
  return chat_build(ask, wire, err);
}

static void llamacpp_read(struct reply *r, const json_t *doc) {
  if (json_object_get(doc, "choices")) {
    chat_read(r, doc);
    return;
  }
  reply_text(r, json_object_get(doc, "content"));
  if (json_is_true(json_object_get(doc, "stop"))) {
    bool limit = json_is_true(json_object_get(doc, "stopped_limit")); /* older versions send it */
    reply_usage(r, json_object_get(doc, "tokens_evaluated"),
                json_object_get(doc, "tokens_predicted"), json_object_get(doc, "tokens_cached"),
                NULL, NULL);
    reply_stop(r, json_object_get(doc, "stop_type"), limit ? CLASS_LENGTH : CLASS_NONE);
    reply_close(r);
  }
}

const struct dialect dialect_llamacpp = {
    .name = "llamacpp",
    .rungs = RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_GRAMMAR) | RUNG_BIT(RUNG_JSON) |
             RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_TEMPERATURE | OPTION_SEED | OPTION_MAX_TOKENS,
    .local = true,
    .build = llamacpp_build,
    .event = llamacpp_read,
    .whole = llamacpp_read,
};
