/* Reads the user's configuration. */
#include "host/config.h"

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/keys.h"
#include "core/movement_limits.h"
#include "core/prompt.h"
#include "format/json_object.h"
#include "format/yaml.h"
#include "host/daily_usage.h"
#include "host/hidden_tests.h"
#include "host/notifier.h"
#include "host/paths.h"
#include "host/sandbox_config.h"
#include "host/workspace_set.h"
#include "provider/words.h"
#include "store/store.h"
#include "store/worker.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- templates that replace nothing --- */

static const char *const languages[] = {"en", "ja", NULL};

enum { OVERRIDE_PATH_BYTES = PATHS_BYTES + 600 };

typedef void (*entry_fn)(const char *folder, const char *name, struct err_list *warnings);

static bool is_listed(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(name, *names) == 0)
      return true;
  return false;
}

/* Visits each entry of the folder. Returns false if it is not a readable folder. */
static bool each_entry(const char *folder, entry_fn each, struct err_list *warnings) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    if (name[0] != '.' && name[strlen(name) - 1] != '~' && !str_starts(str_from(name), "README"))
      each(folder, name, warnings);
    free(entries[i]);
  }
  free(entries);
  return count >= 0;
}

static void overrides_add(struct err_list *warnings, const char *folder, const char *name,
                          const char *what, const char *hint) {
  struct err err;
  err_set(&err, ERR_FILE, "%s/%s %s%s", folder, name, what, hint);
  err_list_add(warnings, &err);
}

static void check_template(const char *folder, const char *name, struct err_list *warnings) {
  const char *near = str_nearest(str_from(name), prompt_template_names);
  buf_auto_t hint = {0};
  if (is_listed(name, prompt_template_names))
    return;
  if (near != NULL)
    buf_printf(&hint, "did you mean %s?", near);
  else
    buf_puts(&hint, "the templates are ");
  if (near == NULL)
    for (size_t i = 0; prompt_template_names[i] != NULL; i++)
      buf_printf(&hint, "%s%s", i > 0 ? ", " : "", prompt_template_names[i]);
  overrides_add(warnings, folder, name, "replaces no prompt: ", buf_c(&hint));
}

static void ignore_entry(const char *folder, const char *name, struct err_list *warnings) {
  (void)folder;
  (void)name;
  (void)warnings;
}

static void check_language(const char *folder, const char *name, struct err_list *warnings) {
  char path[OVERRIDE_PATH_BYTES];
  print_into(path, sizeof path, "%s/%s", folder, name);
  if (is_listed(name, languages))
    (void)each_entry(path, check_template, warnings);
  else if (each_entry(path, ignore_entry, warnings))
    overrides_add(warnings, folder, name, "replaces no prompt: ", "the languages are en and ja");
  else
    overrides_add(warnings, folder, name,
                  "replaces no prompt: ", "it must be in the folder en or ja there");
}

void overrides_check(struct err_list *warnings) {
  char dir[PATHS_BYTES], folder[OVERRIDE_PATH_BYTES];
  struct err err;
  if (!paths_config(dir, &err))
    return; /* no home: no configuration */
  print_into(folder, sizeof folder, "%s/prompts", dir);
  (void)each_entry(folder, check_language, warnings);
}

void overrides_warn(void) {
  AUTO(err_list_deinit) struct err_list warnings = {0};
  overrides_check(&warnings);
  for (size_t i = 0; i < warnings.count; i++)
    log_warn("warning: %s", warnings.items[i].text);
  if (warnings.dropped > 0)
    log_warn("warning: %zu more files in prompts/ replace nothing", warnings.dropped);
}

