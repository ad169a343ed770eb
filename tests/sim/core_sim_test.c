/* Seeded sessions in virtual time over the pure core: random workflows, a provider that answers,
 * babbles and fails, crashes at any record. Which seeds: support/seeds.h. */
#include "support/play.h"
#include "support/seeds.h"

#include "base/memory.h"
#include "base/resource.h"
#include "schema/schema.h"
#include "support/test.h"

#include <inttypes.h>

enum {
  DEFAULT_SEEDS = 200,
  GROUP_SEEDS = 120,
  MAX_GIVE_UPS = 6,
  MAX_STEPS = 5000,
  MAX_CRASHES = 40
};

/* --- chance --- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

struct dice {
  uint64_t state;
};

static unsigned roll(struct dice *d, unsigned sides) {
  d->state = mix(d->state);
  return (unsigned)(d->state % sides);
}

static bool chance(struct dice *d, unsigned percent) {
  return roll(d, 100) < percent;
}

static const char *pick(struct dice *d, const char *const *words, size_t n) {
  return words[roll(d, (unsigned)n)];
}
#define PICK(d, words) pick(d, words, ARRAY_LEN(words))

/* --- workflows --- */

static const char *const names[] = {"plan",    "fix", "test it", "計画",
                                    "re.view", "a[b", "M7",      "end"};
static const char *const labels[] = {"approved", "needs fix", "blocked", "unclear"};
static const char *const exprs[] = {"true",
                                    "false",
                                    "iteration == 2",
                                    "movement_iteration == 1 || iteration > 6",
                                    "!(iteration > 4)",
                                    "exit == 0",
                                    "iteration > 3",
                                    "movement_iteration >= 2",
                                    "structured.plan.ok",
                                    "iteration < 9 && movement_iteration > 1"};
static const char *const stage_names[] = {"structured_output", "phase3_tag", "phase1_tag",
                                          "ai_judge"};

static json_t *random_rule(struct dice *d, unsigned movements) {
  char condition[128];
  unsigned form = roll(d, 10), next = roll(d, movements * 3 + 2);
  bool complete = next == movements * 3, abort_it = next == movements * 3 + 1;
  if (form < 7)
    print_into(condition, sizeof condition, "%s", PICK(d, labels));
  else if (form < 9)
    print_into(condition, sizeof condition, "when(%s)", PICK(d, exprs));
  else
    print_into(condition, sizeof condition, "%s && when(%s)", PICK(d, labels), PICK(d, exprs));
  const char *where = complete ? "COMPLETE" : names[next % movements];
  if (abort_it && !complete)
    where = "ABORT";
  json_t *rule = json_pack("{ss ss}", "condition", condition, "next", where);
  if (chance(d, 10))
    json_object_set_new(rule, "interactive_only", json_true());
  return rule;
}

/* Who takes over from the provider that `object` names; lists of documents may hold anybody
 * twice. */
static void random_fallback(struct dice *d, json_t *object) {
  static const char *const providers[] = {"sim", "other", "third"};
  if (!chance(d, 40))
    return;
  json_t *list = json_array();
  for (unsigned n = 1 + roll(d, 3); n > 0; n--)
    json_array_append_new(list, json_string(PICK(d, providers)));
  json_object_set_new(object, "fallback", list);
}

static json_t *random_judge(struct dice *d, bool command) {
  json_t *judge = json_object(), *stages = json_array();
  unsigned first = roll(d, ARRAY_LEN(stage_names)), count = 1 + roll(d, ARRAY_LEN(stage_names));
  for (unsigned i = 0; i < count; i++)
    json_array_append_new(stages, json_string(stage_names[(first + i) % ARRAY_LEN(stage_names)]));
  json_object_set_new(judge, "stages", stages);
  json_object_set_new(judge, "max_reasks", json_integer(roll(d, 3)));
  if (command || chance(d, 30)) {
    json_object_set_new(judge, "provider", json_string(chance(d, 50) ? "other" : "sim"));
    random_fallback(d, judge);
  }
  return judge;
}

static json_t *random_structured(struct dice *d, bool command) {
  static const char *const on_failures[] = {"error", "escalate", "sentinel"};
  json_t *so =
      json_pack("{s{ss s{s{ss} s{ss si}} s[s] sb} ss}", "schema", "type", "object", "properties",
                "ok", "type", "boolean", "n", "type", "integer", "maximum", 5, "required", "ok",
                "additionalProperties", 0, "on_failure", PICK(d, on_failures));
  if (!command)
    json_object_set_new(so, "max_reasks", json_integer(roll(d, 5)));
  if (chance(d, 20))
    json_object_set_new(so, "example", json_true());
  if (chance(d, 20))
    json_object_set_new(so, "reask", json_pack("{ss}", "provider", "other"));
  if (chance(d, 20))
    json_object_set_new(so, "token_budget", json_integer(1 + roll(d, 3000)));
  if (chance(d, 30))
    json_object_set_new(so, "invariants",
                        json_pack("[s {s[s]} {ss}]", "n == null || n > 0", "command", "./check",
                                  "ai", "Is it so?"));
  return so;
}

