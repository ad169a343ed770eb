/* Logs that somebody changed and chained anew: whatever still folds must go on without an
 * assertion. Sessions are played, their records changed at random, folded up to the first that is
 * refused, resumed and answered. Which seeds: support/seeds.h. */
#include "support/play.h"
#include "support/seeds.h"

#include "format/json_write.h"
#include "support/test.h"

#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

enum { DEFAULT_SEEDS = 1500, SOURCES = 24, MAX_STEPS = 60, MAX_OPEN = 64 };

static const char workflow[] =
    "{'name':'w','provider':'sim','judge':{'max_reasks':1},'options':{'max_tokens':100},'movements'"
    ":["
    "{'name':'a','instruction':'On {task}, after {previous_response}: {structured:b.n}',"
    "'fallback':['other','third'],'provider':'sim','on_error':[{'to':'d'}],'rules':[{'condition':'"
    "x','next':'b'},"
    "{'condition':'y && when(iteration > 2)','next':'c'},"
    "{'condition':'when(structured.b.n == 3)','next':'ABORT'},{'condition':'z','next':'a'}]},"
    "{'name':'b','structured_output':{'schema':{'type':'object','properties':{'n':{'type':'integer'"
    ","
    "'maximum':5}},'required':['n']},'on_failure':'escalate','token_budget':100000,"
    "'time_budget_ms':100000,'invariants':['n > 0',{'command':['./check']},{'ai':'Is it so?'}],"
    "'max_reasks':2},'rules':[{'condition':'when(structured.b.n > 2)','next':'c'},"
    "{'condition':'again','next':'a'},{'condition':'on','next':'c'}]},"
    "{'name':'c','command':['make','test'],'judge':{'provider':'other','fallback':['sim']},"
    "'rules':[{'condition':'when(exit == 0)','next':'COMPLETE'},{'condition':'p','next':'a'},"
    "{'condition':'q','next':'d'}]},"
    "{'name':'d','provider':'other','command':['cat'],'structured_output':{'schema':{'type':'"
    "object',"
    "'properties':{'n':{'type':'integer'}}},'on_failure':'sentinel','reask':{'provider':'sim'}},"
    "'rules':[{'condition':'when(structured.d.sentinel)','next':'b'},"
    "{'condition':'when(true)','next':'COMPLETE'}]}]}";
static const char config[] = "{'default_provider':'sim','interactive':true,"
                             "'fallback':{'sim':['third'],'other':['sim','third']}}";

/* --- chance --- */

static uint64_t seed_now, dice_state;

static unsigned roll(unsigned sides) {
  dice_state += 0x9E3779B97F4A7C15u; /* splitmix64 */
  uint64_t x = dice_state;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (unsigned)((x ^ (x >> 31)) % sides);
}

static void say_seed(int sig) {
  char line[64];
  int n = snprintf(line, sizeof line, "SEGUE_SIM_SEED=%" PRIu64 "\n", seed_now);
  (void)!write(STDERR_FILENO, line, (size_t)n);
  (void)signal(sig, SIG_DFL);
  (void)raise(sig);
}

/* --- answers --- */

static const char *const texts[] = {"",
                                    "did",
                                    "{\"n\":3}",
                                    "{\"n\":-1}",
                                    "{\"n\":9}",
                                    "{\"n\":1} [B:1]",
                                    "{\"holds\":true,\"reason\":\"so\"}",
                                    "{\"holds\":false,\"reason\":\"not so\"}",
                                    "{\"step\":1,\"reason\":\"r\"}",
                                    "{\"step\":4,\"reason\":\"r\"}",
                                    "{\"matched_index\":2,\"reason\":\"r\"}",
                                    "[A:1]",
                                    "[A:4]",
                                    "[B:2]",
                                    "[C:2]",
                                    "[C:3]",
                                    "[JUDGE:1]",
                                    "\xff\xfe not UTF-8"};

