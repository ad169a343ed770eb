/* internal.h - declares what api.c shares with agent/agent.c, for agents that are servers. */
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
  struct key_entry *keys;          /* keys that they printed */
  json_t *memo; /* what was learnt: "rung NAME MODEL" -> number, "version URL" -> text */
};

/* Classes an exchange that did not complete. */
enum error_class api_end_class(enum http_end_kind kind);

#endif
