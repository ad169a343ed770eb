/* Asks a person, waits, and takes the answer. */
#include "core/human.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/group.h"
#include "core/record.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"

#include <assert.h>
#include <string.h>

bool human_hold(const struct turn *turn, const struct core *core) {
  const struct movement *m = core_movement(core, turn);
  if (turn->phase != TURN_JUDGED && m->ask == NULL && m->approve == NULL &&
      turn->plan == NULL) /* most turns */
    return turn->question != NULL || turn->rejected;
  return turn->question != NULL || turn->rejected || turn_may_ask(core, turn, STR("ask")) ||
         turn_may_ask(core, turn, STR("approve")) || turn_may_ask(core, turn, STR("input"));
}

/* Lists where the session may go from there once the question is answered. */
static json_t *blocks_json(const struct core *core, const struct turn *turn) {
  const struct movement *m = core_movement(core, turn);
  json_t *names = json_array();
  if (m->group != NO_GROUP)
    m = &core->workflow->movements[m->group];
  for (size_t i = 0; i < m->rule_count; i++) {
    json_auto_t *name = json_text(m->rules[i].next);
    size_t k = 0;
    while (k < json_array_size(names) && !json_same(json_array_get(names, k), name))
      k++;
    if (k == json_array_size(names))
      json_array_append(names, name);
  }
  return names;
}

void human_ask(struct step *s, struct turn *turn, const char *kind, json_t *question) {
  const struct movement *m = core_movement(s->core, turn);
  long ms = 0;
  if (strcmp(kind, "ask") == 0)
    ms = m->ask->deadline_ms;
  else if (strcmp(kind, "approve") == 0 && m->approve != NULL)
    ms = m->approve->deadline_ms;
  char until[RECORD_TIME_BYTES];
  struct record_draft d;
  json_put(question, "kind", json_string(kind));
  json_put(question, "blocks", blocks_json(s->core, turn));
  step_turn_record(s, &d, RECORD_QUESTION, turn);
  record_put_text(&d, MEMBER_MOVEMENT, m->name);
  record_put_tree(&d, MEMBER_QUESTION, question);
  if (ms > 0) {
    record_time(s->ev->time_ms + ms, until);
    record_put_text(&d, MEMBER_UNTIL, str_from(until));
  }
  step_emit(s, &d);
  if (ms > 0)
    step_effect(s, EFFECT_TIMER, 0, ms);
}

static void put_cut(json_t *object, const char *key, struct str text) {
  if (text.n > LIMIT_QUESTION_BYTES)
    text.n = utf8_floor(text.p, LIMIT_QUESTION_BYTES);
  json_object_set_new_nocheck(object, key, json_text(text));
}

static void put_filled(const struct step *s, const struct turn *turn, json_t *object,
                       const char *key, struct str template) {
  struct prompt_view view;
  AUTO(prompt_deinit) struct prompt text = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  step_view(s, turn, NULL, &view);
  prompt_fill(&view, template, &text);
  put_cut(object, key, buf_view(&text.bytes));
}

static json_t *ask_question(const struct step *s, const struct turn *turn) {
  const struct ask_config *ask = core_movement(s->core, turn)->ask;
  json_t *question = json_object();
  put_filled(s, turn, question, "text", ask->question);
  json_put(question, "choices", json_incref((json_t *)ask->choices));
  json_put(question, "schema", json_incref((json_t *)ask->document));
  json_put_text(question, "default", ask->otherwise);
  return question;
}

/* Tells what would be run. */
static json_t *runs_json(const struct step *s, const struct turn *turn) {
  const struct core *core = s->core;
  const struct movement *m = core_movement(core, turn);
  struct str provider, model;
  json_t *runs = json_object();
  if (m->argv != NULL) {
    json_t *argv = json_array();
    for (size_t i = 0; m->argv[i] != NULL; i++)
      json_array_append_new(argv, json_text(str_from(m->argv[i])));
    json_put(runs, "command", argv);
  } else {
    core_backend(core->workflow, core->config, turn->movement, &provider, &model);
    json_put(runs, "provider", json_text(provider));
    json_put_text(runs, "model", model);
    json_put(runs, "permission", json_string(permission_name(m->permission)));
  }
  if (m->instruction.n > 0)
    put_filled(s, turn, runs, "instruction", m->instruction);
  return runs;
}

