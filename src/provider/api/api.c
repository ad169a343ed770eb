/* Registers the model APIs as providers and keeps what their calls share. */
#include "provider/api/api.h"

#include "base/limits.h"
#include "base/log.h"
#include "provider/api/internal.h"
#include "provider/api/key.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api *api_new(uv_loop_t *loop, struct process_table *processes) {
  struct api *api = xcalloc(1, sizeof *api);
  api->loop = loop;
  api->processes = processes;
  api->http = http_new(loop);
  api->schemas = api_schemas_new();
  api->memo = json_object();
  return api;
}

void api_free(struct api *api) {
  if (api == NULL)
    return;
  http_free(api->http);
  key_commands_free(api);
  api_schemas_free(api->schemas);
  json_decref(api->memo);
  free(api);
}

static char *memo_key(const char *what, const char *name, const char *model) {
  char *key = NULL;
  if (asprintf(&key, "%s %s %s", what, name, model ? model : "") < 0)
    BUG("out of memory");
  return key;
}

json_t *api_recall(const struct api *api, const char *what, const char *name, const char *model) {
  char *key = memo_key(what, name, model);
  json_t *value = json_object_get(api->memo, key);
  free(key);
  return value;
}

void api_remember(struct api *api, const char *what, const char *name, const char *model,
                  json_t *owned_value) {
  assert(owned_value != NULL);
  char *key = memo_key(what, name, model);
  if (json_object_size(api->memo) >= LIMIT_HTTP_MEMO_COUNT)
    json_object_clear(api->memo); /* it is learnt again */
  json_object_set_new_nocheck(api->memo, key, owned_value);
  free(key);
}

/* Returns the text, or the value of the variable that it names. */
static const char *own_value(const json_t *text) {
  const char *value = json_string_value(text);
  const char *found = value[0] == '$' ? getenv(value + 1) : value;
  return found != NULL ? found : "";
}

char *api_url(const struct api_config *config, const char *path) {
  struct buf url = {0};
  const char *name;
  json_t *value;
  bool first = strchr(path, '?') == NULL;
  buf_printf(&url, "%s%s", config->base_url, path);
  json_object_foreach(config->query, name, value) {
    buf_putc(&url, first ? '?' : '&');
    wire_encoded(&url, str_from(name));
    buf_putc(&url, '=');
    wire_encoded(&url, str_from(own_value(value)));
    first = false;
  }
  return buf_take(&url);
}

void api_own_secrets(const struct api_config *config, struct secrets *secrets) {
  const char *name;
  json_t *value;
  json_object_foreach(config->headers, name, value) {
    secrets_add(secrets, name, str_from(own_value(value)));
  }
  json_object_foreach(config->query, name, value) {
    if (json_string_value(value)[0] == '$') /* others are written in the file, such as a version */
      secrets_add(secrets, name, str_from(own_value(value)));
  }
}

const char *api_version(const struct api_config *config) {
  return config->version ? config->version : "2026-10-21";
}

void api_own_headers(const struct api_config *config, struct wire *wire) {
  const char *name;
  json_t *value;
  json_object_foreach(config->headers, name, value) {
    wire_header(wire, name, str_from(own_value(value)));
  }
}

void api_fill_request(struct api *api, const struct api_config *config,
                      struct http_request *request) {
  assert(config->concurrency > 0);
  request->lane = http_lane(api->http, config->name, config->concurrency);
  request->ca_file = config->ca_file;
  request->allow_http = config->allow_http;
  request->connect_ms = (uint64_t)config->connect_ms;
  request->stall_ms = (uint64_t)config->stall_ms;
  request->max_bytes = LIMIT_HTTP_BODY_BYTES;
}

enum error_class api_end_class(enum http_end_kind kind) {
  switch (kind) {
  case HTTP_END_COMPLETE:
    return CLASS_NONE;
  case HTTP_END_CANCELLED:
    return CLASS_CANCELLED;
  case HTTP_END_NETWORK:
  case HTTP_END_CUT:
  case HTTP_END_CONNECT_LIMIT:
    return CLASS_NETWORK;
  case HTTP_END_STALL_LIMIT:
  case HTTP_END_TOTAL_LIMIT:
    return CLASS_TIMEOUT;
  case HTTP_END_REFUSED:
    return CLASS_BAD_REQUEST;
  case HTTP_END_STOPPED:
  case HTTP_END_TOO_LARGE:
  case HTTP_END_TLS:
  case HTTP_END_PROTOCOL:
    return CLASS_PROTOCOL;
  }
  BUG("an exchange has no end");
}

