/* Holds the table of model APIs and reads the user's settings for them. */
#include "provider/api/preset.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "format/json_object.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const struct preset presets[] = {
    {.name = "anthropic",
     .summary = "Anthropic's Messages API",
     .dialect = &dialect_anthropic,
     .base_url = "https://api.anthropic.com",
     .key_env = "ANTHROPIC_API_KEY",
     .key_needed = true,
     .probe_path = "/v1/models"},
    {.name = "openai",
     .summary = "OpenAI's Responses API",
     .dialect = &dialect_openai_responses,
     .quirks = QUIRK_CACHE_KEY,
     .base_url = "https://api.openai.com/v1",
     .key_env = "OPENAI_API_KEY",
     .key_needed = true,
     .probe_path = "/models"},
    {.name = "openai-chat",
     .summary = "OpenAI's Chat Completions, and every server that speaks it (base_url)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.openai.com/v1",
     .key_env = "OPENAI_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_MAX_COMPLETION_TOKENS | QUIRK_CACHE_KEY,
     .probe_path = "/models"},
    {.name = "gemini",
     .summary = "Google's Gemini API",
     .program = "gemini",
     .dialect = &dialect_gemini,
     .base_url = "https://generativelanguage.googleapis.com",
     .key_env = "GEMINI_API_KEY",
     .key_needed = true,
     .probe_path = "/v1beta/models"},
    {.name = "ollama",
     .summary = "an Ollama server",
     .dialect = &dialect_ollama,
     .base_url = "http://127.0.0.1:11434",
     .key_env = "OLLAMA_API_KEY",
     .probe_path = "/api/version"},
    {.name = "llamacpp",
     .summary = "llama.cpp's server",
     .dialect = &dialect_llamacpp,
     .base_url = "http://127.0.0.1:8080",
     .quirks = QUIRK_TEMPLATE_KWARGS,
     .probe_path = "/health"},
    {.name = "vllm",
     .summary = "a vLLM server",
     .dialect = &dialect_openai_chat,
     .base_url = "http://127.0.0.1:8000/v1",
     .key_env = "VLLM_API_KEY",
     .quirks = QUIRK_STRUCTURED_OUTPUTS | QUIRK_TEMPLATE_KWARGS,
     .rungs = RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_GRAMMAR) | RUNG_BIT(RUNG_TOOL) |
              RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
     .probe_path = "/models"},
    {.name = "openrouter",
     .summary = "OpenRouter, many models behind one key",
     .dialect = &dialect_openai_chat,
     .base_url = "https://openrouter.ai/api/v1",
     .key_env = "OPENROUTER_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_REQUIRE_PARAMETERS | QUIRK_REASONING_OBJECT,
     .probe_path = "/models"},
    /* From here on as documented in November 2026; a fake API tests them. */
    {.name = "deepseek",
     .summary = "DeepSeek's API (as of November 2026)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.deepseek.com/v1",
     .key_env = "DEEPSEEK_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_THINKING_OBJECT,
     .rungs = RUNG_BIT(RUNG_TOOL) | RUNG_BIT(RUNG_JSON) | RUNG_BIT(RUNG_PROMPT),
     .probe_path = "/models"},
    {.name = "mistral",
     .summary = "Mistral's API (as of November 2026)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.mistral.ai/v1",
     .key_env = "MISTRAL_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_NO_USAGE_OPTION | QUIRK_RANDOM_SEED, /* it reports usage without being asked */
     .probe_path = "/models"},
    {.name = "groq",
     .summary = "Groq's API (as of November 2026)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.groq.com/openai/v1",
     .key_env = "GROQ_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_MAX_COMPLETION_TOKENS,
     .probe_path = "/models"},
    {.name = "xai",
     .lends_name = true,
     .summary = "xAI's API (as of November 2026)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.x.ai/v1",
     .key_env = "XAI_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_MAX_COMPLETION_TOKENS,
     .probe_path = "/models"},
    {.name = "together",
     .lends_name = true,
     .summary = "Together's API (as of November 2026)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://api.together.xyz/v1",
     .key_env = "TOGETHER_API_KEY",
     .key_needed = true,
     .probe_path = "/models"},
    {.name = "azure",
     .lends_name = true,
     .summary = "Azure OpenAI (base_url: https://RESOURCE.openai.azure.com/openai/v1)",
     .dialect = &dialect_openai_chat,
     .base_url = "https://RESOURCE.openai.azure.com/openai/v1",
     .key_env = "AZURE_OPENAI_API_KEY",
     .key_needed = true,
     .quirks = QUIRK_MAX_COMPLETION_TOKENS | QUIRK_API_KEY,
     .probe_path = "/models"},
    {.name = "lmstudio",
     .summary = "LM Studio's server",
     .dialect = &dialect_openai_chat,
     .base_url = "http://127.0.0.1:1234/v1",
     .rungs = RUNG_BIT(RUNG_NATIVE) | RUNG_BIT(RUNG_PROMPT), /* it refuses json_object */
     .probe_path = "/models"},
    {.name = NULL},
};

