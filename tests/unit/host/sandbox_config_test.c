/* The user's words on sandboxes: read, refused with their place, and held against the machine. */

#include "base/str.h"
#include "host/sandbox_config.h"
#include "support/data.h"
#include "support/test.h"

#include <string.h>
#include <unistd.h>

static json_t *read_words(const char *text, struct err *err) {
  AUTO(err_list_deinit) struct err_list errors = {0};
  AUTO(arena_deinit) struct arena arena = {0};
  const struct yaml_node *root = yaml_parse(&arena, "c.yaml", str_from(text), 1000, &errors);
  assert_non_null(root);
  return sandbox_read("c.yaml", root, err);
}

TEST(words_are_read) {
  DATA_ROWS("host/sandbox_config/words_are_read.yaml", c, text, wanted) {
    struct err err = {0};
    json_auto_t *got = read_words(c.text, &err);
    json_auto_t *wanted = c.wanted ? json_loads(c.wanted, 0, NULL) : NULL;
    if (c.wanted != NULL ? !json_equal(got, wanted) : got != NULL)
      fail_msg("%s: %s", c.text, got ? json_dumps(got, 0) : err.text);
  }
}

TEST(mistakes_have_their_place) {
  DATA_ROWS("host/sandbox_config/mistakes_have_their_place.yaml", c, text, column, error) {
    struct err err = {0};
    json_auto_t *got = read_words(c.text, &err);
    if (got != NULL || err.code != ERR_FILE || err.line != 1 ||
        err.column != (int)data_number(c.column) || strstr(err.text, c.error) == NULL)
      fail_msg("%s: at %d:%d: %s", c.text, err.line, err.column, got ? "read" : err.text);
  }
}

/* The words go into the session's configuration beside what holds them on this machine. */
TEST(words_meet_the_machine) {
  const char *why;
  bool can = sandbox_mechanism(NULL, &why) != NULL;
  assert_true(can == (why == NULL));
  json_auto_t *plain = sandbox_resolve(NULL, NULL);
  assert_string_equal(json_string_value(json_object_get(plain, "level")), can ? "guard" : "off");
  assert_null(json_object_get(plain, "asked"));
  assert_int_equal(json_is_true(json_object_get(plain, "fell_back")), !can);
  const bool contains = sandbox_engine(NULL, &why) != NULL;
  assert_int_equal(json_object_size(json_object_get(plain, "mechanisms")),
                   (can ? 2 : 0) + (contains ? 1 : 0));
  assert_null(json_object_get(plain, "providers"));
  json_auto_t *words = json_pack("{ssss}", "level", "strict", "commands", "guard");
  json_auto_t *backends = json_pack("{s{sb}s{ssss}s{}}", "a", "sandbox", 0, "b", "sandbox", "guard",
                                    "network", "none", "c");
  json_auto_t *asked = sandbox_resolve(words, backends);
  assert_string_equal(json_string_value(json_object_get(asked, "level")), "strict");
  assert_true(json_is_true(json_object_get(asked, "asked")));
  assert_true(json_is_true(json_object_get(asked, "commands_asked")));
  assert_null(json_object_get(asked, "fell_back"));
  json_auto_t *own =
      json_pack("{s{ss}s{ssss}}", "a", "level", "off", "b", "level", "guard", "network", "none");
  assert_true(json_equal(json_object_get(asked, "providers"), own));
  assert_null(json_object_get(words, "asked")); /* the user's words stay as they are */
}

static const struct held held = {0};
static const struct capability agent = {.name = "claude", .held = &held};
static const struct capability api = {.name = "openai"};

/* A call that cannot be held, or that is held too little, is refused before anything starts. */
TEST(calls_are_checked) {
  static const struct {
    const char *config;
    const struct capability *capability;
    bool command;
    const char *error; /* NULL: it may start */
    const char *note;
  } rows[] = {
      {"{}", &agent, false, NULL, ""},
      {"{\"sandbox\": {\"level\": \"strict\", \"mechanisms\": {}}}", &api, false, NULL, ""},
      {"{\"sandbox\": {\"level\": \"guard\", \"mechanisms\": {\"guard\": \"landlock\"}}}", &agent,
       false, NULL, ""},
      {"{\"sandbox\": {\"level\": \"off\", \"least\": \"guard\", \"mechanisms\": {}}}", &agent,
       false, "is less than your config.yaml allows", ""},
      {"{\"sandbox\": {\"level\": \"off\", \"least\": \"guard\", \"commands\": \"off\","
       " \"commands_asked\": true, \"mechanisms\": {}}}",
       &agent, true, NULL, ""},
      {"{\"sandbox\": {\"level\": \"guard\", \"mechanisms\": {}}}", &agent, false,
       "sandbox: guard cannot be enforced here", ""},
      {"{\"sandbox\": {\"level\": \"off\", \"network\": \"none\", \"mechanisms\": {}}}", &agent,
       false, "network: none needs a sandbox", ""},
      {"{\"sandbox\": {\"level\": \"off\", \"fell_back\": true, \"mechanisms\": {}}}", &agent,
       false, NULL, "agents run without a sandbox here"},
      {"{\"sandbox\": {\"level\": \"off\", \"limits\": {\"pids\": 9}, \"limits_by\": \"cgroup\","
       " \"mechanisms\": {}}}",
       &agent, false, NULL, ""},
  };
  static const struct movement m = {0};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    struct err err = {0};
    const char *note = NULL;
    json_auto_t *config = json_loads(rows[i].config, 0, NULL);
    bool ok = sandbox_check(config, &m, rows[i].capability, rows[i].command, &note, &err);
    if (ok != (rows[i].error == NULL) || (!ok && strstr(err.text, rows[i].error) == NULL) ||
        (ok && strncmp(note, rows[i].note, strlen(rows[i].note)) != 0))
      fail_msg("%s: %s %s", rows[i].config, ok ? "may start" : err.text, note);
  }
}

/* Root is held to a number of processes by control groups alone. */
TEST(a_number_of_processes_needs_a_group_for_root) {
  static const struct movement m = {0};
  json_auto_t *config = json_loads("{\"sandbox\": {\"level\": \"off\", \"limits\": {\"pids\": 9},"
                                   " \"limits_by\": \"rlimits\", \"mechanisms\": {}}}",
                                   0, NULL);
  struct err err = {0};
  const char *note;
  bool ok = sandbox_check(config, &m, &agent, false, &note, &err);
  assert_int_equal(ok, geteuid() != 0);
  if (!ok)
    assert_non_null(strstr(err.text, "pids cannot be enforced here"));
}
