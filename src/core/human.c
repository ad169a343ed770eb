/* Asks a person, waits for the answer and folds both. */
#include "core/human.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "core/group.h"
#include "core/movement_limits.h"
#include "core/record.h"
#include "core/worktree.h"
#include "format/json_object.h"
#include "format/json_value.h"
#include "format/json_write.h"
#include "structured/reply_check.h"

#include <assert.h>
#include <string.h>

/* --- questions ---
 *
 * Builds from the document what a person is asked: `ask` and `approve` of a movement.
 *
 *   ask_build(arena, object, m, &why)      m->ask and m->approve; the caller resolves on_reject
 *
 * The keys are in core/keys.c. */

long ask_choice(const json_t *choices, struct str text) {
  size_t i;
  const json_t *v;
  json_array_foreach((json_t *)choices, i, v) {
    if (str_eq(json_view(v), text))
      return (long)i + 1;
  }
  return 0;
}

int ask_rule(const struct movement *m, struct str text) {
  for (size_t i = 0; i < m->rule_count; i++)
    if (m->rules[i].kind == RULE_LABEL && str_eq(m->rules[i].label, text))
      return m->rules[i].number;
  return 0;
}

bool ask_needs_no_judge(const struct movement *m) {
  size_t i;
  const json_t *v;
  if (m->ask == NULL || m->ask->choices == NULL)
    return false;
  json_array_foreach((json_t *)m->ask->choices, i, v) {
    if (ask_rule(m, json_view(v)) == 0)
      return false;
  }
  return true;
}

json_t *ask_read(const struct schema *schema, const json_t *document, struct str text,
                 struct err *err) {
  const struct answer_spec spec = {.schema = schema,
                                   .document = document,
                                   .max_bytes = LIMIT_STRUCTURED_BYTES,
                                   .max_depth = LIMIT_STRUCTURED_DEPTH};
  struct answer answer;
  json_t *word = json_text(text), *value = NULL;
  answer_read(&answer, &spec, NULL, text.p, text.n);
  bool found = answer.outcome == ANSWER_VALID;
  if (!found) { /* the schema is for texts: take the words themselves */
    struct answer plain;
    answer_read(&plain, &spec, word, "", 0);
    if (plain.outcome == ANSWER_VALID)
      value = json_incref(plain.value);
    answer_deinit(&plain);
  } else {
    value = json_incref(answer.value);
  }
  const json_t *first = json_array_get(answer.errors, 0);
  if (value == NULL)
    err_set(err, ERR_USAGE, "the answer does not fit the schema: %.80s: %.300s",
            json_string_value(json_at(first, "path")),
            json_string_value(json_at(first, "message")));
  answer_deinit(&answer);
  json_decref(word);
  return value;
}

/* Checks the answer that is taken when the deadline passes: it must be a valid one. */
static bool check_default(const struct ask_config *ask, struct err *why) {
  json_t *value;
  if (ask->otherwise.n == 0)
    return ask->deadline_ms == 0 ||
           err_set(why, ERR_INVALID, "is missing: it is the answer when the deadline passes");
  if (ask->deadline_ms == 0)
    return err_set(why, ERR_INVALID, "needs a deadline, after which it is taken");
  if (ask->otherwise.n > LIMIT_ANSWER_BYTES)
    return err_set(why, ERR_INVALID, "is over %u bytes", LIMIT_ANSWER_BYTES);
  if (ask->choices != NULL && ask_choice(ask->choices, ask->otherwise) == 0)
    return err_set(why, ERR_INVALID, "is none of the choices");
  if (ask->schema == NULL)
    return true;
  value = ask_read(ask->schema, ask->document, ask->otherwise, why);
  json_decref(value);
  return value != NULL;
}