const struct preset *preset_find(struct str name) {
  for (const struct preset *p = presets; p->name; p++)
    if (str_eq_c(name, p->name))
      return p;
  return NULL;
}

/* --- settings --- */

/* Reads one key; returns the end of the error's text, NULL if the value is fine. */
typedef const char *(*read_fn)(struct api_config *c, const json_t *value);
/* Does the same for keys that differ in their member of the config only. */
typedef const char *(*read_into_fn)(void *out, const json_t *value);

static char *dup_text(const json_t *value) {
  const char *s = json_string_value(value);
  return s && s[0] && strlen(s) == json_string_length(value) ? xstrdup(s) : NULL;
}

static const char *read_type(struct api_config *c, const json_t *value) {
  (void)c;
  return json_is_string(value) ? NULL : "must be one word";
}

static const char *read_base_url(struct api_config *c, const json_t *value) {
  static const char *const wanted =
      "must be a URL such as https://box.lan/v1: http or https, a host, no user, query or fragment";
  char *url = dup_text(value);
  if (url == NULL || strlen(url) > LIMIT_HTTP_URL_BYTES) {
    free(url);
    return wanted;
  }
  const char *slashes = strstr(url, "://"), *rest = slashes ? slashes + 3 : NULL;
  struct str scheme = {url, slashes ? (size_t)(slashes - url) : 0};
  if (!str_eq_fold(scheme, "http") && !str_eq_fold(scheme, "https"))
    rest = NULL;
  bool ok = rest != NULL && *rest != '\0' && *rest != '/' && *rest != ':';
  for (const char *p = rest; ok && *p; p++)
    ok = (unsigned char)*p > ' ' && (unsigned char)*p < 0x7F && !strchr("@?#\\\"<>", *p);
  if (!ok) {
    free(url);
    return wanted;
  }
  for (size_t n = strlen(url); url[n - 1] == '/'; n--)
    url[n - 1] = '\0';
  free(c->base_url);
  c->base_url = url;
  return NULL;
}

static const char *preset_read_text(void *member, const json_t *value) {
  char **out = member;
  free(*out);
  *out = dup_text(value);
  return *out ? NULL : "must be a text";
}

/* Reads a path; "~/" is the home folder. */
static const char *read_path(void *member, const json_t *value) {
  char **out = member;
  const char *home = getenv("HOME"), *wrong = preset_read_text(out, value);
  if (wrong || !str_starts(str_from(*out), "~/"))
    return wrong ? "must be a path" : NULL;
  if (home == NULL)
    return "begins with ~ and there is no HOME";
  char *full = NULL;
  if (asprintf(&full, "%s%s", home, *out + 1) < 0)
    BUG("out of memory");
  free(*out);
  *out = full;
  return NULL;
}

static const char *read_key_env(struct api_config *c, const json_t *value) {
  const char *s = json_string_value(value);
  if (s == NULL || s[0] == '\0' || s[str_span(str_from(s), "_")] != '\0')
    return "must be the name of an environment variable; the key itself does not belong here";
  return preset_read_text(&c->key_env, value);
}

/* Reads a list of words; a program is named by its path, or found as a shell would find it. */
static const char *read_key_command(struct api_config *c, const json_t *value) {
  static const char *const wanted =
      "must be a list of words, such as [pass, show, api/box]: a program by its name or its full "
      "path, which prints the key";
  size_t i, n = json_array_size(value);
  json_t *word;
  if (n == 0 || n > LIMIT_KEY_COMMAND_WORDS)
    return wanted;
  c->key_command = xcalloc(n + 1, sizeof *c->key_command);
  json_array_foreach((json_t *)value, i, word) {
    c->key_command[i] = dup_text(word);
    if (c->key_command[i] == NULL || json_string_length(word) > LIMIT_HTTP_URL_BYTES)
      return wanted;
  }
  const char *program = c->key_command[0];
  if (str_starts(str_from(program), "~/"))
    return read_path(&c->key_command[0], json_array_get(value, 0));
  return strchr(program, '/') == NULL || program[0] == '/' ? NULL : wanted;
}

