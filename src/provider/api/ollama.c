/* Speaks to Ollama: POST /api/chat, or /api/generate with QUIRK_GENERATE. Its stream is NDJSON. */
#include "format/json_write.h"
#include "provider/api/reply.h"

#include "base/limits.h"
#include "schema/schema.h"

static bool set_format(const struct ask *ask, json_t *body, struct err *err) {
  if (ask_rung(ask, RUNG_JSON)) {
    json_object_set_new(body, "format", json_string("json"));
  } else if (ask_rung(ask, RUNG_NATIVE)) {
    /* The server takes any object for a schema and then constrains nothing. */
    if (!schema_has_known_keyword(ask->schema))
      return err_set(err, ERR_INVALID,
                     "the schema has no keyword that is known: the server would ignore it");
    json_object_set(body, "format", (json_t *)ask->schema);
  }
  return true; /* else no format at all: null and "" mean something to some versions */
}

static bool ollama_build(const struct ask *ask, struct wire *wire, struct err *err) {
  bool generate = ask->quirks & QUIRK_GENERATE;
  json_t *body = json_object(), *options = json_object();
  const json_t *think = ask->think ? ask->think : json_object_get(ask->options, "effort");
  json_object_set_new(body, "model", json_stringn(ask->model.p, ask->model.n));
  if (generate)
    json_object_set_new(body, "prompt", json_text(ask->prompt));
  else
    json_object_set_new(body, "messages", ask_messages(ask));
  json_object_set_new(body, "stream", json_boolean(ask->stream)); /* if missing, it is true */
  if (!set_format(ask, body, err)) {
    json_decref(body);
    json_decref(options);
    return false;
  }
  if (think != NULL)
    json_object_set(body, "think", (json_t *)think);
  ask_option(ask, "temperature", options, "temperature");
  ask_option(ask, "seed", options, "seed");
  ask_option(ask, "max_tokens", options, "num_predict");
  ask_extra(ask, options);
  /* The server cuts what does not fit into its window from the front, and says nothing. */
  size_t tokens = ask->prompt.n / 3 + LIMIT_OLLAMA_WINDOW / 2; /* at least 3 bytes for each token */
  if (tokens > LIMIT_OLLAMA_WINDOW && json_object_get(options, "num_ctx") == NULL)
    json_object_set_new(
        options, "num_ctx",
        json_integer((json_int_t)((tokens / LIMIT_OLLAMA_WINDOW + 1) * LIMIT_OLLAMA_WINDOW)));
  ask_put(body, "options", options);
  if (ask->keep_alive != NULL)
    json_object_set(body, "keep_alive", (json_t *)ask->keep_alive);
  buf_puts(&wire->path, generate ? "/api/generate" : "/api/chat");
  wire_bearer(wire, ask->key);
  return wire_body(wire, ask, body);
}

static void ollama_read(struct reply *r, const json_t *doc) {
  const json_t *message = json_object_get(doc, "message"); /* from chat */
  reply_thinking(r, json_object_get(message ? message : doc, "thinking"));
  reply_text(r, message ? json_object_get(message, "content") : json_object_get(doc, "response"));
  if (json_is_true(json_object_get(doc, "done"))) {
    reply_usage(r, json_object_get(doc, "prompt_eval_count"), json_object_get(doc, "eval_count"),
                NULL, NULL, NULL);
    reply_stop(r, json_object_get(doc, "done_reason"), CLASS_NONE);
    reply_close(r);
  }
}

const struct dialect dialect_ollama = {
    .name = "ollama",
    .rungs = RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
    .options = OPTION_ALL,
    .lines = true,
    .local = true,
    .model_needed = true,
    .build = ollama_build,
    .event = ollama_read,
    .whole = ollama_read,
};