static bool build_ask(struct arena *arena, const json_t *object, struct movement *m,
                      const char **key, struct err *why) {
  struct schema_errors errors = {0};
  struct ask_config *ask = arena_array(arena, 1, sizeof *ask);
  m->ask = ask; /* from here on workflow_unref frees what it holds */
  ask->question = json_view(json_at(object, "question"));
  ask->choices = json_at(object, "choices");
  ask->document = json_at(object, "schema");
  ask->otherwise = json_view(json_at(object, "default"));
  ask->deadline_ms = limits_deadline_ms(json_view(json_at(object, "deadline")));
  *key = "ask.question";
  if (str_trim(ask->question).n == 0)
    return err_set(why, ERR_INVALID, "is empty: write what a person is asked");
  *key = "ask.schema";
  if (ask->document != NULL && ask->choices != NULL)
    return err_set(why, ERR_INVALID, "cannot be combined with choices: keep one of them");
  if (ask->document != NULL) {
    ask->schema = schema_compile(ask->document, NULL, &errors, NULL);
    if (ask->schema == NULL)
      err_set(why, ERR_INVALID, "%.100s: %.280s", errors.count ? errors.items[0].path : "$",
              errors.count ? errors.items[0].message : "cannot be used");
    schema_errors_deinit(&errors);
    if (ask->schema == NULL)
      return false;
  }
  *key = "ask.default";
  return check_default(ask, why);
}

bool ask_build(struct arena *arena, const json_t *object, struct movement *m, const char **key,
               struct err *why) {
  const json_t *asks = json_at(object, "ask"), *approve = json_at(object, "approve");
  assert(m->ask == NULL);
  assert(m->approve == NULL);
  if (approve != NULL) {
    m->approve = arena_array(arena, 1, sizeof *m->approve);
    m->approve->question = json_view(json_at(approve, "question"));
    m->approve->deadline_ms = limits_deadline_ms(json_view(json_at(approve, "deadline")));
    m->approve->approves = str_eq_c(json_view(json_at(approve, "default")), "approve");
    m->approve->on_reject = NEXT_ABORT;
    *key = "approve.default";
    if (json_at(approve, "default") != NULL && m->approve->deadline_ms == 0)
      return err_set(why, ERR_INVALID, "needs a deadline, after which it is taken");
  }
  *key = "ask";
  if (asks != NULL && (m->argv != NULL || m->approve != NULL || m->structured != NULL))
    return err_set(why, ERR_INVALID, "a movement with ask does no work of its own");
  return asks == NULL || build_ask(arena, asks, m, key, why);
}

/* --- answers --- */

void core_answer_deinit(struct core_answer *answer) {
  json_decref(answer->value);
  answer->value = NULL;
}

/* Returns true if `name` is the movement's whole name or, for a child, its own. */
static bool answer_is_named(const struct core *core, const struct turn *turn, const char *name) {
  const struct movement *m = core_movement(core, turn);
  return name == NULL || str_eq_c(m->name, name) || str_eq_c(m->own_name, name);
}

static const struct turn *find_asking(const struct core *core, const char *name, size_t *count) {
  const struct turn *found = NULL;
  *count = 0;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn->question != NULL && answer_is_named(core, turn, name)) {
      found = turn;
      ++*count;
    }
  return found;
}

/* Returns the last answer to the question that is meant, NULL if there was none. */
static const json_t *answer_before(const struct core *core, const struct core_answer *answer) {
  size_t n = json_array_size(core->answers);
  for (size_t i = n; i-- > 0;) {
    const json_t *before = json_array_get(core->answers, i);
    json_int_t seq = json_integer_value(json_at(before, "question"));
    struct str name = json_view(json_at(before, "movement"));
    const char *dot = memchr(name.p, '.', name.n);
    bool named = answer->movement == NULL || str_eq_c(name, answer->movement) ||
                 (dot != NULL && strcmp(dot + 1, answer->movement) == 0);
    if (answer->question > 0 ? (uint64_t)seq == answer->question : named)
      return before;
  }
  return NULL;
}