static const char *read_bool(void *out, const json_t *value) {
  *(bool *)out = json_is_true(value);
  return json_is_boolean(value) ? NULL : "must be true or false";
}

static const char *read_schema_mode(struct api_config *c, const json_t *value) {
  enum rung rung;
  struct str word = str_from(json_string_value(value));
  if (str_eq_c(word, "auto"))
    return NULL;
  if (!rung_from_name(word, &rung))
    return "must be auto, native, grammar, tool, json or prompt";
  if ((c->rungs & RUNG_BIT(rung)) == 0)
    return "names a way that this backend does not support: use auto";
  c->rungs = RUNG_BIT(rung);
  return NULL;
}

static bool preset_read_number(const json_t *value, json_int_t max, long *out) {
  json_int_t n = json_integer_value(value);
  *out = (long)n;
  return json_is_integer(value) && n > 0 && n <= max;
}

/* Reads the limit of calls at once, which the host also keeps before it starts a call. */
static const char *read_concurrency(struct api_config *c, const json_t *value) {
  long n;
  bool ok = preset_read_number(value, LIMIT_CONCURRENCY, &n);
  c->concurrency = (unsigned)n;
  return ok ? NULL : "must be a whole number above 0: calls at once";
}

/* Takes any value: the host reads it. */
static const char *read_pool(struct api_config *c, const json_t *value) {
  (void)c;
  (void)value;
  return NULL;
}

static const char *read_ms(void *out, const json_t *value) {
  bool ok = preset_read_number(value, LIMIT_CALL_WALL_MS, out);
  return ok ? NULL : "must be milliseconds, at most an hour";
}

static const char *preset_keep(json_t **out, const json_t *value, bool ok, const char *wanted) {
  json_keep(out, value);
  return ok ? NULL : wanted;
}

static const char *read_think(struct api_config *c, const json_t *value) {
  return preset_keep(&c->think, value,
                     json_is_boolean(value) ||
                         (json_is_string(value) && json_string_length(value) > 0),
                     "must be true, false or a level such as low");
}

static const char *read_keep_alive(struct api_config *c, const json_t *value) {
  if (c->dialect != &dialect_ollama)
    return "is for ollama only: remove it";
  return preset_keep(&c->keep_alive, value, json_is_string(value) || json_is_integer(value),
                     "must be a time such as 10m, or seconds");
}

static const char *read_options(struct api_config *c, const json_t *value) {
  return preset_keep(&c->extra, value, json_is_object(value), "must be a map, such as {top_k: 20}");
}

static const char *read_think_mode(struct api_config *c, const json_t *value) {
  static const char *const names[] = {"auto", "two_requests", "field", "server"};
  int i = str_index(json_view(value), names, ARRAY_LEN(names));
  if (i < 0)
    return "must be auto, two_requests, field or server";
  c->think_mode = (enum think_mode)i;
  return NULL;
}

/* Reads texts by name; "$NAME" takes the value of a variable of the environment. */
static const char *read_texts(json_t **out, const json_t *value, bool header) {
  static const char *const wanted =
      "must be a map of at most 16 names to texts; \"$NAME\" takes the value of a variable";
  const char *name;
  json_t *text;
  bool ok = json_is_object(value) && json_object_size(value) <= LIMIT_HTTP_OWN_HEADERS;
  json_object_foreach((json_t *)value, name, text)
    ok = ok && name[0] != '\0' && json_is_string(text) &&
         strpbrk(json_string_value(text), "\r\n") == NULL &&
         (!header || name[str_span(str_from(name), "-_")] == '\0');
  return preset_keep(out, value, ok, wanted);
}

static const char *read_headers(struct api_config *c, const json_t *value) {
  return read_texts(&c->headers, value, true);
}

static const char *read_query(struct api_config *c, const json_t *value) {
  return read_texts(&c->query, value, false);
}

static const char *read_version(struct api_config *c, const json_t *value) {
  if (c->dialect != &dialect_anthropic)
    return "is for anthropic only: remove it";
  return preset_read_text(&c->version, value);
}

static const char *read_endpoint(struct api_config *c, const json_t *value) {
  struct str word = str_from(json_string_value(value));
  bool ollama = c->dialect == &dialect_ollama, llamacpp = c->dialect == &dialect_llamacpp;
  if (str_eq_c(word, "chat"))
    c->quirks &= ~(unsigned)QUIRK_GENERATE;
  else if ((ollama && str_eq_c(word, "generate")) || (llamacpp && str_eq_c(word, "completion")))
    c->quirks |= QUIRK_GENERATE;
  else if (ollama)
    return "must be chat or generate";
  else if (llamacpp)
    return "must be chat or completion";
  else
    return "is for ollama and llamacpp only: remove it";
  return NULL;
}

