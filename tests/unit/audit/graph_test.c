/* A workflow and the records of a session, drawn as text, as Mermaid and as JSON. */
#include "audit/graph.h"
#include "support/test.h"

#include <string.h>

static const char workflow_text[] =
    "{\"name\":\"w\",\"provider\":\"script\",\"movements\":["
    "{\"name\":\"work\",\"edit\":true,\"rules\":[{\"condition\":\"done\",\"next\":\"check\"},"
    "{\"condition\":\"a \\\"wall\\\" #1 <b>\",\"next\":\"ABORT\"}]},"
    "{\"name\":\"check\",\"command\":[\"make\"],\"rules\":["
    "{\"condition\":\"when(exit == 0)\",\"next\":\"COMPLETE\"},"
    "{\"condition\":\"when(true)\",\"next\":\"work\",\"interactive_only\":true}]}]}";

static const char *const session[] = {
    "{\"type\":\"session_start\"}",
    "{\"type\":\"turn_start\",\"movement\":\"work\",\"turn\":1}",
    "{\"type\":\"judgment\",\"movement\":\"work\",\"rule\":1,\"match_method\":\"phase1_tag\"}",
    "{\"type\":\"turn_start\",\"movement\":\"check\",\"turn\":2}",
    "{\"type\":\"judgment\",\"movement\":\"check\",\"rule\":2,\"match_method\":\"when\"}",
    "{\"type\":\"turn_start\",\"movement\":\"work\",\"turn\":3}",
    "{\"type\":\"judgment\",\"movement\":\"work\",\"rule\":1,\"match_method\":\"ai_judge\"}",
    "{\"type\":\"turn_start\",\"movement\":\"check\",\"turn\":4}",
};

static void feed(struct graph *g, const char *text) {
  json_auto_t *record = json_loads(text, 0, NULL);
  assert_non_null(record);
  graph_feed(g, record);
}

static struct graph *graph_of(const char *text) {
  struct err err = {0};
  json_auto_t *doc = json_loads(text, 0, NULL);
  struct workflow *wf = workflow_build(doc, &err);
  if (wf == NULL)
    fail_msg("%s", err.text);
  struct graph *g = graph_new(wf);
  workflow_unref(wf);
  return g;
}

static struct graph *drawn(size_t records) {
  struct graph *g = graph_of(workflow_text);
  for (size_t i = 0; i < records; i++)
    feed(g, session[i]);
  return g;
}

TEST(each_rail_joins_the_rules_to_where_they_lead) {
  struct graph *g = drawn(0);
  buf_auto_t out = {0};
  graph_ascii(g, &out);
  assert_string_equal(buf_c(&out), "+-------> work  (script, edit; starts here)\n"
                                   "|   +----   1 done -> check\n"
                                   "| +-|----   2 a \"wall\" #1 <b> -> ABORT\n"
                                   "| | +---> check  (command make)\n"
                                   "| |   +--   1 when(exit == 0) -> COMPLETE\n"
                                   "+-|---|--   2 when(true) -> work  (interactive only)\n"
                                   "  |   +-> COMPLETE\n"
                                   "  +-----> ABORT\n");
  graph_free(g);
}

TEST(a_session_is_counted_by_method) {
  struct graph *g = drawn(sizeof session / sizeof session[0]);
  buf_auto_t out = {0};
  graph_ascii(g, &out);
  assert_non_null(strstr(buf_c(&out), "work  (script, edit; starts here)  2 runs\n"));
  assert_non_null(
      strstr(buf_c(&out), "1 done -> check  2 times: tag in the agent's reply, asked again\n"));
  assert_non_null(strstr(buf_c(&out), "check  (command make)  run 2 is open\n"));
  assert_non_null(
      strstr(buf_c(&out), "when(true) -> work  (interactive only)  once: an expression\n"));
  assert_int_equal(graph_strangers(g), 0);
  json_auto_t *told = graph_json(g);
  json_auto_t *want = json_loads(
      "{\"workflow\":\"w\",\"initial\":\"work\",\"strangers\":0,\"movements\":[{\"name\":\"work\","
      "\"runs\":2,\"open\":false,\"rules\":[{\"condition\":\"done\",\"next\":\"check\",\"taken\":2,"
      "\"methods\":{\"phase1_tag\":1,\"ai_judge\":1}},{\"condition\":"
      "\"a \\\"wall\\\" #1 <b>\",\"next\":\"ABORT\",\"taken\":0,\"methods\":{}}]},"
      "{\"name\":\"check\",\"runs\":2,\"open\":true,\"rules\":[{\"condition\":\"when(exit == 0)\","
      "\"next\":\"COMPLETE\",\"taken\":0,\"methods\":{}},{\"condition\":\"when(true)\",\"next\":"
      "\"work\",\"taken\":1,\"methods\":{\"when\":1}}]}]}",
      0, NULL);
  assert_non_null(want);
  assert_true(json_equal(told, want));
  graph_free(g);
}

