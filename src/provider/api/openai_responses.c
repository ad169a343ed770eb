/* Speaks OpenAI Responses: POST /responses below a base URL that ends in /v1. */
#include "provider/api/reply.h"

static bool responses_build(const struct ask *ask, struct wire *wire, struct err *err) {
  json_t *body = json_object(), *text = NULL, *reasoning = json_object();
  (void)err;
  json_object_set_new(body, "model", json_stringn(ask->model.p, ask->model.n));
  json_object_set_new(body, "input", ask_messages(ask));
  json_object_set_new(body, "store", json_false()); /* the server is to keep nothing */
  if (ask->quirks & QUIRK_CACHE_KEY && ask->family.n > 0)
    json_object_set_new(body, "prompt_cache_key", json_stringn(ask->family.p, ask->family.n));
  ask_option(ask, "temperature", body, "temperature");
  ask_option(ask, "max_tokens", body, "max_output_tokens");
  ask_option(ask, "effort", reasoning, "effort");
  if (json_is_string(ask->think) && !json_object_get(reasoning, "effort"))
    json_object_set(reasoning, "effort", (json_t *)ask->think);
  if (json_is_false(ask->think))
    json_object_set_new(reasoning, "effort", json_string("none"));
  else if (ask->think != NULL)
    json_object_set_new(reasoning, "summary", json_string("auto"));
  ask_put(body, "reasoning", reasoning);
  if (ask_rung(ask, RUNG_NATIVE))
    text = json_pack("{s{ss ss sO sb}}", "format", "type", "json_schema", "name", ASK_TOOL,
                     "schema", ask->schema, "strict", 1);
  else if (ask_rung(ask, RUNG_JSON))
    text = json_pack("{s{ss}}", "format", "type", "json_object");
  if (text != NULL)
    json_object_set_new(body, "text", text);
  if (ask_rung(ask, RUNG_TOOL)) {
    json_object_set_new(body, "tools",
                        json_pack("[{ss ss ss sO sb}]", "type", "function", "name", ASK_TOOL,
                                  "description", "Gives the answer in its one allowed form.",
                                  "parameters", ask->schema, "strict", 1));
    json_object_set_new(body, "tool_choice",
                        json_pack("{ssss}", "type", "function", "name", ASK_TOOL));
  }
  if (ask->stream)
    json_object_set_new(body, "stream", json_true());
  ask_extra(ask, body);
  buf_puts(&wire->path, "/responses");
  wire_bearer(wire, ask->key);
  return wire_body(wire, ask, body);
}

/* Reads the response object at its end; deltas may have brought its output already. */
static void responses_read_end(struct reply *r, const json_t *response) {
  const json_t *usage = json_object_get(response, "usage");
  const json_t *reason = json_object_get(json_object_get(response, "incomplete_details"), "reason");
  struct str status = str_from(json_string_value(json_object_get(response, "status")));
  const json_t *read = json_object_get(usage, "input_tokens_details");
  reply_usage(r, json_object_get(usage, "input_tokens"), json_object_get(usage, "output_tokens"),
              json_object_get(read, "cached_tokens"),
              json_object_get(json_object_get(usage, "output_tokens_details"), "reasoning_tokens"),
              json_object_get(read, "cache_write_tokens"));
  if (r->text.n == 0 && r->tool.n == 0 && r->refusal.n == 0) {
    const json_t *item, *part;
    size_t i, k;
    json_array_foreach((json_t *)json_object_get(response, "output"), i, item) {
      json_array_foreach(json_object_get(item, "content"), k, part) {
        reply_text(r, json_object_get(part, "text"));
        reply_refusal(r, json_object_get(part, "refusal"));
      }
      if (json_object_get(item, "arguments"))
        reply_tool(r, json_object_get(item, "arguments"));
    }
  }
  if (str_eq_c(status, "failed") || str_eq_c(status, "cancelled"))
    reply_error(r, response);
  else if (str_eq_c(status, "incomplete")) {
    enum error_class class = reply_end_class(str_from(json_string_value(reason)));
    reply_stop(r, reason, class != CLASS_NONE ? class : CLASS_PROTOCOL);
  } else if (status.n > 0 || json_is_array(json_object_get(response, "output")))
    reply_stop(r, json_object_get(response, "status"),
               r->refusal.n > 0 ? CLASS_REFUSED : CLASS_NONE);
}

static void responses_event(struct reply *r, const json_t *doc) {
  struct str kind = str_from(json_string_value(json_object_get(doc, "type")));
  const json_t *delta = json_object_get(doc, "delta");
  if (str_eq_c(kind, "response.output_text.delta"))
    reply_text(r, delta);
  else if (str_eq_c(kind, "response.function_call_arguments.delta"))
    reply_tool(r, delta);
  else if (str_eq_c(kind, "response.refusal.delta"))
    reply_refusal(r, delta);
  else if (str_eq_c(kind, "response.reasoning_summary_text.delta") ||
           str_eq_c(kind, "response.reasoning_text.delta"))
    reply_thinking(r, delta);
  else if (str_eq_c(kind, "response.completed") || str_eq_c(kind, "response.incomplete") ||
           str_eq_c(kind, "response.failed")) {
    responses_read_end(r, json_object_get(doc, "response"));
    r->closed = r->over;
  } else if (str_eq_c(kind, "error")) {
    reply_error(r, doc);
  }
}

const struct dialect dialect_openai_responses = {
    .name = "openai",
    .rungs =
        RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_TOOL) | RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_TEMPERATURE | OPTION_MAX_TOKENS | OPTION_EFFORT,
    .judge_effort = "low",
    .model_needed = true,
    .build = responses_build,
    .event = responses_event,
    .whole = responses_read_end,
};
