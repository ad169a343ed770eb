/* Reads the user's settings for sandboxes and finds out what the kernel can enforce. */
#include "host/sandbox_config.h"

#include "base/limits.h"
#include "base/str.h"
#include "core/keys.h"
#include "core/sandbox_settings.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "http/proxy.h"
#include "os/control_group.h"
#include "os/process.h"
#include "os/sandbox.h"
#include "os/sandbox_bwrap.h"
#include "os/sandbox_container.h"
#include "os/sandbox_rules.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_words[] = {"off", "guard", "strict", "container", NULL};
static const char *const home_words[] = {"closed", "open", NULL};
static const char *const network_words[] = {"open", "api", "none", NULL};
static const char *const mechanism_words[] = {SANDBOX_LANDLOCK, SANDBOX_BWRAP, SANDBOX_PODMAN,
                                              SANDBOX_DOCKER, NULL};

static const struct sandbox_key {
  const char *name;
  enum { WORD, FLAG, PATHS, HOSTS, LIMITS, LINE } type;
  const char *const *words;
} sandbox_keys[] = {
    {"level", WORD, level_words},     {"commands", WORD, level_words},
    {"least", WORD, level_words},     {"mechanism", WORD, mechanism_words},
    {"network", WORD, network_words}, {"namespaces", FLAG, NULL},
    {"limits", LIMITS, NULL},         {"read", PATHS, NULL},
    {"write", PATHS, NULL},           {"secret", PATHS, NULL},
    {"hosts", HOSTS, NULL},           {"image", LINE, NULL},
    {"home", WORD, home_words},
};

/* Returns the word at a node; YAML reads off as false. */
static struct str word_of(const struct yaml_node *node) {
  return node->kind == YAML_BOOL && !node->boolean ? STR("off") : node->text;
}

static bool sandbox_one_of(const char *path, const struct yaml_node *node, const char *name,
                           const char *const *words, struct err *err) {
  char text[200];
  size_t n = 0;
  bool scalar = node->kind != YAML_LIST && node->kind != YAML_MAP;
  for (size_t i = 0; words[i] != NULL; i++) {
    if (scalar && str_eq_c(word_of(node), words[i]))
      return true;
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? ", " : "", words[i]);
  }
  const char *near = scalar ? str_nearest(word_of(node), words) : NULL;
  return yaml_wrong(err, path, node, "sandbox: %s must be one of %s%s%s%s", name, text,
                    near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
}

static bool are_paths(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_LIST || node->count > LIMIT_SANDBOX_PATHS)
    return yaml_wrong(err, path, node, "it must be a list of at most 200 paths");
  for (size_t i = 0; i < node->count; i++) {
    struct str text = node->items[i]->text;
    if (node->items[i]->kind != YAML_TEXT ||
        !(str_starts(text, "/") || str_starts(text, "~/") || str_eq_c(text, "~")))
      return yaml_wrong(err, path, node->items[i],
                        "it must be an absolute path, or one that begins with ~/");
  }
  return true;
}

static bool are_hosts(const char *path, const struct yaml_node *node, struct err *err) {
  if (node->kind != YAML_LIST || node->count > LIMIT_SANDBOX_HOSTS)
    return yaml_wrong(err, path, node, "it must be a list of at most 100 hosts");
  for (size_t i = 0; i < node->count; i++) {
    struct str host;
    unsigned port;
    if (node->items[i]->kind != YAML_TEXT || !proxy_split(node->items[i]->text, &host, &port) ||
        memchr(host.p, '/', host.n) != NULL)
      return yaml_wrong(err, path, node->items[i],
                        "it must be a host: NAME, *.NAME or NAME:PORT, without https://");
  }
  return true;
}

/* Reads limits, with the same keys as a movement's own. */
static bool sandbox_read_limits(json_t *out, const char *path, const struct yaml_node *node,
                                struct err *err) {
  struct err why;
  json_auto_t *limits = node->kind == YAML_MAP ? yaml_to_json(node) : NULL;
  if (limits == NULL)
    return yaml_wrong(err, path, node,
                      "sandbox: limits must be a map, such as {memory: 4G, cpus: 2, pids: 512}");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key;
    if (key_find(&limits_keys, key->text) != NULL)
      continue;
    const char *near = key_nearest(&limits_keys, key->text);
    return yaml_unknown(err, path, key, "sandbox: limits has no key", near,
                        "use memory, cpus or pids");
  }
  if (!key_set_check(&limits_keys, limits, &why))
    return yaml_wrong(err, path, node, "sandbox: limits: %.200s", why.text);
  json_object_set(out, "limits", limits);
  return true;
}

