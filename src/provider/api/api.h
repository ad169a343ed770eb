/* api.h - makes model APIs over HTTP providers: `anthropic`, `openai`, `ollama`, ... and every
 * server that the user's configuration names.
 *
 *   api_register(registry, settings, &err)    once, at the start: the presets and the user's own
 *   api = api_new(loop, processes)            the host's: what all calls share; cheap
 *   api_free(api)                             no call open; then run the loop once more
 *
 * A call is one request or a few: a schema goes down the ladder by one rung if the server refuses
 * it or does not keep to it, and Ollama may be asked twice when thinking and a constrained answer
 * exclude each other. Each such step is reported as a note, and the rung that works is remembered
 * for that provider and model. Retries are up to the core: here an error gets its class.
 *
 * The reply's value is turned back from the adapted schema and checked against the canonical one;
 * `structured` holds it even if it is wrong, so that the judge can say how. */
#ifndef SEGUE_PROVIDER_API_API_H
#define SEGUE_PROVIDER_API_API_H

#include "provider/registry.h"

struct api;
struct http; /* http/http.h */

/* processes: runs the programs that print keys; NULL: none is run. */
struct api *api_new(uv_loop_t *loop, struct process_table *processes);
void api_free(struct api *api); /* NULL is fine */

/* settings: the user's `providers:`, or NULL. A preset whose name is in the registry already is
 * left out. Entries that are no model API's (no `type` of one, no name of a preset) are left to
 * others. */
bool api_has_preset(struct str name);
bool api_register(struct provider_registry *registry, const json_t *settings,
                  struct err *err) MUST_CHECK;

/* Returns whether the provider has the key and the model it needs; true for other providers. The
 * key is wiped at once. */
bool api_ready(const struct provider *provider, struct str model, struct err *err) MUST_CHECK;

/* --- is it there? for `segue providers` --- */

struct api_probe_result {
  bool reachable;
  bool keyed;             /* a key was sent along */
  enum error_class class; /* CLASS_NONE: it answered as expected */
  int status;             /* HTTP; 0: no reply */
  char base_url[256];
  char version[64];  /* Ollama's; "" elsewhere */
  long model_count;  /* -1: unknown */
  json_t *models;    /* names, at most LIMIT_PROBE_MODELS; or NULL. Taken by the callee */
  char message[256]; /* fault and remedy; "" when fine */
};
typedef void (*api_probe_fn)(void *ctx, struct api_probe_result *result);

/* True when the provider is a model API; then done comes from the loop, within
 * LIMIT_HTTP_PROBE_MS and a little. A missing key is an answer, without a request. */
bool api_probe(struct api *api, const struct provider *provider, api_probe_fn done, void *ctx);

#endif
