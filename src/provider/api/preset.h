/* preset.h - lists the model APIs by name, with the user's settings, which are checked once when
 * they are read.
 *
 *   config.yaml   providers:
 *                   judge-box: {type: openai-chat, base_url: https://box.lan/v1, key_env: BOX_KEY}
 *
 *   api = api_config_new(preset, name, settings, &err)   then constant; api_config_free
 *
 * A preset is a dialect with a base URL, the place of its key, and its quirks. A name of the user's
 * own takes a preset by `type`. The settings come from the user's configuration only. */
#ifndef SEGUE_PROVIDER_API_PRESET_H
#define SEGUE_PROVIDER_API_PRESET_H

#include "provider/api/dialect.h"

struct preset {
  const char *name, *summary;
  const struct dialect *dialect;
  const char *base_url;
  const char *key_env;    /* the variable with its key; NULL: none */
  bool key_needed;        /* base_url needs a key */
  bool lends_name;        /* a user may give its name to an API of another type */
  const char *program;    /* agent that takes this name if it is in PATH; or NULL */
  unsigned rungs;         /* subset of the dialect's; 0: all */
  unsigned quirks;        /* QUIRK_* */
  const char *probe_path; /* GET, below the base URL: answers quickly when it is there */
};

const struct preset *preset_find(struct str name);
extern const struct preset presets[]; /* ends with a NULL name */

/* Says how to combine a schema and thinking if the server would drop one of them (Ollama). */
enum think_mode {
  THINK_MODE_AUTO, /* the server's own two passes if its version has them, or else two requests */
  THINK_MODE_TWO_REQUESTS, /* think freely, then put the result in form */
  THINK_MODE_FIELD,        /* no thinking apart: a field "reasoning" comes first in the answer */
  THINK_MODE_SERVER        /* both at once: the server knows what to do */
};

struct api_config {
  const struct preset *preset;
  const struct dialect *dialect;
  char *name, *summary;
  char *base_url;                             /* no slash at its end */
  char *key_env, *key_file, *ca_file, *model; /* or NULL */
  char **key_command; /* a program that prints the key: NULL-terminated; or NULL */
  bool key_needed, allow_http, stream;
  bool local; /* answers on this machine, as far as the preset knows */
  unsigned rungs, quirks, concurrency;
  long connect_ms, stall_ms, idle_ms; /* idle: bytes come, but no content */
  long key_ms;                        /* for key_command */
  enum think_mode think_mode;
  json_t *think, *keep_alive, *extra; /* or NULL */
  json_t *headers, *query; /* the user's own: name -> text, "$NAME" for a variable; or NULL */
  char *version;           /* Anthropic's API version; or NULL */
};

/* Makes a configuration. NULL: err names the key and what to write. settings may be NULL. */
struct api_config *api_config_new(const struct preset *preset, const char *name,
                                  const json_t *settings, struct err *err) MUST_CHECK;
void api_config_free(void *config); /* a struct api_config, or NULL */

/* Appends the key from the environment or a file that nobody else can read, unless a program's is
 * already there; appends nothing if none is set or needed. False: err says what to set or what is
 * wrong with the file. A key is read for each call, wiped afterwards, and never part of a message;
 * the first one switches core dumps of this process off. */
bool api_key_read(const struct api_config *config, struct buf *out, struct err *err) MUST_CHECK;
void api_key_wipe(struct buf *key);

#endif