static bool read_key(json_t *out, const char *path, const struct yaml_pair *pair, struct err *err);

/* Reads what commands may do beyond what they inherit. */
static bool read_commands(json_t *out, const char *path, const struct yaml_node *node,
                          struct err *err) {
  static const char *const names[] = {"network", "read", "write", "limits", NULL};
  json_t *own = json_object();
  json_object_set_new(out, "commands", own);
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *key = node->pairs[i].key;
    if (str_index(key->text, names, ARRAY_LEN(names) - 1) < 0)
      return yaml_unknown(err, path, key, "sandbox: commands has no key",
                          str_nearest(key->text, names), "use network, read, write or limits");
    if (!read_key(own, path, &node->pairs[i], err))
      return false;
  }
  return true;
}

static bool read_key(json_t *out, const char *path, const struct yaml_pair *pair, struct err *err) {
  const char *names[ARRAY_LEN(sandbox_keys) + 1] = {NULL};
  for (size_t i = 0; i < ARRAY_LEN(sandbox_keys); i++) {
    const struct sandbox_key *key = &sandbox_keys[i];
    names[i] = key->name;
    if (!str_eq_c(pair->key->text, key->name))
      continue;
    if (pair->value->kind == YAML_MAP && strcmp(key->name, "commands") == 0)
      return read_commands(out, path, pair->value, err);
    if (key->type == WORD && sandbox_one_of(path, pair->value, key->name, key->words, err)) {
      struct str word = word_of(pair->value);
      json_object_set_new(out, key->name, json_stringn(word.p, word.n));
      return true;
    }
    if (key->type == LINE && pair->value->kind == YAML_TEXT && pair->value->text.n > 0)
      json_object_set_new(out, key->name, json_stringn(pair->value->text.p, pair->value->text.n));
    else if (key->type == LINE)
      return yaml_wrong(err, path, pair->value, "it must be the name of an image");
    else if (key->type == FLAG && pair->value->kind == YAML_BOOL)
      json_object_set_new(out, key->name, json_boolean(pair->value->boolean));
    else if (key->type == FLAG)
      return yaml_wrong(err, path, pair->value, "it must be true or false");
    else if ((key->type == PATHS && are_paths(path, pair->value, err)) ||
             (key->type == HOSTS && are_hosts(path, pair->value, err)))
      json_object_set_new(out, key->name, yaml_to_json(pair->value));
    else
      return key->type == LIMITS && sandbox_read_limits(out, path, pair->value, err);
    return true;
  }
  return yaml_unknown(err, path, pair->key, "sandbox has no key",
                      str_nearest(pair->key->text, names),
                      "use level, commands, least, mechanism, network, hosts, image, namespaces, "
                      "limits, home, read, write or secret");
}

json_t *sandbox_read(const char *path, const struct yaml_node *node, struct err *err) {
  json_t *out = json_object();
  bool ok = true;
  if (node->kind == YAML_MAP) {
    for (size_t i = 0; ok && i < node->count; i++)
      ok = read_key(out, path, &node->pairs[i], err);
  } else {
    ok = sandbox_one_of(path, node, "level", level_words, err);
    if (ok)
      json_object_set_new(out, "level", json_stringn(word_of(node).p, word_of(node).n));
  }
  if (ok)
    return out;
  json_decref(out);
  return NULL;
}

/* Returns NULL if the kernel can enforce guard and strict, else why not. */
static const char *why_not_by(const char *mechanism) {
  char path[256];
  if (strcmp(mechanism, SANDBOX_BWRAP) != 0) {
    if (sandbox_version() == 0)
      return "this kernel has no Landlock, or it is not switched on (lsm=... on its command line)";
    if (!sandbox_filters())
      return "this kernel, or this kind of machine, has no filter of system calls";
    return NULL;
  }
  if (!sandbox_filters())
    return "this kernel, or this kind of machine, has no filter of system calls";
  return sandbox_bwrap_why_not(path, sizeof path);
}