const struct config_key config_keys[] = {
    {"provider", NULL, "--provider", NULL, "the backend for movements that name none"},
    {"model", NULL, "--model", NULL, "its model"},
    {"options", NULL, "--option", NULL, "sampling: temperature, seed, max_tokens, effort"},
    {"fallback", NULL, NULL, NULL, "for each backend, which ones to ask when it cannot continue"},
    {"prices", NULL, NULL, NULL,
     "US dollars per million tokens, by model: input, output, cached, cache_write, reasoning"},
    {"notify", NULL, NULL, NULL,
     "a program to notify of questions, stops and ends, as a list of words"},
    {"budget", NULL, NULL, NULL,
     "how much all sessions may use in a day, and how much of that each backend may use"},
    {"ask_above", NULL, "--yes", NULL,
     "how many calls, and how much money, a group may plan before it asks whether it may begin"},
    {"workspace", "here", "--workspace", NULL,
     "where sessions work, and what goes into a worktree"},
    {"wait_for_reset", "on", NULL, NULL,
     "off: stop the session if a provider's limit lasts for hours, instead of waiting"},
    {"wait_for_outage", "6h", NULL, NULL,
     "how long a provider is waited for that cannot be reached or is overloaded, or off; 10m "
     "where the variable CI is set"},
    {"wait_for_background", "30m", NULL, NULL,
     "how long a client is waited for that works on in the background after its answer"},
    {"env", NULL, NULL, NULL, "variables that backends' processes get, besides the standard ones"},
    {"facets", NULL, NULL, NULL,
     "folders of personas/, policies/ and the like, searched after yours and the project's"},
    {"secrets", NULL, NULL, NULL, "variables that a movement gets only if it names them"},
    {"sandbox", "guard", NULL, NULL, "the sandbox for agents and commands: a level, or a map"},
    {"hidden_tests", NULL, NULL, NULL,
     "tests that no agent can read, run before a session is complete, by project"},
    {"store", NULL, "--store", "SEGUE_STORE",
     "where sessions are kept, instead of in a folder: postgres://HOST/DATABASE"},
    {"shared_paths", NULL, NULL, NULL,
     "folders that several machines share, and the label of those machines: {/srv/work: nfs1}"},
    {"words", NULL, NULL, NULL,
     "what words for a failure mean, before the table of segue's own: [{class: quota, match: "
     "...}]"},
    {"providers", NULL, NULL, NULL,
     "settings for individual backends; segue providers show NAME lists them"},
    {0},
};

static bool config_read_env(struct config *config, const char *path, const struct yaml_node *node,
                            struct err *err) {
  if (node->kind != YAML_LIST)
    return yaml_wrong(err, path, node, "env must be a list of names of variables");
  config->env = xcalloc(node->count + 1, sizeof *config->env);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (item->kind != YAML_TEXT || item->text.n == 0 || memchr(item->text.p, '=', item->text.n))
      return yaml_wrong(err, path, item,
                        "env takes names only: the values come from the environment");
    config->env[i] = xstrndup(item->text.p, item->text.n);
  }
  return true;
}

static bool config_read_facets(struct config *config, const char *path,
                               const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_LIST || node->count > LIMIT_FACET_FOLDER_COUNT)
    return yaml_wrong(err, path, node, "facets must be a list of at most %u folders",
                      LIMIT_FACET_FOLDER_COUNT);
  config->facets = json_array();
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    char folder[PATHS_BYTES];
    const char *home = getenv("HOME");
    bool tilde = str_starts(item->text, "~/") && home != NULL;
    if (item->kind != YAML_TEXT || !(tilde || str_starts(item->text, "/")))
      return yaml_wrong(err, path, item, "it must be an absolute path, or begin with ~/");
    print_into(folder, sizeof folder, "%s%s", tilde ? home : "", item->text.p + (tilde ? 1 : 0));
    json_array_append_new(config->facets, json_string(folder));
  }
  return true;
}

static bool config_read_secrets(struct config *config, const char *path,
                                const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_LIST || node->count > LIMIT_SECRET_COUNT)
    return yaml_wrong(err, path, node, "secrets must be a list of at most 32 names of variables");
  for (size_t i = 0; i < node->count; i++)
    if (node->items[i]->kind != YAML_TEXT || !str_is_variable(node->items[i]->text))
      return yaml_wrong(err, path, node->items[i],
                        "secrets takes names only: the values come from the environment");
  config->secrets = yaml_to_json(node);
  return true;
}