static void answer(struct play *p, const struct call_request *r, struct call_result *out) {
  static const enum error_class classes[] = {CLASS_NETWORK, CLASS_LENGTH,   CLASS_REFUSED,
                                             CLASS_TIMEOUT, CLASS_AUTH,     CLASS_NOT_FOUND,
                                             CLASS_QUOTA,   CLASS_PROTOCOL, CLASS_RATE_LIMIT};
  const char *text = texts[roll(ARRAY_LEN(texts))];
  (void)r;
  play_set_text(p, &out->text, str_from(text));
  out->duration_ms = roll(1000);
  if (roll(3) == 0)
    play_set_text(p, &out->error_text, str_from(texts[roll(ARRAY_LEN(texts))]));
  if (roll(4) == 0)
    out->structured = json_loads(text, 0, NULL);
  if (roll(3) == 0)
    out->usage = json_pack("{si si}", "input", (int)roll(1000), "output", (int)roll(1000));
  out->has_exit = roll(2) == 0;
  out->exit = (int)roll(3);
  if (roll(3) == 0)
    print_into(out->provider_session, sizeof out->provider_session, "s%u", roll(9));
  if (roll(5) == 0)
    call_result_fail(out, classes[roll(ARRAY_LEN(classes))], "so it went");
  if (roll(5) == 0)
    out->retry_after_ms = roll(200000);
}

static json_t *prepare(void *ctx, const struct call_request *request, const json_t *token_counts,
                       const unsigned char entropy[16]) {
  (void)ctx;
  (void)token_counts;
  (void)request;
  return entropy[0] % 2 ? json_integer(entropy[1] % 4) : json_string("token");
}

static void play_one(struct play *p) {
  play_init(p, "source", workflow, config, NULL);
  p->reply = answer;
  p->env.prepare = prepare;
  p->entropy = roll(10000);
  play_start(p);
  for (unsigned i = 0; i < 400 && p->core.status != SESSION_ENDED; i++) {
    if (p->pending_count == 0) {
      play_send(p, EVENT_RESUME, "test", NULL);
      continue;
    }
    play_decide_next(p);
    play_commit(p);
  }
}

/* --- changes --- */

/* A member of any record, at random; NULL: that record has none. */
static void *any_member(const json_t *records) {
  json_t *record = json_array_get(records, roll((unsigned)json_array_size(records)));
  if (json_object_size(record) == 0)
    return NULL;
  void *at = json_object_iter(record);
  for (unsigned skip = roll((unsigned)json_object_size(record)); skip > 0; skip--)
    at = json_object_iter_next(record, at);
  return at;
}