static bool say_answered(const json_t *before, struct err *err) {
  const json_t *by = json_at(before, "by");
  struct buf who = {0};
  if (by != NULL)
    buf_printf(&who, "by %s%s (uid %lld)", json_at(by, "user") != NULL ? "one who says " : "",
               json_string_value(json_at(by, "name")),
               (long long)json_integer_value(json_at(by, "uid")));
  else
    buf_puts(&who, "by its deadline, with the default");
  struct str text = json_view(json_at(before, "text"));
  if (text.n == 0)
    text = json_view(json_at(before, "answer"));
  err_set(err, ERR_INVALID, "%s was answered already, %s at %s: %.200s",
          json_string_value(json_at(before, "movement")), buf_c(&who),
          json_string_value(json_at(before, "at")), text.p);
  buf_deinit(&who);
  return false;
}

static bool take_choice(const json_t *choices, struct core_answer *answer, struct err *err) {
  size_t n = json_array_size(choices);
  if (answer->says == SAYS_CHOICE && choices == NULL)
    return err_set(err, ERR_USAGE, "the question has no choices: answer with a text");
  if (answer->says == SAYS_CHOICE && (answer->choice < 1 || (size_t)answer->choice > n))
    return err_set(err, ERR_USAGE, "there is no choice %ld: use 1 to %zu", answer->choice, n);
  if (answer->says == SAYS_CHOICE)
    answer->text = json_view(json_array_get(choices, (size_t)answer->choice - 1));
  answer->text = choices ? str_trim(answer->text) : answer->text;
  if (choices == NULL || ask_choice(choices, answer->text) > 0)
    return true;
  struct buf words = {0};
  for (size_t i = 0; i < n; i++)
    buf_printf(&words, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(choices, i)));
  err_set(err, ERR_USAGE, "the answer must be one of its choices: %.300s", buf_c(&words));
  buf_deinit(&words);
  return false;
}

static bool answer_take_words(const struct core *core, const struct turn *turn,
                              struct core_answer *answer, struct err *err) {
  const struct movement *m = core_movement(core, turn);
  bool is_value = str_eq_c(json_view(json_at(turn->question, "kind")), "value");
  if (!take_choice(json_at(turn->question, "choices"), answer, err))
    return false;
  if (answer->text.n > LIMIT_ANSWER_BYTES)
    return err_set(err, ERR_USAGE, "an answer has at most %u bytes: name a file in it",
                   LIMIT_ANSWER_BYTES);
  if (str_trim(answer->text).n == 0)
    return err_set(err, ERR_USAGE, "the answer is empty");
  const struct schema *schema = m->ask ? m->ask->schema : NULL;
  const json_t *document = m->ask ? m->ask->document : NULL;
  if (is_value) {
    schema = m->structured->schema;
    document = m->structured->document;
  }
  if (schema == NULL)
    return true;
  answer->value = ask_read(schema, document, answer->text, err);
  return answer->value != NULL;
}

bool core_answer_settle(const struct core *core, struct core_answer *answer, int64_t now_ms,
                        struct err *err) {
  size_t count;
  const struct turn *turn = find_asking(core, answer->movement, &count);
  bool approves = answer->says == SAYS_APPROVE || answer->says == SAYS_REJECT;
  char until[RECORD_TIME_BYTES];
  assert(answer->value == NULL);
  for (const struct turn *t = core->turns; answer->question > 0 && t; t = t->next)
    if (t->question != NULL && t->question_seq == answer->question) {
      turn = t;
      count = 1;
    }
  bool meant = turn != NULL && (answer->question == 0 || turn->question_seq == answer->question);
  if (core->status == SESSION_ENDED || !meant) {
    const json_t *before = answer_before(core, answer);
    size_t any;
    if (before != NULL)
      return say_answered(before, err);
    const struct turn *other = find_asking(core, NULL, &any);
    if (other != NULL)
      return err_set(err, ERR_USAGE, "%s asks nothing: what is open is asked by " STR_FMT,
                     answer->movement ? answer->movement : "that question",
                     STR_ARG(core->workflow->movements[other->movement].name));
    return err_set(err, ERR_INVALID, "it asks nothing");
  }
  if (count > 1) {
    struct buf names = {0};
    for (const struct turn *one = core->turns; one; one = one->next)
      if (one->question != NULL)
        buf_printf(&names, "%s" STR_FMT, names.n > 0 ? ", " : "",
                   STR_ARG(core->workflow->movements[one->movement].name));
    err_set(err, ERR_USAGE, "several movements ask: name the one to answer: %.300s", buf_c(&names));
    buf_deinit(&names);
    return false;
  }
  if (turn->until_ms > 0 && now_ms >= turn->until_ms) {
    record_time(turn->until_ms, until);
    return err_set(err, ERR_INVALID, "its deadline passed at %s: the default is taken", until);
  }
  answer->turn = turn->id;
  if (approves != str_eq_c(json_view(json_at(turn->question, "kind")), "approve"))
    return err_set(err, ERR_USAGE, "it asks for %s",
                   approves ? "an answer: segue answer" : "approval: segue approve or reject");
  if (!approves)
    return answer_take_words(core, turn, answer, err);
  return answer->text.n <= LIMIT_WHY_BYTES ||
         err_set(err, ERR_USAGE, "a reason has at most %u bytes", LIMIT_WHY_BYTES);
}