static json_t *random_movement(struct dice *d, const char *name, unsigned movements) {
  json_t *rules = json_array();
  bool command = chance(d, 25);
  for (unsigned k = 1 + roll(d, 6); k > 0; k--)
    json_array_append_new(rules, random_rule(d, movements));
  json_t *m = json_pack("{ss ss so}", "name", name, "instruction",
                        "Work on {task} with care, after {previous_response}; "
                        "{structured:plan.ok}. {item} {index}",
                        "rules", rules);
  if (command)
    json_object_set_new(m, "command", json_pack("[ss]", "make", "test"));
  if (!command && chance(d, 40)) {
    json_object_set_new(m, "provider", json_string(chance(d, 50) ? "other" : "sim"));
    random_fallback(d, m);
  }
  if (chance(d, 20))
    json_object_set_new(m, "session", json_string("refresh"));
  if (chance(d, 20))
    json_object_set_new(m, "required_permission_mode", json_string("full"));
  if (chance(d, 20))
    json_object_set_new(m, "session_key", json_string("shared"));
  if (command || chance(d, 60))
    json_object_set_new(m, "judge", random_judge(d, command));
  if (chance(d, 35))
    json_object_set_new(m, "structured_output", random_structured(d, command));
  return m;
}

/* A movement with children of its own kind, or with one for each item of a list. */
static json_t *random_group(struct dice *d, const char *name, unsigned movements) {
  static const char *const children[] = {"a", "b", "c", "d"};
  static const char *const aggregates[] = {
      "all(approved)", "any(\"needs fix\") && when(iteration < 4)", "any(error, none)",
      "when(votes.approved >= 2)", "all(approved, approved)"};
  json_t *group = json_pack("{ss s[] s[]}", "name", name, "parallel", "rules");
  json_t *list = json_object_get(group, "parallel"), *rules = json_object_get(group, "rules"),
         *rule;
  bool items = chance(d, 40);
  for (unsigned i = 0, n = items ? 1 : 1 + roll(d, ARRAY_LEN(children)); i < n; i++) {
    json_t *child = random_movement(d, children[i], movements);
    size_t k;
    json_array_foreach(json_object_get(child, "rules"), k, rule) {
      json_object_del(rule, "next");
    }
    json_array_append_new(list, child);
  }
  if (items && chance(d, 70))
    json_object_set_new(group, "for_each", json_pack("[i {ss} []]", 1, "name", "x"));
  else if (items)
    json_object_set_new(group, "for_each", json_string("plan.list"));
  if (chance(d, 40))
    json_object_set_new(group, "concurrency", json_integer(1 + roll(d, 3)));
  if (chance(d, 30))
    json_object_set_new(group, "stop_on", json_string("error"));
  for (unsigned k = 1 + roll(d, 3); k > 0; k--) {
    rule = random_rule(d, movements);
    json_object_set_new(rule, "condition", json_string(PICK(d, aggregates)));
    json_array_append_new(rules, rule);
    if (chance(d, 50))
      json_array_append_new(rules, random_rule(d, movements));
  }
  return group;
}

static json_t *random_workflow(struct dice *d, bool groups) {
  unsigned n = 1 + roll(d, ARRAY_LEN(names));
  json_t *list = json_array();
  for (unsigned i = 0; i < n; i++) {
    bool group = groups && chance(d, 50);
    json_t *m = group ? random_group(d, names[i], n) : random_movement(d, names[i], n);
    bool any = chance(d, 50); /* errors lead on, all or those of one class */
    if (!group && chance(d, 30))
      json_object_set_new(m, "on_error",
                          json_pack("[{ss* ss}]", "class", any ? NULL : "timeout", "to",
                                    any ? names[roll(d, n)] : "ABORT"));
    json_array_append_new(list, m);
  }
  json_t *workflow = json_pack("{ss si so}", "name", "sim", "max_movements", (int)(1 + roll(d, 14)),
                               "movements", list);
  if (chance(d, 30))
    json_object_set_new(workflow, "workspace", json_string("worktree"));
  if (chance(d, 40))
    json_object_set_new(workflow, "commit", json_string(chance(d, 50) ? "movement" : "end"));
  return workflow;
}

/* --- the provider --- */

struct world {
  uint64_t seed; /* of the provider's behaviour */
  bool down;     /* the judge is in trouble more often */
  struct dice delays;
  bool calm; /* nobody fails but those who are away */
  int64_t away_from_ms, away_to_ms;
};

static void random_error(struct dice *d, struct call_result *out) {
  out->class = (enum error_class)(1 + roll(d, CLASS_COUNT - 1));
  print_into(out->message, sizeof out->message, "it failed (%s)", error_class_name(out->class));
  if (chance(d, 30))
    out->retry_after_ms = 1 + (int64_t)roll(d, 150000);
}

static void babble(struct dice *d, struct str movement, struct buf *b) {
  static const char *const pieces[] = {"All tests pass now. ",
                                       "```\n",
                                       "> ",
                                       "\"",
                                       "{\"step\": ",
                                       "}\n",
                                       "\n",
                                       "`",
                                       "計画は終わり。",
                                       "<think>",
                                       "</think>",
                                       "I am not sure. ",
                                       "[",
                                       ":1]",
                                       "\x01",
                                       "so be it\n"};
  for (unsigned n = roll(d, 12); n > 0; n--) {
    if (chance(d, 20))
      buf_printf(b, "[%.*s:%u]", (int)movement.n, movement.p, roll(d, 7));
    else if (chance(d, 10))
      buf_printf(b, "[JUDGE:%u]", roll(d, 7));
    else
      buf_puts(b, PICK(d, pieces));
  }
}