static json_t *any_value(const json_t *records) {
  static const char *const values[] = {"null",
                                       "true",
                                       "false",
                                       "-1",
                                       "0",
                                       "1",
                                       "2",
                                       "3",
                                       "7",
                                       "1000000",
                                       "2147483648",
                                       "4611686018427387904",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "1e300",
                                       "0.5",
                                       "\"\"",
                                       "\"x\"",
                                       "\"a\"",
                                       "\"b\"",
                                       "\"d\"",
                                       "\"check\"",
                                       "\"judge\"",
                                       "\"reask\"",
                                       "\"execute\"",
                                       "\"ai_judge\"",
                                       "\"structured_output\"",
                                       "\"when\"",
                                       "\"matched\"",
                                       "\"valid\"",
                                       "\"value\"",
                                       "\"escalated\"",
                                       "\"judge_unavailable\"",
                                       "\"check_unavailable\"",
                                       "\"sim\"",
                                       "\"a\\u0000b\"",
                                       "\"1969-01-01T00:00:00.000Z\"",
                                       "\"9999-12-31T23:59:59.999Z\"",
                                       "[]",
                                       "[1]",
                                       "[[]]",
                                       "{}",
                                       "{\"ref\":\"1#/task\"}",
                                       "{\"id\":\"s\",\"resumed\":true}",
                                       "{\"class\":\"length\",\"message\":\"m\"}",
                                       "{\"sentinel\":{}}",
                                       "{\"n\":3}"};
  void *member = roll(3) == 0 ? any_member(records) : NULL;
  if (member != NULL)
    return json_deep_copy(json_object_iter_value(member));
  return json_loads(values[roll(ARRAY_LEN(values))], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

/* A value that a member of this name may have. */
static json_t *fitting_value(const char *key, const json_t *records) {
  static const struct {
    const char *key, *words[8];
  } words[] = {
      {"purpose", {"execute", "judge", "reask", "check", "report"}},
      {"stage", {"structured_output", "phase3_tag", "phase1_tag", "ai_judge", "when"}},
      {"type", {"call_start", "call_end", "check", "stage", "judgment", "turn_end"}},
      {"outcome", {"valid", "schema", "length", "value", "sentinel", "escalated", "matched"}},
      {"movement", {"a", "b", "c", "d"}},
      {"name", {"a", "b", "c", "d"}},
      {"reason", {"judge_unavailable", "check_unavailable", "escalated", "provider_error"}},
      {"answer", {"wait", "admitted", "use_fallback"}},
      {"class", {"length", "refused", "timeout", "not_found", "network"}}};
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (strcmp(words[i].key, key) == 0) {
      const char *word = words[i].words[roll(ARRAY_LEN(words[i].words))];
      return json_string(word ? word : words[i].words[0]);
    }
  for (unsigned tries = 0; tries < 8; tries++) {
    const json_t *record = json_array_get(records, roll((unsigned)json_array_size(records)));
    const json_t *value = json_object_get(record, key);
    if (value != NULL)
      return json_deep_copy(value);
  }
  return any_value(records);
}

/* A place in a tree, at random: that value is changed, or goes. */
static void change(json_t *tree, const json_t *records) {
  if (json_is_object(tree) && json_object_size(tree) > 0) {
    unsigned at = roll((unsigned)json_object_size(tree));
    void *iter = json_object_iter(tree);
    while (at-- > 0)
      iter = json_object_iter_next(tree, iter);
    json_t *value = json_object_iter_value(iter);
    bool inner = (json_is_object(value) || json_is_array(value)) && roll(3) > 0;
    if (inner) {
      change(value, records);
    } else if (roll(4) == 0) {
      char key[64];
      print_into(key, sizeof key, "%s", json_object_iter_key(iter));
      (void)json_object_del(tree, key);
    } else {
      const char *key = json_object_iter_key(iter);
      json_object_iter_set_new(tree, iter,
                               roll(2) ? any_value(records) : fitting_value(key, records));
    }
  } else if (json_is_array(tree) && json_array_size(tree) > 0) {
    size_t at = roll((unsigned)json_array_size(tree));
    json_t *value = json_array_get(tree, at);
    if ((json_is_object(value) || json_is_array(value)) && roll(3) > 0)
      change(value, records);
    else if (roll(3) == 0)
      (void)json_array_remove(tree, at);
    else
      (void)json_array_set_new(tree, at, any_value(records));
  }
}

static void add_member(json_t *record, const json_t *records) {
  void *member = any_member(records);
  if (member == NULL)
    return;
  json_t *value = json_object_iter_value(member);
  value = roll(2) ? json_deep_copy(value) : any_value(records);
  json_object_set_new(record, json_object_iter_key(member), value);
}

static void disturb(json_t *records) {
  size_t n = json_array_size(records);
  if (n == 0)
    return;
  size_t at = roll((unsigned)n), other = roll((unsigned)n);
  if (roll(2) == 0 && n > 4) /* what is still open at the end */
    at = n - 1 - roll(4);
  json_t *record = json_array_get(records, at);
  switch (roll(12)) {
  case 0:
    (void)json_array_remove(records, at);
    break;
  case 1:
    (void)json_array_insert_new(records, other, json_deep_copy(record));
    break;
  case 2:
    while (json_array_size(records) > at + 1)
      (void)json_array_remove(records, at + 1);
    break;
  case 3:
  case 4:
    add_member(record, records);
    break;
  default:
    change(record, records);
    break;
  }
}

/* --- a changed log --- */

static size_t fold(struct play *p, struct core *core, const json_t *records, size_t n) {
  const struct core_source source = {.ctx = p, .blob = play_blob};
  core_init(core);
  for (size_t i = 0; i < n; i++) {
    struct err err = {0};
    if (!core_apply_json(core, json_array_get(records, i), NULL, &source, &err)) {
      core_deinit(core);
      return i;
    }
  }
  return n;
}

/* The host's part, without a log: starts become answers, waits are over at once. */
static void go_on(struct play *p, struct core *core) {
  long open[MAX_OPEN];
  bool timers[MAX_OPEN];
  size_t count = 0;
  struct event ev = play_event(p, EVENT_RESUME);
  ev.reason = "test";
  for (unsigned step = 0; step < MAX_STEPS && core->status != SESSION_ENDED; step++) {
    AUTO(call_result_deinit) struct call_result result = {0};
    struct core_out out;
    core_decide(core, &ev, &p->env, &out);
    for (size_t i = 0; i < out.record_count; i++)
      json_decref(record_json(out.records[i]));
    for (size_t i = 0; i < out.effect_count && count < MAX_OPEN; i++) {
      const struct effect *e = &out.effects[i];
      if (e->kind == EFFECT_FINISHED)
        count = 0;
      if (e->kind == EFFECT_START_CALL || e->kind == EFFECT_TIMER) {
        timers[count] = e->kind == EFFECT_TIMER;
        open[count++] = e->call;
      }
    }
    core_out_deinit(&out);
    p->now_ms += 1000;
    if (count == 0) {
      ev = play_event(p, EVENT_RESUME);
      ev.reason = "test";
      continue;
    }
    size_t at = roll((unsigned)count);
    struct turn *turn = NULL;
    struct call *call = core_call(core, open[at], &turn);
    struct call_request request;
    ev = play_event(p, timers[at] ? EVENT_TIMER : EVENT_CALL_END);
    ev.call = open[at];
    open[at] = open[--count];
    timers[at] = timers[count];
    if (call != NULL && ev.kind == EVENT_CALL_END) {
      core_request(core, turn, call, &request);
      answer(p, &request, &result);
      ev.result = &result;
      core_decide(core, &ev, &p->env, &out);
      for (size_t i = 0; i < out.effect_count && count < MAX_OPEN; i++)
        if (out.effects[i].kind == EFFECT_START_CALL || out.effects[i].kind == EFFECT_TIMER) {
          timers[count] = out.effects[i].kind == EFFECT_TIMER;
          open[count++] = out.effects[i].call;
        }
      core_out_deinit(&out);
      ev = play_event(p, EVENT_RESUME);
      if (core->status == SESSION_RUNNING)
        ev = play_event(p, EVENT_ACCEPT); /* nothing new */
      ev.reason = "test";
    }
  }
}

TEST(changed_logs_are_refused_or_go_on) {
  const struct seeds seeds = seeds_asked(DEFAULT_SEEDS);
  uint64_t whole = 0, records = 0;
  struct play sources[SOURCES];
  (void)signal(SIGABRT, say_seed);
  dice_state = 7;
  for (size_t i = 0; i < SOURCES; i++)
    play_one(&sources[i]);
  for (seed_now = seeds.first; seed_now - seeds.first < seeds.count; seed_now++) {
    dice_state = seed_now * 0x2545F4914F6CDD1Du;
    struct play *p = &sources[roll(SOURCES)];
    json_auto_t *log = json_deep_copy(p->records);
    AUTO(core_deinit) struct core core;
    for (size_t keep = roll(2) ? 1 + roll((unsigned)json_array_size(log)) : json_array_size(log);
         json_array_size(log) > keep;)
      (void)json_array_remove(log, json_array_size(log) - 1);
    for (unsigned n = 1 + roll(4); n > 0; n--)
      disturb(log);
    for (size_t i = 0; i < json_array_size(log); i++)
      json_object_set_new(json_array_get(log, i), "seq", json_integer((json_int_t)i + 1));
    size_t n = json_array_size(log), taken = fold(p, &core, log, n);
    whole += taken == n;
    records += taken;
    if (taken < n && fold(p, &core, log, taken) != taken)
      fail_msg("SEGUE_SIM_SEED=%" PRIu64 ": the same records are refused now", seed_now);
    if (core.status != SESSION_NEW)
      go_on(p, &core);
  }
  print_message("%" PRIu64 " logs, %" PRIu64 " of them whole, %" PRIu64 " records\n", seeds.count,
                whole, records);
  assert_true(!seeds.whole || whole > 0);
  for (size_t i = 0; i < SOURCES; i++)
    play_deinit(&sources[i]);
}

TEST_GROUP(NULL, play_over)