static bool is_named_before(const struct yaml_pair *pair, size_t k) {
  struct str name = pair->value->items[k]->text;
  bool found = str_eq(name, pair->key->text);
  for (size_t i = 0; i < k && !found; i++)
    found = str_eq(name, pair->value->items[i]->text);
  return found;
}

static bool config_read_fallback(struct config *config, const char *path,
                                 const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node, "fallback must be a map of providers to lists of providers");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *list = node->pairs[i].value;
    if (list->kind != YAML_LIST || list->count == 0 || list->count > LIMIT_FALLBACK_COUNT)
      return yaml_wrong(err, path, list, "it must be a list of 1 to 8 providers");
    for (size_t k = 0; k < list->count; k++)
      if (list->items[k]->kind != YAML_TEXT || list->items[k]->text.n == 0)
        return yaml_wrong(err, path, list->items[k], "it must be the name of a provider");
      else if (is_named_before(&node->pairs[i], k))
        return yaml_wrong(err, path, list->items[k],
                          "this provider is already listed: name each one once");
  }
  config->fallback = yaml_to_json(node);
  return true;
}

/* Reads the user's own prices, which go before those of lists: they differ by contract. */
static bool config_read_prices(struct config *config, const char *path,
                               const struct yaml_node *node, struct err *err) {
  static const char *const wanted =
      "prices must be a map of models to US dollars per million tokens, such as {big-model: "
      "{input: 3, output: 15, cached: 0.3}}";
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node, "%s", wanted);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *price = node->pairs[i].value;
    if (price->kind != YAML_MAP)
      return yaml_wrong(err, path, price, "%s", wanted);
    for (size_t k = 0; k < price->count; k++) {
      struct str name = price->pairs[k].key->text;
      const struct yaml_node *usd = price->pairs[k].value;
      if (!str_is_one(name, price_names))
        return yaml_wrong(err, path, price->pairs[k].key, "%s", wanted);
      if ((usd->kind != YAML_INTEGER && usd->kind != YAML_REAL) || usd->real < 0 ||
          usd->real > LIMIT_COST_USD)
        return yaml_wrong(err, path, usd, "it must be a number of US dollars, 0 or more");
    }
  }
  config->prices = yaml_to_json(node);
  return true;
}

/* Takes the user's words for failures. A log holds only what came of them. */
static bool config_read_words(struct config *config, const char *path, const struct yaml_node *node,
                              struct err *err) {
  json_auto_t *rows = yaml_to_json(node);
  struct err why;
  size_t at;
  (void)config;
  if (words_take(rows, &at, &why))
    return true;
  return yaml_wrong(err, path, node->kind == YAML_LIST && at < node->count ? node->items[at] : node,
                    "%s", why.text);
}

static bool config_read_workspace(struct config *config, const char *path,
                                  const struct yaml_node *node, struct err *err) {
  struct err why;
  json_decref(config->workspace);
  config->workspace = yaml_to_json(node);
  if (node->kind == YAML_TEXT)
    config->workspace = json_pack("{so}", "mode", config->workspace);
  return workspace_set_check(config->workspace, true, &why) ||
         yaml_wrong(err, path, node, "%s", why.text);
}

static const char *not_one_word(struct str key, const struct yaml_node *value) {
  if (value->kind == YAML_LIST && str_eq_c(key, "provider"))
    return "it must be one word: list the providers that take over in fallback: {NAME: [OTHER]}";
  return "it must be one word";
}

static bool config_read_notify(struct config *config, const char *path,
                               const struct yaml_node *node, struct err *err) {
  config->notify = notify_config_set_read(path, node, err);
  return config->notify != NULL;
}

static bool config_read_budget(struct config *config, const char *path,
                               const struct yaml_node *node, struct err *err) {
  config->budget = day_set_read(path, node, err);
  return config->budget != NULL;
}