TEST(mermaid_quotes_what_would_end_its_texts) {
  struct graph *g = drawn(3);
  buf_auto_t out = {0};
  graph_mermaid(g, &out);
  assert_string_equal(buf_c(&out), "flowchart TD\n  start((\" \")) --> m0\n"
                                   "  m0[\"work<br/>script, edit<br/>1 run\"]\n"
                                   "  m1[\"check<br/>command make\"]\n"
                                   "  complete([COMPLETE])\n  abort([ABORT])\n"
                                   "  m0 ==>|\"1 done<br/>once: tag in the agent's reply\"| m1\n"
                                   "  m0 -->|\"2 a #quot;wall#quot; #35;1 #lt;b>\"| abort\n"
                                   "  m1 -->|\"1 when(exit == 0)\"| complete\n"
                                   "  m1 -->|\"2 when(true)\"| m0\n");
  graph_free(g);
}

TEST(records_that_do_not_fit_are_strangers) {
  struct graph *g = drawn(0);
  feed(g, "{\"type\":\"turn_start\",\"movement\":\"gone\"}");
  feed(g, "{\"type\":\"judgment\",\"movement\":\"gone\",\"rule\":1}");
  feed(g, "{\"type\":\"judgment\",\"movement\":\"work\",\"rule\":3,\"match_method\":\"when\"}");
  feed(g, "{\"type\":\"judgment\",\"movement\":\"work\",\"rule\":-1}");
  feed(g, "{\"type\":\"judgment\",\"movement\":\"work\",\"rule\":null}");
  feed(g, "{\"type\":7}");
  assert_int_equal(graph_strangers(g), 3);
  graph_free(g);
}

TEST(an_error_is_a_way_out) {
  struct graph *g =
      graph_of("{\"name\":\"w\",\"movements\":[{\"name\":\"a\",\"command\":[\"a\"],\"rules\":["
               "{\"condition\":\"when(true)\",\"next\":\"COMPLETE\"}],\"on_error\":["
               "{\"class\":\"timeout\",\"to\":\"a\"},{\"to\":\"ABORT\"}]}]}");
  buf_auto_t out = {0};
  feed(g, "{\"type\":\"turn_start\",\"movement\":\"a\",\"turn\":1}");
  feed(g, "{\"type\":\"turn_end\",\"turn\":1,\"outcome\":\"error\",\"class\":\"timeout\","
          "\"next\":\"a\"}");
  graph_ascii(g, &out);
  assert_string_equal(buf_c(&out), "  +---> a  (command a; starts here)  1 run\n"
                                   "+-|----   1 when(true) -> COMPLETE\n"
                                   "| +----   ! timeout -> a  once: error\n"
                                   "|   +--   ! any error -> ABORT\n"
                                   "+---|-> COMPLETE\n"
                                   "    +-> ABORT\n");
  buf_clear(&out);
  graph_mermaid(g, &out);
  assert_non_null(strstr(buf_c(&out), "  m0 ==>|\"! timeout<br/>once: error\"| m0\n"
                                      "  m0 -.->|\"! any error\"| abort\n"));
  json_auto_t *told = graph_json(g);
  json_auto_t *want = json_loads("[{\"class\":\"timeout\",\"next\":\"a\",\"taken\":1},"
                                 "{\"next\":\"ABORT\",\"taken\":0}]",
                                 0, NULL);
  const json_t *a = json_array_get(json_object_get(told, "movements"), 0);
  assert_true(json_equal(json_object_get(a, "on_error"), want));
  graph_free(g);
}
