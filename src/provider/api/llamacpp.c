/* Speaks to llama.cpp's server: POST /v1/chat/completions, the dialect of chat with a grammar of
 * our own; or with QUIRK_GENERATE the raw /completion, which applies no chat template. */
#include "format/json_write.h"
#include "provider/api/reply.h"

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
                NULL);
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