/* --- human --- */

static bool is_kind(const struct turn *turn, const char *kind) {
  return str_eq_c(json_view(json_at(turn->question, "kind")), kind);
}

/* --- the fold --- */

void human_forget(struct turn *turn) {
  json_decref(turn->question);
  turn->question = NULL;
  turn->question_seq = 0;
  turn->until_ms = 0;
}

/* Returns whether something of this kind is to be asked about the turn. */
static bool human_may_ask(const struct core *core, const struct turn *turn, struct str kind) {
  const struct movement *m = core_movement(core, turn);
  bool begins = turn->phase == TURN_EXECUTING && turn->calls == NULL;
  if (str_eq_c(kind, "ask"))
    return begins && m->ask != NULL;
  if (str_eq_c(kind, "approve"))
    return begins && m->approve != NULL && !turn->answered && !turn->rejected;
  if (str_eq_c(kind, "input"))
    return turn->phase == TURN_JUDGED && turn->rule > 0 && m->rules[turn->rule - 1].asks &&
           !turn->answered;
  if (str_eq_c(kind, "judge"))
    return turn->phase == TURN_JUDGING && m->judge.split_asks && turn->verdict == NULL &&
           json_array_size(turn->stages) > 0;
  return str_eq_c(kind, "value") && turn->phase == TURN_EXECUTING && turn->escalated;
}

bool apply_question(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  json_t *question = fold_tree(f, MEMBER_QUESTION);
  struct str until = fold_text(f, MEMBER_UNTIL);
  if (turn == NULL)
    return false;
  if (turn->question != NULL || !human_may_ask(f->core, turn, json_view(json_at(question, "kind"))))
    return fold_bad(f, "its turn has nothing to ask");
  if (!record_time_parse(f->record->ts.p, &turn->asked_ms))
    return fold_bad(f, "its time cannot be read");
  if (until.n > 0 && !record_time_parse(until.p, &turn->until_ms))
    return fold_bad(f, "its deadline is no time");
  turn->question = json_incref(question);
  turn->question_seq = f->core->seq + 1;
  return true;
}

/* Notes who answered which question and when, for later readers. */
static void note_answer(const struct fold *f, const struct turn *turn) {
  struct core *core = f->core;
  struct str text = fold_text(f, MEMBER_TEXT);
  if (core->answers == NULL)
    core->answers = json_array();
  if (text.n > LIMIT_CHOICE_BYTES)
    text.n = utf8_floor(text.p, LIMIT_CHOICE_BYTES);
  json_array_append_new(
      core->answers,
      json_pack("{sI so so so so* so so*}", "question", (json_int_t)turn->question_seq, "movement",
                json_text(core_movement(core, turn)->name), "answer",
                json_text(fold_text(f, MEMBER_ANSWER)), "text", json_text(text), "by",
                json_incref(fold_tree(f, MEMBER_BY)), "at", json_text(f->record->ts), "reason",
                fold_has(f, MEMBER_REASON) ? json_text(fold_text(f, MEMBER_REASON)) : NULL));
}

