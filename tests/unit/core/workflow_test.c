/* Documents to workflows: defaults, inheritance, and no trust in a document read back from a log.
 */
#include "core/workflow.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/memory.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#define TEN   "xxxxxxxxxx"
#define RULES "\"rules\":[{\"condition\":\"done\",\"next\":\"COMPLETE\"}]"

static struct workflow *build(const char *text, struct err *err) {
  json_auto_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);
  assert_non_null(doc);
  return workflow_build(doc, err);
}

TEST(defaults) {
  struct err err = {0};
  struct workflow *wf = build("{\"name\":\"w\",\"movements\":[{\"name\":\"a\"," RULES "}]}", &err);
  assert_non_null(wf);
  const struct movement *m = &wf->movements[0];
  assert_true(str_eq_c(wf->language, "en"));
  assert_int_equal(wf->max_movements, LIMIT_DEFAULT_MOVEMENTS);
  assert_int_equal(wf->initial, 0);
  assert_false(m->edit);
  assert_true(m->pass_previous_response);
  assert_null(m->argv);
  assert_null(m->options);
  assert_int_equal(m->judge.stage_count, 4);
  static const enum judge_stage stages[] = {STAGE_STRUCTURED_OUTPUT, STAGE_PHASE3_TAG,
                                            STAGE_PHASE1_TAG, STAGE_AI_JUDGE};
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(m->judge.stages[i], stages[i]);
  assert_int_equal(m->judge.timeout_ms, LIMIT_JUDGE_WALL_MS);
  assert_int_equal(m->judge.max_reasks, 1);
  assert_false(m->judge.reasks_said);
  assert_false(m->judge.own_tag);
  assert_int_equal(m->judge.provider.n, 0);
  assert_int_equal(m->rule_count, 1);
  assert_int_equal(m->rules[0].number, 1);
  assert_int_equal(m->rule_next[0], NEXT_COMPLETE);
  char sha256[SHA256_HEX];
  workflow_hash(wf, sha256);
  assert_int_equal(strlen(sha256), 64);
  workflow_unref(wf);
  workflow_unref(NULL);
}

static const char full[] =
    "{\"name\":\"w\",\"language\":\"ja\",\"initial_movement\":\"レビュー\","
    "\"max_movements\":\"infinite\",\"provider\":\"p\",\"model\":\"m\","
    "\"options\":{\"temperature\":1},\"judge\":{\"stages\":[\"ai_judge\"],\"provider\":\"jp\","
    "\"model\":\"jm\",\"options\":{\"seed\":1},\"timeout_ms\":5,\"max_reasks\":2},\"movements\":["
    "{\"name\":\"a\",\"options\":{\"seed\":2},\"judge\":{\"max_reasks\":1},"
    "\"rules\":[{\"condition\":\"x && when(exit == 0)\",\"next\":\"レビュー\",\"appendix\":\"p\"},"
    "{\"condition\":\"y\",\"next\":\"ABORT\",\"interactive_only\":true}]},"
    "{\"name\":\"レビュー\",\"edit\":true,\"judge\":{\"provider\":\"other\","
    "\"stages\":[\"phase1_tag\",\"phase3_tag\"]},\"rules\":[{\"condition\":\"z\",\"next\":\"a\"}]},"
    "{\"name\":\"c\",\"command\":[\"make\",\"\"],"
    "\"judge\":{\"provider\":\"jp\"}," RULES "}]}";

