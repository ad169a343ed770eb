/* Chooses sandboxes from a configuration and a movement's own words. */

#include "core/sandbox_settings.h"
#include "support/test.h"

#include <string.h>

static const struct held held = {0};
static const struct capability agent = {.name = "claude", .held = &held};
static const struct capability api = {.name = "openai"};

#define INHERITS                                                                                   \
  "'inherited': {'from': 'a', 'level': 'guard', 'network': 'api'}, 'api_by': 'l',"                 \
  " 'mechanisms': {'guard': 'l', 'strict': 'l'}"

TEST(each_word_has_its_place) {
  static const struct row {
    const char *config;
    int movement, network; /* -1: it says nothing */
    bool command, asked;
    const char *wanted; /* of the call_start; NULL: none */
  } rows[] = {
      {"{}", -1, -1, false, false, NULL},
      {"{'sandbox': {'level': 'guard', 'mechanisms': {'guard': 'landlock'}}}", -1, -1, false, false,
       "{'level': 'guard', 'mechanism': 'landlock'}"},
      {"{'sandbox': {'level': 'off', 'fell_back': true, 'mechanisms': {}}}", -1, -1, false, false,
       "{'level': 'off'}"},
      {"{'sandbox': {'level': 'guard', 'asked': true, 'mechanisms': {}}}", -1, -1, false, true,
       "{'level': 'guard'}"},
      {"{'sandbox': {'level': 'guard', 'providers': {'claude': {'level': 'strict'}},"
       " 'mechanisms': {'strict': 'landlock'}}}",
       -1, -1, false, true, "{'level': 'strict', 'mechanism': 'landlock'}"},
      {"{'sandbox': {'level': 'guard', 'providers': {'claude': {'level': 'strict', 'network':"
       " 'none'}}, 'mechanisms': {}}}",
       SANDBOX_GUARD, -1, false, true, "{'level': 'guard', 'network': 'none'}"},
      {"{'sandbox': {'level': 'guard', 'network': 'none', 'mechanisms': {}}}", SANDBOX_OFF,
       NETWORK_OPEN, false, true, "{'level': 'off'}"},
      {"{'sandbox': {'level': 'strict', 'network': 'none', 'mechanisms': {}}}", -1, -1, true, false,
       NULL},
      {"{'sandbox': {'level': 'guard', 'commands': 'strict', 'commands_asked': true,"
       " 'mechanisms': {}}}",
       -1, NETWORK_NONE, true, true, "{'level': 'strict', 'network': 'none'}"},
      {"{'sandbox': {'level': 'guard', 'mechanisms': {}}}", SANDBOX_GUARD, -1, true, true,
       "{'level': 'guard'}"},
      /* not every mechanism makes a network of its own */
      {"{'sandbox': {'level': 'guard', 'mechanisms': {'guard': 'landlock'}, 'api_by': 'bwrap'}}",
       -1, NETWORK_API, false, false, "{'level': 'guard', 'mechanism': 'bwrap', 'network': 'api'}"},
      {"{'sandbox': {'level': 'guard', 'mechanisms': {'guard': 'landlock'}}}", -1, NETWORK_API,
       false, false, "{'level': 'guard', 'network': 'api'}"},
      /* a container has an image: the movement's, the backend's, the user's */
      {"{'sandbox': {'level': 'container', 'image': 'u', 'mechanisms': {'container': 'podman'},"
       " 'providers': {'claude': {'image': 'b'}}}}",
       -1, NETWORK_API, false, false,
       "{'level': 'container', 'mechanism': 'podman', 'image': 'b', 'network': 'api'}"},
      {"{'sandbox': {'level': 'off', 'image': 'u', 'limits': {'pids': 9}, 'limits_by': 'rlimits',"
       " 'mechanisms': {'container': 'docker'}}}",
       SANDBOX_CONTAINER, -1, false, true,
       "{'level': 'container', 'mechanism': 'docker', 'image': 'u', 'limits': {'pids': 9, 'by':"
       " 'docker'}}"},
      /* limits of the user's are the agents' */
      {"{'sandbox': {'level': 'off', 'limits_by': 'rlimits', 'limits': {'memory': '4G', 'pids': 99,"
       " 'cpus': 0.5}}}",
       -1, -1, false, false,
       "{'level': 'off', 'limits': {'memory': 4294967296, 'pids': 99, 'cpus': 0.5, 'by':"
       " 'rlimits'}}"},
      {"{'sandbox': {'level': 'off', 'limits': {'memory': '4G'}}}", -1, -1, true, false, NULL},
      /* a command inherits, its movement may narrow that, and the user's word lifts it */
      {"{'sandbox': {" INHERITS "}}", -1, -1, true, false,
       "{'level': 'guard', 'mechanism': 'l', 'network': 'api', 'from': 'a'}"},
      {"{'sandbox': {" INHERITS "}}", SANDBOX_OFF, NETWORK_OPEN, true, true,
       "{'level': 'guard', 'mechanism': 'l', 'network': 'api', 'from': 'a'}"},
      {"{'sandbox': {" INHERITS "}}", SANDBOX_STRICT, -1, true, true,
       "{'level': 'strict', 'mechanism': 'l', 'network': 'api'}"},
      {"{'sandbox': {" INHERITS "}}", -1, NETWORK_NONE, true, false,
       "{'level': 'guard', 'mechanism': 'l', 'network': 'none'}"},
      {"{'sandbox': {'commands': {'network': 'open', 'read': []}," INHERITS "}}", -1, -1, true,
       false, "{'level': 'guard', 'mechanism': 'l', 'from': 'a'}"},
      {"{'sandbox': {'commands': 'off', 'commands_asked': true," INHERITS "}}", -1, -1, true, true,
       NULL},
      {"{'sandbox': {'commands': 'off', 'commands_asked': true," INHERITS "}}", SANDBOX_STRICT, -1,
       true, true, "{'level': 'strict', 'mechanism': 'l'}"},
      {"{'sandbox': {'level': 'off', " INHERITS "}}", -1, -1, false, false, "{'level': 'off'}"},
      {"{'sandbox': {'inherited': {'from': 'a', 'level': 'container', 'image': 'i'}, 'image': 'u',"
       " 'mechanisms': {'container': 'podman'}}}",
       SANDBOX_GUARD, -1, true, true,
       "{'level': 'container', 'mechanism': 'podman', 'image': 'i', 'from': 'a'}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    char text[400], wanted_text[200] = "null";
    print_into(text, sizeof text, "%s", rows[i].config);
    if (rows[i].wanted != NULL)
      print_into(wanted_text, sizeof wanted_text, "%s", rows[i].wanted);
    for (char *p = text; *p != '\0'; p++)
      *p = *p == '\'' ? '"' : *p;
    for (char *p = wanted_text; *p != '\0'; p++)
      *p = *p == '\'' ? '"' : *p;
    json_auto_t *config = json_loads(text, 0, NULL);
    json_auto_t *wanted = json_loads(wanted_text, JSON_DECODE_ANY, NULL);
    const struct movement m = {
        .has_sandbox = rows[i].movement >= 0,
        .sandbox = rows[i].movement >= 0 ? (enum sandbox_level)rows[i].movement : SANDBOX_OFF,
        .has_network = rows[i].network >= 0,
        .network = rows[i].network >= 0 ? (enum sandbox_network)rows[i].network : NETWORK_OPEN};
    struct sandbox_choice choice;
    assert_non_null(config);
    json_auto_t *got = sandbox_of_call(config, &m, &agent, rows[i].command);
    if (got == NULL)
      got = json_null();
    if (!json_equal(got, wanted))
      fail_msg("row %zu: %s", i, json_dumps(got, JSON_ENCODE_ANY));
    if (sandbox_choose(config, &m, &agent, rows[i].command, &choice))
      assert_int_equal(choice.asked, rows[i].asked);
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