/* Keeps the question, as a quotation, and its answer below the movement's earlier ones. */
static void keep_input(struct core *core, const struct turn *turn, struct str answer) {
  struct str name = core_movement(core, turn)->name, line;
  struct str rest = json_view(json_at(turn->question, "text"));
  struct buf text = {0};
  if (core->inputs == NULL)
    core->inputs = json_object();
  buf_str(&text, json_view(json_object_getn(core->inputs, name.p, name.n)));
  if (text.n > 0)
    buf_puts(&text, "\n\n---\n\n");
  while (rest.n > 0) {
    line = str_next_line(&rest);
    buf_puts(&text, "> ");
    buf_str(&text, line);
    buf_putc(&text, '\n');
  }
  buf_putc(&text, '\n');
  buf_str(&text, answer);
  size_t from = 0;
  if (text.n > LIMIT_INPUTS_BYTES)
    from = utf8_ceil(text.p, text.n, text.n - LIMIT_INPUTS_BYTES);
  json_object_setn_new(core->inputs, name.p, name.n,
                       json_text((struct str){text.p + from, text.n - from}));
  buf_deinit(&text);
}

static json_t *value_of_answer(const struct fold *f) {
  json_t *given = fold_tree(f, MEMBER_VALUE);
  if (given != NULL)
    return json_incref(given);
  json_t *value = json_object();
  json_put(value, "text", json_text(fold_text(f, MEMBER_TEXT)));
  if (fold_has(f, MEMBER_CHOICE))
    json_put(value, "choice", json_integer(fold_number(f, MEMBER_CHOICE)));
  json_put(value, "timed_out", json_boolean(fold_has(f, MEMBER_REASON)));
  return value;
}

/* Returns the rule that a choice stands for; 0 if there is none, as in a log that was tampered
 * with. */
static int chosen_rule(const struct fold *f, const struct turn *turn) {
  size_t choice = (size_t)fold_number(f, MEMBER_CHOICE) - 1;
  json_int_t rule = json_integer_value(json_array_get(json_at(turn->question, "rules"), choice));
  size_t count = core_movement(f->core, turn)->rule_count;
  return rule >= 1 && (size_t)rule <= count ? (int)rule : 0;
}

static void take_rule(const struct fold *f, struct turn *turn, int rule) {
  json_decref(turn->verdict);
  turn->verdict = json_pack("{si}", "rule", rule);
  if (fold_has(f, MEMBER_BY))
    json_put(turn->verdict, "by", json_incref(fold_tree(f, MEMBER_BY)));
}

/* Returns true if the answer is valid: an answer in a tampered log must not get around a schema. */
static bool answer_fits(const struct fold *f, const struct turn *turn) {
  const struct movement *m = core_movement(f->core, turn);
  const struct schema *schema = m->ask ? m->ask->schema : NULL;
  const json_t *document = m->ask ? m->ask->document : NULL;
  if (is_kind(turn, "value")) {
    schema = m->structured->schema;
    document = m->structured->document;
  }
  if (schema == NULL)
    return fold_tree(f, MEMBER_VALUE) == NULL;
  struct err ignored;
  json_t *value = ask_read(schema, document, fold_text(f, MEMBER_TEXT), &ignored);
  bool same = value != NULL && json_same(value, fold_tree(f, MEMBER_VALUE));
  json_decref(value);
  return same;
}