static bool config_read_ask_above(struct config *config, const char *path,
                                  const struct yaml_node *node, struct err *err) {
  struct err why;
  config->ask_above = yaml_to_json(node);
  bool ok = json_object_size(config->ask_above) > 0 &&
            key_set_check(&ask_above_keys, config->ask_above, &why);
  for (size_t i = 0; ok && i < node->count; i++)
    ok = key_find(&ask_above_keys, node->pairs[i].key->text) != NULL;
  return ok || yaml_wrong(err, path, node,
                          "ask_above must be a map of calls (a whole number) and cost (US "
                          "dollars), such as {calls: 50, cost: 5}");
}

static bool config_read_sandbox(struct config *config, const char *path,
                                const struct yaml_node *node, struct err *err) {
  config->sandbox = sandbox_read(path, node, err);
  return config->sandbox != NULL;
}

static bool config_read_hidden(struct config *config, const char *path,
                               const struct yaml_node *node, struct err *err) {
  config->hidden_tests = hidden_tests_read(path, node, err);
  return config->hidden_tests != NULL;
}

static bool config_read_options(struct config *config, const char *path,
                                const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node, "options must be a map, such as {temperature: 0}");
  config->options = yaml_to_json(node);
  return true;
}

static bool says_off(const struct yaml_node *node) {
  return str_eq_c(node->text, "off") || (node->kind == YAML_BOOL && !node->boolean);
}

/* False: nothing is waited for. */
static bool config_read_outage_wait(struct config *config, const char *path,
                                    const struct yaml_node *node, struct err *err) {
  struct err why;
  bool off = says_off(node);
  config->outage_wait = off ? json_false() : yaml_to_json(node);
  if (off || limits_check_duration(node->text, &why))
    return true;
  return yaml_wrong(err, path, node,
                    "wait_for_outage must be off, or a duration of at most 24h, such as 30m");
}

static bool config_read_background_wait(struct config *config, const char *path,
                                        const struct yaml_node *node, struct err *err) {
  struct err why;
  config->background_wait = yaml_to_json(node);
  return limits_check_duration(node->text, &why) ||
         yaml_wrong(err, path, node,
                    "wait_for_background must be a duration of at most 24h, such as 30m");
}

static bool config_read_reset_wait(struct config *config, const char *path,
                                   const struct yaml_node *node, struct err *err) {
  bool off = says_off(node);
  if (!off && !str_eq_c(node->text, "on") && node->kind != YAML_BOOL)
    return yaml_wrong(err, path, node, "wait_for_reset must be on or off");
  config->no_reset_wait = off;
  return true;
}

/* Checks the address; the store itself reads it. */
static bool config_read_store(struct config *config, const char *path, const struct yaml_node *node,
                              struct err *err) {
  (void)config;
  bool ok = node->kind == YAML_TEXT && store_is_address(node->text.p);
  return ok ||
         yaml_wrong(err, path, node, "store must be an address: write postgres://HOST/DATABASE");
}

static bool config_read_shared_paths(struct config *config, const char *path,
                                     const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node,
                      "shared_paths must be a map of folders to labels of workers");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_pair *pair = &node->pairs[i];
    if (pair->key->text.n == 0 || pair->key->text.p[0] != '/')
      return yaml_wrong(err, path, pair->key, "it must be an absolute path");
    if (pair->value->kind != YAML_TEXT || pair->value->text.n == 0)
      return yaml_wrong(err, path, pair->value,
                        "it must be a label that workers have, such as nfs1");
    json_auto_t *labels = json_pack("[s]", pair->value->text.p);
    struct err why;
    if (!worker_labels_check(labels, &why))
      return yaml_wrong(err, path, pair->value, "%s", why.text);
  }
  config->shared_paths = yaml_to_json(node);
  return true;
}