static bool is_engine(const char *mechanism) {
  return mechanism != NULL &&
         (strcmp(mechanism, SANDBOX_PODMAN) == 0 || strcmp(mechanism, SANDBOX_DOCKER) == 0);
}

const char *sandbox_engine(const json_t *words, const char **why) {
  const char *asked = json_string_value(json_object_get(words, "mechanism"));
  char path[256];
  if (!is_engine(asked))
    asked = NULL;
  *why = NULL;
  for (size_t i = 0; sandbox_engines[i] != NULL; i++)
    if ((asked == NULL || strcmp(asked, sandbox_engines[i]) == 0) &&
        sandbox_find_engine(sandbox_engines[i], path, sizeof path))
      return sandbox_engines[i];
  *why = "neither podman nor docker is installed";
  if (asked != NULL)
    *why = "the requested program is not installed";
  return NULL;
}

const char *sandbox_mechanism(const json_t *words, const char **why) {
  const char *asked = json_string_value(json_object_get(words, "mechanism"));
  if (is_engine(asked)) /* engines are for containers: choose another */
    asked = NULL;
  *why = NULL;
  if (asked != NULL && (*why = why_not_by(asked)) != NULL)
    return NULL;
  if (asked != NULL)
    return asked;
  if ((*why = why_not_by(SANDBOX_LANDLOCK)) == NULL)
    return SANDBOX_LANDLOCK;
  if (why_not_by(SANDBOX_BWRAP) != NULL)
    return NULL;
  *why = NULL;
  return SANDBOX_BWRAP;
}

/* Gathers what the settings of backends say about sandboxes. */
static json_t *of_providers(const json_t *providers) {
  json_t *out = json_object();
  JSON_MEMBERS(providers, name, settings) {
    json_t *level = json_object_get(settings, "sandbox");
    json_t *network = json_object_get(settings, "network"), *own = json_object();
    if (json_is_false(level))
      json_object_set_new(own, "level", json_string("off"));
    else if (level != NULL)
      json_object_set(own, "level", level);
    json_object_set(own, "network", network);
    json_object_set(own, "image", json_object_get(settings, "image"));
    json_object_set(own, "home", json_object_get(settings, "home"));
    if (json_object_size(own) > 0)
      json_object_set(out, name, own);
    json_decref(own);
  }
  return out;
}

/* Returns NULL if network: api can be enforced, else why not. Only bwrap makes a network of its
 * own. */
static const char *api_why_not(const json_t *words) {
  const char *asked = json_string_value(json_object_get(words, "mechanism"));
  if (asked != NULL && !is_engine(asked) && strcmp(asked, SANDBOX_BWRAP) != 0)
    return "the requested mechanism makes none: write mechanism: bwrap, or leave it out";
  return why_not_by(SANDBOX_BWRAP);
}

json_t *sandbox_resolve(const json_t *words, const json_t *providers) {
  const char *why;
  const char *mechanism = sandbox_mechanism(words, &why);
  const bool can = mechanism != NULL;
  const bool asked = json_object_get(words, "level") != NULL;
  json_t *out = words ? json_clone_top(words) : json_object();
  json_t *mechanisms = json_object(), *own = of_providers(providers);
  const char *engine = sandbox_engine(words, &why);
  json_object_set_new(mechanisms, sandbox_level_name(SANDBOX_CONTAINER), json_string(engine));
  for (int level = SANDBOX_GUARD; can && level < SANDBOX_CONTAINER; level++)
    json_object_set_new(mechanisms, sandbox_level_name((enum sandbox_level)level),
                        json_string(mechanism));
  if (!asked)
    json_object_set_new(out, "level", json_string(can ? "guard" : "off"));
  if (asked)
    json_object_set_new(out, "asked", json_true());
  else if (!can)
    json_object_set_new(out, "fell_back", json_true());
  if (json_object_get(words, "commands") != NULL)
    json_object_set_new(out, "commands_asked", json_true());
  if (sandbox_version() > 0)
    json_object_set_new(out, SANDBOX_LANDLOCK, json_integer(sandbox_version()));
  json_object_set_new(out, "mechanisms", mechanisms);
  if (can && api_why_not(words) == NULL)
    json_object_set_new(out, "api_by", json_string(SANDBOX_BWRAP));
  json_object_set_new(out, "limits_by",
                      json_string(group_may_limit() ? LIMITS_BY_GROUP : LIMITS_BY_BIRTH));
  if (json_object_size(own) > 0)
    json_object_set(out, "providers", own);
  json_decref(own);
  return out;
}