/* A text that is to fit the schema of random_structured, or is to say whether an invariant
 * holds. */
static void answer_value(struct dice *d, const struct call_request *r, struct call_result *out) {
  struct buf *text = &out->text.bytes;
  out->usage = json_pack("{si si}", "input", (int)roll(d, 500), "output", (int)roll(d, 500));
  if (r->argv != NULL && r->purpose == PURPOSE_CHECK) {
    if (out->exit != 0)
      buf_printf(text, "{\"path\": \"$.n\", \"message\": \"bad %u\"}\n", roll(d, 4));
    return;
  }
  if (r->purpose == PURPOSE_CHECK) {
    if (chance(d, 85))
      buf_printf(text, "{\"reason\": \"so %u\", \"holds\": %s}", roll(d, 9),
                 chance(d, 60) ? "true" : "false");
    else
      babble(d, r->movement, text);
    return;
  }
  switch (roll(d, 6)) {
  case 0:
    babble(d, r->movement, text);
    break;
  case 1:
    buf_printf(text, "{\"ok\": true, \"n\": %u}", roll(d, 12));
    break;
  case 2:
    buf_printf(text, "{\"ok\": %u, \"m\": [", roll(d, 3));
    break;
  case 3:
    out->structured = json_pack("{sb}", "ok", (int)roll(d, 2));
    break;
  default:
    buf_printf(text, "Well:\n```json\n{\"ok\": %s}\n```\n", chance(d, 50) ? "true" : "false");
    break;
  }
}

/* A function of the seed and the token: a repeated call meets the same. */
static struct dice dice_of(const struct play *p, const struct call_request *r) {
  const struct world *w = p->ctx;
  char_auto_t *token = json_dumps(r->token, JSON_COMPACT);
  struct dice d = {w->seed};
  for (const char *c = token; *c; c++)
    d.state = mix(d.state ^ (unsigned char)*c);
  return d;
}

/* Whether it waits is up to the storm; that it goes elsewhere changes what is asked next. */
static enum admission_answer admit(struct play *p, const struct call_request *r,
                                   bool has_fallback) {
  struct world *w = p->ctx;
  struct dice d = dice_of(p, r);
  d.state ^= 0xAD;
  if (has_fallback && chance(&d, 10))
    return ADMISSION_FALLBACK;
  return chance(&w->delays, 20) ? ADMISSION_WAIT : ADMISSION_ADMITTED;
}

static json_t *tell(struct play *p, const struct call_request *r, int k, const char **kind) {
  struct dice d = dice_of(p, r);
  d.state ^= 0x7E11;
  if (k >= (int)roll(&d, 4))
    return NULL;
  bool is_session = k == 0 && chance(&d, 50);
  *kind = is_session ? "session" : "tool";
  return json_pack("{ss}", is_session ? "provider_session" : "name", "told");
}

static void answer(struct play *p, const struct call_request *r, struct call_result *out) {
  const struct world *w = p->ctx;
  struct dice d = dice_of(p, r);
  bool judges = r->stage != STAGE_COUNT;
  if (chance(&d, 50))
    print_into(out->provider_session, sizeof out->provider_session, "s%u", roll(&d, 1000));
  struct buf *text = &out->text.bytes;
  out->duration_ms = roll(&d, 5000);
  out->has_exit = r->argv != NULL;
  out->exit = out->has_exit && chance(&d, 50) ? 1 : 0;
  if (r->argv == NULL && p->now_ms >= w->away_from_ms && p->now_ms < w->away_to_ms) {
    out->class = roll(&d, 2) ? CLASS_NETWORK : CLASS_OVERLOADED;
    return;
  }
  if (!w->calm && chance(&d, judges && w->down ? 80 : 15)) {
    random_error(&d, out);
    if (chance(&d, 30))
      babble(&d, r->movement, text);
    return;
  }
  long index = workflow_find(p->workflow, r->movement);
  if (!judges && index >= 0 && p->workflow->movements[index].structured != NULL) {
    answer_value(&d, r, out);
    return;
  }
  if (!judges) {
    babble(&d, r->movement, text);
    if (chance(&d, 30))
      out->structured = json_pack("{sb}", "ok", (int)roll(&d, 2));
    if (chance(&d, 50))
      buf_printf(text, "\n[%.*s:%u]\n", (int)r->movement.n, r->movement.p, 1 + roll(&d, 5));
    return;
  }
  const char *key = r->stage == STAGE_AI_JUDGE ? "matched_index" : "step";
  const json_t *offered =
      json_object_get(json_object_get(json_object_get(r->schema, "properties"), key), "enum");
  unsigned step = roll(&d, 7);
  if (offered && chance(&d, 80))
    step = (unsigned)json_integer_value(
        json_array_get(offered, roll(&d, (unsigned)json_array_size(offered))));
  switch (roll(&d, 6)) {
  case 0:
    babble(&d, r->movement, text);
    break;
  case 1:
    buf_printf(text, "[%.*s:%u]", (int)r->movement.n, r->movement.p, step);
    break;
  case 2:
    out->structured = json_pack("{si ss}", key, (int)step, "reason", "seen");
    break;
  case 3:
    buf_printf(text, "```json\n{\"%s\": %u}\n```", key, step); /* no reason: invalid */
    break;
  default:
    buf_printf(text, "So:\n{\"reason\": \"seen\", \"%s\": %u}", key, step);
    break;
  }
}