const char *config_shared_label(const struct config *config, const char *folder) {
  const char *found = NULL;
  size_t longest = 0;
  JSON_MEMBERS(config->shared_paths, path, label) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
      n--;
    bool below = strncmp(folder, path, n) == 0 && (folder[n] == '\0' || folder[n] == '/' || n == 1);
    if (below && n > longest) {
      longest = n;
      found = json_string_value(label);
    }
  }
  return found;
}

static bool config_read_providers(struct config *config, const char *path,
                                  const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_MAP)
    return yaml_wrong(err, path, node, "providers must be a map of names to their settings");
  for (size_t i = 0; i < node->count; i++)
    if (node->pairs[i].value->kind != YAML_MAP)
      return yaml_wrong(err, path, node->pairs[i].value,
                        "the settings of a provider must be a map");
  config->providers = yaml_to_json(node);
  return true;
}

static bool config_read_word(const char *path, struct str key, const struct yaml_node *node,
                             char **out, struct err *err) {
  if (node->kind == YAML_LIST || node->kind == YAML_MAP || node->text.n == 0)
    return yaml_wrong(err, path, node, "%s", not_one_word(key, node));
  *out = xstrndup(node->text.p, node->text.n);
  return true;
}

static bool config_read_provider(struct config *config, const char *path,
                                 const struct yaml_node *node, struct err *err) {
  return config_read_word(path, STR("provider"), node, &config->provider, err);
}

static bool config_read_model(struct config *config, const char *path, const struct yaml_node *node,
                              struct err *err) {
  return config_read_word(path, STR("model"), node, &config->model, err);
}

static const struct {
  const char *key;
  bool (*read)(struct config *config, const char *path, const struct yaml_node *node,
               struct err *err);
} readers[] = {
    {"provider", config_read_provider},
    {"model", config_read_model},
    {"options", config_read_options},
    {"fallback", config_read_fallback},
    {"prices", config_read_prices},
    {"notify", config_read_notify},
    {"budget", config_read_budget},
    {"ask_above", config_read_ask_above},
    {"workspace", config_read_workspace},
    {"env", config_read_env},
    {"wait_for_reset", config_read_reset_wait},
    {"wait_for_outage", config_read_outage_wait},
    {"wait_for_background", config_read_background_wait},
    {"facets", config_read_facets},
    {"secrets", config_read_secrets},
    {"sandbox", config_read_sandbox},
    {"hidden_tests", config_read_hidden},
    {"store", config_read_store},
    {"providers", config_read_providers},
    {"shared_paths", config_read_shared_paths},
    {"words", config_read_words},
};

static bool read_pair(struct config *config, const char *path, const struct yaml_pair *pair,
                      struct err *err) {
  struct str key = pair->key->text;
  for (size_t i = 0; i < ARRAY_LEN(readers); i++)
    if (str_eq_c(key, readers[i].key))
      return readers[i].read(config, path, pair->value, err);
  const char *names[ARRAY_LEN(config_keys)];
  for (size_t i = 0; i < ARRAY_LEN(config_keys); i++)
    names[i] = config_keys[i].name;
  const char *near = str_nearest(key, names);
  const char *all =
      "use provider, model, options, fallback, prices, notify, budget, ask_above, workspace, "
      "wait_for_reset, wait_for_outage, wait_for_background, env, facets, secrets, sandbox, "
      "hidden_tests, store, "
      "shared_paths, words or providers";
  return yaml_unknown(err, path, pair->key, "unknown key", near, all);
}

static bool read_config(struct config *config, const char *path, struct str text, struct err *err) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(&arena, path, text, LIMIT_CONFIG_BYTES, &errors);
  bool ok = errors.count == 0 && root != NULL;
  if (!ok && errors.count > 0)
    *err = errors.items[0];
  if (ok && root->kind != YAML_MAP)
    ok = yaml_wrong(err, path, root, "it must be a map: write provider: NAME");
  for (size_t i = 0; ok && i < root->count; i++)
    ok = read_pair(config, path, &root->pairs[i], err);
  return ok;
}