static const struct {
  const char *name;
  read_fn read;      /* NULL: as below */
  read_into_fn into; /* the member at this offset */
  size_t offset;
} keys[] = {
    {"type", read_type, NULL, 0},
    {"base_url", read_base_url, NULL, 0},
    {"key_env", read_key_env, NULL, 0},
    {"key_file", NULL, read_path, offsetof(struct api_config, key_file)},
    {"key_command", read_key_command, NULL, 0},
    {"key_ms", NULL, read_ms, offsetof(struct api_config, key_ms)},
    {"ca_file", NULL, read_path, offsetof(struct api_config, ca_file)},
    {"model", NULL, preset_read_text, offsetof(struct api_config, model)},
    {"allow_http", NULL, read_bool, offsetof(struct api_config, allow_http)},
    {"stream", NULL, read_bool, offsetof(struct api_config, stream)},
    {"schema_mode", read_schema_mode, NULL, 0},
    {"concurrency", read_concurrency, NULL, 0},
    {"pool", read_pool, NULL, 0},
    {"connect_ms", NULL, read_ms, offsetof(struct api_config, connect_ms)},
    {"stall_ms", NULL, read_ms, offsetof(struct api_config, stall_ms)},
    {"idle_ms", NULL, read_ms, offsetof(struct api_config, idle_ms)},
    {"think", read_think, NULL, 0},
    {"think_mode", read_think_mode, NULL, 0},
    {"keep_alive", read_keep_alive, NULL, 0},
    {"options", read_options, NULL, 0},
    {"endpoint", read_endpoint, NULL, 0},
    {"headers", read_headers, NULL, 0},
    {"query", read_query, NULL, 0},
    {"version", read_version, NULL, 0},
};

static bool preset_read_key(struct api_config *c, const char *name, const json_t *value,
                            struct err *err) {
  const char *names[ARRAY_LEN(keys) + 1] = {NULL};
  for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
    const char *wrong;
    names[i] = keys[i].name;
    if (strcmp(name, keys[i].name) != 0)
      continue;
    if (keys[i].read != NULL)
      wrong = keys[i].read(c, value);
    else
      wrong = keys[i].into((char *)c + keys[i].offset, value);
    return wrong == NULL || err_set(err, ERR_FILE, "providers.%s.%s %s", c->name, name, wrong);
  }
  const struct str_hint hint = str_hint(str_from(name), names);
  if (hint.text[0] == '\0' && c->preset->program != NULL && strcmp(c->name, c->preset->name) == 0)
    return err_set(err, ERR_FILE,
                   "providers.%s: unknown key \"%.40s\": this is %s, because the program %s is not "
                   "in PATH",
                   c->name, name, c->preset->summary, c->preset->program);
  return err_set(err, ERR_FILE, "providers.%s: unknown key \"%.40s\"%s", c->name, name, hint.text);
}

/* Settles what depends on whose server it is. */
static void preset_settle(struct api_config *c, const json_t *settings) {
  const struct preset *preset = c->preset;
  bool own_name = strcmp(c->name, preset->name) != 0, own_url = c->base_url != NULL;
  if (!own_url)
    c->base_url = xstrdup(preset->base_url);
  /* A vendor's key does not go to a server that the user merely gave the same dialect. */
  if (c->key_env == NULL && c->key_file == NULL && c->key_command == NULL && preset->key_env &&
      !(own_name && own_url))
    c->key_env = xstrdup(preset->key_env);
  c->key_needed = (preset->key_needed && !own_url) || json_object_get(settings, "key_env") ||
                  json_object_get(settings, "key_file") || c->key_command != NULL;
  if (own_url && strcmp(c->base_url, preset->base_url) != 0)
    c->quirks &= ~(unsigned)(QUIRK_MAX_COMPLETION_TOKENS |
                             QUIRK_CACHE_KEY); /* few servers but OpenAI's know it */
}

