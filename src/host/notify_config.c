/* Reads the settings for notices. */
#include "host/notify_config.h"

#include "base/limits.h"
#include "core/movement_limits.h"
#include "store/notification.h"

#include <string.h>

static const char *const notify_config_keys[] = {"command", "on", "env", "stall", "timeout", NULL};

static bool notify_config_words(json_t *set, const char *path, const struct yaml_node *node,
                                struct err *err) {
  static const char *const wanted = "notify must be a command as a list of words, such as "
                                    "[notify-send, segue], or a map with it: {command: [...]}";
  if (node->kind != YAML_LIST || node->count == 0 || node->count > LIMIT_NOTICE_WORDS)
    return yaml_wrong(err, path, node, "%s", wanted);
  for (size_t i = 0; i < node->count; i++)
    if (node->items[i]->kind == YAML_LIST || node->items[i]->kind == YAML_MAP ||
        (i == 0 && node->items[i]->text.n == 0))
      return yaml_wrong(err, path, node->items[i], "%s", wanted);
  json_t *words = json_array();
  for (size_t i = 0; i < node->count; i++)
    json_array_append_new(words, json_stringn(node->items[i]->text.p, node->items[i]->text.n));
  json_object_set_new(set, "command", words);
  return true;
}

static bool is_event(struct str word) {
  for (size_t i = 0; notification_events[i] != NULL; i++)
    if (str_eq_c(word, notification_events[i]))
      return true;
  return false;
}

static bool notify_config_on(json_t *set, const char *path, const struct yaml_node *node,
                             struct err *err) {
  if (node->kind != YAML_LIST || node->count == 0)
    return yaml_wrong(
        err, path, node,
        "on must be a list of events: question, stop, stall, limit, budget, end, start");
  for (size_t i = 0; i < node->count; i++) {
    const struct yaml_node *item = node->items[i];
    if (is_event(item->text))
      continue;
    const char *near = str_nearest(item->text, notification_events);
    return yaml_wrong(
        err, path, item,
        "\"%.40s\" is not an event: use question, stop, stall, limit, budget, end or start%s%s%s",
        item->text.p, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
  }
  json_object_set_new(set, "on", yaml_to_json(node));
  return true;
}

static bool read_duration(json_t *set, const char *key, const char *path,
                          const struct yaml_node *node, struct err *err) {
  struct err why = {0};
  if (!limits_check_duration(node->text, &why)) {
    return yaml_wrong(err, path, node, "it %.200s", why.text);
  }
  json_object_set_new(set, key, json_integer(limits_duration_ms(node->text, 0)));
  return true;
}

static bool read_notice_key(json_t *set, const char *path, const struct yaml_pair *pair,
                            struct err *err) {
  struct str key = pair->key->text;
  if (str_eq_c(key, "command"))
    return notify_config_words(set, path, pair->value, err);
  if (str_eq_c(key, "on"))
    return notify_config_on(set, path, pair->value, err);
  if (str_eq_c(key, "env")) {
    if (pair->value->kind != YAML_LIST || pair->value->count > LIMIT_SECRET_COUNT)
      return yaml_wrong(err, path, pair->value,
                        "env must be a list of at most 32 names of variables");
    for (size_t i = 0; i < pair->value->count; i++)
      if (pair->value->items[i]->kind != YAML_TEXT || !str_is_variable(pair->value->items[i]->text))
        return yaml_wrong(err, path, pair->value->items[i],
                          "env takes names only: the values come from the environment");
    json_object_set_new(set, "env", yaml_to_json(pair->value));
    return true;
  }
  if (str_eq_c(key, "stall"))
    return read_duration(set, "stall_ms", path, pair->value, err);
  if (str_eq_c(key, "timeout"))
    return read_duration(set, "timeout_ms", path, pair->value, err);
  const char *near = str_nearest(key, notify_config_keys);
  return yaml_unknown(err, path, pair->key, "notify has no key", near,
                      "use command, on, env, stall or timeout");
}

static void set_defaults(json_t *set) {
  json_t *all = json_array();
  for (size_t i = 0; notification_events[i] != NULL; i++)
    json_array_append_new(all, json_string(notification_events[i]));
  json_t *defaults =
      json_pack("{so s[] sI sI}", "on", all, "env", "stall_ms", (json_int_t)LIMIT_NOTICE_STALL_MS,
                "timeout_ms", (json_int_t)LIMIT_NOTICE_RUN_MS);
  json_object_update_missing(set, defaults);
  json_decref(defaults);
}

json_t *notify_config_set_read(const char *path, const struct yaml_node *node, struct err *err) {
  json_t *set = json_object();
  bool ok = true;
  if (node->kind == YAML_MAP) {
    for (size_t i = 0; ok && i < node->count; i++)
      ok = read_notice_key(set, path, &node->pairs[i], err);
    if (ok && json_object_get(set, "command") == NULL)
      ok = yaml_wrong(err, path, node, "notify needs its command, a list of words");
  } else {
    ok = notify_config_words(set, path, node, err);
  }
  if (ok) {
    set_defaults(set);
    return set;
  }
  json_decref(set);
  return NULL;
}

bool notify_config_set_wants(const json_t *set, const char *event) {
  const json_t *on = json_object_get(set, "on"), *word;
  size_t i;
  json_array_foreach(on, i, word) {
    if (strcmp(json_string_value(word), event) == 0)
      return true;
  }
  return false;
}
