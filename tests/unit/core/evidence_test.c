/* The words for what runs of a check show, and what the fold takes of their records. */
#include "core/apply.h"
#include "core/evidence.h"
#include "core/hidden_tests.h"
#include "support/data.h"
#include "support/test.h"

TEST(what_was_found_is_said_in_words) {
  DATA_ROWS("core/evidence/what_was_found_is_said_in_words.yaml", c, found, words, question) {
    json_auto_t *found = data_json(c.found);
    buf_auto_t en = {0}, ja = {0};
    evidence_words_of(found, false, &en);
    evidence_words_of(found, true, &ja);
    if (strcmp(buf_c(&en), c.words) != 0)
      fail_msg("%s\nexpected %s\ngot %s", c.found, c.words, buf_c(&en));
    size_t lines = 0, same = 0;
    for (size_t i = 0; i < en.n; i++)
      lines += en.p[i] == '\n';
    for (size_t i = 0; i < ja.n; i++)
      same += ja.p[i] == '\n';
    assert_int_equal(lines, same);
    assert_null(strstr(buf_c(&ja), "check"));
    json_auto_t *asked = evidence_question(found, NULL);
    if (strstr(json_string_value(json_object_get(asked, "text")), c.question) == NULL)
      fail_msg("%s\n%s", c.question, json_string_value(json_object_get(asked, "text")));
    assert_int_equal(json_array_size(json_object_get(asked, "choices")), 3);
  }
}

TEST(hidden_tests_are_told_by_counts_alone) {
  DATA_ROWS("core/evidence/hidden_tests_are_told_by_counts_alone.yaml", c, result, words) {
    json_auto_t *result = data_json(c.result);
    buf_auto_t told = {0};
    hidden_tell(result, &told);
    assert_string_equal(buf_c(&told), c.words);
  }
}

TEST(the_fold_takes_what_was_asked_for) {
  AUTO(core_deinit) struct core core;
  struct err err = {0};
  json_auto_t *start = data_json(
      "{'v':1,'seq':1,'ts':'2026-01-01T00:00:00.000Z','type':'session_start','session':'s',"
      "'task':'t','config':{},'workflow':{'name':'w','movements':["
      "{'name':'a','edit':true,'rules':[{'condition':'x','next':'c'}]},"
      "{'name':'c','command':['true'],'evidence':true,'rules':["
      "{'condition':'when(true)','next':'COMPLETE'}]}]}}");
  core_init(&core);
  assert_true(core_apply_json(&core, start, NULL, NULL, &err));
  DATA_ROWS("core/evidence/the_fold_takes_what_was_asked_for.yaml", c, record, error) {
    json_auto_t *record = data_json(c.record);
    json_object_set_new(record, "v", json_integer(1));
    json_object_set_new(record, "seq", json_integer((json_int_t)core.seq + 1));
    json_object_set_new(record, "type", json_string("evidence"));
    bool ok = core_apply_json(&core, record, NULL, NULL, &err);
    if (ok != (c.error == NULL) || (!ok && strstr(err.text, c.error) == NULL))
      fail_msg("%s: %s", c.record, ok ? "taken" : err.text);
  }
  assert_string_equal(core.evidence.tree, "t1");
  assert_int_equal(json_int_at(core.evidence.before, "exit"), 1);
}
