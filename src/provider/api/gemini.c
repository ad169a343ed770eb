/* Speaks Gemini: POST /v1beta/models/NAME:streamGenerateContent?alt=sse. */
#include "format/json_write.h"
#include "provider/api/reply.h"

#include <string.h>

/* Puts the model into the path, so that nothing in its name leads elsewhere. */
static void put_model(struct buf *path, struct str model) {
  bool whole_name = str_starts(model, "models/") || str_starts(model, "tunedModels/");
  const char *slash = whole_name ? memchr(model.p, '/', model.n) : NULL;
  size_t kept = slash ? (size_t)(slash - model.p) + 1 : 0;
  buf_puts(path, whole_name ? "" : "models/");
  buf_append(path, model.p, kept);
  wire_encoded(path, (struct str){model.p + kept, model.n - kept});
}

static bool gemini_api_build(const struct ask *ask, struct wire *wire, struct err *err) {
  json_t *body = json_object(), *config = json_object(), *thinking = json_object();
  (void)err;
  json_object_set_new(
      body, "contents",
      json_pack("[{ss s[{so}]}]", "role", "user", "parts", "text", json_text(ask->prompt)));
  ask_option(ask, "temperature", config, "temperature");
  ask_option(ask, "seed", config, "seed");
  ask_option(ask, "max_tokens", config, "maxOutputTokens");
  ask_option(ask, "effort", thinking, "thinkingLevel");
  if (json_is_string(ask->think) && !json_object_get(thinking, "thinkingLevel"))
    json_object_set(thinking, "thinkingLevel", (json_t *)ask->think);
  /* Newer models know levels only, and the lowest is the least; older ones refuse any level. */
  if (json_is_false(ask->think) && ask_lacks(ask, "thinkingLevel"))
    json_object_set_new(thinking, "thinkingBudget", json_integer(0));
  else if (json_is_false(ask->think))
    json_object_set_new(thinking, "thinkingLevel", json_string("low"));
  else if (ask->think != NULL)
    json_object_set_new(thinking, "includeThoughts", json_true());
  ask_put(config, "thinkingConfig", thinking);
  if (ask_rung(ask, RUNG_NATIVE) || ask_rung(ask, RUNG_JSON))
    json_object_set_new(config, "responseMimeType", json_string("application/json"));
  if (ask_rung(ask, RUNG_NATIVE))
    json_object_set(config, "responseJsonSchema", (json_t *)ask->schema);
  if (ask_rung(ask, RUNG_TOOL)) {
    json_object_set_new(body, "tools",
                        json_pack("[{s[{ss ss sO}]}]", "functionDeclarations", "name", ASK_TOOL,
                                  "description", "Gives the answer in its one allowed form.",
                                  "parametersJsonSchema", ask->schema));
    json_object_set_new(body, "toolConfig",
                        json_pack("{s{ss s[s]}}", "functionCallingConfig", "mode", "ANY",
                                  "allowedFunctionNames", ASK_TOOL));
  }
  ask_put(body, "generationConfig", config);
  ask_extra(ask, body);
  buf_puts(&wire->path, "/v1beta/");
  put_model(&wire->path, ask->model);
  buf_puts(&wire->path, ask->stream ? ":streamGenerateContent?alt=sse" : ":generateContent");
  if (ask->key.n > 0)
    wire_header(wire, "x-goog-api-key", ask->key);
  return wire_body(wire, ask, body);
}

static void gemini_api_read(struct reply *r, const json_t *doc) {
  const json_t *candidate = json_array_get(json_object_get(doc, "candidates"), 0);
  const json_t *stop = json_object_get(candidate, "finishReason"), *part;
  const json_t *blocked = json_object_get(json_object_get(doc, "promptFeedback"), "blockReason");
  size_t i;
  json_array_foreach(json_object_get(json_object_get(candidate, "content"), "parts"), i, part) {
    const json_t *call = json_object_get(part, "functionCall");
    if (json_is_true(json_object_get(part, "thought")))
      reply_thinking(r, json_object_get(part, "text"));
    else
      reply_text(r, json_object_get(part, "text"));
    if (json_object_get(call, "args"))
      reply_tool_value(r, json_object_get(call, "args"));
  }
  const json_t *usage = json_object_get(doc, "usageMetadata");
  const json_t *answer = json_object_get(usage, "candidatesTokenCount");
  const json_t *thoughts = json_object_get(usage, "thoughtsTokenCount");
  json_t *output = reply_sum((const json_t *[]){answer, thoughts}, 2);
  reply_usage(r, json_object_get(usage, "promptTokenCount"), output,
              json_object_get(usage, "cachedContentTokenCount"), thoughts, NULL);
  json_decref(output);
  if (json_is_string(blocked))
    reply_stop(r, blocked, CLASS_REFUSED);
  else if (json_is_string(stop)) /* MALFORMED_FUNCTION_CALL, OTHER and so on: no answer */
    reply_stop(r, stop, CLASS_NONE);
}

const struct dialect dialect_gemini = {
    .name = "gemini",
    .rungs =
        RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL) | RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_ALL,
    .judge_effort = "low",
    .model_needed = true,
    .build = gemini_api_build,
    .event = gemini_api_read,
    .whole = gemini_api_read,
};
