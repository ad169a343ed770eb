/* Settings for notices: what is read, its defaults, and what is refused with its place. */

#include "base/memory.h"
#include "host/notifier.h"
#include "support/data.h"
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
  assert_reads(
      "[notify-send, segue, 7]",
      "{\"command\":[\"notify-send\",\"segue\",\"7\"],\"env\":[],"
      "\"on\":[\"question\",\"stop\",\"stall\",\"limit\",\"budget\",\"end\",\"start\",\"report\"],"
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

TEST(mistakes_are_refused_at_their_place) {
  DATA_ROWS("host/notify_config/mistakes_are_refused_at_their_place.yaml", c, text, line, column,
            what) {
    struct err err = {0};
    if (read_text(c.text, &err) != NULL)
      fail_msg("accepted: %s", c.text);
    if (err.line != (int)data_number(c.line) || err.column != (int)data_number(c.column) ||
        strstr(err.text, c.what) == NULL)
      fail_msg("%s: %d:%d: %s", c.text, err.line, err.column, err.text);
  }
}