static json_t *approve_question(const struct step *s, const struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  json_t *question = json_object(), *files = json_array();
  buf_auto_t text = {0};
  if (m->approve->question.n > 0) {
    put_filled(s, turn, question, "text", m->approve->question);
  } else {
    buf_printf(&text, "May the movement \"" STR_FMT "\" run?", STR_ARG(m->name));
    json_put(question, "text", json_text(buf_view(&text)));
  }
  json_put(question, "runs", runs_json(s, turn));
  JSON_MEMBERS(json_at(s->core->touched, "files"), path, file) {
    if (json_array_size(files) < LIMIT_APPROVED_COUNT)
      json_array_append_new(files, json_clone(file));
  }
  json_put(question, "files", files);
  if (m->approve->deadline_ms > 0)
    json_put(question, "default", json_string(m->approve->approves ? "approve" : "reject"));
  return question;
}

/* Asks whether a group may begin, with what it plans. */
static json_t *plan_question(const struct step *s, const struct turn *turn) {
  json_t *question = json_object();
  buf_auto_t text = {0};
  group_plan_tell(core_movement(s->core, turn), turn->plan, &text);
  json_put(question, "text", json_text(buf_view(&text)));
  json_put(question, "plan", json_incref(turn->plan));
  return question;
}

/* Builds the question of an agent: its own words say what it wants to know. */
static json_t *input_question(const struct step *s, const struct turn *turn) {
  const struct rule *rule = &core_movement(s->core, turn)->rules[turn->rule - 1];
  struct str text = str_trim(buf_view(&turn->text));
  json_t *question = json_object();
  size_t from = 0;
  if (text.n > LIMIT_QUESTION_BYTES)
    from = utf8_ceil(text.p, text.n, text.n - LIMIT_QUESTION_BYTES);
  json_put(question, "text", json_text((struct str){text.p + from, text.n - from}));
  json_put(question, "rule", json_integer(rule->number));
  json_put(question, "condition", json_text(rule->condition));
  return question;
}

void human_ask_rule(struct step *s, struct turn *turn, const struct chain_spec *spec,
                    const char *why) {
  const struct rule *offered[LIMIT_RULE_COUNT];
  size_t n = chain_offered(spec, offered);
  json_t *question = json_object(), *choices = json_array(), *rules = json_array();
  buf_auto_t text = buf_of("Which rule holds? %s", why);
  struct str judged = str_trim(buf_view(&turn->text)); /* its end follows the reason */
  size_t from = 0;
  if (judged.n > LIMIT_QUESTION_BYTES / 2)
    from = utf8_ceil(judged.p, judged.n, judged.n - LIMIT_QUESTION_BYTES / 2);
  buf_printf(&text, "\n\n" STR_FMT, (int)(judged.n - from), judged.p + from);
  put_cut(question, "text", buf_view(&text));
  for (size_t i = 0; i < n; i++) {
    json_array_append_new(choices, json_text(offered[i]->label));
    json_array_append_new(rules, json_integer(offered[i]->number));
  }
  json_put(question, "choices", choices);
  json_put(question, "rules", rules);
  human_ask(s, turn, "judge", question);
}

/* --- answers --- */

static void emit_answer(struct step *s, const struct turn *turn, const char *word, struct str text,
                        const struct core_answer *answer) {
  struct record_draft d;
  long choice = ask_choice(json_at(turn->question, "choices"), text);
  step_turn_record(s, &d, RECORD_ANSWER, turn);
  record_put_text(&d, MEMBER_MOVEMENT, core_movement(s->core, turn)->name);
  record_put_text(&d, MEMBER_ANSWER, str_from(word));
  json_auto_t *rendered = json_text(text);
  record_put_text(&d, MEMBER_TEXT, json_view(rendered));
  if (choice > 0)
    record_put_number(&d, MEMBER_CHOICE, choice);
  record_put_tree(&d, MEMBER_VALUE, json_incref(answer->value));
  if (answer->by != NULL)
    record_put_tree(&d, MEMBER_BY, json_incref((json_t *)answer->by));
  else
    record_put_word(&d, MEMBER_REASON, "deadline");
  step_emit(s, &d);
}