TEST(inheritance) {
  struct err err = {0};
  struct workflow *wf = build(full, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  const struct movement *a = &wf->movements[0], *review = &wf->movements[1], *c = &wf->movements[2];
  assert_int_equal(wf->initial, 1);
  assert_int_equal(wf->max_movements, MOVEMENTS_INFINITE);
  assert_int_equal(json_integer_value(json_object_get(a->options, "seed")), 2);
  assert_null(json_object_get(a->options, "temperature")); /* own options replace */
  assert_non_null(json_object_get(review->options, "temperature"));
  assert_null(c->options); /* a program samples nothing */
  assert_int_equal(a->judge.max_reasks, 1);
  assert_int_equal(a->judge.timeout_ms, 5);
  assert_int_equal(a->judge.stage_count, 1);
  assert_true(str_eq_c(a->judge.provider, "jp"));
  assert_true(str_eq_c(a->judge.model, "jm"));
  assert_non_null(a->judge.options);
  assert_true(str_eq_c(review->judge.provider, "other"));
  assert_int_equal(review->judge.model.n, 0); /* jm belongs to jp */
  assert_int_equal(review->judge.stage_count, 2);
  assert_int_equal(review->judge.stages[0], STAGE_PHASE1_TAG);
  assert_int_equal(review->judge.max_reasks, 2);
  assert_true(str_eq_c(c->judge.model, "jm"));
  assert_string_equal(c->argv[0], "make");
  assert_string_equal(c->argv[1], "");
  assert_null(c->argv[2]);
  assert_int_equal(a->rules[0].kind, RULE_LABEL_WHEN);
  assert_true(str_eq_c(a->rules[0].appendix, "p"));
  assert_int_equal(a->rule_next[0], 1);
  assert_int_equal(a->rule_next[1], NEXT_ABORT);
  assert_true(a->rules[1].interactive_only);
  assert_int_equal(a->rules[1].number, 2);
  assert_int_equal(workflow_find(wf, STR("c")), 2);
  assert_int_equal(workflow_find(wf, STR("C")), -1);
  struct workflow *same = build(full, &err);
  char sha256[SHA256_HEX], again[SHA256_HEX];
  workflow_hash(wf, sha256);
  workflow_hash(same, again);
  assert_string_equal(again, sha256);
  assert_ptr_equal(workflow_ref(wf), wf);
  workflow_unref(wf);
  workflow_unref(wf);
  workflow_unref(same);
}

TEST(a_movement_drops_the_panel) {
  struct err err = {0};
  struct workflow *wf = build(
      "{\"name\":\"w\",\"judge\":{\"panel\":[\"a\",\"b\",\"a\"],\"else\":\"ask\"},\"movements\":["
      "{\"name\":\"one\"," RULES "},"
      "{\"name\":\"two\",\"judge\":{\"agree\":3,\"order\":\"fixed\"}," RULES "},"
      "{\"name\":\"three\",\"judge\":{\"panel\":\"none\"}," RULES "}]}",
      &err);
  assert_non_null(wf);
  const struct judge_config *one = &wf->movements[0].judge, *two = &wf->movements[1].judge;
  const struct judge_config *three = &wf->movements[2].judge;
  assert_true(one->panel && one->agree == 2 && one->rotates && one->split_asks);
  assert_true(two->panel && two->agree == 3 && !two->rotates && two->split_asks);
  assert_true(!three->panel && three->agree == 0 && !three->rotates && !three->split_asks);
  workflow_unref(wf);
}

TEST(refusals_name_the_path) {
  DATA_ROWS("core/workflow/refusals_name_the_path.yaml", c, doc, error) {
    struct err err = {0};
    struct workflow *wf = build(c.doc, &err);
    if (wf != NULL || strstr(err.text, c.error) == NULL)
      fail_msg("%s: \"%s\"", c.doc, err.text);
  }
}

/* Every value of a good document in turn becomes something else: an error or a workflow, never
 * more. */
TEST(no_value_is_trusted) {
  static const char *const others[] = {"null", "true", "-1", "1e9",  "\"\"",        "\"x\"",
                                       "[]",   "[[]]", "{}", "[{}]", "\"a\\u0001\""};
  json_auto_t *doc = json_loads(full, 0, NULL);
  char_auto_t *text = json_dumps(doc, JSON_COMPACT);
  for (char *at = strchr(text, ':'); at != NULL; at = strchr(at + 1, ':')) {
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
      json_error_t where;
      size_t used = (size_t)(at + 1 - text);
      json_auto_t *value = json_loads(at + 1, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &where);
      if (value == NULL)
        continue;
      buf_auto_t changed = {0};
      buf_append(&changed, text, used);
      buf_puts(&changed, others[i]);
      buf_puts(&changed, at + 1 + where.position);
      json_auto_t *other = json_loads(buf_c(&changed), 0, NULL);
      struct err err = {0};
      if (other != NULL)
        workflow_unref(workflow_build(other, &err));
    }
  }
}
