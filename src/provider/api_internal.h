/* What api.c, api_run.c and api_probe.c share; agent_server.c takes what an end means. */
#ifndef SEGUE_PROVIDER_API_INTERNAL_H
#define SEGUE_PROVIDER_API_INTERNAL_H

#include "provider/api.h"
#include "provider/api_schema.h"
#include "provider/http.h"
#include "provider/http/preset.h"

struct api {
  uv_loop_t *loop;
  struct http *http;
  struct api_schemas *schemas;
  json_t *memo; /* what was learnt: "rung NAME MODEL" -> number, "version URL" -> text */
};

extern const struct provider_ops api_ops;

/* Borrowed; NULL when nothing is known. */
json_t *api_recall(const struct api *api, const char *what, const char *name, const char *model);
void api_remember(struct api *api, const char *what, const char *name, const char *model,
                  json_t *owned_value);

/* The request's URL below the base URL of `config`; free() it. */
char *api_url(const struct api_config *config, const char *path);
/* Limits, CA file, lane. */
void api_fill_request(struct api *api, const struct api_config *config,
                      struct http_request *request);

/* What an exchange that did not complete means. */
enum error_class api_end_class(enum http_end_kind kind);

#endif