bool apply_answer(const struct fold *f) {
  struct turn *turn = fold_turn(f);
  struct str word = fold_text(f, MEMBER_ANSWER), text = fold_text(f, MEMBER_TEXT);
  if (turn == NULL)
    return false;
  if (turn->question == NULL)
    return fold_bad(f, "its turn asks nothing");
  bool approves = is_kind(turn, "approve"), rejects = str_eq_c(word, "reject");
  if (approves != (rejects || str_eq_c(word, "approve")))
    return fold_bad(f, "its answer is none to that question");
  if (!approves && !answer_fits(f, turn))
    return fold_bad(f, "its value does not fit the schema");
  if (is_kind(turn, "judge") && chosen_rule(f, turn) == 0)
    return fold_bad(f, "it is no rule of its movement");
  note_answer(f, turn);
  if (rejects) {
    turn->rejected = true;
    buf_clear(&turn->text);
    buf_str(&turn->text, text);
    turn->text_seq = f->core->seq + 1;
  } else if (is_kind(turn, "judge")) {
    take_rule(f, turn, chosen_rule(f, turn));
  } else if (is_kind(turn, "input")) {
    keep_input(f->core, turn, text);
    turn->answered = true;
  } else if (approves) {
    turn->answered = true;
  } else {
    const struct movement *m = core_movement(f->core, turn);
    int rule = m->ask && fold_has(f, MEMBER_CHOICE) ? ask_rule(m, fold_text(f, MEMBER_TEXT)) : 0;
    buf_clear(&turn->text);
    buf_str(&turn->text, fold_text(f, MEMBER_TEXT));
    turn->text_seq = f->core->seq + 1;
    json_decref(turn->structured);
    turn->structured = value_of_answer(f);
    turn->escalated = false;
    turn->phase = TURN_JUDGING;
    if (rule > 0)
      take_rule(f, turn, rule);
  }
  human_forget(turn);
  f->core->answered |= f->core->status == SESSION_STOPPED;
  return true;
}

/* --- asking --- */

bool human_hold(const struct turn *turn, const struct core *core) {
  const struct movement *m = core_movement(core, turn);
  if (turn->phase != TURN_JUDGED && m->ask == NULL && m->approve == NULL) /* most turns */
    return turn->question != NULL || turn->rejected;
  return turn->question != NULL || turn->rejected || human_may_ask(core, turn, STR("ask")) ||
         human_may_ask(core, turn, STR("approve")) || human_may_ask(core, turn, STR("input"));
}

static long deadline_of(const struct movement *m, const char *kind) {
  if (strcmp(kind, "ask") == 0)
    return m->ask->deadline_ms;
  return strcmp(kind, "approve") == 0 ? m->approve->deadline_ms : 0;
}

/* Lists where the session may go from there once the question is answered. */
static json_t *blocks_json(const struct core *core, const struct turn *turn) {
  const struct movement *m = core_movement(core, turn);
  json_t *names = json_array();
  if (m->group != NO_GROUP)
    m = &core->workflow->movements[m->group];
  for (size_t i = 0; i < m->rule_count; i++) {
    json_t *name = json_text(m->rules[i].next);
    size_t k = 0;
    while (k < json_array_size(names) && !json_same(json_array_get(names, k), name))
      k++;
    if (k == json_array_size(names))
      json_array_append(names, name);
    json_decref(name);
  }
  return names;
}

void human_ask(struct step *s, struct turn *turn, const char *kind, json_t *question) {
  const struct movement *m = core_movement(s->core, turn);
  long ms = deadline_of(m, kind);
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

static void human_put_text(json_t *object, const char *key, struct str text, size_t most) {
  if (text.n > most)
    text.n = utf8_floor(text.p, most);
  json_object_set_new_nocheck(object, key, json_text(text));
}

static void put_filled(const struct step *s, const struct turn *turn, json_t *object,
                       const char *key, struct str template) {
  struct prompt_view view;
  struct prompt text = {.bytes = {.max = LIMIT_PROMPT_BYTES}};
  step_view(s, turn, NULL, &view);
  prompt_fill(&view, template, &text);
  human_put_text(object, key, buf_view(&text.bytes), LIMIT_QUESTION_BYTES);
  prompt_deinit(&text);
}

static json_t *ask_question(const struct step *s, const struct turn *turn) {
  const struct ask_config *ask = core_movement(s->core, turn)->ask;
  json_t *question = json_object();
  put_filled(s, turn, question, "text", ask->question);
  json_put(question, "choices", json_incref((json_t *)ask->choices));
  json_put(question, "schema", json_incref((json_t *)ask->document));
  if (ask->otherwise.n > 0)
    json_put(question, "default", json_text(ask->otherwise));
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
    if (model.n > 0)
      json_put(runs, "model", json_text(model));
    json_put(runs, "permission", json_string(permission_name(m->permission)));
  }
  if (m->instruction.n > 0)
    put_filled(s, turn, runs, "instruction", m->instruction);
  return runs;
}