static const char *answer_word(const struct core_answer *answer, const struct turn *turn) {
  if (answer->says == SAYS_APPROVE || answer->says == SAYS_REJECT)
    return answer->says == SAYS_APPROVE ? "approve" : "reject";
  if (answer->value != NULL)
    return "value";
  return json_at(turn->question, "choices") != NULL ? "choice" : "text";
}

/* Takes the default answer when the deadline has passed. */
static void take_default(struct step *s, const struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  AUTO(core_answer_deinit) struct core_answer answer = {.says = SAYS_TEXT};
  struct str text = STR("");
  struct err ignored;
  if (turn_asks(turn, "approve")) {
    answer.says = m->approve->approves ? SAYS_APPROVE : SAYS_REJECT;
    if (!m->approve->approves)
      text = STR("nobody approved it before the deadline");
  } else if (m->ask != NULL) {
    text = m->ask->otherwise;
    if (m->ask->schema != NULL)
      answer.value = ask_read(m->ask->schema, m->ask->document, text, &ignored);
  }
  emit_answer(s, turn, answer_word(&answer, turn), text, &answer);
}

void human_take(struct step *s) {
  const struct core_answer *answer = s->ev->answer;
  const struct turn *turn = core_turn(s->core, answer->turn);
  assert(turn != NULL && turn->question != NULL);
  assert(answer->by != NULL);
  emit_answer(s, turn, answer_word(answer, turn), answer->text, answer);
}

/* Ends a movement that was rejected before it ran: its group counts it as failed; without a group,
 * on_reject says what follows. */
static void end_rejected(struct step *s, struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  struct record_draft d;
  buf_auto_t message = {0};
  buf_puts(&message, "rejected");
  if (turn->text.n > 0)
    buf_printf(&message, ": %s", buf_c(&turn->text));
  if (turn->group > 0) {
    step_end_child(s, turn, ALL_ANY_ERROR, buf_view(&message), CLASS_REFUSED);
    return;
  }
  struct str next = STR("ABORT");
  if (m->approve != NULL && m->approve->on_reject == NEXT_COMPLETE)
    next = STR("COMPLETE");
  else if (m->approve != NULL && m->approve->on_reject >= 0)
    next = s->core->workflow->movements[m->approve->on_reject].name;
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_word(&d, MEMBER_OUTCOME, "rejected");
  record_put_text(&d, MEMBER_NEXT, next);
  record_put_bytes(&d, MEMBER_MESSAGE, buf_view(&message));
  step_emit(s, &d);
}

bool human_wait(struct step *s, struct turn *turn) {
  if (turn->rejected) {
    end_rejected(s, turn);
    return true;
  }
  if (turn->question == NULL) {
    const struct core *core = s->core;
    if (turn_may_ask(core, turn, STR("ask")))
      human_ask(s, turn, "ask", ask_question(s, turn));
    else if (turn_may_ask(core, turn, STR("approve")))
      human_ask(s, turn, "approve",
                turn->plan != NULL ? plan_question(s, turn) : approve_question(s, turn));
    else
      human_ask(s, turn, "input", input_question(s, turn));
    return true;
  }
  return human_take_due_default(s, turn);
}

bool human_take_due_default(struct step *s, struct turn *turn) {
  assert(turn->question != NULL);
  if (turn->until_ms > 0 && s->ev->time_ms >= turn->until_ms) {
    take_default(s, turn);
    return true;
  }
  s->asks = true;
  return false;
}

/* --- waiting --- */

void human_stop(struct step *s) {
  const struct turn *turn = s->core->turns;
  while (turn->question == NULL)
    turn = turn->next;
  struct str text = json_view(json_at(turn->question, "text")), line = str_next_line(&text);
  buf_auto_t message = {.max = LIMIT_ERROR_TEXT_BYTES};
  size_t n = core_question_count(s->core);
  if (turn_asks(turn, "value")) {
    json_t *question = json_clone_top(turn->question);
    json_object_del(question, "schema");
    step_stop(s, "escalated", turn, CLASS_NONE, str_from(turn->reason), question);
    return;
  }
  buf_printf(&message, STR_FMT " asks: " STR_FMT, STR_ARG(core_movement(s->core, turn)->name),
             STR_ARG(line));
  if (n > 1)
    buf_printf(&message, " (and %zu more)", n - 1);
  message.n = utf8_floor(message.p, message.n);
  step_stop(s, "question", turn, CLASS_NONE, buf_view(&message), NULL);
}
