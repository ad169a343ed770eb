/* The judge chain step by step: what it asks for, what it records, and records that cannot be.
 * What comes out for which replies is data: tests/data/judge/chain*.yaml. */
#include "support/chain_run.h"
#include "support/data.h"
#include "support/test.h"

#include <stdlib.h>

static void expect_json(json_t *got, const char *wanted) {
  json_auto_t *want = data_json(wanted);
  if (!json_equal(got, want)) {
    char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY);
    fail_msg("%s\nwanted\n%s", text, wanted);
  }
}

static void expect_stages(const char *c, const char *wanted) {
  AUTO(chain_run_deinit) struct chain_run run;
  json_auto_t *data = data_json(c);
  chain_run(&run, data);
  expect_json(run.stages, wanted);
}

#define TWO "'name':'t','rules':['approved','needs fix']"

TEST(what_a_stage_records) {
  expect_stages(
      "{" TWO ",'replies':{'structured_output':"
      "'{\\u0022reason\\u0022:\\u0022two fail\\u0022,\\u0022step\\u0022:2}'}}",
      "[{'stage':'structured_output','outcome':'matched','calls':[10],'rule':2,"
      "'tag':'[REVIEW:2]','extract_stage':'direct','reason':'two fail','duration_ms':7}]");
  expect_stages("{" TWO ",'replies':{'structured_output':{'structured':{'step':9,'reason':'r'}},"
                "'phase3_tag':{'error':'timeout','text':'600 s are over'},'ai_judge':'[JUDGE:2]'}}",
                "[{'stage':'structured_output','outcome':'out_of_range','calls':[10],"
                "'extract_stage':'native','errors':['$.step: 9 is not offered (1, 2)'],'reason':"
                "'r','duration_ms':7},"
                "{'stage':'phase3_tag','outcome':'error','class':'timeout','calls':[11],"
                "'errors':['600 s are over'],'duration_ms':7},"
                "{'stage':'phase1_tag','outcome':'no_match','calls':[],'errors':['no tag'],"
                "'duration_ms':0},"
                "{'stage':'ai_judge','outcome':'matched','calls':[12],"
                "'errors':['no JSON in the reply'],'rule':2,'tag':'[REVIEW:2]','duration_ms':7}]");
  expect_stages("{'name':'t','rules':['when(exit == 1)','when(exit == 0)'],'env':{'exit':0}}",
                "[{'stage':'when','outcome':'matched','calls':[],'errors':['exit == 1 is false'],"
                "'rule':2,'reason':'exit == 0 is true','duration_ms':0}]");
  expect_stages("{'name':'t','rules':['only']}",
                "[{'stage':'auto_select','outcome':'matched','calls':[],'rule':1,'reason':"
                "'the only rule that can be selected','duration_ms':0}]");
  expect_stages("{" TWO ",'stages':['phase1_tag'],'text':'[review:1] or [REVIEW: 2]'}",
                "[{'stage':'phase1_tag','outcome':'no_match','calls':[],'errors':['no tag has this "
                "turn\\u0027s mark'],"
                "'mentions':[{'rule':1,'text':'[review:1]','line':1},"
                "{'rule':2,'text':'[REVIEW: 2]','line':1}],'duration_ms':0}]");
}

TEST(a_reask_carries_the_errors) {
  AUTO(chain_run_deinit) struct chain_run run;
  json_auto_t *c = data_json("{" TWO ",'stages':['structured_output'],'max_reasks':1,'replies':"
                             "{'structured_output':[{'structured':{'step':9,'reason':'r'}},"
                             "{'structured':{'step':1,'reason':'r'}}]}}");
  chain_run(&run, c);
  assert_int_equal(run.action, CHAIN_VERDICT);
  assert_int_equal(run.reasks, 1);
  expect_json(run.reask_errors, "['$.step: 9 is not offered (1, 2)']");
  expect_json(json_object_get(json_array_get(run.stages, 0), "duration_ms"), "14");
}

TEST(errors_of_one_stage_are_bounded) {
  AUTO(chain_run_deinit) struct chain_run run;
  buf_auto_t text = {0};
  buf_puts(&text, "{");
  for (int i = 0; i < 60; i++)
    buf_printf(&text, "\"an extra member with a name that goes on %d\": %d, ", i, i);
  buf_puts(&text, "\"step\": 1, \"reason\": \"r\"}");
  json_auto_t *c = data_json("{" TWO ",'stages':['structured_output'],'replies':{}}");
  json_object_set_new(json_object_get(c, "replies"), "structured_output",
                      json_stringn(text.p, text.n));
  chain_run(&run, c);
  assert_int_equal(run.action, CHAIN_NO_MATCH);
  const json_t *errors = json_object_get(json_array_get(run.stages, 0), "errors"), *e;
  size_t i;
  assert_true(json_array_size(errors) > 0 && json_array_size(errors) <= LIMIT_STAGE_ERROR_COUNT);
  json_array_foreach(errors, i, e) {
    assert_true(json_string_length(e) <= LIMIT_ERROR_TEXT_BYTES);
  }
}