static json_t *approve_question(const struct step *s, const struct turn *turn) {
  const struct movement *m = core_movement(s->core, turn);
  json_t *question = json_object(), *files = json_array(), *file;
  const char *path;
  struct buf text = {0};
  if (m->approve->question.n > 0) {
    put_filled(s, turn, question, "text", m->approve->question);
  } else {
    buf_printf(&text, "May the movement \"" STR_FMT "\" run?", STR_ARG(m->name));
    json_put(question, "text", json_text(buf_view(&text)));
  }
  buf_deinit(&text);
  json_put(question, "runs", runs_json(s, turn));
  json_object_foreach(json_at(s->core->touched, "files"), path, file) {
    if (json_array_size(files) < LIMIT_APPROVED_COUNT)
      json_array_append_new(files, json_clone(file));
  }
  json_put(question, "files", files);
  if (m->approve->deadline_ms > 0)
    json_put(question, "default", json_string(m->approve->approves ? "approve" : "reject"));
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
  struct buf text = {0};
  buf_printf(&text, "Which rule holds? %s", why);
  struct str judged = str_trim(buf_view(&turn->text)); /* its end follows the reason */
  size_t from = 0;
  if (judged.n > LIMIT_QUESTION_BYTES / 2)
    from = utf8_ceil(judged.p, judged.n, judged.n - LIMIT_QUESTION_BYTES / 2);
  buf_printf(&text, "\n\n" STR_FMT, (int)(judged.n - from), judged.p + from);
  human_put_text(question, "text", buf_view(&text), LIMIT_QUESTION_BYTES);
  buf_deinit(&text);
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
  json_t *rendered = json_text(text);
  record_put_text(&d, MEMBER_TEXT, json_view(rendered));
  if (choice > 0)
    record_put_number(&d, MEMBER_CHOICE, choice);
  record_put_tree(&d, MEMBER_VALUE, json_incref(answer->value));
  if (answer->by != NULL)
    record_put_tree(&d, MEMBER_BY, json_incref((json_t *)answer->by));
  else
    record_put_word(&d, MEMBER_REASON, "deadline");
  step_emit(s, &d);
  json_decref(rendered);
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
  struct core_answer answer = {.says = SAYS_TEXT};
  struct str text = STR("");
  struct err ignored;
  if (is_kind(turn, "approve")) {
    answer.says = m->approve->approves ? SAYS_APPROVE : SAYS_REJECT;
    if (!m->approve->approves)
      text = STR("nobody approved it before the deadline");
  } else if (m->ask != NULL) {
    text = m->ask->otherwise;
    if (m->ask->schema != NULL)
      answer.value = ask_read(m->ask->schema, m->ask->document, text, &ignored);
  }
  emit_answer(s, turn, answer_word(&answer, turn), text, &answer);
  core_answer_deinit(&answer);
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
  struct buf message = {0};
  buf_puts(&message, "rejected");
  if (turn->text.n > 0)
    buf_printf(&message, ": %s", buf_c(&turn->text));
  if (turn->group > 0) {
    group_fail_child(s, turn, CLASS_REFUSED, buf_view(&message));
    buf_deinit(&message);
    return;
  }
  struct str next = STR("ABORT");
  if (m->approve->on_reject == NEXT_COMPLETE)
    next = STR("COMPLETE");
  else if (m->approve->on_reject >= 0)
    next = s->core->workflow->movements[m->approve->on_reject].name;
  step_turn_record(s, &d, RECORD_TURN_END, turn);
  record_put_word(&d, MEMBER_OUTCOME, "rejected");
  record_put_text(&d, MEMBER_NEXT, next);
  record_put_bytes(&d, MEMBER_MESSAGE, buf_view(&message));
  step_emit(s, &d);
  buf_deinit(&message);
}