static int64_t random_delay(struct play *p) {
  struct world *w = p->ctx;
  return roll(&w->delays, 60000);
}

/* --- what must hold of a log --- */

static bool is_type(const json_t *record, const char *type) {
  return str_eq_c(data_get(record, "type"), type);
}

static json_int_t number(const json_t *record, const char *key) {
  return json_integer_value(json_object_get(record, key));
}

/* A call that waited at the gate when a sibling failed. */
static bool is_cancelled(const json_t *end) {
  return str_eq_c(data_get(json_object_get(end, "error"), "class"), "cancelled");
}

static void check_judgment(const struct play *p, const json_t *record) {
  long index = workflow_find(p->workflow, data_get(record, "movement"));
  json_int_t rule_number = number(record, "rule");
  if (index < 0)
    fail_msg("%s: a judgment of no movement", p->title);
  if (rule_number == 0 || str_eq_c(data_get(record, "method"), "human"))
    return; /* a person can say any */
  const struct movement *m = &p->workflow->movements[index];
  const struct rule *rule = &m->rules[rule_number - 1];
  bool when = str_eq_c(data_get(record, "method"), "when");
  bool by_children = str_eq_c(data_get(record, "method"), "aggregate");
  if ((size_t)rule_number > m->rule_count || rule->interactive_only ||
      (rule->kind == RULE_WHEN) != (when || by_children))
    fail_msg("%s: rule %d by " STR_FMT " was not to be had", p->title, (int)rule_number,
             STR_ARG(data_get(record, "method")));
  if (!str_eq(rule->next, data_get(record, "next")) ||
      !str_eq(rule->condition, data_get(record, "condition")))
    fail_msg("%s: the judgment tells another rule", p->title);
}

static struct schema *log_schema;

static int compile_log_schema(void **state) {
  const struct resource *r = resource_find("schemas/session-log.json");
  json_auto_t *doc = r ? json_loadb(r->p, r->n, 0, NULL) : NULL;
  (void)state;
  log_schema = schema_compile(doc, NULL, NULL, NULL);
  return log_schema == NULL;
}

static int free_schemas(void **state) {
  schema_free(log_schema);
  return play_over(state);
}

/* Each record is as schemas/session-log.json describes it, once the store has put its hash. */
static void check_schema(const struct play *p, const json_t *record) {
  json_auto_t *hashed = json_copy((json_t *)record);
  struct schema_errors errors = {0};
  json_object_set_new(
      hashed, "hash",
      json_string("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
  if (!schema_valid(log_schema, hashed)) {
    (void)schema_check(log_schema, hashed, &errors);
    char *text = json_dumps(record, JSON_COMPACT);
    fail_msg("%s: %.600s\n%s: %s", p->title, text, errors.count ? errors.items[0].path : "",
             errors.count ? errors.items[0].message : "");
  }
}

enum { MAX_IDS = 4000 };

/* Whatever was said and not read yet stands in front of the next prompt of an agent's work. */
static void check_said(const struct play *p) {
  json_auto_t *unread = json_object();
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i), *said = json_object_get(r, "said");
    char seq[32];
    bool works = str_among(data_get(r, "purpose"), "execute reask") &&
                 json_object_get(r, "stage") == NULL &&
                 !str_eq_c(data_get(r, "provider"), "command");
    snprintf(seq, sizeof seq, "%zu", i + 1);
    if (is_type(r, "steer"))
      json_object_set_new(unread, seq, json_true());
    snprintf(seq, sizeof seq, "%lld", (long long)number(json_object_get(r, "data"), "said"));
    if (is_type(r, "call_event"))
      json_object_del(unread, seq);
    for (size_t k = 0; k < json_array_size(said); k++) {
      snprintf(seq, sizeof seq, "%lld", (long long)json_integer_value(json_array_get(said, k)));
      json_object_del(unread, seq);
    }
    if (is_type(r, "call_start") && works && json_object_size(unread) > 0)
      fail_msg("%s: record %zu does not say what was said and not read", p->title, i + 1);
  }
}