bool config_templates(struct config *config, const char *dir, struct err *err) {
  for (size_t l = 0; languages[l] != NULL; l++)
    for (size_t i = 0; prompt_template_names[i]; i++) {
      char path[PATHS_BYTES + 128], key[64];
      struct buf text = {0};
      print_into(key, sizeof key, "%s/%s", languages[l], prompt_template_names[i]);
      print_into(path, sizeof path, "%s/%s", dir, key);
      if (!file_read(path, LIMIT_INLINE_TEXT_BYTES, &text, err)) {
        buf_deinit(&text);
        if (err->code == ERR_NOT_FOUND)
          continue;
        return false;
      }
      if (!utf8_valid(text.p, text.n)) {
        buf_deinit(&text);
        return err_set(err, ERR_FILE, "%s is not UTF-8 text", path);
      }
      if (config->templates == NULL)
        config->templates = json_object();
      json_object_set_new(config->templates, key, json_stringn(text.p, text.n));
      buf_deinit(&text);
    }
  return true;
}

static bool read_templates(struct config *config, const char *dir, struct err *err) {
  char folder[PATHS_BYTES + 16];
  print_into(folder, sizeof folder, "%s/prompts", dir);
  if (access(folder, F_OK) != 0 && errno == ENOENT)
    return true;
  return config_templates(config, folder, err);
}

/* Gathers the variables whose values are secrets. */
static void gather_hidden(struct config *config) {
  size_t n = 0;
  while (config->env != NULL && config->env[n] != NULL)
    n++;
  config->hidden = xcalloc(n + json_array_size(config->secrets) + 1, sizeof *config->hidden);
  for (size_t i = 0; i < n; i++)
    config->hidden[i] = config->env[i];
  JSON_EACH(config->secrets, i, name)
    config->hidden[n++] = json_string_value(name);
}

bool config_load(struct config *config, struct err *err) {
  char dir[PATHS_BYTES], path[PATHS_BYTES + 16];
  buf_auto_t text = {0};
  *config = (struct config){0};
  if (!paths_config(dir, err))
    return err->code == ERR_NOT_FOUND; /* no home: no configuration */
  print_into(path, sizeof path, "%s/config.yaml", dir);
  bool ok = file_read(path, LIMIT_CONFIG_BYTES, &text, err);
  if (ok && str_trim(buf_view(&text)).n > 0)
    ok = read_config(config, path, buf_view(&text), err);
  else if (!ok && err->code == ERR_NOT_FOUND)
    ok = true;
  ok = ok && read_templates(config, dir, err);
  if (ok)
    gather_hidden(config);
  else
    config_deinit(config);
  return ok;
}

json_t *config_values(char path[CONFIG_PATH_BYTES], struct err *err) {
  char dir[PATHS_BYTES];
  buf_auto_t text = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  json_t *values = NULL;
  path[0] = '\0';
  if (!paths_config(dir, err))
    return err->code == ERR_NOT_FOUND ? json_object() : NULL;
  print_into(path, CONFIG_PATH_BYTES, "%s/config.yaml", dir);
  if (!file_read(path, LIMIT_CONFIG_BYTES, &text, err)) {
    path[0] = '\0';
    return err->code == ERR_NOT_FOUND ? json_object() : NULL;
  }
  const struct yaml_node *root =
      yaml_parse(&arena, path, buf_view(&text), LIMIT_CONFIG_BYTES, &errors);
  if (root != NULL && errors.count == 0)
    values = root->kind == YAML_MAP ? yaml_to_json(root) : json_object();
  else
    *err = errors.items[0];
  return values;
}

const char *config_store(void) {
  static char store[PATHS_BYTES];
  static bool known;
  char path[CONFIG_PATH_BYTES];
  struct err err;
  json_auto_t *values = known ? NULL : config_values(path, &err);
  const char *said = json_string_value(json_object_get(values, "store"));
  known = true;
  if (said != NULL && strlen(said) < sizeof store)
    memcpy(store, said, strlen(said) + 1);
  return store;
}