void sandbox_keep_inherited(const json_t *before, json_t *config) {
  json_object_set(json_object_get(config, "sandbox"), "inherited",
                  json_object_get(json_object_get(before, "sandbox"), "inherited"));
}

void sandbox_make_ready(json_t *config) {
  json_object_set_new(json_object_get(config, "sandbox"), "limits_by",
                      json_string(group_can_limit() ? LIMITS_BY_GROUP : LIMITS_BY_BIRTH));
}

static bool sandbox_in_groups(const json_t *sandbox) {
  const char *by = json_string_value(json_object_get(sandbox, "limits_by"));
  return by != NULL && strcmp(by, LIMITS_BY_GROUP) == 0;
}

bool sandbox_check(const json_t *config, const struct movement *m, const struct capability *c,
                   bool command, const char **note, struct err *err) {
  const json_t *sandbox = json_object_get(config, "sandbox");
  const json_t *least = json_object_get(sandbox, "least");
  struct sandbox_choice choice;
  enum sandbox_level floor = SANDBOX_OFF;
  *note = "";
  if (!sandbox_choose(config, m, c, command, &choice))
    return true;
  if (json_is_string(least))
    (void)sandbox_level_from_name(str_from(json_string_value(least)), &floor);
  const char *level = sandbox_level_name(choice.level);
  if (!command && choice.level < floor)
    return err_set(err, ERR_INVALID,
                   "sandbox: %s is less than your config.yaml allows (sandbox: {least: %s}): write "
                   "sandbox: %s",
                   level, sandbox_level_name(floor), sandbox_level_name(floor));
  const char *why = NULL;
  if (choice.mechanism == NULL && choice.level == SANDBOX_CONTAINER)
    (void)sandbox_engine(sandbox, &why);
  else if (choice.mechanism == NULL)
    (void)sandbox_mechanism(sandbox, &why);
  if (choice.level != SANDBOX_OFF && choice.network == NETWORK_API && choice.mechanism == NULL &&
      why == NULL) {
    why = api_why_not(sandbox);
    return err_set(
        err, ERR_INVALID,
        "network: api cannot be enforced here, because it needs a network of its own: %s",
        why ? why : "none was found when the session began");
  }
  if (choice.level != SANDBOX_OFF && choice.mechanism == NULL)
    return err_set(err, ERR_INVALID, "sandbox: %s cannot be enforced here: %s", level,
                   why ? why : "no mechanism is chosen for it");
  if (choice.level == SANDBOX_CONTAINER && choice.image.n == 0)
    return err_set(err, ERR_INVALID,
                   "sandbox: container needs an image: write image: NAME beside it, or in sandbox "
                   "of config.yaml");
  if (choice.level == SANDBOX_OFF && choice.network != NETWORK_OPEN)
    return err_set(err, ERR_INVALID,
                   "network: %s needs a sandbox that enforces it: write sandbox: guard, or strict",
                   sandbox_network_name(choice.network));
  if (choice.network != NETWORK_OPEN && !command && c->held->served)
    return err_set(err, ERR_INVALID,
                   "network: %s does not work with the server through which segue talks to %s: "
                   "write providers: {%s: {transport: exec}} in config.yaml",
                   sandbox_network_name(choice.network), c->name, c->name);
  const bool elsewhere = choice.limits_by != NULL && strcmp(choice.limits_by, SANDBOX_DOCKER) == 0;
  if (choice.pids > 0 && !sandbox_in_groups(sandbox) && !elsewhere && geteuid() == 0)
    return err_set(err, ERR_INVALID,
                   "limits: pids cannot be enforced here: for root only control groups limit the "
                   "number of processes, and none is delegated (systemd: Delegate=yes): run it as "
                   "an ordinary user, or leave pids out");
  if (choice.widened)
    *note = "its sandbox and network may narrow what commands inherit of the agents, not widen it: "
            "only sandbox: {commands: ...} in config.yaml does";
  if (!command && !choice.asked && json_object_get(sandbox, "fell_back") != NULL)
    *note = "agents run without a sandbox here (segue doctor says why): write sandbox: off in "
            "config.yaml if that is intended";
  return true;
}