static void check_log(const struct play *p) {
  static unsigned char judged[MAX_IDS], started[MAX_IDS], waits[MAX_IDS];
  static unsigned char executes[MAX_IDS], refused[MAX_IDS];
  static struct str promised[MAX_IDS]; /* who is to take over */
  static int attempts[MAX_IDS];
  json_int_t turns = 0, calls = 0;
  memset(judged, 0, sizeof judged);
  memset(started, 0, sizeof started);
  memset(waits, 0, sizeof waits);
  memset(refused, 0, sizeof refused);
  memset(promised, 0, sizeof promised);
  memset(attempts, 0, sizeof attempts);
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i);
    json_int_t call = number(r, "call"), turn = number(r, "turn"), attempt = number(r, "attempt");
    check_schema(p, r);
    if (number(r, "seq") != (json_int_t)i + 1)
      fail_msg("%s: record %zu has another seq", p->title, i + 1);
    if (call >= MAX_IDS || turn >= MAX_IDS)
      fail_msg("%s: it goes on for ever", p->title);
    if (is_type(r, "turn_start") && turn != ++turns)
      fail_msg("%s: turn numbers have a gap at record %zu", p->title, i + 1);
    if (is_type(r, "call_start") && refused[turn])
      fail_msg("%s: record %zu asks on although a call was refused", p->title, i + 1);
    /* A person hears of it before the turn goes on. A crash in between takes the place of the stop,
     * as it does for other errors of a call: the repeat meets the same sandbox. */
    if (is_type(r, "call_end") && executes[call] && data_get(r, "fallback").n == 0 &&
        str_eq_c(data_get(json_object_get(r, "error"), "class"), "denied"))
      refused[turn] = 1;
    if (is_type(r, "session_stop") || is_type(r, "session_resume"))
      memset(refused, 0, sizeof refused);
    if (is_type(r, "call_start")) {
      if (call > calls + 1 || (call == calls + 1) != (attempt == 1) ||
          attempt != attempts[call] + 1)
        fail_msg("%s: call numbers have a gap at record %zu", p->title, i + 1);
      calls = call > calls ? call : calls;
      attempts[call] = (int)attempt;
      executes[call] = str_eq_c(data_get(r, "purpose"), "execute");
      started[call] = 1;
      waits[call] = 0;
      if (promised[call].n > 0 && !str_eq(promised[call], data_get(r, "provider")))
        fail_msg("%s: another provider took over at record %zu", p->title, i + 1);
      promised[call] = STR("");
    }
    if (data_get(r, "fallback").n > 0)
      promised[call] = data_get(r, "fallback");
    if (is_type(r, "admission"))
      waits[call] = str_eq_c(data_get(r, "answer"), "wait");
    if (is_type(r, "call_end") && waits[call] && !is_cancelled(r))
      fail_msg("%s: record %zu ends a call that was not let in", p->title, i + 1);
    if (is_type(r, "call_end") && (!started[call] || attempts[call] != attempt))
      fail_msg("%s: record %zu ends a call that did not start", p->title, i + 1);
    if (is_type(r, "call_end"))
      started[call] = 0;
    if (is_type(r, "judgment") && judged[turn])
      fail_msg("%s: turn %d is judged twice", p->title, (int)turn);
    if (is_type(r, "judgment")) /* without a rule it waits for a person's */
      judged[turn] = number(r, "rule") > 0;
    if (is_type(r, "judgment"))
      check_judgment(p, r);
    if (is_type(r, "session_end") && i + 1 != play_lines(p))
      fail_msg("%s: records follow session_end", p->title);
  }
}

/* A call was given up because its provider was away for too long, or limited. */
static bool is_given_up(const json_t *record) {
  enum error_class class = CLASS_NONE;
  const json_t *error = json_object_get(record, "error");
  return is_type(record, "call_end") && json_object_get(record, "retry_in_ms") == NULL &&
         error_class_from_name(data_get(error, "class"), &class) && error_class_is_transient(class);
}

/* Every verdict, and how it ended: one line each; that a call was refused is check_log's. They end
 * at the first take-over, or call given up (*timed): how long a provider stays behind or away is a
 * matter of time, and a crash takes time. */
static char *verdicts(const struct play *p, bool *timed) {
  struct buf b = {0};
  for (size_t i = 0; i < play_lines(p) && !*timed; i++) {
    const json_t *r = play_record(p, i);
    /* A repeat after a crash may go on with a conversation, and then has another attempt. */
    bool failed = is_type(r, "turn_end") && str_eq_c(data_get(r, "outcome"), "error");
    *timed = is_given_up(r) || failed ||
             (is_type(r, "call_end") && json_object_get(r, "fallback") != NULL);
    if (is_type(r, "judgment"))
      buf_printf(&b, "turn %d " STR_FMT ": rule %d " STR_FMT " > " STR_FMT "\n",
                 (int)number(r, "turn"), STR_ARG(data_get(r, "movement")), (int)number(r, "rule"),
                 STR_ARG(data_get(r, "method")), STR_ARG(data_get(r, "next")));
    if (is_type(r, "structured")) {
      char_auto_t *value = json_dumps(json_object_get(r, "value"), JSON_COMPACT | JSON_SORT_KEYS);
      buf_printf(&b, "turn %d " STR_FMT " after %d: %s\n", (int)number(r, "turn"),
                 STR_ARG(data_get(r, "outcome")), (int)number(r, "attempts"), value ? value : "");
    }
    if (is_type(r, "session_end"))
      buf_printf(&b, "%s\n", json_string_value(json_object_get(r, "outcome")));
    if (is_type(r, "session_stop") && session_stop_is_for_person(data_get(r, "reason")) &&
        !str_among(data_get(r, "reason"), "interrupted denied"))
      buf_printf(&b, "%s\n", json_string_value(json_object_get(r, "reason")));
  }
  return buf_take(&b);
}