TEST(schemas_are_narrowed_to_what_is_offered) {
  AUTO(chain_run_deinit) struct chain_run run;
  json_auto_t *c = data_json("{'name':'t','rules':['when(false)','a',"
                             "{'condition':'b','interactive_only':true},'c','a']}");
  chain_run_init(&run, c);
  json_auto_t *judgment = chain_call_schema(&run.spec, STAGE_STRUCTURED_OUTPUT);
  json_auto_t *evaluation = chain_call_schema(&run.spec, STAGE_AI_JUDGE);
  expect_json(
      json_object_get(json_object_get(json_object_get(judgment, "properties"), "step"), "enum"),
      "[0,2,4]");
  expect_json(
      json_object_get(json_object_get(json_object_get(evaluation, "properties"), "matched_index"),
                      "enum"),
      "[0,2,4]");
  expect_json(json_object_get(judgment, "required"), "['reason','step']");
  assert_null(chain_call_schema(&run.spec, STAGE_PHASE3_TAG));
  assert_null(chain_call_schema(&run.spec, STAGE_PHASE1_TAG));
  char *text = json_dumps(json_object_get(judgment, "properties"), JSON_COMPACT);
  assert_true(strstr(text, "\"reason\"") < strstr(text, "\"step\"")); /* it reasons first */
  free(text);
  json_auto_t *again = chain_call_schema(&run.spec, STAGE_STRUCTURED_OUTPUT);
  assert_true(json_equal(again, judgment));
}

TEST(when_a_judge_is_needed) {
  DATA_ROWS("judge/chain/when_a_judge_is_needed.yaml", row, c, needed) {
    AUTO(chain_run_deinit) struct chain_run run;
    json_auto_t *c = data_json(row.c);
    chain_run_init(&run, c);
    if (chain_needs_judge(&run.spec) != data_true(row.needed))
      fail_msg("%s", row.c);
  }
}

/* Stage objects come from a log that anybody may have edited. */
TEST(records_that_cannot_be) {
  json_auto_t *c = data_json("{" TWO "}");
  DATA_ROWS("judge/chain/records_that_cannot_be.yaml", row, stages, action) {
    AUTO(chain_run_deinit) struct chain_run run;
    AUTO(chain_step_deinit) struct chain_step step;
    json_auto_t *stages = data_json(row.stages);
    chain_run_init(&run, c);
    chain_next(&run.spec, stages, NULL, 0, &step);
    if (step.action != data_among(row.action, "call stage verdict no_match unavailable failed"))
      fail_msg("%s: %s", row.stages, chain_action_name(step.action));
    if (step.action == CHAIN_FAILED)
      assert_true(step.reason[0] != '\0');
  }
}

/* Whatever the judge says, it never gets a rule that it was not offered. */
TEST(no_reply_gets_a_hidden_rule) {
  static const char *const shapes[] = {
      "{'structured':{'step':%d,'matched_index':%d,'reason':'r'}}",
      "{'structured':{'step':%d,'reason':'r'}}",
      "{'structured':{'matched_index':%d,'reason':'r'}}",
      "'[REVIEW:%d]'",
      "'[JUDGE:%d]'",
      "'{\\u0022step\\u0022:%d,\\u0022reason\\u0022:\\u0022r\\u0022}'",
  };
  static const char *const stages[] = {"structured_output", "phase3_tag", "ai_judge"};
  for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
    for (size_t k = 0; k < ARRAY_LEN(stages); k++)
      for (int n = -1; n < 9; n++) {
        buf_auto_t text = {0};
        AUTO(chain_run_deinit) struct chain_run run;
        buf_puts(&text, "{'name':'t','rules':['a','when(false)',{'condition':'b',"
                        "'interactive_only':true},'c','a','d && when(true)'],'replies':{");
        buf_printf(&text, "'%s':[", stages[k]);
        const char *shape = shapes[s], *hole;
        while ((hole = strstr(shape, "%d")) != NULL) {
          buf_append(&text, shape, (size_t)(hole - shape));
          buf_printf(&text, "%d", n);
          shape = hole + 2;
        }
        buf_printf(&text, "%s]},'stages':['%s']}", shape, stages[k]);
        json_auto_t *c = data_json(text.p);
        chain_run(&run, c);
        if (run.rule != 0 && run.rule != 1 && run.rule != 4 && run.rule != 6)
          fail_msg("%s gets rule %d", text.p, run.rule);
        assert_true(run.rule == 0 || run.rule == n);
      }
}

TEST_GROUP(chain_setup, chain_teardown)