static void config_set_string(json_t *object, const char *key, const char *value) {
  json_object_set_new(object, key, json_string(value));
}

/* Puts the models that the user has set for single providers. */
static void set_provider_models(json_t *config, json_t *providers) {
  json_t *models = json_object();
  JSON_MEMBERS(providers, name, settings) {
    json_t *model = json_object_get(settings, "model");
    if (json_is_string(model))
      json_object_set(models, name, model);
  }
  if (json_object_size(models) > 0)
    json_object_set(config, "provider_models", models);
  json_decref(models);
}

void config_resolve(const struct config *config, json_t *session_config) {
  char user[PATHS_USER_BYTES];
  paths_user(user);
  if (json_object_get(session_config, "user") == NULL) /* it stays whoever began the session */
    config_set_string(session_config, "user", user);
  config_set_string(session_config, "default_provider", config->provider);
  config_set_string(session_config, "default_model", config->model);
  json_object_set(session_config, "default_options", config->options);
  set_provider_models(session_config, config->providers);
  json_object_set(session_config, "fallback", config->fallback);
  if (config->no_reset_wait)
    json_object_set_new(session_config, "wait_for_reset", json_false());
  const char *ci = getenv("CI"); /* somebody pays for the minutes there */
  if (config->outage_wait == NULL && ci != NULL && ci[0] != '\0')
    config_set_string(session_config, "wait_for_outage", "10m");
  json_object_set(session_config, "wait_for_outage", config->outage_wait);
  json_object_set(session_config, "wait_for_background", config->background_wait);
  json_object_set(session_config, "prices", config->prices);
  if (!json_is_false(json_object_get(session_config, "ask_above"))) /* --yes */
    json_object_set(session_config, "ask_above", config->ask_above);
  json_object_set(session_config, "default_workspace", config->workspace);
  json_object_set(session_config, "templates", config->templates);
  json_object_set(session_config, "secrets", config->secrets);
  json_object_set(session_config, "facet_folders", config->facets);
  json_object_set_new(session_config, "sandbox",
                      sandbox_resolve(config->sandbox, config->providers));
  hidden_tests_resolve(config->hidden_tests, session_config);
  if (config->env == NULL)
    return;
  json_t *names = json_array();
  for (size_t i = 0; config->env[i]; i++)
    json_array_append_new(names, json_string(config->env[i]));
  json_object_set_new(session_config, "env", names);
}

json_t *config_for_check(const struct config *config, const json_t *session_config) {
  json_t *out = json_object();
  config_resolve(config, out);
  json_t *sandbox = json_object_get(out, "sandbox");
  if (session_config != NULL)
    sandbox_keep_inherited(session_config, out);
  else if (strcmp(json_string_value(json_object_get(sandbox, "level")), "off") != 0)
    json_object_set_new(sandbox, "inherited",
                        json_pack("{ss sO sO* sO*}", "from", "agents", "level",
                                  json_object_get(sandbox, "level"), "network",
                                  json_object_get(sandbox, "network"), "limits",
                                  json_object_get(sandbox, "limits")));
  return out;
}

void config_deinit(struct config *config) {
  free(config->provider);
  free(config->model);
  json_decref(config->options);
  for (size_t i = 0; config->env && config->env[i]; i++)
    free((char *)config->env[i]);
  free(config->env);
  json_decref(config->providers);
  json_decref(config->fallback);
  json_decref(config->workspace);
  json_decref(config->shared_paths);
  json_decref(config->budget);
  json_decref(config->outage_wait);
  json_decref(config->background_wait);
  json_decref(config->prices);
  json_decref(config->ask_above);
  json_decref(config->secrets);
  json_decref(config->facets);
  json_decref(config->sandbox);
  json_decref(config->hidden_tests);
  json_decref(config->notify);
  free(config->hidden);
  json_decref(config->templates);
  *config = (struct config){0};
}
