/* A child for each item, and children that end their siblings. */
#include "base/memory.h"
#include "support/play.h"
#include "support/test.h"

#define ITEMS(list, more, rules)                                                                   \
  "{'name':'w','provider':'sim','judge':{'stages':['phase1_tag']},'movements':["                   \
  "{'name':'work','for_each':" list "," more "'parallel':[{'name':'part',"                         \
  "'instruction':'Do {index}: {item} {item.name} {item[0]}.','rules':[{'condition':'done'},"       \
  "{'condition':'stuck'}]}],'rules':[" rules "]}]}"
#define ALL_DONE "{'condition':'all(done)','next':'COMPLETE'}"
#define STUCK    ",{'condition':'any(stuck)','next':'ABORT'}"
#define COUNTED  "{'condition':'when(votes.done == 2 && parts.length == 3)','next':'COMPLETE'}"

static void run_items(struct play *p, const char *title, const char *workflow, const char *script) {
  play_init(p, title, workflow, NULL, script);
  play_start(p);
  play_run(p);
}

/* Each item in its order, with its number; verdicts are counted over all of them. */
TEST(each_item_has_a_child) {
  static const char *const asked[] = {"Do 1: x  .", "Do 2: {\"name\":\"y\"} y .",
                                      "Do 3: [\"z\"]  z."};
  AUTO(play_deinit) struct play p;
  run_items(&p, "items", ITEMS("['x',{'name':'y'},['z']]", "'concurrency':2,", COUNTED),
            "{'work.part':['[PART:1]','[PART:2]','[PART:1]']}");
  assert_true(p.core.outcome == END_COMPLETE);
  for (int i = 0; i < 3; i++) {
    const json_t *start = play_find(&p, "turn_start", i + 1);
    assert_int_equal(json_integer_value(json_object_get(start, "item")), i + 1);
    assert_int_equal(json_integer_value(json_object_get(start, "iteration")), 1);
    char_auto_t *text = json_dumps(play_find(&p, "call_start", i), JSON_COMPACT | JSON_ENCODE_ANY);
    json_auto_t *prompt = json_loads(text, 0, NULL);
    buf_auto_t all = {0};
    JSON_EACH(json_object_get(prompt, "prompt"), k, part) {
      if (json_is_string(part))
        buf_puts(&all, json_string_value(part));
    }
    if (strstr(buf_c(&all), asked[i]) == NULL)
      fail_msg("%s is not in %s", asked[i], buf_c(&all));
  }
}

#define PLAN(items)                                                                                \
  "{'name':'w','provider':'sim','judge':{'stages':['phase1_tag']},'movements':["                   \
  "{'name':'plan','structured_output':{'schema':{'type':'object'},'on_failure':'error'},"          \
  "'rules':[{'condition':'planned','next':'work'}]},"                                              \
  "{'name':'work','for_each':'plan." items "','parallel':[{'name':'part','instruction':'{item}',"  \
  "'structured_output':{'schema':{'type':'object'},'on_failure':'error'},"                         \
  "'rules':[{'condition':'done'}]}],'rules':["                                                     \
  "{'condition':'when(parts.length == 0)','next':'COMPLETE'}," ALL_DONE "]}]}"

/* The list is the one that was there when the group began; its children's values are a list. */
TEST(a_value_is_gone_through) {
  struct play p;
  run_items(&p, "value", PLAN("parts"),
            "{'plan':{'structured':{'parts':[1,2]}},"
            "'work.part':[{'structured':{'n':1}},{'structured':{'n':2}}]}");
  assert_true(p.core.outcome == END_COMPLETE);
  json_auto_t *wanted = json_pack("[{s:i}, {s:i}]", "n", 1, "n", 2);
  assert_true(json_equal(json_object_get(p.core.structured, "work.part"), wanted));
  play_deinit(&p);
  run_items(&p, "empty", PLAN("parts"), "{'plan':{'structured':{'parts':[]}}}");
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "turn_start"), 2);
  play_deinit(&p);
}

/* A value that is no list is said, and a person can still give a rule. */
TEST(what_is_no_list_stops_the_session) {
  AUTO(play_deinit) struct play p;
  run_items(&p, "no list", PLAN("parts.x"), "{'plan':{'structured':{'parts':{'x':7}}}}");
  assert_true(p.core.status == SESSION_STOPPED);
  assert_string_equal(buf_c(&p.core.stop_reason), "failed");
  assert_non_null(strstr(buf_c(&p.core.stop_message), "plan.parts.x is no list"));
  const struct core_steer steer = {.rule = 1};
  struct event ev = play_event(&p, EVENT_RESUME);
  ev.reason = "user";
  ev.steer = &steer;
  play_decide(&p, &ev);
  play_commit(&p);
  play_run(&p);
  assert_true(p.core.status == SESSION_ENDED && p.core.outcome == END_COMPLETE);
}

/* A resume asks those that failed alone. */
TEST(items_that_failed_run_again_alone) {
  AUTO(play_deinit) struct play p;
  run_items(&p, "again", ITEMS("[1,2,3]", "'concurrency':1,", ALL_DONE),
            "{'work.part':['[PART:1]',{'error':'auth'},'[PART:1]','[PART:1]']}");
  assert_true(p.core.status == SESSION_STOPPED);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "call_start"), 4);
  const json_t *last = play_find(&p, "turn_start", -1);
  assert_int_equal(json_integer_value(json_object_get(last, "item")), 2);
}