struct api_config *api_config_new(const struct preset *preset, const char *name,
                                  const json_t *settings, struct err *err) {
  assert(preset != NULL);
  assert(name != NULL);
  struct api_config *c = xcalloc(1, sizeof *c);
  const char *key;
  json_t *value;
  c->preset = preset;
  c->dialect = preset->dialect;
  c->name = xstrdup(name);
  c->rungs = preset->rungs ? preset->rungs : preset->dialect->rungs;
  c->quirks = preset->quirks;
  c->stream = true;
  c->concurrency = LIMIT_HTTP_LANE_COUNT;
  c->connect_ms = LIMIT_HTTP_CONNECT_MS;
  c->stall_ms = LIMIT_HTTP_STALL_MS;
  c->idle_ms = LIMIT_HTTP_IDLE_MS;
  c->key_ms = LIMIT_KEY_COMMAND_MS;
  c->local = str_starts(str_from(preset->base_url), "http:");
  json_object_foreach((json_t *)settings, key, value) {
    if (!preset_read_key(c, key, value, err)) {
      api_config_free(c);
      return NULL;
    }
  }
  if ((c->key_env != NULL) + (c->key_file != NULL) + (c->key_command != NULL) > 1) {
    err_set(err, ERR_FILE,
            "providers.%s: key_env, key_file and key_command cannot be combined: keep one", name);
    api_config_free(c);
    return NULL;
  }
  preset_settle(c, settings);
  if (asprintf(&c->summary, "%s (%s)", preset->summary, c->base_url) < 0)
    BUG("out of memory");
  return c;
}

void api_config_free(void *config) {
  struct api_config *c = config;
  if (c == NULL)
    return;
  free(c->name);
  free(c->summary);
  free(c->base_url);
  free(c->key_env);
  free(c->key_file);
  for (size_t i = 0; c->key_command && c->key_command[i]; i++)
    free(c->key_command[i]);
  free(c->key_command);
  free(c->ca_file);
  free(c->model);
  free(c->version);
  json_decref(c->headers);
  json_decref(c->query);
  json_decref(c->think);
  json_decref(c->keep_alive);
  json_decref(c->extra);
  free(c);
}

/* --- keys --- */

static bool read_key_file(const char *path, struct buf *out, struct err *err) {
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return err_set_errno(err, errno, "key_file %.200s", path);
  bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (!ok)
    err_set(err, ERR_INVALID, "key_file %.200s is not a file", path);
  else if (st.st_uid != geteuid() && st.st_uid != 0)
    ok = err_set(err, ERR_INVALID, "key_file %.200s belongs to another user", path);
  else if (st.st_mode & 077)
    ok = err_set(err, ERR_INVALID, "key_file %.200s can be read by others: chmod 600 it", path);
  else
    ok = file_read_fd(fd, path, LIMIT_HTTP_KEY_BYTES, out, err);
  close(fd);
  return ok;
}

/* Returns false for text with anything but plain characters: in a header, a line end would begin
 * another one. */
static bool is_printable(struct str s) {
  for (size_t i = 0; i < s.n; i++)
    if ((unsigned char)s.p[i] < 0x21 || (unsigned char)s.p[i] > 0x7E)
      return false;
  return true;
}

bool api_key_read(const struct api_config *c, struct buf *out, struct err *err) {
  /* The buffer is allocated in full at once: one that grew would leave a copy behind. */
  if (c->key_file != NULL) {
    buf_reserve(out, 2 * LIMIT_HTTP_KEY_BYTES);
    if (!read_key_file(c->key_file, out, err))
      return err_wrap(err, "provider %s", c->name);
  } else if (c->key_env != NULL && getenv(c->key_env) != NULL) {
    struct str value = str_from(getenv(c->key_env));
    if (value.n > LIMIT_HTTP_KEY_BYTES)
      return err_set(err, ERR_INVALID, "provider %s: %s holds more than %u bytes", c->name,
                     c->key_env, LIMIT_HTTP_KEY_BYTES);
    buf_reserve(out, value.n);
    buf_str(out, value);
  }
  struct str s = str_trim(buf_view(out));
  if (out->n != 0 && s.n != out->n) {
    memmove(out->p, s.p, s.n);
    explicit_bzero(out->p + s.n, out->n - s.n);
    out->n = s.n;
  }
  if (out->n == 0 && c->key_needed)
    return err_set(err, ERR_NOT_FOUND,
                   "provider %s has no key: set %s, or name a file in providers.%s.key_file of "
                   "your config.yaml, or a program that prints it in key_command",
                   c->name, c->key_file ? c->key_file : c->key_env, c->name);
  if (!is_printable(buf_view(out)))
    return err_set(err, ERR_INVALID, "the key of provider %s has characters that keys do not have",
                   c->name);
  /* No core dumps once there is a key. A limit of 1 also stops those that a core pattern would pipe
   * to a program; 0 does not. */
  struct rlimit limit;
  if (out->n > 0 && getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur > 1) {
    limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
    (void)setrlimit(RLIMIT_CORE, &limit);
  }
  return true;
}

void api_key_wipe(struct buf *key) {
  if (key->cap > 0)
    explicit_bzero(key->p, key->cap);
  buf_deinit(key);
}
