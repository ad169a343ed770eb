/* Chooses sandboxes from a configuration and a movement's own words. */

#include "core/sandbox_settings.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>

static const struct held held = {0};
static const struct capability agent = {.name = "claude", .held = &held};
static const struct capability api = {.name = "openai"};

TEST(each_word_has_its_place) {
  DATA_ROWS("core/sandbox_settings/each_word_has_its_place.yaml", c, config, movement, network,
            command, asked, wanted) {
    char text[400], wanted_text[200] = "null";
    print_into(text, sizeof text, "%s", c.config);
    if (c.wanted != NULL)
      print_into(wanted_text, sizeof wanted_text, "%s", c.wanted);
    for (char *p = text; *p != '\0'; p++)
      *p = *p == '\'' ? '"' : *p;
    for (char *p = wanted_text; *p != '\0'; p++)
      *p = *p == '\'' ? '"' : *p;
    json_auto_t *config = json_loads(text, 0, NULL);
    json_auto_t *wanted = json_loads(wanted_text, JSON_DECODE_ANY, NULL);
    const struct movement m = {.has_sandbox = c.movement != NULL,
                               .sandbox = data_among(c.movement, "off guard strict container"),
                               .has_network = c.network != NULL,
                               .network = data_among(c.network, "open api none")};
    struct sandbox_choice choice;
    assert_non_null(config);
    json_auto_t *got = sandbox_of_call(config, &m, &agent, data_true(c.command));
    if (got == NULL)
      got = json_null();
    if (!json_equal(got, wanted))
      fail_msg("row %zu: %s", c.at, json_dumps(got, JSON_ENCODE_ANY));
    if (sandbox_choose(config, &m, &agent, data_true(c.command), &choice))
      assert_int_equal(choice.asked, data_true(c.asked));
    assert_null(sandbox_of_call(config, &m, &api, false));
    assert_null(sandbox_of_call(config, &m, NULL, false));
  }
}

TEST(the_smaller_limit_counts) {
  static const struct {
    const char *user, *own, *wanted;
  } rows[] = {
      {"{\"memory\": \"4G\"}", "{\"memory\": \"512M\"}",
       "{\"memory\": 536870912, \"by\": \"cgroup\"}"},
      {"{\"memory\": \"512M\"}", "{\"memory\": \"4G\"}",
       "{\"memory\": 536870912, \"by\": \"cgroup\"}"},
      {"{\"pids\": 10}", "{\"cpus\": 1.5}", "{\"pids\": 10, \"cpus\": 1.5, \"by\": \"cgroup\"}"},
      {"{\"cpus\": 1.0, \"pids\": 10}", "{\"cpus\": 1.5, \"pids\": 9}",
       "{\"pids\": 9, \"cpus\": 1.0, \"by\": \"cgroup\"}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    json_auto_t *own = json_loads(rows[i].own, 0, NULL),
                *wanted = json_loads(rows[i].wanted, 0, NULL);
    json_auto_t *config = json_pack("{s{ssssso}}", "sandbox", "level", "off", "limits_by", "cgroup",
                                    "limits", json_loads(rows[i].user, 0, NULL));
    const struct movement m = {.limits = own};
    json_t *got = sandbox_of_call(config, &m, &agent, false);
    if (!json_equal(json_object_get(got, "limits"), wanted))
      fail_msg("row %zu: %s", i, json_dumps(got, JSON_ENCODE_ANY));
    json_decref(got);
    got = sandbox_of_call(config, &m, NULL, true); /* of a command the movement's alone */
    assert_non_null(json_object_get(got, "limits"));
    json_decref(got);
  }
}

TEST(words_go_there_and_back) {
  enum sandbox_level level;
  enum sandbox_network network;
  for (int i = 0; i < SANDBOX_LEVEL_COUNT; i++) {
    assert_true(
        sandbox_level_from_name(str_from(sandbox_level_name((enum sandbox_level)i)), &level));
    assert_int_equal(level, i);
  }
  for (int i = 0; i < SANDBOX_NETWORK_COUNT; i++) {
    assert_true(sandbox_network_from_name(str_from(sandbox_network_name((enum sandbox_network)i)),
                                          &network));
    assert_int_equal(network, i);
  }
  assert_false(sandbox_level_from_name(STR("gard"), &level));
  assert_false(sandbox_network_from_name(STR(""), &network));
}