/* How often the session could not go on; the driver asks it to, a bounded number of times. */
static int give_ups(const struct play *p) {
  int n = 0;
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i);
    const json_t *error = json_object_get(r, "error");
    n += is_type(r, "session_stop") && (str_eq_c(data_get(r, "reason"), "judge_unavailable") ||
                                        str_eq_c(data_get(r, "reason"), "check_unavailable") ||
                                        str_eq_c(data_get(r, "reason"), "escalated"));
    if (is_type(r, "call_end") && error && json_object_get(r, "retry_in_ms") == NULL &&
        json_object_get(r, "fallback") == NULL) {
      struct turn *turn;
      const struct call *call = core_call(&p->core, (long)number(r, "call"), &turn);
      n += call && call_is_own(call);
    }
  }
  return n;
}

/* --- a session --- */

struct storm {
  struct dice dice;
  unsigned percent; /* of decisions that are followed by a crash; 0: undisturbed */
  int crashes, cuts, stops;
  bool person; /* one gives verdicts */
};

static void resume(struct play *p) {
  struct event ev = play_event(p, EVENT_RESUME);
  ev.reason = "test";
  play_decide(p, &ev);
}

/* It ended, or waits for a person: no program takes it further. */
static bool is_over(const struct play *p) {
  return p->core.status == SESSION_ENDED ||
         (p->core.status == SESSION_STOPPED && p->core.outcome != END_NONE);
}

/* In some seeds a person gives the verdict that nobody else could. */
static bool wants_verdict(const struct play *p, const struct storm *storm) {
  return storm->person && p->core.status == SESSION_STOPPED && core_unjudged_turn(&p->core) != NULL;
}

static void judge_by_person(struct play *p) {
  json_auto_t *by = json_pack("{si ss}", "uid", 1000, "name", "alice");
  const struct core_steer steer = {.by = by, .rule = 1, .why = "it is clear to me"};
  struct event ev = play_event(p, EVENT_RESUME);
  ev.reason = "user";
  ev.steer = &steer;
  play_decide(p, &ev);
}

/* A person says something; the backend of a running call may be told, and its agent may read it. */
static void say(struct play *p, struct storm *storm) {
  json_auto_t *by = json_pack("{si ss}", "uid", 1000, "name", "alice");
  struct turn *turn;
  const struct call *call = core_steer_call(&p->core, &turn);
  const json_t *said = call ? core_steer_next(&p->core, call->id, 0) : NULL;
  bool reads = said != NULL && chance(&storm->dice, 50);
  struct event ev = play_event(p, reads ? EVENT_CALL_NEWS : EVENT_STEER);
  json_auto_t *news = reads ? json_pack("{sO}", "said", json_object_get(said, "said")) : NULL;
  ev.call = call != NULL && (reads || chance(&storm->dice, 50)) ? call->id : 0;
  ev.news_kind = "steer";
  ev.news = news;
  ev.message = "Look at the other file, too.";
  ev.by = by;
  play_decide(p, &ev);
}

/* Writes the decision that is at hand; or dies first, as often as the storm wants. */
static void commit(struct play *p, struct storm *storm) {
  while (storm->crashes < MAX_CRASHES && chance(&storm->dice, storm->percent)) {
    size_t n = p->out.record_count, keep = roll(&storm->dice, (unsigned)n + 1);
    storm->crashes++;
    storm->cuts += keep < n;
    play_crash(p, keep);
    if (is_over(p))
      return;
    if (play_lines(p) == 0)
      play_decide_start(p);
    else
      resume(p);
  }
  play_commit(p);
}

static void session(struct play *p, struct storm *storm) {
  play_decide_start(p);
  commit(p, storm);
  for (int steps = 0; !is_over(p) || wants_verdict(p, storm); steps++) {
    if (steps == MAX_STEPS)
      fail_msg("%s: no end after %d steps", p->title, MAX_STEPS);
    if (is_over(p)) {
      judge_by_person(p);
    } else if (p->core.status == SESSION_STOPPED) {
      assert_int_equal(p->pending_count, 0);
      if (give_ups(p) >= MAX_GIVE_UPS)
        return;
      p->now_ms += 1000;
      if (storm->percent > 0 && chance(&storm->dice, 30)) { /* it waits for its turn first */
        struct event ev = play_event(p, EVENT_ACCEPT);
        ev.reason = "test";
        play_decide(p, &ev);
        commit(p, storm);
        play_crash(p, 0); /* it is dropped, and read back when its turn comes */
        if (is_over(p))
          continue;
      }
      resume(p);
    } else if (p->pending_count == 0) {
      fail_msg("%s: it waits for nothing", p->title);
    } else if (storm->percent > 0 && storm->stops < 5 && chance(&storm->dice, 3)) {
      struct event ev = play_event(p, EVENT_STOP);
      storm->stops++;
      ev.reason = "interrupted";
      play_decide(p, &ev);
    } else if (storm->percent > 0 && chance(&storm->dice, 8)) {
      say(p, storm);
    } else {
      play_decide_next(p);
    }
    commit(p, storm);
  }
}