bool api_has_model(const struct api_config *config, struct str model, struct err *err) {
  return model.n > 0 || config->model != NULL || !config->dialect->model_needed ||
         err_set(err, ERR_INVALID,
                 "provider %s needs a model: write model: NAME in the workflow, --model NAME, or "
                 "model in providers.%s of your config.yaml",
                 config->name, config->name);
}

bool api_ready(const struct provider *provider, struct str model, struct err *err) {
  const struct api_config *config = provider->data;
  struct buf key = {0};
  if (provider->ops != &api_ops)
    return true;
  struct err missing, other;
  bool has_model = api_has_model(config, model, err),
       has_key = config->key_command != NULL || api_key_read(config, &key, &missing);
  api_key_wipe(&key);
  if (has_model && !has_key)
    *err = missing;
  else if (!has_key)
    other = *err, err_set(err, ERR_INVALID, "%.350s; %.350s", missing.text, other.text);
  return has_model && has_key;
}

static const struct held api_holds = {.edits = false, .run = HELD_RUN_NONE};

static bool api_add(struct provider_registry *registry, const struct preset *preset,
                    const char *name, const json_t *settings, struct err *err) {
  struct api_config *config = api_config_new(preset, name, settings, err);
  if (config == NULL)
    return false;
  const struct provider provider = {
      .capability = {.name = config->name,
                     .summary = config->summary,
                     .options = config->dialect->options,
                     .can_judge = true,
                     .held = &api_holds,
                     .takes_model = true,
                     .structured = "native",
                     .judge_effort = config->dialect->effort_models ? "low" : NULL,
                     .effort_models = config->dialect->effort_models},
      .ops = &api_ops,
      .data = config};
  registry_keep(registry, config, api_config_free);
  return registry_add(registry, &provider, err);
}

/* Reports an unknown type. Only a model API has a base URL. */
static bool unknown_type(const char *name, const char *type, struct err *err) {
  struct buf names = {0};
  for (const struct preset *p = presets; p->name; p++)
    buf_printf(&names, "%s%s", names.n ? ", " : "", p->name);
  err_set(err, ERR_FILE, "providers.%s: %s%.40s%s: use one of %s", name,
          type ? "type \"" : "it has a base_url and no type", type ? type : "",
          type ? "\" is unknown" : "", buf_c(&names));
  buf_deinit(&names);
  return false;
}

bool api_has_preset(struct str name) {
  return preset_find(name) != NULL;
}

bool api_register(struct provider_registry *registry, const json_t *settings, struct err *err) {
  const char *name;
  json_t *own;
  for (const struct preset *p = presets; p->name; p++)
    if (registry_find(registry, str_from(p->name)) == NULL &&
        !api_add(registry, p, p->name, json_object_get(settings, p->name), err))
      return false;
  json_object_foreach((json_t *)settings, name, own) {
    const char *type = json_string_value(json_object_get(own, "type"));
    const struct provider *taken = registry_find(registry, str_from(name));
    if (taken != NULL && preset_find(str_from(name)) == NULL)
      continue; /* it belongs to an agent */
    if (preset_find(str_from(name)) != NULL) {
      if (type != NULL && str_from(type).n > 0 && !str_eq_c(str_from(type), name))
        return err_set(err, ERR_FILE,
                       "providers.%s: this name means %s: give your own another name", name, name);
      continue;
    }
    const struct preset *preset = preset_find(str_from(type));
    if (preset == NULL && (type != NULL || json_object_get(own, "base_url") != NULL))
      return unknown_type(name, type, err);
    if (preset == NULL) {
      /* Reports an unknown name: settings that nobody would read are typos. */
      struct buf names = {0};
      registry_names(registry, &names);
      err_set(err, ERR_FILE,
              "providers.%s: there is no such provider: an API of your own needs a type and a "
              "base_url, an agent a profile providers/%s.yaml; or use one of %s",
              name, name, buf_c(&names));
      buf_deinit(&names);
      return false;
    }
    if (!api_add(registry, preset, name, own, err))
      return false;
  }
  return true;
}
