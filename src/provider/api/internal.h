/* internal.h - declares what api.c, exchange.c and api_probe.c share; agent/server.c uses
 * api_end_class. */
#ifndef SEGUE_PROVIDER_API_INTERNAL_H
#define SEGUE_PROVIDER_API_INTERNAL_H

#include "http/http.h"
#include "provider/api/api.h"
#include "provider/api/preset.h"
#include "provider/api/schema_forms.h"
#include "provider/redact.h"

struct api {
  uv_loop_t *loop;
  struct http *http;
  struct api_schemas *schemas;
  struct process_table *processes; /* for programs that print keys; or NULL */
  struct key_entry *keys;          /* keys that they printed, see key.h */
  json_t *memo; /* what was learnt: "rung NAME MODEL" -> number, "version URL" -> text */
};

extern const struct provider_ops api_ops;

/* Returns what was learnt, borrowed; NULL: nothing. */
/* model: NULL if none is named. */
json_t *api_recall(const struct api *api, const char *what, const char *name, const char *model);
void api_remember(struct api *api, const char *what, const char *name, const char *model,
                  json_t *owned_value);

/* Returns false if it needs a model, but neither the call nor the user's settings name one. */
bool api_has_model(const struct api_config *config, struct str model, struct err *err) MUST_CHECK;
/* Returns the request's URL below the base URL of `config`; free() it. */
char *api_url(const struct api_config *config, const char *path);
/* Returns the version of the API to ask for: the user's, or the newest known. */
const char *api_version(const struct api_config *config);
/* Appends the user's own headers to the dialect's. */
void api_own_headers(const struct api_config *config, struct wire *wire);
/* Adds their values to the secrets, and those of the query that come from variables. */
void api_own_secrets(const struct api_config *config, struct secrets *secrets);
/* Sets limits, CA file and lane. */
void api_fill_request(struct api *api, const struct api_config *config,
                      struct http_request *request);

/* Classes an exchange that did not complete. */
enum error_class api_end_class(enum http_end_kind kind);

#endif