struct totals {
  long records, turns, judgments, crashes, cuts, unavailable, ended, values, checks;
  long fallbacks, waits, resumed, lost, said;
  long outcomes[END_COUNT], methods[STAGE_COUNT];
};

/* Where the driver gave up in one of them, one is the other's beginning: a crash that hides a stop
 * takes the place of one resume. */
static bool agree(const char *a, const char *b, bool gave_up) {
  size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
  return gave_up ? strncmp(a, b, n) == 0 : strcmp(a, b) == 0;
}

static void play_seed(uint64_t seed, bool groups, struct totals *totals) {
  char title[64];
  char *workflow_text, *first = NULL;
  bool gave_up = false;
  static const char config[] =
      "{'default_provider':'sim','fallback':{'sim':['third'],'other':['sim','other','third']}}";
  print_into(title, sizeof title, "SEGUE_SIM_SEED=%" PRIu64, seed);
  struct dice d = {mix(seed)};
  json_t *workflow = random_workflow(&d, groups);
  workflow_text = json_dumps(workflow, JSON_COMPACT);
  json_decref(workflow);
  for (unsigned round = 0; round < 3; round++) {
    AUTO(play_deinit) struct play p;
    struct world world = {
        .seed = mix(seed ^ 0x5E6), .down = seed % 5 == 0, .delays = {mix(seed + round)}};
    static const unsigned per_cent[] = {0, 12, 45};
    struct storm storm = {{mix(seed * 31 + round)}, per_cent[round], 0, 0, 0, seed % 3 == 0};
    play_init(&p, title, workflow_text, seed % 2 ? config : NULL, NULL);
    p.reply = answer;
    p.admit = admit;
    p.news = tell;
    p.delay_ms = random_delay;
    p.ctx = &world;
    p.entropy = (unsigned)mix(seed + round * 7u);
    session(&p, &storm);
    check_log(&p);
    check_said(&p);
    totals->said += play_count(&p, "steer");
    if (p.prompts_missing > 0)
      fail_msg("%s: a provider was asked without the prompt", title);
    bool timed = false;
    char *now = verdicts(&p, &timed);
    bool open = timed || !is_over(&p);
    if (first == NULL) {
      first = now;
      gave_up = open;
    } else if (!groups && !agree(first, now, gave_up || open))
      fail_msg("%s: undisturbed:\n%safter %d crashes:\n%s", title, first, storm.crashes, now);
    if (now != first)
      free(now);
    totals->records += (long)play_lines(&p);
    totals->turns += p.core.turn_count;
    totals->judgments += play_count(&p, "judgment");
    totals->crashes += storm.crashes;
    totals->cuts += storm.cuts;
    totals->ended += is_over(&p);
    totals->outcomes[p.core.outcome]++;
    for (int i = 0; i < STAGE_COUNT; i++)
      totals->methods[i] += p.core.method_counts[i];
    const json_t *stop = play_find(&p, "session_stop", -1);
    totals->values += play_count(&p, "structured");
    for (size_t i = 0; i < play_lines(&p); i++) {
      const json_t *r = play_record(&p, i), *session = json_object_get(r, "session");
      totals->fallbacks += data_get(r, "fallback").n > 0;
      totals->waits += str_eq_c(data_get(r, "answer"), "wait");
      totals->resumed += json_is_true(json_object_get(session, "resumed"));
      totals->lost += json_is_false(json_object_get(session, "resumed")) &&
                      strstr(json_string_value(json_object_get(session, "reason")), "lost");
    }
    totals->checks += play_count(&p, "check");
    totals->unavailable += stop && str_eq_c(data_get(stop, "reason"), "judge_unavailable");
  }
  free(first);
  free(workflow_text);
}

TEST(sessions_keep_their_verdicts_through_crashes) {
  const struct seeds seeds = seeds_asked(DEFAULT_SEEDS);
  struct totals t = {0};
  for (uint64_t seed = seeds.first; seed - seeds.first < seeds.count; seed++)
    play_seed(seed, false, &t);
  print_message("%" PRIu64 " seeds: %ld records, %ld turns, %ld judgments, %ld crashes (%ld in a "
                "batch), %ld of %" PRIu64 " sessions ended, %ld with a judge that was down\n",
                seeds.count, t.records, t.turns, t.judgments, t.crashes, t.cuts, t.ended,
                seeds.count * 3, t.unavailable);
  for (int i = 0; i < END_COUNT; i++)
    print_message("%s %ld  ", session_outcome_name((enum session_outcome)i), t.outcomes[i]);
  for (int i = 0; i < STAGE_COUNT; i++)
    print_message("%s %ld  ", judge_stage_name((enum judge_stage)i), t.methods[i]);
  print_message("\n");
  if (seeds.whole) { /* the seeds must reach what they are for */
    print_message("%ld values of %ld checked answers\n", t.values, t.checks);
    print_message("%ld fallbacks, %ld waits for a place, %ld conversations gone on with, %ld lost, "
                  "%ld said\n",
                  t.fallbacks, t.waits, t.resumed, t.lost, t.said);
    assert_true(t.fallbacks > 300);
    assert_true(t.waits > 300);
    assert_true(t.resumed > 300);
    assert_true(t.lost > 0);
    assert_true(t.said > 300);
    assert_true(t.values > 300);
    assert_true(t.checks > t.values);
    assert_true(t.judgments > 1000);
    assert_true(t.cuts > 500);
    assert_true(t.ended > (long)seeds.count);
    assert_true(t.unavailable > 0);
    assert_true(t.methods[STAGE_HUMAN] > 50);
  }
}