bool human_wait(struct step *s, struct turn *turn) {
  if (turn->rejected) {
    end_rejected(s, turn);
    return true;
  }
  if (turn->question == NULL) {
    const struct core *core = s->core;
    if (human_may_ask(core, turn, STR("ask")))
      human_ask(s, turn, "ask", ask_question(s, turn));
    else if (human_may_ask(core, turn, STR("approve")))
      human_ask(s, turn, "approve", approve_question(s, turn));
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

void human_arm(struct step *s) {
  for (const struct turn *turn = s->core->turns; turn; turn = turn->next)
    if (turn->question != NULL && turn->until_ms > s->ev->time_ms)
      step_effect(s, EFFECT_TIMER, 0, turn->until_ms - s->ev->time_ms);
}

/* --- waiting --- */

size_t core_question_count(const struct core *core) {
  size_t n = 0;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    n += turn->question != NULL;
  return n;
}

bool human_alone(const struct core *core) {
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    for (const struct call *call = turn->calls; call; call = call->next)
      if (call->state == CALL_RUNNING || call->state == CALL_WAITING)
        return false;
  return !core_worktree_busy(core);
}

/* Returns as many files as fit into a list of questions; the last entry says how many more there
 * are. */
static json_t *first_files(const json_t *files) {
  json_t *first = json_array();
  size_t n = json_array_size(files);
  for (size_t i = 0; i < n && i < LIMIT_INBOX_FILE_COUNT; i++)
    json_array_append(first, json_array_get(files, i));
  if (n > LIMIT_INBOX_FILE_COUNT)
    json_array_append_new(first,
                          json_pack("{sI}", "more", (json_int_t)(n - LIMIT_INBOX_FILE_COUNT)));
  return first;
}

json_t *core_question_item(const json_t *question, uint64_t seq, long turn, struct str movement,
                           struct str since, struct str until) {
  static const char *const kept[] = {"kind", "choices", "default", "runs", "blocks"};
  const json_t *files = json_at(question, "files");
  json_t *item = json_object();
  json_put(item, "question", json_integer((json_int_t)seq));
  json_put(item, "turn", json_integer(turn));
  json_put(item, "movement", json_text(movement));
  human_put_text(item, "text", json_view(json_at(question, "text")), LIMIT_INBOX_TEXT_BYTES);
  for (size_t i = 0; i < ARRAY_LEN(kept); i++)
    json_object_set_nocheck(item, kept[i], json_object_get(question, kept[i]));
  if (json_array_size(files) > 0)
    json_put(item, "files", first_files(files));
  json_put(item, "since", json_text(since));
  if (until.n > 0)
    json_put(item, "until", json_text(until));
  return item;
}

json_t *core_questions(const struct core *core) {
  json_t *list = NULL;
  for (const struct turn *turn = core->turns; turn; turn = turn->next)
    if (turn->question != NULL) {
      char since[RECORD_TIME_BYTES], until[RECORD_TIME_BYTES] = "";
      list = list ? list : json_array();
      record_time(turn->asked_ms, since);
      if (turn->until_ms > 0)
        record_time(turn->until_ms, until);
      json_t *item =
          core_question_item(turn->question, turn->question_seq, turn->id,
                             core_movement(core, turn)->name, str_from(since), str_from(until));
      json_put(item, "workflow", json_text(core->workflow->name));
      json_array_append_new(list, item);
    }
  return list;
}

void human_stop(struct step *s) {
  const struct turn *turn = s->core->turns;
  while (turn->question == NULL)
    turn = turn->next;
  struct str text = json_view(json_at(turn->question, "text")), line = str_next_line(&text);
  struct buf message = {.max = LIMIT_ERROR_TEXT_BYTES};
  size_t n = core_question_count(s->core);
  if (is_kind(turn, "value")) {
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
  buf_deinit(&message);
}
