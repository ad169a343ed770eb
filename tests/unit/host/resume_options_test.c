/* Checks the words of a person who takes a session further or forks it. */

#include "base/limits.h"
#include "base/str.h"
#include "host/resume_options.h"
#include "support/data.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static struct provider_registry *registry;

static int set_up(void **state) {
  (void)state;
  registry = registry_new(NULL);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  registry_free(registry);
  return 0;
}

static bool parse(struct resume_options *st, const char *text, bool fork, struct err *err) {
  json_auto_t *body = text ? json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL) : NULL;
  assert_true(text == NULL || body != NULL);
  if (fork)
    return resume_options_parse_fork(st, body, registry, err);
  return resume_options_parse(st, body, registry, err);
}

TEST(members_are_kept) {
  DATA_ROWS("host/resume_options/members_are_kept.yaml", c, text, changed, fork, rule) {
    AUTO(resume_options_deinit) struct resume_options st;
    struct err err = {0};
    json_auto_t *changed = json_loads(c.changed, 0, NULL);
    if (!parse(&st, c.text, data_true(c.fork), &err))
      fail_msg("%s: %s", c.text, err.text);
    assert_true(json_equal(st.changed, changed));
    assert_int_equal(st.core.rule, (int)data_number(c.rule));
    assert_int_equal(resume_options_says(&st),
                     (int)data_number(c.rule) > 0 || json_object_size(changed) > 0);
    if ((int)data_number(c.rule) > 0)
      assert_string_equal(st.why, "it is done");
  }
}

TEST(what_cannot_be_is_refused) {
  DATA_ROWS("host/resume_options/what_cannot_be_is_refused.yaml", c, text, error, fork) {
    AUTO(resume_options_deinit) struct resume_options st;
    struct err err = {0};
    if (parse(&st, c.text, data_true(c.fork), &err) || err.code != ERR_INVALID ||
        strstr(err.text, c.error) == NULL)
      fail_msg("%s: %s", c.text, err.text);
  }
}

TEST(a_reason_is_bounded) {
  char why[LIMIT_WHY_BYTES + 2];
  struct resume_options st;
  struct err err = {0};
  memset(why, 'x', sizeof why);
  json_auto_t *longest = json_pack("{siss#}", "rule", 1, "why", why, (int)LIMIT_WHY_BYTES);
  json_auto_t *longer = json_pack("{siss#}", "rule", 1, "why", why, (int)LIMIT_WHY_BYTES + 1);
  assert_true(resume_options_parse(&st, longest, registry, &err));
  resume_options_deinit(&st);
  assert_false(resume_options_parse(&st, longer, registry, &err));
  assert_non_null(strstr(err.text, "at most 4096 bytes"));
  resume_options_deinit(&st);
}

TEST(amounts_to_add_are_bounded) {
  struct resume_options st;
  struct err err = {0};
  json_auto_t *body = json_pack("{s{}}", "add_budget");
  for (unsigned i = 0; i <= LIMIT_ADD_BUDGET_COUNT; i++) {
    char name[16];
    print_into(name, sizeof name, "a%u", i);
    json_object_set_new(json_object_get(body, "add_budget"), name, json_integer(1));
    assert_int_equal(resume_options_parse(&st, body, registry, &err), i < LIMIT_ADD_BUDGET_COUNT);
    resume_options_deinit(&st);
  }
  assert_non_null(strstr(err.text, "add_budget must be an object"));
}

/* Another provider takes away what was said for the one before; other settings of the session stay,
 * and a budget is added once. */
TEST(a_session_goes_on_with_what_is_said) {
  static const struct config user = {0};
  json_auto_t *config = json_pack("{sss{}sss{ss}sb}", "provider", "script", "options", "model", "m",
                                  "providers", "a", "script", "interactive", 1);
  json_auto_t *nothing = json_object();
  json_auto_t *other = json_pack("{sss{si}}", "provider", "command", "add_budget", "tokens", 5);
  json_auto_t *same = resume_options_config(config, &user, nothing);
  assert_string_equal(json_string_value(json_object_get(same, "model")), "m");
  assert_non_null(json_object_get(same, "providers"));
  json_auto_t *changed = resume_options_config(config, &user, other);
  assert_string_equal(json_string_value(json_object_get(changed, "provider")), "command");
  assert_null(json_object_get(changed, "model"));
  assert_null(json_object_get(changed, "providers"));
  assert_null(json_object_get(changed, "add_budget"));
  assert_true(json_is_true(json_object_get(changed, "interactive")));
}

TEST(a_person_has_a_name) {
  json_auto_t *person = resume_options_person();
  assert_true(json_is_integer(json_object_get(person, "uid")));
  assert_true(json_string_length(json_object_get(person, "name")) > 0);
}

TEST_GROUP(set_up, tear_down)
