/* Settings for notices: what is read, its defaults, and what is refused with its place. */

#include "base/memory.h"
#include "host/notifier.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static json_t *read_text(const char *text, struct err *err) {
  AUTO(arena_deinit) struct arena arena = {0};
  AUTO(err_list_deinit) struct err_list errors = {0};
  const struct yaml_node *root = yaml_parse(&arena, "config.yaml", str_from(text), 10000, &errors);
  if (root == NULL)
    fail_msg("no YAML: %s", text);
  return notify_config_set_read("config.yaml", root, err);
}

static void assert_reads(const char *text, const char *wanted) {
  struct err err = {0};
  json_auto_t *set = read_text(text, &err);
  if (set == NULL)
    fail_msg("%s: %s", text, err.text);
  char_auto_t *json = json_dumps(set, JSON_COMPACT | JSON_SORT_KEYS);
  assert_string_equal(json, wanted);
}

TEST(settings_are_read_and_filled_up) {
  assert_reads("[notify-send, segue, 7]",
               "{\"command\":[\"notify-send\",\"segue\",\"7\"],\"env\":[],"
               "\"on\":[\"question\",\"stop\",\"stall\",\"limit\",\"budget\",\"end\",\"start\"],"
               "\"stall_ms\":600000,\"timeout_ms\":30000}");
  assert_reads("{command: [tell], on: [end], env: [DISPLAY], stall: 1h, timeout: 500ms}",
               "{\"command\":[\"tell\"],\"env\":[\"DISPLAY\"],\"on\":[\"end\"],"
               "\"stall_ms\":3600000,\"timeout_ms\":500}");
}

TEST(only_what_was_asked_for_is_wanted) {
  struct err err = {0};
  json_auto_t *set = read_text("{command: [tell], on: [end, stop]}", &err);
  assert_true(notify_config_set_wants(set, "end"));
  assert_true(notify_config_set_wants(set, "stop"));
  assert_false(notify_config_set_wants(set, "question"));
}

static const struct {
  const char *text;
  int line, column;
  const char *what;
} wrong[] = {
    {"tell", 1, 1, "a command as a list of words"},
    {"[]", 1, 1, "a command as a list of words"},
    {"['', segue]", 1, 2, "a command as a list of words"},
    {"[tell, [me]]", 1, 8, "a command as a list of words"},
    {"[tell, {a: b}]", 1, 8, "a command as a list of words"},
    {"command: tell", 1, 10, "a command as a list of words"},
    {"on: [end]", 1, 1, "needs its command"},
    {"commnd: [tell]", 1, 1, "did you mean \"command\"?"},
    {"command: [tell]\nwhen: [end]", 2, 1, "use command, on, env, stall or timeout"},
    {"on: end", 1, 5, "on must be a list"},
    {"on: []", 1, 5, "on must be a list"},
    {"on: [end, stops]", 1, 11, "did you mean stop?"},
    {"on: [noise]", 1, 6, "\"noise\" is not an event"},
    {"env: DISPLAY", 1, 6, "32 names of variables"},
    {"env: [A=b]", 1, 7, "names only"},
    {"env: [7]", 1, 7, "names only"},
    {"stall: soon", 1, 8, "it "},
    {"timeout: [30s]", 1, 10, "it "},
    {"timeout: 0s", 1, 10, "it "},
};

TEST(mistakes_are_refused_at_their_place) {
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    struct err err = {0};
    if (read_text(wrong[i].text, &err) != NULL)
      fail_msg("accepted: %s", wrong[i].text);
    if (err.line != wrong[i].line || err.column != wrong[i].column ||
        strstr(err.text, wrong[i].what) == NULL)
      fail_msg("%s: %d:%d: %s", wrong[i].text, err.line, err.column, err.text);
  }
}