/* So are those whose answer named no rule: nothing else would come of a resume. */
TEST(items_without_a_verdict_run_again) {
  AUTO(play_deinit) struct play p;
  run_items(&p, "none", ITEMS("[1,2,3]", "", ALL_DONE),
            "{'work.part':['[PART:1]','hm','[PART:1]','[PART:1]']}");
  assert_true(p.core.status == SESSION_STOPPED);
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "call_start"), 4);
}

/* Calls that run are cancelled, what waits never begins, and a resume takes up all but what was
 * done. */
TEST(a_failure_ends_its_siblings) {
  AUTO(play_deinit) struct play p;
  run_items(&p, "stop_on",
            ITEMS("[1,2,3,4,5]", "'concurrency':2,'stop_on':'error',", ALL_DONE STUCK),
            "{'work.part':['[PART:1]','[PART:1]',{'error':'auth'},'[PART:1]','[PART:1]',"
            "'[PART:1]','[PART:1]']}");
  assert_true(p.core.status == SESSION_STOPPED);
  assert_int_equal(p.cancelled, 1);
  assert_int_equal(play_count(&p, "turn_start"), 5); /* the group, two done, two open */
  const json_t *end = play_find(&p, "turn_end", -1);
  assert_true(str_eq_c(data_get(end, "outcome"), "cancelled"));
  play_send_and_run(&p, EVENT_RESUME, "user", NULL);
  assert_true(p.core.outcome == END_COMPLETE);
  assert_int_equal(play_count(&p, "turn_start"), 8);
}

static unsigned items_dice(unsigned *seed, unsigned n) {
  *seed = *seed * 1103515245u + 12345u;
  return (*seed >> 16) % n;
}

static int64_t items_delay(struct play *p) {
  return 1 + items_dice(p->ctx, 20);
}

/* Open children at most, and of each item a verdict at most, but for those that began anew. */
static void check_items(const struct play *p, long at_once, bool ended) {
  long open = 0, item_of[200] = {0}, judged[8] = {0};
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i);
    json_int_t turn = json_integer_value(json_object_get(r, "turn"));
    json_int_t item = json_integer_value(json_object_get(r, "item"));
    assert_in_range(turn, 0, 199);
    assert_in_range(item, 0, 7);
    if (item > 0) {
      item_of[turn] = item;
      open++;
    }
    if (item_of[turn] > 0 && str_eq_c(data_get(r, "type"), "turn_end"))
      open--;
    if (item_of[turn] > 0 && json_integer_value(json_object_get(r, "rule")) > 0 &&
        str_eq_c(data_get(r, "type"), "judgment"))
      judged[item_of[turn]]++;
    if (open > at_once)
      fail_msg("%s: %ld children are open at record %zu", p->title, open, i + 1);
  }
  for (int i = 1; i <= 7; i++)
    if (judged[i] > 1 || (ended && judged[i] == 0))
      fail_msg("%s: item %d has %ld verdicts", p->title, i, judged[i]);
}

/* Random failures, crashes within a batch, stops and resumes: every item has its verdict once. */
TEST(crashes_lose_and_repeat_no_item) {
  static const char *const replies[] = {"'[PART:1]'", "'[PART:1]'", "'[PART:2]'",
                                        "{'error':'auth','message':'no'}",
                                        "{'error':'network','message':'no'}"};
  for (unsigned round = 1; round <= 300; round++) {
    unsigned seed = round, at_once = 1 + items_dice(&seed, 4);
    buf_auto_t script = {0};
    struct play p;
    char title[32], *workflow = NULL;
    print_into(title, sizeof title, "items %u", round);
    assert_true(asprintf(&workflow,
                         ITEMS("[1,2,3,4,5,6,7]", "'concurrency':%u,%s",
                               "{'condition':'when(votes.error == 0 && votes.none == 0)',"
                               "'next':'COMPLETE'}"),
                         at_once, round % 3 == 0 ? "'stop_on':'error'," : "") > 0);
    buf_puts(&script, "{'work.part':[");
    for (int i = 0; i < 30; i++)
      buf_printf(&script, "%s,", replies[items_dice(&seed, ARRAY_LEN(replies))]);
    for (int i = 0; i < 60; i++)
      buf_printf(&script, "%s'[PART:1]'", i > 0 ? "," : "");
    buf_puts(&script, "]}");
    play_init(&p, title, workflow, NULL, buf_c(&script));
    p.delay_ms = items_delay;
    p.ctx = &seed;
    play_start(&p);
    for (int step = 0; step < 1500 && p.core.status != SESSION_ENDED; step++) {
      if (p.core.status == SESSION_STOPPED) {
        play_send(&p, EVENT_RESUME, "user", NULL);
        continue;
      }
      play_decide_next(&p);
      if (items_dice(&seed, 12) == 0) {
        play_crash(&p, items_dice(&seed, (unsigned)p.out.record_count + 1));
        if (p.core.status == SESSION_RUNNING)
          play_send(&p, EVENT_RESUME, "crash", NULL);
      } else {
        play_commit(&p);
      }
    }
    if (p.core.status != SESSION_ENDED || p.core.outcome != END_COMPLETE)
      fail_msg("%s: status %d, %s", title, (int)p.core.status, buf_c(&p.core.stop_reason));
    check_items(&p, at_once, true);
    play_deinit(&p);
    free(workflow);
  }
}