/* Which reply a call takes hangs on how many were asked before it, so that the verdicts of siblings
 * differ from run to run here; but each log is sound, folds alike, and ends in a named outcome. */
TEST(groups_come_to_an_end_through_crashes) {
  const struct seeds seeds = seeds_asked(GROUP_SEEDS);
  struct totals t = {0};
  for (uint64_t seed = seeds.first; seed - seeds.first < seeds.count; seed++)
    play_seed(seed, true, &t);
  print_message("%ld records, %ld turns, %ld judgments, %ld by children, %ld crashes\n", t.records,
                t.turns, t.judgments, t.methods[STAGE_AGGREGATE], t.crashes);
  assert_true(!seeds.whole || t.methods[STAGE_AGGREGATE] > 100);
}

/* --- outages --- */

static bool all_have_answered(void *ctx, struct str provider) {
  (void)ctx;
  return provider.n > 0;
}

/* Each wait of an outage is bounded, and so is each pause in it; they go on through crashes.
 * Returns how many attempts failed. */
static long check_outage(const struct play *p, bool known) {
  long tries = 0;
  for (size_t i = 0; i < play_lines(p); i++) {
    const json_t *r = play_record(p, i), *outage = json_object_get(r, "outage");
    int64_t since = 0, until = 0, now = 0;
    if (outage == NULL)
      continue;
    assert_true(record_time_parse(data_get(outage, "since").p, &since));
    assert_true(record_time_parse(data_get(outage, "until").p, &until));
    assert_true(record_time_parse(data_get(r, "ts").p, &now));
    if (since > now || until <= now || until - since > LIMIT_OUTAGE_WAIT_MS ||
        (known && until - since < LIMIT_OUTAGE_WAIT_MS))
      fail_msg("%s: record %zu waits from %ld to %ld", p->title, i + 1, (long)since, (long)until);
    if (number(r, "retry_in_ms") > LIMIT_OUTAGE_MAX_MS || number(r, "retry_in_ms") > until - now)
      fail_msg("%s: record %zu waits too long", p->title, i + 1);
    tries++;
  }
  return tries;
}

/* Plays a session during which all providers are away for a time. Returns the attempts that failed.
 * No call is given up in an outage that is shorter than its bound, whatever crashes meanwhile. */
static long play_outage(uint64_t seed, bool groups, bool known, int64_t away_ms) {
  char title[64];
  struct dice d = {mix(seed ^ 0xA3A7)};
  AUTO(play_deinit) struct play p;
  struct world world = {.seed = mix(seed), .delays = {mix(seed)}, .calm = true};
  struct storm storm = {{mix(seed * 31)}, seed % 2 ? 12 : 0, 0, 0, 0, false};
  json_t *workflow = random_workflow(&d, groups);
  char_auto_t *text = json_dumps(workflow, JSON_COMPACT);
  json_decref(workflow);
  print_into(title, sizeof title, "outage, seed %" PRIu64, seed);
  play_init(&p, title, text, NULL, NULL);
  p.reply = answer;
  p.ctx = &world;
  p.env.has_answered = known ? all_have_answered : NULL;
  world.away_from_ms = p.now_ms + (known ? (int64_t)roll(&d, 50) : 0);
  world.away_to_ms = world.away_from_ms + away_ms;
  session(&p, &storm);
  check_log(&p);
  long tries = check_outage(&p, known);
  int64_t most = known ? LIMIT_OUTAGE_WAIT_MS : LIMIT_OUTAGE_NEW_WAIT_MS;
  for (int i = 0; away_ms < most && i < play_count(&p, "call_end"); i++) {
    const json_t *end = play_find(&p, "call_end", i);
    if (is_given_up(end) && data_get(end, "fallback").n == 0)
      fail_msg("%s: a call was given up in an outage of %ld ms", title, (long)away_ms);
  }
  return tries;
}

TEST(outages_are_waited_for_through_crashes) {
  enum { OUTAGE_SEEDS = 60, SECOND = 1000, MINUTE = 60 * SECOND };
  const struct seeds seeds = seeds_asked(OUTAGE_SEEDS);
  long shorter = 0, longer = 0, new_ones = 0;
  for (uint64_t seed = seeds.first; seed - seeds.first < seeds.count; seed++)
    for (int groups = 0; groups < 2; groups++) {
      shorter += play_outage(seed, groups, true, 50 * MINUTE);
      longer += play_outage(seed, groups, true, 100 * MINUTE);
      new_ones += play_outage(seed, groups, false, 40 * SECOND);
    }
  print_message("attempts that failed: %ld, %ld in long outages, %ld at new providers\n", shorter,
                longer, new_ones);
  assert_true(!seeds.whole || (shorter > 500 && longer > 500 && new_ones > 50));
}

TEST_GROUP(compile_log_schema, free_schemas)
